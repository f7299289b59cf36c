"""The complete source-level experiment on a file of LongMemEval-S's full size and shape.

Seven policies (recent-8/16/32, their source-order comparators, focal) in two orders on 470
questions, exposed by BM25 top three, by question type, with intervals; two worker processes, from
opening the file to the last estimate, no run kept. Compared, in the same run, with parsing the same
file once (`json.load`) and cutting its user turns into words once, in one process. Each is a fresh
interpreter, whose start and imports are left out on both sides (those of the workers count).
Limits: 3 times, and 1.5 GB of memory, workers included. Beside it: the same with its run stored,
which keeps every text (no limit).
Run: python benchmarks/longmemeval_audit.py [ROUNDS]; the last results are in docs/performance.md.
"""

from __future__ import annotations

import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

POLICIES = [
    *(f"recent:k={k}" for k in (8, 16, 32)),
    *(f"source-order(recent:k={k})" for k in (8, 16, 32)),
    "focal",
]
WORD = re.compile(r"[A-Za-z][A-Za-z0-9']+")


def one_pass(file: str) -> dict[str, float]:
    """Parse the file and cut its user turns into words."""
    start = time.perf_counter()
    with Path(file).open(encoding="utf-8") as stream:
        parsed = json.load(stream)
    words = 0
    for question in parsed:
        for session in question["haystack_sessions"]:
            for turn in session:
                if turn["role"] == "user":
                    words += len(WORD.findall(turn["content"].lower()))
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "processor": _processor(), "memory": _peak(), "words": words}


def audit(file: str, run: str) -> dict[str, float]:
    """Run the experiment."""
    from routeprism import audit as experiment

    with _Watched() as watched:
        start = time.perf_counter()
        found = experiment(
            f"longmemeval:path={file}",
            *POLICIES,
            schedules=["replay"],
            workers=2,
            run=run or None,
        )
        seconds = time.perf_counter() - start
    control = found.value("overlap.exposed", policy=POLICIES[3], experiment="retention")
    assert (control.estimate, control.lower, control.upper, control.queries) == (1, 1, 1, 470)
    return {
        "seconds": seconds,
        "processor": _processor(),
        "memory": max(watched.peak, _peak()),
        "rows": len(found.rows),
    }


def _processor() -> float:
    """Give the processor time of this process and of the workers that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Watched:
    """Adds up what this process and its workers hold, twenty times a second."""

    def __enter__(self) -> _Watched:
        self.peak, self._end = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(0.05):
            children = Path("/proc/self/task").glob("*/children")
            ids = ["self", *(one for path in children for one in path.read_text().split())]
            self.peak = max(self.peak, sum(map(_resident, ids)))


def _resident(process: str) -> float:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except OSError:
        return 0.0
    return pages * resource.getpagesize() / 2**20


def fresh(*arguments: str) -> dict[str, float]:
    """Measure in an interpreter of its own."""
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Write the file, then compare in rounds."""
    sys.path.insert(0, str(Path(__file__).parent))
    from longmemeval_generate import write

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "longmemeval_s_cleaned.json"
        print(f"file: {write(file) / 2**20:.0f} MiB, 500 questions")
        ratios, peaks = [], []
        for _ in range(rounds):
            base, found = fresh("--pass", str(file)), fresh("--audit", str(file), "")
            ratios.append(found["seconds"] / base["seconds"])
            peaks.append(found["memory"])
            print(
                f"one pass {base['seconds']:.2f} s ({base['memory']:.0f} MB); experiment "
                f"{found['seconds']:.2f} s ({found['memory']:.0f} MB, {found['rows']:.0f} rows) "
                f"= {ratios[-1]:.2f} times; processor time of everything, imports and two "
                f"workers included: {found['processor'] / base['processor']:.2f} times"
            )
        print(f"median round: {statistics.median(ratios):.2f} times (limit 3)")
        print(f"peak memory with workers: {max(peaks):.0f} MB (limit 1500)")
        base = fresh("--pass", str(file))
        found = fresh("--audit", str(file), str(Path(folder) / "run"))
        size = sum(one.stat().st_size for one in (Path(folder) / "run").iterdir())
        print(
            f"with its run stored ({size / 2**20:.0f} MiB): {found['seconds']:.2f} s = "
            f"{found['seconds'] / base['seconds']:.2f} times, {found['memory']:.0f} MB (no limit)"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pass"]:
        print(json.dumps(one_pass(sys.argv[2])))
    elif sys.argv[1:2] == ["--audit"]:
        print(json.dumps(audit(sys.argv[2], sys.argv[3])))
    else:
        main()
