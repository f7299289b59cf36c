"""Batches, restarts, reloads and repeated imports, on built-in policies and on faulty memories."""

from __future__ import annotations

from typing import ClassVar

import pytest
from overlap_toys import Base, LostUpdate, make_records

import routeprism
from routeprism.errors import ContractError, InapplicableError, SpecError
from routeprism.orders import ONE_BY_ONE, PROCEDURES, name_reference, parse_arrival, parse_schedule
from routeprism.overlap import build_by_procedure
from routeprism.policies import make_policy
from routeprism.policies.own import as_policy, closing_memory
from routeprism.records import Case, Pool, Question
from routeprism.routes import pair_routes, trace_case

RECORDS = make_records(5)


def make_case() -> Case:
    question = Question(id="q", user="u", text="text 1", kind="")
    return Case(Pool("u", RECORDS), (question,))


def build(policy, schedule, records=RECORDS):
    schedule = parse_schedule(schedule)
    arrivals = [records[position] for position in schedule.order(len(records))]
    return build_by_procedure(policy, arrivals, schedule.procedure)


def trace(policy, *schedules):
    parsed_schedules = [parse_schedule(name) for name in schedules]
    return {route.schedule: route for route in trace_case(make_case(), [policy], parsed_schedules)}


@pytest.mark.parametrize(
    ("text", "name", "kind", "number"),
    [
        ("one-by-one", "forward", "one-by-one", 0),
        ("bulk", "bulk", "bulk", 0),
        ("bulk:size=3", "bulk:size=3", "bulk", 3),
        ("forward+twice", "twice", "twice", 0),
        ("restart", "restart", "restart", 1),
        ("restart:every=2", "restart:every=2", "restart", 2),
        ("replay+reload", "replay+reload", "reload", 0),
        ("replay+overlap:k=4", "replay+overlap:k=4", "overlap", 4),
        ("partial:before=0-2+1-2", "partial:before=0-2+1-2", "one-by-one", 0),
        ("partial:before=0-2+1-2+bulk", "partial:before=0-2+1-2+bulk", "bulk", 0),
        ("bulk vs restart", "bulk vs restart", "bulk", 0),
    ],
)
def test_a_schedule_is_an_order_and_a_procedure(text, name, kind, number) -> None:
    schedule = parse_schedule(text)
    assert (schedule.name, schedule.procedure.kind, schedule.procedure.number) == (
        name,
        kind,
        number,
    )
    assert parse_schedule(schedule.name) == schedule


def test_every_procedure_has_a_sentence() -> None:
    for name, sentence in PROCEDURES.items():
        assert sentence
        assert parse_schedule(name.replace("N", "2")).procedure.name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bulk:size=0", "1 or more but got size=0"),
        ("overlap:k=1", "2 or more but got k=1"),
        ("restart:size=2", "'restart' has 'every' but got 'size'"),
        ("twice:k=2", "'twice' has no parameter"),
        ("restart+overlap:k=2", "Expected one procedure"),
        ("bulkk", "bulk"),
    ],
)
def test_a_wrong_procedure_is_refused(text, message) -> None:
    with pytest.raises(SpecError, match=message):
        parse_schedule(text)


def test_an_arrival_model_has_no_procedure() -> None:
    with pytest.raises(SpecError, match="procedures and references are for schedules"):
        parse_arrival("replay+bulk")


def test_the_reference_is_part_of_the_name() -> None:
    pair = parse_schedule("replay+bulk").compare_with(parse_schedule("restart"))
    assert pair.name == "replay+bulk vs restart"
    assert name_reference(pair.name) == "restart"
    assert name_reference("replay") == "forward"
    assert pair.compare_with(parse_schedule("forward")) is pair


def test_a_pair_compares_with_its_reference() -> None:
    policy = make_policy("recent:k=2")
    routes = trace_case(make_case(), [policy], [parse_schedule("bulk vs replay")])
    (pair,) = pair_routes(routes)
    assert (pair.forward.schedule, pair.route.schedule) == ("replay", "bulk vs replay")
    assert pair.forward.retained == {"r1", "r0"}
    assert pair.route.retained == {"r3", "r4"}


# By hand, of five records r0 … r4. `raw` keeps all; `recent:k=2` keeps the last two that arrive.
# Both know a record that comes again only as one more arrival.
EXPECTED = {
    ("raw", "bulk"): ["r0", "r1", "r2", "r3", "r4"],
    ("raw", "restart"): ["r0", "r1", "r2", "r3", "r4"],
    ("raw", "reload"): ["r0", "r1", "r2", "r3", "r4"],
    ("raw", "twice"): ["r0", "r1", "r2", "r3", "r4"] * 2,
    ("recent:k=2", "bulk"): ["r3", "r4"],
    ("recent:k=2", "restart:every=2"): ["r3", "r4"],
    ("recent:k=2", "reload"): ["r3", "r4"],
    ("recent:k=2", "twice"): ["r3", "r4"],
    ("recent:k=2", "replay+restart"): ["r1", "r0"],
    ("recent:k=2", "replay+twice"): ["r1", "r0"],
}


@pytest.mark.parametrize(("policy", "schedule"), EXPECTED)
def test_built_in_policies_by_hand(policy, schedule) -> None:
    assert build(make_policy(policy), schedule).state() == EXPECTED[policy, schedule]


