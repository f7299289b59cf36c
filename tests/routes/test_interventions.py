"""Causes of lost records are found by experiment: memories with one known fault each.

Every order of five records is built, and every record that source order keeps (or shows) and the
order does not is one case. `k of k` means that all cases have the cause that the memory was given.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from itertools import permutations
from typing import Any

import pytest

import routeprism
from routeprism import Block, Exposure, Record, RoutePrismError
from routeprism.judge import Cause, describe_loss
from routeprism.orders import ONE_BY_ONE, Procedure
from routeprism.policies import Event, Policy, as_policy
from routeprism.policies.remedies import Hold
from routeprism.records import Benchmark, Case, Pool, Question
from routeprism.routes import Loss, Rebuilds, explain_loss, find_cause, read_likely_cause

TEXTS = (
    "city: Maya moved to Lisbon",
    "dog: the terrier is called Bruno",
    "city: Maya moved on to Porto",
    "boat: a dinghy lies at Cascais",
    "city: Maya settled near Faro",
)
COLLIDING = (  # n1 and n2 have one place of eight, n3 and n4 another one
    "Maya moved to Lisbon",
    "A dinghy lies at Cascais",
    "Lunch with Ines on Tuesday",
    "The roof leaks near the stairs",
    "A tram pass costs forty",
)
QUERY = "Where does Maya live now?"


def make_case(texts: Sequence[str] = TEXTS) -> Case:
    records = tuple(
        Record(f"n{at}", at, text, timestamp=f"2025-03-0{at + 1}") for at, text in enumerate(texts)
    )
    return Case(Pool("maya", records), (Question("q", "maya", QUERY),))


class Keeps:
    """Keeps every record, and shows all of them by event time."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> Any:
        self.records.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def select(self, query: str) -> Iterable[Record]:
        return sorted(self.records, key=lambda record: record.position)

    def expose(self, query: str) -> Exposure:
        return Exposure(
            tuple(Block("record", r.text, frozenset({r.id})) for r in self.select(query))
        )


class Overwrites(Keeps):
    """The last arrival about a key replaces the record of the same key."""

    def add(self, record: Record) -> None:
        key = record.text.partition(":")[0]
        self.records = [r for r in self.records if r.text.partition(":")[0] != key]
        self.records.append(record)

    def add_many(self, records: list[Record]) -> None:
        for record in records:
            self.add(record)


class Window(Keeps):
    """Keeps the last three arrivals."""

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-3:]


def find_slot(record: Record) -> int:
    return hashlib.sha256(record.text.encode()).digest()[0] % 8


class CollidesLast(Keeps):
    """Has eight places; the record that arrives last gets the place."""

    def add(self, record: Record) -> None:
        self.records = [r for r in self.records if find_slot(r) != find_slot(record)]
        self.records.append(record)


class CollidesFirst(Keeps):
    """Has eight places; the record that arrives first keeps the place."""

    def add(self, record: Record) -> None:
        if find_slot(record) not in map(find_slot, self.records):
            self.records.append(record)


class RefusesLate(Keeps):
    """Refuses a record that is older than the newest one that it has seen."""

    def add(self, record: Record) -> str | None:
        if self.records and str(record.timestamp) < max(str(r.timestamp) for r in self.records):
            return f"too old: {record.timestamp}"
        self.records.append(record)
        return None


class FirstOfKey(Keeps):
    """Discards a record if one with the same key is there."""

    def add(self, record: Record) -> None:
        if record.text.partition(":")[0] not in [r.text.partition(":")[0] for r in self.records]:
            self.records.append(record)


class Merges(Keeps):
    """Joins records of a key to one with an id of its own, and lists those of single records."""

    def add(self, record: Record) -> None:
        key = record.text.partition(":")[0]
        two = [r for r in self.records if r.text.partition(":")[0] == key]
        self.records = [r for r in self.records if r not in two]
        if not two:
            self.records.append(record)


