"""Whether two label passes agree on what order did to the exposed support of a pair.

Passes may differ on records and still agree on the one thing that route claims rest on: did the
exposed support change between the routes, or not?
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from routeprism.experiments._plans import interface_of
from routeprism.experiments._rows import drawing
from routeprism.experiments._sentences import interval, said_flags
from routeprism.experiments._stages import Asked, AsksNobody, Found, Traced
from routeprism.experiments._strata import strata_of
from routeprism.measures import Confusion, Estimate, agreement_estimate, kappa_estimate
from routeprism.orders import FORWARD
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Stored
from routeprism.support._labels import PREFIX

__all__ = ["ARM", "LABELS", "SupportChangeAgreement", "passes_of"]

ARM = "support-change"
LABELS = ("changed", "preserved")

Place = tuple[str, str, str, str, str]
"""Policy, schedule, the two label sources, mask."""


def passes_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Give the label sources that are passes over cards."""
    return tuple(source for source in benchmark.labels if source.startswith(PREFIX))


@dataclass(frozen=True, slots=True)
class SupportChangeAgreement(AsksNobody):
    """Compares label passes two by two, pair of routes by pair of routes. It asks nobody."""

    def described(self) -> Mapping[str, object]:
        """Labels are part of the benchmark's fingerprint; there is nothing else to say."""
        return {}

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Count agreement per unit, then estimate it and its κ."""
        units: dict[Place, list[Confusion]] = {}
        with Stored(traced.run.directory) as stored:
            for found in _units(traced, stored):
                for place, pairs in found.items():
                    units.setdefault(place, []).append(Confusion.of(pairs, LABELS))
        rows = [row for place, several in units.items() for row in _rows(traced, place, several)]
        return Found(rows, _sentences(rows))


def _units(traced: Traced, stored: Stored) -> Iterator[dict[Place, list[tuple[str, str]]]]:
    """Give, pool by pool, what two passes say of every pair that both have read."""
    sources = passes_of(traced.benchmark)
    for case in traced.benchmark.cases:
        found: dict[Place, list[tuple[str, str]]] = {}
        strata = strata_of(case, traced.masks).places.items()
        masks = {mask: set(places) for (stratum, mask), places in strata if stratum == "all"}
        for policy in traced.policies:
            interface = interface_of(policy)
            for at, question in enumerate(case.questions):
                forward = stored.shown(policy.name, interface, FORWARD.name, question.id).sources
                for schedule in traced.schedules:
                    route = stored.shown(policy.name, interface, schedule.name, question.id).sources
                    said = {
                        source: LABELS[forward & support == route & support]
                        for source in sources
                        if (support := question.labels.get(source)) is not None
                    }
                    for one, other in combinations(said, 2):
                        for mask, places in masks.items():
                            if at in places:
                                place = (policy.name, schedule.name, one, other, mask)
                                found.setdefault(place, []).append((said[one], said[other]))
        stored.forget()
        yield found


def _rows(traced: Traced, place: Place, units: Sequence[Confusion]) -> Iterator[EstimateRow]:
    policy, schedule, one, other, mask = place
    setting = traced.setting
    whole = units[0]
    for unit in units[1:]:
        whole += unit

    def row(quantity: str, value: float | None, estimate: Estimate | None = None) -> EstimateRow:
        flags = ["synthetic"] if traced.benchmark.synthetic else []
        flags.extend(estimate.warnings if estimate else ())
        return EstimateRow(
            experiment="support",
            benchmark=traced.benchmark.name,
            policy=policy,
            interface=setting.interfaces.get(policy, ""),
            schedule=schedule,
            arm=ARM,
            labels=f"{one}~{other}",
            mask=mask,
            quantity=quantity,
            estimate=value,
            lower=estimate.lower if estimate else None,
            upper=estimate.upper if estimate else None,
            queries=whole.total,
            units=len(units),
            unit=traced.benchmark.unit,
            seed=setting.seed if estimate else None,
            flags=";".join(flags),
        )

    settings = drawing(setting)
    agreed = agreement_estimate([(unit.agreed, unit.total) for unit in units], **settings)
    kappa = kappa_estimate(units, **settings)
    yield row("agreement", agreed.value if agreed else None, agreed)
    yield row("kappa", kappa.value if kappa else None, kappa)
    for first, counts in zip(LABELS, whole.counts, strict=True):
        for second, number in zip(LABELS, counts, strict=True):
            yield row(f"count.{first}~{second}", float(number))


def _sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    said = []
    plain = [row for row in rows if not row.mask]
    kappas = {
        (row.policy, row.schedule, row.labels): row for row in plain if row.quantity == "kappa"
    }
    for row in plain:
        if row.quantity == "agreement":
            kappa = kappas[row.policy, row.schedule, row.labels]
            said.append(
                f"{row.policy}, {row.schedule}: {' and '.join(row.labels.split('~'))} agree on "
                f"whether the exposed support changed in {interval(row)} of {row.queries} pairs "
                f"(κ = {interval(kappa)}){said_flags(row)}"
            )
    return tuple(said)
