"""Refreshing: execute what can be executed here, and leave everything else as it was."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.errors import InputError, MissingExtraError, SpecError
from routeprism.models import make_models
from routeprism.reproduction._beyond import beyond_references
from routeprism.reproduction._cells import Table
from routeprism.reproduction._obtained import Kept, Obtained
from routeprism.reproduction._perform import perform
from routeprism.reproduction._registry import TABLES, references
from routeprism.reproduction._sources import SOURCES, Source

__all__ = ["Refreshed", "refresh"]


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What a refresh gave."""

    obtained: Obtained
    """All that is known now: what was executed, and what was there before."""
    executed: tuple[str, ...]
    """The sources that were executed."""
    missing: Mapping[str, str]
    """Source → why it could not be executed; its values are as they were."""


def refresh(
    before: Obtained,
    tables: tuple[Table, ...] = (),
    *,
    data: Path | None = None,
    model: str | None = None,
    sources: Mapping[str, Source] = SOURCES,
    workers: int | None = 1,
    told: Callable[[str], None] | None = None,
    hold: Callable[[Obtained], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    **given: Any,
) -> Refreshed:
    """Execute the sources of some tables, or of all.

    Sources that ask a model are executed where a model is given. What else is given (`readings`,
    `labels`, `mask`) is about PersonaMem's questions, and goes to those of them that ask about it.
    `told` is called with the meaning of each source before it is executed, and `hold` with all
    that is known after it: who keeps that loses nothing when a long refresh is stopped.
    """
    if model is not None and len(several := make_models(model)) > 1:
        names = ", ".join(one.name for one in several)
        raise SpecError(f"a table is about one model; choose one: {names}")
    # A source is kept with all rows that any table needs, whichever tables were named.
    wanted = references(tuple(TABLES.values()))
    for name, rows in beyond_references().items():
        wanted[name] = [*wanted.get(name, ()), *rows]
    needed = references(tables) if tables else wanted
    obtained: dict[str, Kept] = dict(before)
    executed: list[str] = []
    missing: dict[str, str] = {}
    for name, source in sources.items():
        if name not in needed or (source.asks and model is None):
            continue
        if told is not None:
            told(source.meaning)
        try:
            obtained[name] = perform(
                source,
                wanted[name],
                data=data,
                model=model,
                workers=workers,
                progress=progress,
                **(given if source.asks and source.benchmark == "personamem" else {}),
            )
        except (InputError, MissingExtraError) as error:
            missing[name] = str(error)
            continue
        executed.append(name)
        if hold is not None:
            hold(obtained)
    return Refreshed(obtained, tuple(executed), missing)
