"""On a full disk a command ends with one line, keeps what it has, and goes on when there is room.

The disk is full by `RLIMIT_FSIZE`, which needs no privileges: a file cannot grow beyond a size.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import routeprism
from routeprism.report import write_answers
from routeprism.runs import StoredRun

resource = pytest.importorskip("resource", reason="this system cannot limit the size of files")
FULL = Path("/dev/full")

SCRIPT = """
import resource, sys
from routeprism.cli import main
import routeprism.api, routeprism.report  # so that no file is compiled under the limit
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
main()
"""
SIZES = (1, 5_000, 20_000, 60_000, 95_000, 150_000, 600_000)
"""From no room for the manifest to no room for the report."""


def limited(size: int, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Call the command line where no file can grow beyond a size."""
    command = [sys.executable, "-B", "-c", SCRIPT, str(size), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def arguments(data: Path, run: Path, draws: int = 1) -> tuple[object, ...]:
    asking = ("--model", "reader", "--draws", draws, "--resamples", 100)
    return ("audit", data, "-p", "recent:k=2", *asking, "--run", run, "--quiet")


def audit(data: Path, run: Path, draws: int = 1) -> bytes:
    routeprism.audit(
        data, "recent:k=2", models=["reader"], draws=draws, run=run, resamples=100, workers=None
    )
    return (run / "estimates.csv").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_new_run_on_a_full_disk_can_be_resumed(
    small_data: Path, tmp_path: Path, size: int
) -> None:
    done = limited(size, *arguments(small_data, tmp_path / "runs" / "run"))
    assert done.returncode == 2
    assert done.stderr.startswith("routeprism: ")
    assert len(done.stderr.splitlines()) == 1
    assert "cannot be written: " in done.stderr or "cannot be used as a ledger: " in done.stderr
    if "nothing of it is left" in done.stderr:
        assert list(tmp_path.iterdir()) == []
    else:
        assert (tmp_path / "runs" / "run" / "run.sqlite").exists()
    expected = audit(small_data, tmp_path / "undisturbed")
    assert audit(small_data, tmp_path / "runs" / "run") == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5_000, 60_000, 110_000])
def test_the_extension_of_a_finished_run_on_a_full_disk_leaves_it_readable(
    small_data: Path, tmp_path: Path, size: int
) -> None:
    run = tmp_path / "run"
    before = audit(small_data, run)
    done = limited(size, *arguments(small_data, run, 3))
    assert done.returncode == 2
    assert done.stderr.startswith("routeprism: ")
    assert len(done.stderr.splitlines()) == 1
    assert "The finished run is as it was" in done.stderr
    assert (run / "estimates.csv").read_bytes() == before
    assert write_answers(run, tmp_path / "answers.csv") == 3 * 2 * 2
    with StoredRun(run) as stored:
        assert stored.manifest()["status"] == "complete"
    audit(small_data, run, 3)
    assert write_answers(run, tmp_path / "answers.csv") == 3 * 2 * 2 * 3


@pytest.mark.slow
@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "command",
    [
        ("list", "policies"),
        ("list", "policies", "--json"),
        ("--version",),
        ("audit", "DATA", "-p", "recent:k=2", "--run", "RUN", "--resamples", "100"),
        ("audit", "DATA", "-p", "recent:k=2", "--run", "RUN", "--resamples", "100", "--json"),
    ],
)
def test_output_that_cannot_be_written_is_said_in_one_line(
    small_data: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    places = {"DATA": str(small_data), "RUN": str(tmp_path / "run")}
    words = [places.get(word, word) for word in command]
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from routeprism.cli import main; main()", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
            check=False,
        )
    assert done.stderr.splitlines()[-1] == (
        "routeprism: the output cannot be written: No space left on device"
    )
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
    assert done.returncode == 2
    if command[0] == "audit":
        assert (tmp_path / "run" / "estimates.csv").exists()
