"""The Python function of `reproduce`: select tables, compute them again, and write the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.answers import Cost
from routeprism.api.requests import takes_settings
from routeprism.errors import InputError, SpecError
from routeprism.files import write_output
from routeprism.models import Model, costs_money, make_allowance, make_models
from routeprism.report import write_final_report
from routeprism.reproduction._findings import store_tables
from routeprism.reproduction._page import render_page
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

__all__ = [
    "ReproductionRequest",
    "ReproductionResult",
    "perform_reproduction",
    "prepare_reproduction",
    "reproduce",
]

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
        if not settings.execute:
            return {}
        return price_tables(
            self.tables, data=_path(settings.data), model=settings.model, runs=self.runs,
            **self.inputs,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class ReproductionResult:
    """The tables that were selected, with the values that are known for them."""

    tables: tuple[PublishedTable, ...]
    obtained: ObtainedValues
    refresh: RefreshResult | None
    """What was executed; None if nothing was to be."""
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
    return ReproductionRequest(settings, tables, inputs, models, obtained or _OBTAINED)


def perform_reproduction(
    request: ReproductionRequest,
    announce: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> ReproductionResult:
    """Execute what is to be executed, and write the files that settings name."""
    settings, store = request.settings, request.store
    is_stored = settings.obtained or (settings.execute and store.exists())
    values = read_obtained(store if is_stored else STORED)
    refresh: RefreshResult | None = None
    if settings.execute:
        refresh = refresh_values(
            values,
            request.tables,
            data=_path(settings.data),
            model=settings.model,
            workers=settings.workers,
            announce=announce,
            save=lambda obtained: _save(obtained, store),
            progress=progress,
            runs=request.runs,
            allowance=make_allowance(request.models, settings.max_calls, settings.max_cost),
            **request.inputs,
        )
        values = refresh.obtained
    if settings.write is not None:
        _write(Path(settings.write), render_page(values).encode())
    if settings.keep is not None:
        store_tables(Path(settings.keep), values)
        write_final_report(Path(settings.keep))
    destination = store if refresh is not None and refresh.executed else None
    return ReproductionResult(request.tables, values, refresh, destination)


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
