"""Reading a run's store: what was exposed to whom, without building anything again."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from routeprism.errors import RunError
from routeprism.runs._comparisons import StoredAnswer, answers_of, count_answers
from routeprism.runs._findings import MASKS, Finding
from routeprism.runs._ledger import sha256
from routeprism.runs._questions import StoredQuestion, read_question
from routeprism.runs._rows import COLUMNS, EstimateRow
from routeprism.runs._values import (
    NAMES,
    Column,
    QuestionValues,
    UnitValues,
    read_units,
    read_values,
)

__all__ = [
    "Shown",
    "Stored",
    "StoredContext",
    "StoredRecord",
    "StoredTrace",
    "read_manifest",
]


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """What a route left behind, apart from what it exposed."""

    arrivals: tuple[int, ...]
    """Source positions in arrival order."""
    retained: frozenset[str]
    signature: str | None
    events: tuple[tuple[str, str, str, int], ...]
    """(kind, record, by whom, at which arrival)."""
    stand_ins: dict[str, str]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one question was shown on one route."""

    sources: frozenset[str]
    """V."""
    context_sha256: str
    blocks: tuple[tuple[str, str, frozenset[str]], ...]
    """(kind, text, source ids)."""


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One record of a pool."""

    id: str
    timestamp: str | None
    text_sha256: str


@dataclass(frozen=True, slots=True)
class StoredContext:
    """A compiled context, its texts by reference."""

    sources: tuple[str, ...]
    sha256: str
    chars: int
    blocks: tuple[tuple[str, str, tuple[str, ...]], ...]
    """(kind, SHA-256 of its text, source ids)."""


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read a run's manifest."""
    path = directory / "manifest.json"
    if not path.is_file():
        raise RunError(f"{directory} holds no run: there is no {path.name}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise RunError(f"{path} cannot be read: Expected a JSON object")
    return manifest


class Stored:
    """The store of a run, open for reading."""

    def __init__(self, directory: Path) -> None:
        path = directory / "run.sqlite"
        if not path.exists():
            raise RunError(f"{directory} holds no run: there is no {path.name}")
        self._directory = directory
        self._connection = sqlite3.connect(path)
        self._texts: dict[str, str] = {}
        listed = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._tables = frozenset(name for (name,) in listed)

    def __enter__(self) -> Stored:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def manifest(self) -> dict[str, Any]:
        """Give the manifest: the configuration, the inputs and whether the run is complete."""
        return read_manifest(self._directory)

    def estimates(self) -> list[EstimateRow]:
        """Give every number, as in `estimates.csv`; none where the run is not finished."""
        rows = self._rows("estimates", ", ".join(COLUMNS), "ORDER BY rowid")
        return [EstimateRow(**dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def questions(self) -> dict[str, StoredQuestion]:
        """Give every question, by its id."""
        columns = "id, user, text, options, gold, kind, detail, labels"
        rows = self._rows("questions", columns, "ORDER BY id")
        return {row[0]: read_question(row) for row in rows}

    def per_question(self, **where: str) -> dict[Column, QuestionValues]:
        """Give the values that estimates are the means of, where their names are these."""
        if "per_question" not in self._tables:  # a run that was interrupted early
            return {}
        questions: dict[str, list[str]] = {}
        for id, user in self._connection.execute("SELECT id, user FROM questions"):
            questions.setdefault(user, []).append(id)
        quantity = where.pop("quantity", None)
        if unknown := where.keys() - set(NAMES):
            raise TypeError(f"Expected names among {NAMES} but got {sorted(unknown)}")
        chosen = " AND ".join(f"{name} = ?" for name in where) or "1"
        rows = self._connection.execute(
            f"SELECT {', '.join(NAMES)}, user, quantities FROM per_question WHERE {chosen}",  # noqa: S608
            tuple(where.values()),
        )
        found = read_values(rows, questions)
        return {c: v for c, v in found.items() if quantity in (None, c.quantity)}

    def per_unit(self, interface: str, column: Column) -> list[UnitValues]:
        """Give what each unit adds to an estimate that is kept by unit; none where it is not."""
        if not self._has("per_unit"):
            return []
        names = column._asdict()
        chosen = " AND ".join(f"{name} = ?" for name in NAMES)
        rows = self._connection.execute(
            f"SELECT interface, {', '.join(NAMES)}, user, quantities FROM per_unit "  # noqa: S608
            f"WHERE interface IN ('', ?) AND {chosen}",
            (interface, *(names[name] for name in NAMES)),
        )
        found = read_units(rows)
        return found.get((interface, column)) or found.get(("", column)) or []

    def masks(self) -> dict[str, frozenset[str]]:
        """Give the question ids of each mask that estimates were cut by."""
        return {one.name: frozenset(one.value) for one in self.findings(MASKS)}

    def answers(
        self, experiment: str, *, model: str, batch: str, policy: str
    ) -> list[StoredAnswer]:
        """Give the answers to an experiment's comparisons of a policy."""
        if not self._has("comparisons", "requests", "answers"):
            return []
        return answers_of(self._connection, experiment, model, batch, policy)

    def count_answers(
        self, experiments: Sequence[str], models: Iterable[str], batches: Sequence[str]
    ) -> int:
        """Count the distinct answers that experiments rest on."""
        if not self._has("comparisons", "requests", "answers"):
            return 0
        return count_answers(self._connection, experiments, models, batches)

    def count_batch(self, model: str, batch: str) -> int:
        """Count a model's answers in one batch."""
        if not self._has("requests", "answers"):
            return 0
        (number,) = self._connection.execute(
            "SELECT count(*) FROM requests JOIN answers USING (submission) "
            "WHERE model = ? AND batch = ?",
            (model, batch),
        ).fetchone()
        return int(number)

    def reply(self, model: str, prompt: str, batch: str) -> tuple[str, str] | None:
        """Give what a model said to a prompt of its own, and the prompt's hash; None if nothing."""
        digest = sha256(prompt)
        row = self._connection.execute(
            "SELECT a.raw FROM requests r JOIN answers a USING (submission) "
            "WHERE r.prompt_sha256 = ? AND r.draw = 0 AND r.model = ? AND r.batch = ?",
            (digest, model, batch),
        ).fetchone()
        return None if row is None else (row[0], digest)

    def prompts(self, digests: Iterable[str]) -> dict[str, str]:
        """Give the texts of prompts by their SHA-256."""
        found = {}
        for digest in dict.fromkeys(digests):
            row = self._connection.execute(
                "SELECT text FROM prompts WHERE sha256 = ?", (digest,)
            ).fetchone()
            if row is not None:
                found[digest] = row[0]
        return found

    def _has(self, *tables: str) -> bool:
        """Whether the store has these tables; a run that asked nobody has no ledger."""
        rows = self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        return {name for (name,) in rows} >= set(tables)

    def exposed(self, policy: str, interface: str, schedule: str, question: str) -> bool:
        """Whether there is something that a question was shown."""
        row = self._connection.execute(
            "SELECT 1 FROM exposures "
            "WHERE policy = ? AND interface = ? AND schedule = ? AND question = ?",
            (policy, interface, schedule, question),
        ).fetchone()
        return row is not None

    def shown(self, policy: str, interface: str, schedule: str, question: str) -> Shown:
        """Give what a question was shown."""
        row = self._connection.execute(
            "SELECT c.sources, c.context_sha256, c.blocks FROM exposures e "
            "JOIN contexts c ON c.id = e.context "
            "WHERE e.policy = ? AND e.interface = ? AND e.schedule = ? AND e.question = ?",
            (policy, interface, schedule, question),
        ).fetchone()
        if row is None:
            raise RunError(
                f"the run holds no exposure of question '{question}' to {policy} on {schedule}"
            )
        sources, digest, blocks = row
        return Shown(
            frozenset(json.loads(sources)),
            digest,
            tuple(
                (kind, self._text(text), frozenset(ids)) for kind, text, ids in json.loads(blocks)
            ),
        )

    def sources(self, policy: str, interface: str, schedule: str) -> dict[str, frozenset[str]]:
        """Give which sources every question was shown on a route, without their texts."""
        rows = self._connection.execute(
            "SELECT e.question, c.sources FROM exposures e JOIN contexts c ON c.id = e.context "
            "WHERE e.policy = ? AND e.interface = ? AND e.schedule = ?",
            (policy, interface, schedule),
        )
        return {question: frozenset(json.loads(sources)) for question, sources in rows}

    def trace(self, policy: str, interface: str, schedule: str, user: str) -> StoredTrace | None:
        """Give what a route left behind; None where it failed or was never traced."""
        row = self._connection.execute(
            "SELECT arrivals, retained, signature, events, stand_ins FROM traces "
            "WHERE policy = ? AND interface = ? AND schedule = ? AND user = ?",
            (policy, interface, schedule, user),
        ).fetchone()
        if row is None:
            return None
        arrivals, retained, signature, events, stand_ins = row
        return StoredTrace(
            tuple(json.loads(arrivals)),
            frozenset(json.loads(retained)),
            signature,
            tuple((kind, record, by, at) for kind, record, by, at in json.loads(events)),
            json.loads(stand_ins),
        )

    def both(self, policy: str, interface: str, schedule: str, user: str) -> bool:
        """Whether a user's forward route and another one are both there to compare."""
        (found,) = self._connection.execute(
            "SELECT count(*) FROM traces "
            "WHERE policy = ? AND interface = ? AND schedule IN ('forward', ?) AND user = ?",
            (policy, interface, schedule, user),
        ).fetchone()
        return bool(found == 2)

    def failed_routes(self) -> list[tuple[str, str, str, str, str]]:
        """Give (policy, interface, schedule, user, reason) of every route that failed."""
        return self._connection.execute(
            "SELECT policy, interface, schedule, user, reason FROM failed_routes "
            "ORDER BY policy, interface, schedule, user"
        ).fetchall()

    def stand_ins(self, policy: str, interface: str, schedule: str, user: str) -> dict[str, str]:
        """Give who took whose place on a route."""
        row = self._connection.execute(
            "SELECT stand_ins FROM traces "
            "WHERE policy = ? AND interface = ? AND schedule = ? AND user = ?",
            (policy, interface, schedule, user),
        ).fetchone()
        if row is None:
            raise RunError(f"the run holds no trace of user '{user}' for {policy} on {schedule}")
        places: dict[str, str] = json.loads(row[0])
        return places

    def findings(self, experiment: str, name: str = "", *, user: str = "") -> list[Finding]:
        """Give what an experiment found: all of it, or what has one name, or is of one user."""
        rows = self._connection.execute(
            "SELECT policy, interface, schedule, user, question, name, value FROM findings "
            "WHERE experiment = ? AND (? = '' OR name = ?) AND (? = '' OR user = ?) "
            "ORDER BY policy, interface, schedule, user, question, name",
            (experiment, name, name, user, user),
        )
        return [
            Finding(
                policy=policy,
                interface=interface,
                schedule=schedule,
                user=user,
                question=question,
                name=found,
                value=json.loads(value),
            )
            for policy, interface, schedule, user, question, found, value in rows
        ]

    def experiments(self) -> list[str]:
        """Name the experiments that have findings."""
        return [name for (name,) in self._rows("findings", "DISTINCT experiment", "")]

    def users(self) -> list[str]:
        """Give the pools' users, in their order."""
        return [user for (user,) in self._rows("records", "DISTINCT user", "ORDER BY user")]

    def records(self, user: str) -> list[StoredRecord]:
        """Give a pool's records in source order."""
        rows = self._rows(
            "records", "id, timestamp, text_sha256", "WHERE user = ? ORDER BY position", user
        )
        return [StoredRecord(*row) for row in rows]

    def routes(self) -> list[tuple[str, str, str]]:
        """Give (policy, interface, schedule) of every route."""
        return self._rows("traces", "DISTINCT policy, interface, schedule", "")

    def context_of(self, policy: str, interface: str, schedule: str, question: str) -> str:
        """Name the context that a question was shown; empty where there is none."""
        rows = self._rows(
            "exposures",
            "context",
            "WHERE policy = ? AND interface = ? AND schedule = ? AND question = ?",
            policy,
            interface,
            schedule,
            question,
        )
        return str(rows[0][0]) if rows else ""

    def context(self, identity: str) -> StoredContext:
        """Give a context by the name that exposures have for it."""
        sources, digest, chars, blocks = self._rows(
            "contexts", "sources, context_sha256, context_chars, blocks", "WHERE id = ?", identity
        )[0]
        return StoredContext(
            tuple(json.loads(sources)),
            digest,
            chars,
            tuple((kind, text, tuple(ids)) for kind, text, ids in json.loads(blocks)),
        )

    def text(self, digest: str) -> str:
        """Give a stored text."""
        return self._text(digest)

    def prompt(self, digest: str) -> str:
        """Give a prompt's whole text; empty where it was never asked."""
        rows = self._rows("prompts", "text", "WHERE sha256 = ?", digest)
        return str(rows[0][0]) if rows else ""

    def counted(self, table: Literal["requests", "answers", "failures", "traces"]) -> int:
        """Count what a table holds; one that was never made holds nothing."""
        rows = self._rows(table, "count(*)", "")
        return int(rows[0][0]) if rows else 0

    def _rows(self, table: str, columns: str, rest: str, *values: str) -> list[Any]:
        """Read rows; a run that was interrupted early may not have the table."""
        if table not in self._tables:
            return []
        statement = f"SELECT {columns} FROM {table} {rest}"  # noqa: S608 (fixed names)
        return self._connection.execute(statement, values).fetchall()

    def forget(self) -> None:
        """Let go of the texts read so far; call it when going on to another pool."""
        self._texts.clear()

    def _text(self, digest: str) -> str:
        if digest not in self._texts:
            (self._texts[digest],) = self._connection.execute(
                "SELECT text FROM texts WHERE sha256 = ?", (digest,)
            ).fetchone()
        return self._texts[digest]
