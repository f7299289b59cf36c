"""HTML whose every text is escaped where it is put in, tables in every format, Vega's script."""

from __future__ import annotations

import hashlib
import html
import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from routeprism.errors import MissingExtraError, RunError
from routeprism.exhibits import Number, Part, Table
from routeprism.quantities import find_quantity, list_quantities
from routeprism.runs import EstimateRow
from routeprism.spreadsheets import write_csv

_VOID = frozenset({"col", "hr", "input", "link", "meta"})


class Markup(str):
    """Markup that was made by `tag`; any other string is text, and is escaped."""

    __slots__ = ()


def tag(name: str, *children: str | None, **attributes: str | bool | None) -> Markup:
    """Make an element. `class_` loses its underscore, others turn into hyphens; None is left out.

    True gives an attribute without a value, False none.
    """
    pieces = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            pieces.append(attribute)
        elif value is not None and value is not False:
            pieces.append(f'{attribute}="{html.escape(reveal_controls(str(value)))}"')
    opening = f"<{' '.join(pieces)}>"
    if name in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{fragment(children)}</{name}>")


def fragment(children: Iterable[str | None]) -> Markup:
    """Put markup and texts one after the other."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(reveal_controls(child), quote=False)
            for child in children
            if child is not None
        )
    )


def fold_rest(items: Sequence[Markup], most: int, more: str) -> Markup:
    """Make a list that shows its first items, and the rest after a click on how many `more`."""
    rest = items[most:]
    details = tag("details", tag("summary", f"{len(rest)} {more}"), tag("ul", *rest))
    return fragment([tag("ul", *items[:most]), details if rest else None])


_CONTROLS = {code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def reveal_controls(text: str) -> str:
    """Show characters that change the direction of a text as their names.

    Left in place, one of them in a record would turn the words around it. Marks that languages
    written from right to left need (U+200E, U+200F, U+061C) stay.
    """
    return text.translate(_CONTROLS)


def data_block(identity: str, value: object) -> Markup:
    """Make a block of JSON for scripts to read; nothing in it can end the block."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    opening = f'<script type="application/json" id="{html.escape(identity)}">'
    return Markup(f"{opening}{text}</script>")


_FOLDER = Path(__file__).parent


