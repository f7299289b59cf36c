"""The display intervention: is it what was built, or how it is laid out? (§3.4, H.2, I.8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from routeprism.answers import Comparison
from routeprism.errors import SpecError, nearest
from routeprism.exhibits import Statement
from routeprism.experiments._answer_rows import (
    AnswerRows,
    chart_arms,
    list_answer_rows,
    tabulate_arms,
)
from routeprism.experiments._collection import Asking
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerSelection, Experiment
from routeprism.experiments._options import DisplaySettings, Layout
from routeprism.experiments._profiles import (
    REPEATED,
    PoolAnswers,
    Profile,
    average,
    make_profile,
    pair_sides,
)
from routeprism.experiments._route_comparisons import (
    LAYOUTS,
    Arrangement,
    compare_layouts,
    name_cells,
)
from routeprism.experiments._rows import estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import Sheet, restrict
from routeprism.experiments.statements import Phrase, compose_rows, join_phrases
from routeprism.judge import describe_floor, is_at_floor
from routeprism.orders import describe_arrival
from routeprism.quantities import find_quantity
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Rows, StoredRun

_PAIRS = {"native": (0, 1), "other": (2, 3), "forward": (0, 2), "route": (1, 3)}
"""Which cells are compared: the two states in one layout, or the two layouts of one state."""
_COMPARED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "reversed": {
        "construction:native": ("native",),
        "construction:reversed": ("other",),
        "construction": ("native", "other"),
        "display:forward": ("forward",),
        "display:route": ("route",),
        "display": ("forward", "route"),
    },
    "source": {
        "serialisation:native": ("native",),
        "serialisation:source": ("other",),
        "display:serialisation:forward": ("forward",),
        "display:serialisation:route": ("route",),
    },
}
"""Layout → arm → the comparison that it shows, or the two whose mean it shows."""
_GAPS = {
    "reversed": ("construction-display", "construction", "display"),
    "source": ("serialisation:native-source", "serialisation:native", "serialisation:source"),
}
"""Layout → the arm of the difference between two arms."""


def compare_displays(asking: Asking, layouts: Sequence[Layout]) -> ComparisonStage:
    """Make the stage that asks each constructed state in its native order and in other layouts."""
    requested = tuple(dict.fromkeys(layouts))
    return ComparisonStage(
        "display",
        asking,
        partial(_compare, requested),
        _enter,
        _finish,
        {"display": list(requested)},
    )


def _compare(
    layouts: tuple[Layout, ...], traced: Traced, asking: Asking, case: Case, stored: StoredRun
) -> CaseComparisons:
    routes = traced.policies, traced.schedules
    return CaseComparisons(
        case, list(compare_layouts(case, stored, *routes, asking.manner, layouts))
    )


def _finish(collection: Gathered) -> StageResult:
    rows = estimate_rows(collection.tally, collection.setting)
    reasons = collection.list_reasons("display: {number} comparisons are left out: {reason}")
    return collection.conclude("display", rows, _describe, (*_describe_partly(rows), *reasons))


def _enter(pool: PoolAnswers) -> None:
    for (policy, schedule, layout), comparisons in pool.group().items():
        cells = [group[0] for group in pool.select(comparisons, pool.asking.manner.fillers)]
        _enter_counts(pool.make_sheet("display", policy, schedule), cells)
        for template, fillers, answers in pool.make_sheets("display"):
            sheet = template.at(policy=policy, schedule=schedule)
            groups = pool.select(comparisons, fillers)
            draws = {name: pair_sides(groups, answers, *sides) for name, sides in _PAIRS.items()}
            profiles = {name: make_profile(groups, pairs) for name, pairs in draws.items()}
            if layout == "reversed":
                _enter_arms(sheet, layout, profiles)
                continue
            fresh = {pair: each.fresh() for pair, each in draws["other"].items()}
            _enter_serialised(sheet, profiles, make_profile(groups, fresh), cells)


def _enter_serialised(
    sheet: Sheet, profiles: Mapping[str, Profile], fresh: Profile, cells: Sequence[Comparison]
) -> None:
    """Add the route contrast under each display, changed and unchanged selections apart.

    In source order it is also entered without the first answers (Appendix I.8).
    """
    changed = [cell.exposures[0].sources != cell.exposures[1].sources for cell in cells]
    selections = {
        "": [True] * len(cells),
        "selection-changed": changed,
        "selection-unchanged": [not flag for flag in changed],
    }
    for mask, members in selections.items():
        parts = {
            name: {quantity: restrict(values, members) for quantity, values in profile.items()}
            for name, profile in profiles.items()
        }
        _enter_arms(sheet.at(mask=mask), "source", parts)
    for mask, members in selections.items():
        part = sheet.at(arm="serialisation:source:fresh", mask=mask)
        part.put_all({name: restrict(fresh[name], members) for name in REPEATED})


def _enter_arms(sheet: Sheet, layout: str, profiles: Mapping[str, Profile]) -> None:
    """Enter the values of each arm of a layout, and the difference between two of them."""
    arms = {
        arm: profiles[names[0]] if len(names) == 1 else _mean(*(profiles[n] for n in names))
        for arm, names in _COMPARED[layout].items()
    }
    for arm, profile in arms.items():
        # Between layouts of one state there is no forward and no route to be right on.
        between = arm.startswith("display")
        sheet.at(arm=arm).put_all(_leave_out_accuracy(profile) if between else profile)
    gap, first, second = _GAPS[layout]
    sheet.at(arm=gap).put_gaps(_leave_out_accuracy(arms[first]), arms[second])


def _leave_out_accuracy(profile: Profile) -> Profile:
    return {name: v for name, v in profile.items() if find_quantity(name).correctness != "level"}


def _mean(first: Profile, second: Profile) -> Profile:
    return {
        name: [average(pair) for pair in zip(first[name], second[name], strict=True)]
        for name in first
    }


def _enter_counts(sheet: Sheet, cells: Sequence[Comparison]) -> None:
    """Count what was refused or could not be matched, and what the layout shows differently."""
    reverses = cells[0].condition == "reversed"
    details: list[Arrangement] = [cell.detail for cell in cells]
    failed = [bool(cell.reason) for cell in cells]

    def count(holds: Callable[[Arrangement], bool]) -> list[float | None]:
        return [None if detail.refused else float(holds(detail)) for detail in details]

    sheet = sheet.at(arm="display" if reverses else "serialisation")
    sheet.put("count.refused", [float(detail.refused) for detail in details])
    unmatched = [float(f and not d.refused) for f, d in zip(failed, details, strict=True)]
    sheet.put("count.unmatched", unmatched)
    sheet.put("count.rearranged.forward", count(lambda detail: detail.rearranged[0]))
    sheet.put("count.rearranged.route", count(lambda detail: detail.rearranged[1]))
    if reverses:
        sheet.put("count.partly_reversed", count(lambda detail: detail.partly))


def _describe_partly(rows: Sequence[EstimateRow]) -> list[str]:
    """Describe where some kinds have nothing to reverse."""
    return [
        f"display: in {row.estimate:.0f} of {row.queries} pairs of {row.policy} on {row.schedule} "
        f"some kind has one block, which stays where it is"
        for row in Rows.of(rows).where(quantity="count.partly_reversed", stratum="all", mask="")
        if row.estimate
    ]


_SOURCES = {
    1: "the records that were kept change the answers more than their layout does",
    -1: "the layout changes the answers more than the records that were kept do",
    0: "neither construction nor display is shown to change the answers more",
}
_SERIALISED = {
    1: "source display removes a part of the route's effect",
    -1: "source display adds to the route's effect",
    0: "source display is not shown to change the route's effect",
}
"""What a difference shows, by the side of zero that its interval is on."""


def _find_side(row: EstimateRow) -> int:
    """Return the side of zero that an interval is on; 0 if it contains zero or there is none."""
    if row.lower is None or row.upper is None:
        return 0
    return (row.lower > 0) - (row.upper < 0)


def _describe(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe whether construction or display changes answers, and what source display leaves."""
    for answers in list_answer_rows(rows, "display"):
        yield from _describe_construction(answers)
        yield from _describe_serialisation(answers)
    for row in Rows.of(rows).where(experiment="display", stratum="all", mask=""):
        if row.quantity == "count.refused" and row.estimate:
            how = "reversed within their kinds" if row.arm == "display" else "put in source order"
            parts = compose_rows(
                "the blocks of {count:count} of {total} pairs cannot be {how}",
                count=row,
                total=str(row.queries),
                how=how,
            )
            yield Statement(
                parts, "display", row.policy, row.schedule, scope=describe_arrival(row.schedule)
            )


