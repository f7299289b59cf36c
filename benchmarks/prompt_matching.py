"""How long it takes to match and verify all pairs of a policy, against tokenising them once.

Limit: 10 s on one core for all 589 PersonaMem pairs of one policy, `exact` and `aligned`, both
fillers (2,356 matched pairs), drafts included.
Run: python benchmarks/prompt_matching.py [DATA]; the last results are in docs/performance.md.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from routeprism.orders import parse_schedule
from routeprism.policies import make_policy
from routeprism.prompts import FILLERS, Control, Matched, Prompt, categorical, match
from routeprism.records import Benchmark, load_benchmark
from routeprism.routes import Pair, pair_routes, trace_case
from routeprism.text import tokens

POLICIES = ("focal", "recent:k=3")
CONTROLS: tuple[Control, ...] = ("exact", "aligned")
LIMIT = 10.0
ROUNDS = 3


def trace(benchmark: Benchmark, policy: str) -> list[Pair]:
    """Give the forward and replay exposures of every question."""
    made, replay = make_policy(policy), parse_schedule("replay")
    return [
        pair for case in benchmark.cases for pair in pair_routes(trace_case(case, [made], [replay]))
    ]


def match_all(found: list[Pair]) -> tuple[float, list[Prompt]]:
    """Draft, match and verify; the tokeniser remembers nothing from before."""
    tokens.encode("")
    tokens.find_tokenizer("o200k_base").clear_cache()
    prompts: list[Prompt] = []
    start = time.process_time()
    for pair in found:
        drafts = [
            categorical(exposure.blocks, pair.question)
            for exposure in (pair.forward_exposure, pair.route_exposure)
        ]
        for control in CONTROLS:
            for filler in FILLERS:
                matched = match(drafts, control, filler)
                assert isinstance(matched, Matched), matched.reason
                prompts += matched.prompts
    return time.process_time() - start, prompts


def tokenise_once(prompts: list[Prompt]) -> float:
    """Tokenise every matched prompt once."""
    tokens.find_tokenizer("o200k_base").clear_cache()
    start = time.process_time()
    for prompt in prompts:
        tokens.encode(prompt.text)
    return time.process_time() - start


def main() -> None:
    """Print processor seconds (of all threads together) and the ratio, best of three rounds."""
    data = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["ROUTEPRISM_DATA"])
    benchmark = load_benchmark("personamem", data)
    slow = False
    for policy in POLICIES:
        everything = trace(benchmark, policy)
        facts = [pair for pair in everything if pair.question.kind == "fact-recall"]
        for stratum, found in (("fact-recall", facts), ("all", everything)):
            matching, once = [], []
            for _ in range(ROUNDS):
                seconds, prompts = match_all(found)
                matching.append(seconds)
                once.append(tokenise_once(prompts))
            total = sum(prompt.tokens for prompt in prompts)
            print(
                f"{policy}, {stratum}: {len(found)} pairs, {len(prompts)} prompts of {total:,} "
                f"tokens matched and verified in {min(matching):.2f} s (limit {LIMIT:.0f}) = "
                f"{min(matching) / min(once):.1f} times tokenising each once ({min(once):.2f} s)"
            )
            slow |= min(matching) > LIMIT
    sys.exit(int(slow))


if __name__ == "__main__":
    main()
