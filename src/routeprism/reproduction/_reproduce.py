"""The Python function of `reproduce`: select tables, compute them again, and write the result."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from routeprism.answers import Cost
from routeprism.api.requests import takes_settings
from routeprism.errors import InputError, SpecError
from routeprism.experiments import ResultFile, Shard, ShardResults, check_shards, parse_shard
from routeprism.files import write_output
from routeprism.models import Model, costs_money, make_allowance, make_models
from routeprism.report import write_final_report
from routeprism.reproduction._page import render_page, store_tables
from routeprism.reproduction._published import (
    PRIMARY,
    PublishedTable,
    check_question_set,
    select_tables,
)
from routeprism.reproduction._refresh import RefreshResult, price_tables, refresh_values
from routeprism.reproduction._sources import (
    STORED,
    ObtainedValues,
    read_obtained,
    write_obtained,
)
from routeprism.runs import Run, explain_shard
from routeprism.settings import write_command

_OBTAINED = Path("reproduction") / "obtained.json"
"""Where values go in the current directory: never into the installed package."""


@dataclass(frozen=True, slots=True)
class ReproductionRequest:
    """One call of `reproduce`."""

    settings: Any
    tables: tuple[PublishedTable, ...]
    inputs: Mapping[str, Any]
    """Labels, readings and question sets that apply to PersonaMem's questions."""
    models: tuple[Model, ...]
    store: Path
    """The file of obtained values."""
    shard: Shard | None = None
    """The part of the source runs to execute; None for all."""

    @property
    def merged(self) -> ShardResults | None:
        """Return what shards have executed, if they are put together."""
        shards = [Path(run) for run in self.settings.shards]
        return ShardResults(check_shards(shards)[0]) if shards else None

    @property
    def runs(self) -> Path | None:
        """Return the directory for answers, next to the values; None if no model is asked."""
        asks_service = any(hasattr(model, "base_url") for model in self.models)
        return self.store.parent / "runs" if asks_service else None

    def may_spend(self) -> bool:
        """Return whether answering may cost money."""
        return any(map(costs_money, self.models))

    def price(self) -> Mapping[str, Cost]:
        """Count what the models would be asked."""
        settings = self.settings
        if not settings.execute or settings.shards:
            return {}
        return price_tables(
            self.tables,
            data=_path(settings.data),
            model=settings.model,
            runs=self.runs,
            shard=self.shard,
            **self.inputs,
        )

    def describe(self) -> dict[str, Any]:
        """Return what makes the shards of a reproduction belong together, for the manifest."""
        files = {name: self.inputs.get(name, ()) for name in ("readings", "masks")}
        paths = [*files["readings"], *dict(files["masks"]).values()]
        return {
            "command": "reproduce",
            "tables": [table.label for table in self.tables],
            "model": self.settings.model,
            "labels": self.inputs.get("labels"),
            "sets": sorted(dict(files["masks"])),
            "files": [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths],
            "shard": str(self.shard),
            "command_line": write_command("reproduce", self.settings),
        }


@dataclass(frozen=True, slots=True)
class ReproductionResult:
    """The tables that were selected, with the values that are known for them."""

    tables: tuple[PublishedTable, ...]
    obtained: ObtainedValues
    refresh: RefreshResult | None
    """The runs that were executed; None if none was requested."""
    values_file: Path | None
    """The file that values were written to."""


