"""Cross-fitting: who learns from whom, and that nothing but records is learned from."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

import pytest

import routeprism
from routeprism.errors import ContractError, PeekError, SpecError
from routeprism.policies import SourceOrder, as_policy, make_policy
from routeprism.policies.recent import Recent
from routeprism.records import Case, Pool, Record, load_benchmark
from routeprism.routes import cross_fit

CASES = load_benchmark("sample").cases


@dataclass(frozen=True)
class Spy:
    """Keeps everything; notes what it was fitted on and whom it was built for."""

    seen: tuple[object, ...] = ()
    name: str = "spy"

    def fit(self, pools):
        return Spy(tuple(pools))

    def build(self, arrivals):
        match = re.search("u[0-9]{2}-r[0-9]", arrivals[0].id)  # copies, for checks, have marks
        assert match is not None
        BUILT.append((self.seen, match[0]))
        return Recent(k=99).build(arrivals)


BUILT: list[tuple[tuple[object, ...], str]] = []


def test_folds_are_of_equal_size_and_follow_names_alone() -> None:
    folds = cross_fit([Spy()], CASES).fold_of
    assert set(Counter(folds.values()).values()) == {len(CASES) // 5}
    assert cross_fit([Spy()], CASES[::-1]).fold_of == folds


@pytest.mark.slow
@pytest.mark.parametrize("wrap", [lambda policy: policy, SourceOrder])
def test_an_audit_fits_on_the_pools_of_other_users_alone(wrap) -> None:
    BUILT.clear()
    routeprism.audit("sample", wrap(Spy()), resamples=100)
    users = {record.id: case.pool.user for case in CASES for record in case.pool.records}
    folds = cross_fit([Spy()], CASES).fold_of
    met = set()
    for pools, first in BUILT:
        user = users[first]
        met.add(user)
        # Pools hold records; there is no question in them, nor a way to one.
        assert all(type(pool) is Pool for pool in pools)
        assert {pool.user for pool in pools} == {u for u in folds if folds[u] != folds[user]}
    assert met == set(folds)


def test_restoration_fits_in_the_same_way() -> None:
    BUILT.clear()
    routeprism.restore("sample", Spy(), models=["reader"], draws=1, resamples=100)
    users = {record.id: case.pool.user for case in CASES for record in case.pool.records}
    assert BUILT
    assert all(users[first] not in {p.user for p in pools} for pools, first in BUILT)


def test_a_policy_that_learns_nothing_stays_what_it_is() -> None:
    policies = (make_policy("focal"), make_policy("source-order(raw)"))
    fits = cross_fit(policies, CASES)
    assert fits.for_user("anybody") == policies


def test_the_comparator_is_fitted_as_the_policy_is() -> None:
    fits = cross_fit((make_policy("streaming"), make_policy("source-order(streaming)")), CASES[:4])
    assert len(fits.by_fold) == 4  # no more folds than users
    own, twin = fits.for_user(CASES[0].pool.user)
    assert own.predictor is not None
    assert own.predictor == twin.inner.predictor
    alternative, _ = fits.for_user(CASES[1].pool.user)
    assert alternative.predictor.digest != own.predictor.digest


def test_one_user_alone_cannot_be_learned_about() -> None:
    with pytest.raises(SpecError, match="streaming learns from other users"):
        cross_fit((make_policy("streaming"),), CASES[:1])


def test_a_fit_gives_a_new_policy_and_takes_pools_alone() -> None:
    class Itself(Recent):
        __slots__ = ()

        def fit(self, pools):
            return self

    class Nothing(Recent):
        __slots__ = ()

        def fit(self, pools):
            return None

    class Curious(Recent):
        __slots__ = ()

        def fit(self, pools, questions):
            return Recent()

    class Renamed(Recent):
        __slots__ = ()

        def fit(self, pools):
            return Recent(k=9)

    for policy, text in ((Itself(), "gave itself"), (Nothing(), "gave NoneType")):
        with pytest.raises(ContractError, match=text):
            cross_fit((policy,), CASES)
    with pytest.raises(PeekError, match=r"Expected fit\(pools\)"):
        cross_fit((Curious(),), CASES)
    with pytest.raises(ContractError, match="a different name"):
        cross_fit((Renamed(),), CASES)


def test_a_learner_without_a_name_is_fitted_through_the_one_it_is_given() -> None:
    class Unnamed:
        def __init__(self, users=()):
            self.users = users

        def fit(self, pools):
            return Unnamed(tuple(pool.user for pool in pools))

        def build(self, arrivals):
            return Recent(k=1).build(arrivals)

    cases = [Case(Pool(u, (Record(f"{u}0", 0, "oak"),)), ()) for u in ("a", "b")]
    fits = cross_fit((as_policy(Unnamed),), cases)
    (result,) = fits.for_user("a")
    assert (result.name, result.inner.users) == ("Unnamed", ("b",))
