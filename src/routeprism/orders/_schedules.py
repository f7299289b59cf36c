"""Schedules: sequences of a pool's positions, chosen without looking at any text (PROTOCOL §2).

A schedule can name a procedure as well: how its records are handed to a memory.
"""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from routeprism.errors import SpecError
from routeprism.orders._processes import Order
from routeprism.records import Pool, Record, event_order
from routeprism.specs import Spec, construct, find_extension, parse, registered


@dataclass(frozen=True, slots=True)
class Procedure:
    """A way to hand records to a memory."""

    name: str
    """Its spec, such as `bulk:size=10`."""
    kind: str
    """One of `one-by-one`, `bulk`, `twice`, `restart`, `reload` and `overlap`, or `own`."""
    number: int = 0
    """Records in a batch, between two restarts, or in flight at once; 0 for all in one batch."""
    fill: Callable[[Any, Sequence[Record]], Any] | None = None
    """For a procedure of your own: adds the records to an object of your memory class.

    It may return another object to use instead, or None.
    """


ONE_BY_ONE = Procedure("one-by-one", "one-by-one")
"""Each record is added alone, after the record before it."""

SPECS = json.loads(files(__package__).joinpath("specs.json").read_text("utf-8"))
PROCEDURES: Mapping[str, str] = SPECS["procedures"]
"""The procedures that a user can name, in a sentence each."""

_PARAMETERS = {"bulk": ("size", 0), "restart": ("every", 1), "overlap": ("k", 2)}
"""Kind → its parameter and the default of it."""
SEPARATOR = " vs "


def parse_procedure(text: str) -> Procedure | None:
    """Return the procedure that a spec names; None if its name is not the name of a procedure."""
    kind = text.partition(":")[0].strip()
    if kind not in {name.partition(":")[0] for name in PROCEDURES}:
        return _find_own_procedure(text, kind)
    spec = parse(text)
    parameter, default = _PARAMETERS.get(kind, ("", 0))
    if unknown := [key for key in spec.values if key != parameter]:
        expected = f"'{parameter}'" if parameter else "no parameter"
        raise SpecError(f"'{kind}' has {expected} but got '{unknown[0]}' in {text!r}")
    number = (
        _read_number(spec, parameter, 2 if kind == "overlap" else 1) if spec.values else default
    )
    name = f"{kind}:{parameter}={number}" if spec.values or kind == "overlap" else kind
    return Procedure(name, kind, number)


def _find_own_procedure(text: str, name: str) -> Procedure | None:
    """Return the procedure that an installed package registers, or an object of the user's own."""
    is_registered = name in registered("procedures")
    if "+" in text or not (":" in text or is_registered):
        return None
    spec = parse(text)
    if not (spec.is_object or is_registered):
        return None
    extension: Any = find_extension("procedures", spec)
    if not spec.is_object and not isinstance(extension, Procedure):
        extension = construct(extension, spec)
    if isinstance(extension, Procedure):
        return replace(extension, name=text.strip(), kind="own")
    if spec.is_object:
        return None  # a schedule, for example
    raise SpecError(
        f"Expected a routeprism.orders.Procedure, or a function that returns one, but "
        f"'{spec.name}' gave {type(extension).__name__}"
    )


def _read_number(spec: Spec, key: str, least: int) -> int:
    value = spec.values[key]
    if not value.isdecimal() or int(value) < least:
        raise SpecError(
            f"Expected a whole number of {least} or more but got {key}={value} in {spec.text!r}"
        )
    return int(value)


def name_reference(schedule: str) -> str:
    """Name the route that a schedule is compared with: Y for `X vs Y`, otherwise `forward`."""
    return schedule.partition(SEPARATOR)[2] or "forward"


def names_procedure(schedule: str) -> bool:
    """Return whether a schedule, or its reference, names one of the procedures of RoutePrism."""
    kinds = {name.partition(":")[0] for name in PROCEDURES}
    sides = schedule.split(SEPARATOR)
    return any(part.partition(":")[0] in kinds for side in sides for part in side.split("+"))


def name_pair(schedule: str, reference: str) -> str:
    """Write the name of a schedule that is compared with a reference."""
    return schedule if reference == "forward" else f"{schedule}{SEPARATOR}{reference}"


