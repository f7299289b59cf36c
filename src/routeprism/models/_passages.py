"""Passages of the embedded reader: sentences, light stems, affect, and where each term occurs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

_WORD = re.compile(r"\w+(?:'\w+)?")
_FRAME = re.compile(r"^records (?:begin|end)(?: (\S+)(?: \1)*)?$", re.MULTILINE)
"""The two lines that a prompt puts around its context, with any padding."""
_LABEL = re.compile(r"^[ \t]*\[[^\]\n]{1,40}\][ \t]*", re.MULTILINE)
"""A bracketed label at the start of a line (`[USER]`, a header), which carries no content."""
_RUN = re.compile(r"(?<!\S)(\S+)(?:\s+\1(?!\S)){2,}")
"""A word repeated three or more times in a row is filler, whichever word it is."""
_END = re.compile(r"(?<=[.!?])[\"'”’)]*\s+|\n+")
_PARAGRAPH = re.compile(r"\n\s*\n")

_WORDS: Mapping[str, list[str]] = json.loads(
    files("routeprism.models").joinpath("words.json").read_text(encoding="utf-8")
)
"""Lists of words: those without content, of liking, of dislike, of negation; and suffixes."""
_STOP, _NEGATION = frozenset(_WORDS["stop"]), frozenset(_WORDS["negation"])
_REACH = 4
"""How many of the following words a negation applies to."""


def words(text: str) -> list[str]:
    """Return the lower-cased words of a text, in any alphabet."""
    return _WORD.findall(text.lower().replace("’", "'"))


@lru_cache(maxsize=1 << 15)
def stem(word: str) -> str:
    """Reduce the common English forms of a word to one stem; any other word is unchanged."""
    word = word.removesuffix("'s").replace("'", "")
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for _ in range(2):
        suffix = next((suffix for suffix in _WORDS["suffixes"] if _can_drop(word, suffix)), "")
        word = word.removesuffix(suffix)
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word[:-1] + "i" if len(word) > 2 and word[-1] == "y" else word


def _can_drop(word: str, suffix: str) -> bool:
    """Whether a stem of three letters with a vowel remains."""
    rest = word.removesuffix(suffix)
    return rest != word and len(rest) >= 3 and any(vowel in rest for vowel in "aeiouy")


_AFFECT: Mapping[str, int] = {
    **{stem(word): 1 for word in _WORDS["liking"]},
    **{stem(word): -1 for word in _WORDS["dislike"]},
}


@lru_cache(maxsize=1 << 15)
def _look_up(word: str) -> tuple[str, int, bool]:
    """Return a word's stem (empty if it carries no content), its affect, and whether it negates."""
    root = stem(word)
    term = "" if len(word) < 2 or word in _STOP else root
    return term, _AFFECT.get(root, 0), word in _NEGATION or word.endswith("n't")


def terms(tokens: Iterable[str]) -> list[str]:
    """Return the stems of the words that carry content."""
    return [term[0] for term in map(_look_up, tokens) if term[0]]


def affect(tokens: Iterable[str]) -> int:
    """Sum liking (+1) and dislike (−1) over words; a negation shortly before one reverses it."""
    total = 0
    negated_until = -1
    for at, (_, sign, negates) in enumerate(map(_look_up, tokens)):
        if negates:
            negated_until = at + _REACH
        elif sign:
            total += -sign if at <= negated_until else sign
    return total


def sentences(text: str) -> list[str]:
    """Cut a text at sentence ends and line breaks."""
    return [part for part in (piece.strip() for piece in _END.split(text)) if part]


@dataclass(frozen=True, slots=True)
class Passages:
    """A memory field as sentences, with where each term occurs."""

    texts: tuple[str, ...]
    """The sentences that carry content, as they were written."""
    paragraphs: tuple[int, ...]
    """The paragraph of each one; evidence does not reach into another."""
    affects: tuple[int, ...]
    """The sign of each one's affect: −1, 0 or 1."""
    occurrences: Mapping[str, tuple[int, ...]]
    """The sentences that have a term."""

    def idf(self, term: str) -> float:
        """Return a term's inverse sentence frequency, never negative."""
        have = len(self.occurrences.get(term, ()))
        return math.log(1 + (len(self.texts) - have + 0.5) / (have + 0.5))

    def spread(self, weights: Mapping[str, float], near: Sequence[float]) -> dict[int, float]:
        """Sum for each sentence the weights of the terms in or near it.

        A term counts in full in its own sentence and with `near[d - 1]` at a distance of `d`
        sentences of the same paragraph; of several occurrences the nearest counts.
        """
        total: dict[int, float] = {}
        for term, weight in weights.items():
            field: dict[int, float] = {}
            for at in self.occurrences.get(term, ()):
                paragraph = self.paragraphs[at]
                field[at] = 1.0
                for distance, share in enumerate(near, start=1):
                    for near_at in (at - distance, at + distance):
                        if (
                            0 <= near_at < len(self.texts)
                            and self.paragraphs[near_at] == paragraph
                            and field.get(near_at, 0.0) < share
                        ):
                            field[near_at] = share
            for at, share in field.items():
                total[at] = total.get(at, 0.0) + weight * share
        return total


def _without_runs(text: str) -> str:
    words = text.split()
    runs = any(a == b == c for a, b, c in zip(words, words[1:], words[2:]))  # noqa: B905
    return _RUN.sub(" ", text) if runs else text


@lru_cache(maxsize=32)
def read_passages(memory: str) -> Passages:
    """Cut a memory field into passages, without labels at line starts and filler words."""
    texts: list[str] = []
    paragraphs: list[int] = []
    affects: list[int] = []
    occurrences: dict[str, list[int]] = {}
    plain = _LABEL.sub("", _without_runs(_FRAME.sub("", memory)))
    for number, paragraph in enumerate(_PARAGRAPH.split(plain)):
        for sentence in sentences(paragraph):
            tokens = words(sentence)
            content = dict.fromkeys(terms(tokens))
            if not content:
                continue
            for term in content:
                occurrences.setdefault(term, []).append(len(texts))
            texts.append(sentence)
            paragraphs.append(number)
            affects.append(max(-1, min(1, affect(tokens))))
    frozen = {term: tuple(places) for term, places in occurrences.items()}
    return Passages(tuple(texts), tuple(paragraphs), tuple(affects), frozen)
