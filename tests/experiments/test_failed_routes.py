"""A memory service that fails: its route says why, the others go on, and only it is tried again."""

from __future__ import annotations

import json
import runpy
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.policies.adapters.http import Http
from routeprism.records import load_benchmark
from routeprism.runs import StoredRun

SERVER = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "http_memory" / "server.py"))
SAMPLE = load_benchmark("sample", None)
SMALL = replace(SAMPLE, cases=SAMPLE.cases[:6])
QUESTIONS = sum(len(case.questions) for case in SMALL.cases)


class Flaky:
    """The reference service, which one user's records make fail in some way."""

    def __init__(self) -> None:
        self.fault: Callable[[str, Mapping[str, Any]], Any] | None = None
        self.user = "u03"
        self.builds: Counter[str] = Counter()
        self.filled: set[str] = set()
        self.sick: set[str] = set()
        outer = self

        class Service(SERVER["Service"]):  # type: ignore[misc]
            def answer(self, verb: str, body: dict[str, Any]) -> Any:
                return outer.answer(super().answer, verb, body)

            def handle_error(self, request: Any, address: Any) -> None:
                """Broken connections are meant."""

        self.service = Service()
        self.thread = threading.Thread(target=self.service.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, usual: Callable[..., Any], verb: str, request: dict[str, Any]) -> Any:
        memory = request["memory"]
        if verb == "add":
            user = request["record"]["id"].partition("-")[0]
            self.builds[user] += memory not in self.filled
            self.filled.add(memory)
            if user == self.user and self.fault is not None:
                self.sick.add(memory)
        if memory in self.sick and self.fault is not None:
            text = self.fault(verb, request)
            if text is not None:
                return text
        return usual(verb, request)

    @property
    def policy(self) -> Http:
        return Http(f"http://127.0.0.1:{self.service.server_address[1]}", timeout=6)


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    item = Flaky()
    yield item
    item.service.shutdown()
    item.thread.join()
    item.service.server_close()


def hangs(verb: str, request: Mapping[str, Any]) -> None:
    if verb == "search":
        time.sleep(10)


def breaks(verb: str, request: Mapping[str, Any]) -> Any:
    raise KeyError("no such table")


def unknown_sources(verb: str, request: Mapping[str, Any]) -> Any:
    return {"items": [{"text": "x", "sources": ["u99-r0"]}]} if verb == "search" else None


def dies(verb: str, request: Mapping[str, Any]) -> Any:
    if verb == "add" and request["record"]["id"].endswith("r2"):
        raise ConnectionAbortedError  # the connection closes without a reply
    return None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (hangs, "search: no reply within 6 seconds"),
        (breaks, "add: the service replied 400 Bad Request"),
        (unknown_sources, "search: item 0 names the source 'u99-r0', which never arrived"),
        (dies, "add: http://127.0.0.1"),
    ],
)
def test_a_failed_route_is_said_left_out_and_tried_again_alone(
    flaky: Flaky, tmp_path: Path, fault: Callable[..., Any], reason: str
) -> None:
    flaky.fault = fault
    policy = flaky.policy
    run = tmp_path / "run"
    first = routeprism.audit(SMALL, policy, run=run, resamples=100)
    row = first.value("J", policy=policy.name)
    lost = len(SMALL.cases[2].questions)
    assert (row.units, row.queries) == (5, QUESTIONS - lost)
    count = first.value("count.failed_pairs", policy=policy.name)
    assert count.estimate == lost
    (note,) = [note for note in first.notes if "failed" in note]
    assert note.startswith(f"2 routes of {policy.name} failed; no estimate includes their pairs")
    assert reason in note
    with StoredRun(run) as stored:
        failed = stored.failed_routes()
    assert [(schedule, user) for _, _, schedule, user, _ in failed] == [
        ("forward", "u03"),
        ("replay", "u03"),
    ]

    flaky.fault = None
    before = flaky.builds.copy()
    second = routeprism.audit(SMALL, policy, run=run, resamples=100)
    assert flaky.builds - before == Counter({"u03": 2})  # its two routes, and no other
    whole = routeprism.audit(SMALL, policy, resamples=100)
    assert second.rows == whole.rows
    assert not [note for note in second.notes if "failed" in note]


