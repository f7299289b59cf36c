"""`recorded:FILE`: answers that were collected elsewhere, from a CSV or JSON-lines file.

Columns: `draw` and `answer`; `prompt_sha256` to name the prompt, or `question`, `policy` and
`schedule` (also called `route`) with `condition`, `pair`, `design`, `filler` and `prompt_control`
where they distinguish answers; optional `batch`, `model`, `correct` and `submission`. A file may
name prompts in both ways (docs/recorded-answers.md).
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from routeprism.errors import InputError, ModelError
from routeprism.files import read_input
from routeprism.models._contracts import Ask, Model, Reply
from routeprism.models._recorded_answers import (
    BATCH_STEP,
    DETAILS,
    NO_DETAILS,
    ROUTE,
    AnswerFile,
    Lookup,
    RecordedAnswer,
    Row,
    read_rows,
)
from routeprism.models._replies import SURROGATES
from routeprism.redaction import repair_text
from routeprism.runs import Cassette

__all__ = ["Inspection", "Recorded", "RecordedAnswer", "Replayed", "replay_model"]

_EXAMPLES = 5
"""How many missing answers, or known names, a message lists."""
_SHARED = "pair"
"""Comparisons of several routes with forward may share its answers (PROTOCOL §6)."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Answers from a file; a missing answer is an error that names what is missing."""

    file: str
    """The path: CSV, or JSON lines if it begins with a JSON object; either may be gzipped."""
    batch: str | None = None
    """The batch to answer from, whatever batch is asked for; each its own by default."""
    model: str | None = None
    """Whose answers to use, if the file has those of several models."""
    answers: AnswerFile = field(init=False, repr=False, compare=False)
    _digest: str = field(default="", init=False, repr=False)

    embedded: ClassVar[bool] = False
    concurrency: ClassVar[int] = 256
    """No rate limit: answers are read from disk."""

    def __post_init__(self) -> None:
        content = read_input(Path(self.file))
        rows = list(read_rows(content, Path(self.file)))
        if self.batch is not None:
            rows = _select_rows(rows, "batch", self.batch, self.file)
        rows = _select_rows(rows, "model", self.model, self.file)
        object.__setattr__(self, "answers", AnswerFile(rows))
        object.__setattr__(self, "_digest", hashlib.sha256(content).hexdigest())

    @staticmethod
    def list_models(file: str) -> list[str]:
        """List the models whose answers a file contains, in the order of the file."""
        rows = read_rows(read_input(Path(file)), Path(file))
        return list(dict.fromkeys(row.fields.get("model", "") for row in rows))

    @property
    def name(self) -> str:
        """The spec in every output."""
        parameters = {"batch": self.batch, "model": self.model}
        options = [f"{key}={value}" for key, value in parameters.items() if value is not None]
        return ",".join([f"recorded:{self.file}", *options])

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """The content of the file, not its path."""
        return {"sha256": self._digest, "batch": self.batch, "model": self.model}

    def answer(self, ask: Ask, /) -> Reply:
        """Return the recorded answer to this prompt, or to this question on this route."""
        lookup = self.locate(ask)
        recorded = self.answers.find(lookup)
        if recorded is None:
            raise ModelError(f"{self.file} has no answer for {lookup}")
        text = repair_text(recorded.answer)
        mark = f"{self.file}, line {recorded.line}: {SURROGATES}"
        marks = () if text == recorded.answer else (mark,)
        return Reply(text, correct=recorded.correct, order=recorded.order, marks=marks)

    def locate(self, ask: Ask) -> Lookup:
        """Make the key under which the answer to a request is found."""
        if self.by_place:
            names = dict(ask.place)
            if not names:
                raise ModelError(f"{self.file} names questions and routes, and this is neither")
            key = tuple((name, names.get(name, "")) for name in (*ROUTE, "condition"))
            details = tuple(names.get(name, "") for name in DETAILS)
            return Lookup(key, details, ask.batch, ask.turn)
        digest = hashlib.sha256(ask.text.encode(errors="surrogatepass")).hexdigest()
        return Lookup((("prompt_sha256", digest),), NO_DETAILS, ask.batch, ask.draw % BATCH_STEP)

    @property
    def by_place(self) -> bool:
        """Whether answers are found by question and route alone."""
        return self.by_route and not self.by_prompt

    @property
    def by_prompt(self) -> bool:
        """Whether any answer names its prompt by hash."""
        return self.answers.has_key("prompt_sha256")

    @property
    def by_route(self) -> bool:
        """Whether any answer names its question and route."""
        return self.answers.has_key("question")

    @property
    def judged(self) -> bool:
        """Whether verdicts were recorded with the answers."""
        return self.answers.judged


