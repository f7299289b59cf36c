"""Mechanism localisation: every arm of a policy that declares its operations, and what they do."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import pytest

import routeprism
from routeprism.errors import ContractError, SpecError
from routeprism.policies import as_policy, make_arms, make_policy
from routeprism.policies.interfaces import All, whole_records
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.runs import StoredRun

pytestmark = pytest.mark.usefixtures("only_reversal")


def pool(user: str, size: int) -> Pool:
    return Pool(user, tuple(Record(f"{user}r{at}", at, f"note {at}") for at in range(size)))


def benchmark(sizes: tuple[int, ...] = (6, 6, 7)) -> Benchmark:
    cases = tuple(
        Case(pool(f"u{at}", size), (Question(f"u{at}q", f"u{at}", "What?"),))
        for at, size in enumerate(sizes)
    )
    return Benchmark("tiny", cases, "0" * 64, interface="all")


@dataclass(frozen=True)
class Three:
    """Keeps the first, the second last and the last record, each in an order of its own.

    It has one name whatever is fixed, as somebody's own class may.
    """

    operations: tuple[str, ...] = ("first", "middle", "last")
    name: str = "three"

    def fixed(self, operation):
        return replace(self, operations=tuple(o for o in self.operations if o != operation))

    def build(self, arrivals):
        source = sorted(arrivals, key=lambda record: record.position)

        def pick(operation, at):
            return (arrivals if operation in self.operations else source)[at]

        chosen_records = {r.id: r for r in (pick("first", 0), pick("middle", -2), pick("last", -1))}
        return whole_records(
            All(), arrivals, tuple(chosen_records.values()), state=sorted(chosen_records)
        )


def chosen_records(following: tuple[str, ...], n: int) -> set[int]:
    """Say by hand which positions `Three` keeps on replay."""
    first = n - 1 if "first" in following else 0
    middle = 1 if "middle" in following else n - 2
    last = 0 if "last" in following else n - 1
    return {first, middle, last}


def overlap(following: tuple[str, ...], n: int) -> float:
    forward, replay = {0, n - 2, n - 1}, chosen_records(following, n)
    return len(forward & replay) / len(forward | replay)


def test_arms_of_three_operations_are_all_combinations() -> None:
    arms = make_arms(Three())
    assert len(arms) == 8
    assert arms["first", "middle", "last"] == Three()
    assert arms["last",].name == "three[first+middle fixed]"
    assert arms[()].name == "three[first+middle+last fixed]"


def test_main_effects_pairs_and_the_whole_of_three_operations(tmp_path) -> None:
    run = tmp_path / "run"
    result = routeprism.audit(benchmark(), Three(), mechanism=True, resamples=100, run=run)
    operations = ("first", "middle", "last")
    sizes = (6, 6, 7)

    def mean(following):
        return sum(overlap(following, n) for n in sizes) / 3

    assert mean(()) == 1
    for size in (1, 2, 3):
        for following in combinations(operations, size):
            row = result.value("delta_op.J", arm="+".join(following))
            assert row.experiment == "mechanism"
            assert row.estimate == pytest.approx(mean(following) - 1)
    for pair in combinations(operations, 2):
        expected = mean(pair) - mean(pair[:1]) - mean(pair[1:]) + 1
        row = result.value("interaction.J", arm="×".join(pair))
        assert row.estimate == pytest.approx(expected)
    three = result.value("interaction.J", arm="first×middle×last").estimate
    signed = mean(operations) - 1
    for size, sign in ((1, 1), (2, -1)):
        signed += sign * sum(mean(part) for part in combinations(operations, size))
    assert three == pytest.approx(signed)
    with StoredRun(run) as stored:
        (entries,) = stored.findings("mechanism", "arms")
    assert entries.policy == "three"
    assert {"operations": ["last"], "policy": "three[first+middle fixed]"} in entries.value


def test_four_operations_have_singles_pairs_and_all() -> None:
    class Four(Three):
        pass

    arms = make_arms(Four(operations=("a", "b", "c", "d")))
    assert sorted(map(len, arms)) == [0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 4]


def test_focal_is_told_apart_at_the_sources() -> None:
    result = routeprism.audit("sample", "focal", mechanism=True, resamples=500)
    assert {row.policy for row in result.rows if row.quantity == "J"} == {
        "focal",
        "focal:cluster=source",
        "focal:survivor=source-position",
        "focal:cluster=source,survivor=source-position",
    }
    both = result.value("delta_op.J", arm="clustering+survivor")
    survivor = result.value("delta_op.J", arm="survivor")
    assert both.upper < 0
    assert survivor.upper < 0
    (text,) = [s for s in result.sentences if "against its canonical arm" in s]
    assert text.startswith("focal, replay, against its canonical arm: J changes by -0.9")
    assert "survivor alone accounts for half of it or more" in text


@pytest.mark.slow
def test_and_at_the_answers() -> None:
    result = routeprism.audit(
        "sample", "focal", mechanism=True, models=["reader"], draws=2, resamples=500
    )
    for quantity in ("H", "Delta", "D_res", "Delta_rep"):
        canonical = "focal:cluster=source,survivor=source-position"
        for policy, arm in (
            ("focal", "clustering+survivor"),
            ("focal:cluster=source", "survivor"),
            ("focal:survivor=source-position", "clustering"),
        ):
            first, second = (
                result.value(quantity, policy=name, arm="", model="reader", mask="").estimate
                for name in (policy, canonical)
            )
            contrast = result.value(f"delta_op.{quantity}", arm=arm, model="reader", mask="")
            assert contrast.estimate == pytest.approx(first - second)
        result.value(f"interaction.{quantity}", arm="clustering×survivor", model="reader", mask="")
    assert result.value("delta_op.D_res", arm="survivor", model="reader", mask="").lower > 0
    texts = [s for s in result.sentences if "read by reader" in s and "canonical arm" in s]
    assert len(texts) == 1


def test_no_operations_no_mechanism() -> None:
    with pytest.raises(SpecError, match=r"recent:k=3: no policy here declares operations"):
        routeprism.audit("sample", "recent:k=3", mechanism=True)
    assert make_arms(make_policy("raw")) == {}


def test_operations_of_a_policy_without_a_name() -> None:
    class Unnamed:
        operations = ("all",)

        def __init__(self, fixed=False):
            self.tied = fixed

        def fixed(self, operation):
            return Unnamed(True)

        def build(self, arrivals):
            order = sorted(arrivals, key=lambda r: r.position) if self.tied else arrivals
            return whole_records(All(), order, order[-1:])

    result = routeprism.audit(benchmark(), as_policy(Unnamed), mechanism=True, resamples=100)
    assert result.value("delta_op.V_changed", policy="Unnamed").estimate == 1


def test_operations_that_cannot_be_fixed_together_are_refused() -> None:
    class Stuck(Three):
        def fixed(self, operation):
            return make_policy("raw")

    with pytest.raises(ContractError, match=r"has no fixed\('middle'\) for the next"):
        make_arms(Stuck())
