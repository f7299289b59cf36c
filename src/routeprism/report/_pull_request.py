"""Two versions of a memory as a comment on a pull request: worse, better, questions, remedy."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from routeprism.exhibits import Statement, read_statements, shorten
from routeprism.experiments.severity import describe_arrival, name_base
from routeprism.printing import printable
from routeprism.report._write import write_page
from routeprism.review import RunComparison
from routeprism.review.comparison import Difference, SupportChange, find_direction
from routeprism.runs import StoredRun, format_interval

__all__ = ["MARKER", "as_comment", "write_comment"]

MARKER = "<!-- routeprism -->"
"""The first line of a comment, by which the same comment is found again."""

_NAMES: Mapping[str, str] = {
    "evidence_lost": "questions that lose evidence",
    "recall.exposed.forward": "evidence shown",
    "recall.exposed.route": "evidence shown",
    "J": "records shown as in source order (overlap)",
    "accuracy.forward": "right answers",
    "accuracy.route": "right answers",
    "D_res": "answers that order changes",
}
"""The quantities of a comment in plain words, the most important first."""
_LOWER = ("evidence_lost",)
_MOST_QUESTIONS = 10


def write_comment(comparison: RunComparison, first: Path, second: Path, path: Path) -> None:
    """Write the comment; the runs have the verdicts and the causes."""
    statements = []
    for run in (first, second):
        with StoredRun(run) as stored:
            statements.append(read_statements(stored.manifest(), stored.estimates()))
    write_page(path, as_comment(comparison, *statements))


def as_comment(
    comparison: RunComparison, before: Sequence[Statement], after: Sequence[Statement]
) -> str:
    """Write a comparison as Markdown, given the statements of both runs."""
    changes = _select_changes(comparison.differences)
    worse = [difference for difference in changes if _find_change(difference) < 0]
    better = [difference for difference in changes if _find_change(difference) > 0]
    lost = [change for change in comparison.support if change.lost]
    lines = [MARKER, f"### RoutePrism: {_title(worse, better, lost)}", ""]
    lines += _verdicts(comparison, before, after)
    lines += _table("Worse", worse)
    lines += _table("Better", better)
    lines += _questions(lost)
    lines += _remedies(
        after, [pair[1] for pair in comparison.pairs], comparison.benchmark, bool(worse)
    )
    if comparison.limits:
        lines += ["", f"<sub>{comparison.limits}.</sub>"]
    lines += [f"\n<sub>{note}</sub>" for note in map(_text, comparison.notes)]
    return "\n".join(lines) + "\n"


def _select_changes(differences: Iterable[Difference]) -> list[Difference]:
    """Choose what a comment shows; source order, which every schedule compares with, once."""
    by_column: dict[tuple[str, ...], Difference] = {}
    for difference in differences:
        column = difference.column
        if column.quantity in _NAMES and not (column.arm or column.mask):
            place = (column.policy, column.quantity, column.model, _name_order(difference))
            by_column.setdefault(place, difference)
    names = list(_NAMES)
    return sorted(
        by_column.values(), key=lambda difference: names.index(difference.column.quantity)
    )


def _name_order(difference: Difference) -> str:
    forward = difference.column.quantity.endswith(".forward")
    schedule = difference.column.schedule
    return name_base([schedule]) if forward else describe_arrival(schedule)


def _find_change(difference: Difference) -> int:
    """Return -1 if a quantity is shown to be worse, 1 if better, 0 if neither is shown."""
    quantity, gap = difference.column.quantity, difference.difference
    direction = -1 if quantity in _LOWER else find_direction(quantity)
    if gap.value is None or gap.value == 0:
        return 0
    unclear = gap.lower is not None and gap.upper is not None and gap.lower <= 0 <= gap.upper
    return 0 if unclear else direction * (1 if gap.value > 0 else -1)


def _title(
    worse: Sequence[Difference], better: Sequence[Difference], lost: Sequence[SupportChange]
) -> str:
    if worse:
        return "this change makes the memory worse"
    if lost:
        number = len({change.question for change in lost})
        return f"this change loses evidence on {number} question{'s' * (number != 1)}"
    return "this change makes the memory better" if better else "no change was shown"


def _verdicts(
    comparison: RunComparison, before: Iterable[Statement], after: Iterable[Statement]
) -> Iterator[str]:
    sides = [
        {
            statement.policy: "".join(map(str, statement.parts))
            for statement in statements
            if statement.kind == "severity"
        }
        for statements in (before, after)
    ]
    yield from ("| memory | before | after |", "| --- | --- | --- |")
    for old, new in comparison.pairs:
        name = _code(new) if old == new else f"{_code(old)} → {_code(new)}"
        cells = (
            _text(side.get(policy, "–")) for side, policy in zip(sides, (old, new), strict=True)
        )
        yield f"| {name} | {' | '.join(cells)} |"


def _table(title: str, changes: Sequence[Difference]) -> Iterator[str]:
    if not changes:
        return
    yield from ("", f"#### {title}", "")
    yield from ("| memory | order | what | before | after | change [95%] |",)
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    for difference in changes:
        column, gap = difference.column, difference.difference
        model = f" ({_text(column.model)})" if column.model else ""
        change = format_interval(gap.value, gap.lower, gap.upper, signed=True)
        yield (
            f"| {_code(column.policy)} | {_text(_name_order(difference))} "
            f"| {_NAMES[column.quantity]}{model} "
            f"| {difference.before:.3f} | {difference.after:.3f} | {change} |"
        )


def _questions(lost: Sequence[SupportChange]) -> Iterator[str]:
    questions: dict[str, list[SupportChange]] = {}
    for change in lost:
        questions.setdefault(change.question, []).append(change)
    if not questions:
        return
    yield from ("", f"#### Questions that lose evidence ({len(questions)})", "")
    for question, changes in list(questions.items())[:_MOST_QUESTIONS]:
        orders = ", ".join(
            dict.fromkeys(
                "source order"
                if difference.schedule == "forward"
                else describe_arrival(difference.schedule)
                for difference in changes
            )
        )
        records = dict.fromkeys(record for difference in changes for record in difference.lost)
        yield (
            f"- {_code(question)} {_code(shorten(changes[0].text, 100))}: no longer shown "
            f"{', '.join(map(_code, records))} ({_text(orders)})"
        )
    if len(questions) > _MOST_QUESTIONS:
        yield f"- … and {len(questions) - _MOST_QUESTIONS} more; `routeprism compare` lists them"


def _remedies(
    after: Sequence[Statement], policies: Sequence[str], benchmark: str, worse: bool
) -> Iterator[str]:
    """Yield the measured repairs and the likely causes; else the command that measures repairs."""
    statements = [s for s in after if s.kind in ("remedies", "causes") and s.policy in policies]
    if not statements and not worse:
        return
    yield from ("", "#### Remedy", "")
    for statement in statements:
        yield f"- {_code(statement.policy)}: {_text(''.join(map(str, statement.parts)))}"
    for policy in policies:
        steps = [s.next_step for s in statements if s.policy == policy and s.next_step]
        command = shlex.join(["routeprism", "remedy", benchmark, "--policy", policy])
        yield f"- Measure repairs: {_code(steps[0] if steps else command)}"


def _text(text: str) -> str:
    """Make text from outside safe: no HTML, no links, no mention of people, no further cell."""
    plain = printable(" ".join(text.split()))
    for mark in "\\`*_[]|#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\u2060")


def _code(text: str) -> str:
    plain = printable(" ".join(text.split())).replace("`", "'").replace("|", "¦")
    return f"`{plain}`"
