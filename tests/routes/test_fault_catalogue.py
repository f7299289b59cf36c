"""A catalogue of broken memories: what `check-adapter` and an audit say about each of them.

Every fault is made anew for each test, so that what its builds share is shared by them alone. To
add one: a function that gives a memory class or a policy, the checks that fail with a part of what
they say, and what an audit does, either the error that it ends with or the J and the note it gives.
"""

from __future__ import annotations

import itertools
import re
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism import Benchmark, Block, Exposure, Record, load_benchmark
from routeprism.errors import ContractError, OwnCodeError, PeekError
from routeprism.landscape import explore, shrink, worst_order
from routeprism.orders import parse_schedule
from routeprism.policies import Event, as_policy, make_policy, own_source
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Pool
from routeprism.routes import choose_checks
from routeprism.routes.conformance import check_adapter


class Newest:
    """A sound memory, which every fault changes in one place: it keeps the three newest."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> Any:
        return [record.id for record in self.records[-3:]]

    def expose(self, query: str) -> Any:
        return self.records[-3:]


# --- leaks -------------------------------------------------------------------------------------


def table_by_id() -> type:
    """Instances share a table, and read their own records from it: the first order stays."""
    table: dict[str, Record] = {}

    class Leak(Newest):
        def add(self, record: Record) -> None:
            super().add(record)
            table.setdefault(record.id, record)

        def retained(self) -> Any:
            own = {record.id for record in self.records}
            return [key for key in table if key in own][-3:]

        def expose(self, query: str) -> Any:
            return [table[key] for key in self.retained()]

    return Leak


def database() -> type:
    """Instances share a database, which lists rows in the sequence they first came in."""
    rows = sqlite3.connect(":memory:")
    rows.execute("CREATE TABLE kept (id TEXT PRIMARY KEY, at INTEGER)")

    class Leak(Newest):
        connection = rows

        def add(self, record: Record) -> None:
            super().add(record)
            at = rows.execute("SELECT count(*) FROM kept").fetchone()[0]
            rows.execute("INSERT OR IGNORE INTO kept VALUES (?, ?)", (record.id, at))

        def retained(self) -> Any:
            own = {record.id for record in self.records}
            entries = rows.execute("SELECT id FROM kept ORDER BY at").fetchall()
            return [key for (key,) in entries if key in own][-3:]

        def expose(self, query: str) -> Any:
            return self.retained()

    return Leak


def class_attribute() -> type:
    """All instances append to one list."""

    class Leak(Newest):
        shared: list[Record] = []  # noqa: RUF012 (that is the fault)

        def __init__(self) -> None:
            self.records = self.shared

    return Leak


def cache_by_text() -> type:
    """Instances share what they noted of each text when it first came."""
    ranks: dict[str, int] = {}

    class Leak(Newest):
        def add(self, record: Record) -> None:
            ranks.setdefault(record.text, len(ranks))
            self.records = sorted([*self.records, record], key=lambda r: ranks[r.text])

    return Leak


def table_by(key: Callable[[Record], Any]) -> Callable[[], type]:
    """Instances share a table with a key of their own; pools, too, if it is the same in each."""

    def make() -> type:
        ranks: dict[Any, int] = {}

        class Leak(Newest):
            def add(self, record: Record) -> None:
                ranks.setdefault(key(record), len(ranks))
                self.records = sorted([*self.records, record], key=lambda r: ranks[key(r)])

        return Leak

    return make


def number_in_id(record: Record) -> int:
    """Read the number of a record as an integer key."""
    return int(re.split("[-r]", record.id)[-1])


def some_records() -> type:
    """Instances share a table of records that say "two" alone; the fifth pool has four."""
    table: dict[str, int] = {}

    class Leak(Newest):
        def add(self, record: Record) -> None:
            self.records.append(record)
            if " two" in record.text:
                table.setdefault(record.id, len(table))

        def retained(self) -> Any:
            last = [record.id for record in self.records if record.id in table]
            return sorted(last, key=table.__getitem__)[-1:] or super().retained()

        def expose(self, query: str) -> Any:
            return self.retained()

    return Leak


def reset_by_each() -> type:
    """Each new instance empties the store of those before it."""
    store: list[Record] = []

    class Leak(Newest):
        def __init__(self) -> None:
            store.clear()
            self.records = store

    return Leak


# --- peeking -----------------------------------------------------------------------------------


class WantsTheQuestion:
    """Its construction asks for the question."""

    name = "wants"

    def build(self, arrivals: Sequence[Record], question: str) -> Any:
        return arrivals


class ForgetsWhatWasShown(Newest):
    """Each question drops a record."""

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-3:]

    def expose(self, query: str) -> Any:
        records = self.records
        self.records = self.records[1:]
        return records


def remembers_questions(shared: bool) -> Callable[[], type]:
    """It shows more after more questions; state() and retained() say nothing of it."""

    def make() -> type:
        everybody: set[str] = set()

        class Peek(Newest):
            def __init__(self) -> None:
                super().__init__()
                self.queries = everybody if shared else set()

            def expose(self, query: str) -> Any:
                self.queries.add(query)
                return self.records[-3:][: len(self.queries)]

        return Peek

    return make


# --- mutation ----------------------------------------------------------------------------------


class Stepping:
    """A sound incremental policy: the newest two."""

    name = "stepping"

    def build(self, arrivals: Sequence[Record]) -> Any:
        state = self.start()
        for record in arrivals:
            state = self.step(state, record)
        return self.finish(state)

    def start(self) -> Any:
        return []

    def step(self, state: Any, record: Record) -> Any:
        return [*state, record][-2:]

    def finish(self, state: Any) -> Any:
        return Records(state)

    def key(self, state: Any) -> Any:
        return tuple(record.id for record in state)


class Records:
    """The memory of a policy."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = list(records)

    def retained(self) -> Any:
        return {record.id for record in self.records}

    def state(self) -> Any:
        return [record.id for record in self.records]

    def expose(self, query: str) -> Exposure:
        return Exposure(tuple(Block("record", r.text, frozenset({r.id})) for r in self.records))


