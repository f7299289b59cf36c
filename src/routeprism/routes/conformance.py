"""The adapter kit: what makes an audit of an adapter meaningful, checked one by one.

Everything is tried on two small built-in pools, one of which repeats and corrects itself, so that
memories that merge and update have something to do.
"""

from __future__ import annotations

import gc
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from routeprism.errors import ContractError, MissingExtraError, PeekError, SpecError
from routeprism.policies import Event, Exposure, Memory, Policy, fitted
from routeprism.policies.own import refuse_curiosity, refuse_peeking
from routeprism.records import Pool, Record
from routeprism.routes._trace import signature

__all__ = ["BUILDS", "Check", "check_adapter"]

BUILDS = 3
"""How many builds a declared nondeterministic adapter is given to show how much they differ."""

_PATIENCE = 2.0
"""How many seconds threads have to end after a memory was closed."""


@dataclass(frozen=True, slots=True)
class Check:
    """What one check found."""

    name: str
    """What was checked."""
    outcome: Literal["passed", "failed", "not tried"]
    said: str = ""
    """What is wrong, or what a reader should know."""
    fix: str = ""
    """What to do about it."""


def _pool(user: str, *texts: str) -> Pool:
    records = (Record(f"{user}-{at}", at, f"[USER] {text}") for at, text in enumerate(texts))
    return Pool(user, tuple(records))


_MOVING = _pool(
    "moving",
    "I live in Lyon and keep two cats. The flat is small.",
    "My sister plays the violin in an orchestra.",
    "I live in Lyon and keep two cats. The flat is small.",
    "I have moved: I live in Porto now, and the cats came along.",
    "My sister has given up the violin and plays the viola.",
)
_COOKING = _pool(
    "cooking",
    "I bake bread on Sundays, mostly rye.",
    "Paprika makes me sneeze, so I cook without it.",
    "The oven broke, and I fry everything for now.",
)
_LEARNING = _pool(
    "learning",
    "I walk to work along the river every morning.",
    "The river was high this morning, so I took the tram to work.",
)
"""For policies that have to learn from other users first."""
_QUESTIONS = ("Where do I live?", "Which instrument does my sister play?", "What do I keep?")


class _CheckError(Exception):
    """A check that did not pass."""

    def __init__(self, said: str, fix: str) -> None:
        super().__init__(said)
        self.said, self.fix = said, fix


def check_adapter(policy: Policy) -> tuple[Check, ...]:
    """Try an adapter, and say for each property whether it holds and how to make it hold."""
    kit = _Kit(fitted(policy, (_LEARNING,)))
    for name, check, needs in (
        ("contract", kit.contract, ()),
        ("ids", kit.ids, ("contract",)),
        ("isolation", kit.isolation, ("contract",)),
        ("provenance", kit.provenance, ("contract",)),
        ("no question leakage", kit.question, ("contract",)),
        ("determinism", kit.determinism, ("contract", "isolation", "no question leakage")),
        ("traceability", kit.traceability, ("contract", "ids", "isolation")),
        ("clean-up", kit.clean_up, ("contract",)),
    ):
        kit.attempt(name, check, needs)
    return tuple(kit.found)


