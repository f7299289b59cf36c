"""Memories with `async` methods: awaited on one loop for each memory, wherever they are called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

import routeprism
from routeprism.errors import ContractError, OwnCodeError, PeekError
from routeprism.policies import Exposure, as_policy, record_block
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import Record
from routeprism.routes.conformance import check_adapter

from ..catalogue import mark_repeats

TEXTS = ["one two", "three four", "five six", "seven eight"]
J_RECENT = 0.15
"""J of `recent:k=3` on the sample under `replay`."""

closed: list[str] = []
opened: list[str] = []


class Newest:
    """Keeps the three newest records, and refuses to be awaited on a second loop."""

    offline = True

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.loop: Any = None
        opened.append(type(self).__name__)

    def check_loop(self) -> None:
        loop = asyncio.get_running_loop()
        assert self.loop in (None, loop)
        self.loop = loop

    async def add(self, record: Record) -> None:
        self.check_loop()
        await asyncio.sleep(0)
        self.records = [*self.records, record][-3:]

    async def retained(self) -> list[str]:
        self.check_loop()
        return [record.id for record in self.records]

    async def expose(self, query: str) -> Any:
        self.check_loop()
        return list(self.records)

    async def close(self) -> None:
        self.check_loop()
        closed.append(type(self).__name__)


class OnlyExpose:
    """Has one `async` method, which gives its items one after the other, and no `close`."""

    offline = True

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-3:]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    async def expose(self, query: str) -> Any:
        for record in self.records:
            yield record


class LeavesTask(Newest):
    """Starts a task that never ends by itself."""

    async def add(self, record: Record) -> None:
        await super().add(record)
        self.task = asyncio.create_task(asyncio.sleep(3600))


class Built(Newest):
    async def expose(self, query: str) -> Exposure:
        return Exposure(tuple(record_block(record) for record in self.records))

    async def state(self) -> list[str]:
        return [record.id for record in self.records]


class AwaitedBuild:
    name = "awaited-build"
    offline = True

    async def build(self, arrivals: Sequence[Record]) -> Built:
        memory = Built()
        for record in arrivals:
            await memory.add(record)
        return memory


class PlainBuild(AwaitedBuild):
    name = "plain-build"

    def build(self, arrivals: Sequence[Record]) -> Built:  # type: ignore[override]
        memory = Built()
        memory.records = list(arrivals)[-3:]
        return memory


@pytest.fixture(params=["outside", "inside a running loop"])
def call(request: pytest.FixtureRequest) -> Iterator[Callable[[Callable[[], Any]], Any]]:
    """Call a function, as a script does or as a notebook does."""

    def is_inside(function: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return function()

        return asyncio.run(run())

    yield is_inside if request.param != "outside" else lambda function: function()


def name_kinds(*kinds: type) -> list[Any]:
    """Audit the first memory in the fast tests, and all of them otherwise."""
    return mark_repeats(kinds, lambda kind: "memory", lambda kind: kind.__name__)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", name_kinds(Newest, OnlyExpose, LeavesTask, AwaitedBuild, PlainBuild)
)
@pytest.mark.filterwarnings("error")
def test_any_mix_of_async_methods_is_audited(kind: Any, call: Any) -> None:
    opened.clear()
    closed.clear()
    outcome = call(
        lambda: routeprism.audit("sample", kind, schedules=["replay"], rebuilds=0, resamples=100)
    )
    assert outcome.value("J").estimate == pytest.approx(J_RECENT)
    # 30 pools on two routes, and parts of routes that explain lost records
    assert closed == opened
    assert not closed if kind is OnlyExpose else len(closed) > 60


@pytest.mark.parametrize("kind", [Newest, OnlyExpose, AwaitedBuild, PlainBuild])
@pytest.mark.filterwarnings("error")
def test_the_pytest_assertion_awaits_too(kind: Any, call: Any) -> None:
    call(lambda: assert_order_stable(kind, [TEXTS[:3]], questions=["one?"]))
    with pytest.raises(AssertionError, match="is not order-stable"):
        call(lambda: assert_order_stable(kind, [TEXTS], questions=["one?"]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", name_kinds(Newest, OnlyExpose, AwaitedBuild, PlainBuild))
@pytest.mark.filterwarnings("error")
def test_the_conformance_checks_pass(kind: Any) -> None:
    assert [
        check.name for check in check_adapter(as_policy(kind)) if check.outcome == "failed"
    ] == []


class Forgotten(OnlyExpose):
    """Gives a coroutine from a plain method: nothing would ever be added."""

    def add(self, record: Record) -> Any:
        return asyncio.sleep(0)

    def expose(self, query: str) -> Any:
        return list(self.records)


@pytest.mark.filterwarnings("error")
def test_a_plain_method_that_gives_a_coroutine_is_refused() -> None:
    with pytest.raises(ContractError, match=r"Forgotten\.add gave an awaitable.*`async def add`"):
        routeprism.audit("sample", Forgotten, resamples=100)


class Peeking(Newest):
    async def expose(self, query: str, gold: str) -> Any:  # type: ignore[override]
        return []


def test_an_async_expose_that_wants_the_gold_answer_is_refused() -> None:
    with pytest.raises(PeekError, match="exposure receives the question's text and nothing else"):
        routeprism.audit("sample", Peeking, resamples=100)


class Raising(Newest):
    async def add(self, record: Record) -> None:
        raise ValueError("disk full")


def test_an_exception_is_reported_with_the_owners_frames_alone(call: Any) -> None:
    with pytest.raises(OwnCodeError, match=r"in add\(\), record 'u01-r0' raised ValueError") as got:
        call(lambda: routeprism.audit("sample", Raising, resamples=100))
    assert "asyncio" not in str(got.value)
    assert "concurrent" not in str(got.value)