class Mutating(Stepping):
    """Its step changes the state that it is given."""

    def step(self, state: Any, record: Record) -> Any:
        state.append(record)
        del state[:-2]
        return state


class MergesTooMuch(Stepping):
    """Its key leaves out the older of the two records, whose turn to go comes next."""

    def key(self, state: Any) -> Any:
        return state[-1].id if state else None


# --- chance ------------------------------------------------------------------------------------


def once_in(number: int) -> Callable[[], type]:
    """One build in so many keeps two records, not three.

    Its events explain lost records, so that an audit builds nothing for that purpose.
    """

    def make() -> type:
        builds = itertools.count(1)

        class Chance(Newest):
            def __init__(self) -> None:
                super().__init__()
                self.odd = next(builds) % number == 0

            def events(self) -> list[Event]:
                ids = [record.id for record in self.records]
                return [
                    Event("evict", old, new, at + 3)
                    for at, (old, new) in enumerate(zip(ids, ids[3:], strict=False))
                ]

            def retained(self) -> Any:
                return super().retained()[self.odd :]

            def expose(self, query: str) -> Any:
                return self.records[-3:][self.odd :]

        return Chance

    return make


def clock() -> type:
    """Its state holds the time."""

    class Clock(Newest):
        def state(self) -> Any:
            return time.perf_counter_ns()

    return Clock


# --- ids ---------------------------------------------------------------------------------------


class OwnIds(Newest):
    """It names its own ids."""

    def retained(self) -> Any:
        return [f"memory-{at}" for at, _ in enumerate(self.records)]


class ShowsWhatItDropped(Newest):
    """It shows the oldest record as well."""

    def expose(self, query: str) -> Any:
        return [self.records[0], *self.records[-3:]]


class Numbers(Newest):
    """It gives places instead of ids."""

    def retained(self) -> Any:
        return range(len(self.records))


# --- exceptions --------------------------------------------------------------------------------


class BreaksWhenMade(Newest):
    def __init__(self) -> None:
        raise OSError("no room")


class BreaksWhenAdded(Newest):
    def add(self, record: Record) -> None:
        super().add(record)
        if len(self.records) == 3:
            raise KeyError(record.position)


class BreaksWhenRetained(Newest):
    def retained(self) -> Any:
        return 1 // 0


class BreaksInOtherOrders(Newest):
    """It takes records in source order alone."""

    def add(self, record: Record) -> None:
        if self.records and record.position < self.records[-1].position:
            raise ValueError("too late")
        super().add(record)


class BreaksWhenShown(Newest):
    def expose(self, query: str) -> Any:
        raise RuntimeError("no index")


class BreaksWhenClosed(Newest):
    def close(self) -> None:
        raise RuntimeError("already closed")


class Leaves(Newest):
    def add(self, record: Record) -> None:
        sys.exit(0)