@dataclass(slots=True)
class _Kit:
    policy: Policy
    found: list[Check] = field(default_factory=list)

    def attempt(self, name: str, check: Callable[[], str], needs: Sequence[str]) -> None:
        """Run a check unless one that it rests on has not passed."""
        missing = [c.name for c in self.found if c.name in needs and c.outcome != "passed"]
        if missing:
            self.found.append(Check(name, "not tried", f"it rests on {missing[0]}"))
            return
        try:
            self.found.append(Check(name, "passed", check()))
        except _CheckError as failure:
            self.found.append(Check(name, "failed", failure.said, failure.fix))
        except (SpecError, MissingExtraError):
            raise  # nothing of the adapter was tried
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            self.found.append(
                Check(name, "failed", said, "see the message; the adapter must not raise here")
            )

    @contextmanager
    def built(self, pool: Pool) -> Iterator[Memory]:
        """Build a memory, and let it go."""
        memory = self.policy.build(pool.records)
        try:
            yield memory
        finally:
            _close(memory)

    def contract(self) -> str:
        """Check the shapes: build(arrivals), retained(), state(), expose(query)."""
        try:
            refuse_peeking(self.policy)
            with self.built(_MOVING) as memory:
                if not isinstance(memory, Memory):
                    raise _CheckError(
                        f"build gave {type(memory).__name__}",
                        "give an object with retained(), state() and expose(query)",
                    )
                refuse_curiosity(memory, self.policy.name)
                signature(memory.state())
                for question in _QUESTIONS:
                    shown = memory.expose(question)
                    if not isinstance(shown, Exposure):
                        raise _CheckError(
                            f"expose gave {type(shown).__name__}", "give an Exposure of Blocks"
                        )
        except PeekError as error:
            raise _CheckError(
                str(error), "take build(arrivals) and expose(query) alone: nothing else is given"
            ) from None
        except ContractError as error:
            raise _CheckError(str(error), "see docs/policies.md, Writing one") from None
        return ""

    def ids(self) -> str:
        """Check that every id named is one that arrived."""
        known = {*_MOVING.ids, *_COOKING.ids}  # another pool's ids are a leak, not an invention
        with self.built(_MOVING) as memory:
            named = {"retained()": memory.retained()}
            for question in _QUESTIONS:
                named["expose()"] = memory.expose(question).sources
                for where, ids in named.items():
                    if invented := sorted(map(str, set(ids) - known)):
                        raise _CheckError(
                            f"{where} names '{invented[0]}', which never arrived",
                            "carry record.id through the system (metadata, key or tag) and give "
                            "that back, not the system's own id",
                        )
                if hidden := sorted(named["expose()"] - memory.retained()):
                    raise _CheckError(
                        f"expose() shows '{hidden[0]}', which retained() does not name",
                        "let retained() name every record that anything held came from",
                    )
        return ""

    def isolation(self) -> str:
        """Check that a build sees nothing of another."""
        fix = "make every store, collection, file and list inside build(), a new one each time"
        with self.built(_MOVING) as first:
            before = first.retained(), signature(first.state())
            try:
                with self.built(_COOKING) as second:
                    held = {*second.retained()}
                    for question in _QUESTIONS:
                        held |= second.expose(question).sources
                    if strangers := sorted(held & {*_MOVING.ids}):
                        raise _CheckError(
                            f"a second build holds '{strangers[0]}', which arrived in the first",
                            fix,
                        )
                    after = first.retained(), signature(first.state())
            except ContractError as error:
                raise _CheckError(f"a second build is refused: {error}", fix) from None
            if before != after:
                raise _CheckError("a memory changed while another one was built", fix)
        return ""

    def provenance(self) -> str:
        """Check that everything shown says where it came from."""
        shown = 0
        for pool in (_MOVING, _COOKING):
            with self.built(pool) as memory:
                for question in _QUESTIONS:
                    for block in memory.expose(question).blocks:
                        shown += 1
                        if not block.sources:
                            raise _CheckError(
                                f"expose({question!r}) shows {block.text!r:.60} without sources",
                                "give every Block the ids of all records its text came from",
                            )
        return "" if shown else "nothing was ever shown, so nothing could be checked"

    def question(self) -> str:
        """Check that asking changes nothing, neither now nor in the next build."""
        fix = "let expose(query) read alone: store no query, no hit count, no cache that shows"
        with self.built(_MOVING) as memory:
            before = memory.retained(), signature(memory.state())
            first = memory.expose(_QUESTIONS[0])
            for question in _QUESTIONS[1:]:
                memory.expose(question)
            if (memory.retained(), signature(memory.state())) != before:
                raise _CheckError("retained() or state() changed when questions were asked", fix)
            if self._declared and memory.expose(_QUESTIONS[0]) != first:
                raise _CheckError(
                    "the same question gets another answer after other questions", fix
                )
        return ""

    def determinism(self) -> str:
        """Check that two builds are the same, or that the adapter says they need not be."""
        builds = 2 if self._declared else BUILDS
        seen = []
        for _ in range(builds):
            with self.built(_MOVING) as memory:
                seen.append((_seen(memory), tuple(_events(memory))))
        different = len({repr(one) for one in seen})
        if not self._declared:
            return (
                f"declared nondeterministic: {different} of {builds} builds differ; audits should "
                f"average several (--builds)"
            )
        if different > 1:
            raise _CheckError(
                "two builds from the same records in the same order differ",
                "seed what is drawn and freeze dates and ids; if chance is part of the system, "
                "declare deterministic = False and audit with --builds",
            )
        return ""

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
                        "let `at` count arrivals from 0 and `by` name the record that arrived then",
                    )
                if event.record not in _MOVING.ids[: event.at + 1]:
                    raise _CheckError(
                        f"arrival {event.at} did something to '{event.record}', "
                        f"which had not arrived",
                        "name the record that the event happened to",
                    )
            told = {event.record for event in events} | {event.by for event in events}
            if untold := sorted({*_MOVING.ids} - memory.retained() - told):
                raise _CheckError(
                    f"'{untold[0]}' arrived, is not retained, and no event says why",
                    "log skip, evict, merge or overwrite for what is not kept",
                )
        return ""

    def clean_up(self) -> str:
        """Check that nothing stays behind: threads, processes, files, descriptors."""
        here = Path.cwd()
        with tempfile.TemporaryDirectory() as place, _temporary(place):
            with self.built(_COOKING) as memory:  # what a package starts once is started now
                memory.expose(_QUESTIONS[0])
            left = {*Path(place).iterdir()}
            listed = {*here.iterdir()}
            threads, descriptors, children = _threads(), _descriptors(), _children()
            with self.built(_MOVING) as memory:
                memory.expose(_QUESTIONS[0])
            if files := sorted({*Path(place).iterdir()} - left):
                raise _CheckError(
                    f"'{files[0].name}' stayed in the temporary directory",
                    "remove what a build makes in close(), which is called after the last question",
                )
            if files := sorted({*here.iterdir()} - listed):
                raise _CheckError(
                    f"'{files[0].name}' stayed in the current directory",
                    "keep a build's files in a temporary directory and remove it in close()",
                )
            if started := sorted(_lasting(threads)):
                raise _CheckError(
                    f"the thread '{started[0]}' is still running",
                    "end it in close(), which is called after the last question",
                )
            if _children() > children:
                raise _CheckError("a process is still running", "end it and wait for it in close()")
            gc.collect()
            if (now := _descriptors()) > descriptors:
                raise _CheckError(
                    f"{now - descriptors} files or connections are still open",
                    "close clients and databases in close()",
                )
        if Path.cwd() != here:
            raise _CheckError("the current directory is another one", "do not change it in a build")
        return ""

    @property
    def _declared(self) -> bool:
        """Whether the adapter says that the same arrivals give the same memory."""
        return getattr(self.policy, "deterministic", True) is not False


