"""The bridge to providers of the Agent Memory Benchmark: its contract, sources and failures."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RouteError, SpecError
from routeprism.policies import make_policy
from routeprism.records import Record
from routeprism.routes.conformance import check_adapter

from ..catalogue import mark_repeats

PROVIDERS = '''
"""Providers as the benchmark's contract describes them (memory/base.py of its repository)."""
import asyncio
from pathlib import Path

STEPS = []


class Words:
    """Rank documents by common words; `ingest` replaces all documents, as the benchmark's BM25."""

    concurrency = 1

    def initialize(self):
        self.documents = []
        STEPS.append("initialize")

    def prepare(self, store_dir, unit_ids=None):
        assert Path(store_dir).is_dir() and unit_ids
        STEPS.append(("prepare", str(store_dir)))

    def ingest(self, documents):
        self.documents = list(documents)

    def retrieve(self, query, k=10, user_id=None, query_timestamp=None):
        wanted = set(query.lower().split())
        mine = [one for one in self.documents if one.user_id == user_id]
        ranked = sorted(mine, key=lambda one: -len(wanted & set(one.content.lower().split())))
        return ranked[:k], {"raw": True}

    def cleanup(self):
        STEPS.append("cleanup")


class LastTwo(Words):
    """Keep the last two documents, whatever the call."""

    def ingest(self, documents):
        self.documents = [*self.documents, *documents][-2:]


class Renaming(Words):
    """Give the documents ids of its own, as systems do that store memories."""

    def ingest(self, documents):
        for at, one in enumerate(documents, start=len(self.documents)):
            copy = type(one)(id=f"memory-{at}", content=one.content, user_id=one.user_id)
            self.documents.append(copy)


class Awaited(LastTwo):
    """Has `async` methods and a lock, which belongs to the loop on which it was first used."""

    async def initialize(self):
        super().initialize()
        self.loop = asyncio.get_running_loop()
        self.task = asyncio.create_task(asyncio.sleep(3600))

    async def ingest(self, documents):
        assert asyncio.get_running_loop() is self.loop
        await asyncio.sleep(0)
        super().ingest(documents)

    async def retrieve(self, query, k=10, user_id=None, query_timestamp=None):
        assert asyncio.get_running_loop() is self.loop
        return super().retrieve(query, k, user_id)

    async def cleanup(self):
        assert asyncio.get_running_loop() is self.loop
        super().cleanup()


class Broken(Words):
    def ingest(self, documents):
        raise ValueError("the key is sk-secret-123456789")
'''

RECORDS = tuple(
    Record(f"r{at}", at, f"[USER] {text}", "2024-03-03")
    for at, text in enumerate(("Ann likes green tea.", "Bob owns a boat.", "Cats purr at night."))
)


@pytest.fixture
def providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    (tmp_path / "amb_providers.py").write_text(PROVIDERS)
    monkeypatch.syspath_prepend(str(tmp_path))
    import amb_providers  # type: ignore[import-not-found]

    yield amb_providers
    sys.modules.pop("amb_providers")


def build(name: str, more: str = "") -> Any:
    return make_policy(f"amb:provider=amb_providers:{name}{more}").build(RECORDS)


def sources(memory: Any, query: str) -> Sequence[list[str]]:
    return [sorted(block.sources) for block in memory.expose(query).blocks]


def test_a_provider_goes_through_its_hooks_and_leaves_nothing(providers: Any) -> None:
    memory = build("Words", ",k=1")
    assert memory.retained() == {"r0", "r1", "r2"}
    assert sources(memory, "Who owns a boat?") == [["r1"]]
    assert [(e.kind, e.record) for e in memory.events()] == [("add", f"r{at}") for at in range(3)]
    memory.close()
    first, (prepare, directory), last = providers.STEPS
    assert (first, prepare, last) == ("initialize", "prepare", "cleanup")
    assert not Path(directory).exists()


def test_records_that_no_search_returns_are_not_kept(providers: Any) -> None:
    memory = build("LastTwo")
    assert memory.retained() == {"r1", "r2"}
    assert next((e.kind, e.record) for e in memory.events()) == ("skip", "r0")
    memory.close()


def test_single_calls_show_what_each_record_displaced(providers: Any) -> None:
    memory = build("LastTwo", ",ingest=single")
    assert [(e.kind, e.record, e.by, e.at) for e in memory.events()] == [
        ("add", "r0", "r0", 0),
        ("add", "r1", "r1", 1),
        ("add", "r2", "r2", 2),
        ("evict", "r0", "r2", 2),
    ]
    memory.close()
    replaced = build("Words", ",ingest=single")  # every call replaces all documents
    assert replaced.retained() == {"r2"}
    replaced.close()


@pytest.mark.filterwarnings("error")
def test_async_methods_are_awaited_on_one_loop(providers: Any) -> None:
    memory = build("Awaited", ",ingest=single,k=1")
    assert memory.retained() == {"r1", "r2"}
    assert sources(memory, "Who owns a boat?") == [["r1"]]
    memory.close()
    assert providers.STEPS[-1] == "cleanup"


@pytest.mark.slow
def test_an_audit_notes_that_documents_were_stored_verbatim(providers: Any) -> None:
    audit = routeprism.audit("sample", "amb:provider=amb_providers:Words", resamples=100)
    assert any("stored verbatim: construction by a model was not" in note for note in audit.notes)


@pytest.mark.parametrize("more", ["", ",ingest=single"])
def test_ids_of_its_own_are_attributed_by_text(providers: Any, more: str) -> None:
    memory = build("Renaming", f",k=1{more}")
    assert memory.retained() == {"r0", "r1", "r2"}
    assert sources(memory, "Do cats purr?") == [["r2"]]
    memory.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec",
    mark_repeats(
        ["Words", "LastTwo", "LastTwo,ingest=single", "Renaming"], lambda spec: "provider"
    ),
)
def test_it_conforms(providers: Any, spec: str) -> None:
    checks = check_adapter(make_policy(f"amb:provider=amb_providers:{spec}"))
    assert [check for check in checks if check.outcome == "failed"] == []


def test_failures_and_wrong_names(providers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123456789")
    with pytest.raises(RouteError, match="failed in ingest: ValueError") as raised:
        build("Broken")
    assert "sk-secret" not in str(raised.value)
    with pytest.raises(SpecError, match=r"package\.module:Class"):
        make_policy("amb:provider=bm25")
    with pytest.raises(SpecError, match="has no ingest and no retrieve"):
        make_policy("amb:provider=pathlib:Path").build(RECORDS)
