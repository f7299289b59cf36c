"""Observed sources compared, item by item, with those that a system reports.

Systems that carry a record's id along are dumped after each arrival as if they did not: texts
without ids. `Lineage` has to find the sources again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from routeprism.policies import Block, Lineage, Policy, make_policy
from routeprism.policies.own import closing_memory
from routeprism.records import Record, load_benchmark

SAMPLE = load_benchmark("sample", None)
SYSTEMS = {
    "llamaindex-memory": ("llama_index.core", 596),
    "llamaindex-memory:token_limit=600,flush=200": ("llama_index.core", 126),
    "llamaindex-buffer": ("llama_index.core", 596),
    "llamaindex-vector": ("llama_index.core", 596),
    "llamaindex-vector:text=full": ("llama_index.core", 596),
    "langgraph-store:embed=none": ("langgraph.store.memory", 106),
    "langgraph-store:embed=none,chars=60": ("langgraph.store.memory", 106),
}
"""Policy → its package, and how many items it holds in the end, in ten pools and two orders."""


def read_items(policy: Policy, arrivals: Sequence[Record]) -> Sequence[Block]:
    """Give all items that a system holds after these arrivals, with the sources it reports."""
    with closing_memory(policy.build(arrivals)) as memory:
        return tuple(memory.list_blocks())  # type: ignore[attr-defined]


def name_items(blocks: Sequence[Block]) -> dict[str, Block]:
    """Name items by their text alone, numbered where a text is there several times."""
    counts: Counter[str] = Counter()
    values = {}
    for block in blocks:
        counts[block.text] += 1
        values[f"{block.text} ({counts[block.text]})"] = block
    return values


def compare(policy: Policy) -> tuple[int, int, list[str]]:
    """Count items, and those whose observed sources are the reported ones; list the others."""
    total = same = 0
    differences = []
    for case in SAMPLE.cases[:10]:
        for arrivals in (case.pool.records, case.pool.records[::-1]):
            lineage = Lineage()
            for number in range(1, len(arrivals) + 1):
                reported = name_items(read_items(policy, arrivals[:number]))
                dump = {key: block.text for key, block in reported.items()}
                lineage.observe(arrivals[number - 1], dump)
            for key, block in reported.items():
                observed = lineage.items[key].sources
                total += 1
                same += observed == block.sources
                if observed != block.sources:
                    differences.append(
                        f"{sorted(observed)} for {sorted(block.sources)}: {block.text[:60]!r}"
                    )
    return total, same, differences


@pytest.mark.parametrize("spec", SYSTEMS)
def test_observed_sources_are_those_that_the_system_reports(spec: str) -> None:
    """All 2,722 items agree; docs/adapters/profiles.md has the figure."""
    package, number = SYSTEMS[spec]
    pytest.importorskip(package, reason="pip install -r requirements-extras.txt")
    total, same, differences = compare(make_policy(spec))
    assert differences == []
    assert (total, same) == (number, number)
