"""Threads that take turns: before each use of shared objects, a function chooses which continues.

Each write runs on its own thread, and only one of them runs at a time. A trace function stops
a thread before every instruction that can use an object of another thread, and a `choose` function
picks the write that continues, so the same choices always give the same interleaving. Locks that
the memory makes are replaced by locks that hand over to another write instead of blocking.

Some code cannot be stopped, such as a query inside a C extension. If a write makes no progress for
two seconds, all writes run freely from there, and the execution counts as not controlled.
"""

from __future__ import annotations

import dis
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

from routeprism.frames import OWN_ERRORS
from routeprism.overlap._limits import explain_limit
from routeprism.overlap._locks import TurnLock, TurnRLock
from routeprism.overlap._loop import (
    NEVER_ENDED,
    Choose,
    Step,
    is_foreign,
    is_library,
    is_machinery,
    name_place,
)

_LOOKS, _INTERVAL = 20, 0.1
"""Looks in a row without progress after which the writes run freely, and seconds between two.

Time alone would not do: on a busy machine, the whole process may not run for seconds.
"""
_MOST_MOMENTS = 2000
"""How often a write looks whether a thread that is not controlled lets it continue."""
_MOMENT = 0.001
_SHARED = (
    *("LOAD_ATTR", "STORE_ATTR", "DELETE_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"),
    *("BINARY_SUBSCR", "STORE_SUBSCR", "DELETE_SUBSCR", "BINARY_SLICE", "STORE_SLICE"),
    *("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF"),
    *("CONTAINS_OP", "COMPARE_OP", "BINARY_OP", "FOR_ITER", "GET_ITER", "UNPACK_SEQUENCE"),
    *("LIST_EXTEND", "SET_UPDATE", "DICT_UPDATE", "DICT_MERGE", "BINARY_ADD", "INPLACE_ADD"),
    *("CALL", "CALL_FUNCTION", "CALL_METHOD", "CALL_FUNCTION_EX", "CALL_FUNCTION_KW", "CALL_KW"),
)
"""Instructions that may use an object that another thread can use."""
_BY_INSTRUCTION = sys.version_info < (3, 12)
"""Newer versions of Python can crash if instructions are traced on several threads; there, threads
switch between lines."""
_DEPTH = 3
"""How far below a memory's attributes locks are looked for."""
_REAL: dict[str, Any] = {
    "Lock": threading.Lock,
    "_allocate_lock": threading.Lock,
    "RLock": threading.RLock,
    "sleep": time.sleep,
    "start": threading.Thread.start,
}
_LOCK_TYPE: Any = type(threading.Lock())
_RLOCK_TYPE: Any = type(threading.RLock())


class _AbandonedError(BaseException):
    """Ends the thread of a write that can never continue."""


