"""Nothing is written, or read and sent away, through a link that somebody has put in the way."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

import routeprism
from routeprism import files
from routeprism.errors import RunError
from routeprism.report import write_answers, write_report
from routeprism.runs import Run

if not hasattr(os, "symlink"):
    pytest.skip("this system has no symbolic links", allow_module_level=True)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file that nobody may change."""
    path = tmp_path / "secret.txt"
    path.write_text("as it was")
    return path


def test_a_link_under_the_name_of_a_draft_is_not_followed(
    tmp_path: Path, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even one that was guessed: the file is created exclusively."""
    monkeypatch.setattr(files.secrets, "token_hex", lambda size: "0" * 2 * size)
    (tmp_path / ".routeprism-0000000000000000.tmp").symlink_to(secret)
    with pytest.raises(FileExistsError):
        files.replace_file(tmp_path / "report.html", b"new")
    assert secret.read_text() == "as it was"


def test_a_draft_has_another_name_each_time(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with files.create_beside(tmp_path / "x") as (draft, _stream):
            names.append(draft.name)
    assert len(set(names)) == 2
    assert all(map(files.is_draft, names))
    assert list(tmp_path.iterdir()) == []


def test_a_draft_that_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".routeprism-0123456789abcdef.tmp").write_bytes(b"half")
    (tmp_path / ".routeprism-notes.tmp").write_bytes(b"of the user")
    files.replace_file(tmp_path / "report.html", b"new")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".routeprism-notes.tmp",
        "report.html",
    ]


def test_a_draft_that_is_being_written_stays(tmp_path: Path) -> None:
    with files.draft_file(tmp_path / "first.html", b"first") as place:
        files.replace_file(tmp_path / "second.html", b"second")
        place()
    assert (tmp_path / "first.html").read_bytes() == b"first"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first.html", "second.html"]


def test_the_names_of_earlier_versions_are_not_followed(
    small_data: Path, tmp_path: Path, secret: Path
) -> None:
    directory = tmp_path / "run"
    routeprism.audit(small_data, "recent:k=2", run=directory, resamples=100)
    for name in ("manifest.json", "estimates.csv", "report.html"):
        (directory / f".{name}.tmp").symlink_to(secret)
    routeprism.audit(small_data, "recent:k=2", run=directory, resamples=100)
    write_report(directory)
    assert secret.read_text() == "as it was"


def test_a_link_in_the_place_of_the_file_is_replaced(tmp_path: Path, secret: Path) -> None:
    (tmp_path / "report.html").symlink_to(secret)
    files.replace_file(tmp_path / "report.html", b"new")
    assert secret.read_text() == "as it was"
    assert (tmp_path / "report.html").read_bytes() == b"new"


def test_files_have_the_permissions_that_the_user_wants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        files.replace_file(tmp_path / "report.html", b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "report.html").stat().st_mode) == 0o640


def test_a_link_in_a_run_directory_is_not_removed_with_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "run.sqlite").write_text("mine")
    with Run.open(tmp_path / "run", {"command": "audit"}, inputs={}) as run:
        run.finish([], {})
    (tmp_path / "run" / ".extension-abc").symlink_to(tmp_path / "elsewhere")
    with Run.open(tmp_path / "run", {"command": "audit"}, inputs={}) as run:
        run.finish([], {})
    assert (tmp_path / "elsewhere" / "run.sqlite").read_text() == "mine"


# --- parts of downloads ----------------------------------------------------------------------


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize("resume", [True, False])
def test_a_part_that_is_a_link_is_neither_resumed_nor_written(
    tmp_path: Path, secret: Path, link: Callable[[Path, Path], None], resume: bool
) -> None:
    part = tmp_path / "data.json.part"
    link(secret, part)
    assert not files.owns_part(part)
    with files.open_part(part, resume=resume) as stream:
        stream.write(b"new")
    assert secret.read_text() == "as it was"
    assert part.read_bytes() == b"new"


def test_a_part_of_our_own_is_resumed(tmp_path: Path) -> None:
    part = tmp_path / "data.json.part"
    part.write_bytes(b"half ")
    with files.open_part(part, resume=True) as stream:
        stream.write(b"and half")
    assert part.read_bytes() == b"half and half"


# --- devices ---------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_device_is_written_to_and_not_replaced(small_data: Path, tmp_path: Path) -> None:
    directory = tmp_path / "run"
    routeprism.audit(small_data, "recent:k=2", models=["reader"], run=directory, resamples=100)
    with pytest.raises(RunError, match="/dev/full cannot be written: No space left on device"):
        write_report(directory, Path("/dev/full"))
    assert Path("/dev/full").is_char_device()
    assert write_answers(directory, Path("/dev/null")) == 3 * 2 * 2
    assert Path("/dev/null").is_char_device()
