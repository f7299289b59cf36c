"""Stopping as soon as a statement holds: order, limits, flags, saved calls, resuming."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import parse_until
from routeprism.measures import sequence_limits
from routeprism.records import Benchmark, Case, Pool, Question, Record, choose_cases
from routeprism.runs import StoredRun

from ..doubles import LastThree


def test_statements_are_read() -> None:
    assert parse_until("J±0.05") == parse_until(" J +- 0.05 ") == parse_until("J+/-0.05")
    assert parse_until("verdict").quantity == ""
    for text in ("J", "J±0", "J±2", "±0.1", "J±x", ""):
        with pytest.raises(SpecError, match="Expected a statement such as"):
            parse_until(text)
    with pytest.raises(SpecError, match="no known range"):
        parse_until("context_length.route±0.1")


def test_users_are_taken_until_the_statement_holds(tmp_path: Path) -> None:
    result = routeprism.audit(
        "sample", "focal", schedules=["replay"], until="J±0.2", run=tmp_path / "run"
    )
    row = result.value("J", experiment="routes", policy="focal")
    assert row.units is not None and 5 < row.units < 30
    assert row.lower is not None and row.upper is not None
    assert row.upper - row.lower <= 0.4
    assert "sequential" in row.flags.split(";") and "fixed-limits" not in row.flags
    assert all("sequential" in each.flags.split(";") for each in result.rows)
    assert not any(each.quantity.startswith("p.") for each in result.rows)
    with StoredRun(tmp_path / "run") as stored:
        (stop,) = [f for f in stored.findings("until") if f.name == "sequential_stop"]
        column = next(
            users
            for c, users in stored.per_question(experiment="routes").items()
            if c.quantity == "J"
        )
    users = stop.value["users"]
    assert stop.value["held"] and len(users) == row.units == len(set(users))
    # The row is that of the users in the recorded order, by the reference of test_sequences.
    means = [sum(column[user].values()) / len(column[user]) for user in users]
    assert (row.lower, row.upper) == pytest.approx(sequence_limits(means))
    # One user fewer was not enough.
    lower, upper = sequence_limits(means[:-1])
    assert upper - lower > 0.4
    assert any(f"held after {row.units} of 30 users" in note for note in result.notes)
    assert (
        json.loads((tmp_path / "run" / "manifest.json").read_text())["configuration"]["until"]
        == "J±0.2"
    )


@pytest.mark.slow
def test_the_same_seed_takes_the_same_users_on_any_number_of_processes() -> None:
    rows = [
        routeprism.audit("sample", "focal", schedules=["replay"], until="J±0.2", workers=n).rows
        for n in (1, 2)
    ]
    assert rows[0] == rows[1]
    result = routeprism.audit("sample", "focal", schedules=["replay"], until="J±0.2", seed=3)
    assert result.rows != rows[0]


class Costly(LastThree):
    """A memory that asks a model for each record, and counts its calls in a file."""

    calls_per_add = 1

    def add(self, record: Record) -> None:
        with Path(os.environ["COSTLY_CALLS"]).open("a") as calls:
            calls.write("x")
        super().add(record)


@pytest.mark.slow
def test_no_user_is_paid_for_after_the_stop_on_several_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COSTLY_CALLS", str(tmp_path / "calls"))
    options: Any = {"schedules": ["replay"], "until": "J±0.3", "workers": 2}
    routeprism.audit("sample", Costly, **options)
    calls = (tmp_path / "calls").stat().st_size
    sizes = [len(case.pool) for case in routeprism.load_benchmark("sample").cases]
    assert calls < 2 * sum(sizes)  # forward and reverse of all users
    routeprism.audit("sample", Costly, **{**options, "workers": 1})
    assert (tmp_path / "calls").stat().st_size == 2 * calls


@pytest.mark.slow
def test_answers_are_collected_until_the_statement_holds_and_calls_are_saved(
    tmp_path: Path,
) -> None:
    options = {"schedules": ["replay"], "models": ["reader"], "draws": 2}
    run = tmp_path / "run"
    result = routeprism.audit("sample", "focal", **options, until="Delta_rep±0.3", run=run)
    row = result.value("Delta_rep", experiment="routes", policy="focal", model="reader", arm="")
    assert row.units is not None and row.units < 30
    assert result.value("J", experiment="routes", policy="focal").units == 30
    with StoredRun(run) as stored:
        (stop,) = stored.findings("until")
    whole = routeprism.audit("sample", "focal", **options, run=tmp_path / "whole")
    request, all_asked = (_count_answers(each) for each in (run, tmp_path / "whole"))
    assert stop.value["calls_saved"] == all_asked - request > 0
    repetition = routeprism.audit("sample", "focal", **options, until="Delta_rep±0.3", run=run)
    assert (
        repetition.rows == result.rows and _count_answers(run) == request
    )  # nothing is asked twice
    assert (
        whole.value("Delta_rep", experiment="routes", policy="focal", model="reader", arm="").units
        == 30
    )


def _count_answers(run: Path) -> int:
    with closing(sqlite3.connect(run / "run.sqlite")) as store:
        (number,) = store.execute("SELECT COUNT(*) FROM answers").fetchone()
    return int(number)


def write_users(number: int, evidence: int) -> Benchmark:
    """Give each user two records, and a question about one of them."""
    cases = tuple(
        Case(
            Pool(f"u{user}", tuple(Record(f"u{user}r{at}", at, f"Note {at}.") for at in range(2))),
            (
                Question(
                    *(f"q{user}", f"u{user}", "Which?"),
                    labels={"given": frozenset({f"u{user}r{evidence}"})},
                ),
            ),
        )
        for user in range(number)
    )
    return Benchmark("own", cases, "f" * 64, labels=("given",))


@pytest.mark.parametrize(("evidence", "level"), [(1, "evidence lost"), (0, "evidence moves")])
def test_a_verdict_is_settled_once_every_quantity_is_decided(evidence: int, level: str) -> None:
    """A window of one shows the last record: reversed, every user loses it, or gains the first.

    What stays zero decides last: with 223 zeros its limit of 0.05/8 risk is 0.05.
    """
    benchmark = write_users(300, evidence)
    options: dict[str, Any] = {"schedules": ["replay"], "resamples": 100}
    result = routeprism.audit(benchmark, "recent:k=1", until="verdict", **options)
    assert result.value("J", experiment="routes", policy="recent:k=1").units == 223
    assert result.verdict == level == routeprism.audit(benchmark, "recent:k=1", **options).verdict
    net = result.value("evidence.net", experiment="retention")
    assert net.lower is not None and net.upper is not None
    assert net.upper < 0 if evidence else net.lower > 0
    assert sequence_limits([0.0] * 223, alpha=0.05 / 8)[1] <= 0.05
    assert sequence_limits([0.0] * 222, alpha=0.05 / 8)[1] > 0.05


@pytest.mark.slow
def test_a_verdict_waits_for_a_quantity_without_a_value() -> None:
    """Only one user has labels: until that user comes, nothing is known of lost evidence."""
    sample = routeprism.load_benchmark("sample")
    first, *unlabelled = sample.cases
    without_labels = [
        replace(case, questions=tuple(replace(q, labels={}) for q in case.questions))
        for case in unlabelled
    ]
    benchmark = replace(sample, cases=(first, *without_labels))
    whole = routeprism.audit(benchmark, "focal", schedules=["replay"])
    assert whole.verdict == "evidence moves"
    for seed in range(3):
        result = routeprism.audit(
            benchmark, "focal", schedules=["replay"], until="verdict", seed=seed
        )
        assert result.verdict == whole.verdict
        assert result.value("J", experiment="routes", policy="focal").units == 30


class Latest:
    """Keeps everything in source order, and drops one record that arrives late."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        if not self.records or record.id != "u7r0":
            self.records = sorted([*self.records, record], key=lambda item: item.position)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Record]:
        return self.records


