"""Read the store of a run: its questions, exposures, answers, values and estimates."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from routeprism.errors import RunError
from routeprism.runs._comparisons import (
    StoredAnswer,
    StoredSide,
    answers_of,
    count_answers,
    read_sides,
)
from routeprism.runs._entries import (
    MASKS,
    NAMES,
    Column,
    Finding,
    QuestionValues,
    Shortfall,
    StoredContext,
    StoredExposure,
    StoredQuestion,
    StoredRecord,
    StoredTrace,
    UnitValues,
    read_question,
    read_units,
    read_values,
)
from routeprism.runs._ledger import sha256
from routeprism.runs._rows import COLUMNS, EstimateRow
from routeprism.runs._store import (
    FINISHED,
    FORMAT,
    MANIFEST,
    STORE,
    Tables,
    check_format,
    check_regular,
    check_store,
    verify_store,
)

_PARTS: Mapping[str, type] = {"configuration": dict, "inputs": dict, "status": str}
"""Entries that every manifest has."""
_ROUTE = "policy = ? AND interface = ? AND schedule = ?"
_LEDGER = ("comparisons", "requests", "answers")


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read a run's manifest."""
    path = directory / MANIFEST
    check_regular(path)
    if not path.is_file():
        raise RunError(f"{directory} contains no run: there is no {path.name}")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error
    if not isinstance(manifest, dict):
        raise RunError(f"{path} cannot be read: Expected a JSON object")
    check_format(path, manifest, f"reads {FORMAT}; read the run with the version that wrote it")
    for name, kind in _PARTS.items():
        if not isinstance(manifest.get(name), kind):
            raise RunError(
                f"{path} is not the manifest of a run: '{name}' is missing or of another type"
            )
    return manifest