@takes_settings(
    "reproduce",
    "*tables",
    announce="called with the meaning of each source before it is executed.",
    progress="called with (pools done, pools in all).",
)
def reproduce(
    settings: Any,
    *,
    announce: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReproductionResult:
    """Compare the paper's numbers with those of this package, cell by cell."""
    return perform_reproduction(prepare_reproduction(settings), announce, progress)


def prepare_reproduction(settings: Any) -> ReproductionRequest:
    """Select the tables and parse what settings name; nothing is executed."""
    tables = select_tables(tuple(settings.tables))
    if settings.model is not None and not settings.execute:
        raise SpecError(
            f"model={settings.model} answers while tables are executed; set execute (--run) as well"
        )
    sets = _question_sets(settings.masks)
    readings = tuple(map(Path, settings.readings))
    inputs = {"labels": settings.labels, "readings": readings, "masks": sets}
    inputs = {name: value for name, value in inputs.items() if value}
    if inputs and not settings.execute:
        name = next(iter(inputs))
        raise SpecError(f"{name} applies when tables are executed; set execute (--run) as well")
    if readings and settings.labels is None:
        raise SpecError("choose the labels to use: labels='audited:NAME'")
    obtained = _path(settings.obtained)
    # The user named these: a wrong name ends the call, where missing data only leaves tables empty.
    stores = [] if settings.execute or obtained is None else [obtained]
    for file in (*readings, *sets.values(), *stores):
        if not file.is_file():
            raise InputError("there is no such file", file=file)
    models = () if settings.model is None else tuple(make_models(settings.model))
    shard = _choose_shard(settings)
    store = _choose_store(obtained or _OBTAINED, shard)
    return ReproductionRequest(settings, tables, inputs, models, store, shard)


def _choose_store(store: Path, shard: Shard | None) -> Path:
    """Choose the file of values; shards may work at the same time, in one directory."""
    if shard is None:
        return store
    return store.parent / f"shard-{shard.number}-of-{shard.count}" / store.name


def _choose_shard(settings: Any) -> Shard | None:
    """Return the part of the source runs to execute; refuse one that could not be merged."""
    if settings.shard is None:
        return None
    if not settings.execute:
        raise SpecError("shard applies when tables are executed; set execute (--run) as well")
    if settings.keep is None:
        raise SpecError("a shard stores its results: set keep as well")
    return parse_shard(settings.shard)


def perform_reproduction(
    request: ReproductionRequest,
    announce: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReproductionResult:
    """Execute what is to be executed, and write the files that settings name.

    A shard stores the values of its source runs; merging writes the files.
    """
    if request.shard is not None:
        return _perform_shard(request, request.shard, announce, progress)
    settings, store = request.settings, request.store
    is_stored = settings.obtained or (settings.execute and store.exists())
    values = read_obtained(store if is_stored else STORED)
    refresh: RefreshResult | None = None
    if settings.execute:
        refresh = _refresh(request, values, announce, progress, merged=request.merged)
        values = refresh.obtained
    if settings.write is not None:
        _write(Path(settings.write), render_page(values).encode())
    if settings.keep is not None:
        store_tables(Path(settings.keep), values)
        write_final_report(Path(settings.keep))
    destination = store if refresh is not None and refresh.executed else None
    return ReproductionResult(request.tables, values, refresh, destination)


def _refresh(
    request: ReproductionRequest,
    values: ObtainedValues,
    announce: Callable[[str], None] | None,
    progress: Callable[[int, int], None] | None,
    **part: Any,
) -> RefreshResult:
    settings = request.settings
    return refresh_values(
        values,
        request.tables,
        data=_path(settings.data),
        model=settings.model,
        workers=settings.workers,
        announce=announce,
        save=lambda obtained: _save(obtained, request.store),
        progress=progress,
        runs=request.runs,
        allowance=make_allowance(request.models, settings.max_calls, settings.max_cost),
        **part,
        **request.inputs,
    )


def _perform_shard(
    request: ReproductionRequest,
    shard: Shard,
    announce: Callable[[str], None] | None,
    progress: Callable[[int, int], None] | None,
) -> ReproductionResult:
    """Execute the source runs of a shard, and store their values in its run."""
    directory = Path(request.settings.keep)
    values = read_obtained(request.store)
    file = ResultFile(directory)
    with closing(file):
        with Run.open(directory, request.describe(), inputs={}, growing=("command_line",)) as run:
            file.begin_pass()
            refresh = _refresh(request, values, announce, progress, shard=replace(shard, file=file))
            counts = {"executed": len(refresh.executed), "missing": len(refresh.missing)}
            run.finish([], counts, notes=[explain_shard(str(shard))])
        file.finish()
    destination = request.store if refresh.executed else None
    return ReproductionResult(request.tables, refresh.obtained, refresh, destination)


def _save(values: ObtainedValues, store: Path) -> None:
    try:
        write_obtained(values, store)
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror or error}); pass a different file as obtained",
            file=store,
        ) from error


def _write(path: Path, content: bytes) -> None:
    try:
        write_output(path, content)
    except OSError as error:
        raise InputError(f"cannot be written ({error.strerror or error})", file=path) from error


def _question_sets(texts: Sequence[str]) -> dict[str, Path]:
    """Read `[NAME=]FILE`; a file without a name lists the primary questions."""
    sets: dict[str, Path] = {}
    for text in texts:
        name, sign, file = text.rpartition("=")
        # A file may have = in its name: only a word that could be a set is one.
        is_named = bool(sign) and not Path(text).is_file()
        name = check_question_set(name) if is_named else PRIMARY
        if name in sets:
            raise SpecError(f"masks names the questions '{name}' twice")
        sets[name] = Path(file if is_named else text)
    return sets


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)
