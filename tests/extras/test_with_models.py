"""Memories that a model drives, against a scripted model on loopback that always overwrites."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.policies import Event, make_policy
from routeprism.records import load_benchmark

from .scripted_model import Scripted

SAMPLE = load_benchmark("sample", None)
SMALL = replace(SAMPLE, cases=SAMPLE.cases[:4])
RECORDS = SAMPLE.cases[0].pool.records
IDS = [record.id for record in RECORDS]
BEFORE_TWO = Path(sys.prefix) / "mem0-1"
"""mem0 1.x, whose model decides about updates; from 2.0 on it only adds."""


@pytest.fixture
def model() -> Iterator[Any]:
    item = Scripted()
    yield item
    item.stop()


def present(package: str) -> None:
    pytest.importorskip(package, reason="pip install -r requirements-extras.txt")


def overwritten(ids: list[str]) -> list[list[Any]]:
    """What the log says when each arrival replaces the one memory that there is."""
    first = [["add", ids[0], ids[0], 0]]
    return first + [["overwrite", ids[at - 1], ids[at], at] for at in range(1, len(ids))]


def test_langmem_overwrites_and_the_log_says_by_whom(model: Any) -> None:
    present("langmem")
    policy = make_policy(f"langmem:model=m,base_url={model.url}")
    memory: Any = policy.build(RECORDS)
    assert memory.retained() == {IDS[-1]}
    log = [[e.kind, e.record, e.by, e.at] for e in memory.events()]
    assert log == overwritten(IDS)


def test_langmem_asks_the_same_in_every_build(model: Any) -> None:
    """Session names in its prompts are counted, not drawn, so that replies can be kept."""
    present("langmem")
    policy = make_policy(f"langmem:model=m,base_url={model.url}")
    policy.build(RECORDS)
    first = list(model.asked)
    model.asked.clear()
    policy.build(RECORDS)
    assert model.asked == first


def test_mem0_from_version_two_adds_alone(model: Any) -> None:
    present("mem0")
    policy = make_policy(f"mem0:model=m,base_url={model.url}")
    memory: Any = policy.build(RECORDS)
    try:
        assert [event.kind for event in memory.events()] == ["add"] * len(RECORDS)
        assert memory.retained() == set(IDS)
        exposure = memory.expose(SAMPLE.cases[0].questions[0].text)
        assert exposure.sources <= set(IDS)
    finally:
        memory.close()


def test_mem0_is_told_the_same_day_every_day(model: Any) -> None:
    present("mem0")
    make_policy(f"mem0:model=m,base_url={model.url},date=2020-02-03").build(RECORDS).close()
    requests = [message["content"] for item in model.asked for message in item["messages"][1:]]
    dates = {result for text in requests for result in re.findall(r"Date\n(\S+)", text)}
    assert dates == {"2020-02-03"}


def test_nothing_is_extracted_from_a_session_without_facts(model: Any) -> None:
    present("mem0")
    model.reply = lambda request: {"role": "assistant", "content": '{"memory": []}'}
    memory: Any = make_policy(f"mem0:model=m,base_url={model.url}").build(RECORDS[:2])
    assert memory.events() == (Event("skip", IDS[0], IDS[0], 0), Event("skip", IDS[1], IDS[1], 1))
    memory.close()


@pytest.mark.parametrize("system", ["mem0", "langmem"])
def test_a_model_that_fails_fails_the_route(model: Any, system: str, tmp_path: Path) -> None:
    present(system)
    model.broken = True
    spec = f"{system}:model=m,base_url={model.url}"
    audit = routeprism.audit(SMALL, spec, run=tmp_path / "run", resamples=100)
    (note,) = [note for note in audit.notes if "failed" in note]
    assert "8 routes of" in note
    assert "failed on record" in note
    model.broken = False
    result = routeprism.audit(SMALL, spec, run=tmp_path / "run", resamples=100)
    assert result.value("J", policy=spec).units == 4


def test_langmem_with_several_builds_shows_the_effect_of_order(model: Any) -> None:
    """The newest record is all that is left, so the two orders have nothing in common."""
    present("langmem")
    spec = f"langmem:model=m,base_url={model.url}"
    six = replace(SAMPLE, cases=SAMPLE.cases[:6])  # fewer users cannot show a claim at 5%
    audit = routeprism.audit(six, spec, builds=2, resamples=100)
    assert audit.value("D_build", policy=spec).estimate == 1
    text = "order changes its sources more than building again does"
    assert any(text in sentence for sentence in audit.sentences)


_SCRIPT = """
import json, sys
import routeprism
from dataclasses import replace
from routeprism.policies import make_policy
from routeprism.records import load_benchmark

sample = load_benchmark("sample", None)
policy = make_policy(sys.argv[1])
memory = policy.build(sample.cases[0].pool.records)
log = [[e.kind, e.record, e.by, e.at] for e in memory.events()]
held = sorted(memory.retained())
memory.close()
found = routeprism.audit(replace(sample, cases=sample.cases[:4]), policy, resamples=100)
j = found.value("J", policy=policy.name).estimate
print(json.dumps({"origin": policy.origin(), "log": log, "held": held, "J": j}))
"""


def test_mem0_before_version_two_overwrites_and_the_log_says_by_whom(model: Any) -> None:
    """Its model decides ADD, UPDATE or DELETE for what is stored: here, always an overwrite."""
    present("mem0")
    if not BEFORE_TWO.is_dir():
        pytest.skip(f"mem0 1.x is not in {BEFORE_TWO}; make test-extras puts it there")
    spec = f"mem0:model=m,base_url={model.url}"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, spec],
        env={**os.environ, "PYTHONPATH": str(BEFORE_TWO)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    document = json.loads(done.stdout.splitlines()[-1])
    assert document["origin"].startswith("mem0ai 1.")
    assert document["held"] == [IDS[-1]]
    assert document["log"] == overwritten(IDS)
    assert document["J"] == 0  # forward keeps the last record, replay the first
    prompts = [m["content"] for item in model.asked for m in item["messages"]]
    assert any("Today's date is 2025-01-01" in text for text in prompts)
