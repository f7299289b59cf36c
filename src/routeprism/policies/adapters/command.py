"""`command:run=…`: a memory in any language, one process per build, JSON lines both ways."""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any

from routeprism.errors import RouteError, SpecError
from routeprism.policies._contracts import Memory
from routeprism.policies.adapters._wire import build_over, decoded
from routeprism.records import Record
from routeprism.specs import written

__all__ = ["Command"]

_PATIENCE = 2.0
"""How many seconds a process has to end by itself once its input is closed."""


@dataclass(frozen=True, slots=True)
class Command:
    """Audits a program that reads requests as JSON lines and answers each with one."""

    run: str
    """The command line; it is started once for each build, without a shell."""
    timeout: float = 30.0
    """How many seconds a reply may take; then the route has failed."""
    deterministic: bool = True
    """Whether the same records in the same order always give the same memory."""

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.run)
        except ValueError as error:
            raise SpecError(f"Expected a command but got run={self.run}: {error}") from None
        if not words:
            raise SpecError("Expected a command but got run=")
        if self.timeout <= 0:
            raise SpecError(f"Expected a timeout above 0 but got timeout={self.timeout}")

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return written("command", self)

    def origin(self) -> str:
        """Say what is behind it, as far as it is known here."""
        return f"command {self.run}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Start a process of its own and hand it every arrival."""
        process = _Process(shlex.split(self.run), self.timeout)
        return build_over(process.call, arrivals, end=process.end)


class _Process:
    """A running program; its output is read by threads, so that silence can be timed."""

    def __init__(self, words: Sequence[str], timeout: float) -> None:
        self._timeout = timeout
        try:
            self._process = subprocess.Popen(  # noqa: S603 (the user's own command)
                words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise RouteError(f"'{words[0]}' cannot be started: {error.strerror}") from None
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._said: deque[bytes] = deque(maxlen=5)
        self._threads = [
            threading.Thread(target=self._listen, daemon=True),
            threading.Thread(target=self._overhear, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def call(self, verb: str, what: Mapping[str, Any]) -> Mapping[str, Any]:
        """Write a line, and wait for the line that answers it."""
        request = json.dumps({"do": verb, **what}).encode() + b"\n"
        # Writing may block on a process that does not read: the deadline is kept by ending it.
        timer = threading.Timer(self._timeout, self._process.kill)
        started = time.monotonic()
        timer.start()
        try:
            stream = _open(self._process.stdin)
            stream.write(request)
            stream.flush()
            line = self._lines.get(timeout=self._timeout)
        except queue.Empty:
            line = None
        except OSError:
            line = None
        finally:
            timer.cancel()
            timer.join()
        if line is None:
            if time.monotonic() - started >= self._timeout:
                self._process.kill()
                raise RouteError(f"{verb}: no reply within {self._timeout:g} seconds")
            raise RouteError(f"{verb}: the program ended before it answered{self._words()}")
        return decoded(line, verb)

    def end(self) -> None:
        """Close its input, wait a moment, end it, and close everything."""
        with suppress(OSError):
            _open(self._process.stdin).close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for thread in self._threads:
            thread.join()
        for stream in (self._process.stdout, self._process.stderr):
            _open(stream).close()

    def _listen(self) -> None:
        for line in _open(self._process.stdout):
            self._lines.put(line)
        self._lines.put(None)

    def _overhear(self) -> None:
        for line in _open(self._process.stderr):
            self._said.append(line)

    def _words(self) -> str:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PATIENCE)
        self._threads[1].join(_PATIENCE)
        last = b"".join(self._said).decode(errors="replace").strip()
        code = self._process.returncode
        return f" (exit code {code})" + (f", and said: {last[-300:]}" if last else "")


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise OSError("no pipe")
    return stream
