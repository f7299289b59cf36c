"""What a difference does not show: chance, silence and texts without sources get no all-clear."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.judge import DEPTHS, judge, read_verdicts, scale_depth, summarise_verdicts
from routeprism.policies import Block, Exposure, Memory, make_policy
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark
from routeprism.report import write_report
from routeprism.review.stability import order_stability
from routeprism.runs import StoredRun

QUESTIONS = 20


def benchmark() -> Benchmark:
    records = tuple(Record(f"r{at}", at, f"note {at}") for at in range(4))
    questions = tuple(Question(f"q{at}", "u", f"What of {at}?") for at in range(QUESTIONS))
    return Benchmark("tiny", (Case(Pool("u", records), questions),), "0" * 64, interface="all")


def load_users(number: int) -> Benchmark:
    whole = load_benchmark("sample")
    return replace(whole, cases=whole.cases[:number])


class Mostly:
    """Summarises all records, but shows the first of 20 questions the last record alone."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> Exposure | list[Record]:
        if "of 0?" in query:
            return [self.records[-1]]
        every = frozenset(record.id for record in self.records)
        text = f"It ends with {self.records[-1].text}"
        return Exposure((Block("topic-summary", text, every),))


class Chancy:
    """A policy that declares that it may differ when it is built again."""

    name = "chancy"
    deterministic = False

    def build(self, arrivals: Sequence[Record]) -> Memory:
        return make_policy("recent:k=1").build(arrivals)


class Silent:
    """Keeps everything and shows nothing."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def add(self, record: Record) -> None:
        self.ids.append(record.id)

    def retained(self) -> list[str]:
        return self.ids

    def expose(self, query: str) -> Any:
        return []


class Unsourced(Silent):
    """Shows text that depends on order and names no record."""

    def expose(self, query: str) -> Any:
        return Exposure((Block("summary", "; ".join(self.ids), frozenset()),))


SILENCE = "the memory shows nothing to any question"
NO_SOURCES = "the text that is shown names no records, so lost evidence would not be seen"


@pytest.mark.parametrize(
    ("differences", "depth"),
    [
        ({}, "stable"),
        ({"states": 1}, "internal only"),
        ({"texts": 0.01}, "text only"),
        ({"texts": 1, "states": 1}, "text only"),
        ({"records": 0.01, "texts": 1}, "different records"),
    ],
)
def test_the_outermost_layer_decides(differences: dict[str, float], depth: str) -> None:
    assert scale_depth(**differences) == depth
    assert depth in DEPTHS


def test_one_question_with_other_records_decides_and_has_its_count(tmp_path: Path) -> None:
    """19 of 20 questions are shown the same records in a different text."""
    run = tmp_path / "run"
    (verdict,) = routeprism.audit(benchmark(), Mostly, resamples=100, run=run).verdicts
    assert (verdict.depth, verdict.questions) == ("different records", QUESTIONS)
    changed = verdict.rows["replay"]["V_changed_count"]
    assert (changed.estimate, changed.queries) == (1, QUESTIONS)
    assert f"1 of {QUESTIONS} questions" in str(verdict)
    assert not verdict.is_labelled  # so that evidence may be lost
    assert verdict.severity == "warning"
    with StoredRun(run) as stored:
        assert [str(each) for each in read_verdicts(stored)] == [str(verdict)]
    # The pytest assertion decides by the same scale.
    stable = order_stability(
        Mostly, benchmark(), questions=True, min_jaccard=0.01, arrival="uniform"
    )
    assert stable.depth == verdict.depth


def test_a_memory_that_keeps_its_records_is_not_called_unchanged() -> None:
    records = [["a tea", "a boat", "a bee"]]
    stable = order_stability(Mostly, records, questions=["What of 1?"], arrival="uniform")
    assert (stable.breaches, stable.inconclusive) == ((), "")
    assert stable.depth == "text only"


def test_chance_is_not_reported_as_order(tmp_path: Path) -> None:
    """Every order was built once, so that no difference is shown to be one of order."""
    run = tmp_path / "run"
    (verdict,) = routeprism.audit(benchmark(), Chancy(), resamples=100, run=run).verdicts
    assert (verdict.level, verdict.depth, verdict.severity) == ("inconclusive", "stable", "warning")
    assert verdict.inconclusive.startswith("the memory differs by chance, and each order was built")
    assert verdict.rows["replay"]["V_changed"].estimate == 1
    page = write_report(run).read_text()
    assert "<h1>This memory allows no conclusion: the memory differs by chance" in page
    with StoredRun(run) as stored:
        assert [str(each) for each in read_verdicts(stored)] == [str(verdict)]


def test_a_comparator_does_not_hide_the_memory_that_is_compared() -> None:
    result = routeprism.audit(benchmark(), "recent:k=1", "source-order(recent:k=1)", resamples=100)
    (verdict,) = result.verdicts
    assert (verdict.policy, verdict.depth) == ("recent:k=1", "different records")
    assert summarise_verdicts(result.verdicts).startswith("This memory shows different records")
    rows = result.rows.where(policy="source-order(recent:k=1)")
    (alone,) = judge(replace(result.results, rows=rows))
    assert (alone.policy, alone.level) == ("source-order(recent:k=1)", "stable")


@pytest.mark.parametrize(
    ("memory", "depth", "reason"),
    [(Silent, "stable", SILENCE), (Unsourced, "text only", NO_SOURCES)],
)
def test_a_memory_whose_evidence_cannot_be_seen_gets_no_all_clear(
    memory: type[Silent], depth: str, reason: str
) -> None:
    few = load_users(2)
    (verdict,) = routeprism.audit(few, memory, resamples=100).verdicts
    assert (verdict.level, verdict.depth) == ("inconclusive", depth)
    assert (verdict.inconclusive, verdict.lost) == (reason, 0)
    assert verdict.severity != "good"
    # Nothing shown lacks all evidence; a text may contain every record, although it names none.
    questions = sum(len(case.questions) for case in few.cases)
    lacking = questions if memory is Silent else 0
    assert (verdict.baseline.questions, verdict.baseline.lacking) == (lacking, lacking)
    assert verdict.baseline.never_shown == lacking
    assert ("lack evidence" in str(verdict)) is (memory is Silent)
    stable = order_stability(memory, few, questions=True, orders=5)
    assert (stable.breaches, stable.inconclusive) == ((), reason)
    with pytest.raises(AssertionError, match=reason):
        assert_order_stable(memory, few, questions=True, orders=5)


@pytest.mark.parametrize("search", [{"worst": "J"}, {"shrink": "exposed"}])
def test_searches_note_what_j_cannot_see(search: dict[str, str]) -> None:
    """Every order has the same sources because no text names one."""
    few = load_users(2)
    number = sum(len(case.questions) for case in few.cases)
    for memory, words in (
        (Unsourced, f"Unsourced shows text without sources in {number} of {number} contexts"),
        (Silent, "Silent shows nothing to any question: J is 1"),
    ):
        notes = routeprism.explore_orders(few, memory, resamples=100, **search).notes
        assert any(note.startswith(words) for note in notes)