class Full(Keeps):
    """Has room for three records, and refuses the next ones."""

    def add(self, record: Record) -> str | None:
        if len(self.records) == 3:
            return "memory is full"
        self.records.append(record)
        return None


class LeastRecentlyUsed(Keeps):
    """Has room for three; a record that resembles an older one renews it."""

    def add(self, record: Record) -> None:
        key = record.text.partition(":")[0]
        renewed = [r for r in self.records if r.text.partition(":")[0] == key]
        rest = [r for r in self.records if r not in renewed]
        self.records = [*rest, *renewed, record][-3:]


class EvictsSimilar(Keeps):
    """Has room for three; the fourth pushes out the record with which it shares most words."""

    def add(self, record: Record) -> None:
        if len(self.records) == 3:
            words = set(record.text.split())
            nearest = max(self.records, key=lambda r: len(words & set(r.text.split())))
            self.records.remove(nearest)
        self.records.append(record)


class Outvotes(Keeps):
    """Removes a record as soon as two later ones have its key."""

    def add(self, record: Record) -> None:
        self.records.append(record)
        keys = [r.text.partition(":")[0] for r in self.records]
        first = keys.index(record.text.partition(":")[0])
        if keys.count(keys[first]) > 2:
            del self.records[first]


class RefusesThird(Keeps):
    """Refuses a record if two with its key are there."""

    def add(self, record: Record) -> None:
        keys = [r.text.partition(":")[0] for r in self.records]
        if keys.count(record.text.partition(":")[0]) < 2:
            self.records.append(record)


class Tied(Keeps):
    """Shows the two records with most words of the question; the last arrival wins a tie."""

    def select(self, query: str) -> Iterable[Record]:
        words = set(query.split())
        scores = [(len(words & set(r.text.split())), at) for at, r in enumerate(self.records)]
        return [self.records[at] for _, at in sorted(scores, reverse=True)[:2]]


class Budget(Keeps):
    """Shows records in order of arrival as long as they have 90 characters together."""

    def select(self, query: str) -> Iterable[Record]:
        number = 0
        for record in self.records:
            number += len(record.text)
            if number <= 90:
                yield record


class Recent(Keeps):
    """Shows the last two arrivals."""

    def select(self, query: str) -> Iterable[Record]:
        return self.records[-2:]


class SoftDeletes(Keeps):
    """Lists every record, and shows the last arrival of each key."""

    def select(self, query: str) -> Iterable[Record]:
        return {r.text.partition(":")[0]: r for r in self.records}.values()


class Fades(Keeps):
    """Shows the two best matches; each later arrival halves the score of a record."""

    def select(self, query: str) -> Iterable[Record]:
        words, last = set(query.split()), len(self.records)
        scores = {
            at: len(words & set(record.text.split())) / 2 ** (last - at)
            for at, record in enumerate(self.records)
        }
        return [self.records[at] for at in sorted(scores, key=lambda at: -scores[at])[:2]]


class ReplacesIndex(Keeps):
    """Every third record starts a new index."""

    added = 0

    def add(self, record: Record) -> None:
        self.records = [*([] if self.added % 3 == 2 else self.records), record]
        self.added += 1


def list_losses(memory: Any, texts: Sequence[str] = TEXTS, *, by_question: bool = False) -> Any:
    """Test every record that some order of the pool loses."""
    policy: Policy = as_policy(memory)
    case = make_case(texts)

    def read(order: Sequence[int]) -> frozenset[str]:
        memory = policy.build(tuple(case.pool.records[at] for at in order))
        return memory.expose(QUERY).sources if by_question else frozenset(memory.retained())

    source = read(range(len(texts)))
    return [
        explain_loss(case, policy, order, record, QUERY if by_question else "")
        for order in permutations(range(len(texts)))
        for record in sorted(source - read(order))
    ]


