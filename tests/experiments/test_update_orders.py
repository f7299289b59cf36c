"""Facts that change, over every order: probabilities, smallest reorderings, worst orders."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import Audit

OwnData = Callable[..., Path]

RECORDS = [
    {"user": "ann", "id": "a", "text": "I live at Elm Street.", "timestamp": "2024-03-03"},
    {"user": "ann", "id": "x", "text": "It rained all day.", "timestamp": "2024-03-04"},
    {
        "user": "ann",
        "id": "b",
        "text": "I live at Oak Street.",
        "timestamp": "2024-03-05",
        "supersedes": ["a"],
    },
]
QUESTION = {"user": "ann", "id": "q", "text": "Where do I live?", "support": ["b"]}


def values(result: Audit) -> dict[str, float | None]:
    rows = result.rows.where(experiment="orders", stratum="all", mask="")
    return {row.quantity: row.estimate for row in rows if row.quantity.startswith("stale_only.")}


def sentences(result: Audit, name: str) -> list[str]:
    return [finding.value["sentence"] for finding in result.findings if finding.name == name]


def explore(data: Any, policy: Any, **more: Any) -> Audit:
    return routeprism.explore_orders(data, policy, resamples=100, workers=1, **more)


def test_a_window_of_one_record(own_data: OwnData) -> None:
    """Of three records in six orders, the old one is last in two."""
    data = own_data(RECORDS, [QUESTION])
    exploration = explore(data, "recent:k=1", shrink="stale-only", worst="stale-only")
    assert values(exploration) == pytest.approx(
        {"stale_only.forward": 0, "stale_only.uniform": 1 / 3, "stale_only.reverse": 1}
    )
    assert sentences(exploration, "smallest_reordering") == [
        "If 'a' (“I live at Elm Street.”) of 3 March 2024 arrives after 'b' (“I live at Oak "
        "Street.”) of 5 March 2024, the memory shows only the old value for “Where do I live?”."
    ]
    assert sentences(exploration, "worst_order") == [
        "ann: share of questions that do not end with the old value alone 0.000 in the worst order "
        "(move 'a' (“I live at Elm Street.”) after 'b' (“I live at Oak Street.”)), 1.000 in source "
        "order"
    ]


def test_a_memory_that_keeps_everything_never_ends_with_the_old_value_alone(
    own_data: OwnData,
) -> None:
    exploration = explore(own_data(RECORDS, [QUESTION]), "raw", shrink="stale-only")
    assert set(values(exploration).values()) == {0}
    assert sentences(exploration, "smallest_reordering") == [
        "In no order does “Where do I live?” end with the old value alone."
    ]


class ShowsTheLastArrival:
    """Keep every record; show the one of `a` and `b` that arrived last, and small talk."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, record: Any) -> None:
        self.records.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Any]:
        rivals = [record for record in self.records if record.id in ("a", "b")]
        return [*(r for r in self.records if r.id not in ("a", "b")), *rivals[-1:]]


@pytest.mark.parametrize("method", [None, "replayed", "shared"])
def test_what_a_question_is_shown_decides(own_data: OwnData, method: Any) -> None:
    """The memory keeps both records in every order; in half of them it shows the old one."""
    exploration = explore(
        own_data(RECORDS, [QUESTION]),
        ShowsTheLastArrival,
        method=method,
        shrink="stale-only",
        worst="stale-only",
    )
    assert values(exploration) == pytest.approx(
        {"stale_only.forward": 0, "stale_only.uniform": 1 / 2, "stale_only.reverse": 1}
    )
    assert exploration.rows.one(quantity="order_change", stratum="all").estimate == 0
    assert sentences(exploration, "smallest_reordering") == [
        "If 'a' (“I live at Elm Street.”) of 3 March 2024 arrives after 'b' (“I live at Oak "
        "Street.”) of 5 March 2024, the memory shows only the old value for “Where do I live?”."
    ]
    assert "0.000 in the worst order" in sentences(exploration, "worst_order")[0]


