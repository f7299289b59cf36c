"""Results of a policy on a pool over all orders of an arrival model, with limits of shares.

A number of drawn orders that is fixed in advance has Clopper and Pearson's interval, whose coverage
is never below its nominal 95%. Where drawing stops as soon as the interval is narrow enough, that
guarantee would be lost by looking repeatedly; then Robbins' beta mixture is used: the likelihood
ratio of a uniform mixture of shares against the true one is a martingale with mean 1, which by
Ville's inequality passes 20 at *any* time with a probability of at most 1/20 (Robbins, Statistical
methods related to the law of the iterated logarithm, 1970; Howard, Ramdas, McAuliffe and Sekhon,
Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of Statistics 49, 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from routeprism.orders import Order

ALPHA = 0.05
"""One minus the coverage."""

_STEPS = 60
"""Halvings of the unit interval: past the last digit of a float."""


def _bisect_region(low: float, high: float, contains: Callable[[float], bool]) -> float:
    """Find where a region that holds at `high` begins."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if contains(middle):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=4096)
def _lower_tail(count: int, total: int) -> float:
    """Find the share under which that many or more have a probability of α/2."""
    import numpy as np

    terms = np.arange(count, total + 1)
    factorials = _log_factorials(total)
    ways = factorials[total] - factorials[terms] - factorials[total - terms]

    def likely(share: float) -> bool:
        logs = ways + terms * math.log(share) + (total - terms) * math.log1p(-share)
        return float(np.exp(logs).sum()) >= ALPHA / 2

    return _bisect_region(0.0, 1.0 - 2**-53, likely)


@lru_cache(maxsize=8)
def _log_factorials(total: int):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, total + 1)))))


def fixed_limits(count: int, total: int) -> tuple[float, float]:
    """Return Clopper and Pearson's 95% limits."""
    if total == 0:
        return 0.0, 1.0
    lower = _lower_tail(count, total) if count else 0.0
    upper = 1.0 - _lower_tail(total - count, total) if count < total else 1.0
    return lower, upper


def weighted_limits(share: float, effective: float) -> tuple[float, float]:
    """Return 95% limits of a share of weighted orders that are worth `effective` equal ones.

    Clopper and Pearson's limits of the whole numbers next to it, on the cautious side.
    """
    total = max(1, math.floor(effective))
    count = share * total
    return fixed_limits(math.floor(count), total)[0], fixed_limits(math.ceil(count), total)[1]


@lru_cache(maxsize=4096)
def anytime_limits(count: int, total: int) -> tuple[float, float]:
    """Return 95% limits that hold at every look at once."""
    if total == 0:
        return 0.0, 1.0
    rest = total - count
    mixture = math.lgamma(count + 1) + math.lgamma(rest + 1) - math.lgamma(total + 2)

    def contains(share: float) -> bool:
        against = (count * math.log(share) if count else 0.0) + (
            rest * math.log1p(-share) if rest else 0.0
        )
        return mixture - against < -math.log(ALPHA)

    peak = count / total
    lower = _bisect_region(0.0, peak, contains) if count else 0.0
    upper = 1.0 - _bisect_region(0.0, 1.0 - peak, lambda far: contains(1.0 - far)) if rest else 1.0
    return lower, upper


Method = Literal["enumerated", "merged", "replayed", "shared", "sampled"]
"""How it was found: every order at once, state by state, order by order, with shared beginnings, or
on drawn orders."""


@dataclass(frozen=True, slots=True)
class Share:
    """In how many orders something holds."""

    count: int
    total: int
    lower: float | None = None
    """The lower 95% limit; None where the share is exact."""
    upper: float | None = None

    @property
    def value(self) -> float:
        """The probability."""
        return self.count / self.total


@dataclass(frozen=True, slots=True)
class OrderFailure:
    """An order on which the policy raised an error."""

    order: Order
    index: int | None
    """Which draw of the arrival model it was; None where orders were not drawn."""
    message: str


