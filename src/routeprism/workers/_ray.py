"""Work on a Ray cluster: the same indices in the same batches, wherever there is a free core."""

from __future__ import annotations

import os
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from routeprism.errors import MissingExtraError, RoutePrismError
from routeprism.workers._processes import AHEAD

Setup = TypeVar("Setup")
Result = TypeVar("Result")

TRIES = 3
"""How often a batch is retried on a different worker when one is lost."""

_ready: tuple[bytes, Any, Any] | None = None
"""In a worker: the job's name, its work and what it was set up with."""


def map_on_ray(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    *,
    address: str,
    batch: int,
) -> Iterator[Result]:
    """Work on batches of indices on the cluster at an address; a lost worker's are redone."""
    ray = import_ray(address)
    with connect(ray, address):
        job = put_job(ray, work, setup)
        run = ray.remote(num_cpus=1, max_retries=TRIES)(_run)
        waiting: deque[Any] = deque()
        try:
            for start in range(0, count, batch):
                waiting.append(run.remote(sys.path, job, start, min(start + batch, count)))
                if len(waiting) >= count_cores(ray) * AHEAD:
                    yield from _result(ray, waiting.popleft())
            while waiting:
                yield from _result(ray, waiting.popleft())
        finally:
            for under_way in waiting:
                ray.cancel(under_way)


def put_job(ray: Any, *items: Any) -> list[Any]:
    """Put work and its setup where workers fetch them."""
    try:
        # In a list, a reference stays one: a worker fetches the job once, not with each batch.
        return [ray.put(items)]
    except Exception as error:
        raise RoutePrismError(
            f"this cannot be sent to other machines ({error}); define its class in a "
            f"module that can be imported there"
        ) from error


def import_ray(address: str) -> Any:
    """Import Ray so that it joins a cluster at this address."""
    if "ray" not in sys.modules and _on_loopback_alone(address):
        # Ray takes 127.0.0.1 for this machine's outer address unless it is told not to, at import.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("a Ray cluster", "ray") from error
    return ray


def _on_loopback_alone(address: str) -> bool:
    """Whether a cluster can be reached by 127.0.0.1 and by no other address of this machine."""
    host, _, port = address.rpartition(":")
    if host not in ("127.0.0.1", "localhost") or not port.isdigit():
        return False
    # Who listens on all addresses listens on every one of the loopback network.
    return _listens("127.0.0.1", int(port)) and not _listens("127.0.0.2", int(port))


def _listens(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=2):
            return True
    except OSError:
        return False


@contextmanager
def connect(ray: Any, address: str) -> Iterator[None]:
    """Join the cluster, unless the caller has joined one already, and leave what was joined."""
    if ray.is_initialized():
        yield
        return
    _refuse_silence(address)
    options = {} if "://" in address else {"job_config": _isolate_workers(ray)}
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", **options)
    except Exception as error:
        raise _no_cluster(address, _first_line(error)) from error
    try:
        yield
    finally:
        ray.shutdown()


def _isolate_workers(ray: Any) -> Any:
    """Keep Ray from making workers search the current directory and that of the script first.

    Ray does not do that if a job brings its own directory, so this job says that it does. Workers
    search the paths of this process last, and find the user's own class there.
    """

    class Job(ray.job_config.JobConfig):  # type: ignore[misc, name-defined, unused-ignore]
        def _runtime_env_has_working_dir(self) -> bool:
            return True

    return Job()


def _refuse_silence(address: str) -> None:
    """Refuse an address where nothing listens; Ray would keep trying for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit() and not _listens(host.strip("[]"), int(port)):
        raise _no_cluster(address, "no cluster listens there")


def _no_cluster(address: str, reason: str) -> RoutePrismError:
    return RoutePrismError(
        f"there is no Ray cluster to join at '{address}' ({reason}); start one with "
        f"`ray start --head` and name it as HOST:PORT, or as auto on one of its machines"
    )


def count_cores(ray: Any) -> int:
    """Count the cluster's cores now; machines come and go."""
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def list_machines(ray: Any) -> list[str]:
    """List the ids of the machines that have cores."""
    return [
        node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")
    ]


def _result(ray: Any, reference: Any) -> list[Any]:
    try:
        results: list[Any] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        raise (cause if isinstance(cause, Exception) else error) from error
    except ray.exceptions.RayError as error:
        raise RoutePrismError(
            f"workers of the Ray cluster were lost {TRIES + 1} times with the same pools, out of "
            f"memory or killed ({_first_line(error)}); try it on one machine"
        ) from error
    return results


def _run(paths: list[str], job: list[Any], start: int, stop: int) -> list[Any]:
    """Do a batch in a worker.

    A memory class of the user's own is imported from where it was found at home.
    """
    sys.path.extend(path for path in paths if path not in sys.path)
    work, context = set_up_job(job)
    return [work(context, index) for index in range(start, stop)]


def set_up_job(job: list[Any]) -> tuple[Any, Any]:
    """Return the work of a job and its context; a worker is set up when it first meets the job."""
    import ray  # type: ignore[import-not-found, unused-ignore]

    global _ready
    name = job[0].binary()
    if _ready is None or _ready[0] != name:
        work, setup = ray.get(job[0])
        _ready = (name, work, setup())
    return _ready[1:]


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
