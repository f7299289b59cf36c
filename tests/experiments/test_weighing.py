"""Sentences about answers: nothing is called unchanged that changed, or that nobody could read."""

from __future__ import annotations

from pathlib import Path

import pytest

import routeprism
from routeprism.models import Ask
from routeprism.review.gates import check_run

pytestmark = pytest.mark.usefixtures("only_reversal")


def in_source_order(ask: Ask) -> bool:
    """Focal keeps the last of four records forward, and the first on replay."""
    return "number3" in ask.memory


def test_a_fall_of_accuracy_is_not_called_no_disagreement(scripted, pools) -> None:
    """Half of the users answer noisily: D_res is −0.25 for them and 1 for the others.

    The accuracy of all eight falls: p = 2/256, adjusted for two claims 4/256.
    """

    def say(ask: Ask) -> str:
        noisy = any(f"u{user}" in ask.memory for user in (0, 1, 2, 3))
        if in_source_order(ask):
            return "b" if noisy and ask.draw % 2 else "a"
        return "c" if noisy and ask.draw % 2 else "b"

    result = routeprism.audit(
        pools(8, options=("oak", "elm", "ash")),
        "focal",
        models=[scripted(say)],
        draws=2,
        interval="percentile",
        resamples=400,
    )
    (report,) = [sentence for sentence in result.sentences if ", read by scripted" in sentence]
    assert "no disagreement beyond the model's own is shown" not in report
    assert (
        "accuracy 0.750 in source order, 0.000 under reversal (-0.750 [-0.875, -0.562]); " in report
    )
    assert (
        "order changes the answers, although disagreement beyond the model's own is not shown by "
        "itself (D_res = 0.375 [-0.094, 0.688])"
    ) in report


def test_answers_that_nobody_could_read_are_not_called_equal(scripted, pools) -> None:
    for draws in (1, 2):
        result = routeprism.audit(
            pools(), "focal", models=[scripted(lambda ask: "hm")], draws=draws, resamples=100
        )
        (report,) = [sentence for sentence in result.sentences if ", read by scripted" in sentence]
        assert report.endswith(
            f"none of the {24 * draws} answers could be read (refused or unparsable), so nothing "
            "can be concluded about order"
        )
        where = {"arm": "", "mask": "", "experiment": "routes"}
        assert result.value("count.no_answer.forward", **where).estimate == 12 * draws


def test_one_route_that_nobody_could_read_is_named(scripted, pools) -> None:
    model = scripted(lambda ask: "a" if in_source_order(ask) else "hm")
    result = routeprism.audit(pools(), "focal", models=[model], resamples=100)
    (report,) = [sentence for sentence in result.sentences if ", read by scripted" in sentence]
    assert "none of the 12 answers under reversal could be read" in report
    (plain,) = [str(statement) for statement in result.statements if statement.kind == "accuracy"]
    assert "scripted: none of the 12 answers under reversal could be read" in plain
    assert not [row for row in result.rows if row.quantity == "count.no_answer.forward"]


def test_unread_answers_in_every_experiment(scripted, pools) -> None:
    """Twelve questions, four conditions and three draws each."""
    restoration = routeprism.restore(
        pools(support=lambda question: [3]),
        "recent:k=2",
        models=[scripted(lambda ask: "hm")],
        resamples=100,
    )
    (report,) = [sentence for sentence in restoration.sentences if "could be read" in sentence]
    assert report.startswith("scripted: none of its 144 answers for restoration could be read")
    assert report in str(restoration)
    assert not any("is not shown to help" in sentence for sentence in restoration.sentences)


def test_a_judge_at_floor_concludes_nothing(scripted, pools, tmp_path: Path) -> None:
    """Nobody answers with the gold text, so that every accuracy is 0."""
    run = tmp_path / "run"
    free = pools(options=(), support=lambda question: [3])
    model = scripted(lambda ask: "pine" if in_source_order(ask) else "fir")
    restoration = routeprism.restore(free, "recent:k=2", models=[model], resamples=100, run=run)
    (report,) = [sentence for sentence in restoration.sentences if ", read by scripted" in sentence]
    assert (
        "no answer is correct, so the model or the judge embedded:f1=0.5 is at floor and "
        "accuracy allows no conclusion about the displaced record"
    ) in report
    assert "not shown to help" not in report
    row = restoration.value("restored-absent", arm="", mask="", experiment="restoration")
    assert "floor" in row.flags.split(";")
    (verdict,) = check_run(run, ["arm=:restored-absent.lower<=0.1"]).verdicts
    assert "at floor and accuracy allows no conclusion" in verdict.sentence


def test_a_model_at_floor_concludes_nothing_from_accuracy(scripted, pools) -> None:
    result = routeprism.audit(
        pools(), "focal", models=[scripted(lambda ask: "b")], draws=2, resamples=100
    )
    (report,) = [sentence for sentence in result.sentences if ", read by scripted" in sentence]
    assert "the model is at floor and accuracy allows no conclusion" in report
    (plain,) = [str(statement) for statement in result.statements if statement.kind == "accuracy"]
    assert "0.000 [0.000, 0.000] under reversal (12 questions): no answer is correct, so" in plain
    assert "small" not in plain


def test_a_model_that_is_sometimes_right_has_no_floor(scripted, pools) -> None:
    model = scripted(lambda ask: "a" if "u1" in ask.memory else "b")
    result = routeprism.audit(pools(), "focal", models=[model], draws=2, resamples=100)
    assert not any("floor" in row.flags.split(";") for row in result.rows if row.stratum == "all")
