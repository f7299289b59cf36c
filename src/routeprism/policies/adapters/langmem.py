"""LangMem: its memory tools, or its store manager with a model, on LangGraph's store.

LangMem passes no metadata on, so source ids are observed by key (`Lineage`).
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from routeprism.policies._contracts import Memory
from routeprism.policies._lineage import Lineage
from routeprism.policies._wrappers import Client
from routeprism.policies.adapters._systems import (
    AdaptedMemory,
    ClientSystem,
    Embedding,
    Text,
    count_names,
    cut_text,
    cut_turns,
    explain_failure,
    import_system,
    list_versions,
)
from routeprism.policies.adapters.langgraph import open_store
from routeprism.records import Record
from routeprism.specs import positive

if TYPE_CHECKING:
    from routeprism.models.gateway import Endpoint

__all__ = ["LangMem"]

_EXTRA = "langgraph"
_PLACE = ("memories",)
_EVERYTHING = 1_000_000
_INSTRUCTIONS = 1_700
"""The approximate tokens of instructions and tool schemas with every record."""


@dataclass(frozen=True, slots=True)
class LangMem(ClientSystem):
    """LangMem: the store manager that a model drives, or one `manage_memory` call a record."""

    spec: ClassVar[str] = "langmem"

    query_limit: int = 5
    """How many stored memories the manager sees beside a new record. LangMem's default."""
    deletes: bool = False
    """Whether the manager may delete. LangMem's default."""
    embed: Embedding = "wordllama"
    """Which embedding the store's index has."""
    text: Text = "user"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""

    def __post_init__(self) -> None:
        ClientSystem.__post_init__(self)
        positive(self.name, query_limit=self.query_limit)

    @property
    def client(self) -> Client | None:
        """Describe its own client: one request for each record, if none fails."""
        return self.make_client(1, _INSTRUCTIONS) if self.model and not self.scripted else None

    def origin(self) -> str:
        """Name the packages behind it."""
        return list_versions("langmem", "langgraph-checkpoint", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Pass every record to LangMem, in a new store."""
        package = import_system("langmem", "LangMem", _EXTRA)
        modules = [
            import_system(f"langmem.knowledge.{part}", "LangMem", _EXTRA)
            for part in ("extraction", "tools")
        ]
        store = open_store(self.embed, ["content"])
        endpoint = self.connect(arrivals)
        http = self._http_client()  # after the endpoint, which no web proxy may stand in front of
        take = self._manager(store, http, endpoint) if self.model else self._tool(package, store)
        search = package.create_search_memory_tool(
            _PLACE, store=store, response_format="content_and_artifact"
        )
        lineage = Lineage("memory")
        try:
            with count_names(*modules, name=_name_by_number):
                for record in arrivals:
                    take(record)
                    lineage.observe(record, _contents(store))
        finally:
            if http is not None:
                http.close()
            endpoint.close()  # questions ask nobody
        return AdaptedMemory(
            list_blocks=lambda: [
                lineage.block(key, words) for key, words in _contents(store).items()
            ],
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
                action = f"LangMem failed on record '{record.id}'"
                raise explain_failure(action, error, allowance=self.allowance) from error

        return take


def _contents(store: Any) -> Mapping[str, str]:
    return {item.key: _words(item.value) for item in store.search(_PLACE, limit=_EVERYTHING)}


def _words(value: Mapping[str, Any]) -> str:
    """Read an item's text: the tools store it as it is, the manager inside its schema."""
    content = value["content"]
    return str(content.get("content", content)) if isinstance(content, Mapping) else str(content)


def _name_by_number(number: int) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_OID, str(number))
