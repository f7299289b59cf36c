"""Data files: JSON objects that share parts and whose keys can stand for lists of words.

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
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import product
from typing import Any

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
        content = json.loads(text, object_pairs_hook=_refuse_duplicates)
        extended = (vocabulary or Vocabulary()).extend(content)
        own = {key: value for key, value in content.items() if key not in _SECTIONS}
        return extended.expand(own), extended
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f"keys given twice: {sorted({key for key in keys if keys.count(key) > 1})}"
        )
    return content
