"""The display intervention: is it what was built, or how it is laid out? (§3.4, H.2, I.8)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from routeprism.answers import Plan as Cost
from routeprism.experiments._asked import draws_of
from routeprism.experiments._asking import Answers, Asking
from routeprism.experiments._collecting import gather, inspect_all, price_of
from routeprism.experiments._contrast_sentences import display_sentences
from routeprism.experiments._keepsakes import Keepsakes
from routeprism.experiments._layouts import Cells, Layout, display_cells
from routeprism.experiments._profiles import averaged, profile, templates
from routeprism.experiments._rows import Column, Key, estimate_rows
from routeprism.experiments._stages import Asked, Found, Traced
from routeprism.experiments._strata import Strata, Values, enter, signed, strata_of
from routeprism.measures import Draws, Sums
from routeprism.models import Model
from routeprism.models._inspection import Inspection
from routeprism.records import Case
from routeprism.runs import EstimateRow, Finding, Stored

__all__ = ["Display"]

Profile = Mapping[str, Values]

_PAIRS = {"native": (0, 1), "other": (2, 3), "forward": (0, 2), "route": (1, 3)}
"""Which cells are compared: the two states in one layout, or the two layouts of one state."""


@dataclass(frozen=True, slots=True)
class Display:
    """Asks each constructed state in its native order and in another one."""

    asking: Asking
    layouts: tuple[Layout, ...]
    """The orders that the native one is compared with."""

    def described(self) -> Mapping[str, object]:
        """Give what makes the results comparable."""
        return {**self.asking.described(), "display": list(self.layouts)}

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""
        return self.asking.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        inspect_all(traced, self.asking, partial(self._cells, traced), inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what asking would take."""
        return price_of(traced, self.asking, partial(self._cells, traced))

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Ask every cell, and estimate the contrasts of construction and of display."""
        refused: list[Finding] = []
        kept = Keepsakes(traced.setting.interfaces)

        def put(
            case: Case,
            cells: Sequence[Cells],
            answered: Mapping[tuple[str, str], Answers],
            sums: Sums[Key],
        ) -> None:
            refused.extend(_refusals(cells, traced))
            made = [one for one in cells if not one.refused]
            kept.add(made, answered, arms=[one.layout for one in made])
            self._enter(case, cells, traced, answered, sums)

        gathered = gather("display", traced, self.asking, partial(self._cells, traced), put, asked)
        traced.run.keep("display", refused)
        traced.run.keep("answers.display", kept.findings())
        rows = estimate_rows(gathered.tally, self.asking.setting(traced.setting))
        reasons = tuple(
            f"display: {number} comparisons are left out: {reason}"
            for reason, number in gathered.reasons.items()
        )
        notes = (*_partly(rows), *reasons, *gathered.notes)
        return Found(rows, display_sentences(rows), notes)

    def _cells(self, traced: Traced, case: Case, stored: Stored) -> list[Cells]:
        routes = traced.policies, traced.schedules
        return list(display_cells(case, stored, *routes, self.asking.manner, self.layouts))

    def _enter(
        self,
        case: Case,
        cells: Sequence[Cells],
        traced: Traced,
        answered: Mapping[tuple[str, str], Answers],
        sums: Sums[Key],
    ) -> None:
        strata = strata_of(case, traced.masks)
        grouped: dict[tuple[str, str, Layout], dict[tuple[str, str], Cells]] = {}
        for one in cells:
            found = grouped.setdefault((one.policy, one.schedule, one.layout), {})
            found[one.question.id, one.filler] = one
        for (policy, schedule, layout), found in grouped.items():
            first = [found[q.id, self.asking.manner.fillers[0]] for q in case.questions]
            _enter_counts(strata, Column("display", "", policy, schedule), first, sums)
            for template, fillers, answers in templates("display", self.asking, case, answered):
                column = template._replace(policy=policy, schedule=schedule)
                asked = [[found[q.id, filler] for filler in fillers] for q in case.questions]
                profiles = {
                    name: profile(asked, _draws(asked, answers, *sides))
                    for name, sides in _PAIRS.items()
                }
                if layout == "reversed":
                    _enter_reversed(strata, column, profiles, sums)
                else:
                    _enter_serialised(strata, column, profiles, first, sums)


def _draws(
    asked: Sequence[Sequence[Cells]], answers: Answers, one: int, other: int
) -> dict[Cells, Draws]:
    """Put the answers of two cells together."""
    draws: dict[Cells, Draws] = {}
    for cells in (cells for several in asked for cells in several):
        if cells in answers.said:
            said, right = answers.said[cells], answers.right[cells]
            verdicts = (right[one], right[other]) if right else ()
            draws[cells] = draws_of(cells.question, (said[one], said[other]), verdicts)
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
    named = column._replace(arm="construction-display")
    _enter_difference(strata, named, construction, display, sums)


def _enter_serialised(
    strata: Strata,
    column: Column,
    profiles: Mapping[str, Profile],
    cells: Sequence[Cells],
    sums: Sums[Key],
) -> None:
    """Enter the route contrast under each display, changed and unchanged selections apart."""
    changed = [one.shown[0].sources != one.shown[1].sources for one in cells]
    masks = {
        "": [True] * len(cells),
        "selection-changed": changed,
        "selection-unchanged": [not flag for flag in changed],
    }
    for mask, inside in masks.items():
        kept = {name: _within(values, inside) for name, values in profiles.items()}
        arms = {
            "serialisation:native": kept["native"],
            "serialisation:source": kept["other"],
            "display:serialisation:forward": kept["forward"],
            "display:serialisation:route": kept["route"],
        }
        for arm, values in arms.items():
            _enter_profile(strata, column._replace(arm=arm, mask=mask), values, sums)
        named = column._replace(arm="serialisation:native-source", mask=mask)
        _enter_difference(strata, named, kept["native"], kept["other"], sums)


def _enter_profile(strata: Strata, column: Column, values: Profile, sums: Sums[Key]) -> None:
    for name, numbers in values.items():
        # Between layouts of one state there is no forward and no route to be right on.
        if not (name.startswith("accuracy.") and column.arm.startswith("display")):
            enter(sums, strata, column._replace(quantity=name), numbers)


def _enter_difference(
    strata: Strata, column: Column, one: Profile, other: Profile, sums: Sums[Key]
) -> None:
    for name in one:
        if not name.startswith("accuracy."):
            numbers = signed([(1, one[name]), (-1, other[name])])
            enter(sums, strata, column._replace(quantity=f"Gamma.{name}"), numbers)


def _mean(one: Profile, other: Profile) -> Profile:
    return {
        name: [averaged(pair) for pair in zip(one[name], other[name], strict=True)] for name in one
    }


def _within(values: Profile, inside: Sequence[bool]) -> Profile:
    return {
        name: [n if kept else None for n, kept in zip(numbers, inside, strict=True)]
        for name, numbers in values.items()
    }


def _enter_counts(strata: Strata, column: Column, cells: Sequence[Cells], sums: Sums[Key]) -> None:
    """Count what was refused or could not be matched, and what the layout showed otherwise."""
    reverses = cells[0].layout == "reversed"
    made = [None if one.refused else one for one in cells]
    counts: dict[str, list[float | None]] = {
        "refused": [float(one.refused) for one in cells],
        "unmatched": [float(bool(one.reason) and not one.refused) for one in cells],
        "rearranged.forward": [None if one is None else float(one.rearranged[0]) for one in made],
        "rearranged.route": [None if one is None else float(one.rearranged[1]) for one in made],
    }
    if reverses:
        counts["partly_reversed"] = [None if one is None else float(one.partly) for one in made]
    arm = "display" if reverses else "serialisation"
    for name, numbers in counts.items():
        enter(sums, strata, column._replace(quantity=f"count.{name}", arm=arm), numbers)


def _partly(rows: Sequence[EstimateRow]) -> list[str]:
    """Say where some kinds have nothing to reverse."""
    return [
        f"display: in {row.estimate:.0f} of {row.queries} pairs of {row.policy} on {row.schedule} "
        f"some kind has one block, which stays where it is"
        for row in rows
        if row.quantity == "count.partly_reversed"
        and (row.stratum, row.mask) == ("all", "")
        and row.estimate
    ]


def _refusals(cells: Sequence[Cells], traced: Traced) -> list[Finding]:
    """Say of every question that was refused why it was."""
    first = cells[0].filler if cells else ""
    return [
        Finding(
            name=f"refused:{one.layout}",
            value=one.reason,
            policy=one.policy,
            interface=traced.setting.interfaces[one.policy],
            schedule=one.schedule,
            user=one.question.user,
            question=one.question.id,
        )
        for one in cells
        if one.refused and one.filler == first
    ]
