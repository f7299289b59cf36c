"""Ctrl-C, SIGTERM and SIGHUP: an exit code, a run that resumes, and nothing left running."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from . import fault_endpoint, fault_memory

DIRECTORY = Path(__file__).parent
RECORDS = [
    {"user": user, "id": f"{user}-r{n}", "text": f"fact {n} of {user}"}
    for user in ("u2", "u3", "u4")
    for n in range(2)
]
QUESTIONS = [
    {"user": user, "id": f"{user}-q", "text": "Which?", "options": ["one", "two"], "gold": "a"}
    for user in ("u2", "u3", "u4")
]
pytestmark = pytest.mark.slow
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


def start(*arguments: str | Path, where: Path, **variables: str) -> subprocess.Popen[str]:
    """Start the command line as a shell does: leading a group that a terminal's Ctrl-C reaches.

    Ctrl-C works even if these tests were started in the background, where it would be ignored.
    """
    call = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import routeprism.cli; routeprism.cli.main()"
    )
    return subprocess.Popen(
        [sys.executable, "-c", call, *map(str, arguments)],
        cwd=where,
        env={**os.environ, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(condition: Callable[[], Any], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"


@pytest.mark.parametrize(
    ("whom", "workers", "number"),
    [
        ("process", "1", signal.SIGINT),
        ("group", "1", signal.SIGTERM),
        ("process", "2", signal.SIGTERM),
        ("group", "2", signal.SIGINT),
        ("group", "2", signal.SIGTERM),
        ("process", "1", signal.SIGHUP),
        ("group", "2", signal.SIGHUP),
    ],
)
def test_programs_end_with_everything_they_started(
    own_data: Callable[..., Path], tmp_path: Path, number: signal.Signals, workers: str, whom: str
) -> None:
    pids = tmp_path / "pids"
    words = [sys.executable, "-I", "-S", str(DIRECTORY / "fault_memory.py"), "grandchild"]
    process = start(
        *("audit", own_data(RECORDS, QUESTIONS), "-p", f"command:run={shlex.join(words)}"),
        *("--run", "run", "--workers", workers),
        where=tmp_path,
        FAULT_PIDS=str(pids),
    )
    wait_for(lambda: pids.exists() and pids.read_text().strip())
    (os.kill if whom == "process" else os.killpg)(process.pid, number)
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (CODES[number], ""), err
    assert "Traceback" not in err
    assert "routeprism: stopped" in err
    assert "routeprism audit" in err
    for pid in map(int, pids.read_text().split()):
        wait_for(lambda pid=pid: has_ended(pid), 30)  # type: ignore[misc]
    assert not (tmp_path / "run").exists()  # it had no answers to keep


CLOSING = """
import os, time
from pathlib import Path

class Memory:
    def add(self, record):
        Path("worker").write_text(str(os.getpid()))
        Path("worker").rename("adding")
        time.sleep(600)

    def retained(self):
        return []

    def expose(self, query):
        return []

    def close(self):
        Path("closing").touch()
        while not Path("signalled").exists():
            time.sleep(0.01)
        Path("closed").touch()