FAULTS = [
    # Source order keeps n1, n3 and n4; n4 is lost if it is not the last of n0, n2 and n4, which is
    # so in 2/3 of the 120 orders.
    (Overwrites, TEXTS, "overwritten", 80),
    # Source order keeps the last three; each of them is among the first two in 2/5 of the orders.
    (Window, TEXTS, "full", 144),
    (Full, TEXTS, "full", 144),
    # n0 is kept if it is the first of the three.
    (FirstOfKey, TEXTS, "duplicate", 80),
    # The third arrival starts anew, so that the last three are kept, as by the window.
    (ReplacesIndex, TEXTS, "replaced", 144),
    # It takes two of n0, n2 and n4 to remove the third: n2 or n4 is lost in 2/3 of the orders.
    (Outvotes, TEXTS, "joint", 80),
    (RefusesThird, TEXTS, "joint", 80),
    # Source order keeps n4, the third of its key, by itself; in 2/3 of the orders it is not third.
    (Merges, TEXTS, "merged", 80),
    # Two pairs collide, and source order keeps one record of each: it is lost in half the orders.
    (CollidesLast, COLLIDING, "overwritten", 120),
    (CollidesFirst, COLLIDING, "duplicate", 120),
]


@pytest.mark.parametrize(("memory", "texts", "cause", "number"), FAULTS)
def test_all_cases_have_the_cause_of_the_fault(
    memory: Any, texts: Sequence[str], cause: str, number: int
) -> None:
    losses = list_losses(memory, texts)
    assert Counter(loss.cause for loss in losses) == {cause: number}
    assert {loss.builds > 0 for loss in losses} == {True}
    swapped = {loss.is_order for loss in losses}
    if cause != "merged":  # it may take a third record to be alone again
        assert swapped == ({None} if cause in ("full", "replaced", "joint") else {True})
    assert {loss.source_loses for loss in losses} == {cause == "duplicate"}


def test_a_late_record_names_the_newer_one_before_which_it_would_have_been_in_time() -> None:
    """The records of an order that are no running maximum are lost: 326 in all orders of five.

    Of five records at random, the expected number of running maxima is 1 + 1/2 + 1/3 + 1/4 + 1/5.
    """
    losses = list_losses(RefusesLate)
    assert Counter(loss.cause for loss in losses) == {"late": 326}
    assert {(loss.is_order, loss.relation) for loss in losses} == {(True, "newer")}
    first = losses[0]
    assert first.order == (0, 1, 2, 4, 3) and first.by == ("n4",)
    assert first.reply == "too old: 2025-03-04"


class AllowsADay(Keeps):
    """Refuses a record that is more than a day older than the newest one that it has seen."""

    newest = ""

    def add(self, record: Record) -> None:
        self.newest = max(self.newest, str(record.timestamp))
        if date.fromisoformat(self.newest) - date.fromisoformat(str(record.timestamp)) <= DAY:
            self.records.append(record)


DAY = timedelta(days=1)


def test_a_late_record_names_the_first_one_after_which_it_was_too_late() -> None:
    """It is lost if one of those that are two days newer or more comes first.

    There are three of these for n0, two for n1 and one for n2: 3/4 + 2/3 + 1/2 of 120 orders.
    """
    losses = list_losses(AllowsADay)
    assert Counter(loss.cause for loss in losses) == {"late": 230}
    by_order = {(loss.order, loss.record): loss for loss in losses}
    assert by_order[(1, 4, 2, 3, 0), "n0"].by == ("n4",)  # after n1 alone, it would be kept
    assert by_order[(1, 2, 4, 3, 0), "n0"].by == ("n2",)


class RefusesLateIfFilled(Keeps):
    """Refuses a record that is older than the newest one if it has two or more."""

    def add(self, record: Record) -> None:
        times = [str(r.timestamp) for r in self.records]
        if len(times) < 2 or str(record.timestamp) > max(times):
            self.records.append(record)


def test_of_several_earlier_records_the_first_newer_one_is_named() -> None:
    loss = explain_loss(make_case(), as_policy(RefusesLateIfFilled), (0, 4, 1, 2, 3), "n1")
    assert (loss.cause, loss.by, loss.relation) == ("late", ("n4",), "newer")


