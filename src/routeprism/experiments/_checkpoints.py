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
from routeprism.experiments._shards import decode, encode
from routeprism.measures import Sums
from routeprism.runs import Run, Writer

__all__ = ["Checkpoints", "name_job"]

POOLS = 250
"""After how many pools there is a checkpoint."""
SECONDS = 30.0
"""After how many seconds there is one, if pools take long."""

_SUMS = ("sums", "clusters")
"""The fields of a result whose keys are nearly the same for every pool."""


@dataclass(slots=True)
class Checkpoints:
    """The results of the pools that a run has finished, and of those since the last checkpoint."""

    writer: Writer | None
    """Writes the rows of a run; None if nothing is stored."""
    waiting: list[Any] = field(default_factory=list)
    since: float = field(default_factory=time.monotonic)

    def read(self) -> Iterator[Any]:
        """Read the results of an earlier call, pool by pool."""
        for content in () if self.writer is None else self.writer.read_progress():
            yield from _unpack(content)

    def write(self, result: Any) -> None:
        """Write the rows of a pool, and commit if it is time to."""
        if self.writer is None:
            return
        for table, entries in result.tables.items():
            self.writer.insert(table, entries)
        if not self.writer.job:
            return
        self.waiting.append(_remove_rows(result))
        if len(self.waiting) >= POOLS or time.monotonic() - self.since >= SECONDS:
            self.writer.keep_progress(_pack(self.waiting))
            self.waiting, self.since = [], time.monotonic()


def _remove_rows(result: Any) -> Any:
    """Return a result without what is in the tables of the store."""
    sums = {name: getattr(result, name) for name in _SUMS if hasattr(result, name)}
    short = {n: {key: entry[:2] for key, entry in each.items()} for n, each in sums.items()}
    return replace(result, tables={}, **short)


def name_job(run: Run, number: int) -> str:
    """Identify the work on a number of pools, so that results of different work are not used."""
    configuration = {**run.manifest["configuration"], "command_line": None}
    entries = (configuration, run.manifest["inputs"], run.manifest["packages"], number)
    return hashlib.sha256(json.dumps(entries).encode()).hexdigest()


def _pack(results: list[Any]) -> bytes:
    """Write results without their rows; each key is written once."""
    places: dict[Key, int] = {}

    def columns(sums: Sums[Key]) -> list[list[Any]]:
        keys = [places.setdefault(key, len(places)) for key in sums]
        entries = list(sums.values())
        return [keys, [entry[0] for entry in entries], [entry[1] for entry in entries]]

    items = []
    for result in results:
        names = [name for name in _SUMS if hasattr(result, name)]
        rest = replace(result, **{name: {} for name in names})
        items.append([encode(rest), {name: columns(getattr(result, name)) for name in names}])
    content = [[encode(key) for key in places], items]
    return zlib.compress(json.dumps(content).encode(), 1)


def _unpack(content: bytes) -> Iterator[Any]:
    names, items = json.loads(zlib.decompress(content))
    keys: list[Key] = [decode(name) for name in names]
    for rest, sums in items:
        result = decode(rest)
        for name, (places, totals, counts) in sums.items():
            pairs = zip(totals, counts, strict=True)
            setattr(result, name, dict(zip((keys[place] for place in places), pairs, strict=True)))
        yield result
