"""The way in: all commands, and what becomes of an error."""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import shlex
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

from routeprism.cli._app import run_command
from routeprism.endings import end_all
from routeprism.errors import OwnCodeError, RoutePrismError
from routeprism.frames import describe_error
from routeprism.printing import printable
from routeprism.redaction import Redactor, address_secrets, hide_credentials

_STOPPED = (
    "routeprism: stopped. Answers and checkpoints are kept in the run, and no answer is requested "
    "again; a new run without answers or checkpoints leaves nothing behind. To resume:"
)
_INTERRUPTED = 130
"""128 + the number of SIGINT, as shells count."""
_ENDING = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
"""Signals that end a command as Ctrl-C does; a terminal that is closed sends SIGHUP."""


def main() -> None:
    """Run the command line.

    Exit codes: 0 fine, 1 a gate or finding failed, 2 the call or input was wrong, 3 answers or
    routes are missing, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM.
    """
    with _prepare_streams(), _foreign_logs(), Termination() as termination:
        try:
            _run_app()
        except BaseException as error:
            # What fails after a signal, fails because the command is being stopped.
            if isinstance(error, KeyboardInterrupt) or termination.code:
                with suppress(OSError):  # the terminal is gone
                    _print_resume_command()
                sys.exit(termination.code or _INTERRUPTED)
            if isinstance(error, SystemExit):
                raise
            sys.exit(_report(error))
        sys.exit(0)


@contextmanager
def _foreign_logs() -> Iterator[None]:
    """Hide what libraries log below errors, such as each request; workers do the same."""
    before = logging.root.manager.disable
    if not os.environ.get("ROUTEPRISM_LOG"):
        logging.disable(max(before, logging.WARNING))
    try:
        yield
    finally:
        logging.disable(before)


def _run_app() -> None:
    """Run the command, and make sure that all it printed has arrived."""
    try:
        try:
            run_command(sys.argv[1:])
        finally:
            sys.stdout.flush()
    except OSError as error:
        # Files that a command writes have errors of their own; this one has no file.
        if error.filename is not None or error.errno not in _UNWRITABLE:
            raise
        _discard_output(sys.stdout)
        raise RoutePrismError(f"the output cannot be written: {error.strerror}") from error


def _discard_output(stream: TextIO) -> None:
    """Send what is still to be printed nowhere, so that it does not fail again at the end."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
        stream.flush()


_UNWRITABLE = {
    *(errno.ENOSPC, errno.EFBIG, errno.EIO),
    getattr(errno, "EDQUOT", errno.ENOSPC),  # Windows has no quotas of this kind
}


class Termination:
    """Makes SIGTERM and SIGHUP end a command as Ctrl-C does: what handles one handles all."""

    def __init__(self) -> None:
        self.code = 0
        """128 + the number of the signal that was received, as shells count; 0 if there is none."""
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Termination:
        if threading.current_thread() is threading.main_thread():
            for number in _ENDING:
                if signal.getsignal(number) != signal.SIG_IGN:  # as nohup makes it
                    self._before[number] = signal.signal(number, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        end_all()  # as long as further signals are still handled
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _interrupt(self, number: int, *_: object) -> None:
        self.code = 128 + number
        if not callable(signal.getsignal(signal.SIGINT)):  # ignored, as a shell's background job
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)


def _report(error: BaseException) -> int:
    """Print an error without secrets; give the exit code."""
    if not isinstance(error, Exception):
        # Such as a cancelled task: RoutePrism handles its own, so this is one of the user's code.
        error = describe_error(error, "")
    is_expected = isinstance(error, RoutePrismError)
    text = f"routeprism: {error}" if is_expected else _format_traceback(error)
    redactor = Redactor.configured(*_address_secrets())
    print(printable(redactor.redact_text(text), lines=True), file=sys.stderr)
    if isinstance(error, RoutePrismError) and not isinstance(error, OwnCodeError):
        return error.exit_code
    # A memory class of the user's own may raise anything; 1 would say that a gate failed.
    _print_resume_command()
    return 2


def _address_secrets() -> Iterator[str]:
    """Yield the secrets in the addresses of the command line."""
    for word in sys.argv[1:]:
        yield from address_secrets(word[word.find("http") :] if "://" in word else "")


@contextmanager
def _prepare_streams() -> Iterator[None]:
    """Replace standard streams that are closed, or that may be, by ones that accept all output."""
    before = {name: getattr(sys, name) for name in ("stdin", "stdout", "stderr")}
    try:
        for name, stream in before.items():
            if stream is None:  # closed, as by `>&-`: the first file opened would get its number
                mode = "r" if name == "stdin" else "w"
                stream = Path(os.devnull).open(mode)  # noqa: SIM115 (as long as the process)
            if isinstance(stream, io.TextIOWrapper) and name != "stdin":
                # Write what an ASCII or Windows code page lacks, such as Δ, as its number.
                stream.reconfigure(errors="backslashreplace")
            setattr(sys, name, stream if name == "stdin" else _PatientStream(stream))
        yield
    finally:
        for name, stream in before.items():
            setattr(sys, name, stream)


class _PatientStream:
    """A stream whose reader may close it early, as `| head` does, while the command continues."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, as long as there is a reader."""
        with self._without_reader():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush, as long as there is a reader."""
        with self._without_reader():
            self._stream.flush()

    @contextmanager
    def _without_reader(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            _discard_output(self._stream)


def _format_traceback(error: BaseException) -> str:
    """Write an exception with its traceback, without the frames of the command line itself."""
    frames = traceback.extract_tb(error.__traceback__)
    libraries = [at for at, frame in enumerate(frames) if _LIBRARY.search(frame.filename)]
    inner = frames[libraries[-1] + 1 :] if libraries else frames
    lines = ["Traceback (most recent call last):\n", *traceback.format_list(inner)]
    return "".join([*lines, *traceback.format_exception_only(error)]).rstrip()


_LIBRARY = re.compile(r"[/\\]routeprism[/\\]cli[/\\]_(?:main|app)\.py$")


def _print_resume_command() -> None:
    command = hide_credentials(shlex.join(["routeprism", *sys.argv[1:]]))
    print(f"{_STOPPED}\n  {command}", file=sys.stderr)
