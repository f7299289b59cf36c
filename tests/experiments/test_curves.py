"""Budget curves: numbers as audits give them, findings that hold them, sentences that say them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError, SpecError
from routeprism.experiments import Budgets
from routeprism.runs import StoredRun


@pytest.fixture
def history(own_data: Callable[..., Path]) -> Path:
    """Two users with six records; support at the beginning for one, at the end for the other."""
    records = [
        {"user": user, "id": f"{user}{n}", "text": f"word{n} and word{n + 1} said"}
        for user in "ab"
        for n in range(6)
    ]
    questions = [
        {"user": "a", "id": "qa", "text": "word0?", "support": ["a0"]},
        {"user": "b", "id": "qb", "text": "word5 word6?", "support": ["b5"]},
    ]
    return own_data(records, questions)


def test_a_curve_is_the_audits_at_its_budgets(history: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    result = routeprism.curve(
        history, budgets="k=2,6,4", contexts="k=2,1", interface="bm25", run=run
    )
    for interface in ("bm25:k=1", "bm25:k=2"):
        for k in (2, 4, 6):
            alone = routeprism.audit(history, f"recent:k={k}", interface=interface)
            for quantity in ("overlap.retained", "recall.exposed.route", "recall.exposed.forward"):
                where = {"policy": f"recent:k={k}", "schedule": "replay", "interface": interface}
                assert result.value(quantity, **where) == alone.value(quantity, **where)
    with StoredRun(run) as stored:
        curves = {
            (finding.interface, finding.schedule): finding
            for finding in stored.findings("retention", "budget_curve")
        }
        contexts = stored.findings("retention", "context_curve")
    assert set(curves) == {
        (interface, schedule)
        for interface in ("bm25:k=1", "bm25:k=2")
        for schedule in ("replay", "jitter:w=2")
    }
    curve = curves["bm25:k=2", "replay"].value
    assert curve["parameter"] == "k"
    assert [point["budget"] for point in curve["points"]] == [2, 4, 6]
    # Of six records the last and the first 2, 4, 6: they share 0, 2 of 6, and all.
    overlaps = [point["overlap.retained"][0] for point in curve["points"]]
    assert overlaps == [0, pytest.approx(1 / 3), 1]
    # Forward has b's support alone, and replay a's alone, until the budget holds all.
    assert [point["recall.retained.forward"][0] for point in curve["points"]] == [0.5, 0.5, 1]
    assert [point["recall.retained.route-forward"][0] for point in curve["points"]] == [0, 0, 0]
    assert {finding.policy for finding in contexts} == {"recent:k=2", "recent:k=4", "recent:k=6"}
    assert [point["interface"] for point in contexts[0].value["points"]] == ["bm25:k=1", "bm25:k=2"]


def test_it_says_which_budget_buys_stability(history: Path) -> None:
    curve = routeprism.curve(history, budgets="k=2,4,6", schedules=["replay"], interface="all")
    assert curve.sentences == (
        "recent, replay, shown through all: k=6 is the smallest budget at which the two orders "
        "share 0.9 of what is retained (1.000); k=6 is the smallest budget at which the two "
        "orders share 0.9 of what is exposed (1.000); the share of the evidence shown in source "
        "order / under reversal goes from 0.500 / 0.500 to 1.000 / 1.000",
    )
    short = routeprism.curve(history, budgets="k=2,4", schedules=["replay"], interface="all")
    assert (
        "no budget up to k=4 makes the two orders share 0.9 of what is retained (at most 0.333"
        in (short.sentences[0])
    )


def test_without_labels_there_is_still_overlap(own_data: Callable[..., Path]) -> None:
    records = [{"user": "a", "id": f"r{n}", "text": f"word{n}"} for n in range(4)]
    data = own_data(records, [{"user": "a", "id": "q", "text": "word1?"}])
    curve = routeprism.curve(data, budgets="k=2,4", schedules=["replay"], interface="all")
    assert curve.sentences == (
        "recent, replay, shown through all: k=4 is the smallest budget at which the two orders "
        "share 0.9 of what is exposed (1.000)",
    )


@pytest.mark.parametrize("text", ["", "k", "k=", "=3", "k=two"])
def test_budgets_are_numbers_of_one_parameter(text: str) -> None:
    with pytest.raises(SpecError, match="Expected"):
        Budgets.parse(text)


@pytest.mark.parametrize(
    ("spec", "content"),
    [
        ("recent", "recent:k=2"),
        ("focal:threshold=0.1", "focal:threshold=0.1,k=2"),
        ("my.module:Memory", "my.module:Memory:k=2"),
        ("my.module:Memory:size=3", "my.module:Memory:size=3,k=2"),
    ],
)
def test_a_budget_is_written_behind_what_it_is_of(spec: str, content: str) -> None:
    assert Budgets.parse("k=2").of(spec) == [content]


def test_a_curve_is_of_a_named_policy(history: Path) -> None:
    with pytest.raises(SpecError, match=r"Expected the name of a policy, such as 'recent' or"):
        routeprism.curve(history, list, budgets="k=1")  # type: ignore[arg-type]


def test_an_unknown_budget_is_named(history: Path) -> None:
    with pytest.raises(SpecError, match="'recent' has no parameter 'size'"):
        routeprism.curve(history, budgets="size=2")


def test_the_command_prints_a_table_and_keeps_the_run(
    cli: Callable[..., Any], history: Path, tmp_path: Path
) -> None:
    command = ("curve", history, "--budget", "k=2,4", "--run", tmp_path / "run", "--workers", "1")
    ended = cli(*command)
    assert ended.code == 0, ended.err
    assert "jitter:w=2, shown through budget" in ended.out and "recent:k=4" in ended.out
    document = json.loads(cli(*command, "--json").out)  # the same run, again
    assert {row["experiment"] for row in document["estimates"]} == {"routes", "retention"}
    refused = cli("curve", history, "--budget", "k=3", "--run", tmp_path / "run")
    assert refused.code == 2
    assert "holds another run" in refused.err


@pytest.mark.slow
def test_numbers_stay_whole_on_a_narrow_terminal(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("curve", "sample", "--budget", "k=2,3", "--resamples", "100", "--workers", "1")
    command = (*command, "--run", tmp_path / "run", "--schedule", "replay")
    monkeypatch.setenv("COLUMNS", "80")
    narrow = cli(*command).out
    monkeypatch.setenv("COLUMNS", "160")
    wide = cli(*command).out
    assert "…" not in narrow and "…" not in wide
    assert "a wide terminal shows them" in " ".join(narrow.split())
    (few,), (all_of_it,) = (
        [line.split() for line in out.splitlines() if line.startswith("recent:k=3 ")]
        for out in (narrow, wide)
    )
    assert (len(few), len(all_of_it)) == (1 + 6, 1 + 6 * 3)  # each with two limits
    assert few[1:] == all_of_it[1::3]


def test_another_curve_is_refused(history: Path, tmp_path: Path) -> None:
    routeprism.curve(history, budgets="k=2", run=tmp_path / "run")
    with pytest.raises(RunError, match="budgets"):
        routeprism.curve(history, budgets="k=3", run=tmp_path / "run")
