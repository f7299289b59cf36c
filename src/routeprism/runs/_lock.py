"""One process at a time writes a run directory; the lock goes when its process does, however."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from routeprism.errors import RunError

__all__ = ["locked"]


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the directory, or refuse because another process holds it."""
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

            handle = os.open(directory / ".lock", os.O_RDWR | os.O_CREAT)
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
            f"{directory} is being written by another process; wait for it, or choose another --run"
        ) from error
    return handle
