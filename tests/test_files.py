"""Files that a user names: no pipe is waited for, and a small gzip file cannot fill the memory."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism import files
from routeprism.errors import InputError
from routeprism.records import load_benchmark


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    return path


AUDIT = ("audit", "sample", "-p", "recent:k=2")


@pytest.mark.parametrize(
    "words",
    [
        (*AUDIT, "-m", "recorded:{pipe}"),
        (*AUDIT, "--mask", "{pipe}"),
        (*AUDIT, "--readings", "{pipe}"),
        ("audit", "sample", "-p", "trace:forward={pipe},route={pipe}"),
        ("audit", "longmemeval:path={pipe}", "-p", "recent:k=2"),
        ("screen", "sample", "--pass", "one={pipe}"),
    ],
)
def test_a_pipe_is_refused_at_once(
    pipe: Path, cli: Callable[..., Any], words: tuple[str, ...]
) -> None:
    outcome = cli(*(word.format(pipe=pipe) for word in words))
    assert outcome.code == 2
    assert "is a pipe, a socket or a device; expected a regular file" in outcome.err


@pytest.mark.parametrize("name", ["records.jsonl", "questions.jsonl"])
def test_own_data_may_not_be_a_pipe(own_data: Callable[..., Path], name: str) -> None:
    directory = own_data(
        [{"user": "u", "id": "r", "text": "x"}], [{"user": "u", "id": "q", "text": "x"}]
    )
    (directory / name).unlink()
    os.mkfifo(directory / name)
    with pytest.raises(InputError, match="expected a regular file"):
        load_benchmark(str(directory))


@pytest.fixture
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "UNPACKED_LIMIT", 1 << 20)


def test_a_file_that_unpacks_beyond_the_limit_is_refused(tmp_path: Path, small_limit: None) -> None:
    file = tmp_path / "answers.csv.gz"
    file.write_bytes(gzip.compress(b"x" * ((1 << 20) + 1)))
    with pytest.raises(InputError, match="unpacks to more than 1 MiB; if that is intended, unpack"):
        files.read_input(file)
    file.write_bytes(gzip.compress(b"x" * (1 << 20)))
    assert len(files.read_input(file)) == 1 << 20


def test_one_endless_entry_of_a_streamed_list_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from routeprism.records import _files

    monkeypatch.setattr(_files, "UNPACKED_LIMIT", 1 << 20)
    monkeypatch.setattr(_files, "_BLOCK", 1 << 18)
    file = tmp_path / "long.json.gz"
    file.write_bytes(gzip.compress(b'[{"question_id": "' + b"x" * (8 << 20)))
    with pytest.raises(InputError, match="one entry of the list is longer than 1 million"):
        load_benchmark(f"longmemeval:path={file}")
