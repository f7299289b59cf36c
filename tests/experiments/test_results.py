"""What a result of an audit gives in Python and shows in a notebook."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import Audit
from routeprism.judge import tabulate_repairs

from . import order_faults as faults


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    directory = tmp_path_factory.mktemp("results") / "run"
    return routeprism.audit(
        "sample",
        "recent:k=3",
        "raw",
        schedules=["replay"],
        models=["reader"],
        resamples=100,
        workers=1,
        run=directory,
    )


@pytest.mark.slow
def test_a_result_prints_at_most_thirty_lines(stored: Audit) -> None:
    assert 5 < len(str(stored).splitlines()) <= 30
    assert str(stored).splitlines()[1].startswith(f"recent:k=3: {stored.verdicts[0].level}. ")
    assert len(repr(stored)) < 200


@pytest.mark.slow
def test_a_card_shows_each_memory_and_its_verdict(stored: Audit) -> None:
    card = stored._repr_html_()
    for cell in ("recent:k=3", stored.verdicts[0].level, "reversal", "level", "−83 +77"):
        assert f">{cell}</t" in card
    assert f"<li>{stored.verdicts[1]}</li>" in card
    assert len(card) < 5_000


def test_the_verdict_is_the_most_severe_one(stored: Audit) -> None:
    levels = [verdict.level for verdict in stored.verdicts]
    assert stored.verdict == levels[0]
    # A window of three shows the last records in source order and the first ones in reversal.
    assert levels == ["evidence moves", "internal only"]


def test_questions_have_one_row_each(stored: Audit) -> None:
    rows = stored.questions()
    assert len(rows) == stored.counts["questions"] == 165
    first = next(row for row in rows if row["question"] == "u01-q0")
    assert first["recent:k=3, forward: records"] == ["u01-r1", "u01-r2", "u01-r3"]
    assert first["recent:k=3, replay: records"] == ["u01-r0", "u01-r1", "u01-r2"]
    assert {first["recent:k=3, reader, forward: accuracy"]} <= {0.0, 1.0}


def test_a_result_writes_its_report(stored: Audit, tmp_path: Path) -> None:
    page = stored.report(tmp_path / "page.html")
    assert "recent:k=3" in page.read_text("utf-8")


@pytest.mark.slow
def test_a_result_that_is_not_stored_is_repeated_for_its_questions(tmp_path: Path) -> None:
    audit = routeprism.audit(
        "sample", "recent:k=3", models=["reader"], resamples=100, workers=1, schedules=["replay"]
    )
    first = next(row for row in audit.questions() if row["question"] == "u01-q0")
    assert first["recent:k=3, replay: kept"] == ["u01-r0", "u01-r1", "u01-r2"]
    assert first["recent:k=3, replay: evidence lost"] == 1
    assert len(first["recent:k=3, reader, replay: answers"]) == 1
    assert audit.directory is None
    assert "recent:k=3" in audit.report(tmp_path / "page.html").read_text("utf-8")


class Chance(faults.ShortWindow):
    deterministic = False


class Costly(faults.ShortWindow):
    costly = True


@pytest.mark.parametrize("memory", [Chance, Costly])
def test_a_result_that_cannot_be_repeated_says_what_to_pass(
    memory: Any,
) -> None:
    audit = routeprism.audit("sample", memory, schedules=["replay"], resamples=100, workers=1)
    with pytest.raises(SpecError, match="run='DIRECTORY'"):
        audit.questions()


def test_parts_of_a_result_print_in_a_few_lines(stored: Audit, tmp_path: Path) -> None:
    assert stored.directory is not None
    checked = routeprism.check(stored.directory, "evidence_lost<=0")
    compared = routeprism.compare(stored.directory, stored.directory)
    for part in (stored.rows, stored.results, stored.verdicts, checked, compared):
        assert len(repr(part)) < 1_000
        assert len(str(part).splitlines()) <= 30
    assert str(checked).startswith("FAIL recent:k=3, replay: evidence_lost<=0 fails")
    for part in (checked, compared):
        assert 100 < len(part._repr_html_()) < 4_000


def test_orders_alone_show_which_records_are_kept() -> None:
    exploration = routeprism.explore_orders("sample", "recent:k=3", resamples=100)
    assert exploration.verdict == "different records"
    assert repr(exploration).startswith("<Audit of sample: different records, ")


@pytest.mark.slow
def test_an_audit_measures_its_remedies() -> None:
    """A window of three lacks evidence in every order, which a log of dropped records restores."""
    sample = routeprism.load_benchmark("sample")
    audit = routeprism.audit(
        replace(sample, cases=sample.cases[:6]),
        "recent:k=3",
        "raw",
        schedules=["replay"],
        resamples=100,
        workers=1,
    )
    window, everything = audit.remedies()
    assert window.repair is not None
    assert window.repair.policy == "log-fallback:k=3(recent:k=3)"
    assert str(window).startswith(f"recent:k=3: {window.action} shows the evidence of ")
    assert (everything.memory, everything.repair) == ("raw", None)


@pytest.mark.slow
def test_remedies_are_those_of_a_remedy_run() -> None:
    remedy = routeprism.remedy(
        "sample", "recent:k=3", arrivals=["jitter:w=2"], resamples=100, workers=1
    )
    (advice,) = remedy.remedies()
    assert advice.memory == "recent:k=3"
    assert advice.repair is not None
    assert advice.repair.policy == "log-fallback:k=3(recent:k=3)"


class Asking:
    """Keeps the last two records, and asks a scripted model once for each record."""

    offline = True

    def __init__(self) -> None:
        self.records: list[routeprism.Record] = []
        self.asked = 0

    def add(self, record: routeprism.Record) -> None:
        self.asked += 1
        self.records = [*self.records, record][-2:]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[routeprism.Record]:
        return self.records

    def counts(self) -> dict[str, int]:
        return {"consultations": self.asked}


def test_a_remedy_run_shows_the_model_calls_of_each_repair() -> None:
    """Reversals of n records: n-1 calls if one is held back, 1 + 2 + … + n with rebuilding."""
    sample = routeprism.load_benchmark("sample")
    cases = sample.cases[:3]
    remedy = routeprism.remedy(
        replace(sample, cases=cases), Asking, "recent:k=2", schedules=["replay"], workers=1
    )
    sizes = [len(case.pool) for case in cases]
    rows = {
        row.policy: row.estimate
        for row in remedy.rows
        if (row.quantity, row.schedule) == ("count.model_calls", "replay")
    }
    assert rows["hold:w=1(Asking)"] == sum(size - 1 for size in sizes)
    assert rows["rebuild(Asking)"] == sum(size * (size + 1) // 2 for size in sizes)
    assert rows["log-fallback:k=3(Asking)"] == sum(sizes)
    assert {rows[f"{repair}(recent:k=2)"] for repair in ("hold:w=1", "rebuild")} == {0}
    tables = {table.title: table for table in tabulate_repairs(remedy.results)}
    cost = tables["Asking: what each repair shows, and what it costs"]
    calls = {row[0]: row[cost.columns.index("model calls")] for row in cost.rows}
    assert calls["rebuild"] == "13.7"  # (10 + 10 + 21) / 3 for pools of 4, 4 and 6 records
    assert (
        "model calls" not in tables["recent:k=2: what each repair shows, and what it costs"].columns
    )