"""


@pytest.mark.parametrize(
    "order", [(signal.SIGTERM, signal.SIGUSR1), (signal.SIGUSR1, signal.SIGTERM)]
)
def test_a_worker_that_is_stopped_twice_closes_what_it_opened(
    own_data: Callable[..., Path], tmp_path: Path, order: tuple[signal.Signals, signal.Signals]
) -> None:
    """A signal to the group and the first process both stop a worker, in either order."""
    (tmp_path / "closing_memory.py").write_text(CLOSING)
    process = start(
        *("audit", own_data(RECORDS, QUESTIONS), "-p", "closing_memory:Memory", "--workers", "2"),
        where=tmp_path,
    )
    wait_for((tmp_path / "adding").exists)
    worker = int((tmp_path / "adding").read_text())
    os.kill(worker, order[0])
    wait_for((tmp_path / "closing").exists)
    os.kill(worker, order[1])
    (tmp_path / "signalled").touch()
    wait_for(lambda: has_ended(worker) or (tmp_path / "closed").exists())
    os.kill(process.pid, signal.SIGTERM)
    process.communicate(timeout=90)
    assert (tmp_path / "closed").exists()
    wait_for(lambda: has_ended(worker), 30)


def test_a_program_ends_with_a_process_that_did_not_end_it(tmp_path: Path) -> None:
    """As if the closing of a memory had been interrupted."""
    program = [sys.executable, "-I", "-S", "-c", fault_memory.GRANDCHILD]
    call = (
        "from routeprism.policies.adapters.command import Program\n"
        f"print(Program({program!r})._process.pid)"
    )
    ended = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, timeout=90)
    assert (ended.returncode, ended.stderr) == (0, "")
    wait_for(lambda: has_ended(int(ended.stdout)), 30)


def test_a_hangup_that_is_ignored_stops_nothing(
    own_data: Callable[..., Path], tmp_path: Path
) -> None:
    """`nohup` ignores SIGHUP; RoutePrism and its workers go on, and SIGTERM ends them."""
    (tmp_path / "closing_memory.py").write_text(CLOSING)
    words = [sys.executable, "-c", "import routeprism.cli; routeprism.cli.main()", "audit"]
    words += [str(own_data(RECORDS, QUESTIONS)), "-p", "closing_memory:Memory", "--workers", "2"]
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"trap '' HUP; exec {shlex.join(words)}"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_for((tmp_path / "adding").exists)
    os.killpg(process.pid, signal.SIGHUP)
    os.killpg(process.pid, signal.SIGTERM)
    wait_for((tmp_path / "closing").exists)
    (tmp_path / "signalled").touch()
    process.communicate(timeout=90)
    assert process.returncode == CODES[signal.SIGTERM]


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
def test_a_stopped_run_keeps_its_answers_and_goes_on(
    own_data: Callable[..., Path], tmp_path: Path, number: signal.Signals
) -> None:
    """The first two prompts are answered, the others never; after the signal all of them are."""
    entries: list[Any] = []
    stalls = [True]

    def respond(connection: Any, request: Any) -> None:
        entries.append(request)
        if len(entries) <= 2 or not stalls[0]:
            fault_endpoint.OK(connection, request)

    data = own_data(RECORDS, QUESTIONS)
    with fault_endpoint.Endpoint({"some": respond}) as endpoint:
        call: tuple[str | Path, ...] = (
            *("audit", data, "-p", "recent:k=1", "--model", "openai:m,retries=0,concurrency=3"),
            *("--base-url", endpoint.url("some"), "--run", "run", "--resamples", "100", "--json"),
        )
        process = start(*call, where=tmp_path)
        wait_for(lambda: len(entries) >= 5)
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=90)
        assert (process.returncode, out) == (CODES[number], ""), err
        assert "routeprism: stopped" in err
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
        assert manifest["status"] == "running"
        before, stalls[0] = len(entries), False
        repetition = start(*call, where=tmp_path)
        out, err = repetition.communicate(timeout=90)
    assert repetition.returncode == 0, err
    assert json.loads(out)["missing"] == {"answers": 0, "routes": 0, "reasons": []}
    assert len(entries) - before == 6 - 2  # three questions on two routes, two of them answered


def test_a_background_job_that_ignores_ctrl_c_still_ends(
    own_data: Callable[..., Path], tmp_path: Path
) -> None:
    """A shell starts background jobs with SIGINT ignored; SIGTERM has to end them."""
    entries: list[Any] = []
    with fault_endpoint.Endpoint({"stall": lambda _, request: entries.append(request)}) as endpoint:
        data = own_data(RECORDS, QUESTIONS)
        words = [sys.executable, "-c", "import routeprism.cli; routeprism.cli.main()", "audit"]
        words += [str(data), "-p", "recent:k=1", "--model", "openai:m"]
        words += ["--base-url", endpoint.url("stall"), "--run", "run"]
        script = f"trap '' INT; exec {shlex.join(words)}"
        process = subprocess.Popen(
            ["/bin/sh", "-c", script], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        wait_for(lambda: entries)
        os.kill(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=90)
    assert process.returncode == 143, err
    assert "Traceback" not in err
