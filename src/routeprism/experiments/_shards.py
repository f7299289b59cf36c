"""Shards: one command on several machines, each of which works on some of the pools.

A shard stores the result of each of its pools, and what its models replied. Merging performs the
same command with these results and replies instead of working on the pools and asking, so that its
numbers are those of a single run.
"""

from __future__ import annotations

import gzip
import itertools
import json
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

from routeprism.errors import RunError, SpecError
from routeprism.files import (
    UNPACKED_LIMIT,
    create_beside,
    open_input,
    open_part,
    owns_part,
    sync_directory,
)
from routeprism.runs import (
    FINISHED,
    PENDING_RESULTS,
    STORE,
    read_manifest,
    sha256,
    verify_store,
)

CASES = "cases.jsonl.gz"
"""The file with the results of a shard's pools."""
_PORTION = 250
"""How many results are compressed together."""


class ResultFile:
    """The results of a shard's pools, which are written as they come in.

    Every portion is a gzip file of its own; one after the other they make the file of the shard.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / PENDING_RESULTS
        self._lines: list[str] = []
        self._stream: BinaryIO | None = None
        self.counts: list[int] = []
        """How many results each pass over the pools has written."""

    def begin_pass(self, size: int = 0, results: int = 0) -> None:
        """Begin a pass; the first one continues after the bytes and results of an earlier call.

        Without these, the first pass overwrites whatever an earlier call has left.
        """
        with self._naming():
            if not self.counts:
                self.close()
                self._stream = open_part(self._path, resume=bool(size))
                self._stream.truncate(size)
        self.counts.append(results)

    def can_resume(self, size: int) -> bool:
        """Whether the file has all that a checkpoint counts on."""
        return owns_part(self._path) and self._path.stat().st_size >= size

    def append(self, result: Any) -> None:
        """Add the result of the next pool."""
        line = json.dumps(encode(result), ensure_ascii=False)
        self._lines.append(f"{len(self.counts) - 1}\t{line}\n")
        self.counts[-1] += 1
        if len(self._lines) >= _PORTION:
            self._write_portion()

    def sync(self) -> int:
        """Make all results durable, and return the size of the file."""
        self._write_portion()
        with self._naming():
            if self._stream is None:
                return 0
            os.fsync(self._stream.fileno())
            return self._stream.seek(0, os.SEEK_END)

    def _write_portion(self) -> None:
        if self._lines and self._stream is not None:
            with self._naming():
                self._stream.write(gzip.compress("".join(self._lines).encode(), 6, mtime=0))
                self._stream.flush()
            self._lines.clear()

    def finish(self) -> None:
        """Put the results of a finished run in their place.

        The first line names the configuration of the run and the number of results of each pass,
        so that a file that is stale or has lost lines is refused.
        """
        self.sync()
        self.close()
        configuration = digest_configuration(read_manifest(self._directory)["configuration"])
        head = {"configuration": configuration, "results": self.counts}
        path = self._directory / CASES
        with self._naming():
            with create_beside(path) as (draft, stream):
                stream.write(gzip.compress((json.dumps(head) + "\n").encode(), mtime=0))
                if self.counts:
                    with self._path.open("rb") as portions:
                        shutil.copyfileobj(portions, stream, 1 << 20)
                stream.flush()
                os.fsync(stream.fileno())
                draft.replace(path)
            sync_directory(self._directory)
            self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; results that were not written are written by the next call."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    @contextmanager
    def _naming(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"{self._path} cannot be written: {error.strerror or error}. Run the same command "
                f"again"
            ) from error


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a command's work: every `count`-th pool."""

    number: int
    """From 1."""
    count: int
    file: ResultFile | None = field(default=None, compare=False, repr=False)
    """Where results are written; None if they are not."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def choose(self, items: int, noun: str = "pool") -> range:
        """Choose the indices of its pools, or of items with a different name."""
        if self.count > items:
            raise SpecError(f"Expected at most {items} shards, one for each {noun}, but got {self}")
        return range(self.number - 1, items, self.count)

    def write_to(self, directory: Path) -> Shard:
        """Return the same shard, whose results are written into a run."""
        return replace(self, file=ResultFile(directory))

    def finish(self) -> None:
        """Put the results of the finished run in their place, if they are written."""
        if self.file is not None:
            self.file.finish()


def parse_shard(text: str) -> Shard:
    """Read `2/8`: the second of eight."""
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return Shard(int(number), int(count))
    raise SpecError(f"Expected a shard such as 2/8, from 1/8 to 8/8, but got {text!r}")


@dataclass(frozen=True, slots=True)
class ShardResults:
    """The results of all shards, in the order of the pools."""

    directories: Sequence[Path]
    part: Path = Path()
    """The part of each run whose ledger is meant, where a run has several."""
    passes: Iterator[int] = field(default_factory=itertools.count, compare=False)
    """The numbers of the passes over the pools."""

    @property
    def ledgers(self) -> list[Path]:
        """The runs whose answers and built memories belong to the whole."""
        return [directory / self.part for directory in self.directories]

    def check(self, configuration: Mapping[str, object], inputs: Mapping[str, str]) -> None:
        """Refuse shards of data, memories or options that are not those of the merged run."""
        if self.part != Path():
            return  # compared as a whole
        expected = _list_shared({**configuration, "inputs": inputs})
        for directory in self.directories:
            manifest = read_manifest(directory)
            contents = {**manifest["configuration"], "inputs": manifest.get("inputs")}
            if names := _list_differences(_list_shared(contents), expected):
                raise RunError(
                    f"{directory} cannot be merged: {', '.join(names)} changed since it was made. "
                    f"Restore what it was made of, or run the commands of all shards again"
                )

    def read(self, number: int) -> Iterator[Any]:
        """Read the results of the next pass, pool by pool; refuse shards that lack some."""
        part = next(self.passes)
        shards = [_read_part(directory, part) for directory in self.directories]
        for at in range(number):
            place = at % len(shards)
            result = next(shards[place], None)
            if result is None:
                raise _refuse_results(self.directories[place], "it lacks the results of pools")
            yield result
        for directory, shard in zip(self.directories, shards, strict=True):
            if next(shard, None) is not None:
                raise _refuse_results(directory, "it has results of more pools than the data")


def _read_part(directory: Path, part: int) -> Iterator[Any]:
    """Read the results of one pass; the whole file is read, so that its checksum is compared."""
    with _reading(directory), open_input(directory / CASES) as stream:
        _, expected = _read_head(directory, stream.readline(UNPACKED_LIMIT))
        counts = [0] * len(expected)
        while line := stream.readline(UNPACKED_LIMIT):
            number, _, content = line.partition(b"\t")
            counts[int(number)] += 1
            if not line.endswith(b"\n"):
                raise _refuse_results(directory, "a line has no end, or is too long")
            if int(number) == part:
                result = decode(json.loads(content))
                if not is_dataclass(result):
                    raise _refuse_results(directory, "it contains a value that is not a result")
                yield result
        if counts != expected:
            raise _refuse_results(directory, "it lacks the results of pools")


def _read_head(directory: Path, line: bytes) -> tuple[str, list[int]]:
    """Read the digest of the configuration, and the number of results of each pass."""
    head = json.loads(line)
    numbers = head["results"]
    if not (isinstance(numbers, list) and all(isinstance(item, int) for item in numbers)):
        raise _refuse_results(directory, "its first line is not that of a shard")
    return str(head["configuration"]), numbers


def _refuse_results(directory: Path, problem: str) -> RunError:
    return RunError(
        f"{directory / CASES} cannot be used: {problem}. Run the command of this shard again"
    )


@contextmanager
def _reading(directory: Path) -> Iterator[None]:
    """Name the file in the error, whatever is wrong with its content."""
    try:
        yield
    except (
        *(OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError),
        *(ImportError, RecursionError),
    ) as error:
        reason = " ".join(str(error).split())
        problem = f"it is damaged ({type(error).__name__}: {reason:.120})"
        raise _refuse_results(directory, problem) from error


def digest_configuration(configuration: dict[str, Any]) -> str:
    """Name the configuration of a run briefly, without the words of its command."""
    parts = {name: value for name, value in configuration.items() if name != "command_line"}
    return sha256(json.dumps(parts, sort_keys=True))


def check_shards(directories: Sequence[Path]) -> tuple[list[Path], list[str]]:
    """Sort the shards of one command, and give the words of that command.

    Refuse shards of different commands, data or versions, and name those that are missing.
    """
    if not directories:
        raise RunError("shards are missing: name at least one run")
    shards: dict[int, Path] = {}
    first, expected, words = _read_shard(directories[0])
    for directory in directories:
        shard, configuration, _ = _read_shard(directory)
        if names := _list_differences(configuration, expected):
            raise RunError(
                f"{directory} does not belong to {directories[0]}: they differ in "
                f"{', '.join(names)}"
            )
        if shard.number in shards:
            raise RunError(f"{shards[shard.number]} and {directory} are both shard {shard}")
        shards[shard.number] = directory
    numbers = range(1, first.count + 1)
    missing = [f"{number}/{first.count}" for number in numbers if number not in shards]
    if missing:
        raise RunError(f"shards are missing: {', '.join(missing)}")
    return [shards[number] for number in sorted(shards)], _without_shard(words)


def _list_shared(configuration: Mapping[str, object]) -> dict[str, Any]:
    """Return what all shards of a command share, as a manifest contains it."""
    parts = {n: value for n, value in configuration.items() if n not in ("shard", "command_line")}
    shared: dict[str, Any] = json.loads(json.dumps(parts))
    return shared


def _list_differences(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    """Name the entries that differ, or that only one of two configurations has."""
    names = first.keys() | second.keys()
    return sorted(name for name in names if first.get(name) != second.get(name))


def _read_shard(directory: Path) -> tuple[Shard, dict[str, Any], list[str]]:
    """Read which shard a run is, what all shards of its command share, and that command."""
    manifest = read_manifest(directory)
    configuration = dict(manifest["configuration"])
    digest = digest_configuration(configuration)
    text = configuration.pop("shard", None)
    if text is None:
        raise RunError(f"{directory} is not a shard: it was made without shard=I/N")
    shard = parse_shard(str(text))
    command = configuration.pop("command_line", [])
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise RunError(f"{directory} cannot be read: its command is not a list of words")
    configuration["shards"] = shard.count
    for name in ("inputs", "packages"):
        configuration[name] = manifest.get(name)
    if manifest["status"] not in FINISHED:
        raise RunError(f"{directory} is not finished: run the command of shard {shard} again")
    if not (directory / CASES).exists():
        raise RunError(f"{directory} is not finished: shard {shard} has no {CASES}")
    if not (directory / STORE).exists():  # it contains the replies that were paid for
        raise RunError(f"{directory} is damaged: shard {shard} has no {STORE}")
    verify_store(directory / STORE, finished=True)
    with _reading(directory), open_input(directory / CASES) as stream:
        if _read_head(directory, stream.readline(UNPACKED_LIMIT))[0] != digest:
            raise _refuse_results(directory, "it was written before the run was extended")
    return shard, configuration, command


def _without_shard(words: Sequence[str]) -> list[str]:
    if "--shard" not in words:
        return list(words)
    at = list(words).index("--shard")
    return [*words[:at], *words[at + 2 :]]


# --- results as JSON ---------------------------------------------------------------------------

_PLAIN = (str, int, float, bool, type(None))
_COLLECTIONS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": frozenset,
}
_MAPPINGS: dict[str, Callable[[Any], Any]] = {
    "dict": dict,
    "Counter": lambda pairs: Counter(dict(pairs)),
}


def encode(value: Any) -> Any:
    """Write a result as JSON that keeps its types; only this package's own classes are known."""
    if isinstance(value, _PLAIN):
        return value
    kind = type(value)
    if kind.__name__ in _MAPPINGS:
        return [kind.__name__, *([encode(k), encode(v)] for k, v in value.items())]
    if kind.__name__ in _COLLECTIONS:
        return [kind.__name__, *map(encode, value)]
    if kind.__module__.startswith("routeprism.") and (is_dataclass(value) or _is_named(kind)):
        names = _list_fields(kind)
        content = [encode(getattr(value, name)) for name in names]
        return ["object", f"{kind.__module__}:{kind.__qualname__}", *content]
    raise SpecError(f"a result of type {kind.__name__} cannot be stored in a shard")


def decode(value: Any) -> Any:
    """Read what `encode` wrote; refuse any other class."""
    if not isinstance(value, list):
        return value
    kind, *content = value
    if kind in _MAPPINGS:
        return _MAPPINGS[kind]([(decode(k), decode(v)) for k, v in content])
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](map(decode, content))
    module, _, name = content[0].partition(":")
    if kind != "object" or not module.startswith("routeprism."):
        raise ValueError(f"an unknown value: {kind!r:.40} {module!r:.60}")
    function: Any = getattr(import_module(module), name)
    if _is_named(function):
        return function(*map(decode, content[1:]))
    if not is_dataclass(function):
        raise ValueError(f"an unknown value: {module}:{name}")
    names = _list_fields(function)
    # Fields are set as they were, without what a constructor may compute or refuse.
    kind_of: Any = function
    result = object.__new__(kind_of)
    for field_name, item in zip(names, content[1:], strict=True):
        object.__setattr__(result, field_name, decode(item))
    return result


def _is_named(kind: Any) -> bool:
    """Whether a class is that of a named tuple."""
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _list_fields(kind: Any) -> list[str]:
    return list(kind._fields) if _is_named(kind) else [item.name for item in fields(kind)]
