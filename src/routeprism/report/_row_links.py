"""Numbers of a sentence as links to their rows, where it is certain which row each is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from routeprism.report._html import Markup, fragment, tag
from routeprism.report._table import shown_interval
from routeprism.runs import EstimateRow

__all__ = ["Linked", "row_links", "row_link"]

Linked = Callable[[str, str], Markup]
"""(sentence, policy) → the sentence with its numbers as links."""
Numbered = tuple[int, EstimateRow]
"""A row with its number, from 1."""
_NUMBER = re.compile(r"(?:([^\s(]+) = )?(-?\d+\.(\d+) \[-?\d+\.\d+, -?\d+\.\d+\])")
"""A number with its limits, and the quantity's name where it stands before them."""
_PHRASES = {
    r"recovers ": "restored-absent",
    r"back is not shown to help: ": "restored-absent",
    r"exchanging them is worth ": "restored-absent",
    r"without support (?:there )?": "restored-replacement",
    r"the route that had it ": "restored-present",
    r"accuracy [\d.]+ forward, [\d.]+ on \S+ \(": "Delta_rep",
}
"""How sentences name a quantity in words, right before its number."""

_QUANTITIES = {"κ": "kappa"}
"""Symbols that sentences use → the quantities that they are."""


def row_link(text: str, number: int) -> Markup:
    """Lead from a number to its row of all estimates."""
    return tag("a", text, href=f"#row={number}", title=f"Row {number} of all estimates")


def row_links(rows: Sequence[EstimateRow]) -> Linked:
    """Give what links the numbers of sentences on these rows."""

    @cache
    def by_text(policy: str, digits: int) -> Mapping[str, list[Numbered]]:
        found: dict[str, list[Numbered]] = {}
        for number, row in enumerate(rows, start=1):
            if row.policy == policy:
                found.setdefault(shown_interval(row, digits), []).append((number, row))
        return found

    def parts(sentence: str, policy: str) -> Iterator[str]:
        at = 0
        for found in _NUMBER.finditer(sentence):
            name, text, decimals = found.groups()
            name = name or _told(sentence[: found.start()])
            said = _Said(sentence, found.start())
            number = _row_of(name, said, by_text(policy, len(decimals)).get(text, []))
            if number is not None:
                yield sentence[at : found.start(2)]
                yield row_link(text, number)
                at = found.end()
        yield sentence[at:]

    return lambda sentence, policy: fragment(parts(sentence, policy))


def _told(before: str) -> str | None:
    """Give the quantity that words name, if these end with them."""
    for phrase, name in _PHRASES.items():
        if re.search(rf"{phrase}\Z", before):
            return name
    return None


def _row_of(name: str | None, said: _Said, alike: list[Numbered]) -> int | None:
    """Choose between rows that read alike by what the sentence says; none where several stay."""
    found = [one for one in alike if one[1].stratum == "all"] or alike
    if name is not None:
        found = [one for one in found if one[1].quantity == _QUANTITIES.get(name, name)]
    sized = [one for one in found if one[1].queries in said.sizes]
    sized = [one for one in sized if not one[1].mask] or sized
    # What is said without its size is about all questions of the routes.
    plain = [one for one in found if not one[1].mask and (name is None or not one[1].arm)]
    found = sized or plain or found
    for column in ("schedule", "model", "filler"):
        values = {getattr(row, column) for _, row in found}
        told = said.nearest(values) if len(values) > 1 else None
        if told is not None:
            found = [one for one in found if getattr(one[1], column) == told]
    if not sized and name is not None:
        found = [one for one in found if one[1].experiment == found[0][1].experiment]
    return found[0][0] if len(found) == 1 else None


_SIZES = re.compile(r"(\d+) (?:pairs?|other questions)\b")


@dataclass(frozen=True, slots=True)
class _Said:
    """A sentence, and where in it a number stands."""

    sentence: str
    at: int

    @property
    def sizes(self) -> frozenset[int]:
        """On how many questions its numbers rest."""
        return frozenset(map(int, _SIZES.findall(self.sentence)))

    def nearest(self, names: Iterable[str]) -> str | None:
        """Give the name that was said last before the number, or is said first after it."""
        known = {name.lower(): name for name in names if name}  # a sentence begins with a capital
        if not known:
            return None
        listed = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        whole = re.compile(rf"(?<![\w:=+-])(?:{listed})(?![\w=+-])", re.IGNORECASE)
        said = [(one.start(), one.group().lower()) for one in whole.finditer(self.sentence)]
        before = [name for at, name in said if at < self.at]
        told = before[-1:] or [name for _, name in said[:1]]
        return known[told[0]] if told else None
