"""What `list` prints: the names that commands accept, each with a sentence.

Each list imports only what it names.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any

from rich.table import Table

from routeprism import specs
from routeprism.cli._console import SafeConsole, print_json
from routeprism.errors import SpecError, nearest

Names = Mapping[str, str]
"""Names that commands accept, each with a sentence."""


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


def _first_line(item: object) -> str:
    return (inspect.getdoc(item) or "").partition("\n")[0]


def _policies() -> Names:
    from routeprism.policies import takes_model

    entries = {}
    for name, point in specs.registered("policies").items():
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


def _benchmarks() -> Names:
    entries = {
        name: _describe_loader(point) for name, point in specs.registered("benchmarks").items()
    }
    directory = {"DIRECTORY": "Your own records.jsonl and questions.jsonl."}
    return {**entries, **directory, **_name_own("benchmarks")}


def _describe_loader(point: specs.Registration) -> str:
    """Describe a benchmark by its loader, or by its module if that has one function `load`."""
    loader = point.load()
    if inspect.isfunction(loader) and loader.__name__ == "load":
        return _first_line(sys.modules[loader.__module__])
    return _describe_point(point)


def _interfaces() -> Names:
    from routeprism.policies import INTERFACES

    entries = {_with_parameters(name, item): _first_line(item) for name, item in INTERFACES.items()}
    return {**entries, **_extensions("interfaces")}


def _judges() -> Names:
    from routeprism.answers import EmbeddedJudge, ModelJudge, RecordedJudge

    judges = {"embedded": EmbeddedJudge, "recorded": RecordedJudge, "MODEL": ModelJudge}
    entries = {name: _first_line(judge) for name, judge in judges.items()}
    return {**entries, **_extensions("judges")}


def _coordinates() -> Names:
    from routeprism.quantities import list_quantities

    entries = {}
    for quantity in list_quantities():
        has_plain = quantity.plain != quantity.name
        details = [quantity.plain if has_plain else quantity.meaning or quantity.name]
        if quantity.better:
            details.append(f"{quantity.better} is better")
        if quantity.range is not None:
            details.append("from {:g} to {:g}".format(*quantity.range))
        entries[quantity.name] = "; ".join(details)
    return entries


def _describe_point(point: specs.Registration) -> str:
    """Return the first line of a docstring; an object that has none is named by its place."""
    item = point.load()
    if inspect.isclass(item) or inspect.isroutine(item):
        return _first_line(item)
    place = getattr(point, "value", "") if isinstance(getattr(point, "value", ""), str) else ""
    return f"Defined as {place or point.name}."


def _extensions(group: str) -> Names:
    """Return what installed packages register, and how to name an object of your own."""
    entries = {}
    for name, point in specs.registered(group).items():
        item = point.load()
        entries[_with_parameters(name, item) if callable(item) else name] = _describe_point(point)
    return {**entries, **_name_own(group)}


def _name_own(group: str) -> Names:
    kind = group[:-1]
    return {"package.module:Name": f"{'An' if kind[0] in 'aei' else 'A'} {kind} of your own."}


def _models() -> Names:
    entries = {name: _describe_point(point) for name, point in specs.registered("models").items()}
    return {**entries, **_name_own("models")}


def _schedules() -> Names:
    from routeprism.orders import PROCEDURES, SCHEDULES

    return {**SCHEDULES, **PROCEDURES, **_extensions("schedules")}


def _procedures() -> Names:
    from routeprism.orders import PROCEDURES

    return {**PROCEDURES, **_extensions("procedures")}


def _arrivals() -> Names:
    from routeprism.orders import ARRIVALS

    return ARRIVALS


def _experiments() -> Names:
    from routeprism.experiments import registered_experiments

    return {item.name: item.summary or item.title for item in registered_experiments()}


_LISTS: Mapping[str, Callable[[], Names]] = {
    "policies": _policies,
    "benchmarks": _benchmarks,
    "models": _models,
    "schedules": _schedules,
    "procedures": _procedures,
    "arrivals": _arrivals,
    "interfaces": _interfaces,
    "judges": _judges,
    "coordinates": _coordinates,
    "experiments": _experiments,
}
