"""Cutting a benchmark to kinds of questions."""

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.records import load_benchmark, only_kinds

pytestmark = pytest.mark.usefixtures("only_reversal")


def test_only_the_named_kinds_stay_and_pools_stay_whole() -> None:
    whole = load_benchmark("sample")
    facts = only_kinds(whole, ["fact"])
    assert len(facts.cases) == len(whole.cases)
    assert {q.kind for case in facts.cases for q in case.questions} == {"fact"}
    assert facts.cases[3].pool == whole.cases[3].pool
    assert [case.pool.user for case in facts.cases[:2]] == ["u01", "u02"]


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(SpecError, match="Did you mean 'fact'"):
        routeprism.audit("sample", "raw", kinds=["facts"])


def test_the_audit_of_a_kind_equals_its_stratum() -> None:
    whole = routeprism.audit("sample", "focal")
    part = routeprism.audit("sample", "focal", kinds=["plan"])
    own, stratum = part.value("J"), whole.value("J", stratum="plan")
    assert (own.estimate, own.lower, own.queries) == (
        stratum.estimate,
        stratum.lower,
        stratum.queries,
    )
