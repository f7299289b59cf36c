"""How long `routeprism --help` takes, against its limit of 0.3 s."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

LIMIT = 0.3


def main() -> None:
    """Print the best of ten starts as a share of the limit, and of a bare interpreter's start."""
    command = Path(sys.executable).parent / "routeprism"
    best = {}
    for name, arguments in {
        "routeprism --help": [str(command), "--help"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }.items():
        times = []
        for _ in range(10):
            start = time.perf_counter()
            subprocess.run(arguments, check=True, capture_output=True)
            times.append(time.perf_counter() - start)
        best[name] = min(times)
    ours, bare = best["routeprism --help"], best["python -c pass"]
    print(
        f"routeprism --help: {ours:.3f} s = {ours / LIMIT:.2f} of its limit of {LIMIT} s, "
        f"{ours / bare:.1f} times a bare interpreter"
    )


if __name__ == "__main__":
    main()
