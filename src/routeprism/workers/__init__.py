"""On how many cores or machines: an ordered map over indices.

Nothing else in the package knows which. Work is shipped as an index, not as data: each process
sets itself up once and fetches its own piece, and results come back in order, so that the outcome
does not depend on the number of workers, nor on where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from routeprism.errors import SpecError
from routeprism.workers._conversations import (
    Conversations,
    Home,
    call_home,
    current_work,
    has_home,
    map_with_home,
    open_conversations,
)
from routeprism.workers._processes import Crew, available, count_ticks, map_here
from routeprism.workers._replicas import RayCluster, Replicas, open_cluster

__all__ = [
    "RayCluster",
    "Conversations",
    "Crew",
    "Home",
    "Replicas",
    "TICKS",
    "available",
    "call_home",
    "check_workers",
    "crew_of",
    "current_work",
    "has_home",
    "open_cluster",
    "open_conversations",
    "ordered_map",
    "report_ticks",
]

TICKS = "ticks"
"""The name of the object, among those of `home`, that is called with what workers count."""

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
    crew: Crew | None = None,
    home: Home | None = None,
) -> Iterator[Result]:
    """Return `work(setup(), index)` for each index below `count`, in order.

    With more than one worker, `work` and `setup` must be importable or picklable. With the address
    of a Ray cluster the work is done there, on all of its cores, and `workers` is not looked at.
    A crew that has begun already is used if it is of that size. On a cluster, the objects of `home`
    stay in this process, and workers call their methods here (`call_home`). The object under
    `TICKS` is called with what workers count (`report_ticks`), on a cluster or not.
    """
    observe = (home or {}).get(TICKS)
    if ray is not None and home:
        return map_with_home(work, setup, count, address=ray, home=home)
    if ray is not None:
        from routeprism.workers._ray import map_on_ray

        return map_on_ray(work, setup, count, address=ray, batch=batch)
    if workers <= 1 or count <= 1:
        return map_here(work, setup, count)
    if crew is not None and crew.workers == workers:
        return crew.map(work, setup, count, batch=batch, observe=observe)
    return _by_a_crew(work, setup, count, min(workers, count), batch, observe)


def _by_a_crew(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    workers: int,
    batch: int,
    observe: Callable[[int], None] | None,
) -> Iterator[Result]:
    with Crew(workers) as crew:
        yield from crew.map(work, setup, count, batch=batch, observe=observe)


def report_ticks(number: int) -> None:
    """Report to the first process what a worker counted; nothing happens in the first process."""
    if has_home():
        call_home(TICKS, "__call__", number)
    else:
        count_ticks(number)


def check_workers(workers: int | None) -> None:
    """Refuse more processes than this machine can run."""
    most = max(64, 4 * available())
    if workers is not None and workers > most:
        raise SpecError(
            f"Expected at most {most} workers on this machine ({available()} cores) but got "
            f"workers={workers}"
        )


@contextmanager
def crew_of(
    workers: int | None, importing: str, *, ray: str | None = None
) -> Iterator[Crew | None]:
    """Start workers ahead of their work, where there will be several and here."""
    check_workers(workers)
    if workers is None or workers <= 1 or ray is not None:
        yield None
        return
    with Crew(workers, importing) as crew:
        yield crew.begin()
