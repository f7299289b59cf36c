"""What is done with every case of a benchmark: policies, schedules, contrasts, labels."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from routeprism.experiments._strata import Masks
from routeprism.measures import COORDINATES, Coordinate, retention_coordinates
from routeprism.orders import Schedule
from routeprism.policies import Policy, innermost
from routeprism.records import Benchmark
from routeprism.routes import CrossFit, Pair
from routeprism.runs import Finding

__all__ = ["Contrast", "Plan", "coordinates_of", "interface_of"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A signed sum over policies, taken question by question."""

    experiment: str
    prefix: str
    """`Gamma`, `delta_op` or `interaction`."""
    policy: str
    """The policy that the row is listed under."""
    arm: str
    terms: tuple[tuple[int, str], ...]
    """(sign, policy name)."""

    def finding(self, interface: str) -> Finding:
        """Keep what it is made of, so that its numbers can be traced."""
        value = {
            "experiment": self.experiment,
            "quantity": self.prefix,
            "policy": self.policy,
            "arm": self.arm,
            "terms": [list(term) for term in self.terms],
        }
        name = f"{self.experiment}:{self.prefix}:{self.arm}"
        return Finding(name=name, value=value, policy=self.policy, interface=interface)


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a process needs to work on any case of a benchmark."""

    benchmark: Benchmark
    policies: tuple[Policy, ...]
    schedules: tuple[Schedule, ...]
    labels: str
    """The label source that retention is read from; empty for none."""
    contrasts: tuple[Contrast, ...]
    ties: bool
    store: bool
    masks: Masks = field(default_factory=dict)
    fits: CrossFit | None = None
    """The policies as they are used on each user, where some have to learn from others first."""
    states: Path | None = None
    """The store with snapshots of memories that are not to be built again."""
    over_time: bool = False
    """Whether to look at every pool as it grows, too."""
    kept: Path | None = None
    """The run whose routes of memory systems outside are not to be traced again."""
    builds: int = 1
    """How often each route is built."""
    values: Collection[str] = ()
    """Quantities whose values are handed on although no traces are kept."""

    def __call__(self) -> Plan:
        """Set a process up: it needs the plan itself."""
        return self

    def policies_for(self, user: str) -> tuple[Policy, ...]:
        """Give the policies as they are used on one user."""
        return self.policies if self.fits is None else self.fits.for_user(user)

    @property
    def coordinates(self) -> tuple[tuple[str, str, Coordinate[Pair]], ...]:
        """Give (experiment, label source, coordinate) for everything that is observed."""
        return coordinates_of(self.labels)


@lru_cache(maxsize=8)
def coordinates_of(labels: str) -> tuple[tuple[str, str, Coordinate[Pair]], ...]:
    traced = tuple(("routes", "", coordinate) for coordinate in COORDINATES)
    if not labels:
        return traced
    return (*traced, *(("retention", labels, one) for one in retention_coordinates(labels)))


def interface_of(policy: Policy) -> str:
    """Name the interface a policy exposes through; `own` where it compiles its own context."""
    interface = getattr(innermost(policy), "interface", None)
    return str(interface.name) if interface is not None else "own"
