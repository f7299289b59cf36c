"""An interrupted study continues after its last checkpoint, and gives the bytes of a whole one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

import routeprism
from routeprism.errors import RoutePrismError
from routeprism.experiments import _checkpoints
from routeprism.records import Record


class Counted:
    """Keeps the last three records, and counts in how many pools it was built."""

    users: ClassVar[list[str]] = []
    broken: ClassVar[bool] = False

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        type(self).users.append(record.id)
        if self.broken and len(self.users) > 400:
            raise ValueError("broken")
        self.records = [*self.records, record][-3:]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Record]:
        return self.records


@pytest.fixture(autouse=True)
def checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a checkpoint after every four pools."""
    monkeypatch.setattr(_checkpoints, "POOLS", 4)
    monkeypatch.setattr(Counted, "broken", False)
    Counted.users.clear()


def interrupt_at(number: int) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        if done == number:
            raise KeyboardInterrupt

    return progress


def contents(run: Path) -> tuple[bytes, bytes, list[str]]:
    with closing(sqlite3.connect(run / "run.sqlite")) as connection:
        rows = sorted(connection.iterdump())
    return (run / "estimates.csv").read_bytes(), (run / "manifest.json").read_bytes(), rows


COMMANDS: dict[str, Any] = {
    "audit": partial(routeprism.audit, "sample", "focal", Counted, resamples=100),
    "orders": partial(routeprism.explore_orders, "sample", "focal", "recent:k=3", resamples=100),
}


@pytest.mark.parametrize("name", [pytest.param("audit", marks=pytest.mark.slow), "orders"])
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupted_study_continues(name: str, workers: int, tmp_path: Path) -> None:
    perform = partial(COMMANDS[name], workers=workers)
    perform(run=tmp_path / "whole")
    for number in (10, 27):  # interrupted twice
        with pytest.raises(KeyboardInterrupt):
            perform(run=tmp_path / "run", progress=interrupt_at(number))
    done: list[int] = []
    perform(run=tmp_path / "run", progress=lambda at, total: done.append(at))
    assert done == [25, 26, 27, 28, 29, 30]  # 8 and then 24 pools were kept
    assert contents(tmp_path / "run") == contents(tmp_path / "whole")


@pytest.mark.slow
def test_pools_that_are_finished_are_not_built_again(tmp_path: Path) -> None:
    audit = partial(COMMANDS["audit"], workers=1)
    audit()
    whole = len(Counted.users)
    Counted.users.clear()
    with pytest.raises(KeyboardInterrupt):
        audit(run=tmp_path / "run", progress=interrupt_at(20))
    Counted.users.clear()
    audit(run=tmp_path / "run")
    # Repairs are tried once the pools are done, on a few of them.
    assert 0 < len(Counted.users) < 2 * whole / 3


def test_an_interruption_before_the_first_checkpoint_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        COMMANDS["audit"](run=tmp_path / "run", workers=1, progress=interrupt_at(3))
    assert not (tmp_path / "run").exists()


def test_results_of_a_memory_that_failed_are_not_kept(tmp_path: Path) -> None:
    Counted.broken = True
    with pytest.raises(RoutePrismError, match="broken"):
        COMMANDS["audit"](run=tmp_path / "run", workers=1)
    assert len(Counted.users) > 400
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", [pytest.param("audit", marks=pytest.mark.slow), "orders"])
@pytest.mark.parametrize("lost", [False, True])
def test_an_interrupted_shard_continues(name: str, lost: bool, tmp_path: Path) -> None:
    """The sample has 30 pools, so a shard of two has 15; without its file it begins again."""
    perform = partial(COMMANDS[name], workers=1)
    perform(run=tmp_path / "whole")
    runs = [tmp_path / "1", tmp_path / "2"]
    perform(run=runs[0], shard="1/2")
    with pytest.raises(KeyboardInterrupt):
        perform(run=runs[1], shard="2/2", progress=interrupt_at(10))
    if lost:
        (runs[1] / "cases.part").unlink()
    done: list[int] = []
    perform(run=runs[1], shard="2/2", progress=lambda at, total: done.append(at))
    assert done == list(range(1 if lost else 9, 16))
    assert not (runs[1] / "cases.part").exists()
    perform(run=tmp_path / "all", shards=runs)
    assert contents(tmp_path / "all") == contents(tmp_path / "whole")
