"""Files: written as a whole or not at all, never through a link; read only if they are regular."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import secrets
import stat
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

from routeprism.errors import InputError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = [
    "UNPACKED_LIMIT",
    "create_beside",
    "draft_file",
    "is_draft",
    "open_input",
    "open_part",
    "owns_part",
    "read_input",
    "remove_drafts",
    "replace_file",
    "sync_directory",
    "write_output",
]

_DRAFT = re.compile(r"\.routeprism-[0-9a-f]{16}\.tmp")
"""The name of a file that was begun; a process that is killed leaves one behind."""


def replace_file(path: Path, content: bytes) -> None:
    """Write a file beside its place, durably, and then move it there in one step."""
    with draft_file(path, content) as place:
        place()


@contextlib.contextmanager
def draft_file(path: Path, content: bytes) -> Iterator[Callable[[], None]]:
    """Write a file beside its place, durably; give the step that moves it there.

    That step needs no more room on the disk. A file that was not moved is removed at the end, and
    so are the drafts of processes that were killed.
    """
    remove_drafts(path.parent)
    with create_beside(path) as (draft, stream):
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())

        def place() -> None:
            if fcntl is None:
                stream.close()  # where nothing is locked, an open file cannot be moved either
            draft.replace(path)
            sync_directory(path.parent)

        yield place


def write_output(path: Path, content: bytes) -> None:
    """Write a file that the user has named; a device or a pipe is written to, not replaced."""
    if path.exists() and not path.is_file():
        with path.open("wb") as stream:
            stream.write(content)
    else:
        replace_file(path, content)


@contextlib.contextmanager
def create_beside(path: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Create a file of an unpredictable name in the directory of `path`; remove it at the end.

    The file is created exclusively: a link or a file that lies under its name is never opened.
    """
    draft, handle = _create_draft(path)
    try:
        with open(handle, "wb") as stream:  # noqa: PTH123 (a descriptor)
            yield draft, stream
    finally:
        draft.unlink(missing_ok=True)


def _create_draft(path: Path) -> tuple[Path, int]:
    """Create a draft and lock it for as long as it is open."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        draft = path.with_name(f".routeprism-{secrets.token_hex(8)}.tmp")
        handle = os.open(draft, flags, 0o666)
        _lock(handle, wait=True)
        if fcntl is None or os.fstat(handle).st_nlink:
            return draft, handle
        os.close(handle)  # another process took it for one that was left behind


def remove_drafts(directory: Path) -> None:
    """Remove the drafts in a directory that no process is writing any more."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for path in [Path(entry) for entry in os.scandir(directory) if is_draft(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_draft(path)


def _remove_draft(path: Path) -> None:
    if not owns_part(path) or path.lstat().st_uid != os.geteuid():
        return
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        if _lock(handle, wait=False):
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _lock(handle: int, *, wait: bool) -> bool:
    """Lock an open file where the system can; return whether that was possible."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def owns_part(path: Path) -> bool:
    """Check that a growing file is a regular file without a second name."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink == 1


def open_part(path: Path, *, resume: bool) -> BinaryIO:
    """Open a file that grows under a known name: its own one to resume, else one just created."""
    flags = os.O_WRONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    if resume and owns_part(path):
        return os.fdopen(os.open(path, flags | os.O_APPEND), "ab")
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o666), "wb")


def is_draft(name: str) -> bool:
    """Check whether `create_beside` makes files with this name."""
    return _DRAFT.fullmatch(name) is not None


def sync_directory(directory: Path) -> None:
    """Make names in a directory durable, where the system can."""
    if os.name != "posix":
        return
    with contextlib.suppress(OSError):  # some file systems cannot
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# --- files that the user names ---------------------------------------------------------------

UNPACKED_LIMIT = 256 << 20
"""Bytes that a compressed file may unpack to where it is read as a whole."""


def open_input(path: Path) -> IO[bytes]:
    """Open a file for reading, unpacked if it is gzipped; refuse pipes, devices and directories.

    Opening a pipe would wait for a writer.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            kind = "a directory" if path.is_dir() else "a pipe, a socket or a device"
            raise InputError(f"is {kind}; expected a regular file", file=path)
        return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", file=path) from error


def read_input(path: Path) -> bytes:
    """Read a whole file, unpacked."""
    with open_input(path) as stream:
        try:
            if path.suffix != ".gz":
                return stream.read()
            content = stream.read(UNPACKED_LIMIT + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise InputError(
                f"is not a complete gzip file ({error}); get it again", file=path
            ) from error
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if len(content) > UNPACKED_LIMIT:
        raise InputError(
            f"unpacks to more than {UNPACKED_LIMIT >> 20} MiB; if that is intended, unpack it "
            f"yourself and name the unpacked file",
            file=path,
        )
    return content
