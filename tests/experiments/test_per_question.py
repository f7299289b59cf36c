"""Every mean over all questions can be taken again from the values that the run keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import routeprism
from routeprism.measures import Tally
from routeprism.records import load_benchmark
from routeprism.runs import Column, StoredRun

pytestmark = [pytest.mark.usefixtures("only_reversal"), pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs") / "sample"
    routeprism.audit(
        "sample",
        *("focal", "recent:k=2"),
        comparators=True,
        models=["reader"],
        draws=2,
        resamples=100,
        run=directory,
    )
    return directory


def test_the_means_are_those_of_the_table(run: Path) -> None:
    with StoredRun(run) as stored:
        rows = [row for row in stored.estimates() if row.stratum == "all"]
        values = stored.per_question()
    number = 0
    for row in rows:
        column = Column(**{name: getattr(row, name) for name in Column._fields})
        if column not in values or row.quantity.startswith(("count.", "miss.", "extra.")):
            continue
        tally: Tally[str] = Tally("unit")
        for numbers in values[column].values():
            if numbers:
                tally.append({"": (sum(numbers.values()), len(numbers))})
        repetition = tally.estimates(interval="percentile", seed=1, resamples=100)[""]
        assert repetition.value == pytest.approx(row.estimate, abs=1e-12)
        assert (repetition.queries, repetition.units) == (row.queries, row.units)
        number += 1
    # Two policies and their comparators: 7 coordinates of routes, 11 of retention, answers beside.
    assert number > 4 * (7 + 11)


@pytest.mark.slow
def test_values_have_their_question(run: Path) -> None:
    with StoredRun(run) as stored:
        (column,) = stored.per_question(
            policy="focal", quantity="J", experiment="routes", schedule="replay"
        )
        values = stored.per_question(
            policy="focal", quantity="J", experiment="routes", schedule="replay"
        )[column]
        users = {question.id: question.user for question in stored.questions().values()}
        assert {q: user for user, result in values.items() for q in result} == users
        for question, user in list(users.items())[:9]:
            first, second = (
                stored.exposure("focal", "budget", schedule, question).sources
                for schedule in ("forward", "replay")
            )
            assert values[user][question] == len(first & second) / len(first | second)


def test_questions_are_kept_as_they_were(run: Path) -> None:
    with StoredRun(run) as stored:
        questions = stored.questions()
    loaded = [q for case in load_benchmark("sample", None).cases for q in case.questions]
    assert len(questions) == len(loaded)
    for question in loaded:
        item = questions[question.id]
        assert (item.user, item.text, item.kind) == (question.user, question.text, question.kind)
        assert item.options == tuple(question.options)
        assert item.gold == question.gold
        assert item.labels == dict(question.labels)