class FirstOfThirdDay(Keeps):
    """Has three places, one for each third day; the record that arrives first keeps the place."""

    def add(self, record: Record) -> None:
        places = [date.fromisoformat(str(r.timestamp)).toordinal() % 3 for r in self.records]
        if date.fromisoformat(str(record.timestamp)).toordinal() % 3 not in places:
            self.records.append(record)


class FirstOfThird(Keeps):
    """Has three places, one for each third position; the first record keeps the place."""

    def add(self, record: Record) -> None:
        if record.position % 3 not in [r.position % 3 for r in self.records]:
            self.records.append(record)


@pytest.mark.parametrize("memory", [FirstOfThirdDay, FirstOfThird])
def test_a_place_that_depends_on_time_is_no_matter_of_lateness(memory: Any) -> None:
    """n0 and n3, and n1 and n4, have one place: each first one is lost in half of 120 orders."""
    losses = list_losses(memory)
    assert Counter(loss.cause for loss in losses) == {"duplicate": 120}
    assert {loss.source_loses for loss in losses} == {True}


def test_a_record_that_arrives_first_and_stays_is_no_matter_of_lateness() -> None:
    """Source order loses n2 and n4; the sentence says that whichever arrives first is kept."""
    (loss,) = [loss for loss in list_losses(CollidesFirst, COLLIDING) if loss.order == SWAPPED]
    assert (loss.record, loss.by, loss.relation) == ("n1", ("n2",), "newer")
    text = describe_loss(loss, {"n1": COLLIDING[1], "n2": COLLIDING[2]})
    assert text == (
        "'n2' (“Lunch with Ines on Tuesday”), a newer record, had taken the place of 'n1' (“A "
        "dinghy lies at Cascais”): whichever of the two arrives first is kept; exchanging 'n2' "
        "brings 'n1' back; in the opposite order of the two it is there"
    )


SWAPPED = (0, 2, 1, 3, 4)


@pytest.mark.parametrize(
    ("memory", "numbers"),
    [
        # Both push out one record more than they hold: an unrelated record often does as well.
        (LeastRecentlyUsed, {"full": 72}),
        (EvictsSimilar, {"full": 68, "overwritten": 24}),
    ],
)
def test_memories_that_choose_whom_to_push_out_are_full(memory: Any, numbers: Any) -> None:
    losses = list_losses(memory)
    assert Counter(loss.cause for loss in losses) == numbers
    assert {loss.is_when_full for loss in losses} == {True}


@pytest.mark.parametrize(
    ("memory", "numbers"),
    [
        # n2 and n4 have as many words of the question as n0: each is lost in 1/3 of 120 orders.
        (Tied, {"tie": 80}),
        (Budget, {"budget": 144}),
        # Source order shows n3 and n4; each is not among the last two in 3/5 of the orders.
        (Recent, {"ranking": 144}),
        # The same three records have the word of the question, and the last two are shown.
        (Fades, {"tie": 80}),
        # It lists n4 in every order, but shows it only if it is the last of three.
        (SoftDeletes, {"overwritten": 80}),
    ],
)
def test_records_that_are_kept_but_not_shown(memory: Any, numbers: Any) -> None:
    losses = list_losses(memory, by_question=True)
    assert Counter(loss.cause for loss in losses) == numbers
    assert {loss.is_order for loss in losses} == {True}


def test_the_sentence_says_what_was_done() -> None:
    loss = list_losses(Overwrites)[0]
    assert loss.order == (0, 1, 3, 4, 2)
    assert describe_loss(loss, dict(zip(make_case().pool.ids, TEXTS, strict=True))) == (
        "'n2' (“city: Maya moved on to Porto”), an older record, overwrote 'n4' (“city: Maya "
        "settled near Faro”): exchanging 'n2' brings 'n4' back; in the opposite order of the two "
        "it is there"
    )
    assert loss == Loss(**json.loads(json.dumps(asdict(loss))))


