"""The interface table and its sentence: one rule after the other, on memories made for it."""

from __future__ import annotations

from pathlib import Path

import pytest

import routeprism
from routeprism.policies import Block, Exposure
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.routes import Loss
from routeprism.runs import StoredRun

pytestmark = pytest.mark.usefixtures("only_reversal")


def benchmark(questions: int = 4) -> Benchmark:
    records = tuple(Record(f"r{at}", at, f"note {at}") for at in range(4))
    pool_questions = tuple(Question(f"q{at}", "u", f"What of {at}?") for at in range(questions))
    return Benchmark("tiny", (Case(Pool("u", records), pool_questions),), "0" * 64, interface="all")


class Memory:
    """Keeps all; what it shows is said below."""

    def __init__(self):
        self.records = []

    def add(self, record):
        self.records.append(record)

    def retained(self):
        return [record.id for record in self.records]

    def state(self):
        return self.retained()

    def show(self, *blocks):
        every = frozenset(record.id for record in self.records)
        return Exposure(tuple(Block(kind, text, every) for kind, text in blocks))


class Summaries(Memory):
    def expose(self, query):
        last = self.records[-1].text
        return self.show(("topic-summary", f"It ends with {last}"), ("dialog", "the same"))


class Mostly(Memory):
    """Writes a summary of everything, but to the first question of many shows one record."""

    def expose(self, query):
        if "of 0?" in query:
            return [self.records[-1]]
        return self.show(("topic-summary", f"It ends with {self.records[-1].text}"))


class Shuffled(Memory):
    def expose(self, query):
        return list(self.records)


class Choosy(Memory):
    def expose(self, query):
        return self.records[:1]


class Quiet(Memory):
    def expose(self, query):
        return sorted(self.records, key=lambda record: record.position)


class Hidden(Memory):
    """Holds the last two records and shows none of them."""

    def retained(self):
        return [record.id for record in self.records[-2:]]

    def expose(self, query):
        return []


class Still(Quiet):
    state = None


CASES = [
    (
        Choosy,
        4,
        "every pair changed its sources: different records are shown, although the same are kept",
    ),
    ("recent:k=1", 4, "every pair changed its sources: different records are kept"),
    (
        Summaries,
        4,
        "order reaches the context but not the sources, every pair changed its text: "
        "topic-summary blocks are rewritten",
    ),
    (
        Mostly,
        20,
        "order reaches the context but hardly the sources (1 of 20), every pair changed its text: "
        "topic-summary blocks are rewritten",
    ),
    (
        Shuffled,
        4,
        "order reaches the context but not the sources, every pair changed its text: "
        "the same blocks are shown in a different order",
    ),
    (Hidden, 4, "every pair changed its retained set, but nothing that was exposed"),
    (Quiet, 4, "every pair changed its internal state, and nothing else changed"),
    (Still, 4, "order changed nothing: sources and context stayed the same"),
    ("source-order(raw)", 4, "order changed nothing: sources, context and state stayed the same"),
]


@pytest.mark.parametrize(("memory", "questions", "expected"), CASES)
def test_each_rule(memory, questions, expected) -> None:
    result = routeprism.audit(benchmark(questions), memory, resamples=100)
    name = memory if isinstance(memory, str) else memory.__name__
    (layers,) = [str(statement) for statement in result.statements if statement.kind == "layers"]
    assert layers.startswith(f"{name}: {expected}; J = ")


def test_schedules_that_say_the_same_are_said_together() -> None:
    result = routeprism.audit(
        benchmark(), "recent:k=2", Quiet, schedules=["replay", "half-swap"], resamples=100
    )
    layers = tuple(str(statement) for statement in result.statements if statement.kind == "layers")
    assert layers == (
        "recent:k=2: replay and half-swap: every pair changed its sources: different records are "
        "kept; J = 0.000 (one user, no interval)",
        "Quiet: replay and half-swap: every pair changed its internal state, and nothing else "
        "changed; J = 1.000 (one user, no interval)",
    )


@pytest.mark.slow
def test_the_table_is_kept_with_the_run(tmp_path: Path) -> None:
    run = tmp_path / "run"
    routeprism.audit("sample", "raw", "focal", models=["reader"], draws=2, resamples=100, run=run)
    with StoredRun(run) as stored:
        lines = {finding.policy: finding for finding in stored.findings("routes", "layers")}
        values = {
            finding.policy: finding.value for finding in stored.findings("routes", "diagnosis")
        }
    raw = lines["raw"]
    assert (raw.interface, raw.schedule) == ("budget", "replay")
    assert {name: raw.value[name] for name in ("pairs", "retained", "V", "C", "I", "blocks")} == {
        "pairs": 165,
        "retained": 0,
        "V": 0,
        "C": 0,
        "I": 165,
        "blocks": 0,
    }
    assert raw.value["J"] == [1, 1, 1]
    assert set(raw.value["answers"]["reader"]) == {"H", "D_res", "Delta_rep"}
    assert lines["focal"].value["V"] == lines["focal"].value["blocks"] == 165
    assert values["raw"].startswith("raw: every pair changed its internal state")


@pytest.mark.parametrize("number_of_questions", [3, 5])
def test_losses_beyond_those_that_are_stored_are_counted(number_of_questions: int) -> None:
    """80 users ask about the last record, which a window of one loses reversed.

    Three questions of each pool are explained, and the sentence says how many cases there are.
    """
    cases = []
    for user in range(80):
        records = tuple(Record(f"u{user}r{at}", at, f"dish {user} {at}") for at in range(4))
        questions = tuple(
            Question(
                *(f"u{user}q{number}", f"u{user}", f"Which dish, {number}?", ("a", "b"), "a"),
                labels={"given": frozenset({f"u{user}r3"})},
            )
            for number in range(number_of_questions)
        )
        cases.append(Case(Pool(f"u{user}", records), questions))
    benchmark = Benchmark("own", tuple(cases), "f" * 64, labels=("given",))
    audit = routeprism.audit(benchmark, "recent:k=1", schedules=["replay"], resamples=100)
    (cause,) = [str(s) for s in audit.statements if s.kind == "causes"]
    untested = 80 * number_of_questions - 240
    more = f", {untested} more were not tested" if untested else ""
    assert f"(tested in 240 of 240 losses{more})." in cause
    assert "'u0r3' (“dish 0 3”) had to leave" in cause
    assert "User 'u0', question “Which dish, 0?”." in cause
    assert sum(len(f.value) for f in audit.findings if f.name == "losses") == 200


def test_all_cases_are_those_of_every_order_that_was_built() -> None:
    """A window of one loses the last record wherever it does not arrive last.

    One record of one question is one case of the arrival model, however many orders lose it, and
    one of reversal. The order that is tested has the fewest inversions: one.
    """
    records = tuple(Record(f"r{at}", at, f"dish {at}") for at in range(5))
    question = Question("q", "u", "Which?", ("a", "b"), "a", labels={"given": frozenset({"r4"})})
    cases = (Case(Pool("u", records), (question,)),)
    benchmark = Benchmark("own", cases, "f" * 64, labels=("given",))
    audit = routeprism.audit(
        benchmark, "recent:k=1", arrivals=["jitter:w=2"], schedules=["replay"], resamples=100
    )
    (cause,) = [str(s) for s in audit.statements if s.kind == "causes"]
    assert "(tested in 2 of 2 losses)." in cause
    losses = [Loss(**loss) for f in audit.findings if f.name == "losses" for loss in f.value]
    assert [loss.order for loss in losses] == [(0, 1, 2, 4, 3), (4, 3, 2, 1, 0)]
