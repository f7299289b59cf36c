"""Trials: some writes to one memory at once, and what came of them."""

from __future__ import annotations

import inspect
import math
import random
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from routeprism.errors import ContractError, InapplicableError, RouteError, RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.overlap._limits import OverLimitError, explain_limit, limit_time
from routeprism.overlap._loop import (
    NEVER_ENDED,
    Choose,
    ControlledLoop,
    Pause,
    Step,
    Timeout,
    UncontrolledError,
    Watch,
    find_write,
)
from routeprism.overlap._threads import ThreadScheduler
from routeprism.policies import JsonValue, Policy, find_class
from routeprism.policies.own import (
    OwnMemory,
    as_blocks,
    close_memory,
    find_own_memory,
    find_settling_limit,
    settle_memory,
)
from routeprism.records import Record

_SWITCH_INTERVAL = 1e-6
"""Seconds after which Python lets another thread run while writes overlap on threads."""
_LIMIT = 60.0
"""Seconds that a trial may take, unless the memory declares `write_limit`."""

_SHARED = "is bound to a different event loop"
_EXPLAIN_SHARED = (
    "the memory shares a lock or a queue with other memories, and each trial has an event loop of "
    "its own; make the lock or queue in __init__"
)
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
    shown: tuple[tuple[tuple[tuple[str, ...], str], ...], ...] = ()
    """For each question, the blocks that it is shown: the ids of their records, and their text."""
    slow: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    """The writes with a request of their own that took longer than a timeout."""

    @property
    def never_ended(self) -> bool:
        """Whether a write never ended."""
        return any(NEVER_ENDED in error for error in self.errors)

    @property
    def over_limit(self) -> bool:
        """Whether a write took longer than the limit; each further trial may take as long."""
        return any(f"{NEVER_ENDED} within" in error for error in self.errors)


@dataclass(frozen=True, slots=True)
class Execution:
    """One trial that was performed."""

    outcome: Outcome
    steps: tuple[Step, ...] = ()
    """The interleaving, if a controlled loop chose it."""
    choices: tuple[int, ...] = ()
    """What happened at each step, from which the interleaving can be repeated."""
    controlled: bool = True
    """Whether RoutePrism chose the interleaving."""
    requests: tuple[Pause, ...] = ()
    """The sleeps, and the functions on other threads, of the writes."""
    timeouts: tuple[Timeout, ...] = ()
    """The timeouts that ended."""
    intruded: bool = False
    """Whether a task that outlives a write went on while the write could continue."""
    bounds: tuple[str, ...] = ()
    """What limits the interleavings of the trial, in words."""


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
    questions: tuple[str, ...] = ()
    """The texts of the questions that are shown records after the writes."""

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
        return self._perform([range(len(self.writes))], choose, observe)

    def run_in_order(self, order: Sequence[int]) -> Outcome:
        """Return the outcome of the same writes one after the other."""
        return self.perform_in_order(order).outcome

    def perform_in_order(self, order: Sequence[int], choose: Choose | None = None) -> Execution:
        """Perform the same writes one after the other.

        Requests of one write end by their own durations, unless a function chooses.
        """
        return self._perform([[at] for at in order], choose)

    def _perform(
        self,
        batches: Sequence[Sequence[int]],
        choose: Choose | None,
        observe: Callable[[Any], Watch] | None = None,
    ) -> Execution:
        """Add batches of writes one after the other, and read the memory."""
        choices: list[int] = []

        def note_choice(enabled: Sequence[int]) -> int:
            assert choose is not None  # noqa: S101 (only then is it called)
            choices.append(choose(enabled))
            return choices[-1]

        # Writes one by one on threads have the same sleeps and locks as writes at once.
        silent = choose_conductor(self.policy, controlled=self.controlled or len(batches) > 1)
        conductor = replace(silent, choose=None if choose is None else note_choice)
        raised: list[BaseException | None] = []
        slow: set[str] = set()
        intruded = False
        with _open_and_close(self.policy, conductor) as memory:
            try:
                for record in self.prior:
                    if (error := silent.add(memory, [record])[0]) is not None:
                        raise error
                watch = observe(memory.inner) if observe and conductor.loop else None
                for batch in batches:
                    records = [self.writes[at] for at in batch]
                    raised += conductor.add(memory, records, watch)
                    if conductor.loop is not None:
                        intruded = intruded or conductor.loop.intruded
                        slow |= {records[at].id for at in conductor.loop.slow if at < len(records)}
                outcome = self._read_outcome(memory, raised)
            except OverLimitError as error:
                outcome = Outcome((), errors=(_describe(error),))
        outcome = replace(outcome, slow=frozenset(slow))
        return _make_execution(conductor, outcome, tuple(choices), intruded=intruded)

    def _read_outcome(self, memory: Any, raised: Sequence[BaseException | None]) -> Outcome:
        """Read what a memory contains, and what it shows."""
        records = (*self.prior, *self.writes)
        errors = [_describe(error) for error in raised if error is not None]
        ids: list[str] = []
        state, exposures = None, []
        try:
            with limit_time(find_limit(memory) + find_settling_limit(memory)):
                settle_memory(memory)
                ids = [getattr(item, "id", None) or str(item) for item in memory.retained()]
                read_state = getattr(memory, "state", None)
                state = read_state() if callable(read_state) else None
                arrived = {record.id: record for record in records}
                for question in self.questions:
                    blocks = as_blocks(memory.expose(question), arrived, self.policy.name)
                    exposures.append(tuple((tuple(sorted(b.sources)), b.text) for b in blocks))
        except UncontrolledError as error:
            raise InapplicableError(str(error)) from None
        except RoutePrismError:
            raise
        except (OverLimitError, *OWN_ERRORS) as error:
            errors.append(f"reading the memory: {_describe(error)}")
        return Outcome(tuple(sorted(ids)), state, tuple(sorted(errors)), tuple(exposures))


