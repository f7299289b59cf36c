"""Stopping as soon as a statement holds: users in a drawn order, with limits valid at every look.

The order of the users is drawn from the seed before anything is looked at. Each user's mean value
is one bet of a confidence sequence (`measures.ConfidenceSequences`), so that the limits hold at
whichever user collecting stops. A verdict reads many quantities at once: their limits divide the
risk of a wrong one between them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from typing import Protocol, TypeAlias

from routeprism.errors import SpecError
from routeprism.experiments._rows import FIXED_LIMITS, Key
from routeprism.judge import GAINED, LOST, NET
from routeprism.measures import ConfidenceSequences, Sums
from routeprism.quantities import find_quantity, list_quantities
from routeprism.records import Benchmark, choose_cases
from routeprism.runs import Column, Finding

VERDICT = "verdict"
MARGIN = 0.05
"""The distance from zero within which a verdict treats a quantity as absent."""
_RISK = 0.05
_FROM_BUILDS = "D_build"
_DECIDING = ("V_changed", "retained_changed", "C_changed")
"""What decides the verdict of a memory before any model answers; every pair has a value."""
_EVIDENCE = (LOST, GAINED, NET)
"""What also decides it where evidence is labelled."""
_OPTIONAL = ("I_changed", _FROM_BUILDS)
"""What also decides it of memories with a state, and of repeated builds."""
_ANSWERING = "Delta_rep"
"""What decides the verdict once models answer."""
_STATEMENT = re.compile(r"\s*(?P<quantity>\S+?)\s*(?:±|\+/?-)\s*(?P<width>[0-9.eE-]+)\s*")


@dataclass(frozen=True, slots=True)
class Until:
    """The statement at which collecting stops."""

    text: str
    """As it was written."""
    quantity: str = ""
    """The quantity whose limits are to be narrow; empty for the verdict."""
    half_width: float = MARGIN

    @property
    def reads_answers(self) -> bool:
        """Whether the quantity comes from a model's answers."""
        return find_quantity(self.quantity).reads_answers


def parse_until(text: str) -> Until:
    """Read `J±0.05` (also `J+-0.05`) or `verdict`."""
    if text.strip() == VERDICT:
        return Until(VERDICT)
    match = _STATEMENT.fullmatch(text)
    try:
        width = float(match["width"]) if match else 0.0
    except ValueError:
        width = 0.0
    if match is None or not 0 < width < 1:
        raise SpecError(f"Expected a statement such as J±0.05, or verdict, but got until={text!r}")
    if find_quantity(match["quantity"]).range is None:
        names = [quantity.name for quantity in list_quantities() if quantity.range is not None]
        raise SpecError(
            f"until={text!r}: '{match['quantity']}' has no known range, which limits that are "
            f"valid at every look require. Quantities with a range: {', '.join(sorted(names))}"
        )
    return Until(f"{match['quantity']}±{match['width']}", match["quantity"], width)


@dataclass(frozen=True, slots=True)
class Stop:
    """How far collecting came."""

    until: Until
    settled: bool
    """Whether the statement held before all units were used."""
    units: int
    """The units that were used."""
    all_units: int
    calls: int = 0
    """Calls that the remaining units would have taken."""
    limits: tuple[tuple[str, float, float], ...] = ()
    """(policy and order, lower, upper) of each watched quantity at the end."""
    missing: tuple[str, ...] = ()
    """What the statement reads and no unit had a value of, so that it could not hold."""

    def describe(self, unit: str, seed: int) -> str:
        """Describe the stop in one sentence."""
        text, used = self.until.text, f"{self.units} of {self.all_units} {unit}s"
        order = f"in a random order (seed {seed})"
        if not self.settled:
            every = f"all {self.all_units} {unit}s"
            return (
                f"Sequential stopping: {text} did not hold before {every} were used, "
                f"{order}{self._describe_missing()}"
            )
        saved = f", which saved {self.calls:,} calls" if self.calls else ""
        absent = [name for name, lower, upper in self.limits if lower <= 0 <= upper]
        rare = (
            f". {len(absent)} of {len(self.limits)} quantities that decide it are shown to be at "
            f"most {MARGIN:g}, not to be zero: all {unit}s may give a more severe level"
            if absent and not self.until.quantity
            else ""
        )
        return (
            f"Sequential stopping: {text} held after {used}, taken {order}; the remaining "
            f"{self.all_units - self.units} were not needed{saved}. Limits of quantities with a "
            f"known range are confidence sequences, which hold at every look; rows with the flag "
            f"{FIXED_LIMITS} have ordinary limits{rare}"
        )

    def _describe_missing(self) -> str:
        """Name what had no value: a measurement that this run does not make, or cannot."""
        if not self.missing:
            return ""
        further = len(self.missing) - 1
        more = f" (and {further} more)" if further else ""
        return f". It could not hold: this run has no value of “{self.missing[0]}”{more}"

    def finding(self, users: Sequence[str], seed: int) -> Finding:
        """Record the stop, with the users in the order in which they were taken."""
        value = {
            "until": self.until.text,
            "held": self.settled,
            "units": self.units,
            "all_units": self.all_units,
            "calls_saved": self.calls,
            "seed": seed,
            "limits": [list(entry) for entry in self.limits],
            "users": list(users),
        }
        return Finding(name="sequential_stop", value=value)


Place: TypeAlias = tuple[str, str, str]
"""Policy, order of arrival, and model (empty for what comes from memories alone)."""


