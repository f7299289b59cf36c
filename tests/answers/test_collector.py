"""Collecting: order, concurrency, pace, resuming, interrupting, and the plan."""

from __future__ import annotations

import asyncio
import itertools
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from routeprism.answers import Cell, Progress, collect, dispatch_order, key_of, plan
from routeprism.errors import ModelError, SpecError
from routeprism.models import Ask, Reply, Usage

from .. import support_server
from . import collection_process
from .collection_process import FAULTS, OPTIONS, cell, opened

KEY = "sk-collector-0123456789abcdef"


@dataclass
class Fake:
    """Answers in this process; remembers what it was asked."""

    name: str = "fake"
    settings: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    embedded: bool = False
    concurrency: int = 4
    wait: float = 0.001
    together: int = 1
    """How many requests must be under way before the first of them is answered."""
    asked: list[Ask] = field(default_factory=list)
    failing: frozenset[str] = frozenset()
    under_way: int = 0
    peak: int = 0
    price_in: float | None = None
    price_out: float | None = None
    max_tokens: int | None = None

    async def answer(self, ask: Ask, /) -> Reply:
        self.asked.append(ask)
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        await asyncio.sleep(self.wait)
        for _ in range(10_000):
            if self.peak >= self.together:
                break
            await asyncio.sleep(0.001)
        self.under_way -= 1
        if ask.text in self.failing:
            raise ModelError(f"no answer to {ask.text}", attempts=("then it failed",))
        return Reply("abcd"[(len(ask.text) + ask.draw) % 4], Usage(10, 1, 0.5))


@dataclass
class Plain:
    """Answers by a plain method; says in which thread."""

    embedded: bool
    concurrency: int = 4
    name: str = "plain"
    threads: set[str] = field(default_factory=set)

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        return {}

    def answer(self, ask: Ask, /) -> Reply:
        self.threads.add(threading.current_thread().name)
        return Reply("b")


def test_everything_is_asked_once_and_kept(tmp_path: Path) -> None:
    model = Fake(together=4)
    cells = [cell(f"p{n}", draw=draw) for n in range(10) for draw in range(3)]
    reports: list[Progress] = []
    with opened(tmp_path / "run") as run:
        collected = collect(run, model, [*cells, *cells[:7]], progress=reports.append)
        assert (len(model.asked), collected.new_requests, model.peak) == (30, 30, 4)
        for item in cells:
            answer = collected.of(item)
            assert answer is not None
            assert answer.answer == "abcd"[(len(item.ask.text) + item.ask.draw) % 4]
        assert collected.cost == 15.0
        assert (reports[-1].done, reports[-1].total, reports[-1].failed) == (30, 30, 0)
        assert (reports[-1].cost, reports[-1].seconds_left) == (15.0, 0.0)
        repeated = collect(run, model, cells)
        assert (repeated.new_requests, len(model.asked)) == (0, 30)
        assert repeated.answers == {
            key_of(model, c.ask): collected.of(c) for c in dispatch_order(cells)
        }


def test_draws_and_batches_are_different_requests(tmp_path: Path) -> None:
    model = Fake()
    with opened(tmp_path / "run") as run:
        collect(run, model, [cell("same", draw=0), cell("same", draw=1)])
        collect(run, model, [cell("same", draw=0), cell("same", draw=1)], batch="second")
        assert len(model.asked) == 4
        # The second batch is another realisation for models that are seeded by the draw too.
        assert len({ask.draw for ask in model.asked}) == 4
        collected = collect(run, model, [cell("same")], batch="second")
        assert (collected.new_requests, collected.batch) == (0, "second")


def test_which_route_goes_first_alternates(tmp_path: Path) -> None:
    cells = [
        cell(f"{route} {n} {draw}", draw=draw, question=f"q{n}", route=route)
        for n in range(4)
        for route, draws in (("forward", (0, 1)), ("replay", (2, 3)))
        for draw in draws
    ]
    routes = [item.route[0] for item in dispatch_order(cells)]
    assert "".join(routes) == "frrfrffrfrrfrffr"
    model = Fake(concurrency=1)
    with opened(tmp_path / "run") as run:
        collected = collect(run, model, cells)
    ordered = sorted(cells, key=lambda item: collected.of(item).submission)  # type: ignore[union-attr]
    assert ordered == dispatch_order(cells)
    assert [ask.text for ask in model.asked] == [item.ask.text for item in ordered]


