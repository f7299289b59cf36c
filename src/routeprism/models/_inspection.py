"""Looking recorded answers up before any is used: what is missing, and what would serve twice."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import NoReturn

from routeprism.errors import InputError
from routeprism.models._contracts import Ask
from routeprism.models._recorded_rows import Cell, Entry
from routeprism.models.recorded import Recorded

__all__ = ["Inspection"]

_SHOWN = 5
"""How many missing answers, or known names, are named."""
_SHARED = "pair"
"""Comparisons of several routes with forward may share its answers (PROTOCOL §6)."""


class Inspection:
    """What a run takes from a file of recorded answers."""

    def __init__(self, model: Recorded) -> None:
        self._model = model
        self._missing: dict[Cell, None] = {}
        self._owners: dict[int, Cell] = {}

    def look(self, ask: Ask) -> Entry | None:
        """Look one answer up, and keep in mind what it is for."""
        cell = self._model.cell(ask)
        entry = self._model.entries.find(cell)
        if entry is None:
            self._missing[cell] = None
            return None
        owner = self._owners.setdefault(entry.line, cell)
        if owner != cell and (apart := _apart(owner, cell)):
            self._refuse_shared(entry, (owner, cell), apart)
        return entry

    def finish(self) -> str:
        """Refuse a file that lacks answers; say what of it is not used."""
        if number := len(self._missing):
            first = "; ".join(str(cell) for cell in list(self._missing)[:_SHOWN])
            raise InputError(
                f"{number:,} answer{'s' if number > 1 else ''} that this run needs "
                f"{'are' if number > 1 else 'is'} not in it"
                + (f", such as: {first}" if number > _SHOWN else f": {first}")
                + "".join(f". {hint}" for hint in self._hints()),
                file=self._model.file,
            )
        lines = self._model.entries.lines
        left = [line for line in lines if line not in self._owners]
        if not left:
            return ""
        return (
            f"{self._model.name}: {len(left):,} of {len(lines):,} recorded answers belong to no "
            f"comparison of this run, the first in line {left[0]}"
        )

    def _refuse_shared(
        self, entry: Entry, cells: tuple[Cell, Cell], apart: Sequence[str]
    ) -> NoReturn:
        sides = (
            ", ".join(f"{name}={cell.names[name] or '(none)'}" for name in apart) for cell in cells
        )
        raise InputError(
            f"the answer would serve for {' and for '.join(sides)}; a column has to say for which",
            file=self._model.file,
            line=entry.line,
            field=apart[0],
        )

    def _hints(self) -> list[str]:
        """Name what is wanted and nowhere in the file, column by column."""
        hints = []
        for name in next(iter(self._missing)).names:
            known = [value for value in self._model.entries.values(name) if value]
            if not known or name == "prompt_sha256":
                continue
            wanted = {cell.names[name] for cell in self._missing}
            for unknown in sorted(wanted - {"", *known})[:1]:
                close = difflib.get_close_matches(unknown, known, n=1, cutoff=0.5)
                some = ", ".join(close or known[:_SHOWN])
                more = "" if close or len(known) <= _SHOWN else ", …"
                hints.append(f"No row has {name}={unknown}; it has {some}{more}")
        return hints


def _apart(one: Cell, other: Cell) -> list[str]:
    names, others = one.names, other.names
    return [name for name in names if names[name] != others[name] and name != _SHARED]
