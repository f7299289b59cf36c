"""Provenance instructions, their contrasts and margin, and the fixed-source stratum."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.models import Ask
from routeprism.policies import Block
from routeprism.review.tracing import trace_rows

ALL = ["preserved", "gated", "neutral", "placebo"]


def obedient(ask: Ask) -> str:
    """Answer by the record that is shown, unless session numbers are said to decide."""
    if "session number, as its header" in ask.text:
        return "a"
    return "a" if "number0" in ask.memory else "b"


def test_arms_and_contrasts_by_hand(pools, scripted) -> None:
    # recent:k=2 shows number0 on replay only: wrong forward, right on replay, unless gated.
    model = scripted(obedient)
    result = routeprism.audit(
        pools(), "recent:k=2", models=[model], draws=2, provenance=ALL, resamples=200
    )

    def value(quantity: str, arm: str) -> float | None:
        return result.value(quantity, experiment="routes", arm=arm, mask="").estimate

    assert [value("D_res", arm) for arm in ("", *ALL)] == [1, 1, 0, 1, 1]
    assert [value("accuracy.forward", arm) for arm in ALL] == [0, 1, 0, 0]
    expected = {"H": -1, "D_res": -1, "Delta_rep": -1, "accuracy.forward": 1, "accuracy.route": 0}
    for alternative in ("preserved", "neutral", "placebo"):
        arm = f"gated-{alternative}"
        assert {name: value(f"Gamma.{name}", arm) for name in expected} == expected
    assert value("Gamma.D_res", "neutral-placebo") == 0
    rows = [row for row in result.rows if row.quantity == "Gamma.H" and row.stratum == "all"]
    assert [row.arm for row in rows] == [
        "gated-preserved",
        "neutral-preserved",
        "placebo-preserved",
        "gated-neutral",
        "gated-placebo",
        "neutral-placebo",
    ]
    # Each arm asks its own prompts: 4 users, 3 questions, 2 routes, 2 draws. The routes show source
    # order, which is the first arm's forward prompt; its replay prompt shows order of arrival.
    assert len(model.asked) == 4 * 3 * 2 * 2 * 4 + 4 * 3 * 2


def test_arms_show_order_of_arrival(pools, scripted, tmp_path: Path) -> None:
    # raw keeps everything. In source order the last record is number3 on both routes; in order of
    # arrival it is number0 on replay, unless session numbers are said to decide.
    def by_last(ask: Ask) -> str:
        last = max("0123", key=lambda at: ask.memory.rindex(f"number{at}"))
        return "a" if last == "3" or "session number, as its header" in ask.text else "b"

    result = routeprism.audit(
        pools(),
        "raw",
        models=[scripted(by_last)],
        provenance=["preserved", "gated"],
        resamples=100,
        run=tmp_path / "run",
    )

    def value(quantity: str, arm: str, mask: str = "") -> float | None:
        return result.value(quantity, experiment="routes", arm=arm, mask=mask).estimate

    assert [value("H", arm) for arm in ("", "preserved", "gated")] == [0, 1, 0]
    assert value("Gamma.H", "gated-preserved") == -1
    assert value("count.identical_prompts", "") == 12
    # The same sources in another text: a stratum of the arms, and not of the plain routes.
    assert value("H", "preserved", "fixed-source") == 1
    assert not [row for row in result.rows if row.mask == "fixed-source" and not row.arm]
    numbers = [
        at
        for at, row in enumerate(result.rows, 1)
        if row.quantity == "H" and row.arm in ("", "preserved") and row.stratum == "all"
    ]
    replies = {
        trail.row.arm: {(answer.answer.condition, answer.answer.answer) for answer in trail.answers}
        for trail in trace_rows(tmp_path / "run", numbers)
        if not trail.row.mask
    }
    assert replies == {"": {("", "a")}, "preserved": {("preserved", "a"), ("preserved", "b")}}


def test_a_context_that_shows_arrival_is_asked_once(pools, scripted) -> None:
    model = scripted(lambda ask: "a")
    routeprism.audit(
        pools(1, ["q0"]),
        "raw",
        models=[model],
        interface="all:display=arrival",
        provenance=["preserved", "gated"],
        resamples=100,
    )
    assert len(model.asked) == 4


def test_non_inferiority_is_said_against_the_margin(pools, scripted) -> None:
    def careless(ask: Ask) -> str:
        """Be wrong on one question of one user where conflicts are weighed."""
        weighed = "weigh what each of them says" in ask.text
        return "b" if weighed and "q0" in ask.question and "u0" in ask.memory else "a"

    def list_sentences(margin: float) -> str:
        result = routeprism.audit(
            pools(),
            "raw",
            models=[scripted(careless)],
            provenance=["preserved", "neutral"],
            margin=margin,
            resamples=200,
        )
        row = result.value("Gamma.accuracy.forward", arm="neutral-preserved")
        assert row.estimate == pytest.approx(-1 / 12)
        assert row.lower < -0.02 < row.upper
        return next(s for s in result.sentences if "neutral minus preserved" in s)

    assert "that neutral is at most 0.02 worse than preserved is not shown" in list_sentences(0.02)
    assert "that neutral is at most 0.5 worse than preserved is shown" in list_sentences(0.5)


def test_one_instruction_is_no_comparison(pools, scripted) -> None:
    result = routeprism.audit(
        pools(1), "raw", models=[scripted(obedient)], provenance="gated", resamples=100
    )
    assert not [row for row in result.rows if row.arm in ALL]
    for wrong, message in (
        ({"margin": 0.0}, "margin between 0 and 1"),
        ({"provenance": []}, "at least one instruction"),
        ({"provenance": ["preserved", "gate"]}, "Did you mean 'gated'"),
    ):
        with pytest.raises(SpecError, match=message):
            routeprism.audit(pools(1), "raw", models=[scripted(obedient)], **wrong)


def test_without_a_right_answer_instructions_are_compared_by_the_answers(pools, scripted) -> None:
    tiny = pools(2)
    unknown = replace(
        tiny,
        cases=tuple(
            replace(case, questions=tuple(replace(q, gold=None) for q in case.questions))
            for case in tiny.cases
        ),
    )
    result = routeprism.audit(
        unknown,
        "recent:k=2",
        models=[scripted(obedient)],
        provenance=["preserved", "gated"],
        masks={"my/own": ["u0q0"]},  # a name like a path is a name
        reuse=True,
        display=["reversed", "source"],
        resamples=100,
    )
    sentence = next(s for s in result.sentences if "gated minus preserved" in s)
    assert "H -1.000 [-1.000, -1.000] (6 pairs, 2 users)" in sentence
    assert not [row for row in result.rows if row.quantity == "Gamma.accuracy.forward"]


def test_free_text_is_compared_by_correctness_alone(pools, scripted) -> None:
    # The embedded judge knows the gold answer; recent:k=2 shows number0 on replay alone.
    model = scripted(lambda ask: "oak" if "number0" in ask.memory else "I cannot tell")
    result = routeprism.audit(
        pools(2, options=()),
        "recent:k=2",
        models=[model],
        draws=2,
        provenance=["preserved", "gated"],
        reuse=True,
        display=["reversed", "source"],
        resamples=100,
    )
    assert result.value("D_correct", experiment="display", arm="construction").estimate == 1
    assert result.value("D_correct", experiment="display", arm="display").estimate == 0
    assert any("construction D_correct = 1.000" in sentence for sentence in result.sentences)
    assert any(
        "gated minus preserved: Delta_rep 0.000" in sentence for sentence in result.sentences
    )
    assert result.value("Delta_rep", experiment="reuse", arm="").estimate == 1


def test_recorded_answers_name_the_instruction_as_condition(pools, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    with file.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["question", "policy", "schedule", "condition", "draw", "answer"])
        for schedule in ("forward", "replay"):
            for condition, answer in (("", "a"), ("preserved", "b"), ("gated", "a")):
                writer.writerow(["u0q0", "raw", schedule, condition, 0, answer])
    result = routeprism.audit(
        pools(1, ["q0"]),
        "raw",
        models=[f"recorded:{file}"],
        provenance=["preserved", "gated"],
        resamples=100,
    )
    assert result.value("accuracy.route", arm="", mask="").estimate == 1
    assert result.value("accuracy.route", arm="preserved").estimate == 0
    assert result.value("accuracy.route", arm="gated").estimate == 1


# --- the fixed-source stratum ----------------------------------------------------------------


class Diary:
    """One text of everything in the order it came, except that u1's is sorted."""

    def __init__(self) -> None:
        self.records = []

    def add(self, record) -> None:
        self.records.append(record)

    def retained(self):
        return frozenset(record.id for record in self.records)

    def expose(self, query: str):
        records = self.records
        if records[0].id.startswith("u1"):
            records = sorted(records, key=lambda record: record.position)
        text = " / ".join(record.text for record in records)
        return routeprism.Exposure((Block("diary", text, self.retained()),))


