"""Reading benchmark files, plain or gzipped, with errors that name the place.

A long JSON array is scanned once and its elements are read again one by one, so that only one of
them is in memory at a time.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from routeprism.errors import InputError
from routeprism.files import UNPACKED_LIMIT, open_input


def hash_content(content: bytes) -> str:
    """Compute the SHA-256 of a content, in hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def fingerprint(inputs: dict[str, str]) -> str:
    """Compute one digest of several named inputs."""
    return hash_content(json.dumps(inputs, sort_keys=True).encode())


def data_directory(data: Path | None, benchmark: str, folder: str) -> Path:
    """Find the directory of a benchmark's files: DATA/FOLDER if there is one, else DATA."""
    if data is None:
        raise InputError(
            f"where are the files of '{benchmark}'? Pass data=DIR or set ROUTEPRISM_DATA; "
            f"routeprism fetch {benchmark} --data DIR gets them"
        )
    if not is_directory(data):
        raise InputError("there is no such directory", file=data)
    return data / folder if (data / folder).is_dir() else data


def is_directory(path: Path) -> bool:
    """Check a path; a name that no file can have gives False."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Check a path; a name that no file can have gives False."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def find_file(directory: Path, *names: str, fetched: str | None = None) -> Path:
    """Find the first of these files that exists, plain or gzipped.

    `fetched` is their name for `routeprism fetch`, if it can fetch them.
    """
    for name in names:
        for candidate in (name, f"{name}.gz"):
            if (directory / candidate).is_file():
                return directory / candidate
    lacks = f"no {names[0]}" if len(names) == 1 else f"neither {' nor '.join(names)}"
    remedy = f"; routeprism fetch {fetched} --data DIR gets it" if fetched else ""
    raise InputError(f"there is {lacks} (nor .gz) in it{remedy}", file=directory)


def decode_utf8(content: bytes, path: Path) -> str:
    """Decode a file as UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(f"is not UTF-8 text ({error.reason})", file=path, line=line) from error


_ESCAPED_HALF = re.compile(r"\\u[dD][89a-fA-F]")
_HALF = re.compile("[\ud800-\udfff]")


def parse_json(text: str, *, strict: bool = False) -> Any:
    """Parse JSON; any problem is a ValueError that describes it.

    A `strict` reading also refuses a field that is given twice, and NaN and Infinity.
    """
    try:
        parsed = _STRICT.decode(text) if strict else json.loads(text)
        # Text that was decoded has no halves but escaped ones.
        half_character = _find_half(parsed) if _ESCAPED_HALF.search(text) else None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if half_character:
        half, way = half_character
        where = f" (in {way.removeprefix('.')})" if way else ""
        raise ValueError(f"{half!r} is half a character, which is not valid text{where}")
    return parsed


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in fields if names.count(name) > 1)
        raise ValueError(f"the field '{twice}' is given twice")
    return fields


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


_STRICT = json.JSONDecoder(object_pairs_hook=_each_once, parse_constant=_refuse_constant)


