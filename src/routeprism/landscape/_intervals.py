"""Limits of a share that is estimated from drawn orders.

At a number of orders that was fixed before: Clopper and Pearson's interval, whose coverage is never
below its nominal 95%. Where drawing stops as soon as the interval is narrow enough, that guarantee
would be lost by looking repeatedly; then Robbins' beta mixture is used: the likelihood ratio of a
uniform mixture of shares against the true one is a martingale with mean 1, which by Ville's
inequality passes 20 at *any* time with a probability of at most 1/20 (Robbins, Statistical methods
related to the law of the iterated logarithm, 1970; Howard, Ramdas, McAuliffe and Sekhon,
Time-uniform, nonparametric, nonasymptotic confidence sequences, Annals of Statistics 49, 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

__all__ = ["ALPHA", "anytime_limits", "fixed_limits"]

ALPHA = 0.05
"""One minus the coverage."""

_STEPS = 60
"""Halvings of the unit interval: past the last digit of a float."""


def _bisected(low: float, high: float, inside: Callable[[float], bool]) -> float:
    """Find where a region that holds at `high` begins."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if inside(middle):
            high = middle
        else:
            low = middle
    return high


@lru_cache(maxsize=4096)
def _lower_tail(count: int, total: int) -> float:
    """Find the share under which so many or more have a probability of α/2."""
    import numpy as np

    terms = np.arange(count, total + 1)
    factorials = _log_factorials(total)
    ways = factorials[total] - factorials[terms] - factorials[total - terms]

    def likely(share: float) -> bool:
        logs = ways + terms * math.log(share) + (total - terms) * math.log1p(-share)
        return float(np.exp(logs).sum()) >= ALPHA / 2

    return _bisected(0.0, 1.0 - 2**-53, likely)


@lru_cache(maxsize=8)
def _log_factorials(total: int):  # type: ignore[no-untyped-def]
    import numpy as np

    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, total + 1)))))


def fixed_limits(count: int, total: int) -> tuple[float, float]:
    """Give Clopper and Pearson's 95% limits."""
    if total == 0:
        return 0.0, 1.0
    lower = _lower_tail(count, total) if count else 0.0
    upper = 1.0 - _lower_tail(total - count, total) if count < total else 1.0
    return lower, upper


@lru_cache(maxsize=4096)
def anytime_limits(count: int, total: int) -> tuple[float, float]:
    """Give 95% limits that hold at every look at once."""
    if total == 0:
        return 0.0, 1.0
    rest = total - count
    mixture = math.lgamma(count + 1) + math.lgamma(rest + 1) - math.lgamma(total + 2)

    def inside(share: float) -> bool:
        against = (count * math.log(share) if count else 0.0) + (
            rest * math.log1p(-share) if rest else 0.0
        )
        return mixture - against < -math.log(ALPHA)

    peak = count / total
    lower = _bisected(0.0, peak, inside) if count else 0.0
    upper = 1.0 - _bisected(0.0, 1.0 - peak, lambda far: inside(1.0 - far)) if rest else 1.0
    return lower, upper
