"""Work on a Ray cluster that asks this process questions, such as a model's replies.

Everything that costs money happens here: a worker sends a prompt and waits for the reply. If it is
lost, its work begins again on another one, and the questions that were answered are asked again
here, where their answers are stored.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from routeprism.errors import RoutePrismError
from routeprism.workers._ray import TRIES, connect, count_cores, import_ray

__all__ = ["Conversations", "open_conversations"]

Result = TypeVar("Result")
Ask = Callable[[str], str]


class Conversations:
    """Workers of a cluster, each of which works on one thing at a time."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        # They mostly wait for replies, so that they reserve no core; their number is limited here.
        self._kind = ray.remote(num_cpus=0)(_Worker)
        self._idle: deque[Any] = deque()
        self._places = threading.BoundedSemaphore(count_cores(ray))

    def run(self, work: Callable[[Ask], Result], open_ask: Callable[[], Ask]) -> Result:
        """Do `work(ask)` on a worker; its questions are answered here.

        `open_ask` gives the function that answers; it is called again when a worker was lost.
        """
        with self._places:
            for _ in range(TRIES + 1):
                worker = self._idle.popleft() if self._idle else self._kind.remote(sys.path)
                try:
                    result: Result = self._converse(worker, work, open_ask())
                except self._ray.exceptions.RayActorError:
                    continue
                except BaseException:
                    self._ray.kill(worker)  # it may still wait for a reply
                    raise
                self._idle.append(worker)
                return result
        raise RoutePrismError(
            f"workers of the Ray cluster were lost {TRIES + 1} times with the same memory, out of "
            f"memory or killed; try it on one machine"
        )

    def _converse(self, worker: Any, work: Callable[[Ask], Result], ask: Ask) -> Any:
        kind, value = self._ray.get(worker.begin.remote(work))
        while kind == "question":
            kind, value = self._ray.get(worker.reply.remote(ask(value)))
        if kind == "error":
            raise value
        return value

    def close(self) -> None:
        """End the workers."""
        for worker in self._idle:
            self._ray.kill(worker)


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


class _Worker:
    """In a process of the cluster: works in a thread, and passes its questions on."""

    def __init__(self, paths: list[str]) -> None:
        sys.path.extend(path for path in paths if path not in sys.path)
        self._said: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[str] = queue.SimpleQueue()

    def begin(self, work: Callable[[Ask], Any]) -> tuple[str, Any]:
        """Begin to work; give the first question, or the result."""
        threading.Thread(target=self._work, args=(work,), daemon=True).start()
        return self._said.get()

    def reply(self, text: str) -> tuple[str, Any]:
        """Continue with a reply; give the next question, or the result."""
        self._replies.put(text)
        return self._said.get()

    def _work(self, work: Callable[[Ask], Any]) -> None:
        try:
            self._said.put(("result", work(self._ask)))
        except BaseException as error:
            self._said.put(("error", error))

    def _ask(self, prompt: str) -> str:
        self._said.put(("question", prompt))
        return self._replies.get()
