"""Windows of model tokens, with the words of each window as numbers.

Nearly every word is one token, so words are looked up by their token instead of cut out of the text
a second time. Only the words that several tokens spell are put together.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from itertools import count, pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

from routeprism.text.focal import cut_runs, strip_run
from routeprism.text.tokens import Encoding, encode_flat, find_tokenizer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Integers: TypeAlias = npt.NDArray[np.intp]
    Tokens: TypeAlias = npt.NDArray[np.uint32]

__all__ = ["Windows", "cut_windows", "token_word_numbers"]


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """A text in windows that each have the same number of tokens."""

    texts: tuple[str, ...]
    """The windows. One that begins inside a character has the replacement character for it."""
    lengths: Integers
    """How many words each window has."""
    words: Integers
    """All words, window after window: `token_word_numbers`, or -1 - place among the compounds."""
    compounds: tuple[str, ...]
    """The different words that several tokens spell."""


def cut_windows(text: str, size: int, encoding: Encoding = "cl100k_base") -> Windows:
    """Cut a text into consecutive windows of `size` tokens, and each of these into its words."""
    import numpy as np

    table = _token_runs(encoding)
    tokens: Tokens = np.frombuffer(encode_flat(text, encoding), "<u4")
    table.learn(tokens)
    content = text.encode()
    ends = table.widths[tokens].cumsum()[size - 1 :: size].tolist()
    if len(tokens) % size:
        ends.append(len(content))
    spans = pairwise([0, *ends])
    texts = tuple(content[start:end].decode(errors="replace") for start, end in spans)
    return Windows(texts, *table.cut(tokens, size, len(texts)))


def token_word_numbers(encoding: Encoding = "cl100k_base") -> dict[str, int]:
    """Return the number of every word that was found as one token so far."""
    return _token_runs(encoding).numbers


_NO_WORD = -sys.maxsize
"""In place of a word: a run of digits or apostrophes, or a single letter."""
_BLANK = 0
"""The place of a blank among the runs."""


class _TokenRuns:
    """The runs of letters, digits and apostrophes in each token, found when it first occurs.

    A word is a run without what precedes its first letter. A run that ends with its token goes on
    in the next token if that begins with a run.
    """

    def __init__(self, tokenizer: Any) -> None:
        import numpy as np

        size = tokenizer.vocab_size
        self.numbers: dict[str, int] = {}
        """Word → its number."""
        self.widths = np.zeros(size, np.intp)
        """The number of bytes of each token; 0 before the token has occurred."""
        self._lock = Lock()
        self._read = tokenizer.decode_token_bytes
        self._first, self._counts = np.zeros(size, np.intp), np.zeros(size, np.intp)
        self._begins, self._ends = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        self._runs = [" "]
        self._words = np.array([_NO_WORD])
        """The word of each run by itself."""

    def learn(self, tokens: Tokens) -> None:
        """Look up the tokens that have not occurred before."""
        with self._lock:
            new = tokens[self.widths[tokens] == 0]
            if new.size:
                self._look_up(new)

    def _look_up(self, tokens: Tokens) -> None:
        import numpy as np

        number = len(self._runs)
        for token in np.unique(tokens).tolist():
            content: bytes = self._read(token)
            runs, begins, ends = cut_runs(content)
            self.widths[token] = len(content)
            self._begins[token], self._ends[token] = begins, ends
            self._first[token], self._counts[token] = len(self._runs), len(runs)
            self._runs += runs
        numbers = [self._number(strip_run(run)) for run in self._runs[number:]]
        self._words = np.append(self._words, np.array(numbers, np.intp))

    def _number(self, word: str) -> int:
        return self.numbers.setdefault(word, len(self.numbers)) if len(word) > 1 else _NO_WORD

    def cut(
        self, tokens: Tokens, size: int, windows: int
    ) -> tuple[Integers, Integers, tuple[str, ...]]:
        """Return the lengths, words and compounds of windows."""
        import numpy as np

        at = np.arange(len(tokens)).repeat(self._counts[tokens])
        runs = self._first[tokens[at]]
        later = np.flatnonzero(at[1:] == at[:-1]) + 1  # few tokens have several runs
        for run in later.tolist():
            runs[run] = runs[run - 1] + 1
        joins = np.zeros(len(tokens), np.bool_)
        joins[1:] = self._ends[tokens[:-1]] & self._begins[tokens[1:]]
        joins[::size] = False
        continuation = joins[at]
        continuation[later] = False
        starts = np.flatnonzero(~continuation)
        words = self._words[runs[starts]]
        split = np.append(continuation[1:], False)
        parts = continuation | split
        words[split[starts]], compounds = self._join(runs[parts], continuation[parts])
        real = words != _NO_WORD
        lengths = np.bincount(at[starts[real]] // size, minlength=windows)
        return lengths, words[real], compounds

    def _join(
        self, runs: Integers, continuation: npt.NDArray[np.bool_]
    ) -> tuple[Integers, tuple[str, ...]]:
        """Spell runs of several tokens, given which parts are not the first of a run."""
        import numpy as np

        parts = np.insert(runs, np.flatnonzero(~continuation), _BLANK).tolist()
        spelled = "".join(map(self._runs.__getitem__, parts)).split()
        places: defaultdict[str, int] = defaultdict(count().__next__)
        at = np.fromiter(map(places.__getitem__, spelled), np.intp, len(spelled))
        compounds: defaultdict[str, int] = defaultdict(count(-1, -1).__next__)
        different = map(strip_run, places)
        words = [compounds[word] if len(word) > 1 else _NO_WORD for word in different]
        return np.array(words, np.intp)[at], tuple(compounds)


@lru_cache(maxsize=2)
def _token_runs(encoding: Encoding) -> _TokenRuns:
    return _TokenRuns(find_tokenizer(encoding))
