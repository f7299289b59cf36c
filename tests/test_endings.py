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


def test_what_starts_while_its_caller_is_interrupted_is_ended(ended: list[str]) -> None:
    goes_on, has_ended = threading.Event(), threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def begin() -> str:
        signal.pthread_kill(main, signal.SIGINT)
        assert goes_on.wait(60)
        return "program"

    def end(name: str) -> None:
        ended.append(name)
        has_ended.set()

    with pytest.raises(KeyboardInterrupt):
        endings.start(begin, end)
    assert ended == []  # it has not started yet
    goes_on.set()
    assert has_ended.wait(60)
    assert set(ended) == {"program"}


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
