"""The audit on small pools: contrasts, labels, strata, flags and notes."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.runs import COLUMNS, to_csv

pytestmark = pytest.mark.usefixtures("only_reversal")

WORDS = "walnut bread oven kitchen morning"


def benchmark(weighting: str = "unit", users: int = 3) -> Benchmark:
    cases = []
    for user in range(users):
        name = f"u{user}"
        records = tuple(Record(f"{name}r{at}", at, f"{WORDS} {at}") for at in range(4))
        questions = tuple(
            Question(
                f"{name}q{at}",
                name,
                f"What of {at}?",
                kind="odd" if at % 2 else "even",
                labels={"benchmark": frozenset({f"{name}r{at}"})} if at < 3 else {},
            )
            for at in range(user + 2)
        )
        cases.append(Case(Pool(name, records), questions))
    return Benchmark(
        "tiny", tuple(cases), "0" * 64, weighting=weighting, labels=("benchmark",), interface="all"
    )


def test_focal_merges_all_and_keeps_one_end() -> None:
    result = routeprism.audit(benchmark(), "focal", resamples=100)
    assert result.value("J").estimate == 0
    assert result.value("V_changed_count").estimate == 9  # 2 + 3 + 4 questions
    assert result.value("retained_changed").estimate == 1
    assert result.value("J").flags == "degenerate"


def test_strata_hold_their_own_questions() -> None:
    result = routeprism.audit(benchmark(), "focal", resamples=100)
    sizes = {s: result.value("J", stratum=s).queries for s in ("all", "even", "odd")}
    assert sizes == {"all": 9, "even": 5, "odd": 4}


def test_recall_reads_labels_and_skips_questions_without_them() -> None:
    # recent:k=2 keeps r2, r3 forward and r0, r1 on replay; q0…q2 are labelled r0…r2.
    result = routeprism.audit(benchmark(), "recent:k=2", resamples=100)
    row = result.value("recall.retained.forward")
    assert row.queries == 8  # q3 of the third user has no label
    # Users have recalls (0,0), (0,0,1), (0,0,1): means 0, 1/3, 1/3.
    assert row.estimate == pytest.approx(2 / 9)
    assert result.value("recall.retained.route").estimate == pytest.approx((1 + 2 / 3 + 2 / 3) / 3)
    assert row.experiment == "retention"


def test_gamma_is_the_paired_difference_from_the_comparator() -> None:
    result = routeprism.audit(benchmark(), "recent:k=2", comparators=True, resamples=100)
    own = result.value("V_changed", policy="recent:k=2")
    twin = result.value("V_changed", policy="source-order(recent:k=2)")
    gamma = result.value("Gamma.V_changed", policy="recent:k=2")
    assert (own.estimate, twin.estimate, gamma.estimate) == (1, 0, 1)
    assert gamma.arm == "ordered-comparator"


def test_a_memory_without_state_has_no_internal_rows() -> None:
    class Own:
        def __init__(self) -> None:
            self.kept: list[Record] = []

        def add(self, record: Record) -> None:
            self.kept = [*self.kept, record][-2:]

        def retained(self) -> list[str]:
            return [record.id for record in self.kept]

        def expose(self, query: str) -> list[Record]:
            return self.kept

    result = routeprism.audit(benchmark(), Own, resamples=100)
    assert not [row for row in result.rows if row.quantity.startswith("I_changed")]
    assert result.value("V_changed_count").estimate == 9


def test_question_weighting_gives_the_question_mean() -> None:
    result = routeprism.audit(benchmark("question"), "recent:k=2", resamples=100)
    assert result.value("recall.retained.forward").estimate == pytest.approx(2 / 8)


def test_one_unit_is_flagged() -> None:
    result = routeprism.audit(benchmark(users=1), "focal", resamples=100)
    row = result.value("J")
    assert (row.lower, row.upper, row.flags) == (None, None, "single-unit")


def test_synthetic_data_is_called_that_everywhere() -> None:
    result = routeprism.audit("sample", "focal", resamples=100)
    assert all("synthetic" in row.flags.split(";") for row in result.rows)
    layers = [str(statement) for statement in result.statements if statement.kind == "layers"]
    assert layers
    assert all("synthetic" in sentence for sentence in layers)
    assert any("synthetic" in note for note in result.notes)


@pytest.mark.slow
def test_estimates_have_unique_names_and_the_documented_columns() -> None:
    result = routeprism.audit(
        "sample", "focal", "recent:k=3", "lexical", comparators=True, ties=True, resamples=100
    )
    rows = list(csv.DictReader(io.StringIO(to_csv(result.rows))))
    assert tuple(rows[0]) == COLUMNS
    numbers = {"estimate", "lower", "upper", "queries", "units", "draws", "seed"}
    names = [tuple(v for k, v in row.items() if k not in numbers) for row in rows]
    assert len(set(names)) == len(names)


def test_an_audit_needs_an_order_and_known_labels() -> None:
    with pytest.raises(SpecError, match="at least one policy, and an arrival model or a schedule"):
        routeprism.audit(benchmark(), "focal", schedules=["forward"])
    with pytest.raises(SpecError, match="Did you mean 'benchmark'"):
        routeprism.audit(benchmark(), "focal", labels="benchmarks")


def test_two_policies_of_one_name_are_refused() -> None:
    class WithName:
        name = "mine"

        def __init__(self, k: int) -> None:
            self.k = k

        def build(self, arrivals):
            raise AssertionError("never built")

    with pytest.raises(SpecError, match="two different policies are called 'mine'"):
        routeprism.audit(benchmark(), WithName(1), WithName(2))


def test_value_wants_exactly_one_row() -> None:
    result = routeprism.audit(benchmark(), "focal", "raw", resamples=100)
    with pytest.raises(LookupError, match="2 rows"):
        result.value("J")


@pytest.mark.slow
def test_each_text_is_tokenised_once_whatever_the_policies_and_schedules(monkeypatch) -> None:
    import routeprism.policies.lexical as lexical
    import routeprism.text.focal as focal

    user_turns: list[str] = []
    encoded: list[str] = []
    count_words, cut_windows = focal.count_words, lexical.cut_windows
    monkeypatch.setattr(
        focal, "count_words", lambda text: user_turns.append(text) or count_words(text)
    )
    monkeypatch.setattr(
        lexical, "cut_windows", lambda text, size: encoded.append(text) or cut_windows(text, size)
    )
    # Without arrival models no causes are tested, which would make placebos with new texts.
    loaded = replace(routeprism.load_benchmark("sample:seed=5"), arrivals=())
    routeprism.audit(
        loaded,
        "focal",
        "focal:cluster=source",
        "recent:k=3",
        "utility:k=3",
        "lexical",
        "source-order(lexical)",
        schedules=["replay", "half-swap", "odd-even"],
        ties=True,
        resamples=100,
    )
    texts = [record for case in loaded.cases for record in case.pool.records]
    assert sorted(user_turns) == sorted(record.user_text for record in texts)
    assert sorted(encoded) == sorted(record.text for record in texts)


def test_masks_stand_beside_the_whole_and_never_replace_it() -> None:
    plain = routeprism.audit(benchmark(), "recent:k=2", resamples=100)
    masked = routeprism.audit(benchmark(), "recent:k=2", masks={"few": {"u0q0"}}, resamples=100)
    assert masked.sentences == plain.sentences
    assert masked.value("J", mask="").queries == 9
    assert masked.value("J", mask="few").queries == 1
    with pytest.raises(SpecError, match="Expected question ids for mask 'few'"):
        routeprism.audit(benchmark(), "focal", masks={"few": "u0q0"})
