"""Graphiti on an embedded Kuzu graph: facts with validity times, and episodes as their sources.

The adapter does what Graphiti leaves to its users: it names the database, creates the full-text
indices, and turns telemetry off. Each record is one episode, at the time of the record.
"""

from __future__ import annotations

import logging
import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from routeprism.errors import RouteError, SpecError
from routeprism.models import Allowance, Endpoint, Gateway, is_scripted
from routeprism.policies._awaiting import AwaitedMemory
from routeprism.policies._contracts import Memory
from routeprism.policies._wrappers import Client
from routeprism.policies.adapters._graph_facts import FactHistory, GraphFact, Show
from routeprism.policies.adapters._systems import (
    AdaptedMemory,
    Embedding,
    Text,
    Vector,
    check_address,
    check_prices,
    cut_turns,
    embedding,
    import_system,
    list_versions,
    open_line,
)
from routeprism.records import Record, read_time
from routeprism.redaction import Redactor
from routeprism.specs import positive, write_spec

__all__ = ["Graphiti"]

_EXTRA = "graphiti"
_PACKAGE = "graphiti_core"
_GROUP = "route"
_CALLS = 4
"""Model calls for a record with one new fact: entities, facts, duplicates, contradictions."""
_INSTRUCTIONS = 1_600
"""The approximate tokens of instructions with every call."""
_patching = threading.Lock()


