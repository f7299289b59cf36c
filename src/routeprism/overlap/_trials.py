"""Trials: some writes to one memory at once, and what came of them."""

from __future__ import annotations

import inspect
import random
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from routeprism.errors import InapplicableError, RouteError
from routeprism.frames import OWN_ERRORS
from routeprism.overlap._loop import Choose, ControlledLoop, Step, UncontrolledError, Watch
from routeprism.overlap._threads import ThreadScheduler
from routeprism.policies import JsonValue, Policy, find_class
from routeprism.policies.own import OwnMemory, close_memory, find_own_memory, settle_memory
from routeprism.records import Record

_SWITCH_INTERVAL = 1e-6
"""Seconds after which Python lets another thread run while writes overlap on threads."""
_JOIN_SECONDS = 60.0
"""Seconds after which a write on a thread is taken to wait forever."""

_ADDRESS = re.compile("0x[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The content of a memory after some writes."""

    retained: tuple[str, ...]
    """The ids that it retains, sorted; an id that is retained twice occurs twice."""
    state: JsonValue = None
    """Its internal state, if it gives one."""
    errors: tuple[str, ...] = ()
    """The errors that the writes raised, sorted."""


@dataclass(frozen=True, slots=True)
class Execution:
    """One trial that was performed."""

    outcome: Outcome
    steps: tuple[Step, ...] = ()
    """The interleaving, if a controlled loop chose it."""
    choices: tuple[int, ...] = ()
    """The write that continued at each step, from which the interleaving can be repeated."""
    controlled: bool = True
    """Whether RoutePrism chose the interleaving."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Writes that overlap, on a memory to which other records were added before."""

    policy: OwnMemory
    prior: tuple[Record, ...]
    """Added one by one before the writes."""
    writes: tuple[Record, ...]
    """Added at once."""
    controlled: bool = True
    """Whether RoutePrism chooses the interleaving, where it can."""

    @property
    def manner(self) -> str:
        """How writes overlap: `async`, `threads` or `requests`."""
        return find_overlap(self.policy)

    def sample(self, seed: int) -> Execution:
        """Perform the trial once; the seed decides an interleaving that is controlled."""
        return self.perform(_make_chooser(seed))

    def replay(self, choices: Sequence[int]) -> Execution:
        """Perform the trial with the choices of an earlier execution."""
        remaining = iter(choices)

        def choose(enabled: Sequence[int]) -> int:
            choice = next(remaining, enabled[0])
            return choice if choice in enabled else enabled[0]

        return self.perform(choose)

    def perform(self, choose: Choose, observe: Callable[[Any], Watch] | None = None) -> Execution:
        """Perform the trial with a function that chooses.

        Given the memory, `observe` returns the function that runs each step of an `async` write.
        """
        choices: list[int] = []

        def note_choice(enabled: Sequence[int]) -> int:
            choices.append(choose(enabled))
            return choices[-1]

        scheduler = ThreadScheduler() if self.manner == "threads" and self.controlled else None
        loop = ControlledLoop() if self.manner == "async" else None
        with _open_and_close(self.policy, loop, scheduler) as memory:
            for record in self.prior:
                memory.add(record)
            watch = None if observe is None or loop is None else observe(memory.inner)
            raised = _add_at_once(memory, self.writes, note_choice, scheduler, watch)
            settle_memory(memory)
            outcome = _read_outcome(memory, raised)
            conductor = loop or scheduler
            if conductor is None:
                return Execution(outcome, controlled=False)
            controlled = scheduler is None or scheduler.controlled
            return Execution(outcome, tuple(conductor.steps), tuple(choices), controlled)

    def run_in_order(self, order: Sequence[int]) -> Outcome:
        """Return the outcome of the same writes one after the other."""
        return run_serially(self.policy, self.prior, [self.writes[at] for at in order])


_STAYING = (0.0, 0.5, 0.9)
"""Probabilities that the write that ran last continues, one of which each seed draws."""


def _make_chooser(seed: int, staying: Sequence[float] = _STAYING) -> Choose:
    """Choose writes by a seed.

    Some races show only if a write takes many steps before another continues, so some seeds switch
    rarely.
    """
    chooser = random.Random(seed)  # noqa: S311
    probability = chooser.choice(staying)
    last = -1

    def choose(enabled: Sequence[int]) -> int:
        nonlocal last
        if last not in enabled or chooser.random() >= probability:
            last = chooser.choice(list(enabled))
        return last

    return choose


def find_overlap(policy: Policy) -> str:
    """Name how a memory can take overlapping writes: `async`, `threads` or `requests`.

    Raises InapplicableError for a memory that can take only one write at a time.
    """
    own = find_own_memory(policy)
    if own is not None and own.outside:
        return "requests"
    if own is not None:
        add = getattr(own.kind, "add", None)
        concurrent = getattr(own.kind, "concurrent", None)
        if add is None or isinstance(concurrent, property):
            memory = own.factory()
            add, concurrent = getattr(memory, "add", None), getattr(memory, "concurrent", None)
            close_memory(memory)
        if inspect.iscoroutinefunction(add):
            return "async"
        if concurrent is True:
            return "threads"
    raise InapplicableError(
        f"{policy.name} cannot take overlapping writes: it needs `async def add(record)`, or "
        f"`concurrent = True` if add(record) may be called from several threads"
    )


def overlap_writes(
    memory: Any, records: Sequence[Record], seed: int, scheduler: ThreadScheduler | None = None
) -> None:
    """Add records to an open memory at once; raise what the first failing write raised.

    Writes on threads take turns if there is a scheduler.
    """
    is_looped = isinstance(getattr(memory, "loop", None), ControlledLoop)
    choose = _make_chooser(seed, _STAYING[:1] if is_looped else _STAYING)
    raised = _add_at_once(memory, records, choose, scheduler)
    settle_memory(memory)
    for record, error in zip(records, raised, strict=True):
        if error is not None:
            raise RouteError(
                f"adding '{record.id}' at the same time as other records failed: "
                f"{type(error).__name__}: {error}"
            )


def run_serially(policy: OwnMemory, prior: Sequence[Record], writes: Sequence[Record]) -> Outcome:
    """Return the outcome of writes one after the other."""
    # Writes on threads have the same sleeps and locks as in a controlled trial.
    scheduler = ThreadScheduler() if find_overlap(policy) == "threads" else None
    with _open_and_close(policy, ControlledLoop(), scheduler) as memory:
        for record in prior:
            memory.add(record)
        raised: list[BaseException | None] = []
        for record in writes:
            try:
                memory.add(record)
            except OWN_ERRORS as error:
                raised.append(error)
        settle_memory(memory)
        return _read_outcome(memory, raised)


@contextmanager
def open_for_overlap(
    policy: OwnMemory, loop: ControlledLoop | None, scheduler: ThreadScheduler | None
) -> Iterator[Any]:
    """Open a memory; with a scheduler, its locks let other writes continue instead of blocking."""
    with ExitStack() as stack:
        if scheduler is not None:
            stack.enter_context(scheduler.replace_locks(find_class(policy)))
        memory = stack.enter_context(policy.begin(loop))
        if scheduler is not None:
            scheduler.replace_inner_locks(memory)
        yield memory


@contextmanager
def _open_and_close(
    policy: OwnMemory, loop: ControlledLoop | None, scheduler: ThreadScheduler | None
) -> Iterator[Any]:
    with open_for_overlap(policy, loop, scheduler) as memory:
        try:
            yield memory
        finally:
            with suppress(Exception):
                close_memory(memory)


def _add_at_once(
    memory: Any,
    records: Sequence[Record],
    choose: Choose,
    scheduler: ThreadScheduler | None,
    watch: Watch | None = None,
) -> list[BaseException | None]:
    """Add records to an open memory at once, and give what each write raised."""
    loop = getattr(memory, "loop", None)
    add = memory.inner.add if isinstance(loop, ControlledLoop) else memory.add
    writes = [partial(add, record) for record in records]
    if isinstance(loop, ControlledLoop):
        raised = loop.overlap(writes, choose, watch)
    elif scheduler is not None:
        raised = scheduler.overlap(writes, choose)
    else:
        raised = _add_on_threads(writes)
    for error in raised:
        if isinstance(error, UncontrolledError):
            raise InapplicableError(str(error)) from None
    return raised


def _read_outcome(memory: Any, raised: Sequence[BaseException | None]) -> Outcome:
    ids = [getattr(item, "id", None) or str(item) for item in memory.retained()]
    read_state = getattr(memory, "state", None)
    state = read_state() if callable(read_state) else None
    errors = sorted(_describe(error) for error in raised if error is not None)
    return Outcome(tuple(sorted(ids)), state, tuple(errors))


def _describe(error: BaseException) -> str:
    """Write an error without the addresses of objects, which differ each time."""
    return _ADDRESS.sub("0x…", f"{type(error).__name__}: {error}")


def _add_on_threads(writes: Sequence[Callable[[], Any]]) -> list[BaseException | None]:
    """Start all writes at the same moment, each on a thread of its own."""
    start = threading.Barrier(len(writes))
    errors: list[BaseException | None] = [None] * len(writes)

    def run(number: int) -> None:
        start.wait()
        try:
            writes[number]()
        except OWN_ERRORS as error:
            errors[number] = error

    threads = [
        threading.Thread(target=run, args=(number,), daemon=True) for number in range(len(writes))
    ]
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(_JOIN_SECONDS)
    finally:
        sys.setswitchinterval(before)
    return [
        TimeoutError("the write never ended") if thread.is_alive() else error
        for thread, error in zip(threads, errors, strict=True)
    ]
