"""What longer histories cost: one question over 12 to 384 sessions, every policy in two orders.

Processor time for each session of a history, which would stay the same if cost grew in proportion;
and the length of what is exposed, which a budget keeps from growing. No limit: a picture of growth.
Run: python benchmarks/history_growth.py; the last results are in docs/long-histories.md.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

from routeprism.orders import parse_schedule
from routeprism.policies import make_policy, parse_interface
from routeprism.records import Case, Pool, Question, Record, Turn
from routeprism.routes import trace_case

SESSIONS = (12, 24, 48, 96, 192, 384)
POLICIES = ("recent:k=8", "recent:k=32", "focal", "raw")
ROUNDS = 3


def case(sessions: int) -> Case:
    """Make one question with a history of so many sessions."""
    from longmemeval_generate import Speech, session

    draw = random.Random(7)  # noqa: S311
    speech = Speech(draw)
    records = []
    for at in range(sessions):
        clue = "I keep my brass lamp next to the oak table." if at == sessions // 2 else ""
        turns = [Turn(turn["role"], turn["content"]) for turn in session(draw, speech, clue)]
        records.append(Record.from_turns(f"s{at}", at, turns))
    asked = Question("q", "u", "What do I keep next to the oak table?")
    return Case(Pool("u", tuple(records)), (asked,))


def measured(sessions: int, policy: str) -> tuple[float, int]:
    """Give the processor time of one forward and one reversed route, and the exposed characters."""
    made = make_policy(policy, parse_interface("bm25"))
    best, shown = float("inf"), 0
    for _ in range(ROUNDS):
        fresh = case(sessions)  # nothing is known of its texts yet
        start = time.process_time()
        routes = trace_case(fresh, [made], [parse_schedule("replay")], events=False)
        best = min(best, time.process_time() - start)
        shown = routes[0].exposures[0].context_chars
    return best, shown


def main() -> None:
    """Print a table."""
    sys.path.insert(0, str(Path(__file__).parent))
    print("milliseconds for each session, tokenising included (characters exposed)")
    print(f"{'sessions':>12}", *(f"{sessions:>16}" for sessions in SESSIONS))
    for policy in POLICIES:
        cells = []
        for sessions in SESSIONS:
            seconds, shown = measured(sessions, policy)
            cells.append(f"{seconds / sessions * 1e3:.3f} ({shown})")
        print(f"{policy:>12}", *(f"{cell:>16}" for cell in cells))


if __name__ == "__main__":
    main()
