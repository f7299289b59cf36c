"""Two versions of a memory on one page: what changed, and which questions lost their support."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from routeprism.exhibits import Chart, Table, shorten
from routeprism.experiments.severity import LEVELS, MemoryVerdict, describe_arrival
from routeprism.experiments.statements import pluralise
from routeprism.report._figures import chart_data, figure
from routeprism.report._html import Markup, data_block, fragment, tag
from routeprism.report._page import page_header, shell
from routeprism.report._summary import show_verdicts
from routeprism.report._tables import as_html
from routeprism.report._write import write_page
from routeprism.review import RunComparison
from routeprism.review.comparison import (
    MAIN_QUANTITIES,
    Difference,
    SupportChange,
    find_direction,
    is_reversal,
    name_experiment,
    name_quantity,
)
from routeprism.runs import format_interval

__all__ = ["write_comparison"]


def write_comparison(comparison: RunComparison, path: Path) -> Path:
    """Write a comparison as a page of its own."""
    plain = [
        difference
        for difference in sorted(comparison.differences, key=is_reversal)
        if not (difference.column.arm or difference.column.mask)
    ]
    worse = [difference for difference in plain if _judge(difference) < 0]
    better = [difference for difference in plain if _judge(difference) > 0]
    charts = _charts(
        [difference for difference in plain if difference.column.quantity in MAIN_QUANTITIES]
    )
    tabs: list[tuple[str, str, Markup | None]] = [
        ("summary", "Summary", _summary(comparison, worse, better, charts)),
        ("questions", "Questions", _questions(comparison.support)),
        ("numbers", "All numbers", as_html(_differences(plain)) if plain else None),
    ]
    visible = [(name, title, content) for name, title, content in tabs if content]
    panels = [
        tag("div", _section(title, content), id=f"tab-{name}", class_="panel")
        for name, title, content in visible
    ]
    header = page_header(
        _headline(comparison),
        f"{comparison.benchmark} · from {comparison.first} to {comparison.second}",
        [(name, title) for name, title, _ in visible],
    )
    title = f"RoutePrism: {comparison.first} against {comparison.second}"
    blocks = [data_block("rp-charts", chart_data(charts))]
    write_page(path, shell(title, header, fragment(panels), blocks, charted=bool(charts)))
    return path


def _headline(comparison: RunComparison) -> str:
    """Summarise the comparison: how severity changes, and which evidence is lost."""
    number = len({change.question for change in comparison.support if change.lost})
    lost = f"loses evidence for {pluralise(number, 'question')}"
    if len(comparison.verdicts) == 1:
        head, is_worse = _describe_step(*comparison.verdicts[0])
        return f"{head}, but the new one {lost}." if number and not is_worse else f"{head}."
    if number or not comparison.verdicts:
        return f"The new version {lost if number else 'loses no evidence that the old one showed'}."
    steps = [_count_levels(*pair) for pair in comparison.verdicts]
    worse, better = sum(step > 0 for step in steps), sum(step < 0 for step in steps)
    return f"Of {len(steps)} memories, {worse} are worse and {better} are better."


def _count_levels(before: MemoryVerdict, after: MemoryVerdict) -> int:
    """Count by how many levels the new version is more severe."""
    return LEVELS.index(after.level) - LEVELS.index(before.level)


def _describe_step(before: MemoryVerdict, after: MemoryVerdict) -> tuple[str, bool]:
    """Describe how the severity of a memory changes, and return whether it is worse."""
    step = _count_levels(before, after)
    if not step:
        return f"Both versions: {after.level}", False
    change = f"from “{before.level}” to “{after.level}”"
    return f"The new version is {'worse' if step > 0 else 'better'}: {change}", step > 0


def _judge(difference: Difference) -> int:
    """Return 1 if a quantity got better, -1 if it got worse, 0 if its interval leaves that open."""
    change = difference.difference
    if change.lower is None or change.upper is None or change.lower <= 0 <= change.upper:
        return 0
    return find_direction(difference.column.quantity) * (1 if change.lower > 0 else -1)


def _section(title: str, content: Markup) -> Markup:
    return tag("section", tag("h2", title), content, aria_label=title)


def _summary(
    comparison: RunComparison,
    worse: Sequence[Difference],
    better: Sequence[Difference],
    charts: Sequence[Chart],
) -> Markup:
    """Show what got worse, what got better, and both in one forest plot."""
    verdict_lines = [
        (f"{version}: {verdict.policy}", verdict)
        for pair in comparison.verdicts
        for version, verdict in zip(("before", "after"), pair, strict=True)
    ]
    note = (
        "A change is listed if its 95% interval excludes zero. Of twenty quantities that do not "
        "change, about one is listed by chance."
    )
    return fragment(
        [
            tag("div", show_verdicts(comparison.tabulate_verdicts(), verdict_lines), id="verdict"),
            tag("h3", "What got worse"),
            _main_changes(worse, "worse", "What got worse")
            or tag("p", "Nothing is shown to be worse."),
            tag("h3", "What got better"),
            _main_changes(better, "better", "What got better")
            or tag("p", "Nothing is shown to be better."),
            tag("p", note, class_="count"),
            tag("div", *map(figure, charts), class_="charts") if charts else None,
            tag("h3", "In sentences"),
            _sentences(comparison),
        ]
    )


def _main_changes(changes: Sequence[Difference], name: str, title: str) -> Markup | None:
    """Show the changes of main quantities in plain words, and count the others."""
    if not changes:
        return None
    main = [difference for difference in changes if difference.column.quantity in MAIN_QUANTITIES]
    main.sort(key=lambda difference: list(MAIN_QUANTITIES).index(difference.column.quantity))
    has_answers = any(difference.column.model for difference in main)
    table = Table(
        name,
        title,
        "Share before and after, and the difference, which is paired within units.",
        (
            *("memory", "arrival", *(["model"] if has_answers else []), "quantity"),
            *("before", "after", "change [95%]", "questions"),
        ),
        tuple(
            (
                _name_policies(difference),
                describe_arrival(difference.column.schedule),
                *([difference.column.model] if has_answers else []),
                name_quantity(difference.column),
                f"{difference.before:.3f}",
                f"{difference.after:.3f}",
                _change(difference),
                str(difference.difference.queries),
            )
            for difference in main
        ),
        names=3 + has_answers,
    )
    rest = len(changes) - len(main)
    more = tag("p", f"{pluralise(rest, 'further change')} under All numbers.", class_="count")
    return fragment([as_html(table, stacked=True) if main else None, more if rest else None])


def _questions(changes: Sequence[SupportChange]) -> Markup | None:
    """Show question by question which evidence is lost, then which is gained."""
    lost = [change for change in changes if change.lost]
    changes_with_records = [change for change in changes if change.kept]
    tables = [
        *([_support(lost, lost=True)] if lost else []),
        *([_support(changes_with_records, lost=False)] if changes_with_records else []),
    ]
    parts = [fragment([tag("h3", table.title), as_html(table)]) for table in tables]
    return fragment(parts) if parts else None


def _sentences(comparison: RunComparison) -> Markup:
    sentences = [
        *comparison.sentences,
        comparison.limits,
        *(f"Note: {note}" for note in comparison.notes),
    ]
    items = [tag("li", sentence) for sentence in sentences]
    rest = items[_SHOWN_SENTENCES:]
    more = tag("details", tag("summary", f"{len(rest)} more sentences"), tag("ul", *rest))
    return fragment([tag("ul", *items[:_SHOWN_SENTENCES]), more if rest else None])


_SHOWN_SENTENCES = 6


def _name_policies(difference: Difference) -> str:
    before, after = difference.policy_before, difference.column.policy
    return after if before == after else f"{before} → {after}"


def _names(difference: Difference) -> tuple[str, ...]:
    column = difference.column
    where = (
        _name_policies(difference),
        column.schedule,
        name_experiment(difference),
        column.model,
        column.filler,
    )
    return *where, column.quantity


def _change(difference: Difference) -> str:
    change = difference.difference
    return format_interval(change.value, change.lower, change.upper, signed=True)


def _differences(
    plain: Sequence[Difference], name: str = "differences", title: str = "What changed"
) -> Table:
    return Table(
        name,
        title,
        "Every quantity that both runs have; the difference is paired within units.",
        (
            *("policy", "schedule", "experiment", "model", "filler", "quantity"),
            *("before", "after", "change [95%]", "questions"),
        ),
        tuple(
            (
                *_names(difference),
                f"{difference.before:.3f}",
                f"{difference.after:.3f}",
                _change(difference),
                str(difference.difference.queries),
            )
            for difference in plain
        ),
        names=6,
    )


_MOST_LINES = 40


def _charts(differences: Sequence[Difference]) -> list[Chart]:
    """Draw one forest plot of changes, the largest ones if there are very many."""
    measured = [
        difference
        for difference in differences
        if not difference.column.quantity.startswith("count.")
    ]
    largest = sorted(measured, key=lambda difference: -abs(difference.difference.value or 0))[
        :_MOST_LINES
    ]
    lines = [difference for difference in measured if difference in largest]
    if not lines:
        return []
    several = len({_name_policies(difference) for difference in lines}) > 1
    labels = [_label(difference, several=several) for difference in lines]
    return [
        Chart(
            "changes",
            "Changes with 95% intervals, new version minus old version",
            "; ".join(
                f"{label} {_change(difference)}"
                for label, difference in zip(labels, lines, strict=True)
            ),
            "forest",
            tuple(
                {
                    "label": label,
                    "estimate": difference.difference.value,
                    "lower": difference.difference.lower,
                    "upper": difference.difference.upper,
                    "questions": difference.difference.queries,
                }
                for label, difference in zip(labels, lines, strict=True)
            ),
        )
    ]


def _label(difference: Difference, *, several: bool) -> str:
    """Label a line of the forest plot, with the memory only if there are several."""
    column = difference.column
    names = (
        name_quantity(column),
        describe_arrival(column.schedule),
        _name_policies(difference) if several else "",
        *(
            name_experiment(difference),
            column.model,
            column.filler if column.model else "",
            column.batch,
        ),
    )
    return " · ".join(shorten(name) for name in names if name)


def _support(changes: Sequence[SupportChange], *, lost: bool) -> Table:
    return Table(
        "lost" if lost else "kept",
        "Evidence lost" if lost else "Evidence gained",
        "Records that carry the answer, shown by the first version and no longer by the second."
        if lost
        else "Records that carry the answer, shown by the second version and not by the first.",
        ("question", "user", "text", "policy", "schedule", "records"),
        tuple(
            (
                change.question,
                change.user,
                change.text,
                change.policy_after,
                change.schedule,
                ", ".join(change.lost if lost else change.kept),
            )
            for change in changes
        ),
        names=6,
    )
