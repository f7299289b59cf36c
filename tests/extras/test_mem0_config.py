"""mem0 with a configuration file in its own format, and its history table as events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import LimitError, RouteError, SpecError
from routeprism.models.scripted import ScriptedEndpoint
from routeprism.policies import make_policy
from routeprism.records import Record, load_benchmark
from routeprism.routes.conformance import check_adapter

from .scripted_model import Scripted

TEXTS = ("My dentist is Dr Moe.", "I like green tea in the morning.", "My dentist is Dr Roe.")
RECORDS = tuple(Record(f"r{at}", at, f"[USER] {text}") for at, text in enumerate(TEXTS))
SAMPLE = load_benchmark("sample", None)
SECRET = "-".join(("sk", "config", "123456789"))


@pytest.fixture(autouse=True)
def present() -> None:
    pytest.importorskip("mem0", reason="pip install -r requirements-extras.txt")


@pytest.fixture
def endpoint() -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint(api_key=SECRET) as served:
        yield served


def write(path: Path, **sections: Any) -> str:
    path.write_text(json.dumps(sections))
    return str(path)


def test_a_local_store_never_touches_the_data_that_it_names(tmp_path: Path) -> None:
    expected = tmp_path / "mine"
    config = write(
        tmp_path / "mem0.json",
        vector_store={
            "provider": "qdrant",
            "config": {"path": str(expected), "embedding_model_dims": 1025, "on_disk": True},
        },
    )
    policy = make_policy(f"mem0:config={config},embed=words")
    memory: Any = policy.build(RECORDS)
    assert memory.retained() == {"r0", "r1", "r2"}
    assert [event.kind for event in memory.events()] == ["add"] * 3
    assert "dentist" in memory.expose("Who is my dentist?").blocks[0].text
    memory.close()
    assert not expected.exists()
    assert policy.origin().endswith(f"config sha256 {_digest(config)}")  # type: ignore[attr-defined]


def _digest(file: str) -> str:
    import hashlib

    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def test_the_model_and_the_embedder_of_the_file_are_used(
    tmp_path: Path, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    client = {"openai_base_url": endpoint.base_url, "api_key": "env:OPENAI_API_KEY"}
    config = write(
        tmp_path / "mem0.json",
        llm={"provider": "openai", "config": {"model": "m", **client}},
        embedder={
            "provider": "openai",
            "config": {"model": "text", "embedding_dims": 1025, **client},
        },
    )
    policy: Any = make_policy(f"mem0:config={config},env=OPENAI_API_KEY")
    assert not policy.deterministic
    assert policy.client.model == "m" and policy.client.address == endpoint.base_url
    memory: Any = policy.build(RECORDS)
    assert sorted(block.text for block in memory.list_blocks()) == sorted(TEXTS)
    memory.close()


def test_the_key_of_the_file_is_sent_and_no_other(
    tmp_path: Path, endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The endpoint refuses every key but its own, also through the proxy of a run."""
    monkeypatch.setenv("MODEL_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-a-different-service")
    llm = {"model": "m", "openai_base_url": endpoint.base_url, "api_key": "env:MODEL_KEY"}
    config = write(tmp_path / "mem0.json", llm={"provider": "openai", "config": llm})
    policy: Any = make_policy(f"mem0:config={config},embed=words,env=MODEL_KEY")
    memory: Any = policy.build(RECORDS)
    assert sorted(block.text for block in memory.list_blocks()) == sorted(TEXTS)
    memory.close()
    item = replace(SAMPLE, cases=SAMPLE.cases[:1])
    audit = routeprism.audit(item, policy, resamples=100, run=tmp_path / "run", max_calls=50)
    assert audit.value("J").units == 1
    for file in (tmp_path / "run").iterdir():
        assert SECRET.encode() not in file.read_bytes(), file


@pytest.mark.parametrize(
    ("section", "provider", "settings"),
    [
        ("llm", "openai", {"openai_base_url": "http://127.0.0.1:9/v1"}),
        ("llm", "openai", {"openrouter_base_url": "http://127.0.0.1:9/v1", "api_key": ""}),
        ("llm", "deepseek", {"deepseek_base_url": "http://127.0.0.1:9/v1"}),
        ("embedder", "openai", {"openai_base_url": "http://127.0.0.1:9/v1"}),
        ("embedder", "azure_openai", {"azure_kwargs": {"azure_endpoint": "http://127.0.0.1:9"}}),
    ],
)
def test_an_address_in_the_file_gets_no_key_that_nobody_named(
    tmp_path: Path, section: str, provider: str, settings: Any
) -> None:
    """mem0 reads OPENAI_API_KEY and others by itself where a file names an address and no key."""
    more = {section: {"provider": provider, "config": {"model": "m", **settings}}}
    config = write(tmp_path / "mem0.json", **more)
    with pytest.raises(SpecError, match=rf"{section} has \w+ and no api_key, so mem0 would send"):
        make_policy(f"mem0:config={config},env=OPENAI_API_KEY")


