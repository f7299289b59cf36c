"""Graphiti on an embedded graph, with the scripted model: sources, validity times and events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

import routeprism
from routeprism.errors import LimitError, SpecError
from routeprism.models.gateway import Endpoint
from routeprism.models.scripted import ScriptedEndpoint
from routeprism.policies import AwaitedMemory, Lineage, make_policy
from routeprism.records import Record, load_benchmark

UPDATES = load_benchmark("sample-updates", None)
SMALL = replace(UPDATES, cases=UPDATES.cases[:1])
SPEC = "graphiti:model=scripted"

OLD = Record("old", 0, "[USER] My dentist is Dr Moe.", "2024-03-03")
NEW = Record("new", 1, "[USER] My dentist is Dr Roe.", "2024-03-05")
REPETITION = Record("again", 2, "[USER] My dentist is Dr Roe.", "2024-03-07")
TALK = Record("talk", 3, "[USER] Hm.", "2024-03-08")


@pytest.fixture(autouse=True)
def present() -> None:
    pytest.importorskip("graphiti_core", reason="pip install -r requirements-extras.txt")


def build(*arrivals: Record, spec: str = SPEC) -> Any:
    return make_policy(spec).build(arrivals)


def list_facts(memory: Any) -> Sequence[tuple[str, list[str]]]:
    return sorted((block.text, sorted(block.sources)) for block in memory.list_blocks())


def log(memory: Any) -> Sequence[tuple[str, str, str, int]]:
    return [(event.kind, event.record, event.by, event.at) for event in memory.events()]


MOE = "My dentist is Dr Moe. (valid 2024-03-03 – 2024-03-05)"
ROE = "My dentist is Dr Roe. (valid 2024-03-05 – now)"


def test_the_newer_fact_ends_the_older_one_in_either_order() -> None:
    """Graphiti compares event times, so the order of arrival does not decide which fact holds."""
    forward, reverse = build(OLD, NEW), build(NEW, OLD)
    assert list_facts(forward) == list_facts(reverse) == [(MOE, ["old"]), (ROE, ["new"])]
    assert ("overwrite", "old", "new", 1) in log(forward)
    assert ("skip", "old", "old", 1) in log(reverse)
    assert ("overwrite", "new", "old", 1) not in log(reverse)
    for memory in (forward, reverse):
        memory.close()


def test_only_valid_facts_are_kept_on_request() -> None:
    memory = build(OLD, NEW, spec=f"{SPEC},show=current")
    assert list_facts(memory) == [(ROE, ["new"])]
    assert memory.retained() == {"new"}
    assert [block.text for block in memory.expose("Who is my dentist?").blocks] == [ROE]
    memory.close()


def test_a_repeated_fact_names_both_records_and_small_talk_names_none() -> None:
    memory = build(NEW, REPETITION, TALK)
    assert list_facts(memory) == [(ROE, ["again", "new"])]
    assert ("merge", "new", "again", 1) in log(memory)
    assert log(memory)[-1] == ("skip", "talk", "talk", 2)
    memory.close()


def test_observed_sources_agree_with_episodes_item_by_item(endpoint: ScriptedEndpoint) -> None:
    """Lineage sees texts alone, so it misses the records that tell a known fact again."""
    from routeprism.policies.adapters.graphiti import Graphiti, OpenGraph

    policy = Graphiti(model="scripted", base_url=endpoint.base_url)
    graph: Any = AwaitedMemory(OpenGraph(policy, Endpoint(endpoint.base_url, endpoint.api_key)))
    graph.open()
    lineage, episodes = Lineage("fact"), dict[str, str]()
    compared = 0
    for record in UPDATES.cases[0].pool.records:
        episodes[graph.add_record(record)] = record.id
        facts = {fact.key: fact for fact in graph.list_facts()}
        lineage.observe(record, {key: fact.text for key, fact in facts.items()})
        for key, fact in facts.items():
            reported = [episodes[episode] for episode in fact.episodes]
            assert lineage.items[key].sources == {reported[0]}  # the others told it again
            compared += len(reported) == 1
    graph.close()
    assert compared > 50
    assert lineage.uncertainties == []


def test_an_audit_of_changed_facts() -> None:
    audit = routeprism.audit(
        SMALL, f"{SPEC},show=current", schedules=["replay"], resamples=100, workers=1
    )
    rows = audit.rows.where(experiment="updates", stratum="all", schedule="replay")
    values = {row.quantity: row.estimate for row in rows if row.policy}
    assert values["stale_only.route"] == values["stale_only.forward"] == 0
    assert values["count.inverted_supersessions"] == 0


def test_it_needs_a_model() -> None:
    with pytest.raises(SpecError, match="graphiti extracts facts with a model"):
        make_policy("graphiti")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEndpoint]:
    with ScriptedEndpoint() as served:
        monkeypatch.setenv("OPENAI_API_KEY", served.api_key)
        yield served


def test_limits_hold_for_its_calls(endpoint: ScriptedEndpoint) -> None:
    spec = f"graphiti:model=m,base_url={endpoint.base_url}"
    dry = routeprism.audit(SMALL, spec, schedules=["replay"], dry_run=True)
    (cost,) = dry.costs.values()
    assert cost.calls == 4 * 2 * len(SMALL.cases[0].pool)
    with pytest.raises(LimitError):
        routeprism.audit(SMALL, spec, schedules=["replay"], max_calls=3, resamples=100)
