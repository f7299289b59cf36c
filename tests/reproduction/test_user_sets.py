"""Numbers that depend only on which users are primary: whether some set of users gives them all."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import comb

import pytest

from routeprism.reproduction import (
    TABLES,
    MeasuredRow,
    PublishedNumber,
    SourceValues,
    UserNumber,
    check_table,
    count_user_sets,
    read_obtained,
)
from routeprism.runs import EstimateRow

ORDERS = (2, 2, 2, 6, 6, 6, 6, 24)
MEANS = (0.5, 0.5, 0.25, 0.0, 0.0, 1.0, 0.75, 0.125)
CLUSTERS = (1.0, 1.5, 1.25, 2.0, 1.0, 1.0, 2.5, 3.0)


def print_number(text: str) -> PublishedNumber:
    return PublishedNumber("tab:x", "1", "row", "J", text)


@pytest.mark.parametrize(("mean", "clusters"), [("0.35", "1.4"), ("0.4", "1.3"), ("0.99", "1.4")])
def test_sets_are_counted_as_if_each_was_looked_at(mean: str, clusters: str) -> None:
    """Four of eight users with 16 orders: two with two orders, and two with six."""
    numbers = (
        UserNumber(print_number(mean), tuple((value, 1.0) for value in MEANS)),
        UserNumber(print_number(clusters), tuple(zip(CLUSTERS, map(float, ORDERS), strict=True))),
    )
    total, agreeing, alone = 0, 0, [0, 0]
    for users in itertools.combinations(range(8), 4):
        if sum(ORDERS[user] for user in users) != 16:
            continue
        values = (
            sum(MEANS[user] for user in users) / 4,
            sum(CLUSTERS[user] * ORDERS[user] for user in users) / 16,
        )
        agrees = [n.printed.agrees(v) for n, v in zip(numbers, values, strict=True)]
        total += 1
        agreeing += all(agrees)
        alone = [count + agreed for count, agreed in zip(alone, agrees, strict=True)]
    sets = count_user_sets(numbers, ORDERS, 4, 16)
    assert (sets.total, sets.agreeing, sets.alone) == (total, agreeing, tuple(alone))
    assert total == comb(3, 2) * comb(4, 2)


def test_printed_numbers_of_the_primary_users_agree_with_some_set() -> None:
    """The protocol states both counts; 5, 19, 11 and 2 users have 4, 5, 6 and 7 records."""
    assert comb(5, 4) * comb(19, 14) * comb(11, 9) * comb(2, 2) == 3_197_700
    stored = read_obtained()
    cells = [
        (label, cell)
        for label, table in TABLES.items()
        for cell in check_table(table, stored)
        if cell.status in ("consistent", "inconsistent")
    ]
    assert {cell.status for _, cell in cells} == {"consistent"}
    for _, cell in cells:
        assert "348,840 of the 3,197,700 sets of 29 users" in cell.reason
        assert "all 14 printed numbers" in cell.reason  # the 13 of the protocol, and Recent-3's J
    places = {(label, cell.printed.row, cell.printed.column) for label, cell in cells}
    assert sum(label == "tab:order-structure" for label, _, _ in places) == 9
    assert {
        *(("app:order-structure", threshold, "Mean clusters") for threshold in THRESHOLDS),
        ("tab:main-route", "Focal", "J"),
        ("tab:main-route", "Recent-3", "J"),
        ("tab:direct-route-details", "R-EB", "Direct profile / J"),
    } < places


THRESHOLDS = ("0.025", "0.055", "0.100")


def test_numbers_that_no_set_gives_together_are_inconsistent() -> None:
    """Every pool has two clusters on average: no set of them has a mean of 2.099."""
    stored = dict(read_obtained())
    rows = tuple(
        replace(measured, users=tuple((2.0, weight) for _, weight in measured.users))
        if measured.row.quantity == "mean_clusters" and measured.row.policy.startswith("0.100")
        else measured
        for measured in stored["orders"].rows
    )
    stored["orders"] = SourceValues(stored["orders"].made, rows)
    cells = check_table(TABLES["app:order-structure"], stored)
    clusters = {cell.printed.row: cell for cell in cells if cell.printed.panel == "3"}
    assert {cell.status for cell in clusters.values()} == {"inconsistent"}
    assert "0 of the 3,197,700 sets" in clusters["0.100"].reason
    assert "581,400 of the 3,197,700 sets" in clusters["0.055"].reason


@pytest.mark.parametrize(
    ("estimate", "status", "reason"),
    [
        (0.0571, "reproduced", ""),
        (0.0601, "differs", "it is about the questions that you passed as 'primary'"),
    ],
)
def test_the_overlap_of_your_own_primary_questions_is_compared(
    estimate: float, status: str, reason: str
) -> None:
    """With the paper's questions, nothing has to be tried: the paper prints 0.057."""
    row = EstimateRow(
        **{"experiment": "routes", "benchmark": "personamem", "policy": "focal"},
        **{"schedule": "replay", "mask": "primary", "quantity": "J", "estimate": estimate},
    )
    values = SourceValues({"masks": {"primary": "63 questions of mine.csv"}}, (MeasuredRow(row),))
    cell = check_table(TABLES["tab:main-route"], {"no-budget": values})[0]
    assert (cell.printed.text, cell.value, cell.status) == ("0.057", estimate, status)
    assert cell.reason == reason


def test_a_run_without_values_of_users_leaves_the_number_open() -> None:
    stored = {
        name: SourceValues(values.made, tuple(replace(row, users=()) for row in values.rows))
        for name, values in read_obtained().items()
    }
    cells = check_table(TABLES["tab:order-structure"], stored)
    assert {cell.status for cell in cells} == {"machinery"}
