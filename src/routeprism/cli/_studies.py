"""What `screen` and `support` print: passes, their agreement, and the questions of a gate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from routeprism.api.studies import (
    StudyRequest,
    export_cards,
    perform_study,
    prepare_study,
    price_study,
    select_questions,
    write_questions,
)
from routeprism.cli._console import SafeConsole, make_grid, print_json, print_line
from routeprism.cli._terminal import execute, reading
from routeprism.labels import Study, audited_labels
from routeprism.runs import COLUMNS, REPORT


def show_screen(settings: Any) -> None:
    """Run `screen`."""
    request = prepare_study("screen", settings)
    study = _make_study(request)
    if study is None:
        return
    mask = select_questions(settings.gate, study)
    more: dict[str, Any] = {}
    if mask is not None:
        ids = sorted(mask.question_ids)
        more["gate"] = {"name": mask.name, "description": mask.description, "questions": ids}
        if settings.write_mask is not None and request.shard is None:
            write_questions(ids, settings.write_mask)
    _show(study, more, settings)
    if mask is not None and not settings.json:
        file = settings.write_mask if request.shard is None else None
        where = f" They are listed in {file}." if file else ""
        number = len(study.passes[0].cards)
        print_line(f"Gate {mask.name}: {len(mask)} of {number} questions pass.{where}")


def show_support(settings: Any) -> None:
    """Run `support`."""
    if settings.compiled is None:
        request = prepare_study("support", settings)
    else:
        with reading(settings.compiled):
            request = prepare_study("support", settings)
    study = _make_study(request)
    if study is not None:
        more = {} if settings.compiled is not None else _primary_labels(study)
        _show(study, more, settings)


def _make_study(request: StudyRequest) -> Study | None:
    """Export the cards, or make the study; None if there is no study."""
    settings = request.settings
    if settings.export is not None:
        _export(request, settings.export)
        return None
    return execute(
        request.with_run(),
        price_study,
        lambda request, _, answers, __: perform_study(request, answers),
    )


def _export(request: StudyRequest, path: Path) -> None:
    rubric = export_cards(request, path)
    number = len(request.cards)
    if request.settings.json:
        print_json({"cards": number, "sheet": str(path), "rubric": str(rubric)})
        return
    print(
        f"{number} cards are in {path}, the rule for reading them in {rubric}. Complete the sheet "
        f"in any spreadsheet, and pass it as --pass NAME={path}"
    )


def _primary_labels(study: Study) -> dict[str, Any]:
    """Return the labels of the primary pass in the one shape that labels have."""
    labels = audited_labels(study.primary)
    name = "stale" if study.rubric.name == "stale" else "labels"
    return {
        name: {
            "source": f"audited:{study.primary.name}",
            "questions": {id: sorted(records) for id, records in labels.items()},
        }
    }


def _show(study: Study, more: Mapping[str, Any], settings: Any) -> None:
    """Print a study: tables and sentences, everything as JSON, or its first sentence."""
    if settings.json:
        print_json(_as_json(study, more))
    elif not settings.quiet:
        _print_study(study)
    elif "gate" not in more:  # the line on the gate is the verdict
        print_line(study.sentences[0] if study.sentences else f"{study.benchmark}: labelled")


def _as_json(study: Study, more: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "benchmark": study.benchmark,
        "rubric": study.rubric.name,
        "primary": study.primary.name,
        "passes": {reading.name: dict(reading.counts) for reading in study.passes},
        "sentences": list(study.sentences),
        "limits": study.limits,
        "run": None if study.directory is None else str(study.directory),
        "report": None if study.directory is None else str(study.directory / REPORT),
        **more,
        "estimates": [{name: getattr(row, name) for name in COLUMNS} for row in study.rows],
    }


def _print_study(study: Study) -> None:
    """Print the tables and sentences of a study, and where its files are."""
    console = SafeConsole()
    for table in (_count_table(study), *_confusion_tables(study)):
        console.print(table)
    limits = [study.limits] if any(row.lower is not None for row in study.rows) else []
    console.say_whole(*study.sentences, *limits, f"Primary pass: {study.primary.name}.")
    if study.directory is not None:
        files = ", ".join(f"readings-{labelling.name}.json" for labelling in study.passes)
        console.say_whole(
            f"Run: {study.directory} (estimates.csv, {files})\nReport: {study.directory / REPORT}"
        )


def _count_table(study: Study) -> Table:
    """Show what each pass found."""
    names = {"pass": {"no_wrap": True}, "read by": {}}
    table = make_grid(numbers=study.passes[0].counts, **names)
    for labelling in study.passes:
        table.add_row(labelling.name, labelling.source, *map(str, labelling.counts.values()))
    return table


def _confusion_tables(study: Study) -> list[Table]:
    """Show, for every two passes, how often each label of one met each of the other."""
    tables = []
    for at, left in enumerate(study.passes):
        for right in study.passes[at + 1 :]:
            arm = f"{left.name}~{right.name}"
            cells = {
                row.quantity: int(row.estimate or 0)
                for row in study.rows
                if not row.mask and row.arm.endswith(arm) and not row.arm.startswith("direct-sets")
            }
            labels = [label for label in left.counts if f"count.{label}~{label}" in cells]
            names = {f"{left.name} \\ {right.name}": {"no_wrap": True}}
            table = make_grid(numbers=labels, **names)
            for first in labels:
                counts = (str(cells[f"count.{first}~{second}"]) for second in labels)
                table.add_row(first, *counts)
            tables.append(table)
    return tables
