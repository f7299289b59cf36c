"""Whether a task that returns to the same await has changed anything that can be compared."""

from __future__ import annotations

import asyncio
import dis
import gc
import sqlite3
import sys
import types
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any

from routeprism.records import Record

_PLAIN = (str, bytes, int, float, complex, type(None))
_FIXED = (
    *(types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.CodeType, type),
    *(asyncio.AbstractEventLoop, asyncio.Handle, Record),
)
"""What is the same as long as it is the same object, or differs without meaning."""
_RESUMABLE = (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)
_VARIABLE = (*_PLAIN, dict, list, tuple, set, frozenset, deque, sqlite3.Connection)
"""What is compared of the variables of classes and modules, beside objects of other libraries."""
_MOST_PARTS = 20_000
"""Objects beyond which a memory is not compared; the task then counts as changed."""
_MOST_VARIABLE_PARTS = 2_000
"""Objects beyond which a variable of a module counts as unchanged."""


class _TooLargeError(Exception):
    """There are too many objects to compare."""


def list_frames(task: asyncio.Task[Any]) -> list[tuple[Any, types.FrameType]]:
    """List the coroutines in which a task waits, outermost first, with their frames."""
    frames = []
    inner: Any = task.get_coro()
    while inner is not None:
        frame = _find_part(inner, "cr_frame", "gi_frame", "ag_frame")
        if frame is not None:
            frames.append((inner, frame))
        elif type(inner).__module__ == "builtins":
            # Python wraps generators and coroutines that are called by `__anext__`, `__await__`.
            parts = gc.get_referents(inner)
            inner = next((part for part in parts if isinstance(part, _RESUMABLE)), None)
            continue
        inner = _find_part(inner, "cr_await", "gi_yieldfrom", "ag_await")
    return frames


def _find_part(coroutine: Any, *names: str) -> Any:
    parts = (getattr(coroutine, name, None) for name in names)
    return next((part for part in parts if part is not None), None)


@lru_cache(maxsize=1024)
def is_in_loop(code: types.CodeType, offset: int) -> bool:
    """Whether an instruction can be reached again from itself."""
    return any(
        step.argval <= offset <= step.offset
        for step in dis.get_instructions(code)
        if (step.opcode in dis.hasjrel or step.opcode in dis.hasjabs)
        # The instructions of one await are a small loop of their own.
        and step.opname != "JUMP_BACKWARD_NO_INTERRUPT"
    )


def digest_progress(task: asyncio.Task[Any]) -> int | None:
    """Digest everything that the coroutines of a task can reach; None if that is too much.

    Two digests are equal if nothing has changed in between.
    """
    values: list[Any] = []
    modules: dict[int, dict[str, Any]] = {}
    for coroutine, frame in list_frames(task):
        modules[id(frame.f_globals)] = frame.f_globals
        shared = (id(frame.f_globals), id(frame.f_builtins))
        # The frame's values include loops that have no name, such as that of a `for`.
        referents = [*gc.get_referents(coroutine), *gc.get_referents(frame)]
        values += [frame.f_lasti, *(value for value in referents if id(value) not in shared)]
    variables = [digest for module in modules.values() for digest in _digest_variables(module)]
    try:
        return hash((*variables, *_describe(values, _MOST_PARTS)))
    except _TooLargeError:
        return None


def _digest_variables(module: dict[str, Any]) -> Iterator[int]:
    """Digest each variable of a module, which a task may change instead of its memory."""
    if str(module.get("__name__")).partition(".")[0] in sys.stdlib_module_names:
        return
    for name, value in list(module.items()):
        kind = str(type(value).__module__).partition(".")[0]
        if not name.startswith("__") and (
            isinstance(value, _VARIABLE) or kind not in sys.stdlib_module_names
        ):
            with suppress(_TooLargeError):
                yield hash((name, *_describe([value], _MOST_VARIABLE_PARTS)))


def _describe(values: list[Any], most: int) -> Iterator[object]:
    """Describe values, and what they consist of, in an order that does not depend on places."""
    numbers: dict[int, int] = {}
    objects: list[Any] = []  # kept, because an address is used again after its object
    remaining = values[::-1]
    while remaining:
        value = remaining.pop()
        if isinstance(value, _PLAIN):
            yield type(value), repr(value)
        elif isinstance(value, asyncio.Future):  # each sleep has its own
            yield isinstance(value, asyncio.Task) and value.done()
        elif isinstance(value, _FIXED):
            yield id(value) if not isinstance(value, asyncio.Handle) else "handle"
        elif id(value) in numbers:
            yield "again", numbers[id(value)]
        elif len(objects) == most:
            raise _TooLargeError
        else:
            numbers[id(value)] = len(objects)
            objects.append(value)
            parts = _list_parts(value)
            yield type(value), len(parts)
            remaining += parts[::-1]


def _list_parts(value: Any) -> list[Any]:
    """List what an object consists of; its address alone if that is not known."""
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, deque)):
        return list(value)
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=hash)
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    module = type(value).__module__
    is_awaited = module in ("builtins", "_asyncio") and hasattr(value, "send")
    if is_awaited or isinstance(value, (*_RESUMABLE, types.FrameType)):
        return []  # those in which the task waits are compared one by one
    if isinstance(value, types.CellType):
        return gc.get_referents(value)
    if module in ("builtins", "itertools") and hasattr(value, "__next__"):
        with suppress(TypeError):
            return list(value.__reduce__()[1:])
    parts: list[Any] = [attributes] if (attributes := _find_attributes(value)) else []
    with suppress(TypeError, ValueError, BufferError):
        parts.append(memoryview(value).tobytes())
    return parts or [id(value)]


def _find_attributes(value: Any) -> dict[str, Any]:
    """Find the attributes of an object without calling its own code."""
    attributes: dict[str, Any] = {}
    for kind in reversed(type(value).__mro__):
        for name, item in vars(kind).items():
            if isinstance(item, types.MemberDescriptorType):
                with suppress(AttributeError):
                    attributes[name] = item.__get__(value)
            elif isinstance(item, _VARIABLE) and not name.startswith("__"):
                attributes[name] = item  # a class has variables as well
    with suppress(AttributeError):
        attributes.update(object.__getattribute__(value, "__dict__"))
    if isinstance(value, sqlite3.Connection):
        with suppress(sqlite3.Error):  # it is closed
            attributes["total_changes"] = value.total_changes
    return attributes
