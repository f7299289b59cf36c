"""A memory whose `add` is slow shows how many records were added, and how many are left."""

from __future__ import annotations

import pickle

import routeprism
from routeprism.answers import Progress
from routeprism.experiments._adding import AddProgress
from routeprism.records import Record


def test_the_first_report_comes_within_two_seconds_and_estimates_the_rest() -> None:
    """One add takes a second: the second one is reported; two pools of four, in two orders."""
    seconds = iter(range(100))
    reports: list[Progress] = []
    adding = AddProgress(
        lambda name, progress: reports.append(progress), [4, 4], 2, clock=lambda: next(seconds)
    )
    adding()
    assert (reports[0].done, reports[0].total, reports[0].seconds_left) == (1, 16, 15.0)
    for _ in range(11):
        adding()
    adding.end_pool()  # its four records took twelve adds: checks build some orders again
    adding()
    assert (reports[-1].done, reports[-1].total) == (13, 24)


def test_other_processes_report_nothing() -> None:
    adding = AddProgress(lambda name, progress: None, [1], 1)
    assert pickle.loads(pickle.dumps(adding)) is None  # noqa: S301 (our own object)


class LastThree:
    """Somebody's own memory."""

    def __init__(self) -> None:
        self.held: list[Record] = []

    def add(self, record: Record) -> None:
        self.held = [*self.held, record][-3:]

    def retained(self) -> list[Record]:
        return self.held

    def expose(self, query: str) -> list[Record]:
        return self.held


def test_counting_adds_changes_no_number() -> None:
    plain = routeprism.audit("sample", LastThree, schedules=["replay"])
    counted = routeprism.audit(
        "sample", LastThree, schedules=["replay"], answer_progress=lambda name, progress: None
    )
    assert plain.rows == counted.rows
