"""The first screen: how bad it is for each memory, why, what to do, and all further statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from routeprism.exhibits import Part, Severity, Statement, Table
from routeprism.judge import (
    EXPLAINED,
    LEVELS,
    Verdict,
    choose_command,
    explain_verdict,
    summarise_verdicts,
    tabulate_memories,
)
from routeprism.report._html import (
    Markup,
    RowNumbers,
    as_html,
    fold_rest,
    fragment,
    link_number,
    tag,
)
from routeprism.runs import FINISHED

_MOST_STATEMENTS = 6
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


def interrupted(manifest: Mapping[str, Any]) -> bool:
    """Return whether a run has not come to its estimates."""
    return manifest.get("status") not in FINISHED


def headline(
    verdicts: Sequence[Verdict], statements: Sequence[Statement], manifest: Mapping[str, Any]
) -> str:
    """Summarise the run in one sentence."""
    if verdicts:
        return summarise_verdicts(verdicts)
    if interrupted(manifest):
        return "This run was interrupted before its estimates."
    command = manifest.get("configuration", {}).get("command")
    return _HEADLINES.get(command, _READINGS) if statements else "No estimates yet."


_HEADLINES = {
    "curve": "How much of the evidence each budget keeps, in each order of arrival.",
    "reproduce": "The paper's numbers, beside those that this package computes.",
}
"""What a run is about that judges no memory, by its command."""
_READINGS = "Readings of the benchmark, and how far they agree."


def show_verdicts(
    tables: Sequence[Table],
    verdict_lines: Sequence[tuple[str, Verdict]],
    numbers: RowNumbers | None = None,
) -> Markup | None:
    """Show tables of verdicts, each line with the mark of its severity."""
    if not tables:
        return None
    marks = {name: show_mark(verdict.severity) for name, verdict in verdict_lines}
    return fragment(as_html(table, numbers, marks=marks, stacked=True) for table in tables)


def show_memories(
    verdicts: Sequence[Verdict], numbers: RowNumbers, directory: Path
) -> Markup | None:
    """Show the verdict on each memory, the most severe first, with the table of all counts."""
    if not verdicts:
        return None
    ordered = sorted(verdicts, key=lambda verdict: -LEVELS.index(verdict.level))
    cards = tag(
        "div",
        *(
            _show_memory(verdict, numbers, str(directory), is_alone=len(verdicts) == 1)
            for verdict in ordered
        ),
        class_="actions",
    )
    lines = [(verdict.policy, verdict) for verdict in verdicts]
    table = show_verdicts(tabulate_memories(verdicts), lines, numbers)
    return fragment([cards, table] if len(verdicts) == 1 else [table, cards])


def _show_memory(
    verdict: Verdict, numbers: RowNumbers, directory: str, *, is_alone: bool
) -> Markup:
    """Show one verdict: its level, why, and the command that follows.

    Of several memories, each begins with its verdict and the first reason, and opens to the rest.
    """
    phrases = [tag("p", *_link_parts(parts, numbers)) for parts in explain_verdict(verdict)]
    most = len(phrases) if is_alone else 2
    more = f"{len(phrases) - most} more"
    rest = tag("details", tag("summary", more), *phrases[most:]) if phrases[most:] else None
    command = choose_command(verdict, directory)
    return tag(
        "article",
        tag(
            "h3",
            show_mark(verdict.severity),
            " ",
            tag("bdi", verdict.policy),
            tag("span", verdict.label, class_="level"),
        ),
        *phrases[:most],
        rest,
        tag("p", "Next: ", tag("code", command), class_="step") if command else None,
        class_=f"action {verdict.severity}",
    )


def _link_parts(parts: Iterable[Part], numbers: RowNumbers) -> Iterator[str]:
    return (part if isinstance(part, str) else link_number(part, numbers) for part in parts)


def show_statements(
    statements: Sequence[Statement],
    verdicts: Sequence[Verdict],
    manifest: Mapping[str, Any],
    numbers: RowNumbers,
) -> Markup | None:
    """Show what the verdicts do not contain: a card of statements for each policy, and notes."""
    judged = {"", *(verdict.policy for verdict in verdicts)}
    groups: dict[str, list[Statement]] = {}
    for statement in statements:
        if statement.kind not in EXPLAINED:
            groups.setdefault(statement.policy, []).append(statement)
    cards, aside = (
        [
            _show_card(policy, group, numbers)
            for policy, group in groups.items()
            if is_main is (not verdicts or policy in judged)
        ]
        for is_main in (True, False)
    )
    notes = [tag("li", str(note)) for note in manifest.get("notes") or ()]
    parts = [
        _show_cards(cards, "Every further statement", is_folded=len(cards) > 1),
        _show_cards(aside, "Arms and comparators", is_folded=True),
        _fold(f"Notes ({len(notes)})", tag("ul", *notes)) if notes else None,
    ]
    return fragment(parts) if any(parts) else None


def _show_cards(cards: Sequence[Markup], title: str, *, is_folded: bool) -> Markup | None:
    if not cards:
        return None
    content = tag("div", *cards, class_="cards")
    return _fold(f"{title} ({len(cards)})", content) if is_folded else content


def _fold(title: str, content: Markup) -> Markup:
    return tag("details", tag("summary", title), content)


def _show_card(policy: str, statements: Sequence[Statement], numbers: RowNumbers) -> Markup:
    items = [tag("li", *_link_parts(s.parts_below_policy, numbers)) for s in statements]
    most = _MOST_STATEMENTS + (len(items) == _MOST_STATEMENTS + 1)
    flags = sorted({flag for statement in statements for flag in statement.flags})
    return tag(
        "article",
        *(tag("span", flag, class_="badge plain") for flag in flags),
        tag("h3", policy) if policy else None,
        fold_rest(items, most, "more sentences"),
        class_="card",
    )
