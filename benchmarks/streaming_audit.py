"""Ten thousand pools of fifty records with five questions each, audited as they are read.

Limits: four times the pools must not need one and a half times the memory (what stays is where each
user's lines are and each unit's sums, not the texts), and two workers must keep at least 1.4 cores
busy. What two processes gain on this machine at all is measured beside it, on plain arithmetic.
Run: python benchmarks/streaming_audit.py [POOLS]; the last results are in docs/performance.md.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

RECORDS, QUESTIONS = 50, 5
VOCABULARY = [
    f"{start}{end}"
    for start in "bcdfghklmnprstvw"
    for end in ("able", "ent", "ish", "ore", "und", "ale", "irk", "ost", "ump", "eek")
]


def write(folder: Path, pools: int) -> None:
    """Write own data: short notes over a small vocabulary, so that clusters form."""
    draw = random.Random(7)  # noqa: S311
    with (
        (folder / "records.jsonl").open("w") as records,
        (folder / "questions.jsonl").open("w") as questions,
    ):
        for user in range(pools):
            topic = draw.sample(VOCABULARY, 40)
            for record in range(RECORDS):
                text = " ".join(draw.choices(topic, k=12) + draw.choices(VOCABULARY, k=28))
                entry = {"user": f"u{user}", "id": f"r{record}", "text": text}
                records.write(json.dumps(entry) + "\n")
            for question in range(QUESTIONS):
                entry = {
                    "user": f"u{user}",
                    "id": f"u{user}q{question}",
                    "text": " ".join(draw.sample(topic, 4)),
                    "support": [f"r{draw.randrange(RECORDS)}"],
                }
                questions.write(json.dumps(entry) + "\n")


def audit(folder: str, workers: int) -> None:
    """Audit in this process; print seconds and peak memory."""
    import routeprism

    with tempfile.TemporaryDirectory() as run:
        start = time.perf_counter()
        routeprism.audit(
            folder,
            "focal",
            "recent:k=3",
            schedules=["replay"],
            workers=workers,
            run=Path(run) / "run",
        )
        seconds = time.perf_counter() - start
    here = resource.getrusage(resource.RUSAGE_SELF)
    workers_used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = sum(one.ru_utime + one.ru_stime for one in (here, workers_used))
    print(
        json.dumps(
            {
                "seconds": seconds,
                "cpu": cpu,
                "own": here.ru_maxrss / 1024,
                "largest_worker": workers_used.ru_maxrss / 1024,
            }
        )
    )


def arithmetic(_: int) -> float:
    """Do a fixed amount of work."""
    start = time.perf_counter()
    total = 0
    for number in range(10_000_000):
        total += number * number
    return time.perf_counter() - start


def gain_of_two() -> float:
    """Say how much faster two processes do plain arithmetic than one, here and now."""
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(arithmetic, range(2)))  # both are up
        one = arithmetic(0)
        start = time.perf_counter()
        list(pool.map(arithmetic, range(2)))
        return 2 * one / (time.perf_counter() - start)


def measured(folder: Path, workers: int) -> dict[str, float]:
    """Audit in a fresh process."""
    command = [sys.executable, __file__, "--audit", str(folder), str(workers)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Compare two sizes and two numbers of workers in one run."""
    pools = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as base:
        results = {}
        for size in (pools // 4, pools):
            folder = Path(base) / f"pools-{size}"
            folder.mkdir()
            write(folder, size)
            results[size] = measured(folder, 2)
            found = results[size]
            print(
                f"{size} pools, 2 workers: {found['seconds']:.1f} s "
                f"({size / found['seconds']:.0f} pools/s), peak {found['own']:.0f} MB here, "
                f"{found['largest_worker']:.0f} MB in the largest worker"
            )
        one = measured(Path(base) / f"pools-{pools // 4}", 1)
    small, large = results[pools // 4], results[pools]
    print(
        f"memory, {pools} to {pools // 4} pools: {large['own'] / small['own']:.2f} times here, "
        f"{large['largest_worker'] / small['largest_worker']:.2f} times in a worker (limit 1.5)"
    )
    busy = large["cpu"] / large["seconds"]
    print(f"cores busy with two workers on {pools} pools: {busy:.2f} (limit 1.4)")
    print(
        f"two workers against one on {pools // 4} pools: "
        f"{one['seconds'] / small['seconds']:.2f} times the rate; two processes of plain "
        f"arithmetic against one, in this run: {gain_of_two():.2f} times"
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--audit"]:
        audit(sys.argv[2], int(sys.argv[3]))
    else:
        main()
