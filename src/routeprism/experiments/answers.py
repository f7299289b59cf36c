"""The answer boundary of an audit: ask every pair of routes, and estimate what the answers do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, get_args

from routeprism.exhibits import (
    Chart,
    Results,
    Severity,
    Statement,
    Table,
    draw_forest,
    format_row,
    make_table,
    name_chart,
    shorten,
)
from routeprism.experiments._answer_rows import (
    PLACE,
    SYMBOLS,
    AnswerRows,
    list_answer_rows,
    title_place,
)
from routeprism.experiments._collection import Asking, leave_out_silent
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerSelection, Experiment, place_route, sides_read
from routeprism.experiments._route_comparisons import compare_routes
from routeprism.experiments._route_values import MAIN, enter_answers
from routeprism.experiments._rows import Group, difference_rows, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import DISTINCT
from routeprism.experiments.layers import draw_profile
from routeprism.experiments.statements import Phrase, compose_rows, describe_residual, join_phrases
from routeprism.judge import describe_doubt, describe_floor, describe_unreadable, is_at_floor
from routeprism.orders import describe_arrival, locate_base
from routeprism.prompts import Provenance
from routeprism.records import Case
from routeprism.runs import EstimateRow, Rows, StoredRun

GROUPS = (
    Group("dispatch", "forward-first", "route-first", union="count.forward_first"),
    Group("changed-preserved", "support-changed", "support-preserved", left_out=MAIN),
)
"""Groups of questions that are compared within units: by dispatch order, by change of support."""
_NO_ANSWER = ("count.no_answer.forward", "count.no_answer.route")
"""Counts of answers that cannot be read, which have no row where there are none."""
_REPLICATION = "replication"


def _compare(traced: Traced, asking: Asking, case: Case, stored: StoredRun) -> CaseComparisons:
    routes = traced.policies, traced.schedules
    return CaseComparisons(case, list(compare_routes(case, stored, *routes, asking.manner)))


def _finish(collection: Gathered) -> StageResult:
    duplicates = collection.has_duplicate_options
    options = {"left_out": MAIN, "by_question": MAIN}
    rows = [
        row
        for row in estimate_rows(collection.tally, collection.setting, is_tested=True, **options)
        if duplicates or not row.mask.endswith(DISTINCT)  # else it repeats the plain rows
        if row.estimate or row.quantity not in _NO_ANSWER
    ]
    rows += difference_rows(collection.tally, collection.setting, GROUPS)
    unmatched = collection.list_reasons(
        "{number} pairs could not be matched and are in no matched estimate: {reason}"
    )
    readable, _ = leave_out_silent(rows, collection.outcomes, "routes")
    fixed = tuple(fixed_source_statements(readable))
    return StageResult(
        rows,
        notes=(*unmatched, *collection.notes),
        describe=lambda every, _: (*answer_statements(every), *fixed),
    )


def ask_routes(asking: Asking) -> ComparisonStage:
    """Make the stage that asks every question on both routes of every pair."""
    return ComparisonStage("routes", asking, _compare, enter_answers, _finish)


def instructions_of(arm: str) -> tuple[str, ...]:
    """Name the instructions of an arm: one, or two that are compared; empty for another arm."""
    names = tuple(arm.split("-"))
    return names if len(names) <= 2 and set(names) <= set(get_args(Provenance)) else ()


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    earlier = configuration["batches"][:1] if row.experiment == _REPLICATION else ()
    return AnswerSelection("routes", sides_read(row), ("",), (row.batch, *earlier))


def answer_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe for each policy, schedule and model what answers do beyond the model's noise."""
    for answers in list_answer_rows(rows, "routes"):
        change, residual, differ = map(answers.find, ("Delta_rep", "D_res", "H"))
        first = answers.find("accuracy.forward") or differ
        if first is None:
            continue
        if unreadable := describe_unreadable(
            answers.find, f"under {describe_arrival(answers.schedule)}"
        ):
            yield answers.state("answers", first, "{text}", "warning", text=unreadable)
            continue
        claimed = change is not None and answers.is_shown(change)
        beyond = residual is not None and answers.is_shown(residual)
        phrases = []
        if residual is not None:
            verdict = describe_residual(residual, established=beyond, moved=claimed)
            phrases.append(
                compose_rows("{verdict} (D_res = {value})", verdict=verdict, value=residual)
            )
        elif differ is not None:
            phrases.append(
                compose_rows("answers differ in {value} of pairs (one draw)", value=differ)
            )
        if change is not None:
            phrases.append(_describe_accuracy(answers, change))
        if claimed:  # what is shown comes before what is not
            phrases.reverse()
        severity: Severity = "problem" if claimed or beyond else "info"
        yield answers.state("answers", first, "{text}", severity, text=join_phrases(phrases))


