"""How the command line behaves at a terminal, in a pipe, when stopped and when left alone."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from routeprism.answers import Progress
from routeprism.cli import _terminal
from routeprism.experiments._comparison_stage import PortionProgress

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
    assert max(map(len, ended.out.splitlines())) <= 80


def test_stopped_it_gives_the_command_to_go_on_with(cli: Callable[..., Any]) -> None:
    Path("stopping.py").write_text(MEMORY.format(error="KeyboardInterrupt"))
    ended = cli("audit", "sample", "-p", "stopping:Memory", "--run", "a run", "--workers", "1")
    assert ended.code == 130
    assert ended.err.endswith(
        "To resume:\n  routeprism audit sample -p stopping:Memory --run 'a run' --workers 1\n"
    )


@pytest.mark.slow
def test_no_colour_in_a_pipe(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    ended = cli("audit", "sample", "-p", "raw", "--run", "run", "--resamples", "100")
    assert ended.code == 0 and "\x1b" not in ended.out + ended.err
    assert ended.err == ""  # and no progress bar


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_letters_that_the_terminal_lacks_stop_nothing(encoding: str, tmp_path: Path) -> None:
    command = "audit sample -p raw --model reader --run run --resamples 100 -v".split()
    ended = subprocess.run(
        [sys.executable, "-c", "from routeprism.cli import main; main()", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
        capture_output=True,
        check=True,
    )
    assert b"\\u0394_rep" in ended.stdout and ended.stderr == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("gate", "code"), [("J>=0", 0), ("J>=0.99", 1)], ids=["gate holds", "gate fails"]
)
@pytest.mark.parametrize("ending", [">&-", "2>&1 | read -r line", ">&- 2>&- <&-"])
def test_output_that_nobody_reads_changes_nothing(
    ending: str, gate: str, code: int, tmp_path: Path
) -> None:
    """The run is complete, and the exit code is the command's own."""
    program = shlex.join([sys.executable, "-c", "from routeprism.cli import main; main()"])
    run = "audit sample -p recent:k=2 --resamples 100 --schedule replay --run run --json"
    errors = ""
    for command, expected in ((run, 0), (f"check run --gate '{gate}'", code)):
        script = f"{program} {command} {ending}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == expected, done.stderr
        errors += done.stderr
    assert errors == ""
    assert json.loads((tmp_path / "run" / "manifest.json").read_text())["status"] == "complete"


def test_progress_shows_rate_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(_terminal, "SafeConsole", lambda **_: terminal)
    with _terminal.progress(False, 1) as meter:
        assert meter.pools is not None and meter.steps is not None
        meter.steps("memories", 0, 3)
        for done in range(1, 31):
            meter.pools(done, 40)
        meter.steps("estimates", 2, 3)
        meter.begin_last("report")
    text = screen.getvalue()
    assert "30/40" in text
    assert "step 1 of 4" in text and "step 4 of 4" in text
    assert re.search(r"\d+\.\d/s", text)
    assert re.search(r"\d:\d\d:\d\d", text)
    with _terminal.progress(True) as quiet:
        assert (quiet.pools, quiet.answers, quiet.steps) == (None, None, None)


def test_the_bar_of_all_steps_promises_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report takes a second, so that half of the steps is not half of the time."""
    screen = io.StringIO()
    terminal = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(_terminal, "SafeConsole", lambda **_: terminal)
    with _terminal.progress(False, 1) as meter:
        assert meter.answers is not None
        for done in range(1, 31):
            meter.answers("records added", Progress(done, 40, 0, 1.0, None, 10.0))
    lines = re.split(r"[\r\n]+", screen.getvalue())
    assert not [
        line for line in lines if "memories" in line and re.search(r"[-\d]:[-\d]{2}:", line)
    ]
    assert [line for line in lines if "records added" in line and re.search(r"\d:\d\d:\d\d", line)]


def test_progress_is_that_of_all_portions() -> None:
    """Three pools of ten answers, made ready two and then one at a time."""
    reports: list[tuple[int, int, float | None]] = []
    overall = PortionProgress(
        lambda _, now: reports.append((now.done, now.total, now.seconds_left)), 3
    )
    for pools, totals in ((2, 20), (1, 10)):
        overall.begin_portion(pools)
        for done in (5, totals):
            overall("reader", Progress(done, totals, 0, 5.0, None, None))
    assert reports == [(5, 30, 5.0), (20, 30, 2.0), (25, 30, 1.0), (30, 30, 0.0)]


@pytest.mark.slow
def test_the_shell_completes_commands(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = cli("--show-completion", "bash")
    assert ended.code == 0
    for word in ("compare", "check-adapter", "--policy", "--max-calls"):
        assert word in ended.out
    assert cli("--show-completion", "cmd").code == 2
    monkeypatch.setenv("HOME", str(Path.cwd()))
    assert cli("--install-completion", "bash").code == 0
    (script,) = Path.cwd().rglob("*completions/routeprism")
    assert "complete " in script.read_text()


LOGGING = """
import logging

logging.basicConfig(format="%(levelname)s:%(name)s", force=True, level=logging.INFO)


class Memory:
    def add(self, record):
        logging.getLogger("httpx").info("request")
        logging.getLogger("library").warning("careful")

    def retained(self):
        return []

    def expose(self, query):
        return []
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_libraries_log_is_shown_only_if_asked_for(workers: str, tmp_path: Path) -> None:
    (tmp_path / "chatty.py").write_text(LOGGING)
    call = [
        sys.executable,
        "-m",
        "routeprism",
        "audit",
        "sample",
        "-p",
        "chatty:Memory",
        "--schedule",
        "replay",
        "--resamples",
        "100",
        "--workers",
        workers,
        "-q",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "ROUTEPRISM_LOG"}
    for is_shown in (False, True):
        more = {"ROUTEPRISM_LOG": "1"} if is_shown else {}
        done = subprocess.run(
            call, cwd=tmp_path, env={**environment, **more}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert ("INFO:httpx" in done.stderr) is is_shown
        assert ("WARNING:library" in done.stderr) is is_shown


@pytest.mark.slow
def test_quiet_prints_the_verdict_in_one_line(cli: Callable[..., Any]) -> None:
    few = ("--resamples", "100", "--quiet")
    for run, policy in (("a", "recent:k=3"), ("b", "recent:k=4")):
        out = cli("audit", "sample", "-p", policy, "-s", "replay", "--run", run, *few).out
        assert out.startswith(f"{policy}: evidence moves. Under reversal, ")
        assert out.count("\n") == 1
    restored = cli("restore", "sample", "-p", "recent:k=3", "-m", "reader", *few).out
    assert restored.startswith("recent:k=3") and restored.count("\n") == 1
    repaired = cli("remedy", "sample", "-p", "recent:k=3", *few, "-s", "replay").out
    assert repaired.startswith("recent:k=3: evidence moves. ") and repaired.count("\n") == 1
    assert "routeprism audit sample --policy" in repaired and "(recent:k=3)" in repaired
    compared = cli("compare", "a", "b", "--quiet").out
    assert compared.startswith("this change makes the memory better: ")
    assert compared.count("\n") == 1
