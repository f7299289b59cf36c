"""Graphiti on an embedded Kuzu graph: facts with validity times, and episodes as their sources.

The adapter does what Graphiti leaves to its users: it names the database, creates the full-text
indices, and turns telemetry off. Each record is one episode, at the time of the record.
"""

from __future__ import annotations

import logging
import os
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from routeprism.errors import SpecError
from routeprism.policies._awaiting import AwaitedMemory
from routeprism.policies._contracts import Block, Event, Memory
from routeprism.policies._wrappers import Client
from routeprism.policies.adapters._systems import (
    AdaptedMemory,
    ClientSystem,
    Embedding,
    Text,
    Vector,
    count_names,
    cut_turns,
    embedding,
    explain_failure,
    import_system,
    list_versions,
)
from routeprism.records import Record, read_time
from routeprism.redaction import Redactor

if TYPE_CHECKING:
    from routeprism.models.gateway import Endpoint

__all__ = ["Graphiti"]

_GROUP = "route"
_CALLS = 4
"""Model calls for a record with one new fact: entities, facts, duplicates, contradictions."""
_INSTRUCTIONS = 1_600
"""The approximate tokens of instructions with every call."""
Show = Literal["all", "current"]
"""Which facts are shown: all with their validity times, or those that are still valid."""


def _import(module: str, package: str = "graphiti_core.") -> Any:
    return import_system(f"{package}{module}", "Graphiti", "graphiti")


