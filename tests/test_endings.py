"""What a process started ends with it, at whatever moment a signal comes."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from routeprism import endings


@pytest.fixture
def ended() -> Iterator[list[str]]:
    """Collect what was ended."""
    names: list[str] = []
    yield names
    endings.end_all()


def interrupt_main_thread(number: int) -> None:
    """Send several signals to the thread that waits, whether it has noticed the last or not."""
    main = threading.main_thread().ident
    assert main is not None
    for _ in range(number):
        signal.pthread_kill(main, signal.SIGINT)


@pytest.mark.parametrize("signals", [1, 100])
def test_what_starts_while_its_caller_is_interrupted_is_ended(
    signals: int, ended: list[str]
) -> None:
    def begin() -> str:
        interrupt_main_thread(signals)
        return "program"

    with pytest.raises(KeyboardInterrupt):
        endings.start(begin, ended.append)
    assert ended == ["program"]


@pytest.mark.parametrize("signals", [1, 100])
def test_what_has_to_be_finished_is_finished_in_spite_of_signals(signals: int) -> None:
    steps = []

    def work() -> None:
        interrupt_main_thread(signals)
        steps.append("done")

    with pytest.raises(KeyboardInterrupt):
        endings.finish(work)
    assert steps == ["done"]
    with pytest.raises(LookupError, match="as it was raised"):
        endings.finish(lambda: (_ for _ in ()).throw(LookupError("as it was raised")))


def test_the_end_of_a_process_ends_everything_in_spite_of_signals(ended: list[str]) -> None:
    def interrupt() -> None:
        ended.append("interrupted")
        if len(ended) == 1:
            signal.raise_signal(signal.SIGINT)

    def fail() -> None:
        ended.append("failed")
        raise OSError

    for name, end in {"a": interrupt, "b": fail, "c": lambda: ended.append("ended")}.items():
        endings.note(name, end)
    endings.note("d", lambda: ended.append("forgotten"))
    endings.forget("d")
    endings.end_all()
    assert ended == ["interrupted", "interrupted", "failed", "ended"]
    endings.end_all()
    assert len(ended) == 4


def test_what_cannot_start_raises_its_own_error(ended: list[str]) -> None:
    def begin() -> str:
        raise FileNotFoundError("no such program")

    with pytest.raises(FileNotFoundError, match="no such program"):
        endings.start(begin, ended.append)
    endings.end_all()
    assert ended == []
