"""Error rate and savings of stopping as soon as a statement holds, by simulation.

Studies of 300 users are simulated for several distributions of the users' values. Each study looks
after every user. Three rules are simulated: the half-width of the limits reaches 0.1, it reaches
0.05, and the verdict is decided (the limits leave out zero, or lie within 0.05 of it). Reported are
the share of studies whose limits at the stopping time miss the true mean, the share that miss it at
*any* look (both must be at most 5% within simulation error), and the users that were saved.
Run: python benchmarks/sequential_stopping.py [STUDIES]; results are in docs/statistics.md.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from routeprism.measures import ConfidenceSequences

USERS = 300
Floats = npt.NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Floats]

WORLDS: dict[str, tuple[tuple[float, float], float, Draw]] = {
    "share 0.95, nearly always lost": ((0, 1), 0.95, lambda g, n: g.binomial(1, 0.95, n) * 1.0),
    "share 0.5": ((0, 1), 0.5, lambda g, n: g.binomial(1, 0.5, n) * 1.0),
    "mean of five questions, 0.3": ((0, 1), 0.3, lambda g, n: g.binomial(5, 0.3, n) / 5),
    "beta(2, 8), mean 0.2": ((0, 1), 0.2, lambda g, n: g.beta(2, 8, n)),
    "share 0.02": ((0, 1), 0.02, lambda g, n: g.binomial(1, 0.02, n) * 1.0),
    "never": ((0, 1), 0.0, lambda g, n: np.zeros(n)),
    "difference of accuracies, -0.4": (
        (-1, 1),
        -0.4,
        lambda g, n: (g.binomial(5, 0.4, n) - g.binomial(5, 0.8, n)) / 5,
    ),
    "difference of accuracies, 0": (
        (-1, 1),
        0.0,
        lambda g, n: (g.binomial(5, 0.6, n) - g.binomial(5, 0.6, n)) / 5,
    ),
}


def holds(rule: str, lower: Floats, upper: Floats) -> npt.NDArray[np.bool_]:
    """Whether the statement of a rule holds in each study."""
    if rule == "verdict":
        return (lower > 0) | (upper < 0) | ((lower >= -0.05) & (upper <= 0.05))
    return upper - lower <= 2 * float(rule) + 1e-12


def simulate(bounds: tuple[float, float], mean: float, draw: Draw, studies: int) -> None:
    """Simulate one world and print a row for each rule."""
    generator = np.random.default_rng(20260910)
    sequences = ConfidenceSequences([bounds] * studies)
    rules = ("0.1", "0.05", "verdict")
    stopped = {rule: np.full(studies, USERS) for rule in rules}
    missed_then = {rule: np.zeros(studies, dtype=bool) for rule in rules}
    missed = np.zeros(studies, dtype=bool)
    for user in range(1, USERS + 1):
        sequences.add(list(draw(generator, studies)))
        lower, upper = np.array(sequences.limits).T
        missed |= (mean < lower - 1e-9) | (mean > upper + 1e-9)
        for rule in rules:
            now = holds(rule, lower, upper) & (stopped[rule] == USERS)
            stopped[rule][now] = user
            missed_then[rule][now] = missed[now]
    error = math.sqrt(0.05 * 0.95 / studies)
    for rule in rules:
        at_stop = np.where(stopped[rule] < USERS, missed_then[rule], missed).mean()
        saved = 1 - stopped[rule].mean() / USERS
        flag = "" if missed.mean() <= 0.05 + 2 * error else " MISSED"
        print(f"  {rule:>8}: missed when stopped {at_stop:.3f}, users saved {saved:.0%}")
    print(f"  at any look: missed {missed.mean():.3f} (at most 0.05 ± {2 * error:.3f}){flag}")


def main() -> None:
    """Simulate every world."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print(f"{studies} studies of {USERS} users, a look after each")
    for name, (bounds, mean, draw) in WORLDS.items():
        print(name, flush=True)
        simulate(bounds, mean, draw, studies)


if __name__ == "__main__":
    main()
