"""Runs the blocks of a page in the environment that a wheel was installed into.

`tests/test_docs.py` starts it with that environment's Python and sends one JSON object in each
line. It imports nothing of the tests: what a page needs must be in the wheel or its dependencies.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import site
import sys
import traceback
import webbrowser
from typing import Any


class Runner:
    """Executes requests one after the other, as one user would at one desk."""

    def __init__(self) -> None:
        self.names: dict[str, object] = {}
        self._path = list(sys.path)
        self._directory = ""

    def begin(self, directory: str, environment: dict[str, str]) -> None:
        """Start a page in its own directory, without what the last one defined or imported."""
        for name, module in list(sys.modules.items()):
            file = str(getattr(module, "__file__", None) or "")
            if self._directory and file.startswith(self._directory):
                del sys.modules[name]
        self._directory = directory
        os.chdir(directory)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = self._path
        self.names = {"__name__": "page"}  # the Python blocks of a page share them

    def command(self, arguments: list[str]) -> tuple[int, str]:
        """Call the program; give its exit code and all that it printed."""
        from routeprism.cli import main

        out = io.StringIO()
        before, sys.argv = sys.argv, ["routeprism", *arguments]
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
        finally:
            sys.argv = before
        return 0, out.getvalue()

    def python(self, body: str, place: str) -> tuple[int, str]:
        """Execute a block; give 1 and the traceback if it raises."""
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out):
                exec(compile(body, place, "exec"), self.names)  # noqa: S102
        except Exception:
            return 1, out.getvalue() + traceback.format_exc()
        return 0, out.getvalue()

    def extend(self, directory: str) -> tuple[int, str]:
        """Make the packages of optional extras available to this page, behind the wheel's."""
        site.addsitedir(directory)
        return 0, ""


def main() -> None:
    """Answer requests until the input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a child process prints is no reply
    webbrowser.open = lambda *_, **__: True  # type: ignore[assignment]
    runner = Runner()
    with replies:
        for line in sys.stdin:
            request: dict[str, Any] = json.loads(line)
            act = getattr(runner, request.pop("do"))
            code, printed = act(**request) or (0, "")
            replies.write(json.dumps({"code": code, "printed": printed}) + "\n")
            replies.flush()


if __name__ == "__main__":
    main()
