"""Reading benchmark files: plain or gzipped, with errors that name the place."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from routeprism.errors import InputError

__all__ = [
    "data_directory",
    "find",
    "fingerprint",
    "is_directory",
    "is_file",
    "loads",
    "parse_json",
    "read_bytes",
    "sha256",
    "text_of",
]


def sha256(content: bytes) -> str:
    """Give the digest in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def fingerprint(inputs: dict[str, str]) -> str:
    """Give one digest for several named inputs."""
    return sha256(json.dumps(inputs, sort_keys=True).encode())


def data_directory(data: Path | None, benchmark: str) -> Path:
    """Give the directory of a benchmark's files, or say how to name it."""
    if data is None:
        raise InputError(
            f"where are the files of '{benchmark}'? Say --data DIR or set ROUTEPRISM_DATA; "
            f"routeprism fetch {benchmark} --data DIR gets them"
        )
    if not is_directory(data):
        raise InputError("there is no such directory", file=data)
    return data


def is_directory(path: Path) -> bool:
    """Whether it is one; a name that no file could have is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Whether it is one; a name that no file could have is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find(directory: Path, *names: str, fetched: str | None = None) -> Path:
    """Give the first of these files that exists, plain or gzipped.

    `fetched` is what `routeprism fetch` calls them, where it can get them.
    """
    for name in names:
        for candidate in (name, f"{name}.gz"):
            if (directory / candidate).is_file():
                return directory / candidate
    lacks = f"no {names[0]}" if len(names) == 1 else f"neither {' nor '.join(names)}"
    remedy = f"; routeprism fetch {fetched} --data DIR gets it" if fetched else ""
    raise InputError(f"there is {lacks} (nor .gz) in it{remedy}", file=directory)


def read_bytes(path: Path) -> bytes:
    """Read a file, unpacked."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, OSError, zlib.error) as error:
        raise InputError(f"is no complete gzip file ({error}); get it again", file=path) from error


def text_of(content: bytes, path: Path) -> str:
    """Decode a file as UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"is not UTF-8 text ({error.reason})", file=path, line=line) from error


_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def loads(text: str) -> Any:
    """Parse JSON; whatever is wrong with it is a ValueError that says so."""
    try:
        parsed = json.loads(text)
        # Text that was decoded has no halves but escaped ones.
        found = _find_half(parsed) if _ESCAPED_HALF.search(text) else None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if found:
        half, way = found
        where = f" (in {way.removeprefix('.')})" if way else ""
        raise ValueError(f"{half!r} is half a character, and no text{where}")
    return parsed


def _find_half(parsed: Any) -> tuple[str, str] | None:
    """Find half of a surrogate pair, which JSON can escape and nobody can keep, and the way to it.

    The way is written `.turns[0].text`.
    """
    if isinstance(parsed, str):
        half = None if parsed.isascii() else _HALF.search(parsed)
        return (half[0], "") if half else None
    steps: Iterable[tuple[str | int, Any]] = ()
    if isinstance(parsed, dict):
        steps = parsed.items()
    elif isinstance(parsed, list):
        steps = enumerate(parsed)
    for step, value in steps:
        if found := _find_half(step):
            return found
        if found := _find_half(value):
            return found[0], (f".{step}" if isinstance(step, str) else f"[{step}]") + found[1]
    return None


def parse_json(content: bytes, path: Path) -> Any:
    """Parse a whole JSON file."""
    try:
        return loads(text_of(content, path))
    except json.JSONDecodeError as error:
        raise InputError(
            f"is no valid JSON: {error.msg}; the file may be truncated",
            file=path,
            line=error.lineno,
        ) from error
    except ValueError as error:
        raise InputError(f"cannot be used: {error}", file=path) from error
