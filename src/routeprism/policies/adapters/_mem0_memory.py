"""One mem0 memory in process: opened with its configuration, written, read and closed."""

from __future__ import annotations

import atexit
import copy
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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from routeprism.errors import RouteError
from routeprism.models import Allowance, Endpoint
from routeprism.policies.adapters._mem0_config import Mem0Config, load_config
from routeprism.policies.adapters._systems import (
    DIMENSIONS,
    Vector,
    embedding,
    import_system,
)
from routeprism.records import Record
from routeprism.redaction import Redactor

__all__ = ["OpenedMem0", "import_mem0"]

_EXTRA = "mem0"
_USER = "route"
_EVERYTHING = 100_000
_MEM0_DIMENSIONS = 1536
"""The length of vectors that mem0 assumes."""
_DATES = re.compile(r"(Today's date is |## (?:Observation|Current) Date\n)\d{4}-\d\d-\d\d")
"""The places in mem0's prompts that contain the date."""
_patching = threading.Lock()


def import_mem0() -> Any:
    """Import mem0 with its telemetry off and its files in a place that goes away."""
    os.environ["MEM0_TELEMETRY"] = "False"
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = place = tempfile.mkdtemp(prefix="mem0-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
    module = import_system("mem0.memory.main", "mem0", _EXTRA)
    module.MEM0_TELEMETRY = False  # it may have been imported before
    sys.modules["mem0.memory.telemetry"].MEM0_TELEMETRY = False  # type: ignore[attr-defined]
    logging.getLogger("mem0").setLevel(logging.CRITICAL)  # what fails is said by the route
    return module


@dataclass(slots=True)
class OpenedMem0:
    """A mem0 memory with nothing in it yet."""

    module: Any
    memory: Any
    client: Any
    allowance: Allowance | None = None
    endpoint: Endpoint | None = None
    """Where its model is asked."""
    failed: list[Exception] = field(default_factory=list)
    """The errors of model calls, which some versions of mem0 only log."""

    user: str = _USER
    """The user under which memories are stored; a shared store has one for each build."""
    directory: str = ""
    """Where a local store of a configuration keeps its data."""
    is_direct: bool = False
    """Whether its model is asked without the run's proxy, by a client other than OpenAI's."""
    redactor: Redactor = field(default_factory=Redactor.configured)

    @classmethod
    def make(cls, policy: Any, module: Any, endpoint: Endpoint) -> OpenedMem0:
        config = load_config(policy.config) if policy.config else Mem0Config({}, "", ())
        qdrant = import_system("qdrant_client", "mem0", _EXTRA)
        client = None if "vector_store" in config.sections else qdrant.QdrantClient(":memory:")
        directory = "" if client is not None else tempfile.mkdtemp(prefix="mem0-store-")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # payload indexes do nothing in process
                settings = _make_settings(policy, config, endpoint, client, directory)
                memory = module.Memory.from_config(settings)
        except Exception as error:
            shutil.rmtree(directory, ignore_errors=True)
            words = Redactor.configured(*config.secrets).redact_line(str(error))
            raise RouteError(f"mem0 refused its configuration: {words}") from None
        if "embedder" not in config.sections:
            memory.embedding_model = _Embedder(embedding(policy.embed, _EXTRA))
        limits = None if policy.scripted or not policy.model else policy.allowance
        opened = cls(module, memory, client, limits, endpoint=endpoint, directory=directory)
        opened.redactor = Redactor.configured(*config.secrets)
        opened.is_direct = settings["llm"]["provider"] != "openai"
        if client is None and not config.is_local:
            opened.user = f"routeprism-{uuid.uuid4().hex}"
        memory.llm.generate_response = opened._freeze_date(
            memory.llm.generate_response, policy.date
        )
        return opened

    def _freeze_date(self, ask: Callable[..., Any], date: str) -> Callable[..., Any]:
        """Ask with the same date every day, and remember what went wrong."""

        def answer_messages(messages: Sequence[Mapping[str, Any]], **more: Any) -> Any:
            dated = [
                {**message, "content": _DATES.sub(rf"\g<1>{date}", message["content"])}
                for message in messages
            ]
            try:
                if self.allowance is not None and self.is_direct:
                    self.allowance.count()
                elif self.allowance is not None:
                    self.allowance.expect()  # the proxy counts
                return ask(messages=dated, **more)
            except Exception as error:
                self.failed.append(error)
                raise

        return answer_messages

    def add(self, record: Record, turns: Sequence[tuple[str, str]], infer: bool) -> None:
        messages = [{"role": role, "content": words} for role, words in turns]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.memory.add(messages, user_id=self.user, infer=infer)
        except Exception as error:
            self.failed.append(error)
        if self.failed:
            if self.allowance is not None:
                self.allowance.check()  # what it refused is no failure of mem0
            first = self.failed[0]
            words = self.redactor.redact_line(f"{type(first).__name__}: {first}")
            raise RouteError(f"mem0 failed on record '{record.id}': {words}") from first

    def list_memories(self) -> Mapping[str, str]:
        """Return every memory by id."""
        if self.client is None:
            scope = self._scope(_EVERYTHING)
            memories = self.memory.get_all(**scope)
            return {str(item["id"]): item["memory"] for item in memories["results"]}
        points, _ = self.client.scroll("route", limit=_EVERYTHING, with_payload=True)
        return {str(point.id): point.payload["data"] for point in points}

    def search(self, query: str, k: int) -> list[tuple[str, str]]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            memories = self.memory.search(query, **self._scope(k))
        return [(str(item["id"]), item["memory"]) for item in memories["results"]]

    def _scope(self, k: int) -> Mapping[str, Any]:
        """Return the arguments that limit a search or a list to this build."""
        if hasattr(self.memory, "entity_store"):  # from version 2 on
            return {"filters": {"user_id": self.user}, "top_k": k}
        return {"user_id": self.user, "limit": k}

    @contextmanager
    def counted_names(self) -> Iterator[None]:
        """Count instead of drawing ids: Qdrant lists by id, and mem0 numbers what it lists."""
        number = 0

        def next_name() -> uuid.UUID:
            nonlocal number
            number += 1
            return uuid.UUID(int=number)

        shim = types.SimpleNamespace(**{**vars(uuid), "uuid4": next_name})
        with _patching:
            self.module.uuid = shim
            try:
                yield
            finally:
                self.module.uuid = uuid

    def end(self) -> None:
        """Close the database and the vectors; leave nothing in a shared store."""
        if self.user != _USER:
            with suppress(Exception):  # a store that is gone has nothing left
                self.memory.delete_all(user_id=self.user)
        close = getattr(self.memory, "close", None)
        if callable(close):
            close()
        elif self.memory.db is not None:
            self.memory.db.close()
        store = self.client or getattr(self.memory.vector_store, "client", None)
        for client in (store, getattr(self.memory.llm, "client", None)):
            close = getattr(client, "close", None)
            if callable(close):
                close()
        if self.directory:
            shutil.rmtree(self.directory, ignore_errors=True)
        if self.endpoint is not None:
            self.endpoint.close()


def _make_settings(
    policy: Any, config: Mem0Config, endpoint: Endpoint, client: Any, directory: str
) -> dict[str, Any]:
    """Return mem0's configuration for one build: ours, and over it that of the file."""
    dimensions = DIMENSIONS[policy.embed]
    if "embedder" in config.sections:
        dimensions = config.find("embedder", "embedding_dims") or _MEM0_DIMENSIONS
    store = {
        "client": client,
        "collection_name": "route",
        "embedding_model_dims": dimensions,
    }
    settings: dict[str, Any] = {
        "vector_store": {"provider": "qdrant", "config": store},
        "embedder": {"provider": "openai", "config": {"api_key": "none"}},
        **copy.deepcopy(dict(config.sections)),
        "history_db_path": ":memory:",
    }
    if config.provider in ("", "openai") or policy.scripted:  # its calls go through the run's proxy
        options = {} if policy.scripted else config.sections.get("llm", {}).get("config") or {}
        model = {"temperature": 0, **options}
        model |= {"model": policy.model or "none", "api_key": endpoint.api_key}
        if endpoint.base_url:
            model["openai_base_url"] = endpoint.base_url
        settings["llm"] = {"provider": "openai", "config": model}
    if client is None:
        own = settings["vector_store"].setdefault("config", {})
        own.setdefault("embedding_model_dims", dimensions)
        if config.is_local:  # never the user's own data
            own["path"] = str(Path(directory) / "store")
    return settings


@dataclass(frozen=True, slots=True)
class _Embedder:
    """The embedder that mem0 calls."""

    vector: Callable[[str], Vector]
    config: Any = None

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        return list(self.vector(text))

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:
        return [list(self.vector(text)) for text in texts]
