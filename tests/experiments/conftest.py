"""What tests of experiments share: a model whose every word is known, and pools that small."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from routeprism.records import Benchmark, Case, Pool, Question, Record

WORDS = "walnut bread oven kitchen morning"


@pytest.fixture
def pools() -> Callable[..., Benchmark]:
    """Make users with four records, `number0` to `number3`, and questions whose gold is `a`."""

    def make(
        users: int = 4,
        questions: Sequence[str] = ("q0", "q1", "q2"),
        options: tuple[str, ...] = ("oak", "elm"),
        support: Callable[[str], Sequence[int]] | None = None,
    ) -> Benchmark:
        cases = []
        for name in (f"u{user}" for user in range(users)):
            records = tuple(
                Record(f"{name}r{at}", at, f"{WORDS} number{at} {name}") for at in range(4)
            )
            pool_questions = tuple(
                Question(
                    f"{name}{question}",
                    name,
                    f"Which tree is {question}?",
                    options,
                    gold="a" if options else "oak",
                    labels={"own": frozenset(f"{name}r{at}" for at in support(question))}
                    if support
                    else {},
                )
                for question in questions
            )
            cases.append(Case(Pool(name, records), pool_questions))
        labels = ("own",) if support else ()
        return Benchmark("tiny", tuple(cases), "0" * 64, interface="all", labels=labels)

    return make
