"""Which contexts a finished run compiled, for cards that read the context itself (item N.1)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from routeprism.errors import RunError
from routeprism.policies import Block, Exposure
from routeprism.runs import Stored

__all__ = ["RouteName", "routes_of", "stored_contexts"]


class RouteName(NamedTuple):
    """How a run's store names a route."""

    policy: str
    interface: str
    schedule: str


def routes_of(directory: Path) -> tuple[RouteName, ...]:
    """Give the routes that a finished run traced, from its estimates; forward comes first."""
    path = directory / "estimates.csv"
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.DictReader(stream) if row.get("policy")]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise RunError(f"{directory} holds no finished run: {path.name} cannot be read") from error
    found: dict[RouteName, None] = {}
    for row in rows:
        if row["experiment"] == "routes" and row["schedule"]:
            for schedule in ("forward", row["schedule"]):
                found[RouteName(row["policy"], row["interface"], schedule)] = None
    if not found:
        raise RunError(f"{directory} traced no routes; make it by routeprism audit")
    return tuple(found)


def stored_contexts(
    directory: Path, routes: Sequence[RouteName], questions: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Give (question id, context) for each question on each route; nothing is built again."""
    with Stored(directory) as stored:
        for question in questions:
            for route in routes:
                if not stored.exposed(*route, question):
                    continue  # the route failed for this user
                shown = stored.shown(*route, question)
                blocks = tuple(Block(kind, text, ids) for kind, text, ids in shown.blocks)
                yield question, Exposure(blocks).context
            stored.forget()
