"""Anyone's own memory: ten lines are enough, and a broken contract is told how to keep it."""

from __future__ import annotations

import itertools
import sys
import types
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

import routeprism
from routeprism import Block, Exposure, Record
from routeprism.errors import ContractError, PeekError, SpecError
from routeprism.orders import parse_schedule
from routeprism.policies import Event, Memory, SourceOrder, as_policy, make_policy
from routeprism.policies.own import OwnMemory
from routeprism.policies.recent import Recent
from routeprism.records import Case, Pool, Question
from routeprism.routes import Route, trace_case

from ..doubles import Everything

POOL = Pool("u", tuple(Record(f"r{at}", at, f"[USER] Words number {at}.") for at in range(4)))
CASE = Case(POOL, (Question("q1", "u", "Which words?"), Question("q2", "u", "Which number?")))


class LastThree:
    """The class of the README: add, retained, expose."""

    def __init__(self) -> None:
        self.kept: list[Record] = []

    def add(self, record: Record) -> None:
        self.kept = [*self.kept, record][-3:]

    def retained(self) -> Iterable[Any]:
        return [record.id for record in self.kept]

    def expose(self, query: str) -> Any:
        return self.kept


def trace(policy: Any, *schedules: str) -> tuple[Route, ...]:
    return trace_case(CASE, [as_policy(policy)], [parse_schedule(s) for s in schedules])


def memory_of(show: Callable[[LastThree], Any], **methods: Any) -> type[LastThree]:
    """Make a class whose `expose` gives something else."""
    return type("Mine", (LastThree,), {"expose": lambda self, query: show(self), **methods})


# --- ten lines -------------------------------------------------------------------------------


@pytest.mark.slow
def test_ones_own_class_is_audited_like_recent_three() -> None:
    """It is the same memory as `recent:k=3` without a budget, so every number is the same."""
    result = routeprism.audit("sample", LastThree, resamples=100)
    same = routeprism.audit("sample", "recent:k=3", interface="all", resamples=100)
    schedules = ("replay", "jitter:w=2", "late-batch")
    quantities = ("J", "V_changed", "retained_changed", "context_length.route")
    # A class shows its records in order of arrival, the interface in source order.
    for schedule, quantity in [*itertools.product(schedules, quantities), ("replay", "C_changed")]:
        own = result.value(quantity, policy="LastThree", schedule=schedule)
        alternative = same.value(quantity, policy="recent:k=3", schedule=schedule)
        assert (own.estimate, own.lower, own.upper) == (
            alternative.estimate,
            alternative.lower,
            alternative.upper,
        )
    assert result.value("J", policy="LastThree", schedule="replay").estimate < 1
    assert {row.interface for row in result.rows.where(quantity="J", policy="LastThree")} == {"own"}


@pytest.mark.slow
def test_its_comparator_changes_nothing() -> None:
    result = routeprism.audit("sample", LastThree, comparators=True, resamples=100)
    comparator = "source-order(LastThree)"
    for schedule in ("replay", "jitter:w=2", "late-batch"):
        where = {"policy": comparator, "schedule": schedule}
        assert result.value("J", **where).estimate == 1.0
        assert result.value("C_changed_count", **where).estimate == 0


def test_every_build_has_a_memory_of_its_own() -> None:
    result: list[Everything] = []

    class Everything(LastThree):
        def __init__(self) -> None:
            super().__init__()
            result.append(self)

        def add(self, record: Record) -> None:
            self.kept = [*self.kept, record]

    trace(Everything, "replay")
    assert [[record.id for record in memory.kept] for memory in result] == [
        ["r0", "r1", "r2", "r3"],
        ["r3", "r2", "r1", "r0"],  # and nothing of the first
    ]


def test_a_function_may_make_the_memory() -> None:
    def small() -> LastThree:
        return LastThree()

    (forward,) = trace(small)
    assert (forward.policy, sorted(forward.retained)) == ("small", ["r1", "r2", "r3"])


