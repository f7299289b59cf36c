"""The embedded reader: answers from the passages of the memory field, with no download.

It knows no language beyond word forms and affect words, so it does not replace a language model. It
is an instrument whose answers depend only on the evidence in the memory field, and are the same on
every machine.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import ClassVar

from routeprism import specs
from routeprism.models._contracts import Ask, Reply
from routeprism.models._scores import check_temperature, choose_index, choose_option
from routeprism.records import Record
from routeprism.text.focal import has_words

__all__ = ["NOTHING", "Reader"]

NOTHING = "The records do not say."
"""The free-text answer where no sentence shares a word with the question."""

_VERSION = 1
"""Part of the settings; it increases with every change that can change an answer."""
_NEAR = (0.75, 0.5, 0.25)
"""Weights of a word at a distance of one, two and three sentences; a passage is seven sentences."""
_BASE = 0.25
"""The share of an option's evidence that counts if no word of the question is near."""
_AFFECT_WEIGHT = 0.5
"""The largest increase of an option's score by agreement of affect with the evidence."""
_AFFECT_PASSAGES = 8
"""How many passages nearest to the question determine its affect."""
_CANDIDATES = 5
"""The number of sentences that a free-text draw chooses from."""


@dataclass(frozen=True, slots=True)
class Reader:
    """Scores options by the passages that support them and draws from the scores."""

    name = specs.SpecName("reader")

    temperature: float = 0.025
    """Temperature of the softmax over scores; with 0, all draws of a prompt agree."""

    embedded: ClassVar[bool] = True
    concurrency: ClassVar[int] = 64
    """It computes in this process; new answers are computed while earlier ones are stored."""

    def __post_init__(self) -> None:
        check_temperature("reader", self.temperature)

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """The temperature, and the version of the scoring."""
        return {"temperature": float(self.temperature), "version": _VERSION}

    def unseen(self, record: Record) -> bool:
        """Whether the record has no word in Latin letters, the only ones with known word forms."""
        return not has_words(record)

    def scores(self, ask: Ask) -> tuple[float, ...]:
        """Return each option's support, from 0 to 1.5; no draw is involved."""
        return _option_scores(ask.memory, ask.question, ask.options)

    def answer(self, ask: Ask, /) -> Reply:
        """Return an option's letter, or the sentence that answers a question without options."""
        if ask.options:
            return choose_option(ask, self.scores(ask), self.temperature)
        candidates = _sentence_scores(ask.memory, ask.question)
        if not candidates:
            return Reply(NOTHING)
        texts, scores = zip(*candidates, strict=True)
        return Reply(texts[choose_index(scores, self.temperature, ask.text, ask.draw)])


def _relevance(passages: Passages, question: str) -> dict[int, float]:
    """Return for each sentence the share of the question's weight that is in or near it.

    Words that the memory never uses, such as a name, cannot distinguish passages.
    """
    vocabulary = {
        term: passages.idf(term)
        for term in dict.fromkeys(terms(words(question)))
        if term in passages.occurrences
    }
    total = sum(vocabulary.values())
    near = passages.spread(vocabulary, _NEAR)
    return {at: weight / total for at, weight in near.items()} if total else {}


@lru_cache(maxsize=512)
def _option_scores(memory: str, question: str, options: tuple[str, ...]) -> tuple[float, ...]:
    passages = read_passages(memory)
    relevance = _relevance(passages, question)
    mood = _mood(passages, relevance)
    scores = []
    for option, weights in zip(options, _distinguishing(passages, options), strict=True):
        support = _support(passages, relevance, weights)
        scores.append(support * (1 + _AFFECT_WEIGHT * _leaning(option, weights) * mood))
    return tuple(scores)


def _distinguishing(passages: Passages, options: Sequence[str]) -> list[dict[str, float]]:
    """Weigh each option's terms: the rarer in the memory and among the options, the heavier.

    A term of all options weighs nothing, unless all options have the same terms: then only affect
    and negation distinguish them, and all terms name their subject.
    """
    used = [dict.fromkeys(terms(words(option))) for option in options]
    number = len(options)
    shared = Counter(term for own in used for term in own)
    same = all(count == number for count in shared.values())
    return [
        {
            term: passages.idf(term) * math.log((number + 0.5) / shared[term])
            for term in own
            if same or shared[term] < number
        }
        for own in used
    ]


def _support(
    passages: Passages, relevance: Mapping[int, float], weights: Mapping[str, float]
) -> float:
    """Return the best passage's share of an option's weight, more if the question is also near."""
    total = sum(weights.values())
    near = passages.spread(weights, _NEAR)
    if not near or not total:
        return 0.0
    return max(
        weight / total * (_BASE + (1 - _BASE) * relevance.get(at, 0.0))
        for at, weight in near.items()
    )


def _mood(passages: Passages, relevance: Mapping[int, float]) -> float:
    """Return the affect, from −1 to 1, of the passages that the question is about."""
    nearest = sorted(relevance.items(), key=lambda item: (-item[1], item[0]))[:_AFFECT_PASSAGES]
    total = sum(share**2 for _, share in nearest)
    if not total:
        return 0.0
    return sum(share**2 * passages.affects[at] for at, share in nearest) / total


def _leaning(option: str, weights: Mapping[str, float]) -> float:
    """Return the affect, from −1 to 1, of an option's sentences, each by what distinguishes it."""
    total = sum(weights.values())
    if not total:
        return 0.0
    leaning = 0.0
    for sentence in sentences(option):
        tokens = words(sentence)
        share = sum(weights.get(term, 0.0) for term in dict.fromkeys(terms(tokens))) / total
        leaning += share * affect(tokens)
    return max(-1.0, min(1.0, leaning))


@lru_cache(maxsize=512)
def _sentence_scores(memory: str, question: str) -> tuple[tuple[str, float], ...]:
    """Return the sentences most relevant to a question, best first; earlier ones on ties."""
    passages = read_passages(memory)
    ranked = sorted(_relevance(passages, question).items(), key=lambda item: (-item[1], item[0]))
    return tuple((passages.texts[at], score) for at, score in ranked[:_CANDIDATES])


# --- Passages: sentences, light stems, affect, and where each term occurs ------------------------

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
