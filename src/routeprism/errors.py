"""What can go wrong: one tree, one root.

RoutePrismError            everything this package raises on purpose; the command line exits with 2
├── InputError             a file, a line or a field of the user's data cannot be used
├── SpecError              a policy, interface, schedule or benchmark was named or set up wrongly
├── ContractError          a policy broke the contract that makes an audit meaningful
│   └── PeekError          … by wanting to see, or reacting to, what construction must not see
├── RouteError             a memory system outside failed while one route was built or asked
├── ModelError             a model could not be asked, or gave no answer after all retries
│   └── MissingExtraError       … because an optional dependency is not installed
├── DownloadError          a benchmark file could not be fetched
└── RunError               a run directory cannot be used as asked
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "ContractError",
    "DownloadError",
    "InputError",
    "MissingExtraError",
    "ModelError",
    "PeekError",
    "RouteError",
    "RoutePrismError",
    "RunError",
    "SpecError",
    "nearest",
]


class RoutePrismError(Exception):
    """The root: a message that a person can act on."""


class InputError(RoutePrismError):
    """User data that cannot be used; says the file, the line and the field where they are known."""

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = None if file is None else str(file)
        self.line = line
        self.field = field
        place = ", ".join(
            part
            for part in (
                self.file,
                None if line is None else f"line {line}",
                None if field is None else f"field '{field}'",
            )
            if part
        )
        super().__init__(f"{place}: {problem}" if place else problem)

    def __reduce__(self) -> tuple[object, ...]:
        return _input_error, (self.problem, self.file, self.line, self.field)


def _input_error(problem: str, file: str | None, line: int | None, field: str | None) -> InputError:
    return InputError(problem, file=file, line=line, field=field)


class SpecError(RoutePrismError):
    """A name or parameter that means nothing here; suggests the nearest one that does."""


class ContractError(RoutePrismError):
    """A policy or memory that does not keep the contract of `routeprism.policies`."""


class PeekError(ContractError):
    """A memory that wants, or changes with, what it must not see."""


class RouteError(RoutePrismError):
    """A memory system that failed on one route; the others go on, and this one is tried again."""


class ModelError(RoutePrismError):
    """A model that cannot be asked, or gave no answer. Its message never holds a key."""

    def __init__(self, message: str, *, attempts: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.attempts = attempts
        """One line for each attempt that failed, for the ledger."""


class MissingExtraError(ModelError):
    """An optional dependency that is not there; the message says which extra brings it."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra: pip install 'routeprism[{extra}]'")
        self.what, self.extra = what, extra

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, (self.what, self.extra)


class DownloadError(RoutePrismError):
    """A benchmark file that could not be fetched, or is not the one that was expected."""


class RunError(RoutePrismError):
    """A run directory that cannot be created, resumed or read."""


def nearest(name: str, known: Iterable[str]) -> str:
    """Say which known name is meant, or list them, as far as a person would read on."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"Did you mean '{close[0]}'?"
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"Known: {', '.join(names[:_MOST_NAMES])}{more}." if names else ""


_MOST_NAMES = 40
