"""A memory whose `add` is slow shows how many records were added, and how many are left."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

import routeprism
from routeprism.answers import Progress
from routeprism.experiments import AddProgress
from routeprism.workers import TICKS, ordered_map

from ..doubles import LastThree


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


def test_an_add_that_does_not_end_is_reported_without_an_estimate() -> None:
    """Nothing calls it: the first add of eight is still under way."""
    reports: queue.SimpleQueue[Progress] = queue.SimpleQueue()
    adding = AddProgress(lambda name, progress: reports.put(progress), [4], 2, patience=0.001)
    with adding.watching():
        report = reports.get(timeout=60)
    assert (report.done, report.total, report.seconds_left) == (0, 8, None)


def negate_with_ticks(report: Callable[[int], None], number: int) -> int:
    """Work of a worker process: one tick, counted there."""
    report(1)
    time.sleep(0.3)  # longer than a worker waits between two reports
    return -number


@dataclass(frozen=True)
class Reporting:
    """Sets a worker up: the progress object travels as one that reports to the first process."""

    adding: AddProgress

    def __call__(self) -> AddProgress:
        return self.adding


@pytest.mark.slow
def test_worker_processes_report_to_the_first_process() -> None:
    adding = AddProgress(lambda name, progress: None, [1], 1)
    ticks: list[int] = []
    numbers = ordered_map(
        negate_with_ticks, Reporting(adding), 6, workers=2, batch=1, home={TICKS: ticks.append}
    )
    assert list(numbers) == [0, -1, -2, -3, -4, -5]
    # A worker reports at its second call and later; one of two workers has at least three of six.
    assert 2 <= sum(ticks) <= 6


def test_counting_adds_changes_no_number() -> None:
    plain = routeprism.audit("sample", LastThree, schedules=["replay"])
    counted = routeprism.audit(
        "sample", LastThree, schedules=["replay"], answer_progress=lambda name, progress: None
    )
    assert plain.rows == counted.rows
