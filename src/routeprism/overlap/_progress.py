"""Whether a task that returns to the same await has changed anything that can be places."""

from __future__ import annotations

import asyncio
import dis
import gc
import types
from collections import deque
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
_MOST_PARTS = 20_000
"""Objects beyond which a memory is not compared; the task then counts as changed."""


class _TooLargeError(Exception):
    """There are too many objects to compare."""


def list_frames(task: asyncio.Task[Any]) -> list[tuple[Any, types.FrameType]]:
    """List the coroutines in which a task waits, outermost first, with their frames."""
    frames = []
    inner: Any = task.get_coro()
    while inner is not None:
        frame = getattr(inner, "cr_frame", None) or getattr(inner, "gi_frame", None)
        if frame is not None:
            frames.append((inner, frame))
        inner = getattr(inner, "cr_await", None) or getattr(inner, "gi_yieldfrom", None)
    return frames


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
    places: dict[int, int] = {}
    parts: list[Any] = []
    try:
        for coroutine, frame in list_frames(task):
            shared = (id(frame.f_globals), id(frame.f_builtins))
            # The frame's values include loops that have no name, such as that of a `for`.
            values = [*gc.get_referents(coroutine), *gc.get_referents(frame)]
            values = [value for value in values if id(value) not in shared]
            parts.append((frame.f_lasti, *(_describe(value, places) for value in values)))
    except _TooLargeError:
        return None
    return hash(tuple(parts))


def _describe(value: Any, places: dict[int, int]) -> object:
    kind = type(value)
    if isinstance(value, _PLAIN):
        return kind, repr(value)
    if isinstance(value, asyncio.Future):  # each sleep has its own
        return isinstance(value, asyncio.Task) and value.done()
    if isinstance(value, _FIXED):
        return id(value) if not isinstance(value, asyncio.Handle) else "handle"
    if id(value) in places:
        return "again", places[id(value)]
    places[id(value)] = len(places)
    if len(places) > _MOST_PARTS:
        raise _TooLargeError
    return (kind, *(_describe(part, places) for part in _list_parts(value)))


def _list_parts(value: Any) -> list[Any]:
    """List what an object consists of; its address alone if that is not known."""
    if isinstance(value, dict):
        return [part for pair in value.items() for part in pair]
    if isinstance(value, (list, tuple, deque, set, frozenset)):
        return list(value)
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, (types.CoroutineType, types.GeneratorType, types.FrameType)):
        return []  # those in which the task waits are compared one by one
    if isinstance(value, types.CellType):
        return gc.get_referents(value)
    if type(value).__module__ in ("builtins", "itertools") and hasattr(value, "__next__"):
        return list(value.__reduce__()[1:])
    parts: list[Any] = [attributes] if (attributes := _find_attributes(value)) else []
    with suppress(TypeError, ValueError, BufferError):
        parts.append(memoryview(value).tobytes())
    return parts or [id(value)]


def _find_attributes(value: Any) -> dict[str, Any]:
    """Find the attributes of an object without calling its own code."""
    attributes: dict[str, Any] = {}
    for kind in type(value).__mro__:
        for name, item in vars(kind).items():
            if isinstance(item, types.MemberDescriptorType):
                with suppress(AttributeError):
                    attributes[name] = item.__get__(value)
    with suppress(AttributeError):
        attributes.update(object.__getattribute__(value, "__dict__"))
    return attributes
