"""A benchmark cut to some questions; its pools stay whole."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

from routeprism.errors import SpecError, nearest
from routeprism.records._lazy import LazyCases
from routeprism.records._nouns import Benchmark, Case

__all__ = ["only_kinds", "only_questions"]


def only_kinds(benchmark: Benchmark, kinds: Sequence[str]) -> Benchmark:
    """Keep the questions of these kinds; a pool whose questions all go adds nothing."""
    known = {question.kind for case in benchmark.cases for question in case.questions}
    for kind in kinds:
        if kind not in known:
            raise SpecError(
                f"benchmark '{benchmark.name}' has no questions of kind '{kind}'. "
                + nearest(kind, known)
            )
    return _cut(benchmark, "kind", kinds)


def only_questions(benchmark: Benchmark, ids: Collection[str]) -> Benchmark:
    """Keep these questions; a pool whose questions all go adds nothing."""
    return _cut(benchmark, "id", ids)


def _cut(benchmark: Benchmark, field: str, values: Collection[str]) -> Benchmark:
    kept = partial(_kept, benchmark.cases, field, frozenset(values))
    return replace(benchmark, cases=LazyCases(len(benchmark.cases), kept))


def _kept(cases: Sequence[Case], field: str, values: frozenset[str], index: int) -> Case:
    case = cases[index]
    return Case(case.pool, tuple(one for one in case.questions if getattr(one, field) in values))
