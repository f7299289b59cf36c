"""What commands share at the terminal: progress, asking before spending, and damaged runs."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.markup import escape
from rich.progress import BarColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.text import Text

from routeprism.cli._console import SafeConsole, fold_texts, print_json, print_line
from routeprism.errors import RunError, SpecError, UnansweredError
from routeprism.redaction import hide_credentials
from routeprism.runs import Shortfall
from routeprism.settings import options_of

if TYPE_CHECKING:
    from routeprism.answers import Cost, Progress

Result = TypeVar("Result")
Pools = Callable[[int, int], None]
Answers = Callable[[str, "Progress"], None]
Steps = Callable[[str, int, int], None]
_UNEXPECTED = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""Errors of values that have a different shape. Commands that only read run no code of the user."""


@contextmanager
def reading(*runs: Path | None) -> Iterator[None]:
    """Report in one line that a run cannot be read, whichever of its values is wrong."""
    try:
        yield
    except _UNEXPECTED as error:
        names = " or ".join(str(run) for run in runs if run is not None)
        reason = " ".join(str(error).split())
        raise RunError(
            f"{names} cannot be read: it is damaged, or was not written by this version of "
            f"RoutePrism ({type(error).__name__}: {reason:.200}). Nothing in it was changed"
        ) from error


def execute(
    request: Any,
    price: Callable[[Any], Mapping[str, Cost]],
    perform: Callable[[Any, Pools | None, Answers | None, Steps | None], Result],
) -> Result | None:
    """Ask before spending, do what is requested, and write its report; None for a dry run."""
    settings = request.settings
    if not may_proceed(settings, request.may_spend(), lambda: price(request)):
        return None
    further = int(request.directory is not None)
    with progress(settings.quiet or settings.json, further) as meter:
        result = perform(request, meter.pools, meter.answers, meter.steps)
        if request.directory is not None:
            from routeprism.report import write_final_report

            meter.begin_last("report")
            write_final_report(request.directory)
        return result


def may_proceed(settings: Any, spends: bool, price: Callable[[], Mapping[str, Cost]]) -> bool:
    """Print the costs of a dry run, or ask before spending; return whether to continue."""
    if settings.dry_run:
        show_costs(price(), settings.json)
        return False
    if spends and not settings.yes:
        confirm(price())
    return True


def name_flags(note: str, settings: Any) -> str:
    """Name the options of the command line instead of the arguments of Python: `arrivals=`."""
    for item in options_of(type(settings)):
        if item.flag:
            note = re.sub(rf"(?<!\S){item.name}=", f"{item.flag} ", note)
    return note


def shorten_notes(notes: Sequence[str], most: int = 8, width: int | None = None) -> Sequence[str]:
    """Return the first notes and how many more there are; with a `width`, each on one line."""
    if width is not None:
        notes = [line for note in notes for line in fold_texts([note], width, 1)]
    if len(notes) <= most:
        return notes
    return (*notes[: most - 1], f"… and {len(notes) - most + 1} more; --json gives them all")


def show_costs(costs: Mapping[str, Cost], as_json: bool) -> None:
    """Print what a dry run found."""
    if as_json:
        print_json({name: asdict(plan) for name, plan in costs.items()})
        return
    for name, plan in costs.items():
        print_line(f"{name}: {plan}")
    if not costs:
        print_line("No model and no memory system would be asked: 0 calls")


def end_if_incomplete(
    shortfall: Shortfall, directory: Path | None, *, merged: bool = False
) -> None:
    """Report what a finished run lacks, and exit with code 3; return if nothing is missing.

    Routes are built by shards, so a `merged` run gets missing ones from them.
    """
    if not shortfall:
        return
    resume_hint = (
        "" if directory is None else f" Run the same command with --run {directory} to resume."
    )
    if merged and shortfall.routes:
        resume_hint = " Run the commands of the shards again, and merge them into a new run."
    message = f"routeprism: the results are incomplete: {shortfall}.{resume_hint}"
    print_line(hide_credentials(message), file=sys.stderr)
    sys.exit(UnansweredError.exit_code)


