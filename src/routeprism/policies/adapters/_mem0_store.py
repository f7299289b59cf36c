"""One mem0 memory in process: its configuration, what is written and read, and its history."""

from __future__ import annotations

import atexit
import copy
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.errors import InputError, MissingExtraError, RouteError, SpecError
from routeprism.files import read_input
from routeprism.models import Allowance
from routeprism.policies._contracts import Block, Event
from routeprism.policies._lineage import Lineage
from routeprism.policies.adapters._systems import (
    DIMENSIONS,
    Vector,
    count_names,
    embedding,
    explain_failure,
    import_system,
)
from routeprism.policies.adapters._templates import read_variable
from routeprism.records import Record
from routeprism.redaction import Redactor, names_secret
from routeprism.text import tokens

if TYPE_CHECKING:
    from routeprism.models.gateway import Endpoint

_EXTRA = "mem0"
_USER = "route"
_EVERYTHING = 100_000
_MEM0_DIMENSIONS = 1536
"""The length of vectors that mem0 assumes."""
_DATES = re.compile(r"(Today's date is |## (?:Observation|Current) Date\n)\d{4}-\d\d-\d\d")
"""The places in mem0's prompts that contain the date."""
_SECTIONS = ("vector_store", "llm", "embedder", "reranker", "graph_store")
_VARIABLE = "env:"
"""Followed by the name of an environment variable, as in mem0's own server."""
_LOCAL = ("qdrant", "chroma", "faiss")
"""Vector stores that keep their data in a directory, unless they have an address."""
_ADDRESS_KEY = re.compile(r"_(?:url|endpoint)$")
"""The names of settings with the address of a model."""
_KEYLESS = ("ollama", "lmstudio")
"""Providers to which mem0 sends no key of the environment."""
_ADDRESSES = ("host", "url", "api_key", "client")


@dataclass(frozen=True, slots=True)
class Mem0Config:
    """What a configuration file contains, with the values of its variables."""

    sections: Mapping[str, Any]
    sha256: str
    secrets: tuple[str, ...]

    def find(self, section: str, key: str) -> Any:
        """Return a value of a section's own configuration; None if it has none."""
        return (self.sections.get(section, {}).get("config") or {}).get(key)

    @property
    def model(self) -> str:
        """The model that extracts; empty if the file names none."""
        return str(self.find("llm", "model") or "")

    @property
    def provider(self) -> str:
        """Who serves the model; empty if the file names none."""
        return str(self.sections.get("llm", {}).get("provider", ""))

    @property
    def base_url(self) -> str:
        """The address of the model; empty for the provider's own."""
        names = ("openai_base_url", "ollama_base_url", "lmstudio_base_url", "vllm_base_url")
        return next((str(value) for name in names if (value := self.find("llm", name))), "")

    @property
    def api_key(self) -> str:
        """The key of the model; empty if the file names none."""
        return str(self.find("llm", "api_key") or "")

    @property
    def is_local(self) -> bool:
        """Whether the vector store keeps its data in a directory of this machine."""
        store = self.sections.get("vector_store", {})
        remote = any(self.find("vector_store", name) for name in _ADDRESSES)
        return store.get("provider", "qdrant") in _LOCAL and not remote


def load_config(file: str, permitted: str) -> Mem0Config:
    """Read a configuration in JSON or YAML; `env:NAME` is the value of a permitted variable."""
    try:
        content = read_input(Path(file))
    except (InputError, OSError) as error:
        raise SpecError(f"config={file} cannot be read: {error}") from None
    parsed = _parse(file, content)
    if not isinstance(parsed, dict):
        raise SpecError(f"config={file}: expected an object with {', '.join(_SECTIONS)}")
    for name in _SECTIONS:
        section = parsed.get(name)
        if section is not None and not (isinstance(section, dict) and "provider" in section):
            raise SpecError(f"config={file}: expected {name} to have a provider and a config")
    secrets: set[str] = set()

    def fill(key: str, value: Any) -> Any:
        """Fill variables in, and collect secrets so that no message shows them."""
        if isinstance(value, dict):
            return {name: fill(name, item) for name, item in value.items()}
        if isinstance(value, list):
            return [fill(key, item) for item in value]
        if not isinstance(value, str):
            return value
        is_variable = value.startswith(_VARIABLE)
        if is_variable:
            variable = value.removeprefix(_VARIABLE)
            value = read_variable(variable, f"config={file}: {key}", permitted)
        if value and (is_variable or names_secret(key)):
            secrets.add(value)
        return value

    sections = {key: fill(key, value) for key, value in parsed.items()}
    _check_keys(file, sections)
    return Mem0Config(sections, hashlib.sha256(content).hexdigest(), tuple(sorted(secrets)))


def _check_keys(file: str, sections: Mapping[str, Any]) -> None:
    """Refuse a model with an address and without a key: mem0 would send it one of its variables."""
    for name in ("llm", "embedder"):
        section = sections.get(name) or {}
        settings = section.get("config") or {}
        for part in (settings, *(value for value in settings.values() if isinstance(value, dict))):
            address = next((key for key in part if _ADDRESS_KEY.search(key) and part[key]), None)
            if address and not part.get("api_key") and section["provider"] not in _KEYLESS:
                raise SpecError(
                    f"config={file}: {name} has {address} and no api_key, so mem0 would send the "
                    f'key in an environment variable to that address. Add "api_key": '
                    f'"env:NAME" to the file and env=NAME to the policy, or "api_key": '
                    f'"none" if the service requires no key'
                )


