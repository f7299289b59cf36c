"""Every source-level number of PROTOCOL §4 that needs no enumeration, on the real files."""

from __future__ import annotations

from pathlib import Path

import pytest

import routeprism
from routeprism import Audit

pytestmark = pytest.mark.realdata

BOTH = "focal"
SURVIVOR_ONLY = "focal:cluster=source"
CLUSTERING_ONLY = "focal:survivor=source-position"
CANONICAL = "focal:cluster=source,survivor=source-position"
SCHEDULES = ("replay", "half-swap", "odd-even")


@pytest.fixture(scope="module")
def audited(data: Path) -> Audit:
    return routeprism.audit(
        "personamem",
        BOTH,
        # Written in full; outputs use the canonical spelling.
        "focal:cluster=source,survivor=last-arrival",
        CLUSTERING_ONLY,
        CANONICAL,
        "recent:k=3",
        "lexical",
        schedules=SCHEDULES,
        ties=True,
        data=data,
    )


def test_focal_overlap_and_limits(audited: Audit) -> None:
    row = audited.value("J", policy=BOTH, schedule="replay")
    assert row.estimate == pytest.approx(0.045045, abs=5e-7)
    assert row.lower == pytest.approx(0.0090, abs=0.003)
    assert row.upper == pytest.approx(0.0811, abs=0.003)
    assert (row.queries, row.units, row.unit) == (589, 37, "user")


def test_focal_on_fact_recall(audited: Audit) -> None:
    row = audited.value("J", policy=BOTH, schedule="replay", stratum="fact-recall")
    assert 1 - row.estimate == pytest.approx(0.954955, abs=5e-7)
    changed = audited.value(
        "V_changed_count", policy=BOTH, schedule="replay", stratum="fact-recall"
    )
    assert (changed.estimate, changed.queries) == (146, 146)


@pytest.mark.parametrize(
    ("policy", "quantity", "expected"),
    [
        (SURVIVOR_ONLY, "J", (0.045045, 0.054054, 0.414414)),
        (SURVIVOR_ONLY, "C_changed", (1.0, 1.0, 0.621622)),
        (CLUSTERING_ONLY, "J", (0.972973, 0.986486, 0.986486)),
        (CLUSTERING_ONLY, "C_changed", (0.054054, 0.027027, 0.027027)),
        (BOTH, "J", (0.045045, 0.054054, 0.400901)),
        (CANONICAL, "J", (1.0, 1.0, 1.0)),
        (CANONICAL, "I_changed", (0.0, 0.0, 0.0)),
    ],
)
def test_mechanism_arms(
    audited: Audit, policy: str, quantity: str, expected: tuple[float, ...]
) -> None:
    got = [audited.value(quantity, policy=policy, schedule=s).estimate for s in SCHEDULES]
    assert got == [pytest.approx(value, abs=5e-7) for value in expected]


def test_operation_contrasts_are_against_the_canonical_arm(audited: Audit) -> None:
    # The canonical arm has J = 1 everywhere, so delta_op.J is J − 1, jointly resampled.
    for policy, arm in (
        (BOTH, "clustering+survivor"),
        (SURVIVOR_ONLY, "survivor"),
        (CLUSTERING_ONLY, "clustering"),
    ):
        overlap = audited.value("J", policy=policy, schedule="replay")
        contrast = audited.value("delta_op.J", policy=policy, schedule="replay", arm=arm)
        assert contrast.experiment == "mechanism"
        assert contrast.estimate == pytest.approx(overlap.estimate - 1, abs=1e-9)
        assert contrast.lower == pytest.approx(overlap.lower - 1, abs=1e-9)
    crossed = audited.value("interaction.J", policy=BOTH, schedule="odd-even")
    # 0.400901 − 0.414414 − 0.986486 + 1
    assert crossed.estimate == pytest.approx(0.0, abs=2e-6)


@pytest.mark.parametrize(("schedule", "expected"), [("forward", 15), ("replay", 12)])
def test_tie_audit(audited: Audit, schedule: str, expected: int) -> None:
    where = {"policy": BOTH, "schedule": schedule, "stratum": "fact-recall"}
    assert audited.value("count.representative_ties", **where).estimate == expected
    assert audited.value("count.assignment_ties", **where).estimate == 0


def test_duplicate_options(audited: Audit) -> None:
    row = audited.value("count.duplicate_options", stratum="fact-recall")
    assert (row.estimate, row.queries) == (16, 146)


def test_recent_after_the_budget(audited: Audit) -> None:
    row = audited.value("J", policy="recent:k=3", schedule="replay")
    assert row.estimate == pytest.approx(0.1209, abs=5e-5)
    assert row.lower == pytest.approx(0.087, abs=0.003)
    assert row.upper == pytest.approx(0.154, abs=0.003)