def test_several_later_values_of_a_key_are_named() -> None:
    """n4 came first; n0 overwrote it, and n2 would have."""
    (loss,) = [x for x in list_losses(Overwrites) if x.order == (4, 0, 1, 2, 3)]
    assert loss.by == ("n0", "n2")
    assert loss.test == "exchanging 'n0' and 'n2' brings 'n4' back"


def test_a_repair_is_tested_from_outside() -> None:
    """n4 is lost if n0 or n2 is released after it, although one record is held back."""
    losses = list_losses(Hold(as_policy(Overwrites), 1))
    assert Counter(loss.cause for loss in losses) == {"overwritten": len(losses)}
    assert losses and {loss.relation for loss in losses} == {"older"}


def make_benchmark(support: str, users: int = 3) -> Benchmark:
    cases = []
    for user in range(users):
        records = tuple(
            Record(f"u{user}n{at}", at, f"{text} {user}", timestamp=f"2025-03-0{at + 1}")
            for at, text in enumerate(TEXTS)
        )
        labels = {"given": frozenset({f"u{user}{support}"})}
        question = Question(f"q{user}", f"u{user}", QUERY, labels=labels)
        cases.append(Case(Pool(f"u{user}", records), (question,)))
    return Benchmark("own", tuple(cases), "f" * 64, labels=("given",))


def audit_causes(memory: Any, support: str = "n4", **settings: Any) -> list[Cause]:
    settings = {"schedules": ["replay"], "arrivals": []} | settings
    audit = routeprism.audit(make_benchmark(support), memory, resamples=100, workers=1, **settings)
    return [Cause(**v) for f in audit.findings if f.name == "causes" for v in f.value]


def test_a_losing_order_keeps_its_procedure() -> None:
    (cause,) = audit_causes(Overwrites, schedules=["replay+bulk"])
    assert (cause.cause, cause.schedules) == ("overwritten", ("replay+bulk",))
    assert (cause.tested, cause.explained, cause.cases) == (3, 3, 3)
    assert (cause.record, cause.by) == ("u0n4", ("u0n2", "u0n0"))
    assert cause.by_texts == (f"{TEXTS[2]} 0", f"{TEXTS[0]} 0")
    assert cause.example.is_order is True


class ForgetsAtRestart(Keeps):
    """Reopens with the last two records."""

    def reopen(self) -> ForgetsAtRestart:
        reopened = ForgetsAtRestart()
        reopened.records = self.records[-2:]
        return reopened


def test_a_procedure_that_loses_a_record_is_named_as_the_cause() -> None:
    (cause,) = audit_causes(ForgetsAtRestart, "n0", schedules=["restart:every=2"])
    assert (cause.cause, cause.explained, cause.cases) == ("procedure", 3, 3)
    assert cause.example.test == "added one by one in the same order, 'u0n0' is kept"


class Forgets(Keeps):
    """Keeps no record about boats."""

    def add(self, record: Record) -> Any:
        if "boat" not in record.text:
            return super().add(record)
        return None


class Refuses(Forgets):
    """Returns why it keeps no record about boats."""

    def add(self, record: Record) -> Any:
        super().add(record)
        return "boats are not supported" if "boat" in record.text else None


class Raises(Forgets):
    """Raises if a record about boats is the first."""

    def add(self, record: Record) -> Any:
        super().add(record)
        if not self.records:
            raise ValueError("no boats")


class Hides(Keeps):
    """Keeps records about boats, and shows none."""

    def select(self, query: str) -> Iterable[Record]:
        return [record for record in super().select(query) if "boat" not in record.text]


