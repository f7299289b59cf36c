"""Opening the files that a user names: regular files only, unpacked up to a limit."""

from __future__ import annotations

import gzip
import stat
import zlib
from pathlib import Path
from typing import IO, cast

from routeprism.errors import InputError

__all__ = ["UNPACKED_LIMIT", "open_input", "read_input"]

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