def _describe_accuracy(answers: AnswerRows, change: EstimateRow) -> Phrase:
    before, after = (answers.rows["", "", f"accuracy.{side}"] for side in ("forward", "route"))
    doubt = describe_doubt(change)
    return compose_rows(
        "accuracy {before:value} {base}, {after:value} under {arrival} ({change}){floor}{doubt}",
        before=before,
        after=after,
        base=locate_base([answers.schedule]),
        arrival=describe_arrival(answers.schedule),
        change=change,
        floor=f": {describe_floor(change)}" if is_at_floor(change) else "",
        doubt=f": {doubt}" if doubt and not answers.is_shown(change) else "",
    )


def fixed_source_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe answers where both routes show the same sources in a different text."""
    for answers in list_answer_rows(rows, "routes"):
        for (arm, mask, quantity), row in answers.rows.items():
            if mask != "fixed-source" or quantity != answers.choose_measure(arm, mask):
                continue
            names = (quantity, *(n for n in ("D_correct", "Delta_rep") if n != quantity))
            values = [
                compose_rows("{name} = {value}", name=name, value=estimate)
                for name in names
                if (estimate := answers.find(name, arm, mask)) is not None
            ]
            yield answers.state(
                "fixed-source",
                row,
                "{arm}where sources agree and texts differ ({row:size}), {values}",
                arm=f"under {arm}, " if arm else "",
                values=join_phrases(values, ", "),
            )


_TRANSITIONS = {
    "CC": "right on both",
    "CI": "right, then wrong",
    "IC": "wrong, then right",
    "II": "wrong on both",
}


def _tabulate_answers(results: Results) -> list[Table]:
    """Show what the answers did on both routes."""
    quantities = (*SYMBOLS, "accuracy.forward", "accuracy.route")
    cells = []
    groups = results.rows.where(experiment="routes", arm="").group(*PLACE)
    for place, group in groups.items():
        values = [format_row(group.get(quantity)) for quantity in quantities]
        moves = [format_row(group.get(f"count.transition.{way}")) for way in _TRANSITIONS]
        if place[2] and any(map(str, values)):
            cells.append((*place, *values, *moves))
    return make_table(
        "answers",
        "What the answers do",
        "H: first answers differ. Δ: change of correctness. D_res: disagreement beyond the "
        "model's own sampling. Δ_rep: change of accuracy over all draws. The last columns count "
        "first answers, in source order and then in the other order: C correct, I incorrect.",
        (
            *PLACE,
            *SYMBOLS.values(),
            "accuracy, forward",
            "accuracy, other order",
            *_TRANSITIONS,
        ),
        cells,
        names=3,
    )


def _chart_answers(results: Results) -> list[Chart]:
    """Draw transitions, disagreement unit by unit, and pairs that show the same records."""
    rows = results.rows.where(experiment="routes")
    return [
        *_chart_transitions(rows),
        *draw_profile(results, rows, "profile-H", "Answers differ (H)", "H"),
        *draw_profile(results, rows, "profile-Delta", "Change of correctness (Δ)", "Delta"),
        *_chart_fixed_source(rows),
    ]


def _chart_transitions(rows: Rows) -> Iterator[Chart]:
    values: list[dict[str, Any]] = []
    described = []
    for place, group in rows.where(arm="").group(*PLACE).items():
        counts = {
            words: group[f"count.transition.{way}"].estimate or 0.0
            for way, words in _TRANSITIONS.items()
            if f"count.transition.{way}" in group
        }
        if not counts:
            continue
        label = " · ".join(map(shorten, place))
        described.append(f"{label}: " + ", ".join(f"{n:.0f} {w}" for w, n in counts.items()))
        values.extend(
            {"label": label, "way": words, "order": at, "count": number}
            for at, (words, number) in enumerate(counts.items())
        )
    if values:
        title = "Correctness of the first answers, in source order and then in the other order"
        words = "; ".join(described) + "."
        yield Chart("transitions", title, words, "transitions", tuple(values))


_FIXED = {"D_res": "D_res", "H": "H", "D_correct": "D_correct", "Delta_rep": "Δ_rep"}


def _chart_fixed_source(rows: Rows) -> Iterator[Chart]:
    """Draw the pairs that show the same records in a different text, beside all pairs."""
    groups: dict[tuple[str, ...], dict[tuple[str, str], EstimateRow]] = {}
    for row in rows.where(stratum="all", arm="", mask=("", "fixed-source"), quantity=_FIXED):
        if row.model and row.estimate is not None:
            group = groups.setdefault((row.policy, row.schedule, row.model), {})
            group.setdefault((row.mask, row.quantity), row)
    for place, group in groups.items():
        if len({mask for mask, _ in group}) == 2:
            yield draw_forest(
                f"fixed-source-{name_chart(*place)}",
                f"{title_place(place)}: same records, different text",
                [
                    (f"{words} {symbol}", group[mask, quantity])
                    for mask, words in (("", "all pairs:"), ("fixed-source", "same records:"))
                    for quantity, symbol in _FIXED.items()
                    if (mask, quantity) in group
                ],
            )


_COMPARED = {
    **{name: SYMBOLS[name] for name in ("H", "D_res", "Delta_rep")},
    "restored-absent": "restored − absent",
    "restored-replacement": "restored − replacement",
}
"""Quantities that are compared between models."""


def _read_models(results: Results) -> dict[tuple[str, ...], dict[str, EstimateRow]]:
    """Group the answer rows of a run with several models; nothing for fewer than two."""
    rows = Rows.of(
        row
        for row in results.rows.where(arm="")
        if row.model and row.policy and row.quantity in _COMPARED
    )
    return rows.group(*PLACE) if len(rows.values("model")) > 1 else {}


def _tabulate_replication(results: Results) -> list[Table]:
    """Show the main answer quantities model by model."""
    cells = [
        (*place, *(format_row(group.get(quantity)) for quantity in _COMPARED))
        for place, group in _read_models(results).items()
    ]
    return make_table(
        "replication",
        "Model by model",
        "The same prompts read by different models.",
        (*PLACE, *_COMPARED.values()),
        sorted(cells, key=lambda line: (str(line[0]), str(line[1]))),
        names=3,
    )


def _chart_replication(results: Results) -> list[Chart]:
    """Draw each main quantity for every model."""
    charts = []
    groups = _read_models(results)
    for quantity in _COMPARED:
        rows = [row for g in groups.values() if (row := g.get(quantity)) and row.estimate]
        rows.sort(key=lambda row: (row.policy, row.schedule))
        if len({row.model for row in rows}) > 1:
            lines = [(" · ".join(map(shorten, (r.policy, r.schedule, r.model))), r) for r in rows]
            title = f"{quantity}, model by model"
            charts.append(draw_forest(f"replication-{quantity}", title, lines))
    return charts


experiment = Experiment(
    name="answers",
    title="Answers",
    summary="Ask every question on both routes of each pair and compare the answers.",
    rank=20,
    stage=lambda _, asking, benchmark: None if asking is None else ask_routes(asking),
    columns=("routes", "readouts", _REPLICATION, "support"),
    row_filter=lambda row: bool(row.model) and not instructions_of(row.arm),
    answers="routes",
    growing=("draws", "batches"),
    masks=(DISTINCT, "flip-sample", "fixed-source"),
    groups=GROUPS,
    tables=lambda results: [*_tabulate_answers(results), *_tabulate_replication(results)],
    charts=lambda results: [*_chart_answers(results), *_chart_replication(results)],
    place=place_route,
    answers_behind=_answers_behind,
)