@pytest.mark.parametrize(
    ("memory", "cause", "reply"),
    [
        (Forgets, "never kept", ""),
        (Refuses, "refused", "boats are not supported"),
        (Raises, "refused", "ValueError: no boats"),
        (Hides, "not retrievable", ""),
    ],
)
def test_evidence_that_source_order_lacks(memory: Any, cause: str, reply: str) -> None:
    (baseline,) = audit_causes(memory, "n3")
    assert (baseline.cause, baseline.schedules) == (cause, ("forward",))
    assert (baseline.tested, baseline.explained, baseline.cases) == (3, 3, 3)
    assert (baseline.example.reply, baseline.by) == (reply, ())


def test_a_window_that_lacks_evidence_in_source_order_is_full() -> None:
    (baseline,) = [c for c in audit_causes(Window, "n0") if c.schedules == ("forward",)]
    assert (baseline.cause, baseline.explained, baseline.by) == ("full", 3, ("u0n3",))


class Costly(Overwrites):
    costly = True
    calls_per_add = 2


class Random(Overwrites):
    deterministic = False


class NeedsTwo(Overwrites):
    """Cannot be asked before it has five records."""

    def retained(self) -> list[str]:
        if self.added < 5:
            raise RuntimeError("too few")
        return super().retained()

    added = 0

    def add(self, record: Record) -> None:
        self.added += 1
        super().add(record)


def test_a_memory_that_costs_money_is_not_built_for_its_causes() -> None:
    (cause,) = audit_causes(Costly)
    assert (cause.cause, cause.tested, cause.explained, cause.cases) == ("untested", 0, 0, 3)
    audit = routeprism.audit(make_benchmark("n4"), Costly, schedules=["replay"], resamples=100)
    (text,) = [s.text for s in audit.statements if s.kind == "causes"]
    assert text.startswith("Likely cause under reversal: not tested (3 of 3 cases were not tested;")
    assert "testing them takes about 3 builds × 5 adds each × 2 calls per add" in text


def test_an_error_while_a_part_is_built_leaves_the_cause_untested() -> None:
    (cause,) = audit_causes(NeedsTwo, rebuilds=0)
    assert (cause.cause, cause.tested, cause.cases) == ("untested", 0, 3)


def test_different_pools_may_have_different_causes() -> None:
    """The memory has a window for the third user, and overwrites by key for the first two."""

    class Mixed(Overwrites):
        def add(self, record: Record) -> None:
            if any(r.text.endswith("2") for r in [*self.records, record]):
                self.records = [*self.records, record][-3:]
            else:
                super().add(record)

    causes = audit_causes(Mixed, rebuilds=0)
    assert [(c.cause, c.explained, c.tested, c.cases) for c in causes if c.schedules == REPLAY] == [
        ("overwritten", 2, 3, 3),
        ("full", 1, 3, 3),
    ]


REPLAY = ("replay",)


def test_a_record_that_is_there_when_it_is_built_again_has_no_cause() -> None:
    """Without a question, it is enough that the record is retained."""
    loss = explain_loss(make_case(), as_policy(Recent), (4, 3, 2, 1, 0), "n4")
    assert (loss.cause, loss.by) == ("untested", ())
    assert loss.test == "the memory loses nothing when it is built again"
    visible = explain_loss(make_case(), as_policy(Recent), (3, 2, 1, 0, 4), "n4", QUERY)
    assert (visible.question, visible.test) == ("q", loss.test)
    hidden = explain_loss(make_case(), as_policy(Recent), (4, 3, 2, 1, 0), "n4", QUERY)
    assert (hidden.cause, hidden.question) == ("ranking", "q")


class Unnamed(Recent):
    """Shows the last two arrivals as one text that names no record."""

    def expose(self, query: str) -> Exposure:
        text = " ".join(record.text for record in self.select(query))
        return Exposure((Block("text", text, frozenset()),))


def test_text_without_sources_may_contain_the_record() -> None:
    loss = explain_loss(make_case(), as_policy(Unnamed), (4, 3, 2, 1, 0), "n4", QUERY)
    assert (loss.cause, loss.test) == ("untested", "the text that is shown names no records")


