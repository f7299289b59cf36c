"""LangMem: its memory tools, or its store manager with a model, on LangGraph's store.

LangMem passes no metadata on, so source ids are observed by key (`Lineage`).
"""

from __future__ import annotations

import os
import threading
import types
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from routeprism.errors import RouteError
from routeprism.models import Allowance, Endpoint, Gateway, is_scripted
from routeprism.policies._contracts import Block, Memory
from routeprism.policies._lineage import Lineage
from routeprism.policies._wrappers import Client
from routeprism.policies.adapters._systems import (
    AdaptedMemory,
    Text,
    check_address,
    check_prices,
    cut_text,
    cut_turns,
    import_system,
    list_versions,
    open_line,
)
from routeprism.policies.adapters.langgraph import open_store
from routeprism.records import Record
from routeprism.redaction import Redactor
from routeprism.specs import positive, write_spec

__all__ = ["LangMem"]

_EXTRA = "langgraph"
_PLACE = ("memories",)
_EVERYTHING = 1_000_000
_INSTRUCTIONS = 1_700
"""The approximate tokens of instructions and tool schemas with every record."""
_patching = threading.Lock()


@dataclass(frozen=True, slots=True)
class LangMem:
    """LangMem: memory tools without a model, or the store manager that a model drives."""

    model: str = ""
    """Whose decisions the store manager follows, or `scripted`; none means one `manage_memory` call
    a record."""
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
    """The number of characters that each record is cut to; 0 leaves it whole."""
    price_in: float | None = field(default=None, metadata={"named": False})
    """For a million input tokens of the model, for `--dry-run` and `--max-cost`."""
    price_out: float | None = field(default=None, metadata={"named": False})
    """For a million output tokens of the model."""
    allowance: Allowance | None = field(default=None, compare=False, repr=False)
    """What the command may still spend; an audit sets it."""
    gateway: Gateway | None = field(default=None, compare=False, repr=False)
    """The proxy that the model's requests go through; an audit sets it."""

    def __post_init__(self) -> None:
        check_address("langmem", self.base_url)
        positive(self.name, k=self.k, query_limit=self.query_limit)
        check_prices(self.name, self.price_in, self.price_out)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return write_spec("langmem", self)

    @property
    def deterministic(self) -> bool:
        """Whether the same arrivals always give the same memory; not with a language model."""
        return not self.model or self.scripted

    @property
    def scripted(self) -> bool:
        """Whether the scripted model of this package decides what to keep."""
        return is_scripted(self.model, self.base_url)

    @property
    def client(self) -> Client | None:
        """Describe its own client: one request for each record, if none fails."""
        if not self.model or self.scripted:
            return None
        address = self.base_url or os.environ.get("OPENAI_BASE_URL", "")
        prices = self.price_in, self.price_out
        return Client(self.model, address, 1, _INSTRUCTIONS, *prices, self.k)

    def metered(self, allowance: Allowance, /) -> LangMem:
        """Return the same policy, counting every request of LangMem's client."""
        return replace(self, allowance=allowance)

    def routed(self, gateway: Gateway, /) -> LangMem:
        """Return the same policy, whose client asks through a proxy."""
        return replace(self, gateway=gateway)

    def origin(self) -> str:
        """Name the packages behind it."""
        return list_versions("langmem", "langgraph-checkpoint", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Pass every record to LangMem, in a new store."""
        package = import_system("langmem", "LangMem", _EXTRA)
        store = open_store(self.embed, ["content"])
        http = self._http_client()
        endpoint = open_line(self, arrivals)
        take = self._manager(store, http, endpoint) if self.model else self._tool(package, store)
        search = package.create_search_memory_tool(
            _PLACE, store=store, response_format="content_and_artifact"
        )
        lineage = Lineage("memory")
        try:
            with _counted_names():
                for record in arrivals:
                    take(record)
                    lineage.observe(record, _contents(store))
        finally:
            if http is not None:
                http.close()
            endpoint.close()  # questions ask nobody
        return AdaptedMemory(
            list_blocks=lambda: _list_blocks(store, lineage),
            search=lambda query: [
                lineage.block(item.key, _words(item.value))
                for item in search.func(query, limit=self.k)[1]
            ],
            log=tuple(lineage.events),
            counters=lineage.counts(),
            arrivals=() if self.model else arrivals,  # a model may quote what it extracts
        )

    def _tool(self, package: Any, store: Any) -> Any:
        tool = package.create_manage_memory_tool(_PLACE, store=store)
        return lambda record: tool.invoke({"content": cut_text(record, self.text, self.chars)})

    def _http_client(self) -> Any:
        """Make the HTTP client of the model, if there is one, so that it can be closed."""
        if not self.model:
            return None
        return import_system("openai", "LangMem", _EXTRA).DefaultHttpxClient()

    def _manager(self, store: Any, http: Any, endpoint: Endpoint) -> Any:
        models = import_system("langchain_openai", "LangMem's store manager", _EXTRA)
        package = import_system("langmem", "LangMem", _EXTRA)
        model = models.ChatOpenAI(
            model=self.model,
            base_url=endpoint.base_url or None,
            api_key=endpoint.api_key,
            temperature=0,
            max_retries=2,
            http_client=http,
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
                for role, words in cut_turns(record, self.text, self.chars)
            ]
            try:
                if self.allowance is not None:
                    self.allowance.expect()
                # One at a time: what is written together would else be stored in chance order.
                manager.invoke({"messages": messages}, config={"max_concurrency": 1})
            except Exception as error:
                if self.allowance is not None:
                    self.allowance.check()  # what it refused is no failure of LangMem
                words = Redactor.configured().redact_line(f"{type(error).__name__}: {error}")
                raise RouteError(f"LangMem failed on record '{record.id}': {words}") from error

        return take


def _contents(store: Any) -> Mapping[str, str]:
    """Return every item by key, in the store's order."""
    return {item.key: _words(item.value) for item in store.search(_PLACE, limit=_EVERYTHING)}


def _list_blocks(store: Any, lineage: Lineage) -> list[Block]:
    return [lineage.block(key, words) for key, words in _contents(store).items()]


def _words(value: Mapping[str, Any]) -> str:
    """Read an item's text: the tools store it as it is, the manager inside its schema."""
    content = value["content"]
    return str(content.get("content", content)) if isinstance(content, Mapping) else str(content)


@contextmanager
def _counted_names() -> Iterator[None]:
    """Replace random names by numbers, because the manager's prompts contain them."""
    modules = [
        import_system("langmem.knowledge.extraction", "LangMem", _EXTRA),
        import_system("langmem.knowledge.tools", "LangMem", _EXTRA),
    ]
    number = 0

    def next_name() -> uuid.UUID:
        nonlocal number
        number += 1
        return uuid.uuid5(uuid.NAMESPACE_OID, str(number))

    shim = types.SimpleNamespace(**{**vars(uuid), "uuid4": next_name})
    with _patching:
        try:
            for module in modules:
                module.uuid = shim
            yield
        finally:
            for module in modules:
                module.uuid = uuid
