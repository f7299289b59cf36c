"""Retention over time: curves with known values, and their end against the plain audit."""

from __future__ import annotations

from pathlib import Path

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.runs import StoredRun

pytestmark = pytest.mark.usefixtures("only_reversal")


def benchmark() -> Benchmark:
    cases = []
    for user, size in (("a", 4), ("b", 6)):
        records = tuple(Record(f"{user}{at}", at, f"note {at}") for at in range(size))
        questions = tuple(
            Question(
                f"{user}q{at}", user, "What?", labels={"benchmark": frozenset({f"{user}{at}"})}
            )
            for at in (0, size - 1)
        )
        cases.append(Case(Pool(user, records), questions))
    return Benchmark("tiny", tuple(cases), "0" * 64, labels=("benchmark",), interface="all")


def test_a_window_over_time(tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = routeprism.audit(benchmark(), "recent:k=2", over_time=True, resamples=100, run=run)

    def at(quantity: str, arm: str) -> tuple[float | None, int | None]:
        row = result.value(quantity, arm=arm, experiment="retention")
        return row.estimate, row.units

    # The last two of t against the first two: all, all, one of three, none.
    overlaps = [at("overlap.retained", f"t={t}") for t in range(1, 7)]
    assert overlaps == [(1, 2), (1, 2), (pytest.approx(1 / 3), 2), (0, 2), (0, 1), (0, 1)]
    assert at("overlap.retained", "t=all") == (0, 2)
    assert at("fraction.retained.forward", "t=4") == (0.5, 2)
    assert at("fraction.retained.route", "t=all") == (pytest.approx((2 / 4 + 2 / 6) / 2), 2)
    # Of t=3 only the first record of each pool has a label: reversed holds it, forward does not.
    assert at("recall.retained.forward", "t=3") == (0, 2)
    assert at("recall.retained.route", "t=3") == (1, 2)
    # At t=4 the last record of the pool of four has arrived, and forward holds it.
    assert at("recall.retained.forward", "t=4") == (pytest.approx((1 / 2 + 0) / 2), 2)
    assert result.sentences[-1].startswith(
        "recent:k=2, over time: the retained records depend on order from t=3 on; "
        "in the end overlap 0.000"
    )
    with StoredRun(run) as stored:
        (curve,) = stored.findings("retention", "retention_curve")
    assert (curve.policy, curve.schedule) == ("recent:k=2", "replay")
    assert [point["t"] for point in curve.value] == [1, 2, 3, 4, 5, 6, None]
    assert curve.value[3]["overlap.retained"][0] == 0
    assert curve.value[4]["units"] == 1


class Forgetful:
    """Keeps its last record alone after an odd number of records, and all of them otherwise."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> list[str]:
        first = -1 if len(self.records) % 2 else 0
        return [record.id for record in self.records[first:]]

    def expose(self, query: str) -> list[Record]:
        return self.records[-1:]


def test_a_memory_on_which_order_has_no_lasting_effect() -> None:
    result = routeprism.audit(benchmark(), Forgetful, over_time=True, resamples=100)
    overlaps = [
        result.value("overlap.retained", arm=f"t={t}", experiment="retention").estimate
        for t in range(1, 7)
    ]
    assert overlaps == [1, 1, 0, 1, 0, 1]
    (text,) = [sentence for sentence in result.sentences if "over time" in sentence]
    assert "the retained records depend on order first at t=3; in the end overlap 1.000" in text


@pytest.mark.slow
def test_the_end_is_what_the_audit_finds() -> None:
    policies = ("focal", "streaming", "source-order(utility:k=3)")
    result = routeprism.audit("sample", *policies, over_time=True, resamples=100)
    for policy in policies:
        for quantity in (
            "overlap.retained",
            "recall.retained.forward",
            "recall.retained.route",
        ):
            where = {"policy": policy, "experiment": "retention"}
            plain = result.value(quantity, arm="", **where)
            end = result.value(quantity, arm="t=all", **where)
            assert (end.estimate, end.lower, end.upper) == pytest.approx(
                (plain.estimate, plain.lower, plain.upper)
            )


def test_the_terminal_shows_the_curve(cli) -> None:
    out = cli("audit", "sample", "-p", "recent:k=3", "--over-time", "--resamples", "100", "-v").out
    lines = out.splitlines()
    head = next(at for at, line in enumerate(lines) if line == "What is kept as the history grows")
    assert lines[head + 1].split()[:2] == ["policy", "t=1"]
    assert lines[head + 2].split()[:2] == ["recent:k=3", "1.000"]


def test_a_policy_that_asks_a_model_is_refused() -> None:
    with pytest.raises(SpecError, match="asks a model while it is built"):
        routeprism.audit("sample", "memochat:model=openai:any", over_time=True)