@pytest.mark.parametrize("method", ["enumerated", "merged", "replayed"])
def test_an_interface_that_hides_the_new_record_misleads(own_data: OwnData, method: Any) -> None:
    """One of two kept records is shown, and the question's words are those of the old one."""
    question = {**QUESTION, "text": "Where is Elm Street?"}
    exploration = explore(
        own_data(RECORDS, [question]), "recent:k=2", interface="bm25:k=1", method=method
    )
    # Kept are {a, x}, {x, b} or {a, b}, each in a third of the orders; `a` is shown of two of them.
    assert values(exploration)["stale_only.uniform"] == pytest.approx(2 / 3)


def test_a_model_has_one_name_for_pools_of_all_sizes(own_data: OwnData) -> None:
    """With w=1 a pool of two records has every order, a pool of three has three of six."""
    short = [{**record, "user": "bob"} for record in (RECORDS[0], RECORDS[2])]
    question = {**QUESTION, "user": "bob", "id": "q2"}
    data = own_data([*RECORDS, *short], [QUESTION, question])
    exploration = explore(data, "recent:k=1", arrivals=["jitter:w=1"])
    # a b, b a: one of two orders ends with `a`; a x b, x a b, a b x: none of three.
    row = exploration.rows.one(quantity="stale_only.arrival", stratum="all")
    assert (row.estimate, row.units) == (pytest.approx(1 / 4), 2)
    assert "stale_only.uniform" not in values(exploration)
    assert exploration.rows.one(quantity="support_kept.arrival", stratum="all").units == 2


def test_pools_whose_questions_are_left_out_are_not_explored(own_data: OwnData) -> None:
    rest = [{**record, "user": "bob"} for record in RECORDS]
    questions = [
        {**QUESTION, "kind": "moves"},
        {**QUESTION, "user": "bob", "id": "q2", "kind": "rest"},
    ]
    exploration = explore(own_data([*RECORDS, *rest], questions), "recent:k=1", kinds=["moves"])
    assert {finding.user for finding in exploration.findings if finding.user} == {"ann"}
    assert exploration.rows.one(quantity="stale_only.uniform", stratum="all").units == 1


def test_where_source_order_ends_with_the_old_value(own_data: OwnData) -> None:
    backwards = own_data(RECORDS[::-1], [QUESTION])
    exploration = explore(backwards, "recent:k=1", shrink="stale-only")
    assert values(exploration)["stale_only.forward"] == 1
    (sentence,) = sentences(exploration, "smallest_reordering")
    assert sentence == (
        "In source order “Where do I live?” ends with the old value alone; move 'x' (“It rained "
        "all day.”) after 'a' (“I live at Elm Street.”), and it does not."
    )


@pytest.mark.slow
def test_the_sample_over_all_orders() -> None:
    """The newest of 2, 3 or 4 values comes last in 1/2, 1/3 or 1/4 of all orders."""
    wrong = 1 - (1 / 2 + 1 / 3 + 1 / 4) / 3
    assert values(explore("sample-updates", "facts:by=arrival"))[
        "stale_only.uniform"
    ] == pytest.approx(wrong)
    assert values(explore("sample-updates", "facts:by=time"))["stale_only.uniform"] == 0


def test_redelivery_leaves_the_old_value_to_memories_that_resolve_by_arrival() -> None:
    by_arrival = explore("sample-updates", "facts:by=arrival", arrivals=["redeliver:copies=1"])
    by_time = explore("sample-updates", "facts:by=time", arrivals=["redeliver:copies=1"])
    assert (values(by_arrival)["stale_only.arrival"] or 0) > 0
    assert values(by_time)["stale_only.arrival"] == 0


def test_without_labels_there_is_nothing_to_search() -> None:
    with pytest.raises(SpecError, match="no labels of outdated evidence"):
        explore("sample", "recent:k=3", shrink="stale-only")
