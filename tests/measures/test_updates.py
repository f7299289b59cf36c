"""Truth tables of the coordinates for facts that change, each line worked out by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from routeprism.measures import (
    DISPLACEMENTS,
    OUTDATED_ANSWERS,
    Displacements,
    OutdatedAnswers,
    update_coordinates,
)
from routeprism.policies import Block, Event
from routeprism.records import Question
from routeprism.routes import ExposureTrace, Pair, Route

COORDINATES = {single.name: single for single in update_coordinates("benchmark")}


def make_exposure(question: Question, blocks: Sequence[str]) -> ExposureTrace:
    """Make an exposure; a block is written as the records it came from: `"a b"`."""
    result = tuple(Block("record", text, frozenset(text.split())) for text in blocks)
    sources = frozenset().union(*(block.sources for block in result))
    return ExposureTrace(question, sources, "".join(blocks), len(result), result)


def route(schedule: str) -> Route:
    return Route("p", schedule, "u", (), frozenset(), None, (), (), {})


def pair(
    current: str,
    stale: str,
    forward: Sequence[str],
    second: Sequence[str],
    labels: str = "benchmark",
) -> Pair:
    question = Question(
        "q",
        "u",
        "Which?",
        labels={labels: frozenset(current.split())} if current else {},
        stale={labels: frozenset(stale.split())} if stale else {},
    )
    return Pair(
        question,
        route("forward"),
        route("replay"),
        make_exposure(question, forward),
        make_exposure(question, second),
    )


# current, stale, blocks shown → the values of NAMES, in that order
TABLE: Mapping[str, tuple[str, str, list[str], tuple[float | None, ...]]] = {
    "none shown": ("n", "o", ["x"], (0, 0, 0, 0, None)),
    "nothing shown at all": ("n", "o", [], (0, 0, 0, 0, None)),
    "current shown": ("n", "o", ["x", "n"], (1, 0, 0, 0, None)),
    "outdated shown": ("n", "o", ["o", "x"], (0, 1, 1, 0, None)),
    "both, current last": ("n", "o", ["o", "n"], (1, 1, 0, 1, 0)),
    "both, outdated last": ("n", "o", ["n", "x", "o"], (1, 1, 0, 1, 1)),
    "both in one block": ("n", "o", ["n o"], (1, 1, 0, 1, None)),
    "both in one block, then outdated": ("n", "o", ["n o", "o"], (1, 1, 0, 1, 1)),
    "chain of three, newest": ("c", "a b", ["c"], (1, 0, 0, 0, None)),
    "chain of three, middle": ("c", "a b", ["b"], (0, 1, 1, 0, None)),
    "chain of three, oldest and newest": ("c", "a b", ["c", "a"], (1, 1, 0, 1, 1)),
    "chain of three, all in event order": ("c", "a b", ["a", "b", "c"], (1, 1, 0, 1, 0)),
    "two current records, one shown": ("m n", "o", ["m"], (1, 0, 0, 0, None)),
    "no outdated label": ("n", "", ["n"], (None,) * 5),
    "no current label": ("", "o", ["o"], (None, 1, None, None, None)),
    "no label": ("", "", ["n", "o"], (None,) * 5),
}
NAMES = ("current_exposed", "stale_exposed", "stale_only", "both_exposed", "stale_last")


@pytest.mark.parametrize("line", TABLE)
def test_the_truth_table(line: str) -> None:
    current, stale, blocks, expected = TABLE[line]
    first = pair(current, stale, blocks, ["x"])
    second = pair(current, stale, ["x"], blocks)
    for name, value in zip(NAMES, expected, strict=True):
        assert COORDINATES[f"{name}.forward"].value(first) == value
        assert COORDINATES[f"{name}.route"].value(second) == value


@pytest.mark.parametrize(
    ("forward", "second", "change", "by_order"),
    [
        (["n"], ["o"], 1, 1),
        (["o"], ["n"], -1, 0),
        (["o"], ["o"], 0, 0),
        (["n"], ["n"], 0, 0),
        (["x"], ["o"], 1, 1),
        (["n", "o"], ["o", "n"], 0, 0),
    ],
)
def test_differences(forward: list[str], second: list[str], change: float, by_order: float) -> None:
    observed = pair("n", "o", forward, second)
    assert COORDINATES["stale_only.route-forward"].value(observed) == change
    assert COORDINATES["stale_only.by_order"].value(observed) == by_order


def test_differences_of_what_does_not_apply_do_not_apply() -> None:
    observed = pair("n", "", ["n"], ["o"])
    for name, coordinate in COORDINATES.items():
        assert coordinate.value(observed) is None, name
    last = pair("n", "o", ["n", "o"], ["n"])  # an order on one route alone
    assert COORDINATES["stale_last.route-forward"].value(last) is None


def test_labels_of_another_source_are_not_read() -> None:
    observed = pair("n", "o", ["o"], ["o"], labels="audited:me")
    assert all(single.value(observed) is None for single in COORDINATES.values())


def test_every_coordinate_describes_itself() -> None:
    every = (*COORDINATES.values(), *OUTDATED_ANSWERS, *DISPLACEMENTS)
    assert len({single.name for single in every}) == len(every) == 21
    assert all(single.meaning and single.symbol and single.reference for single in every)


@pytest.mark.parametrize(
    ("forward", "second", "outdated", "expected"),
    [
        ("a", "b", "b", (0, 1, 1)),
        ("b", "a", "b", (1, 0, -1)),
        ("aabb", "abbb", "b", (0.5, 0.75, 0.25)),
        ("ab", "cc", "bc", (0.5, 1, 0.5)),
        ("a", "b", "", (None, None, None)),
        ("", "", "b", (None, None, None)),
        ("?", "b", "b", (0, 1, 1)),  # an answer that could not be read is none of the options
    ],
)
def test_outdated_answers(
    forward: str, second: str, outdated: str, expected: tuple[float | None, ...]
) -> None:
    answers = OutdatedAnswers(tuple(forward), tuple(second), frozenset(outdated))
    assert tuple(single.value(answers) for single in OUTDATED_ANSWERS) == expected


SUPERSEDES = {"b": frozenset("a"), "c": frozenset("b")}

# arrivals, retained, events as (kind, record, by, at) → inverted, discarded
LOGS: Mapping[str, tuple[str, str, list[tuple[str, str, str, int]], tuple[float | None, ...]]] = {
    "in event order": (
        "abc",
        "c",
        [("add", "a", "a", 0), ("overwrite", "a", "b", 1), ("overwrite", "b", "c", 2)],
        (0, 0),
    ),
    "the older one wins": (
        "ba",
        "a",
        [("add", "b", "b", 0), ("overwrite", "b", "a", 1)],
        (1, 0),
    ),
    "through a chain": ("ca", "a", [("add", "c", "c", 0), ("evict", "c", "a", 1)], (1, 0)),
    "reversed chain": (
        "cba",
        "a",
        [("add", "c", "c", 0), ("overwrite", "c", "b", 1), ("overwrite", "b", "a", 2)],
        (2, 0),
    ),
    "displaced and taken in again": (
        "cac",
        "c",
        [("add", "c", "c", 0), ("overwrite", "c", "a", 1), ("overwrite", "a", "c", 2)],
        (0, 0),
    ),
    "an unrelated record displaced it": (
        "bx",
        "x",
        [("add", "b", "b", 0), ("evict", "b", "x", 1)],
        (0, 0),
    ),
    "an update skipped as a duplicate": (
        "ab",
        "a",
        [("add", "a", "a", 0), ("skip", "b", "b", 1)],
        (0, 1),
    ),
    "an old record skipped rightly": (
        "cb",
        "c",
        [("add", "c", "c", 0), ("skip", "b", "b", 1)],
        (0, 0),
    ),
    "a first value skipped": ("xa", "x", [("add", "x", "x", 0), ("skip", "a", "a", 1)], (0, 0)),
    "deleted and not added": ("ab", "", [("add", "a", "a", 0), ("evict", "a", "b", 1)], (0, 1)),
    "deleted and added": (
        "ab",
        "b",
        [("add", "a", "a", 0), ("evict", "a", "b", 1), ("add", "b", "b", 1)],
        (0, 0),
    ),
    "redelivered": ("bb", "b", [("add", "b", "b", 0), ("skip", "b", "b", 1)], (0, 0)),
    "a note rewritten, not displaced": (
        "ba",
        "ab",
        [("add", "b", "b", 0), ("overwrite", "b", "a", 1), ("add", "a", "a", 1)],
        (0, 0),
    ),
    "no events": ("ab", "b", [], (None, None)),
}


@pytest.mark.parametrize("line", LOGS)
def test_displacements(line: str) -> None:
    arrivals, retained, events, expected = LOGS[line]
    log = [Event(kind, single, by, at) for kind, single, by, at in events]  # type: ignore[arg-type]
    build = Displacements(log, tuple(arrivals), frozenset(retained), SUPERSEDES)
    assert tuple(single.value(build) for single in DISPLACEMENTS) == expected


def test_displacements_without_labels_do_not_apply() -> None:
    build = Displacements([Event("add", "a", "a", 0)], ("a",), frozenset("a"), {})
    assert [single.value(build) for single in DISPLACEMENTS] == [None, None]
