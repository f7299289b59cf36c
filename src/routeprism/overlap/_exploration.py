"""Every interleaving of a few writes, without those that differ only in independent steps.

Depth-first search that performs the trial again for each interleaving, with sleep sets (Godefroid,
Partial-Order Methods for the Verification of Concurrent Systems, 1996): a step that was explored
at a node need not be explored again after steps that do not conflict with it.

Two steps are independent if exchanging them cannot change anything. A step is observed by the
attributes of the memory that it uses. Mutable values may share parts, so all of them count as one
attribute. A step that uses a mutable value is taken to change it, and so is every later step of the
same write, which may still hold the value. A step that reaches anything outside the memory
(files, global values, clocks) depends on every step.
"""

from __future__ import annotations

import dis
import enum
import gc
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar

from routeprism.errors import InapplicableError
from routeprism.overlap._loop import BACKGROUND, Choose, Watch, find_write, is_foreign, is_machinery
from routeprism.overlap._trials import Execution, Outcome, Trial
from routeprism.records import Record

T = TypeVar("T")

_IMMUTABLE = (str, bytes, int, float, complex, bool, type(None), range, type(Ellipsis), Record)
_MUTABLE = "values that can be changed"
"""Stands for all attributes with a mutable value, which may share parts."""
_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)
_SAFE_OWNERS = (str, bytes, int, float, list, tuple, dict, set, frozenset, bytearray)
_SAFE_MODULES = {"builtins", "_asyncio", "_contextvars", "_heapq", "_bisect", "math", "_operator"}
_UNOBSERVED = {"__getattribute__", "__setattr__", "__delattr__"}
_OUTSIDE = {
    *("open", "print", "input", "exec", "eval", "compile", "globals", "locals", "vars"),
    *("setattr", "delattr", "id", "hash", "__import__", "breakpoint"),
}


@dataclass(slots=True)
class Access:
    """The attributes of a memory that a step reads and changes."""

    reads: set[str] = field(default_factory=set)
    changes: set[str] = field(default_factory=set)
    outside: bool = False
    """Whether it may have used anything else that another write can see."""

    def conflicts_with(self, step: Access) -> bool:
        """Whether the order of the two steps may matter."""
        if self.outside or step.outside:
            return True
        return bool(self.changes & (step.reads | step.changes) or step.changes & self.reads)