def split_procedure(text: str) -> tuple[str, Procedure]:
    """Split `order+procedure` into both; the order is `forward` unless the spec names one."""
    alone = parse_procedure(text)
    if alone is not None:
        return "forward", alone
    order, plus, last = text.rpartition("+")
    procedure = parse_procedure(last) if plus else None
    if procedure is None:
        return text, ONE_BY_ONE
    if parse_procedure(order.rpartition("+")[2]) is not None:
        raise SpecError(f"Expected one procedure but got {text!r}")
    return order, procedure


@dataclass(frozen=True, slots=True)
class PoolFunction:
    """A function of a pool with arguments of its own; equal ones are equal, unlike partials."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Any:
        return self.function(size, user, records, *self.arguments)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A named rule that gives a pool its arrival order."""

    name: str
    """Its spec, which is its name in every output."""
    rule: Callable[[int, str, Sequence[Record] | None], Order]
    """(pool size, user, the pool's records where they are known) → positions as they arrive."""
    redelivers: bool = False
    """Whether a record may arrive more than once."""
    procedure: Procedure = ONE_BY_ONE
    """How the records are handed to the memory."""
    reference: Schedule | None = None
    """The schedule that it is compared with; None for forward."""

    def perform(self, procedure: Procedure) -> Schedule:
        """Return the same order with a procedure."""
        if procedure.kind == ONE_BY_ONE.kind:
            return self
        name = procedure.name if self.name == "forward" else f"{self.name}+{procedure.name}"
        is_repeated = procedure.kind == "twice"
        return replace(
            self, name=name, procedure=procedure, redelivers=self.redelivers or is_repeated
        )

    def compare_with(self, reference: Schedule) -> Schedule:
        """Return the same schedule, compared with a reference instead of forward."""
        if reference.name in ("forward", self.name):
            return self
        return replace(self, name=name_pair(self.name, reference.name), reference=reference)

    def order(self, size: int, user: str = "") -> Order:
        """Return the positions 0…size−1 in their order of arrival."""
        return self.bound(size, user, None)

    def on(self, pool: Pool) -> Order:
        """Return a pool's positions in their order of arrival."""
        return self.bound(len(pool), pool.user, pool.records)

    def bound(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        """Order a pool of which this is known."""
        order = self.rule(size, user, records)
        if self.procedure.kind == "twice":
            order = (*order, *order)
        arrived = set(order) if self.redelivers else order
        if sorted(arrived) != list(range(size)):
            raise SpecError(
                f"schedule '{self.name}' is not a permutation of the {size} positions of a pool"
                + (f" (user '{user}')" if user else "")
            )
        return order


def _forward(size: int, user: str, records: Sequence[Record] | None) -> Order:
    return tuple(range(size))


def _replay(size: int, user: str, records: Sequence[Record] | None) -> Order:
    return tuple(reversed(range(size)))


def _half_swap(size: int, user: str, records: Sequence[Record] | None) -> Order:
    half = size // 2
    return (*range(half, size), *range(half))


def _odd_even(size: int, user: str, records: Sequence[Record] | None) -> Order:
    return (*range(0, size, 2), *range(1, size, 2))


def _event_time(size: int, user: str, records: Sequence[Record] | None) -> Order:
    if records is None:
        raise SpecError("'event-time' reads the records' timestamps: it needs the pool")
    return event_order(records)


def keep_positions(
    size: int, user: str, records: Sequence[Record] | None, positions: Order
) -> Order:
    """Return the same positions for every pool."""
    return positions


def shuffle(size: int, user: str, records: Sequence[Record] | None, seed: int) -> Order:
    """Draw one uniform permutation for each pool; it is the same in every process."""
    digest = hashlib.sha256(f"{seed}\0{size}\0{user}".encode()).digest()
    order = list(range(size))
    random.Random(int.from_bytes(digest[:16], "big")).shuffle(order)  # noqa: S311
    return tuple(order)


FORWARD = Schedule("forward", _forward)
"""The source order, which every pair compares with."""

FIXED: Mapping[str, Schedule] = {
    "forward": FORWARD,
    "replay": Schedule("replay", _replay),
    "half-swap": Schedule("half-swap", _half_swap),
    "odd-even": Schedule("odd-even", _odd_even),
    "event-time": Schedule("event-time", _event_time),
}
"""The schedules without parameters."""

SCHEDULES: Mapping[str, str] = SPECS["schedules"]
"""The schedules, described in one sentence each."""