class Toggles(Keeps):
    """Removes a record that is delivered a second time."""

    def add(self, record: Record) -> None:
        if record in self.records:
            self.records.remove(record)
        else:
            self.records.append(record)


def test_a_record_may_go_when_it_is_delivered_again() -> None:
    loss = explain_loss(make_case(), as_policy(Toggles), (0, 1, 2, 1, 3, 4), "n1")
    assert (loss.cause, loss.by, loss.is_order) == ("duplicate", (), None)
    assert loss.test == "'n1' goes when it is delivered again"


@dataclass(frozen=True)
class Plain:
    """A policy around a memory class, of which only whole builds can be seen."""

    memory: Any
    name: str = "plain"

    def build(self, arrivals: Sequence[Record], /) -> Any:
        return as_policy(self.memory).build(arrivals)


@pytest.mark.parametrize("memory", [Overwrites, Window, CollidesFirst, Outvotes])
def test_the_moment_of_a_loss_is_found_by_bisection_as_well(memory: Any) -> None:
    losses, expected = list_losses(Plain(memory)), list_losses(memory)
    assert [(loss.cause, loss.by, loss.test) for loss in losses] == [
        (loss.cause, loss.by, loss.test) for loss in expected
    ]


class CrowdsOut(Keeps):
    """Taken in a batch, a record goes if three others of its key are in the same batch."""

    def add_many(self, records: list[Record]) -> None:
        keys = Counter(record.text.partition(":")[0] for record in records)
        lost = {key for key, number in keys.items() if number > 3}
        first = [r for r in records if r.text.partition(":")[0] in lost][:1]
        self.records += [record for record in records if record not in first]


class RecentOfBatch(Recent):
    def add_many(self, records: list[Record]) -> None:
        self.records += records


def find_bulk_cause(
    memory: Any, order: Sequence[int], record: str, texts: Sequence[str], query: str = ""
) -> Loss:
    case, policy = make_case(texts), as_policy(memory)
    loss = Loss("untested", policy.name, "bulk", "maya", "", record, order=tuple(order))
    reference = tuple(range(len(texts))), ONE_BY_ONE
    return find_cause(
        Rebuilds(case, policy),
        loss,
        query,
        procedure=Procedure("bulk", "bulk"),
        reference=reference,
    )


def test_a_batch_that_loses_a_record_is_a_procedure() -> None:
    texts = ("city: a", "city: b", "city: c", "city: d", "dog: e")
    loss = find_bulk_cause(CrowdsOut, range(5), "n0", texts)
    assert (loss.cause, loss.by) == ("procedure", ())
    hidden = find_bulk_cause(RecentOfBatch, (4, 3, 2, 1, 0), "n4", TEXTS, QUERY)
    assert hidden.cause == "ranking"  # it is kept in a batch as well as one by one
    assert loss.builds > 0


@pytest.mark.parametrize(
    ("events", "clause"),
    [
        ([], ""),
        ([("add", "n1", "n1")], ""),
        ([("evict", "n2", "n3")], ""),
        ([("evict", "n1", "n3")], "likely: pushed out by 'n3'"),
        ([("evict", "n1", "n1")], "likely: pushed out"),
        ([("skip", "n1", "")], "likely: discarded"),
        ([("merge", "n1", "n3"), ("add", "n1", "n1")], "likely: merged by 'n3'"),
        ([("merge", "n1", "n3"), ("overwrite", "n1", "n4")], "likely: overwritten by 'n4'"),
    ],
)
def test_the_log_of_a_memory_names_a_likely_cause(events: Any, clause: str) -> None:
    log = [Event(*event, at) for at, event in enumerate(events)]
    assert read_likely_cause("n1", log) == clause


def test_a_loss_without_a_record_has_usual_values() -> None:
    loss = Loss("state only", "memory", "replay", "ada", "q")
    assert (loss.record, loss.by, loss.relation, loss.order, loss.test) == ("", (), "", (), "")
    assert (loss.reply, loss.is_order, loss.builds) == ("", None, 0)
    assert not loss.is_when_full and not loss.source_loses


