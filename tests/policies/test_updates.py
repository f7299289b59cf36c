"""Memories of facts that change: which record wins, in any order and with redelivery."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.orders import parse_arrival
from routeprism.policies import fold, make_policy
from routeprism.policies.bitemporal import Bitemporal
from routeprism.policies.dedup import Dedup
from routeprism.policies.facts import Facts
from routeprism.records import Case, Record, load_benchmark
from routeprism.records.sample_updates import name_fact


@lru_cache
def cases() -> Sequence[Case]:
    return load_benchmark("sample-updates").cases


def final_values(memory: object) -> dict[str, str]:
    """Give fact → the record that the memory ends with."""
    records = {record.id: record for case in cases() for record in case.pool.records}
    retained_ids = [records[item] for item in memory.retained()]  # type: ignore[attr-defined]
    values = {key: record.id for record in retained_ids if (key := name_fact(record))}
    assert len(values) == sum(name_fact(record) is not None for record in retained_ids)
    return values


def last_arrivals(arrivals: Sequence[Record]) -> dict[str, str]:
    return {key: record.id for record in arrivals if (key := name_fact(record))}


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[Case, list[Record]]:
    """Draw a pool in any order, in which some records arrive again."""
    case = draw(st.sampled_from(cases()))
    repetition = draw(st.lists(st.sampled_from(case.pool.records), max_size=4))
    return case, draw(st.permutations([*case.pool.records, *repetition]))


@pytest.mark.slow
@given(deliveries())
def test_by_time_ends_with_the_newest_record_in_any_order(draws: tuple[Case, list[Record]]) -> None:
    case, arrivals = draws
    newest = last_arrivals(case.pool.records)  # the source order of the sample is event time
    memory = Facts(by="time").build(arrivals)
    assert final_values(memory) == newest
    forward = Facts(by="time").build(case.pool.records)
    assert memory.state() == forward.state()
    query = case.questions[0].text
    assert memory.expose(query) == forward.expose(query)


@given(deliveries())
def test_by_arrival_is_wrong_exactly_where_the_schedule_says_so(
    draws: tuple[Case, list[Record]],
) -> None:
    case, arrivals = draws
    newest, last = last_arrivals(case.pool.records), last_arrivals(arrivals)
    memory = Facts(by="arrival").build(arrivals)
    values = final_values(memory)
    assert {key for key in newest if values[key] != newest[key]} == {
        key for key in newest if last[key] != newest[key]
    }
    for question in case.questions:
        current, stale = question.labels["benchmark"], question.stale["benchmark"]
        fact = name_fact(next(r for r in case.pool.records if r.id in current))
        assert fact is not None
        stale_only = bool(memory.retained() & stale) and not memory.retained() & current
        assert stale_only == (last[fact] != newest[fact])


@pytest.mark.parametrize("policy", ["facts:by=time", "bitemporal", "bitemporal:show=history"])
def test_redelivery_and_late_batches_change_nothing(policy: str) -> None:
    result = make_policy(policy)
    for case in cases()[:6]:
        forward = result.build(case.pool.records)
        for model in ("redeliver:copies=2", "late-batch", "jitter:w=3"):
            bound = parse_arrival(model).on(case.pool)
            for index in range(5):
                built = result.build([case.pool.records[at] for at in bound.sample(index)])
                assert built.retained() == forward.retained()
                assert built.state() == forward.state()


@given(deliveries())
def test_bitemporal_intervals_do_not_depend_on_arrival(draws: tuple[Case, list[Record]]) -> None:
    case, arrivals = draws
    memory = Bitemporal(show="history").build(arrivals)
    forward = Bitemporal(show="history").build(case.pool.records)
    assert memory.state() == forward.state()
    assert memory.expose("") == forward.expose("")
    current = Bitemporal().build(arrivals)
    sources = current.expose("").sources
    newest = set(last_arrivals(case.pool.records).values())
    small_talk = {record.id for record in case.pool.records if name_fact(record) is None}
    assert sources == newest | small_talk


DAY = {"old": "2024-03-03", "new": "2024-03-05"}


def record(id: str, text: str, position: int, day: str | None = None) -> Record:
    return Record(id, position, text, day)


OLD = record("old", "I live at Elm Street.", 0, DAY["old"])
NEW = record("new", "I live at Oak Street.", 1, DAY["new"])


def street(item: Record) -> str | None:
    return "street" if "Street" in item.text else None


def test_events_of_the_facts_memory() -> None:
    def log(by: str, *arrivals: Record) -> list[tuple[str, str, str, int]]:
        memory = Facts(by=by, keys=street).build(arrivals)  # type: ignore[arg-type]
        return [(e.kind, e.record, e.by, e.at) for e in memory.events()]  # type: ignore[attr-defined]

    assert log("arrival", NEW, OLD) == [("add", "new", "new", 0), ("overwrite", "new", "old", 1)]
    assert log("time", NEW, OLD) == [("add", "new", "new", 0), ("skip", "old", "old", 1)]
    assert log("time", OLD, NEW) == [("add", "old", "old", 0), ("overwrite", "old", "new", 1)]
    assert log("arrival", OLD, OLD) == [("add", "old", "old", 0), ("skip", "old", "old", 1)]


def test_a_record_without_a_time_counts_with_the_time_before_it() -> None:
    """As when labels are checked: `undated` follows `late` in source order, so it is the newest."""
    late = record("late", "I live at Fir Street.", 1, "2024-03-09")
    undated = record("undated", "I live at Ash Street.", 2)
    early = record("early", "I live at Yew Street.", 3, "2024-03-01")
    for arrivals in itertools.permutations((OLD, late, undated, early)):
        assert Facts(by="time", keys=street).build(arrivals).retained() == {"undated"}
        assert Bitemporal(keys=street).build(arrivals).expose("").sources == {"undated"}
    for pair in ((late, undated), (undated, late)):
        assert Dedup(0.5, keep="time").build(pair).retained() == {"undated"}


def test_intervals_of_records_without_a_time() -> None:
    records = (record("a", "Elm Street.", 0), record("b", "Oak Street.", 1))
    exposure = Bitemporal(show="history", keys=street).build(records[::-1]).expose("")
    assert [block.text.splitlines()[0] for block in exposure.blocks] == [
        "[valid since an unknown time, until an unknown time]",
        "[valid since an unknown time, still valid]",
    ]


def test_incremental_and_whole_builds_agree() -> None:
    case = cases()[0]
    for policy in (Facts(by="arrival"), Facts(by="time"), Dedup()):
        backwards = case.pool.records[::-1]
        assert fold(policy, backwards).retained() == policy.build(backwards).retained()


def test_dedup_discards_the_later_arrival_or_the_older_record() -> None:
    # Of the 6 words of both records 4 are in both: 4/6.
    near = Dedup(threshold=0.6)
    assert near.build((OLD, NEW)).retained() == {"old"}
    assert near.build((NEW, OLD)).retained() == {"new"}
    by_time = Dedup(threshold=0.6, keep="time")
    assert by_time.build((OLD, NEW)).retained() == {"new"}
    assert by_time.build((NEW, OLD)).retained() == {"new"}
    assert Dedup(threshold=0.7).build((OLD, NEW)).retained() == {"old", "new"}
    with pytest.raises(SpecError, match="threshold=0"):
        Dedup(threshold=0)


def test_specs() -> None:
    assert make_policy("facts:by=arrival").name == "facts:by=arrival"
    assert make_policy("bitemporal").name == "bitemporal"
    assert make_policy("dedup:threshold=0.6").name == "dedup:threshold=0.6,keep=first"
    with pytest.raises(SpecError):
        make_policy("facts:by=luck")
