"""Bundles, by hand."""

from __future__ import annotations

import pytest

from routeprism.labels import Bundle, Exposed, Ineligible, bundle

POOL = ("r0", "r1", "r2", "r3", "r4", "r5")


def exposed(*sources: str, schedule: str = "forward") -> Exposed:
    return Exposed(schedule, frozenset(sources), {})


def test_steps_exchange_one_record_at_a_time_in_source_order() -> None:
    result = bundle(
        (*POOL, "r6"),
        frozenset({"r0", "r1"}),
        exposed("r4", "r5", "r6"),
        exposed("r0", "r1", "r2", schedule="replay"),
    )
    assert isinstance(result, Bundle)
    assert result.missing == ("r0", "r1")
    assert result.absent == ("r4", "r5", "r6")
    assert result.steps == (("r0", "r5", "r6"), ("r0", "r1", "r6"))
    assert result.replacement == ("r2", "r3", "r6")
    with pytest.raises(AttributeError):
        result.missing = ()


def test_there_must_be_as_many_other_records() -> None:
    # Outside Absent only r2 does not support the answer, and two are needed.
    result = bundle(
        POOL,
        frozenset({"r0", "r1"}),
        exposed("r3", "r4", "r5"),
        exposed("r0", schedule="replay"),
    )
    assert isinstance(result, Ineligible)
    assert result.stratum == "no-replacement"


def test_when_nothing_is_left_to_take_out_the_context_grows() -> None:
    result = bundle(
        POOL, frozenset({"r0", "r1"}), exposed("r5"), exposed("r0", "r1", schedule="replay")
    )
    assert isinstance(result, Bundle)
    assert result.steps == (("r0",), ("r0", "r1"))
    assert result.replacement == ("r2", "r3")


@pytest.mark.parametrize(
    ("support", "stratum"),
    [((), "unlabelled"), (("r5",), "one-record"), (("r2", "r3"), "same-support")],
)
def test_ineligible_questions_say_why(support: tuple[str, ...], stratum: str) -> None:
    result = bundle(
        POOL, frozenset(support), exposed("r0", "r1"), exposed("r4", "r5", schedule="replay")
    )
    assert isinstance(result, Ineligible)
    assert result.stratum == stratum
    assert result.reason
