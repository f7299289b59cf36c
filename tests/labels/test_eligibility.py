"""Eligibility for the four conditions, by hand and for every order of sample pools."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.labels import Design, Exposed, Ineligible, design, swap_design

POOL = ("r0", "r1", "r2", "r3", "r4", "r5")


def exposed(*sources: str, schedule: str = "forward", **stand_ins: str) -> Exposed:
    return Exposed(schedule, frozenset(sources), stand_ins)


def test_the_papers_example() -> None:
    """Four records, one cluster: forward keeps 3, replay keeps 0, which carries the answer."""
    result = design(
        ("r0", "r1", "r2", "r3"),
        frozenset({"r0"}),
        exposed("r3", r0="r3", r1="r3", r2="r3"),
        exposed("r0", schedule="replay", r1="r0", r2="r0", r3="r0"),
    )
    assert isinstance(result, Design)
    assert (result.support, result.removed, result.replacement) == ("r0", "r3", "r1")
    assert (result.present_schedule, result.absent_schedule) == ("replay", "forward")
    assert result.conditions == {
        "present": ("r0",),
        "absent": ("r3",),
        "restored": ("r0",),
        "replacement": ("r1",),
    }


def test_a_window_takes_out_its_smallest_record() -> None:
    result = design(
        POOL, frozenset({"r1"}), exposed("r3", "r4", "r5"), exposed("r0", "r1", "r2", schedule="x")
    )
    assert isinstance(result, Design)
    assert result.removed == "r3"
    assert result.conditions["restored"] == ("r1", "r4", "r5")
    # r0 is the smallest record outside Absent without support, and shown first like r1.
    assert result.conditions["replacement"] == ("r0", "r4", "r5")


def test_the_replacement_takes_the_same_display_position() -> None:
    # Restored shows r4 last; r0 would be shown first, r5 is shown last.
    absent, present = exposed("r1", "r2", "r3"), exposed("r2", "r3", "r4", schedule="x")
    result = design(POOL, frozenset({"r4"}), absent, present)
    assert isinstance(result, Design)
    assert result.replacement == "r5"
    assert result.conditions["restored"] == ("r2", "r3", "r4")


def test_the_first_candidate_that_fits_is_the_replacement() -> None:
    # r5, ranked first, would be shown last; r2 is shown first, as r1 is.
    sides = exposed("r3", "r4"), exposed("r0", "r1", schedule="x")
    result = design(POOL, frozenset({"r1"}), *sides, candidates=("r5", "r1", "r2", "r0"))
    assert isinstance(result, Design)
    assert result.conditions["restored"] == ("r1", "r4")
    assert result.replacement == "r2"


@pytest.mark.parametrize(
    ("support", "forward", "route", "stratum"),
    [
        ((), exposed("r0"), exposed("r1"), "unlabelled"),
        (("r5",), exposed("r0"), exposed("r1"), "same-support"),
        (("r0",), exposed("r0", "r1"), exposed("r0", "r2"), "same-support"),
        (("r0", "r1"), exposed("r0"), exposed("r1"), "identity-swap"),
        (("r0", "r1"), exposed("r0", "r1"), exposed("r2", "r3"), "several-records"),
        (("r0",), exposed("r0", "r1"), exposed("r2"), "source-count"),
        (("r0",), exposed("r0"), exposed("r1", r0="r4"), "not-removable"),
        (("r0", "r1"), exposed("r0", "r1"), exposed("r1", "r2", r0="r1"), "not-removable"),
        (("r0",), exposed("r0"), exposed("r1", r2="r1"), "not-removable"),
    ],
)
def test_ineligible_pairs_say_why(support, forward, route, stratum) -> None:
    result = design(POOL, frozenset(support), forward, route)
    assert isinstance(result, Ineligible)
    assert result.stratum == stratum
    assert result.reason


def test_the_rule_says_what_the_absent_route_may_still_expose() -> None:
    """Both routes expose r5; replay alone exposes r0 (Appendix I.15, not I.14)."""
    sides = exposed("r4", "r5"), exposed("r0", "r5", schedule="replay")
    fewer = design(POOL, frozenset({"r0", "r5"}), *sides, eligibility="one-fewer")
    assert isinstance(fewer, Design)
    assert "r5" in fewer.conditions["absent"]
    none = design(POOL, frozenset({"r0", "r5"}), *sides, eligibility="none")
    assert isinstance(none, Ineligible)
    assert none.stratum == "support-left"
    # Where r0 is the only support, both rules give the same four conditions.
    assert design(POOL, frozenset({"r0"}), *sides, eligibility="none") == design(
        POOL, frozenset({"r0"}), *sides
    )


def test_without_another_record_there_is_no_replacement() -> None:
    result = design(("r0", "r1"), frozenset({"r0"}), exposed("r1"), exposed("r0", schedule="x"))
    assert isinstance(result, Ineligible)
    assert result.stratum == "no-replacement"


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.data())
def test_every_design_keeps_its_promises(data: st.DataObject) -> None:
    ids = st.frozensets(st.sampled_from(POOL), min_size=1)
    support = data.draw(ids)
    forward, route = data.draw(ids), data.draw(ids)
    first, second = Exposed("forward", forward, {}), Exposed("replay", route, {})
    result = design(POOL, support, first, second)
    mirrored = design(POOL, support, second, first)
    assert isinstance(result, Design) == isinstance(mirrored, Design)
    if not isinstance(result, Design):
        return
    assert result == mirrored  # which route is called forward does not matter
    sizes = {len(ids) for ids in result.conditions.values()}
    assert len(sizes) == 1
    absent, restored, replaced = (
        set(result.conditions[name]) for name in ("absent", "restored", "replacement")
    )
    assert absent - restored == absent - replaced == {result.removed}
    assert restored - absent == {result.support}
    assert replaced - absent == {result.replacement}
    assert result.replacement not in support
    assert result.removed not in support
    assert set(result.conditions["present"]) & support > absent & support


def test_a_swap_exchanges_the_two_support_records() -> None:
    """Both routes support the answer, each by a record of its own (Appendix I.13)."""
    support = frozenset({"r1", "r3"})
    sides = exposed("r1", "r4"), exposed("r3", "r4", schedule="replay")
    assert design(POOL, support, *sides) == Ineligible("identity-swap")
    result = swap_design(POOL, support, *sides)
    assert isinstance(result, Design)
    assert (result.support, result.removed, result.replacement) == ("r1", "r3", "r0")
    assert (result.present_schedule, result.absent_schedule) == ("forward", "replay")
    assert result.conditions == {
        "present": ("r1", "r4"),
        "absent": ("r3", "r4"),
        "restored": ("r1", "r4"),
        "replacement": ("r0", "r4"),
    }


@pytest.mark.parametrize(
    ("support", "forward", "route", "expected"),
    [
        (("r0",), exposed("r0"), exposed("r1"), None),
        (("r0", "r1"), exposed("r0"), exposed("r1", "r2"), Ineligible("source-count")),
        (
            ("r0", "r1", "r2"),
            exposed("r0", "r1"),
            exposed("r2", "r3"),
            Ineligible("several-records"),
        ),
        (POOL, exposed("r0"), exposed("r1"), Ineligible("no-replacement")),
    ],
)
def test_what_is_no_swap_to_restore(support, forward, route, expected) -> None:
    assert swap_design(POOL, frozenset(support), forward, route) == expected
