"""What tests share: the real data, own data written on the spot, and the command line."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from routeprism.cli import main

# Tests take no time; and a failing example is printed, not kept in a directory.
settings.register_profile("routeprism", deadline=None, database=None, print_blob=True)
settings.load_profile("routeprism")

REAL_FILES = (
    "personamem-32k/documents.json.gz",
    "personamem-32k/queries.json.gz",
    "personamem-32k/questions_32k.csv.gz",
    "locomo/locomo10.json.gz",
    "longmemeval/one_question.json.gz",
    "longmemeval/session_index_237.json.gz",
)

Lines = Sequence[Mapping[str, Any]] | bytes


@pytest.fixture(scope="session")
def data() -> Path:
    """The directory with the benchmark files; where CI is set, they have to be there."""
    named = os.environ.get("ROUTEPRISM_DATA")
    missing = [name for name in REAL_FILES if not named or not (Path(named) / name).is_file()]
    if missing:
        where = f"'{named}' has no {missing[0]}" if named else "ROUTEPRISM_DATA is not set"
        reason = f"{where}; set ROUTEPRISM_DATA to the directory that holds {', '.join(REAL_FILES)}"
        if os.environ.get("CI"):
            pytest.fail(f"{reason} (CI is set, so that nothing may skip)", pytrace=False)
        pytest.skip(reason)
    return Path(str(named))


@pytest.fixture
def own_data(tmp_path: Path) -> Callable[..., Path]:
    """Write a directory of own data: entries, or the very bytes of a file; None leaves it out."""

    def write(records: Lines | None, questions: Lines | None, name: str = "mydata") -> Path:
        directory = tmp_path / name
        directory.mkdir()
        for file, lines in (("records.jsonl", records), ("questions.jsonl", questions)):
            if lines is not None:
                written = lines if isinstance(lines, bytes) else as_lines(lines)
                (directory / file).write_bytes(written)
        return directory

    return write


def as_lines(entries: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(entry).encode() + b"\n" for entry in entries)


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str
    left: tuple[str, ...]
    """Every file and folder below the (first empty) directory that it was called in."""


@pytest.fixture
def cli(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Outcome]:
    """Call the command line in this process, from an empty directory, with no data named."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.delenv("ROUTEPRISM_DATA", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))  # main adds the current directory
    monkeypatch.setenv("COLUMNS", "200")

    def call(*arguments: str | Path) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["routeprism", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        said = capsys.readouterr()
        left = tuple(sorted(str(path.relative_to(here)) for path in here.rglob("*")))
        return Outcome(int(end.value.code or 0), said.out, said.err, left)

    return call
