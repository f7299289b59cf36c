"""A benchmark cut to the questions of some kinds; its pools stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from routeprism.errors import SpecError, nearest
from routeprism.records._lazy import LazyCases
from routeprism.records._nouns import Benchmark, Case

__all__ = ["only_kinds"]


def only_kinds(benchmark: Benchmark, kinds: Sequence[str]) -> Benchmark:
    """Keep the questions of these kinds; a pool whose questions all go adds nothing."""
    known = {question.kind for case in benchmark.cases for question in case.questions}
    for kind in kinds:
        if kind not in known:
            raise SpecError(
                f"benchmark '{benchmark.name}' has no questions of kind '{kind}'. "
                + nearest(kind, known)
            )
    kept = LazyCases(len(benchmark.cases), partial(_kept, benchmark.cases, frozenset(kinds)))
    return replace(benchmark, cases=kept)


def _kept(cases: Sequence[Case], kinds: frozenset[str], index: int) -> Case:
    case = cases[index]
    return Case(case.pool, tuple(one for one in case.questions if one.kind in kinds))
