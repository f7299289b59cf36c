"""The settings of every command, composed of the parts that declare each option once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from routeprism.api._answer_options import (
    Compiled,
    EndpointOptions,
    Instruction,
    Instructions,
    Judging,
    Passes,
    Readers,
    Screening,
)
from routeprism.api._execution_options import (
    Cassettes,
    ExecutionOptions,
    Json,
    Limits,
    Money,
    Output,
    Printing,
    Shards,
    StatisticsOptions,
    Stopping,
    VerdictOptions,
    Workers,
)
from routeprism.api._review_options import (
    Adapter,
    Download,
    Gates,
    Listing,
    MergedRuns,
    Planning,
    Reporting,
    Reproduction,
    StoredRunOptions,
    TracingOptions,
    TwoRuns,
)
from routeprism.api._subject_options import (
    ArrivalsOptions,
    BenchmarkOptions,
    Checks,
    Comparators,
    Construction,
    CurveOptions,
    ExplorationOptions,
    Labels,
    Masks,
    Policies,
    ReadingsOptions,
    Repairs,
    Schedules,
)
from routeprism.settings import (
    compose,
)

__all__ = [
    "settings_for",
]


_SOURCE = (BenchmarkOptions, Policies, Comparators, Labels, ReadingsOptions, Masks)


_RUN = (StatisticsOptions, Money, Cassettes, ExecutionOptions, Shards, Output)


def _experiment_parts(command: str) -> list[type]:
    """Return the options that the registered experiments add to a command."""
    from routeprism.experiments import registered_experiments

    return [
        experiment.settings
        for experiment in registered_experiments(command)
        if experiment.settings is not None
    ]


def _audit() -> type[Any]:
    return compose(
        "AuditSettings",
        *_SOURCE,
        *(ArrivalsOptions, Schedules, Checks, Construction, Readers, Instructions),
        *(*_experiment_parts("audit"), Judging, EndpointOptions, Stopping, *_RUN),
    )


def _restore() -> type[Any]:
    return compose(
        "RestoreSettings",
        *_SOURCE,
        *(Schedules, Checks, Readers, Instruction),
        *(*_experiment_parts("restore"), Judging, EndpointOptions, Stopping, *_RUN),
        defaults={"draws": 3, "control": "aligned"},
        without=["comparators"],
    )


def _remedy() -> type[Any]:
    return compose(
        "RemedySettings",
        *_SOURCE,
        *(
            ArrivalsOptions,
            Schedules,
            Repairs,
            Checks,
            Readers,
            Instruction,
            Judging,
            EndpointOptions,
            *_RUN,
        ),
        without=["comparators"],
    )


def _orders() -> type[Any]:
    parts = (
        *_SOURCE,
        ExplorationOptions,
        StatisticsOptions,
        Limits,
        ExecutionOptions,
        Shards,
        Output,
    )
    return compose("OrderSettings", *parts)


def _curve() -> type[Any]:
    return compose(
        "CurveSettings",
        *(
            BenchmarkOptions,
            CurveOptions,
            Labels,
            Schedules,
            EndpointOptions,
            StatisticsOptions,
            Money,
            Workers,
            Shards,
            Output,
        ),
        defaults={"schedules": ("replay", "jitter:w=2")},
    )


def _study(name: str, part: type) -> type[Any]:
    parts = (
        BenchmarkOptions,
        Passes,
        part,
        Masks,
        EndpointOptions,
        StatisticsOptions,
        Limits,
        Output,
    )
    return compose(name, *parts, subject="What to label")


_COMMANDS: Mapping[str, Callable[[], type[Any]]] = {
    "audit": _audit,
    "restore": _restore,
    "remedy": _remedy,
    "orders": _orders,
    "curve": _curve,
    "screen": partial(_study, "ScreenSettings", Screening),
    "support": partial(_study, "SupportSettings", Compiled),
    "demo": partial(compose, "DemoSettings", Output),
    "check": partial(
        compose, "CheckSettings", StoredRunOptions, Gates, VerdictOptions, subject="What to check"
    ),
    "compare": partial(
        compose, "CompareSettings", TwoRuns, VerdictOptions, subject="What to compare"
    ),
    "merge": partial(compose, "MergeSettings", MergedRuns, Output, subject="What to merge"),
    "trace": partial(
        compose, "TraceSettings", StoredRunOptions, TracingOptions, Json, subject="What to trace"
    ),
    "plan": partial(
        compose, "PlanSettings", StoredRunOptions, Planning, Json, subject="What to plan for"
    ),
    "report": partial(
        compose, "ReportSettings", StoredRunOptions, Reporting, Printing, subject="What to write"
    ),
    "reproduce": partial(
        compose,
        "ReproduceSettings",
        Reproduction,
        Labels,
        ReadingsOptions,
        Limits,
        Workers,
        Printing,
        subject="What to reproduce",
    ),
    "check-adapter": partial(
        compose, "AdapterSettings", Adapter, Limits, VerdictOptions, subject="What to check"
    ),
    "fetch": partial(compose, "FetchSettings", Download, Printing, subject="What to download"),
    "list": partial(compose, "ListSettings", Listing, Json, subject="What to list"),
}


def settings_for(command: str) -> type[Any]:
    """Return the settings of a command, composed of its parts."""
    return _COMMANDS[command]()
