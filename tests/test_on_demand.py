"""Names that packages import when they are first used."""

from __future__ import annotations

import pydoc
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import routeprism
from routeprism.experiments import WORKPLACE, registered_experiments
from routeprism.specs import registered

PACKAGES = (
    "routeprism",
    "routeprism.api",
    "routeprism.experiments",
    "routeprism.models",
    "routeprism.review",
)


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_there_and_no_other(name: str) -> None:
    package = import_module(name)
    for public in package.__all__:
        assert getattr(package, public) is not None
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nobody'"):
        _ = package.nobody


@pytest.mark.parametrize("name", PACKAGES)
def test_names_are_listed_before_they_are_imported(name: str) -> None:
    code = f"import {name} as package; print(sorted(set(package.__all__) - set(dir(package))))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_help_shows_what_can_be_called() -> None:
    text = pydoc.plain(pydoc.render_doc(import_module("routeprism")))
    for line in ("class Record(", "audit(", "restore(", "load_benchmark("):
        assert f"\n    {line}" in text


def test_a_worker_imports_nothing_for_answers() -> None:
    heavy = {"asyncio", "importlib.metadata"} | {
        f"routeprism.{package}" for package in ("answers", "labels", "landscape")
    }
    code = f"import sys, {WORKPLACE}; print(sorted({heavy} & set(sys.modules)))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


def test_help_of_a_command_imports_no_experiment_and_no_library() -> None:
    heavy = {"numpy", "rich", "cyclopts", "sqlite3", "asyncio"} | {
        f"routeprism.{package}" for package in ("answers", "landscape", "measures", "policies")
    }
    code = (
        "import sys; from routeprism.cli import run_command\n"
        "for command in ('audit', 'restore', 'check', 'list'):\n"
        "    run_command([command, '--help'])\n"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == "[]\n"
    assert "--design" in ended.stdout and "--overlap-trials" in ended.stdout


def _list_imports(words: list[str], heavy: set[str]) -> str:
    code = (
        "import sys; from routeprism.cli import run_command\n"
        f"run_command({words!r})\n"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return ended.stderr


def test_check_imports_nothing_that_builds_memories_or_computes(tmp_path: Path) -> None:
    run = str(tmp_path / "run")
    routeprism.audit("sample", "recent:k=3", schedules=["replay"], resamples=100, run=run)
    heavy = {"numpy", "asyncio", "ssl", "routeprism.report"} | {
        f"routeprism.{package}" for package in ("answers", "measures", "models", "policies")
    }
    assert _list_imports(["check", run, "-g", "J>=0"], heavy) == "[]\n"


def test_a_list_imports_what_it_names() -> None:
    heavy = {"numpy", "sqlite3", "routeprism.policies", "routeprism.answers", "routeprism.report"}
    assert _list_imports(["list", "schedules"], heavy) == "[]\n"
    heavy = {"sqlite3", "routeprism.experiments", "routeprism.models.gateway", "routeprism.runs"}
    assert _list_imports(["list", "policies"], heavy) == "[]\n"


def test_options_are_declared_beside_experiments_as_experiments_have_them() -> None:
    declared = {name: point.load() for name, point in registered("options").items()}
    assert {name: (o.settings, o.commands, o.rank) for name, o in declared.items()} == {
        experiment.name: (experiment.settings, experiment.commands, experiment.rank)
        for experiment in registered_experiments()
        if experiment.settings is not None
    }
