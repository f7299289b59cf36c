"""Sources that are observed: which records an item came from, seen from dumps alone."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import routeprism
from routeprism.errors import RouteError
from routeprism.policies import Event, Lineage, count_dumps, settle
from routeprism.records import Record, load_benchmark


def record(id: str, text: str) -> Record:
    return Record(id, int(id[1:]), text)


TEA = record("r0", "I like green tea.")
DOG = record("r1", "My dog is called Rex.")
ROME = record("r2", "I moved to Rome.")


def sources(lineage: Lineage) -> Mapping[str, list[str]]:
    return {key: sorted(block.sources) for key, block in lineage.items.items()}


def log(lineage: Lineage) -> list[tuple[str, str, str, int]]:
    return [(event.kind, event.record, event.by, event.at) for event in lineage.events]


def observed(*writes: tuple[Record, Mapping[str, str]]) -> Lineage:
    lineage = Lineage("memory")
    for content, items in writes:
        lineage.observe(content, items)
    return lineage


def test_an_item_belongs_to_the_record_whose_write_created_it() -> None:
    lineage = observed((TEA, {"a": "likes tea"}), (DOG, {"a": "likes tea", "b": "has a dog"}))
    assert sources(lineage) == {"a": ["r0"], "b": ["r1"]}
    assert log(lineage) == [("add", "r0", "r0", 0), ("add", "r1", "r1", 1)]
    assert lineage.retained() == {"r0", "r1"}
    assert lineage.counts() == {}  # nothing is uncertain


def test_a_write_without_effect_is_a_skip() -> None:
    lineage = observed((TEA, {"a": "likes tea"}), (DOG, {"a": "likes tea"}))
    assert log(lineage)[1] == ("skip", "r1", "r1", 1)


def test_text_that_grows_has_both_records_and_text_that_is_replaced_has_one() -> None:
    grown = observed((TEA, {"a": "drinks green tea"}), (DOG, {"a": "drinks green tea, has Rex"}))
    assert sources(grown) == {"a": ["r0", "r1"]}
    assert log(grown)[1] == ("merge", "r0", "r1", 1)
    replaced = observed((TEA, {"a": "drinks green tea"}), (DOG, {"a": "has Rex"}))
    assert sources(replaced) == {"a": ["r1"]}
    assert log(replaced)[1] == ("overwrite", "r0", "r1", 1)


def test_words_that_the_new_record_repeats_do_not_count_as_old_text() -> None:
    """Three of four words of "I live in Paris" remain, but the new record says them itself."""
    paris, rome = record("r0", "I live in Paris."), record("r1", "I live in Rome.")
    lineage = observed((paris, {"a": "I live in Paris"}), (rome, {"a": "I live in Rome"}))
    assert sources(lineage) == {"a": ["r1"]}
    assert log(lineage)[1] == ("overwrite", "r0", "r1", 1)


def test_several_items_merged_into_one_keep_all_their_records_transitively() -> None:
    lineage = observed(
        (TEA, {"a": "drinks green tea"}),
        (DOG, {"a": "drinks green tea", "b": "owns Rex"}),
        (ROME, {"c": "drinks green tea, owns Rex, lives in Rome"}),
        (record("r3", "Hello."), {"d": "drinks green tea; owns Rex; lives in Rome; polite"}),
    )
    assert sources(lineage) == {"d": ["r0", "r1", "r2", "r3"]}
    assert [event for event in log(lineage) if event[3] == 2] == [
        ("add", "r2", "r2", 2),
        ("merge", "r0", "r2", 2),
        ("merge", "r1", "r2", 2),
    ]


def test_text_that_moves_out_of_a_changed_item_takes_its_records_along() -> None:
    lineage = observed(
        (TEA, {"a": "drinks green tea, owns a parrot"}),
        (ROME, {"a": "drinks green tea", "b": "owns a parrot in Rome"}),
    )
    assert sources(lineage) == {"a": ["r0", "r2"], "b": ["r0", "r2"]}


def test_a_deleted_item_is_evicted_by_the_record_that_was_written() -> None:
    lineage = observed((TEA, {"a": "drinks green tea"}), (DOG, {"b": "owns Rex"}))
    assert log(lineage)[1:] == [("add", "r1", "r1", 1), ("evict", "r0", "r1", 1)]
    assert sources(lineage) == {"b": ["r1"]}


def test_items_under_new_keys_are_the_same_items() -> None:
    """Some systems write all items again after each add, and number them anew."""
    lineage = observed(
        (TEA, {"1": "drinks green tea"}), (DOG, {"2": "drinks green tea", "3": "owns Rex"})
    )
    assert sources(lineage) == {"2": ["r0"], "3": ["r1"]}
    assert log(lineage)[1:] == [("add", "r1", "r1", 1)]


def test_a_window_that_drops_a_sentence_and_adds_the_same_sentence_keeps_the_newer_record() -> None:
    repetition = record("r1", "I like green tea.")
    lineage = observed((TEA, {"1": TEA.text}), (repetition, {"2": repetition.text}))
    assert sources(lineage) == {"2": ["r1"]}
    assert log(lineage)[1:] == [("add", "r1", "r1", 1), ("evict", "r0", "r1", 1)]


def test_words_that_most_items_contain_do_not_count_as_old_text() -> None:
    """A window of three items that all begin alike: the oldest leaves, and nothing was merged."""
    items = [f"The user said that {thing} matters" for thing in ("tea", "Rex", "Rome", "rain")]
    texts = [record(f"r{number}", f"Note {number}.") for number in range(4)]
    lineage = Lineage()
    for number, item in enumerate(texts):
        first = max(0, number - 2)
        lineage.observe(item, {str(at): items[at] for at in range(first, number + 1)})
    assert sources(lineage) == {"1": ["r1"], "2": ["r2"], "3": ["r3"]}
    assert log(lineage)[-2:] == [("add", "r3", "r3", 3), ("evict", "r0", "r3", 3)]


def test_scripts_without_spaces_are_compared_by_character() -> None:
    first, second = record("r0", "我喜欢喝绿茶"), record("r1", "我搬到罗马了")
    lineage = observed((first, {"a": "喜欢喝绿茶"}), (second, {"a": "喜欢喝绿茶，住在罗马"}))
    assert sources(lineage) == {"a": ["r0", "r1"]}


# --- overlapping and late writes -------------------------------------------------------------


def test_overlapping_writes_are_told_apart_where_an_item_quotes_one_of_them() -> None:
    lineage = Lineage()
    lineage.observe([TEA, DOG], {"a": TEA.text, "b": "has some animal"})
    assert sources(lineage) == {"a": ["r0"], "b": ["r0", "r1"]}
    (uncertain,) = lineage.uncertainties
    assert (uncertain.kind, uncertain.key, sorted(uncertain.records)) == ("overlap", "b", IDS)
    assert lineage.counts() == {"observed_items": 2, "uncertain_overlap": 1}
    assert log(lineage) == [("add", "r0", "r0", 0), ("add", "r1", "r1", 1)]


IDS = ["r0", "r1"]


def test_an_item_that_appears_between_two_writes_is_late() -> None:
    lineage = Lineage()
    lineage.observe(TEA, {})
    lineage.observe(DOG, {"a": "drinks tea", "b": "owns Rex"}, before={"a": "drinks tea"})
    assert sources(lineage) == {"a": ["r0"], "b": ["r1"]}
    assert [(uncertainty.kind, uncertainty.at) for uncertainty in lineage.uncertainties] == [
        ("late", 0)
    ]
    assert log(lineage) == [("skip", "r0", "r0", 0), ("add", "r0", "r0", 0), ("add", "r1", "r1", 1)]


def test_an_item_that_quotes_an_earlier_record_comes_from_that_record() -> None:
    """A system with a buffer stores a record when a later one pushes it out."""
    lineage = observed((TEA, {}), (DOG, {"a": TEA.text}))
    assert sources(lineage) == {"a": ["r0"]}
    assert log(lineage)[1:] == [("add", "r0", "r1", 1), ("skip", "r1", "r1", 1)]
    assert lineage.counts() == {"observed_items": 1, "uncertain_late": 1}


def test_items_before_the_first_write_have_no_sources() -> None:
    lineage = Lineage()
    assert not lineage.check({"x": "left over"})
    assert lineage.uncertainties[0].kind == "unknown"
    assert lineage.block("x", "left over").sources == frozenset()
    assert lineage.check({"x": "left over"})


def test_a_search_hit_without_a_key_is_looked_up_by_its_text() -> None:
    lineage = observed((TEA, {"a": "likes tea"}))
    assert lineage.block("", "likes tea").sources == {"r0"}
    assert lineage.block("", "likes coffee").sources == frozenset()


@given(st.lists(st.lists(st.sampled_from("abcdef"), max_size=4), min_size=1, max_size=6))
def test_every_source_has_arrived_and_every_event_names_its_arrival(dumps: list[list[str]]) -> None:
    """Whatever a system does: items, their order and their texts come and go at will."""
    lineage = Lineage()
    words = {"a": "x y", "b": "x y z", "c": "z", "d": "word r1", "e": "q", "f": ""}
    for at, keys in enumerate(dumps):
        text = {key: words[key] + ("" if len(keys) % 2 else " more words") for key in keys}
        lineage.observe(record(f"r{at}", f"word r{at} x"), text)
        arrived = {f"r{number}" for number in range(at + 1)}
        assert set(lineage.items) == set(keys)
        assert all(block.sources and block.sources <= arrived for block in lineage.items.values())
    for event in lineage.events:
        assert event.by == f"r{event.at}"
        assert event.record in {f"r{number}" for number in range(event.at + 1)}


class Pairing:
    """Writes two records at once, in words of its own, and keeps the last three notes."""

    offline = True

    def __init__(self) -> None:
        self.lineage = Lineage("note")
        self.notes: dict[str, str] = {}
        self.waiting: list[Record] = []

    def add(self, content: Record) -> None:
        self.waiting.append(content)
        if len(self.waiting) == 2:
            self.notes[f"note {len(self.lineage.events)}"] = "-".join(
                hashlib.sha256(item.id.encode()).hexdigest() for item in self.waiting
            )
            self.notes = dict([*self.notes.items()][-3:])
            self.lineage.observe(self.waiting, self.notes)
            self.waiting = []

    def retained(self) -> frozenset[str]:
        return self.lineage.retained()

    def expose(self, query: str) -> list[Any]:
        return self.lineage.blocks(self.notes)

    def events(self) -> list[Event]:
        return self.lineage.events

    def counts(self) -> Mapping[str, int]:
        return self.lineage.counts()


@pytest.mark.slow
def test_an_own_class_uses_it_and_its_uncertainty_reaches_the_notes() -> None:
    result = routeprism.audit("sample", Pairing, schedules=["replay"], resamples=100)
    sample = load_benchmark("sample", None)
    pairs = sum(len(case.pool) // 2 for case in sample.cases) * 2  # on two routes
    (note,) = [note for note in result.notes if "observed items" in note]
    assert f"Pairing: {pairs} of {pairs} observed items were written while several records" in note
    assert result.value("J").estimate < 1


# --- settling --------------------------------------------------------------------------------


@pytest.fixture
def time() -> Iterator[tuple[Callable[[float], None], Callable[[], float]]]:
    """A clock that only sleeping moves."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    yield sleep, lambda: now[0]


