"""On how many cores or machines: an ordered map over indices.

Nothing else in the package knows which. Work is shipped as an index, not as data: each process
sets itself up once and fetches its own piece, and results come back in order, so that the outcome
does not depend on the number of workers, nor on where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from routeprism.workers._processes import available, map_here, map_in_processes

__all__ = ["available", "ordered_map"]

Setup = TypeVar("Setup")
Result = TypeVar("Result")


def ordered_map(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    *,
    workers: int = 1,
    ray: str | None = None,
    batch: int = 8,
) -> Iterator[Result]:
    """Give `work(setup(), index)` for each index below `count`, in order.

    With more than one worker, `work` and `setup` must be importable or picklable. With the address
    of a Ray cluster the work is done there, on all of its cores, and `workers` is not looked at.
    """
    if ray is not None:
        from routeprism.workers._ray import map_on_ray

        return map_on_ray(work, setup, count, address=ray, batch=batch)
    if workers <= 1 or count <= 1:
        return map_here(work, setup, count)
    return map_in_processes(work, setup, count, workers=workers, batch=batch)
