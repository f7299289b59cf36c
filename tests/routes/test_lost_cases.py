"""Cases of lost evidence, from routes made by hand: three records in several orders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from routeprism.orders import ONE_BY_ONE, Procedure
from routeprism.policies import Block, Event, as_policy
from routeprism.records import Case, Pool, Question, Record
from routeprism.routes import (
    ExposureTrace,
    Loss,
    LostCase,
    Pair,
    Route,
    explain_cases,
    find_level,
    list_absences,
    list_cases,
    list_lost,
)

RECORDS = tuple(Record(f"n{at}", at, f"fact {at}", f"2025-03-0{at + 1}") for at in range(3))


def make_question(name: str = "q", support: Sequence[str] = ()) -> Question:
    labels = {"given": frozenset(support)} if support else {}
    return Question(name, "ada", f"What is {name}?", labels=labels)


def make_route(
    ids: Sequence[str],
    order: tuple[int, ...] = (0, 1, 2),
    *,
    question: Question | Sequence[Question] = (),
    schedule: str = "",
    text: str = "",
    **more: Any,
) -> Route:
    """Make a route that shows a block for each record; source order is the reference."""
    questions = [question] if isinstance(question, Question) else question or [make_question()]
    blocks = tuple(Block("record", text + id, frozenset({id})) for id in ids)
    exposures = tuple(
        ExposureTrace(q, frozenset(ids), "\n".join(block.text for block in blocks), 0, blocks)
        for q in questions
    )
    usual: dict[str, Any] = {"signature": None, "events": (), "stand_ins": {}}
    name = schedule or ("replay" if order != (0, 1, 2) else "forward")
    return Route(
        "memory", name, "ada", order, frozenset(ids), exposures=exposures, **{**usual, **more}
    )


def make_pair(before: Route, after: Route) -> Pair:
    exposures = before.exposures[0], after.exposures[0]
    return Pair(exposures[0].question, before, after, *exposures)


def name_cases(routes: Sequence[Route], schedule: str = "", labels: str = "given") -> list[Any]:
    return [
        (case.schedule, case.cause, case.record, case.pair.route.order)
        for case in list_cases(routes, labels, schedule)
    ]


@pytest.mark.parametrize(
    ("support", "lost"),
    [(("n1",), ["n1"]), (("n0",), []), ((), ["n1", "n2"]), (("n2", "n1", "n0"), ["n1", "n2"])],
)
def test_lost_evidence_is_what_source_order_alone_shows(support: Any, lost: list[str]) -> None:
    question = make_question("q", support)
    before = make_route(["n0", "n2", "n1"], question=question)
    after = make_route(["n0"], (2, 1, 0), question=question)
    assert list_lost(make_pair(before, after), "given") == lost
    assert list_lost(make_pair(after, before), "given") == []
    assert list_lost(make_pair(before, after), "another") == ["n1", "n2"]


@pytest.mark.parametrize(
    ("cause", "has_record", "level"),
    [
        ("untested", True, "record"),
        ("state only", True, "record"),
        ("state only", False, "state"),
        ("rewritten", False, "display"),
        ("order of blocks", False, "display"),
    ],
)
def test_levels_of_cases(cause: Any, has_record: bool, level: str) -> None:
    assert find_level(cause, has_record=has_record) == level


def test_each_record_of_each_order_is_a_case() -> None:
    routes = [
        make_route(["n0", "n1", "n2"]),
        make_route(["n0"], (2, 1, 0)),
        make_route(["n0", "n1"], (1, 0, 2), schedule="jitter,seed=1"),
    ]
    assert name_cases(routes) == [
        ("replay", "untested", "n1", (2, 1, 0)),
        ("replay", "untested", "n2", (2, 1, 0)),
        ("jitter,seed=1", "untested", "n2", (1, 0, 2)),
    ]


@pytest.mark.parametrize(
    ("orders", "witness"),
    [
        # 3 pairs are out of order in reversal, 1 in a swap of neighbours, 2 if the last is first.
        ([(2, 1, 0), (1, 0, 2), (2, 0, 1)], (1, 0, 2)),
        ([(2, 0, 1), (2, 1, 0)], (2, 0, 1)),
        # Two orders with one inversion each: the first by position.
        ([(1, 0, 2), (0, 2, 1)], (0, 2, 1)),
        # The last two of four are out of order in one pair, 1 to 3 in three.
        ([(0, 3, 2, 1), (1, 0, 2, 3)], (1, 0, 2, 3)),
        # A copy is not out of order with itself: (1, 0, 1, 2) has one inversion.
        ([(2, 0, 1), (1, 0, 1, 2)], (1, 0, 1, 2)),
    ],
)
def test_a_case_of_an_arrival_model_has_the_simplest_order(
    orders: Sequence[tuple[int, ...]], witness: tuple[int, ...]
) -> None:
    routes = [
        make_route(["n0", "n1"], order, schedule=f"jitter,seed={at}")
        for at, order in enumerate(orders)
    ]
    cases = name_cases([make_route(["n0", "n1", "n2"]), *routes], "jitter")
    assert cases == [("jitter", "untested", "n2", witness)]


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (make_route(["n0", "n1"]), make_route(["n1", "n0"], (2, 1, 0)), "order of blocks"),
        (make_route(["n0"]), make_route(["n0"], (2, 1, 0), text="about "), "rewritten"),
        (
            make_route(["n0"], signature="a"),
            make_route(["n0"], (2, 1, 0), signature="b"),
            "state only",
        ),
        (make_route(["n0"], signature="a"), make_route(["n0"], (2, 1, 0), signature="a"), ""),
        (make_route(["n0"], signature="a"), make_route(["n0"], (2, 1, 0)), ""),
        (make_route(["n0"]), make_route(["n0"], (2, 1, 0), signature="b"), ""),
        # More is shown than in source order: nothing is lost.
        (make_route(["n0"]), make_route(["n0", "n1"], (2, 1, 0)), ""),
    ],
)
def test_what_differs_without_a_loss(before: Route, after: Route, cause: str) -> None:
    cases = name_cases([before, after])
    assert cases == ([("replay", cause, "", (2, 1, 0))] if cause else [])


def test_a_question_that_loses_a_record_is_not_counted_for_its_text() -> None:
    routes = [
        make_route(["n0", "n1"]),
        make_route(["n1", "n0"], (1, 0, 2), schedule="jitter,seed=1"),
        make_route(["n0"], (2, 1, 0), schedule="jitter,seed=2"),
    ]
    assert name_cases(routes, "jitter") == [("jitter", "untested", "n1", (2, 1, 0))]
    assert name_cases(routes) == [
        ("jitter,seed=1", "order of blocks", "", (1, 0, 2)),
        ("jitter,seed=2", "untested", "n1", (2, 1, 0)),
    ]


def test_a_case_knows_its_place_and_its_routes() -> None:
    forward, replay = make_route(["n0", "n1"]), make_route(["n0"], (2, 1, 0))
    case = LostCase("replay", "untested", "n1", make_pair(forward, replay))
    assert case.place == ("memory", "replay", "record")
    assert replace(case, record="", cause="state only").place == ("memory", "replay", "state")
    assert not case.overlaps and not case.is_absence
    assert LostCase("forward", "untested", "n1", make_pair(forward, forward)).is_absence
    overlap = make_route(["n0"], (2, 1, 0), procedure="overlap:k=2")
    assert LostCase("replay", "untested", "n1", make_pair(forward, overlap)).overlaps
    assert LostCase("replay", "untested", "n1", make_pair(overlap, replay)).overlaps
    similar = make_route(["n0"], (2, 1, 0), procedure="overlapping")
    assert not LostCase("replay", "untested", "n1", make_pair(forward, similar)).overlaps


def test_absences_are_what_source_order_does_not_show() -> None:
    questions = [
        make_question("q", ["n2", "n1", "n0"]),
        make_question("r"),
        make_question("s", ["n0"]),
    ]
    case = Case(Pool("ada", RECORDS), tuple(questions))
    routes = [
        make_route(["n0"], question=questions),
        make_route([], (2, 1, 0), question=questions),
        make_route([], question=questions, failed="an error"),
    ]
    absences = list_absences(case, routes, "given")
    assert [(a.schedule, a.cause, a.record, a.pair.question.id) for a in absences] == [
        ("forward", "untested", "n1", "q"),
        ("forward", "untested", "n2", "q"),
    ]
    assert all(absence.is_absence for absence in absences)
    assert list_absences(case, routes, "another") == []


class KeepsNewest:
    """Keeps the last two arrivals, and shows them."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-2:]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[tuple[str, str]]:
        return [(record.text, record.id) for record in self.records]


