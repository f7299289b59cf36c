"""The first screen: how bad it is for each memory, why, what to do, and all its statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from routeprism.exhibits import (
    Part,
    Severity,
    Statement,
    Table,
    compose,
    format_row,
)
from routeprism.experiments import registered_experiments
from routeprism.judge import Verdict, summarise_verdicts, tabulate_verdicts
from routeprism.report._html import (
    Markup,
    RowNumbers,
    as_html,
    fold_rest,
    fragment,
    link_number,
    tag,
)
from routeprism.report._questions import FLAGS, Questions
from routeprism.runs import FINISHED, Rows

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


def show_mark(severity: Severity) -> Markup:
    """Show a severity as a sign, with a word for those who cannot see it."""
    sign, word = _MARKS[severity]
    return tag("span", sign, class_=f"severity {severity}", role="img", aria_label=word)


def verdict_table(verdicts: Sequence[Verdict], numbers: RowNumbers) -> Markup | None:
    """Show one row for each memory: its mark, its level, source order, and every order."""
    verdict_lines = [(verdict.policy, verdict) for verdict in verdicts]
    return show_verdicts(tabulate_verdicts(verdict_lines), verdict_lines, numbers)


def show_verdicts(
    tables: Sequence[Table],
    verdict_lines: Sequence[tuple[str, Verdict]],
    numbers: RowNumbers | None = None,
) -> Markup | None:
    """Show tables of verdicts, each with the mark of its severity and bars of the same scale."""
    if not tables:
        return None
    marks = {name: show_mark(verdict.severity) for name, verdict in verdict_lines}
    return fragment(as_html(table, numbers, marks=marks, stacked=True) for table in tables)


def action_list(
    verdicts: Sequence[Verdict], statements: Sequence[Statement], numbers: RowNumbers
) -> Markup | None:
    """List causes, repairs and next steps for each memory, the most severe first."""
    order: Sequence[Severity] = ("problem", "warning", "info", "good")
    items = []
    for verdict in sorted(verdicts, key=lambda verdict: order.index(verdict.severity)):
        own = [statement for statement in statements if statement.policy == verdict.policy]
        first_screen = _choose_conclusions(own)
        if first_screen:
            items.append(_show_actions(verdict, first_screen, numbers))
    return tag("div", *items, class_="actions") if items else None


def _choose_conclusions(statements: Sequence[Statement]) -> list[Statement]:
    """Choose what the first screen shows; a problem with changed facts follows the severity."""
    conclusions = [statement for statement in statements if _concludes(statement)]
    updates = [s for s in statements if s.kind == "updates" and s.severity == "problem"]
    severities = [at for at, s in enumerate(conclusions) if s.kind == "severity"]
    at = severities[-1] + 1 if severities else 0
    return [*conclusions[:at], *updates[:1], *conclusions[at:]]


def _concludes(statement: Statement) -> bool:
    """Return whether a statement belongs to the first screen."""
    names = {experiment.name for experiment in registered_experiments(tab="summary")}
    return statement.kind in names or statement.kind in ("sanity", _RECOMMENDATION)


def _show_actions(verdict: Verdict, statements: Sequence[Statement], numbers: RowNumbers) -> Markup:
    recommended = [statement for statement in statements if statement.kind == _RECOMMENDATION]
    rest = [statement for statement in statements if statement.kind != _RECOMMENDATION]
    items = [_show_statement(statement, numbers) for statement in (*recommended, *rest)]
    commands = dict.fromkeys(
        (
            *(("Confirm", s.confirmation) for s in statements if s.confirmation),
            *(("Try", s.next_step) for s in recommended or rest if s.next_step),
        )
    )
    return tag(
        "article",
        tag(
            "h3",
            show_mark(verdict.severity),
            " ",
            tag("bdi", verdict.policy),
            tag("span", verdict.level, class_="level"),
        ),
        fold_rest(items, _MOST_STATEMENTS, "more"),
        *(
            tag("p", f"{label}: ", tag("code", command), class_="step")
            for label, command in list(commands)[:_MOST_STATEMENTS]
        ),
        class_=f"action {verdict.severity}",
    )


def _show_statement(statement: Statement, numbers: RowNumbers) -> Markup:
    """Show a statement; a cause has its example and its next step on lines of their own."""
    scope = f"{statement.scope}: " if statement.scope else ""
    if statement.kind == "causes":
        return tag("li", *(tag("span", str(part), class_="line") for part in statement.parts))
    return tag("li", scope, *_link_parts(statement.parts, numbers))


def _link_parts(parts: Iterable[Part], numbers: RowNumbers) -> Iterator[str]:
    return (part if isinstance(part, str) else link_number(part, numbers) for part in parts)


def verdict_cards(
    summaries: Sequence[Summary], manifest: Mapping[str, Any], numbers: RowNumbers
) -> Markup:
    """Make a card for each policy, and below them those of arms and comparators, and notes."""
    if not summaries and interrupted(manifest):
        return tag("p", "The run was interrupted. What it had stored is shown below.")
    if not summaries:
        return tag("p", "The run is complete, but has no estimates.")
    cards, aside = (
        [_card(summary, numbers) for summary in summaries if summary.is_aside is is_aside]
        for is_aside in (False, True)
    )
    notes = [tag("li", str(note)) for note in manifest.get("notes") or ()]
    count = tag(
        "p",
        "Linked numbers are rows of ",
        tag("a", "all estimates", href="#estimates"),
        ".",
        class_="count",
    )
    all_cards = _put_together(cards)
    if len(cards) > 1:
        all_cards = _fold(f"Every statement ({len(cards)} cards)", all_cards)
    return fragment(
        [
            all_cards,
            _fold(f"Arms and comparators ({len(aside)})", _put_together(aside)) if aside else None,
            _fold(f"Notes ({len(notes)})", tag("ul", *notes)) if notes else None,
            count if numbers else None,
        ]
    )


def _fold(title: str, content: Markup) -> Markup:
    return tag("details", tag("summary", title), content)


def _put_together(cards: Sequence[Markup]) -> Markup:
    return tag("div", fragment(cards), class_="cards")


def _card(summary: Summary, numbers: RowNumbers) -> Markup:
    items = [
        tag("li", *_link_parts(statement.parts_below_policy, numbers))
        for statement in summary.statements
    ]
    most = _MOST_STATEMENTS + (len(items) == _MOST_STATEMENTS + 1)
    flags = sorted({flag for statement in summary.statements for flag in statement.flags})
    return tag(
        "article",
        *(tag("span", flag, class_="badge plain") for flag in flags),
        tag("h3", summary.subject) if summary.subject else None,
        tag("p", summary.title, class_="headline"),
        fold_rest(items, most, "more sentences"),
        class_="card",
    )


# --- the statements of each policy ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Summary:
    """What the run shows about one policy, or about no policy in particular."""

    subject: str
    title: str
    statements: tuple[Statement, ...]
    is_aside: bool = False
    """Whether it is an arm or a comparator of another policy, and not a memory by itself."""


def summarise_policies(
    statements: Sequence[Statement],
    rows: Rows,
    questions: Questions,
    verdicts: Sequence[Verdict],
    command: str,
) -> list[Summary]:
    """Sort the statements of a run by policy, with what can be counted question by question.

    `command` is the command that made the run.
    """
    levels = {verdict.policy: verdict.level for verdict in verdicts}
    summaries = []
    for policy in filter(None, rows.values("policy")):
        own = [statement for statement in statements if statement.policy == policy]
        first = own[:1]
        main = [item for item in own[1:] if item.kind in _MAIN]
        rest = [item for item in own[1:] if item.kind not in _MAIN]
        evidence = _evidence_statements(policy, questions)
        recall = _recall_statements(rows.where(experiment="retention", policy=policy))
        ordered = (*first, *evidence, *main, *recall, *rest)
        title = levels.get(policy, "Compared with a memory above")
        summaries.append(Summary(policy, title, ordered, policy not in levels))
    policies = rows.values("policy")
    unassigned = tuple(item for item in statements if item.policy not in filter(None, policies))
    if unassigned:
        title, _ = _describe_command(command)
        summaries.append(Summary("", "Results of the run" if summaries else title, unassigned))
    return summaries


_MAIN = ("answers", "restoration")
"""Statements of these kinds follow the first one of a policy."""


def _describe_command(command: str) -> tuple[str, str]:
    """Return the title and the headline of results that are about no memory."""
    if command == "reproduce":
        return (
            "Reproduced numbers",
            "The paper's numbers, beside those that this package computes.",
        )
    return "Results of the readings", "Readings of the benchmark, and how far they agree."


def interrupted(manifest: Mapping[str, Any]) -> bool:
    """Return whether a run has not come to its estimates."""
    return manifest.get("status") not in FINISHED


def headline(
    summaries: Sequence[Summary],
    complete: bool,
    verdicts: Sequence[Verdict],
    command: str,
) -> str:
    """Summarise the run in one sentence."""
    if verdicts:
        return summarise_verdicts(verdicts)
    if summaries:
        return _describe_command(command)[1]
    return "No estimates yet." if complete else "This run was interrupted before its estimates."


def _evidence_statements(policy: str, questions: Questions) -> Iterator[Statement]:
    """Count the questions that lose support on one of the two routes."""
    for at, (name, schedule) in enumerate(questions.pairs):
        if name != policy:
            continue
        flags = [question["flags"][at] for question in questions.index]
        on_route = sum(bool(bits & FLAGS["lost-on-route"]) for bits in flags)
        on_forward = sum(bool(bits & FLAGS["lost-on-forward"]) for bits in flags)
        if on_route or on_forward:
            text = (
                f"{on_route} of {len(flags)} questions lose a support record on {schedule} that "
                f"forward shows, {on_forward} lose one on forward that {schedule} shows"
            )
            yield Statement((text,), "evidence", policy, schedule, scope="evidence")


def _recall_statements(rows: Rows) -> Iterator[Statement]:
    """Compare how much support reaches the prompt on the two routes."""
    for row in rows.plain(quantity="recall.exposed.forward"):
        place = {"schedule": row.schedule, "labels": row.labels, "interface": row.interface}
        route = rows.plain().one("recall.exposed.route", **place)
        parts = compose(
            "{forward} of it forward, {route} on {schedule} (labels {labels})",
            forward=format_row(row),
            route=format_row(route),
            schedule=row.schedule,
            labels=row.labels,
        )
        scope = "support that reaches the prompt"
        if len(rows.values("interface")) > 1:
            scope += f" with {row.interface}"
        yield Statement(parts, "retention", row.policy, row.schedule, scope=scope)
