"""How much the whole PersonaMem audit costs, against one regex pass over the same user turns.

Limit: 20 times that pass (aim: 10), intervals and the stored run included; peak memory 400 MB.
The pass is short, so each round repeats it for about as long as an audit takes. Two ratios are
printed, since on a noisy machine they differ: of the median round, and of the best audit to the
best pass, which is the stricter one.
Run: python benchmarks/personamem_audit.py [DATA]; the last results are in docs/performance.md.
"""

from __future__ import annotations

import os
import re
import resource
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from routeprism.experiments import RunExecution, Subject, audit_subject
from routeprism.orders import parse_schedule
from routeprism.policies import make_policy
from routeprism.records import Benchmark, Record, load_benchmark

POLICIES = (
    "focal",
    "focal:cluster=source",
    "focal:survivor=source-position",
    "recent:k=3",
    "lexical",
)
SCHEDULES = ("replay", "half-swap", "odd-even")
ROUNDS = 5
PASSES = 15


def tokenise_once(texts: list[str]) -> float:
    """Extract the user turns and regex-tokenise them, once."""
    marker = re.compile(r"^\[(system|user|assistant)\][ \t]*", re.IGNORECASE | re.MULTILINE)
    token = re.compile(r"[A-Za-z][A-Za-z0-9']+")
    start = time.perf_counter()
    for text in texts:
        pieces = marker.split(text)
        turns = zip(pieces[1::2], pieces[2::2], strict=True)
        token.findall("\n\n".join(said.strip() for role, said in turns if role == "USER").lower())
    return time.perf_counter() - start


def fresh(benchmark: Benchmark) -> Benchmark:
    """Forget everything that was derived from the texts."""
    for case in benchmark.cases:
        for record in case.pool.records:
            record._derived.clear()
    return benchmark


def audit(benchmark: Benchmark, *, store: bool) -> float:
    """Run the audit: five policies, three schedules, intervals."""
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        subject = Subject(
            benchmark,
            [make_policy(text) for text in POLICIES],
            [parse_schedule(text) for text in SCHEDULES],
        )
        execution = RunExecution(Path(folder) / "run" if store else None)
        audit_subject(subject, execution=execution)
        return time.perf_counter() - start


def main() -> None:
    """Print the ratios of the median of five rounds."""
    data = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["ROUTEPRISM_DATA"])
    benchmark = load_benchmark("personamem", data)
    records: list[Record] = [r for case in benchmark.cases for r in case.pool.records]
    texts = [record.text for record in records]
    rounds: list[tuple[float, float, float]] = []
    passes: list[float] = []
    audits: list[float] = []
    for _ in range(ROUNDS):
        taken = [tokenise_once(texts) for _ in range(PASSES)]
        once = sum(taken) / PASSES
        kept = audit(fresh(benchmark), store=True)
        passes += taken
        audits.append(kept)
        bare = audit(fresh(benchmark), store=False)
        rounds.append((once, kept / once, bare / once))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    once, kept, bare = (median(values) for values in zip(*rounds, strict=True))
    print(f"one regex pass over {len(texts)} documents' user turns: {once:.3f} s")
    print(f"audit, run stored:     {kept:.1f} times that in the median round (limit 20, aim 10)")
    print(f"  rounds: {', '.join(f'{ratio:.1f}' for _, ratio, _ in rounds)}")
    print(f"  best audit to best pass: {min(audits) / min(passes):.1f} times")
    print(f"audit, nothing stored: {bare:.1f} times that")
    print(f"peak memory: {peak:.0f} MB (limit 400)")


if __name__ == "__main__":
    main()