@dataclass(frozen=True, slots=True)
class Graphiti:
    """Graphiti: facts that a model extracts, with the time from which and until which they hold."""

    model: str = ""
    """The model that extracts entities and facts, and finds contradictions; or `scripted`."""
    base_url: str = ""
    """Where the model is, an OpenAI-compatible endpoint; key from OPENAI_API_KEY."""
    k: int = 10
    """How many facts a question brings. Graphiti's default."""
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
    price_in: float | None = field(default=None, metadata={"named": False})
    """For a million input tokens of the model, for `--dry-run` and `--max-cost`."""
    price_out: float | None = field(default=None, metadata={"named": False})
    """For a million output tokens of the model."""
    allowance: Allowance | None = field(default=None, compare=False, repr=False)
    """What the command may still spend; an audit sets it."""
    gateway: Gateway | None = field(default=None, compare=False, repr=False)
    """The proxy that the model's requests go through; an audit sets it."""

    def __post_init__(self) -> None:
        if not self.model:
            raise SpecError(
                "graphiti extracts facts with a model. Expected model=NAME, with base_url=… for an "
                "OpenAI-compatible endpoint, or model=scripted, but got none"
            )
        check_address("graphiti", self.base_url)
        positive(self.name, k=self.k)
        check_prices(self.name, self.price_in, self.price_out)
        if read_time(self.date) is None:
            raise SpecError(f"Expected a date such as 2025-01-01 but got date={self.date}")

    @property
    def name(self) -> str:
        """The spec in every output."""
        return write_spec("graphiti", self)

    @property
    def deterministic(self) -> bool:
        """Whether the same arrivals always give the same memory; not with a language model."""
        return self.scripted

    @property
    def scripted(self) -> bool:
        """Whether the scripted model of this package decides what to keep."""
        return is_scripted(self.model, self.base_url)

    @property
    def client(self) -> Client | None:
        """Describe its own client."""
        if self.scripted:
            return None
        return Client(
            self.model,
            self.base_url or os.environ.get("OPENAI_BASE_URL", ""),
            _CALLS,
            _INSTRUCTIONS,
            self.price_in,
            self.price_out,
            self.k,
        )

    def metered(self, allowance: Allowance, /) -> Graphiti:
        """Return the same policy, counting every request of Graphiti's client."""
        return replace(self, allowance=allowance)

    def routed(self, gateway: Gateway, /) -> Graphiti:
        """Return the same policy, whose client asks through a proxy."""
        return replace(self, gateway=gateway)

    def origin(self) -> str:
        """Name the packages behind it."""
        return list_versions("graphiti-core", "kuzu", "wordllama")

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Add every record to a new graph as an episode."""
        endpoint = open_line(self, arrivals)
        graph: Any = AwaitedMemory(OpenGraph(self, endpoint))
        history = FactHistory()
        try:
            graph.open()
            with _counted_names():
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
        core = import_system("graphiti_core", "Graphiti", _EXTRA)
        drivers = import_system("graphiti_core.driver.kuzu_driver", "Graphiti", _EXTRA)
        logging.getLogger("graphiti_core").setLevel(logging.CRITICAL)  # the route names failures
        queries = import_system("graphiti_core.graph_queries", "Graphiti", _EXTRA)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the driver warns that Kuzu is no longer maintained
            self.driver = drivers.KuzuDriver()
        self.driver._database = _GROUP  # it has none, and add_episode reads it
        for query in queries.get_fulltext_indices(self.driver.provider):
            await self.driver.execute_query(query)  # build_indices_and_constraints() creates none
        self.graphiti = core.Graphiti(
            graph_driver=self.driver,
            llm_client=self._make_client(),
            embedder=_make_embedder(embedding(self.policy.embed, _EXTRA)),
            cross_encoder=_make_ranker(),
            max_coroutines=1,
        )

    def _make_client(self) -> Any:
        """Make Graphiti's client for any OpenAI-compatible endpoint."""
        clients = import_system(f"{_PACKAGE}.llm_client.openai_generic_client", "Graphiti", _EXTRA)
        configs = import_system("graphiti_core.llm_client.config", "Graphiti", _EXTRA)
        openai = import_system("openai", "Graphiti", _EXTRA)
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
            if policy.allowance is not None:
                policy.allowance.check()  # a refusal is no failure of Graphiti
            words = Redactor.configured().redact_line(f"{type(error).__name__}: {error}")
            raise RouteError(f"Graphiti failed on record '{record.id}': {words}") from error
        return str(result.episode.uuid)

    async def list_facts(self) -> list[GraphFact]:
        """Return every fact of the graph, the oldest first."""
        edges = import_system("graphiti_core.edges", "Graphiti", _EXTRA)
        errors = import_system("graphiti_core.errors", "Graphiti", _EXTRA)
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
    """Return the time of a record, or the fixed date."""
    time = read_time(record.timestamp) if record.timestamp else None
    time = time or read_time(date)
    assert time is not None  # the policy has checked it  # noqa: S101
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _make_embedder(vector: Callable[[str], Vector]) -> Any:
    """Make the embedder that Graphiti calls."""
    base = import_system("graphiti_core.embedder.client", "Graphiti", _EXTRA).EmbedderClient

    async def create(self: Any, input_data: Any) -> list[float]:
        text = input_data if isinstance(input_data, str) else " ".join(map(str, input_data))
        return list(vector(text))

    async def create_batch(self: Any, input_data_list: list[str]) -> list[list[float]]:
        return [list(vector(text)) for text in input_data_list]

    return type("Embedder", (base,), {"create": create, "create_batch": create_batch})()


def _make_ranker() -> Any:
    """Make a cross-encoder that is never called: the search combines ranks without one."""
    base = import_system(f"{_PACKAGE}.cross_encoder.client", "Graphiti", _EXTRA).CrossEncoderClient

    async def rank(self: Any, query: str, passages: list[str]) -> list[tuple[str, float]]:
        return [(passage, 0.0) for passage in passages]

    return type("Ranker", (base,), {"rank": rank})()


@contextmanager
def _counted_names() -> Iterator[None]:
    """Count instead of drawing ids, so that equal arrivals give equal graphs and searches."""
    modules: Mapping[str, Any] = {
        name: import_system(f"graphiti_core.{name}", "Graphiti", _EXTRA)
        for name in ("nodes", "edges")
    }
    number = 0

    def count() -> uuid.UUID:
        nonlocal number
        number += 1
        return uuid.UUID(int=number)

    with _patching:
        originals = {name: module.uuid4 for name, module in modules.items()}
        try:
            for module in modules.values():
                module.uuid4 = count
            yield
        finally:
            for name, module in modules.items():
                module.uuid4 = originals[name]
