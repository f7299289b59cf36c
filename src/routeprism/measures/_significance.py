"""Tests of single claims, and the adjustment of several claims that one run makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

Alternative = Literal["two-sided", "greater"]
Claim = TypeVar("Claim")

_LISTED_UNITS = 13
"""Up to how many units every combination of signs is listed."""
_TOLERANCE = 1e-12


def flip_signs(
    values: Sequence[float] | npt.NDArray[np.float64],
    *,
    seed: int,
    flips: int = 10_000,
    alternative: Alternative = "two-sided",
) -> float:
    """Test whether independent values are symmetric about zero, by flipping their signs.

    Gives the share of sign combinations whose sum is at least as extreme as the observed one. All
    combinations are listed for few values; otherwise they are drawn, and the observed one counts
    as one of them, so that the p-value is never zero.
    """
    observed = np.asarray(values, dtype=np.float64)
    observed = observed[observed != 0]  # a zero has no sign
    if not observed.size:
        return 1.0
    if observed.size <= _LISTED_UNITS:
        numbers = np.arange(1 << observed.size)[:, None]
        signs = 1.0 - 2.0 * (numbers >> np.arange(observed.size) & 1)
        count = 0
    else:
        generator = np.random.default_rng([seed, observed.size])
        signs = 1.0 - 2.0 * generator.integers(0, 2, size=(flips, observed.size))
        count = 1
    sums, total = signs @ observed, observed.sum()
    if alternative == "two-sided":
        sums, total = np.abs(sums), abs(total)
    extreme = int(np.count_nonzero(sums >= total - _TOLERANCE * np.abs(observed).sum()))
    return (extreme + count) / (len(sums) + count)


def adjust_holm(p_values: Mapping[Claim, float]) -> dict[Claim, float]:
    """Adjust the p-values of several claims so that any false claim has the stated risk (Holm)."""
    ordered = sorted(p_values, key=lambda claim: p_values[claim])
    adjusted: dict[Claim, float] = {}
    largest = 0.0
    for at, claim in enumerate(ordered):
        largest = max(largest, min(1.0, (len(ordered) - at) * p_values[claim]))
        adjusted[claim] = largest
    return {claim: adjusted[claim] for claim in p_values}