class AccessRecorder:
    """Records what each step of each write uses of one memory."""

    def __init__(self, memory: Any) -> None:
        self._current: Access | None = None
        self._holders = {BACKGROUND}  # what those tasks used before is unknown
        """Numbers of the writes that have used a mutable value."""
        self.last = Access()
        self._memory = memory
        shared = all(map(_has_constants_only, type(memory).__mro__))
        self._blind = not (shared and _observe_attributes(memory, self))

    def use(self, name: str, value: Any) -> None:
        """Record that the current step reads an attribute."""
        if self._current is None or _is_code(value, self._memory):
            return
        self._current.reads.add(name)
        if not _is_immutable(value):
            self._current.changes.add(_MUTABLE)

    def change(self, name: str, value: Any = None) -> None:
        """Record that the current step sets an attribute to a value, or deletes it."""
        if self._current is not None:
            self._current.changes.add(name)
            if not _is_immutable(value):
                self._current.changes.add(_MUTABLE)

    def reach_outside(self) -> None:
        """Record that the current step may use something outside the memory."""
        if self._current is not None:
            self._current.outside = True

    def watch(self, number: int, run: Callable[[], bool]) -> None:
        """Run one step of a write and record what it uses."""
        changes = {_MUTABLE} if number in self._holders else set()
        self._current = self.last = Access(changes=changes, outside=self._blind)
        before, collects = sys.getprofile(), gc.isenabled()
        gc.disable()  # what a collection finalises would be taken for a part of the step
        sys.setprofile(self._profile)
        try:
            if run():
                self.reach_outside()
        finally:
            _resume_profiler(before)
            if collects:
                gc.enable()
            access, self._current = self._current, None
            if _MUTABLE in access.changes:
                self._holders.add(number)

    def _profile(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if not is_machinery(frame.f_code) and not _is_safe_call(argument):
                self.reach_outside()
        elif event == "call" and not is_machinery(frame.f_code) and _uses_globals(frame):
            self.reach_outside()


def _resume_profiler(profiler: Any) -> None:
    """Resume the profiler of the process; one that is written in C is not a function."""
    sys.setprofile(profiler if callable(profiler) else None)
    if hasattr(profiler, "enable"):
        profiler.enable()


def _observe_attributes(memory: Any, recorder: AccessRecorder) -> bool:
    """Let a memory report the use of its attributes; False if its class does not permit that."""
    kind: Any = type(memory)

    def __getattribute__(self: Any, name: str) -> Any:  # noqa: N807
        value = kind.__getattribute__(self, name)
        if name == "__dict__":
            recorder.reach_outside()
        elif not name.startswith("__"):
            recorder.use(name, value)
        return value

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        recorder.change(name, value)
        kind.__setattr__(self, name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        recorder.change(name)
        kind.__delattr__(self, name)

    methods = {
        "__getattribute__": __getattribute__,
        "__setattr__": __setattr__,
        "__delattr__": __delattr__,
        "__module__": __name__,
        "__slots__": (),
    }
    try:
        observed = _observe_class(type(kind), recorder)
        # The memory's own __setattr__ may refuse or redirect this.
        object.__setattr__(memory, "__class__", observed(kind.__name__, (kind,), methods))
    except TypeError:
        return False
    return True


def _observe_class(kind: Any, recorder: AccessRecorder) -> Any:
    """Make a class of classes that report the use of class variables, as in `type(self).number`."""

    def __getattribute__(self: Any, name: str) -> Any:  # noqa: N807
        value = kind.__getattribute__(self, name)
        if not name.startswith("__") and not isinstance(value, _CODE):
            recorder.reach_outside()
        return value

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        recorder.reach_outside()
        kind.__setattr__(self, name, value)

    return type(
        kind.__name__, (kind,), {"__getattribute__": __getattribute__, "__setattr__": __setattr__}
    )


def _is_code(value: Any, memory: Any) -> bool:
    """Whether a value is code, unless that is a method of an object other than the memory."""
    if not isinstance(value, _CODE):
        return False
    owner = getattr(value, "__self__", None)
    return owner is None or owner is memory or isinstance(owner, (type, types.ModuleType))


def _is_immutable(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_immutable, value))
    return isinstance(value, _IMMUTABLE)


def _is_safe_call(function: Any) -> bool:
    """Whether a function of the interpreter can only use what it is given."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, _SAFE_OWNERS):
        return True
    name = getattr(function, "__name__", "")
    module = getattr(function, "__module__", None)
    if module is None and owner is not None and not isinstance(owner, types.ModuleType):
        module = type(owner).__module__
    return module in _SAFE_MODULES and name not in _OUTSIDE


def _uses_globals(frame: types.FrameType) -> bool:
    """Whether a function uses values outside itself that could change."""
    code = frame.f_code
    if _sets_globals(code):
        return True
    names = [frame.f_globals[name] for name in code.co_names if name in frame.f_globals]
    if any(map(_has_variables, names)):
        return True
    cells = (frame.f_locals[name] for name in code.co_freevars if name in frame.f_locals)
    return not all(map(_is_constant, (*names, *cells)))


@lru_cache(maxsize=512)
def _sets_globals(code: types.CodeType) -> bool:
    """Whether a function sets a global variable or a variable of the function around it.

    One that uses attributes by `object.__setattr__` and the like counts as well; `__init__` does so
    to an object that is new.
    """
    if code.co_name != "__init__" and not _UNOBSERVED.isdisjoint(code.co_names):
        return True
    return any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        or (step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars)
        for step in dis.get_instructions(code)
    )


def _has_variables(value: Any) -> bool:
    """Whether a value is a class of the user's own with attributes that a step could set."""
    kind: Any = value
    if not inspect.isclass(value) or issubclass(value, enum.Enum):
        return False
    return is_foreign(value.__module__) and bool(_count_variables(kind))


@lru_cache(maxsize=512)
def _count_variables(kind: Any) -> int:
    """Count the attributes of a class that are not code."""
    plain = (types.FunctionType, staticmethod, classmethod, property, types.MemberDescriptorType)
    return sum(
        not name.startswith("__") and not isinstance(value, plain)
        for each in kind.__mro__
        if is_foreign(each.__module__)
        for name, value in vars(each).items()
    )


def _is_constant(value: Any) -> bool:
    if isinstance(value, type):
        return _has_constants_only(value)
    return isinstance(value, _CODE) or _is_immutable(value) or isinstance(value, types.CellType)


@lru_cache(maxsize=512)
def _has_constants_only(kind: Any) -> bool:
    """Whether a class has no list, map or set that all its objects share."""
    shared: Iterable[Any] = (
        value for name, value in vars(kind).items() if not name.startswith("__")
    )
    return not any(isinstance(value, (list, dict, set, bytearray)) for value in shared)


@dataclass(frozen=True, slots=True)
class Exploration:
    """The interleavings of a trial that were performed."""

    executions: tuple[Execution, ...]
    """Those that were performed to their end; no two of them are equivalent."""
    performed: int
    """How often the trial was performed, including attempts that repeated an earlier one."""
    complete: bool
    """Whether every interleaving was covered, within its bounds."""

    @property
    def bounds(self) -> tuple[str, ...]:
        """What limits the interleavings, in words; nothing in most memories."""
        return tuple(sorted({bound for each in self.executions for bound in each.bounds}))


class _RedundantError(BaseException):
    """The interleaving is equivalent to one that was performed before."""


@dataclass(slots=True)
class _Node:
    """A moment at which some writes could continue."""

    enabled: tuple[int, ...]
    sleep: dict[int, Access]
    """Write → its next step, which need not be explored here."""
    explored: dict[int, Access] = field(default_factory=dict)
    choice: int = -1

    def next_choice(self) -> int | None:
        """Return a write that is still to be explored here."""
        candidates = (
            write
            for write in self.enabled
            if write not in self.sleep and write not in self.explored
        )
        return next(candidates, None)


class _Search:
    """The path of the search through the tree of choices."""

    def __init__(self, *, prune: bool) -> None:
        self.path: list[_Node] = []
        self.prune = prune
        self._depth = 0
        self._recorder: AccessRecorder | None = None
        self._before: Access | None = None

    def begin(self) -> None:
        self._depth, self._recorder, self._before = 0, None, None

    def observe(self, memory: Any) -> Watch:
        """Record what the steps of the next writes use of a memory."""
        self._recorder = AccessRecorder(memory)
        self._before = self._recorder.last
        return self._recorder.watch

    def finish_step(self) -> None:
        """Note what the step before this moment used."""
        if not self._depth:
            return
        access = Access(outside=True)
        if self._recorder is not None:
            if self._recorder.last is not self._before:
                access = self._recorder.last
            self._before = self._recorder.last
        node = self.path[self._depth - 1]
        node.explored[node.choice] = access

    def choose(self, enabled: Sequence[int]) -> int:
        self.finish_step()
        if self._depth == len(self.path):
            self.path.append(_Node(tuple(enabled), self._inherit()))
        node = self.path[self._depth]
        if node.choice < 0 or node.choice not in enabled:
            choice = node.next_choice()
            if choice is None:
                raise _RedundantError
            node.choice = choice
        self._depth += 1
        return node.choice

    def _inherit(self) -> dict[int, Access]:
        """Return the steps that need not be explored after the step before this moment."""
        if not self.path or not self.prune:
            return {}
        parent = self.path[-1]
        step = parent.explored[parent.choice]
        asleep = {**parent.sleep, **parent.explored}
        return {
            choice: access
            for choice, access in asleep.items()
            if find_write(choice) != find_write(parent.choice) and not access.conflicts_with(step)
        }

    def backtrack(self) -> bool:
        """Go back to the last moment with something to explore; False at the end of the search."""
        while self.path:
            choice = self.path[-1].next_choice()
            if choice is not None:
                self.path[-1].choice = choice
                return True
            self.path.pop()
        return False


def explore_interleavings(trial: Trial, *, limit: int = 10_000, prune: bool = True) -> Exploration:
    """Perform every interleaving of a trial, up to a limit; without pruning, equivalent ones also.

    Raises InapplicableError unless the writes are `async`.
    """
    if trial.manner != "async":
        raise InapplicableError(
            f"{trial.policy.name}: every interleaving can be performed only if `add` is `async`. "
            f"Use trial.sample(seed) instead"
        )
    executions: list[Execution] = []
    performed = 0
    for execution in _search(trial.perform, prune=prune):
        if performed == limit:
            return Exploration(tuple(executions), performed, complete=False)
        performed += 1
        if execution is not None:
            executions.append(execution)
    return Exploration(tuple(executions), performed, complete=True)


def explore_order(trial: Trial, order: Sequence[int], *, limit: int) -> tuple[list[Outcome], bool]:
    """Return the outcomes of writes one after the other, whatever their requests take.

    Also return whether these are all; several outcomes are possible only if a write has tasks,
    timeouts or functions on other threads.
    """
    if trial.manner != "async":
        return [trial.run_in_order(order)], True
    executions: list[Execution] = []
    for execution in _search(lambda choose, _: trial.perform_in_order(order, choose), prune=False):
        if len(executions) == limit:
            return _list_outcomes(executions), False
        if execution is not None:
            executions.append(execution)
        if execution is not None and execution.outcome.never_ended:
            return _list_outcomes(executions), False
    return _list_outcomes(executions), True


def _list_outcomes(executions: Sequence[Execution]) -> list[Outcome]:
    """List outcomes; a task that outlives a write goes on after it, where that is possible."""
    calm = [execution for execution in executions if not execution.intruded]
    return [execution.outcome for execution in calm or executions]


def _search(
    perform: Callable[[Choose, Callable[[Any], Watch] | None], T], *, prune: bool
) -> Iterator[T | None]:
    """Perform interleavings one by one; None for an attempt that was equivalent to an earlier."""
    search = _Search(prune=prune)
    going = True
    while going:
        search.begin()
        try:
            execution = perform(search.choose, search.observe if prune else None)
        except _RedundantError:
            yield None
        else:
            search.finish_step()
            yield execution
        going = search.backtrack()
