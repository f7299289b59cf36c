"""Provenance instructions: does saying how to treat conflicts change the answers? (F.6, E.1).

All arms show the records in order of arrival, so that routes with the same sources differ in text
(Appendices D.6, F.6).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from routeprism.errors import SpecError
from routeprism.exhibits import Chart, Results, Statement, Table, name_chart, read_limits
from routeprism.experiments._answer_rows import (
    AnswerRows,
    chart_arms,
    list_answer_rows,
    read_cells,
    tabulate_arms,
    title_place,
)
from routeprism.experiments._collection import Asking
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerSelection, Experiment, sides_read
from routeprism.experiments._options import ProvenanceSettings
from routeprism.experiments._profiles import (
    PoolAnswers,
    Profile,
    make_profile,
    pair_sides,
)
from routeprism.experiments._route_comparisons import compare_routes, hides_arrival
from routeprism.experiments._route_values import enter_same_sources
from routeprism.experiments._rows import estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments.answers import fixed_source_statements, instructions_of
from routeprism.experiments.statements import Phrase, compose_rows, join_phrases
from routeprism.judge import describe_floor, is_at_floor
from routeprism.orders import describe_arrival, locate_base, name_base
from routeprism.prompts import Provenance
from routeprism.quantities import find_quantity
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, StoredRun

"""By how much accuracy may be worse and still pass for not worse (Appendix F.6)."""
CONTRASTS: tuple[tuple[Provenance, Provenance], ...] = (
    ("gated", "preserved"),
    ("neutral", "preserved"),
    ("placebo", "preserved"),
    ("gated", "neutral"),
    ("gated", "placebo"),
    ("neutral", "placebo"),
)
"""The paired differences between instructions, first minus second."""


def _compare(
    arms: tuple[Provenance, ...], traced: Traced, asking: Asking, case: Case, stored: StoredRun
) -> CaseComparisons:
    own = asking.manner
    pairs = [
        pair
        for arm in arms
        for policy in traced.policies
        for pair in compare_routes(
            case,
            stored,
            [policy],
            traced.schedules,
            replace(own, provenance=arm),
            # The plain routes ask the first arm where they show records as they arrived.
            condition="" if arm == own.provenance and not hides_arrival(policy) else arm,
            by_arrival=True,
        )
    ]
    return CaseComparisons(case, pairs)


def _enter(arms: tuple[Provenance, ...], pool: PoolAnswers) -> None:
    own = pool.asking.manner.provenance
    grouped = pool.group()
    routes = list(dict.fromkeys((policy, schedule) for policy, schedule, _ in grouped))
    for template, fillers, answers in pool.make_sheets("routes"):
        for policy, schedule in routes:
            sheet = template.at(policy=policy, schedule=schedule)
            profiles: dict[Provenance, Profile] = {}
            for arm in arms:
                plain = arm == own and (policy, schedule, "") in grouped
                comparisons = grouped[policy, schedule, "" if plain else arm]
                pairs = pool.select(comparisons, fillers)
                profile = profiles[arm] = make_profile(pairs, pair_sides(pairs, answers))
                sheet.at(arm=arm).put_all(profile)
                enter_same_sources(sheet.at(arm=arm), pairs, profile)
            for first, second in CONTRASTS:
                if first in profiles and second in profiles:
                    gaps = sheet.at(arm=f"{first}-{second}")
                    gaps.put_gaps(profiles[first], profiles[second])


def _finish(margin: float, collection: Gathered) -> StageResult:
    unmatched = collection.list_reasons(
        "provenance: {number} pairs could not be matched and are in no estimate: {reason}"
    )
    rows = estimate_rows(collection.tally, collection.setting)
    return collection.conclude("provenance", rows, partial(_describe, margin), unmatched)


def _describe(margin: float, rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe for every two instructions what the first changes, and whether it costs accuracy."""
    for answers in list_answer_rows(rows, "routes"):
        for first, second in CONTRASTS:
            gaps = {
                find_quantity(quantity).base.name: row
                for (arm, mask, quantity), row in answers.rows.items()
                if arm == f"{first}-{second}" and not mask
            }
            changes = [
                compose_rows("{name} {value}", name=name, value=gaps[name])
                for name in ("H", "D_res", "Delta_rep")
                if name in gaps
            ]
            if not changes:
                continue
            costs = _describe_costs(answers, gaps, first, second, margin)
            yield answers.state(
                "provenance",
                gaps["H"] if "H" in gaps else gaps["Delta_rep"],
                "{first} minus {second}: {text} ({row:size})",
                first=first,
                second=second,
                text=join_phrases([join_phrases(changes, ", "), *costs]),
            )
    yield from fixed_source_statements(rows)


