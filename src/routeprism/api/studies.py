"""The Python functions of `screen` and `support`: people or models read cards, and are compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from routeprism.answers import AnswerProgress, Cost
from routeprism.api.requests import load_named, name_run, read_masks, takes_settings
from routeprism.errors import InputError, RoutePrismError, RunError, SpecError, nearest
from routeprism.experiments import Shard, check_shards, parse_shard
from routeprism.files import write_output
from routeprism.labels import (
    COMPILED,
    RULES,
    SCREEN,
    SCREEN_GOLD,
    STALE,
    SUPPORT,
    Card,
    Mask,
    RouteName,
    Rubric,
    Rule,
    Study,
    StudyPart,
    admissible,
    cards_for,
    compiled_cards,
    gate,
    plan_study,
    routes_of,
    run_study,
    stored_contexts,
    write_sheet,
)
from routeprism.models import Model, costs_money, make_model, registered_models
from routeprism.records import Benchmark
from routeprism.runs import read_manifest
from routeprism.settings import write_command

__all__ = [
    "StudyRequest",
    "export_cards",
    "perform_study",
    "prepare_study",
    "price_study",
    "screen",
    "select_questions",
    "support",
    "write_questions",
]

_FILES = (".csv", ".tsv", ".txt", ".json")
_PROGRESS = "called with (pass, progress of its readings)."


@dataclass(frozen=True, slots=True)
class StudyRequest:
    """One call of `screen` or `support`."""

    command: str
    settings: Any
    benchmark: Benchmark
    rubric: Rubric
    cards: Sequence[Card]
    passes: Mapping[str, Model | Path]
    shard: Shard | None = None
    """The part of the pools whose cards are read; None for all."""

    @property
    def part(self) -> StudyPart:
        """Return which cards are read here, and where the replies of shards are."""
        if self.shard is None:
            return StudyPart(merged=tuple(map(Path, self.settings.shards)))
        cases = self.benchmark.cases
        pools = self.shard.choose(len(cases))
        questions = {question.id for at in pools for question in cases[at].questions}
        cards = frozenset(card.id for card in self.cards if card.question in questions)
        return StudyPart(str(self.shard), cards)

    @property
    def models(self) -> list[Model]:
        """Return the models that read."""
        return [who for who in self.passes.values() if not isinstance(who, Path)]

    @property
    def directory(self) -> Path | None:
        """Return the directory of the run; None if nothing is kept."""
        return None if self.settings.run is None else Path(self.settings.run)

    def may_spend(self) -> bool:
        """Return whether reading may cost money."""
        return any(map(costs_money, self.models))

    def with_run(self) -> StudyRequest:
        """Choose a directory for the request if models read, unless it has one."""
        if self.directory is not None or not self.models:
            return self
        content: list[Any] = [self.benchmark.fingerprint, self.rubric.name, self.rubric.digest]
        content += [[model.name, dict(model.settings)] for model in self.models]
        directory = name_run(self.command, self.settings, content)
        return replace(self, settings=replace(self.settings, run=directory))


@takes_settings("screen", "benchmark", answer_progress=_PROGRESS)
def screen(settings: Any, *, answer_progress: AnswerProgress | None = None) -> Study | None:
    """Find out which pools may be reordered: readings by models or people, and gates.

    With `export`, the cards are written as a sheet, and there is no study. With `write_mask`, the
    questions that `gate` lets through are written to a file; of shards, `merge` writes it.
    """
    request = prepare_study("screen", settings)
    if settings.export is not None:
        export_cards(request, Path(settings.export))
        return None
    study = perform_study(request, answer_progress)
    mask = select_questions(settings.gate, study)
    if mask is not None and settings.write_mask is not None and request.shard is None:
        write_questions(mask.question_ids, Path(settings.write_mask))
    return study


@takes_settings("support", "benchmark", answer_progress=_PROGRESS)
def support(settings: Any, *, answer_progress: AnswerProgress | None = None) -> Study | None:
    """Find out which records carry the answer: labels by models or people, and their agreement.

    With `export`, the cards are written as a sheet, and there is no study.
    """
    request = prepare_study("support", settings)
    if settings.export is not None:
        export_cards(request, Path(settings.export))
        return None
    return perform_study(request, answer_progress)


def prepare_study(command: str, settings: Any) -> StudyRequest:
    """Load the benchmark, make its cards, and parse its readers; no model is asked."""
    compiled = getattr(settings, "compiled", None)
    rubric = _choose_rubric(command, settings)
    benchmark = load_named(settings)
    cards: Sequence[Card]
    if compiled is None:
        cards = cards_for(benchmark, rubric)
    else:
        questions = [question.id for case in benchmark.cases for question in case.questions]
        routes = _select_routes(Path(compiled), settings.policies)
        contexts = stored_contexts(Path(compiled), routes, questions)
        cards = compiled_cards(benchmark, contexts, rubric)
    passes = {} if settings.export is not None else _parse_passes(settings)
    if command == "screen" and settings.export is None:
        _check_gate(settings.gate, list(passes))
    shard = None if settings.shard is None else parse_shard(settings.shard)
    if shard is not None:
        if settings.export is not None:
            raise SpecError("shard applies to passes, and export writes all cards: set only one")
        shard.choose(len(benchmark.cases))
    return StudyRequest(command, settings, benchmark, rubric, cards, passes, shard)


def _choose_rubric(command: str, settings: Any) -> Rubric:
    """Choose the rule that the cards are read by, and refuse settings that contradict it."""
    if command != "support":
        if settings.write_mask is not None and not settings.gate:
            raise SpecError("write_mask needs a gate that selects the questions: set gate as well")
        return SCREEN_GOLD if settings.gold_visible else SCREEN
    if settings.compiled is None:
        if settings.policies:
            raise SpecError("policies selects contexts of a run: set compiled as well")
        return STALE if settings.stale else SUPPORT
    if settings.stale:
        raise SpecError("stale labels records, and compiled labels contexts: set only one")
    return COMPILED


def price_study(request: StudyRequest) -> Mapping[str, Cost]:
    """Count what the passes by models would take."""
    return plan_study(
        request.cards, request.rubric, request.passes, run=request.directory, part=request.part
    )


def perform_study(request: StudyRequest, progress: AnswerProgress | None = None) -> Study:
    """Make every pass, and compare them."""
    settings = request.settings
    masks = read_masks(settings.masks, request.benchmark)
    if request.shard is not None and request.directory is None:
        raise SpecError("a shard stores its results: set run as well")
    if settings.shards:
        _check_shards(request)
    study = run_study(
        request.benchmark,
        request.cards,
        request.rubric,
        request.passes,
        directory=request.directory,
        progress=progress,
        seed=settings.seed,
        resamples=settings.resamples,
        interval=settings.interval,
        primary=settings.primary,
        masks=[Mask(name, frozenset(ids), "a set of questions") for name, ids in masks.items()],
        rate_limit=settings.rate_limit,
        concurrency=settings.concurrency,
        max_calls=settings.max_calls,
        max_cost=settings.max_cost,
        command_line=write_command(request.command, settings),
        part=request.part,
    )
    if request.shard is not None and request.directory is not None:
        request.shard.write_to(request.directory).finish()
    return study


def _check_shards(request: StudyRequest) -> None:
    """Refuse shards that do not belong together, or whose data changed since they were made."""
    for run in check_shards([Path(run) for run in request.settings.shards])[0]:
        fingerprint = read_manifest(run)["configuration"].get("fingerprint")
        if fingerprint != request.benchmark.fingerprint:
            raise RunError(
                f"{run} cannot be merged: the data changed since it was made. Restore what it was "
                f"made of, or run the commands of all shards again"
            )


def _parse_passes(settings: Any) -> dict[str, Model | Path]:
    """Read `NAME=WHO`, where WHO is a completed sheet, a stored pass (.json), or a model."""
    if isinstance(settings.passes, Mapping):
        return dict(settings.passes)
    passes: dict[str, Model | Path] = {}
    for text in settings.passes:
        name, equals, who = (part.strip() for part in text.partition("="))
        if not equals or not name or not who:
            raise SpecError(f"Expected NAME=FILE or NAME=MODEL but got the pass {text!r}")
        if name in passes:
            raise SpecError(f"two passes are called '{name}'")
        path = Path(who)
        by_model = who.partition(":")[0] in registered_models()
        is_file = path.suffix.lower() in _FILES and not by_model
        passes[name] = path if is_file else make_model(who, base_url=settings.base_url)
    return passes


def _select_routes(run: Path, policies: Sequence[str]) -> list[RouteName]:
    routes = routes_of(run)
    policy_names = {route.policy for route in routes}
    for policy in policies:
        if policy not in policy_names:
            raise SpecError(f"{run} has no policy '{policy}'. {nearest(policy, policy_names)}")
    return [route for route in routes if not policies or route.policy in policies]


def _check_gate(rule: str | None, names: Sequence[str]) -> None:
    """Refuse before anything is asked what would fail afterwards."""
    if rule is None or rule in names:
        return
    if rule not in RULES:
        raise SpecError(f"There is no gate '{rule}'. {nearest(rule, (*RULES, *names))}")
    if len(names) < 2 or (rule == "intersection" and len(names) != 2):
        expected = "2" if rule == "intersection" else "2 or more"
        raise SpecError(f"Expected {expected} passes for the gate {rule} but got {len(names)}")


def select_questions(rule: str | None, study: Study) -> Mask | None:
    """Return the questions that a gate lets through; None without a gate."""
    if rule is None:
        return None
    for readings in study.passes:
        if readings.name == rule:
            return admissible(readings)
    return gate(cast(Rule, rule), study.passes)


def export_cards(request: StudyRequest, path: Path) -> Path:
    """Write a sheet to be completed, and the rubric beside it; give the rubric's file."""
    beside = path.with_suffix(".rubric.txt")
    for file in (path, beside):
        if file.exists():
            raise InputError(
                "already exists, and people may have completed it, so it is not overwritten",
                file=file,
            )
    _write(path, write_sheet(request.cards, request.rubric))
    _write(beside, (request.rubric.text + "\n").encode())
    return beside


def write_questions(ids: Collection[str], path: Path) -> None:
    """Write question ids, one on each line."""
    _write(path, "".join(f"{line}\n" for line in sorted(ids)).encode())


def _write(path: Path, content: bytes) -> None:
    try:
        write_output(path, content)
    except OSError as error:
        raise RoutePrismError(f"{path} cannot be written: {error.strerror or error}") from error
