"""Refreshing obtained values: execute the source runs that can be executed, keep the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.answers import Cost
from routeprism.errors import InputError, MissingExtraError, SpecError
from routeprism.experiments import Shard, ShardResults
from routeprism.models import Allowance, make_models
from routeprism.reproduction._execution import execute_source, price_source
from routeprism.reproduction._numbers import Reference, list_all_rows, list_needed_rows
from routeprism.reproduction._published import PublishedTable
from routeprism.reproduction._sources import SOURCES, ObtainedValues, SourceRun, SourceValues


@dataclass(frozen=True, slots=True)
class RefreshResult:
    """The results of a refresh."""

    obtained: ObtainedValues
    """All values: those of the executed source runs, and the earlier ones of the others."""
    executed: tuple[str, ...]
    """The source runs that were executed."""
    missing: Mapping[str, str]
    """Source run → why it could not be executed; its values are unchanged."""


@dataclass(frozen=True, slots=True)
class SourceResult:
    """The results of executing one source run."""

    name: str
    values: SourceValues | None
    reason: str = ""
    """Why there are no values."""


def refresh_values(
    before: ObtainedValues,
    tables: tuple[PublishedTable, ...] = (),
    *,
    data: Path | None = None,
    model: str | None = None,
    sources: Mapping[str, SourceRun] = SOURCES,
    workers: int | None = 1,
    announce: Callable[[str], None] | None = None,
    save: Callable[[ObtainedValues], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
    runs: Path | None = None,
    allowance: Allowance | None = None,
    shard: Shard | None = None,
    merged: ShardResults | None = None,
    **overrides: Any,
) -> RefreshResult:
    """Execute the source runs of some tables, or of all tables.

    Source runs that ask a model are executed if you pass a model. The remaining arguments
    (`readings`, `labels`, `masks`) apply to PersonaMem's questions and to its source runs only.
    `announce` is called with the meaning of each source run before it is executed, and `save` with
    all values after it, so that nothing is lost if you stop a long refresh. Answers are kept in one
    directory for each source run under `runs` and are not requested again. An `allowance` limits
    what all source runs together may spend. A `shard` executes some of the source runs, and
    `merged` shards have executed all of them.
    """
    obtained: dict[str, SourceValues] = dict(before)
    executed: list[str] = []
    missing: dict[str, str] = {}

    def execute(source: SourceRun, references: list[Reference]) -> SourceResult:
        options = _options_for(source, data, model, runs, overrides)
        if source.asks and allowance is not None:
            options["allowance"] = allowance
        if announce is not None:
            announce(source.meaning)
        try:
            values = execute_source(
                source, references, workers=workers, progress=progress, **options
            )
        except (InputError, MissingExtraError) as error:
            return SourceResult(source.name, None, str(error))
        return SourceResult(source.name, values)

    selected = _choose_sources(tables, sources, model, shard)
    results = (execute(source, references) for source, references in selected)
    for result in results if merged is None else merged.read(len(selected)):
        if shard is not None and shard.file is not None:
            shard.file.append(result)
        if result.values is None:
            missing[result.name] = result.reason
            continue
        obtained[result.name] = result.values
        executed.append(result.name)
        if save is not None:
            save(obtained)
    return RefreshResult(obtained, tuple(executed), missing)


def price_tables(
    tables: tuple[PublishedTable, ...],
    *,
    data: Path | None,
    model: str | None,
    sources: Mapping[str, SourceRun] = SOURCES,
    runs: Path | None = None,
    shard: Shard | None = None,
    **overrides: Any,
) -> dict[str, Cost]:
    """Estimate what the answers of some tables, or of all, would cost, without calling a model."""
    costs: dict[str, Cost] = {}
    for source, references in _choose_sources(tables, sources, model, shard):
        if not source.asks or model is None:
            continue
        options = _options_for(source, data, model, runs, overrides)
        try:
            plans = price_source(source, references, **options)
        except (InputError, MissingExtraError) as error:
            plans = {model: Cost(0, 0, None, None, None, None, str(error), estimated=True)}
        costs |= {f"{source.name}, {name}": plan for name, plan in plans.items()}
    return costs


def _choose_sources(
    tables: tuple[PublishedTable, ...],
    sources: Mapping[str, SourceRun],
    model: str | None,
    shard: Shard | None,
) -> list[tuple[SourceRun, list[Reference]]]:
    """Choose the source runs to execute here, each with the rows that any table needs of it."""
    if model is not None and len(models := make_models(model)) > 1:
        names = ", ".join(candidate.name for candidate in models)
        raise SpecError(f"a table is about one model; choose one: {names}")
    references = list_all_rows()
    needed = list_needed_rows(tables) if tables else references
    selected = [
        (source, references[name])
        for name, source in sources.items()
        if name in needed and (model is not None or not source.asks)
    ]
    if shard is None:
        return selected
    return [selected[at] for at in shard.choose(len(selected), "source run")]


def _options_for(
    source: SourceRun,
    data: Path | None,
    model: str | None,
    runs: Path | None,
    overrides: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the arguments of one source run; the name of its directory depends on the answers."""
    options: dict[str, Any] = {"data": data, "model": model}
    if source.benchmark == "personamem":
        options |= overrides
    if source.asks:
        text = f"{model} {sorted((key, str(value)) for key, value in overrides.items())}"
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        options["run"] = None if runs is None else runs / f"{source.name}-{digest}"
    return options
