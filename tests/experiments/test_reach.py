"""One function decides how far order reaches; every output shows the same verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from routeprism.experiments.reach import (
    LayerChanges,
    decide_reach,
    read_reaches,
    summarise_reaches,
)

import routeprism
from routeprism.policies import Block, Exposure, Memory, make_policy
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark
from routeprism.report import write_report
from routeprism.review.comparison import compare_runs
from routeprism.review.gates import check_run
from routeprism.review.stability import order_stability
from routeprism.runs import StoredRun

HARDLY = "Order changes the text, but hardly the records (1 of 20)"


def benchmark(questions: int = 20) -> Benchmark:
    records = tuple(Record(f"r{at}", at, f"note {at}") for at in range(4))
    pool_questions = tuple(Question(f"q{at}", "u", f"What of {at}?") for at in range(questions))
    return Benchmark("tiny", (Case(Pool("u", records), pool_questions),), "0" * 64, interface="all")


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


@pytest.mark.parametrize(
    ("changes", "layer", "title"),
    [
        (LayerChanges(589, 0, 11, 572), "context", "hardly the records (11 of 589)"),
        (LayerChanges(589, 0, 0, 572), "context", "Order changes the text, not the records"),
        (LayerChanges(20, 20, 3, 20), "sources", "Order changes which records are shown"),
        (LayerChanges(20, 20, 2, 20), "context", "hardly the records (2 of 20)"),
        (
            LayerChanges(20, 4, 0, 0, 20),
            "retained",
            "Order changes what is kept, not what is shown",
        ),
        (LayerChanges(20, 4, 0, 0, exposed=False), "retained", "Different orders keep different"),
        (LayerChanges(20, 0, 0, 0, 1), "state", "Order changes the internal state alone"),
        (LayerChanges(20, 0, 0, 0), "none", "Order changes nothing that was observed"),
        (LayerChanges(20, 0, 0, 0, exposed=False), "none", "Every order keeps the same records"),
    ],
)
def test_the_outermost_layer_decides(changes: LayerChanges, layer: str, title: str) -> None:
    reach = decide_reach(changes, "mine")
    assert reach.layer == layer
    assert title in reach.title


def test_terminal_report_check_compare_and_plugin_agree(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = routeprism.audit(benchmark(), Mostly, resamples=100, run=run)
    assert any("but hardly the sources (1 of 20)" in text for text in result.sentences)
    (reach,) = result.reaches
    assert (reach.layer, reach.title) == ("context", HARDLY)
    assert summarise_reaches(result.reaches) == (
        "Arrival order changes the text that is shown, but hardly which records it comes from "
        "(1 of 20 pairs)."
    )
    page = write_report(run).read_text()
    assert "This memory shows different records when records arrive out of order." in page
    assert HARDLY in page
    assert "Arrival order changes which records this memory shows" not in page
    assert check_run(run, ["J>=0"]).reaches == (reach,)
    expected = tmp_path / "again"
    routeprism.audit(benchmark(), Mostly, resamples=100, run=expected)
    compared = compare_runs(run, expected)
    assert compared.reaches == ((reach, reach),)
    assert compared.sentences[0] == (
        "Mostly: in both versions: different records, evidence unknown"
    )
    # The same rule over orders instead of questions: each of 23 changes what one question is shown.
    stable = order_stability(
        Mostly, benchmark(), questions=True, min_jaccard=0.01, arrival="uniform"
    )
    assert stable.reach.layer == "sources"


def test_a_memory_that_keeps_its_records_is_not_called_unchanged() -> None:
    requests = ["What of 1?"]
    records = [["a tea", "a boat", "a bee"]]
    stable = order_stability(Mostly, records, questions=requests, arrival="uniform")
    assert not stable.breaches
    assert str(stable) == (
        "Mostly is stable on 1 pool under uniform: order changes the text, not the records"
    )


def test_chance_is_not_reported_as_order(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = routeprism.audit(benchmark(), Chancy(), resamples=100, run=run)
    (reach,) = result.reaches
    assert reach.layer == "unknown"
    assert "Arrival order changes" not in write_report(run).read_text().split("<main")[0]
    with StoredRun(run) as stored:
        assert read_reaches(stored) == [reach]


def test_a_comparator_does_not_hide_the_memory_that_is_compared() -> None:
    result = routeprism.audit(benchmark(), "recent:k=1", "source-order(recent:k=1)", resamples=100)
    assert [reach.aside for reach in result.reaches] == [False, True]
    assert summarise_reaches(result.reaches) == (
        "Arrival order changes which records this memory shows."
    )
    alone = [replace(reach, aside=False) for reach in result.reaches[1:]]
    assert summarise_reaches(alone) == "Arrival order changes nothing that this memory shows."


class Silent:
    """Keeps everything and shows nothing."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def add(self, record: Record) -> None:
        self.ids.append(record.id)

    def retained(self) -> list[str]:
        return self.ids

    def expose(self, query: str) -> list[str]:
        return []


class Unsourced(Silent):
    """Shows text that depends on order and names no record."""

    def expose(self, query: str) -> Exposure:
        return Exposure((Block("summary", "; ".join(self.ids), frozenset()),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("memory", "title"),
    [
        (Silent, "The memory shows nothing to any question, so nothing can be concluded"),
        (Unsourced, "Order changes the text, which names no sources: its records may also differ"),
    ],
)
def test_a_memory_whose_evidence_cannot_be_seen_gets_no_all_clear(
    memory: type[Silent], title: str
) -> None:
    [reach] = routeprism.audit("sample", memory, resamples=100).reaches
    assert (reach.layer, reach.title) == ("unknown", title)
    assert summarise_reaches([reach]) == f"{title}."
    stable = order_stability(memory, "sample", questions=True, orders=5)
    assert (stable.reach.layer, stable.reach.title) == ("unknown", title)
    with pytest.warns(UserWarning, match=title[1:]):
        assert_order_stable(memory, "sample", questions=True, orders=5)


@pytest.mark.slow
def test_a_memory_that_names_no_sources_is_not_said_to_lack_evidence() -> None:
    """The sample has labels, and the text may contain every record."""
    result = routeprism.audit("sample", Unsourced, resamples=100)
    [verdict] = result.verdicts
    assert verdict.level == "different records, evidence unknown"
    assert not verdict.lacks_evidence
    (sentence,) = [
        str(statement) for statement in result.statements if statement.kind == "severity"
    ]
    assert "it does not name its records, so it is not known whether evidence is lost" in sentence
    assert "labels" not in sentence


@pytest.mark.parametrize("search", [{"worst": "J"}, {"shrink": "exposed"}])
def test_searches_note_what_j_cannot_see(search: dict[str, str]) -> None:
    """Every order has the same sources because no text names one."""
    whole = load_benchmark("sample")
    few = replace(whole, cases=whole.cases[:2])
    number = sum(len(case.questions) for case in few.cases)
    for memory, words in (
        (Unsourced, f"Unsourced shows text without sources in {number} of {number} contexts"),
        (Silent, "Silent shows nothing to any question: J is 1"),
    ):
        notes = routeprism.explore_orders(few, memory, resamples=100, **search).notes
        assert any(note.startswith(words) for note in notes)
