"""A new version is judged by its total, so that no repair reads as a regression."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.judge import Depth, Promise, Verdict
from routeprism.review.changes import Change, judge_change, summarise_changes
from routeprism.review.gates import check_run
from routeprism.runs import EstimateRow, Rows

QUESTIONS = 20


def make_version(
    recall: tuple[float, float],
    *,
    depth: Depth = "evidence moves",
    changed: float = 0.5,
    **more: Any,
) -> tuple[Verdict, Rows]:
    """Make the verdict and the rows of a memory with this recall in source order and reversed."""
    values: Mapping[tuple[str, str], float] = {
        ("routes", "J"): 1 - changed,
        ("routes", "V_changed"): changed,
        ("retention", "evidence.lost"): 0.0,
        ("retention", "recall.exposed.forward"): recall[0],
        ("retention", "recall.exposed.route"): recall[1],
    }
    rows = Rows.of(
        EstimateRow(
            experiment=experiment,
            benchmark="made up",
            policy="memory",
            schedule="replay",
            quantity=quantity,
            estimate=value,
            queries=QUESTIONS,
        )
        for (experiment, quantity), value in values.items()
    )
    group = {row.quantity: row for row in rows}
    return Verdict("memory", {"replay": depth}, {"replay": group}, **more), rows


def compare(
    before: tuple[Verdict, Rows],
    after: tuple[Verdict, Rows],
    *,
    moved: tuple[int, int] = (0, 0),
    answers: int = 0,
    proven: frozenset[int] = frozenset({-1, 1}),
) -> Change:
    rows = (before[1], after[1])
    return judge_change(before[0], after[0], rows, moved=moved, answers=answers, proven=proven)


def test_a_repair_that_loses_one_question_is_better() -> None:
    """Reversal gained 10 of 20 questions; the repair shows 19 in each order, and one no longer."""
    change = compare(
        make_version((0.5, 1.0)), make_version((0.95, 0.95), depth="evidence lost"), moved=(1, 10)
    )
    assert change.outcome == "better"
    assert summarise_changes([change]) == (
        "this change makes the memory better: it shows the evidence of 19 instead of 15 of 20 "
        "questions, on average over source order and reversal (10 questions gain evidence, and 1 "
        "question is no longer shown some); from “evidence moves” to “evidence lost”"
    )


def test_five_lost_and_none_gained_is_worse() -> None:
    change = compare(make_version((1.0, 1.0)), make_version((0.75, 0.75)), moved=(5, 0))
    assert str(change) == (
        "this change makes the memory worse: it shows the evidence of 15 instead of 20 of 20 "
        "questions, on average over source order and reversal (5 questions are no longer shown "
        "some evidence, and none gains any)"
    )
    assert change.severity == "problem"


@pytest.mark.parametrize(
    ("before", "after", "outcome"),
    [
        # As much evidence: the verdict decides, then what order still changes.
        ({"depth": "stable"}, {"depth": "evidence moves"}, "worse"),
        ({"depth": "evidence moves"}, {"depth": "stable"}, "better"),
        ({"depth": "different records"}, {"depth": "different records"}, "same"),
        ({"changed": 0.5}, {"changed": 0.2}, "better"),
        ({"changed": 0.2}, {"changed": 0.5}, "worse"),
        # A version about which nothing can be concluded is never green.
        ({}, {"depth": "stable", "inconclusive": "it shows nothing"}, "inconclusive"),
        ({"depth": "stable", "inconclusive": "too few"}, {}, "inconclusive"),
        ({"inconclusive": "too few"}, {"changed": 0.2}, "inconclusive"),
    ],
)
def test_the_verdict_decides_where_the_total_does_not(
    before: dict[str, Any], after: dict[str, Any], outcome: str
) -> None:
    versions = make_version((0.5, 0.5), **before), make_version((0.5, 0.5), **after)
    change = compare(*versions)
    assert change.outcome == outcome
    assert (change.severity == "good") == (outcome == "better")


def test_a_new_failed_promise_is_not_outweighed_by_evidence() -> None:
    torn = Promise("torn", 3, 10, "replay", "writes a, b")
    change = compare(make_version((0.5, 0.5)), make_version((1.0, 1.0), promises=(torn,)))
    assert change.outcome == "mixed"
    assert "from “evidence moves” to “promise failed”" in change.reason


@pytest.mark.parametrize(
    ("recall", "answers", "outcome"),
    [(0.5, -1, "worse"), (0.5, 1, "better"), (0.9, -1, "mixed"), (0.1, 1, "mixed")],
)
def test_no_outcome_contradicts_answers(recall: float, answers: int, outcome: str) -> None:
    change = compare(make_version((0.5, 0.5)), make_version((recall, recall)), answers=answers)
    assert change.outcome == outcome
    assert f"right answers in source order {'rise' if answers > 0 else 'fall'}" in change.reason


def test_chance_is_no_change_of_a_random_memory() -> None:
    """Where builds differ by chance, the total counts if an interval shows its direction."""
    versions = make_version((0.5, 0.5)), make_version((0.6, 0.6))
    assert compare(*versions, proven=frozenset()).outcome == "same"
    assert compare(*versions, proven=frozenset({1})).outcome == "better"


def test_several_memories_are_counted() -> None:
    same, better = (
        compare(make_version((0.5, 0.5)), make_version(r)) for r in ((0.5,) * 2, (1, 1))
    )
    worse = compare(make_version((0.5, 0.5)), make_version((0.4, 0.4)))
    assert summarise_changes([same, same]) == "no change was shown"
    assert summarise_changes([same, worse, better], incomplete=True).startswith(
        "this change makes 1 of 3 memories worse; this change makes 1 of 3 memories better "
        "(incomplete). memory: it shows the evidence of 8 instead of 10 of 20 questions"
    )
    assert summarise_changes([]) == "nothing can be compared"


# --- runs --------------------------------------------------------------------------------------


class Window:
    """Keeps the newest records by arrival, without their position."""

    size = 3

    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, record: Any) -> None:
        self.records = [*self.records, record][-self.size :]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Any]:
        return self.records


class Sorted(Window):
    """The repair: it keeps the same records in every order, most of those that are asked for."""

    def add(self, record: Any) -> None:
        self.records = sorted([*self.records, record], key=lambda r: r.position)[-6:]


class Nothing(Window):
    def add(self, record: Any) -> None:
        pass


@pytest.fixture
def diary(own_data: Callable[..., Path]) -> Path:
    """Write two users with eight records, and a question on each record."""
    return own_data(
        [{"user": u, "id": f"{u}{n}", "text": f"fact {n} of {u}"} for u in "ab" for n in range(8)],
        [
            {"user": u, "id": f"q{u}{n}", "text": f"fact {n}?", "support": [f"{u}{n}"]}
            for u in "ab"
            for n in range(8)
        ],
    )


@pytest.fixture
def runs(diary: Path, tmp_path: Path) -> dict[str, Path]:
    """Audit a window of three records, its repair, and a memory that keeps nothing."""
    directories = {}
    for memory in (Window, Sorted, Nothing):
        directories[memory.__name__] = run = tmp_path / memory.__name__
        routeprism.audit(diary, memory, schedules=["replay"], resamples=100, run=run)
    return directories


@pytest.mark.parametrize(
    ("before", "after", "headline"),
    [
        # The window shows 3 of 8 records in each order; the repair shows 6. Reversed, the window
        # shows the three oldest ones, of which the repair shows one: two questions of each user.
        ("Window", "Sorted", "this change makes the memory better: it shows the evidence of 12 "),
        ("Sorted", "Window", "this change makes the memory worse: it shows the evidence of 6 "),
        ("Window", "Window", "no change was shown"),
        ("Window", "Nothing", "nothing can be concluded: new version: the memory shows nothing"),
        ("Nothing", "Sorted", "nothing can be concluded: old version: the memory shows nothing"),
    ],
)
def test_every_output_begins_with_the_same_sentence(
    before: str,
    after: str,
    headline: str,
    runs: dict[str, Path],
    cli: Callable[..., Any],
    tmp_path: Path,
) -> None:
    pair = (runs[before], runs[after], "--policy-a", before, "--policy-b", after)
    page, comment = tmp_path / "page.html", tmp_path / "comment.md"
    printed = cli("compare", *pair, "--html", page, "--markdown", comment).out
    sentence = cli("compare", *pair, "--quiet").out.strip()
    document = json.loads(cli("compare", *pair, "--json").out)
    assert sentence.startswith(headline)
    assert document["headline"] == sentence == printed.splitlines()[1]
    assert f"<h1>{sentence}</h1>" in page.read_text("utf-8")
    text = comment.read_text("utf-8")
    assert text.splitlines()[1] == f"### RoutePrism: {sentence}"
    for verdict in document["verdicts"][0]:
        assert f"{verdict['level']}. " in text and verdict["level"] in printed
    if document["changes"][0]["outcome"] == "better":
        outputs = (printed, text, page.read_text("utf-8"))
        assert not any(": worse, " in output or "loses evidence on" in output for output in outputs)
        assert "#### Worse\n" not in text
    assert "%" not in sentence


class Pinned(Window):
    """Keeps the first record by position: stable, and next to useless."""

    def add(self, record: Any) -> None:
        self.records = sorted([*self.records, record], key=lambda r: r.position)[:1]


class Larger(Window):
    size = 6


def test_a_repair_passes_the_check_against_its_base(diary: Path, tmp_path: Path) -> None:
    """Its overlap with source order falls from 1 to 4/8: six of eight records, reversed."""
    for memory in (Pinned, Larger):
        policy = type("Memory", (memory,), {})  # two versions of one class
        few = {"schedules": ["replay"], "resamples": 100}
        routeprism.audit(diary, policy, run=tmp_path / memory.__name__, **few)
    repaired = check_run(tmp_path / "Larger", [], tmp_path / "Pinned")
    assert [verdict.gate for verdict in repaired.verdicts] == ["recall.exposed.route>=baseline"]
    (remark,) = repaired.remarks
    assert "J>=baseline is left out: J is 0.500, 1.000 in " in remark
    assert "In total the new version is better: it shows the evidence of 12 instead of 2" in remark
    assert repaired.passed
    assert not check_run(tmp_path / "Pinned", [], tmp_path / "Larger").passed


class Torn(Window):
    """Shows every record, and writes the id and the text of the latest one in two steps."""

    size = 8

    def __init__(self) -> None:
        super().__init__()
        self.latest = ["", ""]

    async def add(self, record: Any) -> None:
        super().add(record)
        self.latest[0] = record.id
        await asyncio.sleep(0)
        self.latest[1] = record.text

    def state(self) -> list[str]:
        return self.latest


class Whole(Torn):
    async def add(self, record: Any) -> None:
        Window.add(self, record)
        self.latest = [record.id, record.text]


def test_a_new_failed_promise_fails_the_check_although_nothing_else_falls(
    diary: Path, tmp_path: Path
) -> None:
    for memory in (Whole, Torn):
        few = {"schedules": ["overlap:k=2"], "resamples": 100}
        policy = type("Memory", (memory,), {})
        routeprism.audit(diary, policy, run=tmp_path / memory.__name__, **few)
    check = check_run(tmp_path / "Torn", [], tmp_path / "Whole")
    (failure,) = check.failures
    assert failure.gate == "total>=baseline"
    assert failure.sentence.startswith(
        "Memory: total>=baseline fails: this change makes the memory worse: "
    )
    assert "instead of 0 of 200 trials with overlapping writes fail a promise" in failure.sentence
    assert "from “stable” to “promise failed”" in failure.sentence