class StoredRun:
    """The store of a run, open for reading.

    With a `stage`, the tables there replace those of the store. Unless it
    `is_open` for writing, the whole store is read first, to see that nothing is missing.
    """

    def __init__(
        self, directory: Path, *, stage: Path | None = None, is_open: bool = False
    ) -> None:
        path = directory / STORE
        check_store(path)
        if not is_open:
            verify_store(path, finished=read_manifest(directory)["status"] in FINISHED)
        self._directory = directory
        self._tables = Tables(path, stage=stage)
        self._texts: dict[str, str] = {}

    def __enter__(self) -> StoredRun:
        return self

    def __exit__(self, *error: object) -> None:
        self._tables.close()

    def manifest(self) -> dict[str, Any]:
        """Read the manifest: the configuration, the inputs and whether the run is complete."""
        return read_manifest(self._directory)

    def estimates(self) -> list[EstimateRow]:
        """Read every number, as in `estimates.csv`; none if the run is not finished."""
        rows = self._rows("estimates", ", ".join(COLUMNS), "ORDER BY rowid")
        return [EstimateRow(**dict(zip(COLUMNS, row, strict=True))) for row in rows]

    def questions(self) -> dict[str, StoredQuestion]:
        """Read every question, by its id."""
        columns = "id, user, text, options, gold, kind, detail, labels"
        rows = self._rows("questions", columns, "ORDER BY id")
        return {row[0]: read_question(row) for row in rows}

    def per_question(self, **where: str) -> dict[Column, QuestionValues]:
        """Read the values that estimates are the means of, for the columns with these names."""
        quantity = where.pop("quantity", None)
        if unknown := where.keys() - set(NAMES):
            raise TypeError(f"Expected names among {NAMES} but got {sorted(unknown)}")
        questions: dict[str, list[str]] = {}
        for id, user in self._rows("questions", "id, user"):
            questions.setdefault(user, []).append(id)
        condition = " AND ".join(f"{name} = ?" for name in where) or "1"
        columns = f"{', '.join(NAMES)}, user, quantities"
        rows = self._rows("per_question", columns, f"WHERE {condition}", *where.values())
        values = read_values(rows, questions)
        return {c: v for c, v in values.items() if quantity in (None, c.quantity)}

    def per_unit(self, interface: str, column: Column) -> list[UnitValues]:
        """Read what each unit adds to an estimate; none if the estimate is not stored by unit."""
        names = column._asdict()
        condition = " AND ".join(f"{name} = ?" for name in NAMES)
        rows = self._rows(
            "per_unit",
            f"interface, {', '.join(NAMES)}, user, quantities",
            f"WHERE interface IN ('', ?) AND {condition}",
            interface,
            *(names[name] for name in NAMES),
        )
        units = read_units(rows)
        return units.get((interface, column)) or units.get(("", column)) or []

    def masks(self) -> dict[str, frozenset[str]]:
        """Read the question ids of each mask of the run."""
        return {finding.name: frozenset(finding.value) for finding in self.findings(MASKS)}

    def answers(
        self, experiment: str, *, model: str, batch: str, policy: str, user: str = ""
    ) -> list[StoredAnswer]:
        """Read the answers to an experiment's comparisons of a policy, of one user if named."""
        if not self._has(*_LEDGER):
            return []
        return answers_of(self._tables, experiment, model, batch, policy, user)

    def comparison_sides(self, user: str) -> list[StoredSide]:
        """Read every side of the comparisons of a user's questions."""
        if not self._has("comparisons", "questions"):
            return []
        return read_sides(self._tables, user)

    def count_answers(
        self, experiments: Sequence[str], models: Iterable[str], batches: Sequence[str]
    ) -> int:
        """Count the distinct answers that experiments depend on."""
        if not self._has(*_LEDGER):
            return 0
        return count_answers(self._tables, experiments, models, batches)

    def count_batch(self, model: str, batch: str) -> int:
        """Count a model's answers in one batch."""
        if not self._has("requests", "answers"):
            return 0
        source = "requests JOIN answers USING (submission)"
        ((number,),) = self._select(
            "count(*)", f"{source} WHERE model = ? AND batch = ?", model, batch
        )
        return int(number)

    def reply(self, model: str, prompt: str, batch: str) -> tuple[str, str] | None:
        """Read a model's reply to a prompt, with the prompt's hash; None if there is none."""
        digest = sha256(prompt)
        rows = self._select(
            "a.raw",
            "requests r JOIN answers a USING (submission) "
            "WHERE r.prompt_sha256 = ? AND r.draw = 0 AND r.model = ? AND r.batch = ?",
            digest,
            model,
            batch,
        )
        return (rows[0][0], digest) if rows else None

    def prompts(self, digests: Iterable[str]) -> dict[str, str]:
        """Read the texts of prompts by their SHA-256."""
        return {digest: text for digest in dict.fromkeys(digests) if (text := self.prompt(digest))}

    def prompt(self, digest: str) -> str:
        """Read a prompt's whole text; empty if it was never asked."""
        rows = self._rows("prompts", "text", "WHERE sha256 = ?", digest)
        return str(rows[0][0]) if rows else ""

    def context_of(self, policy: str, interface: str, schedule: str, question: str) -> str:
        """Read the name of the context that a question was shown; empty if there is none."""
        route = (policy, interface, schedule)
        rows = self._rows(
            "exposures", "context", f"WHERE {_ROUTE} AND question = ?", *route, question
        )
        return str(rows[0][0]) if rows else ""

    def has_exposure(self, policy: str, interface: str, schedule: str, question: str) -> bool:
        """Whether the store has what a question was shown on a route."""
        return bool(self.context_of(policy, interface, schedule, question))

    def exposure(self, policy: str, interface: str, schedule: str, question: str) -> StoredExposure:
        """Read what a question was shown on a route."""
        name = self.context_of(policy, interface, schedule, question)
        if not name:
            raise RunError(
                f"the run has no exposure of question '{question}' to {policy} on {schedule}"
            )
        context = self.context(name)
        blocks = ((kind, self.text(text), frozenset(ids)) for kind, text, ids in context.blocks)
        return StoredExposure(frozenset(context.sources), context.sha256, tuple(blocks))

    def context(self, identity: str) -> StoredContext:
        """Read a context by the name that exposures have for it."""
        columns = "sources, context_sha256, context_chars, blocks"
        ((sources, digest, chars, blocks),) = self._rows(
            "contexts", columns, "WHERE id = ?", identity
        )
        return StoredContext(
            tuple(json.loads(sources)),
            digest,
            chars,
            tuple((kind, text, tuple(ids)) for kind, text, ids in json.loads(blocks)),
        )

    def sources(self, policy: str, interface: str, schedule: str) -> dict[str, frozenset[str]]:
        """Read the source ids that every question was shown on a route, without their texts."""
        rows = self._select(
            "question, sources",
            f"exposures JOIN contexts ON contexts.id = exposures.context WHERE {_ROUTE}",
            policy,
            interface,
            schedule,
        )
        return {question: frozenset(json.loads(sources)) for question, sources in rows}

    def trace(self, policy: str, interface: str, schedule: str, user: str) -> StoredTrace | None:
        """Read the trace of a route; None if the route failed or was never traced."""
        columns = "arrivals, retained, signature, events, stand_ins"
        route = (policy, interface, schedule)
        rows = self._rows("traces", columns, f"WHERE {_ROUTE} AND user = ?", *route, user)
        if not rows:
            return None
        arrivals, retained, signature, events, stand_ins = rows[0]
        counts = self._rows("route_counts", "counts", f"WHERE {_ROUTE} AND user = ?", *route, user)
        return StoredTrace(
            tuple(json.loads(arrivals)),
            frozenset(json.loads(retained)),
            signature,
            tuple((kind, record, by, at) for kind, record, by, at in json.loads(events)),
            json.loads(stand_ins),
            json.loads(counts[0][0]) if counts else {},
        )

    def has_pair(
        self, policy: str, interface: str, schedule: str, user: str, reference: str = "forward"
    ) -> bool:
        """Whether the store has both the reference route of a user and the route to compare."""
        rows = self._rows(
            "traces",
            "schedule",
            "WHERE policy = ? AND interface = ? AND schedule IN (?, ?) AND user = ?",
            *(policy, interface, reference, schedule, user),
        )
        return len(rows) == 2

    def stand_ins(self, policy: str, interface: str, schedule: str, user: str) -> dict[str, str]:
        """Read which retained record replaced which dropped record on a route."""
        trace = self.trace(policy, interface, schedule, user)
        if trace is None:
            raise RunError(f"the run has no trace of user '{user}' for {policy} on {schedule}")
        return trace.stand_ins

    def failed_routes(self) -> list[tuple[str, str, str, str, str]]:
        """Read (policy, interface, schedule, user, reason) of every route that failed."""
        columns = "policy, interface, schedule, user, reason"
        return self._rows("failed_routes", columns, "ORDER BY policy, interface, schedule, user")

    def findings(self, experiment: str, name: str = "", *, user: str = "") -> list[Finding]:
        """Read an experiment's findings: all of them, or those with one name or of one user."""
        columns = "policy, interface, schedule, user, question, name"
        rows = self._rows(
            "findings",
            f"{columns}, value",
            "WHERE experiment = ? AND (? = '' OR name = ?) AND (? = '' OR user = ?) "
            f"ORDER BY {columns}",
            *(experiment, name, name, user, user),
        )
        names = columns.split(", ")
        return [
            Finding(**dict(zip(names, place, strict=True)), value=json.loads(value))
            for *place, value in rows
        ]

    def experiments(self) -> list[str]:
        """List the experiments that have findings."""
        return [name for (name,) in self._rows("findings", "DISTINCT experiment")]

    def users(self) -> list[str]:
        """List the pools' users, in their order."""
        return [user for (user,) in self._rows("records", "DISTINCT user", "ORDER BY user")]

    def records(self, user: str) -> list[StoredRecord]:
        """Read a pool's records in source order."""
        rows = self._rows(
            "records", "id, timestamp, text_sha256", "WHERE user = ? ORDER BY position", user
        )
        return [StoredRecord(*row) for row in rows]

    def routes(self) -> list[tuple[str, str, str]]:
        """List (policy, interface, schedule) of every route."""
        return self._rows("traces", "DISTINCT policy, interface, schedule")

    def text(self, digest: str) -> str:
        """Read a stored text; it stays in memory until `clear_texts`."""
        if digest not in self._texts:
            rows = self._rows("texts", "text", "WHERE sha256 = ?", digest)
            if not rows:
                raise RunError(f"{self._directory} is damaged: it lacks the text {digest}")
            self._texts[digest] = rows[0][0]
        return self._texts[digest]

    def clear_texts(self) -> None:
        """Release the texts read so far; call it before reading another pool."""
        self._texts.clear()

    def shortfall(self) -> Shortfall:
        """Count the missing answers and routes of a finished run.

        If its manifest does not have them, the requests without an answer are counted.
        """
        stated = Shortfall.from_manifest(self.manifest())
        if stated is not None:
            return stated
        why = "(SELECT max(error) FROM failures WHERE failures.submission = requests.submission)"
        without = "WHERE submission NOT IN (SELECT submission FROM answers)"
        answers = [
            error or "no reason is stored" for (error,) in self._rows("requests", why, without)
        ]
        routes = [reason for (reason,) in self._rows("failed_routes", "reason")]
        return Shortfall.count(answers, routes)

    def count_rows(self, table: Literal["requests", "answers", "failures", "traces"]) -> int:
        """Count the rows of a table; a missing table has none."""
        rows = self._rows(table, "count(*)")
        return int(rows[0][0]) if rows else 0

    def _has(self, *tables: str) -> bool:
        """Whether the store has these tables; a run without a model has no ledger."""
        return self._tables.has(*tables)

    def _rows(self, table: str, columns: str, rest: str = "", *values: str) -> list[Any]:
        """Read rows; a run that was interrupted early may not have the table."""
        return self._select(columns, f"{table} {rest}", *values) if self._has(table) else []

    def _select(self, columns: str, origin: str, *values: str) -> list[Any]:
        statement = f"SELECT {columns} FROM {origin}"  # noqa: S608 (fixed names)
        return self._tables.execute(statement, values)


def read_configuration(stored: StoredRun, directory: Path) -> dict[str, Any]:
    """Read the configuration of a run; refuse a run that is not finished."""
    manifest = stored.manifest()
    if manifest.get("status") not in FINISHED:
        raise RunError(
            f"{directory} is not finished; run the same command with this directory to resume it"
        )
    configuration: dict[str, Any] = manifest["configuration"]
    return configuration