def _close(memory: object) -> None:
    close = getattr(memory, "close", None)
    if callable(close):
        close()


def _events(memory: object) -> Sequence[Event]:
    log = getattr(memory, "events", None)
    return tuple(log()) if callable(log) else ()


def _seen(memory: Memory) -> tuple[frozenset[str], str | None, tuple[Exposure, ...]]:
    """Take all that an audit would see of a memory."""
    shown = tuple(memory.expose(question) for question in _QUESTIONS)
    return memory.retained(), signature(memory.state()), shown


@contextmanager
def _temporary(place: str) -> Iterator[None]:
    """Let temporary files be made in a place that is watched."""
    before = tempfile.tempdir
    tempfile.tempdir = place
    try:
        yield
    finally:
        tempfile.tempdir = before


def _threads() -> set[int]:
    return {thread.ident or 0 for thread in threading.enumerate()}


def _lasting(before: set[int]) -> list[str]:
    """Name the threads that are new and do not end soon."""
    until = time.monotonic() + _PATIENCE
    while True:
        new = [t.name for t in threading.enumerate() if (t.ident or 0) not in before]
        if not new or time.monotonic() > until:
            return new
        time.sleep(0.02)


def _descriptors() -> int:
    """Count open descriptors, where the system shows them."""
    with suppress(OSError):
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (counted, not walked)
    return 0


def _children() -> int:
    """Count child processes, where the system shows them."""
    with suppress(OSError):
        tasks = Path("/proc/self/task").iterdir()
        return sum(len((task / "children").read_text().split()) for task in tasks)
    return 0
