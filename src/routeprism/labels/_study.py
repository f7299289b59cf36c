"""A study: several passes over one set of cards, compared, and stored as a run."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from routeprism.answers import AnswerProgress, Cost
from routeprism.errors import SpecError
from routeprism.exhibits import Statement
from routeprism.labels._agreement import reading_rows
from routeprism.labels._cards import Card, Rubric
from routeprism.labels._exhibits import pass_statements
from routeprism.labels._masks import Mask
from routeprism.labels._passes import check_reader, make_ask, plan_pass, read_cards
from routeprism.labels._readings import Readings, check_name, load_readings, save_readings
from routeprism.labels._sheets import read_sheet
from routeprism.measures import RESAMPLES, Interval, check_bootstrap, chosen_interval, limits_said
from routeprism.models import Model, make_allowance
from routeprism.records import Benchmark
from routeprism.runs import (
    EstimateRow,
    Ledger,
    Run,
    explain_shard,
    question_row,
    settle_store,
    unite_ledgers,
)
from routeprism.specs import check_sizes

Reader: TypeAlias = Model | Path
"""The reader of a pass: a model, a filled sheet, or a `.json` file that a study wrote."""


@dataclass(frozen=True, slots=True)
class Study:
    """The results of several passes over one set of cards."""

    benchmark: str
    rubric: Rubric
    passes: tuple[Readings, ...]
    """In the order in which they were passed."""
    primary: Readings
    """The one that estimates are based on, declared before any card was read."""
    rows: tuple[EstimateRow, ...]
    statements: tuple[Statement, ...]
    directory: Path | None
    """The run, if it was stored; it contains each pass as `readings-NAME.json`."""
    limits: str = ""
    """How the 95% limits of the rows were computed, in words."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """The statements as texts."""
        return tuple(map(str, self.statements))


@dataclass(frozen=True, slots=True)
class StudyPart:
    """Where a study is one of several shards, or is put together from them."""

    shard: str = ""
    """Which shard it is; empty for none."""
    cards: frozenset[str] = frozenset()
    """The ids of the cards that the shard reads."""
    merged: tuple[Path, ...] = ()
    """The runs of all shards, whose replies are read instead of asking."""

    def describe(self, command_line: Sequence[str]) -> dict[str, object]:
        """Return the shard and the command for the manifest, if there are any."""
        entries = {"shard": self.shard, "command_line": list(command_line)}
        return {name: value for name, value in entries.items() if value}

    def choose(self, cards: Sequence[Card]) -> Sequence[Card]:
        """Choose the cards that are read here."""
        return [card for card in cards if card.id in self.cards] if self.shard else cards

    def restrict(self, readings: Readings) -> Readings:
        """Return the part of a pass that is about these cards."""
        if not self.shard:
            return readings
        own = {id: reading for id, reading in readings.cards.items() if id in self.cards}
        return replace(readings, cards=own)


def plan_study(
    cards: Sequence[Card],
    rubric: Rubric,
    passes: Mapping[str, Reader],
    *,
    run: Path | None = None,
    part: StudyPart | None = None,
) -> Mapping[str, Cost]:
    """Count the requests of each pass by a model and estimate their cost."""
    part = part or StudyPart()
    cards = part.choose(cards)
    with ExitStack() as stack:
        store = None if run is None else run / "run.sqlite"
        ledger = None
        if part.merged:  # a copy, so that counting changes nothing
            store = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run.sqlite"
            unite_ledgers(store, [*([run] if run is not None else []), *part.merged])
        if store is not None and store.exists():
            stack.callback(settle_store, store)
            ledger = stack.enter_context(Ledger(store))
        return {
            name: plan_pass(cards, rubric, model, name=name, ledger=ledger)
            for name, model in _select_models(passes).items()
        }


def run_study(
    benchmark: Benchmark,
    cards: Sequence[Card],
    rubric: Rubric,
    passes: Mapping[str, Reader],
    *,
    seed: int,
    primary: str | None = None,
    masks: Sequence[Mask] = (),
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    directory: Path | None = None,
    progress: AnswerProgress | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    max_calls: int | None = None,
    max_cost: float | None = None,
    command_line: Sequence[str] = (),
    part: StudyPart | None = None,
) -> Study:
    """Make every pass, compare them, and store them in a run if a directory is given.

    The primary pass is the first unless you name a different one; it is declared before any card is
    read. You can add passes to a run later, but not change its primary pass. `max_calls` and
    `max_cost` limit the spending of this call: `LimitError` ends it, and the replies are stored.
    The manifest records `command_line`, the words of the command that resumes the run. A `part` is
    one of several shards, or reads what all shards have.
    """
    part = part or StudyPart()
    primary = _choose_primary(benchmark, cards, passes, primary)
    check_sizes(concurrency=concurrency)
    check_bootstrap(seed, resamples)
    allowance = make_allowance(_select_models(passes).values(), max_calls, max_cost)
    used = chosen_interval(interval, benchmark.interval)
    limits = limits_said(used, benchmark.interval)
    with ExitStack() as stack:
        run, place = None, directory
        if directory is None and part.merged:  # the replies of the shards need a ledger
            place = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "run"
        if place is not None:
            settings = _configure(benchmark, cards, rubric, passes, primary)
            settings |= {"seed": seed, "resamples": resamples, "interval": used}
            settings |= part.describe(command_line)
            growing = ("passes", "declaration", "command_line")
            run = stack.enter_context(
                Run.open(place, settings, inputs=benchmark.inputs, growing=growing)
            )
            unite_ledgers(run.store, part.merged)
        readings = [
            part.restrict(_read_file(reader, cards, rubric, name))
            if isinstance(reader, Path)
            else read_cards(
                part.choose(cards),
                rubric,
                reader,
                name=name,
                run=run,
                progress=progress and partial(progress, name),
                rate_limit=rate_limit,
                concurrency=concurrency,
                allowance=allowance,
            )
            for name, reader in passes.items()
        ]
        rows = reading_rows(
            benchmark, readings, seed=seed, resamples=resamples, interval=used, masks=masks
        )
        study = Study(
            benchmark.name,
            rubric,
            tuple(readings),
            next(item for item in readings if item.name == primary),
            tuple(rows),
            tuple(pass_statements(readings, rows)),
            directory,
            limits,
        )
        if run is not None:
            _finish(run, study, benchmark, len(part.choose(cards)), masks, part.shard)
    return study


def _choose_primary(
    benchmark: Benchmark, cards: Sequence[Card], passes: Mapping[str, Reader], primary: str | None
) -> str:
    """Check what is to be read, and choose the primary pass."""
    if not passes:
        raise SpecError("Expected at least one pass but got none")
    if not cards:
        raise SpecError(f"benchmark '{benchmark.name}' has no questions to make cards of")
    for name in passes:
        check_name(name)
    for model in _select_models(passes).values():
        check_reader(model)
    if primary is not None and primary not in passes:
        raise SpecError(
            f"Expected a primary pass among {', '.join(passes)} but got primary={primary!r}"
        )
    return primary or next(iter(passes))


def _finish(
    run: Run, study: Study, benchmark: Benchmark, cards: int, masks: Sequence[Mask], shard: str
) -> None:
    """Store the results of a study in its run."""
    with run.writing() as writer:
        questions = (question for case in benchmark.cases for question in case.questions)
        writer.insert("questions", map(question_row, questions))
    run.keep_masks({mask.name: mask.question_ids for mask in masks})
    counts = {"cards": cards, "passes": len(study.passes), "estimates": len(study.rows)}
    run.finish(
        study.rows,
        counts,
        statements=study.statements,
        notes=(explain_shard(shard),) if shard else (),
        limits=study.limits,
    )
    for readings in study.passes:
        save_readings(readings, run.directory / f"readings-{readings.name}.json")


def _select_models(passes: Mapping[str, Reader]) -> dict[str, Model]:
    return {name: reader for name, reader in passes.items() if not isinstance(reader, Path)}


def _read_file(path: Path, cards: Sequence[Card], rubric: Rubric, name: str) -> Readings:
    if path.suffix.lower() != ".json":
        return read_sheet(path, cards, rubric, name=name)
    readings = load_readings(path).check(cards, rubric)
    if readings.name != name:
        raise SpecError(f"{path} contains the pass '{readings.name}', not '{name}'")
    return readings


def _configure(
    benchmark: Benchmark,
    cards: Sequence[Card],
    rubric: Rubric,
    passes: Mapping[str, Reader],
    primary: str,
) -> dict[str, Any]:
    digest = hashlib.sha256()
    for card in cards:
        digest.update(make_ask(card, rubric).text.encode())
    sources = {
        name: f"file:{reader.name}" if isinstance(reader, Path) else reader.name
        for name, reader in passes.items()
    }
    return {
        "command": "screen" if rubric.kind == "screen" else "support",
        "benchmark": benchmark.name,
        "fingerprint": benchmark.fingerprint,
        "synthetic": benchmark.synthetic,
        "rubric": rubric.name,
        "rubric_sha256": rubric.digest,
        "cards_sha256": digest.hexdigest(),
        "primary": {primary: sources[primary]},
        "passes": sources,
        "declaration": {
            "primary": primary,
            "passes": dict.fromkeys(sorted(passes), rubric.digest),
        },
    }
