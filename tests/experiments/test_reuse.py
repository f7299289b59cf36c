"""State reuse: which questions are targets, what is estimated over them, and that it is free."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import routeprism
from routeprism.experiments.reuse import targets_of
from routeprism.models import Ask
from routeprism.records import Benchmark
from routeprism.review.tracing import trace_rows


def test_the_anchor_is_the_smallest_id_as_text(pools) -> None:
    case = pools(1, ["q9", "q10", "q2"]).cases[0]
    assert [question.id for question in targets_of(case).questions] == ["u0q9", "u0q2"]


def by_first_record(ask: Ask) -> str:
    """Answer the anchor right on both routes, and targets right on replay alone (number0)."""
    return "a" if "q10" in ask.question or "number0" in ask.memory else "b"


def test_estimates_are_over_the_targets_alone(pools, scripted) -> None:
    model = scripted(by_first_record)
    tiny = pools(4, ["q9", "q10", "q2"])
    result = routeprism.audit(
        tiny, "recent:k=2", models=[model], draws=2, reuse=True, resamples=100
    )
    routes = result.value("Delta_rep", experiment="routes", arm="", mask="")
    assert (routes.estimate, routes.queries) == (pytest.approx(2 / 3), 12)
    row = result.value("Delta_rep", experiment="reuse", arm="")
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
    assert {name: result.value(name, **where).estimate for name in expected} == expected
    assert (
        "8 different questions of 4 users (4 with two or more) were asked of one state per route; "
        "sources changed in 8, contexts in 8" in result.sentences[-1]
    )


def test_a_mask_and_a_kind_have_their_own_anchor(pools, scripted, tmp_path: Path) -> None:
    # u*q0 is the anchor of all questions. Within the mask q1 is, and within kind "late" q2.
    tiny = pools(4, ["q0", "q1", "q2", "q3"])
    cases = [
        replace(
            case,
            questions=tuple(
                replace(question, kind="early" if question.id[-1] in "01" else "late")
                for question in case.questions
            ),
        )
        for case in tiny.cases
    ]
    masked = [
        question.id for case in cases for question in case.questions if question.id[-1] in "123"
    ]
    # Only q1 and q2 are answered differently on the two routes.
    model = scripted(
        lambda ask: "a" if "number0" in ask.memory or ask.question.count("q3") else "b"
    )
    result = routeprism.audit(
        replace(tiny, cases=tuple(cases)),
        "recent:k=2",
        models=[model],
        masks={"primary": masked},
        reuse=True,
        resamples=100,
        run=tmp_path / "run",
    )
    rows = {
        (row.mask, row.stratum): (row.estimate, row.queries, row.units)
        for row in result.rows
        if row.experiment == "reuse" and row.quantity == "H" and not row.arm
    }
    assert rows == {
        ("", "all"): (pytest.approx(2 / 3), 12, 4),  # q1 q2 q3
        ("", "early"): (1, 4, 4),  # q1
        ("", "late"): (0, 4, 4),  # q3
        ("primary", "all"): (0.5, 8, 4),  # q2 q3
    }
    several = result.value("count.several_targets", mask="primary", experiment="reuse")
    assert (several.estimate, several.queries) == (4, 8)
    numbers = [at for at, row in enumerate(result.rows, 1) if row.experiment == "reuse"]
    assert all(trail.agrees for trail in trace_rows(tmp_path / "run", numbers))


def test_support_strata_and_their_difference_within_users(pools, scripted) -> None:
    # recent:k=2 shows records 2 3 forward and 0 1 on replay. q1's support changes, q2's is shown
    # by neither: nothing is preserved but its absence.
    support = {"q0": [0], "q1": [0], "q2": []}
    model = scripted(lambda ask: "a" if "number0" in ask.memory and "q1" in ask.question else "b")
    tiny = pools(3, ["q0", "q1", "q2"], support=lambda question: support[question])
    result = routeprism.audit(tiny, "recent:k=2", models=[model], reuse=True, resamples=100)
    changed = result.value("Delta_rep", experiment="reuse", arm="support-changed")
    assert (changed.estimate, changed.queries, changed.labels) == (1, 3, "own")
    # q2 was read and no record supports it: its (empty) exposed support does not change.
    preserved = result.value("Delta_rep", experiment="reuse", arm="support-preserved")
    assert (preserved.estimate, preserved.queries) == (0, 3)
    with pytest.raises(LookupError):  # every question has been read
        result.value("Delta_rep", experiment="reuse", arm="support-unlabelled")

    both = {"q0": [0], "q1": [0], "q2": [1], "q3": [3]}
    tiny = pools(3, list(both), support=lambda question: both[question])
    result = routeprism.audit(
        tiny, "recent:k=3", models=[model], reuse=True, draws=2, resamples=100
    )
    # recent:k=3 shows 1 2 3 forward and 0 1 2 on replay: q2 keeps its support, q1 and q3 do not.
    changed = result.value("Delta_rep", experiment="reuse", arm="support-changed")
    row = result.value("Delta_rep", experiment="reuse", arm="support-preserved")
    assert (changed.estimate, changed.queries) == (0.5, 6)
    assert (row.estimate, row.queries) == (0, 3)
    gap = result.value("changed-preserved.Delta_rep", experiment="reuse")
    assert (gap.estimate, gap.units) == (0.5, 3)
    assert "changed minus preserved within users 0.500 [0.500, 0.500]" in result.sentences[-1]


def test_changed_minus_absent_is_a_difference_of_means_and_apart_within_users(
    pools, scripted
) -> None:
    """Appendix D.9: 0.559 = 0.673 − 0.114 over 13 and 11 users, whoever has both."""
    # recent:k=2 shows records 2 3 forward and 0 1 on replay; q0 is the anchor.
    labelled = {
        "u0": {"q1": [0], "q2": [0]},  # both targets change: no target without support
        "u1": {"q1": [0], "q2": []},
        "u2": {"q1": [], "q2": []},  # neither changes
    }
    plain = pools(3, ["q0", "q1", "q2"], support=lambda question: [0])
    cases = tuple(
        replace(
            case,
            questions=tuple(
                replace(
                    q,
                    labels={
                        "own": frozenset(
                            f"{q.user}r{at}" for at in labelled[q.user].get(q.id[2:], [])
                        )
                    },
                )
                for q in case.questions
            ),
        )
        for case in plain.cases
    )
    tiny = replace(plain, cases=cases)

    def say(ask: Ask) -> str:
        """Be right on replay, except that u1 is wrong throughout about q1 and right about q2."""
        if "u1" in ask.memory:
            return "a" if "q2" in ask.question and "number0" in ask.memory else "b"
        return "a" if "u0" in ask.memory and "number0" in ask.memory else "b"

    result = routeprism.audit(
        tiny, "recent:k=2", models=[scripted(say)], draws=2, reuse=True, resamples=1000
    )
    where = {"experiment": "reuse"}
    changed = result.value("Delta_rep", arm="support-changed", **where)
    absent = result.value("Delta_rep", arm="support-absent", **where)
    # Changed: u0 1, u1 0, so 0.5. Absent: u1 1, u2 0, so 0.5.
    assert (changed.estimate, changed.units) == (0.5, 2)
    assert (absent.estimate, absent.units) == (0.5, 2)
    means = result.value("changed-absent.Delta_rep", **where)
    assert (means.estimate, means.queries, means.units) == (0, 6, 3)
    within = result.value("changed-absent.within.Delta_rep", **where)
    assert (within.estimate, within.queries, within.units) == (-1, 2, 1)


def test_pairs_that_show_no_support_at_all_are_also_given_apart(pools, scripted) -> None:
    support = {"q0": [0], "q1": [1], "q2": [3]}
    tiny = pools(2, list(support), support=lambda question: support[question])
    result = routeprism.audit(
        tiny,
        "recent:k=1",
        models=[scripted(lambda ask: "a")],
        schedules=["odd-even"],  # 0 2 1 3 ends with 3, as forward does
        reuse=True,
        resamples=100,
    )
    absent = result.value("H", experiment="reuse", arm="support-absent")
    preserved = result.value("H", experiment="reuse", arm="support-preserved")
    assert (absent.queries, preserved.queries) == (2, 4)


@pytest.mark.slow
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
    result = routeprism.audit(
        mixed, "recent:k=2", models=[scripted(lambda ask: "a")], reuse=True, resamples=100
    )
    assert result.value("H", experiment="reuse").units == 2
    assert "reuse: one user has one question, and so no target" in result.notes