@dataclass(slots=True)
class Watch:
    """Looks at the values of every unit, and knows whether the statement holds."""

    until: Until
    expected: frozenset[tuple[Place, str]]
    """Where every quantity must have a value before the statement can hold."""
    optional: frozenset[tuple[Place, str]] = frozenset()
    """What is read as well where there is a value."""
    further_claims: int = 0
    """The number of claims of the run that come from elsewhere."""
    units: int = 0
    claims: set[Column] = field(default_factory=set)
    """The claims that the rows of these units will make."""
    sequences: dict[Column, ConfidenceSequences] = field(default_factory=dict)

    def add(self, sums: Sums[Key]) -> bool:
        """Add a unit, and report whether the statement holds."""
        self.units += 1
        for (column, stratum), entry in sums.items():
            if stratum != "all" or column.mask or column.arm or not column.policy:
                continue
            quantity = find_quantity(column.quantity)
            if quantity.is_claim:
                self.claims.add(column)
            if (_name_place(column), column.quantity) not in self.expected | self.optional:
                continue
            sequence = self.sequences.get(column)
            if sequence is None:
                bounds = quantity.range or (0.0, 1.0)
                # Claims have the same bets here and in their row, and so the same p-value.
                alpha = _RISK if quantity.is_claim else self._risk
                sequence = self.sequences[column] = ConfidenceSequences([bounds], alpha=alpha)
            sequence.add([entry[0] / entry[1]])
        return self.holds

    @property
    def _risk(self) -> float:
        """The risk of each limit: a verdict divides it between all that it may read or claim."""
        if self.until.quantity:
            return _RISK
        claims = len(self.claims) + self.further_claims
        return _RISK / max(len(self.expected | self.optional), claims)

    @property
    def limits(self) -> list[tuple[Column, float, float]]:
        """The limits of every quantity that has a value."""
        risk = self._risk
        return [(column, *seq.limits_at(risk)[0]) for column, seq in self.sequences.items()]

    @property
    def _missing(self) -> frozenset[tuple[Place, str]]:
        """The quantities that are expected and have no value yet."""
        observed = {(_name_place(column), column.quantity) for column in self.sequences}
        return self.expected - observed

    @property
    def holds(self) -> bool:
        """Whether the statement holds for every memory, order of arrival and model."""
        if not self.expected or self._missing:
            return False
        if self.until.quantity:
            widest = 2 * self.until.half_width
            return all(upper - lower <= widest for _, lower, upper in self.limits)
        return all(_is_decided(lower, upper) for _, lower, upper in self.limits)

    def stop(self, all_units: int, calls: int = 0) -> Stop:
        """Describe where collecting stopped."""
        limits = tuple(
            (_write_place(_name_place(column), column.quantity), lower, upper)
            for column, lower, upper in self.limits
        )
        settled = self.holds and self.units < all_units
        missing = tuple(sorted(_write_place(place, name) for place, name in self._missing))
        return Stop(self.until, settled, self.units, all_units, calls, limits, missing)


def _name_place(column: Column) -> Place:
    return column.policy, column.schedule, column.model


def _write_place(place: Place, quantity: str) -> str:
    policy, schedule, model = place
    return f"{policy}, {schedule}: {quantity}{model and f' ({model})'}"


class NamedPart(Protocol):
    """A policy, an order of arrival, or a model of an audit."""

    @property
    def name(self) -> str:
        """Its name in every row."""


def open_watch(
    until: Until | None,
    policies: Iterable[NamedPart],
    *orders: Iterable[NamedPart],
    models: Iterable[NamedPart] = (),
    evidence: bool = False,
    answers: bool = False,
    builds: int = 1,
) -> Watch | None:
    """Begin to look at units; None if nothing that comes now can make the statement hold.

    Where `models` answer, their answers decide the verdict, so that all units are traced. With
    `answers`, these are looked at; else memories are, and with `evidence` what they lose of it.
    Repeated `builds` of memories make claims beside those of answers.
    """
    names = [model.name for model in models]
    if until is None or answers != (until.reads_answers or (not until.quantity and bool(names))):
        return None
    arrivals = [order.name for order in chain(*orders)]
    places = tuple(product([p.name for p in policies], arrivals, names if answers else [""]))
    if until.quantity:
        return Watch(until, frozenset((place, until.quantity) for place in places))
    if answers:
        further = (builds > 1) * len({place[:2] for place in places})
        expected = frozenset(product(places, (_ANSWERING,)))
        return Watch(until, expected, further_claims=further)
    deciding = (*_DECIDING, *_EVIDENCE) if evidence else _DECIDING
    expected = frozenset(product(places, deciding))
    return Watch(until, expected, frozenset(product(places, _OPTIONAL)))


def _is_decided(lower: float, upper: float) -> bool:
    """Whether a quantity is shown to differ from zero, or to lie within the margin of it."""
    return lower > 0 or upper < 0 or (lower >= -MARGIN and upper <= MARGIN)


def shuffle_cases(benchmark: Benchmark, seed: int) -> Benchmark:
    """Put the pools of a benchmark into an order that is drawn from the seed."""
    order = list(range(len(benchmark.cases)))
    random.Random(f"order of users {seed}").shuffle(order)  # noqa: S311 (a reproducible order)
    return choose_cases(benchmark, order)


def take_cases(benchmark: Benchmark, number: int) -> Benchmark:
    """Keep the first pools of a benchmark."""
    return choose_cases(benchmark, range(number))