class Stop(BaseException):
    """A signal of a framework's own, which no `except Exception` catches."""


class StopsTheFramework(Newest):
    def add(self, record: Record) -> None:
        raise Stop("enough")


class StateIsNoJson(Newest):
    def state(self) -> Any:
        return {"kept": set()}


# --- size, sources -----------------------------------------------------------------------------


class Slow(Newest):
    """Takes its time over every record."""

    def add(self, record: Record) -> None:
        time.sleep(0.0005)
        super().add(record)


class Huge(Newest):
    """Shows a megabyte for every question."""

    def expose(self, query: str) -> Any:
        return [("word " * 200_000, self.retained())]


class WithoutSources(Newest):
    """Compiles a text that names no records."""

    def expose(self, query: str) -> Any:
        return [("They moved.", [])]


class Silent(Newest):
    """Shows nothing."""

    def expose(self, query: str) -> Any:
        return []


# --- the catalogue -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """A broken memory, and what is said about it."""

    make: Callable[[], Any]
    checks: dict[str, str] = field(default_factory=dict)
    """The checks that fail → a part of what they say; empty where all pass."""
    error: type[Exception] | None = None
    """What an audit ends with; None where it gives numbers."""
    said: str = ""
    """A part of that error's message, or of a note."""
    overlap: float | None = None
    """J, where the audit gives numbers; None where the memory leaks."""


SHARED = "builds share state: built after the same records were built in the opposite order"
SAME = "two builds from the same records in the same order differ"
J = 0.2
"""Of the sound memory: pools of 4, 4, 6, 5, 6, 7 records, so (2/4 + 2/4 + 0 + 1/5 + 0 + 0) / 6."""

