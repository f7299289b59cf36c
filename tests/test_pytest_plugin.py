"""The plugin as its users have it: in a pytest of its own, loaded by its entry point."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import ContractError, SpecError
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark

pytest_plugins = ["pytester"]

EXAMPLE = Path(__file__).parents[1] / "examples" / "order_bug"
ALONE = ("-W", "error", "-p", "no:hypothesispytest", "-p", "no:langsmith_plugin")
"""Without plugins of others that take seconds to load."""
TEXTS = ["tea is green", "tea is black", "rain in May", "a boat of wood"]


@pytest.fixture
def example(pytester: pytest.Pytester) -> pytest.Pytester:
    for name in ("notes.py", "notes_fixed.py", "test_notes.py"):
        shutil.copy(EXAMPLE / name, pytester.path)
    return pytester


@pytest.mark.slow
def test_the_example_fails_and_names_the_two_records(example: pytest.Pytester) -> None:
    """The two newest notes on home stand next to each other: one exchange loses the newest."""
    ended = example.runpytest_subprocess(*ALONE)
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(
        [
            "*Notes is not order-stable under 1-place disorder (jitter:w=1): a record that is "
            "kept in source order is lost (user 'pool 0', 5 records)",
            "*smallest reordering that breaks it: move 'note-2024-03-11' (“home: has found a flat "
            "in Porto”) after 'note-2024-03-12' (“home: keeps bees on the roof in Porto”)",
            "*Lost:   'note-2024-03-12' (“home: keeps bees on the roof in Porto”)",
            "*Gained: 'note-2024-03-11' (“home: has found a flat in Porto”)",
            "*Cause: 'note-2024-03-11' (“home: has found a flat in Porto”), an older record, "
            "overwrote 'note-2024-03-12' (“home: keeps bees on the roof in Porto”): exchanging "
            "'note-2024-03-11' brings 'note-2024-03-12' back; in the opposite order of the two "
            "it is there",
            "*What to do: compare event times before a record overwrites another, or keep both",
            "*Overlap with source order (J): 0.5, required 1 or more",
            "*Verdict over the orders that were built: different records",
            "*schedule explicit:order=0-1-3-2-4*",
        ]
    )


@pytest.mark.slow
def test_the_example_passes_with_the_fix_on_two_workers(example: pytest.Pytester) -> None:
    shutil.move(example.path / "notes_fixed.py", example.path / "notes.py")
    example.makepyfile(
        test_more="""
        from notes import Notes
        from routeprism.pytest_plugin import assert_order_stable
        from test_notes import POOL

        def test_any_order():
            assert_order_stable(Notes, [POOL])
        """
    )
    example.runpytest_subprocess("-n", "2", *ALONE).assert_outcomes(passed=2)


@pytest.mark.slow
def test_loading_is_light_and_can_be_left_out(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_light(request):
            assert "numpy" not in sys.modules and "rich" not in sys.modules
            assert "routeprism.experiments" not in sys.modules
        """
    )
    pytester.runpytest_subprocess(*ALONE).assert_outcomes(passed=1)
    ended = pytester.runpytest_subprocess(*ALONE, "-p", "no:routeprism", "--fixtures")
    assert "order_stability" not in ended.stdout.str()


class Last:
    """Keeps the record that came last."""

    def __init__(self) -> None:
        self.kept: Record | None = None

    def add(self, record: Record) -> None:
        self.kept = record

    def retained(self) -> list[str]:
        return [self.kept.id] if self.kept else []

    def expose(self, query: str) -> list[Record]:
        return [self.kept] if self.kept else []


class Everything:
    """Keeps all and shows the two that came first."""

    def __init__(self) -> None:
        self.kept: list[Record] = []

    def add(self, record: Record) -> None:
        self.kept.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.kept]

    def expose(self, query: str) -> list[Record]:
        return self.kept[:2]


class Fragile(Everything):
    """Cannot begin with the third record."""

    def add(self, record: Record) -> None:
        if not self.kept and record.position == 2:
            raise KeyError("home")
        super().add(record)


