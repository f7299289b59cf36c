"""Agreement of two readings: the published confusion matrix, and what κ means at its edges."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.measures import MEMBERSHIP, Confusion, agreement_estimate, kappa_estimate

LABELS = ("admissible", "ambiguous", "inadmissible")
# Table "Confusion matrix for two independent readings of complete pools" (Appendix F.1).
PUBLISHED = Confusion(LABELS, ((63, 2, 5), (7, 1, 0), (7, 9, 52)))


def test_the_published_matrix_gives_the_published_agreement_and_kappa() -> None:
    assert (PUBLISHED.agreed, PUBLISHED.total) == (116, 146)
    assert PUBLISHED.agreement == pytest.approx(0.795, abs=5e-4)
    assert PUBLISHED.kappa == pytest.approx(0.634, abs=5e-4)
    # By hand: (116·146 − Σ row·column) / (146² − Σ row·column), Σ = 70·77 + 8·12 + 68·57.
    assert PUBLISHED.kappa == pytest.approx((116 * 146 - 9362) / (146**2 - 9362), abs=1e-15)


@pytest.mark.parametrize(
    ("agreed", "total", "published"), [(697, 778, 0.896), (125, 146, 0.856), (116, 146, 0.795)]
)
def test_published_shares_of_agreement(agreed: int, total: int, published: float) -> None:
    """Appendix F.1; κ = 0.842 of the 778 labels needs their matrix, which is not published."""
    result = agreement_estimate([(agreed, total)], interval="expanded", seed=1)
    assert result is not None
    assert result.value == pytest.approx(published, abs=5e-4)
    assert (result.lower, result.upper, result.queries) == (None, None, total)


def test_kappa_by_hand() -> None:
    # Agreement 0.7, expected 0.5 · 0.6 + 0.5 · 0.4 = 0.5: κ = 0.4.
    assert Confusion(("yes", "no"), ((20, 5), (10, 15))).kappa == pytest.approx(0.4)
    assert Confusion(("yes", "no"), ((0, 5), (5, 0))).kappa == -1


def test_kappa_is_not_defined_without_items_or_with_one_label() -> None:
    assert Confusion.of((), LABELS).kappa is None
    assert Confusion.of((), LABELS).agreement is None
    item = Confusion.of([("admissible", "admissible")] * 4, LABELS)
    assert (item.agreement, item.kappa) == (1.0, None)
    assert kappa_estimate([item, item], interval="expanded", seed=1) is None
    assert kappa_estimate([], interval="expanded", seed=1) is None
    assert agreement_estimate([(0, 0)], interval="expanded", seed=1) is None


def test_a_label_that_is_none_is_refused() -> None:
    with pytest.raises(KeyError, match="maybe"):
        Confusion.of([("admissible", "maybe")], LABELS)
    with pytest.raises(ValueError, match="Expected 2 rows of 2 counts"):
        Confusion(("a", "b"), ((1, 2),))
    with pytest.raises(ValueError, match="Expected labels="):
        Confusion.of((), LABELS) + Confusion.of((), MEMBERSHIP)


def test_sets_are_compared_by_membership() -> None:
    result = Confusion.of_sets(
        [
            ({"r1"}, {"r1", "r2"}, ("r1", "r2", "r3")),
            (set(), set(), ("s1", "s2")),
            ({"t1"}, {"t2"}, ("t1", "t2")),
        ]
    )
    assert result.labels == ("in", "out")
    # in/in: r1; in/out: t1; out/in: r2, t2; out/out: r3, s1, s2.
    assert result.counts == ((1, 1), (2, 3))


def test_limits_resample_units_and_are_the_same_every_time() -> None:
    units = [
        Confusion(("a", "b"), ((3, 1), (0, 2))),
        Confusion(("a", "b"), ((1, 2), (1, 1))),
        Confusion(("a", "b"), ((4, 0), (1, 3))),
    ]
    first = kappa_estimate(units, interval="expanded", seed=7, resamples=1000)
    assert first == kappa_estimate(units, interval="expanded", seed=7, resamples=1000)
    assert first is not None
    assert first.lower is not None and first.upper is not None
    # The least and greatest κ of any resample is that of one unit drawn three times.
    alone = [unit.kappa for unit in units]
    assert min(alone) <= first.lower <= first.value <= first.upper <= max(alone)  # type: ignore[type-var]
    assert (first.queries, first.units) == (19, 3)
    share = agreement_estimate(
        [(unit.agreed, unit.total) for unit in units], interval="expanded", seed=7
    )
    assert share is not None
    assert share.value == pytest.approx(14 / 19)


def test_no_limits_where_a_resample_leaves_kappa_undefined() -> None:
    only_a = Confusion(("a", "b"), ((3, 0), (0, 0)))
    both = Confusion(("a", "b"), ((1, 1), (0, 2)))
    result = kappa_estimate([only_a, both], interval="expanded", seed=7, resamples=1000)
    assert result is not None
    assert (result.lower, result.upper) == (None, None)
    assert result.value == pytest.approx((only_a + both).kappa)


@given(st.lists(st.lists(st.integers(0, 20), min_size=3, max_size=3), min_size=3, max_size=3))
def test_kappa_is_symmetric_and_at_most_one(counts: list[list[int]]) -> None:
    first = Confusion(LABELS, tuple(map(tuple, counts)))
    second = Confusion(LABELS, tuple(zip(*counts, strict=True)))
    assert first.kappa == second.kappa
    assert first.kappa is None or first.kappa <= 1
    if first.kappa is not None:
        assert (first.kappa == 1) == (first.agreement == 1)
