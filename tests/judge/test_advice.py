"""Repairs that an audit tries by itself: small memories with one known fault each."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

import routeprism
from routeprism import Record
from routeprism.experiments import try_repairs
from routeprism.judge import ADVICE, Promise
from routeprism.policies import as_policy, make_policy
from routeprism.records import Benchmark, Case, Pool, Question

from .rows import make_verdict

TEXTS = ("city: Lisbon", "dog: Bruno", "city: Porto", "boat: Cascais", "city: Faro")


def make_benchmark(users: int = 2, support: str = "n4", questions: int = 5) -> Benchmark:
    """Make users with five records, and questions that all need the same record."""
    cases = []
    for user in range(users):
        records = tuple(
            Record(f"u{user}{id}", at, f"{text} {user}", timestamp=f"2025-03-0{at + 1}")
            for at, (id, text) in enumerate(zip(("n0", "n1", "n2", "n3", "n4"), TEXTS, strict=True))
        )
        labels = {"given": frozenset({f"u{user}{support}"})}
        cases.append(
            Case(
                Pool(f"u{user}", records),
                tuple(
                    Question(f"q{user}-{at}", f"u{user}", f"Where {at}?", labels=labels)
                    for at in range(questions)
                ),
            )
        )
    return Benchmark("own", tuple(cases), "f" * 64, labels=("given",))


class Keeps:
    """Keeps every record, and shows all of them."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[tuple[str, str]]:
        return [(record.text, record.id) for record in self.select()]

    def select(self) -> Iterable[Record]:
        return sorted(self.records, key=lambda record: record.position)


class Overwrites(Keeps):
    """The last arrival about a key replaces the record of the same key."""

    def add(self, record: Record) -> None:
        key = record.text.partition(":")[0]
        self.records = [r for r in self.records if r.text.partition(":")[0] != key]
        self.records.append(record)


class OverwritesForSome(Overwrites):
    """Keeps every record of all users but the last three of twenty."""

    def add(self, record: Record) -> None:
        if record.id.startswith(("u17", "u18", "u19")):
            super().add(record)
        else:
            self.records.append(record)


class ShowsByArrival(Keeps):
    """Shows the same records in the order of arrival."""

    def select(self) -> Iterable[Record]:
        return self.records


class ShowsNewest(Keeps):
    """Shows the last three arrivals."""

    def select(self) -> Iterable[Record]:
        return self.records[-3:]


class Draws(Overwrites):
    deterministic = False


class Costly(Overwrites):
    costly = True


class Hides(Keeps):
    """Keeps records about boats, and shows none."""

    def select(self) -> Iterable[Record]:
        return [record for record in self.records if "boat" not in record.text]


class ShowsMoreReversed(Keeps):
    """Shows the first record alone if it has arrived first, else all."""

    def select(self) -> Iterable[Record]:
        first = min(self.records, key=lambda record: record.id)
        return [first] if self.records[0] is first else super().select()


def audit(memory: Any, benchmark: Benchmark | None = None, **settings: Any) -> Any:
    usual = {"schedules": ["replay"], "arrivals": [], "resamples": 100, "workers": 1, "rebuilds": 0}
    return routeprism.audit(benchmark or make_benchmark(), memory, **{**usual, **settings})


def list_advice(result: Any) -> list[tuple[str, str]]:
    return [(f.value["repair"], f.value["text"]) for f in result.findings if f.name == ADVICE]


def test_a_repair_that_brings_all_evidence_back_is_advised() -> None:
    """Ten questions lose n4 in reversal; rebuilding in event order keeps it."""
    result = audit(Overwrites)
    ((repair, text),) = list_advice(result)
    (verdict,) = result.verdicts
    assert (verdict.lost, verdict.repair, verdict.advice) == (10, repair, text)
    assert "shows the evidence of 10 instead of 5 of 10 questions" in text  # a mean of two orders
    assert text.endswith("(tried on 2 users of 2)")
    assert repair.endswith(f"({verdict.policy})")


@pytest.mark.parametrize(
    ("memory", "settings"),
    [
        (Keeps, {}),  # nothing is wrong
        (ShowsByArrival, {}),  # the same text in a different order is no fault
        (Costly, {}),  # building it again costs money
        (Draws, {"builds": 2}),
        (Hides, {"support": "n3"}),  # no repair shows a record that is kept and never shown
    ],
)
def test_no_repair_is_tried_or_none_helps(memory: Any, settings: Any) -> None:
    benchmark = make_benchmark(support=settings.pop("support", "n4"))
    assert list_advice(audit(memory, benchmark, **settings)) == []


def test_evidence_that_moves_is_a_reason_to_try() -> None:
    """Half of the questions need n0, the other half n4: reversal exchanges what is shown."""
    halves = [make_benchmark(2, support).cases for support in ("n0", "n4")]
    cases = tuple(
        Case(first.pool, (*first.questions[:3], *second.questions[3:]))
        for first, second in zip(*halves, strict=True)
    )
    benchmark = Benchmark("own", cases, "f" * 64, labels=("given",))
    result = audit(ShowsNewest, benchmark)
    (verdict,) = result.verdicts
    assert (verdict.level, verdict.severity) == ("evidence moves", "warning")
    assert len(list_advice(result)) == 1


