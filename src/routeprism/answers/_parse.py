"""Read an answer: an option's letter, a text, a refusal, or nothing that can be read.

A letter is read only where the text states it; two letters, or none, are *unparsable*, and never
a guess. Where a letter and an option's text contradict each other, that is two letters.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from routeprism.records import letters
from routeprism.runs import Outcome


class Parsed(NamedTuple):
    """What was read out of an answer's raw text."""

    outcome: Outcome
    answer: str | None = None
    """The option's letter in lower case, or the text; None unless it was answered."""


_UNPARSABLE = Parsed("unparsable")
_REFUSED = Parsed("refused")

_DECORATION = re.compile(r"[*_`\"“”$]|\\boxed|\\text|[{}]")
_MARK = r"(?:[).:;,!?\]]|$|\n|\s*[-–—]\s|\s+(?:because|since|as)\b)"
"""The text after a letter that names an option; `A good day` has an article instead."""
_LEAD = re.compile(rf"^\s*(?:option\s+)?[(\[]?([a-z])(?={_MARK})", re.MULTILINE)
_ALONE = re.compile(r"\W*([a-z])\W*\Z")
_STATED = re.compile(
    r"(?:^|(?<=[.!?\n,;:]))\s*(?:so,?\s+|thus,?\s+|therefore,?\s+)?"
    r"(?:(?:my|the|your)\s+)?(?:final\s+|correct\s+|best\s+|right\s+)*"
    r"(?:answer|choice|option|letter)(?:\s+is|\s+would\s+be)?\s*[:=]?\s*"
    rf"(?:option\s+)?[(\[]?([a-z])(?={_MARK})"
)
_CHOICE = re.compile(
    r"\bi(?:\s+would|\s+will|'d|'ll)?\s+(?:choose|pick|select|go\s+with)\s+"
    rf"(?:option\s+|answer\s+)?[(\[]?([a-z])(?={_MARK})"
)
_SEVERAL = re.compile(r"\b[a-z]\)?\s*(?:,|/|&|\bor\b|\band\b)\s*\(?[a-z]\b(?![\w'])")
_DECLINES = re.compile(
    r"(?:i(?:'m| am)\s+(?:very\s+)?sorry|sorry|i\s+apologi[sz]e|unfortunately)?[\s,.;:]*(?:but\s+)?"
    r"(?:as an ai[^.]*?,\s*)?"
    r"i(?:\s+(?:cannot|can\s*not|can't|won't|will\s+not|must\s+decline|decline|refuse)"
    r"|(?:'m|\s+am)\s+(?:unable|not\s+able)\s+to)\b"
)
_SAFETY = re.compile(r"(?:help|assist|comply|do that|provide that|fulfil+|continue with|discuss)\b")


def parse(raw: str, options: Sequence[str]) -> Parsed:
    """Read an answer to a question with these options; free text where there are none."""
    if not options:
        return parse_text(raw)
    if raw.startswith("[refused]"):
        return _REFUSED
    marks = letters(len(options))
    text = _strip_decoration(raw)
    same = [
        letter
        for letter, option in zip(marks, options, strict=True)
        if _fold_spaces(option) == _fold_spaces(raw)
    ]
    alone = _ALONE.match(text)
    if alone:
        choices = {alone[1], *same}
        return _read_choice(choices, marks) if len(choices) == 1 else _UNPARSABLE
    if same:
        return _read_choice(set(same), marks)
    return _read_statement(text, raw, options, marks)


def parse_text(raw: str) -> Parsed:
    """Read a free-text answer.

    That something is not in the records is an answer, which a judge may find right; a refusal is
    one to deal with the request at all.
    """
    if raw.startswith("[refused]"):
        return _REFUSED
    text = " ".join(raw.split())
    if not text:
        return _UNPARSABLE
    plain = _strip_decoration(text)
    declined = _DECLINES.match(plain)
    if declined and _SAFETY.match(plain[declined.end() :].lstrip()):
        return _REFUSED
    return Parsed("answered", text)


def _read_statement(text: str, raw: str, options: Sequence[str], marks: Sequence[str]) -> Parsed:
    lines = text.strip().split("\n")
    declared = {*_STATED.findall(text), *_CHOICE.findall(text)}
    if len(lines) > 1 and (last := _ALONE.match(lines[-1])):
        declared.add(last[1])
    leads = set(_LEAD.findall(text))
    if declared:
        # `A) is old. B) is new. The answer is b` lists options; `B) … The answer is a` wavers.
        wavers = len(leads) == 1 and leads != declared
        return (
            _UNPARSABLE
            if wavers or _names_several(text, declared)
            else _read_choice(declared, marks)
        )
    if _DECLINES.match(text.strip()):
        return _REFUSED
    return _read_lead(text, leads, options, marks)


def _read_lead(text: str, leads: set[str], options: Sequence[str], marks: Sequence[str]) -> Parsed:
    """Read the letter that a text begins with, unless the rest is a different option."""
    first = _LEAD.match(text)
    if first is None or len(leads) > 1 or _names_several(text[: first.end() + 8], leads):
        return _UNPARSABLE
    rest = _fold_spaces(text[first.end() :].lstrip(").:;,!?] -–—"))
    matching = {
        letter
        for letter, option in zip(marks, options, strict=True)
        if _fold_spaces(option) == rest
    }
    contradicted = matching and first[1] not in matching
    return _UNPARSABLE if contradicted else _read_choice(leads, marks)


def _names_several(text: str, choices: set[str]) -> bool:
    """Return whether a letter comes with another one, as in `a or b`."""
    return any(match[0][0] in choices for match in _SEVERAL.finditer(text))


def _read_choice(choices: set[str], marks: Sequence[str]) -> Parsed:
    if len(choices) != 1:
        return _UNPARSABLE
    (letter,) = choices
    return Parsed("answered", letter) if letter in marks else _UNPARSABLE


def _strip_decoration(text: str) -> str:
    """Return a text in lower case and without decoration."""
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return _DECORATION.sub("", folded).strip()


def _fold_spaces(text: str) -> str:
    return " ".join(_strip_decoration(text).rstrip(".").split())
