"""`command:run=…`: a memory in any language, one process per build, JSON lines both ways."""

from __future__ import annotations

import json
import os
import queue
import shlex
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any

from routeprism.endings import forget, start
from routeprism.errors import RouteError, SpecError
from routeprism.policies._contracts import Memory
from routeprism.policies._wrappers import Client, check_calls
from routeprism.policies.adapters._wire import (
    LARGEST,
    RemoteMemory,
    decode_reply,
)
from routeprism.policies.own import OwnMemory, plan_settling
from routeprism.records import Record
from routeprism.redaction import Redactor
from routeprism.specs import SpecName, check_timeout

__all__ = ["Command", "Program"]


@dataclass(frozen=True, slots=True)
class Command:
    """Audits a program that reads requests as JSON lines and answers each with one."""

    name = SpecName("command")

    run: str
    """The command line; it is started once for each build, without a shell."""
    timeout: float = 30.0
    """How many seconds a reply may take; then the route has failed."""
    deterministic: bool = True
    """Whether the same records in the same order always give the same memory."""
    settle: float = 0.0
    """Seconds within which an added record is stored, if the program answers before that."""
    bulk: bool = False
    """Whether the program has a fifth request, `add_many`, that adds several records."""
    calls_per_add: float | None = field(default=None, metadata={"named": False})
    """Model calls that it makes for each record, for `--dry-run` and `--max-calls`."""

    def __post_init__(self) -> None:
        try:
            words = shlex.split(self.run)
        except ValueError as error:
            raise SpecError(f"Expected a command but got run={self.run}: {error}") from None
        if not words:
            raise SpecError("Expected a command but got run=")
        check_timeout(self.timeout)

    @property
    def procedures(self) -> tuple[str, ...]:
        """The procedures that it can perform beside adding records one by one."""
        return ("bulk", "overlap") if self.bulk else ("overlap",)

    @property
    def client(self) -> Client:
        """Describe its requests while it builds, as far as they are declared."""
        calls = check_calls(self.name, self.calls_per_add)
        return Client(calls_per_add=calls, waiting=plan_settling(self.settle))

    def origin(self) -> str:
        """Name the program, as far as it is known here."""
        return f"command {self.run}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Start a new process and send it every arrival."""
        return OwnMemory(self.open, self.name).build(arrivals)

    def open(self) -> RemoteMemory:
        """Start a new process, to which records can be sent before earlier ones are answered."""
        program = Program(shlex.split(self.run))
        redactor = Redactor.configured()

        def call(verb: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
            request = json.dumps({"do": verb, **content}).encode() + b"\n"
            try:
                line = program.call(request, self.timeout)
            except TimeoutError:
                raise RouteError(f"{verb}: no reply within {self.timeout:g} seconds") from None
            if line is None:
                code, words = program.last_words()
                output = f", and said: {redactor.redact_line(words, end=True)}" if words else ""
                raise RouteError(
                    f"{verb}: the program ended before it answered (exit code {code}){output}"
                )
            return decode_reply(line, verb, redactor)

        try:
            return RemoteMemory(call, program.end, redactor, self.settle)
        except BaseException:
            program.end()
            raise


_PATIENCE = 2.0
"""How many seconds a program has to end by itself once its input is closed."""
_MOMENT = 0.01
_LOOK = 0.2
"""Seconds after which a wait looks for signals: other threads may have received them."""
_MOST_LINES = 10_000
"""The largest number of unrequested lines that may wait."""
_GROUPS = hasattr(os, "killpg")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a program's group at once; once it is collected, its number may be another's."""
    if process.returncode is not None:
        return
    if _GROUPS:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


class Program:
    """A running program; each call writes one line and waits for one."""

    def __init__(self, words: Sequence[str]) -> None:
        try:
            self._process: subprocess.Popen[bytes] = start(
                lambda: subprocess.Popen(  # noqa: S603 (the user's own command)
                    words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=_GROUPS,
                ),
                _kill_group,
            )
        except (OSError, ValueError) as error:  # ValueError: a zero byte in a word
            reason = getattr(error, "strerror", None) or error
            raise RouteError(f"'{words[0]}' cannot be started: {reason}") from None
        self._requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._errors: deque[bytes] = deque(maxlen=5)
        self._sending = threading.Lock()
        self._turn = threading.Condition()
        self._sent = self._answered = 0
        self._threads = [
            threading.Thread(target=work, daemon=True)
            for work in (self._write_requests, self._read_lines, self._read_errors)
        ]
        for thread in self._threads:
            thread.start()

    def call(self, request: bytes, timeout: float) -> bytes | None:
        """Write a line and read its answer; None if the program ended instead.

        Several threads may call at once: the program answers in the order of the requests. Raises
        TimeoutError, and ends the program, where neither happens in time.
        """
        deadline = time.monotonic() + timeout
        with self._sending:
            self._requests.put(request)
            number, self._sent = self._sent, self._sent + 1
        with self._turn:
            while self._answered < number and time.monotonic() < deadline:
                self._turn.wait(_LOOK)
        try:
            while True:
                left = deadline - time.monotonic()
                with suppress(queue.Empty):
                    return self._lines.get(timeout=min(max(left, _MOMENT), _LOOK))
                if left <= _LOOK:
                    _kill_group(self._process)
                    raise TimeoutError
        finally:
            with self._turn:
                self._answered += 1
                self._turn.notify_all()

    def end(self) -> None:
        """Close its input, wait a moment, and end whatever is left of it and its group."""
        try:
            self._requests.put(None)
            self._wait(_PATIENCE)
        finally:
            self._collect()
            forget(self._process)
            for thread in self._threads:  # one may wait for a process that left the group
                thread.join(_PATIENCE)

    def last_words(self) -> tuple[int, str]:
        """Return the exit code of a program that ended, and the end of its standard error."""
        self._wait(_PATIENCE)
        code = self._collect()
        self._threads[2].join(_PATIENCE)
        return code, b"".join(self._errors).decode(errors="replace").strip()

    @property
    def _streams(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        process = self._process
        assert process.stdin and process.stdout and process.stderr  # noqa: S101 (all are pipes)
        return process.stdin, process.stdout, process.stderr

    def _wait(self, seconds: float) -> None:
        """Wait for the program to end; as long as it is not collected, its group is its own."""
        if not _GROUPS:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            return
        deadline = time.monotonic() + seconds
        while self._process.returncode is None and time.monotonic() < deadline:
            if self._has_ended():
                return
            time.sleep(_MOMENT)

    def _has_ended(self) -> bool:
        """Whether the program has ended, without collecting it."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13: what has ended writes no more
            return not any(thread.is_alive() for thread in self._threads[1:])
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._process.pid, options) is not None
        except ChildProcessError:
            return True

    def _collect(self) -> int:
        """End the program and its group, and return its exit code."""
        _kill_group(self._process)
        self._wait(_PATIENCE)
        _kill_group(self._process)  # on macOS, a process that was being forked escapes the first
        return self._process.wait()

    def _write_requests(self) -> None:
        stream = self._streams[0]
        with suppress(OSError):
            while (request := self._requests.get()) is not None:
                stream.write(request)
                stream.flush()
        with suppress(OSError):
            stream.close()

    def _read_lines(self) -> None:
        with suppress(OSError, ValueError), self._streams[1] as stream:
            while line := stream.readline(LARGEST):
                self._lines.put(line)
                if self._lines.qsize() > _MOST_LINES or not line.endswith(b"\n"):
                    break
        self._lines.put(None)

    def _read_errors(self) -> None:
        with suppress(OSError, ValueError), self._streams[2] as stream:
            while line := stream.readline(65536):
                self._errors.append(line)
