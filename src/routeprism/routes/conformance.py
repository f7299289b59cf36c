"""The adapter kit: what makes an audit of an adapter meaningful, checked one by one.

Everything is tried on two small built-in pools, one of which repeats and corrects itself, so that
memories that merge and update have something to do.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Literal, TypeAlias

from routeprism.errors import (
    ContractError,
    MissingExtraError,
    OwnCodeError,
    PeekError,
    RoutePrismError,
    SpecError,
)
from routeprism.frames import OWN_ERRORS, describe_error, is_interruption
from routeprism.policies import (
    Event,
    Exposure,
    Incremental,
    Memory,
    Policy,
    StandIn,
    fit_policy,
    is_deterministic,
    unwrap_policy,
)
from routeprism.policies.own import (
    check_build,
    check_expose,
    closing_memory,
    retained_ids,
)
from routeprism.records import Pool, Record
from routeprism.routes._candidate import Candidate, describe_requests
from routeprism.routes._checks import RARE, describe_leak, find_leak, reason_to_save
from routeprism.routes._histories import find_disagreement
from routeprism.routes._leaks import Leak, LeakUser, choose_leak, find_leaks
from routeprism.routes._single_records import SingleRecordError, check_single_records
from routeprism.routes._specimens import make_users
from routeprism.routes._trace import hash_state
from routeprism.routes._walk import Walk, walk_memory
from routeprism.specs import fulfils

__all__ = ["BUILDS", "MOST_BUILDS", "RARE", "Check", "check_adapter", "iterate_checks"]

BUILDS = 3
"""How many builds a declared nondeterministic adapter is given to show how much they differ."""

MOST_BUILDS = 150
"""How often an adapter that should be deterministic is built, as long as that is fast."""
_CONTROLS = 6
"""The number of builds that distinguish a memory of questions from chance."""
_BUDGET = 5.0
"""How many seconds of processor time the builds that look for chance may take."""
_LONGEST = 60.0
"""How many seconds they may take in all, with what they wait for."""
_PATIENCE = 5.0
"""How many seconds threads have to end after a memory was closed."""


SEED = 20_260_417
"""The seed of the records that are made for the checks."""
Outcome: TypeAlias = Literal["passed", "failed", "not tried", "not observed"]


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check."""

    name: str
    """The name of the check."""
    outcome: Outcome
    message: str = ""
    """The problem that was found, or a note."""
    fix: str = ""
    """How to solve it."""


def _read_pool(user: str) -> Pool:
    texts = enumerate(_TEXTS["pools"][user])
    return Pool(user, tuple(Record(f"{user}-{at}", at, f"[USER] {text}") for at, text in texts))


_TEXTS = json.loads(files(__package__).joinpath("conformance.json").read_text("utf-8"))
_MOVING, _COOKING, _LEARNING, _VARIED = map(_read_pool, _TEXTS["pools"])
_FIXES: Mapping[str, str] = _TEXTS["fixes"]
_QUESTIONS: tuple[str, ...] = tuple(_TEXTS["questions"])
_NEW_QUESTIONS: tuple[str, ...] = tuple(_TEXTS["new_questions"])


