"""The update design: four conditions that cross the old record and the new one, by hand."""

from __future__ import annotations

import pytest

from routeprism.labels import Exposed, Ineligible, Update, update_design

POOL = ("a", "o", "b", "n", "c", "d")
"""`o` is outdated, `n` is current, the rest is unrelated."""


def exposed(name: str, ids: str) -> Exposed:
    return Exposed(name, frozenset(ids), {})


def decide(forward: str, route: str, current: str = "n", stale: str = "o") -> Update | Ineligible:
    return update_design(
        POOL,
        frozenset(current),
        frozenset(stale),
        exposed("forward", forward),
        exposed("replay", route),
    )


def test_the_four_conditions() -> None:
    """The route shows o and c: a can take the place of o, and c that of n, at their positions."""
    result = decide("nc", "oc")
    assert result == Update(
        "n",
        "o",
        "c",
        "a",
        "replay",
        {
            "stale": ("o", "c"),
            "both": ("o", "n"),
            "neither": ("a", "c"),
            "current": ("a", "n"),
        },
    )


def test_conditions_keep_number_and_position() -> None:
    result = decide("bncd", "obcd")
    assert isinstance(result, Update)
    stale, both, neither, current = result.conditions.values()
    assert {len(ids) for ids in result.conditions.values()} == {4}
    old, new = stale.index("o"), both.index("n")
    assert both.index("o") == old
    assert current.index("n") == new
    assert neither[old] == current[old] == result.replacement
    assert stale[new] == neither[new] == result.control


def test_a_memory_that_shows_everything_else_leaves_one_record_out() -> None:
    """With all of a, b, c and d shown, no unseen record is left to stand in for o or for n."""
    result = decide("abncd", "aobcd")
    assert isinstance(result, Update)
    assert result.conditions == {
        "stale": ("o", "b", "c", "d"),
        "both": ("o", "n", "c", "d"),
        "neither": ("a", "b", "c", "d"),
        "current": ("a", "n", "c", "d"),
    }


def test_the_forward_route_may_be_the_one_with_the_old_value() -> None:
    result = decide("oc", "nc")
    assert isinstance(result, Update)
    assert result.schedule == "forward"


@pytest.mark.parametrize(
    ("forward", "route", "current", "stale", "stratum"),
    [
        ("nc", "oc", "", "o", "unlabelled"),
        ("nc", "oc", "n", "", "unlabelled"),
        ("nc", "no", "n", "o", "not-stale"),  # both shown
        ("nc", "cd", "n", "o", "not-stale"),  # neither shown
        ("nc", "oac", "n", "oa", "several-records"),
        ("nc", "oc", "nd", "o", "several-records"),
        ("nc", "o", "n", "o", "not-removable"),  # nothing to exchange the current record for
        ("n", "od", "n", "oabc", "no-replacement"),  # d alone is left to fill two places
    ],
)
def test_why_a_pair_is_not_eligible(
    forward: str, route: str, current: str, stale: str, stratum: str
) -> None:
    assert decide(forward, route, current, stale) == Ineligible(stratum)  # type: ignore[arg-type]
