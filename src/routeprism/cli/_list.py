"""What `list` prints: the names that commands take, with a sentence each."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.measures import (
    ANSWER_COORDINATES,
    BUILD_COORDINATES,
    COORDINATES,
    RETENTION,
    Coordinate,
)
from routeprism.models import registered_models
from routeprism.orders import ARRIVALS, SCHEDULES
from routeprism.policies import INTERFACES, registered_policies, takes_model
from routeprism.records import registered_benchmarks

__all__ = ["show_list"]


def _first_line(item: object) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0]


def _policies() -> Mapping[str, str]:
    found = {}
    for name, point in registered_policies().items():
        factory = point.load()
        known = _with_parameters(name, factory)
        if takes_model(factory):
            known += f"{',' if ':' in known else ':'}model=…"
        found[known] = _first_line(factory)
    found["source-order(SPEC)"] = "The comparator of any policy: arrivals in source order."
    found["package.module:Name"] = "A policy or memory class of your own."
    return found


def _with_parameters(name: str, factory: Callable[..., object]) -> str:
    known = specs.parameters(factory)
    return f"{name}:{','.join(f'{key}=…' for key in known)}" if known else name


def _benchmarks() -> Mapping[str, str]:
    found = {
        name: _first_line(sys.modules[point.load().__module__])
        for name, point in registered_benchmarks().items()
    }
    found["DIRECTORY"] = "Your own records.jsonl and questions.jsonl."
    return found


def _interfaces() -> Mapping[str, str]:
    return {
        _with_parameters(name, factory): _first_line(factory)
        for name, factory in INTERFACES.items()
    }


def _coordinates() -> Mapping[str, str]:
    every: Sequence[Coordinate[Any]] = (
        *COORDINATES,
        *RETENTION,
        *BUILD_COORDINATES,
        *ANSWER_COORDINATES,
    )
    return {one.name: f"{one.meaning} ({one.reference})" for one in every}


def _models() -> Mapping[str, str]:
    return {name: _first_line(point.load()) for name, point in registered_models().items()}


_LISTS: Mapping[str, Callable[[], Mapping[str, str]]] = {
    "policies": _policies,
    "benchmarks": _benchmarks,
    "models": _models,
    "schedules": lambda: SCHEDULES,
    "arrivals": lambda: ARRIVALS,
    "interfaces": _interfaces,
    "coordinates": _coordinates,
}


def show_list(what: str, *, as_json: bool) -> None:
    """Print one of the lists."""
    if what not in _LISTS:
        raise SpecError(f"There is no list of '{what}'. {nearest(what, _LISTS)}")
    found = _LISTS[what]()
    if as_json:
        json.dump(dict(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(overflow="fold")
    table.add_column()
    for name, meaning in found.items():
        table.add_row(name, meaning)
    Console().print(table, markup=False)
