"""Orders of long pools, of memories that fail, and searches that other looks have to inform."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from routeprism import explore_orders
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.report import write_report

from ..doubles import Everything


def benchmark(size: int, users: int = 1) -> Benchmark:
    cases = []
    for name in (f"u{at}" for at in range(users)):
        records = tuple(Record(f"{name}r{at}", at, f"note {at} of {name}") for at in range(size))
        labels = {"own": frozenset({f"{name}r0"})}
        question = Question(f"{name}q", name, "What is the first note?", labels=labels)
        cases.append(Case(Pool(name, records), (question,)))
    return Benchmark("tiny", tuple(cases), "0" * 64, interface="all", labels=("own",))


class Turned(Everything):
    """Keeps the first note only where a third of all neighbours arrived in the other order."""

    def retained(self) -> list[str]:
        places = [record.position for record in self.records]
        falls = sum(first > second for first, second in itertools.pairwise(places))
        entries = [record for record in self.records if record.position]
        return [r.id for r in (self.records if 3 * falls >= len(places) else entries)]


class Strict(Everything):
    """Accepts the first two notes in source order alone."""

    def add(self, record: Record) -> None:
        if record.position == 0 and self.records:
            raise ValueError("note 0 is late")
        super().add(record)


@pytest.mark.slow
def test_what_drawn_orders_show_a_search_does_not_deny() -> None:
    exploration = explore_orders(
        benchmark(60), Turned, orders=20, shrink="support", worst="support", resamples=100
    )
    assert exploration.value("support_kept.uniform").estimate > 0
    (report,) = [
        sentence
        for sentence in exploration.sentences
        if "keep some of it in some order" in sentence
    ]
    assert (
        "of 1 whose evidence is dropped in source order, 1 keep some of it in some order" in report
    )
    assert report.endswith("(these are results of a search, which can miss reorderings)")
    (finding,) = [item for item in exploration.findings if item.name == "smallest_reordering"]
    assert finding.value["sentence"].endswith(
        "(found by a search: a smaller reordering may exist)."
    )


def test_exact_results_are_not_called_a_search() -> None:
    exploration = explore_orders(benchmark(4), "recent:k=2", shrink="support", resamples=100)
    assert not any("search" in sentence for sentence in exploration.sentences)


def test_a_memory_that_fails_in_nearly_every_order_is_the_headline(tmp_path: Path) -> None:
    """Note 0 comes first in two of the six orders of each user; the other four fail."""
    run = tmp_path / "run"
    exploration = explore_orders(benchmark(3, users=2), Strict, resamples=100, run=run)
    assert exploration.value("order_failed").estimate == pytest.approx(4 / 6)
    assert exploration.sentences[0].startswith(
        "Strict, uniform: the memory raises an error in 8 of 12 orders, and the following "
        "numbers cover only the remaining 4; "
    )
    (verdict,) = exploration.verdicts
    assert (verdict.level, verdict.severity) == ("inconclusive", "warning")
    assert verdict.inconclusive == "the memory raises an error in most orders"
    page = write_report(run).read_text()
    assert f"<h1>This memory allows no conclusion: {verdict.inconclusive}.</h1>" in page


def test_a_memory_that_never_fails_has_no_such_row() -> None:
    exploration = explore_orders(benchmark(3), Everything, resamples=100)
    assert not [row for row in exploration.rows if row.quantity == "order_failed"]


@pytest.mark.slow
@pytest.mark.parametrize("arrival", ["uniform", "late-batch", "jitter:w=1"])
@pytest.mark.parametrize("size", [171, 207])
def test_long_pools_have_orders(size: int, arrival: str) -> None:
    """171! does not fit into a float; 207 records have 1,478,256 late batches."""
    exploration = explore_orders(
        benchmark(size), "recent:k=3", arrivals=[arrival], orders=5, resamples=100
    )
    assert exploration.value("order_change").estimate is not None
    notes = " ".join(exploration.notes)
    if arrival == "uniform":
        assert f"a pool of {size} has {'1.24e+309' if size == 171 else '1.16e+391'} orders" in notes
    if (arrival, size) == ("late-batch", 207):
        assert "1,478,256 orders under late-batch" in notes


def test_notes_count_pools_and_not_policies() -> None:
    exploration = explore_orders(
        benchmark(40, users=2), "recent:k=3", "utility:k=3", orders=3, resamples=100
    )
    (note,) = [note for note in exploration.notes if "were drawn" in note]
    assert note.endswith("(2 pools)")
