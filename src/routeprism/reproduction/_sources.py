"""Data files, and the source runs in them: the calls that numbers come from, and what they gave.

A data file is a JSON object whose parts are shared and whose keys can stand for lists of words.
Besides its own content, a file can have these sections:

- `shared`: objects by name. `"use": "name"`, or a list of names, inserts them into another object
  at that place.
- `words`: lists of words, or words with a value each. `{name}` in a key repeats the entry for every
  word of the list; below that key, `{name}` is the value of the word.
- `texts`: texts by name. `{name}` in any other place is replaced by the text.
- `comment`: for the reader of the file, in any object.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

from routeprism.api.settings import settings_for
from routeprism.errors import InputError
from routeprism.files import replace_file
from routeprism.records import parse_json
from routeprism.runs import EstimateRow
from routeprism.settings import make_settings, write_command

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_SECTIONS = ("comment", "words", "texts", "shared")


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words, texts and shared objects that a data file refers to."""

    words: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Name of a list → word → the value that it stands for."""
    texts: Mapping[str, str] = field(default_factory=dict)
    shared: Mapping[str, Any] = field(default_factory=dict)

    def extend(self, content: Mapping[str, Any]) -> Vocabulary:
        """Add the sections of a file; refuse a name that is already defined."""
        sections = {name: content.get(name, {}) for name in ("words", "texts", "shared")}
        for name, section in sections.items():
            if repeated := section.keys() & getattr(self, name).keys():
                raise ValueError(f"{name} defined twice: {sorted(repeated)}")
        words = {
            name: dict(zip(words, words, strict=True)) if isinstance(words, list) else words
            for name, words in sections["words"].items()
        }
        return Vocabulary(
            {**self.words, **words},
            {**self.texts, **sections["texts"]},
            {**self.shared, **sections["shared"]},
        )

    def expand(self, value: Any, values: Mapping[str, str] | None = None) -> Any:
        """Insert shared objects, words and texts; `values` are those of words in keys above."""
        values = values or {}
        if isinstance(value, str):
            return self._fill(value, values)
        if isinstance(value, list):
            return tuple(self.expand(item, values) for item in value)
        if not isinstance(value, dict):
            return value
        expanded: dict[str, Any] = {}
        for key, content in value.items():
            if key == "use":
                for name in [content] if isinstance(content, str) else content:
                    expanded |= self.expand(self._find_shared(name), values)
            elif key != "comment":
                for text, more in self._repeat(key, values):
                    expanded[text] = self.expand(content, {**values, **more})
        return expanded

    def _repeat(
        self, key: str, values: Mapping[str, str]
    ) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yield a key once for each combination of its words, with the values of the words."""
        names = [name for name in _PLACEHOLDER.findall(key) if name in self.words]
        for choice in product(*(self.words[name].items() for name in names)):
            printed = {name: word for name, (word, _) in zip(names, choice, strict=True)}
            meant = {name: value for name, (_, value) in zip(names, choice, strict=True)}
            yield self._fill(key, {**values, **printed}), meant

    def _fill(self, text: str, values: Mapping[str, str]) -> str:
        def replacement(match: re.Match[str]) -> str:
            name = match.group(1)
            if name in values:
                return values[name]
            if name not in self.texts:
                raise ValueError(f"unknown name {{{name}}} in {text!r}")
            return self._fill(self.texts[name], values)

        return _PLACEHOLDER.sub(replacement, text)

    def _find_shared(self, name: str) -> Any:
        if name not in self.shared:
            raise ValueError(f"nothing shared is named {name!r}")
        return self.shared[name]


def read_data(name: str, vocabulary: Vocabulary | None = None) -> tuple[Any, Vocabulary]:
    """Read a data file of this package: its own content, and the vocabulary with its sections."""
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    try:
        content = parse_json(text, strict=True)
        extended = (vocabulary or Vocabulary()).extend(content)
        own = {key: value for key, value in content.items() if key not in _SECTIONS}
        return extended.expand(own), extended
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