def _describe_construction(answers: AnswerRows) -> Iterator[Statement]:
    measure = answers.choose_measure("construction")
    gap = answers.find(f"Gamma.{measure}", "construction-display")
    if gap is None:
        return
    arms = ("construction", "display")
    values = [
        compose_rows("{arm} {measure} = {value}", arm=arm, measure=measure, value=row)
        for arm in arms
        if (row := answers.find(measure, arm)) is not None
    ]
    changes = {arm: row for arm in arms if (row := answers.find("Delta_rep", arm)) is not None}
    signed = [compose_rows("{arm} {value}", arm=arm, value=row) for arm, row in changes.items()]
    accuracy: Phrase = ("; change of accuracy: ", *join_phrases(signed, ", ")) if signed else ()
    built = changes.get("construction")
    if built is not None and is_at_floor(built):
        accuracy = (f"; {describe_floor(built)}",)
    yield answers.state(
        "display",
        gap,
        "{verdict}: {values}, difference {row}{accuracy} ({row:size})",
        verdict=_SOURCES[_find_side(gap)],
        values=join_phrases(values, ", "),
        accuracy=accuracy,
    )


_SELECTIONS = {
    "": "all pairs",
    "selection-changed": "changed selections",
    "selection-unchanged": "unchanged selections",
}