CATALOGUE = {
    "leak: table by id": Fault(
        table_by_id,
        {"users": "of user 'ann' is shown to user 'ben' for the question "},
        ContractError,
        SHARED,
    ),
    "leak: database": Fault(database, {"isolation": SHARED}, ContractError, SHARED),
    "leak: class attribute": Fault(
        class_attribute,
        {"users": "of user 'moving' is retained for user 'ben'"},
        said="the record 'u01-r1' of user 'u01' is retained for user 'u02'",
    ),
    "leak: cache by text": Fault(cache_by_text, {"isolation": SHARED}, ContractError, SHARED),
    "leak: table by position": Fault(
        table_by(lambda record: record.position), {"isolation": SHARED}, ContractError, SHARED
    ),
    "leak: table by beginning": Fault(
        table_by(lambda record: record.text[:30]), {"isolation": SHARED}, ContractError, SHARED
    ),
    "leak: table by first turn": Fault(
        table_by(lambda record: record.turns[0]), {"isolation": SHARED}, ContractError, SHARED
    ),
    "leak: table by user's words": Fault(
        table_by(lambda record: record.user_text[:30]),
        {"isolation": SHARED},
        ContractError,
        SHARED,
    ),
    "leak: table by words without digits": Fault(
        table_by(lambda record: tuple(filter(str.isalpha, record.text.lower().split()))),
        {"isolation": SHARED},
        ContractError,
        SHARED,
    ),
    "leak: table by number in id": Fault(
        table_by(number_in_id), {"isolation": SHARED}, ContractError, SHARED
    ),
    "leak: some records": Fault(some_records, {"isolation": SHARED}, ContractError, SHARED),
    "leak: reset by each": Fault(
        reset_by_each,
        {"users": "of user 'ann' is shown to user 'ben' for the question "},
        said="two builds that are open at the same time influence each other",
        overlap=J,
    ),
    "peek: wants the question": Fault(
        lambda: WantsTheQuestion(),
        {"contract": "construction receives the arriving records and nothing else"},
        PeekError,
        "construction receives the arriving records and nothing else",
    ),
    "peek: forgets what was shown": Fault(
        lambda: ForgetsWhatWasShown,
        {"no question leakage": "changed when questions were asked"},
        PeekError,
        "changed while it was exposed",
    ),
    "peek: remembers questions": Fault(
        remembers_questions(shared=False),
        {"no question leakage": "is shown something else after other questions"},
        PeekError,
        "depends on the questions that were asked before it",
    ),
    "peek: all remember questions": Fault(
        remembers_questions(shared=True),
        {"determinism": SAME},
        ContractError,
        SAME,
    ),
    "mutation: step changes the state": Fault(
        lambda: Mutating, {"merging": "merged states gave different"}, overlap=0.0
    ),
    "mutation: key merges too much": Fault(
        lambda: MergesTooMuch, {"merging": "merged states gave different records"}, overlap=0.0
    ),
    "chance: every second build": Fault(once_in(2), {"determinism": SAME}, ContractError, SAME),
    "chance: once in thirty builds": Fault(once_in(30), {"determinism": SAME}, ContractError, SAME),
    "chance: the clock": Fault(
        clock, {"determinism": SAME}, ContractError, "differs each time it is read"
    ),
    "ids: its own": Fault(
        lambda: OwnIds,
        {"ids": "retained() names 'memory-0', which never arrived"},
        ContractError,
        "retains 'memory-0', which user 'u01' does not have",
    ),
    "ids: shows what it dropped": Fault(
        lambda: ShowsWhatItDropped,
        {"walk, list": "which the list of 3 records leaves out"},
        ContractError,
        "without retaining it",
    ),
    "ids: numbers": Fault(
        lambda: Numbers,
        {"ids": "retained() names '0', which never arrived"},
        ContractError,
        "retains '0', which user 'u01' does not have",
    ),
    "exception: when made": Fault(
        lambda: BreaksWhenMade,
        {"contract": "in __init__() raised OSError: no room"},
        OwnCodeError,
        "BreaksWhenMade, user 'u01', order forward, in __init__() raised OSError: no room",
    ),
    "exception: when a record is added": Fault(
        lambda: BreaksWhenAdded,
        {"contract": "in add(), record 'moving-2' raised KeyError: 2"},
        OwnCodeError,
        "user 'u01', order forward, in add(), record 'u01-r2' raised KeyError: 2",
    ),
    "exception: in every order but one": Fault(
        lambda: BreaksInOtherOrders,
        {"isolation": "order opposite, in add(), record 'moving-3' raised ValueError: too late"},
        OwnCodeError,
        "user 'u01', order replay, in add(), record 'u01-r2' raised ValueError: too late",
    ),
    "exception: when it says what it retains": Fault(
        lambda: BreaksWhenRetained,
        {"contract": "in retained() raised ZeroDivisionError"},
        OwnCodeError,
        "user 'u01', order forward, in retained() raised ZeroDivisionError",
    ),
    "exception: when shown": Fault(
        lambda: BreaksWhenShown,
        {"contract": "in expose() raised RuntimeError: no index"},
        OwnCodeError,
        "user 'u01', order forward, in expose(), question 'u01-q0' raised RuntimeError: no index",
    ),
    "exception: when closed": Fault(
        lambda: BreaksWhenClosed,
        {"contract": "in close() raised RuntimeError: already closed"},
        OwnCodeError,
        "user 'u01', order forward, in close() raised RuntimeError: already closed",
    ),
    "exception: leaves the program": Fault(
        lambda: Leaves,
        {"contract": "in add(), record 'moving-0' raised SystemExit(0), which would have ended"},
        OwnCodeError,
        "in add(), record 'u01-r0' raised SystemExit(0), which would have ended RoutePrism",
    ),
    "exception: not derived from Exception": Fault(
        lambda: StopsTheFramework,
        {"contract": "in add(), record 'moving-0' raised Stop: enough"},
        OwnCodeError,
        "in add(), record 'u01-r0' raised Stop: enough",
    ),
    "exception: state is no JSON": Fault(
        lambda: StateIsNoJson,
        {"contract": "state() must give plain JSON values"},
        ContractError,
        "state() must give plain JSON values",
    ),
    "size: slow": Fault(lambda: Slow, said="12 of 12 routes were built a second time", overlap=J),
    "size: huge": Fault(lambda: Huge, said="12 of 12 routes were built a second time", overlap=J),
    "sources: none": Fault(
        lambda: WithoutSources,
        {"provenance": "shows 'They moved.' without sources"},
        said="shows text without sources in",
        overlap=1.0,
    ),
    "sources: nothing shown": Fault(
        lambda: Silent, said="shows nothing to any question: J is 1", overlap=1.0
    ),
    "none: the sound memory": Fault(
        lambda: Newest, said="no build influenced another on 6 of 6 pools", overlap=J
    ),
    "none: the sound incremental policy": Fault(lambda: Stepping, overlap=0.0),
}


