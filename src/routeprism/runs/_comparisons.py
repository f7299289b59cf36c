"""Who asked what: the answers that each side of a comparison read off the ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields

__all__ = ["StoredAnswer", "answers_of", "count_answers"]


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One answer with its place in a comparison."""

    policy: str
    schedule: str
    question: str
    filler: str
    condition: str
    """What else the comparison is told apart by, such as an instruction, a design, a layout."""
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


def answers_of(
    connection: sqlite3.Connection, experiment: str, model: str, batch: str, policy: str
) -> list[StoredAnswer]:
    """Give a policy's answers, comparison by comparison and draw by draw."""
    names = ", ".join(f"c.{name}" for name in _NAMES)
    there = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'recorded'").fetchone()
    elsewhere = "NULL, NULL"  # in a run of an earlier version
    if there:
        came = "(SELECT {} FROM recorded e WHERE e.submission = r.submission)"
        elsewhere = f"{came.format('correct')}, {came.format('position')}"
    rows = connection.execute(
        f"SELECT {names}, r.model, ?, r.draw - c.first_draw, r.draw, r.prompt_sha256, "
        f"r.submission, a.outcome, a.answer, a.raw, {elsewhere} {_JOINED} AND c.policy = ? "
        f"ORDER BY {names}, r.draw",
        (batch, model, batch, batch, experiment, policy),
    )
    names_of = [one.name for one in fields(StoredAnswer)]
    found = (dict(zip(names_of, row, strict=True)) for row in rows)
    return [
        StoredAnswer(**{**one, "correct": None if one["correct"] is None else bool(one["correct"])})
        for one in found
    ]


def count_answers(
    connection: sqlite3.Connection,
    experiments: Sequence[str],
    models: Iterable[str],
    batches: Sequence[str],
) -> int:
    """Count the distinct answers that experiments rest on."""
    found: set[int] = set()
    for model in models:
        for batch in batches:
            for experiment in experiments:
                rows = connection.execute(
                    f"SELECT DISTINCT r.submission {_JOINED}",
                    (model, batch, batch, experiment),
                )
                found.update(submission for (submission,) in rows)
    return len(found)
