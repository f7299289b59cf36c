"""Wrappers around a policy: source order, a name, stand-ins for dry runs, declared calls."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeprism.errors import SpecError
from routeprism.models import Allowance, is_remote
from routeprism.policies._contracts import Block, Exposure, JsonValue, Memory, Policy
from routeprism.records import Record
from routeprism.text import tokens


@dataclass(frozen=True, slots=True)
class Waiting:
    """What it takes, at least, to find out that a memory has stored what it was given."""

    requests: int
    seconds: float
    per_build: bool = False
    """Whether the memory is waited for once in each build; otherwise after each record."""


@dataclass(frozen=True, slots=True)
class Client:
    """The requests that a memory makes itself while it builds, outside the run's ledger."""

    model: str = ""
    """The model; empty if it is not known."""
    address: str = ""
    """The address of the requests; empty if it is not known."""
    calls_per_add: float | None = None
    """Model calls for each added record; None if they are not known."""
    tokens_per_call: int = 0
    """Input tokens of each call beside the record itself."""
    price_in: float | None = None
    """Price of a million input tokens."""
    price_out: float | None = None
    """Price of a million output tokens."""
    k: int = 0
    """How many records a question is shown; 0 if it is not known."""
    waiting: Waiting | None = None
    """What waiting for the memory takes; None if it stores what it is given at once."""

    @property
    def spends(self) -> bool:
        """Whether building may cost money, as far as is known."""
        is_declared = bool(self.model or self.address or self.calls_per_add)
        return is_declared and (not self.address or is_remote(self.address))


def check_calls(name: str, calls: Any) -> float | None:
    """Check the declared calls for each record: a number of 0 or more."""
    if calls is None:
        return None
    if isinstance(calls, bool) or not isinstance(calls, (int, float)) or not 0 <= calls < 1e6:
        raise SpecError(f"Expected calls_per_add of 0 or more but got {calls!r} for '{name}'")
    return float(calls)


@dataclass(frozen=True, slots=True)
class NamedPolicy:
    """A policy under a name that it does not have itself."""

    inner: Any
    name: str

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Build a memory with the inner policy."""
        memory: Memory = self.inner.build(arrivals)
        return memory


@dataclass(frozen=True, slots=True)
class DeclaredCalls:
    """A policy with a declared number of calls per record, which are counted before it builds."""

    inner: Policy
    calls_per_add: float
    allowance: Allowance = field(compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.inner.name

    @property
    def deterministic(self) -> bool:
        """Whether the policy declares that it is deterministic."""
        return getattr(self.inner, "deterministic", True) is not False

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Count the declared calls, then build."""
        self.allowance.count(round(self.calls_per_add * len(arrivals)))
        return self.inner.build(arrivals)


@dataclass(frozen=True, slots=True)
class StandIn:
    """Replaces a policy in a dry run: it counts the arrivals and builds nothing."""

    inner: Policy
    client: Client
    deterministic: bool = True
    """Whether the policy declares that it is deterministic."""
    characters: int = 0
    """The characters that a question is assumed to be shown; 0 for the client's k records."""
    measured: bool = False
    """Whether its client and the characters shown were measured on one pool."""
    counters: Counter[str] = field(default_factory=Counter, compare=False, repr=False)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return self.inner.name

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Count the arrivals."""
        self.counters["builds"] += 1
        self.counters["adds"] += len(arrivals)
        self.counters["tokens"] += sum(record.derive(_count_tokens) for record in arrivals)
        return _AssumedMemory(tuple(arrivals), self.client.k, self.characters)

    def drain(self) -> Mapping[tuple[str, str], int]:
        """Return what was counted since the last call, by policy and kind."""
        counts = {(self.name, kind): number for kind, number in self.counters.items()}
        self.counters.clear()
        return counts


def _count_tokens(record: Record) -> int:
    return tokens.count(record.text)


@dataclass(frozen=True, slots=True)
class _AssumedMemory:
    """A memory that retains everything, and shows as much as it is assumed to."""

    arrivals: tuple[Record, ...]
    k: int
    characters: int

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.arrivals)

    def state(self) -> JsonValue:
        return None

    def expose(self, query: str, /) -> Exposure:
        records = sorted(self.arrivals, key=lambda record: record.position)
        if self.characters:
            text = "\n\n".join(record.text for record in records)[: self.characters]
            return Exposure((Block("record", text, self.retained()),))
        records = records[: self.k] if self.k else records
        blocks = (Block("record", record.text, frozenset({record.id})) for record in records)
        return Exposure(tuple(blocks))


Arrived = tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class SourceOrder:
    """Passes the arrivals to its policy in source order, each once, whatever order they came in."""

    inner: Policy
    """The policy it is the comparator of."""

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"source-order({self.inner.name})"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Sort, then build."""
        return self.finish(self.sorted(arrivals))

    def sorted(self, arrivals: Sequence[Record]) -> Arrived:
        """Return the arrivals as its policy receives them."""
        first = {record.position: record for record in reversed(arrivals)}
        return tuple([first[position] for position in sorted(first)])

    def start(self) -> Arrived:
        """Start without any arrival."""
        return ()

    def step(self, state: Arrived, record: Record, /) -> Arrived:
        """Insert the record at its place, unless it arrived before."""
        at = bisect_left(state, record.position, key=lambda record: record.position)
        if at < len(state) and state[at].position == record.position:
            return state
        return (*state[:at], record, *state[at:])

    def finish(self, state: Arrived, /) -> Memory:
        """Build from all records."""
        return self.inner.build(state)

    def key(self, state: Arrived, /) -> Hashable:
        """Return no key: the same records always form the same list."""
        return ()
