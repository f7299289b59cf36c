"""The console that every command prints through: text from outside cannot command a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from routeprism.cli._fitting import fit_table
from routeprism.printing import printable, printable_json

__all__ = ["SafeConsole", "print_json", "print_line"]


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

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Also escape control characters in cells of tables; colours are not part of the text."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(printable(segment.text, lines=True), segment.style)


def print_line(text: str, *, file: TextIO | None = None) -> None:
    """Print one line; line breaks inside it are escaped."""
    print(printable(text), file=file)


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.write(printable_json(value) + "\n")
