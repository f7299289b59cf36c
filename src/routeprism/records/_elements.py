"""The elements of one long JSON array, found in a single pass and read again one by one.

Memory holds one element at a time, however long the file is.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import json
import re
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from routeprism.errors import InputError
from routeprism.records._files import loads

__all__ = ["Element", "ElementReader", "scan_array"]

_BLOCK = 1 << 23
"""How many bytes are read at once."""
_SPACE = re.compile(r"[ \t\r\n]*")
_TRUNCATED = "the file ends before its list does; it may be truncated: get it again"


@dataclass(frozen=True, slots=True)
class Element:
    """Where an element is."""

    offset: int
    """Its first byte, in the unpacked file."""
    length: int
    """How many bytes it has."""

    def line(self, path: Path) -> int:
        """Count the line it begins on, in the file it is of; only an error asks for that."""
        return _line_at(path, self.offset)


def scan_array(path: Path) -> Iterator[tuple[Element, Any] | str]:
    """Parse a JSON array element by element; last comes the SHA-256 of the unpacked file."""
    digest = hashlib.sha256()
    try:
        # Hashing lets go of the interpreter, so it goes on beside the parsing.
        with _opened(path) as stream, ThreadPoolExecutor(1) as beside:
            yield from _Scan(
                path, stream, lambda block: beside.submit(digest.update, block)
            ).elements()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"is no complete gzip file ({error}); get it again", file=path) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    yield digest.hexdigest()


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


class _Scan:
    """A window over the text of a file: what has been parsed is let go when more is read."""

    def __init__(self, path: Path, stream: IO[bytes], seen: Callable[[bytes], object]) -> None:
        self._path, self._stream, self._seen = path, stream, seen
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        """How much of the text has been parsed."""
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
            found, end = self._decoded()
            longest = max(longest, end - self._at)
            self._count()
            start = self._offset
            self._at = end
            self._count()
            yield Element(start, self._offset - start), found
            expected = self._next()
            if expected == "":
                raise self._fault(_TRUNCATED)
            if expected not in (",", "]"):
                raise self._fault(f"Expected ',' or ']' but got {expected!r}")
            self._at += 1
            if expected == ",":
                expected = self._next()
                if expected == "]":
                    raise self._fault("is no valid JSON: nothing follows the last ','")
        if self._next():
            raise self._fault("there is something after the list")

    def _decoded(self) -> tuple[Any, int]:
        """Parse the element at hand; read on for as long as it is incomplete."""
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
                    problem = _TRUNCATED if ended else f"is no valid JSON: {error.msg}"
                    self._at += place
                    raise self._fault(problem) from None
                failed = place
            except RecursionError:
                raise self._fault("cannot be used: it is nested too deeply") from None
            except ValueError as error:
                raise self._fault(f"cannot be used: {error}") from None

    def _next(self) -> str:
        """Go to the next character that is no white space; empty at the end of the file."""
        while True:
            found = _SPACE.match(self._text, self._at)
            self._at = found.end() if found else self._at
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
        """Let go of what has been parsed and read on, more each time that one element needs it."""
        self._count()
        block = self._stream.read(self._block)
        self._block *= 2
        self._seen(block)
        try:
            read = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            ahead = len(self._text[self._at :].encode()) + error.start
            raise self._fault(f"is not UTF-8 text ({error.reason})", ahead) from None
        self._text = self._text[self._at :] + read
        self._at = self._counted = 0
        return bool(block)

    def _fault(self, problem: str, ahead: int = 0) -> InputError:
        """Say what is wrong where parsing is, or some bytes ahead of that."""
        self._count()
        return InputError(problem, file=self._path, line=_line_at(self._path, self._offset + ahead))


_DECODER = json.JSONDecoder()


def _line_at(path: Path, offset: int) -> int:
    """Count the line that a byte of the unpacked file is on."""
    line = 1
    with _opened(path) as stream:
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
            return loads(content.decode())
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
