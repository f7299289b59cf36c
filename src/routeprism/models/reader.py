"""The embedded reader: answers from the passages of the memory field, with no download.

It knows no language beyond word forms and affect words, so it does not replace a language model. It
is an instrument whose answers depend only on the evidence in the memory field, and are the same on
every machine.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from routeprism import specs
from routeprism.models._contracts import Ask, Reply
from routeprism.models._passages import Passages, affect, read_passages, sentences, terms, words
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
    """Of the softmax over scores; 0 answers greedily, so that all draws of a prompt agree."""

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
    """Give, for each sentence, the share of the question's weight that is in or near it.

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
