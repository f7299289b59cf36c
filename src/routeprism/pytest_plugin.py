"""The pytest plugin: one assertion, and a fixture that gives it. Loading it imports pytest alone.

The entry point `routeprism` of `pytest11` loads it with the package; `-p no:routeprism` leaves it
out, and the function can be imported all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

__all__ = ["assert_order_stable", "order_stability"]


def assert_order_stable(
    memory: Any,
    pools: Any,
    *,
    arrival: str = "uniform",
    min_jaccard: float = 1.0,
    questions: Any = None,
    interface: str = "all",
    orders: int = 1_000,
    data: str | Path | None = None,
) -> None:
    """Fail unless a memory keeps the same records in every order that may come.

    Args:
        memory: a memory class, a policy, or a spec such as `focal`.
        pools: a pool or several, each a `Pool`, or a list of records or texts; a benchmark or its
            name.
        arrival: which orders may come: `uniform`, `jitter:w=2`, `late-batch`, `interleave:k=2`, …
        min_jaccard: the overlap (J) with source order that every order has to reach, of the
            retained sets, and of the exposed sets where questions are given.
        questions: texts to expose each memory to, or a mapping from user to texts; True for those
            of the benchmark.
        interface: what whole-record policies named by a spec expose through.
        orders: up to how many orders of a pool are built; where there are more, so many are drawn.
        data: where benchmark files are.

    """
    __tracebackhide__ = True
    from routeprism.experiments.stability import order_stability as look

    found = look(
        memory,
        pools,
        arrival=arrival,
        min_jaccard=min_jaccard,
        questions=questions,
        interface=interface,
        orders=orders,
        data=data,
    )
    if found.breaches:
        raise AssertionError(str(found))


@pytest.fixture
def order_stability() -> Callable[..., None]:
    """Give `assert_order_stable`, for tests that would rather not import it."""
    return assert_order_stable