@pytest.mark.parametrize("schedule", ["bulk", "restart", "restart:every=3", "reload"])
@pytest.mark.parametrize("order", ["forward", "replay"])
def test_focal_is_the_same_after_a_restart_and_in_bulk(order, schedule) -> None:
    sample = routeprism.load_benchmark("sample")
    policy = make_policy("focal")
    for case in sample.cases[:5]:
        records = case.pool.records
        expected = build(policy, order, records)
        built = build(policy, f"{order}+{schedule}", records)
        assert built.retained() == expected.retained()
        assert built.state() == expected.state()


def test_focal_keeps_no_second_copy_of_a_record() -> None:
    # Two equal texts are one focal record: the later arrival replaces the earlier one.
    records = make_records(2, ("I moved to Lisbon in May.", "My sister plays the cello."))
    policy = make_policy("focal")
    assert (
        build(policy, "twice", records).retained() == build(policy, "forward", records).retained()
    )


class Plain(Base):
    def add(self, record) -> None:
        self.items = (*self.items, record.id)


@pytest.mark.parametrize("schedule", ["bulk", "restart", "reload", "overlap:k=2"])
def test_a_procedure_that_a_memory_cannot_perform_is_not_applicable(schedule) -> None:
    routes = trace(as_policy(Plain), schedule)
    assert not routes[schedule].applicable
    assert "cannot" in routes[schedule].failed
    assert routes["forward"].retained == {"r0", "r1", "r2", "r3", "r4"}
    for policy in ("http:url=http://127.0.0.1:9", "raw"):
        with pytest.raises(InapplicableError):
            build(make_policy(policy), "bulk:size=2")


class ForgetsOnRestart(Plain):
    def reopen(self):
        fresh = type(self)()
        fresh.items = self.items[-1:]
        return fresh


class Persistent(Plain):
    def reopen(self):
        fresh = type(self)()
        fresh.items = self.items
        return fresh

    def snapshot(self):
        return list(self.items)

    def revive(self, snapshot) -> None:
        self.items = tuple(snapshot)

    def add_many(self, records) -> None:
        self.items += tuple(record.id for record in records)


class DuplicatesOnImport(Plain):
    def expose(self, query):
        return [(" ".join(self.items), sorted(set(self.items)))]

    def state(self):
        return list(self.items)


class Deduplicates(Persistent):
    """Keeps a record of a length that it knows only if it arrives alone."""

    def add_many(self, records) -> None:
        lengths = {len(record.text): record.id for record in records}
        self.items += tuple(lengths.values())


def test_a_memory_that_forgets_on_restart_is_found() -> None:
    routes = trace(as_policy(ForgetsOnRestart), "restart", "restart:every=2")
    assert routes["forward"].retained == {"r0", "r1", "r2", "r3", "r4"}
    assert routes["restart"].retained == {"r4"}
    assert routes["restart:every=2"].retained == {"r3", "r4"}


def test_a_memory_that_duplicates_on_import_is_found() -> None:
    routes = trace(as_policy(DuplicatesOnImport), "twice")
    assert routes["twice"].signature != routes["forward"].signature
    assert routes["twice"].exposures[0].context_chars == 2 * (5 * 2 + 4) + 1


def test_a_bulk_path_that_deduplicates_differently_is_found() -> None:
    routes = trace(as_policy(Deduplicates), "bulk", "bulk:size=2")
    assert routes["bulk"].retained == {"r4"}
    assert routes["bulk:size=2"].retained == {"r1", "r3", "r4"}


@pytest.mark.parametrize(
    "schedule", ["bulk", "bulk:size=2", "restart", "restart:every=2", "reload"]
)
def test_a_memory_that_keeps_everything_is_the_same_under_every_procedure(schedule) -> None:
    routes = trace(as_policy(Persistent), schedule)
    assert routes[schedule].retained == routes["forward"].retained
    assert routes[schedule].exposures == routes["forward"].exposures


class WrongReopen(Plain):
    def reopen(self) -> None:
        """Give nothing back."""


class WrongSnapshot(Persistent):
    def snapshot(self):
        return {1, 2}


def test_a_broken_contract_is_reported() -> None:
    with pytest.raises(ContractError, match="Expected a memory on the same storage"):
        build(as_policy(WrongReopen), "restart")
    with pytest.raises(ContractError, match=r"snapshot\(\) must give plain JSON"):
        build(as_policy(WrongSnapshot), "reload")


class Asynchronous(Plain):
    """Every method is asynchronous."""

    closed: ClassVar[list[str]] = []

    async def add(self, record) -> None:
        self.items = (*self.items, record.id)

    async def add_many(self, records) -> None:
        for record in records:
            await self.add(record)

    async def retained(self):
        return list(self.items)

    async def expose(self, query):
        return list(self.items)

    async def reopen(self):
        fresh = type(self)()
        fresh.items = self.items
        return fresh

    async def close(self) -> None:
        self.closed.append("closed")


@pytest.mark.parametrize("schedule", ["forward", "bulk", "restart", "overlap:k=2"])
def test_asynchronous_methods_are_awaited(schedule) -> None:
    Asynchronous.closed.clear()
    with closing_memory(build(as_policy(Asynchronous), schedule)) as memory:
        assert memory.retained() == {"r0", "r1", "r2", "r3", "r4"}
        assert len(memory.expose("q").blocks) == 5
    assert Asynchronous.closed == ["closed"]


def test_an_overlapping_route_is_the_same_each_time() -> None:
    first, second = (trace(as_policy(LostUpdate), "overlap:k=5") for _ in range(2))
    assert first == second
    assert len(first["overlap:k=5"].retained) < 5


def test_one_by_one_is_forward() -> None:
    assert parse_schedule("replay+one-by-one") == parse_schedule("replay")
    assert parse_schedule("replay").procedure == ONE_BY_ONE
