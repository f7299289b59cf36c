"""Orders that share their beginnings: how many adds they take, and that results are equal."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar

import pytest

from routeprism import explore_orders
from routeprism.errors import ContractError, LimitError, RouteError, SpecError
from routeprism.landscape import (
    ArrivalTrie,
    can_share,
    check_restoration,
    explore,
    explore_trie,
    plan_trie,
)
from routeprism.models import Allowance
from routeprism.orders import parse_arrival
from routeprism.policies import Block, Exposure, as_policy, fold, record_block
from routeprism.records import Pool, Record


class Scripted:
    """A scripted model memory: each add asks once, and the reply depends on what is kept."""

    calls: ClassVar[int] = 0
    calls_per_add: ClassVar[int] = 1

    def __init__(self) -> None:
        self.notes: list[str] = []

    def add(self, record: Record) -> None:
        type(self).calls += 1
        self.notes.append(record.id)
        if len(self.notes) > 2:  # the reply: drop the second oldest note
            del self.notes[1]

    def retained(self) -> frozenset[str]:
        return frozenset(self.notes)

    def expose(self, query: str) -> list[str]:
        return list(self.notes)

    def state(self) -> list[str]:
        return list(self.notes)

    def snapshot(self) -> dict[str, Any]:
        return {"notes": self.notes}

    def revive(self, snapshot: dict[str, Any]) -> None:
        self.notes = list(snapshot["notes"])


class WholeHistory(Scripted):
    """No two orders leave the same state, so nothing can be merged."""

    def __init__(self) -> None:
        super().__init__()
        self.history: list[str] = []

    def add(self, record: Record) -> None:
        super().add(record)
        self.history.append(record.id)

    def snapshot(self) -> dict[str, Any]:
        return {"notes": self.notes, "history": self.history}

    def revive(self, snapshot: dict[str, Any]) -> None:
        super().revive(snapshot)
        self.history = list(snapshot["history"])


class Facts(Scripted):
    """Keeps the newest record of each subject; a subject is the first word of a text."""

    def __init__(self) -> None:
        super().__init__()
        self.facts: dict[str, str] = {}

    def add(self, record: Record) -> None:
        type(self).calls += 1
        self.facts[record.text.split()[0]] = record.id

    def retained(self) -> frozenset[str]:
        return frozenset(self.facts.values())

    def state(self) -> Any:
        return sorted(self.facts.items())

    def canonical(self) -> Any:
        return sorted(self.facts.items())

    def snapshot(self) -> dict[str, Any]:
        return dict(self.facts)

    def revive(self, snapshot: dict[str, Any]) -> None:
        self.facts = dict(snapshot)


class Declared(WholeHistory):
    """Declares that records 0, 1 and 2 commute with each other."""

    @staticmethod
    def commutes(first: Record, second: Record) -> bool:
        return first.position < 3 and second.position < 3


class Forgetful(WholeHistory):
    """Its snapshot omits the notes."""

    def snapshot(self) -> dict[str, Any]:
        return {"notes": [], "history": self.history}


class Hidden(Scripted):
    """Its snapshot omits a counter that matters only later."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0

    def add(self, record: Record) -> None:
        type(self).calls += 1
        self.arrived += 1
        if self.arrived % 2:
            self.notes.append(record.id)


