"""Checkpoints: the results of finished pools, so that an interrupted study does not begin again.

Every 250 pools, or half a minute, the rows that were written so far are committed to the store
together with the results that estimates need. The same command continues after them.
"""

from __future__ import annotations

import hashlib
import json
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from routeprism.experiments._rows import Key
from routeprism.experiments._shards import ResultFile, decode, encode
from routeprism.measures import Sums
from routeprism.runs import Run, Writer

POOLS = 250
"""After how many pools there is a checkpoint."""
SECONDS = 30.0
"""After how many seconds there is one, if pools take long."""

_FORMAT = 2
"""How checkpoints are written; those of a different format are not used."""
_SUMS = ("sums", "clusters")
"""The fields of a result whose keys are nearly the same for every pool."""


@dataclass(slots=True)
class Checkpoints:
    """The results of the pools that a run has finished, and of those since the last checkpoint."""

    writer: Writer | None
    """Writes the rows of a run; None if nothing is stored."""
    number: int
    """The number of all pools."""
    file: ResultFile | None = None
    """Where a shard writes its results."""
    portion: _Portion = field(default_factory=lambda: _Portion())
    since: float = field(default_factory=time.monotonic)
    wanted: bool | None = None
    """Whether the work takes long enough for checkpoints; None before the first result."""

    def read(self) -> Iterator[Any]:
        """Read the results of an earlier call, pool by pool."""
        if self.writer is not None and self.writer.has_progress:
            size = _read_size(self.writer.last_progress())
            if self.file is not None and not self.file.can_resume(size):
                self.writer.clear()
        else:
            size = 0
        results = 0
        for content in () if self.writer is None else self.writer.read_progress():
            for result in _unpack(content):
                results += 1
                yield result
        if self.file is not None:
            self.file.begin_pass(size if results else 0, results)

    def write(self, result: Any) -> None:
        """Write the rows of a pool, and commit if it is time to."""
        if self.file is not None:
            self.file.append(result)
        if self.writer is None:
            return
        for table, entries in result.tables.items():
            self.writer.insert(table, entries)
        seconds = time.monotonic() - self.since
        if self.wanted is None:
            long = self.number >= POOLS or seconds * self.number >= SECONDS
            self.wanted = bool(self.writer.job) and long
        if not self.wanted:
            return
        self.portion.add(result)
        if len(self.portion.results) >= POOLS or seconds >= SECONDS:
            size = 0 if self.file is None else self.file.sync()
            self.writer.keep_progress(self.portion.pack(size))
            self.portion, self.since = _Portion(), time.monotonic()


class _Portion:
    """The results since the last checkpoint, without rows; each key is written once."""

    def __init__(self) -> None:
        self.results: list[str] = []
        self._places: dict[Key, int] = {}

    def add(self, result: Any) -> None:
        """Add a result."""
        names = [name for name in _SUMS if hasattr(result, name)]
        rest = replace(result, tables={}, **{name: {} for name in names})
        sums = {name: self._write_columns(getattr(result, name)) for name in names}
        self.results.append(json.dumps([encode(rest), sums]))

    def _write_columns(self, sums: Sums[Key]) -> list[list[Any]]:
        places = self._places
        keys = [places.setdefault(key, len(places)) for key in sums]
        entries = list(sums.values())
        return [keys, [entry[0] for entry in entries], [entry[1] for entry in entries]]

    def pack(self, size: int) -> bytes:
        """Return all results, compressed, after the size of the file of a shard."""
        keys = json.dumps([encode(key) for key in self._places])
        content = zlib.compress(f"[{keys}, [{', '.join(self.results)}]]".encode(), 1)
        return b"%d\n%b" % (size, content)


def name_job(run: Run, number: int) -> str:
    """Identify the work on a number of pools, so that results of different work are not used."""
    configuration = {**run.manifest["configuration"], "command_line": None}
    entries = (_FORMAT, configuration, run.manifest["inputs"], run.manifest["packages"], number)
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def _read_size(content: bytes) -> int:
    return int(content.partition(b"\n")[0])


def _unpack(content: bytes) -> Iterator[Any]:
    names, items = json.loads(zlib.decompress(content.partition(b"\n")[2]))
    keys: list[Key] = [decode(name) for name in names]
    for rest, sums in items:
        result = decode(rest)
        for name, (places, totals, counts) in sums.items():
            pairs = zip(totals, counts, strict=True)
            setattr(result, name, dict(zip((keys[place] for place in places), pairs, strict=True)))
        yield result
