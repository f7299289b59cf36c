"""Memory systems with the scripted model: they really update and delete, and pass conformance."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.policies import make_policy
from routeprism.records import Record, load_benchmark
from routeprism.routes.conformance import check_adapter

UPDATES = load_benchmark("sample-updates", None)
SMALL = replace(UPDATES, cases=UPDATES.cases[:2])
LANGMEM = "langmem:model=scripted,deletes=true"
MEM0 = "mem0:model=scripted"
BEFORE_TWO = Path(sys.prefix) / "mem0-1"

TEXTS = (
    "I like green tea in the morning. My dentist is Dr Moe.",
    "My dentist is Dr Roe.",
    "I no longer like green tea in the morning.",
    "My dentist is Dr Roe.",
)
RECORDS = [Record(f"r{at}", at, f"[USER] {text}") for at, text in enumerate(TEXTS)]
DECISIONS = [
    ["add", "r0", "r0"],
    ["overwrite", "r0", "r1"],  # UPDATE: another dentist
    ["evict", "r0", "r2"],  # DELETE: tea is taken back
    ["skip", "r3", "r3"],  # NONE: the dentist is known
]

ADAPTERS = {
    "mem0": "mem0",
    MEM0: "mem0",
    "langmem": "langmem",
    LANGMEM: "langmem",
    "graphiti:model=scripted": "graphiti_core",
    "langgraph-store": "langgraph.store.memory",
    "llamaindex-memory": "llama_index.core",
    "llamaindex-buffer": "llama_index.core",
    "llamaindex-vector": "llama_index.core",
}


def present(package: str) -> None:
    pytest.importorskip(package, reason="pip install -r requirements-extras.txt")


def log_of(memory: Any) -> Sequence[list[str]]:
    return [[event.kind, event.record, event.by] for event in memory.events()]


def test_langmem_updates_and_deletes_by_the_rules_of_the_model() -> None:
    present("langmem")
    memory: Any = make_policy(LANGMEM).build(RECORDS)
    assert log_of(memory) == DECISIONS
    assert [block.text for block in memory.list_blocks()] == ["My dentist is Dr Roe."]
    memory.close()


_SCRIPT = """
import json, sys
from routeprism.policies import make_policy
from routeprism.records import Record
from routeprism.routes.conformance import check_adapter

policy = make_policy("mem0:model=scripted")
records = [Record(id, at, text) for at, (id, text) in enumerate(json.loads(sys.argv[1]))]
memory = policy.build(records)
log = [[event.kind, event.record, event.by] for event in memory.events()]
held = [block.text for block in memory.list_blocks()]
memory.close()
failed = [check.name for check in check_adapter(policy) if check.outcome == "failed"]
print(json.dumps({"origin": policy.origin(), "log": log, "held": held, "failed": failed}))
"""


def test_mem0_before_version_two_updates_deletes_and_conforms() -> None:
    present("mem0")
    if not BEFORE_TWO.is_dir():
        pytest.skip(f"mem0 1.x is not in {BEFORE_TWO}; make test-extras puts it there")
    arguments = json.dumps([(record.id, record.text) for record in RECORDS])
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, arguments],
        env={**os.environ, "PYTHONPATH": str(BEFORE_TWO)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["origin"].startswith("mem0ai 1.")
    assert document["log"] == DECISIONS
    assert document["held"] == ["My dentist is Dr Roe."]
    assert document["failed"] == []


def test_mem0_from_version_two_adds_what_is_new() -> None:
    present("mem0")
    memory: Any = make_policy(MEM0).build(RECORDS)
    assert [event[0] for event in log_of(memory)] == ["add", "add", "add", "skip"]
    memory.close()


@pytest.mark.parametrize("spec", ADAPTERS)
def test_an_adapter_conforms(spec: str) -> None:
    present(ADAPTERS[spec])
    failed = [check for check in check_adapter(make_policy(spec)) if check.outcome == "failed"]
    assert failed == []


@pytest.mark.parametrize("spec", [LANGMEM, MEM0, "graphiti:model=scripted"])
def test_clients_ask_the_scripted_model_without_a_web_proxy(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing listens at the address of this proxy; a real one would see the records."""
    present(ADAPTERS.get(spec, "langmem"))
    for name, value in (("no_proxy", ""), ("NO_PROXY", ""), ("HTTP_PROXY", "http://127.0.0.1:9")):
        monkeypatch.setenv(name, value)
    memory: Any = make_policy(spec).build(RECORDS[:1])
    assert memory.retained() == {"r0"}
    memory.close()


def test_every_output_names_the_scripted_model(tmp_path: Path) -> None:
    present("langmem")
    run = tmp_path / "run"
    result = routeprism.audit(SMALL, LANGMEM, "recent:k=3", run=run, resamples=100)
    assert any("The scripted model built the memories of" in note for note in result.notes)
    assert not any("stored verbatim" in note for note in result.notes)  # facts were extracted
    about = [str(statement) for statement in result.statements if statement.policy == LANGMEM]
    assert about and all("[scripted]" in sentence for sentence in about)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["configuration"]["scripted"] == [LANGMEM]
    with (run / "estimates.csv").open(newline="") as file:
        flags = {(row["policy"], "scripted" in row["flags"]) for row in csv.DictReader(file)}
    assert (LANGMEM, True) in flags and (LANGMEM, False) not in flags
    assert ("recent:k=3", True) not in flags
    page = result.report(run / "report.html").read_text()
    assert "memories built by the scripted model" in page


def test_a_dry_run_counts_no_call_of_the_scripted_model() -> None:
    present("langmem")
    assert routeprism.audit(SMALL, LANGMEM, dry_run=True).costs == {}
