"""The experiment in an audit: rows, statements, tables, gates."""

from __future__ import annotations

from dataclasses import replace

import pytest
from overlap_toys import Locked, LostUpdate

import routeprism
from routeprism.overlap import KINDS
from routeprism.runs import Rows


class Plain:
    offline = True

    def __init__(self) -> None:
        self.items: list[str] = []

    def add(self, record) -> None:
        self.items.append(record.id)

    def retained(self):
        return self.items

    def expose(self, query):
        return self.items


@pytest.fixture(scope="module")
def few():
    sample = routeprism.load_benchmark("sample")
    return replace(sample, cases=sample.cases[:4])


@pytest.fixture(scope="module")
def run(few, tmp_path_factory):
    directory = tmp_path_factory.mktemp("overlap") / "run"
    audit = routeprism.audit(
        few,
        LostUpdate,
        Locked,
        Plain,
        schedules=["overlap:k=3", "replay+overlap:k=2", "twice"],
        overlap_trials=30,
        run=directory,
        rebuilds=0,
    )
    return audit, directory


@pytest.mark.slow
def test_anomalies_have_rows(run) -> None:
    audit, _ = run
    rows = Rows.of(row for row in audit.rows if row.experiment == "overlap")
    assert {row.policy for row in rows} == {"LostUpdate", "Locked"}
    assert {row.schedule for row in rows} == {"overlap:k=3", "replay+overlap:k=2"}
    assert {row.quantity for row in rows} == {"anomaly", *(f"anomaly.{kind}" for kind in KINDS)}
    lost = {row.quantity: row for row in rows.where(policy="LostUpdate", schedule="overlap:k=3")}
    assert lost["anomaly"].estimate == lost["anomaly.lost"].estimate > 0.3
    assert lost["anomaly"].queries == 4 * 30
    assert lost["anomaly"].lower is not None
    assert all(row.estimate == 0 for row in rows.where(policy="Locked"))


@pytest.mark.slow
def test_a_procedure_that_is_not_applicable_is_counted(run, few) -> None:
    audit, _ = run
    questions = sum(len(case.questions) for case in few.cases)
    counts = {
        (row.policy, row.schedule): row.estimate
        for row in audit.rows
        if row.quantity == "count.not_applicable" and row.stratum == "all"
    }
    assert counts == {
        ("Plain", "overlap:k=3"): questions,
        ("Plain", "replay+overlap:k=2"): questions,
    }
    assert any("overlap:k=3 is not applicable to Plain on 4 of 4 pools" in n for n in audit.notes)


@pytest.mark.slow
def test_statements_name_the_cause_and_the_remedy(run) -> None:
    audit, _ = run
    texts = {
        (statement.policy, statement.schedule): statement
        for statement in audit.statements
        if statement.kind == "overlap"
    }
    lost = texts["LostUpdate", "overlap:k=3"]
    assert lost.severity == "problem"
    assert "Of 3 records added at once" in str(lost)
    assert "3 of 3 when added one by one" in str(lost)
    assert "concurrent adds overwrite each other" in str(lost)
    assert "2 writes are enough" in str(lost)
    assert "RoutePrism chose which task continues at each await; 95% interval" in str(lost)
    assert lost.next_step == "Queue the writes, or lock the store"
    clean = texts["Locked", "overlap:k=3"]
    assert clean.severity == "good"
    assert "different interleavings of 3 writes were performed" in str(clean)


@pytest.mark.slow
def test_the_report_shows_the_interleaving(run) -> None:
    _, directory = run
    routeprism.write_report(directory)
    page = (directory / "report.html").read_text(encoding="utf-8")
    assert "Overlapping writes" in page
    assert "overlap_toys.py:" in page


def test_a_gate_on_anomalies_fails_for_the_race_alone(run) -> None:
    _, directory = run
    checked = routeprism.check(directory, gates=["anomaly<=0"])
    failed = {verdict.row.policy for verdict in checked.verdicts if not verdict.passed}
    assert failed == {"LostUpdate"}


def test_a_reference_other_than_forward(few) -> None:
    audit = routeprism.audit(few, "recent:k=2", schedules=["bulk", "restart"], against="replay")
    rows = Rows.of(audit.rows).where(quantity="J", stratum="all", experiment="routes")
    assert {row.schedule for row in rows} == {"bulk vs replay", "restart vs replay"}
    usual = routeprism.audit(few, "recent:k=2", schedules=["replay"])
    (expected,) = Rows.of(usual.rows).where(quantity="J", stratum="all", experiment="routes")
    assert {row.estimate for row in rows} == {expected.estimate}


def test_a_rate_is_computed_again_from_what_each_pool_contributes(run) -> None:
    audit, directory = run
    (row,) = Rows.of(audit.rows).where(
        policy="LostUpdate", schedule="overlap:k=3", quantity="anomaly", stratum="all"
    )
    trail = routeprism.trace(directory, row=str(list(audit.rows).index(row) + 1))
    assert trail.agrees
    (units,) = trail.groups.values()
    assert [unit.number for unit in units] == [30] * 4
    # Each pool draws its own interleavings.
    assert len({unit.total for unit in units}) > 1


def test_sentences_name_the_reference_that_is_not_source_order(few, tmp_path) -> None:
    audit = routeprism.audit(
        few, "recent:k=2", schedules=["bulk", "forward+twice"], against="replay", run=tmp_path / "r"
    )
    kinds = ("verdict", "source order")  # causes of losses in source order are separate
    sentences = [str(statement) for statement in audit.statements if statement.kind in kinds]
    assert not [sentence for sentence in sentences if "source order" in sentence]
    assert any("Under reversal: 8 of 19 records kept" in sentence for sentence in sentences)
    (verdict,) = audit.verdicts
    assert (verdict.reference, verdict.base) == ("reversal", "under reversal")
    assert set(verdict.depths) == {"bulk vs replay", "twice vs replay"}
    routeprism.write_report(tmp_path / "r")
    page = (tmp_path / "r" / "report.html").read_text(encoding="utf-8")
    assert "Questions compared with reversal" in page


class EmptyAfterRestart(Plain):
    def reopen(self):
        return type(self)()


def test_a_reference_that_shows_nothing_does_not_make_the_memory_silent(few) -> None:
    audit = routeprism.audit(few, EmptyAfterRestart, schedules=["replay"], against="restart")
    (verdict,) = audit.verdicts
    questions = sum(len(case.questions) for case in few.cases)
    assert (verdict.level, verdict.inconclusive) == ("evidence moves", "")
    assert (verdict.lost, verdict.gained, verdict.questions) == (0, questions, questions)
    # What is wrong in the reference: after a restart it keeps and shows nothing.
    assert (verdict.baseline.kept, verdict.baseline.lacking) == (0, questions)
