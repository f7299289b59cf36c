"""Placebos: unrelated records of equal length, to exchange for a record of a pool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random

from routeprism.records import Case, Record, Turn, read_time

_WORD = re.compile(r"\w+")
_CONSONANTS, _VOWELS, _DIGITS = "bcdfghjklmnpqrstvwxz", "aeiouy", "0123456789"
_ATTEMPTS = 20
"""How many pseudo-words are tried until the pool does not contain the word."""


@dataclass(frozen=True, slots=True)
class Placebos:
    """Makes placebos that share no word with any record or question of a pool."""

    words: frozenset[str]
    """Words of the pool and of its questions, in lower case."""
    ids: set[str]
    """Ids of the pool's records and of the placebos that were made."""
    records: dict[tuple[Record, int, bool], Record] = field(default_factory=dict)
    """(record, number, whether it is short) → its placebo."""

    @classmethod
    def of(cls, case: Case) -> Placebos:
        """Read the words that placebos avoid."""
        texts = [record.text for record in case.pool.records]
        texts += [question.text for question in case.questions]
        words = frozenset(word for text in texts for word in _WORD.findall(text.casefold()))
        return cls(words, set(case.pool.ids))

    def make(self, record: Record, number: int, *, short: bool = False) -> Record:
        """Make one of the placebos of a record, with its position, time, length and layout."""
        key = record, number, short
        if key not in self.records:
            self.records[key] = self._coin_record(record, number, short=short)
        return self.records[key]

    def _coin_record(self, record: Record, number: int, *, short: bool) -> Record:
        generator = Random(f"{record.id}\0{number}")  # noqa: S311
        roles = {"system", "user", "assistant", *(turn.role for turn in record.spoken)} - {""}
        pattern = re.compile(rf"\[(?:{'|'.join(map(re.escape, sorted(roles)))})\]|\w+", re.I)
        coined: dict[str, str] = {}

        def exchange(match: re.Match[str]) -> str:
            word = match[0]
            if not word.startswith("["):
                coined[word] = coined.get(word) or self._coin_word(word, generator)
                return coined[word]
            return word

        id = _WORD.sub(lambda match: _coin(match[0], generator), record.id)
        while id in self.ids:
            id += generator.choice(_DIGITS)
        self.ids.add(id)
        if short:
            return replace(record, id=id, text=self._coin_word("ab", generator), spoken=())
        return replace(
            record,
            id=id,
            text=pattern.sub(exchange, record.text),
            spoken=tuple(Turn(t.role, pattern.sub(exchange, t.text)) for t in record.spoken),
        )

    def _coin_word(self, word: str, generator: Random) -> str:
        for _ in range(_ATTEMPTS):
            coined = _coin(word, generator)
            if coined.casefold() not in self.words:
                break
        return coined


def _coin(word: str, generator: Random) -> str:
    """Make a pseudo-word with letters, capitals and digits where the word has them."""
    consonants, vowels, digits = (
        generator.choices(letters, k=len(word)) for letters in (_CONSONANTS, _VOWELS, _DIGITS)
    )
    coined = []
    for at, letter in enumerate(word):
        if letter.isalnum():
            kinds = digits if letter.isdecimal() else (consonants, vowels)[at % 2]
            coined.append(kinds[at].upper() if letter.isupper() else kinds[at])
        else:
            coined.append(letter)
    return "".join(coined)


def date_before(record: Record, earlier: Sequence[Record]) -> tuple[Record, tuple[Record, ...]]:
    """Move records before a record in source and event time, in their order; give both.

    The record moves back in source order to make room for them, which changes no comparison.
    """
    number = len(earlier)
    dated = tuple(
        replace(item, position=at, timestamp=_subtract_days(record, number - at))
        for at, item in enumerate(earlier)
    )
    return record.at(record.position + number), dated


def date_after(newest: Record, record: Record, days: int) -> Record:
    """Move a record behind the newest one in source and event time."""
    timestamp = _subtract_days(newest, -days)
    return replace(record, position=newest.position + days, timestamp=timestamp)


def _subtract_days(record: Record, days: int) -> str | None:
    """Write a day before a record's time in the same format; its own time if that is unknown."""
    text = record.timestamp
    if not text or read_time(text) is None:
        return text
    try:
        moment = datetime.fromisoformat(text) - timedelta(days=days)
    except (ValueError, OverflowError):
        return text
    return moment.date().isoformat() if len(text) == 10 else moment.isoformat(sep=text[10])