def _describe_costs(
    answers: AnswerRows, gaps: Mapping[str, EstimateRow], first: str, second: str, margin: float
) -> Iterator[Phrase]:
    """Describe whether the first instruction costs accuracy on either route."""
    pair = (answers.find("Delta_rep", arm) for arm in (first, second))
    floor = [row for row in pair if row is not None and is_at_floor(row)]
    if len(floor) == 2:
        yield (describe_floor(floor[0]),)
        return
    base, arrival = locate_base([answers.schedule]), describe_arrival(answers.schedule)
    for side, where in (("forward", base), ("route", f"under {arrival}")):
        row = gaps.get(f"accuracy.{side}")
        if row is None:
            continue
        accuracy = compose_rows("accuracy {where} {value}", where=where, value=row)
        verdict = f", which allows no conclusion about the margin of {margin:g}"
        if row.lower is not None:
            how = "is shown" if row.lower > -margin else "is not shown"
            verdict = f": that {first} is at most {margin:g} worse than {second} {how}"
        yield (*accuracy, verdict)


_INSTRUCTIONS = ("preserved", "gated", "neutral", "placebo")


def _name_contrasts(results: Results) -> dict[str, str]:
    """Name the contrasts between instructions that a run has."""
    contrasts = {f"{a}-{b}" for a in _INSTRUCTIONS for b in _INSTRUCTIONS}
    arms = results.rows.where(experiment="routes", arm=contrasts).values("arm")
    return {arm: arm.replace("-", " − ") for arm in arms}


def _tabulate(results: Results) -> list[Table]:
    """Show the answers under each instruction about conflicting records."""
    return tabulate_arms(
        "instructions",
        {**{arm: arm for arm in _INSTRUCTIONS}, **_name_contrasts(results)},
        "Does an instruction repair it?",
        "The same records, in order of arrival, under different instructions about conflicting "
        "records, and the paired differences between instructions.",
        results,
        of="routes",
    )


def _chart(results: Results) -> list[Chart]:
    """Draw accuracy under each instruction, and the differences between instructions."""
    contrasts = _name_contrasts(results)
    if not contrasts:
        return []
    charts = []
    rows = results.rows.where(experiment="routes")
    for place, group in read_cells(rows, {arm: arm for arm in _INSTRUCTIONS}).items():
        sides = {
            name_base([place[1]]): "accuracy.forward",
            describe_arrival(place[1]): "accuracy.route",
        }
        values: list[dict[str, Any]] = [
            {"label": arm, "side": side, **read_limits(row)}
            for arm in _INSTRUCTIONS
            for side, quantity in sides.items()
            if (row := group.get((arm, quantity)))
        ]
        words = "; ".join(f"{v['label']}, {v['side']} {v['estimate']:.3f}" for v in values)
        if values:
            charts.append(
                Chart(
                    f"instructions-{name_chart(*place)}",
                    f"{title_place(place)}: accuracy under each instruction",
                    f"Accuracy on both routes: {words}.",
                    "pairs",
                    tuple(values),
                )
            )
    chart = partial(chart_arms, "instruction-contrasts", contrasts, ("D_res", "H"))
    return [*charts, *chart("change of {}", results, of="routes")]


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    own = configuration["provenance"]
    names = instructions_of(row.arm)
    # The plain routes are the first arm where they show records in order of arrival.
    arms = tuple("" if name == own and own not in conditions else name for name in names)
    return AnswerSelection("routes", sides_read(row), arms)


def _stage(
    settings: ProvenanceSettings, asking: Asking | None, benchmark: Benchmark
) -> ComparisonStage | None:
    if not 0 < settings.margin < 1:
        raise SpecError(f"Expected a margin between 0 and 1 but got margin={settings.margin}")
    if asking is None or len(asking.instructions) < 2:
        return None
    arms, margin = asking.instructions, settings.margin
    return ComparisonStage(
        "routes",
        asking,
        partial(_compare, arms),
        partial(_enter, arms),
        partial(_finish, margin),
        {"provenance_arms": list(arms), "margin": margin},
    )


experiment = Experiment(
    name="provenance",
    title="Instructions about conflicting records",
    summary="Ask the same routes under several instructions about conflicting records.",
    rank=30,
    settings=ProvenanceSettings,
    stage=_stage,
    columns=("routes",),
    row_filter=lambda row: bool(row.model and instructions_of(row.arm)),
    answers="routes",
    configuration=("provenance_arms",),
    growing=("provenance_arms", "margin"),
    tables=_tabulate,
    charts=_chart,
    answers_behind=_answers_behind,
)
