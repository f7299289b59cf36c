"""A small benchmark whose names give everything away, and models whose every word is known."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from routeprism.models import Ask, Reply
from routeprism.records import Benchmark, Case, Pool, Question, Record


class Scripted:
    """Says what a function says of the request."""

    embedded = False
    concurrency = 4

    def __init__(self, say: Callable[[Ask], str], name: str = "scripted") -> None:
        self.say, self.name, self.settings = say, name, {"version": 1}
        self.asked: list[Ask] = []

    def answer(self, ask: Ask) -> Reply:
        self.asked.append(ask)
        return Reply(self.say(ask))


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted


@pytest.fixture
def tiny() -> Benchmark:
    """Two users, two questions each; ids tell what no reader may know."""
    cases = []
    for user in ("ann", "bob"):
        records = tuple(
            Record(
                f"answer_{user}_{at}",
                at,
                f'[USER] I, {user}, said "words", number {at}.\n\n[ASSISTANT] Noted;\tfine.',
                timestamp=f"2024-0{at + 1}-01" if user == "ann" else None,
            )
            for at in range(3)
        )
        questions = (
            Question(
                f"{user}_q0_secretid",
                user,
                f"Which number did {user} say?",
                ("zero", "=SUM(A1)", "two"),
                gold="c",
                kind="fact-recall",
                detail="secretdetail",
                labels={"benchmark": frozenset({f"answer_{user}_2"})},
            ),
            Question(f"{user}_q1_abs", user, f"What does {user} like?", gold="tea with\nmilk"),
        )
        cases.append(Case(Pool(user, records), questions))
    return Benchmark("tiny", tuple(cases), "0" * 64, interface="all", labels=("benchmark",))