def test_four_conditions_take_turns() -> None:
    cells = [
        cell(f"{n}{route}", question=f"q{n}", route=route) for n in range(4) for route in "parx"
    ]
    routes = "".join(item.route for item in dispatch_order(cells))
    assert routes == "parxarxprxpaxpar"


def pair(question: str, series: str, forward: str, route: str) -> list[Cell]:
    group = f"{question} {series}"
    return [
        Cell(Ask(text, "", text, OPTIONS, draw), question, name, group, series)
        for name, text, draw in (("forward", forward, 0), ("replay", route, 1))
    ]


def begins(cells: Sequence[Cell], pools: dict[str, int] | None = None) -> dict[str, str]:
    """Give for each comparison the route that is asked first."""
    order: dict[str, str] = {}
    requests: dict[tuple[str, int], None] = {}
    for item in dispatch_order(cells, pools):
        requests.setdefault((item.ask.text, item.ask.draw))
    places = {key: at for at, key in enumerate(requests)}
    for item in sorted(cells, key=lambda item: places[item.ask.text, item.ask.draw]):
        order.setdefault(item.group, item.route)
    return order


def test_each_route_begins_in_half_of_every_series() -> None:
    # The fillers of a question follow each other: alternating over all comparisons would let one
    # filler begin with forward every time.
    cells = [
        item
        for n in range(7)
        for series in ("replay A", "replay B", "half-swap A", "half-swap B")
        for item in pair(f"q{n}", series, f"{n}{series}f", f"{n}{series}r")
    ]
    order = begins(cells)
    for series, number in (("replay A", 4), ("replay B", 3), ("half-swap A", 4)):
        routes = [order[f"q{n} {series}"] for n in range(7)]
        assert routes.count("forward") == number
        assert all(first != second for first, second in itertools.pairwise(routes))
    for n in range(7):
        assert {order[f"q{n} replay A"], order[f"q{n} replay B"]} == {"forward", "replay"}


def test_an_answer_that_comparisons_share_is_made_up_for() -> None:
    # Questions 0 to 3 have one forward prompt for both schedules: it is asked with the first.
    cells = [
        item
        for n in range(8)
        for series in ("s", "t")
        for item in pair(f"q{n}", series, f"{n}{'' if n < 4 else series}f", f"{n}{series}r")
    ]
    order = begins(cells)
    shared = [n for n in range(4) if order[f"q{n} s"] == "forward"]
    assert shared == [0, 2]
    assert sum(order[f"q{n} t"] == "forward" for n in range(8)) == 4


def test_a_route_that_every_comparison_shares_begins_in_half_of_each_series() -> None:
    """Forward is compared with three orders, and is asked once for each question."""
    cells = [
        item
        for series in ("replay", "half-swap", "odd-even")
        for n in range(10)
        for item in pair(f"q{n}", series, f"{n}f", f"{n}{series}r")
    ]
    order = begins(cells)
    for series in ("replay", "half-swap", "odd-even"):
        assert sum(order[f"q{n} {series}"] == "forward" for n in range(10)) == 5
    assert len(dispatch_order(cells)) == len(cells)


def test_comparisons_that_are_joined_by_a_third_are_asked_together() -> None:
    cells = [*pair("q", "s", "a", "b"), *pair("q", "t", "c", "d"), *pair("q", "u", "c", "b")]
    ordered = dispatch_order(cells)
    assert [item.ask.text for item in ordered] == ["a", "d", "c", "c", "b", "b"]
    assert list(begins(cells).items()) == [
        ("q s", "forward"),
        ("q t", "replay"),
        ("q u", "forward"),
    ]


