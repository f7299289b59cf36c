"""Claim a directory for a run: one process at a time writes it, and cleans up what it leaves."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from routeprism.errors import RunError
from routeprism.files import is_draft, remove_drafts
from routeprism.runs._ledger import count_answers
from routeprism.runs._store import (
    ESTIMATES,
    FINISHED,
    FORMAT,
    MANIFEST,
    PENDING_RESULTS,
    STORE,
    STORE_FILES,
    check_format,
    check_regular,
    find_progress,
    settle_store,
)

_STAGE = ".extension-"
"""Prefix of the private directory in which the extension of a run is prepared."""


@dataclass(slots=True)
class Claim:
    """A run directory that this process may write."""

    directory: Path
    fresh: bool
    """Whether it contains no run yet."""
    complete: bool
    """Whether it contains a finished run."""
    folders: tuple[Path, ...]
    """The directories that were created for it, the innermost first."""
    _stage: Path | None = field(default=None)

    def create_stage(self) -> Path:
        """Create a private directory for tables that are not published yet."""
        try:
            self._stage = Path(mkdtemp(prefix=_STAGE, dir=self.directory))
        except OSError as error:
            raise RunError(
                f"{self.directory} cannot be written: {error.strerror or error}. The run in it "
                f"stays as it was"
            ) from error
        return self._stage

    def settle(self, *, finished: bool, interrupted: bool = False) -> str:
        """Remove what a failed start wrote, and describe what stays.

        Checkpoints of a start that was interrupted stay; those of one that failed may be wrong.
        """
        if self._stage is not None:
            _remove_stage(self._stage)
        store = self.directory / STORE
        answers = count_answers(store)
        resumable = interrupted and find_progress(store)
        if self.fresh and not finished and answers == 0 and not resumable:
            self._remove()
            return "The run had no answers yet, so nothing of it is left"
        settle_store(store)
        number = "Every answer that came in is kept"
        if answers is not None:
            number = f"{answers:,} {'answer is' if answers == 1 else 'answers are'} kept"
        whole = "The finished run is as it was. " if self.complete else ""
        return f"{whole}{number}; run the same command again to resume"

    def _remove(self) -> None:
        """Remove the files of a new run, and the directories that are empty then.

        The manifest goes last, so that a process that is killed meanwhile leaves a run.
        """
        for name in (ESTIMATES, PENDING_RESULTS, *STORE_FILES, MANIFEST, LOCK):
            with suppress(OSError):
                (self.directory / name).unlink(missing_ok=True)
        _remove_empty(self.folders)


@contextmanager
def claim_directory(
    directory: Path, manifest: Mapping[str, Any], growing: Collection[str]
) -> Iterator[Claim]:
    """Create and lock a directory, and check that it is empty or contains the run of a manifest."""
    folders = _create(directory)
    claim = None
    try:
        with _lock_directory(directory):
            before = _inspect(directory, manifest, growing)
            status = None if before is None else before.get("status")
            claim = Claim(directory, before is None, status in FINISHED, folders)
            _clean(directory)
            yield claim
    except BaseException:
        if claim is None:
            _remove_empty(folders)
        raise


def _remove_empty(folders: Collection[Path]) -> None:
    """Remove directories, the innermost first, up to one that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _create(directory: Path) -> tuple[Path, ...]:
    """Create a directory and its parents; give the new ones, the innermost first."""
    created: list[Path] = []
    try:
        if directory.exists() and not directory.is_dir():
            raise RunError(f"{directory} is a file; a run is a directory")
        missing = [path for path in (directory, *directory.parents) if not path.exists()]
        for folder in reversed(missing):
            with suppress(FileExistsError):  # another process creates it at the same moment
                folder.mkdir()
                created.insert(0, folder)
    except (OSError, ValueError) as error:  # a name that no directory can have, or no access
        _remove_empty(created)
        reason = getattr(error, "strerror", None) or error
        raise RunError(f"{directory} cannot be created: {reason}") from error
    return tuple(created)


def _inspect(
    directory: Path, manifest: Mapping[str, Any], growing: Collection[str]
) -> dict[str, Any] | None:
    """Read the manifest of the run in a directory; None if there is none."""
    path = directory / MANIFEST
    check_regular(path)
    try:
        before: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        stored = {**dict(before["configuration"]), "inputs": dict(before["inputs"])}
    except FileNotFoundError:
        _refuse_foreign(directory)
        return None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise RunError(f"{path} cannot be read ({error}); choose a different directory") from error
    check_format(path, before, f"writes {FORMAT}; choose a different directory")
    expected = {**manifest["configuration"], "inputs": dict(manifest["inputs"])}
    for name in growing:
        stored.pop(name, None)
        expected.pop(name, None)
    if stored != expected:
        raise RunError(
            f"{directory} holds another run; choose a different directory. It differs in:\n"
            + _difference(stored, expected)
        )
    return before


def _refuse_foreign(directory: Path) -> None:
    """Refuse a directory with other files; a killed start leaves only drafts."""
    for path in directory.iterdir():
        if not is_draft(path.name) and path.name != LOCK:
            raise RunError(
                f"{directory} contains files that do not belong to a run; choose an empty directory"
            )


def _clean(directory: Path) -> None:
    """Remove the unfinished files of a process that was killed."""
    remove_drafts(directory)
    for path in directory.iterdir():
        if path.name.startswith(_STAGE) and path.is_dir() and not path.is_symlink():
            _remove_stage(path)


def _remove_stage(stage: Path) -> None:
    """Remove a stage, unless it contains other files."""
    with suppress(OSError):
        for name in STORE_FILES:
            (stage / name).unlink(missing_ok=True)
        stage.rmdir()


def _difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    lines = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        if old != new:
            lines.append(f"  {name}: {json.dumps(old)} there, {json.dumps(new)} here")
    return "\n".join(lines)


LOCK = ".lock"
"""The file that is locked on systems that cannot lock a directory."""


@contextmanager
def _lock_directory(directory: Path) -> Iterator[None]:
    """Lock the directory; refuse if another process has locked it."""
    handle = _acquire(directory)
    try:
        yield
    finally:
        os.close(handle)


def _acquire(directory: Path) -> int:
    handle = -1
    try:
        if sys.platform == "win32":
            import msvcrt

            handle = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT)
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            # The directory itself: no file to leave behind, none of SQLite's to disturb.
            handle = os.open(directory, os.O_RDONLY)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if handle < 0:
            raise RunError(f"{directory} cannot be used: {error.strerror or error}") from error
        os.close(handle)
        raise RunError(
            f"{directory} is being written by another process; wait for it, or choose a different "
            f"directory"
        ) from error
    return handle
