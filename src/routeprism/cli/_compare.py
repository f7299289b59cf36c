"""What `compare` and `plan` print: changes between two runs, and the size a study needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from routeprism.api.reviews import compare, plan_settings
from routeprism.cli._audit import print_plain, render_table
from routeprism.cli._console import SafeConsole, print_json, print_line
from routeprism.cli._terminal import reading
from routeprism.experiments.severity import describe_arrival
from routeprism.review import RunComparison, StudyPlan
from routeprism.review.comparison import (
    MAIN_QUANTITIES,
    Difference,
    SupportChange,
    is_reversal,
    name_pair,
    name_quantity,
)
from routeprism.runs import format_interval

__all__ = ["show_comparison", "show_plan"]

_QUANTITIES = {
    **MAIN_QUANTITIES,
    "retained_changed": "different records kept",
    "I_changed": "different internal state",
    "all_covered.exposed.route": "questions shown all evidence",
    "H": "answers differ",
    "restored-absent": "accuracy that a record restores",
    "restored-replacement": "the same, against a matched record",
}
"""The quantities that the terminal shows, in plain words; --json gives all by their names."""
_ARGUMENTS = ("first", "second", "policies_a", "policies_b", "html", "markdown")
_MOST = 10
"""Questions listed for each of lost and kept; --json gives them all."""
_WIDEST = 36
"""How wide names of quantities may make their column: 80 have to do for all."""


def show_comparison(settings: Any) -> None:
    """Run `compare`."""
    with reading(settings.first, settings.second):
        _show(compare(**{name: getattr(settings, name) for name in _ARGUMENTS}), settings)


def _show(comparison: RunComparison, settings: Any) -> None:
    if settings.json:
        print_json(_as_json(comparison))
        return
    if settings.quiet:
        print_line(comparison.sentences[0] if comparison.sentences else "Nothing can be compared.")
        return
    _print_comparison(SafeConsole(), comparison)
    if settings.html is not None:
        print_line(f"Page: {settings.html}")


def _print_comparison(console: SafeConsole, comparison: RunComparison) -> None:
    """Print the verdict on both versions, what changed in sentences, and the numbers."""
    print_plain(console, f"{comparison.benchmark}: from {comparison.first} to {comparison.second}")
    for table in comparison.tabulate_verdicts():
        console.print(render_table(table))
        console.print(table.caption, style="dim", highlight=False)
    sentences = comparison.sentences or ("Nothing can be compared.",)
    for sentence in (*sentences, *(f"Note: {note}" for note in comparison.notes)):
        print_plain(console, sentence)
    for title, changes in (
        ("Evidence lost", [change for change in comparison.support if change.lost]),
        ("Evidence gained", [change for change in comparison.support if change.kept]),
    ):
        for line in _list_changes(title, changes, lost="lost" in title):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    for numbers in _tables(comparison):
        console.print(numbers)
    console.print(comparison.limits, style="dim", highlight=False)


def _tables(comparison: RunComparison) -> Iterator[Table]:
    """Yield a table for each policy and order of arrival, in the order of `_QUANTITIES`."""
    places = list(_QUANTITIES)
    visible_rows = sorted(
        (
            difference
            for difference in comparison.differences
            if difference.column.quantity in _QUANTITIES
            and not difference.column.arm
            and not difference.column.mask
        ),
        key=lambda difference: places.index(difference.column.quantity),
    )
    widest = max((len(_quantity(difference)) for difference in visible_rows), default=0)
    groups: dict[str, list[Difference]] = {}
    for difference in visible_rows:
        groups.setdefault(name_pair(difference), []).append(difference)
    order = dict.fromkeys(map(name_pair, sorted(comparison.differences, key=is_reversal)))
    for heading, rows in ((name, groups[name]) for name in order if name in groups):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        table.title = Text(heading, style="bold")
        table.title_justify = "left"
        table.add_column("quantity", overflow="fold", min_width=min(widest, _WIDEST))
        for side in ("before", "after", "change [95%]"):
            table.add_column(side, justify="right", no_wrap=True)
        for difference in rows:
            gap = difference.difference
            change = format_interval(gap.value, gap.lower, gap.upper, signed=True)
            table.add_row(
                escape(_quantity(difference)),
                f"{difference.before:.3f}",
                f"{difference.after:.3f}",
                change,
            )
        yield table


def _quantity(difference: Difference) -> str:
    column = difference.column
    is_main = column.quantity in MAIN_QUANTITIES
    name = name_quantity(column) if is_main else _QUANTITIES[column.quantity]
    return f"{name} ({column.model})" if column.model else name


def _list_changes(title: str, changes: Sequence[SupportChange], *, lost: bool) -> list[str]:
    if not changes:
        return []
    lines = [f"{title} ({len(changes)}):"]
    for change in changes[:_MOST]:
        records = ", ".join(change.lost if lost else change.kept)
        text = " ".join(change.text.split())
        lines.append(
            f"  {change.question} under {describe_arrival(change.schedule)}, "
            f"{change.policy_after}: {records} "
            f"(«{text[:80]}{'…' if len(text) > 80 else ''}»)"
        )
    if len(changes) > _MOST:
        lines.append(f"  … and {len(changes) - _MOST} more; --json gives them all")
    return lines


def _as_json(comparison: RunComparison) -> dict[str, Any]:
    return {
        "benchmark": comparison.benchmark,
        "first": comparison.first,
        "second": comparison.second,
        "policies": [list(pair) for pair in comparison.pairs],
        "labels": comparison.labels,
        "verdicts": [[asdict(before), asdict(after)] for before, after in comparison.reaches],
        "sentences": list(comparison.sentences),
        "notes": list(comparison.notes),
        "limits": comparison.limits,
        "differences": [
            {
                **difference.column._asdict(),
                "policy_before": difference.policy_before,
                "before": difference.before,
                "after": difference.after,
                "difference": difference.difference.value,
                "lower": difference.difference.lower,
                "upper": difference.difference.upper,
                "queries": difference.difference.queries,
                "units": difference.difference.units,
                "flags": difference.flags,
            }
            for difference in comparison.differences
        ],
        "support": [asdict(change) for change in comparison.support],
    }


def show_plan(settings: Any) -> None:
    """Run `plan`."""
    with reading(settings.run):
        _print_plan(plan_settings(settings), as_json=settings.json)


def _print_plan(plan: StudyPlan, *, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(plan), "sentence": plan.sentence})
        return
    console = SafeConsole()
    console.print(plan.sentence, highlight=False, markup=False, soft_wrap=True)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    alone = plan.unit == "question"
    columns = [] if alone else [f"questions per {plan.unit}"]
    for heading in (*columns, "draws", f"{plan.unit}s"):
        table.add_column(heading, justify="right")
    for way in plan.ways:
        draws = "n/a" if way.draws is None else str(way.draws)
        table.add_row(*([] if alone else [f"{way.questions:.1f}"]), draws, str(way.units))
    console.print(table)
    units, questions, _ = plan.pilot
    spread = plan.spread
    console.print(
        f"Pilot: {units} {plan.unit}s"
        + ("" if alone else f", {questions} questions")
        + f"; standard deviation between {plan.unit}s {spread.unit**0.5:.3f}"
        + ("" if alone else f", between a {plan.unit}'s questions {spread.question**0.5:.3f}")
        + (f", between draws {spread.draw**0.5:.3f}" if spread.draw else ""),
        style="dim",
        highlight=False,
        soft_wrap=True,
    )
    if plan.sequential is not None:
        middle, most = plan.sequential
        console.print(
            f"With --until, an audit is expected to stop after {middle} {plan.unit}s, and in 90% "
            f"of simulated studies after {most} at most. Its limits hold at every look, so they "
            f"take more {plan.unit}s than a number that is fixed in advance.",
            highlight=False,
            soft_wrap=True,
        )
    for note in plan.notes:
        console.print(f"Note: {note}", highlight=False, markup=False, soft_wrap=True)
