"""Killed at any write, a run of any kind recovers: nothing is lost, nothing is paid for twice.

ROUTEPRISM_CRASH_POINTS=all tries every point; without it each kind tries eight.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .kinds_of_runs import KINDS

HARNESS = Path(__file__).with_name("crash_points.py")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, which this system cannot")
@pytest.mark.parametrize("kind", KINDS)
def test_a_command_that_was_killed_recovers_with_nothing_lost(small_data: Path, kind: str) -> None:
    most = [] if os.environ.get("ROUTEPRISM_CRASH_POINTS") == "all" else ["8"]
    memory = Path("/dev/shm")  # noqa: S108 (a kill loses nothing of the page cache either)
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        place = str(Path(scratch) / "points")
        command = [sys.executable, str(HARNESS), kind, str(small_data), place, *most]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["failures"] == []
    assert outcome["points"] > 50
    assert outcome["tried"] == (8 if most else outcome["points"])
    assert (outcome["replies"] > 0) == (KINDS[kind].asks)