def message(*arguments: object, **settings: object) -> str:
    with pytest.raises(AssertionError) as failed:
        assert_order_stable(*arguments, **settings)  # type: ignore[arg-type]
    return str(failed.value)


def test_questions_reach_what_is_exposed() -> None:
    assert_order_stable(Everything, [TEXTS], arrival="uniform")
    text = message(Everything, [TEXTS], questions=["What is tea?"])
    assert "a record that is shown in source order is lost" in text
    assert "(J) for “What is tea?”: 0.333, required 1 or more" in text
    assert (
        "Cause: the memory keeps 'r1' (“tea is black”), but ranks 'r2' (“rain in May”), a newer "
        "record, higher: unrelated records in place of 'r2' are shown as well; in the opposite "
        "order of the two it is there\n"
    ) in text
    assert "move 'r1' (“tea is black”) after 'r2' (“rain in May”)" in text
    assert "Lost:   'r1' (“tea is black”)" in text and "Gained: 'r2' (“rain in May”)" in text
    # Two of three records are the same after one exchange: 1/3 of the union, after two 0.
    assert_order_stable(Everything, [TEXTS], questions=["?"], arrival="jitter:w=1", min_jaccard=0.3)


def test_an_order_on_which_the_memory_raises_breaks_it() -> None:
    text = message(Fragile, [TEXTS], arrival="jitter:w=2")
    assert "it raises KeyError: 'home'" in text
    assert "move 'r2' (“rain in May”) to the front" in text


@pytest.mark.parametrize(
    "pools",
    [
        TEXTS,
        [TEXTS],
        [Record(f"r{at}", at, text) for at, text in enumerate(TEXTS)],
        Pool("u", tuple(Record(f"r{at}", at, text) for at, text in enumerate(TEXTS))),
        [Pool("u", tuple(Record(f"r{at}", at, text) for at, text in enumerate(TEXTS)))],
    ],
    ids=["texts", "list of texts", "records", "pool", "pools"],
)
def test_pools_in_every_shape(pools: object) -> None:
    output = message(Last, pools, arrival="uniform")
    assert "move 'r2' (“rain in May”) after 'r3' (“a boat of wood”)" in output
    # The last of four is another in 18 of 24 orders.
    assert "18 of all 24 orders of this pool break it" in output


def test_benchmarks_by_name_and_policies_by_spec() -> None:
    assert "and on 29 more pools" in message("recent:k=2", "sample")
    sample = load_benchmark("sample", None)
    assert_order_stable("raw", sample, questions=True, arrival="replay")
    text = message("recent:k=2", sample, questions=True, arrival="replay", min_jaccard=0.5)
    assert "under reversal (replay)" in text


def test_evidence_alone_can_be_required() -> None:
    """Losing a superseded record is no failure; the record that replaces it has to stay."""
    assert_order_stable(Everything, [TEXTS], evidence=True)
    assert_order_stable(Last, [TEXTS], evidence=["r0", "r1"])  # source order loses both anyway
    text = message(Last, [TEXTS], evidence=["r0", "r3"])
    assert "evidence that is kept in source order is lost" in text
    assert "Lost:   'r3' (“a boat of wood”)" in text and "Gained" not in text
    assert "Cause: the memory was full, and 'r3' (“a boat of wood”) had to leave: " in text
    assert "Share of the evidence left: 0, required 1 or more" in text
    with pytest.raises(SpecError, match="names the record 'r9'"):
        assert_order_stable(Last, [TEXTS], evidence=["r9"])


def test_superseded_records_may_be_lost() -> None:
    """Without support labels, every record counts that no other one supersedes."""
    records = tuple(Record(f"r{at}", at, text) for at, text in enumerate(TEXTS))
    tea = Case(Pool("u", records), (), {"r3": frozenset({"r2"})})
    benchmark = Benchmark("own", (tea,), "0" * 64)
    later = "explicit:order=3-0-1-2"  # r3 comes too early for a window of two
    assert "Lost:   'r3'" in message("recent:k=2", benchmark, evidence=True, arrival=later)
    assert "Lost:   'r2'" in message("recent:k=2", benchmark, arrival="explicit:order=0-2-1-3")
    assert_order_stable("recent:k=2", benchmark, evidence=True, arrival="explicit:order=0-2-1-3")


