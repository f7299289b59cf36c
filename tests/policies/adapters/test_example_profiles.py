"""The profiles in examples/profiles, against stand-ins that follow the documented APIs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from routeprism.policies import make_policy
from routeprism.policies.adapters.http import Http
from routeprism.records import Record

from . import standins

PROFILES = Path(__file__).parents[3] / "examples" / "profiles"
KEY = standins.KEY
SYSTEMS = {"zep": "Zep", "letta": "Letta", "cognee": "Cognee", "memos": "MemOS"}
VARIABLES = {"zep": "ZEP_API_KEY", "letta": "LETTA_API_KEY"} | {
    "cognee": "COGNEE_API_KEY",
    "memos": "MEMOS_API_KEY",
}
RECORDS = (
    Record("a", 0, "I drink tea. My dog is called Rex."),
    Record("b", 1, "I moved to Rome. I drink tea."),
    Record("c", 2, "Rex likes the park. The park is large."),
)


@pytest.fixture(params=sorted(SYSTEMS))
def audited(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Any, Http]]:
    """Give the system's name, its stand-in, and the example's profile with shorter waits."""
    monkeypatch.setenv(VARIABLES[request.param], KEY)
    monkeypatch.setenv("ROUTEPRISM_PROFILE_ENV", ", ".join(VARIABLES.values()))
    text = (PROFILES / f"{request.param}.toml").read_text()
    text = text.replace("interval = 1.0", "interval = 0.001")
    (tmp_path / "profile.toml").write_text(re.sub(r"(?m)^size = \d+", "size = 2", text))
    service = getattr(standins, SYSTEMS[request.param])()
    server = standins.Server(service)
    address = re.search(r'(?m)^url = "https?://[^/"]+(.*)"', text)
    assert address is not None
    url = server.url + address[1]
    yield request.param, service, Http(url, profile=str(tmp_path / "profile.toml"))
    server.stop()


TRUTH = {
    "zep": {
        "I drink tea.": {"a", "b"},  # reported: both episodes said it
        "My dog is called Rex.": {"a"},
        "I moved to Rome.": {"b"},
        "Rex likes the park.": {"c"},
        "The park is large.": {"c"},
    },
    "letta": {record.text: {record.id} for record in RECORDS},
    "memos": {
        f"[user opinion] The user said: {sentence}": {id}
        for sentence, id in (
            ("I moved to Rome.", "b"),
            ("I drink tea.", "b"),
            ("Rex likes the park.", "c"),
            ("The park is large.", "c"),
        )
    },
}


def test_each_example_finds_the_sources_that_the_stand_in_knows(audited: Any) -> None:
    """With pages of two items, so that every listing has several."""
    name, service, policy = audited
    memory: Any = policy.build(RECORDS)
    blocks = [(block.text, set(block.sources)) for block in memory.list_blocks()]
    if name == "cognee":  # two chunks have the same text, and each its own source
        assert sorted((text, sorted(ids)) for text, ids in blocks) == sorted(
            (sentence, [record.id])
            for record in RECORDS
            for sentence in standins.sentences(record.text)
        )
    else:
        assert dict(blocks) == TRUTH[name]
    exposure = memory.expose("Where is the park that Rex likes?")
    assert "c" in exposure.sources
    assert exposure.sources <= memory.retained()
    kinds = {event.kind for event in memory.events()}
    assert kinds == ({"add", "evict"} if name == "memos" else {"add"})
    memory.close()
    assert service.spaces == {}


def test_the_walk_passes_every_step(audited: Any) -> None:
    _, _, policy = audited
    assert [step for step in policy.walk() if not step.passed] == []


@pytest.mark.parametrize("name", [*sorted(SYSTEMS), "notes"])
def test_the_examples_can_be_read_as_they_are(name: str) -> None:
    policy = make_policy(f"http:profile={PROFILES / name}.toml")
    assert policy.name == f"http:profile={PROFILES / name}.toml"