def _describe_serialisation(answers: AnswerRows) -> Iterator[Statement]:
    measure = answers.choose_measure("serialisation:source")
    gap = answers.find(f"Gamma.{measure}", "serialisation:native-source")
    if gap is None:
        return
    phrases = []
    for mask, selection in _SELECTIONS.items():
        native = answers.find(measure, "serialisation:native", mask)
        source = answers.find(measure, "serialisation:source", mask)
        if native is None or source is None:
            continue
        if not mask or source.queries != gap.queries:  # else the part is the whole
            phrases.append(
                compose_rows(
                    "{selection} {native} native, {source} in source order ({source:size})",
                    selection=selection,
                    native=native,
                    source=source,
                )
            )
    yield answers.state(
        "display",
        gap,
        "{verdict}: {measure} {phrases}; native minus source {row}",
        verdict=_SERIALISED[_find_side(gap)],
        measure=measure,
        phrases=join_phrases(phrases),
    )


_ARMS = {
    "construction": "different memories",
    "display": "different layouts",
    "construction-display": "difference",
    "serialisation:native": "routes, native order",
    "serialisation:source": "routes, source order",
    "serialisation:native-source": "native − source",
}


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    """Select both states in one layout, or one state in both layouts."""
    layout: Layout = "source" if "serialisation" in row.arm else "reversed"
    compared = _COMPARED[layout].get(row.arm.removesuffix(":fresh"), ())
    cells = _PAIRS[compared[0]] if len(compared) == 1 else ()
    return AnswerSelection("display", tuple(name_cells(layout)[at] for at in cells), (layout,))


def _stage(
    settings: DisplaySettings, asking: Asking | None, benchmark: Benchmark
) -> ComparisonStage | None:
    for layout in settings.display:
        if layout not in LAYOUTS:
            raise SpecError(f"There is no display '{layout}'. {nearest(layout, LAYOUTS)}")
    if not settings.display:
        return None
    if asking is None:
        raise SpecError("display needs a model to answer")
    return compare_displays(asking, settings.display)


experiment = Experiment(
    name="display",
    title="Construction and display",
    summary="Ask each memory state in its own block order and in a different one.",
    rank=40,
    settings=DisplaySettings,
    stage=_stage,
    configuration=("display",),
    growing=("display",),
    masks=("selection-changed", "selection-unchanged"),
    tables=partial(
        tabulate_arms,
        "display",
        _ARMS,
        "Different memories or different layouts?",
        "Disagreement beyond the model's own (D_res) and change of accuracy: between the two "
        "memories, between two layouts of one memory, and their difference question by question; "
        "for serialisation, between the routes under each layout.",
    ),
    charts=partial(chart_arms, "display", _ARMS, ("D_res", "H"), "{} by what differs"),
    place=lambda names: {"condition": f"{names.condition}:{names.side}"},
    answers_behind=_answers_behind,
)