@pytest.mark.parametrize("shared", ["forward", "replay"])
def test_fillers_begin_with_different_routes_where_they_share_a_prompt(shared: str) -> None:
    """A prompt without fillers is asked once, between the two prompts that it is compared with."""
    texts = {"forward": "{n}{filler}f", "replay": "{n}{filler}r", shared: "{n} shared"}
    cells = [
        item
        for n in range(6)
        for filler in "AB"
        for item in pair(
            f"q{n}", filler, *(texts[route].format(n=n, filler=filler) for route in texts)
        )
    ]
    order = begins(cells, {f"q{n}": 0 for n in range(6)})
    assert len({(item.ask.text, item.ask.draw) for item in cells}) == 18
    for n in range(6):
        assert {order[f"q{n} A"], order[f"q{n} B"]} == {"forward", "replay"}
    for filler in "AB":
        assert Counter(order[f"q{n} {filler}"] for n in range(6)) == {"forward": 3, "replay": 3}


def test_a_prompt_that_an_earlier_pool_has_asked_is_made_up_for() -> None:
    """Question 2 has the route of question 0, which is asked first for both of its fillers."""
    pools = {"q0": 0, "q1": 0, "q2": 1, "q3": 1}
    cells = [
        item
        for n in range(4)
        for filler in "AB"
        for item in pair(f"q{n}", filler, f"{n}{filler}f", f"{0 if n == 2 else n}{filler}r")
    ]
    order = begins(cells, pools)
    assert order["q2 A"] == order["q2 B"] == "replay"
    for filler in "AB":
        assert Counter(order[f"q{n} {filler}"] for n in range(4)) == {"forward": 2, "replay": 2}


@pytest.mark.parametrize("shards", [1, 2, 4, 5])
def test_pools_begin_with_different_routes_whoever_asks(shards: int) -> None:
    pools = {f"q{n}": n for n in range(64)}
    cells = {n: pair(f"q{n}", "s", f"{n}f", f"{n}r") for n in pools.values()}
    whole = begins([item for n in cells for item in cells[n]], pools)
    assert list(whole.values())[:8] == [
        *("forward", "replay", "replay", "forward", "replay", "forward", "forward", "replay")
    ]
    assert Counter(whole.values()) == {"forward": 32, "replay": 32}
    apart: dict[str, str] = {}
    for number in range(shards):
        part = begins([item for n in range(number, 64, shards) for item in cells[n]], pools)
        assert len(part) / 4 < Counter(part.values())["forward"] < len(part) * 3 / 4 + 1
        apart |= part
    assert apart == whole


def test_failures_are_recorded_and_asked_again(tmp_path: Path) -> None:
    cells = [cell(f"p{n}") for n in range(8)]
    with opened(tmp_path / "run") as run:
        first = collect(run, Fake(failing=frozenset({"p3"})), cells)
        assert first.outcomes == {"answered": 7, "refused": 0, "unparsable": 0, "failed": 1}
        assert first.of(cells[3]) is None
        with run.ledger() as ledger:
            (failure,) = ledger.failures(key_of(Fake(), cells[3].ask))
        assert (failure.error, failure.attempts) == ("no answer to p3", ("then it failed",))
        model = Fake()
        assert collect(run, model, cells).outcomes["answered"] == 8
        assert [ask.text for ask in model.asked] == ["p3"]


def test_a_model_that_never_answers_is_not_asked_for_ever(tmp_path: Path) -> None:
    cells = [cell(f"p{n}") for n in range(200)]
    model = Fake(failing=frozenset(item.ask.text for item in cells))
    with opened(tmp_path / "run") as run, pytest.raises(ModelError, match="5 requests in a row"):
        collect(run, model, cells)
    assert len(model.asked) < 15


@pytest.mark.parametrize(
    ("embedded", "concurrency", "in_this_thread"),
    [(True, 4, True), (False, 1, True), (False, 4, False)],
)
def test_plain_methods_run_here_or_in_threads(
    tmp_path: Path, embedded: bool, concurrency: int, in_this_thread: bool
) -> None:
    model = Plain(embedded, concurrency)
    with opened(tmp_path / "run") as run:
        collected = collect(run, model, [cell(f"p{n}") for n in range(20)])
    assert collected.outcomes["answered"] == 20
    name = threading.current_thread().name
    assert (model.threads == {name}) if in_this_thread else (name not in model.threads)


def test_it_can_be_called_inside_a_running_loop() -> None:
    async def notebook() -> int:
        return len(collect(None, Fake(), [cell("p")]).answers)

    assert asyncio.run(notebook()) == 1