@pytest.mark.slow
def test_a_verdict_that_may_miss_a_rare_loss_says_so() -> None:
    """One of 400 users loses a record: 0.05 is excluded before every user was looked at."""
    benchmark = write_users(400, 0)
    options: dict[str, Any] = {"schedules": ["replay"], "resamples": 100}
    result = routeprism.audit(benchmark, Latest, until="verdict", **options)
    (note,) = [note for note in result.notes if "Sequential" in note]
    assert "6 of 6 quantities that decide it are shown to be at most 0.05, not to be zero" in note
    assert (result.verdict, routeprism.audit(benchmark, Latest, **options).verdict) == (
        "stable",
        "evidence lost",
    )


def test_a_verdict_divides_its_risk_between_all_that_it_reads(tmp_path: Path) -> None:
    """More memories and orders ask for more users: 5% of risk is for all of them together."""
    used = []
    for policies in (["recent:k=1"], ["recent:k=1", "recent:k=2", "raw"]):
        run = tmp_path / str(len(policies))
        routeprism.audit(
            write_users(400, 1), *policies, schedules=["replay"], until="verdict", run=run
        )
        with StoredRun(run) as stored:
            (stop,) = stored.findings("until")
            (lost,) = [
                users
                for c, users in stored.per_question(experiment="retention").items()
                if (c.policy, c.quantity) == ("recent:k=1", "evidence.lost")
            ]
        values = [
            fmean(answers)
            for user in stop.value["users"]
            if (answers := [*lost.get(user, {}).values()])
        ]
        # Evidence lost, gained and net, shown and kept records, text; what is inside, and repeated
        # builds if there are.
        limits = sequence_limits(values, alpha=0.05 / (8 * len(policies)))
        watched = {name: rest for name, *rest in stop.value["limits"]}
        assert watched["recent:k=1, replay: evidence.lost"] == pytest.approx(limits)
        used.append(stop.value["units"])
    assert used[0] < used[1]