@dataclass(frozen=True, slots=True)
class Graphiti(ClientSystem):
    """Graphiti: facts that a model extracts, with the time from which and until which they hold."""

    spec: ClassVar[str] = "graphiti"

    show: Show = "all"
    """All facts that are found, with their validity times, or only those that are still valid."""
    date: str = "2025-01-01"
    """The time of records that have none."""
    embed: Embedding = "wordllama"
    """Which embedding."""
    text: Text = "user"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""

    def __post_init__(self) -> None:
        if not self.model:
            raise SpecError(
                "graphiti extracts facts with a model. Expected model=NAME, with base_url=… for an "
                "OpenAI-compatible endpoint, or model=scripted, but got none"
            )
        ClientSystem.__post_init__(self)
        if read_time(self.date) is None:
            raise SpecError(f"Expected a date such as 2025-01-01 but got date={self.date}")

    @property
    def client(self) -> Client | None:
        """Describe its own client."""
        return None if self.scripted else self.make_client(_CALLS, _INSTRUCTIONS)

    def origin(self) -> str:
        """Name the packages behind it."""
        return list_versions("graphiti-core", "kuzu", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Add every record to a new graph as an episode."""
        endpoint = self.connect(arrivals)
        graph: Any = AwaitedMemory(OpenGraph(self, endpoint))
        history = FactHistory()
        try:
            graph.open()
            modules = _import("nodes"), _import("edges")
            with count_names(*modules, name=lambda number: uuid.UUID(int=number)):
                for at, record in enumerate(arrivals):
                    history.episodes[graph.add_record(record)] = record.id
                    history.compare(record, at, graph.list_facts())
        except BaseException:
            graph.close()
            raise
        finally:
            endpoint.close()  # questions ask nobody
        return AdaptedMemory(
            list_blocks=lambda: history.show(graph.list_facts(), self.show),
            search=lambda query: history.show(graph.search(query), self.show),
            log=tuple(history.events),
            end=graph.close,
        )


class OpenGraph:
    """A Graphiti instance on a graph of its own; its methods run on one event loop."""

    def __init__(self, policy: Graphiti, endpoint: Endpoint) -> None:
        self.policy = policy
        self.endpoint = endpoint
        self.driver: Any = None
        self.graphiti: Any = None
        self.openai: Any = None

    async def open(self) -> None:
        """Open an empty graph with its indices."""
        os.environ["GRAPHITI_TELEMETRY_ENABLED"] = "false"
        core = _import("graphiti_core", "")
        drivers = _import("driver.kuzu_driver")
        logging.getLogger("graphiti_core").setLevel(logging.CRITICAL)  # the route names failures
        queries = _import("graph_queries")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the driver warns that Kuzu is no longer maintained
            self.driver = drivers.KuzuDriver()
        self.driver._database = _GROUP  # it has none, and add_episode reads it
        for query in queries.get_fulltext_indices(self.driver.provider):
            await self.driver.execute_query(query)  # build_indices_and_constraints() creates none
        self.graphiti = core.Graphiti(
            graph_driver=self.driver,
            llm_client=self._make_client(),
            embedder=_make_embedder(embedding(self.policy.embed, "graphiti")),
            cross_encoder=_make_ranker(),
            max_coroutines=1,
        )

    def _make_client(self) -> Any:
        clients = _import("llm_client.openai_generic_client")
        configs = _import("llm_client.config")
        openai = _import("openai", "")
        policy = self.policy
        self.openai = openai.AsyncOpenAI(
            api_key=self.endpoint.api_key, base_url=self.endpoint.base_url or None
        )
        config = configs.LLMConfig(model=policy.model, small_model=policy.model, temperature=0)
        return clients.OpenAIGenericClient(config, client=self.openai)

    async def add_record(self, record: Record) -> str:
        """Add a record as an episode; give the episode's id."""
        policy = self.policy
        turns = cut_turns(record, policy.text, policy.chars)
        try:
            result = await self.graphiti.add_episode(
                name=record.id,
                episode_body="\n".join(f"{role}: {words}" for role, words in turns),
                source_description="conversation",
                reference_time=_find_time(record, policy.date),
                group_id=_GROUP,
            )
        except Exception as error:
            action = f"Graphiti failed on record '{record.id}'"
            raise explain_failure(action, error, allowance=policy.allowance) from error
        return str(result.episode.uuid)

    async def list_facts(self) -> list[GraphFact]:
        """Return every fact of the graph, the oldest first."""
        edges = _import("edges")
        errors = _import("errors")
        try:
            edges_of_group = await edges.EntityEdge.get_by_group_ids(self.driver, [_GROUP])
        except errors.GroupsEdgesNotFoundError:  # there is none yet
            return []
        return sorted(map(GraphFact.read, edges_of_group), key=lambda fact: fact.key)

    async def search(self, query: str) -> list[GraphFact]:
        """Search for facts by their words and by their vectors."""
        edges = await self.graphiti.search(query, group_ids=[_GROUP], num_results=self.policy.k)
        return [GraphFact.read(edge) for edge in edges]

    async def close(self) -> None:
        """Close the client of the model, and the graph."""
        if self.openai is not None:
            await self.openai.close()
        if self.driver is not None:
            self.driver.client.close()
            self.driver.db.close()


def _find_time(record: Record, date: str) -> datetime:
    time = read_time(record.timestamp) if record.timestamp else None
    time = time or read_time(date)
    assert time is not None  # the policy has checked it  # noqa: S101
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _make_embedder(vector: Callable[[str], Vector]) -> Any:
    base = _import("embedder.client").EmbedderClient

    async def create(self: Any, input_data: Any) -> list[float]:
        text = input_data if isinstance(input_data, str) else " ".join(map(str, input_data))
        return list(vector(text))

    async def create_batch(self: Any, input_data_list: list[str]) -> list[list[float]]:
        return [list(vector(text)) for text in input_data_list]

    return type("Embedder", (base,), {"create": create, "create_batch": create_batch})()


def _make_ranker() -> Any:
    """Make a cross-encoder that is never called: the search combines ranks without one."""
    base = _import("cross_encoder.client").CrossEncoderClient

    async def rank(self: Any, query: str, passages: list[str]) -> list[tuple[str, float]]:
        return [(passage, 0.0) for passage in passages]

    return type("Ranker", (base,), {"rank": rank})()


@dataclass(frozen=True, slots=True)
class GraphFact:
    """One fact of the graph: an edge between two entities."""

    key: str
    text: str
    episodes: tuple[str, ...]
    since: str
    until: str
    is_valid: bool

    @classmethod
    def read(cls, edge: Any) -> GraphFact:
        return cls(
            edge.uuid,
            edge.fact,
            tuple(edge.episodes),
            _format_day(edge.valid_at),
            _format_day(edge.invalid_at),
            edge.invalid_at is None and edge.expired_at is None,
        )

    def describe(self) -> str:
        """Return the fact with its validity times, as Graphiti's users put it into a prompt."""
        if not (self.since or self.until):
            return self.text
        return f"{self.text} (valid {self.since or 'from an unknown time'} – {self.until or 'now'})"


def _format_day(time: datetime | None) -> str:
    return "" if time is None else f"{time:%Y-%m-%d}"


@dataclass(slots=True)
class FactHistory:
    """Which record each episode was, and what each arrival did to the facts."""

    episodes: dict[str, str] = field(default_factory=dict)
    """Episode → record."""
    facts: dict[str, GraphFact] = field(default_factory=dict)
    """The facts after the last arrival."""
    events: list[Event] = field(default_factory=list)
    redactor: Redactor = field(default_factory=Redactor.configured)

    def find_sources(self, fact: GraphFact) -> frozenset[str]:
        """Return the records of a fact's episodes."""
        return frozenset(
            self.episodes[episode] for episode in fact.episodes if episode in self.episodes
        )

    def show(self, facts: Sequence[GraphFact], which: Show) -> list[Block]:
        """Return facts as blocks, with the records of their episodes."""
        return [
            Block("fact", self.redactor.redact(fact.describe()), self.find_sources(fact))
            for fact in facts
            if which == "all" or fact.is_valid
        ]

    def compare(self, record: Record, at: int, facts: Sequence[GraphFact]) -> None:
        """Record which facts an arrival added, confirmed, ended or deleted."""
        before, number = self.facts, len(self.events)
        self.facts = {fact.key: fact for fact in facts}
        for fact in facts:
            old = before.get(fact.key)
            if old is None:
                self._note("add", [record.id], record, at)
            elif len(fact.episodes) > len(old.episodes):  # the same fact again
                self._note("merge", self.find_sources(old) - {record.id}, record, at)
            if (old is None or old.is_valid) and not fact.is_valid:
                # An older fact that arrives later ends at once: it displaces nothing.
                kind: Literal["overwrite", "skip"] = "skip" if old is None else "overwrite"
                self._note(kind, self.find_sources(fact), record, at)
        for key, old in before.items():
            if key not in self.facts:
                self._note("evict", self.find_sources(old), record, at)
        if len(self.events) == number:
            self._note("skip", [record.id], record, at)

    def _note(self, kind: Any, sources: Any, record: Record, at: int) -> None:
        for source in sorted(sources):
            event = Event(kind, source, record.id, at)
            if event not in self.events:
                self.events.append(event)
