"""The experiment on orders: published numbers, rows, findings, the command."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism import Record, audit, explore_orders
from routeprism.errors import SpecError
from routeprism.records import load_benchmark
from routeprism.runs import StoredRun


@pytest.mark.realdata
def test_the_permutation_rows_of_the_paper(data: Path) -> None:
    """PROTOCOL §4: 20,400 permutations, three rules at three thresholds, mean clusters."""
    published = {
        "last-arrival": (0.8054, 0.8119, 0.7977),
        "first-arrival": (0.8049, 0.8086, 0.7977),
        "source-position": (0.0146, 0.0311, 0.0),
    }
    clusters = (1.2985, 1.6641, 1.9882)
    thresholds = (0.025, 0.055, 0.1)
    names = {
        (rule, threshold): f"focal:threshold={threshold},survivor={rule}"
        for rule in published
        for threshold in thresholds
    }
    exploration = explore_orders("personamem", *names.values(), data=data, resamples=100)
    plain = {  # defaults are not written in a policy's name
        key: name.replace("threshold=0.055,", "").replace(",survivor=last-arrival", "")
        for key, name in names.items()
    }
    plain["last-arrival", 0.055] = "focal"
    for (rule, threshold), policy in plain.items():
        at = thresholds.index(threshold)
        change = exploration.value("order_change", policy=policy, mask="")
        assert change.estimate == pytest.approx(published[rule][at], abs=5e-5)
        assert (change.units, change.queries) == (37, 589)
        number = exploration.value("mean_clusters", policy=policy)
        assert number.estimate == pytest.approx(clusters[at], abs=5e-5)
    distributions = [f for f in exploration.findings if f.name == "order_distribution"]
    values = [f.value for f in distributions if f.policy == "focal"]
    assert len(values) == 37
    assert sum(value["orders"] for value in values) == 20_400
    assert all(value["method"] == "enumerated" for value in values)
    canonical = explore_orders(
        "personamem", "focal:cluster=source,survivor=source-position", data=data, resamples=100
    )
    assert canonical.value("order_change").estimate == 0.0  # permutation-invariant


@pytest.mark.realdata
def test_recent_keeps_support_as_its_closed_form_says(data: Path) -> None:
    exploration = explore_orders("personamem", "recent:k=3", data=data, resamples=100)
    users = []
    for case in load_benchmark("personamem", data).cases:
        supports = [len(question.labels["reference-session"]) for question in case.questions]
        # The probability that the window of three has one of the supporting records.
        windows, size = math.comb(len(case.pool), 3), len(case.pool)
        shares = [1 - math.comb(size - number, 3) / windows for number in supports]
        users.append(sum(shares) / len(shares))
    row = exploration.value("support_kept.uniform", stratum="all")
    assert row.estimate == pytest.approx(sum(users) / 37, abs=1e-9)
    assert (row.labels, row.schedule) == ("reference-session", "uniform")


@pytest.mark.slow
def test_rows_and_findings_of_the_sample(tmp_path: Path) -> None:
    exploration = explore_orders(
        "sample",
        "focal",
        arrivals=["uniform", "jitter:w=1"],
        worst="support",
        shrink=True,
        resamples=100,
        run=tmp_path / "run",
    )
    quantities = {(row.schedule, row.quantity) for row in exploration.rows}
    assert {
        ("uniform", "order_change"),
        ("uniform", "support_kept.forward"),
        ("uniform", "support_kept.reverse"),
        ("uniform", "support_kept.uniform"),
        ("uniform", "mean_clusters"),
        ("jitter:w=1", "support_kept.arrival"),
    } <= quantities
    assert all("synthetic" in row.flags for row in exploration.rows)
    routes = audit("sample", "focal", schedules=["replay"], resamples=100)
    forward_share = exploration.value("support_kept.forward", schedule="uniform").estimate
    # With one support record, keeping one is keeping all; others keep one at least as often.
    assert forward_share >= routes.value("all_covered.retained.forward").estimate  # type: ignore[operator]
    with StoredRun(tmp_path / "run") as stored:
        assert len(stored.findings("orders")) == len(exploration.findings)
        survival = stored.findings("orders", "survival")
        assert {finding.schedule for finding in survival} == {"uniform", "jitter:w=1"}
        record, position, share = survival[0].value[0]
        assert (record, position) == ("u01-r0", 0)
        assert 0 <= share <= 1
        (overall,) = [f for f in stored.findings("orders", "support_position") if not f.policy]
        bins = [count for *_, count in overall.value["bins"]]
        assert sum(bins) == overall.value["instances"]
        worst = stored.findings("orders", "worst_order")
        assert all(reordering.value["exact"] for reordering in worst)
        assert all(reordering.value["value"] <= reordering.value["forward"] for reordering in worst)
        reorderings = stored.findings("orders", "smallest_reordering")
        assert len(reorderings) == 165
        first = next(
            reordering
            for reordering in reorderings
            if reordering.question and reordering.user == "u01"
        )
        assert "with evidence for “" in first.value["sentence"]
        sentences = {reordering.value["sentence"] for reordering in reorderings}
        assert (
            "Move 'u01-r2' (“[USER] Bear with me: the bees arrived in a humm…”) after 'u01-r3' "
            "(“[USER] Since you remember everything, the teles…”), and the only record with "
            "evidence for “Who sold Ottilie the telescope?” is dropped." in sentences
        )
        assert any(
            text.startswith("In source order the only record with evidence for “")
            for text in sentences
        )


def test_survival_adds_up_to_what_is_retained() -> None:
    exploration = explore_orders("sample", "recent:k=3", "utility:k=2", resamples=100)
    for finding in exploration.findings:
        if finding.name == "survival":
            size = 3 if finding.policy.startswith("recent") else 2
            assert sum(share for *_, share in finding.value) == pytest.approx(size)


def own(own_data: Callable[..., Path], size: int) -> Path:
    records = [{"user": "ann", "id": f"r{at}", "text": f"note number {at}"} for at in range(size)]
    questions = [{"user": "ann", "id": "q", "text": "which note?", "support": [f"r{size - 1}"]}]
    return own_data(records, questions)


def test_a_long_pool_says_that_orders_were_drawn(own_data: Callable[..., Path]) -> None:
    exploration = explore_orders(
        own(own_data, 60), "recent:k=3", orders=50, shrink=True, resamples=100
    )
    row = exploration.value("order_change")
    assert "sampled" in row.flags
    assert any(
        "a pool of 60 has 8.32e+81 orders under uniform" in note for note in exploration.notes
    )
    (shrunk,) = [f.value for f in exploration.findings if f.name == "smallest_reordering"]
    assert (shrunk["exact"], shrunk["inversions"], shrunk["moves"]) == (False, 3, [[59, 55]])


class Touchy:
    """Raises if the last record comes first."""

    def __init__(self) -> None:
        self.held: list[Record] = []

    def add(self, record: Record) -> None:
        if not self.held and record.id == "r3":
            raise ValueError("not first")
        self.held.append(record)

    def retained(self) -> list[Record]:
        return self.held[-1:]

    def expose(self, query: str) -> list[Record]:
        return self.held[-1:]


def test_an_error_on_some_order_is_a_note_with_the_order(own_data: Callable[..., Path]) -> None:
    exploration = explore_orders(own(own_data, 4), Touchy, resamples=100)
    note, checked = exploration.notes
    assert note == (
        "Touchy raised an error in 6 of 24 orders of user 'ann': ValueError: not first. Repeat it "
        "with schedule explicit:order=3-0-1-2"
    )
    assert "no build influenced another" in checked
    assert "support_kept.reverse" not in {row.quantity for row in exploration.rows}


def test_users_may_shrink_what_they_like(own_data: Callable[..., Path]) -> None:
    directory = own(own_data, 5)

    def oldest(memory: Any, question: Any) -> bool:
        return "r3" in memory.retained()

    exploration = explore_orders(directory, "recent:k=2", shrink=oldest, resamples=100)
    (shrunk,) = [f.value for f in exploration.findings if f.name == "smallest_reordering"]
    # Exchanging r2 and r3 pushes r3 out of the last two.
    assert (shrunk["order"], shrunk["outcome"]) == ((0, 1, 3, 2, 4), "own")
    with pytest.raises(SpecError, match=r"There is no outcome 'suport'. Did you mean 'support'"):
        explore_orders(directory, "recent:k=2", shrink="suport")
    with pytest.raises(SpecError, match="Expected 'support', 'J' or 'stale-only'"):
        explore_orders(directory, "recent:k=2", worst="most")


def test_limits_are_read_as_asked(tmp_path: Path) -> None:
    rows = {}
    for name in ("percentile", "expanded"):
        exploration = explore_orders(
            "sample", "recent:k=3", resamples=200, interval=name, run=tmp_path / name
        )
        rows[name] = exploration.value("support_kept.uniform")
        manifest = json.loads((tmp_path / name / "manifest.json").read_text())
        assert manifest["configuration"]["interval"] == name
    assert rows["expanded"].estimate == rows["percentile"].estimate
    assert rows["expanded"].lower < rows["percentile"].lower  # wider: 30 users are not many
    with pytest.raises(SpecError, match="Did you mean 'bca'"):
        explore_orders("sample", "recent:k=3", interval="bcaa")  # type: ignore[arg-type]


def test_own_data_without_labels_needs_another_outcome(own_data: Callable[..., Path]) -> None:
    records = [{"user": "ann", "id": f"r{at}", "text": f"note {at}"} for at in range(3)]
    directory = own_data(records, [{"user": "ann", "id": "q", "text": "which?"}])
    with pytest.raises(SpecError, match="has no support labels; shrink another outcome"):
        explore_orders(directory, "recent:k=1", shrink=True)
    exploration = explore_orders(
        directory, "recent:k=1", shrink="retained", worst="J", resamples=100
    )
    assert {f.name for f in exploration.findings} == {
        "survival",
        "order_distribution",
        "worst_order",
        "smallest_reordering",
    }
    assert exploration.value("order_change").estimate == pytest.approx(2 / 3, abs=1e-9)


@pytest.mark.slow
def test_the_command(cli: Callable[..., Any]) -> None:
    calm = ("--resamples", "100", "--workers", "1")
    done = cli("orders", "sample", "-p", "focal", "--shrink", "support", *calm)
    assert done.code == 0, done.err
    assert "  focal, u01: Move 'u01-r2' (“[USER] Bear with me" in done.out
    assert "Smallest reorderings that change the outcome:\n" in done.out
    assert "focal, uniform: in 0.836 [" in done.out
    assert "] of orders the memory keeps a different set of records from source order" in done.out
    call = cli("orders", "sample", "-p", "recent:k=3", "-a", "redeliver", "--json", *calm)
    read = json.loads(call.out)
    assert {row["experiment"] for row in read["estimates"]} == {"orders"}
    assert {finding["name"] for finding in read["findings"]} >= {"survival", "order_distribution"}
    wrong = cli("orders", "sample", "-p", "focal", "-a", "jiter")
    assert (wrong.code, "Did you mean 'jitter'?" in wrong.err) == (2, True)


@pytest.mark.slow
def test_bytes_do_not_depend_on_workers_or_hash_seed(tmp_path: Path) -> None:
    content = []
    for seed, workers in (("1", "1"), ("2", "2")):
        directory = tmp_path / f"run{seed}"
        subprocess.run(
            [
                *(sys.executable, "-c", "from routeprism.cli import main; main()"),
                *("orders", "sample", "-p", "focal"),
                *("-p", "utility:k=2", "-a", "jitter:w=2", "--shrink", "support"),
                *("--workers", workers, "--run", str(directory), "--resamples", "100"),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        )
        with StoredRun(directory) as stored:
            findings = [finding.row() for finding in stored.findings("orders")]
        content.append(((directory / "estimates.csv").read_bytes(), findings))
    assert content[0] == content[1]
