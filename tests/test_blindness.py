"""Construction sees records, exposure sees the question's text, and nobody sees more.

Where types can tell, a policy that wants more does not type-check; at run time it fails in any
case; and no option text of PersonaMem, whose `query` field holds the options, reaches a memory.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from mypy import api as mypy

import routeprism
from routeprism import Block, Exposure, Record
from routeprism.errors import ContractError, PeekError
from routeprism.orders import parse_schedule
from routeprism.policies import JsonValue, Memory, Policy, SourceOrder, as_policy
from routeprism.policies.recent import Recent
from routeprism.records import Case, Pool, Question, load_benchmark
from routeprism.routes import Route, trace_case

POOL = Pool("u", tuple(Record(f"r{at}", at, f"[USER] Words number {at}.") for at in range(3)))
QUESTION = Question(
    "q1",
    "u",
    "Which words?",
    options=("secret one", "secret two"),
    gold="b",
    kind="secret-kind",
    labels={"benchmark": frozenset({"r2"})},
    stale={"secret-source": frozenset({"r1"})},
    outdated=("a",),
)
CASE = Case(
    POOL,
    (QUESTION, Question("q2", "u", "Which number?", gold="secret", outdated=("secret too",))),
    supersedes={"r2": frozenset({"r1"})},
)

# --- types -----------------------------------------------------------------------------------

HEAD = """
from collections.abc import Sequence
from routeprism import Exposure, Memory, Policy, Record
from routeprism.policies import JsonValue
from routeprism.policies.recent import Recent

class Kept:
    def retained(self) -> frozenset[str]: return frozenset()
    def state(self) -> JsonValue: return None
    def expose(self, query: str) -> Exposure: return Exposure(())
"""
SNIPPETS = {
    "right": """
class Right:
    name = "right"
    def build(self, arrivals: Sequence[Record]) -> Kept: return Kept()

policy: Policy = Right()
memory: Memory = Kept()
""",
    "build_wants_question": """
class Peeking:
    name = "peeking"
    def build(self, arrivals: Sequence[Record], question: str) -> Kept: return Kept()

policy: Policy = Peeking()
""",
    "build_wants_keyword": """
class Peeking:
    name = "peeking"
    def build(self, arrivals: Sequence[Record], *, gold: str) -> Kept: return Kept()

policy: Policy = Peeking()
""",
    "expose_wants_options": """
class Peeking(Kept):
    def expose(self, query: str, options: Sequence[str]) -> Exposure:  # type: ignore[override]
        return Exposure(())

memory: Memory = Peeking()
""",
    "build_gives_such_a_memory": """
class Peeking(Kept):
    def expose(self, query: str, options: Sequence[str]) -> Exposure:  # type: ignore[override]
        return Exposure(())

class Builds:
    name = "builds"
    def build(self, arrivals: Sequence[Record]) -> Peeking: return Peeking()

policy: Policy = Builds()
""",
    "state_is_missing": """
class Partial:
    def retained(self) -> frozenset[str]: return frozenset()
    def expose(self, query: str) -> Exposure: return Exposure(())

memory: Memory = Partial()
""",
}


@pytest.fixture(scope="module")
def type_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Check all snippets in one go; give each one's errors."""
    directory = tmp_path_factory.mktemp("types")
    for name, snippet in SNIPPETS.items():
        (directory / f"{name}.py").write_text(HEAD + snippet)
    source = Path(routeprism.__file__).parents[1]
    # What numpy's own types say does not matter here, and takes most of the time.
    (directory / "mypy.ini").write_text(
        f"[mypy]\nstrict = true\nmypy_path = {source}\nfollow_imports = silent\n"
        "[mypy-numpy.*]\nfollow_imports = skip\n"
    )
    text, trouble, _ = mypy.run(
        [
            *("--config-file", str(directory / "mypy.ini")),
            *("--cache-dir", str(directory / "cache"), "--no-error-summary"),
            *(str(directory / f"{name}.py") for name in SNIPPETS),
        ]
    )
    assert trouble == ""
    errors: dict[str, list[str]] = {name: [] for name in SNIPPETS}
    for line in text.splitlines():
        match = re.search(r"(\w+)\.py:\d+: error: (.*)", line)
        if match:
            errors[match[1]].append(match[2])
    return errors


@pytest.mark.slow
def test_a_right_policy_and_memory_type_check(type_errors: dict[str, list[str]]) -> None:
    assert type_errors["right"] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("snippet", "arguments", "expected"),
    [
        ("build_wants_question", "Peeking", "Policy"),
        ("build_wants_keyword", "Peeking", "Policy"),
        ("expose_wants_options", "Peeking", "Memory"),
        ("build_gives_such_a_memory", "Builds", "Policy"),
        ("state_is_missing", "Partial", "Memory"),
    ],
)
def test_one_that_wants_more_does_not(
    type_errors: dict[str, list[str]], snippet: str, arguments: str, expected: str
) -> None:
    (error,) = type_errors[snippet]
    assert error.startswith(
        f'Incompatible types in assignment (expression has type "{arguments}", '
        f'variable has type "{expected}")'
    )