class _CheckError(Exception):
    """A check that did not pass."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.problem, self.fix = problem, _FIXES[fix]


def check_adapter(policy: Policy) -> tuple[Check, ...]:
    """Check each property of an adapter; for a failed one, give how to repair it."""
    return tuple(iterate_checks(policy))


_FIRST = ("contract", "users", "isolation")
_BUILT = (*_FIRST, "ids", "provenance", "no question leakage", "determinism")


def iterate_checks(policy: Policy) -> Iterator[Check]:
    """Check each property of an adapter, and give each result as soon as it is there."""
    kit = _Kit(fit_policy(policy, (_LEARNING,)))
    yield from kit.walk_profile()
    for name, check, needs in (
        ("contract", kit.contract, ()),
        ("users", kit.users, ("contract",)),
        ("isolation", kit.isolation, ("contract", "users")),
        ("ids", kit.ids, _FIRST),
        ("provenance", kit.provenance, _FIRST),
        ("no question leakage", kit.question, _FIRST),
        ("determinism", kit.determinism, (*_FIRST, "no question leakage")),
        ("merging", kit.merging, (*_FIRST, "determinism")),
        ("traceability", kit.traceability, (*_FIRST, "ids")),
        ("clean-up", kit.clean_up, _FIRST),
        ("single records", kit.single_records, _BUILT),
        ("walk", kit.walk, _BUILT),
    ):
        kit.attempt(name, check, needs)
        yield kit.checks[-1]
    yield from kit.judge_walk()


@dataclass(slots=True)
class _Kit:
    policy: Policy
    checks: list[Check] = field(default_factory=list)
    first: str = ""
    """Observations of the first build that was asked a question: nothing was shared yet."""
    walked: bool = True
    """Whether every step of its profile passed, if it has one."""
    way: Walk | None = None
    """The walk with many records, after it."""

    def attempt(self, name: str, check: Callable[[], str], needs: Sequence[str]) -> None:
        """Run a check unless one that it depends on has not passed."""
        missing = [c.name for c in self.checks if c.name in needs and c.outcome != "passed"]
        if not self.walked:
            missing = [c.name for c in self.checks if c.outcome == "failed"]
        if missing:
            reason = f"not checked, because {missing[0]} has not passed"
            self.checks.append(Check(name, "not tried", reason))
            return
        try:
            self.checks.append(Check(name, "passed", check()))
        except _CheckError as failure:
            self.checks.append(Check(name, "failed", failure.problem, failure.fix))
        except (SpecError, MissingExtraError):
            raise  # nothing of the adapter was tried
        except OwnCodeError as error:
            self.checks.append(Check(name, "failed", str(error), _FIXES["errors"]))
        except BaseException as error:
            if is_interruption(error):
                raise
            problem = str(describe_error(error, self.policy.name))
            self.checks.append(Check(name, "failed", problem, _FIXES["errors"]))

    def walk_profile(self) -> Iterator[Check]:
        """Try the steps of an adapter that has a profile, and report what each found."""
        inner = self.policy if isinstance(self.policy, StandIn) else unwrap_policy(self.policy)
        if not callable(steps := getattr(inner, "walk", None)):
            return
        for step in steps():
            outcome: Literal["passed", "failed"] = "passed" if step.passed else "failed"
            self.checks.append(Check(f"profile, {step.name}", outcome, step.message, step.fix))
            self.walked = step.passed
            yield self.checks[-1]

    @contextmanager
    def built(self, pool: Pool) -> Iterator[Memory]:
        """Build a memory, and let it go."""
        with closing_memory(self.policy.build(pool.records)) as memory:
            yield memory

    def retained(self, memory: Memory) -> frozenset[str]:
        """Return the ids that a memory retains, whatever iterable it gives."""
        return retained_ids(memory, self.policy.name)

    def contract(self) -> str:
        """Check the shapes: build(arrivals), retained(), state(), expose(query)."""
        try:
            check_build(self.policy)
            with self.built(_MOVING) as memory:
                if not fulfils(memory, Memory):
                    raise _CheckError(f"build gave {type(memory).__name__}", "memory")
                check_expose(memory, self.policy.name)
                exposures = [memory.expose(question) for question in _QUESTIONS]
                for exposure in exposures:
                    if not isinstance(exposure, Exposure):
                        raise _CheckError(f"expose gave {type(exposure).__name__}", "exposure")
                self.first = self._write_view(memory, exposures)
        except PeekError as error:
            raise _CheckError(str(error), "arguments") from None
        except ContractError as error:
            raise _CheckError(str(error), "contract") from None
        return ""

    def ids(self) -> str:
        """Check that every id named is one that arrived."""
        with self.built(_MOVING) as memory:
            retained = self.retained(memory)
            for question in _QUESTIONS:
                sources = memory.expose(question).sources
                for where, ids in (("retained()", retained), ("expose()", sources)):
                    if invented := sorted(map(str, set(ids) - {*_MOVING.ids})):
                        raise _CheckError(
                            f"{where} names '{invented[0]}', which never arrived", "ids"
                        )
        return ""

    def users(self) -> str:
        """Check that no record of one user is retained for, or shown to, another."""
        pools = (_MOVING, _COOKING, _VARIED)
        earlier = [LeakUser(pool.user, pool.records) for pool in pools]
        try:
            leaks = list(find_leaks(self.policy, make_users(SEED), earlier=earlier))
        except ContractError as error:
            raise _CheckError(str(error), "stores") from None
        if leak := choose_leak(leaks):
            more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
            raise _CheckError(f"{leak}{more}", "leak")
        if getattr(unwrap_policy(self.policy), "exclusive", False):
            return "one memory after the other, because only one can be open"
        return "two users had memories at the same time, and saw nothing of each other"

    def isolation(self) -> str:
        """Check that a build sees nothing of another."""
        if getattr(unwrap_policy(self.policy), "exclusive", False):
            return self._isolation_by_reset()
        try:
            with self.built(_MOVING) as first:
                before = [(self.retained(first), hash_state(first.state())) for _ in range(2)]
                with self.built(_COOKING) as second:
                    if strangers := sorted(self.retained(second) & {*_MOVING.ids}):
                        raise _CheckError(
                            str(Leak(_MOVING.user, _COOKING.user, strangers[0])), "leak"
                        )
                    after = self.retained(first), hash_state(first.state())
        except ContractError as error:
            raise _CheckError(f"a second build is refused: {error}", "stores") from None
        if before[0] == before[1] != after:  # else it changes by itself: see determinism
            raise _CheckError("a memory changed while another one was built", "late stores")
        return self._both_ways_round()

    def _both_ways_round(self) -> str:
        """Build the same records in two orders: in both sequences, and alternating."""
        if not self._declared:
            return "not in two orders: shared state cannot be distinguished from chance"
        unclear = []
        for pool in (_MOVING, _COOKING, _VARIED):
            isolation = find_leak(
                self.policy, pool.records, tuple(range(len(pool)))[::-1], _QUESTIONS
            )
            if isolation.outcome == "shared":
                raise _CheckError(describe_leak(isolation), "stores")
            if isolation.outcome in ("unclear", "chance"):
                self._take_opposite_order(pool)
                unclear.append(pool.user)
        if len(unclear) == len((_MOVING, _COOKING, _VARIED)):
            return "not in two orders: the memory depends on ids or texts as such, or on chance"
        return "builds of the same records in two orders did not influence each other"

    def _take_opposite_order(self, pool: Pool) -> None:
        """Build a pool in the opposite order: a memory that raises there cannot be audited."""
        try:
            with closing_memory(self.policy.build(pool.records[::-1])) as memory:
                for question in _QUESTIONS:
                    memory.expose(question)
        except RoutePrismError:
            raise
        except OWN_ERRORS as error:
            raise describe_error(error, self.policy.name, route="opposite") from None

    def _isolation_by_reset(self) -> str:
        """Check that nothing of a closed build is left in the next one."""
        with self.built(_MOVING) as memory:
            self.retained(memory)
        with self.built(_COOKING) as memory:
            if strangers := sorted({*self.retained(memory)} & {*_MOVING.ids}):
                raise _CheckError(str(Leak(_MOVING.user, _COOKING.user, strangers[0])), "leak")
        return "a reset separates builds, which are made one at a time"

    def provenance(self) -> str:
        """Check that everything shown names its sources."""
        number = 0
        for pool in (_MOVING, _COOKING):
            with self.built(pool) as memory:
                for question in _QUESTIONS:
                    for block in memory.expose(question).blocks:
                        number += 1
                        if not block.sources:
                            raise _CheckError(
                                f"expose({question!r}) shows {block.text!r:.60} without sources",
                                "sources",
                            )
        return "" if number else "nothing was ever shown, so nothing could be checked"

    def question(self) -> str:
        """Check that asking changes nothing, neither now nor in the next build."""
        for pool in (_MOVING, _VARIED):
            exposures: dict[str, Exposure] = {}
            # The second memory is asked in the opposite sequence: what is remembered of earlier
            # questions, in a memory or outside it, differs then for all but one.
            for questions in (_NEW_QUESTIONS, _NEW_QUESTIONS[::-1]):
                with self.built(pool) as memory:
                    before = [(self.retained(memory), hash_state(memory.state())) for _ in range(2)]
                    replies = [(q, memory.expose(q)) for q in (*questions, *questions[::-1])]
                    after = self.retained(memory), hash_state(memory.state())
                if before[0] == before[1] != after:
                    raise _CheckError(
                        "retained() or state() changed when questions were asked", "questions"
                    )
                for question, exposure in replies:
                    if exposures.setdefault(question, exposure) == exposure or not self._declared:
                        continue
                    if not self._is_steady(pool):
                        return "not clear: builds differ even where the same is asked"
                    raise _CheckError(
                        f"{question!r} is shown something else after other questions", "questions"
                    )
        return ""

    def _is_steady(self, pool: Pool) -> bool:
        """Whether several builds that are asked the same, in the same sequence, show the same."""
        views = set()
        for _ in range(_CONTROLS):
            with self.built(pool) as memory:
                views.add(
                    repr(_write_exposures([memory.expose(question) for question in _NEW_QUESTIONS]))
                )
        return len(views) == 1

    def determinism(self) -> str:
        """Check that builds are the same, or that the adapter declares that they differ."""
        if not self._declared:
            different = len({self._build_once() for _ in range(BUILDS)})
            return (
                f"declared nondeterministic: {different} of {BUILDS} builds differ; audits should "
                f"average several (builds=N)"
            )
        first, builds = self.first, 1
        until = time.process_time() + _BUDGET, time.monotonic() + _LONGEST
        most = 2 if reason_to_save(self.policy) else MOST_BUILDS
        # Waiting counts less than computing, so that a busy machine does not shorten the search.
        while builds < 2 or (
            builds < most and time.process_time() < until[0] and time.monotonic() < until[1]
        ):
            builds += 1
            if self._build_once() != first:
                raise _CheckError(
                    f"two builds from the same records in the same order differ (build {builds} "
                    f"from the first)",
                    "chance",
                )
        return (
            f"{builds} builds were the same; chance in 1 of {RARE} builds shows in that many with "
            f"probability {1 - (1 - 1 / RARE) ** builds:.2f}"
        )

    def _build_once(self) -> str:
        """Build once, and write down all that an audit would see."""
        with self.built(_MOVING) as memory:
            return self._write_view(memory, [memory.expose(question) for question in _QUESTIONS])

    def _write_view(self, memory: Memory, exposures: Sequence[Exposure]) -> str:
        retained = sorted(self.retained(memory))
        return repr(
            (retained, hash_state(memory.state()), _write_exposures(exposures), _events(memory))
        )

    def merging(self) -> str:
        """Check that states of an incremental policy, merged by key, give what building gives."""
        policy = self.policy
        if not isinstance(policy, Incremental):
            return "no start, step, finish and key: orders are built one by one"
        if not self._declared:
            return "not in every order: chance decides, so that states are not merged"
        for pool in (_COOKING, _MOVING):
            disagreement = find_disagreement(policy, pool)
            if disagreement is not None:
                raise _CheckError(disagreement.text, "steps")
        return "all orders of two small pools end where building them ends"

    def traceability(self) -> str:
        """Check the event log, and that each arrival is accounted for after updates and merges."""
        with self.built(_MOVING) as memory:
            events = _events(memory)
            if not events:
                return "no event log: events() would say which arrival did what"
            for event in events:
                arrived = 0 <= event.at < len(_MOVING)
                if not arrived or _MOVING.records[event.at].id != event.by:
                    raise _CheckError(
                        f"an event says that arrival {event.at} was '{event.by}'",
                        "arrival of an event",
                    )
                if event.record not in _MOVING.ids[: event.at + 1]:
                    raise _CheckError(
                        f"arrival {event.at} did something to '{event.record}', "
                        f"which had not arrived",
                        "record of an event",
                    )
            ids = {event.record for event in events} | {event.by for event in events}
            if untold := sorted({*_MOVING.ids} - self.retained(memory) - ids):
                raise _CheckError(
                    f"'{untold[0]}' arrived, is not retained, and no event says why", "events"
                )
        return ""

    def single_records(self) -> str:
        """Check that a memory with one record retains or shows it, or says why not."""
        try:
            return check_single_records(self.policy, SEED, is_costly=self._is_costly)
        except SingleRecordError as error:
            raise _CheckError(str(error), error.fix) from None

    def walk(self) -> str:
        """Walk with the memory; what it shows is judged afterwards, property by property."""
        with Candidate(self.policy) as candidate:
            self.way = walk_memory(candidate, SEED, is_costly=self._is_costly)
        return describe_requests(candidate.requests)

    def judge_walk(self) -> Iterator[Check]:
        """Yield a result for each property that the walk showed."""
        for verdict in () if self.way is None else self.way.conclude():
            outcome: Outcome = "not observed" if verdict.unobserved else "passed"
            if verdict.problem:
                outcome = "failed"
            text = verdict.problem or verdict.unobserved or verdict.note
            fix = _FIXES[verdict.fix] if verdict.problem else ""
            self.checks.append(Check(f"walk, {verdict.name}", outcome, text, fix))
            yield self.checks[-1]

    @property
    def _is_costly(self) -> bool:
        """Whether requests to the memory are to be saved."""
        inner = self.policy.inner if isinstance(self.policy, StandIn) else self.policy
        return bool(reason_to_save(inner))

    def clean_up(self) -> str:
        """Check that nothing stays behind: threads, processes, files, descriptors."""
        directory = Path.cwd()
        with tempfile.TemporaryDirectory() as place, _watch_temporary(place):
            with self.built(_COOKING) as memory:  # what a package starts once is started now
                memory.expose(_QUESTIONS[0])
            left = {*Path(place).iterdir()}
            entries = {*directory.iterdir()}
            threads, descriptors, children = _threads(), _descriptors(), _children()
            with self.built(_MOVING) as memory:
                memory.expose(_QUESTIONS[0])
            if files := sorted({*Path(place).iterdir()} - left):
                raise _CheckError(
                    f"'{files[0].name}' stayed in the temporary directory", "temporary files"
                )
            if files := sorted({*directory.iterdir()} - entries):
                raise _CheckError(f"'{files[0].name}' stayed in the current directory", "files")
            if started := sorted(_list_lasting(threads)):
                raise _CheckError(f"the thread '{started[0]}' is still running", "threads")
            if _children() - children:
                raise _CheckError("a process is still running", "processes")
            gc.collect()
            if (now := _descriptors()) > descriptors:
                raise _CheckError(
                    f"{now - descriptors} files or connections are still open", "connections"
                )
        if Path.cwd() != directory:
            raise _CheckError("the current directory is another one", "directory")
        return ""

    @property
    def _declared(self) -> bool:
        """Whether the adapter declares that the same arrivals give the same memory."""
        return is_deterministic(self.policy)


def _events(memory: object) -> Sequence[Event]:
    log = getattr(memory, "events", None)
    return tuple(log()) if callable(log) else ()


def _write_exposures(exposures: Sequence[Exposure]) -> list[list[tuple[str, str, list[str]]]]:
    """Write exposures down, so that equal ones are written alike."""
    return [
        [(b.kind, b.text, sorted(b.sources)) for b in exposure.blocks] for exposure in exposures
    ]


@contextmanager
def _watch_temporary(place: str) -> Iterator[None]:
    """Let temporary files be made in a place that is watched."""
    before = tempfile.tempdir
    tempfile.tempdir = place
    try:
        yield
    finally:
        tempfile.tempdir = before


def _threads() -> set[int]:
    return {thread.ident or 0 for thread in threading.enumerate()}


def _list_lasting(before: set[int]) -> list[str]:
    """Name the threads that are new and do not end soon."""
    until = time.monotonic() + _PATIENCE
    while True:
        new = [t.name for t in threading.enumerate() if (t.ident or 0) not in before]
        if not new or time.monotonic() > until:
            return new
        time.sleep(0.02)


def _descriptors() -> int:
    """Count open descriptors, if the system shows them."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (counted, not walked)
    return 0


def _children() -> frozenset[str]:
    """List the ids of child processes, if the system shows them."""
    for _ in range(_MOST_SCANS):
        with suppress(OSError):  # a thread ended during the scan, and its children moved
            tasks = list(Path("/proc/self/task").iterdir())
            return frozenset(id for t in tasks for id in (t / "children").read_text().split())
    return frozenset()


_MOST_SCANS = 20
"""How often child processes are listed until no thread ends meanwhile."""
