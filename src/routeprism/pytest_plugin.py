"""The pytest plugin: one assertion, and a fixture that gives it. Loading it imports pytest alone.

The entry point `routeprism` of `pytest11` loads it with the package; `-p no:routeprism` leaves it
out, and the function can be imported all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

__all__ = ["assert_order_stable", "order_stability"]


def assert_order_stable(
    memory: Any,
    pools: Any,
    *,
    arrival: str = "jitter:w=2",
    min_jaccard: float = 1.0,
    questions: Any = None,
    evidence: bool | Collection[str] = False,
    interface: str = "all",
    orders: int = 1_000,
    data: str | Path | None = None,
) -> None:
    """Fail unless a memory keeps the same records in every order that may come.

    The assertion also fails if nothing can be concluded, for example because the memory keeps no
    record in any order. The message says what to change.

    Args:
        memory: a memory class, a policy, or a spec such as `focal`.
        pools: a pool or several, each a `Pool`, or a list of records or texts; a benchmark or its
            name.
        arrival: which orders may come: by default, ordinary disorder (`jitter:w=2`); or
            `uniform` for all of them, `late-batch`, `interleave:k=2`, `replay`, …
        min_jaccard: the overlap (J) with source order that every order has to reach, of the
            retained sets, and of the exposed sets where questions are given; with `evidence`, the
            share of the evidence that every order has to keep.
        questions: texts to expose each memory to, or a mapping from user to texts; True for those
            of the benchmark.
        evidence: True if only evidence has to be kept: the records that the questions of the
            benchmark are labelled with, or without labels every record that no other one
            supersedes. You can also pass the ids of the records that have to be kept.
        interface: what whole-record policies named by a spec expose through.
        orders: up to how many orders of a pool are built; if there are more, that many are drawn.
        data: where benchmark files are.

    """
    __tracebackhide__ = True
    from routeprism.review.stability import order_stability as look

    stability = look(
        memory,
        pools,
        arrival=arrival,
        min_jaccard=min_jaccard,
        questions=questions,
        evidence=evidence,
        interface=interface,
        orders=orders,
        data=data,
    )
    if stability.breaches or stability.inconclusive:
        raise AssertionError(str(stability))


@pytest.fixture
def order_stability() -> Callable[..., None]:
    """Return `assert_order_stable`, for tests that would rather not import it."""
    return assert_order_stable