def _find_half(parsed: Any) -> tuple[str, str] | None:
    """Find half of a surrogate pair, which JSON can escape and no file can keep, and the way to it.

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
        if part := _find_half(step):
            return part
        if part := _find_half(value):
            return part[0], (f".{step}" if isinstance(step, str) else f"[{step}]") + part[1]
    return None


def parse_json_file(content: bytes, path: Path) -> Any:
    """Parse a whole JSON file."""
    try:
        return parse_json(decode_utf8(content, path))
    except json.JSONDecodeError as error:
        raise InputError(
            f"is not valid JSON: {error.msg}; the file may be truncated",
            file=path,
            line=error.lineno,
        ) from error
    except ValueError as error:
        raise InputError(f"cannot be used: {error}", file=path) from error


_BLOCK = 1 << 23
"""The number of bytes read at once."""
_SPACE = re.compile(r"[ \t\r\n]*")
_TRUNCATED = "the file ends before its list does; it may be truncated: get it again"


@dataclass(frozen=True, slots=True)
class Element:
    """The place of an element in a file."""

    offset: int
    """Its first byte, in the unpacked file."""
    length: int
    """Its size in bytes."""

    def line(self, path: Path) -> int:
        """Count the line it begins on, in the file it is of; only an error asks for that."""
        return count_lines(path, self.offset)


def scan_array(path: Path) -> Iterator[tuple[Element, Any] | str]:
    """Parse a JSON array element by element; last comes the SHA-256 of the unpacked file."""
    digest = hashlib.sha256()
    try:
        # Hashing lets go of the interpreter, so it goes on beside the parsing.
        with open_input(path) as stream, ThreadPoolExecutor(1) as beside:
            yield from _Scan(
                path, stream, lambda block: beside.submit(digest.update, block)
            ).elements()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"is not a complete gzip file ({error}); get it again", file=path
        ) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    yield digest.hexdigest()


class _Scan:
    """A window over the text of a file: what has been parsed is let go when more is read."""

    def __init__(self, path: Path, stream: IO[bytes], observe: Callable[[bytes], object]) -> None:
        self._path, self._stream, self._seen = path, stream, observe
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        """The number of parsed characters."""
        self._counted = 0
        """Up to where bytes have been counted."""
        self._offset = 0
        """The byte there."""
        self._block = _BLOCK

    def elements(self) -> Iterator[tuple[Element, Any]]:
        self._more()
        if self._text.startswith("\ufeff"):
            self._at = 1
        if self._next() != "[":
            raise self._fault("Expected a list of questions, as released")
        self._at += 1
        expected = self._next()
        if expected == "]":
            self._at += 1
        longest = 0
        while expected != "]":
            if expected == "":
                raise self._fault(_TRUNCATED)
            self._block = _BLOCK
            if len(self._text) - self._at < longest:  # to begin in vain takes time
                self._more()
                self._block = _BLOCK
            element, end = self._decode_element()
            longest = max(longest, end - self._at)
            self._count()
            start = self._offset
            self._at = end
            self._count()
            yield Element(start, self._offset - start), element
            expected = self._next()
            if expected == "":
                raise self._fault(_TRUNCATED)
            if expected not in (",", "]"):
                raise self._fault(f"Expected ',' or ']' but got {expected!r}")
            self._at += 1
            if expected == ",":
                expected = self._next()
                if expected == "]":
                    raise self._fault("is not valid JSON: nothing follows the last ','")
        if self._next():
            raise self._fault("there is something after the list")

    def _decode_element(self) -> tuple[Any, int]:
        """Parse the current element; read on for as long as it is incomplete."""
        failed = -1
        while True:
            try:
                return _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                place = error.pos - self._at
                more = self._more()
                if not more or (place == failed and not error.msg.startswith("Unterminated")):
                    # A place that stays wrong when more text is there is no end of a block.
                    ended = error.msg.startswith("Unterminated") or (
                        not self._text[self._at + place :].strip()
                    )
                    problem = _TRUNCATED if ended else f"is not valid JSON: {error.msg}"
                    self._at += place
                    raise self._fault(problem) from None
                failed = place
            except RecursionError:
                raise self._fault("cannot be used: it is nested too deeply") from None
            except ValueError as error:
                raise self._fault(f"cannot be used: {error}") from None

    def _next(self) -> str:
        """Go to the next character that is not white space; empty at the end of the file."""
        while True:
            match = _SPACE.match(self._text, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def _count(self) -> None:
        """Count the bytes of what has been parsed."""
        if self._text.isascii():
            self._offset += self._at - self._counted
        else:
            self._offset += len(self._text[self._counted : self._at].encode())
        self._counted = self._at

    def _more(self) -> bool:
        """Release the parsed text and read on, more each time that one element needs it."""
        self._count()
        if len(self._text) - self._at > UNPACKED_LIMIT:
            raise self._fault(
                f"one entry of the list is longer than {UNPACKED_LIMIT >> 20} million characters"
            )
        block = self._stream.read(self._block)
        self._block *= 2
        self._seen(block)
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            ahead = len(self._text[self._at :].encode()) + error.start
            raise self._fault(f"is not UTF-8 text ({error.reason})", ahead) from None
        self._text = self._text[self._at :] + text
        self._at = self._counted = 0
        return bool(block)

    def _fault(self, problem: str, ahead: int = 0) -> InputError:
        """Make an error at the current place, or some bytes ahead of it."""
        self._count()
        return InputError(
            problem, file=self._path, line=count_lines(self._path, self._offset + ahead)
        )


_DECODER = json.JSONDecoder()


def count_lines(path: Path, offset: int) -> int:
    """Count the line that a byte of the unpacked file is on."""
    line = 1
    with open_input(path) as stream:
        while offset and (block := stream.read(min(offset, _BLOCK))):
            line += block.count(b"\n")
            offset -= len(block)
    return line


class ElementReader:
    """Reads elements of a scanned file again, in this process or in another.

    A packed file is kept open, because going back in it begins from its start: elements that are
    asked for in their order cost one pass together.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._packed: IO[bytes] | None = None

    def read(self, element: Element) -> Any:
        """Parse one element."""
        try:
            content = self._bytes(element)
            return parse_json(content.decode())
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"cannot be read any more: {error}", file=self._path) from error
        except json.JSONDecodeError:
            raise InputError(
                "changed while it was read", file=self._path, line=element.line(self._path)
            ) from None
        except ValueError as error:
            raise InputError(
                f"cannot be used: {error}", file=self._path, line=element.line(self._path)
            ) from None

    def _bytes(self, element: Element) -> bytes:
        if self._path.suffix != ".gz":
            with self._path.open("rb") as stream:
                stream.seek(element.offset)
                return stream.read(element.length)
        if self._packed is None:
            # From memory, so that no open file is left behind.
            packed = io.BytesIO(self._path.read_bytes())
            self._packed = cast(IO[bytes], gzip.GzipFile(fileobj=packed))
        self._packed.seek(element.offset)
        return self._packed.read(element.length)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as a path."""
        return ElementReader, (self._path,)
