"""How often a run makes any false claim: 20 memories whose order of arrival changes nothing.

A simulated model draws every answer at random, by a law that depends on the question and not on the
order. Each run goes through the estimates, the adjustment (Holm) and the statements that an audit
uses. A claim is a verdict other than stable, or a statement of an effect: the routes disagree more
than the model does, accuracy falls or rises. Limit: 5% of the runs, within simulation error.
Runs with `--until` look after every user, and stop as soon as their statement holds.
Run: python benchmarks/false_claims.py [--runs N] [--only fixed|until]; the last results are in
docs/statistics.md.
"""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt

from routeprism.exhibits import Results
from routeprism.experiments import parse_until
from routeprism.experiments._rows import Key, Setting, adjust_p_values, estimate_rows
from routeprism.experiments._until import open_watch
from routeprism.experiments.answers import answer_statements
from routeprism.judge import RISK, describe_answers, judge, state_verdict
from routeprism.measures import Tally
from routeprism.quantities import find_quantity
from routeprism.records import load_benchmark
from routeprism.runs import Column, EstimateRow, Rows

MEMORIES = 20
QUESTIONS = 5
OPTIONS = 4
UNTIL = ("verdict", "Delta_rep±0.2")
MOST_USERS = 100
"""The number of users of a run that may stop early. Each has one question with one draw: sequential
limits miss most often with values that vary widely."""
LAWS = {"uniform": 1e6, "uneven": 0.5, "nearly certain": 0.1}
"""How an answer is drawn: the concentration of the Dirichlet law of each question's options."""


def draw_values(
    generator: np.random.Generator, users: int, questions: int, draws: int, concentration: float
) -> dict[str, npt.NDArray[np.float64]]:
    """Draw the answers of both routes, and give each question's values: users × questions."""
    law = generator.dirichlet(np.full(OPTIONS, concentration), size=(users, questions))
    edges = law.cumsum(axis=-1)[..., None, None, :]
    chances = generator.random((users, questions, 2, draws, 1))
    answers = (chances > edges).sum(axis=-1).clip(0, OPTIONS - 1)
    forward, route = answers[:, :, 0], answers[:, :, 1]
    across = (forward[..., :, None] != route[..., None, :]).mean(axis=(-1, -2))
    accuracies = [(side == 0).mean(axis=-1) for side in (forward, route)]
    values = {}
    if draws > 1:
        within = [
            (side[..., :, None] != side[..., None, :]).sum(axis=(-1, -2)) / (draws * (draws - 1))
            for side in (forward, route)
        ]
        values["D_res"] = across - (within[0] + within[1]) / 2
    return {
        **values,
        "Delta_rep": accuracies[1] - accuracies[0],
        "accuracy.forward": accuracies[0],
        "accuracy.route": accuracies[1],
        "H": (forward[..., 0] != route[..., 0]).astype(np.float64),
    }


def simulate_run(
    seed: int,
    *,
    users: int,
    draws: int,
    concentration: float,
    resamples: int = 2000,
    until: str | None = None,
    questions: int = QUESTIONS,
) -> Rows:
    """Simulate the rows of a run in which no memory depends on the order of arrival."""
    generator = np.random.default_rng(seed)
    names = [f"memory-{number}" for number in range(MEMORIES)]
    drawn = {name: draw_values(generator, users, questions, draws, concentration) for name in names}
    tally: Tally[Key] = Tally("unit")
    statement = None if until is None else parse_until(until)
    memories = [SimpleNamespace(name=name) for name in names]
    replay, model = SimpleNamespace(name="replay"), SimpleNamespace(name="random")
    watch = open_watch(statement, memories, [replay], models=[model], answers=True)
    for user in range(users):
        sums = {
            (_column(name, quantity), "all"): (float(values[user].sum()), questions)
            for name, quantities in drawn.items()
            for quantity, values in quantities.items()
            if watch is None or find_quantity(quantity).is_claim  # the limits of others take time
        }
        tally.append(sums)
        if watch is not None and watch.add(sums):
            break
    benchmark = load_benchmark("sample")  # for its unit, weighting and interval
    setting = Setting(
        benchmark,
        {},
        seed,
        benchmark.interval,
        resamples,
        draws=draws,
        is_sequential=watch is not None,
    )
    rows = estimate_rows(tally, setting, is_tested=True)
    units = next(row.units for row in rows if row.units)
    return Rows.of([*_trace_rows(names, units, questions), *rows, *adjust_p_values(rows)])


def _column(policy: str, quantity: str) -> Column:
    return Column("routes", quantity, policy, "replay", model="random", filler="A")


def _trace_rows(names: list[str], users: int, questions: int) -> list[EstimateRow]:
    """Give what the traces of memories without an effect show: the same to every question."""
    return [
        EstimateRow(
            experiment="routes",
            benchmark="simulated",
            policy=name,
            schedule="replay",
            quantity=quantity,
            estimate=0.0,
            queries=users * questions,
            units=users,
            unit="user",
        )
        for name in names
        for quantity in ("retained_changed", "V_changed", "C_changed")
    ]


EFFECTS = ("falls with this order", "rises with this order")
"""How a statement on accuracy ends if it claims an effect."""


def list_claims(rows: Rows) -> list[str]:
    """List every verdict and every statement of a run that claims an effect of order."""
    verdicts = judge(Results(rows))
    assert len(verdicts) == MEMORIES
    accuracy = (statement for verdict in verdicts for statement in describe_answers(verdict))
    claims = [
        *(state_verdict(verdict) for verdict in verdicts if verdict.level != "stable"),
        *(statement for statement in accuracy if statement.text.endswith(EFFECTS)),
        *(statement for statement in answer_statements(rows) if statement.severity == "problem"),
    ]
    return [str(statement) for statement in claims]


def count_false(runs: int, **law: object) -> tuple[float, float]:
    """Return the share of runs with any false claim, and the mean number of users."""
    simulated = [simulate_run(seed, **law) for seed in range(runs)]  # type: ignore[arg-type]
    false = sum(bool(list_claims(rows)) for rows in simulated)
    users = [
        next(row.units or 0 for row in rows if row.quantity == "Delta_rep") for rows in simulated
    ]
    return false / runs, sum(users) / runs


def main() -> None:
    """Print the share of runs with any false claim, for several numbers of users and draws."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--only", choices=("fixed", "until"))
    options = parser.parse_args()
    runs = options.runs
    error = 3 * (RISK * (1 - RISK) / runs) ** 0.5
    print(f"{runs} runs of {MEMORIES} memories each; limit {RISK:.1%}, three errors {error:.1%}")
    fixed = [(users, draws, None) for users in (10, 30) for draws in (2, 3)]
    stopping = [(MOST_USERS, 1, until) for until in UNTIL]
    studies = {"fixed": fixed, "until": stopping}
    for users, draws, until in studies.get(options.only, [*fixed, *stopping]):
        for name, concentration in LAWS.items():
            law = {"users": users, "draws": draws, "concentration": concentration, "until": until}
            if until is not None:  # limits that hold at every look need no resamples
                law |= {"questions": 1, "resamples": 10}
            share, used = count_false(runs, **law)
            verdict = "" if share <= RISK + error else "  BEYOND THE LIMIT"
            stop = f", until {until} ({used:.0f} used)" if until else ""
            print(
                f"{users:3} users, {draws} draws{stop}, {name:14} {share:6.1%}{verdict}", flush=True
            )


if __name__ == "__main__":
    main()