@pytest.fixture(scope="module")
def six_pools() -> Benchmark:
    sample = load_benchmark("sample")
    return replace(sample, cases=sample.cases[:6])


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_check_adapter_names_the_fault(name: str) -> None:
    fault = CATALOGUE[name]
    try:
        policy = as_policy(fault.make())
    except PeekError as error:  # refused before any check
        assert fault.checks["contract"] in str(error)
        return
    failed = {
        check.name: check.message for check in check_adapter(policy) if check.outcome == "failed"
    }
    assert list(failed) == list(fault.checks)
    for check, text in fault.checks.items():
        assert text in failed[check]


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_an_audit_ends_or_says_it(name: str, six_pools: Benchmark) -> None:
    fault = CATALOGUE[name]
    if fault.error is not None:
        with pytest.raises(fault.error) as ended:
            routeprism.audit(six_pools, fault.make(), resamples=100, schedules=["replay"])
        assert type(ended.value) is fault.error
        assert fault.said in str(ended.value)
        return
    result = routeprism.audit(six_pools, fault.make(), resamples=100, schedules=["replay"])
    if fault.overlap is None:
        assert any(fault.said in sentence for sentence in result.sentences)
        return
    assert result.value("J").estimate == pytest.approx(fault.overlap)
    assert any(fault.said in note for note in result.notes)


# --- every order -------------------------------------------------------------------------------


@pytest.mark.parametrize("broken", [Mutating, MergesTooMuch])
def test_exact_numbers_come_from_building_where_merged_states_are_wrong(broken: type) -> None:
    """The newest two of four: of 24 orders, 4 keep the same two as source order."""
    pool = Pool("ann", tuple(Record(f"r{at}", at, f"Words number {at}.") for at in range(4)))
    policy = as_policy(broken)
    exploration = explore(policy, pool)
    assert (exploration.method, exploration.changed.count, exploration.changed.total) == (
        "replayed",
        20,
        24,
    )
    assert (
        "breaks a rule of incremental policies, so its merged states were not used"
        in exploration.note
    )
    with pytest.raises(ContractError, match=r"of 24 orders checked, merged states gave different"):
        explore(policy, pool, method="merged")
    worst = worst_order(policy, pool, lambda memory: "r0" in memory.retained())
    assert (worst.value, worst.forward) == (0, 0)
    smallest = shrink(policy, pool, lambda memory: frozenset(memory.retained()))
    assert (smallest.order, smallest.exact) == ((0, 2, 1, 3), True)


def test_sound_merged_states_are_used_and_their_check_is_noted() -> None:
    pool = Pool("ann", tuple(Record(f"r{at}", at, f"Words number {at}.") for at in range(7)))
    exploration = explore(as_policy(Stepping), pool)
    assert (exploration.method, exploration.changed.count, exploration.orders) == (
        "merged",
        4800,
        5040,
    )
    assert exploration.note == (
        "merged states of stepping were compared with building up to 200 orders of each pool, and "
        "agreed"
    )


@pytest.mark.parametrize("leak", [table_by_id, database, cache_by_text])
def test_shared_state_is_refused_by_every_command_that_compares_orders(
    leak: Callable[[], type], six_pools: Benchmark
) -> None:
    with pytest.raises(ContractError, match=SHARED):
        routeprism.explore_orders(six_pools, leak(), resamples=100)
    with pytest.raises(ContractError, match=SHARED):
        assert_order_stable(leak(), six_pools)


def test_a_memory_that_cannot_take_copies_is_audited_and_that_is_said(six_pools: Benchmark) -> None:
    class Parses(Newest):
        def add(self, record: Record) -> None:
            assert int(record.id.rpartition("r")[2]) < 100
            super().add(record)

    result = routeprism.audit(six_pools, Parses, resamples=100, schedules=["replay"])
    assert result.value("J").estimate == pytest.approx(J)
    assert any("pools shared state between builds could not be checked" in n for n in result.notes)


# --- what an audit checks, and what it leaves alone -----------------------------------------------


class Counting(Newest):
    """Counts its builds."""

    built = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).built += 1


def builds_of(
    six_pools: Benchmark,
    attributes: dict[str, Any],
    schedules: Sequence[str] = ("replay",),
    **settings: Any,
) -> tuple[int, Any]:
    kind = type("Counted", (Counting,), {"built": 0, **attributes})
    result = routeprism.audit(six_pools, kind, resamples=100, schedules=schedules, **settings)
    return kind.built, result  # type: ignore[attr-defined]


