"""What a study is about, and how its estimates are computed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from routeprism.errors import SpecError, nearest
from routeprism.experiments._experiment import list_own_masks
from routeprism.experiments._rows import Setting
from routeprism.experiments._strata import Masks
from routeprism.experiments._until import Until
from routeprism.measures import RESAMPLES, Interval, check_bootstrap, chosen_interval, limits_said
from routeprism.orders import FORWARD, ArrivalModel, Schedule
from routeprism.policies import (
    Policy,
    builder_model,
    interface_of,
    own_source,
    uses_scripted_model,
)
from routeprism.records import Benchmark

SEED = 20260910
"""The default bootstrap seed."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is studied: memories, on the records and questions of a benchmark."""

    benchmark: Benchmark
    policies: Sequence[Policy]
    schedules: Sequence[Schedule] = ()
    kinds: Sequence[str] = ()
    """The kinds of question that the benchmark was narrowed to."""
    labels: str | None = None
    """The label source that support is read from; None for the benchmark's first."""
    masks: Masks = field(default_factory=dict)
    arrivals: Sequence[ArrivalModel] = ()
    """Arrival models whose expectations are estimated beside the schedules."""
    notes: Sequence[str] = ()
    """What a reader should know about the choice of orders."""

    def check(self) -> Subject:
        """Refuse what cannot be studied; give each policy and schedule once, and the labels."""
        return replace(
            self,
            policies=_take_distinct(self.policies),
            schedules=tuple(dict.fromkeys(s for s in self.schedules if s.name != FORWARD.name)),
            labels=_label_source(self.benchmark, self.labels),
            masks=_check_masks(self.masks),
            notes=(*self.notes, *map(_explain_script, self.scripted)),
        )

    @property
    def support(self) -> str:
        """The label source by name; empty for none."""
        return self.labels or ""

    @property
    def updates(self) -> str:
        """The label source of outdated evidence: that of support where it has some."""
        sources = self.benchmark.updates
        return self.support if self.support in sources else next(iter(sources), "")

    @property
    def names(self) -> list[str]:
        """The names of the policies."""
        return [policy.name for policy in self.policies]

    @property
    def scripted(self) -> list[str]:
        """The names of the policies whose memories the scripted model builds."""
        return [policy.name for policy in self.policies if uses_scripted_model(policy)]

    def describe(self) -> dict[str, object]:
        """Return what makes results comparable, for the manifest."""
        return {
            **describe_benchmark(self.benchmark),
            "synthetic": self.benchmark.synthetic,
            "policies": self.names,
            "sources": {p.name: source for p in self.policies if (source := own_source(p))},
            "interfaces": [interface_of(policy) for policy in self.policies],
            "kinds": sorted(self.kinds),
            "labels": self.support,
            **({"scripted": self.scripted} if self.scripted else {}),
        }

    def digest_masks(self) -> dict[str, str]:
        """Return the digest of each mask's question ids."""
        return {
            name: hashlib.sha256("\n".join(sorted(ids)).encode()).hexdigest()
            for name, ids in self.masks.items()
        }


def describe_benchmark(benchmark: Benchmark) -> dict[str, object]:
    """Return what makes results on a benchmark comparable, for the manifest."""
    names = ("fingerprint", "unit", "weighting")
    return {"benchmark": benchmark.name, **{name: getattr(benchmark, name) for name in names}}


def _take_distinct(policies: Sequence[Policy]) -> tuple[Policy, ...]:
    """Take each policy once; refuse two of the same name."""
    by_name: dict[str, Policy] = {}
    for policy in policies:
        if by_name.setdefault(policy.name, policy) != policy:
            raise SpecError(f"two different policies are called '{policy.name}'")
    return tuple(by_name.values())


def _label_source(benchmark: Benchmark, labels: str | None) -> str:
    """Return the label source to read; the benchmark's first unless named."""
    if labels is None:
        return benchmark.labels[0] if benchmark.labels else ""
    if labels not in benchmark.labels:
        raise SpecError(
            f"benchmark '{benchmark.name}' has no labels '{labels}'. "
            + (nearest(labels, benchmark.labels) or "It has none.")
        )
    return labels


def _check_masks(masks: Masks) -> Masks:
    """Refuse masks whose names or ids cannot be used."""
    for name in masks:
        if not name or name in list_own_masks() or name.startswith("outside-"):
            raise SpecError(f"a mask cannot be called {name!r}")
        if ":" in name:
            raise SpecError(f"Expected a mask's name without ':' but got {name!r}")
    for name, ids in masks.items():
        if isinstance(ids, str):
            raise SpecError(f"Expected question ids for mask '{name}' but got the text {ids!r:.60}")
    return {name: frozenset(ids) for name, ids in masks.items()}


@dataclass(frozen=True, slots=True)
class Statistics:
    """How estimates are computed."""

    seed: int = SEED
    resamples: int = RESAMPLES
    interval: Interval | None = None
    """How limits are read from the resamples; None for the benchmark's own kind."""
    until: Until | None = None
    """The statement at which the study stops; None to use all units."""

    def setting(self, subject: Subject, policies: Sequence[Policy], **details: Any) -> Setting:
        """Return what all rows of a study share; `details` are further fields of `Setting`."""
        built_in = {
            policy.name
            for policy in policies
            if (model := builder_model(policy)) is not None and model.embedded
        }
        return Setting(
            subject.benchmark,
            {policy.name: interface_of(policy) for policy in policies},
            self.seed,
            self._interval(subject.benchmark),
            self.resamples,
            embedded=built_in,
            scripted={policy.name for policy in policies if uses_scripted_model(policy)},
            is_sequential=self.until is not None,
            **details,
        )

    def check(self, benchmark: Benchmark) -> Statistics:
        """Refuse numbers that give no interval; choose how limits are read."""
        check_bootstrap(self.seed, self.resamples)
        unequal = benchmark.weighting == "question" and benchmark.unit != "question"
        if self.until is not None and unequal:
            raise SpecError(
                f"until does not apply to '{benchmark.name}': it weighs questions equally and "
                f"resamples {benchmark.unit}s, and stopping requires units with equal weights"
            )
        return replace(self, interval=self._interval(benchmark))

    def _interval(self, benchmark: Benchmark) -> Interval:
        return chosen_interval(self.interval, benchmark.interval)

    def describe(self) -> dict[str, object]:
        """Return what makes results comparable, for the manifest."""
        fixed = {name: getattr(self, name) for name in ("seed", "resamples", "interval")}
        return fixed if self.until is None else {**fixed, "until": self.until.text}

    def explain_limits(self, benchmark: Benchmark) -> str:
        """Describe in words how the limits of the rows were read."""
        return limits_said(self._interval(benchmark), benchmark.interval)


def _explain_script(policy: str) -> str:
    return (
        f"The scripted model built the memories of {policy}. It follows fixed rules and is not a "
        f"language model: its numbers show how the system adds, updates and deletes in each order, "
        f"not what a language model would decide"
    )
