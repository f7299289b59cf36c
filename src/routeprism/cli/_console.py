"""The console that every command prints through: safe texts, and tables that fit.

Text from outside cannot command a terminal. In a table that is too wide names fold, numbers stay
whole, and no column is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table

from routeprism.printing import printable, printable_json


class SafeConsole(Console):
    """A console that shows control characters of what it prints as visible escapes."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"emoji": False, **options})  # `my_module:Ring:` stays text

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, with control characters in plain text escaped; tables are fitted."""
        if len(objects) == 1 and isinstance(objects[0], Table):
            for table, width in fit_table(objects[0], self):
                wide = self if width <= self.width else SafeConsole(file=self.file, width=width)
                super(SafeConsole, wide).print(table, **options)
            return
        printables = (
            printable(item, lines=True) if isinstance(item, str) else item for item in objects
        )
        super().print(*printables, **options)

    def say(self, text: str, *, whole: bool = False, **style: Any) -> None:
        """Print a text without markup; a terminal wraps it between words, unless it is `whole`."""
        soft_wrap = whole or not self.is_terminal
        self.print(text, highlight=False, markup=False, soft_wrap=soft_wrap, **style)

    def say_whole(self, *texts: str, **style: Any) -> None:
        """Print texts without markup, each on one line however long it is."""
        for text in texts:
            self.say(text, whole=True, **style)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Also escape control characters in cells of tables; colours are not part of the text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)


_LONGEST_TEXT = 7
"""How many lines one of several texts may take where their number is limited."""


def fold_texts(texts: Iterable[str], width: int, most: int | None = None) -> list[str]:
    """Fold texts between words into lines that fit, at most as many as asked for.

    A text that is cut ends in `…`; of texts for which there is no line left, nothing is shown.
    """
    lines: list[str] = []
    for text in texts:
        folded = wrap(printable(text), max(40, width), break_on_hyphens=False)
        room = len(folded) if most is None else min(most - len(lines), _LONGEST_TEXT)
        if len(folded) > room > 0:
            words = folded[room - 1]
            folded[room - 1] = f"{words if len(words) < width - 1 else words.rpartition(' ')[0]} …"
        lines += folded[: max(0, room)]
    return lines


def print_line(text: str, *, file: TextIO | None = None) -> None:
    """Print one line; line breaks inside it are escaped."""
    print(printable(text), file=file)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(printable_json(value) + "\n")


def make_grid(title: Any = None, *, numbers: Iterable[str] = (), **names: Any) -> Table:
    """Make a table without lines: columns of names with their options, then columns of numbers."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title)
    grid.title_justify = "left"
    for heading, options in names.items():
        overflow = "ellipsis" if "no_wrap" in options else "fold"
        grid.add_column(heading, **{"overflow": overflow, **options})
    for heading in numbers:
        grid.add_column(heading, justify="right", no_wrap=True)
    return grid


_NARROWEST = 10
"""To how many characters a column of names may be folded."""


def fit_table(table: Table, console: Console) -> Iterator[tuple[Table, int]]:
    """Yield a table unchanged if it fits; otherwise folded, or as several tables.

    Each comes with the width that it needs, which is more than the console's only where the names
    and a single column of numbers are.
    """
    columns = [_Fit(column, console) for column in table.columns]
    gap = table.padding[1] + table.padding[3]
    if sum(fit.widest + gap for fit in columns) - gap <= console.width:  # none after the last
        yield table, console.width
        return
    names = [fit for fit in columns if fit.is_name]
    numbers = [fit for fit in columns if not fit.is_name]
    groups = list(_groups(names, numbers, gap, console.width))
    for group in groups:
        selected = {id(fit) for fit in (*names, *group)}
        part = [fit for fit in columns if id(fit) in selected]
        piece = _part(table, part, _allot(part, gap, console.width))
        piece.title = table.title if group is groups[0] else None
        piece.caption = table.caption if group is groups[-1] else None
        yield piece, _measure_width(part, gap, console)


class _Fit:
    """How wide a column has to be, and how wide it would like to be."""

    def __init__(self, column: Column, console: Console) -> None:
        self.column = column
        self.cells: list[RenderableType] = list(column.cells)
        sizes = [_measure(cell, console) for cell in (column.header, *self.cells)]
        longest = max((size.maximum for size in sizes), default=1)
        word = max((size.minimum for size in sizes), default=1)
        self.heading = sizes[0].maximum
        self.is_name = column.justify != "right"
        if self.is_name:
            self.least = min(longest, _NARROWEST)
        else:
            self.least = longest if column.no_wrap else word
        widest = longest if column.max_width is None else min(longest, column.max_width)
        self.widest = max(widest, column.min_width or 0, self.least)


def _measure(cell: RenderableType, console: Console) -> Measurement:
    content = console.render_str(cell) if isinstance(cell, str) else cell
    return Measurement.get(console, console.options.update(width=10_000), content)


def _groups(
    names: Sequence[_Fit], numbers: Sequence[_Fit], gap: int, width: int
) -> Iterator[list[_Fit]]:
    """Take as many columns of numbers at a time as fit beside the names."""
    beside = sum(fit.least + gap for fit in names) - gap
    group: list[_Fit] = []
    for fit in numbers:
        if group and beside + sum(column.least + gap for column in (*group, fit)) > width:
            yield group
            group = []
        group.append(fit)
    yield group


def _measure_width(part: Sequence[_Fit], gap: int, console: Console) -> int:
    return max(console.width, sum(fit.least + gap for fit in part) - gap)


def _allot(part: Sequence[_Fit], gap: int, width: int) -> list[int]:
    """Return each column what it must have, then what is left: to headings, numbers, and names."""
    widths = [fit.least for fit in part]
    left = width - sum(least + gap for least in widths) + gap
    for width_of in (
        [fit.heading for fit in part],
        [0 if fit.is_name else fit.widest for fit in part],
        [fit.widest for fit in part],
    ):
        while left > 0 and (short := [at for at, w in enumerate(widths) if w < width_of[at]]):
            for at in short[:left]:
                widths[at] += 1
            left -= len(short[:left])
    return widths


def _part(table: Table, part: Sequence[_Fit], widths: Sequence[int]) -> Table:
    """Make a table of some columns, each of a given width."""
    piece = Table(
        box=table.box,
        pad_edge=table.pad_edge,
        padding=table.padding,
        show_header=table.show_header,
        title_justify=table.title_justify,
        caption_justify=table.caption_justify,
    )
    for fit, width in zip(part, widths, strict=True):
        piece.add_column(
            fit.column.header,
            justify=fit.column.justify,
            style=fit.column.style,
            overflow="fold",
            width=width,
        )
    for cells in zip(*(fit.cells for fit in part), strict=True):
        piece.add_row(*cells)
    return piece