def test_labels_of_a_benchmark_are_its_evidence() -> None:
    """Window of two: only r2 and r3 stay in source order, and r2 alone is evidence."""
    records = tuple(Record(f"r{at}", at, text) for at, text in enumerate(TEXTS))
    question = Question("q", "u", "Does it rain?", labels={"own": frozenset({"r2"})})
    benchmark = Benchmark(
        "own", (Case(Pool("u", records), (question,)),), "0" * 64, labels=("own",)
    )
    swap = "explicit:order=0-2-1-3"  # r1 pushes r2 out of a window of two
    output = message("recent:k=2", benchmark, evidence=True, arrival=swap, questions=True)
    assert "Lost:   'r2' (“rain in May”)" in output and "Gained" not in output
    assert_order_stable("recent:k=2", benchmark, evidence=True, arrival="explicit:order=0-1-3-2")


def test_long_pools_are_drawn_from_and_the_order_is_reduced() -> None:
    texts = [f"note number {n}" for n in range(40)]
    text = message(Last, [texts], orders=50, arrival="uniform")
    assert "of 50 drawn orders" in text
    assert "move 'r38' (“note number 38”) after 'r39' (“note number 39”)" in text


def test_redelivery_names_what_comes_again() -> None:
    text = message(Last, [TEXTS], arrival="redeliver")
    assert "deliver again 'r2' (“rain in May”)" in text


def test_chance_is_not_blamed_on_order() -> None:
    class Chancy(Last):
        builds = 0

        def __init__(self) -> None:
            super().__init__()
            Chancy.builds += 1

        def add(self, record: Record) -> None:
            if (record.position + Chancy.builds) % 2:
                self.kept = record

    with pytest.raises(ContractError, match="not deterministic"):
        assert_order_stable(Chancy, [TEXTS])


class Forgetful(Last):
    """Ignores every record."""

    def add(self, record: Record) -> None:
        pass


class Unsourced(Last):
    """Shows all texts in the order of their arrival, without the ids of their records."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []

    def add(self, record: Record) -> None:
        self.texts.append(record.text)

    def expose(self, query: str) -> Any:
        return [(" ".join(self.texts), [])]


@pytest.mark.parametrize(
    ("memory", "pools", "questions", "reason", "advice"),
    [
        (Forgetful, [TEXTS], None, "keeps no record in any order", "Check that `add` stores"),
        (Forgetful, [TEXTS], ["tea?"], "shows nothing to any question", "Check that `expose`"),
        (Unsourced, [TEXTS], ["tea?"], "names no records", "Return records from `expose`"),
        (Everything, [["tea"]], None, "one record and so one order", "Give pools of two records"),
    ],
)
def test_what_cannot_be_judged_fails_and_says_what_to_do(
    memory: type, pools: object, questions: object, reason: str, advice: str
) -> None:
    text = message(memory, pools, questions=questions)
    assert f"{memory.__name__} cannot be judged on 1 pool under jitter:w=2: " in text
    assert reason in text and f". {advice}" in text


def test_what_cannot_be_asked_is_refused() -> None:
    with pytest.raises(SpecError, match="min_jaccard"):
        assert_order_stable(Last, [TEXTS], min_jaccard=0)
    with pytest.raises(SpecError, match="questions=True"):
        assert_order_stable(Last, [TEXTS], questions=True)
    with pytest.raises(SpecError, match="list of questions"):
        assert_order_stable(Last, [TEXTS], questions="What?")
    with pytest.raises(SpecError, match="Did you mean 'jitter'"):
        assert_order_stable(Last, [TEXTS], arrival="jiter:w=1")
    with pytest.raises(SpecError, match="no pool"):
        assert_order_stable(Last, [])
