"""How fast orders are gone through: ratios against plain Python, taken in one run.

The plain peer is the published pseudocode (Appendix D.4) with token sets, and for merged states the
same policy built in every order. Where building every order would take minutes, its rate is taken
on a portion of them. Exits with 1 if a stated limit is missed.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from routeprism.landscape import merge_states
from routeprism.landscape._enumeration import SURVIVORS, enumerate_focal
from routeprism.orders import parse_arrival
from routeprism.policies import make_policy, parse_interface
from routeprism.records import Pool, Record, load_benchmark
from routeprism.text.focal import focal_set, preference_score

ROUNDS = 5
WALL = time.perf_counter
THRESHOLDS = (0.025, 0.055, 0.1)


def best(
    work: Callable[[], object],
    rounds: int = ROUNDS,
    clock: Callable[[], float] = time.process_time,
) -> float:
    """Take the best time of several rounds: of the processor for ratios, of the wall for limits."""
    times = []
    for _ in range(rounds):
        start = clock()
        work()
        times.append(clock() - start)
    return min(times)


def pseudocode(
    order: Sequence[int], tokens: list[frozenset[str]], scores: list[int], threshold: float
) -> frozenset[int]:
    """Appendix D.4, line by line, on sets of tokens."""
    clusters: list[list[int]] = []
    for record in order:
        k, top = None, 0.0
        for j, cluster in enumerate(clusters):
            rep = max(cluster, key=scores.__getitem__)
            union = len(tokens[record] | tokens[rep])
            score = len(tokens[record] & tokens[rep]) / union if union else 0.0
            if score > top:
                k, top = j, score
        if k is None or top < threshold:
            clusters.append([record])
        else:
            clusters[k].append(record)
    return frozenset(cluster[-1] for cluster in clusters)


def joined(pools: Sequence[Pool], size: int) -> Pool:
    """Make one pool of a size that the benchmark does not have."""
    records = itertools.islice((r for pool in pools for r in pool.records), size)
    return Pool("joined", tuple(Record(f"r{at}", at, r.text) for at, r in enumerate(records)))


def main() -> int:
    """Compare, print, and say whether a limit was missed."""
    data = os.environ.get("ROUTEPRISM_DATA")
    if not data:
        print("set ROUTEPRISM_DATA")
        return 2
    pools = [case.pool for case in load_benchmark("personamem", Path(data)).cases]
    missed = []

    def report(what: str, value: float, unit: str, limit: float, *, most: bool) -> None:
        good = value <= limit if most else value >= limit
        sign = "at most" if most else "at least"
        print(f"{what}: {value:,.3g} {unit} ({sign} {limit:g}{'' if good else ': MISSED'})")
        if not good:
            missed.append(what)

    eight = joined(pools, 8)
    tokens = [focal_set(record) for record in eight.records]
    scores = [preference_score(record) for record in eight.records]
    portion = list(itertools.islice(itertools.permutations(range(8)), 0, 40_320, 20))
    plain = best(lambda: [pseudocode(order, tokens, scores, 0.055) for order in portion])
    rate = len(portion) / plain
    fast = best(lambda: enumerate_focal(eight.records, (0.055,), ("last-arrival",)))
    print(f"plain pseudocode: {rate:,.0f} orders/s; enumeration: {40_320 / fast:,.0f} orders/s")
    report("pool of eight, times the pseudocode", 40_320 / fast / rate, "times", 300, most=False)
    every = best(lambda: enumerate_focal(eight.records, THRESHOLDS), 3)
    print(f"three thresholds and three rules of that pool: {every:.3f} s")

    ten = joined(pools, 10)
    for record in ten.records:
        focal_set(record)
    report(
        "pool of ten, 3.6 million orders",
        best(lambda: enumerate_focal(ten.records, (0.055,), ("last-arrival",)), 3, WALL),
        "s",
        3.0,
        most=True,
    )
    for name, size, limit in (("recent:k=3", 10, 10), ("focal", 9, 20)):
        pool = joined(pools, size)
        policy = make_policy(name, parse_interface("all"))  # the cheapest to finish
        arrivals = parse_arrival("uniform").on(pool)
        drawn = [[pool.records[p] for p in arrivals.sample(index)] for index in range(300)]
        policy.build(drawn[0]).retained()
        replay = best(
            lambda policy=policy, drawn=drawn: [policy.build(o).retained() for o in drawn], 3
        )
        total = math.factorial(size)
        merged = best(lambda p=policy, q=pool, a=arrivals: merge_states(p, q, a), 3)
        told = f"{name} on {size}: merged {merged:.2f} s, every order about"
        print(f"{told} {replay / len(drawn) * total:,.0f} s")
        ratio = replay / len(drawn) * total / merged
        report(
            f"merged states of {name} on {size}, times replay", ratio, "times", limit, most=False
        )

    def whole() -> None:
        for pool in pools:
            enumerate_focal(pool.records, THRESHOLDS, SURVIVORS)

    whole()
    report("37 pools x 3 thresholds x 3 rules", best(whole, 3, WALL), "s", 1.0, most=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
