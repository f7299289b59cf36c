"""The layers that order reaches and the causes of losses, on memories made for them."""

from __future__ import annotations

import pytest

import routeprism
from routeprism.experiments import tabulate_layers
from routeprism.policies import Block, Exposure
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.routes import Loss

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
    # Questions that differ, layer by layer: kept, shown, text, and state (None if it has none).
    (Choosy, 4, (0, 4, 4, 4)),
    ("recent:k=1", 4, (4, 4, 4, 4)),
    (Summaries, 4, (0, 0, 4, 4)),
    (Mostly, 20, (0, 1, 20, 20)),
    (Shuffled, 4, (0, 0, 4, 4)),
    (Hidden, 4, (4, 0, 0, 4)),
    (Quiet, 4, (0, 0, 0, 4)),
    (Still, 4, (0, 0, 0, None)),
    ("source-order(raw)", 4, (0, 0, 0, 0)),
]
LAYERS = ("records kept", "records shown", "text", "internal state")


def name_of(memory) -> str:
    return memory if isinstance(memory, str) else memory.__name__


def list_layers(result) -> list[str]:
    return [str(statement) for statement in result.statements if statement.kind == "layers"]


@pytest.mark.parametrize(("memory", "questions", "numbers"), CASES)
def test_each_layer_counts_its_questions(memory, questions, numbers) -> None:
    result = routeprism.audit(benchmark(questions), memory, resamples=100)
    counts = ", ".join(
        f"{layer} {number} of {questions}"
        for layer, number in zip(LAYERS, numbers, strict=True)
        if number is not None
    )
    (layers,) = list_layers(result)
    start = f"{name_of(memory)}, reversal: questions that differ: {counts}; J = "
    assert layers.startswith(start)


def test_each_schedule_has_its_layers() -> None:
    """Reversal and half-swap move all four records to another half."""
    result = routeprism.audit(
        benchmark(), "recent:k=2", Quiet, schedules=["replay", "half-swap"], resamples=100
    )
    layers = {
        (statement.policy, statement.schedule): "".join(map(str, statement.parts))
        for statement in result.statements
        if statement.kind == "layers"
    }
    for schedule in ("replay", "half-swap"):
        assert layers["recent:k=2", schedule] == (
            "questions that differ: records kept 4 of 4, records shown 4 of 4, text 4 of 4, "
            "internal state 4 of 4; J = 0.000 (one user, no interval)"
        )
        assert layers["Quiet", schedule] == (
            "questions that differ: records kept 0 of 4, records shown 0 of 4, text 0 of 4, "
            "internal state 4 of 4; J = 1.000 (one user, no interval)"
        )
    assert len(layers) == 4


@pytest.mark.slow
def test_the_table_has_the_counts_of_the_rows() -> None:
    """Raw keeps all records and shows them in source order; focal shows those near the last."""
    result = routeprism.audit("sample", "raw", "focal", models=["reader"], draws=2, resamples=100)
    (table,) = tabulate_layers(result.results)
    cells = {row[0]: dict(zip(table.columns, map(str, row), strict=True)) for row in table.rows}
    raw = cells["raw"]
    assert [raw[name] for name in ("kept", "shown", "text", "state")] == [
        "0 of 165",
        "0 of 165",
        "0 of 165",
        "165 of 165",
    ]
    assert raw["J"].startswith("1.000")
    assert cells["focal"]["shown"] == "165 of 165"
    differ = result.value("H", policy="focal", model="reader", arm="", mask="", experiment="routes")
    assert cells["focal"]["answers differ (reader)"].startswith(f"{differ.estimate:.3f}")


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
