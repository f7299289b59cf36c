"""Two versions of a memory: what changed, as a page and as a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from routeprism.exhibits import Chart, Table, shorten
from routeprism.judge import choose_command, list_explanations, state_verdict
from routeprism.orders import describe_arrival, name_base
from routeprism.printing import pluralise, printable
from routeprism.report._exhibits import chart_data, figure
from routeprism.report._exports import write_page
from routeprism.report._html import Markup, as_html, data_block, fold_rest, fragment, tag
from routeprism.report._page import Part, make_panel, page_header, shell
from routeprism.report._summary import show_verdicts
from routeprism.review.comparison import (
    Difference,
    RunComparison,
    SupportChange,
    name_quantity,
    select_differences,
)

_SHOWN_SENTENCES = 6
_MOST_LINES = 40


def write_comparison(comparison: RunComparison, path: Path) -> Path:
    """Write a comparison as a page of its own."""
    ordered = sorted(comparison.differences, key=lambda difference: difference.is_reversal)
    plain = [difference for difference in ordered if difference.is_plain]
    charts = _charts([item for item in plain if item.quantity.emphasis])
    tabs: list[Part] = [
        ("summary", "Summary", _summary(comparison, plain, charts)),
        ("questions", "Questions", _tabulate_support(comparison.support)),
        ("numbers", "All numbers", as_html(_tabulate_all(plain)) if plain else None),
    ]
    header = page_header(
        comparison.headline,
        f"{comparison.benchmark} · from {comparison.first} to {comparison.second}",
        [(name, title) for name, title, content in tabs if content],
    )
    panels = [make_panel(tab[0], [tab]) for tab in tabs]
    title = f"RoutePrism: {comparison.first} against {comparison.second}"
    blocks = [data_block("rp-charts", chart_data(charts))]
    write_page(path, shell(title, header, fragment(panels), blocks, charted=bool(charts)))
    return path


def _summary(
    comparison: RunComparison, plain: Sequence[Difference], charts: Sequence[Chart]
) -> Markup:
    """Show what got worse, what got better, and both in one forest plot."""
    changes = [
        part
        for name, sign in (("worse", -1), ("better", 1))
        for part in (
            tag("h3", f"What got {name}{_explain_repair(comparison) if sign < 0 else ''}"),
            _main_changes([d for d in plain if d.is_shown and d.direction == sign], name)
            or tag("p", f"Nothing is shown to be {name}."),
        )
    ]
    note = (
        "A change is listed if its 95% interval excludes zero. Of twenty quantities that do not "
        "change, about one is listed by chance."
    )
    sentences = [
        *comparison.sentences,
        comparison.limits,
        *(f"Note: {note}" for note in comparison.notes),
    ]
    verdicts = show_verdicts(comparison.tabulate_verdicts(), comparison.versions)
    return fragment(
        [
            tag("div", verdicts, id="verdict"),
            *changes,
            tag("p", note, class_="count"),
            tag("div", *map(figure, charts), class_="charts") if charts else None,
            tag("h3", "In sentences"),
            fold_rest([tag("li", text) for text in sentences], _SHOWN_SENTENCES, "more sentences"),
        ]
    )


def _explain_repair(comparison: RunComparison) -> str:
    """Explain that the total is better, where single numbers are worse."""
    is_better = {change.outcome for change in comparison.changes} == {"better"}
    return " in part, although the total is better" if is_better else ""


_NUMBERS = ("before", "after", "change [95%]", "questions")


def _list_numbers(difference: Difference) -> tuple[str, ...]:
    sides = f"{difference.before:.3f}", f"{difference.after:.3f}"
    return *sides, difference.change, str(difference.difference.queries)


def _main_changes(changes: Sequence[Difference], name: str) -> Markup | None:
    """Show the changes of main quantities in plain words, and count the others."""
    if not changes:
        return None
    main = select_differences(changes, "headline", "table")
    has_answers = any(difference.column.model for difference in main)
    table = Table(
        name,
        f"What got {name}",
        "Share before and after, and the difference, which is paired within units.",
        ("memory", "arrival", *(["model"] if has_answers else []), "quantity", *_NUMBERS),
        tuple(
            (
                difference.policies,
                describe_arrival(difference.column.schedule),
                *([difference.column.model] if has_answers else []),
                name_quantity(difference.column),
                *_list_numbers(difference),
            )
            for difference in main
        ),
        names=3 + has_answers,
    )
    rest = len(changes) - len(main)
    more = tag("p", f"{pluralise(rest, 'further change')} under All numbers.", class_="count")
    return fragment([as_html(table, stacked=True) if main else None, more if rest else None])


def _tabulate_all(differences: Iterable[Difference]) -> Table:
    names = ("policy", "schedule", "experiment", "model", "filler", "quantity")
    return Table(
        "differences",
        "What changed",
        "Every quantity that both runs have; the difference is paired within units.",
        (*names, *_NUMBERS),
        tuple(
            (
                difference.policies,
                difference.column.schedule,
                difference.experiment,
                difference.column.model,
                difference.column.filler,
                difference.column.quantity,
                *_list_numbers(difference),
            )
            for difference in differences
        ),
        names=len(names),
    )


def _tabulate_support(changes: Sequence[SupportChange]) -> Markup | None:
    """Show question by question which evidence is lost, then which is gained."""
    tables = [
        Table(
            name,
            title,
            f"Records that carry the answer, shown by {versions}.",
            ("question", "user", "text", "policy", "schedule", "records"),
            tuple(
                (c.question, c.user, c.text, c.policy_after, c.schedule, ", ".join(records))
                for c in changes
                if (records := getattr(c, name))
            ),
            names=6,
        )
        for name, title, versions in (
            ("lost", "Evidence lost", "the first version and no longer by the second"),
            ("kept", "Evidence gained", "the second version and not by the first"),
        )
    ]
    parts = [fragment([tag("h3", table.title), as_html(table)]) for table in tables if table.rows]
    return fragment(parts) if parts else None


def _charts(differences: Sequence[Difference]) -> list[Chart]:
    """Draw one forest plot of changes, the largest ones if there are very many."""
    largest = sorted(differences, key=lambda difference: -abs(difference.difference.value or 0))
    lines = [difference for difference in differences if difference in largest[:_MOST_LINES]]
    if not lines:
        return []
    several = len({difference.policies for difference in lines}) > 1
    labelled = [(_label(difference, several=several), difference) for difference in lines]
    return [
        Chart(
            "changes",
            "Changes with 95% intervals, new version minus old version",
            "; ".join(f"{label} {difference.change}" for label, difference in labelled),
            "forest",
            tuple(
                {
                    "label": label,
                    "estimate": difference.difference.value,
                    "lower": difference.difference.lower,
                    "upper": difference.difference.upper,
                    "questions": difference.difference.queries,
                }
                for label, difference in labelled
            ),
        )
    ]


def _label(difference: Difference, *, several: bool) -> str:
    """Label a line of the forest plot, with the memory only if there are several."""
    column = difference.column
    names = (
        name_quantity(column),
        describe_arrival(column.schedule),
        difference.policies if several else "",
        difference.experiment,
        column.model,
        column.filler if column.model else "",
        column.batch,
    )
    return " · ".join(shorten(name) for name in names if name)


# --- the comment on a pull request -----------------------------------------------------------

MARKER = "<!-- routeprism -->"
"""The first line of a comment, by which the same comment is found again."""

_MOST_QUESTIONS = 10


def write_comment(comparison: RunComparison, path: Path) -> None:
    """Write the comment."""
    write_page(path, "\n".join(_list_lines(comparison)) + "\n")


def _list_lines(comparison: RunComparison) -> list[str]:
    """List the lines of a comment."""
    changes = [(_find_change(item), item) for item in _select_changes(comparison.differences)]
    worse, better = ([item for sign, item in changes if sign == side] for side in (-1, 1))
    lines = [MARKER, f"### RoutePrism: {_escape(comparison.headline)}", ""]
    lines += _verdicts(comparison)
    lines += _table(f"Worse{_explain_repair(comparison)}", worse)
    lines += _table("Better", better)
    lines += _questions(comparison)
    lines += _explain_verdicts(comparison)
    if comparison.limits:
        lines += ["", f"<sub>{comparison.limits}.</sub>"]
    return lines + [f"\n<sub>{note}</sub>" for note in map(_escape, comparison.notes)]


def _select_changes(differences: Iterable[Difference]) -> list[Difference]:
    """Choose what a comment shows; source order, which every schedule compares with, once."""
    by_column: dict[tuple[str, ...], Difference] = {}
    for difference in select_differences(differences, "headline"):
        column = difference.column
        place = (column.policy, column.quantity, column.model, _name_order(difference))
        by_column.setdefault(place, difference)
    return list(by_column.values())


def _name_order(difference: Difference) -> str:
    schedule = difference.column.schedule
    return name_base([schedule]) if difference.is_of_base else describe_arrival(schedule)


def _find_change(difference: Difference) -> int:
    """Return -1 if a quantity is shown to be worse, 1 if better, 0 if neither is shown."""
    gap = difference.difference
    has_interval = gap.lower is not None and gap.upper is not None
    return difference.direction if difference.is_shown or not has_interval else 0


def _verdicts(comparison: RunComparison) -> Iterator[str]:
    """Yield the verdicts on both versions, in the words of the terminal."""
    yield from ("| memory | before | after |", "| --- | --- | --- |")
    for change in comparison.changes:
        old, new = change.before, change.after
        name = " → ".join(dict.fromkeys((_code(old.policy), _code(new.policy))))
        cells = (_escape("".join(map(str, state_verdict(v).parts))) for v in (old, new))
        yield f"| {name} | {' | '.join(cells)} |"


def _table(title: str, changes: Sequence[Difference]) -> Iterator[str]:
    if not changes:
        return
    yield from ("", f"#### {title}", "")
    yield "| memory | order | what | before | after | change [95%] |"
    yield "| --- | --- | --- | ---: | ---: | ---: |"
    for difference in changes:
        column = difference.column
        model = f" ({_escape(column.model)})" if column.model else ""
        yield (
            f"| {_code(column.policy)} | {_escape(_name_order(difference))} "
            f"| {_escape(difference.quantity.plain)}{model} "
            f"| {difference.before:.3f} | {difference.after:.3f} | {difference.change} |"
        )


def _questions(comparison: RunComparison) -> Iterator[str]:
    """Yield the questions that are no longer shown some evidence."""
    questions: dict[str, list[SupportChange]] = {}
    for change in comparison.support:
        if change.lost:
            questions.setdefault(change.question, []).append(change)
    if not questions:
        return
    total = max((change.after.baseline.questions for change in comparison.changes), default=0)
    count = f"{len(questions)} of {total}" if total else str(len(questions))
    yield from ("", f"#### Questions that are no longer shown some evidence ({count})", "")
    for question, changes in list(questions.items())[:_MOST_QUESTIONS]:
        schedules = dict.fromkeys(change.schedule for change in changes)
        orders = ", ".join(
            dict.fromkeys(
                "source order" if name == "forward" else describe_arrival(name)
                for name in schedules
            )
        )
        records = dict.fromkeys(record for change in changes for record in change.lost)
        yield (
            f"- {_code(question)} {_code(shorten(changes[0].text, 100))}: no longer shown "
            f"{', '.join(map(_code, records))} ({_escape(orders)})"
        )
    if len(questions) > _MOST_QUESTIONS:
        yield f"- … and {len(questions) - _MOST_QUESTIONS} more; `routeprism compare` lists them"


def _explain_verdicts(comparison: RunComparison) -> Iterator[str]:
    """Yield the cause, the repair and the next command of each new version that is not fine."""
    verdicts = [change.after for change in comparison.changes if change.after.severity != "good"]
    lines = [
        f"- {_code(verdict.policy)}: {_escape(text)}"
        for verdict in verdicts
        for text in list_explanations(verdict)
    ]
    commands = dict.fromkeys(filter(None, map(choose_command, verdicts)))
    lines += [f"- Next: {_code(command)}" for command in commands]
    if lines:
        yield from ("", "#### Cause and next step", "", *lines)


def _escape(text: str) -> str:
    """Make text from outside safe: no HTML, no links, no mention of people, no further cell."""
    plain = printable(" ".join(text.split()))
    for mark in "\\`*_[]|#":
        plain = plain.replace(mark, f"\\{mark}")
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("@", "@\u2060")


def _code(text: str) -> str:
    plain = printable(" ".join(text.split())).replace("`", "'").replace("|", "¦")
    return f"`{plain}`"
