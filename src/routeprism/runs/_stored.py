"""Reading a run's store: what was exposed to whom, without building anything again."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from routeprism.errors import RunError
from routeprism.runs._findings import Finding

__all__ = ["Shown", "Stored"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What one question was shown on one route."""

    sources: frozenset[str]
    """V."""
    context_sha256: str
    blocks: tuple[tuple[str, str, frozenset[str]], ...]
    """(kind, text, source ids)."""


class Stored:
    """The store of a run, open for reading."""

    def __init__(self, directory: Path) -> None:
        path = directory / "run.sqlite"
        if not path.exists():
            raise RunError(f"{directory} holds no run: there is no {path.name}")
        self._connection = sqlite3.connect(path)
        self._texts: dict[str, str] = {}

    def __enter__(self) -> Stored:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

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

    def findings(self, experiment: str, name: str = "") -> list[Finding]:
        """Give what an experiment found, all of it or what has one name."""
        rows = self._connection.execute(
            "SELECT policy, interface, schedule, user, question, name, value FROM findings "
            "WHERE experiment = ? AND (? = '' OR name = ?) "
            "ORDER BY policy, interface, schedule, user, question, name",
            (experiment, name, name),
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

    def forget(self) -> None:
        """Let go of the texts read so far; call it when going on to another pool."""
        self._texts.clear()

    def _text(self, digest: str) -> str:
        if digest not in self._texts:
            (self._texts[digest],) = self._connection.execute(
                "SELECT text FROM texts WHERE sha256 = ?", (digest,)
            ).fetchone()
        return self._texts[digest]
