"""Bias, coverage and precision of draws that are allocated by a pilot, by simulation.

Studies of 40 pools (or questions) are simulated for several distributions of the share p in which a
draw changes something. `--allocate` draws a fifth everywhere and the rest by the variance that this
pilot shows. For each world and number of draws are printed: the bias of the allocated estimate in
standard errors of the simulation, the bias of a plain mean of the same draws, the share of studies
whose 95% limits (from the spread between pools, which are drawn anew in each study) contain the
true mean, the same with equally many draws everywhere, and the variance of the draws as a ratio to
equal draws, beside the ratio with known variances. Exits with 1 if the estimate is biased, or if
its limits miss more often than those of equal draws.
Run: python benchmarks/draw_allocation.py [STUDIES]; results are in docs/draws.md.
"""

from __future__ import annotations

import math
import sys

import numpy as np
import numpy.typing as npt

from routeprism.measures import TwoStages, allocate_draws, pilot_size, shrink_variances

POOLS = 40
STUDENT = 2.0227
"""The 97.5% point of Student's distribution with 39 degrees of freedom."""
Floats = npt.NDArray[np.float64]
WORLDS = {
    "a tenth of the pools at 0.5, else 0": ((0.0, 0.5), (0.9, 0.1)),
    "a fifth at 0.5, a tenth at 0.05, else 0": ((0.0, 0.05, 0.5), (0.7, 0.1, 0.2)),
    "half at 0.3, half at 0": ((0.0, 0.3), (0.5, 0.5)),
    "half at 0.95, half at 0.5": ((0.95, 0.5), (0.5, 0.5)),
    "all at 0.3": ((0.3,), (1.0,)),
}


def simulate(shares: Floats, draws: int, random: np.random.Generator) -> tuple[Floats, ...]:
    """Return the pools' values: allocated, a plain mean of the same draws, equal draws."""
    pilot = pilot_size(draws)
    first = random.binomial(pilot, shares)
    variances = shrink_variances([(int(count), pilot) for count in first])
    deviations = [math.sqrt(value) for value in variances]
    later = np.array(allocate_draws(deviations, sum, POOLS * (draws - pilot)))
    second = random.binomial(later, shares)
    stages = [TwoStages(draws, pilot, int(number)) for number in later]
    pairs = zip(stages, first / pilot, second / later, strict=True)
    allocated = np.array([stage.combine(a, b) for stage, a, b in pairs])
    plain = (first + second) / (pilot + later)
    return allocated, plain, random.binomial(draws, shares) / draws


def measure(name: str, draws: int, studies: int) -> bool:
    """Simulate one world; print a row, and return whether everything holds."""
    shares, chances = map(np.array, WORLDS[name])
    random = np.random.default_rng(20260918)
    true = float(shares @ chances)
    errors: list[list[float]] = [[], [], []]
    caught = [0, 0, 0]
    for _ in range(studies):
        pools = random.choice(shares, POOLS, p=chances)
        for kind, values in enumerate(simulate(pools, draws, random)):
            errors[kind].append(float((values - pools).mean()))
            half = STUDENT * float(values.std(ddof=1)) / math.sqrt(POOLS)
            caught[kind] += abs(float(values.mean()) - true) <= half
    biases = [np.mean(kind) / (np.std(kind) / math.sqrt(studies)) for kind in errors]
    ratio = np.var(errors[0]) / np.var(errors[2])
    deviations = np.sqrt(shares * (1 - shares))
    part = pilot_size(draws) / draws
    known = part + (1 - part) * float((deviations @ chances) ** 2 / (deviations**2 @ chances))
    print(
        f"{name:42} {draws:5} {biases[0]:+6.1f} {biases[1]:+6.1f} {caught[0] / studies:9.3f} "
        f"{caught[2] / studies:6.3f} {ratio:7.2f} {known:6.2f}",
        flush=True,
    )
    error = math.sqrt(2 * 0.05 * 0.95 / studies)
    return abs(biases[0]) < 3.5 and caught[0] / studies > caught[2] / studies - 3 * error


def main() -> int:
    """Simulate every world with few and with many draws."""
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print(f"{studies} studies of {POOLS} pools; bias in standard errors of the simulation")
    print(f"{'world':42} draws   bias  plain  coverage  equal   ratio  known")
    results = [measure(name, draws, studies) for name in WORLDS for draws in (10, 20, 100)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
