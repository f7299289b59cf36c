"""The contracts: what a memory policy is, and what construction may see.

`build` receives records and nothing else; `expose` receives the text of a question and nothing
else. A policy with another signature does not type-check, and `routeprism.routes` refuses it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, runtime_checkable

from routeprism.records import Pool, Record

if TYPE_CHECKING:
    from routeprism.models import Model

JsonValue: TypeAlias = (
    "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
)

SEPARATOR = "\n\n"
"""The text between two blocks of a context; its two characters count towards a budget."""


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of the compiled context and every record it came from."""

    kind: str
    """What it is: `record`, `chunk`, `topic-summary`, …; display may reorder within a kind."""
    text: str
    """What the answer prompt would show."""
    sources: frozenset[str]
    """The ids of all records it came from."""

    def __post_init__(self) -> None:
        if not isinstance(self.sources, frozenset):
            object.__setattr__(self, "sources", frozenset(self.sources))


@dataclass(frozen=True, slots=True)
class Exposure:
    """What reaches the answer prompt for one question."""

    blocks: tuple[Block, ...]

    @property
    def sources(self) -> frozenset[str]:
        """V: the ids of all records that some block came from."""
        return frozenset().union(*(block.sources for block in self.blocks))

    @property
    def context(self) -> str:
        """C: the compiled context."""
        return SEPARATOR.join(block.text for block in self.blocks)


EventKind = Literal["add", "merge", "overwrite", "evict", "skip"]


@dataclass(frozen=True, slots=True)
class Event:
    """Something that an arrival did to a record inside a memory."""

    kind: EventKind
    record: str
    """The record it happened to."""
    by: str
    """The arriving record that did it."""
    at: int
    """Which arrival that was, from 0."""


@runtime_checkable
class Memory(Protocol):
    """What a policy built. None of its methods changes anything.

    A memory may offer more: `events()` (what each arrival did), `stand_ins()` (dropped record → the
    one that took its place), `counts()` (name → how often something happened while it was built),
    `snapshot()` (plain JSON to revive it from), `canonical()` (the state with insertion order taken
    out), `notes()` (record → field → value, for comparison with the same record's note on another
    route) and `close()`.
    """

    def retained(self) -> frozenset[str]:
        """Return the retained source ids, before any retrieval."""

    def state(self) -> JsonValue:
        """Return the value that the internal signature is computed from; None if there is none."""

    def expose(self, query: str, /) -> Exposure:
        """Return what a question's text brings to the prompt."""


@runtime_checkable
class Policy(Protocol):
    """Builds memories; never sees a question, an option, a gold answer or a label."""

    @property
    def name(self) -> str:
        """Its name in every output."""

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Build a memory from records in their order of arrival."""


State = TypeVar("State")


@runtime_checkable
class Incremental(Protocol[State]):
    """A policy that builds record by record, with immutable states in between."""

    def start(self) -> State:
        """Return the state before any arrival."""

    def step(self, state: State, record: Record, /) -> State:
        """Return the state after one more arrival; the old state stays as it was."""

    def finish(self, state: State, /) -> Memory:
        """Return the memory that this state is."""

    def key(self, state: State, /) -> Hashable:
        """Name the state's future.

        States after the same arrivals with equal keys retain and expose the same, now and after
        any further arrivals.
        """


@runtime_checkable
class Foreseeing(Protocol):
    """An incremental policy whose states merge better when all that will arrive is known."""

    def foreseeing(self, records: Sequence[Record], /) -> Incremental[Any]:
        """Return a policy that builds the same memories whenever exactly these records arrive."""


@runtime_checkable
class Operational(Protocol):
    """A policy that names its order-dependent operations."""

    @property
    def operations(self) -> tuple[str, ...]:
        """Return the operations that still follow arrival order."""

    def fixed(self, operation: str, /) -> Policy:
        """Return the same policy with that operation tied to source order."""


@runtime_checkable
class Learned(Protocol):
    """A policy that has to be fitted on other users before it builds."""

    def fit(self, pools: Sequence[Pool], /) -> Policy:
        """Return a new policy of the same name, fitted on the records of these pools.

        The pools contain no question, and none of the users that the policy is then built for.
        """


Consult: TypeAlias = Callable[[str], str]
"""Gives a model's reply to a prompt; raises if there is none."""


@runtime_checkable
class Consulting(Protocol):
    """A policy that can ask a model while it builds; it must also be `Revivable`.

    It never calls the model itself: an audit hands it a function that does, with the ledger of the
    run behind it, so that no reply is paid for twice. Its prompts contain records only.
    """

    @property
    def model(self) -> Model | None:
        """The model; None if the policy asks none."""

    def consulting(self, consult: Consult, /) -> Policy:
        """Return the same policy with a function that asks its model."""


@runtime_checkable
class Revivable(Protocol):
    """A policy whose memories can be stored: they offer `snapshot()`, plain JSON.

    States are stored where building asks a model, or where the policy says `deterministic = False`.
    """

    def revive(self, arrivals: Sequence[Record], snapshot: JsonValue, /) -> Memory:
        """Return the memory of a snapshot; `arrivals` are those it was built from."""


@runtime_checkable
class Growable(Revivable, Protocol):
    """A policy that adds a record to a stored memory, so that orders share their beginnings."""

    def grow(self, arrivals: Sequence[Record], snapshot: JsonValue, record: Record, /) -> Memory:
        """Return the memory after one more arrival; `arrivals` are those before it."""


def prepare_policy(policy: Incremental[Any], records: Sequence[Record]) -> Incremental[Any]:
    """Prepare a policy for exactly these arrivals, so that its states merge better."""
    return policy.foreseeing(records) if isinstance(policy, Foreseeing) else policy


def fold(policy: Incremental[State], arrivals: Iterable[Record]) -> Memory:
    """Build a memory by taking the arrivals one after the other."""
    state = policy.start()
    for record in arrivals:
        state = policy.step(state, record)
    return policy.finish(state)
