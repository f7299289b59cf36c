"""Every table and figure of the paper, by label."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from routeprism.errors import SpecError, nearest
from routeprism.reproduction import (
    _tables_conditions,
    _tables_histories,
    _tables_labels,
    _tables_mechanism,
    _tables_memories,
    _tables_restoration,
    _tables_routes,
    _tables_source,
    _tables_streaming,
)
from routeprism.reproduction._cells import Cell, Reference, Table, cell_of, references_of
from routeprism.reproduction._obtained import Obtained
from routeprism.reproduction._published import published

__all__ = ["ALIASES", "TABLES", "cells_of", "chosen", "references"]

ALIASES: Mapping[str, str] = MappingProxyType({"tab:transfer-main": "tab:state-transfer-support"})
"""Second labels of the same table."""

_EVERY = {
    table.label: table
    for module in (
        _tables_source,
        _tables_routes,
        _tables_conditions,
        _tables_mechanism,
        _tables_memories,
        _tables_streaming,
        _tables_restoration,
        _tables_histories,
        _tables_labels,
    )
    for table in module.TABLES
}
_ORDER = dict.fromkeys(one.label for one in published())
TABLES: Mapping[str, Table] = MappingProxyType({label: _EVERY[label] for label in _ORDER})
"""Label → table, in the order of the paper."""


def chosen(labels: tuple[str, ...]) -> tuple[Table, ...]:
    """Give the tables of some labels, with or without `tab:`; all of them for none."""
    found = []
    for label in labels:
        names = [label, f"tab:{label}", f"fig:{label}"]
        known = [name for one in names if (name := ALIASES.get(one, one)) in TABLES]
        if not known:
            raise SpecError(
                f"There is no table '{label}'. {nearest(label, (*TABLES, *ALIASES))} "
                f"routeprism reproduce lists them all."
            )
        found.append(TABLES[known[0]])
    return (
        tuple({table.label: table for table in found}.values())
        if labels
        else tuple(TABLES.values())
    )


def cells_of(table: Table, obtained: Obtained) -> list[Cell]:
    """Say what is known of every number of a table."""
    return [cell_of(table, one, obtained) for one in published() if one.label == table.label]


def references(tables: tuple[Table, ...]) -> dict[str, list[Reference]]:
    """Give what tables need: source → the rows and numbers."""
    found: dict[str, list[Reference]] = {}
    labels = {table.label: table for table in tables}
    for one in published():
        table = labels.get(one.label)
        for reference in () if table is None else references_of(table, one):
            listed = found.setdefault(reference.source, [])
            if reference not in listed:
                listed.append(reference)
    return found
