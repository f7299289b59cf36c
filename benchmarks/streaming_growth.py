"""How the cost of an audit grows from 1,000 to 100,000 users with ten records each.

For each number of users: processor time, and peak memory of this process and of its largest worker,
with and without support labels. Then the largest audit is divided into ten shards; a shard is
killed while it works and started again, and the merged run must equal the single run.
Limit: memory at 100,000 users at most twice that at 10,000.
Run: python benchmarks/streaming_growth.py [USERS…]; the last results are in docs/performance.md.
"""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import streaming_audit

SIZES = (1_000, 10_000, 100_000)
SHARDS = 10
POLICIES = ("-p", "focal", "-p", "recent:k=3", "-s", "replay")
PROGRAM = (sys.executable, "-c", "from routeprism.cli import main; main()")


def write(folder: Path, users: int, *, labels: bool) -> None:
    """Write users with ten records and two questions each."""
    streaming_audit.RECORDS, streaming_audit.QUESTIONS = 10, 2
    folder.mkdir()
    streaming_audit.write(folder, users)
    if not labels:
        file = folder / "questions.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            del line["support"]
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def audit(folder: str, run: str) -> None:
    """Audit in this process; print processor seconds and peak memory."""
    import routeprism

    start = time.perf_counter()
    routeprism.audit(folder, "focal", "recent:k=3", schedules=["replay"], workers=2, run=run)
    here, workers = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (here, workers))
    memory = [usage.ru_maxrss / 1024 for usage in (here, workers)]
    print(json.dumps({"seconds": time.perf_counter() - start, "cpu": cpu, "memory": memory}))


def measure(folder: Path, run: Path) -> dict[str, float | list[float]]:
    """Audit in a fresh process."""
    command = [sys.executable, __file__, "--audit", str(folder), str(run)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float | list[float]] = json.loads(done.stdout)
    return found


def audit_shards(folder: Path, runs: Path) -> Path:
    """Audit in shards, kill the second one in its first seconds, repeat it, and merge."""
    parts = [runs / str(number) for number in range(1, SHARDS + 1)]
    for number, part in enumerate(parts, start=1):
        words = [*PROGRAM, "audit", str(folder), *POLICIES, "--quiet", "--shard"]
        command = [*words, f"{number}/{SHARDS}", "--run", str(part)]
        if number == 2:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            time.sleep(5)
            process.send_signal(signal.SIGKILL)
            process.wait()
            print(f"shard 2 was killed; its directory: {part.exists()}", flush=True)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    merged = runs / "merged"
    subprocess.run(
        [*PROGRAM, "merge", *map(str, parts), "--run", str(merged), "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return merged


def main() -> None:
    """Measure every size, then compare a sharded and interrupted run with the single one."""
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    with tempfile.TemporaryDirectory() as base:
        for labels in (True, False):
            for users in sizes:
                folder = Path(base) / f"{users}-{labels}"
                write(folder, users, labels=labels)
                run = Path(base) / f"run-{users}-{labels}"
                found = measure(folder, run)
                size = (run / "run.sqlite").stat().st_size / 2**20
                own, worker = found["memory"]  # type: ignore[misc]
                print(
                    f"{users:,} users, {'with' if labels else 'without'} labels: "
                    f"{found['cpu']:.1f} s of processor time "
                    f"({1000 * found['cpu'] / users:.2f} ms a user), {own:.0f} MB here, "  # type: ignore[operator]
                    f"{worker:.0f} MB in a worker, run {size:.0f} MiB, {found['seconds']:.0f} s",
                    flush=True,
                )
        users = sizes[-1]
        merged = audit_shards(Path(base) / f"{users}-True", Path(base) / "shards")
        single = Path(base) / f"run-{users}-True"
        same = [(run / "estimates.csv").read_bytes() for run in (merged, single)]
        print(
            f"{users:,} users in {SHARDS} shards, one killed and repeated: "
            f"{'the same' if same[0] == same[1] else 'DIFFERENT'} estimates.csv"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--audit"]:
        audit(sys.argv[2], sys.argv[3])
    else:
        main()
