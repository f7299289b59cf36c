"""`amb:provider=…`: any provider of the Agent Memory Benchmark, by its `ingest` and `retrieve`.

A provider is asked for its documents and nothing else: it cannot list what it stores. So the
adapter searches for each record after building, and counts as kept what some search returns.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from routeprism.errors import RoutePrismError, SpecError
from routeprism.policies._awaiting import MemoryLoop
from routeprism.policies._contracts import Block, Event, Memory
from routeprism.policies._lineage import Lineage
from routeprism.policies._wrappers import Client, check_calls
from routeprism.policies.adapters._systems import (
    AdaptedMemory,
    Text,
    cut_text,
    cut_turns,
    explain_failure,
    log_changes,
)
from routeprism.records import Record
from routeprism.specs import SpecName, load_object, positive

__all__ = ["Amb"]

_USER = "route"
_METHODS = ("ingest", "retrieve")

Ingest = Literal["batch", "single"]
"""All documents in one call, as the benchmark does, or one call for each."""


@dataclass(frozen=True, slots=True)
class Amb:
    """Audits a provider of the Agent Memory Benchmark."""

    name = SpecName("amb")

    provider: str
    """The class of the provider, such as `memory_bench.memory.bm25:BM25MemoryProvider`."""
    k: int = 10
    """How many documents a question brings."""
    ingest: Ingest = "batch"
    """All records in one call of `ingest`, in their order of arrival, or one call for each."""
    text: Text = "full"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""
    deterministic: bool = True
    """Whether the same records in the same order always give the same memory."""
    calls_per_add: float | None = field(default=None, metadata={"named": False})
    """Model calls that the provider makes for each record, for `--dry-run` and `--max-calls`."""

    def __post_init__(self) -> None:
        if ":" not in self.provider:
            raise SpecError(
                f"Expected provider=package.module:Class but got provider={self.provider}"
            )
        positive(self.name, k=self.k)

    @property
    def client(self) -> Client:
        """Describe the model calls of the provider, as far as they are declared."""
        return Client(calls_per_add=check_calls(self.name, self.calls_per_add), k=self.k)

    def origin(self) -> str:
        """Name the provider."""
        return f"provider {self.provider}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Pass every record to a new provider."""
        opened = _Provider.open(self)
        try:
            if self.ingest == "batch":
                log = opened.take_batch(arrivals)
            else:
                log = opened.take_singly(arrivals)
        except BaseException:
            opened.close()
            raise
        blocks = opened.blocks
        return AdaptedMemory(
            list_blocks=lambda: blocks,
            search=opened.search,
            log=log,
            end=opened.close,
            counters=opened.lineage.counts(),
            arrivals=arrivals,
        )


@dataclass(slots=True)
class _Document:
    """What a provider ingests, where the package of the benchmark is not installed."""

    id: str
    content: str
    user_id: str | None = None
    messages: list[dict[str, str]] | None = None
    timestamp: str | None = None
    context: str | None = None


def _document_type() -> Any:
    """Return the benchmark's own class of documents, or one with the same fields."""
    with suppress(ImportError):
        return import_module("memory_bench.models").Document
    return _Document


@dataclass(slots=True)
class _Provider:
    """A provider with a directory of its own."""

    policy: Amb
    provider: Any
    directory: Path
    records: dict[str, Record] = field(default_factory=dict)
    """The records that have arrived, by id."""
    loop: MemoryLoop = field(default_factory=MemoryLoop)
    """Awaits the provider's `async` methods."""
    lineage: Lineage = field(default_factory=lambda: Lineage("document"))
    """Follows documents whose ids the provider made up."""
    blocks: list[Block] = field(default_factory=list)
    """Every document that the search for some record returned."""

    @classmethod
    def open(cls, policy: Amb) -> _Provider:
        """Make a provider, and give it an empty directory."""
        factory = load_object(policy.provider)
        missing = [name for name in _METHODS if not callable(getattr(factory, name, None))]
        if missing:
            raise SpecError(f"'{policy.provider}' has no {' and no '.join(missing)}")
        directory = Path(tempfile.mkdtemp(prefix="amb-"))
        loop = MemoryLoop()
        try:
            opened = cls(policy, factory(), directory, loop=loop)
            opened._call("initialize")
            opened._call("prepare", directory, unit_ids={_USER})
        except BaseException:
            loop.close()
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return opened

    def take_batch(self, arrivals: Sequence[Record]) -> tuple[Event, ...]:
        """Ingest all records in one call; afterwards it can be seen which of them are kept."""
        self.records = {record.id: record for record in arrivals}
        self._call("ingest", list(map(self._document, arrivals)))
        self._observe(tuple(self.records.values()))
        retained = self._retained()
        return tuple(
            Event("add" if record.id in retained else "skip", record.id, record.id, at)
            for at, record in enumerate(arrivals)
        )

    def take_singly(self, arrivals: Sequence[Record]) -> tuple[Event, ...]:
        """Ingest the records one after the other, and look at what each of them changed."""

        def add(record: Record) -> None:
            self.records[record.id] = record
            self._call("ingest", [self._document(record)])
            self._observe(record)

        return log_changes(arrivals, add, self._retained)

    def search(self, query: str) -> list[Block]:
        return list(map(self._block, self._retrieve(query, self.policy.k)))

    def close(self) -> None:
        try:
            self._call("cleanup")
        finally:
            self.loop.close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _observe(self, records: Record | Sequence[Record]) -> None:
        """Search for every record, and keep each document that is found, with its sources."""
        number = max(self.policy.k, 2 * len(self.records))
        documents: dict[tuple[str, str], Any] = {}
        for record in self.records.values():
            for document in self._retrieve(self._text(record), number):
                documents.setdefault((document.id, document.content), document)
        made_up = {id: text for id, text in documents if id not in self.records}
        if made_up or self.lineage.items:
            self.lineage.observe(records, made_up)
        self.blocks = list(map(self._block, documents.values()))

    def _retained(self) -> frozenset[str]:
        return frozenset().union(*(block.sources for block in self.blocks))

    def _block(self, document: Any) -> Block:
        """Return a document with its record, or with the records that its text came from."""
        if document.id in self.records:
            text = self.lineage.redactor.redact(document.content)
            return Block("document", text, frozenset({document.id}))
        return self.lineage.block(document.id, document.content)

    def _retrieve(self, query: str, k: int) -> list[Any]:
        documents, _ = self._call("retrieve", query, k=k, user_id=_USER)
        return list(documents)

    def _text(self, record: Record) -> str:
        return cut_text(record, self.policy.text, self.policy.chars)

    def _document(self, record: Record) -> Any:
        turns = cut_turns(record, self.policy.text, self.policy.chars)
        return _document_type()(
            id=record.id,
            content=self._text(record),
            user_id=_USER,
            messages=[{"role": role, "content": words} for role, words in turns],
            timestamp=record.timestamp,
        )

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Call the provider; hooks that it does not have do nothing."""
        call: Callable[..., Any] | None = getattr(self.provider, method, None)
        if call is None:
            return None
        try:
            return self.loop.finish(call(*arguments, **options))
        except RoutePrismError:
            raise
        except Exception as error:
            raise explain_failure(f"{self.policy.provider} failed in {method}", error) from error