def test_what_cannot_stop_early_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="needs answers"):
        routeprism.audit("sample", "focal", until="Delta_rep±0.1")
    with pytest.raises(SpecError, match="shard"):
        routeprism.audit("sample", "focal", until="J±0.1", shard="1/2", run=tmp_path / "run")
    with pytest.raises(SpecError, match="until=verdict applies to audit"):
        routeprism.restore("sample", "focal", models=["reader"], until="verdict")


def test_a_statement_about_what_the_run_does_not_measure_is_said_to_be_one() -> None:
    """One draw for each route cannot show how often a model disagrees with itself."""
    sample = choose_cases(routeprism.load_benchmark("sample"), range(4))
    options: dict[str, Any] = {"schedules": ["replay"], "models": ["reader"]}
    result = routeprism.audit(sample, "focal", until="D_res±0.5", **options)
    (note,) = [note for note in result.notes if note.startswith("Sequential stopping")]
    assert "did not hold before all 4 users were used" in note
    assert note.endswith("this run has no value of “focal, replay: D_res (reader)”")


def test_a_procedure_that_a_memory_cannot_perform_never_lets_a_verdict_hold() -> None:
    result = routeprism.audit(
        choose_cases(routeprism.load_benchmark("sample"), range(4)),
        LastThree,
        schedules=["replay", "restart"],
        until="verdict",
    )
    (note,) = [note for note in result.notes if note.startswith("Sequential stopping")]
    assert "did not hold before all 4 users were used" in note
    assert "LastThree, restart: C_changed” (and 5 more)" in note


def test_a_plan_says_where_it_is_expected_to_stop(tmp_path: Path) -> None:
    routeprism.audit("sample", "focal", schedules=["replay"], run=tmp_path / "pilot")
    plan = routeprism.plan(tmp_path / "pilot", "J", half_width=0.2)
    assert plan.sequential is not None
    middle, most = plan.sequential
    assert plan.ways[0].units < middle <= most < 60
    assert routeprism.plan(tmp_path / "pilot", "J", effect=0.2).sequential is None