def test_the_same_sources_in_another_text_are_a_stratum(pools, scripted) -> None:
    # The model reads the last entry: 3 forward, 0 on replay, and for u1 always 3.
    model = scripted(
        lambda ask: "a" if ask.memory.rindex("number3") > ask.memory.rindex("number0") else "b"
    )
    result = routeprism.audit(
        pools(3), Diary, models=[model], draws=2, provenance=["preserved", "neutral"], resamples=100
    )
    for arm in ("", "preserved", "neutral"):
        where = {"experiment": "routes", "arm": arm, "mask": "fixed-source"}
        for name, expected in (("D_res", 1), ("D_correct", 1), ("Delta_rep", -1), ("H_within", 0)):
            row = result.value(name, **where)
            assert (row.estimate, row.queries, row.units) == (expected, 6, 2)
        whole = result.value("D_correct", experiment="routes", arm=arm, mask="")
        assert whole.estimate == pytest.approx(2 / 3)
    cut = routeprism.audit(
        pools(3), Diary, models=[model], draws=2, masks={"primary": {"u0q0", "u1q0"}}, resamples=100
    )
    row = cut.value("D_res", experiment="routes", mask="primary:fixed-source")
    assert (row.estimate, row.queries, row.units) == (1, 1, 1)
    assert any(
        "where sources agree and texts differ (6 pairs, 2 users), D_res = 1.000" in sentence
        and "D_correct = 1.000" in sentence
        for sentence in result.sentences
    )


def test_where_sources_or_texts_agree_there_is_no_such_stratum(pools, scripted) -> None:
    result = routeprism.audit(
        pools(2), "raw", "recent:k=2", models=[scripted(obedient)], draws=2, resamples=100
    )
    assert not [row for row in result.rows if row.mask == "fixed-source"]
