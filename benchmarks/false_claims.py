"""How often a run makes any false claim: 20 memories whose order of arrival changes nothing.

A simulated model draws every answer at random, by a law that depends on the question and not on the
order. Each run goes through the estimates, the adjustment (Holm) and the statements that an audit
uses. A claim is a statement that is marked as a problem: the routes disagree more than the model
does, order changes accuracy, answers are worse. Limit: 5% of the runs, within simulation error.
Run: python benchmarks/false_claims.py [--runs N]; the last results are in docs/statistics.md.
"""

from __future__ import annotations

import argparse

import numpy as np
import numpy.typing as npt

from routeprism.experiments._rows import Key, Setting, adjust_p_values, estimate_rows
from routeprism.experiments.answers import TESTED, answer_statements
from routeprism.experiments.severity import decide_verdicts, describe_answers, describe_verdict
from routeprism.experiments.statements import RISK
from routeprism.measures import Tally
from routeprism.records import load_benchmark
from routeprism.runs import Column, EstimateRow, Rows

MEMORIES = 20
QUESTIONS = 5
OPTIONS = 4
LAWS = {"uniform": 1e6, "uneven": 0.5, "nearly certain": 0.1}
"""How an answer is drawn: the concentration of the Dirichlet law of each question's options."""


def draw_values(
    generator: np.random.Generator, users: int, draws: int, concentration: float
) -> dict[str, npt.NDArray[np.float64]]:
    """Draw the answers of both routes, and give each question's values: users × questions."""
    law = generator.dirichlet(np.full(OPTIONS, concentration), size=(users, QUESTIONS))
    edges = law.cumsum(axis=-1)[..., None, None, :]
    chances = generator.random((users, QUESTIONS, 2, draws, 1))
    answers = (chances > edges).sum(axis=-1).clip(0, OPTIONS - 1)
    forward, route = answers[:, :, 0], answers[:, :, 1]
    across = (forward[..., :, None] != route[..., None, :]).mean(axis=(-1, -2))
    within = [
        (side[..., :, None] != side[..., None, :]).sum(axis=(-1, -2)) / (draws * (draws - 1))
        for side in (forward, route)
    ]
    accuracies = [(side == 0).mean(axis=-1) for side in (forward, route)]
    return {
        "D_res": across - (within[0] + within[1]) / 2,
        "Delta_rep": accuracies[1] - accuracies[0],
        "accuracy.forward": accuracies[0],
        "accuracy.route": accuracies[1],
        "H": (forward[..., 0] != route[..., 0]).astype(np.float64),
    }


def simulate_run(
    seed: int, *, users: int, draws: int, concentration: float, resamples: int = 2000
) -> Rows:
    """Simulate the rows of a run in which no memory depends on the order of arrival."""
    generator = np.random.default_rng(seed)
    names = [f"memory-{number}" for number in range(MEMORIES)]
    drawn = {name: draw_values(generator, users, draws, concentration) for name in names}
    tally: Tally[Key] = Tally("unit")
    for user in range(users):
        tally.append(
            {
                (_column(name, quantity), "all"): (float(values[user].sum()), QUESTIONS)
                for name, quantities in drawn.items()
                for quantity, values in quantities.items()
            }
        )
    benchmark = load_benchmark("sample")  # for its unit, weighting and interval
    setting = Setting(benchmark, {}, seed, benchmark.interval, resamples, draws=draws)
    rows = estimate_rows(tally, setting, tested=TESTED)
    return Rows.of([*_trace_rows(names), *rows, *adjust_p_values(rows)])


def _column(policy: str, quantity: str) -> Column:
    return Column("routes", quantity, policy, "replay", model="random", filler="A")


def _trace_rows(names: list[str]) -> list[EstimateRow]:
    """Give what the traces of memories without an effect show: every order keeps all records."""
    return [
        EstimateRow(
            experiment="routes",
            benchmark="simulated",
            policy=name,
            schedule="replay",
            quantity="J",
            estimate=1.0,
        )
        for name in names
    ]


def list_claims(rows: Rows) -> list[str]:
    """List every statement of a run that is a claim about order."""
    verdicts = decide_verdicts(rows)
    assert len(verdicts) == MEMORIES
    statements = [
        *answer_statements(rows),
        *(describe_verdict(verdict) for verdict in verdicts),
        *(statement for verdict in verdicts for statement in describe_answers(verdict)),
    ]
    return [str(statement) for statement in statements if statement.severity == "problem"]


def main() -> None:
    """Print the share of runs with any false claim, for several numbers of users and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    runs = parser.parse_args().runs
    error = 3 * (RISK * (1 - RISK) / runs) ** 0.5
    print(f"{runs} runs of {MEMORIES} memories each; limit {RISK:.1%}, three errors {error:.1%}")
    for users in (10, 30):
        for draws in (2, 3):
            for name, concentration in LAWS.items():
                law = {"users": users, "draws": draws, "concentration": concentration}
                false = sum(bool(list_claims(simulate_run(seed, **law))) for seed in range(runs))
                verdict = "" if false / runs <= RISK + error else "  BEYOND THE LIMIT"
                print(f"{users:3} users, {draws} draws, {name:14} {false / runs:6.1%}{verdict}")


if __name__ == "__main__":
    main()