POLICY = as_policy(KeepsNewest, name="memory")
FORWARD_ROUTE, REPLAY_ROUTE = make_route(["n1", "n2"]), make_route(["n0", "n1"], (2, 1, 0))
LOST = LostCase("replay", "untested", "n2", make_pair(FORWARD_ROUTE, REPLAY_ROUTE))
CASE = Case(Pool("ada", RECORDS), (make_question(),))


def explain(
    *cases: LostCase, policies: Sequence[Any] = (POLICY,), procedures: Any = None, case: Case = CASE
) -> list[Loss]:
    return list(explain_cases(case, policies, cases, procedures or {}))


def test_a_lost_record_is_tested_on_its_order() -> None:
    (loss,) = explain(LOST)
    assert (loss.cause, loss.policy, loss.schedule, loss.user) == (
        "full",
        "memory",
        "replay",
        "ada",
    )
    assert (loss.question, loss.record, loss.by, loss.order) == ("q", "n2", ("n0",), (2, 1, 0))
    assert loss.builds > 0


def test_a_text_that_differs_needs_no_test() -> None:
    (loss,) = explain(replace(LOST, record="", cause="rewritten"))
    assert (loss.cause, loss.record, loss.order, loss.builds) == ("rewritten", "", (2, 1, 0), 0)