@pytest.mark.slow
def test_one_failed_side_leaves_the_other_routes(flaky: Flaky, tmp_path: Path) -> None:
    """Only the replayed route fails: half-swap still has its pair."""

    def replayed(verb: str, request: Mapping[str, Any]) -> Any:
        memory = flaky.service.memories.get(request["memory"])
        if verb == "dump" and memory is not None and memory.items[-1]["sources"] == ["u03-r0"]:
            raise KeyError("backwards")

    flaky.fault = replayed
    schedules = ["replay", "half-swap"]
    result = routeprism.audit(
        SMALL, flaky.policy, "recent:k=2", schedules=schedules, comparators=True, resamples=100
    )
    units = {s: result.value("J", policy=flaky.policy.name, schedule=s).units for s in schedules}
    assert units == {"replay": 5, "half-swap": 6}
    gamma = result.value("Gamma.J", policy=flaky.policy.name, schedule="replay")
    assert gamma.units == 5  # a contrast needs both of its sides
    assert result.value("J", policy="recent:k=2", schedule="replay").units == 6


@pytest.mark.slow
def test_answers_are_asked_of_what_did_not_fail(flaky: Flaky, tmp_path: Path) -> None:
    flaky.fault = breaks
    result = routeprism.audit(
        SMALL,
        flaky.policy,
        models=["reader"],
        comparators=True,
        run=tmp_path / "r",
        resamples=100,
    )
    row = result.value(
        "H", policy=flaky.policy.name, filler="A", arm="", mask="", schedule="replay"
    )
    assert row.units == 5


def test_a_service_that_is_not_there_fails_every_route(tmp_path: Path) -> None:
    policy = Http("http://127.0.0.1:9")
    result = routeprism.audit(SMALL, policy, "recent:k=2", run=tmp_path / "run", resamples=100)
    assert result.value("count.failed_pairs", policy=policy.name).estimate == QUESTIONS
    assert not [row for row in result.rows if row.policy == policy.name and row.quantity == "J"]
    assert any(note.startswith(f"12 routes of {policy.name} failed") for note in result.notes)
    assert result.value("J", policy="recent:k=2").units == 6


@pytest.mark.slow
def test_the_command_says_it(cli: Callable[..., Any], flaky: Flaky) -> None:
    flaky.fault = breaks
    outcome = cli("audit", "sample", "-p", flaky.policy.name, "--json", "--run", "run")
    assert outcome.code == 3
    document = json.loads(outcome.out)
    assert any("2 routes of" in note and "failed" in note for note in document["notes"])
    assert (document["missing"]["answers"], document["missing"]["routes"]) == (0, 2)
    assert "2 routes are missing" in outcome.err


def test_a_failed_order_is_counted_and_the_others_continue(flaky: Flaky) -> None:
    """The service refuses builds of one user that do not begin with the first record."""
    first: dict[str, str] = {}

    def refuses_late_starts(verb: str, request: Mapping[str, Any]) -> Any:
        if verb == "add":
            first.setdefault(request["memory"], request["record"]["id"])
        if not first[request["memory"]].endswith("-r0"):
            raise KeyError("the first record is missing")

    flaky.fault = refuses_late_starts
    policy = flaky.policy
    pools = replace(SAMPLE, cases=SAMPLE.cases[1:3])
    outcome = routeprism.explore_orders(pools, policy, arrivals=["jitter:w=1"], resamples=100)
    row = outcome.value("order_failed", policy=policy.name, stratum="all")
    assert 0 < (row.estimate or 0) < 1
    (reason,) = outcome.shortfall.reasons
    assert outcome.shortfall.routes == int(reason.split()[0].replace(",", ""))
    assert f"{policy.name}: add: the service replied 400 Bad Request" in reason


def test_a_failure_in_source_order_names_the_memory_and_the_user(flaky: Flaky) -> None:
    flaky.fault = breaks
    policy = flaky.policy
    pools = replace(SAMPLE, cases=SAMPLE.cases[2:3])
    with pytest.raises(routeprism.RouteError, match="user 'u03', source order: add: the service"):
        routeprism.explore_orders(pools, policy, arrivals=["jitter:w=1"], resamples=100)