def test_every_sequence_is_built_once() -> None:
    rebuilds = Rebuilds(make_case(), as_policy(Window), (QUERY,))
    records = rebuilds.case.pool.records
    assert (rebuilds.built, rebuilds.allowed) == (0, True)
    first = rebuilds.build(records, ONE_BY_ONE)
    assert (first.retained, first.blocks, rebuilds.built) == ({"n2", "n3", "n4"}, {}, 1)
    assert rebuilds.build(records, ONE_BY_ONE) is first
    # Once it is more, all questions are.
    more = rebuilds.build(records, ONE_BY_ONE, "another question")
    assert (set(more.blocks), rebuilds.built) == ({QUERY, "another question"}, 2)
    assert rebuilds.build(records, ONE_BY_ONE, QUERY) is more
    assert rebuilds.build(records, ONE_BY_ONE) is more
    assert rebuilds.built == 2


@pytest.mark.parametrize(
    ("timestamps", "relation"),
    [
        (("2025-03-01", "2025-03-02"), "newer"),
        (("2025-03-02", "2025-03-01"), "older"),
        (("2025-03-01", "2025-03-01"), "same time"),
        ((None, None), "newer"),  # by source position
    ],
)
def test_two_records_are_compared_by_event_time(timestamps: Any, relation: str) -> None:
    """n1 overwrites n0, whenever it happened."""
    records = tuple(
        Record(f"n{at}", at, f"city: {at}", timestamp=time) for at, time in enumerate(timestamps)
    )
    case = Case(Pool("maya", records), (Question("q", "maya", QUERY),))
    loss = explain_loss(case, as_policy(Overwrites), (0, 1), "n0")
    assert (loss.cause, loss.by, loss.relation) == ("overwritten", ("n1",), relation)


def test_without_an_order_that_shows_it_a_record_may_not_be_retrievable() -> None:
    loss = Loss("untested", "memory", "forward", "maya", "q", "n3", order=(0, 1, 2, 3, 4))
    tested = find_cause(Rebuilds(make_case(), as_policy(Hides), (QUERY,)), loss, QUERY)
    assert tested.cause == "not retrievable"
    assert tested.test == "given 'n3' alone, the memory does not show it to the question"


class CharacterWindow(Keeps):
    """Keeps the last arrivals that have 90 characters together."""

    def add(self, record: Record) -> None:
        self.records.append(record)
        while sum(len(r.text) for r in self.records) > 90:
            del self.records[0]


def test_a_long_record_that_pushes_out_most_replaces_nothing() -> None:
    """Four records have 80 characters; a short record in place of the long one removes none."""
    texts = [f"fact {letter} is quite long" for letter in "abcd"] + ["x" * 60]
    assert [len(text) for text in texts[:4]] == [20] * 4
    loss = explain_loss(make_case(texts), as_policy(CharacterWindow), (0, 1, 2, 3, 4), "n1")
    assert (loss.cause, loss.by, loss.is_when_full) == ("full", ("n4",), True)


class SilentPolicy:
    """A policy that keeps no record about boats and says nothing."""

    name = "silent"

    def __init__(self, error: str = "") -> None:
        self.error = error

    def build(self, arrivals: Sequence[Record], /) -> Any:
        if self.error and [r for r in arrivals if "boat" in r.text] and len(arrivals) == 1:
            raise RoutePrismError(self.error)
        return as_policy(Forgets).build(arrivals)


@pytest.mark.parametrize(
    ("error", "cause", "reply"),
    [("", "never kept", ""), ("no boats", "refused", "no boats")],
)
def test_a_policy_that_keeps_nothing_of_a_record(error: str, cause: str, reply: str) -> None:
    loss = explain_loss(make_case(), SilentPolicy(error), (4, 3, 2, 1, 0), "n3")
    assert (loss.cause, loss.reply) == (cause, reply)
    assert loss.test == "given 'n3' alone, the memory does not keep it"
