"""A study: several passes over one set of cards, compared, and kept as a run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from routeprism.answers import Plan, Progress
from routeprism.errors import SpecError
from routeprism.measures import RESAMPLES, Interval, chosen_interval, limits_said
from routeprism.models import Model
from routeprism.records import Benchmark
from routeprism.runs import EstimateRow, Ledger, Run, question_row
from routeprism.support._cards import Card
from routeprism.support._estimates import reading_rows
from routeprism.support._forms import read_sheet
from routeprism.support._gates import Mask
from routeprism.support._labels import Declaration, declare
from routeprism.support._passes import check_reader, plan_pass, read_cards
from routeprism.support._readings import Readings, check_name
from routeprism.support._replies import ask_of
from routeprism.support._rubrics import Rubric
from routeprism.support._sentences import sentences
from routeprism.support._stored import load_readings, save_readings

__all__ = ["Study", "Who", "plan_study", "run_study"]

Who: TypeAlias = Model | Path
"""Who makes a pass: a model, a filled sheet, or a `.json` file that a study wrote."""


@dataclass(frozen=True, slots=True)
class Study:
    """What several passes over one set of cards say."""

    benchmark: str
    rubric: Rubric
    passes: tuple[Readings, ...]
    """In the order they were named."""
    declaration: Declaration
    """Which of them is primary."""
    rows: tuple[EstimateRow, ...]
    sentences: tuple[str, ...]
    directory: Path | None
    """The run, where one was kept; it has each pass as `readings-NAME.json`."""
    limits: str = ""
    """How the 95% limits of the rows were read, in words."""

    @property
    def primary(self) -> Readings:
        """The pass that estimates are reported on."""
        return self.declaration.choose(self.passes)


def plan_study(
    cards: Sequence[Card], rubric: Rubric, passes: Mapping[str, Who], *, run: Path | None = None
) -> Mapping[str, Plan]:
    """Say what the passes by models would take, by pass; ask nothing."""
    with ExitStack() as stack:
        store = None if run is None else run / "run.sqlite"
        ledger = stack.enter_context(Ledger(store)) if store and store.exists() else None
        return {
            name: plan_pass(cards, rubric, who, name=name, ledger=ledger)
            for name, who in passes.items()
            if not isinstance(who, Path)
        }


def run_study(
    benchmark: Benchmark,
    cards: Sequence[Card],
    rubric: Rubric,
    passes: Mapping[str, Who],
    *,
    seed: int,
    primary: str | None = None,
    masks: Sequence[Mask] = (),
    resamples: int = RESAMPLES,
    interval: Interval | None = None,
    directory: Path | None = None,
    progress: Callable[[str, Progress], None] | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
) -> Study:
    """Make every pass, compare them, and keep them in a run where a directory is given.

    The primary pass is the first unless another is named; it is written down before any card is
    read. A run may get more passes later, but no other primary one.
    """
    if not passes:
        raise SpecError("Expected at least one pass but got none")
    if not cards:
        raise SpecError(f"benchmark '{benchmark.name}' has no questions to make cards of")
    for name, who in passes.items():
        check_name(name)
        if not isinstance(who, Path):
            check_reader(who)
    used = chosen_interval(interval, benchmark.interval)
    said_limits = limits_said(used, benchmark.interval)
    declaration = declare(primary or next(iter(passes)), dict.fromkeys(passes, rubric))
    with ExitStack() as stack:
        run = None
        if directory is not None:
            settings = _configuration(benchmark, cards, rubric, passes, declaration)
            settings |= {"seed": seed, "resamples": resamples, "interval": used}
            run = stack.enter_context(
                Run.open(
                    directory,
                    settings,
                    inputs=benchmark.inputs,
                    growing=("passes", "declaration"),
                )
            )
        made = []
        for name, who in passes.items():
            if isinstance(who, Path):
                made.append(_from_file(who, cards, rubric, name))
                continue
            told = None if progress is None else _named(progress, name)
            made.append(
                read_cards(
                    cards,
                    rubric,
                    who,
                    name=name,
                    run=run,
                    progress=told,
                    rate_limit=rate_limit,
                    concurrency=concurrency,
                )
            )
        rows = reading_rows(
            benchmark, made, seed=seed, resamples=resamples, interval=used, masks=masks
        )
        said = sentences(made, rows)
        if run is not None:
            with run.writing() as writer:
                asked = (question for case in benchmark.cases for question in case.questions)
                writer.insert("questions", map(question_row, asked))
            run.keep_masks({mask.name: mask.question_ids for mask in masks})
            counts = {"cards": len(cards), "passes": len(made), "estimates": len(rows)}
            run.finish(rows, counts, sentences=said, limits=said_limits)
            for one in made:
                save_readings(one, run.directory / f"readings-{one.name}.json")
    return Study(
        benchmark.name,
        rubric,
        tuple(made),
        declaration,
        tuple(rows),
        said,
        directory,
        said_limits,
    )


def _named(progress: Callable[[str, Progress], None], name: str) -> Callable[[Progress], None]:
    return lambda now: progress(name, now)


def _from_file(path: Path, cards: Sequence[Card], rubric: Rubric, name: str) -> Readings:
    if path.suffix.lower() != ".json":
        return read_sheet(path, cards, rubric, name=name)
    found = load_readings(path).check(cards, rubric)
    if found.name != name:
        raise SpecError(f"{path} holds the pass '{found.name}', not '{name}'")
    return found


def _configuration(
    benchmark: Benchmark,
    cards: Sequence[Card],
    rubric: Rubric,
    passes: Mapping[str, Who],
    declaration: Declaration,
) -> dict[str, Any]:
    shown = hashlib.sha256()
    for card in cards:
        shown.update(ask_of(card, rubric).text.encode())
    sources = {
        name: f"file:{who.name}" if isinstance(who, Path) else who.name
        for name, who in passes.items()
    }
    return {
        "command": "screen" if rubric.kind == "screen" else "support",
        "benchmark": benchmark.name,
        "fingerprint": benchmark.fingerprint,
        "synthetic": benchmark.synthetic,
        "rubric": rubric.name,
        "rubric_sha256": rubric.digest,
        "cards_sha256": shown.hexdigest(),
        "primary": {declaration.primary: sources[declaration.primary]},
        "passes": sources,
        "declaration": declaration.to_json(),
    }