def test_state_and_events_are_optional_and_used() -> None:
    class Telling(LastThree):
        def state(self) -> list[str]:
            return [record.id for record in self.kept]

        def events(self) -> list[Event]:
            return [Event("add", record.id, record.id, at) for at, record in enumerate(self.kept)]

    silent, telling = trace(LastThree)[0], trace(Telling)[0]
    assert (silent.signature, silent.events) == (None, ())
    assert telling.signature is not None
    assert telling.events[0] == Event("add", "r1", "r1", 0)
    assert trace(Telling, "replay")[1].signature != telling.signature


def test_an_attribute_called_state_is_no_method() -> None:
    class Stateful(LastThree):
        def __init__(self) -> None:
            super().__init__()
            self.state = {"open": True}
            self.events: list[str] = []

    assert trace(Stateful)[0].signature is None


# --- what expose may give --------------------------------------------------------------------

WHOLE = [
    Block("record", f"[session {at}]\nWords number {at}.", frozenset({f"r{at}"})) for at in (1, 2)
]
JOINED = Block("text", "Words twice.", frozenset({"r1", "r2"}))


@pytest.mark.parametrize(
    ("expose", "blocks"),
    [
        (lambda memory: memory.kept[:2], WHOLE),
        (lambda memory: ["r1", "r2"], WHOLE),
        (lambda memory: ("r1", "r2"), WHOLE),
        (lambda memory: (record for record in memory.kept[:2]), WHOLE),
        (lambda memory: [("Words twice.", ["r1", "r2"])], [JOINED]),
        (lambda memory: [("Words twice.", memory.kept[:2])], [JOINED]),
        (lambda memory: [("Once.", "r1")], [Block("text", "Once.", frozenset({"r1"}))]),
        (
            lambda memory: [("Once.", memory.kept[0])],
            [Block("text", "Once.", frozenset({"r1"}))],
        ),
        (lambda memory: [JOINED], [JOINED]),
        (lambda memory: Exposure((JOINED,)), [JOINED]),
        (lambda memory: [memory.kept[0], "r2", JOINED], [*WHOLE, JOINED]),
        (lambda memory: [], []),
    ],
    ids=[
        "records",
        "ids",
        "a tuple of ids",
        "a generator",
        "a text with ids",
        "a text with records",
        "a text with one id",
        "a text with one record",
        "blocks",
        "an exposure",
        "a mixture",
        "nothing",
    ],
)
def test_expose_may_give(expose: Callable[[LastThree], Any], blocks: list[Block]) -> None:
    (forward,) = trace(memory_of(expose))
    assert [list(exposure.blocks) for exposure in forward.exposures] == [blocks, blocks]
    assert forward.exposures[0].sources == frozenset().union(*(b.sources for b in blocks))


EXPECTED_ANY = (
    "Expected records, record ids, (text, ids) pairs or Blocks, so that every shown text names "
    "its records"
)
EXPECTED_ITEM = "Expected a record, the id of one that arrived, a (text, ids) pair or a Block"


@pytest.mark.parametrize(
    ("expose", "message"),
    [
        (lambda memory: "Words number 1.", f"Mine.expose gave str. {EXPECTED_ANY}"),
        (lambda memory: b"Words", f"Mine.expose gave bytes. {EXPECTED_ANY}"),
        (lambda memory: None, f"Mine.expose gave NoneType. {EXPECTED_ANY}"),
        (lambda memory: JOINED, f"Mine.expose gave Block. {EXPECTED_ANY}"),
        (lambda memory: ["Words."], f"Mine.expose gave 'Words.'. {EXPECTED_ITEM}"),
        (lambda memory: ["r9"], f"Mine.expose gave 'r9'. {EXPECTED_ITEM}"),
        (lambda memory: ("Words.", ["r1"]), f"Mine.expose gave 'Words.'. {EXPECTED_ITEM}"),
        (lambda memory: [("Words.", None)], f"Mine.expose gave ('Words.', None). {EXPECTED_ITEM}"),
        (lambda memory: [7], f"Mine.expose gave 7. {EXPECTED_ITEM}"),
    ],
    ids=[
        "text",
        "bytes",
        "nothing at all",
        "one block",
        "texts without ids",
        "an id that never arrived",
        "a pair outside a list",
        "a text without ids",
        "a number",
    ],
)
def test_expose_may_not_give(expose: Callable[[LastThree], Any], message: str) -> None:
    with pytest.raises(ContractError) as refused:
        trace(memory_of(expose))
    assert str(refused.value) == message


