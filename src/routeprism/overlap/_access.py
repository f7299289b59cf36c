"""What a step of a write reads and changes, so that independent steps need only one order.

Two steps are independent if exchanging them cannot change anything. A step is observed by the
attributes of the memory that it uses. A step that uses an attribute with a mutable value is taken
to change it, and so is every later step of the same write, which may still hold the value. A step
that reaches anything outside the memory (files, global values, clocks) depends on every step.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from routeprism.overlap._loop import is_machinery

__all__ = ["Access", "AccessRecorder"]

_IMMUTABLE = (str, bytes, int, float, complex, bool, type(None), range, type(Ellipsis))
_CODE = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.ModuleType)
_SAFE_OWNERS = (str, bytes, int, float, list, tuple, dict, set, frozenset, bytearray)
_SAFE_MODULES = {"builtins", "_asyncio", "_contextvars", "_heapq", "_bisect", "math", "_operator"}
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
        self._held: dict[int, set[str]] = {}
        """Number of a write → attributes with mutable values that it has used."""
        self.last = Access()
        shared = all(map(_has_constants_only, type(memory).__mro__))
        self._blind = not (shared and _observe_attributes(memory, self))

    def use(self, name: str, value: Any) -> None:
        """Record that the current step reads an attribute."""
        if self._current is None or isinstance(value, _CODE):
            return
        (self._current.reads if _is_immutable(value) else self._current.changes).add(name)

    def change(self, name: str) -> None:
        """Record that the current step sets or deletes an attribute."""
        if self._current is not None:
            self._current.changes.add(name)

    def reach_outside(self) -> None:
        """Record that the current step may use something outside the memory."""
        if self._current is not None:
            self._current.outside = True

    def watch(self, number: int, run: Callable[[], None]) -> None:
        """Run one step of a write and record what it uses."""
        holders = self._held.setdefault(number, set())
        self._current = self.last = Access(changes=set(holders), outside=self._blind)
        before = sys.getprofile()
        sys.setprofile(self._profile)
        try:
            run()
        finally:
            sys.setprofile(before)
            access, self._current = self._current, None
            holders |= access.changes

    def _profile(self, frame: types.FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            if not is_machinery(frame.f_code) and not _is_safe_call(argument):
                self.reach_outside()
        elif event == "call" and not is_machinery(frame.f_code) and _uses_globals(frame):
            self.reach_outside()


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
        recorder.change(name)
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
        memory.__class__ = type(kind.__name__, (kind,), methods)
    except TypeError:
        return False
    return True


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
    names = (frame.f_globals[name] for name in code.co_names if name in frame.f_globals)
    cells = (frame.f_locals[name] for name in code.co_freevars if name in frame.f_locals)
    return not all(map(_is_constant, (*names, *cells)))


@lru_cache(maxsize=512)
def _sets_globals(code: types.CodeType) -> bool:
    """Whether a function sets a global variable or a variable of the function around it."""
    return any(
        step.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")
        or (step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars)
        for step in dis.get_instructions(code)
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
