"""The first screen: how bad it is for each memory, why, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeprism.exhibits import Results, Severity, Statement, read_statements
from routeprism.experiments import registered_experiments
from routeprism.experiments.reach import Reach
from routeprism.experiments.severity import (
    MemoryVerdict,
    decide_results,
    describe_arrival,
    tabulate_verdicts,
)
from routeprism.report._html import Markup, fragment, tag
from routeprism.report._tables import RowNumbers, as_html, link_number

__all__ = ["action_list", "decide_memories", "verdict_table"]

_RECOMMENDATION = "recommendation"
"""The kind of the statement that names one repair for a memory."""
_MOST_STATEMENTS = 4
"""How many statements a memory shows before its list is opened."""
_MARKS: Mapping[Severity, tuple[str, str]] = {
    "good": ("✓", "fine"),
    "info": ("i", "minor"),
    "warning": ("?", "unclear"),
    "problem": ("!", "problem"),
}


def decide_memories(results: Results, reaches: Sequence[Reach] = ()) -> list[MemoryVerdict]:
    """Decide about every memory of a run, but not about its repairs and arms.

    A memory that failed on most of its routes has no verdict.
    """
    aside = {reach.policy for reach in reaches if reach.aside}
    unknown = {reach.policy for reach in reaches if reach.layer == "unknown"}
    return [
        verdict
        for verdict in decide_results(results)
        if verdict.policy not in aside and (verdict.policy not in unknown or verdict.is_unclear)
    ]


def show_mark(severity: Severity) -> Markup:
    """Show a severity as a sign, with a word for those who cannot see it."""
    sign, word = _MARKS[severity]
    return tag("span", sign, class_=f"severity {severity}", role="img", aria_label=word)


def verdict_table(
    results: Results, verdicts: Sequence[MemoryVerdict], numbers: RowNumbers
) -> Markup | None:
    """Show one row for each memory: its mark, what it keeps, and a bar for each arrival."""
    tables = tabulate_verdicts(results)
    if not tables or not verdicts:
        return None
    marks = {verdict.policy: show_mark(verdict.severity) for verdict in verdicts}
    arrivals = {describe_arrival(schedule) for verdict in verdicts for schedule in verdict.rows}
    return fragment(
        as_html(table, numbers, marks=marks, bars=arrivals, stacked=True) for table in tables
    )


def action_list(
    verdicts: Sequence[MemoryVerdict], manifest: Mapping[str, Any], results: Results
) -> Markup | None:
    """List causes, repairs and next steps for each memory, the most severe first."""
    statements = read_statements(manifest, results.rows)
    numbers = {row: number for number, row in enumerate(results.rows, start=1)}
    order: Sequence[Severity] = ("problem", "warning", "info", "good")
    items = []
    for verdict in sorted(verdicts, key=lambda verdict: order.index(verdict.severity)):
        own = [
            statement
            for statement in statements
            if statement.policy == verdict.policy and _concludes(statement)
        ]
        if own:
            items.append(_show_actions(verdict, own, numbers))
    return tag("div", *items, class_="actions") if items else None


def _concludes(statement: Statement) -> bool:
    """Return whether a statement belongs to the first screen."""
    names = {experiment.name for experiment in registered_experiments(tab="summary")}
    return statement.kind in names or statement.kind in ("sanity", _RECOMMENDATION)


def _show_actions(
    verdict: MemoryVerdict, statements: Sequence[Statement], numbers: RowNumbers
) -> Markup:
    recommended = [
        recommendation for recommendation in statements if recommendation.kind == _RECOMMENDATION
    ]
    rest = [
        recommendation for recommendation in statements if recommendation.kind != _RECOMMENDATION
    ]
    steps = dict.fromkeys(
        recommendation.next_step
        for recommendation in recommended or rest
        if recommendation.next_step
    )
    items = [_show_statement(statement, numbers) for statement in (*recommended, *rest)]
    more = items[_MOST_STATEMENTS:]
    return tag(
        "article",
        tag("h3", show_mark(verdict.severity), " ", tag("bdi", verdict.policy)),
        tag("ul", *items[:_MOST_STATEMENTS]),
        tag("details", tag("summary", f"{len(more)} more"), tag("ul", *more)) if more else None,
        *(
            tag("p", "Try: ", tag("code", step), class_="step")
            for step in list(steps)[:_MOST_STATEMENTS]
        ),
        class_="action",
    )


def _show_statement(statement: Statement, numbers: RowNumbers) -> Markup:
    scope = f"{statement.scope}: " if statement.scope else ""
    parts = (
        part if isinstance(part, str) else link_number(part, numbers) for part in statement.parts
    )
    return tag("li", scope, *parts)
