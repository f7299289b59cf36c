"""State reuse: which questions are targets, what is estimated over them, and that it is free."""

from __future__ import annotations

from pathlib import Path

import pytest

import routeprism
from routeprism.experiments.reuse import targets_of
from routeprism.models import Ask
from routeprism.records import Benchmark


def test_the_anchor_is_the_smallest_id_as_text(pools) -> None:
    case = pools(1, ["q9", "q10", "q2"]).cases[0]
    assert [question.id for question in targets_of(case).questions] == ["u0q9", "u0q2"]


def by_first_record(ask: Ask) -> str:
    """Answer the anchor right on both routes, and targets right on replay alone (number0)."""
    return "a" if "q10" in ask.question or "number0" in ask.memory else "b"


def test_estimates_are_over_the_targets_alone(pools, scripted) -> None:
    model = scripted(by_first_record)
    tiny = pools(4, ["q9", "q10", "q2"])
    found = routeprism.audit(tiny, "recent:k=2", models=[model], draws=2, reuse=True, resamples=100)
    routes = found.value("Delta_rep", experiment="routes", arm="", mask="")
    assert (routes.estimate, routes.queries) == (pytest.approx(2 / 3), 12)
    row = found.value("Delta_rep", experiment="reuse", arm="")
    assert (row.estimate, row.queries, row.units) == (1, 8, 4)
    where = {"experiment": "reuse"}
    expected = {
        "J": 0,
        "V_changed_count": 8,
        "C_changed_count": 8,
        "count.several_targets": 4,
        "H_cross": 1,
        "H_within": 0,
        "D_res": 1,
        "accuracy.forward": 0,
        "accuracy.route": 1,
    }
    assert {name: found.value(name, **where).estimate for name in expected} == expected
    assert (
        "8 other questions of 4 users (4 with two or more) were asked of one state per route; "
        "sources changed in 8, contexts in 8" in found.sentences[-1]
    )


def test_support_strata_and_their_difference_within_users(pools, scripted) -> None:
    # recent:k=2 shows records 2 3 forward and 0 1 on replay. q1's support changes, q2's is shown
    # by neither: nothing is preserved but its absence.
    support = {"q0": [0], "q1": [0], "q2": []}
    model = scripted(lambda ask: "a" if "number0" in ask.memory and "q1" in ask.question else "b")
    tiny = pools(3, ["q0", "q1", "q2"], support=lambda question: support[question])
    found = routeprism.audit(tiny, "recent:k=2", models=[model], reuse=True, resamples=100)
    changed = found.value("Delta_rep", experiment="reuse", arm="support-changed")
    assert (changed.estimate, changed.queries, changed.labels) == (1, 3, "own")
    with pytest.raises(LookupError):  # without a label there is nothing to be preserved
        found.value("Delta_rep", experiment="reuse", arm="support-preserved")

    both = {"q0": [0], "q1": [0], "q2": [1], "q3": [3]}
    tiny = pools(3, list(both), support=lambda question: both[question])
    found = routeprism.audit(tiny, "recent:k=3", models=[model], reuse=True, draws=2, resamples=100)
    # recent:k=3 shows 1 2 3 forward and 0 1 2 on replay: q2 keeps its support, q1 and q3 do not.
    changed = found.value("Delta_rep", experiment="reuse", arm="support-changed")
    kept = found.value("Delta_rep", experiment="reuse", arm="support-preserved")
    assert (changed.estimate, changed.queries) == (0.5, 6)
    assert (kept.estimate, kept.queries) == (0, 3)
    gap = found.value("changed-preserved.Delta_rep", experiment="reuse")
    assert (gap.estimate, gap.units) == (0.5, 3)
    assert "changed minus preserved within users 0.500 [0.500, 0.500]" in found.sentences[-1]


def test_pairs_that_show_no_support_at_all_are_also_given_apart(pools, scripted) -> None:
    support = {"q0": [0], "q1": [1], "q2": [3]}
    tiny = pools(2, list(support), support=lambda question: support[question])
    found = routeprism.audit(
        tiny,
        "recent:k=1",
        models=[scripted(lambda ask: "a")],
        schedules=["odd-even"],  # 0 2 1 3 ends with 3, as forward does
        reuse=True,
        resamples=100,
    )
    absent = found.value("H", experiment="reuse", arm="support-absent")
    preserved = found.value("H", experiment="reuse", arm="support-preserved")
    assert (absent.queries, preserved.queries) == (2, 4)


def test_it_asks_nothing_that_the_routes_did_not(pools, scripted, tmp_path: Path) -> None:
    plain, reused = scripted(lambda ask: "a"), scripted(lambda ask: "a")
    routeprism.audit(pools(), "recent:k=2", models=[plain], draws=2, resamples=100)
    settings = {"models": [reused], "draws": 2, "resamples": 100, "reuse": True}
    costs = routeprism.audit(pools(), "recent:k=2", dry_run=True, **settings).costs
    routeprism.audit(pools(), "recent:k=2", **settings)
    assert len(plain.asked) == len(reused.asked) == costs["scripted"].calls == 48


def test_a_user_with_one_question_has_no_target(pools, scripted) -> None:
    mixed = Benchmark(
        "mixed", (pools(1, ["q0"]).cases[0], *pools(3).cases[1:]), "0" * 64, interface="all"
    )
    found = routeprism.audit(
        mixed, "recent:k=2", models=[scripted(lambda ask: "a")], reuse=True, resamples=100
    )
    assert found.value("H", experiment="reuse").units == 2
    assert "reuse: one user has one question, and so no target" in found.notes
