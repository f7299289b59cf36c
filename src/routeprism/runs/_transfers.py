"""Replies that move between runs: cassettes, which are files, and the union of several ledgers.

A cassette is a file of JSON lines with the prompts and replies of a run's ledger, to replay them
without a model. The first line names the format. Each further line is one reply with its place in
the ledger: model and settings, prompt, batch and draw. It contains no credentials, because the
ledger has none.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from routeprism.errors import InputError, RunError
from routeprism.files import read_input, write_output
from routeprism.redaction import Redactor
from routeprism.runs._ledger import Answer, Key, Outcome, Request, open_store
from routeprism.runs._run import Run
from routeprism.runs._store import StorageError, Tables, read_schema, storing

_FORMAT = {"routeprism_cassette": 1}
_KEY = ("model", "settings", "prompt", "batch", "draw")
_PLACE = ("question", "route")
_REPLY = ("outcome", "answer", "raw", "scores", "input_tokens", "output_tokens", "cost")
_TIMES = ("asked_at", "latency", "attempts")
_REST = ("correct", "position", "marks")
_FIELDS = (*_KEY, *_PLACE, *_REPLY, *_TIMES, *_REST)
_SELECT = """
SELECT requests.model, models.settings, prompts.text, batch, draw, question, route,
    outcome, answer, raw, scores, input_tokens, output_tokens, cost, asked_at, latency, attempts,
    recorded.correct, recorded.position, marks.marks
FROM requests JOIN answers USING (submission)
JOIN models ON models.model = requests.model
    AND models.settings_sha256 = requests.settings_sha256
JOIN prompts ON prompts.sha256 = prompt_sha256
LEFT JOIN recorded USING (submission) LEFT JOIN marks USING (submission)
ORDER BY submission
"""
_MOST_CHARACTERS = 60
"""Characters of two prompts that are shown where they differ."""


def write_cassette(run: Run, path: Path) -> int:
    """Write every reply of a run's ledger to a cassette, beside those that it has; count them."""
    entries = {_identify(entry): entry for entry in (_read_entries(path) if path.exists() else ())}
    redactor = Redactor.configured()
    for entry in _export(run.store):
        entries[_identify(entry)] = {**entry, "raw": redactor.redact(entry["raw"])}
    lines = [_FORMAT, *entries.values()]
    content = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines).encode()
    try:
        write_output(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}") from error
    return len(entries)


def check_cassette(path: Path) -> None:
    """Refuse a path that no cassette can be written to, before anything is spent."""
    if os.path.lexists(path):
        _read_entries(path)
    elif not path.parent.is_dir():
        raise InputError("cannot be written: there is no such directory", file=path.parent)
    target = path if path.exists() else path.parent
    if not (os.access(target, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise InputError("cannot be written: there is no permission", file=path)


def _export(store: Path) -> Iterator[dict[str, Any]]:
    if not store.exists():
        return
    with closing(sqlite3.connect(store)) as connection, storing(store):
        tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'")
        if tables.fetchone() is None:
            return
        for row in connection.execute(_SELECT):
            entry = dict(zip(_FIELDS, row, strict=True))
            for name in ("settings", "scores", "attempts", "marks"):
                entry[name] = None if entry[name] is None else json.loads(entry[name])
            yield entry


def _identify(entry: Mapping[str, Any]) -> str:
    return json.dumps([entry[name] for name in _KEY], sort_keys=True)


def _read_entries(path: Path) -> list[dict[str, Any]]:
    """Read the entries of a cassette; refuse any other file."""
    # JSON leaves other line breaks than "\\n" inside of texts.
    lines = read_input(path).removesuffix(b"\n").split(b"\n")
    entries = []
    for number, line in enumerate(lines, start=1):
        try:
            entry = json.loads(line.decode())
        except (ValueError, RecursionError) as error:
            problem = "is not a line of a cassette" if number > 1 else _FOREIGN
            raise InputError(problem, file=path, line=number) from error
        if number > 1:
            _check_entry(entry, path, number)
            entries.append(entry)
        elif entry != _FORMAT:
            raise InputError(_FOREIGN, file=path, line=1)
    return entries


_FOREIGN = "is not a cassette of RoutePrism"


def _check_entry(entry: Any, path: Path, line: int) -> None:
    """Refuse an entry that a ledger cannot contain, with its line and field."""
    if not isinstance(entry, dict):
        raise InputError("is not a line of a cassette", file=path, line=line)
    for name, (expected, check) in _CHECKS.items():
        if name not in entry:
            raise InputError("it is missing", file=path, line=line, field=name)
        if not check(entry[name]):
            raise InputError(f"Expected {expected}", file=path, line=line, field=name)


def _is_text(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and abs(value) < 2**63 and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value < 2**63


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_text, value))


def _are_settings(value: Any) -> bool:
    return isinstance(value, dict) and all(
        _is_text(name) and (item is None or _is_text(item) or _is_number(item))
        for name, item in value.items()
    )


def _or_null(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


_COUNT = ("a whole number of 0 or more", _is_count)
_TEXT = ("a text", _is_text)
_CHECKS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("model", "prompt", "batch", "question", "route", "raw", "asked_at"), _TEXT),
    "settings": ("an object of texts and numbers", _are_settings),
    "draw": _COUNT,
    "outcome": (" or ".join(get_args(Outcome)), lambda value: value in get_args(Outcome)),
    "answer": ("a text or null", _or_null(_is_text)),
    "scores": (
        "a list of numbers or null",
        _or_null(lambda value: isinstance(value, list) and all(map(_is_number, value))),
    ),
    **dict.fromkeys(
        ("input_tokens", "output_tokens", "position"),
        ("a whole number of 0 or more, or null", _or_null(_is_count)),
    ),
    "cost": ("a number or null", _or_null(_is_number)),
    "latency": ("a number", _is_number),
    "correct": ("true, false or null", _or_null(lambda value: value in (0, 1))),
    **dict.fromkeys(("attempts", "marks"), ("a list of texts or null", _or_null(_are_texts))),
}
"""Each field with what it has to be: a ledger stores nothing else."""


