"""How fast answers are collected from a loopback server, each durable before it counts.

Ratios, taken in one run: the collector against the ideal rate (concurrency / latency), and, where
`inspect_ai` is installed, Inspect AI on the same server. Exits with 1 below the required share.
"""

from __future__ import annotations

import argparse
import runpy
import sqlite3
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from routeprism.answers import Cell, collect
from routeprism.models import Ask
from routeprism.models.openai import OpenAI
from routeprism.runs import Run

ROOT = Path(__file__).resolve().parents[1]
Loopback: Any = runpy.run_path(str(ROOT / "tests" / "support_server.py"))["Loopback"]
REQUIRED = 0.9
MEMORY = "The garden club meets on Thursdays after rain. " * 60


def prompt(number: int) -> str:
    """Write a prompt of some 600 tokens."""
    return f"{MEMORY}\n\nQuestion {number}: when does it meet?\na) never\nb) Thursdays\n"


def ours(url: str, answers: int, concurrency: int) -> float:
    """Collect answers into a fresh run; give the rate."""
    model = OpenAI("loopback", base_url=url, concurrency=concurrency, seed=0)
    options = ("never", "Thursdays", "on Sundays", "at dawn")
    cells = [
        Cell(Ask(prompt(n), MEMORY, "when?", options, 0), f"q{n // 2}", "fr"[n % 2])
        for n in range(answers)
    ]
    with tempfile.TemporaryDirectory() as folder:
        directory = Path(folder) / "run"
        with Run.open(directory, {"benchmark": "throughput"}, inputs={}) as run:
            begun = time.perf_counter()
            collected = collect(run, model, cells)
            seconds = time.perf_counter() - begun
        with sqlite3.connect(directory / "run.sqlite") as store:
            (kept,) = store.execute("SELECT count(*) FROM answers").fetchone()
        store.close()
    assert kept == collected.outcomes["answered"] == answers
    return answers / seconds


def inspects(url: str, answers: int, concurrency: int) -> float | None:
    """Let Inspect AI generate as many; give the rate, or None where it is not installed."""
    try:
        from inspect_ai import Task, eval
        from inspect_ai.dataset import Sample
        from inspect_ai.model import get_model
        from inspect_ai.solver import generate
    except ImportError:
        return None
    task = Task(dataset=[Sample(input=prompt(n)) for n in range(answers)], solver=generate())
    model = get_model("openai/loopback", base_url=url, api_key="none", responses_api=False)
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        (log,) = eval(
            task,
            model=model,
            max_connections=concurrency,
            max_samples=concurrency,
            log_dir=folder,
            display="none",
        )
        seconds = time.perf_counter() - begun
    assert log.status == "success", log.error
    return answers / seconds


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=4000)
    parser.add_argument("--concurrency", type=int, default=64)
    given = parser.parse_args()
    share = 0.0
    for latency, required in ((0.2, REQUIRED), (0.02, None)):
        ideal = given.concurrency / latency
        with Loopback(latency=latency, seconds=300) as server:
            ours(server.url, given.concurrency, given.concurrency)  # imports, first connections
            rate = ours(server.url, given.answers, given.concurrency)
            print(
                f"{latency * 1000:.0f} ms latency, concurrency {given.concurrency}: {rate:.0f} "
                f"answers/s, each durable = {rate / ideal:.3f} of the ideal {ideal:.0f}/s",
                flush=True,
            )
            other = inspects(server.url, max(given.answers // 4, 1), given.concurrency)
        if other is None:
            print("  inspect_ai is not installed: nothing to set beside it")
        else:
            print(f"  Inspect AI: {other:.0f}/s; the collector is {rate / other:.2f} times as fast")
        if required is not None:
            share = rate / ideal
    print(f"{'met' if share >= REQUIRED else 'MISSED'}: {share:.3f}, {REQUIRED} was asked for")
    return 0 if share >= REQUIRED else 1


if __name__ == "__main__":
    sys.exit(main())
