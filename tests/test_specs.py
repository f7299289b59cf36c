"""Naming one's own class imports it, and nothing else from the current directory."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest

from routeprism import specs
from routeprism.errors import SpecError

PROGRAM = (
    "import sys; from routeprism.cli import main; sys.argv = ['routeprism', *sys.argv[1:]]; main()"
)
MEMORY = """
class Newest:
    records = ()

    def add(self, record):
        self.records = (*self.records, record)[-2:]

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return self.records
"""


@pytest.fixture
def run_command(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command line in a fresh interpreter, in a directory full of misleading files."""
    for name in ("csv", "numpy", "json", "openai", "sqlite3"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of this directory ran')")

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        # -P keeps the directory out of sys.path; it exists from Python 3.11 on.
        start = "import sys; sys.path[:] = [p for p in sys.path if p]; "
        return subprocess.run(
            [sys.executable, "-c", start + PROGRAM, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("audit", "sample", "-p", "recent:k=2", "--resamples", "100", "--run", "run"),
        ("audit", "sample", "-p", "own_notes:Newest", "--resamples", "100"),
    ],
)
def test_files_of_the_current_directory_replace_no_installed_module(
    run_command: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path: Path,
    words: tuple[str, ...],
) -> None:
    (tmp_path / "own_notes.py").write_text(MEMORY)
    done = run_command(*words)
    assert done.returncode == 0, done.stderr
    assert re.search(r"\bran\b", done.stdout + done.stderr) is None


def test_a_class_that_an_installed_module_hides_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "csv.py").write_text(MEMORY)
    with pytest.raises(SpecError, match=r"'csv' is a module of Python .* rename csv\.py"):
        specs.load_object("csv:Newest")


def test_only_naming_a_class_adds_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli("list", "policies").code == 0
    assert str(tmp_path) not in sys.path
    (tmp_path / "own_notes_two.py").write_text(MEMORY)
    specs.load_object("own_notes_two:Newest")
    assert sys.path[-1] == str(tmp_path)


def test_an_object_that_passes_calls_on_fulfils_a_protocol() -> None:
    class Wrapper:
        def __getattr__(self, name: str) -> Any:
            return getattr("some text", name)

    class Upper(Protocol):
        def upper(self) -> str: ...

    assert specs.fulfils(Wrapper(), Upper)  # isinstance says no from Python 3.12 on
    assert not specs.fulfils(3, Upper)
