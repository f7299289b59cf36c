"""Exceptions in the user's own code, reported where they happened and in the owner's own frames."""

from __future__ import annotations

import contextlib
import importlib
import traceback
from pathlib import Path
from types import FrameType

from routeprism.errors import OwnCodeError

__all__ = ["OWN_ERRORS", "describe_error", "is_interruption"]

OWN_ERRORS = (Exception, SystemExit)
"""Errors that a user's own code may raise; Ctrl-C is not one of them."""

_LOOPS = tuple(Path(contextlib.__file__).parent / name for name in ("asyncio", "concurrent"))
"""The library's own frames around an `async` method."""
_PACKAGE = Path(__file__).parent
_RECORDS = "routeprism.records"
"""The module that defines questions and records; importing it here would be circular."""
_MOST_FRAMES = 12
"""The number of frames shown; of a longer trace, the outermost and the innermost."""


def is_interruption(error: BaseException) -> bool:
    """Return whether this is Ctrl-C, a cancelled task or a closed generator, and no error."""
    from asyncio import CancelledError  # a late import: every worker imports this module

    return isinstance(error, (KeyboardInterrupt, GeneratorExit, CancelledError))


def describe_error(
    error: BaseException, policy: str, *, user: str = "", route: str = ""
) -> OwnCodeError:
    """Describe an error: the method, the record or question, and the frames of the user's code."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    foreign = [at for at, frame in enumerate(frames) if not _is_ours(frame)]
    place = [policy, f"user '{user}'" if user else "", f"order {route}" if route else ""]
    method = frames[foreign[0]].f_code.co_name if foreign else ""
    if method and not method.startswith("<"):
        place.append(f"in {method}()")
    place.append(_occasion(frames))
    summary = traceback.extract_tb(error.__traceback__)
    lines = [line for at in foreign for line in _lines(summary[at])]
    return OwnCodeError(
        _describe_message(error), ", ".join(filter(None, place)), tuple(_shorten_lines(lines))
    )


def _is_ours(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    machinery = file in (contextlib.__file__, importlib.__file__) or file.startswith("<frozen ")
    return machinery or not {_PACKAGE, *_LOOPS}.isdisjoint(Path(file).parents)


def _occasion(frames: list[FrameType]) -> str:
    """Name the record that was being added, or the question that was being asked."""
    for frame in frames:
        variables = frame.f_locals
        candidates = [
            variables.get("question"),
            variables.get("record"),
            *reversed(list(variables.values())),
        ]
        for value in candidates:
            kind = type(value)
            if kind.__module__.startswith(_RECORDS) and kind.__name__ in ("Question", "Record"):
                return f"{kind.__name__.lower()} '{value.id}'"
    return ""


def _describe_message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"SystemExit({error.code!r}), which would have ended RoutePrism"
    text = str(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _lines(frame: traceback.FrameSummary) -> list[str]:
    where = f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}'
    return [f"{where}\n    {frame.line}" if frame.line else where]


def _shorten_lines(lines: list[str]) -> list[str]:
    if len(lines) <= _MOST_FRAMES:
        return lines
    half = _MOST_FRAMES // 2
    left_out = f"  … {len(lines) - 2 * half} more frames …"
    return [*lines[:half], left_out, *lines[-half:]]
