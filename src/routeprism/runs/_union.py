"""The union of several ledgers: what the models of all shards replied, in one store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from routeprism.errors import RunError
from routeprism.runs._ledger import open_store
from routeprism.runs._store import Tables, read_schema, storing

_KEY = ("prompt_sha256", "draw", "model", "settings_sha256", "batch")
"""The columns that identify a request."""
_SAME = " AND ".join(f"theirs.{name} = ours.{name}" for name in _KEY)
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


def explain_shard(shard: str) -> str:
    """Explain that the numbers of a run are those of one shard."""
    return f"These numbers are those of shard {shard} alone; `merge` gives those of all shards"


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
