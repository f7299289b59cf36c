"""Whether two label passes agree on what order did to the exposed support of a pair.

Passes may differ on records and still agree on the one thing that route claims depend on: did the
exposed support change between the routes, or not?
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path

from routeprism.answers import AnswerProgress
from routeprism.exhibits import Statement
from routeprism.experiments._collection import Asking
from routeprism.experiments._experiment import Experiment
from routeprism.experiments._rows import drawing
from routeprism.experiments._stages import AsksNobody, StageResult, Traced
from routeprism.experiments._strata import strata_of
from routeprism.experiments.statements import state_row
from routeprism.labels import (
    PREFIX,
    LabelledItem,
    LabelledItems,
    tabulate_readings,
    trace_items,
)
from routeprism.measures import Confusion, Estimate, agreement_estimate, kappa_estimate
from routeprism.orders import name_reference
from routeprism.policies import interface_of
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Rows, StoredRun

ARM = "support-change"
LABELS = ("changed", "preserved")

Place = tuple[str, str, str, str, str]
"""Policy, schedule, the two label sources, mask."""


def passes_of(benchmark: Benchmark) -> tuple[str, ...]:
    """Return the label sources that are passes over cards."""
    return tuple(source for source in benchmark.labels if source.startswith(PREFIX))


@dataclass(frozen=True, slots=True)
class SupportChangeAgreement(AsksNobody):
    """Compares label passes two by two, pair of routes by pair of routes. It asks no model."""

    def described(self) -> Mapping[str, object]:
        """Return nothing: labels are part of the benchmark's fingerprint."""
        return {}

    def perform(self, traced: Traced, progress: AnswerProgress | None) -> StageResult:
        """Count agreement per unit, then estimate it and its κ."""
        units: dict[Place, list[Confusion]] = {}
        with traced.run.read() as stored:
            for unit in _units(traced, stored):
                for place, pairs in unit.items():
                    units.setdefault(place, []).append(Confusion.of(pairs, LABELS))
        rows = [row for place, several in units.items() for row in _rows(traced, place, several)]
        return StageResult(rows, tuple(_statements(rows)))


def _units(traced: Traced, stored: StoredRun) -> Iterator[dict[Place, list[tuple[str, str]]]]:
    """Yield for each pool the labels that two passes gave to every pair that both have read."""
    sources = passes_of(traced.benchmark)
    for case in traced.benchmark.cases:
        pairs: dict[Place, list[tuple[str, str]]] = {}
        strata = strata_of(case, traced.masks).places.items()
        masks = {mask: set(places) for (stratum, mask), places in strata if stratum == "all"}
        routes = product(traced.policies, enumerate(case.questions), traced.schedules)
        for policy, (at, question), schedule in routes:
            exposed = (
                stored.exposure(policy.name, interface_of(policy), name, question.id).sources
                for name in (name_reference(schedule.name), schedule.name)
            )
            changes = _label_changes(question.labels, sources, *exposed)
            for first, second in combinations(changes, 2):
                for mask in (mask for mask, places in masks.items() if at in places):
                    place = (policy.name, schedule.name, first, second, mask)
                    pairs.setdefault(place, []).append((changes[first], changes[second]))
        stored.clear_texts()
        yield pairs


def _label_changes(
    labels: Mapping[str, frozenset[str]],
    sources: Iterable[str],
    forward: frozenset[str],
    route: frozenset[str],
) -> dict[str, str]:
    """Label whether the exposed support of a question changed, by each source that has read it."""
    return {
        source: LABELS[forward & support == route & support]
        for source in sources
        if (support := labels.get(source)) is not None
    }


def _rows(traced: Traced, place: Place, units: Sequence[Confusion]) -> Iterator[EstimateRow]:
    policy, schedule, first_pass, second_pass, mask = place
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
            labels=f"{first_pass}~{second_pass}",
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


def _statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    plain = Rows.of(rows).where(mask="")
    for row in plain.where(quantity="agreement"):
        kappa = plain.one("kappa", policy=row.policy, schedule=row.schedule, labels=row.labels)
        yield state_row(
            "agreement",
            row,
            "{passes} agree on whether the exposed support changed in {row} of {pairs} pairs "
            "(κ = {kappa})",
            passes=" and ".join(row.labels.split("~")),
            pairs=str(row.queries),
            kappa=kappa,
        )


def _list_changes(
    run: Path, stored: StoredRun, row: EstimateRow, questions: Collection[str]
) -> LabelledItems:
    """List whether the exposed support of every question changed, by either label source."""
    routes = [
        stored.sources(row.policy, row.interface, schedule)
        for schedule in (name_reference(row.schedule), row.schedule)
    ]
    items = []
    for question in stored.questions().values():
        if question.id in questions:
            exposed = (sources[question.id] for sources in routes)
            labels = _label_changes(question.labels, row.labels.split("~"), *exposed)
            if len(labels) == 2:
                items.append(LabelledItem(question.user, question.id, question.id, labels))
    return LabelledItems(tuple(items), LABELS)


def _list_readings(
    run: Path, stored: StoredRun, row: EstimateRow, questions: Collection[str]
) -> LabelledItems:
    return trace_items(run, row, stored.questions(), questions)


def _stage(
    settings: None, asking: Asking | None, benchmark: Benchmark
) -> SupportChangeAgreement | None:
    return SupportChangeAgreement() if len(passes_of(benchmark)) > 1 else None


experiment = Experiment(
    name="agreement",
    title="Agreement of label passes",
    summary="Compare label passes on whether the exposed support changed.",
    commands=("audit", "restore"),
    rank=10,
    stage=_stage,
    columns=("support",),
    row_filter=lambda row: row.arm == ARM,
    items_behind=_list_changes,
    tables=lambda results: (),  # its numbers are in the sentences and in the table of all estimates
    charts=lambda results: (),
)

readings = Experiment(
    name="readings",
    title="Agreement",
    summary="Compare the labels of several passes, and list what they admit.",
    commands=("screen", "support"),
    rank=80,
    columns=("screen", "support"),
    row_filter=lambda row: not row.policy,
    items_behind=_list_readings,
    tables=tabulate_readings,
    charts=lambda results: (),
)
