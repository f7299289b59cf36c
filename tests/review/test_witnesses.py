"""Findings saved as tests: they fail on the memory that was audited, and pass on its repair."""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import routeprism

MEMORIES = '''
import asyncio


class KeepsLastOfFact:
    """The last arrival about a fact replaces the earlier one."""

    def __init__(self):
        self.held = []

    def add(self, record):
        fact = record.text.partition(":")[0]
        self.held = [*(r for r in self.held if not r.text.startswith(fact)), record]

    def retained(self):
        return [record.id for record in self.held]

    def expose(self, query):
        return sorted(self.held, key=lambda record: str(record.timestamp))


class NeverKeepsPlans(KeepsLastOfFact):
    def add(self, record):
        if not record.text.startswith("plan"):
            super().add(record)


class LosesUpdates(KeepsLastOfFact):
    async def add(self, record):
        held = self.held
        await asyncio.sleep(0)
        self.held = [*held, record]
'''
HOSTILE = "'''\"\\ {x} \u202e\n\n\nimport os\x1b[2J"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Write memories, and three users with two facts that change, whose texts are hostile."""
    (tmp_path / "witness_memories.py").write_text(MEMORIES)
    monkeypatch.syspath_prepend(tmp_path)
    records, questions = [], []
    for user in ("ann", "ben", "eva"):
        for at in range(6):
            text = f"{('plan', 'city')[at % 2]}: value {at} {HOSTILE}"
            day = f"2025-03-0{at + 1}"
            records.append({"user": user, "id": f"t{at}", "text": text, "timestamp": day})
        for fact, at in (("plan", 4), ("city", 5)):
            question = {"user": user, "id": f"{user}-{fact}", "text": f"Which {fact}?"}
            questions.append(question | {"support": [f"t{at}"], "stale": [f"t{at - 2}"]})
    for name, lines in (("records", records), ("questions", questions)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    yield tmp_path
    sys.modules.pop("witness_memories", None)


def load_tests(file: Path, **replaced: str) -> list[Callable[[], None]]:
    """Run the source text of saved tests, and return its test functions."""
    source = file.read_text(encoding="utf-8")
    for old, new in replaced.items():
        source = source.replace(f"witness_memories:{old}", new)
    names: dict[str, Any] = {}
    exec(compile(ast.parse(source), str(file), "exec"), names)  # noqa: S102 (what pytest does)
    return [value for name, value in names.items() if name.startswith("test_")]


@pytest.mark.parametrize(
    ("memory", "repair", "options"),
    [
        ("KeepsLastOfFact", "rebuild", {}),
        ("NeverKeepsPlans", "log-fallback:k=3", {}),
        ("LosesUpdates", "queue", {"schedules": ["overlap:k=2"], "overlap_trials": 20}),
    ],
)
def test_a_saved_test_fails_until_the_memory_is_repaired(
    memory: str, repair: str, options: dict[str, Any], data: Path
) -> None:
    file, spec = data / "test_saved.py", f"witness_memories:{memory}"
    result = routeprism.audit(data, spec, resamples=100, workers=1, save=file, **options)
    tests = load_tests(file)
    assert len(tests) == len(result.verdicts[0].promises) + len(result.verdicts[0].causes) > 0
    for test in tests:
        with pytest.raises(AssertionError, match=memory):
            test()
    for test in load_tests(file, **{memory: f"{repair}({spec})"}):
        test()


def test_without_a_finding_the_file_states_that(data: Path) -> None:
    file = data / "test_saved.py"
    routeprism.audit(data, "raw", resamples=100, workers=1, save=file)
    (test,) = load_tests(file)
    assert test.__name__ == "test_nothing_was_found"
    test()


def test_records_are_literals_and_a_missing_directory_is_a_clear_error(data: Path) -> None:
    file = data / "test_saved.py"
    spec = "witness_memories:KeepsLastOfFact"
    routeprism.audit(data, spec, resamples=100, workers=1, save=file)
    text = file.read_text(encoding="utf-8")
    assert "\u202e" not in text and "\x1b" not in text
    assert "import os" in text  # within a literal only
    modules = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import)]
    assert [alias.name for node in modules for alias in node.names] == ["routeprism"]
    with pytest.raises(routeprism.RoutePrismError, match="cannot be written"):
        routeprism.audit(data, spec, resamples=100, save=data / "missing" / "test_saved.py")