class Slow:
    """A system that stores what it is given at certain times, and evicts what is too much."""

    def __init__(self, clock: Callable[[], float], *moments: float, size: int = 10) -> None:
        self._clock, self._moments, self._size = clock, moments, size
        self.dumps = 0

    def dump(self) -> list[float]:
        self.dumps += 1
        return [moment for moment in self._moments if moment <= self._clock()][-self._size :]


def test_it_dumps_until_nothing_has_changed_for_a_while(time: Any) -> None:
    """Two equal dumps are no proof: in the pause between two bursts all of them are equal."""
    sleep, clock = time
    bursts = Slow(clock, 0.05, 0.1, 0.9, 1.0)
    assert settle(bursts.dump, stable=1, sleep=sleep, clock=clock) == [0.05, 0.1, 0.9, 1.0]
    assert clock() >= 2.0  # a second after the last change
    assert bursts.dumps <= 8


def test_a_slow_queue_is_waited_for_with_few_dumps(time: Any) -> None:
    sleep, clock = time
    queue = Slow(clock, *(number / 2 for number in range(40)), size=99)
    assert len(settle(queue.dump, stable=2, sleep=sleep, clock=clock)) == 40
    assert 21.5 <= clock() <= 24  # the last record is stored at 19.5 seconds
    assert queue.dumps <= 16  # there were 240 with a dump each tenth of a second


