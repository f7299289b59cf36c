"""Procedures: how records are handed to a memory, beside the order in which they arrive."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from routeprism.errors import SpecError
from routeprism.records import Record
from routeprism.specs import (
    EXTENSIONS,
    Extension,
    Spec,
    construct,
    find_extension,
    parse,
    registered,
)

__all__ = [
    "ONE_BY_ONE",
    "PROCEDURES",
    "Procedure",
    "name_reference",
    "names_procedure",
    "parse_procedure",
]


@dataclass(frozen=True, slots=True)
class Procedure:
    """A way to hand records to a memory."""

    name: str
    """Its spec, such as `bulk:size=10`."""
    kind: str
    """One of `one-by-one`, `bulk`, `twice`, `restart`, `reload` and `overlap`, or `own`."""
    number: int = 0
    """Records in a batch, between two restarts, or in flight at once; 0 for all in one batch."""
    fill: Callable[[Any, Sequence[Record]], Any] | None = None
    """For a procedure of your own: adds the records to an object of your memory class.

    It may return another object to use instead, or None.
    """


ONE_BY_ONE = Procedure("one-by-one", "one-by-one")
"""Each record is added alone, after the record before it."""

PROCEDURES: Mapping[str, str] = {
    "one-by-one": "add each record alone; the default",
    "bulk": "hand over all records in one call (`add_many`)",
    "bulk:size=N": "hand over N records in each call",
    "twice": "add all records, then add all of them again",
    "restart": "close and reopen the memory after each record (`reopen`)",
    "restart:every=N": "close and reopen the memory after every N records",
    "reload": "store and load a snapshot halfway and at the end (`snapshot`, `revive`)",
    "overlap:k=N": "keep N adds in flight at once (async methods, or `concurrent = True`)",
}
"""The procedures that a user can name, in a sentence each."""

_PARAMETERS = {"bulk": ("size", 0), "restart": ("every", 1), "overlap": ("k", 2)}
"""Kind → its parameter and the default of it."""
_SEPARATOR = " vs "


def parse_procedure(text: str) -> Procedure | None:
    """Return the procedure that a spec names; None if its name is not the name of a procedure."""
    kind = text.partition(":")[0].strip()
    if kind not in {name.partition(":")[0] for name in PROCEDURES}:
        return _find_own_procedure(text, kind)
    spec = parse(text)
    parameter, default = _PARAMETERS.get(kind, ("", 0))
    if unknown := [key for key in spec.values if key != parameter]:
        expected = f"'{parameter}'" if parameter else "no parameter"
        raise SpecError(f"'{kind}' has {expected} but got '{unknown[0]}' in {text!r}")
    number = (
        _read_number(spec, parameter, 2 if kind == "overlap" else 1) if spec.values else default
    )
    name = f"{kind}:{parameter}={number}" if spec.values or kind == "overlap" else kind
    return Procedure(name, kind, number)


def _list_own_procedures() -> frozenset[str]:
    return _read_names(tuple(sys.path), EXTENSIONS.get())


@lru_cache(maxsize=4)
def _read_names(path: tuple[str, ...], extensions: tuple[Extension, ...]) -> frozenset[str]:
    return frozenset(registered("procedures"))


def _find_own_procedure(text: str, name: str) -> Procedure | None:
    """Return the procedure that an installed package registers, or an object of the user's own."""
    if "+" in text or not (":" in text or name in _list_own_procedures()):
        return None
    spec = parse(text)
    if not (spec.is_object or name in _list_own_procedures()):
        return None
    extension: Any = find_extension("procedures", spec)
    if not spec.is_object and not isinstance(extension, Procedure):
        extension = construct(extension, spec)
    if isinstance(extension, Procedure):
        return replace(extension, name=text.strip(), kind="own")
    if spec.is_object:
        return None  # a schedule, for example
    raise SpecError(
        f"Expected a routeprism.orders.Procedure, or a function that returns one, but "
        f"'{spec.name}' gave {type(extension).__name__}"
    )


def _read_number(spec: Spec, key: str, least: int) -> int:
    value = spec.values[key]
    if not value.isdecimal() or int(value) < least:
        raise SpecError(
            f"Expected a whole number of {least} or more but got {key}={value} in {spec.text!r}"
        )
    return int(value)


def name_reference(schedule: str) -> str:
    """Name the route that a schedule is compared with: Y for `X vs Y`, otherwise `forward`."""
    return schedule.partition(_SEPARATOR)[2] or "forward"


def names_procedure(schedule: str) -> bool:
    """Return whether a schedule, or its reference, names one of the procedures of RoutePrism."""
    kinds = {name.partition(":")[0] for name in PROCEDURES}
    sides = schedule.split(_SEPARATOR)
    return any(part.partition(":")[0] in kinds for side in sides for part in side.split("+"))


def name_pair(schedule: str, reference: str) -> str:
    """Write the name of a schedule that is compared with a reference."""
    return schedule if reference == "forward" else f"{schedule}{_SEPARATOR}{reference}"


def split_procedure(text: str) -> tuple[str, Procedure]:
    """Split `order+procedure` into both; the order is `forward` unless the spec names one."""
    alone = parse_procedure(text)
    if alone is not None:
        return "forward", alone
    order, plus, last = text.rpartition("+")
    procedure = parse_procedure(last) if plus else None
    if procedure is None:
        return text, ONE_BY_ONE
    if parse_procedure(order.rpartition("+")[2]) is not None:
        raise SpecError(f"Expected one procedure but got {text!r}")
    return order, procedure
