from __future__ import annotations

import functools
import gc
import multiprocessing
import operator
import queue
import signal
import sys
import threading
from concurrent.futures import ProcessPoolExecutor

import pytest

from routeprism.errors import MissingExtraError, RoutePrismError
from routeprism.workers import Crew, available, crew_of, ordered_map

# What another process can import: work(context, index) is 100 - index.
negated, hundred = operator.sub, functools.partial(int, 100)


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_order(workers: int) -> None:
    values = list(ordered_map(negated, hundred, 9, workers=workers, batch=2))
    assert values == [100, 99, 98, 97, 96, 95, 94, 93, 92]


def test_the_garbage_collector_leaves_earlier_objects_alone_while_work_is_done_here() -> None:
    gc.unfreeze()  # a test before this one may have left work that was interrupted
    results = ordered_map(_count_set_aside, lambda: None, 3)
    first, set_aside = next(results)
    assert first == 0
    assert set_aside > 0
    del results  # it stops early
    assert gc.get_freeze_count() == 0
    gc.freeze()  # by the program that calls RoutePrism
    try:
        before = gc.get_freeze_count()
        numbers = [number for _, number in ordered_map(_count_set_aside, lambda: None, 2)]
        # It is neither undone nor repeated; an object that is freed meanwhile is not counted.
        for number in (*numbers, gc.get_freeze_count()):
            assert 0 < number <= before
    finally:
        gc.unfreeze()


def _count_set_aside(_: None, index: int) -> tuple[int, int]:
    return index, gc.get_freeze_count()


def test_this_process_may_use_a_core() -> None:
    assert available() >= 1


def test_what_cannot_be_shipped_is_refused_in_words() -> None:
    with pytest.raises(RoutePrismError, match="cannot be sent to other processes"):
        list(ordered_map(lambda offset, index: index, hundred, 3, workers=2))


def test_a_crew_that_began_before_is_used() -> None:
    with crew_of(2, "decimal") as crew:
        values = list(ordered_map(negated, hundred, 5, workers=2, batch=2, crew=crew))
    assert values == [100, 99, 98, 97, 96]


@pytest.mark.parametrize("workers", [None, 1])
def test_one_worker_needs_no_crew(workers: int | None) -> None:
    with crew_of(workers, "decimal") as crew:
        assert crew is None


def test_a_crew_without_work_goes_home() -> None:
    with pytest.raises(LookupError), crew_of(2, "decimal") as crew:
        assert crew is not None
        started = list(crew._pool._processes.values())
        assert len(started) == 2
        raise LookupError("the data could not be read")
    assert not any(process.is_alive() for process in started)


@pytest.mark.parametrize("after", range(8))
def test_an_interrupted_crew_goes_home_whatever_it_is_doing(after: int) -> None:
    # Results that do not fit into a pipe: some worker is handing one over.
    large = functools.partial(bytes, 300_000)
    with pytest.raises(KeyboardInterrupt), crew_of(2, "decimal") as crew:
        assert crew is not None
        for at, _ in enumerate(ordered_map(operator.mul, large, 40, workers=2, batch=1, crew=crew)):
            started = list(crew._pool._processes.values())
            if at == after:
                raise KeyboardInterrupt
    assert not any(process.is_alive() for process in started)


@pytest.mark.slow
def test_a_second_interruption_leaves_no_worker_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes while the crew is being closed."""
    close, main = ProcessPoolExecutor.shutdown, threading.main_thread().ident
    assert main is not None

    def close_while_interrupted(pool: ProcessPoolExecutor, **options: bool) -> None:
        signal.pthread_kill(main, signal.SIGINT)
        close(pool, **options)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", close_while_interrupted)
    with pytest.raises(KeyboardInterrupt), Crew(2) as crew:
        results = crew.map(operator.sub, hundred, 9, batch=1)
        assert next(results) == 100
        started = multiprocessing.active_children()
        raise KeyboardInterrupt
    assert len(started) == 2
    assert not any(process.is_alive() for process in started)


@pytest.mark.slow
def test_workers_that_are_killed_while_a_map_ends_early_leave_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a signal to the whole group does; here the first index fails, and all others wait."""
    errors: list[object] = []
    monkeypatch.setattr(threading, "excepthook", errors.append)
    before = threading.enumerate()
    with Crew(2) as crew:
        with pytest.raises(queue.Empty):
            list(crew.map(queue.Queue.get, queue.Queue, 9, batch=1))
        for worker in multiprocessing.active_children():
            worker.kill()
        for thread in threading.enumerate():
            if thread not in before and not thread.daemon:
                thread.join(60)  # it notices that they were killed
    assert errors == []


def test_a_crew_that_cannot_start_is_an_error_in_words() -> None:
    with (
        pytest.raises(RoutePrismError, match="ended before its work was done"),
        crew_of(2, "there.is.no.such.module") as crew,
    ):
        list(ordered_map(negated, hundred, 5, workers=2, crew=crew))


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[ray\]'"):
        list(ordered_map(negated, hundred, 3, ray="auto"))