def _make_execution(
    conductor: Conductor, outcome: Outcome, choices: tuple[int, ...], *, intruded: bool
) -> Execution:
    execution = Execution(outcome, choices=choices)
    if conductor.scheduler is not None:
        steps, controlled = conductor.scheduler.steps, conductor.scheduler.controlled
        return replace(execution, steps=tuple(steps), controlled=controlled)
    if (loop := conductor.loop) is None:
        return replace(execution, choices=(), controlled=False)
    return replace(
        execution,
        steps=tuple(loop.steps),
        requests=tuple(loop.requests),
        timeouts=tuple(loop.timeouts),
        intruded=intruded,
        bounds=tuple(sorted(loop.bounds)),
    )


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
        staying = [choice for choice in enabled if find_write(choice) == last]
        if not staying or chooser.random() >= probability:
            staying = [chooser.choice(list(enabled))]
        choice = staying[0] if len(staying) == 1 else chooser.choice(staying)
        last = find_write(choice)
        return choice

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


@dataclass(frozen=True, slots=True)
class Conductor:
    """Adds records at once to a memory, in the manner that it permits."""

    loop: ControlledLoop | None
    """For `async` memories."""
    scheduler: ThreadScheduler | None
    """For memories on threads, which take turns if there is one."""
    choose: Choose | None = None
    """Chooses what happens next; by default, requests end by their own durations."""

    def add(
        self, memory: Any, records: Sequence[Record], watch: Watch | None = None
    ) -> list[BaseException | None]:
        """Add records at once, and give what each write raised."""
        limit = find_limit(memory)
        if self.loop is not None:
            writes = [partial(memory.inner.add, record) for record in records]
            with limit_time(limit):
                raised = self.loop.overlap(writes, self.choose or self.loop.choose_due, watch)
        elif len(records) == 1:
            raised = [_add_one(memory, records[0], limit)]
        elif self.scheduler is not None:
            writes = [partial(memory.add, record) for record in records]
            raised = self.scheduler.overlap(writes, self.choose or min, limit)
        else:
            raised = _add_on_threads([partial(memory.add, record) for record in records], limit)
        for error in raised:
            if isinstance(error, UncontrolledError):
                raise InapplicableError(str(error)) from None
            if isinstance(error, RuntimeError) and _SHARED in str(error):
                raise InapplicableError(_EXPLAIN_SHARED) from None
        return raised


def overlap_writes(memory: Any, records: Sequence[Record], seed: int, conductor: Conductor) -> None:
    """Add records to an open memory at once; raise what the first failing write raised."""
    choose = _make_chooser(seed, _STAYING if conductor.loop is None else _STAYING[:1])
    try:
        raised = replace(conductor, choose=choose).add(memory, records)
    except OverLimitError as error:
        raised = [error] * len(records)
    settle_memory(memory)
    for record, failure in zip(records, raised, strict=True):
        if failure is not None:
            raise RouteError(
                f"adding '{record.id}' at the same time as other records failed: "
                f"{_describe(failure)}"
            )


def choose_conductor(policy: OwnMemory, *, controlled: bool = True) -> Conductor:
    """Choose how writes to a memory are carried out."""
    manner = find_overlap(policy)
    return Conductor(
        ControlledLoop() if manner == "async" else None,
        ThreadScheduler() if manner == "threads" and controlled else None,
    )


@contextmanager
def open_for_overlap(policy: OwnMemory, conductor: Conductor) -> Iterator[Any]:
    """Open a memory; its locks let other threads continue instead of blocking."""
    scheduler = conductor.scheduler
    with ExitStack() as stack:
        if scheduler is not None:
            stack.enter_context(scheduler.replace_locks(find_class(policy)))
        memory = stack.enter_context(policy.begin(conductor.loop))
        if scheduler is not None:
            scheduler.replace_inner_locks(memory)
        yield memory


@contextmanager
def _open_and_close(policy: OwnMemory, conductor: Conductor) -> Iterator[Any]:
    with open_for_overlap(policy, conductor) as memory:
        try:
            yield memory
        finally:
            with suppress(Exception, OverLimitError), limit_time(find_limit(memory)):
                close_memory(memory)


def find_limit(memory: Any) -> float:
    """Return the seconds that writes to a memory may take."""
    limit = getattr(memory, "write_limit", _LIMIT)
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 < limit < math.inf:
        raise ContractError(
            f"Expected write_limit to be a number of seconds above 0, got {limit!r}"
        )
    return float(limit)


def _add_one(memory: Any, record: Record, limit: float) -> BaseException | None:
    try:
        with limit_time(limit):
            memory.add(record)
    except (OverLimitError, *OWN_ERRORS) as error:
        return error
    return None


def _describe(error: BaseException) -> str:
    """Write an error without the addresses of objects, which differ each time."""
    name = "TimeoutError" if isinstance(error, OverLimitError) else type(error).__name__
    return _ADDRESS.sub("0x…", f"{name}: {error}")


def _add_on_threads(
    writes: Sequence[Callable[[], Any]], limit: float
) -> list[BaseException | None]:
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
    deadline = time.monotonic() + limit
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_INTERVAL)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
    finally:
        sys.setswitchinterval(before)
    return [
        TimeoutError(explain_limit(limit)) if thread.is_alive() else error
        for thread, error in zip(threads, errors, strict=True)
    ]