@dataclass(frozen=True, slots=True)
class SourceRun:
    """One call of the package, or arithmetic on a published table."""

    name: str
    meaning: str
    """The command, for the page."""
    benchmark: str = ""
    policies: Mapping[str, str] = field(default_factory=dict)
    """Role → spec. Tables name roles, so a different spec in a role gives different numbers."""
    call: str = "audit"
    """The function of `routeprism.api` to call."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the call."""
    asks: bool = False
    """Whether it requires a model that answers."""
    instead: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the call that the paper's own run has instead, such as its labels: names in
    capitals stand for what you supply."""
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a mask → the kinds of questions in it."""
    total: Mapping[str, str] = field(default_factory=dict)
    """A `field` of all findings with the name `finding` to add up, and the columns of its row."""
    matrix: Mapping[str, str] = field(default_factory=dict)
    """The published `table` to compute agreement from instead of calling the package, and the
    columns of its rows."""

    contents: Mapping[str, str] = field(default_factory=dict)
    """The columns of the rows that count records, questions and contexts of several records."""

    def write_command(self, questions: str = "") -> str:
        """Write the command of this run for people with their own model, labels and questions."""
        if self.matrix or self.contents:
            return ""
        command = self.call.removeprefix("explore_")
        values = {
            "benchmark": self.benchmark,
            "policies": tuple(self.policies.values()),
            **self.options,
            **self.instead,
            "masks": tuple(f"{name}=FILE" for name in (questions, *self.masks) if name),
            **({"models": ("MODEL",)} if self.asks else {}),
        }
        settings = make_settings(settings_for(command), values)
        return shlex.join(("routeprism", *write_command(command, settings)))


def _read_sources() -> Mapping[str, SourceRun]:
    content, _ = read_data("sources.json")
    return {name: SourceRun(name, **entry) for name, entry in content["sources"].items()}


SOURCES: Mapping[str, SourceRun] = MappingProxyType(_read_sources())
"""Every run, by its name."""

STORED = Path(str(files(__package__).joinpath("obtained.json")))
"""The values that come with the package."""
_EMPTY = EstimateRow(experiment="", benchmark="", quantity="", estimate=None)


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """An estimate row, and how far its limits move from one bootstrap seed to another."""

    row: EstimateRow
    lower_noise: float | None = None
    """The standard deviation of the lower limit over seeds; None if it was not measured."""
    upper_noise: float | None = None
    users: tuple[tuple[float, float], ...] = ()
    """Value and weight of each user, in the order of their ids; only where a table needs them."""


@dataclass(frozen=True, slots=True)
class SourceValues:
    """The results of one source run."""

    made: Mapping[str, Any]
    """How it was made: benchmark and fingerprint, policies by role, options, versions."""
    rows: tuple[MeasuredRow, ...]
    """The rows that tables refer to; their policy is a role."""

    @property
    def embedded(self) -> bool:
        """Whether an embedded model answered."""
        return any("embedded" in measured.row.flags for measured in self.rows)

    @property
    def masks(self) -> Mapping[str, str]:
        """The question sets that were passed: name → what was read."""
        masks: Mapping[str, str] = self.made.get("masks", {})
        return masks

    @property
    def coverage(self) -> str:
        """Why only a part of the questions was answered; empty if all were."""
        return str(self.made.get("part", ""))


ObtainedValues = Mapping[str, SourceValues]
"""Name of a source run → what it gave."""


def read_obtained(path: Path = STORED) -> ObtainedValues:
    """Read obtained values; give none if the file does not exist."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: SourceValues(entry["made"], tuple(map(_parse_row, entry["rows"])))
            for name, entry in content.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "is not a file of obtained values; `routeprism reproduce --run` writes one", file=path
        ) from error


def write_obtained(obtained: ObtainedValues, path: Path) -> None:
    """Write obtained values and create the directory; the same values give the same bytes."""
    # One row per line: a difference between two files shows what a refresh changed.
    entries = [
        f"{json.dumps(name)}: {{\n"
        f'"made": {json.dumps(dict(values.made), ensure_ascii=False, sort_keys=True)},\n'
        '"rows": [\n'
        + ",\n".join(json.dumps(row, ensure_ascii=False) for row in _format_rows(values.rows))
        + "\n]}"
        for name, values in sorted(obtained.items())
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(
        path, "\n".join(["{", *([",\n".join(entries)] if entries else []), "}\n"]).encode()
    )


def _format_rows(rows: Iterable[MeasuredRow]) -> Sequence[Mapping[str, Any]]:
    entries = []
    for measured in sorted(rows, key=lambda measured: measured.row.identity):
        entry: dict[str, Any] = {
            column.name: value
            for column in fields(EstimateRow)
            if (value := getattr(measured.row, column.name)) != getattr(_EMPTY, column.name)
        }
        if measured.lower_noise is not None:
            entry["lower_noise"] = measured.lower_noise
            entry["upper_noise"] = measured.upper_noise
        if measured.users:
            entry["users"] = measured.users
        entries.append(entry)
    return entries


def _parse_row(entry: Mapping[str, Any]) -> MeasuredRow:
    values = dict(entry)
    noise = values.pop("lower_noise", None), values.pop("upper_noise", None)
    users = tuple((value, weight) for value, weight in values.pop("users", ()))
    values = {"experiment": "", "benchmark": "", "quantity": "", "estimate": None, **values}
    return MeasuredRow(EstimateRow(**values), *noise, users)