@pytest.mark.parametrize(("content", "kind"), [(None, "NoneType"), ("r1", "str"), (3, "int")])
def test_retained_gives_records_or_ids(content: object, kind: str) -> None:
    with pytest.raises(ContractError) as refused:
        trace(memory_of(lambda memory: [], retained=lambda self: content))
    assert str(refused.value) == (f"Mine.retained gave {kind}. Expected records or record ids")
    (right,) = trace(memory_of(lambda memory: [], retained=lambda self: iter(self.kept)))
    assert right.retained == {"r1", "r2", "r3"}


# --- what can be a policy --------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["add", "retained", "expose"])
def test_a_missing_method_is_named(missing: str) -> None:
    broken = type("Mine", (LastThree,), {missing: None})
    with pytest.raises(ContractError) as refused:
        trace(broken)
    assert str(refused.value).startswith(f"Mine has no method '{missing}': a memory needs add")


@pytest.mark.parametrize("item", [LastThree(), 5, None])
def test_each_build_needs_a_fresh_memory(item: object) -> None:
    with pytest.raises(ContractError, match=r"^Expected a class or a policy but got .*fresh"):
        routeprism.audit("sample", item)


def test_a_class_that_needs_arguments_is_told_how_to_give_them() -> None:
    class Sized(LastThree):
        def __init__(self, size: int) -> None:
            super().__init__()

    with pytest.raises(ContractError) as refused:
        as_policy(Sized)
    assert str(refused.value) == (
        "Sized needs arguments: each build makes a fresh memory and gives none. Give them "
        "defaults, or name them: package.module:Sized:key=value"
    )


class Window:
    """A policy that builds."""

    def build(self, arrivals: Sequence[Record]) -> Memory:
        return Recent(2).build(arrivals)


def test_a_policy_without_a_name_is_called_by_its_class() -> None:
    assert as_policy(Window).name == "Window"
    assert as_policy(Window()).name == "Window"
    assert as_policy(Window(), name="mine").name == "mine"
    assert trace(Window)[0].retained == {"r2", "r3"}


def test_a_policy_stays_itself() -> None:
    policy = Recent(2)
    assert as_policy(policy) is policy
    assert as_policy(Recent) == Recent(3)
    assert as_policy(lambda: policy) is policy
    assert isinstance(as_policy(LastThree), OwnMemory)


def test_a_build_that_does_not_take_the_arrivals_is_refused() -> None:
    class Deaf:
        def build(self) -> Memory:
            return Recent().build(())

    with pytest.raises(ContractError) as refused:
        as_policy(Deaf)
    assert str(refused.value) == "Deaf.build does not take the arrivals. Expected build(arrivals)."
    assert not isinstance(refused.value, PeekError)


def test_a_build_that_gives_no_memory_is_refused() -> None:
    class Empty:
        name = "empty"

        def build(self, arrivals: Sequence[Record]) -> Any:
            return [record.id for record in arrivals]

    with pytest.raises(ContractError, match=r"^empty\.build gave list\. Expected a memory with"):
        trace(Empty)


def test_a_state_that_is_no_json_is_refused() -> None:
    with pytest.raises(ContractError, match=r"state\(\) must give plain JSON values"):
        trace(memory_of(lambda memory: [], state=lambda self: {"kept": set()}))


