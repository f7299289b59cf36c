"""What `compare` and `plan` print: changes between two runs, and the size a study needs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from rich.markup import escape
from rich.table import Table
from rich.text import Text

from routeprism.api.reviews import compare, plan_settings
from routeprism.cli._audit import render_table
from routeprism.cli._console import SafeConsole, make_grid, print_json, print_line
from routeprism.cli._terminal import reading
from routeprism.judge import list_explanations
from routeprism.orders import describe_arrival
from routeprism.review.comparison import (
    Difference,
    RunComparison,
    SupportChange,
    name_pair,
    name_quantity,
    select_differences,
)
from routeprism.review.planning import StudyPlan

_SIDES = ("policy_before", "before", "after")
_LIMITS = ("lower", "upper", "queries", "units")
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
        print_line(comparison.headline)
        return
    _print_comparison(SafeConsole(), comparison)
    if settings.html is not None:
        print_line(f"Page: {settings.html}")


def _print_comparison(console: SafeConsole, comparison: RunComparison) -> None:
    """Print the outcome, the verdict on both versions, what changed, and the numbers."""
    console.say(f"{comparison.benchmark}: from {comparison.first} to {comparison.second}")
    console.say(comparison.headline, style="bold")
    for table in comparison.tabulate_verdicts():
        console.print(render_table(table))
        console.print(table.caption, style="dim", highlight=False)
    for change in comparison.changes:
        console.say(f"after: {change.after}")
        for text in list_explanations(change.after):
            console.say(f"  {text}")
    for sentence in (*comparison.sentences, *(f"Note: {note}" for note in comparison.notes)):
        console.say(sentence)
    for title, side in (("Evidence lost", "lost"), ("Evidence gained", "kept")):
        console.say_whole(*_list_changes(title, comparison.support, side))
    for numbers in _tables(comparison):
        console.print(numbers)
    console.print(comparison.limits, style="dim", highlight=False)


def _tables(comparison: RunComparison) -> Iterator[Table]:
    """Yield a table for each policy and order of arrival; --json gives every quantity."""
    visible_rows = select_differences(comparison.differences, "headline", "table")
    widest = max((len(_quantity(difference)) for difference in visible_rows), default=0)
    groups: dict[str, list[Difference]] = {}
    for difference in visible_rows:
        groups.setdefault(name_pair(difference), []).append(difference)
    ordered = sorted(comparison.differences, key=lambda difference: difference.is_reversal)
    order = dict.fromkeys(map(name_pair, ordered))
    for heading, rows in ((name, groups[name]) for name in order if name in groups):
        table = make_grid(
            Text(heading, style="bold"),
            quantity={"min_width": min(widest, _WIDEST)},
            numbers=("before", "after", "change [95%]"),
        )
        for difference in rows:
            sides = f"{difference.before:.3f}", f"{difference.after:.3f}"
            table.add_row(escape(_quantity(difference)), *sides, difference.change)
        yield table


def _quantity(difference: Difference) -> str:
    column = difference.column
    name = name_quantity(column)
    return f"{name} ({column.model})" if column.model else name


def _list_changes(title: str, support: Sequence[SupportChange], side: str) -> Iterator[str]:
    """List the questions whose evidence is `lost` or `kept`."""
    changes = [(change, records) for change in support if (records := getattr(change, side))]
    if changes:
        yield f"{title} ({len(changes)}):"
    for change, records in changes[:_MOST]:
        text = " ".join(change.text.split())
        yield (
            f"  {change.question} under {describe_arrival(change.schedule)}, "
            f"{change.policy_after}: {', '.join(records)} "
            f"(“{text[:80]}{'…' if len(text) > 80 else ''}”)"
        )
    if len(changes) > _MOST:
        yield f"  … and {len(changes) - _MOST} more; --json gives them all"


def _as_json(comparison: RunComparison) -> dict[str, Any]:
    return {
        "benchmark": comparison.benchmark,
        "first": comparison.first,
        "second": comparison.second,
        "policies": [list(pair) for pair in comparison.pairs],
        "labels": comparison.labels,
        "headline": comparison.headline,
        "changes": [
            {
                "policies": [change.before.policy, change.after.policy],
                "outcome": change.outcome,
                "reason": change.reason,
            }
            for change in comparison.changes
        ],
        "verdicts": [
            [change.before.to_json(), change.after.to_json()] for change in comparison.changes
        ],
        "sentences": list(comparison.sentences),
        "notes": list(comparison.notes),
        "limits": comparison.limits,
        "differences": [
            {
                **difference.column._asdict(),
                **{name: getattr(difference, name) for name in _SIDES},
                "difference": difference.difference.value,
                **{name: getattr(difference.difference, name) for name in _LIMITS},
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
    console.say_whole(plan.sentence)
    alone = plan.unit == "question"
    table = make_grid()
    for heading in (*([] if alone else [f"questions per {plan.unit}"]), "draws", f"{plan.unit}s"):
        table.add_column(heading, justify="right")
    for way in plan.ways:
        draws = "n/a" if way.draws is None else str(way.draws)
        table.add_row(*([] if alone else [f"{way.questions:.1f}"]), draws, str(way.units))
    console.print(table)
    units, questions, _ = plan.pilot
    spread = plan.spread
    console.say_whole(
        f"Pilot: {units} {plan.unit}s"
        + ("" if alone else f", {questions} questions")
        + f"; standard deviation between {plan.unit}s {spread.unit**0.5:.3f}"
        + ("" if alone else f", between a {plan.unit}'s questions {spread.question**0.5:.3f}")
        + (f", between draws {spread.draw**0.5:.3f}" if spread.draw else ""),
        style="dim",
    )
    if plan.sequential is not None:
        middle, most = plan.sequential
        console.say_whole(
            f"With --until, an audit is expected to stop after {middle} {plan.unit}s, and in 90% "
            f"of simulated studies after {most} at most. Its limits hold at every look, so they "
            f"take more {plan.unit}s than a number that is fixed in advance."
        )
    console.say_whole(*(f"Note: {note}" for note in plan.notes))
