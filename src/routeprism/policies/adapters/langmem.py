"""LangMem: its memory tools, or its store manager with a model, on LangGraph's store.

LangMem passes no metadata on, so source ids are followed by key (`_lineage`).
"""

from __future__ import annotations

import os
import threading
import types
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from routeprism.errors import RouteError
from routeprism.policies._contracts import Block, Memory
from routeprism.policies.adapters._adapted import (
    Adapted,
    Text,
    needed,
    said,
    turns_said,
    versions,
)
from routeprism.policies.adapters._lineage import Lineage
from routeprism.policies.adapters.langgraph import open_store
from routeprism.records import Record
from routeprism.specs import positive, written

__all__ = ["LangMem"]

_EXTRA = "langgraph"
_PLACE = ("memories",)
_EVERYTHING = 1_000_000
_patching = threading.Lock()


@dataclass(frozen=True, slots=True)
class LangMem:
    """LangMem: memory tools without a model, or the store manager that a model drives."""

    model: str = ""
    """Whose decisions the store manager follows; none means one `manage_memory` call a record."""
    base_url: str = ""
    """Where the model is, an OpenAI-compatible endpoint; key from OPENAI_API_KEY."""
    k: int = 10
    """How many items a question brings. The search tool's default."""
    query_limit: int = 5
    """How many stored memories the manager sees beside a new record. LangMem's default."""
    deletes: bool = False
    """Whether the manager may delete. LangMem's default."""
    embed: Literal["wordllama", "words"] = "wordllama"
    """Which embedding the store's index has."""
    text: Text = "user"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """Cut each record to so many characters; 0 leaves it whole."""

    def __post_init__(self) -> None:
        positive(self.name, k=self.k, query_limit=self.query_limit)

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return written("langmem", self)

    @property
    def deterministic(self) -> bool:
        """Say whether the same arrivals always give the same memory: not with a model in it."""
        return not self.model

    def origin(self) -> str:
        """Name the packages behind it."""
        return versions("langmem", "langgraph-checkpoint", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Give every record to LangMem, in a store of its own."""
        package = needed("langmem", "LangMem", _EXTRA)
        store = open_store(self.embed, ["content"])
        take = self._manager(store) if self.model else self._tool(package, store)
        search = package.create_search_memory_tool(
            _PLACE, store=store, response_format="content_and_artifact"
        )
        lineage = Lineage("memory")
        with _counted_names():
            for at, record in enumerate(arrivals):
                take(record)
                lineage.after(record, at, _contents(store))
        return Adapted(
            held=lambda: _held(store, lineage),
            search=lambda query: [
                lineage.block(item.key, _words(item.value))
                for item in search.func(query, limit=self.k)[1]
            ],
            log=tuple(lineage.events),
        )

    def _tool(self, package: Any, store: Any) -> Any:
        tool = package.create_manage_memory_tool(_PLACE, store=store)
        return lambda record: tool.invoke({"content": said(record, self.text, self.chars)})

    def _manager(self, store: Any) -> Any:
        models = needed("langchain_openai", "LangMem's store manager", _EXTRA)
        package = needed("langmem", "LangMem", _EXTRA)
        model = models.ChatOpenAI(
            model=self.model,
            base_url=self.base_url or None,
            api_key=os.environ.get("OPENAI_API_KEY", "none"),
            temperature=0,
            max_retries=2,
        )
        manager = package.create_memory_store_manager(
            model,
            namespace=_PLACE,
            store=store,
            query_limit=self.query_limit,
            enable_deletes=self.deletes,
        )

        def take(record: Record) -> None:
            messages = [
                {"role": role, "content": words}
                for role, words in turns_said(record, self.text, self.chars)
            ]
            try:
                # One at a time: what is written together would else be stored in chance order.
                manager.invoke({"messages": messages}, config={"max_concurrency": 1})
            except Exception as error:
                raise RouteError(
                    f"LangMem failed on record '{record.id}': {type(error).__name__}: "
                    f"{error!s:.200}"
                ) from error

        return take


def _contents(store: Any) -> Mapping[str, str]:
    """Give every item by key, in the store's order."""
    return {item.key: _words(item.value) for item in store.search(_PLACE, limit=_EVERYTHING)}


def _held(store: Any, lineage: Lineage) -> list[Block]:
    return [lineage.block(key, words) for key, words in _contents(store).items()]


def _words(value: Mapping[str, Any]) -> str:
    """Read an item's text: the tools store it as it is, the manager inside of its schema."""
    content = value["content"]
    return str(content.get("content", content)) if isinstance(content, Mapping) else str(content)


@contextmanager
def _counted_names() -> Iterator[None]:
    """Count instead of drawing names: they stand in the manager's prompts."""
    modules = [
        needed("langmem.knowledge.extraction", "LangMem", _EXTRA),
        needed("langmem.knowledge.tools", "LangMem", _EXTRA),
    ]
    number = 0

    def counted() -> uuid.UUID:
        nonlocal number
        number += 1
        return uuid.uuid5(uuid.NAMESPACE_OID, str(number))

    shim = types.SimpleNamespace(**{**vars(uuid), "uuid4": counted})
    with _patching:
        try:
            for module in modules:
                module.uuid = shim
            yield
        finally:
            for module in modules:
                module.uuid = uuid
