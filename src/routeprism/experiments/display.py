"""The display intervention: is it what was built, or how it is laid out? (§3.4, H.2, I.8)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from routeprism.answers import Comparison
from routeprism.errors import SpecError, nearest
from routeprism.experiments._answer_exhibits import chart_display, tabulate_display
from routeprism.experiments._answer_statements import display_statements
from routeprism.experiments._collection import Answers, AnswersByModel, Asking, leave_out_silent
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._experiment import AnswerNames, AnswerSelection, Experiment
from routeprism.experiments._layouts import LAYOUTS, Arrangement, Layout, compare_layouts
from routeprism.experiments._profiles import (
    REPEATED,
    Profile,
    average,
    make_columns,
    make_draws,
    make_profile,
    select_pairs,
)
from routeprism.experiments._rows import Column, Key, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import Strata, enter, signed, strata_of
from routeprism.measures import Draws, Sums
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Rows, StoredRun
from routeprism.settings import RESEARCH, option

__all__ = ["DisplaySettings", "compare_displays", "experiment"]

_PAIRS = {"native": (0, 1), "other": (2, 3), "forward": (0, 2), "route": (1, 3)}
"""Which cells are compared: the two states in one layout, or the two layouts of one state."""


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
    rows = estimate_rows(collection.tally, collection.asking.setting(collection.traced.setting))
    reasons = tuple(
        f"display: {number} comparisons are left out: {reason}"
        for reason, number in collection.reasons.items()
    )
    notes = (*_describe_partly(rows), *reasons, *collection.notes)
    readable, silent = leave_out_silent(rows, collection.outcomes, "display")
    return StageResult(rows, (*silent, *display_statements(readable)), notes)


def _enter(
    traced: Traced,
    asking: Asking,
    item: CaseComparisons,
    answers: AnswersByModel,
    sums: Sums[Key],
) -> None:
    case = item.case
    strata = strata_of(case, traced.masks)
    grouped: dict[tuple[str, str, str], dict[tuple[str, str], Comparison]] = {}
    for cells in item.comparisons:
        place = grouped.setdefault((cells.policy, cells.schedule, cells.condition), {})
        place[cells.question.id, cells.filler] = cells
    for (policy, schedule, layout), place in grouped.items():
        first = [place[q.id, asking.manner.fillers[0]] for q in case.questions]
        _enter_counts(strata, Column("display", "", policy, schedule), first, sums)
        for template, fillers, outcomes in make_columns("display", asking, case, answers):
            column = template._replace(policy=policy, schedule=schedule)
            cells_of = select_pairs(case, place, fillers)
            profiles = {
                name: make_profile(cells_of, _pair_cells(cells_of, outcomes, *sides))
                for name, sides in _PAIRS.items()
            }
            if layout == "reversed":
                _enter_reversed(strata, column, profiles, sums)
            else:
                _enter_serialised(strata, column, profiles, first, sums)
                draws = _pair_cells(cells_of, outcomes, *_PAIRS["other"])
                fresh = {cells: pair.fresh() for cells, pair in draws.items()}
                _enter_fresh(strata, column, make_profile(cells_of, fresh), first, sums)


def _pair_cells(
    cells_of: Sequence[Sequence[Comparison]], answers: Answers, first: int, second: int
) -> dict[Comparison, Draws]:
    """Join the answers of two cells of each comparison."""
    draws: dict[Comparison, Draws] = {}
    for cells in (cells for under_fillers in cells_of for cells in under_fillers):
        if cells in answers.symbols:
            symbols, right = answers.symbols[cells], answers.right[cells]
            verdicts = (right[first], right[second]) if right else ()
            draws[cells] = make_draws(cells.question, (symbols[first], symbols[second]), verdicts)
    return draws


def _enter_reversed(
    strata: Strata, column: Column, profiles: Mapping[str, Profile], sums: Sums[Key]
) -> None:
    """Enter construction at each layout, display in each state, their means and difference."""
    construction = _mean(profiles["native"], profiles["other"])
    display = _mean(profiles["forward"], profiles["route"])
    arms = {
        "construction:native": profiles["native"],
        "construction:reversed": profiles["other"],
        "construction": construction,
        "display:forward": profiles["forward"],
        "display:route": profiles["route"],
        "display": display,
    }
    for arm, values in arms.items():
        _enter_profile(strata, column._replace(arm=arm), values, sums)
    target = column._replace(arm="construction-display")
    _enter_difference(strata, target, construction, display, sums)


def _enter_serialised(
    strata: Strata,
    column: Column,
    profiles: Mapping[str, Profile],
    cells: Sequence[Comparison],
    sums: Sums[Key],
) -> None:
    """Enter the route contrast under each display, changed and unchanged selections apart."""
    for mask, members in _selections(cells).items():
        selected = {name: _restrict_values(values, members) for name, values in profiles.items()}
        arms = {
            "serialisation:native": selected["native"],
            "serialisation:source": selected["other"],
            "display:serialisation:forward": selected["forward"],
            "display:serialisation:route": selected["route"],
        }
        for arm, values in arms.items():
            _enter_profile(strata, column._replace(arm=arm, mask=mask), values, sums)
        target = column._replace(arm="serialisation:native-source", mask=mask)
        _enter_difference(strata, target, selected["native"], selected["other"], sums)


def _enter_fresh(
    strata: Strata, column: Column, fresh: Profile, cells: Sequence[Comparison], sums: Sums[Key]
) -> None:
    """Enter the route contrast in source order without the first answers (Appendix I.8)."""
    for mask, members in _selections(cells).items():
        selected = _restrict_values(fresh, members)
        target = column._replace(arm="serialisation:source:fresh", mask=mask)
        for name in REPEATED:
            enter(sums, strata, target._replace(quantity=name), selected[name])


def _selections(cells: Sequence[Comparison]) -> dict[str, list[bool]]:
    """Return all questions, and those whose selected sources differ or agree between the routes."""
    changed = [cell.exposures[0].sources != cell.exposures[1].sources for cell in cells]
    return {
        "": [True] * len(cells),
        "selection-changed": changed,
        "selection-unchanged": [not flag for flag in changed],
    }


def _enter_profile(strata: Strata, column: Column, values: Profile, sums: Sums[Key]) -> None:
    for name, numbers in values.items():
        # Between layouts of one state there is no forward and no route to be right on.
        if not (name.startswith("accuracy.") and column.arm.startswith("display")):
            enter(sums, strata, column._replace(quantity=name), numbers)


def _enter_difference(
    strata: Strata, column: Column, first: Profile, second: Profile, sums: Sums[Key]
) -> None:
    for name in first:
        if not name.startswith("accuracy."):
            numbers = signed([(1, first[name]), (-1, second[name])])
            enter(sums, strata, column._replace(quantity=f"Gamma.{name}"), numbers)


def _mean(first: Profile, second: Profile) -> Profile:
    return {
        name: [average(pair) for pair in zip(first[name], second[name], strict=True)]
        for name in first
    }


def _restrict_values(values: Profile, members: Sequence[bool]) -> Profile:
    return {
        name: [n if member else None for n, member in zip(numbers, members, strict=True)]
        for name, numbers in values.items()
    }


def _enter_counts(
    strata: Strata, column: Column, cells: Sequence[Comparison], sums: Sums[Key]
) -> None:
    """Count what was refused or could not be matched, and what the layout shows differently."""
    reverses = cells[0].condition == "reversed"
    details: list[Arrangement] = [cell.detail for cell in cells]
    failed = [bool(cell.reason) for cell in cells]

    def count(holds: Callable[[Arrangement], bool]) -> list[float | None]:
        return [None if detail.refused else float(holds(detail)) for detail in details]

    counts: dict[str, list[float | None]] = {
        "refused": [float(detail.refused) for detail in details],
        "unmatched": [float(f and not d.refused) for f, d in zip(failed, details, strict=True)],
        "rearranged.forward": count(lambda detail: detail.rearranged[0]),
        "rearranged.route": count(lambda detail: detail.rearranged[1]),
    }
    if reverses:
        counts["partly_reversed"] = count(lambda detail: detail.partly)
    arm = "display" if reverses else "serialisation"
    for name, numbers in counts.items():
        enter(sums, strata, column._replace(quantity=f"count.{name}", arm=arm), numbers)


def _describe_partly(rows: Sequence[EstimateRow]) -> list[str]:
    """Describe where some kinds have nothing to reverse."""
    return [
        f"display: in {row.estimate:.0f} of {row.queries} pairs of {row.policy} on {row.schedule} "
        f"some kind has one block, which stays where it is"
        for row in Rows.of(rows).where(quantity="count.partly_reversed", stratum="all", mask="")
        if row.estimate
    ]


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """Options for the display intervention."""

    display: Sequence[Layout] = option(
        (),
        help="Compare the memory's own order of blocks with `reversed` or `source`; repeat for "
        "both.",
        group=RESEARCH,
    )


def _place(names: AnswerNames) -> Mapping[str, str]:
    return {"condition": f"{names.condition}:{names.side}"}


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    """Select both states in one layout, or one state in both layouts."""
    layout = "source" if "serialisation" in row.arm else "reversed"
    *kind, last = row.arm.removesuffix(":fresh").split(":")
    sides: tuple[str, ...] = ()
    if last in ("forward", "route") and kind[:1] == ["display"]:
        sides = tuple(f"{last}-{name}" for name in ("native", layout))
    elif last in ("native", layout):
        sides = tuple(f"{state}-{last}" for state in ("forward", "route"))
    return AnswerSelection("display", sides, (layout,))


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
    tables=tabulate_display,
    charts=chart_display,
    place=_place,
    answers_behind=_answers_behind,
)
