"""How much more a remedy costs than an audit of the same memory, and how by-time grows.

Processor time for each user, the slope between 6 and 30 users of the bundled sample, best of three
rounds in one process: `remedy` builds the memory and each of its repairs. Then a policy behind
`by-time` is built in drawn orders of 100 to 400 records whose times disagree with their positions:
the exponent is that of the time of one build, tokenising included, and the longest history is
compared with the policy itself.
Exits with 1 if a limit is missed. Run: python benchmarks/remedy_cost.py
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Callable

import routeprism
from routeprism.orders import parse_schedule
from routeprism.policies import make_policy, parse_interface
from routeprism.records import Case, Pool, Question, Record, choose_cases, load_benchmark
from routeprism.routes import trace_case

RATIO = 10.0
MORE = 1.5
"""How many times as long as a policy itself a build of it behind `by-time` may take."""
USERS = (6, 30)
SIZES = (100, 200, 400)
ORDERS = 20
ROUNDS = 3
VOCABULARY = [f"word{number}" for number in range(3_000)]


def best(work: Callable[[], object]) -> float:
    """Take the best processor time of some rounds."""
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def cost_per_user(command: Callable[..., object], policy: str) -> float:
    """Return the seconds that each further user takes."""
    sample = load_benchmark("sample")
    few, many = (
        best(lambda users=users: command(choose_cases(sample, range(users)), policy))
        for users in USERS
    )
    return (many - few) / (USERS[1] - USERS[0])


def make_case(size: int) -> Case:
    """Make a pool whose records have times in an order of their own."""
    draw = random.Random(size)  # noqa: S311
    days = draw.sample(range(size), size)
    records = [
        Record(
            f"r{at}",
            at,
            " ".join(draw.choices(VOCABULARY, k=120)),
            f"2024-01-01T{day // 60:02d}:{day % 60:02d}",
        )
        for at, day in enumerate(days)
    ]
    return Case(Pool("u", tuple(records)), (Question("q", "u", "word1 word2 word3"),))


def trace_by_time(size: int, policy: str) -> float:
    """Return the seconds that one build of a new pool takes, on average over some orders."""
    made = make_policy(policy, parse_interface("bm25"))
    orders = [parse_schedule(f"jitter:w=2,seed={seed}") for seed in range(ORDERS)]
    return best(lambda: trace_case(make_case(size), [made], orders, events=False)) / ORDERS


def main() -> int:
    """Measure, print, and report whether a limit was missed."""
    missed = False
    for policy in ("focal", "recent:k=3"):
        audit = cost_per_user(routeprism.audit, policy)
        remedy = cost_per_user(routeprism.remedy, policy)
        missed |= remedy > RATIO * audit
        print(
            f"{policy}: audit {1e3 * audit:.2f} ms for each user, remedy {1e3 * remedy:.1f} ms: "
            f"{remedy / audit:.1f} times (at most {RATIO:g})"
        )
    longest = {}
    for policy in ("focal", "by-time(focal)"):
        times = [trace_by_time(size, policy) for size in SIZES]
        exponent = math.log(times[-1] / times[0]) / math.log(SIZES[-1] / SIZES[0])
        shown = ", ".join(f"{1e3 * seconds:.2f}" for seconds in times)
        print(f"{policy}, {SIZES} records: {shown} ms for each build, exponent {exponent:.2f}")
        longest[policy] = times[-1]
    more = longest["by-time(focal)"] / longest["focal"]
    print(f"by-time(focal) takes {more:.2f} times as long as focal (at most {MORE:g})")
    missed |= more > MORE
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
