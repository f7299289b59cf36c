"""No way of starting RoutePrism executes files of the current directory that nobody named."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path

import pytest

from .doubles import list_executed, plant_files

pytestmark = pytest.mark.slow
OWN_MEMORY = """
class Memory:
    def __init__(self):
        self.records = []

    def add(self, record):
        self.records = [*self.records, record][-3:]

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return self.records
"""
SCRIPT = Path(sysconfig.get_path("scripts")) / "routeprism"
STARTS: Mapping[str, tuple[str | Path, ...]] = {
    "script": (SCRIPT,),
    "safe module": (sys.executable, "-P", "-m", "routeprism"),
    "module": (sys.executable, "-m", "routeprism"),
}
FEW = ("--resamples", "100", "--schedule", "replay", "--quiet", "--run", "run")


def remove_what_python_imports(directory: Path, package: Path) -> None:
    """Remove planted files until `python -m` with an empty package executes none of them."""
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").touch()
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    call = [sys.executable, "-m", package.name]
    subprocess.run(call, cwd=directory, env=environment, capture_output=True)
    while executed := list_executed(directory):
        for name in executed:
            (directory / f"{name}.py").unlink()
            (directory / f"{name}.py.ran").unlink()
        subprocess.run(call, cwd=directory, env=environment, capture_output=True)


@pytest.mark.parametrize("policy", ["recent:k=2", "own_memory:Memory", "team.memory:Memory"])
@pytest.mark.parametrize("start", STARTS)
def test_files_of_the_current_directory_are_not_executed(
    start: str, policy: str, tmp_path: Path
) -> None:
    """A class of this directory is found all the same, also by workers.

    A class that is found elsewhere, as an installed one, opens this directory to no import at all.
    """
    if start == "safe module" and sys.version_info < (3, 11):
        pytest.skip("-P exists from Python 3.11 on")
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / "own_memory.py").write_text(OWN_MEMORY)
    installed = tmp_path / "installed" / "team"
    installed.mkdir(parents=True)
    (installed / "memory.py").write_text(OWN_MEMORY)
    plant_files(directory, last=policy.startswith("own"))
    if start == "module":
        remove_what_python_imports(directory, tmp_path / "site" / "empty")
        assert len([*directory.glob("*.py")]) > 100
    done = subprocess.run(
        [*STARTS[start], "audit", "sample", "-p", policy, *FEW, "--workers", "2"],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(installed.parent)},
        capture_output=True,
        text=True,
    )
    assert list_executed(directory) == []
    assert done.returncode == 0, done.stderr
    assert json.loads((directory / "run" / "manifest.json").read_text())["status"] == "complete"
