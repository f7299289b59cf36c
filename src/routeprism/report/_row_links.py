"""Numbers of a sentence as links to their rows, where it is certain which row each is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache

from routeprism.report._html import Markup, fragment, tag
from routeprism.report._table import shown_interval
from routeprism.runs import EstimateRow

__all__ = ["Linked", "row_links", "row_link"]

Linked = Callable[[str, str], Markup]
"""(sentence, policy) → the sentence with its numbers as links."""
_NUMBER = re.compile(r"(?:([^\s(]+) = )?(-?\d+\.(\d+) \[-?\d+\.\d+, -?\d+\.\d+\])")
"""A number with its limits, and the quantity's name where it stands before them."""


def row_link(text: str, number: int) -> Markup:
    """Lead from a number to its row of all estimates."""
    return tag("a", text, href=f"#row={number}", title=f"Row {number} of all estimates")


def row_links(rows: Sequence[EstimateRow]) -> Linked:
    """Give what links the numbers of sentences on these rows."""

    @cache
    def by_text(policy: str, digits: int) -> Mapping[str, list[tuple[int, EstimateRow]]]:
        found: dict[str, list[tuple[int, EstimateRow]]] = {}
        for number, row in enumerate(rows, start=1):
            if row.policy == policy:
                found.setdefault(shown_interval(row, digits), []).append((number, row))
        return found

    def parts(sentence: str, policy: str) -> Iterator[str]:
        at = 0
        for found in _NUMBER.finditer(sentence):
            name, text, decimals = found.groups()
            number = _row_of(name, by_text(policy, len(decimals)).get(text, []))
            if number is not None:
                yield sentence[at : found.start(2)]
                yield row_link(text, number)
                at = found.end()
        yield sentence[at:]

    return lambda sentence, policy: fragment(parts(sentence, policy))


def _row_of(name: str | None, alike: list[tuple[int, EstimateRow]]) -> int | None:
    """Choose between rows that read alike: of a quantity that is named, the first, or none."""
    plain = [(at, row) for at, row in alike if row.stratum == "all" and not row.mask] or alike
    named = [at for at, row in plain if row.quantity == name and not row.arm]
    if named:
        return named[0]
    return plain[0][0] if len(plain) == 1 else None
