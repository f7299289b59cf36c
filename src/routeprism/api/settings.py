"""The settings of every command, composed of the parts that declare each option once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from operator import attrgetter
from typing import Any, NamedTuple

from routeprism.api import _review_options as reviews
from routeprism.api import _run_options as runs
from routeprism.api import _subject_options as subjects
from routeprism.settings import SUBJECT, compose
from routeprism.specs import Registration, registered

__all__ = ["settings_for"]


class _Experiments:
    """Stands for the options that the registered experiments add to a command."""


class _Command(NamedTuple):
    """The parts of a command's settings."""

    name: str
    parts: tuple[type, ...]
    subject: str = SUBJECT
    defaults: Mapping[str, Any] = {}
    without: tuple[str, ...] = ()


_DATA = (subjects.Labels, subjects.ReadingsOptions, subjects.Masks)
_SOURCE = (subjects.BenchmarkOptions, subjects.Policies, *_DATA)
_MODELS = (runs.Judging, runs.EndpointOptions)
_RUN = (
    runs.StatisticsOptions,
    runs.Money,
    runs.Cassettes,
    runs.ExecutionOptions,
    runs.Shards,
    runs.Output,
)
_STUDY = (
    subjects.Masks,
    runs.EndpointOptions,
    runs.StatisticsOptions,
    runs.Limits,
    runs.Shards,
    runs.Output,
)
_COMMANDS: Mapping[str, _Command] = {
    "audit": _Command(
        "AuditSettings",
        (
            *(*_SOURCE, subjects.ArrivalsOptions, subjects.Schedules, subjects.Checks),
            *(subjects.Construction, runs.Readers, runs.Instructions, _Experiments),
            *(*_MODELS, runs.Stopping, *_RUN, runs.Witnesses),
        ),
    ),
    "restore": _Command(
        "RestoreSettings",
        (
            *(*_SOURCE, subjects.Schedules, subjects.Checks, runs.Readers),
            *(runs.Instruction, _Experiments, *_MODELS, runs.Stopping, *_RUN),
        ),
        defaults={"draws": 3, "control": "aligned"},
        without=("comparators",),
    ),
    "remedy": _Command(
        "RemedySettings",
        (
            *(*_SOURCE, subjects.ArrivalsOptions, subjects.Schedules, subjects.Repairs),
            *(subjects.Checks, runs.Readers, runs.Instruction, *_MODELS, *_RUN),
            runs.Witnesses,
        ),
        without=("comparators",),
    ),
    "orders": _Command(
        "OrderSettings",
        (
            *(*_SOURCE, subjects.ExplorationOptions, runs.StatisticsOptions),
            *(runs.Limits, runs.ExecutionOptions, runs.Shards, runs.Output),
        ),
    ),
    "curve": _Command(
        "CurveSettings",
        (
            *(subjects.BenchmarkOptions, subjects.CurveOptions, subjects.Labels),
            *(subjects.Schedules, runs.EndpointOptions, runs.StatisticsOptions),
            *(runs.Money, runs.Workers, runs.Shards, runs.Output),
        ),
        defaults={"schedules": ("replay", "jitter:w=2")},
    ),
    "screen": _Command(
        "ScreenSettings",
        (subjects.BenchmarkOptions, runs.Passes, runs.Screening, *_STUDY),
        "What to label",
    ),
    "support": _Command(
        "SupportSettings",
        (subjects.BenchmarkOptions, runs.Passes, runs.Compiled, *_STUDY),
        "What to label",
    ),
    "demo": _Command("DemoSettings", (runs.Output,)),
    "check": _Command(
        "CheckSettings",
        (reviews.StoredRunOptions, reviews.Gates, runs.VerdictOptions),
        "What to check",
    ),
    "compare": _Command(
        "CompareSettings", (reviews.TwoRuns, runs.VerdictOptions), "What to compare"
    ),
    "merge": _Command("MergeSettings", (reviews.MergedRuns, runs.Output), "What to merge"),
    "trace": _Command(
        "TraceSettings",
        (reviews.StoredRunOptions, reviews.TracingOptions, runs.Json),
        "What to trace",
    ),
    "plan": _Command(
        "PlanSettings",
        (reviews.StoredRunOptions, reviews.Planning, runs.Json),
        "What to plan for",
    ),
    "report": _Command(
        "ReportSettings",
        (reviews.StoredRunOptions, reviews.Reporting, runs.Printing),
        "What to write",
    ),
    "reproduce": _Command(
        "ReproduceSettings",
        (
            *(reviews.Reproduction, subjects.Labels, subjects.ReadingsOptions),
            *(runs.Limits, runs.Workers, runs.Shards, runs.Printing),
        ),
        "What to reproduce",
    ),
    "check-adapter": _Command(
        "AdapterSettings",
        (reviews.Adapter, runs.Limits, runs.VerdictOptions),
        "What to check",
    ),
    "fetch": _Command("FetchSettings", (reviews.Download, runs.Printing), "What to download"),
    "list": _Command("ListSettings", (reviews.Listing, runs.Json), "What to list"),
}


def settings_for(command: str) -> type[Any]:
    """Return the settings of a command, composed of its parts."""
    has_experiments = _Experiments in _COMMANDS[command].parts
    return _compose(command, _list_experiments(command) if has_experiments else ())


@lru_cache(maxsize=64)
def _compose(command: str, experiments: tuple[type, ...]) -> type[Any]:
    name, declared, subject, defaults, without = _COMMANDS[command]
    parts: list[type] = []
    for part in declared:
        parts += experiments if part is _Experiments else [part]
    return compose(name, *parts, defaults=defaults, without=without, subject=subject)


def _list_experiments(command: str) -> tuple[type, ...]:
    """List the settings of experiments, without importing those whose package declares them."""
    declared = registered("options")
    providers = {_name_package(point) for point in declared.values()}
    if all(_name_package(point) in providers for point in registered("experiments").values()):
        options = sorted((point.load() for point in declared.values()), key=attrgetter("rank"))
        return tuple(item.settings for item in options if command in item.commands)
    from routeprism.experiments import registered_experiments

    settings = (experiment.settings for experiment in registered_experiments(command))
    return tuple(part for part in settings if part is not None)


def _name_package(point: Registration) -> str | None:
    """Name the installed package that registers an object; None for one of the caller's own."""
    package = getattr(point, "dist", None)
    return None if package is None else package.name
