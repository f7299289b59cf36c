"""Repairs: what they release, rebuild and bring back, and what they cost, by hand and by law."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.orders import parse_arrival
from routeprism.policies import (
    as_policy,
    can_revive,
    complete_counts,
    connect_model,
    count_calls_per_write,
    make_policy,
    parse_interface,
    revive_memory,
)
from routeprism.policies.recent import Recent
from routeprism.policies.remedies import (
    Fallback,
    FallbackMemory,
    HeldMemory,
    Hold,
    Rebuild,
    RebuiltMemory,
    TimeTied,
    count_rebuilds,
    hold_back,
    list_remedies,
    name_exposures,
    sort_events,
)
from routeprism.records import Record, event_order, load_benchmark

POOL = [Record(f"r{n}", n, f"note number {n} about parcel{n}") for n in range(8)]


def arrive(order: Sequence[int], pool: list[Record] | None = None) -> list[Record]:
    return [(pool or POOL)[position] for position in order]


@dataclass
class Window:
    """A live memory: keeps the last three records that were added."""

    records: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-3:]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Record]:
        return self.records


def test_holding_back_releases_the_oldest_first() -> None:
    released, content = hold_back(arrive([2, 0, 1, 3]), 1)
    assert [record.position for record in released] == [0, 1, 2]
    assert [record.position for record in content] == [3]


@given(st.data())
def test_holding_back_w_records_sorts_disorder_of_w(data: st.DataObject) -> None:
    w = data.draw(st.integers(1, 3))
    size = data.draw(st.integers(1, 8))
    order = parse_arrival(f"jitter:w={w}").sample(size, data.draw(st.integers(0, 50)))
    released, content = hold_back(arrive(order), w)
    positions = [record.position for record in (*released, *content)]
    assert positions == sorted(positions)


@pytest.mark.parametrize(
    ("order", "every", "writes", "rebuilds"),
    [
        ([0, 1, 2, 3], None, 4, 0),  # in order: one write each
        ([1, 0], None, 1 + 2, 1),
        ([3, 2, 1, 0], None, 1 + 2 + 3 + 4, 3),
        ([0, 1, 2, 4, 3], None, 4 + 5, 1),
        ([0, 1, 2, 4, 3], 2, 4 + 3, 1),  # late at place 3: from the snapshot after 2 records
        ([0, 1, 2, 3, 5, 4], 4, 5 + 2, 1),
        ([0, 1, 1, 2], None, 3, 0),  # a record that arrives again is not written again
    ],
)
def test_writes_of_rebuilding_are_those_counted_by_hand(
    order: list[int], every: int | None, writes: int, rebuilds: int
) -> None:
    count = count_rebuilds(arrive(order), every)
    assert (count.writes, count.rebuilds) == (writes, rebuilds)


@pytest.mark.parametrize("every", [None, 2, 3])
def test_a_live_memory_rebuilds_with_the_writes_that_are_counted(every: int | None) -> None:
    for order in itertools.permutations(range(5)):
        live = RebuiltMemory(Window, every)
        for record in arrive(order):
            live.add(record)
        assert live.writes == count_rebuilds(arrive(order), every).writes
        assert live.retained() == {"r2", "r3", "r4"}
        assert [record.id for record in live.expose("")] == ["r2", "r3", "r4"]


@dataclass
class Asking(Window):
    """Asks a scripted model once for each record that is added, and counts it."""

    offline = True
    asked: int = 0

    def add(self, record: Record) -> None:
        self.asked += 1
        super().add(record)

    def counts(self) -> dict[str, int]:
        return {"consultations": self.asked}


@pytest.mark.parametrize("every", [None, 2, 3])
def test_model_calls_of_rebuilding_are_those_of_every_build(every: int | None) -> None:
    """One call for each write: the live memory counts them, and an audit computes the same."""
    for order in itertools.permutations(range(5)):
        live = RebuiltMemory(Asking, every)
        for record in arrive(order):
            live.add(record)
        built: Any = Rebuild(as_policy(Asking), every).build(arrive(order))
        assert live.model_calls == live.writes == built.counts()["model_calls"]


@pytest.mark.parametrize(
    ("repair", "calls"),
    [
        ("hold:w=1", 3),  # one record of the four is still held back
        ("rebuild", 1 + 2 + 3 + 4),  # each record of a reversal makes the memory start again
        ("checkpoint:every=2", 1 + 2 + 3 + 4),  # a late record at the first place: no snapshot
        ("log-fallback:k=1", 4),
    ],
)
def test_model_calls_are_those_counted_by_hand(repair: str, calls: int) -> None:
    wrap = make_policy(f"{repair}(raw)")
    policy = replace(wrap, inner=as_policy(Asking))  # type: ignore[type-var]
    built: Any = policy.build(arrive([3, 2, 1, 0]))
    assert built.counts()["model_calls"] == calls


class Declaring(Window):
    """Declares two calls for each record and counts none."""

    calls_per_add = 2


class Silent(Window):
    """Says nothing about the calls that it makes."""


@pytest.mark.parametrize(
    ("policy", "calls"),
    [
        (Rebuild(Recent(3)), 0),  # asks no model
        (Rebuild(as_policy(Declaring)), 2 * (1 + 2 + 3 + 4)),
        (Hold(as_policy(Declaring), 1), 2 * 3),
        (Rebuild(as_policy(Silent)), None),
        (Rebuild(as_policy(Asking)), 1 + 2 + 3 + 4),
    ],
)
def test_model_calls_are_zero_declared_or_unknown(policy: Any, calls: int | None) -> None:
    own = policy.build(arrive([3, 2, 1, 0])).counts()
    counts = complete_counts(own, count_calls_per_write(policy))
    assert counts.get("model_calls") == calls


def test_rebuilding_gives_the_same_memory_in_every_order() -> None:
    for policy in (Rebuild(Recent(3)), Rebuild(Recent(3), 2)):
        states = {
            str(policy.build(arrive(order)).state()) for order in itertools.permutations(range(5))
        }
        assert len(states) == 1


@dataclass(frozen=True)
class Reading:
    """Reads each record through `Record.derive`, and ties that to source order on demand."""

    reads: list[str]
    name: str = "reading"
    operations: tuple[str, ...] = ("reading",)

    def __hash__(self) -> int:
        return id(self)

    def fixed(self, operation: str) -> Reading:
        return self

    def build(self, arrivals: Sequence[Record]) -> Any:
        for record in arrivals:
            record.derive(self._read)
        return Recent(3).build(arrivals)

    def _read(self, record: Record) -> str:
        self.reads.append(record.id)
        return record.text


def test_a_text_is_read_once_whatever_the_number_of_builds_by_time() -> None:
    # times run against the positions: every record but the middle one gets a new position
    pool = [Record(f"r{n}", n, f"note {n}", f"2024-01-0{5 - n}") for n in range(5)]
    reading = Reading([])
    for order in itertools.permutations(range(5)):
        TimeTied(reading).build(arrive(order, pool))
    assert sorted(reading.reads) == ["r0", "r1", "r2", "r3", "r4"]


def test_a_record_elsewhere_is_the_same_object_every_time() -> None:
    record = Record("r1", 1, "note", "2024-01-01")
    assert record.at(1) is record
    assert record.at(4) is record.at(4)
    assert record.at(4) == replace(record, position=4)


@pytest.mark.parametrize("interface", ["budget", "bm25:k=2", "all:display=arrival"])
def test_repaired_memories_of_the_same_name_show_the_same(interface: str) -> None:
    pool = [Record(f"r{n}", n, f"note {n} parcel{n}", f"2024-01-0{1 + n % 3}") for n in range(4)]
    queries = ("note", "parcel1 parcel2", "parcel3")
    exposures: dict[Any, Any] = {}
    memories = []  # a name is valid while the memories live
    for policy in ("recent:k=2", "focal"):
        inner = make_policy(policy, parse_interface(interface))
        for repaired in (inner, *list_remedies(inner), Hold(inner, 1, "hidden")):
            for order in itertools.permutations(range(4)):
                memories.append(memory := repaired.build(arrive(order, pool)))
                name = name_exposures(memory)
                assert name is not None
                contexts = [memory.expose(query) for query in queries]
                assert exposures.setdefault(name, contexts) == contexts
    assert len(exposures) < len(memories) / 2


def test_memories_of_ones_own_are_always_asked() -> None:
    assert name_exposures(Rebuild(as_policy(Window)).build(arrive([1, 0]))) is None


def test_event_order_is_by_time_then_by_position() -> None:
    dated = [
        Record("a", 0, "first in the file", "2024-05-03"),
        Record("b", 1, "second in the file", "2024-05-01"),
        Record("c", 2, "third in the file", "2024-05-01"),
        Record("d", 3, "without a date: as old as the record before it"),
    ]
    assert [record.id for record in sort_events(dated)] == ["b", "c", "d", "a"]
    assert Rebuild(Recent(1)).build(dated).retained() == {"a"}


DAYS = [None, "2024-05-01", None, "2024-05-03", "2024-05-03", None, "no date at all", "2024-05-02"]
SOME_DATED = [replace(r, timestamp=day) for r, day in zip(POOL, DAYS, strict=True)]


@given(st.permutations(range(8)))
def test_records_without_a_time_follow_the_record_before_them(order: list[int]) -> None:
    """The live log ends as the whole pool is sorted, with the writes that are counted."""
    live = RebuiltMemory(Window, 3)
    for record in arrive(order, SOME_DATED):
        live.add(record)
    assert live.log == sort_events(SOME_DATED)
    assert live.writes == count_rebuilds(arrive(order, SOME_DATED), 3).writes
    readable = [replace(r, timestamp=None) if r.id == "r6" else r for r in SOME_DATED]
    places = event_order(readable)
    assert [record.id for record in live.log] == [readable[place].id for place in places]


@given(st.data())
def test_holding_back_keeps_records_without_a_time_in_their_place(data: st.DataObject) -> None:
    w = data.draw(st.integers(1, 3))
    days = data.draw(st.lists(st.booleans(), min_size=8, max_size=8))
    pool = [
        replace(r, timestamp=f"2024-05-{r.position + 1:02}") if d else r
        for r, d in zip(POOL, days, strict=True)
    ]
    order = parse_arrival(f"jitter:w={w}").sample(8, data.draw(st.integers(0, 50)))
    released, content = hold_back(arrive(order, pool), w)
    assert [*released, *content] == pool


def test_records_at_the_same_place_are_all_kept() -> None:
    """Your own code may number no record; only a record that arrives again is left out."""
    live = RebuiltMemory(Window)
    twins = [Record("a", 0, "one"), Record("b", 0, "two"), Record("a", 0, "one")]
    for record in twins:
        live.add(record)
    assert [record.id for record in live.log] == ["a", "b"]


def test_a_record_that_is_held_twice_is_shown_once() -> None:
    live = HeldMemory(Window(), w=3)
    built = Hold(Recent(3), 3).build(arrive([0, 1, 1]))
    for record in arrive([0, 1, 1]):
        live.add(record)
    assert [block.sources for block in live.expose("")] == [{"r0"}, {"r1"}]
    assert [block.sources for block in built.expose("").blocks] == [{"r0"}, {"r1"}]


@pytest.mark.parametrize(("size", "w", "delay"), [(5, 2, 2), (3, 2, 2), (2, 2, 1), (1, 2, 0)])
def test_the_delay_is_the_number_of_later_arrivals_that_a_record_waits_for(
    size: int, w: int, delay: int
) -> None:
    built: Any = Hold(Recent(3), w).build(arrive(range(size)))
    assert built.counts()["delay"] == delay


@pytest.mark.parametrize("is_shown", [True, False])
def test_held_records_are_shown_or_not(is_shown: bool) -> None:
    live = HeldMemory(Window(), w=2, shown=is_shown)
    policy = Hold(Recent(3), 2, "shown" if is_shown else "hidden")
    order = [1, 0, 2, 4, 3]
    for record in arrive(order):
        live.add(record)
    built = policy.build(arrive(order))
    expected = {"r0", "r1", "r2"} | ({"r3", "r4"} if is_shown else set())
    assert live.retained() == built.retained() == expected
    assert {s for block in live.expose("") for s in block.sources} == built.expose("").sources
    assert live.writes == built.counts()["writes"] == 3  # type: ignore[attr-defined]
    live.flush()
    assert live.retained() == {"r2", "r3", "r4"}


def test_the_log_brings_dropped_records_back() -> None:
    order = [0, 1, 2, 3, 4, 5]
    built = Fallback(Recent(2), 1).build(arrive(order))
    live = FallbackMemory(Window(), 1)
    for record in arrive(order):
        live.add(record)
    assert built.expose("Where is parcel1?").sources == {"r4", "r5", "r1"}
    assert {s for b in live.expose("Where is parcel1?") for s in b.sources} == {
        *("r3", "r4", "r5", "r1")
    }
    assert built.retained() == live.retained() == {record.id for record in POOL[:6]}


def test_operations_follow_event_time() -> None:
    tied = make_policy("by-time(focal)")
    states = {
        tuple(sorted(tied.build(arrive(order)).retained()))
        for order in itertools.permutations(range(4))
    }
    assert len(states) == 1
    with pytest.raises(SpecError, match="declares no operation"):
        TimeTied(Recent(3))


def test_repairs_are_named_by_specs() -> None:
    for name in (
        "hold:w=2(recent:k=3)",
        "hold:w=1,held=hidden(recent:k=3)",
        "rebuild(focal)",
        "checkpoint:every=4(recent:k=2)",
        "log-fallback:k=2(recent:k=3)",
        "hold:w=1(rebuild(recent:k=3))",
    ):
        assert make_policy(name).name == name
    with pytest.raises(SpecError, match=r"Expected 'hold\(SPEC\)'"):
        make_policy("hold:w=2(recent:k=3")
    with pytest.raises(SpecError, match="one of shown, hidden"):
        make_policy("hold:held=maybe(recent)")


def test_standard_repairs_of_a_window() -> None:
    assert [policy.name for policy in list_remedies(make_policy("recent:k=3"))] == [
        "hold:w=1(recent:k=3)",
        "hold:w=2(recent:k=3)",
        "rebuild(recent:k=3)",
        "checkpoint:every=8(recent:k=3)",
        "recent:k=6",
        "log-fallback:k=3(recent:k=3)",
    ]


class Sized(Window):
    """Keeps as many records as it is told."""

    def __init__(self, size: int = 3) -> None:
        super().__init__()
        self.size = size

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-self.size :]


def test_the_default_budget_of_an_own_class_is_doubled() -> None:
    policies = list_remedies(as_policy(Sized), make=make_policy)
    (larger,) = [policy for policy in policies if policy.name.startswith("Sized:")]
    assert larger.name == "Sized:size=6"
    assert larger.build(POOL).retained() == {f"r{n}" for n in range(2, 8)}


@pytest.mark.parametrize(
    "repair", ["hold:w=2", "rebuild", "checkpoint:every=2", "log-fallback:k=1"]
)
def test_a_repaired_memory_is_revived_from_its_snapshot(repair: str) -> None:
    """A memory that a model builds is stored, so its repair has to come back as it was."""
    policy = connect_model(
        make_policy(f"{repair}(memochat:model=openai:m)"),
        lambda prompt: '{"topic": "drinks", "summary": "Drinks and habits."}',
    )
    records = load_benchmark("sample").cases[0].pool.records[::-1]
    assert can_revive(policy)
    built: Any = policy.build(records)
    revived: Any = revive_memory(policy, records, json.loads(json.dumps(built.snapshot())))
    assert revived.state() == built.state()
    assert revived.retained() == built.retained()
    assert revived.counts() == built.counts()
    assert revived.expose("Which drink?").context == built.expose("Which drink?").context


class AsyncDiary:
    """A policy with `async` methods whose memories are stored."""

    name = "diary"
    deterministic = False

    async def build(self, arrivals: Sequence[Record]) -> AsyncPages:
        return AsyncPages([record.id for record in arrivals])

    async def revive(self, arrivals: Sequence[Record], snapshot: Any) -> AsyncPages:
        return AsyncPages(snapshot)


@dataclass
class AsyncPages:
    pages: list[str]

    async def retained(self) -> list[str]:
        return self.pages

    async def state(self) -> list[str]:
        return self.pages

    async def expose(self, query: str) -> list[str]:
        return self.pages

    async def snapshot(self) -> list[str]:
        return self.pages


@pytest.mark.slow
def test_a_memory_of_an_asynchronous_policy_is_revived() -> None:
    policy = as_policy(AsyncDiary())
    records = load_benchmark("sample").cases[0].pool.records[::-1]
    assert can_revive(policy)
    built: Any = policy.build(records)
    revived: Any = revive_memory(policy, records, built.snapshot())
    assert revived.retained() == built.retained() == [record.id for record in records]
    built.close()
    revived.close()
