"""LangGraph's `InMemoryStore`, with and without an index; a record's id is its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from routeprism.policies._contracts import Block, Memory
from routeprism.policies.adapters._systems import (
    DIMENSIONS,
    Embedding,
    Text,
    adapt_system,
    cut_text,
    embedding,
    import_system,
    list_versions,
)
from routeprism.records import Record
from routeprism.specs import SpecName, positive

__all__ = ["LangGraphStore", "open_store"]

_EXTRA = "langgraph"
_PLACE = ("records",)
_EVERYTHING = 1_000_000


@dataclass(frozen=True, slots=True)
class LangGraphStore:
    """LangGraph's InMemoryStore: items by key, searched by similarity; ties by arrival."""

    name = SpecName("langgraph-store")

    k: int = 10
    """How many items a question brings. The store's default."""
    embed: Literal["wordllama", "words", "none"] = "wordllama"
    """Which embedding the index has; `none` is a store without an index."""
    text: Text = "user"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""

    def __post_init__(self) -> None:
        positive(self.name, k=self.k)

    def origin(self) -> str:
        """Name the packages behind it."""
        return list_versions("langgraph-checkpoint", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Put every record into a store of its own."""
        store = open_store(self.embed, ["text"])

        def list_blocks(**query: Any) -> list[Block]:
            return [
                Block("item", item.value["text"], frozenset({item.key}))
                for item in store.search(_PLACE, **query)
            ]

        return adapt_system(
            arrivals,
            lambda record: store.put(
                _PLACE, record.id, {"text": cut_text(record, self.text, self.chars)}
            ),
            lambda: list_blocks(limit=_EVERYTHING),  # in their order of insertion
            lambda query: list_blocks(query=query, limit=self.k),
        )


def open_store(name: Literal["wordllama", "words", "none"], fields: list[str]) -> Any:
    """Make an empty store whose index reads these fields."""
    module = import_system("langgraph.store.memory", "LangGraph", _EXTRA)
    if name == "none":
        return module.InMemoryStore()
    embedding_name: Embedding = name
    vector = embedding(embedding_name, _EXTRA)
    index = {
        "dims": DIMENSIONS[name],
        "embed": lambda texts: [list(vector(text)) for text in texts],
        "fields": fields,
    }
    return module.InMemoryStore(index=index)