@dataclass(frozen=True, slots=True)
class Cassette:
    """Recorded replies that stand for a model."""

    path: Path
    sha256: str
    entries: tuple[Mapping[str, Any], ...]

    @classmethod
    def read(cls, path: Path) -> Cassette:
        """Read a cassette."""
        digest = hashlib.sha256(read_input(path)).hexdigest()
        return cls(path, digest, tuple(_read_entries(path)))

    def restore(self, run: Run) -> None:
        """Put the replies into a run's ledger, where they are found like collected ones."""
        with run.ledger() as ledger:
            keys = [_key(entry) for entry in self.entries]
            missing = set(ledger.missing(keys))
            rows = []
            for key, entry in zip(keys, self.entries, strict=True):
                if key not in missing:
                    continue
                request = Request(key, entry["prompt"], entry["question"], entry["route"])
                (submission,) = ledger.reserve(entry["settings"], [request]).result()
                rows.append(ledger.put(_answer(submission, entry)))
            for future in rows:
                future.result()

    def refuse(self, model: str, prompt: str) -> InputError:
        """Make the error about a prompt without a recorded reply; it shows the nearest prompt."""
        problem = f"has no reply of {model} to a prompt of this call. "
        nearest = _find_nearest(prompt, {entry["prompt"] for entry in self.entries})
        if nearest is None:
            return InputError(problem + "It has no replies at all", file=self.path)
        if nearest == prompt:
            kinds = sorted({e["model"] for e in self.entries if e["prompt"] == prompt})
            problem += (
                f"It has replies of {', '.join(kinds)} to this prompt, recorded with different "
                f"settings, for a different build, or fewer of them"
            )
            return InputError(problem, file=self.path)
        pairs = enumerate(zip(prompt, nearest, strict=False))
        shorter = min(len(prompt), len(nearest))
        at = next((at for at, (first, second) in pairs if first != second), shorter)
        start = max(0, at - _MOST_CHARACTERS // 2)
        excerpts = [text[start : start + _MOST_CHARACTERS] for text in (prompt, nearest)]
        problem += (
            f"The nearest recorded prompt is the same up to character {at:,}. Here: "
            f"{excerpts[0]!r}. Recorded: {excerpts[1]!r}"
        )
        return InputError(problem, file=self.path)


def _find_nearest(prompt: str, recorded: Iterable[str]) -> str | None:
    """Find the recorded prompt with the largest share of common words; ties by text."""
    prompt_words = set(_WORD.findall(prompt))

    def share(text: str) -> float:
        words = set(_WORD.findall(text))
        return len(words & prompt_words) / max(1, len(words | prompt_words))

    ranked = sorted(recorded, key=lambda text: (text != prompt, -share(text), text))
    return ranked[0] if ranked else None


_WORD = re.compile(r"\w+")


def _key(entry: Mapping[str, Any]) -> Key:
    return Key.of(
        entry["model"],
        entry["settings"],
        entry["prompt"],
        batch=entry["batch"],
        draw=entry["draw"],
    )


def _answer(submission: int, entry: Mapping[str, Any]) -> Answer:
    scores = entry["scores"]
    return Answer(
        submission=submission,
        scores=None if scores is None else tuple(scores),
        attempts=tuple(entry["attempts"] or ()),
        correct=entry["correct"],
        order=entry["position"],
        marks=tuple(entry["marks"] or ()),
        **{name: entry[name] for name in (*_REPLY, "asked_at", "latency") if name != "scores"},
    )


# --- the ledgers of shards -------------------------------------------------------------------

_REQUEST = ("prompt_sha256", "draw", "model", "settings_sha256", "batch")
"""The columns that identify a request."""
_SAME = " AND ".join(f"theirs.{name} = ours.{name}" for name in _REQUEST)
_PAIRS = f"shard.requests theirs JOIN main.requests ours ON {_SAME}"
_COPIES = (
    "INSERT OR IGNORE INTO main.models SELECT * FROM shard.models",
    "INSERT OR IGNORE INTO main.prompts SELECT * FROM shard.prompts",
    "INSERT OR IGNORE INTO main.requests SELECT NULL, model, settings_sha256, prompt_sha256, "
    "batch, draw, question, route FROM shard.requests ORDER BY submission",
    *(
        f"INSERT OR IGNORE INTO main.{table} SELECT ours.submission, {columns} "  # noqa: S608
        f"FROM {_PAIRS} JOIN shard.{table} item ON item.submission = theirs.submission"
        for table, columns in (
            (
                "answers",
                "outcome, answer, raw, scores, input_tokens, output_tokens, cost, asked_at, "
                "latency, attempts",
            ),
            ("recorded", "correct, position"),
            ("marks", "marks"),
        )
    ),
    f"INSERT INTO main.failures SELECT ours.submission, error, asked_at, latency, attempts "  # noqa: S608
    f"FROM {_PAIRS} JOIN shard.failures item ON item.submission = theirs.submission "
    f"WHERE (ours.submission, asked_at) NOT IN (SELECT submission, asked_at FROM main.failures)",
)
_CONFLICT = (
    f"SELECT theirs.model, theirs.question, a.raw, b.raw FROM {_PAIRS} "  # noqa: S608
    f"JOIN shard.answers a ON a.submission = theirs.submission "
    f"JOIN main.answers b ON b.submission = ours.submission "
    f"WHERE a.raw != b.raw OR a.outcome != b.outcome LIMIT 1"
)
_STATES_CONFLICT = (
    "SELECT policy, user FROM shard.states a JOIN main.states b USING (policy, user, arrivals, "
    "build) WHERE a.snapshot != b.snapshot LIMIT 1"
)


def unite_ledgers(path: Path, runs: Sequence[Path]) -> None:
    """Put the replies and the built memories of several runs into one store.

    An answer that two runs have must be the same in both. Each run's requests keep their order,
    after those of the runs before it.
    """
    for run in runs:
        store = run / path.name
        if not store.is_file():
            continue
        with closing(Tables(store)) as tables:  # completes what a killed process left
            names = tables.names & {"requests", "states"}
        if names:
            with storing(path), closing(open_store(path, "ledger", "as a ledger")) as connection:
                _unite_ledger(connection, store, names)


def _unite_ledger(connection: sqlite3.Connection, store: Path, names: frozenset[str]) -> None:
    connection.execute("ATTACH ? AS shard", (str(store),))
    if "states" in names:
        connection.executescript(read_schema("states"))
        differing = connection.execute(_STATES_CONFLICT).fetchone()
        if differing is not None:
            raise RunError(
                f"{store.parent} cannot be merged: its memory of {differing[0]} for user "
                f"'{differing[1]}' differs from that of a different shard"
            )
        connection.execute("INSERT OR IGNORE INTO main.states SELECT * FROM shard.states")
    if "requests" in names:
        conflict = connection.execute(_CONFLICT).fetchone()
        if conflict is not None:
            raise RunError(
                f"{store.parent} cannot be merged: {conflict[0]} replied to the same request "
                f"(question {conflict[1]!r:.60}) with {conflict[2]!r:.60} there and with "
                f"{conflict[3]!r:.60} in a different shard, and a run has one answer to a request. "
                f"Run the command of one of these shards again in a new directory, or make a "
                f"single run"
            )
        for statement in _COPIES:
            connection.execute(statement)
    connection.commit()
