"""Which answers of the ledger each side of a comparison reads."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from routeprism.runs._store import Tables

SIDE_PARTS = ("tokens", "padding", "evidence_start", "evidence_end", "records", "reason")
"""Columns of the table `comparisons` that describe the prompt of a side."""


@dataclass(frozen=True, slots=True)
class StoredSide:
    """One side of a comparison and its prompt, or a comparison that could not be asked."""

    experiment: str
    policy: str
    schedule: str
    question: str
    filler: str
    condition: str
    side: str
    """Empty for a comparison without prompts."""
    prompt_sha256: str
    tokens: int
    padding: tuple[int, ...]
    """How many fillers are in each of its places."""
    evidence: tuple[int, int]
    """The first character of the evidence, and the one after its last."""
    records: tuple[tuple[str, int, int], ...]
    """(record id, first character, character after the last) of each whole record."""
    reason: str
    """Why the comparison has no prompts."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer with its place in a comparison."""

    policy: str
    schedule: str
    question: str
    filler: str
    condition: str
    """What else distinguishes the comparison, such as an instruction, a design, a layout."""
    side: str
    """The route or condition that was asked."""
    model: str
    batch: str
    turn: int
    """Which draw of its side it is, from 0."""
    draw: int
    """The draw's number in the ledger."""
    prompt_sha256: str
    submission: int
    """Its place in the dispatch order."""
    outcome: str
    answer: str | None
    """The option's letter or the text; None for a refused or unparsable one."""
    raw: str
    correct: bool | None = None
    """The verdict that came with it, where it was collected elsewhere."""
    order: int | None = None
    """Its place in the order in which it was asked for there."""


# An answer that was looked up by its place is kept under it (`batch@question@policy@…`). CROSS JOIN
# keeps SQLite from going through all requests for every comparison: prompts are looked up.
_JOINED = """
FROM comparisons c CROSS JOIN requests r ON r.prompt_sha256 = c.prompt_sha256
 AND r.draw BETWEEN c.first_draw AND c.first_draw + c.draws - 1
 AND r.model = ? AND r.batch IN (?, ? || '@' || c.place)
JOIN answers a USING (submission)
WHERE c.experiment = ?"""
_NAMES = ("policy", "schedule", "question", "filler", "condition", "side")


def add_side_parts(connection: sqlite3.Connection) -> None:
    """Add the columns of prompts to the table of an earlier version."""
    columns = {row[1] for row in connection.execute("PRAGMA table_info(comparisons)")}
    for name in SIDE_PARTS:
        if name not in columns:
            connection.execute(f"ALTER TABLE comparisons ADD COLUMN {name}")


def read_sides(connection: Tables, user: str) -> list[StoredSide]:
    """Read every side of the comparisons of a user's questions, in the order of their sides."""
    names = ", ".join(("experiment", *_NAMES))
    rows = connection.execute(
        f"SELECT {names}, prompt_sha256, {', '.join(SIDE_PARTS)} FROM comparisons "  # noqa: S608
        f"WHERE question IN (SELECT id FROM questions WHERE user = ?) "
        f"ORDER BY experiment, policy, schedule, question, filler, condition, first_draw",
        (user,),
    )
    return [_make_side(*row) for row in rows]


def _make_side(*row: Any) -> StoredSide:
    *names, tokens, padding, start, end, records, reason = row
    spans = tuple(tuple(span) for span in json.loads(records or "[]"))
    evidence = (start or 0, end or 0)
    counts = tuple(json.loads(padding or "[]"))
    return StoredSide(*names, tokens or 0, counts, evidence, spans, reason or "")  # type: ignore[call-arg]


def answers_of(
    connection: Tables, experiment: str, model: str, batch: str, policy: str, user: str = ""
) -> list[StoredAnswer]:
    """Return a policy's answers, of one user if named, by comparison and draw."""
    names = ", ".join(f"c.{name}" for name in _NAMES)
    elsewhere = "NULL, NULL"  # in a run of an earlier version
    if "recorded" in connection.names:
        came = "(SELECT {} FROM recorded e WHERE e.submission = r.submission)"
        elsewhere = f"{came.format('correct')}, {came.format('position')}"
    rows = connection.execute(
        f"SELECT {names}, r.model, ?, r.draw - c.first_draw, r.draw, r.prompt_sha256, "  # noqa: S608
        f"r.submission, a.outcome, a.answer, a.raw, {elsewhere} {_JOINED} AND c.policy = ? "
        f"AND (? = '' OR c.question IN (SELECT id FROM questions WHERE user = ?)) "
        f"ORDER BY {names}, r.draw",
        (batch, model, batch, batch, experiment, policy, user, user),
    )
    names_of = [field.name for field in fields(StoredAnswer)]
    answers = (dict(zip(names_of, row, strict=True)) for row in rows)
    return [
        StoredAnswer(
            **{**field, "correct": None if field["correct"] is None else bool(field["correct"])}
        )
        for field in answers
    ]


def count_answers(
    connection: Tables,
    experiments: Sequence[str],
    models: Iterable[str],
    batches: Sequence[str],
) -> int:
    """Count the distinct answers that experiments depend on."""
    identities: set[int] = set()
    for model in models:
        for batch in batches:
            for experiment in experiments:
                rows = connection.execute(
                    f"SELECT DISTINCT r.submission {_JOINED}",
                    (model, batch, batch, experiment),
                )
                identities.update(submission for (submission,) in rows)
    return len(identities)
