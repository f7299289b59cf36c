"""A benchmark cut to the questions of some kinds; its pools stay whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import overload

from routeprism.errors import SpecError, nearest
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
    return replace(benchmark, cases=_Kept(benchmark.cases, frozenset(kinds)))


@dataclass(frozen=True, slots=True)
class _Kept(Sequence[Case]):
    """Cases with some of their questions, made when they are asked for."""

    cases: Sequence[Case]
    kinds: frozenset[str]

    def __len__(self) -> int:
        return len(self.cases)

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(len(self))))
        case = self.cases[index]
        kept = tuple(question for question in case.questions if question.kind in self.kinds)
        return Case(case.pool, kept)
