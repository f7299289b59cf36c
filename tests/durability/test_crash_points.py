"""Killed at any write, a run, an extension, a repetition or a report recovers with nothing lost.

ROUTEPRISM_CRASH_POINTS=all tries every point; without it each scenario tries one or two dozen.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("crash_points.py")
EVERY = {"run": 29, "extension": 37, "repetition": 61, "report": 11}
"""Prime numbers, so that the points fall on all kinds of writes."""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, which this system cannot")
@pytest.mark.parametrize("scenario", EVERY)
def test_a_command_that_was_killed_recovers_with_nothing_lost(
    small_data: Path, scenario: str
) -> None:
    every = 1 if os.environ.get("ROUTEPRISM_CRASH_POINTS") == "all" else EVERY[scenario]
    memory = Path("/dev/shm")  # noqa: S108 (a kill loses nothing of the page cache either)
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as scratch:
        place = str(Path(scratch) / "points")
        command = [sys.executable, str(HARNESS), scenario, str(small_data), place, str(every)]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1800)
    outcome = json.loads(done.stdout.splitlines()[-1])
    assert outcome["failures"] == []
    assert outcome["points"] > 50
    assert outcome["tried"] == len(range(1, outcome["points"] + 1, every))