# --- named in a spec -------------------------------------------------------------------------


class Configured(LastThree):
    """A memory with parameters: a declared one, one that only has a default, and a choice."""

    def __init__(self, size: int = 3, share=0.5, strict=False, label: str | None = None) -> None:  # type: ignore[no-untyped-def]
        super().__init__()
        self.settings = (size, share, strict, label)


@pytest.fixture
def spec(monkeypatch: pytest.MonkeyPatch) -> str:
    """Make this module importable under a name, as a user's own is."""
    module = types.ModuleType("own_memory_for_specs")
    module.Configured = Configured  # type: ignore[attr-defined]
    module.policy = Recent(2)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module.__name__


@pytest.mark.parametrize(
    ("values", "settings"),
    [
        ("", (3, 0.5, False, None)),
        (":size=5", (5, 0.5, False, None)),
        (":share=0.25,strict=true,label=x", (3, 0.25, True, "x")),
    ],
)
def test_parameters_have_their_declared_type_or_that_of_their_default(
    spec: str, values: str, settings: tuple[object, ...]
) -> None:
    policy = make_policy(f"{spec}:Configured{values}")
    assert isinstance(policy, OwnMemory)
    assert policy.name == f"{spec}:Configured{values}"
    assert policy.factory().settings == settings
    assert policy.factory() is not policy.factory()


@pytest.mark.slow
def test_the_same_spec_twice_is_one_policy(spec: str) -> None:
    result = routeprism.audit("sample", *[f"{spec}:Configured:size=2"] * 2, resamples=100)
    (row,) = result.rows.where(quantity="J", stratum="all", schedule="replay")
    assert row.policy == f"{spec}:Configured:size=2"


def test_an_object_takes_no_parameters(spec: str) -> None:
    assert make_policy(f"{spec}:policy") == Recent(2)
    with pytest.raises(SpecError) as refused:
        make_policy(f"{spec}:policy:k=3")
    assert str(refused.value) == f"'{spec}:policy' takes no parameters: it is not a class"


def test_any_spec_has_a_comparator(spec: str) -> None:
    policy = make_policy(f"source-order({spec}:Configured:size=2)")
    assert isinstance(policy, SourceOrder)
    assert policy.name == f"source-order({spec}:Configured:size=2)"


def test_chance_in_a_memory_is_refused() -> None:
    turns = itertools.count()

    class Dicey(Everything):
        def expose(self, query: str) -> list[Record]:
            return [self.records[next(turns) % len(self.records)]]

    with pytest.raises(ContractError, match="two builds from the same records in the same order"):
        routeprism.audit("sample", Dicey, resamples=100)


def test_what_objects_share_is_a_leak() -> None:
    class Shared:
        records: list[Record] = []  # noqa: RUF012

        def add(self, record: Record) -> None:
            self.records.append(record)

        def retained(self) -> list[str]:
            return [record.id for record in self.records]

        def expose(self, query: str) -> list[Record]:
            return self.records

    result = routeprism.audit("sample", Shared, resamples=100)
    (verdict,) = result.verdicts
    (promise,) = verdict.promises
    assert (verdict.level, promise.promise) == ("promise failed", "leaked")
    assert promise.witness.startswith(
        "the record 'u01-r0' of user 'u01' is retained for user 'u02'"
    )
    assert result.shortfall.routes == 60  # two routes of each user; none gives a number


def test_a_set_has_no_order_to_show() -> None:
    class Unordered:
        def __init__(self) -> None:
            self.ids: list[str] = []

        def add(self, record: Record) -> None:
            self.ids.append(record.id)

        def retained(self) -> list[str]:
            return self.ids

        def expose(self, query: str) -> set[str]:
            return set(self.ids)

    with pytest.raises(ContractError, match="gave a set, which has no order"):
        routeprism.audit("sample", Unordered, resamples=100)
