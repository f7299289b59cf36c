"""Catalogues of similar cases: the fast tests meet each kind once, `make test` meets every case."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def mark_repeats(
    cases: Iterable[Any], kind: Callable[[Any], Hashable], name: Callable[[Any], str] = str
) -> list[Any]:
    """Mark every case as slow but the first of its kind, and name them all."""
    kinds: set[Hashable] = set()
    parameters = []
    for case in cases:
        marks = [pytest.mark.slow] if kind(case) in kinds else []
        kinds.add(kind(case))
        parameters.append(pytest.param(case, marks=marks, id=name(case)))
    return parameters