def test_a_system_that_evicts_settles_as_any_other(time: Any) -> None:
    sleep, clock = time
    system = Slow(clock, 0.0, 0.1, 0.2, size=2)
    assert settle(system.dump, before=[-1, 0.0], stable=1, sleep=sleep, clock=clock) == [0.1, 0.2]
    assert system.dumps <= 8


def test_the_number_of_dumps_is_known_before(time: Any) -> None:
    sleep, clock = time
    system = Slow(clock, 0.0)
    settle(system.dump, interval=0.1, stable=0.5, sleep=sleep, clock=clock)
    # At 0, 0.1, 0.3 and 0.5 seconds.
    assert system.dumps == count_dumps(0.1, 0.5) == count_dumps(0.1, None) == 4
    assert count_dumps(0.1, 5.0) == 7  # 0, 0.1, 0.3, 0.7, 1.5, 3.1 and 5 seconds
    assert count_dumps(0.0, 0.0) == 2


def test_a_dump_as_before_is_not_settled_while_ingestion_may_not_have_begun(time: Any) -> None:
    sleep, clock = time
    lag = 0.3

    def dump() -> list[str]:
        return ["a"] if clock() >= lag else []

    settled = settle(dump, before=[], patience=1, sleep=sleep, clock=clock)
    assert settled == ["a"]
    assert clock() == pytest.approx(0.3 + 0.5)  # five intervals of 0.1 seconds after the change
    same = settle(lambda: ["a"], before=["a"], patience=1, sleep=sleep, clock=clock)
    assert same == ["a"]  # a write without effect, after the patience
    assert clock() >= 0.8 + 1


def test_a_system_that_never_settles_fails_its_route(time: Any) -> None:
    sleep, clock = time
    with pytest.raises(RouteError, match=r"did not end within 2 seconds: \d dumps, .* Raise the"):
        settle(clock, limit=2, sleep=sleep, clock=clock)
