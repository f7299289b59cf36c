"""The closed form for `recent:k` (Appendix D.11): a cross-check of everything that counts."""

from __future__ import annotations

import math
from fractions import Fraction

__all__ = ["recent_keeps"]


def recent_keeps(size: int, k: int, support: int) -> Fraction:
    """Give the probability that a uniform order leaves one of the support records in the window.

    Before the interface; 1 where the window holds the whole pool and there is support.
    """
    if support == 0:
        return Fraction(0)
    window = min(k, size)
    return 1 - Fraction(math.comb(size - support, window), math.comb(size, window))
