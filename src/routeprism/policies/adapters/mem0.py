"""mem0 with in-process Qdrant and a local embedding: verbatim, or with a model's decisions.

What a memory came from is followed by its id (`_lineage`), so that the event log says which arrival
added, changed or deleted which memory, whatever version of mem0 decides it.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import sys
import tempfile
import threading
import types
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from routeprism.errors import RouteError, SpecError
from routeprism.policies._contracts import Block, Memory
from routeprism.policies.adapters._adapted import Adapted, Text, needed, turns_said, versions
from routeprism.policies.adapters._embedding import DIMENSIONS, Embedding, Vector, embedding
from routeprism.policies.adapters._lineage import Lineage
from routeprism.records import Record
from routeprism.specs import positive, written

__all__ = ["Mem0"]

_EXTRA = "mem0"
_USER = "route"
_EVERYTHING = 100_000
_DATES = re.compile(r"(Today's date is |## (?:Observation|Current) Date\n)\d{4}-\d\d-\d\d")
"""Where mem0's prompts say what day it is."""
_patching = threading.Lock()


@dataclass(frozen=True, slots=True)
class Mem0:
    """mem0: every turn stored as it is, or what a model extracts, updates and deletes."""

    model: str = ""
    """Who extracts (`infer=True`); none means that turns are stored verbatim (`infer=False`)."""
    base_url: str = ""
    """Where the model is, an OpenAI-compatible endpoint; key from OPENAI_API_KEY."""
    k: int = 10
    """How many memories a question brings."""
    date: str = "2025-01-01"
    """The day that prompts say it is, so that answers collected yesterday are still valid."""
    embed: Embedding = "wordllama"
    """Which embedding."""
    text: Text = "user"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """Cut each record to so many characters; 0 leaves it whole."""

    def __post_init__(self) -> None:
        positive(self.name, k=self.k)
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.date):
            raise SpecError(f"Expected a date such as 2025-01-01 but got date={self.date}")

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return written("mem0", self)

    @property
    def deterministic(self) -> bool:
        """Say whether the same arrivals always give the same memory: not with a model in it."""
        return not self.model

    def origin(self) -> str:
        """Name the packages behind it."""
        return versions("mem0ai", "qdrant-client", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Add every record to a memory of its own."""
        opened = _Opened.make(self, _mem0())
        lineage = Lineage("memory")
        try:
            with opened.counted_names():
                for at, record in enumerate(arrivals):
                    opened.add(record, turns_said(record, self.text, self.chars), bool(self.model))
                    lineage.after(record, at, opened.listed())
        except BaseException:
            opened.end()
            raise
        return Adapted(
            held=lambda: _held(opened, lineage),
            search=lambda query: [
                lineage.block(key, words) for key, words in opened.search(query, self.k)
            ],
            log=tuple(lineage.events),
            end=opened.end,
        )


def _held(opened: _Opened, lineage: Lineage) -> list[Block]:
    """Give what is stored, oldest memory first: mem0 lists by id, which says nothing."""
    now = opened.listed()
    known = [key for key in lineage.items if key in now]
    return [lineage.block(key, now[key]) for key in [*known, *sorted(now.keys() - set(known))]]


def _mem0() -> Any:
    """Import mem0 with its telemetry off and its files in a place that goes away."""
    os.environ["MEM0_TELEMETRY"] = "False"
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = place = tempfile.mkdtemp(prefix="mem0-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
    module = needed("mem0.memory.main", "mem0", _EXTRA)
    module.MEM0_TELEMETRY = False  # it may have been imported before
    sys.modules["mem0.memory.telemetry"].MEM0_TELEMETRY = False  # type: ignore[attr-defined]
    logging.getLogger("mem0").setLevel(logging.CRITICAL)  # what fails is said by the route
    return module


@dataclass(slots=True)
class _Opened:
    """A mem0 memory with nothing in it yet."""

    module: Any
    memory: Any
    client: Any
    failed: list[Exception] = field(default_factory=list)
    """What a model call raised: some versions of mem0 only log it."""

    @classmethod
    def make(cls, policy: Mem0, module: Any) -> _Opened:
        qdrant = needed("qdrant_client", "mem0", _EXTRA)
        key = os.environ.get("OPENAI_API_KEY", "none")
        settings = {"model": policy.model or "none", "api_key": key, "temperature": 0}
        if policy.base_url:
            settings["openai_base_url"] = policy.base_url
        client = qdrant.QdrantClient(":memory:")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # payload indexes do nothing in process
            memory = module.Memory.from_config(
                {
                    "vector_store": {
                        "provider": "qdrant",
                        "config": {
                            "client": client,
                            "collection_name": "route",
                            "embedding_model_dims": DIMENSIONS[policy.embed],
                        },
                    },
                    "llm": {"provider": "openai", "config": settings},
                    "embedder": {"provider": "openai", "config": {"api_key": "none"}},
                    "history_db_path": ":memory:",
                }
            )
        memory.embedding_model = _Embedder(embedding(policy.embed, _EXTRA))
        opened = cls(module, memory, client)
        memory.llm.generate_response = opened._frozen(memory.llm.generate_response, policy.date)
        return opened

    def _frozen(self, ask: Callable[..., Any], date: str) -> Callable[..., Any]:
        """Ask with the same date every day, and remember what went wrong."""

        def asked(messages: Sequence[Mapping[str, Any]], **more: Any) -> Any:
            dated = [
                {**message, "content": _DATES.sub(rf"\g<1>{date}", message["content"])}
                for message in messages
            ]
            try:
                return ask(messages=dated, **more)
            except Exception as error:
                self.failed.append(error)
                raise

        return asked

    def add(self, record: Record, turns: Sequence[tuple[str, str]], infer: bool) -> None:
        messages = [{"role": role, "content": words} for role, words in turns]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.memory.add(messages, user_id=_USER, infer=infer)
        except Exception as error:
            self.failed.append(error)
        if self.failed:
            first = self.failed[0]
            raise RouteError(
                f"mem0 failed on record '{record.id}': {type(first).__name__}: {first!s:.200}"
            ) from first

    def listed(self) -> Mapping[str, str]:
        """Give every memory by id."""
        points, _ = self.client.scroll("route", limit=_EVERYTHING, with_payload=True)
        return {str(point.id): point.payload["data"] for point in points}

    def search(self, query: str, k: int) -> list[tuple[str, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if hasattr(self.memory, "entity_store"):  # from version 2 on
                found = self.memory.search(query, filters={"user_id": _USER}, top_k=k)
            else:
                found = self.memory.search(query, user_id=_USER, limit=k)
        return [(str(item["id"]), item["memory"]) for item in found["results"]]

    @contextmanager
    def counted_names(self) -> Iterator[None]:
        """Count instead of drawing ids: Qdrant lists by id, and mem0 numbers what it lists."""
        number = 0

        def counted() -> uuid.UUID:
            nonlocal number
            number += 1
            return uuid.UUID(int=number)

        shim = types.SimpleNamespace(**{**vars(uuid), "uuid4": counted})
        with _patching:
            self.module.uuid = shim
            try:
                yield
            finally:
                self.module.uuid = uuid

    def end(self) -> None:
        """Close the database and the vectors."""
        close = getattr(self.memory, "close", None)
        if callable(close):
            close()
        elif self.memory.db is not None:
            self.memory.db.close()
        self.client.close()


@dataclass(frozen=True, slots=True)
class _Embedder:
    """What mem0 asks for vectors."""

    vector: Callable[[str], Vector]
    config: Any = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return list(self.vector(text))

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [list(self.vector(text)) for text in texts]
