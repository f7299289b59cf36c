"""The paper's numbers beside the obtained ones: a table for each label, with what it depends on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from routeprism.exhibits import Table
from routeprism.report._html import Markup, fragment, tag
from routeprism.report._tables import as_html
from routeprism.runs import Finding

__all__ = ["printed_section", "tabulate_published"]

_COLUMNS = ("row", "column", "status", "published", "here")


def tabulate_published(findings: Iterable[Finding]) -> Iterable[Table]:
    """List the numbers of all labels in one table, for files."""
    cells = tuple(
        (finding.question, *line)
        for finding in _in_order(findings)
        for line in _lines(finding.value["lines"])
    )
    if cells:
        yield Table(
            "reproduction",
            "Published numbers",
            "Each printed number beside what was obtained, and whether it is reproduced, differs, "
            "needs answers or labels that are not public (machinery), or cannot be derived.",
            ("label", *_COLUMNS),
            cells,
            names=4,
        )


def printed_section(findings: Iterable[Finding]) -> Markup | None:
    """Show each table behind its label, with the reasons and commands below it."""
    details = [_details(finding) for finding in _in_order(findings)]
    if not details:
        return None
    sentence = (
        "Each table and figure by its label. Machinery: the experiment runs, by the command below "
        "the table; the printed value depends on answers or labels that are not public."
    )
    return fragment([tag("p", sentence), *details])


def _in_order(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: int(finding.value["place"]))


def _lines(lines: Iterable[Sequence[str]]) -> list[tuple[str, ...]]:
    return [
        (row, column, status, published, obtained)
        for row, column, published, obtained, status in lines
    ]


def _details(finding: Finding) -> Markup:
    value = finding.value
    counts = ", ".join(f"{number} {status}" for status, number in value.get("counts", ()))
    table = Table(
        finding.question, finding.question, "", _COLUMNS, tuple(_lines(value["lines"])), names=3
    )
    reasons = [tag("li", reason) for reason in value["reasons"]]
    commands = [tag("pre", tag("code", command)) for command in value["commands"]]
    return tag(
        "details",
        tag("summary", f"{finding.question}: {value['title']}{f' ({counts})' if counts else ''}"),
        as_html(table),
        tag("ul", *reasons) if reasons else None,
        fragment(commands),
        id=finding.question.replace(":", "-"),
    )