class Rotating(Scripted):
    """Its snapshot omits a counter, whose effect is not visible after five records."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0

    def add(self, record: Record) -> None:
        self.arrived += 1
        if self.arrived != 3:
            super().add(record)


class Locked(Scripted):
    """Has no snapshot, and a lock that cannot be copied."""

    snapshot = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.lock = Lock()


class Copied(WholeHistory):
    """Has no snapshot, but can be copied."""

    snapshot = None  # type: ignore[assignment]


SUBJECTS = ("tea", "city", "pet", "job", "job")


def pool_of(size: int) -> Pool:
    texts = [f"{SUBJECTS[at % 5]} value {at}" for at in range(size)]
    return Pool("ann", tuple(Record(f"r{at}", at, text) for at, text in enumerate(texts)))


def grow(kind: type[Scripted], size: int = 5, arrival: str = "uniform", **limits: Any) -> Any:
    kind.calls = 0
    pool = pool_of(size)
    arrivals = parse_arrival(arrival).on(pool)
    plan = plan_trie(arrivals, **{"drawn_orders": 1_000, **limits})
    trie = ArrivalTrie(as_policy(kind), pool)
    return explore_trie(trie, arrivals, plan), plan


def test_every_order_of_five_takes_the_325_adds_of_the_trie() -> None:
    result, plan = grow(WholeHistory)
    # 5 + 5·4 + 5·4·3 + 5·4·3·2 + 5! beginnings, instead of 5 adds for each of 120 orders.
    assert (WholeHistory.calls, plan.adds, plan.separate) == (325, 325, 600)
    assert (result.building.adds, result.building.covered, result.method) == (325, 1.0, "shared")
    WholeHistory.calls = 0
    alone = explore(as_policy(WholeHistory), pool_of(5), method="replayed")
    assert WholeHistory.calls >= 600
    for name in ("retained", "forward", "reverse", "orders", "changed"):
        assert getattr(result, name) == getattr(alone, name)
    assert result.survival() == alone.survival()


def test_commuting_records_take_less_than_half() -> None:
    result, plan = grow(Facts)
    # Three subjects of their own, and two records of one: 8 subsets, times 5 beginnings of those.
    assert plan.adds == 325
    assert Facts.calls == result.building.adds == 92
    alone = explore(as_policy(Facts), pool_of(5), method="replayed")
    assert (result.retained, result.changed) == (alone.retained, alone.changed)


def test_declared_commutation_builds_each_class_of_orders_once() -> None:
    result, _ = grow(Declared)
    # Classes of beginnings of length 1 to 5, where runs of records 0, 1 and 2 have no order.
    assert Declared.calls == 5 + 17 + 43 + 70 + 54
    assert result.orders == 120


def test_equal_snapshots_are_merged() -> None:
    result, _ = grow(Scripted)
    alone = explore(as_policy(Scripted), pool_of(5), method="replayed")
    assert Scripted.calls > 0
    assert result.building.merges > 0
    assert result.building.adds < 325
    assert result.retained == alone.retained


def test_drawn_orders_share_at_least_half_of_their_adds() -> None:
    result, plan = grow(WholeHistory, 12, "jitter:w=2")
    assert (len(plan.orders), plan.complete, result.method) == (1_000, False, "sampled")
    assert WholeHistory.calls == plan.adds
    assert plan.adds <= plan.separate / 2
    arrivals = parse_arrival("jitter:w=2").on(pool_of(12))
    assert plan.covered == len(set(plan.orders)) / (arrivals.count() or 0)
    assert result.changed.lower is not None


@pytest.mark.parametrize("budget", [20, 100, 324])
def test_a_budget_takes_as_many_drawn_orders_as_fit(budget: int) -> None:
    result, plan = grow(WholeHistory, budget=budget)
    assert not plan.complete
    assert WholeHistory.calls == plan.adds <= budget
    assert result.orders == len(plan.orders) > 0
    more = grow(WholeHistory, budget=325)[1]
    assert more.complete


def test_a_budget_for_no_order_is_refused() -> None:
    with pytest.raises(SpecError, match="is too small: source order, reverse order"):
        grow(WholeHistory, budget=9)


def test_a_snapshot_that_omits_something_is_detected() -> None:
    with pytest.raises(ContractError, match="Forgetful does not restore faithfully"):
        grow(Forgetful)
    for memory, size in ((Hidden, 5), (Rotating, 3)):
        trie = ArrivalTrie(as_policy(memory), pool_of(size))
        with pytest.raises(ContractError, match=f"{memory.__name__} does not restore faithfully"):
            check_restoration(trie, [tuple(range(size))], ())
    orders = [tuple(range(5)), (4, 3, 2, 1, 0)]
    check_restoration(ArrivalTrie(as_policy(WholeHistory), pool_of(5)), orders, ("Which job?",))


class LateComers(Scripted):
    """Keeps less once two records came late, which its snapshot omits: source order has none."""

    def __init__(self) -> None:
        super().__init__()
        self.latest, self.late = -1, 0

    def add(self, record: Record) -> None:
        self.late += record.position < self.latest
        self.latest = max(self.latest, record.position)
        super().add(record)
        if self.late > 1:
            del self.notes[:-1]

    def snapshot(self) -> dict[str, Any]:
        return {"notes": self.notes, "latest": self.latest}

    def revive(self, snapshot: dict[str, Any]) -> None:
        super().revive(snapshot)
        self.latest = snapshot["latest"]


class Whispering(LateComers):
    """Retains everything faithfully, and shows questions what its snapshot omits."""

    def add(self, record: Record) -> None:
        self.late += record.position < self.latest
        self.latest = max(self.latest, record.position)
        Scripted.add(self, record)

    def expose(self, query: str) -> list[str]:
        return self.notes if self.late < 2 else self.notes[:1]


@dataclass(frozen=True)
class WrongKey:
    """Keeps the last two records; its key forgets their order, on which the future depends."""

    name: str = "wrong-key"
    calls_per_add: ClassVar[int] = 1

    def start(self) -> tuple[Record, ...]:
        return ()

    def step(self, state: tuple[Record, ...], record: Record) -> tuple[Record, ...]:
        return (*state[-1:], record)

    def finish(self, state: tuple[Record, ...]) -> Any:
        return as_policy(Recorded).build(state)

    def key(self, state: tuple[Record, ...]) -> Any:
        return frozenset(record.id for record in state)

    def build(self, arrivals: Sequence[Record]) -> Any:
        return fold(self, arrivals)


class Recorded(Scripted):
    """Keeps what it is given."""

    def add(self, record: Record) -> None:
        self.notes.append(record.id)


@pytest.mark.parametrize("memory", [LateComers, Whispering, WrongKey()])
def test_what_is_unfaithful_outside_of_source_order_is_refused(benchmark: Any, memory: Any) -> None:
    """Each passes in source order, and has wrong memories in most orders that are shared."""
    trie = ArrivalTrie(as_policy(memory), pool_of(5))
    check_restoration(trie, [tuple(range(5))], ("Which job?",))
    with pytest.raises(ContractError, match=r"faithfully: in the order \d-.*\(\d of 4 orders of"):
        explore_orders(benchmark, memory)


class Drawing(Scripted):
    """Differs from build to build, and does not declare it."""

    builds: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        Drawing.builds += 1
        self.number = self.builds

    def expose(self, query: str) -> list[Any]:
        return [Block("title", f"build {self.number}", frozenset())]


def test_chance_is_not_mistaken_for_an_unfaithful_snapshot(benchmark: Any) -> None:
    with pytest.raises(ContractError, match="declare deterministic = False"):
        explore_orders(benchmark, Drawing)


def test_checked_orders_are_priced_and_reported(benchmark: Any) -> None:
    """Source order and three drawn orders of each of two pools with five records."""
    plan = explore_orders(benchmark, WholeHistory, dry_run=True)
    (cost,) = plan.costs.values()
    assert cost.calls == 2 * (325 + 4 * 5)
    assert "40 of them build 8 orders of 2 pools in one go" in str(cost.note)
    assert "adds (1,200 if each order is built by itself)" in str(cost.note)
    WholeHistory.calls = 0
    result = explore_orders(benchmark, WholeHistory)
    assert WholeHistory.calls == cost.calls
    (note,) = [note for note in result.notes if "in one go" in note]
    assert "8 orders of 2 pools were also built in one go" in note
    # Six drawn orders agree with a probability of 5% if 39% of the orders are wrong: 0.61^6 = 0.05.
    assert "in up to 39% of them" in note
    replayed = explore_orders(benchmark, WholeHistory, method="replayed")
    assert not any("in one go" in note for note in replayed.notes)


def test_a_limit_that_the_checks_alone_exceed_is_refused_with_their_number(benchmark: Any) -> None:
    """Source order and one drawn order of each of two pools with five records take 20 adds."""
    with pytest.raises(SpecError, match=r"a budget of 0 adds .* the limit, 20 calls build orders"):
        explore_orders(benchmark, WholeHistory, max_calls=15)


def test_objects_are_copied_or_built_from_the_start() -> None:
    assert can_share(as_policy(Copied))
    copied, _ = grow(Copied)
    assert Copied.calls == 325
    assert copied.building.shared == "copies of objects"
    assert not can_share(as_policy(Locked))
    locked, plan = grow(Locked, shared=False)
    assert Locked.calls == plan.adds == 600
    assert locked.building.shared == ""
    assert "each order was built from the start" in locked.note
    whole = grow(Scripted)[0]
    assert locked.retained == whole.retained
    assert copy.copy(copied.retained) == grow(WholeHistory)[0].retained


@pytest.fixture
def benchmark(tmp_path: Path) -> Any:
    from routeprism import load_benchmark

    lines = []
    for user in ("ann", "ben"):
        for record in pool_of(5).records:
            lines.append({"user": user, "id": f"{user}-{record.id}", "text": record.text})
    (tmp_path / "records.jsonl").write_text("\n".join(map(json.dumps, lines)))
    questions = [
        {"user": user, "id": f"q-{user}", "text": "Which job?", "support": [f"{user}-r4"]}
        for user in ("ann", "ben")
    ]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, questions)))
    return load_benchmark(str(tmp_path))


def test_the_command_gives_the_same_tables(benchmark: Any) -> None:
    WholeHistory.calls = 0
    shared = explore_orders(benchmark, WholeHistory)
    # Two pools, and four orders of each that are built in one go.
    assert WholeHistory.calls == 2 * (325 + 4 * 5)
    alone = explore_orders(benchmark, WholeHistory, method="replayed")
    rows = [row for row in shared.rows if row.quantity != "orders_covered"]
    assert rows == list(alone.rows)
    assert shared.value("orders_covered").estimate == 1.0
    assert any("650 adds built every order of a pool" in note for note in shared.notes)


def test_the_limit_on_calls_chooses_the_plan_and_is_kept(benchmark: Any) -> None:
    WholeHistory.calls = 0
    exploration = explore_orders(benchmark, WholeHistory, max_calls=300)
    assert 250 < WholeHistory.calls <= 300
    assert 0 < exploration.value("orders_covered").estimate < 1
    costs = explore_orders(benchmark, WholeHistory, dry_run=True).costs
    assert [cost.calls for cost in costs.values()] == [690]
    WholeHistory.calls = 0
    with pytest.raises((SpecError, LimitError)):
        explore_orders(benchmark, WholeHistory, max_calls=10)
    assert WholeHistory.calls == 0


def test_worst_orders_and_reorderings_take_no_further_add(benchmark: Any) -> None:
    WholeHistory.calls = 0
    exploration = explore_orders(benchmark, WholeHistory, worst="support", shrink=True)
    assert WholeHistory.calls == 2 * (325 + 4 * 5)
    alone = explore_orders(benchmark, WholeHistory, method="replayed", worst="support", shrink=True)

    def orders(result: Any, name: str) -> list[Any]:
        return [f.value["inversions"] for f in result.findings if f.name == name]

    for name in ("worst_order", "smallest_reordering"):
        assert orders(exploration, name) == orders(alone, name)
        assert orders(exploration, name)
    assert replace(exploration, findings=()).rows == exploration.rows


def test_slow_memories_report_the_records_that_are_left(benchmark: Any) -> None:
    from routeprism.experiments import AddProgress
    from routeprism.experiments._order_sharing import plan_sharing

    policy, cases = as_policy(WholeHistory), benchmark.cases
    plans = plan_sharing(
        [policy], cases, [parse_arrival("uniform")], method=None, drawn_orders=1_000, allowance=None
    )
    reports: list[tuple[str, int, int]] = []
    adding = AddProgress(
        lambda name, progress: reports.append((name, *astuple(progress)[:2])),
        list(plans.count_adds().values()),
        1,
        patience=0.0,
    )
    watched = replace(plans, adding=adding)
    trie = watched.open_trie(policy, cases[0].pool)
    trie.follow((0, 1, 2))
    # Two pools of 325 adds, and four orders of each that are built in one go.
    assert reports == [("records added", done, 690) for done in (1, 2, 3)]


class Breaking(WholeHistory):
    """Does not restore faithfully once record 3 came first, which source order does not show."""

    def snapshot(self) -> dict[str, Any]:
        return {"notes": [] if self.history[:1] == ["r3"] else self.notes, "history": self.history}


def test_a_refusal_in_one_order_is_not_counted_as_an_error_of_the_memory() -> None:
    check_restoration(ArrivalTrie(as_policy(Breaking), pool_of(5)), [tuple(range(5))], ())
    with pytest.raises(ContractError, match="Breaking does not restore faithfully"):
        grow(Breaking)


def test_a_limit_that_is_reached_is_not_counted_as_an_error_of_the_memory() -> None:
    pool, allowance = pool_of(5), Allowance(max_calls=100)
    arrivals = parse_arrival("uniform").on(pool)
    trie = ArrivalTrie(as_policy(WholeHistory), pool, count=lambda: allowance.count(1))
    with pytest.raises(LimitError, match="limit of 100 calls"):
        explore_trie(trie, arrivals, plan_trie(arrivals, drawn_orders=1_000))


class Fractional(WholeHistory):
    calls_per_add = 0.5  # type: ignore[assignment]


def test_a_fraction_of_a_call_for_each_add_is_counted_as_planned(benchmark: Any) -> None:
    # 690 adds take 345 calls: the limit that a dry run reports is enough.
    (cost,) = explore_orders(benchmark, Fractional, dry_run=True).costs.values()
    assert cost.calls == 345
    exploration = explore_orders(benchmark, Fractional, max_calls=345)
    assert exploration.value("orders_covered").estimate == 1.0
    less = explore_orders(benchmark, Fractional, max_calls=344)
    assert less.value("orders_covered").estimate < 1.0


class Steps:
    """An incremental policy that makes calls."""

    name = "steps"
    calls = 0
    calls_per_add = 1

    def build(self, arrivals: Sequence[Record]) -> RecordList:
        return fold(self, arrivals)

    def start(self) -> tuple[Record, ...]:
        return ()

    def step(self, state: tuple[Record, ...], record: Record) -> tuple[Record, ...]:
        type(self).calls += 1
        return (*state, record)

    def key(self, state: tuple[Record, ...]) -> tuple[str, ...]:
        return tuple(record.id for record in state)

    def finish(self, state: tuple[Record, ...]) -> RecordList:
        return RecordList(state[-2:])


@dataclass(frozen=True)
class RecordList:
    """A memory of whole records."""

    records: tuple[Record, ...]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def state(self) -> list[str]:
        return self.retained()

    def expose(self, query: str) -> Exposure:
        return Exposure(tuple(record_block(record) for record in self.records))


def test_states_of_a_policy_are_shared_under_a_limit_as_well(benchmark: Any) -> None:
    Steps.calls = 0
    exploration = explore_orders(benchmark, Steps(), max_calls=690)
    assert Steps.calls == 690
    assert exploration.value("orders_covered").estimate == 1.0


class AsyncCopies:
    """An `async` memory without a snapshot."""

    calls: ClassVar[int] = 0
    calls_per_add: ClassVar[int] = 1

    def __init__(self) -> None:
        self.history: list[str] = []

    async def add(self, record: Record) -> None:
        type(self).calls += 1
        self.history.append(record.id)

    async def retained(self) -> list[str]:
        return self.history[:1] + self.history[1:][-1:]

    async def expose(self, query: str) -> list[str]:
        return self.history


class AsyncSnapshots(AsyncCopies):
    """An `async` memory that restores itself, and returns itself."""

    async def snapshot(self) -> list[str]:
        return self.history

    async def revive(self, snapshot: list[str]) -> AsyncSnapshots:
        self.history = list(snapshot)
        return self


@pytest.mark.parametrize("kind", [AsyncCopies, AsyncSnapshots])
def test_orders_of_asynchronous_memories_are_shared(
    benchmark: Any, kind: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    kind.calls = 0
    shared = explore_orders(benchmark, kind)
    assert kind.calls == 690
    alone = explore_orders(benchmark, kind, method="replayed")
    assert [r for r in shared.rows if r.quantity != "orders_covered"] == list(alone.rows)
    assert capfd.readouterr().err == ""


class LockedFailing(Locked):
    """Fails in every order in which record 2 arrives directly after record 4."""

    def add(self, record: Record) -> None:
        if record.position == 2 and self.notes and self.notes[-1].endswith("r4"):
            raise RuntimeError("no connection")
        super().add(record)


def test_orders_that_fail_are_left_out_if_nothing_can_be_shared(benchmark: Any) -> None:
    exploration = explore_orders(benchmark, LockedFailing)
    # In 4! of 5! orders record 2 comes directly after record 4.
    assert exploration.value("order_failed").estimate == pytest.approx(24 / 120)
    (methods,) = {f.value["method"] for f in exploration.findings if f.name == "order_distribution"}
    assert methods == "replayed"


class LockedOutside(Locked):
    """A memory system outside fails in the orders that begin with record 3."""

    def add(self, record: Record) -> None:
        if record.position == 3 and not self.notes:
            raise RouteError("the service did not answer")
        super().add(record)


@pytest.mark.parametrize(("options", "missing"), [({}, 2 * 24), ({"orders": 20}, 6)])
def test_orders_that_a_system_outside_fails_to_build_are_missing(
    benchmark: Any, options: dict[str, Any], missing: int
) -> None:
    exploration = explore_orders(benchmark, LockedOutside, **options)
    # Of all orders a fifth begin with record 3; of those drawn for both users, six do.
    assert exploration.shortfall.routes == missing
    share = missing / (2 * options.get("orders", 120))
    assert exploration.value("order_failed").estimate == pytest.approx(share)


def test_memories_that_cannot_be_shared_are_built_once(benchmark: Any) -> None:
    Locked.calls = 0
    exploration = explore_orders(benchmark, Locked, shrink="exposed", worst="J")
    assert Locked.calls == 2 * 600
    assert {"worst_order", "smallest_reordering"} <= {f.name for f in exploration.findings}

    def last_note(memory: Any, question: Any) -> Any:
        return memory.state()[-1]

    Locked.calls = 0
    exploration = explore_orders(benchmark, Locked, shrink=last_note)
    assert Locked.calls == 2 * 600
    assert any("a function of your own reads memories" in note for note in exploration.notes)


def test_a_pilot_of_memories_that_cannot_be_shared_is_built_once(benchmark: Any) -> None:
    Locked.calls = 0
    exploration = explore_orders(benchmark, Locked, orders=20, allocate=True)
    (allocation,) = (f.value for f in exploration.findings if f.name == "order_allocation")
    assert Locked.calls == allocation["adds"]


def test_a_dry_run_makes_no_object(benchmark: Any) -> None:
    class Connecting(Copied):
        def __init__(self) -> None:
            raise AssertionError("a dry run makes no object of a memory class")

    (cost,) = explore_orders(benchmark, Connecting, dry_run=True).costs.values()
    assert cost.calls == 2 * 600  # only an object shows whether it can be copied
    more = "if its objects can be copied, which a dry run does not try, at most 690 adds"
    assert more in str(cost.note)


def test_a_dry_run_prices_what_copies_are_checked_with(benchmark: Any) -> None:
    """Source order, reverse and two draws share little, and are fewer adds than their checks."""
    (cost,) = explore_orders(benchmark, Copied, orders=2, dry_run=True).costs.values()
    Copied.calls = 0
    explore_orders(benchmark, Copied, orders=2)
    assert Copied.calls == cost.calls > 2 * 4 * 5


def test_a_copy_that_shares_a_list_is_refused_as_a_copy(benchmark: Any) -> None:
    class Sharing(Copied):
        def __deepcopy__(self, memo: Any) -> Sharing:
            copied = Sharing()
            copied.notes, copied.history = self.notes, list(self.history)
            return copied

    with pytest.raises(ContractError, match=r"one of the copies of objects differs at once"):
        explore_orders(benchmark, Sharing)
