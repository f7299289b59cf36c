"""Memories without an effect of order, answered at random: how many runs make a false claim."""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import pytest

import routeprism
from routeprism import Block, Record
from routeprism.judge import RISK
from routeprism.models import Ask, Reply

RUNS = 40


@pytest.fixture(scope="module")
def simulation() -> ModuleType:
    """The simulation of `benchmarks/false_claims.py`; docs/statistics.md has its large results."""
    file = Path(__file__).parents[2] / "benchmarks" / "false_claims.py"
    spec = importlib.util.spec_from_file_location("false_claims", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_few_runs_make_any_false_claim(simulation: ModuleType) -> None:
    """40 claims are tested in each run: without adjustment most runs would make a false one."""
    law = {"users": 12, "draws": 2, "concentration": 0.5, "resamples": 500}
    runs = [simulation.simulate_run(seed, **law) for seed in range(RUNS)]
    false = sum(bool(simulation.list_claims(rows)) for rows in runs)
    assert false / RUNS <= RISK + 3 * (RISK * (1 - RISK) / RUNS) ** 0.5
    alone = [
        row
        for rows in runs
        for row in rows
        if row.quantity in ("p.D_res", "p.Delta_rep") and (row.estimate or 0.0) < RISK
    ]
    assert len(alone) > RUNS / 2  # at 5% each up to two of 40 claims in a run


@pytest.mark.slow
@pytest.mark.parametrize("until", ["verdict", "Delta_rep±0.3"])
def test_a_run_that_stops_early_adjusts_its_claims(simulation: ModuleType, until: str) -> None:
    """With this seed, the limits of one of 20 memories leave out zero by chance."""
    law: dict[str, Any] = {"users": 120, "questions": 1, "draws": 1, "concentration": 1e6}
    rows = simulation.simulate_run(8, **law, resamples=10, until=until)
    assert simulation.list_claims(rows) == []
    assert len(rows.where(quantity="p_holm.Delta_rep")) == 20
    alone = [row for row in rows if not row.quantity.startswith(("p.", "p_holm."))]
    (claim,) = simulation.list_claims(simulation.Rows.of(alone))
    assert claim.startswith("memory-")


@pytest.mark.slow
def test_a_real_effect_is_claimed_after_stopping_early(
    simulation: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One memory among 20 answers half of the questions worse; all others do not."""
    draw, memories = simulation.draw_values, []

    def draw_values(*law: Any) -> Any:
        values = draw(*law)
        memories.append(values)
        return {**values, "Delta_rep": values["Delta_rep"] / 2 - 0.4 * (len(memories) == 8)}

    monkeypatch.setattr(simulation, "draw_values", draw_values)
    law: dict[str, Any] = {"users": 120, "questions": 5, "draws": 2, "concentration": 0.5}
    rows = simulation.simulate_run(1, **law, resamples=10, until="Delta_rep±0.1")
    (claim,) = simulation.list_claims(rows)
    assert claim.startswith("memory-7: answers worse. ")
    assert next(row.units for row in rows if row.quantity == "Delta_rep") < 120


@pytest.mark.slow
def test_a_verdict_that_is_settled_is_claimed(
    simulation: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two draws give twice as many claims as the verdict reads: D_res is adjusted for as well.

    Every memory answers worse. Where the risk was divided by the memories alone, and bets differed
    from those of the rows, runs stopped before the rows claimed it of all of them.
    """
    draw = simulation.draw_values

    def draw_values(*law: Any) -> Any:
        values = draw(*law)
        return {**values, "Delta_rep": values["Delta_rep"] * 0.6 - 0.25}

    monkeypatch.setattr(simulation, "draw_values", draw_values)
    monkeypatch.setattr(simulation, "MEMORIES", 4)
    law: dict[str, Any] = {"users": 300, "questions": 5, "draws": 2, "concentration": 0.5}
    for seed in range(3):
        rows = simulation.simulate_run(seed, **law, resamples=10, until="verdict")
        worse = [c for c in simulation.list_claims(rows) if "Answers get worse" in c]
        assert len(worse) == 4
        (units,) = {row.units for row in rows if row.quantity == "Delta_rep"}
        assert units < 300


def test_a_real_effect_is_still_claimed(simulation: ModuleType) -> None:
    """One memory that answers worse for every user is claimed among 20."""
    rows = simulation.simulate_run(0, users=12, draws=2, concentration=0.5, resamples=500)
    values = {"p.Delta_rep": 2 / 2**12, "Delta_rep": -0.5}
    changed = [
        replace(row, estimate=values[row.quantity], lower=-0.6, upper=-0.4)
        if row.policy == "memory-7" and row.quantity in values
        else row
        for row in rows
        if not row.quantity.startswith("p_holm.")
    ]
    adjusted = simulation.adjust_p_values(changed)
    claims = simulation.list_claims(simulation.Rows.of([*changed, *adjusted]))
    assert any(claim.startswith("memory-7: answers worse. ") for claim in claims)


@dataclass(frozen=True)
class RandomAnswers:
    """Answers with any option, whatever the memory shows."""

    seed: int
    name: ClassVar[str] = "random"
    embedded: ClassVar[bool] = False
    concurrency: ClassVar[int] = 64

    @property
    def settings(self) -> dict[str, int]:
        return {"seed": self.seed}

    def answer(self, ask: Ask) -> Reply:
        digest = hashlib.sha256(f"{self.seed}|{ask.draw}|{ask.text}".encode()).digest()
        return Reply("abcd"[digest[0] % len(ask.options)])


def make_memory(number: int) -> type[Any]:
    """Make a memory that shows all records in source order, below a line of its own."""

    class Everything:
        def __init__(self) -> None:
            self.records: list[Record] = []

        def add(self, record: Record) -> None:
            self.records.append(record)

        def retained(self) -> list[str]:
            return [record.id for record in self.records]

        def expose(self, query: str) -> list[Block]:
            records = sorted(self.records, key=lambda record: record.position)
            return [
                Block("title", f"memory {number}", frozenset()),
                *(Block("record", record.text, frozenset((record.id,))) for record in records),
            ]

    Everything.__name__ = Everything.__qualname__ = f"Everything{number}"
    return Everything


@pytest.mark.slow
def test_a_whole_audit_of_twenty_memories_claims_nothing() -> None:
    """For this seed, as for 95% of all: no verdict and no statement, whatever p-values say."""
    sample = routeprism.load_benchmark("sample")
    result = routeprism.audit(
        replace(sample, cases=sample.cases[:7]),
        *map(make_memory, range(20)),
        models=[RandomAnswers(seed=1)],
        schedules=["replay"],
        draws=2,
        resamples=200,
        workers=1,
    )
    assert {verdict.level for verdict in result.verdicts} == {"stable"}
    assert [s for s in result.statements if s.severity == "problem"] == []
    assert not any("order changes" in sentence for sentence in result.sentences)
    tested = result.rows.where(quantity=("p.Delta_rep", "p.D_res"))
    assert len(tested) == 40