def test_an_absence_has_no_order_to_compare_with() -> None:
    """Source order does not keep n0, because of the two later ones."""
    absence = LostCase("forward", "untested", "n0", make_pair(FORWARD_ROUTE, FORWARD_ROUTE))
    (loss,) = explain(absence)
    assert (loss.cause, loss.schedule, loss.by) == ("full", "forward", ("n2",))


def test_memories_of_a_pool_are_tested_one_after_the_other() -> None:
    another = as_policy(KeepsNewest, name="another")
    route = replace(REPLAY_ROUTE, policy="another")
    case = LostCase("replay", "untested", "n2", make_pair(FORWARD_ROUTE, route))
    losses = explain(case, LOST, policies=(POLICY, another))
    assert [loss.policy for loss in losses] == ["memory", "another"]
    assert [loss.policy for loss in explain(case, LOST)] == ["memory"]


def test_three_cases_of_an_order_are_tested_and_different_questions_first() -> None:
    """q loses two records and a text; r and s lose one each."""
    questions = [make_question(name) for name in "qrs"]
    case = Case(Pool("ada", RECORDS), tuple(questions))

    def lose(question: Question, record: str, schedule: str = "replay") -> LostCase:
        pair = replace(LOST.pair, question=question)
        return replace(LOST, record=record, pair=pair, schedule=schedule)

    text = replace(LOST, record="", cause="rewritten")
    q, r, s = questions
    cases = [text, lose(q, "n2"), lose(q, "n1"), lose(r, "n2"), lose(s, "n2")]
    losses = explain(*cases, case=case)
    assert [(loss.question, loss.record) for loss in losses] == [
        ("q", "n2"),
        ("r", "n2"),
        ("s", "n2"),
    ]
    # With fewer questions, the second record of a question, and then the text.
    losses = explain(*cases[:4], case=case)
    assert [(loss.question, loss.record) for loss in losses] == [
        ("q", "n2"),
        ("r", "n2"),
        ("q", "n1"),
    ]
    losses = explain(*cases[:3], case=case)
    assert [loss.record for loss in losses] == ["n2", "n1", ""]
    assert (losses[2].cause, losses[2].test, losses[2].builds) == ("rewritten", "", 0)
    # Each order counts by itself.
    later = [lose(q, "n2", "jitter"), lose(r, "n2", "jitter")]
    assert len(explain(*cases, *later, case=case)) == 5


EVENT = Event("evict", "n2", "n0", 2)


@pytest.mark.parametrize(
    ("before", "after", "tested"),
    [
        ({}, {}, True),
        ({}, {"procedure": "unknown"}, False),
        ({"procedure": "unknown"}, {}, False),
        ({}, {"procedure": "bulk"}, True),
    ],
)
def test_a_procedure_that_is_not_known_leaves_what_the_log_says(
    before: Any, after: Any, tested: bool
) -> None:
    pair = make_pair(
        replace(FORWARD_ROUTE, **before), replace(REPLAY_ROUTE, events=(EVENT,), **after)
    )
    bulk = Procedure("bulk", ONE_BY_ONE.kind)
    (loss,) = explain(replace(LOST, pair=pair), procedures={"bulk": bulk})
    assert (loss.cause == "full") is tested
    if not tested:
        assert (loss.cause, loss.test) == ("untested", "likely: pushed out by 'n0'")


@pytest.mark.parametrize(("size", "stored"), [(500, 500), (501, 0)])
def test_orders_of_up_to_five_hundred_records_are_stored(size: int, stored: int) -> None:
    route = make_route(["n0"], tuple(range(size))[::-1])
    case = LostCase("replay", "rewritten", "", make_pair(FORWARD_ROUTE, route))
    (loss,) = explain(case)
    assert len(loss.order) == stored