# --- run time --------------------------------------------------------------------------------


class Records:
    """A memory that keeps everything; the base of those that do wrong."""

    def __init__(self, arrivals: Sequence[Record] = ()) -> None:
        self.held = {record.id: record for record in arrivals}
        self.asked = 0

    def add(self, record: Record) -> None:
        self.held[record.id] = record

    def retained(self) -> frozenset[str]:
        return frozenset(self.held)

    def state(self) -> JsonValue:
        return sorted(self.held)

    def expose(self, query: str) -> Exposure:
        self.asked += 1
        return Exposure(())


def policy_of(memory: Callable[[Sequence[Record]], Any]) -> Policy:
    class Builds:
        name = "builds"

        def build(self, arrivals: Sequence[Record], /) -> Memory:
            built: Memory = memory(arrivals)
            return built

    return Builds()


def trace(policy: Any) -> tuple[Route, ...]:
    return trace_case(CASE, [policy], [parse_schedule("replay")])


def wants_question(self: object, arrivals: Sequence[Record], question: str) -> Memory:
    return Records(arrivals)


def might_take_question(self: object, arrivals: Sequence[Record], question: str = "") -> Memory:
    return Records(arrivals)


def wants_gold(self: object, arrivals: Sequence[Record], *, gold: str) -> Memory:
    return Records(arrivals)


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (wants_question, "arrivals, question"),
        (might_take_question, "arrivals, question"),
        (wants_gold, "arrivals, gold"),
    ],
)
def test_a_build_that_wants_more_than_arrivals_is_refused(build: Any, expected: str) -> None:
    peeking = type("Peeking", (), {"name": "peeking", "build": build})
    for use in (
        lambda: routeprism.audit("sample", peeking),
        lambda: routeprism.audit("sample", peeking()),
        lambda: routeprism.audit("sample", SourceOrder(peeking())),
        lambda: trace(peeking()),  # not by way of the registry
        lambda: trace(SourceOrder(peeking())),
    ):
        with pytest.raises(PeekError) as refused:
            use()
        assert str(refused.value) == (
            f"Peeking.build requires {expected}: construction receives the arriving records and "
            f"nothing else. Expected build(arrivals)."
        )


class ForgetsWhenAsked(Records):
    def expose(self, query: str) -> Exposure:
        self.held.pop("r1", None)
        return Exposure(())


class CountsQuestions(Records):
    def state(self) -> JsonValue:
        return {"held": sorted(self.held), "asked": self.asked}


class LearnsTheLastQuestion(Records):
    def __init__(self, arrivals: Sequence[Record] = ()) -> None:
        super().__init__(arrivals)
        self.log: list[JsonValue] = []

    def state(self) -> JsonValue:
        return self.log  # the very list that changes

    def expose(self, query: str) -> Exposure:
        self.log.append(query)
        return Exposure(())


@pytest.mark.parametrize("memory", [ForgetsWhenAsked, CountsQuestions, LearnsTheLastQuestion])
def test_a_memory_that_changes_when_exposed_is_refused(memory: type[Records]) -> None:
    for policy in (policy_of(memory), as_policy(memory)):
        with pytest.raises(PeekError) as refused:
            trace(policy)
        assert str(refused.value) == (
            f"{policy.name}: the memory of user 'u' changed while it was exposed. "
            f"Expected expose(query) to change neither retained() nor state()"
        )


def test_one_that_only_counts_for_itself_is_not() -> None:
    forward, replay = trace(policy_of(Records))
    assert forward.signature == replay.signature
    assert forward.retained == {"r0", "r1", "r2"}


def test_an_expose_that_wants_options_is_refused() -> None:
    class WantsOptions(Records):
        def expose(self, query: str, options: Sequence[str]) -> Exposure:  # type: ignore[override]
            return Exposure(())

    with pytest.raises(PeekError) as refused:
        trace(as_policy(WantsOptions))
    assert str(refused.value).startswith("WantsOptions.expose(")
    assert str(refused.value).endswith(
        "exposure receives the question's text and nothing else. Expected expose(query)."
    )


def shows(*ids: str) -> type[Records]:
    class Shows(Records):
        def expose(self, query: str) -> Exposure:
            return Exposure((Block("record", "words", frozenset(ids)),))

    return Shows


def test_showing_what_is_not_retained_is_refused() -> None:
    class Drops(shows("r0", "r1")):  # type: ignore[misc]
        def retained(self) -> frozenset[str]:
            return frozenset({"r0"})

    with pytest.raises(ContractError) as refused:
        trace(policy_of(Drops))
    assert str(refused.value) == "builds exposes 'r1' to question 'q1' without retaining it"


def test_showing_what_never_arrived_is_refused() -> None:
    with pytest.raises(ContractError) as refused:
        trace(policy_of(shows("r0", "r9")))
    assert str(refused.value) == "builds exposes 'r9' to question 'q1' without retaining it"


