"""Tables as HTML, Markdown and LaTeX."""

from __future__ import annotations

import re

from routeprism.report._html import Markup, fragment, tag
from routeprism.report._row_links import row_link
from routeprism.report._table import Shown, Table

__all__ = ["as_html", "as_latex", "as_markdown"]


def as_html(table: Table, *, caption: bool = True) -> Markup:
    """Write a table for the page; it scrolls on its own where it is too wide."""
    head = tag(
        "tr",
        *(
            tag("th", column, scope="col", class_="number" if at >= table.names else None)
            for at, column in enumerate(table.columns)
        ),
    )
    body = [
        tag("tr", *(_cell(cell, at, table.names) for at, cell in enumerate(row)))
        for row in table.rows
    ]
    shown = tag(
        "table",
        tag("caption", table.caption) if caption else None,
        tag("thead", head),
        tag("tbody", fragment(body)),
    )
    return tag("div", shown, class_="scroll", tabindex="0", role="region", aria_label=table.title)


_LONG = 40


_SHARE = re.compile(r"(\d+) of (\d+)")


def _cell(text: str, at: int, names: int) -> Markup:
    """Make a cell; shares also have a bar."""
    long = "long" if len(text) > _LONG else None
    if at == 0:
        return tag("th", text, scope="row", class_=long)
    if at < names:
        return tag("td", text, class_=long)
    if not text:
        return tag("td", tag("span", "n/a", class_="none"), class_="number")
    bar = None
    if share := _SHARE.fullmatch(text):
        part, whole = map(int, share.groups())
        bar = tag("span", class_="share", style=f"--share:{part / whole if whole else 0:.4f}")
    shown: Markup | str = text
    if isinstance(text, Shown) and text.number is not None:
        shown = row_link(text, text.number)
    return tag("td", shown, bar, class_="number")


def as_markdown(table: Table) -> str:
    """Write a table as GitHub-flavoured Markdown."""
    marks = ["---" if at < table.names else "---:" for at in range(len(table.columns))]
    lines = [f"### {_markdown(table.title)}", "", _markdown(table.caption), ""]
    for cells in (table.columns, marks, *table.rows):
        shown = cells if cells is marks else [_markdown(cell) or "n/a" for cell in cells]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$" else c for c in text)
    return " ".join(escaped.replace("&", "&amp;").split())


def as_latex(table: Table) -> str:
    """Write a table for LaTeX with the booktabs package."""
    columns = "l" * table.names + "r" * (len(table.columns) - table.names)
    lines = [
        r"\begin{table}",
        rf"\caption{{{_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(_latex(column) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(_latex(cell) or "--" for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "κ": r"$\kappa$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "Γ": r"$\Gamma$",
    "−": "$-$",
    "×": r"$\times$",
    "[": "{[}",
    "]": "{]}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _latex(text: str) -> str:
    return " ".join("".join(_LATEX.get(character, character) for character in text).split())
