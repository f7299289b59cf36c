"""`orders --allocate`: a pilot in every pool, and the other orders where orders differ most."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.records import Record

ORDERS: dict[str, Any] = {"arrivals": ["jitter:w=2"], "orders": 20}


class Changeable:
    """Order matters for the users a and b alone; each add is one request."""

    calls_per_add = 1
    adds = 0

    def __init__(self) -> None:
        self.kept: list[str] = []

    def add(self, record: Record) -> None:
        Changeable.adds += 1
        ids = [*self.kept, record.id]
        self.kept = ids[-3:] if record.id[0] in "ab" else sorted(ids)[:3]

    def retained(self) -> list[str]:
        return self.kept

    def expose(self, query: str) -> list[str]:
        return []

    def snapshot(self) -> list[str]:
        return self.kept

    def revive(self, snapshot: list[str]) -> None:
        self.kept = list(snapshot)


@pytest.fixture
def benchmark(tmp_path: Path) -> str:
    directory = tmp_path / "own"
    directory.mkdir()
    records = [
        {"user": user, "id": f"{user}-{at}", "text": f"Note {at} of {user}."}
        for user in "abcdefghij"
        for at in range(9)
    ]
    questions = [{"user": user, "id": f"q-{user}", "text": "Which?"} for user in "abcdefghij"]
    for name, lines in (("records", records), ("questions", questions)):
        (directory / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(directory)


def explore(benchmark: str, **settings: Any) -> tuple[Any, int]:
    """Return the result, and how often a record was added."""
    Changeable.adds = 0
    exploration = routeprism.explore_orders(benchmark, Changeable, **ORDERS | settings)
    return exploration, Changeable.adds


def test_orders_are_drawn_where_they_differ_for_the_same_adds(benchmark: str) -> None:
    equal, _ = explore(benchmark)
    result, _ = explore(benchmark, allocate=True)
    (allocation,) = [finding for finding in result.findings if finding.name == "order_allocation"]
    orders = allocation.value["orders"]
    assert allocation.value["pilot"] == 4
    assert min(orders["a"], orders["b"]) > 20 > max(orders[user] for user in "cdefghij")
    assert allocation.value["adds"] == count_planned(result) <= count_planned(equal)
    assert allocation.value["variance_ratio"] > 1
    assert any("after a pilot of 4 orders in each of 10 pools" in note for note in result.notes)
    distributions = [f for f in result.findings if f.name == "order_distribution"]
    assert {f.user: f.value["orders"] for f in distributions} == orders
    for finding in distributions:
        value = finding.value
        assert value["lower"] <= value["changed"] <= value["upper"]
        assert (finding.user in "ab") == (value["changed"] > 0)
    # Two users of ten change with most orders, the others never.
    assert result.value("order_change").estimate == pytest.approx(
        equal.value("order_change").estimate, abs=0.05
    )


def count_planned(result: Any) -> int:
    """Count the adds that were planned; memories that turn out equal save some of them."""
    distributions = [f.value for f in result.findings if f.name == "order_distribution"]
    return sum(value["building"]["planned"] for value in distributions)


def test_the_weight_of_the_pilot_does_not_depend_on_what_it_shows(benchmark: str) -> None:
    """The value of a pool is a fifth of its pilot's mean and four fifths of the later draws'."""
    result, _ = explore(benchmark, allocate=True)
    (value,) = [
        f.value for f in result.findings if f.name == "order_distribution" and f.user == "a"
    ]
    changed = [orders_changed(benchmark, number) for number in (4, value["orders"])]
    later = (changed[1] - changed[0]) / (value["orders"] - 4)
    assert value["changed"] == pytest.approx(0.2 * changed[0] / 4 + 0.8 * later)


def orders_changed(benchmark: str, number: int) -> float:
    """Count which of the first orders of user a change what is kept: draws come in sequence."""
    result, _ = explore(benchmark, orders=number)
    (value,) = [
        f.value for f in result.findings if f.name == "order_distribution" and f.user == "a"
    ]
    return float(value["changed"] * number)


def test_a_limit_on_calls_holds_and_the_run_is_the_same_again(
    benchmark: str, tmp_path: Path
) -> None:
    for name in ("first", "second"):
        _, adds = explore(benchmark, allocate=True, max_calls=600, run=tmp_path / name)
        assert adds <= 600
    files = [(tmp_path / name / "estimates.csv").read_bytes() for name in ("first", "second")]
    assert files[0] == files[1]
    manifest = json.loads((tmp_path / "first" / "manifest.json").read_text())
    assert manifest["configuration"]["allocate"] is True
    with closing(sqlite3.connect(tmp_path / "first" / "run.sqlite")) as connection:
        rows = connection.execute("SELECT value FROM findings WHERE name = 'order_allocation'")
        assert json.loads(rows.fetchone()[0])["pilot"] >= 2


class Logged(Changeable):
    """No two orders leave the same state, so every add of the plan is made."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []

    def add(self, record: Record) -> None:
        super().add(record)
        self.log.append(record.id)

    def snapshot(self) -> list[Any]:  # type: ignore[override]
        return [self.kept, self.log]

    def revive(self, snapshot: list[Any]) -> None:
        self.kept, self.log = map(list, snapshot)


@pytest.mark.parametrize("limit", [None, 1_200])
def test_checked_orders_are_among_those_that_are_allocated(
    benchmark: str, limit: int | None
) -> None:
    """Orders of a pool with few draws would else be built only to be checked, beyond the plan."""
    settings: dict[str, Any] = ORDERS | {"allocate": True, "max_calls": limit}
    (cost,) = routeprism.explore_orders(benchmark, Logged, **settings, dry_run=True).costs.values()
    Changeable.adds = 0
    result = routeprism.explore_orders(benchmark, Logged, **settings)
    assert cost.calls - 20 < Changeable.adds <= cost.calls
    assert any("orders of 10 pools were also built in one go" in note for note in result.notes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"orders": 3}, "Expected 4 orders or more to allocate but got orders=3"),
        ({"half_width": 0.1}, "allocate and half_width both decide"),
        ({"shard": "1/2", "run": "shard"}, "allocate does not apply to a shard"),
    ],
)
def test_what_cannot_be_allocated_is_refused(
    benchmark: str, tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    if "run" in settings:
        settings = settings | {"run": tmp_path / settings["run"]}
    with pytest.raises(SpecError, match=message):
        explore(benchmark, allocate=True, **settings)


def test_memories_that_cost_nothing_are_not_allocated(benchmark: str) -> None:
    with pytest.raises(SpecError, match="allocate applies to memories that a model builds"):
        routeprism.explore_orders(benchmark, "recent:k=3", **ORDERS, allocate=True)