def _select_rows(rows: list[Row], column: str, selected_value: str | None, file: str) -> list[Row]:
    """Select the rows of one batch or model; several without a choice would answer twice."""
    values = sorted({row.fields.get(column, "") for row in rows})
    names = ", ".join(value or "(none)" for value in values)
    if selected_value is None:
        if len(values) > 1:
            choice = f"choose with recorded:FILE,{column}=…"
            raise InputError(f"it contains several: {names}; {choice}", file=file, field=column)
        return rows
    selected = [row for row in rows if row.fields.get(column, "") == selected_value]
    if not selected:
        message = f"there is no answer with {column}={selected_value}; there are: {names}"
        raise InputError(message, file=file, field=column)
    return selected


class Inspection:
    """Checks before a run that a file of recorded answers has every answer, each used once."""

    def __init__(self, model: Recorded) -> None:
        self._model = model
        self._missing: dict[Lookup, None] = {}
        self._owners: dict[int, Lookup] = {}

    def look(self, ask: Ask) -> RecordedAnswer | None:
        """Look up one answer, and remember what it is used for."""
        lookup = self._model.locate(ask)
        answer = self._model.answers.find(lookup)
        if answer is None:
            self._missing[lookup] = None
            return None
        self._refuse_shared(answer, self._owners.setdefault(answer.line, lookup), lookup)
        return answer

    def finish(self) -> str:
        """Refuse a file that lacks answers; describe the answers that are not used."""
        if number := len(self._missing):
            first = "; ".join(str(lookup) for lookup in list(self._missing)[:_EXAMPLES])
            raise InputError(
                f"{number:,} answer{'s' if number > 1 else ''} that this run needs "
                f"{'are' if number > 1 else 'is'} not in it"
                + (f", such as: {first}" if number > _EXAMPLES else f": {first}")
                + "".join(f". {hint}" for hint in self._hints()),
                file=self._model.file,
            )
        lines = self._model.answers.lines
        unused = [line for line in lines if line not in self._owners]
        if not unused:
            return ""
        return (
            f"{self._model.name}: {len(unused):,} of {len(lines):,} recorded answers belong to no "
            f"comparison of this run, the first in line {unused[0]}"
        )

    def _refuse_shared(self, answer: RecordedAnswer, owner: Lookup, lookup: Lookup) -> None:
        """Refuse an answer that two different places would use."""
        first, second = owner.names, lookup.names
        differing = [name for name in first if first[name] != second[name] and name != _SHARED]
        if owner == lookup or not differing:
            return
        sides = (
            ", ".join(f"{name}={names[name] or '(none)'}" for name in differing)
            for names in (first, second)
        )
        raise InputError(
            f"the answer would serve for {' and for '.join(sides)}; a column has to distinguish "
            f"them",
            file=self._model.file,
            line=answer.line,
            field=differing[0],
        )

    def _hints(self) -> list[str]:
        """Name the values that are needed and nowhere in the file, column by column."""
        hints = []
        for name in next(iter(self._missing)).names:
            names = [value for value in self._model.answers.values(name) if value]
            if not names or name == "prompt_sha256":
                continue
            needed = {lookup.names[name] for lookup in self._missing}
            for unknown in sorted(needed - {"", *names})[:1]:
                close = difflib.get_close_matches(unknown, names, n=1, cutoff=0.5)
                examples = ", ".join(close or names[:_EXAMPLES])
                more = "" if close or len(names) <= _EXAMPLES else ", …"
                hints.append(f"No row has {name}={unknown}; it has {examples}{more}")
        return hints


@dataclass(frozen=True, slots=True)
class Replayed:
    """Stands for a model that is never asked: the run's ledger has the replies of a cassette."""

    name: str
    settings: Mapping[str, str | int | float | bool | None]
    """Those of the model, so that the recorded keys are found."""
    embedded: bool
    cassette: Cassette

    concurrency: ClassVar[int] = 1
    """The first prompt without a reply ends the call."""

    def answer(self, ask: Ask, /) -> Reply:
        """Refuse a prompt that was not recorded."""
        raise self.cassette.refuse(self.name, ask.text)


def replay_model(model: Model, cassette: Cassette | None) -> Model:
    """Put a cassette in the place of a model; built-in models and recorded answers stay."""
    if cassette is None or model.embedded or isinstance(model, (Recorded, Replayed)):
        return model
    return Replayed(model.name, model.settings, model.embedded, cassette)
