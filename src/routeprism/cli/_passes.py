"""What `screen` and `support` share: passes by name, sheets to fill in, how a study is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from routeprism.cli._terminal import confirm, default_run, progress, show_costs, spends
from routeprism.errors import InputError, RoutePrismError, SpecError
from routeprism.models import Model, make_model, registered_models
from routeprism.records import Benchmark, load_benchmark, only_kinds
from routeprism.report import REPORT, write_report
from routeprism.runs import COLUMNS
from routeprism.support import (
    Card,
    Mask,
    Rubric,
    Study,
    mask_from_file,
    plan_study,
    run_study,
    write_sheet,
)

__all__ = [
    "confusion_tables",
    "count_table",
    "export_cards",
    "load",
    "make_study",
    "parse_passes",
    "read_masks",
    "show",
    "write_lines",
]

_FILES = (".csv", ".tsv", ".txt", ".json")


def load(benchmark: str, data: Path | None, kinds: Sequence[str]) -> Benchmark:
    """Load a benchmark, cut to some kinds."""
    loaded = load_benchmark(benchmark, data)
    return only_kinds(loaded, kinds) if kinds else loaded


def parse_passes(texts: Sequence[str], base_url: str | None = None) -> dict[str, Model | Path]:
    """Read `NAME=WHO`, where WHO is a filled sheet, a stored pass (.json), or a model."""
    found: dict[str, Model | Path] = {}
    for text in texts:
        name, equals, who = text.partition("=")
        name, who = name.strip(), who.strip()
        if not equals or not name or not who:
            raise SpecError(f"Expected NAME=FILE or NAME=MODEL but got --pass {text!r}")
        if name in found:
            raise SpecError(f"two passes are called '{name}'")
        path = Path(who)
        by_model = who.partition(":")[0] in registered_models()
        is_file = path.suffix.lower() in _FILES and not by_model
        found[name] = path if is_file else make_model(who, base_url=base_url)
    return found


def read_masks(texts: Sequence[str], benchmark: Benchmark) -> list[Mask]:
    """Read `FILE` or `NAME=FILE`, each a list of questions."""
    masks = []
    for text in texts:
        name, equals, file = text.partition("=")
        path = Path(file if equals else text)
        masks.append(mask_from_file(path, benchmark, name=name if equals else ""))
    return masks


def export_cards(cards: Sequence[Card], rubric: Rubric, path: Path, *, as_json: bool) -> None:
    """Write a sheet to be filled in, and the rubric beside it."""
    beside = path.with_suffix(".rubric.txt")
    for file in (path, beside):
        if file.exists():
            raise InputError("is there already; it may be filled in, so it stays", file=file)
    _write(path, write_sheet(cards, rubric))
    _write(beside, (rubric.text + "\n").encode())
    said = {"cards": len(cards), "sheet": str(path), "rubric": str(beside)}
    if as_json:
        _dump(said)
        return
    print(
        f"{len(cards)} cards are in {path}, the rule for reading them in {beside}. Fill the sheet "
        f"in, in any spreadsheet, and give it back as --pass NAME={path}"
    )


def make_study(
    benchmark: Benchmark,
    named: str,
    cards: Sequence[Card],
    rubric: Rubric,
    passes: Mapping[str, Model | Path],
    *,
    run: Path | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> Study | None:
    """Ask before spending, then make the passes; None where only costs were asked for."""
    models = [who for who in passes.values() if not isinstance(who, Path)]
    directory = run
    if directory is None and models:
        told = {
            name: str(who) if isinstance(who, Path) else f"{who.name} {dict(who.settings)}"
            for name, who in passes.items()
        }
        # A mask is another view of the same readings, and no other run.
        named_by = {key: value for key, value in settings.items() if key != "masks"}
        directory = default_run(named, [rubric.name, rubric.digest], {**named_by, "passes": told})
    if dry_run or (models and not yes and any(map(spends, models))):
        costs = plan_study(cards, rubric, passes, run=directory)
        if dry_run:
            show_costs(costs, as_json)
            return None
        confirm(costs)
    with progress(quiet or as_json) as (_, answers):
        study = run_study(
            benchmark, cards, rubric, passes, directory=directory, progress=answers, **settings
        )
        if study.directory is not None:
            write_report(study.directory)
        return study


def show(study: Study, more: Mapping[str, Any], *, as_json: bool) -> None:
    """Print a study: tables and sentences, or everything as JSON."""
    if as_json:
        _dump(
            {
                "benchmark": study.benchmark,
                "rubric": study.rubric.name,
                "primary": study.declaration.primary,
                "passes": {one.name: dict(one.counts) for one in study.passes},
                "sentences": list(study.sentences),
                "limits": study.limits,
                "run": None if study.directory is None else str(study.directory),
                "report": None if study.directory is None else str(study.directory / REPORT),
                **more,
                "estimates": [{name: getattr(row, name) for name in COLUMNS} for row in study.rows],
            }
        )
        return
    console = Console()
    for table in (count_table(study), *confusion_tables(study)):
        console.print(table)
    limits = [study.limits] if any(row.lower is not None for row in study.rows) else []
    for sentence in (*study.sentences, *limits, f"Primary pass: {study.declaration.primary}."):
        console.print(sentence, highlight=False, markup=False, soft_wrap=True)
    if study.directory is not None:
        files = ", ".join(f"readings-{one.name}.json" for one in study.passes)
        console.print(
            f"Run: {study.directory} (estimates.csv, {files})\nReport: {study.directory / REPORT}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def count_table(study: Study) -> Table:
    """Show what each pass found."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("pass", no_wrap=True)
    table.add_column("read by", overflow="fold")
    for label in study.passes[0].counts:
        table.add_column(label, justify="right", no_wrap=True)
    for one in study.passes:
        table.add_row(one.name, one.source, *map(str, one.counts.values()))
    return table


def confusion_tables(study: Study) -> list[Table]:
    """Show, for every two passes, how often each label of one met each of the other."""
    tables = []
    for at, one in enumerate(study.passes):
        for other in study.passes[at + 1 :]:
            arm = f"{one.name}~{other.name}"
            cells = {
                row.quantity: int(row.estimate or 0)
                for row in study.rows
                if not row.mask and row.arm.endswith(arm) and not row.arm.startswith("direct-sets")
            }
            labels = [label for label in one.counts if f"count.{label}~{label}" in cells]
            table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
            table.add_column(f"{one.name} \\ {other.name}", no_wrap=True)
            for label in labels:
                table.add_column(label, justify="right", no_wrap=True)
            for first in labels:
                counts = (str(cells[f"count.{first}~{second}"]) for second in labels)
                table.add_row(first, *counts)
            tables.append(table)
    return tables


def write_lines(lines: Sequence[str], path: Path) -> None:
    """Write a list, one on each line."""
    _write(path, "".join(f"{line}\n" for line in lines).encode())


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise RoutePrismError(f"{path} cannot be written: {error.strerror or error}") from error


def _dump(value: Mapping[str, Any]) -> None:
    json.dump(value, sys.stdout, indent=2, ensure_ascii=False)
    sys.stdout.write("\n")
