"""Work on a Ray cluster that calls home: a worker calls objects that stay in the first process.

Everything that costs money is counted and stored there, in one allowance and one ledger. A worker
sends a call and waits for its result. If the worker is lost, its work begins again on a different
one, and a reply that was stored is read instead of being requested again.
"""

from __future__ import annotations

import pickle
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

from routeprism.errors import RoutePrismError
from routeprism.workers._processes import AHEAD
from routeprism.workers._ray import (
    TRIES,
    connect,
    count_cores,
    import_ray,
    put_job,
    set_up_job,
)

Setup = TypeVar("Setup")
Result = TypeVar("Result")
Ask = Callable[[Any], Any]
Home = Mapping[str, Any]
"""Name → an object of the first process whose methods workers call."""

_home: Ask | None = None
"""In a worker: sends a call to the first process and waits for its result."""
_current = 0
"""In a worker: the index that it works on."""


def has_home() -> bool:
    """Whether this process is a worker that can call the first process."""
    return _home is not None


def current_work() -> int:
    """Return the index that a worker works on."""
    return _current


def call_home(name: str, method: str, /, *args: Any, **options: Any) -> Any:
    """Call a method of an object that stayed in the first process; used in a worker."""
    if _home is None:
        raise RoutePrismError(f"'{name}' exists in the first process alone, which is not connected")
    return _home((name, method, args, options))


def _open_home(home: Home, index: int) -> Ask:
    """Return the function that answers a worker; what it counted before it was lost is undone."""
    for item in home.values():
        if callable(restart := getattr(item, "restart", None)):
            restart(index)
    return partial(_serve, home)


def _serve(home: Home, call: tuple[str, str, tuple[Any, ...], dict[str, Any]]) -> Any:
    """Perform a call of a worker."""
    name, method, args, options = call
    return getattr(home[name], method)(*args, **options)


class Conversations:
    """Workers of a cluster, each of which works on one thing at a time."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        # They mostly wait for replies, so that they reserve no core; their number is limited here.
        self._kind = ray.remote(num_cpus=0, scheduling_strategy="SPREAD")(_Worker)
        self._idle: deque[Any] = deque()
        self._busy: set[Any] = set()
        self._number = count_cores(ray)
        self._places = threading.BoundedSemaphore(self._number)
        self._closed = False

    def run(self, work: Callable[[Ask], Result], open_ask: Callable[[], Ask]) -> Result:
        """Do `work(ask)` on a worker; its questions are answered here.

        `open_ask` gives the function that answers; it is called again when a worker was lost.
        """
        with self._places:
            for _ in range(0 if self._closed else TRIES + 1):
                worker = self._idle.popleft() if self._idle else self._kind.remote(sys.path)
                self._busy.add(worker)
                try:
                    result: Result = self._converse(worker, work, open_ask())
                except self._ray.exceptions.RayActorError:
                    if self._closed:
                        break
                    continue
                except BaseException:
                    self._ray.kill(worker)  # it may still wait for a reply
                    raise
                finally:
                    self._busy.discard(worker)
                self._idle.append(worker)
                return result
        raise RoutePrismError(
            f"workers of the Ray cluster were lost {TRIES + 1} times with the same memory, out of "
            f"memory or killed; try it on one machine"
        )

    def _converse(self, worker: Any, work: Callable[[Ask], Result], ask: Ask) -> Any:
        kind, value = self._ray.get(worker.begin.remote(work))
        while kind == "question":
            kind, value = self._ray.get(worker.reply.remote(_try(ask, value)))
        if kind == "error":
            raise value
        return value

    def map(
        self,
        work: Callable[[Setup, int], Result],
        setup: Callable[[], Setup],
        count: int,
        home: Home,
    ) -> Iterator[Result]:
        """Return `work(setup(), index)` for each index in order; workers call the objects here."""
        job = put_job(self._ray, work, setup)
        threads = ThreadPoolExecutor(self._number, thread_name_prefix="conversation")
        waiting: deque[Future[Result]] = deque()
        try:
            for index in range(count):
                task = partial(_work_at, job, index)
                waiting.append(threads.submit(self.run, task, partial(_open_home, home, index)))
                if len(waiting) >= self._number * AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            if waiting:
                self.close()
            threads.shutdown()

    def close(self) -> None:
        """End the workers."""
        self._closed = True
        for worker in (*self._idle, *self._busy):
            self._ray.kill(worker)
        self._idle.clear()


def _try(ask: Ask, question: Any) -> tuple[str, Any]:
    """Answer a question; an error is raised where the question was asked, if it can be sent."""
    try:
        return "value", ask(question)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))  # noqa: S301 (written one line before)
        except Exception:
            raise error from None
        return "error", error


@contextmanager
def open_conversations(address: str) -> Iterator[Conversations]:
    """Join a cluster for work that asks questions."""
    ray = import_ray(address)
    with connect(ray, address):
        conversations = Conversations(ray)
        try:
            yield conversations
        finally:
            conversations.close()


def map_with_home(
    work: Callable[[Setup, int], Result],
    setup: Callable[[], Setup],
    count: int,
    *,
    address: str,
    home: Home,
) -> Iterator[Result]:
    """Work on the cluster at an address; workers call the objects of `home` in this process."""
    with open_conversations(address) as conversations:
        yield from conversations.map(work, setup, count, home)


class _Worker:
    """In a process of the cluster: works in a thread, and passes its questions on."""

    def __init__(self, paths: list[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path)
        self._said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._turn = threading.Lock()

    def begin(self, work: Callable[[Ask], Any]) -> tuple[str, Any]:
        """Begin to work; give the first question, or the result."""
        threading.Thread(target=self._work, args=(work,), daemon=True).start()
        return self._said.get()

    def reply(self, reply: tuple[str, Any]) -> tuple[str, Any]:
        """Continue with a reply; give the next question, or the result."""
        self._replies.put(reply)
        return self._said.get()

    def _work(self, work: Callable[[Ask], Any]) -> None:
        try:
            self._said.put(("result", work(self._ask)))
        except BaseException as error:
            self._said.put(("error", error))

    def _ask(self, question: Any) -> Any:
        with self._turn:  # a memory may have several threads
            self._said.put(("question", question))
            kind, value = self._replies.get()
        if kind == "error":
            raise value
        return value


def _work_at(job: list[Any], index: int, ask: Ask) -> Any:
    """Work on one index in a worker, whose calls go home."""
    global _home, _current  # one for each worker process, which works on one index at a time
    _home, _current = ask, index
    try:
        work, context = set_up_job(job)
        return work(context, index)
    finally:
        _home = None
