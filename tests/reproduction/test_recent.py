"""Recent-3 of the answer experiments shows three complete records, without a character budget.

The paper prints J = 0.166 (4.1, I.3). 29 pools with 18,336 orders (D.11) are 4, 14, 9 and 2 pools
of 4, 5, 6 and 7 records, whose last and first three records share 2, 1, 0 and 0 records.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from math import factorial
from pathlib import Path

import pytest

import routeprism
from routeprism.labels import Exposed, Ineligible, design
from routeprism.policies import make_policy
from routeprism.policies.interfaces import parse_interface
from routeprism.records import Benchmark, load_benchmark, only_kinds
from routeprism.reproduction import SOURCES, TABLES, check_table

POOLS = {4: 4, 5: 14, 6: 9, 7: 2}
"""Records → pools of the primary set."""
RECENT = tuple(
    name
    for name, source in SOURCES.items()
    if source.benchmark == "personamem" and "recent:k=3" in source.policies.values()
)


@pytest.fixture(scope="module")
def facts(data: Path) -> Benchmark:
    return only_kinds(load_benchmark("personamem", data), ["fact-recall"])


def test_the_budget_belongs_to_the_conditions_of_f6_alone() -> None:
    interfaces = {name: SOURCES[name].options.get("interface", "budget") for name in RECENT}
    assert interfaces == {
        "personamem": "budget",
        "policies": "budget",
        "no-budget": "all",
        "answers": "all",
        "recent-restoration": "all",
        "recent-loss": "all",
    }
    for name in ("recent-restoration", "recent-loss"):  # one padding variant (I.14)
        assert SOURCES[name].options.get("fillers", ("A",)) == ("A",)
        assert SOURCES[name].options["draws"] == 3


def test_printed_commands_show_complete_records_and_the_stricter_rule() -> None:
    commands = {
        cell.printed.row: cell.command
        for label in ("tab:main-route", "tab:recent-support-restoration")
        for cell in check_table(TABLES[label], {})
    }
    for row in ("Recent-3", "all"):
        assert "--interface all" in commands[row]
        assert "--mask primary=FILE" in commands[row]
    assert "--eligibility none" in commands["all"] and "--filler" not in commands["all"]


def test_pool_sizes_follow_from_the_numbers_that_are_printed() -> None:
    """Appendix D.11: 29 pools, 18,336 permutations; PersonaMem has 5, 19, 11 and 2 such pools."""
    sizes = [
        (four, five, six, seven)
        for four in range(6)
        for five in range(20)
        for six in range(12)
        for seven in range(3)
        if four + five + six + seven == 29
        and 24 * four + 120 * five + 720 * six + 5040 * seven == 18_336
    ]
    assert sizes == [tuple(POOLS.values())]


@pytest.mark.realdata
def test_overlap_of_recent_three_is_the_printed_one(facts: Benchmark) -> None:
    policy = make_policy("recent:k=3", parse_interface("all"))
    overlaps: dict[int, set[Fraction]] = {}
    for case in facts.cases:
        records = case.pool.records
        memories = [policy.build(order) for order in (records, records[::-1])]
        for question in case.questions:
            exposures = [memory.expose(question.text) for memory in memories]
            ids = [[id for block in side.blocks for id in block.sources] for side in exposures]
            positions = {record.id: record.position for record in records}
            for side in ids:  # three records, in source order
                assert [positions[id] for id in side] == sorted(positions[id] for id in side)
                assert len(side) == 3
            union = {*ids[0], *ids[1]}
            overlap = Fraction(len({*ids[0]} & {*ids[1]}), len(union))
            overlaps.setdefault(len(records), set()).add(overlap)
    assert overlaps == {
        4: {Fraction(1, 2)},
        5: {Fraction(1, 5)},
        6: {Fraction(0)},
        7: {Fraction(0)},
    }
    total = sum(POOLS[size] * min(values) for size, values in overlaps.items())
    assert total / 29 == Fraction(48, 290)
    assert round(float(total / 29), 3) == 0.166
    assert sum(POOLS[size] * factorial(size) for size in POOLS) == 18_336


@pytest.mark.realdata
def test_focal_shows_the_same_with_and_without_a_budget(facts: Benchmark) -> None:
    """One command serves both policies."""
    for case in facts.cases:
        for order in (case.pool.records, case.pool.records[::-1]):
            sides = [
                make_policy("focal", parse_interface(name)).build(order)
                for name in ("budget", "all")
            ]
            for question in case.questions:
                first, second = (side.expose(question.text) for side in sides)
                assert first == second


@pytest.mark.realdata
def test_every_condition_shows_three_records_and_no_pair_is_left_out_for_its_count(
    facts: Benchmark,
) -> None:
    """Appendix I.14: each condition contains three distinct records."""
    policy = make_policy("recent:k=3", parse_interface("all"))
    outcomes: Counter[str] = Counter()
    for case in facts.cases:
        records = case.pool.records
        memories = [policy.build(order) for order in (records, records[::-1])]
        for question in case.questions:
            sides = [
                Exposed(
                    name,
                    frozenset(id for b in memory.expose(question.text).blocks for id in b.sources),
                    {},
                )
                for name, memory in zip(("forward", "replay"), memories, strict=True)
            ]
            support = question.labels["reference-session"]
            ids = [record.id for record in records]
            outcome = design(ids, support, *sides, eligibility="none")
            if isinstance(outcome, Ineligible):
                outcomes[outcome.stratum] += 1
                continue
            outcomes["eligible"] += 1
            for condition in outcome.conditions.values():
                assert len(set(condition)) == 3
                assert list(condition) == sorted(condition, key=ids.index)
    assert outcomes == {"eligible": 122, "no-replacement": 13, "same-support": 11}


@pytest.mark.slow
@pytest.mark.realdata
def test_present_and_restored_are_never_the_same_prompt(data: Path) -> None:
    """Appendix I.1 prints 0 of 36 for Recent-3."""
    audit = routeprism.restore(
        "personamem",
        "recent:k=3",
        models=["reader"],
        resamples=100,
        data=data,
        **{**SOURCES["recent-loss"].options, "draws": 1},
    )
    same, pairs = (
        audit.value(f"count.{name}", arm="present-restored").estimate
        for name in ("identical_prompts", "prompt_pairs")
    )
    assert (same, pairs) == (0, 122)


@pytest.mark.slow
def test_restoration_on_the_sample_is_that_of_the_page() -> None:
    """Stated in docs/measured.md."""
    audit = routeprism.restore(
        "sample", "focal", "recent:k=3", models=["reader"], designs=["single"]
    )
    page = (Path(__file__).parents[2] / "docs" / "measured.md").read_text(encoding="utf-8")
    for policy in ("focal", "recent:k=3"):
        row = audit.value("restored-absent", policy=policy)
        limits = f"{row.estimate:.3f}\n[{row.lower:.3f}, {row.upper:.3f}] for"
        stated = f"{limits} ({row.queries} pairs, {row.units} users)"
        assert stated.replace("\n", " ") in re.sub(
            r"for (`focal`|Recent-3) ", "for ", page.replace("\n", " ")
        )
