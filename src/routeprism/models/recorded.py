"""`recorded:FILE`: answers that were collected elsewhere, from a CSV or JSON-lines file.

Columns: `draw` and `answer`; to say which prompt it answers, `prompt_sha256`, or `question`,
`policy` and `schedule` (also called `route`) with an optional `condition`; optional `batch` and
`model`. A file may have both ways of naming prompts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from routeprism.errors import InputError, ModelError
from routeprism.models._answer_files import ROUTE, Row, read_content, rows
from routeprism.models._contracts import Ask, Reply

__all__ = ["Recorded"]

_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_WHOLE = re.compile(r"\d{1,9}\Z")
_BATCH_STEP = 1 << 20
"""The collector moves another batch's draws by multiples of this, for models that take seeds."""

_Key: TypeAlias = tuple[tuple[str, str], ...]
"""The named parts by which an answer is found, without the draw."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Gives back answers from a file; what is not in it is an error that says what is missing."""

    file: str
    """Where they are: CSV, or JSON lines if it begins with a JSON object; either may be gzipped."""
    batch: str | None = None
    """Which batch to give, where the file has several."""
    model: str | None = None
    """Whose answers to give, where the file has several models'."""
    _answers: Mapping[tuple[_Key, int], str] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    _digest: str = field(default="", init=False, repr=False)

    def __post_init__(self) -> None:
        content = read_content(Path(self.file))
        chosen = list(rows(content, Path(self.file)))
        for column in ("batch", "model"):
            chosen = _only(chosen, column, getattr(self, column), self.file)
        object.__setattr__(self, "_answers", _indexed(chosen, Path(self.file)))
        object.__setattr__(self, "_digest", hashlib.sha256(content).hexdigest())

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
        """There is nothing to wait for."""
        return 1

    def answer(self, ask: Ask, /) -> Reply:
        """Give the recorded answer to this very prompt, or to this question on this route."""
        if self.by_place:
            place = dict(ask.place)
            if not place:
                raise ModelError(f"{self.file} names questions and routes, and this is neither")
            return self.lookup(
                question=place["question"],
                policy=place["policy"],
                schedule=place["schedule"],
                condition=place.get("condition", ""),
                draw=ask.turn,
            )
        digest = hashlib.sha256(ask.text.encode(errors="surrogatepass")).hexdigest()
        return self._find((("prompt_sha256", digest),), ask.draw % _BATCH_STEP)

    def lookup(
        self, *, question: str, policy: str, schedule: str, draw: int, condition: str = ""
    ) -> Reply:
        """Give the recorded answer of a question on a route."""
        names = {"question": question, "policy": policy, "schedule": schedule}
        return self._find((*names.items(), ("condition", condition)), draw)

    @property
    def by_place(self) -> bool:
        """Whether answers are found by question and route alone."""
        return self.by_route and not self.by_prompt

    @property
    def by_prompt(self) -> bool:
        """Whether any answer names its prompt by hash."""
        return any(key[0][0] == "prompt_sha256" for key, _ in self._answers)

    @property
    def by_route(self) -> bool:
        """Whether any answer names its question and route."""
        return any(key[0][0] == "question" for key, _ in self._answers)

    def _find(self, key: _Key, draw: int) -> Reply:
        try:
            return Reply(self._answers[key, draw])
        except KeyError:
            raise ModelError(f"{self.file} has no answer for {_said(key, draw)}") from None


def _said(key: _Key, draw: int) -> str:
    return ", ".join([f"{name}={value}" for name, value in key if value] + [f"draw={draw}"])


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


def _indexed(given: list[Row], path: Path) -> Mapping[tuple[_Key, int], str]:
    answers: dict[tuple[_Key, int], str] = {}
    lines: dict[tuple[_Key, int], int] = {}
    for line, row in given:
        draw = row["draw"].strip()
        if not _WHOLE.match(draw) or int(draw) >= _BATCH_STEP:
            raise InputError(
                f"Expected a whole number from 0 but got draw={row['draw']!r:.40}",
                file=path,
                line=line,
                field="draw",
            )
        keys = list(_keys(row, path, line))
        if not keys:
            raise InputError(
                "Expected a 'prompt_sha256', or 'question', 'policy' and 'schedule'",
                file=path,
                line=line,
                field="prompt_sha256",
            )
        for key in keys:
            full = (key, int(draw))
            if full in answers:
                raise InputError(
                    f"line {lines[full]} already answers {_said(key, int(draw))}",
                    file=path,
                    line=line,
                    field=key[0][0],
                )
            answers[full], lines[full] = row["answer"], line
    return answers


def _keys(row: Mapping[str, str], path: Path, line: int) -> Iterator[_Key]:
    """Give the ways in which a row names its prompt; an empty cell names none."""
    if digest := row.get("prompt_sha256", "").strip().lower():
        if not _SHA256.match(digest):
            raise InputError(
                f"Expected 64 hexadecimal digits but got prompt_sha256={digest!r:.80}",
                file=path,
                line=line,
                field="prompt_sha256",
            )
        yield (("prompt_sha256", digest),)
    if all(row.get(name) for name in ROUTE):
        yield (*((name, row[name]) for name in ROUTE), ("condition", row.get("condition", "")))