def test_recent_before_the_budget(audited: Audit) -> None:
    row = audited.value("overlap.retained", policy="recent:k=3", schedule="replay")
    assert row.estimate == pytest.approx(0.1703, abs=5e-5)
    assert row.labels == "reference-session"


@pytest.mark.parametrize(
    ("policy", "forward", "replay"),
    [("recent:k=3", 6716.48, 6966.53), (BOTH, 2766.14, 4181.30)],
)
def test_context_lengths(audited: Audit, policy: str, forward: float, replay: float) -> None:
    where = {"policy": policy, "schedule": "replay"}
    got = audited.value("context_length.forward", **where).estimate
    assert got == pytest.approx(forward, abs=0.005)
    assert audited.value("context_length.route", **where).estimate == pytest.approx(
        replay, abs=0.005
    )


@pytest.mark.parametrize(
    ("interface", "length"), [("budget", 6716.48), ("budget:admit=source", 6867.73)]
)
def test_recent_comparator_lengths(data: Path, interface: str, length: float) -> None:
    audited = routeprism.audit(
        "personamem", "source-order(recent:k=3)", interface=interface, data=data, resamples=100
    )
    for side in ("forward", "route"):
        got = audited.value(f"context_length.{side}", experiment="routes").estimate
        assert got == pytest.approx(length, abs=0.005)
    assert audited.value("J").estimate == 1


def test_lexical_moves_internal_state_alone(audited: Audit) -> None:
    for schedule in SCHEDULES:
        where = {"policy": "lexical", "schedule": schedule}
        counts = [audited.value(f"{x}_changed_count", **where).estimate for x in ("V", "C", "I")]
        assert counts == [0, 0, 589]


def test_idf_overlap_retriever_shows_the_same_as_bm25(data: Path, audited: Audit) -> None:
    """The paper's identity check: under focal, the other retriever compiles the same contexts."""
    check = routeprism.audit(
        "personamem",
        BOTH,
        interface="budget:rank=idf-overlap",
        schedules=SCHEDULES,
        data=data,
        resamples=100,
    )
    for schedule in SCHEDULES:
        for quantity in ("J", "context_length.route"):
            where = {"policy": BOTH, "schedule": schedule}
            assert check.value(quantity, **where).estimate == pytest.approx(
                audited.value(quantity, **where).estimate, abs=1e-9
            )


def test_sentences_say_at_which_layer_order_showed(data: Path) -> None:
    audited = routeprism.audit("personamem", BOTH, "lexical", data=data)
    layers = {s.policy: s.text for s in audited.statements if s.kind == "layers"}
    changed = "records kept 589 of 589, records shown 589 of 589, text 589 of 589"
    assert changed in layers["focal"]
    assert "J = 0.045 [0.009, 0.081]" in layers["focal"]
    alike = "records kept 0 of 589, records shown 0 of 589, text 0 of 589"
    assert f"{alike}, internal state 589 of 589; J = 1.000" in layers["lexical"]
    levels = {verdict.policy: verdict.level for verdict in audited.verdicts}
    assert levels == {"focal": "evidence moves", "lexical": "internal only"}


@pytest.mark.parametrize(
    ("policy", "overlap", "forward", "replay"),
    [
        ("recent:k=3", 0.000, 0.131, 0.131),
        ("recent:k=8", 0.000, 0.315, 0.310),
        ("recent:k=16", 0.187, 0.608, 0.570),
        ("focal", 0.000, 0.026, 0.043),
    ],
)
def test_locomo_retention(
    data: Path, policy: str, overlap: float, forward: float, replay: float
) -> None:
    audited = routeprism.audit("locomo", policy, data=data, resamples=1000)
    rows = [
        audited.value(name)
        for name in ("overlap.retained", "recall.retained.forward", "recall.retained.route")
    ]
    assert [row.estimate for row in rows] == [
        pytest.approx(value, abs=0.0005) for value in (overlap, forward, replay)
    ]
    assert {(row.queries, row.units, row.unit) for row in rows} == {(1982, 10, "conversation")}
    assert {row.labels for row in rows} == {"benchmark"}


@pytest.mark.slow
def test_each_route_is_submitted_first_in_half_of_the_pairs(data: Path) -> None:
    """Appendix I.5: 63 of 126 pairs of questions and fillers there, 146 of 292 here.

    Questions of different users share prompts, which are asked once.
    """
    audit = routeprism.audit(
        "personamem",
        "focal",
        kinds=["fact-recall"],
        control="aligned",
        fillers=["A", "B"],
        models=["reader"],
        resamples=100,
        data=data,
    )
    for filler, half in (("A", 73), ("B", 73), ("A+B", 146)):
        for side in ("forward", "route"):
            row = audit.value(f"count.{side}_first", filler=filler, mask="", stratum="all")
            assert (row.estimate, row.queries) == (half, 146)
