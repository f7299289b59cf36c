"""mem0 behind its REST API, hosted or self-hosted: requests, sources, events and the key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RouteError, SpecError
from routeprism.policies import make_policy
from routeprism.policies.adapters.mem0 import Mem0
from routeprism.records import Record
from routeprism.routes.conformance import check_adapter

from . import mem0_stand_in

KEY = mem0_stand_in.KEY
APIS = ("platform", "server")

RECORDS = tuple(
    Record(f"r{at}", at, f"[USER] {text}\n\n[ASSISTANT] Noted.", "2024-03-03")
    for at, text in enumerate(
        ("My dentist is Dr Moe.", "Bob owns a boat.", "My dentist is now Dr Roe in Graz.")
    )
)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MEM0_API_KEY", KEY)
    item = mem0_stand_in.Mem0StandIn()
    yield item
    item.stop()


def spec(service: Any, api: str, more: str = "") -> str:
    return f"mem0:host={service.url},api={api}{more}"


@pytest.mark.parametrize("api", APIS)
def test_memories_have_sources_and_events(service: Any, api: str) -> None:
    service.polls = 2
    memory: Any = make_policy(spec(service, api, ",k=1")).build(RECORDS)
    sources_by_text = {block.text: sorted(block.sources) for block in memory.list_blocks()}
    assert sources_by_text == {
        "Bob owns a boat.": ["r1"],
        "My dentist is now Dr Roe in Graz.": ["r2"],
    }
    assert ("overwrite", "r0", "r2", 2) in [
        (event.kind, event.record, event.by, event.at) for event in memory.events()
    ]
    (display,) = memory.expose("Who owns a boat?").blocks
    assert display.sources == {"r1"}
    assert len(service.users) == 1
    memory.close()
    assert service.users == {}


@pytest.mark.parametrize("api", APIS)
def test_turns_can_be_stored_as_they_are(service: Any, api: str) -> None:
    memory: Any = make_policy(spec(service, api, ",infer=false,text=full")).build(RECORDS)
    assert memory.retained() == {"r0", "r1", "r2"}
    assert [block.text for block in memory.list_blocks()].count("Noted.") == 3
    assert not any("event" in path for _, path in service.requests)
    memory.close()


@pytest.mark.slow
@pytest.mark.parametrize("api", APIS)
def test_it_conforms(service: Any, api: str) -> None:
    checks = check_adapter(make_policy(spec(service, api)))
    assert [check for check in checks if check.outcome == "failed"] == []


def test_the_key_appears_nowhere(
    service: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_data: Callable[..., Path]
) -> None:
    records = [{"user": "ann", "id": record.id, "text": record.text} for record in RECORDS]
    data = own_data(records, [{"user": "ann", "id": "q", "text": "Who owns a boat?"}])
    run = tmp_path / "run"
    policy = spec(service, "server", ",infer=false")
    audit = routeprism.audit(data, policy, schedules=["replay"], resamples=100, run=run)
    audit.report(run / "report.html")
    assert (run / "estimates.csv").exists()
    assert not [file for file in run.iterdir() if KEY.encode() in file.read_bytes()]
    monkeypatch.setenv("WRONG", "another-secret-value")
    with pytest.raises(RouteError, match="401") as raised:
        make_policy(spec(service, "server", ",token=WRONG")).build(RECORDS)
    assert "another-secret-value" not in str(raised.value)


def test_wrong_specs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MEM0_API_KEY", raising=False)
    with pytest.raises(SpecError, match=r"host=… alone"):
        make_policy("mem0:host=http://127.0.0.1:1,model=m")
    with pytest.raises(SpecError, match="MEM0_API_KEY, which is not set"):
        make_policy("mem0:host=http://127.0.0.1:1").build(RECORDS)
    with pytest.raises(SpecError):
        make_policy("mem0:host=http://user:password@127.0.0.1:1")
    assert Mem0(host="https://api.mem0.ai").platform
    assert not Mem0(host="http://127.0.0.1:8888").platform
