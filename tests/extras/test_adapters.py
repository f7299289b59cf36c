"""Real memory systems, offline: audited end to end on the sample and on ten PersonaMem pools.

The expected numbers were read from these very runs; docs/adapters/ shows the same ones.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest

import routeprism
from routeprism.errors import MissingExtraError
from routeprism.policies import Event, make_policy
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark
from routeprism.routes import trace_case

SAMPLE = load_benchmark("sample", None)
CASE = SAMPLE.cases[0]

PACKAGES = {
    "llamaindex": "llama_index.core",
    "langgraph": "langgraph.store.memory",
    "langmem": "langmem",
    "mem0": "mem0",
}
LAYERS = ("retained_changed", "V_changed", "C_changed", "I_changed")

# policy: (pairs that changed: retained, V, C, I; J) on the sample, the same on ten PersonaMem pools
MEASURED: dict[str, tuple[tuple[int, int, int, int, float], tuple[int, int, int, int, float]]] = {
    "llamaindex-memory:token_limit=2000,flush=200": (
        (81, 81, 165, 165, 0.7936507937),
        (142, 142, 142, 142, 0.0),
    ),
    "llamaindex-memory": ((0, 0, 165, 165, 1.0), (142, 142, 142, 142, 0.41)),
    "llamaindex-buffer:token_limit=1000,chars=4000": (
        (0, 107, 165, 165, 0.6804761905),
        (0, 142, 142, 142, 0.0),
    ),
    "llamaindex-vector": ((0, 0, 0, 165, 1.0), (0, 0, 0, 142, 1.0)),
    "langgraph-store:k=3": ((0, 0, 0, 165, 1.0), (0, 0, 0, 142, 1.0)),
    "langgraph-store:k=3,embed=words": ((0, 55, 55, 165, 0.8181111111), (0, 0, 0, 142, 1.0)),
    "langgraph-store:k=3,embed=none": ((0, 165, 165, 165, 0.15), (0, 142, 142, 142, 0.12)),
    "langmem:k=3": ((0, 0, 0, 165, 1.0), (0, 0, 0, 142, 1.0)),
    "mem0": ((0, 0, 0, 165, 1.0), (0, 0, 0, 142, 1.0)),
}


def present(spec: str) -> None:
    """Skip where the package is not installed; say what brings it."""
    pytest.importorskip(
        PACKAGES[spec.partition("-")[0].partition(":")[0]],
        reason="pip install -r requirements-extras.txt",
    )


def numbers(benchmark: str | Benchmark, spec: str) -> tuple[float, ...]:
    audit = routeprism.audit(benchmark, spec, resamples=100)
    rows = {
        row.quantity: row.estimate
        for row in audit.rows
        if row.experiment == "routes" and row.stratum == "all" and row.policy and not row.mask
    }
    return (*(rows[f"{layer}_count"] for layer in LAYERS), rows["J"])


@pytest.mark.parametrize("spec", MEASURED)
def test_an_audit_of_the_sample(spec: str) -> None:
    present(spec)
    assert numbers("sample", spec) == pytest.approx(MEASURED[spec][0])


@pytest.mark.realdata
@pytest.mark.parametrize("spec", MEASURED)
def test_an_audit_of_ten_personamem_pools(spec: str, ten_pools: Benchmark) -> None:
    present(spec)
    assert numbers(ten_pools, spec) == pytest.approx(MEASURED[spec][1])


@pytest.mark.parametrize("spec", MEASURED)
def test_builds_are_apart_and_nothing_stays_behind(spec: str) -> None:
    present(spec)
    policy = make_policy(spec)
    policy.build(CASE.pool.records).close()  # what the package starts once is started now
    threads = set(threading.enumerate())
    first = policy.build(CASE.pool.records[:2])
    second = policy.build(CASE.pool.records[2:])
    assert first.retained() <= {record.id for record in CASE.pool.records[:2]}
    assert not first.retained() & second.retained()
    for memory in (first, second):
        memory.close()
    new_threads = set(threading.enumerate()) - threads
    for thread in new_threads:  # that of a closed database may still be on its way out
        thread.join(60)
    assert not [thread for thread in new_threads if thread.is_alive()]


# --- the order effects that are really there ---------------------------------------------------


def pool_of(*texts: str, question: str) -> Case:
    records = tuple(Record(f"r{at}", at, f"[USER] {text}") for at, text in enumerate(texts))
    return Case(Pool("u", records), (Question("q", "u", question),))


def list_shown(case: Case, spec: str) -> Sequence[list[str]]:
    """Give the exposed sources in their order, forward and replayed."""
    present(spec)
    from routeprism.orders import parse_schedule

    routes = trace_case(case, [make_policy(spec)], [parse_schedule("replay")])
    return [
        [source for block in route.exposures[0].blocks for source in sorted(block.sources)]
        for route in routes
    ]


def test_langgraph_breaks_zero_similarity_ties_by_arrival() -> None:
    """No record shares a word with the question, so the first two to arrive are shown."""
    case = pool_of("Apples ripen.", "Boats sail.", "Cats purr.", question="Which violin sounds?")
    forward, replay = list_shown(case, "langgraph-store:k=2,embed=words")
    assert (forward, replay) == (["r0", "r1"], ["r2", "r1"])


def test_langgraph_finds_the_same_where_similarities_differ() -> None:
    case = pool_of("Apples ripen.", "Boats sail.", "Cats purr.", question="Do cats purr at boats?")
    assert list_shown(case, "langgraph-store:k=2,embed=words") == [["r2", "r1"], ["r2", "r1"]]


def test_llamaindex_evicts_the_oldest_and_says_by_whom() -> None:
    """Each record is about 110 tokens long; 70% of 400 tokens hold two of them."""
    present("llamaindex-memory")
    texts = [f"{word} " * 100 for word in ("apple", "boat", "cat")]
    case = pool_of(*texts, question="What?")
    policy = make_policy("llamaindex-memory:token_limit=400,flush=10")
    memory: Any = policy.build(case.pool.records)
    assert memory.retained() == {"r1", "r2"}
    assert Event("evict", "r0", "r2", 2) in memory.events()
    memory.close()
    assert list_shown(case, policy.name) == [["r1", "r2"], ["r1", "r0"]]


def test_llamaindex_buffer_keeps_everything_and_shows_the_newest() -> None:
    texts = [f"{word} " * 100 for word in ("apple", "boat", "cat")]
    case = pool_of(*texts, question="What?")
    spec = "llamaindex-buffer:token_limit=250"
    assert list_shown(case, spec) == [["r1", "r2"], ["r1", "r0"]]
    assert make_policy(spec).build(case.pool.records).retained() == {"r0", "r1", "r2"}


def test_llamaindex_vector_joins_an_answer_to_whoever_spoke_last() -> None:
    """A record that begins with an assistant's turn goes into the node of the one before."""
    present("llamaindex-vector")
    records = (
        Record("r0", 0, "[USER] I moor my boat in Rye."),
        Record("r1", 1, "[ASSISTANT] Noted, a cat."),
        Record("r2", 2, "[USER] I play the violin."),
    )
    case = Case(Pool("u", records), (Question("q", "u", "Where is the boat moored?"),))
    assert list_shown(case, "llamaindex-vector:k=1") == [["r0", "r1"], ["r0"]]


def test_a_record_is_cut_where_that_is_asked_for() -> None:
    present("langgraph-store")
    memory: Any = make_policy("langgraph-store:chars=12").build(CASE.pool.records)
    assert [len(block.text) for block in memory.list_blocks()] == [12] * len(CASE.pool)


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("mem0", "mem0.memory.main"):  # another test may have imported them
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'routeprism\[mem0\]'"):
        make_policy("mem0").build(CASE.pool.records)


def test_adapters_cost_nothing_until_they_are_used() -> None:
    """Naming every policy imports none of the packages behind them."""
    script = (
        "import sys, routeprism; from routeprism.policies import make_policy, registered_policies; "
        "[point.load() for point in registered_policies().values()]; make_policy('mem0').origin(); "
        "print([name for name in ('mem0', 'qdrant_client', 'langmem', 'langgraph', 'llama_index', "
        "'wordllama', 'openai') if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == "[]"
