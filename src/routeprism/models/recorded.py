"""`recorded:FILE`: answers that were collected elsewhere, from a CSV or JSON-lines file.

Columns: `draw` and `answer`; to say which prompt it answers, `prompt_sha256`, or `question`,
`policy` and `schedule` (also called `route`) with `condition`, `pair`, `design`, `filler` and
`prompt_control` where they tell answers apart; optional `batch`, `model`, `correct` and
`submission`. A file may have both ways of naming prompts (docs/recorded-answers.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from routeprism.errors import InputError, ModelError
from routeprism.models._answer_files import OPTIONAL, ROUTE, Row, read_content, rows
from routeprism.models._contracts import Ask, Reply
from routeprism.models._recorded_rows import BATCH_STEP, NOT_SAID, Cell, Entries

__all__ = ["Recorded"]


@dataclass(frozen=True, slots=True)
class Recorded:
    """Gives back answers from a file; what is not in it is an error that says what is missing."""

    file: str
    """Where they are: CSV, or JSON lines if it begins with a JSON object; either may be gzipped."""
    batch: str | None = None
    """Which batch to give, whatever batch is asked for; each its own unless said."""
    model: str | None = None
    """Whose answers to give, where the file has several models'."""
    entries: Entries = field(init=False, repr=False, compare=False)
    _digest: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        content = read_content(Path(self.file))
        chosen = list(rows(content, Path(self.file)))
        if self.batch is not None:
            chosen = _only(chosen, "batch", self.batch, self.file)
        chosen = _only(chosen, "model", self.model, self.file)
        object.__setattr__(self, "entries", Entries(chosen, Path(self.file)))
        object.__setattr__(self, "_digest", hashlib.sha256(content).hexdigest())

    @staticmethod
    def held(file: str) -> list[str]:
        """Name the models whose answers a file holds, in the order of the file."""
        found = rows(read_content(Path(file)), Path(file))
        return list(dict.fromkeys(row.get("model", "") for _, row in found))

    @property
    def name(self) -> str:
        """The spec that every output says."""
        chosen = {"batch": self.batch, "model": self.model}
        said = [f"{key}={value}" for key, value in chosen.items() if value is not None]
        return ",".join([f"recorded:{self.file}", *said])

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """What the file holds, not where it is."""
        return {"sha256": self._digest, "batch": self.batch, "model": self.model}

    @property
    def embedded(self) -> bool:
        """Whoever answered is not part of this package."""
        return False

    @property
    def concurrency(self) -> int:
        """As many as are written down together: there is nobody to wait for but the disk."""
        return 256

    def answer(self, ask: Ask, /) -> Reply:
        """Give the recorded answer to this very prompt, or to this question on this route."""
        return self._reply(self.cell(ask))

    def cell(self, ask: Ask) -> Cell:
        """Say what is looked for."""
        if self.by_place:
            place = dict(ask.place)
            if not place:
                raise ModelError(f"{self.file} names questions and routes, and this is neither")
            return _cell(place, ask.turn, ask.batch)
        digest = hashlib.sha256(ask.text.encode(errors="surrogatepass")).hexdigest()
        key = (("prompt_sha256", digest),)
        return Cell(key, NOT_SAID, ask.batch, ask.draw % BATCH_STEP)

    def lookup(
        self, *, question: str, policy: str, schedule: str, draw: int, batch: str = "", **more: str
    ) -> Reply:
        """Give the recorded answer of a question on a route; `more` are other columns."""
        names = {"question": question, "policy": policy, "schedule": schedule, **more}
        return self._reply(_cell(names, draw, batch))

    @property
    def by_place(self) -> bool:
        """Whether answers are found by question and route alone."""
        return self.by_route and not self.by_prompt

    @property
    def by_prompt(self) -> bool:
        """Whether any answer names its prompt by hash."""
        return self.entries.has("prompt_sha256")

    @property
    def by_route(self) -> bool:
        """Whether any answer names its question and route."""
        return self.entries.has("question")

    @property
    def judged(self) -> bool:
        """Whether verdicts were recorded with the answers."""
        return self.entries.judged

    def _reply(self, cell: Cell) -> Reply:
        found = self.entries.find(cell)
        if found is None:
            raise ModelError(f"{self.file} has no answer for {cell}")
        return Reply(found.answer, correct=found.correct, order=found.order)


def _cell(names: Mapping[str, str], draw: int, batch: str) -> Cell:
    key = tuple((name, names.get(name, "")) for name in (*ROUTE, "condition"))
    return Cell(key, tuple(names.get(name, "") for name in OPTIONAL), batch, draw)


def _only(given: list[Row], column: str, wanted: str | None, file: str) -> list[Row]:
    """Keep the rows of one batch or model; several without a choice would answer twice."""
    found = sorted({row.get(column, "") for _, row in given})
    if wanted is not None:
        kept = [(line, row) for line, row in given if row.get(column, "") == wanted]
        if not kept:
            raise InputError(
                f"there is no answer with {column}={wanted}; there are: "
                + ", ".join(value or "(none)" for value in found),
                file=file,
                field=column,
            )
        return kept
    if len(found) > 1:
        raise InputError(
            f"it holds several: {', '.join(value or '(none)' for value in found)}; "
            f"choose with recorded:FILE,{column}=…",
            file=file,
            field=column,
        )
    return given
