"""What is said of a policy on a pool over all the orders of an arrival model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from routeprism.landscape._intervals import anytime_limits, fixed_limits
from routeprism.orders import Order

__all__ = ["Failure", "Landscape", "Method", "Share"]

Method = Literal["enumerated", "merged", "replayed", "sampled"]
"""How it was found: every order at once, state by state, order by order, or on drawn orders."""


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
class Failure:
    """An order on which the policy raised an error."""

    order: Order
    index: int | None
    """Which draw of the arrival model it was; None where orders were not drawn."""
    message: str


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
    """How many orders the model has, or how many were drawn."""
    retained: Mapping[frozenset[str], int]
    """Retained set → in how many of the orders."""
    forward: frozenset[str]
    """What is retained when records arrive in source order."""
    reverse: frozenset[str] | None
    """What is retained in reverse order; None where the policy raised an error."""
    failed: int = 0
    """How many of the orders raised an error."""
    failures: tuple[Failure, ...] = ()
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

    @property
    def exact(self) -> bool:
        """Whether every order of the model is in it."""
        return self.method != "sampled"

    @property
    def total(self) -> int:
        """How many orders gave a memory."""
        return self.orders - self.failed

    def share(self, holds: Callable[[frozenset[str]], bool]) -> Share:
        """Say in how many orders something holds of the retained set."""
        count = sum(weight for kept, weight in self.retained.items() if holds(kept))
        if self.exact:
            return Share(count, self.total)
        limits = anytime_limits if self.stopped else fixed_limits
        return Share(count, self.total, *limits(count, self.total))

    @property
    def changed(self) -> Share:
        """In how many orders another set is retained than forward."""
        return self.share(lambda kept: kept != self.forward)

    def kept(self, support: frozenset[str]) -> Share:
        """In how many orders at least one of these records is retained."""
        return self.share(lambda held: bool(held & support))

    def survival(self) -> tuple[tuple[str, int, Share], ...]:
        """Give each record, its source position and in how many orders it is retained."""
        return tuple(
            (record, position, self.share(lambda held, record=record: record in held))  # type: ignore[misc]
            for position, record in enumerate(self.ids)
        )

    def counts(self) -> Mapping[int, int]:
        """Give how many records are retained → in how many orders; for focal, clusters."""
        found: dict[int, int] = {}
        for kept, weight in self.retained.items():
            found[len(kept)] = found.get(len(kept), 0) + weight
        return dict(sorted(found.items()))
