"""A small benchmark whose names give everything away, and models whose every word is known."""

from __future__ import annotations

import pytest

from routeprism.records import Benchmark, Case, Pool, Question, Record


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