def test_a_key_for_openrouter_does_not_change_who_is_asked(
    endpoint: ScriptedEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    """mem0 prefers OpenRouter where its key is set; this address refuses connections."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    monkeypatch.setenv("OPENROUTER_API_KEY", "for-a-different-service")
    monkeypatch.setenv("OPENROUTER_API_BASE", "http://127.0.0.1:9/v1")
    for spec in ("mem0:model=scripted", f"mem0:model=m,base_url={endpoint.base_url}"):
        memory: Any = make_policy(f"{spec},embed=words").build(RECORDS)
        assert sorted(block.text for block in memory.list_blocks()) == sorted(TEXTS)
        memory.close()


def test_the_options_of_the_model_in_the_file_reach_it(tmp_path: Path) -> None:
    """The temperature is 0 unless the file sets it."""
    server = Scripted()
    with ExitStack() as stack:
        stack.callback(server.stop)
        for more in ({}, {"temperature": 0.7, "max_tokens": 321}):
            llm = {"model": "m", "openai_base_url": server.url, "api_key": "none"}
            config = write(
                tmp_path / "mem0.json", llm={"provider": "openai", "config": {**llm, **more}}
            )
            make_policy(f"mem0:config={config},embed=words").build(RECORDS[:1]).close()
    assert [request["temperature"] for request in server.asked] == [0, 0.7]
    assert server.asked[1]["max_tokens"] == 321


def test_a_limit_on_money_includes_a_client_that_is_not_openais(tmp_path: Path) -> None:
    """Each call has some 1,000 tokens of instructions, and a token costs 1."""
    server = Scripted()
    with ExitStack() as stack:
        stack.callback(server.stop)
        llm = {"model": "m", "vllm_base_url": server.url, "api_key": "none"}
        config = write(tmp_path / "mem0.json", llm={"provider": "vllm", "config": llm})
        spec = f"mem0:config={config},embed=words,price_in=1000000,price_out=1000000"
        item = replace(SAMPLE, cases=SAMPLE.cases[:1])
        with pytest.raises(LimitError, match=r"\(max_cost\) is reached"):
            routeprism.audit(item, spec, resamples=100, max_cost=1)
        assert server.asked == []
        with pytest.raises(LimitError, match=r"\(max_cost\) is reached: [^,]* is spent"):
            routeprism.audit(item, spec, resamples=100, max_cost=30_000)
        assert 0 < len(server.asked) < len(item.cases[0].pool) * 2


def test_it_conforms(tmp_path: Path) -> None:
    config = write(tmp_path / "mem0.json", version="v1.1")
    checks = check_adapter(make_policy(f"mem0:config={config},model=scripted"))
    assert [check for check in checks if check.outcome == "failed"] == []


def test_wrong_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SpecError, match="cannot be read"):
        make_policy(f"mem0:config={tmp_path / 'missing.json'}")
    broken = tmp_path / "broken.json"
    broken.write_text("{")
    with pytest.raises(SpecError, match="is not valid JSON"):
        make_policy(f"mem0:config={broken}")
    monkeypatch.delenv("MISSING_KEY", raising=False)
    needs = write(tmp_path / "needs.json", llm={"provider": "openai", "key": "env:MISSING_KEY"})
    with pytest.raises(SpecError, match="MISSING_KEY, which is not set"):
        make_policy(f"mem0:config={needs},env=MISSING_KEY")
    monkeypatch.setenv("MISSING_KEY", SECRET)
    with pytest.raises(SpecError, match="add env=MISSING_KEY to the policy") as refused:
        make_policy(f"mem0:config={needs}")
    assert SECRET not in str(refused.value)
    half = write(tmp_path / "half.json", vector_store={"config": {}})
    with pytest.raises(SpecError, match="vector_store to have a provider"):
        make_policy(f"mem0:config={half}")
    unknown = write(
        tmp_path / "unknown.json",
        vector_store={"provider": "nothing", "config": {"api_key": SECRET}},
    )
    with pytest.raises(RouteError, match="mem0 refused its configuration") as raised:
        make_policy(f"mem0:config={unknown}").build(RECORDS)
    assert SECRET not in str(raised.value)


def test_a_file_in_yaml(tmp_path: Path) -> None:
    config = tmp_path / "mem0.yaml"
    config.write_text("vector_store:\n  provider: qdrant\n  config:\n    collection_name: mine\n")
    memory: Any = make_policy(f"mem0:config={config}").build(RECORDS)
    assert memory.retained() == {"r0", "r1", "r2"}
    memory.close()