def read_asset(name: str) -> str:
    """Read a file that belongs to the page."""
    return (_FOLDER / "assets" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Return the script that defines `vegaEmbed`."""
    return read_script(_FOLDER)


def read_script(folder: Path) -> str:
    """Read `vega.js`, which becomes part of every report; refuse any script but the expected one.

    A source tree that was never built has no such file; there vl-convert makes the script.
    """
    digest = (folder / "vega.sha256").read_text(encoding="utf-8").split()[0]
    path = folder / "vega.js"
    script = path.read_bytes() if path.is_file() else _make_script()
    if hashlib.sha256(script).hexdigest() != digest:
        raise RunError(
            f"{path} is not the script that this version of RoutePrism uses; install RoutePrism "
            "again: pip install --force-reinstall --no-deps routeprism"
        )
    return script.decode()


def _make_script() -> bytes:
    try:
        import vl_convert
    except ModuleNotFoundError:
        purpose = "a report from a source tree that was not installed (vl-convert makes its script)"
        raise MissingExtraError(purpose, "charts") from None
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.encode()


# --- tables -----------------------------------------------------------------------------------

NO_BREAK = "\N{NO-BREAK SPACE}"
RowNumbers = Mapping[EstimateRow, int]
"""The number of each row of a run, counted from 1."""


def link_number(number: Number, rows: RowNumbers) -> Markup | str:
    """Link a number to its row in the table of all estimates."""
    at = rows.get(number.row)
    text = _join_interval(number.text)
    if at is None:
        return text
    return tag("a", text, href=f"#row={at}", title=f"Row {at} of all estimates")


def as_csv(table: Table) -> str:
    """Write a table as CSV."""
    return write_csv(table.columns, ([str(cell) for cell in row] for row in table.rows))


_SHOWN_ROWS = 6
"""How many rows a long table shows before it is opened."""
_MANY_COLUMNS = 9


def as_html(
    table: Table,
    rows: RowNumbers | None = None,
    *,
    marks: Mapping[str, Markup] | None = None,
    bars: Collection[str] = (),
    stacked: bool = False,
) -> Markup:
    """Write a table for the page, whose script adds sorting, copying and downloading.

    `marks` stand before the names of rows; percentages in the columns `bars` also have a bar. On
    a phone, a `stacked` table shows the cells of a row below each other.
    """
    style = _Style(table, rows or {}, marks or {}, bars, stacked)
    head = tag("tr", *(_header(table, at) for at in range(len(table.columns))))
    beyond = len(table.rows) > _SHOWN_ROWS + 2
    body = [
        tag(
            "tr",
            *(_cell(cell, at, style) for at, cell in enumerate(row)),
            class_="beyond" if beyond and number >= _SHOWN_ROWS else None,
        )
        for number, row in enumerate(table.rows)
    ]
    table_tag = tag(
        "table",
        tag("caption", table.caption) if table.caption else None,
        tag("thead", head),
        tag("tbody", fragment(body)),
        class_="dense" if len(table.columns) > _MANY_COLUMNS else None,
    )
    scroll = tag(
        "div", table_tag, class_="scroll", tabindex="0", role="region", aria_label=table.title
    )
    kind = "exhibit stacked" if stacked else "exhibit"
    return tag("div", scroll, class_=kind, data_table=table.name)


def _header(table: Table, at: int) -> Markup:
    column = table.columns[at]
    words = at < table.names or all(_is_words(str(row[at])) for row in table.rows if row[at])
    return tag(
        "th",
        column,
        scope="col",
        class_=None if words else "number",
        data_help=explain_column(column) or table.caption or table.title,
    )


def _is_words(text: str) -> bool:
    return len(text) > _LONG or not any(character.isdigit() for character in text)


@dataclass(frozen=True, slots=True)
class _Style:
    """How the cells of a table are shown."""

    table: Table
    rows: RowNumbers
    marks: Mapping[str, Markup]
    bars: Collection[str]
    stacked: bool


_LONG = 40
_SHARE = re.compile(r"(\d+(?:\.\d)?) of (\d+(?:\.\d)?)(?: on average)?")
_PERCENT = re.compile(r"(\d+)%")


def _cell(cell: Part, at: int, style: _Style) -> Markup:
    """Make a cell; shares also have a bar."""
    text, table = str(cell), style.table
    long = "long" if len(text) > _LONG else None
    if at == 0:
        mark = style.marks.get(text)
        return tag("th", mark, " " if mark else None, tag("bdi", text), scope="row", class_=long)
    column = table.columns[at] if style.stacked else None
    if at < table.names:
        return tag("td", text, class_=long, data_column=column)
    if not text:
        none = tag("span", "n/a", class_="none")
        return tag("td", none, class_="number", data_column=column)
    if _is_words(text):
        return tag("td", text, class_="words", data_column=column)
    content = _join_interval(text) if isinstance(cell, str) else link_number(cell, style.rows)
    bar = _bar(text, table.columns[at] in style.bars)
    return tag("td", content, bar, class_="number", data_column=column)


def _bar(text: str, is_bar: bool) -> Markup | None:
    """Draw a share as a bar: a count out of a number, or a percentage where one is wanted."""
    if share := _SHARE.fullmatch(text):
        part, whole = map(float, share.groups())
        value = part / whole if whole else 0
    elif is_bar and (percent := _PERCENT.fullmatch(text)):
        value = int(percent[1]) / 100
    else:
        return None
    return tag("span", class_="share", style=f"--share:{value:.4f}")


def _join_interval(text: str) -> str:
    """Keep an interval on one line, which may be the line below its estimate."""
    estimate, bracket, interval = text.partition(" [")
    joined = interval.replace(" ", NO_BREAK)
    return f"{estimate}{bracket}{joined}" if bracket else text


def as_markdown(table: Table) -> str:
    """Write a table as GitHub-flavoured Markdown."""
    marks = ["---" if at < table.names else "---:" for at in range(len(table.columns))]
    lines = [f"### {_markdown(table.title)}", "", _markdown(table.caption), ""]
    for cells in (table.columns, marks, *table.rows):
        texts = cells if cells is marks else [_markdown(str(cell)) or "n/a" for cell in cells]
        lines.append(f"| {' | '.join(texts)} |")
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
        *(" & ".join(_latex(str(cell)) or "--" for cell in row) + r" \\" for row in table.rows),
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


@cache
def _read_columns() -> Mapping[str, str]:
    columns: Mapping[str, str] = json.loads(read_asset("columns.json"))
    return columns


def explain_column(name: str) -> str:
    """Explain a column in a sentence; empty if its name says nothing more."""
    if text := _read_columns().get(name):
        return text
    name = name.removesuffix(" [95%]")
    symbols = (q.meaning for q in list_quantities() if q.symbol == name)
    return find_quantity(name).meaning or next(symbols, "")
