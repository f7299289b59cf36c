"""`--builds`: order told apart from a memory's own chance, end to end."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism import Record
from routeprism.errors import ContractError, SpecError
from routeprism.runs import StoredRun


class Dice:
    """Keeps two records by lot, whatever the order; a new number is drawn for every build."""

    deterministic = False
    name = "dice"
    newest = 0.0
    """How likely the two newest are kept instead."""

    def __init__(self) -> None:
        self.seeds = itertools.count()

    def build(self, arrivals: Sequence[Record]) -> Any:
        chance = random.Random(next(self.seeds))  # noqa: S311
        ordered = sorted(arrivals, key=lambda record: record.position)
        newest = chance.random() < self.newest
        return RandomMemory(list(arrivals)[-2:] if newest else chance.sample(ordered, 2))


class RandomMemory:
    def __init__(self, records: list[Record]) -> None:
        self.kept = sorted(records, key=lambda record: record.position)

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.kept)

    def state(self) -> Any:
        return [record.id for record in self.kept]

    def expose(self, query: str) -> Any:
        from routeprism import Block, Exposure

        return Exposure(tuple(Block("record", r.text, frozenset({r.id})) for r in self.kept))


class LoadedDice(Dice):
    name = "loaded"
    newest = 0.8


def test_chance_alone_is_not_called_an_effect_of_order() -> None:
    result = routeprism.audit("sample", Dice(), builds=3, resamples=2000, schedules=["replay"])
    row = result.value("D_build", policy="dice")
    assert row.lower is not None
    assert row.lower <= 0 <= row.upper
    assert result.value("J", policy="dice").estimate < 0.6  # which looks like an effect
    within = result.value("J_within", policy="dice").estimate
    across = result.value("J_cross", policy="dice").estimate
    assert row.estimate == pytest.approx(within - across)
    start = "dice, reversal: order is not shown to change its sources more than"
    (sentence,) = [text for text in result.sentences if text.startswith(start)]
    assert "3 builds" in sentence


def test_an_effect_of_order_beside_chance_is_found() -> None:
    result = routeprism.audit(
        "sample", LoadedDice(), builds=3, resamples=2000, schedules=["replay"]
    )
    row = result.value("D_build", policy="loaded")
    assert row.lower is not None
    assert row.lower > 0
    assert result.value("D_build.C", policy="loaded").estimate > 0
    claim = "order changes its sources more than building again does"
    assert any(claim in sentence for sentence in result.sentences)


def test_built_once_nothing_is_claimed() -> None:
    result = routeprism.audit("sample", Dice(), resamples=100, schedules=["replay"])
    (sentence,) = [str(statement) for statement in result.statements if statement.kind == "builds"]
    assert "cannot be distinguished from" in sentence
    assert "audit again with --builds 3" in sentence
    assert not [row for row in result.rows if row.quantity == "D_build"]


def test_without_chance_several_builds_say_the_same_as_one() -> None:
    result = routeprism.audit("sample", "recent:k=3", builds=2, resamples=100, schedules=["replay"])
    once = routeprism.audit("sample", "recent:k=3", resamples=100, schedules=["replay"])
    assert result.value("J_within", policy="recent:k=3").estimate == 1
    value = result.value("D_build", policy="recent:k=3")
    assert value.estimate == pytest.approx(1 - once.value("J", policy="recent:k=3").estimate)
    assert result.sentences == once.sentences


def test_undeclared_chance_is_refused_unless_it_is_measured() -> None:
    policy = type("Secret", (Dice,), {"deterministic": True, "name": "secret"})
    with pytest.raises(ContractError, match="two builds from the same records"):
        routeprism.audit("sample", policy(), resamples=100)
    result = routeprism.audit("sample", policy(), builds=2, resamples=100, schedules=["replay"])
    start = "secret, reversal: order is not shown"
    assert any(sentence.startswith(start) for sentence in result.sentences)


@pytest.mark.slow
def test_what_each_build_showed_is_kept(tmp_path: Path) -> None:
    run = tmp_path / "run"
    routeprism.audit("sample", Dice(), builds=3, run=run, resamples=100)
    with StoredRun(run) as stored:
        findings = stored.findings("builds", "exposed sources by build")
    assert len(findings) == 165
    value = findings[0].value
    assert {side: len(builds) for side, builds in value.items()} == {"forward": 3, "route": 3}
    assert all(len(sources) == 2 for builds in value.values() for sources in builds)


@pytest.mark.slow
def test_the_command(cli: Callable[..., Any]) -> None:
    outcome = cli("audit", "sample", "-p", "recent:k=3", "--builds", "2", "--run", "run", "--json")
    assert outcome.code == 0
    assert '"quantity": "D_build"' in outcome.out
    assert "--builds" in cli("audit", "--help").out


def test_no_builds_is_no_number() -> None:
    with pytest.raises(SpecError, match="Expected from 1 to 10,000 builds but got builds=0"):
        routeprism.audit("sample", "raw", builds=0)