@dataclass(frozen=True, slots=True)
class Building:
    """What it took to build orders that share their beginnings."""

    adds: int
    """How often a record was added to a memory."""
    planned: int
    """The most adds that were planned."""
    separate: int
    """The adds that building each order from the start would take."""
    covered: float | None
    """The share of the model's orders; None if they are too many to count."""
    shared: str
    """What orders share, in words; empty if each was built from the start."""
    merges: int
    """How many memories were found to equal another one with the same arrivals."""


@dataclass(frozen=True, slots=True)
class Landscape:
    """The distribution of retained sets."""

    policy: str
    arrival: str
    """The arrival model."""
    user: str
    ids: tuple[str, ...]
    """The pool's record ids, in source order."""
    method: Method
    orders: int
    """The number of orders of the model, or of drawn orders."""
    retained: Mapping[frozenset[str], int]
    """Retained set → in how many of the orders."""
    forward: frozenset[str]
    """What is retained when records arrive in source order."""
    reverse: frozenset[str] | None
    """What is retained in reverse order; None if the policy raised an error."""
    failed: int = 0
    """The number of orders that raised an error."""
    unavailable: int = 0
    """How many of them a memory system outside failed to build."""
    failures: tuple[OrderFailure, ...] = ()
    """Some of them."""
    chance: tuple[int, int] | None = None
    """For a policy that is not deterministic: in how many of how many orders a second build gave
    another memory."""
    stopped: bool = False
    """Whether drawing stopped at a requested half-width, so that limits hold at every look."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Cluster size → how many clusters over all orders; empty where clusters were not seen."""
    note: str = ""
    """Why orders were drawn and not all looked at; what else a reader should know."""
    examples: Mapping[frozenset[str], Order] = field(default_factory=dict)
    """Retained set → an order that was built and retains it; empty where none was built."""
    building: Building | None = None
    """What building took, where orders shared their beginnings."""
    weights: int = 0
    """The sum of the weights of drawn orders that do not count equally; 0 if they do."""
    effective: float = 0.0
    """The number of equally weighted orders that such orders are worth."""
    outcomes: Mapping[Hashable, int] = field(default_factory=dict)
    """Outcome → in how many of the orders; empty unless an outcome was asked for."""

    @property
    def exact(self) -> bool:
        """Whether every order of the model is in it."""
        return self.method != "sampled"

    @property
    def total(self) -> int:
        """The number of orders without an error, or the sum of their weights."""
        return self.weights or self.orders - self.failed

    def share(self, holds: Callable[[frozenset[str]], bool]) -> Share:
        """Count the orders whose retained set satisfies a condition."""
        return self._share(
            sum(weight for retained, weight in self.retained.items() if holds(retained))
        )

    def share_outcomes(self, holds: Callable[[Any], bool]) -> Share:
        """Count the orders whose outcome satisfies a condition."""
        return self._share(
            sum(weight for outcome, weight in self.outcomes.items() if holds(outcome))
        )

    def _share(self, count: int) -> Share:
        if self.exact:
            return Share(count, self.total)
        if self.weights:
            return Share(count, self.total, *weighted_limits(count / self.total, self.effective))
        limits = anytime_limits if self.stopped else fixed_limits
        return Share(count, self.total, *limits(count, self.total))

    @property
    def changed(self) -> Share:
        """In how many orders another set is retained than forward."""
        return self.share(lambda retained: retained != self.forward)

    def share_keeping(self, support: frozenset[str]) -> Share:
        """In how many orders at least one of these records is retained."""
        return self.share(lambda retained: bool(retained & support))

    def survival(self) -> tuple[tuple[str, int, Share], ...]:
        """Return each record, its source position and in how many orders it is retained."""
        return tuple(
            (record, position, self.share(lambda retained, record=record: record in retained))  # type: ignore[misc]
            for position, record in enumerate(self.ids)
        )

    def counts(self) -> Mapping[int, int]:
        """Return how many records are retained → in how many orders; for focal, clusters."""
        counts: dict[int, int] = {}
        for retained, weight in self.retained.items():
            counts[len(retained)] = counts.get(len(retained), 0) + weight
        return dict(sorted(counts.items()))
