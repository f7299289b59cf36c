"""Shards: one command on several machines, each of which works on some of the pools.

A shard stores the result of each of its pools. Merging performs the same command with these results
instead of working on the pools, so that its numbers are those of a single run.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from routeprism.errors import RunError, SpecError
from routeprism.files import write_output
from routeprism.runs import read_manifest

__all__ = ["CASES", "Shard", "ShardResults", "check_shards", "parse_shard"]

CASES = "cases.jsonl.gz"
"""The file with the results of a shard's pools."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a command's work: every `count`-th pool."""

    number: int
    """From 1."""
    count: int
    parts: list[list[str]] = field(default_factory=list, compare=False, repr=False)
    """Written results, one list for each pass over the pools."""

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def choose(self, cases: int) -> range:
        """Choose the indices of its pools."""
        if self.count > cases:
            raise SpecError(f"Expected at most {cases} shards, one for each pool, but got {self}")
        return range(self.number - 1, cases, self.count)

    def keep(self, results: Iterator[Any]) -> Iterator[Any]:
        """Keep the results of one pass as they come in."""
        lines: list[str] = []
        self.parts.append(lines)
        for result in results:
            lines.append(json.dumps(encode(result), ensure_ascii=False))
            yield result

    def write(self, directory: Path) -> None:
        """Write all results into a run."""
        lines = [
            f"{part}\t{line}\n" for part, part_lines in enumerate(self.parts) for line in part_lines
        ]
        write_output(directory / CASES, gzip.compress("".join(lines).encode(), mtime=0))


def parse_shard(text: str) -> Shard:
    """Read `2/8`: the second of eight."""
    number, slash, count = text.partition("/")
    if slash and number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count):
        return Shard(int(number), int(count))
    raise SpecError(f"Expected a shard such as 2/8, from 1/8 to 8/8, but got {text!r}")


@dataclass(slots=True)
class ShardResults:
    """The results of all shards, in the order of the pools."""

    directories: Sequence[Path]
    passes: int = 0
    """How many passes over the pools have begun."""

    def read(self) -> Iterator[Any]:
        """Read the results of the next pass, pool by pool."""
        part, self.passes = self.passes, self.passes + 1
        shards = [_read_part(directory, part) for directory in self.directories]
        while True:
            for shard in shards:
                line = next(shard, None)
                if line is None:
                    return
                yield decode(json.loads(line))


def _read_part(directory: Path, part: int) -> Iterator[str]:
    try:
        with gzip.open(directory / CASES, "rt", encoding="utf-8") as file:
            for line in file:
                number, _, content = line.partition("\t")
                if int(number) == part:
                    yield content
    except (OSError, EOFError, ValueError) as error:
        raise RunError(f"{directory / CASES} cannot be read: {error}") from error


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
        if expected != configuration:
            names = [n for n in configuration if configuration[n] != expected.get(n)]
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


def _read_shard(directory: Path) -> tuple[Shard, dict[str, Any], list[str]]:
    """Read which shard a run is, what all shards of its command share, and that command."""
    manifest = read_manifest(directory)
    configuration = dict(manifest["configuration"])
    text = configuration.pop("shard", None)
    if text is None:
        raise RunError(f"{directory} is not a shard: it was made without shard")
    shard = parse_shard(str(text))
    command = configuration.pop("command_line", [])
    configuration["shards"] = shard.count
    for name in ("inputs", "packages"):
        configuration[name] = manifest.get(name)
    if not (directory / CASES).is_file():
        raise RunError(f"{directory} is not finished: shard {shard} has no {CASES}")
    return shard, configuration, list(command)


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
        raise RunError(f"a shard contains an unknown value: {kind!r:.40} {module!r:.60}")
    function: Any = getattr(import_module(module), name)
    if _is_named(function):
        return function(*map(decode, content[1:]))
    if not is_dataclass(function):
        raise RunError(f"a shard contains an unknown value: {module}:{name}")
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
