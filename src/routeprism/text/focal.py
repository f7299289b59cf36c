"""The focal tokeniser and preference score, exactly as published (Appendix D.4)."""

from __future__ import annotations

import re
import string
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from itertools import chain, count, filterfalse, product

from routeprism.records import Record

__all__ = [
    "PREFERENCE_LEXICON",
    "STOPWORDS",
    "count_words",
    "focal_set",
    "focal_words",
    "has_focal_tokens",
    "has_words",
    "preference_score",
    "record_focal_counts",
    "record_word_counts",
    "similarities",
    "similarity",
    "words",
]

_PATTERN = re.compile(r"[A-Za-z][A-Za-z0-9']+")
_NOT_FIRST = string.digits + "'"
_IN_TOKEN = string.ascii_lowercase + _NOT_FIRST
_APART = bytes(at if chr(at) in _IN_TOKEN else ord(" ") for at in range(256))
"""Every byte that no lower-cased token has becomes a blank."""

STOPWORDS = frozenset(
    "a an and are as at be been by can could do for from had has have he her his i if in is it its "
    "me my of on or our she that the their them there they this to was we were what when which who "
    "will with you your".split()
)
"""Removed before similarity is taken."""

PREFERENCE_LEXICON = frozenset(
    "avoid appreciate bother boring choice comfortable desire dislike enjoy excited favorite "
    "frustrated fulfilling hate interest interested joy like love motivated passion prefer "
    "preference relaxed resent satisfy stifled tired want worry enjoyed liked loved preferred "
    "disliked hated wanted".split()
)
"""Words whose occurrences make a record its cluster's comparison representative."""


_LEFT_OUT = STOPWORDS.union(_IN_TOKEN, map("".join, product(_IN_TOKEN, repeat=2)))
"""What similarity does not see: stopwords, and whatever is not longer than two letters."""


def words(text: str) -> list[str]:
    """Return all lower-cased tokens of the pattern `[A-Za-z][A-Za-z0-9']+`, nothing removed.

    The pattern is matched before letters are made small, as published: `İ` and the Kelvin sign are
    no letters of it, although their lower-case forms begin with one.
    """
    return [
        token
        for run in _runs(text)
        if len(token := run if run >= "a" else run.lstrip(_NOT_FIRST)) > 1
    ]


def cut_runs(content: bytes) -> tuple[list[str], bool, bool]:
    """Return the runs of characters that tokens have, and whether the first and last byte has one.

    `content` may be part of a text, in UTF-8; letters are made small.
    """
    text = content.lower().translate(_APART).decode()
    return text.split(), text[0] != " ", text[-1] != " "


def strip_run(run: str) -> str:
    """Return a run from its first letter on: a word if it has two letters or more."""
    return run if run >= "a" else run.lstrip(_NOT_FIRST)


def _runs(text: str) -> list[str]:
    """Cut at whatever no token has: faster than to look for the pattern, character by character."""
    return text.encode("ascii", "replace").lower().translate(_APART).decode().split()


def count_words(text: str) -> Counter[str]:
    """Count what `words` cuts; only different runs are looked at, one by one."""
    counts = Counter(_runs(text))
    for run in [run for run in counts if run < "a" or len(run) == 1]:
        token, times = run.lstrip(_NOT_FIRST), counts.pop(run)
        if len(token) > 1:
            counts[token] += times
    return counts


def has_words(record: Record) -> bool:
    """Whether anything in a record is a token; role markers are not part of the text."""
    return record.derive(_has_words)


def _has_words(record: Record) -> bool:
    # A search ends at the first word; to cut the whole text would be a second pass over it.
    return any(_PATTERN.search(turn.text) for turn in record.turns)


def record_word_counts(record: Record) -> Mapping[str, int]:
    """Count all tokens of the user turns."""
    return record.derive(_record_word_counts)


def _record_word_counts(record: Record) -> Mapping[str, int]:
    return count_words(record.user_text)


def _keep(token: str) -> bool:
    return len(token) > 2 and token not in STOPWORDS


def focal_words(text: str) -> list[str]:
    """Return a text's tokens that are longer than two letters and no stopwords."""
    return list(filter(_keep, words(text)))


def _record_focal_counts(record: Record) -> Mapping[str, int]:
    if record.has_derived(_record_word_counts):  # a text is cut once
        every = record_word_counts(record).items()
        return {token: times for token, times in every if token not in _LEFT_OUT}
    # As focal_words cuts, in fewer steps: this is done for every word of every record.
    counts = Counter(filterfalse(_LEFT_OUT.__contains__, _runs(record.user_text)))
    for run in [run for run in counts if run < "a"]:  # a token begins with a letter
        token, times = run.lstrip(_NOT_FIRST), counts.pop(run)
        if token and token not in _LEFT_OUT:
            counts[token] += times
    return counts


def record_focal_counts(record: Record) -> Mapping[str, int]:
    """Count the focal tokens of a record's user turns."""
    return record.derive(_record_focal_counts)


def _focal_set(record: Record) -> frozenset[str]:
    return frozenset(record_focal_counts(record))


def focal_set(record: Record) -> frozenset[str]:
    """Return the token set that similarity compares."""
    return record.derive(_focal_set)


def has_focal_tokens(record: Record) -> bool:
    """Whether similarity can see this record at all; text without Latin letters it cannot."""
    return record.derive(_has_focal_tokens)


def _has_focal_tokens(record: Record) -> bool:
    return any(_keep(match[0].lower()) for match in _PATTERN.finditer(record.user_text))


def _preference_score(record: Record) -> int:
    counts = record_focal_counts(record)  # it has them all: none is short or a stopword
    return sum(counts[word] for word in PREFERENCE_LEXICON & counts.keys())


def preference_score(record: Record) -> int:
    """Count the occurrences of preference words in the user turns."""
    return record.derive(_preference_score)


def similarity(first: Set[str], second: Set[str]) -> float:
    """Jaccard overlap of two token sets; two empty ones have none (unlike source sets)."""
    common = len(first & second)
    union = len(first) + len(second) - common
    return common / union if union else 0.0


def similarities(sets: Sequence[Set[str]]) -> list[list[float]]:
    """Compare many token sets with each other; what a set gives with itself included."""
    import numpy as np

    # A set becomes a number with a bit for each token: what two have in common is one operation.
    places: defaultdict[str, int] = defaultdict(count().__next__)
    sizes = list(map(len, sets))
    rows = np.repeat(np.arange(len(sets)), sizes)
    every = map(places.__getitem__, chain.from_iterable(sets))
    tokens = np.fromiter(every, np.intp, count=len(rows))
    marks = np.zeros((len(sets), len(places)), dtype=np.bool_)
    marks[rows, tokens] = True
    numbers = [int.from_bytes(row.tobytes(), "big") for row in np.packbits(marks, axis=1)]
    matrix = [[0.0] * len(sets) for _ in sets]
    for at, (first, size) in enumerate(zip(numbers, sizes, strict=True)):
        for second in range(at + 1):
            if common := (first & numbers[second]).bit_count():
                overlap = common / (size + sizes[second] - common)
                matrix[at][second] = matrix[second][at] = overlap
    return matrix
