"""What tests use in place of the real thing: a model, two memories, and a server on loopback."""

from __future__ import annotations

import importlib.machinery
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from routeprism.models import Ask, Reply
from routeprism.records import Record


@dataclass(frozen=True)
class Scripted:
    """A model that replies by rule, and remembers what it was asked."""

    say: Callable[[Ask], str]
    name: str = "scripted"
    settings: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    asked: list[Ask] = field(default_factory=list, compare=False)
    embedded: bool = False
    concurrency: int = 8

    def answer(self, ask: Ask, /) -> Reply:
        self.asked.append(ask)
        return Reply(self.say(ask))


class Everything:
    """Somebody's own memory, which keeps and shows all records in the order of their arrival."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records.append(record)

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Record]:
        return self.records


class LastThree(Everything):
    """Somebody's own memory, which keeps and shows the last three records."""

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-3:]


class LoopbackServer(ThreadingHTTPServer):
    """A server that runs in a thread of its own until it is stopped."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, address: Any) -> None:
        """Say nothing of connections that a client gave up."""

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


def plant_files(directory: Path, *, last: bool) -> None:
    """Put a file with the name of every module here, which leaves a trace where it is executed.

    A directory that is searched `last` may well be where a missing module is found.
    """
    names = {*sys.stdlib_module_names, "sitecustomize", "usercustomize"}
    names |= {"numpy", "rich", "cyclopts", "splintr", "openai", "ray", "pip"}
    for name in names:
        if not last or importlib.machinery.PathFinder.find_spec(name) is not None:
            (directory / f"{name}.py").write_text("open(__file__ + '.ran', 'w').close()")


def list_executed(directory: Path) -> list[str]:
    """Name the planted files that were executed."""
    return sorted(file.name.partition(".")[0] for file in directory.glob("*.ran"))
