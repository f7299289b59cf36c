"""mem0 and LangMem ask a model by themselves: dry runs ask nobody, and limits hold for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import LimitError, SpecError
from routeprism.policies import describe_client, make_policy
from routeprism.pytest_plugin import assert_order_stable
from routeprism.records import load_benchmark

from ..counting_server import Counting

SAMPLE = load_benchmark("sample", None)
SMALL = replace(SAMPLE, cases=SAMPLE.cases[:2])
ADDS = 2 * sum(len(case.pool) for case in SMALL.cases)
SYSTEMS = ("mem0", "langmem")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    server = Counting()
    yield server
    server.stop()


def spec_of(system: str, counting: Any, more: str = "") -> str:
    pytest.importorskip(system, reason="pip install -r requirements-extras.txt")
    return f"{system}:model=m,base_url={counting.address}/v1,embed=words{more}"


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_dry_run_of_any_command_makes_no_request(
    system: str, counting: Any, cli: Callable[..., Any]
) -> None:
    spec = spec_of(system, counting)
    answering = ("--model", "openai:m", "--base-url", f"{counting.address}/v1")
    for call in (
        ("audit", "sample", "-p", spec),
        ("audit", "sample", "-p", spec, *answering, "--builds", "2", "--comparators"),
        ("restore", "sample", "-p", spec, *answering),
        ("curve", "sample", "-p", spec, "--budget", "k=2,4"),
        ("check-adapter", spec),
    ):
        done = cli(*call, "--dry-run", "--json")
        assert done.code == 0, (call, done.err)
        costs = json.loads(done.out)
        assert all(cost["estimated"] for cost in costs.values())
        assert any("building" in name and cost["calls"] for name, cost in costs.items())
        assert done.left == ()
    assert (counting.connections, counting.requests) == (0, [])


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_run_takes_the_calls_that_the_dry_run_estimates(system: str, counting: Any) -> None:
    spec = spec_of(system, counting)
    (cost,) = routeprism.audit(SMALL, spec, dry_run=True).costs.values()
    assert cost.calls == ADDS and cost.input_tokens > 100 * ADDS
    assert f"{ADDS} records in 4 builds, 1 call per record" in cost.note
    routeprism.audit(SMALL, spec, resamples=100)
    assert counting.model_calls() == ADDS


@pytest.mark.parametrize("system", SYSTEMS)
def test_measuring_one_pool_takes_its_calls_and_gives_its_tokens(
    system: str, counting: Any
) -> None:
    spec = spec_of(system, counting)
    (cost,) = routeprism.audit(SMALL, spec, dry_run=True, measure=True).costs.values()
    assert counting.model_calls() == len(SMALL.cases[0].pool)
    assert cost.calls == ADDS and "measured on one pool" in cost.note


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_limit_stops_building_and_the_same_call_goes_on(
    system: str, counting: Any, tmp_path: Path
) -> None:
    spec, run = spec_of(system, counting), tmp_path / "run"
    first = len(SMALL.cases[0].pool)
    with pytest.raises(LimitError, match="while memories were built"):
        routeprism.audit(SMALL, spec, run=run, resamples=100, max_calls=first + 1)
    assert counting.model_calls() == first + 1
    audit = routeprism.audit(SMALL, spec, run=run, resamples=100)
    assert counting.model_calls() == ADDS  # no call is paid for twice
    assert audit.value("J", policy=spec).units == 2


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_limit_on_money_holds_with_prices(system: str, counting: Any, tmp_path: Path) -> None:
    """A reply costs 1 by its 100 output tokens, and a little for its input."""
    spec = spec_of(system, counting, ",price_in=0.001,price_out=10000")
    with pytest.raises(LimitError, match="max_cost"):
        routeprism.audit(SMALL, spec, run=tmp_path / "run", resamples=100, max_cost=3.5)
    assert counting.model_calls() == 3


@pytest.mark.parametrize("system", SYSTEMS)
def test_prices_are_no_part_of_the_name(system: str, counting: Any) -> None:
    policy = make_policy(spec_of(system, counting, ",price_in=1,price_out=2"))
    assert policy.name == spec_of(system, counting)
    client = describe_client(policy)
    assert client is not None and (client.price_in, client.price_out) == (1, 2)
    with pytest.raises(SpecError, match="both price_in and price_out"):
        make_policy(spec_of(system, counting, ",price_in=1"))


@pytest.mark.parametrize("system", SYSTEMS)
def test_building_elsewhere_is_confirmed_first(system: str, cli: Callable[..., Any]) -> None:
    pytest.importorskip(system, reason="pip install -r requirements-extras.txt")
    spec = f"{system}:model=m,base_url=http://192.0.2.1/v1"
    done = cli("audit", "sample", "-p", spec)
    assert done.code == 2 and "pass --yes" in done.err and "330 calls" in done.err
    done = cli("audit", "sample", "-p", spec, "--yes", "--max-cost", "1")
    assert done.code == 2 and "add price_in=… and price_out=… to it" in done.err
    with pytest.raises(SpecError, match="would ask it for every order"):
        assert_order_stable(spec, SMALL)


@pytest.mark.parametrize("system", SYSTEMS)
def test_checks_of_an_adapter_can_be_limited(
    system: str, counting: Any, cli: Callable[..., Any]
) -> None:
    done = cli("check-adapter", spec_of(system, counting), "--max-calls", "4")
    assert done.code == 3 and "4 calls (max_calls)" in done.err
    assert counting.model_calls() == 4


@pytest.mark.parametrize("system", SYSTEMS)
def test_calls_are_recorded_once_and_replayed_without_a_model(
    system: str, counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, tape = spec_of(system, counting), tmp_path / "calls.jsonl"
    audit = routeprism.audit(SMALL, spec, record=tape, resamples=100)
    assert counting.model_calls() == ADDS
    assert len(tape.read_text().splitlines()) == ADDS + 1 and "sk-none" not in tape.read_text()
    monkeypatch.delenv("OPENAI_API_KEY")
    assert routeprism.audit(SMALL, spec, replay=tape, resamples=100).rows == audit.rows
    assert counting.model_calls() == ADDS