def _parse(file: str, content: bytes) -> Any:
    try:
        if not file.lower().endswith((".yaml", ".yml")):
            return json.loads(content)
        yaml = import_system("yaml", "a YAML configuration", "mem0")
        return yaml.safe_load(content)
    except (ValueError, RecursionError) as error:
        raise SpecError(f"config={file} is not valid JSON: {error}") from None
    except Exception as error:
        if isinstance(error, MissingExtraError):
            raise
        raise SpecError(f"config={file} is not valid YAML: {type(error).__name__}") from None


def import_mem0() -> Any:
    """Import mem0 with its telemetry off and its files in a place that goes away."""
    os.environ["MEM0_TELEMETRY"] = "False"
    if "MEM0_DIR" not in os.environ:
        os.environ["MEM0_DIR"] = place = tempfile.mkdtemp(prefix="mem0-")
        atexit.register(shutil.rmtree, place, ignore_errors=True)
    module = import_system("mem0.memory.main", "mem0", _EXTRA)
    module.MEM0_TELEMETRY = False  # it may have been imported before
    sys.modules["mem0.memory.telemetry"].MEM0_TELEMETRY = False  # type: ignore[attr-defined]
    logging.getLogger("mem0").setLevel(logging.CRITICAL)  # the route reports failures
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
    prices: tuple[float, float] | None = None
    """For a million input and output tokens, if the model is asked without the run's proxy, which
    would count: by a client other than OpenAI's."""
    redactor: Redactor = field(default_factory=Redactor.configured)

    @classmethod
    def make(cls, policy: Any, module: Any, endpoint: Endpoint) -> OpenedMem0:
        config = load_config(policy.config, policy.env) if policy.config else Mem0Config({}, "", ())
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
        if settings["llm"]["provider"] == "openai":
            # With OPENROUTER_API_KEY, mem0's own client asks OpenRouter and not this endpoint.
            memory.llm.client = type(memory.llm.client)(
                api_key=endpoint.api_key, base_url=endpoint.base_url or None
            )
        else:
            opened.prices = policy.price_in or 0.0, policy.price_out or 0.0
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
                return self._ask_within_limits(partial(ask, messages=dated, **more), dated)
            except Exception as error:
                self.failed.append(error)
                raise

        return answer_messages

    def _ask_within_limits(self, request: Callable[[], Any], messages: Sequence[Any]) -> Any:
        """Make a request, counted by the proxy, or else here by the tokens of its texts."""
        if self.allowance is None:
            return request()
        if self.prices is None:
            self.allowance.expect()
            return request()
        price = _count_tokens(messages) * self.prices[0] / 1e6
        self.allowance.take(price)
        cost = None  # unless there is a reply, the request counts as paid for
        try:
            reply = request()
            cost = price + _count_tokens(reply) * self.prices[1] / 1e6
            return reply
        finally:
            self.allowance.settle(price, cost)

    def add(self, record: Record, turns: Sequence[tuple[str, str]], infer: bool) -> None:
        messages = [{"role": role, "content": words} for role, words in turns]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.memory.add(messages, user_id=self.user, infer=infer)
        except Exception as error:
            self.failed.append(error)
        if self.failed:
            first, action = self.failed[0], f"mem0 failed on record '{record.id}'"
            raise explain_failure(
                action, first, allowance=self.allowance, redactor=self.redactor
            ) from first

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
        if hasattr(self.memory, "entity_store"):  # from version 2 on
            return {"filters": {"user_id": self.user}, "top_k": k}
        return {"user_id": self.user, "limit": k}

    def counted_names(self) -> AbstractContextManager[None]:
        """Count instead of drawing ids: Qdrant lists by id, and mem0 numbers what it lists."""
        return count_names(self.module, name=lambda number: uuid.UUID(int=number))

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


def _count_tokens(value: Any) -> int:
    return tokens.count(json.dumps(value, ensure_ascii=False, default=str))


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


_ROWS = "SELECT rowid, memory_id, event FROM history WHERE rowid > ? ORDER BY rowid"


class HistoryLog:
    """Follows mem0's history table; which records a memory came from is observed."""

    def __init__(self, database: Any) -> None:
        self._database = database
        self._last = 0
        self.lineage = Lineage("memory")
        self.events: list[Event] = []

    def observe(self, record: Record, at: int, items: Mapping[str, str]) -> None:
        """Compare all memories with those before the record, and read its rows of the history."""
        before = dict(self.lineage.items)
        self.lineage.observe(record, items)
        number = len(self.events)
        for row, memory, decision in self._database.execute(_ROWS, (self._last,)).fetchall():
            self._last = row
            self._note(record, at, str(decision).upper(), str(memory), before)
        if len(self.events) == number:
            self.events.append(Event("skip", record.id, record.id, at))

    def _note(
        self, record: Record, at: int, decision: str, memory: str, before: Mapping[str, Block]
    ) -> None:
        """Record one decision; an item that came and went within one arrival leaves no source."""
        old = before[memory].sources if memory in before else frozenset({record.id})
        events: list[Event] = []
        if decision == "ADD":
            events = [Event("add", record.id, record.id, at)]
        elif decision == "UPDATE":
            new = self.lineage.items.get(memory)
            sources = new.sources if new is not None else frozenset()
            events = [
                Event("merge" if item in sources else "overwrite", item, record.id, at)
                for item in sorted(old)
            ]
        elif decision == "DELETE":
            events = [Event("evict", item, record.id, at) for item in sorted(old)]
        self.events += [event for event in events if event not in self.events]