def test_no_number_depends_on_the_checks(six_pools: Benchmark) -> None:
    """12 routes, 12 rebuilt, 6 builds for isolation on each pool, and 6 more on the first two.

    The additional ones are of copies that differ in positions and beginnings as well.
    """
    number, usual = builds_of(six_pools, {})
    none, without = builds_of(six_pools, {}, rebuilds=0)  # parts of routes explain losses
    assert number == none + 12 + 48
    assert without.rows == usual.rows
    assert any("was not checked, because rebuilds=0 was given" in note for note in without.notes)
    few, sampled = builds_of(six_pools, {}, rebuilds=5)
    assert few == none + 5 + 48
    assert sampled.rows == usual.rows
    assert any("Counted: 5 of 12 routes were built a second time" in n for n in sampled.notes)


def test_what_costs_money_is_built_again_only_where_that_is_asked_for(six_pools: Benchmark) -> None:
    number, result = builds_of(six_pools, {"costly": True}, ())
    assert number == 12
    assert any("because building it may cost money or go over a network" in n for n in result.notes)
    assert builds_of(six_pools, {"costly": True}, (), rebuilds=4)[0] == 12 + 4 + 48


@pytest.mark.parametrize(
    ("spec", "rebuilds", "routes", "pools"),
    [
        ("http:url=http://127.0.0.1:1", None, 0, 0),
        ("http:url=http://127.0.0.1:1", 5, 5, 12),
        ("command:run=cat", None, 1, 0),
        ("command:run=cat", 0, 0, 0),
        ("focal", 50, 0, 0),
    ],
)
def test_systems_outside_are_built_again_where_that_is_asked_for(
    spec: str, rebuilds: int | None, routes: int, pools: int
) -> None:
    policy = make_policy(spec)
    schedules = [parse_schedule("replay")]
    choice = choose_checks([policy], schedules, 30, seed=1, rebuilds=rebuilds)
    assert len(choice.rebuilt.get(policy.name, ())) == routes
    assert len(choice.isolated.get(policy.name, ())) == pools
    assert choice == choose_checks([policy], schedules, 30, seed=1, rebuilds=rebuilds)


def test_declared_chance_is_not_checked_and_that_is_said(six_pools: Benchmark) -> None:
    number, result = builds_of(six_pools, {"deterministic": False})
    assert number == 12
    assert any("because it declares deterministic = False" in note for note in result.notes)


def test_built_in_policies_are_built_once(six_pools: Benchmark) -> None:
    result = routeprism.audit(six_pools, "focal", resamples=100, schedules=["replay"])
    assert not any("second time" in note for note in result.notes)


CONFIGURED = """
TABLE = {}


class Shared:
    def __init__(self, k=3):
        self.k, self.ids = k, set()

    def add(self, record):
        TABLE.setdefault(record.id, record)
        self.ids.add(record.id)

    def retained(self):
        return [key for key in TABLE if key in self.ids][-self.k :]

    def expose(self, query):
        return self.retained()


class Costly(Shared):
    costly = True
    arrivals = 0

    def add(self, record):
        Costly.arrivals += 1
        super().add(record)
"""


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "configured_memories.py").write_text(CONFIGURED)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "configured_memories", raising=False)
    return "configured_memories"


def test_a_memory_with_parameters_is_checked_like_one_without(
    configured: str, six_pools: Benchmark
) -> None:
    for name in (f"{configured}:Shared", f"{configured}:Shared:k=2"):
        assert own_source(make_policy(name))
        with pytest.raises(ContractError, match=SHARED):
            routeprism.audit(six_pools, name, resamples=100, schedules=["replay"])


def test_a_costly_memory_with_parameters_is_not_built_again(
    configured: str, six_pools: Benchmark
) -> None:
    result = routeprism.audit(six_pools, f"{configured}:Costly:k=2", resamples=100)
    arrivals = 2 * sum(len(case.pool) for case in six_pools.cases)
    assert sys.modules[configured].Costly.arrivals == arrivals
    assert any("may cost money" in note for note in result.notes)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_memory_that_counts_questions_is_refused(six_pools: Benchmark, number: int) -> None:
    class EverySecond(Newest):
        exposures = 0

        def expose(self, query: str) -> Any:
            self.exposures += 1
            return list(super().expose(query))[self.exposures % 2 :]

    cases = tuple(replace(case, questions=case.questions[:number]) for case in six_pools.cases)
    assert {len(case.questions) for case in cases} == {number}
    with pytest.raises(PeekError, match="depends on the questions that were asked before"):
        routeprism.audit(
            replace(six_pools, cases=cases), EverySecond, resamples=100, schedules=["replay"]
        )