def test_nothing_is_tried_where_nothing_can_be_concluded() -> None:
    """Two questions without labels are too few, whatever differs."""
    benchmark = make_benchmark(1, questions=2)
    cases = tuple(
        Case(case.pool, tuple(Question(q.id, q.user, q.text) for q in case.questions))
        for case in benchmark.cases
    )
    result = audit(ShowsNewest, Benchmark("own", cases, "f" * 64))
    (verdict,) = result.verdicts
    assert (verdict.level, verdict.severity) == ("inconclusive", "warning")
    assert list_advice(result) == []


def list_tried(memory: Any, benchmark: Benchmark) -> tuple[Any, list[int]]:
    """Audit a memory, and list the users on whom repairs are tried.

    A memory is built in two orders, and in both with each of six repairs; the tests of a loss take
    fewer builds than these.
    """
    builds: Counter[str] = Counter()

    class Counts(memory):  # type: ignore[misc]
        def add(self, record: Record) -> None:
            builds[record.id.partition("n")[0]] += not self.records
            super().add(record)

    result = audit(Counts, benchmark)
    users = [case.pool.user for case in benchmark.cases]
    return result, [at for at, user in enumerate(users) if builds[user] >= 2 + 6 * 2]


@pytest.mark.parametrize(
    ("memory", "users", "tried"),
    [
        # The three users who lose evidence, and four of the 17 others: each fourth.
        (OverwritesForSome, 20, [0, 4, 8, 12, 17, 18, 19]),
        # The first eight of all, who all lose, and four of the 12 others: each third.
        (Overwrites, 20, [*range(8), 8, 11, 14, 17]),
        (Overwrites, 3, [0, 1, 2]),
        (Overwrites, 9, [*range(9)]),
    ],
)
def test_repairs_are_tried_on_losing_users_and_a_few_others(
    memory: Any, users: int, tried: list[int]
) -> None:
    result, pools = list_tried(memory, make_benchmark(users, questions=1))
    assert pools == tried
    ((_, text),) = list_advice(result)
    assert text.endswith(f"(tried on {len(tried)} users of {users})")


def test_without_a_loss_repairs_are_tried_on_twelve_users() -> None:
    """Reversal shows more records than source order, and no question has labels."""
    cases = tuple(
        Case(case.pool, tuple(Question(q.id, q.user, q.text) for q in case.questions))
        for case in make_benchmark(24, questions=1).cases
    )
    result, pools = list_tried(ShowsMoreReversed, Benchmark("own", cases, "f" * 64))
    (verdict,) = result.verdicts
    assert (verdict.level, verdict.severity) == ("different records", "warning")
    assert pools == [*range(0, 24, 2)]


class Tears:
    """Reads, waits, and writes: overlapping adds lose a record."""

    def __init__(self) -> None:
        self.records: tuple[Record, ...] = ()

    async def add(self, record: Record) -> None:
        before = self.records
        await asyncio.sleep(0)
        self.records = (*before, record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[tuple[str, str]]:
        return [(r.text, r.id) for r in sorted(self.records, key=lambda r: r.position)]


def test_a_failed_promise_of_overlapping_writes_asks_for_a_queue() -> None:
    result = audit(Tears, schedules=["overlap:k=2"])
    (verdict,) = result.verdicts
    assert verdict.level == "promise failed"
    ((repair, text),) = list_advice(result)
    assert repair == f"queue({verdict.policy})"
    assert "in a queue" in text and "serial order" in text


def advise(policy: Any, *promises: str, depth: str = "stable") -> list[str]:
    """List the repairs that are advised for failed promises alone."""
    outcome: Any = SimpleNamespace(plan=SimpleNamespace(policies=[policy]))
    failed = tuple(Promise(name, 1, 8, "overlap:k=2", "") for name in promises)
    verdict = replace(make_verdict(depth, promises=failed), policy=policy.name)
    return [finding.value["repair"] for finding in try_repairs(outcome, [verdict])]


def test_a_queue_helps_neither_leaks_nor_what_adds_no_records() -> None:
    own = as_policy(Keeps, name="memory")
    assert advise(own, "torn") == ["queue(memory)"]
    assert advise(own, "torn", "leaked") == []
    assert advise(own, "leaked", depth="evidence lost") == []
    assert advise(make_policy("lexical"), "torn") == []
    assert advise(as_policy(Costly), "torn", depth="evidence lost") == []
    assert advise(own) == []


@dataclass(frozen=True)
class Fixed:
    """A policy around a memory that overwrites."""

    name: str = "fixed"

    def build(self, arrivals: Sequence[Record], /) -> Any:
        return as_policy(Overwrites).build(arrivals)


@dataclass(frozen=True)
class Recorded(Fixed):
    """What it builds was recorded, so that no other order can be built."""

    def recall(self) -> None: ...


def test_a_memory_that_was_recorded_is_not_repaired() -> None:
    assert [repair for repair, _ in list_advice(audit(Fixed()))] != []
    assert advise(Recorded(), depth="evidence lost") == []
