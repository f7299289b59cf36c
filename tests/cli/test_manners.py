"""How the command line behaves at a terminal, in a pipe, when stopped and when left alone."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from routeprism.answers import Progress
from routeprism.cli import _terminal
from routeprism.experiments._overall import Overall

MEMORY = """
class Memory:
    def add(self, record):
        raise {error}

    def retained(self):
        return []

    def expose(self, query):
        return []
"""


def test_alone_it_says_what_to_do_next(cli: Callable[..., Any]) -> None:
    ended = cli()
    assert (ended.code, ended.err) == (0, "")
    for command in ("demo", "audit sample -p focal", "my_module:Memory", "check", "--help"):
        assert command in ended.out
    assert max(map(len, ended.out.splitlines())) <= 105


def test_stopped_it_gives_the_command_to_go_on_with(cli: Callable[..., Any]) -> None:
    Path("stopping.py").write_text(MEMORY.format(error="KeyboardInterrupt"))
    ended = cli("audit", "sample", "-p", "stopping:Memory", "--run", "a run", "--workers", "1")
    assert ended.code == 130
    assert ended.err.endswith(
        "To go on:\n  routeprism audit sample -p stopping:Memory --run 'a run' --workers 1\n"
    )


def test_no_colour_in_a_pipe(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    ended = cli("audit", "sample", "-p", "raw", "--run", "run", "--resamples", "100")
    assert ended.code == 0 and "\x1b" not in ended.out + ended.err
    assert ended.err == ""  # and no progress bar


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_letters_that_the_terminal_lacks_stop_nothing(encoding: str, tmp_path: Path) -> None:
    command = "audit sample -p raw --model reader --run run --resamples 100".split()
    ended = subprocess.run(
        [sys.executable, "-c", "from routeprism.cli import main; main()", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    assert b"\\u0394_rep" in ended.stdout and ended.stderr == b""


def test_progress_shows_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(_terminal, "Console", lambda **_: terminal)
    with _terminal.progress(False) as (pools, _):
        assert pools is not None
        for done in range(1, 31):
            pools(done, 40)
    shown = screen.getvalue()
    assert "30/40" in shown
    assert re.search(r"\d+\.\d/s", shown)
    assert re.search(r"\d:\d\d:\d\d", shown)
    with _terminal.progress(True) as quiet:
        assert quiet == (None, None)


def test_progress_is_that_of_all_portions() -> None:
    """Three pools of ten answers, made ready two and then one at a time."""
    told: list[tuple[int, int, float | None]] = []
    overall = Overall(lambda _, now: told.append((now.done, now.total, now.seconds_left)), 3)
    for pools, totals in ((2, 20), (1, 10)):
        overall.portion(pools)
        for done in (5, totals):
            overall("reader", Progress(done, totals, 0, 5.0, None, None))
    assert told == [(5, 30, 5.0), (20, 30, 2.0), (25, 30, 1.0), (30, 30, 0.0)]


def test_the_shell_completes_commands(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_ROUTEPRISM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "routeprism com")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert cli().out.split() == ["compare"]