def test_requests_are_spaced_under_a_rate_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    collect(None, Plain(embedded=True), [cell(f"p{n}") for n in range(5)], rate_limit=6)
    turns = sorted(seconds for seconds in waits)
    # Six a minute is one each ten seconds, whoever sends it.
    assert [round(turn / 10) for turn in turns] == [0, 1, 2, 3, 4]


def test_wrong_limits_are_refused() -> None:
    with pytest.raises(SpecError, match="rate limit above 0 but got rate_limit=0"):
        collect(None, Fake(), [], rate_limit=0)
    with pytest.raises(SpecError, match="concurrency of 1 or more but got concurrency=0"):
        collect(None, Fake(), [], concurrency=0)


def test_the_plan_counts_what_is_missing(tmp_path: Path) -> None:
    model = Fake(price_in=2.0, price_out=10.0, max_tokens=5)
    # "one two three" is three tokens of o200k_base.
    cells = [cell("one two three", draw=draw) for draw in range(4)]
    before = plan(cells, None, model)
    assert (before.cells, before.calls, before.input_tokens) == (4, 4, 12)
    assert before.cost == pytest.approx(12 * 2.0 / 1e6)
    assert before.most == pytest.approx((12 * 2.0 + 4 * 5 * 10.0) / 1e6)
    with opened(tmp_path / "run") as run:
        collect(run, model, cells[:3])
        with run.ledger() as ledger:
            after = plan([*cells, *cells], ledger, model)
    assert (after.cells, after.kept, after.calls, after.input_tokens) == (8, 3, 1, 3)
    assert model.asked[3:] == []
    assert plan(cells, None, Fake()).cost is None


@pytest.mark.slow
def test_every_fault_of_a_server_ends_in_its_outcome_and_no_key_is_kept(tmp_path: Path) -> None:
    """In a process of its own, so that all it prints and writes can be searched."""
    directory = tmp_path / "run"
    with support_server.Loopback() as server:
        done = subprocess.run(
            [
                sys.executable,
                "-X",
                "dev",
                collection_process.__file__,
                "faults",
                server.url,
                str(directory),
            ],
            env={**os.environ, "OPENAI_API_KEY": KEY, "OPENAI_LOG": "debug"},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        assert server.read_counts()["authorizations"] == [f"Bearer {KEY}"]
    with closing(sqlite3.connect(directory / "run.sqlite")) as store:
        rows = store.execute(
            "SELECT text, coalesce(outcome, 'failed'), answer FROM requests "
            "JOIN prompts ON sha256 = prompt_sha256 LEFT JOIN answers USING (submission)"
        ).fetchall()
        tried = store.execute(
            "SELECT json_array_length(coalesce(answers.attempts, failures.attempts)) FROM requests "
            "LEFT JOIN answers USING (submission) LEFT JOIN failures USING (submission) "
            "ORDER BY submission"
        ).fetchall()
    assert {text: (outcome, answer) for text, outcome, answer in rows} == FAULTS
    assert [number for (number,) in tried] == [1, 2, 1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 4]
    files = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    assert len(files) >= 2
    for content in (*files, done.stdout.encode(), done.stderr.encode()):
        assert KEY.encode() not in content


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT, which Windows does not have")
def test_ctrl_c_keeps_what_there_is(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    with support_server.Loopback(latency=0.1) as server:
        command = [
            sys.executable,
            collection_process.__file__,
            "many",
            server.url,
            str(directory),
            "400",
            "8",
        ]
        server.hold(30)  # so that the collection cannot end before it is interrupted
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            server.wait_for(31)
            process.send_signal(signal.SIGINT)
            server.release()
            _, errors = process.communicate(timeout=600)
        requests = server.read_counts()["total"]
        assert process.returncode != 0
        assert "KeyboardInterrupt" in errors
        with closing(sqlite3.connect(directory / "run.sqlite")) as store:
            (answers,) = store.execute("SELECT count(*) FROM answers").fetchone()
        # Nothing new was sent, and what was under way was waited for.
        assert 30 <= answers == requests < 400
        subprocess.run(command, check=True, timeout=600)
        assert server.read_counts()["total"] == 400
