"""Evidence lost and gained over all labelled questions, on memories whose counts are known."""

from __future__ import annotations

import pytest

import routeprism
from routeprism.records import Benchmark, Case, Pool, Question, Record

pytestmark = pytest.mark.usefixtures("only_reversal")


class KeepsTheFirstTwo:
    """Source order shows r0 and r1, reversal shows r3 and r2."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        if len(self.records) < 2:
            self.records.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Record]:
        return self.records


def ask(evidence: list[tuple[str, ...]]) -> Benchmark:
    records = tuple(Record(f"r{at}", at, f"note {at}") for at in range(4))
    questions = tuple(
        Question(f"q{at}", "u", f"What of {at}?", labels={"benchmark": frozenset(ids)})
        for at, ids in enumerate(evidence)
    )
    return Benchmark(
        "tiny",
        (Case(Pool("u", records), questions),),
        "0" * 64,
        interface="all",
        labels=("benchmark",),
    )


def test_both_sides_are_counted_over_every_labelled_question() -> None:
    """Two questions lose, one gains, one does both, and one is without evidence either way."""
    benchmark = ask([("r0",), ("r1",), ("r3",), ("r0", "r2"), ()])
    result = routeprism.audit(benchmark, KeepsTheFirstTwo, labels="benchmark", resamples=100)
    counts = {
        side: result.value(f"evidence.{side}_count", schedule="replay")
        for side in ("lost", "gained")
    }
    assert (counts["lost"].estimate, counts["lost"].queries) == (3, 4)
    assert (counts["gained"].estimate, counts["gained"].queries) == (2, 4)
    assert result.value("evidence.net", schedule="replay").estimate == -0.25
    old = result.value("evidence_lost", schedule="replay")
    assert (old.estimate, old.queries) == (1, 3)
