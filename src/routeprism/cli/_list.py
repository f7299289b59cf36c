"""What `list` prints: the names that commands take, with a sentence each."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.table import Table

from routeprism import specs
from routeprism.answers import EmbeddedJudge, ModelJudge, RecordedJudge
from routeprism.cli._console import SafeConsole, print_json
from routeprism.errors import SpecError, nearest
from routeprism.experiments import registered_experiments
from routeprism.measures import (
    ANSWER_COORDINATES,
    BUILD_COORDINATES,
    COORDINATES,
    RETENTION,
    Coordinate,
    registered_coordinates,
)
from routeprism.models import registered_models
from routeprism.orders import ARRIVALS, PROCEDURES, SCHEDULES
from routeprism.policies import INTERFACES, registered_policies, takes_model
from routeprism.records import registered_benchmarks

__all__ = ["show_list"]


def _first_line(item: object) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0]


def _policies() -> Mapping[str, str]:
    entries = {}
    for name, point in registered_policies().items():
        factory = point.load()
        parameters = _with_parameters(name, factory)
        if takes_model(factory):
            parameters += f"{',' if ':' in parameters else ':'}model=…"
        entries[parameters] = _first_line(factory)
    entries["source-order(SPEC)"] = "The comparator of any policy: arrivals in source order."
    entries["package.module:Name"] = "A policy or memory class of your own."
    return entries


def _with_parameters(name: str, factory: Callable[..., object]) -> str:
    """Write a spec with the parameters that are part of its name: not prices and time limits."""
    fields = getattr(factory, "__dataclass_fields__", {})
    parameters = [
        key
        for key in specs.parameters(factory)
        if key not in fields or fields[key].metadata.get("named", True)
    ]
    return f"{name}:{','.join(f'{key}=…' for key in parameters)}" if parameters else name


def _benchmarks() -> Mapping[str, str]:
    entries = {
        name: _first_line(sys.modules[point.load().__module__])
        for name, point in registered_benchmarks().items()
    }
    entries["DIRECTORY"] = "Your own records.jsonl and questions.jsonl."
    return entries


def _interfaces() -> Mapping[str, str]:
    return {
        _with_parameters(name, factory): _first_line(factory)
        for name, factory in INTERFACES.items()
    }


def _judges() -> Mapping[str, str]:
    return {
        "embedded": _first_line(EmbeddedJudge),
        "recorded": _first_line(RecordedJudge),
        "MODEL": _first_line(ModelJudge),
        **_extensions("judges", "judge"),
    }


def _extensions(group: str, noun: str) -> Mapping[str, str]:
    """Return what installed packages register, and how to name an object of one's own."""
    entries = {name: _first_line(point.load()) for name, point in specs.registered(group).items()}
    return {**entries, "package.module:Name": f"A {noun} of your own."}


def _coordinates() -> Mapping[str, str]:
    every: Sequence[Coordinate[Any]] = (
        *COORDINATES,
        *registered_coordinates(),
        *RETENTION,
        *BUILD_COORDINATES,
        *ANSWER_COORDINATES,
    )
    return {
        coordinate.name: f"{coordinate.meaning} ({coordinate.reference})" for coordinate in every
    }


def _models() -> Mapping[str, str]:
    return {name: _first_line(point.load()) for name, point in registered_models().items()}


def _experiments() -> Mapping[str, str]:
    return {
        experiment.name: experiment.summary or experiment.title
        for experiment in registered_experiments()
    }


_LISTS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "policies": _policies,
    "benchmarks": _benchmarks,
    "models": _models,
    "schedules": lambda: {**SCHEDULES, **PROCEDURES, **_extensions("schedules", "schedule")},
    "procedures": lambda: {**PROCEDURES, **_extensions("procedures", "procedure")},
    "arrivals": lambda: ARRIVALS,
    "interfaces": lambda: {**_interfaces(), **_extensions("interfaces", "interface")},
    "judges": _judges,
    "coordinates": _coordinates,
    "experiments": _experiments,
}


def show_list(settings: Any) -> None:
    """Run `list`."""
    subject = settings.what
    if subject not in _LISTS:
        raise SpecError(f"There is no list of '{subject}'. {nearest(subject, _LISTS)}")
    entries = _LISTS[subject]()
    if settings.json:
        print_json(dict(entries))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column()
    for name, meaning in entries.items():
        table.add_row(name, meaning)
    SafeConsole().print(table, markup=False)