class ThreadScheduler:
    """Runs the writes of one memory on threads, one instruction at a time."""

    def __init__(self) -> None:
        self._home = threading.get_ident()
        self._older = {*threading.enumerate()}
        """Threads that have nothing to do with the memory."""
        self._reset(0)

    def _reset(self, writes: int) -> None:
        self.steps: list[Step] = []
        self.controlled = True
        """Whether every switch between writes was chosen."""
        self._gates = [_make_closed_gate() for _ in range(writes)]
        self._finished = _make_closed_gate()
        self._numbers: dict[int, int] = {}
        """Identity of a thread → number of its write."""
        self._conditions: dict[int, tuple[Callable[[], bool], bool]] = {}
        """Number of a waiting write → its condition, and whether its time may end."""
        self._expired: set[int] = set()
        self._done: set[int] = set()
        self._stuck: set[int] = set()
        self._errors: dict[int, BaseException] = {}
        self._progress = 0
        self._deciding = False
        """Whether code of this class runs, which is never stopped."""
        self._free = self._abandoned = False

    def overlap(
        self, writes: Sequence[Callable[[], Any]], choose: Choose, limit: float = 60.0
    ) -> list[BaseException | None]:
        """Run writes at once, and give what each raised, if anything.

        A write that can never continue, or not within the limit in seconds, gives a TimeoutError.
        """
        self._reset(len(writes))
        self._choose = choose
        real = [(owner, name, _REAL[name]) for owner, name, _ in self._list_names()]
        with _replace_names(real):  # the threads of the writes are made with real locks
            threads = [
                threading.Thread(target=self._run, args=(number, write), daemon=True)
                for number, write in enumerate(writes)
            ]
            for thread in threads:
                thread.start()
        self._known = {*self._older, *threads}
        self._gates[self._pick()].release()
        self._watch(limit)
        self._free = True
        return [
            TimeoutError(NEVER_ENDED)
            if number in self._stuck
            else self._errors.get(number)
            if number in self._done
            else TimeoutError(explain_limit(limit))
            for number in range(len(writes))
        ]

    def replace_locks(self, kind: Any) -> AbstractContextManager[None]:
        """Let new locks, and those of a class and its modules, hand over to other writes."""
        return _replace_names([*self._list_names(), *self._list_module_places(kind)])

    def replace_inner_locks(self, item: Any, depth: int = _DEPTH) -> None:
        """Replace the locks that an object, or an object inside it, has made before."""
        for name, value in list(getattr(item, "__dict__", {}).items()):
            if (lock := self._replace(value)) is not None:
                setattr(item, name, lock)
            elif depth and is_foreign(type(value).__module__):
                self.replace_inner_locks(value, depth - 1)

    def _list_names(self) -> list[tuple[Any, str, Any]]:
        return [
            (threading, "Lock", self._make(TurnLock)),
            (threading, "_allocate_lock", self._make(TurnLock)),
            (threading, "RLock", self._make(TurnRLock)),
            (time, "sleep", self._sleep),
            (threading.Thread, "start", self._make_start()),
        ]

    def _make_start(self) -> Callable[[threading.Thread], None]:
        """Make the method that starts a thread; one that a write starts is not controlled."""

        def start(thread: threading.Thread) -> None:
            if threading.get_ident() in self._numbers:
                self.controlled = False
            _REAL["start"](thread)

        return start

    def _list_module_places(self, kind: Any) -> list[tuple[Any, str, Any]]:
        """List the names in a memory's classes and modules that stand for locks or sleeping."""
        mro = getattr(kind, "__mro__", (kind,))
        kinds = [base for base in mro if is_foreign(base.__module__)]
        modules = {base.__module__: sys.modules.get(base.__module__) for base in kinds}
        return [
            (owner, name, replacement)
            for owner in (*kinds, *modules.values())
            for name, value in list(getattr(owner, "__dict__", {}).items())
            if (replacement := self._replace(value)) is not None
        ]

    def _replace(self, value: Any) -> Any:
        """Return the replacement of a lock, of a class of locks, or of `time.sleep`."""
        if value is _REAL["sleep"]:
            return self._sleep
        if value is _REAL["Lock"]:
            return self._make(TurnLock)
        if value is _REAL["RLock"]:
            return self._make(TurnRLock)
        if isinstance(value, _LOCK_TYPE):
            return TurnLock(self)
        return TurnRLock(self) if isinstance(value, _RLOCK_TYPE) else None

    def _make(self, kind: type[Any]) -> Callable[[], Any]:
        return lambda: kind(self)

    # --- What threads and locks call --------------------------------------------------------

    def find_number(self) -> int | None:
        """Return the write that the current thread performs; None if it runs freely."""
        return None if self._free else self._numbers.get(threading.get_ident())

    def pause(self, place: str) -> None:
        """Let another write continue before this one does, if it is chosen."""
        number = self.find_number()
        if number is not None:
            self._hand_over(number, place)

    def wait(self, ready: Callable[[], bool], *, timed: bool, place: str) -> bool:
        """Let other writes continue until a condition holds; False if the time ends before."""
        number = self.find_number()
        if number is None:
            return ready()
        while not ready():
            self._conditions[number] = ready, timed
            self._hand_over(number, place)
            self._conditions.pop(number, None)
            if number in self._expired:
                self._expired.discard(number)
                return ready()
            if self._free:
                return False
        return True

    def _sleep(self, seconds: float) -> None:
        if self.find_number() is not None:
            self.pause("a sleep ends")
        elif threading.get_ident() != self._home:
            _REAL["sleep"](seconds)

    def _run(self, number: int, write: Callable[[], Any]) -> None:
        self._numbers[threading.get_ident()] = number
        self._gates[number].acquire()
        self._deciding = False
        try:
            if not self._abandoned:
                sys.settrace(self._make_tracer())
                write()
        except _AbandonedError:
            pass
        except OWN_ERRORS as error:
            self._errors[number] = error
        finally:
            sys.settrace(None)
            self._end(number)

    def _end(self, number: int) -> None:
        self._numbers.pop(threading.get_ident(), None)  # another thread may have it later
        self._done.add(number)
        self.steps.append(Step(number, "end"))
        if len(self._done) == len(self._gates):
            self._finished.release()
        elif not self._free:
            self._gates[self._pick()].release()

    def _hand_over(self, number: int, place: str) -> None:
        self._deciding = True
        self._progress += 1
        following = self._pick()
        if following != number:
            self.steps.append(Step(number, place))
            self._gates[following].release()
            self._gates[number].acquire()
        self._deciding = False
        if self._abandoned:
            raise _AbandonedError

    def _pick(self) -> int:
        """Choose the write that continues; wait for threads that are not ours if none can."""
        moments = 0
        while True:
            going = [n for n in range(len(self._gates)) if n not in self._done]
            enabled = [n for n in going if n not in self._conditions or self._conditions[n][0]()]
            if enabled:
                return self._choose(enabled)
            timed = [n for n in going if self._conditions[n][1]]
            if timed:
                self._expired.add(number := self._choose(timed))
                return number
            strangers = {*threading.enumerate()} - self._known
            if not strangers or moments >= _MOST_MOMENTS:
                self._stuck.update(going)
                self._abandoned = True
                return going[0]
            self.controlled = False
            moments += 1
            _REAL["sleep"](_MOMENT)

    def _watch(self, limit: float) -> None:
        """Wait for all writes; let them run freely if one is stuck outside Python code."""
        deadline = time.monotonic() + limit
        progress, looks = -1, 0
        while not self._finished.acquire(timeout=_INTERVAL):
            if time.monotonic() > deadline:
                return
            looks = looks + 1 if self._progress == progress else 0
            if looks >= _LOOKS and not self._free:
                self._free, self.controlled = True, False
                for gate in self._gates:
                    with suppress(RuntimeError):  # the gate of the write that runs is open
                        gate.release()
            progress = self._progress

    def _make_tracer(self) -> Any:
        def trace_call(frame: FrameType, event: str, argument: Any) -> Any:
            code = frame.f_code
            if self._deciding or is_machinery(code) or is_library(code):
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = _BY_INSTRUCTION, not _BY_INSTRUCTION
            return trace_step

        def trace_step(frame: FrameType, event: str, argument: Any) -> Any:
            if self._free:
                return None
            if event == "line" or (
                event == "opcode" and frame.f_lasti in _find_shared(frame.f_code)
            ):
                self.pause(name_place(frame))
            return trace_step

        return trace_call


def _make_closed_gate() -> Any:
    gate = _REAL["Lock"]()
    gate.acquire()
    return gate


@lru_cache(maxsize=1024)
def _find_shared(code: CodeType) -> frozenset[int]:
    return frozenset(step.offset for step in dis.get_instructions(code) if step.opname in _SHARED)


@contextmanager
def _replace_names(places: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    """Set the attributes of some owners, and restore them at the end."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    for owner, name, value in places:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in reversed(before):
            setattr(owner, name, value)
