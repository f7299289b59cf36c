"""LlamaIndex: `Memory`, `ChatMemoryBuffer` and `VectorMemory`, with the real package.

Source ids travel in every message's `additional_kwargs`. Messages are handed over record by record.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from routeprism.policies._awaiting import MemoryLoop
from routeprism.policies._contracts import Block, Memory
from routeprism.policies.adapters._systems import (
    Embedding,
    Text,
    adapt_system,
    cut_turns,
    embedding,
    import_system,
    list_versions,
)
from routeprism.records import Record
from routeprism.specs import SpecName, positive
from routeprism.text.tokens import encode

__all__ = ["LlamaIndexBuffer", "LlamaIndexMemory", "LlamaIndexVector"]

_EXTRA = "llamaindex"
_TAG = "source"
_patching = threading.Lock()


@dataclass(frozen=True, slots=True)
class LlamaIndexMemory:
    """LlamaIndex's Memory: a token-limited queue that flushes its oldest messages."""

    name = SpecName("llamaindex-memory")

    token_limit: int = 30_000
    """Tokens in all; the queue may fill `ratio` of them. LlamaIndex's default."""
    flush: int = 3_000
    """How many tokens go at a time once the queue is too long. LlamaIndex's default."""
    ratio: float = 0.7
    """The share of the limit that is the chat history's. LlamaIndex's default."""
    text: Text = "full"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""

    def __post_init__(self) -> None:
        positive(self.name, token_limit=self.token_limit, flush=self.flush)

    def origin(self) -> str:
        """Name the package behind it."""
        return list_versions("llama-index-core")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Put every record's messages into a new queue, in an in-memory database."""
        package = import_system("llama_index.core.memory", "LlamaIndex", _EXTRA)
        memory = package.Memory.from_defaults(
            session_id="route",
            token_limit=self.token_limit,
            token_flush_size=self.flush,
            chat_history_token_ratio=self.ratio,
            tokenizer_fn=encode,
        )
        loop = MemoryLoop()

        def add(record: Record) -> None:
            loop.finish(memory.aput_messages(_messages(record, self.text, self.chars)))

        def end() -> None:
            try:
                loop.finish(_close_memory(memory))
            finally:
                loop.close()

        return adapt_system(
            arrivals,
            add,
            lambda: _blocks(loop.finish(_active(memory))),
            lambda query: _blocks(loop.finish(memory.aget(input=query))),
            end,
        )


@dataclass(frozen=True, slots=True)
class LlamaIndexBuffer:
    """LlamaIndex's ChatMemoryBuffer: keeps all messages, shows the newest that fit."""

    name = SpecName("llamaindex-buffer")

    token_limit: int = 3_000
    """How many tokens are shown. LlamaIndex's default."""
    text: Text = "full"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""

    def __post_init__(self) -> None:
        positive(self.name, token_limit=self.token_limit)

    def origin(self) -> str:
        """Name the package behind it."""
        return list_versions("llama-index-core")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Put every record's messages into a new buffer."""
        package = import_system("llama_index.core.memory", "LlamaIndex", _EXTRA)
        buffer = package.ChatMemoryBuffer.from_defaults(
            token_limit=self.token_limit, tokenizer_fn=encode
        )

        def add(record: Record) -> None:
            for message in _messages(record, self.text, self.chars):
                buffer.put(message)

        return adapt_system(
            arrivals,
            add,
            lambda: _blocks(buffer.get_all()),
            lambda query: _blocks(buffer.get(input=query)),
        )


@dataclass(frozen=True, slots=True)
class LlamaIndexVector:
    """LlamaIndex's VectorMemory: a user message and its answers are one embedded node."""

    name = SpecName("llamaindex-vector")

    k: int = 2
    """How many nodes a question brings. The retriever's default."""
    embed: Embedding = "wordllama"
    """Which embedding."""
    text: Text = "full"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""

    def __post_init__(self) -> None:
        positive(self.name, k=self.k)

    def origin(self) -> str:
        """Name the packages behind it."""
        return list_versions("llama-index-core", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Put every record's messages into a new index, in this process's memory."""
        module = import_system("llama_index.core.memory.vector_memory", "LlamaIndex", _EXTRA)
        memory = module.VectorMemory.from_defaults(
            embed_model=_embed_model(self.embed), retriever_kwargs={"similarity_top_k": self.k}
        )

        def add(record: Record) -> None:
            with _named_nodes(module, record):
                for message in _messages(record, self.text, self.chars):
                    memory.put(message)

        return adapt_system(
            arrivals,
            add,
            lambda: _list_stored(memory),
            lambda query: _blocks(memory.get(input=query)),
        )


def _messages(record: Record, text: Text, chars: int) -> list[Any]:
    types = import_system("llama_index.core.base.llms.types", "LlamaIndex", _EXTRA)
    return [
        types.ChatMessage(role=role, content=words, additional_kwargs={_TAG: record.id})
        for role, words in cut_turns(record, text, chars)
    ]


def _blocks(messages: Sequence[Any]) -> list[Block]:
    return [
        _block(message.role.value, message.content, message.additional_kwargs)
        for message in messages
    ]


def _block(role: str, content: str | None, tags: Mapping[str, Any]) -> Block:
    return Block("message", f"{role}: {content}", frozenset({str(tags[_TAG])}))


# --- Memory: its database is asynchronous ------------------------------------------------------


async def _active(memory: Any) -> list[Any]:
    """Read the queue: what was flushed is archived, and never shown again."""
    sql = import_system("llama_index.core.storage.chat_store.sql", "LlamaIndex", _EXTRA)
    messages: list[Any] = await memory.aget_all(status=sql.MessageStatus.ACTIVE)
    return messages


async def _close_memory(memory: Any) -> None:
    engine = memory.sql_store._async_engine
    if engine is not None:
        await engine.dispose()


# --- VectorMemory ------------------------------------------------------------------------------


def _list_stored(memory: Any) -> list[Block]:
    """Read the nodes in their order of insertion, message by message."""
    return [
        _block(
            getattr(part["role"], "value", part["role"]), part["content"], part["additional_kwargs"]
        )
        for node in memory.vector_index.docstore.docs.values()
        for part in node.metadata["sub_dicts"]
    ]


@contextmanager
def _named_nodes(module: Any, record: Record) -> Iterator[None]:
    """Name nodes by record instead of by chance, because ties are ordered by these names."""
    plain = module._get_starter_node_for_new_batch
    number = 0

    def name_node() -> Any:
        nonlocal number
        node = plain()
        node.id_ = hashlib.sha256(f"{record.id}\0{record.text}\0{number}".encode()).hexdigest()
        number += 1
        return node

    with _patching:
        module._get_starter_node_for_new_batch = name_node
        try:
            yield
        finally:
            module._get_starter_node_for_new_batch = plain


def _embed_model(name: Embedding) -> Any:
    base = import_system(
        "llama_index.core.base.embeddings.base", "LlamaIndex", _EXTRA
    ).BaseEmbedding
    vector = embedding(name, _EXTRA)

    class Local(base):  # type: ignore[misc, valid-type]
        def _get_text_embedding(self, text: str) -> list[float]:
            return list(vector(text))

        def _get_query_embedding(self, query: str) -> list[float]:
            return list(vector(query))

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return list(vector(query))

    return Local(model_name=name)