def confirm(costs: Mapping[str, Cost]) -> None:
    """Ask before spending; without a terminal, refuse."""
    if not any(plan.calls is None or plan.calls for plan in costs.values()):
        return
    summary = "; ".join(f"{name}: {plan}" for name, plan in costs.items())
    if not sys.stdin.isatty():
        raise SpecError(
            f"this would ask a model that may cost money ({summary}); pass --yes to continue"
        )
    print_line(summary, file=sys.stderr)
    if input("Continue? [y/N] ").strip().lower() not in ("y", "yes"):
        raise SpecError("stopped before the first request; nothing was spent")


class ProgressMeter:
    """Shows how far a command is: all of its steps, and the pools or answers of the current one.

    Each step counts the same. Within a step, pools and answers move the bar of the whole.
    """

    pools: Pools | None = None
    answers: Answers | None = None
    steps: Steps | None = None

    def begin_last(self, name: str) -> None:
        """Show that the last step begins."""


class _BarMeter(ProgressMeter):
    def __init__(self, bar: Bar, further: int) -> None:
        self._bar, self._further = bar, further
        self._step, self._number = 0, 1
        self._whole = bar.add_task("memories", total=1.0, count="", said="", has_steps=True)
        self._tasks: dict[str, TaskID] = {}
        self.pools = self._show_pools
        self.answers = self._show_answers
        self.steps = self._begin

    def begin_last(self, name: str) -> None:
        self._begin(name, self._number, self._number)

    def _begin(self, name: str, step: int, number: int) -> None:
        self._step, self._number = step, number
        total = number + self._further
        self._bar.update(
            self._whole, description=name, count=f"step {min(step + 1, total)} of {total}"
        )
        self._advance(0.0)

    def _advance(self, share: float) -> None:
        whole = (self._step + share) / (self._number + self._further)
        self._bar.update(self._whole, completed=min(whole, 1.0))

    def _show_pools(self, done: int, total: int) -> None:
        if "pools" not in self._tasks:
            self._tasks["pools"] = self._bar.add_task("pools", total=total, count="", said="")
        task = self._tasks["pools"]
        speed = self._bar.tasks[task].speed
        label = "" if speed is None else f"{speed:.1f}/s"
        self._bar.update(task, completed=done, total=total, count=f"{done}/{total}", said=label)
        self._advance(done / max(total, 1))

    def _show_answers(self, model: str, now: Progress) -> None:
        task = self._tasks.get(model)
        if task is None:
            task = self._bar.add_task(escape(model), total=None, count="", said="")
            self._tasks[model] = task
        elif now.done < self._bar.tasks[task].completed:  # the next experiment asks it
            self._bar.reset(task, total=now.total, count="", said="")
        label = f"{now.rate:.0f}/s" + (f", {now.cost:.2f} so far" if now.cost else "")
        label += f", {now.failed} failed" if now.failed else ""
        count = f"{now.done}/{now.total}"
        self._bar.update(task, completed=now.done, total=now.total, count=count, said=label)
        self._advance(now.done / max(now.total, 1))


class _TimeLeftColumn(TimeRemainingColumn):
    """Shows the time left of pools and answers; that of all steps is not known."""

    def render(self, task: Task) -> Text:
        return Text() if task.fields.get("has_steps") else super().render(task)


@contextmanager
def progress(silent: bool, further: int = 0) -> Iterator[ProgressMeter]:
    """Show all steps, and pools or answers, with rate, cost and time left, on a terminal.

    `further` is the number of steps that follow those of the study.
    """
    console = SafeConsole(stderr=True)
    if silent or not console.is_terminal:
        yield ProgressMeter()
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TextColumn("{task.fields[said]}"),
        _TimeLeftColumn(),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        yield _BarMeter(bar, further)


class LateProgress:
    """Shows progress once there is some, until it is closed; then results can be printed."""

    def __init__(self, silent: bool) -> None:
        self._silent = silent
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._meter: ProgressMeter | None = None

    def show_answers(self, name: str, now: Progress) -> None:
        """Show how far a command is."""
        with self._lock:
            if self._meter is None:
                self._meter = self._stack.enter_context(progress(self._silent))
            if self._meter.answers is not None:
                self._meter.answers(name, now)

    def close(self) -> None:
        """Remove what is shown; more progress shows it again."""
        with self._lock:
            self._stack.close()
            self._meter = None
