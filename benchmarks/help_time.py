"""How long the commands take that only print: help, `list`, and `check` of a finished run.

`routeprism --help` has a limit of 0.3 s. The other commands are multiples of it in processor time,
and help of a command may take at most four times as long.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 0.3
MULTIPLE = 4.0
ROUNDS = 10


def best(words: list[str]) -> tuple[float, float]:
    """Take the best of some starts, in seconds by the wall and of the processor."""
    walls, processor = [], []
    for _ in range(ROUNDS):
        start, before = time.perf_counter(), os.times()
        subprocess.run(words, check=True, capture_output=True)
        after = os.times()
        walls.append(time.perf_counter() - start)
        processor.append(sum(after[2:4]) - sum(before[2:4]))
    return min(walls), min(processor)


def main() -> int:
    """Measure, print, and report whether a limit was missed."""
    command = str(Path(sys.executable).parent / "routeprism")
    with tempfile.TemporaryDirectory() as folder:
        run = str(Path(folder) / "run")
        audit = [command, "audit", "sample", "-p", "recent:k=3", "-s", "replay", "--run", run]
        subprocess.run(audit, check=True, capture_output=True)
        bare, _ = best([sys.executable, "-c", "pass"])
        overview, processor = best([command, "--help"])
        print(
            f"routeprism --help: {overview:.3f} s = {overview / LIMIT:.2f} of its limit of "
            f"{LIMIT} s, {overview / bare:.1f} times a bare interpreter"
        )
        missed = overview > LIMIT
        check = ["check", run, "-g", "J>=0"]
        for words in (["audit", "--help"], ["restore", "--help"], ["list"], check):
            ratio = best([command, *words])[1] / processor
            missed |= "--help" in words and ratio > MULTIPLE
            shown = " ".join(words[:2] if "--help" in words else words[:1])
            print(f"routeprism {shown}: {ratio:.1f} times `routeprism --help`")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
