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
from routeprism.workers._conversations import Conversations, open_conversations
from routeprism.workers._processes import Crew, available, map_here

__all__ = [
    "Conversations",
    "Crew",
    "available",
    "check_workers",
    "crew_of",
    "open_conversations",
    "ordered_map",
]

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
) -> Iterator[Result]:
    """Return `work(setup(), index)` for each index below `count`, in order.

    With more than one worker, `work` and `setup` must be importable or picklable. With the address
    of a Ray cluster the work is done there, on all of its cores, and `workers` is not looked at.
    A crew that has begun already is used if it is of that size.
    """
    if ray is not None:
        from routeprism.workers._ray import map_on_ray

        return map_on_ray(work, setup, count, address=ray, batch=batch)
    if workers <= 1 or count <= 1:
        return map_here(work, setup, count)
    if crew is not None and crew.workers == workers:
        return crew.map(work, setup, count, batch=batch)
    return _by_a_crew(work, setup, count, min(workers, count), batch)


def _by_a_crew(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    workers: int,
    batch: int,
) -> Iterator[Result]:
    with Crew(workers) as crew:
        yield from crew.map(work, setup, count, batch=batch)


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
