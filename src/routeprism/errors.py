"""What can go wrong: one tree, one root.

RoutePrismError            everything this package raises on purpose; the command line exits with 2,
                           or with 3 if something outside did not answer
├── InputError             a file, a line or a field of the user's data cannot be used
├── SpecError              a policy, interface, schedule or benchmark was named or set up wrongly
├── ContractError          a policy broke the contract that makes an audit meaningful
│   └── PeekError          … by requesting, or reacting to, what construction must not see
├── OwnCodeError           code of the user's own, such as a memory class, raised an exception
├── RouteError             a memory system outside failed while one route was built or asked (3)
│   └── InapplicableError  … because the memory cannot perform the procedure of the route
├── ModelError             a model could not be asked, or gave no answer after all retries
│   ├── MissingExtraError       … because an optional dependency is not installed
│   └── UnansweredError         … so that a run cannot continue; its answers are kept (3)
├── LimitError             a command reached its --max-calls or --max-cost; what it has is kept (3)
├── DownloadError          a benchmark file could not be fetched
└── RunError               a run directory cannot be used as asked
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

__all__ = [
    "ContractError",
    "DownloadError",
    "InapplicableError",
    "InputError",
    "LimitError",
    "MissingExtraError",
    "ModelError",
    "OwnCodeError",
    "PeekError",
    "RouteError",
    "RoutePrismError",
    "RunError",
    "SpecError",
    "UnansweredError",
    "nearest",
]


AnyError = TypeVar("AnyError", bound="RoutePrismError")


@dataclass(frozen=True, slots=True)
class Stranger:
    """Something in a memory that it never received; it may be a record of another user."""

    record: str = ""
    """The id that the memory names; empty if it names none."""
    text: str = ""
    """The text that it shows."""
    question: str = ""
    """The text of the question that is shown it; empty if the memory only lists it."""


class RoutePrismError(Exception):
    """The root: a message that a person can act on."""

    exit_code: ClassVar[int] = 2
    """The exit code of the command line."""
    stranger: Stranger | None = None
    """What the memory contains without having received it, if that is the problem."""

    def naming(self: AnyError, record: str = "", text: str = "", *, question: str = "") -> AnyError:
        """Return the same error, about something that the memory never received."""
        self.stranger = Stranger(record, text, question)
        return self


class InputError(RoutePrismError):
    """User data that cannot be used; names the file, the line and the field if known."""

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

    def locate(
        self, file: Path, line: int | None = None, *, before: str = "", field: str | None = None
    ) -> InputError:
        """Return the same problem with its place, words before it, or a different field."""
        problem = f"{before}{self.problem}"
        return InputError(problem, file=file, line=line, field=field or self.field)

    def __reduce__(self) -> tuple[object, ...]:
        return _input_error, (self.problem, self.file, self.line, self.field)


def _input_error(problem: str, file: str | None, line: int | None, field: str | None) -> InputError:
    return InputError(problem, file=file, line=line, field=field)


class SpecError(RoutePrismError):
    """A name or parameter that means nothing here; suggests the nearest one that does."""


class ContractError(RoutePrismError):
    """A policy or memory that does not keep the contract of `routeprism.policies`."""


class PeekError(ContractError):
    """A memory that requests, or changes with, something that it must not see."""


class OwnCodeError(RoutePrismError):
    """An exception in the user's own code: what it said, where it happened, and the user's frames.

    It is made of text alone, so that it travels between processes as it is.
    """

    def __init__(self, raised: str, place: str = "", frames: tuple[str, ...] = ()) -> None:
        self.raised = raised
        """The exception's type and message."""
        self.place = place
        """Policy, user, order, and the current record or question, as far as they are known."""
        self.frames = frames
        """The frames of the traceback that are not RoutePrism's, outermost first."""
        message = f"{place} raised {raised}" if place else raised
        super().__init__("\n".join((message, *frames)))

    def __reduce__(self) -> tuple[object, ...]:
        return OwnCodeError, (self.raised, self.place, self.frames)


class RouteError(RoutePrismError):
    """A memory system failed on one route; the others continue, and this one is repeated."""

    exit_code: ClassVar[int] = 3


class InapplicableError(RouteError):
    """A memory that does not offer what a procedure needs, such as `add_many` or `reopen`."""


class ModelError(RoutePrismError):
    """A model that cannot be asked, or gave no answer. Its message never contains a key."""

    def __init__(self, message: str, *, attempts: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.attempts = attempts
        """One line for each attempt that failed, for the ledger."""


class MissingExtraError(ModelError):
    """An optional dependency that is not installed; the message names the extra."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: pip install 'routeprism[{extra}]'")
        self.what, self.extra = feature, extra

    def __reduce__(self) -> tuple[object, ...]:
        return MissingExtraError, (self.what, self.extra)


class UnansweredError(ModelError):
    """Answers that a run cannot do without and did not get; a repeated command asks for them."""

    exit_code: ClassVar[int] = 3


class LimitError(RoutePrismError):
    """A command that reached its limit. Its answers are stored, and the same command resumes."""

    exit_code: ClassVar[int] = 3


class DownloadError(RoutePrismError):
    """A benchmark file that could not be fetched, or is not the one that was expected."""


class RunError(RoutePrismError):
    """A run directory that cannot be created, resumed or read."""


def closest(name: str, names: Iterable[str]) -> str:
    """Suggest the nearest known name; empty if none is near."""
    close = difflib.get_close_matches(name, sorted(names), n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else ""


def nearest(name: str, candidates: Iterable[str]) -> str:
    """Suggest the nearest known name, or list the known names up to a readable number."""
    names = sorted(candidates)
    if suggestion := closest(name, names):
        return suggestion
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"Known: {', '.join(names[:_MOST_NAMES])}{more}." if names else ""


_MOST_NAMES = 40
