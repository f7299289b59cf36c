"""How the cost of an audit grows from 1,000 to 100,000 users with ten records each.

For each number of users: processor time, and peak memory of this process and of its largest worker,
with and without support labels, and the line through these points. Then the largest audit is killed
while it works and started again, and the smallest one is divided into ten shards, one of which is
killed as well; the results must equal those of the single runs.
Limit: memory at 100,000 users at most 1.25 times that at 10,000.
Run: python benchmarks/streaming_growth.py [USERS…]; the last results are in docs/performance.md.
It draws docs/images/growth.svg; --chart FILE draws it from the JSON lines that it printed.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict

sys.path.insert(0, str(Path(__file__).parent))
import streaming_audit

SIZES = (1_000, 10_000, 100_000)
CHART = Path(__file__).parents[1] / "docs" / "images" / "growth.svg"
SHARDS = 10
POLICIES = ("-p", "focal", "-p", "recent:k=3", "-s", "replay")
PROGRAM = (sys.executable, "-c", "from routeprism.cli import main; main()")


class Figures(TypedDict):
    """What an audit took."""

    seconds: float
    cpu: float
    memory: list[float]


def write(folder: Path, users: int, *, labels: bool) -> None:
    """Write users with ten records and two questions each."""
    streaming_audit.RECORDS, streaming_audit.QUESTIONS = 10, 2
    folder.mkdir()
    streaming_audit.write(folder, users)
    if not labels:
        file = folder / "questions.jsonl"
        labelled = file.replace(folder / "labelled.jsonl")
        with labelled.open() as lines, file.open("w") as stream:
            for line in lines:
                question = json.loads(line)
                del question["support"]
                stream.write(json.dumps(question) + "\n")
        labelled.unlink()


def audit(folder: str, run: str) -> None:
    """Audit in this process; print processor seconds and peak memory."""
    import routeprism

    start = time.perf_counter()
    routeprism.audit(folder, "focal", "recent:k=3", schedules=["replay"], workers=2, run=run)
    here, workers = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    cpu = sum(usage.ru_utime + usage.ru_stime for usage in (here, workers))
    memory = [usage.ru_maxrss / 1024 for usage in (here, workers)]
    print(json.dumps({"seconds": time.perf_counter() - start, "cpu": cpu, "memory": memory}))


def measure(folder: Path, run: Path) -> Figures:
    """Audit in a fresh process."""
    done = subprocess.run(_command(folder, run), check=True, capture_output=True, text=True)
    figures: Figures = json.loads(done.stdout)
    return figures


def _command(folder: Path, run: Path) -> list[str]:
    return [sys.executable, __file__, "--audit", str(folder), str(run)]


def measure_resumed(folder: Path, run: Path, pools: int) -> Figures:
    """Audit in a process that is killed after some checkpoints, then in a second process."""
    process = subprocess.Popen(_command(folder, run), stdout=subprocess.DEVNULL)
    while process.poll() is None and count_checkpoints(run) * 250 < pools:
        time.sleep(0.2)
    process.send_signal(signal.SIGKILL)
    process.wait()
    print(f"killed after {count_checkpoints(run)} checkpoints", flush=True)
    return measure(folder, run)


def count_checkpoints(run: Path) -> int:
    """Count the checkpoints of a run that is being made."""
    store = run / "run.sqlite"
    if not store.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute("SELECT count(*) FROM progress").fetchone()[0])
        except sqlite3.OperationalError:  # no checkpoint yet, or one is being written
            return 0


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
    """Measure every size, then compare interrupted and divided runs with the single ones."""
    sizes = tuple(map(int, sys.argv[1:])) or SIZES
    drawn: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        for labels in (True, False):
            points = []
            for users in sizes:
                folder, run = base / f"{users}-{labels}", base / f"run-{users}-{labels}"
                write(folder, users, labels=labels)
                figures = measure(folder, run)
                points.append((users, figures["cpu"]))
                describe(users, labels, figures, run)
                drawn.append({"users": users, "labels": labels, **figures})
            slope, start = statistics.linear_regression(*zip(*points, strict=True))
            print(f"line: {start:.1f} s + {1000 * slope:.2f} s for each thousand users", flush=True)
            if len(sizes) > 1:
                print(compare_memory(sizes, drawn[-len(sizes) :]), flush=True)
        print("\n".join(map(json.dumps, drawn)), flush=True)
        draw(drawn)
        largest, smallest = sizes[-1], sizes[0]
        resumed = measure_resumed(base / f"{largest}-True", base / "resumed", largest // 2)
        describe(largest, True, resumed, base / "resumed")
        compare("killed and resumed", base / "resumed", base / f"run-{largest}-True")
        merged = audit_shards(base / f"{smallest}-True", base / "shards")
        compare(f"{SHARDS} shards, one killed", merged, base / f"run-{smallest}-True")


def compare_memory(sizes: Sequence[int], points: Sequence[Mapping[str, Any]]) -> str:
    """Compare the memory of the largest audit with that of the audit before it."""
    here, worker = (
        after / before
        for before, after in zip(points[-2]["memory"], points[-1]["memory"], strict=True)
    )
    return (
        f"memory with {sizes[-1]:,} users against {sizes[-2]:,}: {here:.2f} times here, "
        f"{worker:.2f} times in a worker (limit 1.25)"
    )


def draw(points: list[dict[str, object]]) -> None:
    """Draw processor time and memory against the number of users, both on logarithmic scales."""
    import vl_convert

    values = [
        {
            "users": point["users"],
            "labels": "with labels" if point["labels"] else "without labels",
            "seconds": point["cpu"],
            "memory": point["memory"][0],  # type: ignore[index]
        }
        for point in points
    ]
    panels = [
        {
            "width": 300,
            "height": 220,
            "mark": {"type": "line", "point": {"size": 60}, "strokeWidth": 2},
            "encoding": {
                "x": {
                    "field": "users",
                    "type": "quantitative",
                    "scale": {"type": "log"},
                    "axis": {"title": "users", "format": ",", "values": list(SIZES)},
                },
                "y": {
                    "field": field,
                    "type": "quantitative",
                    "scale": {"type": "log", "domain": domain},
                    "axis": {"title": title, "format": "~g"},
                },
                "color": {
                    "field": "labels",
                    "type": "nominal",
                    "scale": {"range": ["#0b5fa5", "#b3470b"]},
                    "legend": {"title": None, "orient": "bottom"},
                },
                "strokeDash": {"field": "labels", "type": "nominal", "legend": None},
            },
        }
        for field, title, domain in (
            ("seconds", "processor time (s)", [1, 1000]),
            ("memory", "memory of the main process (MB)", [10, 1000]),
        )
    ]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",  # readable on a dark page as well
        "data": {"values": values},
        "hconcat": panels,
        "config": {"axis": {"labelFontSize": 12, "titleFontSize": 12}},
    }
    CHART.write_text(vl_convert.vegalite_to_svg(spec) + "\n", encoding="utf-8")


def describe(users: int, labels: bool, figures: Figures, run: Path) -> None:
    """Print what an audit took."""
    size = (run / "run.sqlite").stat().st_size / 2**20
    here, worker = figures["memory"]
    print(
        f"{users:,} users, {'with' if labels else 'without'} labels: "
        f"{figures['cpu']:.1f} s of processor time "
        f"({1000 * figures['cpu'] / users:.2f} ms a user), {here:.0f} MB here, "
        f"{worker:.0f} MB in a worker, run {size:.0f} MiB, {figures['seconds']:.0f} s",
        flush=True,
    )


def compare(name: str, run: Path, single: Path) -> None:
    """Print whether two runs have the same estimates."""
    same = (run / "estimates.csv").read_bytes() == (single / "estimates.csv").read_bytes()
    print(f"{name}: {'the same' if same else 'DIFFERENT'} estimates.csv", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--audit"]:
        audit(sys.argv[2], sys.argv[3])
    elif sys.argv[1:2] == ["--chart"]:
        draw([json.loads(line) for line in Path(sys.argv[2]).read_text().splitlines()])
    else:
        main()
