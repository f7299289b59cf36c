"""Copies of one object, such as a local model, on the workers of a Ray cluster."""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from routeprism.errors import RoutePrismError
from routeprism.workers._ray import (
    TRIES,
    connect,
    count_cores,
    import_ray,
    list_machines,
    put_job,
)


class Replicas:
    """Copies of an object, each of which takes one call at a time."""

    def __init__(self, ray: Any, item: Any, places: list[str]) -> None:
        self._ray = ray
        self._job = put_job(ray, item)
        self._kind = ray.remote(num_cpus=0)(_Replica)
        self._places = deque(places)
        self._idle: deque[Any] = deque()
        self._all: list[Any] = []
        self.number = len(places)
        """The largest number of simultaneous calls."""

    async def call(self, method: str, *args: Any, repeat: Callable[[], None]) -> Any:
        """Call a method of a copy; `repeat` is called before a lost worker's call is repeated."""
        import asyncio  # takes long, and processes that only build memories need none

        for attempt in range(TRIES + 1):
            if attempt:
                repeat()
            replica = self._idle.popleft() if self._idle else self._start()
            try:
                reference = replica.call.remote(method, args)
                kind, value = await asyncio.wrap_future(reference.future())
            except self._ray.exceptions.RayActorError:
                continue
            self._idle.append(replica)
            if kind == "error":
                raise value
            return value
        raise RoutePrismError(
            f"workers of the Ray cluster were lost {TRIES + 1} times with the same request, out of "
            f"memory or killed; try it on one machine"
        )

    def _start(self) -> Any:
        """Start a copy on the next machine, or on a different one if that is lost."""
        strategies = self._ray.util.scheduling_strategies
        place = self._places[0]
        self._places.rotate(-1)
        strategy = strategies.NodeAffinitySchedulingStrategy(place, soft=True)
        options = self._kind.options(scheduling_strategy=strategy)
        replica = options.remote(sys.path, self._job)
        self._all.append(replica)
        return replica

    def close(self) -> None:
        """End the workers."""
        for replica in self._all:
            self._ray.kill(replica)


class _Replica:
    """In a process of the cluster: one copy."""

    def __init__(self, paths: list[str], job: list[Any]) -> None:
        import ray  # type: ignore[import-not-found, unused-ignore]

        sys.path.extend(path for path in paths if path not in sys.path)
        (self._item,) = ray.get(job[0])

    def call(self, method: str, args: tuple[Any, ...]) -> tuple[str, Any]:
        """Call a method; an error comes back as it was raised, or in words."""
        try:
            return "value", getattr(self._item, method)(*args)
        except Exception as error:
            try:
                pickle.loads(pickle.dumps(error))  # noqa: S301 (written one line before)
            except Exception:
                return "error", RuntimeError(f"{type(error).__name__}: {error}")
            return "error", error


class RayCluster:
    """A Ray cluster that one command uses: it is joined when it is first needed."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self.address = address
        self._stack = stack
        self._ray: Any = None
        self._replicas: dict[int, tuple[Any, Replicas]] = {}

    def _join(self) -> Any:
        if self._ray is None:
            self._ray = import_ray(self.address)
            self._stack.enter_context(connect(self._ray, self.address))
        return self._ray

    def replicate(self, item: Any, *, on_each: str) -> Replicas:
        """Copy an object to each `core` or each `machine`; the same object is copied once."""
        if id(item) not in self._replicas:
            ray = self._join()
            machines = list_machines(ray)
            number = count_cores(ray) if on_each == "core" else len(machines)
            replicas = Replicas(ray, item, [machines[n % len(machines)] for n in range(number)])
            self._stack.callback(replicas.close)
            self._replicas[id(item)] = item, replicas
        return self._replicas[id(item)][1]


@contextmanager
def open_cluster(address: str | None) -> Iterator[RayCluster | None]:
    """Make a cluster available to a command; None without an address."""
    if address is None:
        yield None
        return
    with ExitStack() as stack:
        yield RayCluster(address, stack)
