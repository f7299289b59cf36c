"""One user's record in the memory of another: an audit names both users and the question."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism import Benchmark, Record, load_benchmark
from routeprism.errors import ContractError, RouteError
from routeprism.policies import as_policy
from routeprism.policies.adapters._wire import RemoteMemory
from routeprism.policies.own import OwnMemory
from routeprism.redaction import Redactor
from routeprism.routes.conformance import check_adapter
from routeprism.runs import StoredRun

from ..doubles import LastThree

SHARED = """
RECORDS = []


class Shared:
    def __init__(self):
        self.number = 0

    def add(self, record):
        RECORDS.append(record)
        self.number += 1

    def retained(self):
        return [record.id for record in RECORDS] if self.number else []

    def expose(self, query):
        return RECORDS if self.number else []
"""


@pytest.fixture
def six_pools() -> Benchmark:
    sample = load_benchmark("sample")
    return replace(sample, cases=sample.cases[:6])


@pytest.fixture
def shared_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "shared_memories.py").write_text(SHARED)
    monkeypatch.syspath_prepend(tmp_path)
    return "shared_memories:Shared"


@pytest.mark.slow
def test_a_memory_that_all_users_share_is_a_finding_in_every_output(
    shared_memories: str, cli: Callable[..., Any], tmp_path: Path
) -> None:
    """The second user is shown the records of the first, and so is everyone after them."""
    run = tmp_path / "run"
    arguments = ("audit", "sample", "--policy", shared_memories, "--run", str(run))
    done = cli(*arguments)
    leak = "the record 'u01-r0' of user 'u01' is shown to user 'u02' for the question "
    assert done.code == 3
    assert leak in " ".join(done.out.split())
    document = json.loads(cli(*arguments, "--json").out)
    (verdict,) = document["verdicts"]
    assert (verdict["level"], verdict["severity"]) == ("promise failed", "problem")
    (promise,) = verdict["promises"]
    assert promise["promise"] == "leaked"
    # Which one: the memory that all users share still has what the first audit added.
    assert promise["witness"].startswith("the record 'u")
    assert any(promise["witness"] in sentence for sentence in document["sentences"])
    assert promise["failed"] == document["missing"]["routes"] == 60  # two of each of 30 users
    page = html.unescape((run / "report.html").read_text(encoding="utf-8"))
    assert promise["witness"] in page
    with StoredRun(run) as stored:
        finding = stored.findings("leaks")[0]
    assert finding.value["owner"] != finding.value["user"] == finding.user
    assert finding.value["record"].startswith(finding.value["owner"])


class LateLeak(LastThree):
    """One user's memory has another user's record, and no other memory has."""

    def retained(self) -> Any:
        ids = super().retained()
        return [*ids, "u04-r0"] if ids and ids[0].startswith("u05") else ids

    def expose(self, query: str) -> Any:
        return [(id, [id]) for id in self.retained()]


def test_a_leak_fails_its_routes_and_no_others(six_pools: Benchmark) -> None:
    result = routeprism.audit(six_pools, LateLeak, resamples=100, schedules=["replay"])
    question = six_pools.cases[4].questions[0].text
    (verdict,) = result.verdicts
    (promise,) = verdict.promises
    assert (promise.promise, promise.failed, promise.of) == ("leaked", 2, None)
    leak = f"the record 'u04-r0' of user 'u04' is shown to user 'u05' for the question {question!r}"
    assert promise.witness == leak
    assert f"2 routes leaked and are in no number: {leak}" in str(verdict)
    assert result.value("J").units == 5
    labelled = sum(len(case.questions) for case in six_pools.cases if case.pool.user != "u05")
    assert verdict.questions == labelled
    assert verdict.is_incomplete and verdict.is_red
    assert (verdict.repair, verdict.advice) == ("", "")  # no order and no queue keeps users apart


def test_an_id_that_no_user_has_breaks_the_contract(six_pools: Benchmark) -> None:
    class Invents(LastThree):
        def retained(self) -> Any:
            ids = super().retained()
            return [*ids, "m-7"] if ids and ids[0].startswith("u05") else ids

    with pytest.raises(ContractError, match="retains 'm-7', which user 'u05' does not have"):
        routeprism.audit(six_pools, Invents, resamples=100, schedules=["replay"])


class Service:
    """A service with one table; it lists what belongs to a user, and searches everywhere."""

    name = "service"
    procedures = ("overlap",)

    def __init__(self, *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self.table: list[tuple[int, Mapping[str, Any]]] = []
        self.users = 0

    def origin(self) -> str:
        return "a service in this process"

    def build(self, arrivals: Sequence[Record], /) -> Any:
        return OwnMemory(self.open, self.name).build(arrivals)

    def open(self) -> RemoteMemory:
        self.users += 1
        user = self.users

        def call(verb: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
            if verb == "add":
                self.table.append((user, content["record"]))
            everywhere = self.is_shared and verb == "search"
            rows = [record for owner, record in self.table if everywhere or owner == user]
            records = {record["id"]: record for record in rows}.values()
            words = set(content.get("query", "").split())
            hits = [r for r in records if not words or words & set(r["text"].split())]
            return {"items": [{"text": r["text"], "sources": [r["id"]]} for r in hits]}

        return RemoteMemory(call, lambda: None, Redactor())


@pytest.mark.slow
def test_a_service_that_searches_everywhere_leaks(six_pools: Benchmark) -> None:
    """Its error is about one item of a reply; whose it is, only the audit knows."""
    sound = check_adapter(Service(is_shared=False))
    assert [check.name for check in sound if check.outcome == "failed"] == []
    checks = {check.name: check for check in check_adapter(Service(is_shared=True))}
    leak = r"leak: the record 'moving-\d' of user 'moving' is shown to user 'ben' for the question"
    assert re.match(leak, checks["users"].message)
    result = routeprism.audit(
        six_pools, Service(is_shared=True), resamples=100, schedules=["replay"]
    )
    assert any("of user 'u01' is shown to user 'u02'" in sentence for sentence in result.sentences)
    with pytest.raises(RouteError, match="which never arrived"):
        policy = Service(is_shared=True)
        for case in six_pools.cases[:2]:
            memory = policy.build(case.pool.records)
        memory.expose("the")


def test_dry_runs_count_what_the_checks_add() -> None:
    """Users, single records and the walk take what they say, however the memory is built."""
    from routeprism.policies import Client, StandIn

    policy = as_policy(LastThree)
    absent = StandIn(policy, Client())
    check_adapter(absent)
    counts = {kind: number for (_, kind), number in absent.drain().items()}
    assert counts["adds"] > 2 * 6 + 40 + 64