def test_retaining_what_never_arrived_is_refused() -> None:
    class Invents(Records):
        def retained(self) -> frozenset[str]:
            return frozenset({*self.held, "r9"})

    with pytest.raises(ContractError) as refused:
        trace(policy_of(Invents))
    assert str(refused.value) == "builds retains 'r9', which user 'u' does not have"


# --- what reaches a memory -------------------------------------------------------------------


class Spy:
    """Keeps a list of all that it is handed, and behaves like recent:k=3."""

    name = "spy"

    def __init__(self) -> None:
        self.arrived: list[object] = []
        self.asked: list[object] = []

    def build(self, *arguments: Any, **more: Any) -> Memory:
        assert more == {}
        (arrivals,) = arguments
        self.arrived.extend(arrivals)
        inner, request = Recent(3).build(arrivals), self.asked

        class Listens:
            def retained(self) -> frozenset[str]:
                return inner.retained()

            def state(self) -> JsonValue:
                return inner.state()

            def expose(self, *arguments: Any, **more: Any) -> Exposure:
                request.append((arguments, more))
                return inner.expose(*arguments, **more)

        return Listens()


def texts(requests: Iterable[object]) -> list[str]:
    """Take the texts out of what `expose` was called with; there is to be nothing else."""
    values = []
    for arguments, more in requests:  # type: ignore[misc]
        assert more == {}
        (query,) = arguments
        assert type(query) is str
        values.append(query)
    return values


def test_a_memory_is_handed_records_and_the_text_of_questions() -> None:
    spy = Spy()
    trace(spy)
    assert spy.arrived == [*POOL.records, *reversed(POOL.records)]
    assert texts(spy.asked) == ["Which words?", "Which number?"] * 2
    assert "secret" not in repr(spy.arrived) + repr(spy.asked)


def test_records_carry_no_label_of_time() -> None:
    assert {field.name for field in dataclasses.fields(Record)} == {
        *("id", "position", "text", "timestamp", "spoken", "_derived")
    }


def test_a_policy_that_recalls_traces_is_handed_no_label() -> None:
    handed: list[Case] = []

    class Recalls:
        name = "recalls"

        def build(self, arrivals: Sequence[Record]) -> Memory:
            raise AssertionError("never called")

        def recall(self, case: Case, order: Sequence[int]) -> Memory:
            handed.append(case)
            return Records([case.pool.records[position] for position in order])

    trace(Recalls())
    plain = (Question("q1", "u", "Which words?"), Question("q2", "u", "Which number?"))
    assert handed == [Case(POOL, plain)] * 2
    assert "secret" not in repr(handed)


def test_labels_of_time_in_own_data_do_not_reach_a_memory(
    own_data: Callable[..., Path],
) -> None:
    records = [
        {"user": "u", "id": "r1", "text": "Elm Street.", "timestamp": "2024-03-01"},
        {"user": "u", "id": "r2", "text": "Oak Street.", "supersedes": ["r1"]},
    ]
    question = {"user": "u", "id": "q1", "text": "Which street?", "support": ["r2"]}
    question |= {"options": ["Elm", "Oak"], "gold": "Oak", "outdated": ["Elm"]}
    (case,) = load_benchmark(str(own_data(records, [question]))).cases
    assert case.questions[0].stale == {"benchmark": frozenset({"r1"})}
    spy = Spy()
    trace_case(case, [spy], [parse_schedule("event-time")])
    assert spy.arrived == [  # event-time is the source order here, so it is built once
        Record("r1", 0, "Elm Street.", "2024-03-01"),
        Record("r2", 1, "Oak Street."),
    ]
    assert texts(spy.asked) == ["Which street?"]


@pytest.mark.realdata
def test_no_option_of_personamem_reaches_a_memory(data: Path) -> None:
    benchmark = load_benchmark("personamem", data)
    queries = json.loads(gzip.decompress((data / "personamem-32k/queries.json.gz").read_bytes()))
    by_id = {query["id"]: query for query in queries}
    spy = Spy()
    for case in benchmark.cases:
        before = len(spy.asked)
        trace_case(case, [spy], [parse_schedule("replay")])
        requests = texts(spy.asked[before:])
        # The forward route asks every question, then the replay route does.
        for question, query in zip(case.questions * 2, requests, strict=True):
            content = by_id[question.id]
            assert query == content["meta"]["retrieval_query"]
            assert all(option in content["query"] for option in question.options)  # so it could
            assert not any(option in query for option in question.options)
            assert not re.search(r"\([a-d]\)", query)
    assert len(spy.asked) == 2 * 589
    assert len(spy.arrived) == 2 * 195
    assert {type(record) for record in spy.arrived} == {Record}


def test_a_memory_of_a_policy_that_wants_options_is_refused() -> None:
    class Curious:
        def retained(self):
            return frozenset()

        def state(self):
            return None

        def expose(self, query, options):
            raise AssertionError("never called")

    class Policy:
        name = "curious"

        def build(self, arrivals):
            return Curious()

    with pytest.raises(PeekError, match=r"curious\.expose\(query, options\)"):
        routeprism.audit("sample", Policy(), resamples=100)
