"""Which row of `estimates.csv` is meant: by its number, or by as many names as it takes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

from routeprism.errors import SpecError, nearest
from routeprism.runs import COLUMNS, EstimateRow

__all__ = ["chosen_row"]

_NUMBERS = ("estimate", "lower", "upper", "queries", "units", "draws", "seed", "flags")
_NAMES = tuple(name for name in COLUMNS if name not in _NUMBERS)
_PLAIN: Mapping[str, str] = {"stratum": "all", "mask": "", "arm": ""}
"""What is meant where nothing is said, as in gates: all questions, and the plain arm."""
_LISTED = 12


def chosen_row(rows: Sequence[EstimateRow], text: str) -> int:
    """Give the place of the one row that is meant; say what is near where it is none or several."""
    if text.strip().isdigit():
        number = int(text)
        if not 1 <= number <= len(rows):
            raise SpecError(
                f"Expected a row from 1 to {len(rows)} of estimates.csv but got row={number}"
            )
        return number - 1
    wanted = _names(text)
    left = [at for at, row in enumerate(rows) if _has(row, wanted)]
    if not left:
        raise SpecError(_nothing(rows, wanted, text))
    for name, value in _PLAIN.items():
        if name not in wanted:
            left = [at for at in left if getattr(rows[at], name) == value] or left
    if len(left) > 1:
        listed = [f"  {at + 1}: {said}" for at, said in _distinguished(rows, left[:_LISTED], left)]
        more = f"\n  … and {len(left) - _LISTED} more" if len(left) > _LISTED else ""
        raise SpecError(
            f"{len(left)} rows are meant by {text!r}. Add what tells them apart, or say the number "
            f"of the row:\n" + "\n".join(listed) + more
        )
    return left[0]


def _names(text: str) -> dict[str, str]:
    # A policy's own parameters have commas, too: only a known column begins another name.
    wanted = {}
    for part in re.split(rf",\s*(?=(?:{'|'.join(_NAMES)})=)", text.strip()):
        name, equals, value = part.strip().partition("=")
        if not equals or name not in _NAMES:
            raise SpecError(
                f"Expected names such as 'policy=focal,schedule=replay,quantity=J', or the number "
                f"of a row of estimates.csv, but got {part!r}. {nearest(name, _NAMES)}"
            )
        wanted[name] = value
    return wanted


def _has(row: EstimateRow, wanted: Mapping[str, str]) -> bool:
    return all(getattr(row, name) == value for name, value in wanted.items())


def _nothing(rows: Sequence[EstimateRow], wanted: Mapping[str, str], text: str) -> str:
    """Say which name has no such value, or which two do not go together."""
    for name, value in wanted.items():
        known = {str(getattr(row, name)) for row in rows}
        if value not in known:
            return f"no row has {name}={value}. {nearest(value, known - {''})}"
    kept: dict[str, str] = {}
    for name, value in wanted.items():
        together = {str(getattr(row, name)) for row in rows if _has(row, kept)}
        if value not in together:
            so_far = ",".join(f"{one}={two}" for one, two in kept.items())
            return f"no row with {so_far} has {name}={value}. {nearest(value, together - {''})}"
        kept[name] = value
    return f"no row is meant by {text!r}"


def _distinguished(
    rows: Sequence[EstimateRow], shown: Sequence[int], all_: Sequence[int]
) -> list[tuple[int, str]]:
    """Give for each row the fewest names that tell it from the others that are meant."""
    varying = [name for name in _NAMES if len({getattr(rows[at], name) for at in all_}) > 1]
    found = []
    for at in shown:
        for size in range(1, len(varying) + 1):
            fitting = [
                names
                for names in combinations(varying, size)
                if sum(_has(rows[other], _part(rows[at], names)) for other in all_) == 1
            ]
            if fitting:
                part = _part(rows[at], fitting[0])
                found.append((at, ",".join(f"{name}={value}" for name, value in part.items())))
                break
    return found


def _part(row: EstimateRow, names: Sequence[str]) -> dict[str, str]:
    return {name: getattr(row, name) for name in names}
