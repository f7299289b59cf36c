"""Which answers are wanted, and in which order they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from routeprism.models import Ask, Model
from routeprism.runs import Key, Ledger, Request, sha256
from routeprism.text import tokens

__all__ = ["Cell", "Plan", "dispatch_order", "key_of", "plan"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One answer that a comparison needs."""

    ask: Ask
    question: str
    """The question's id."""
    route: str
    """The route's or condition's name: what the comparison compares."""
    group: str = ""
    """What is compared with each other, such as a question under one filler; else the question."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What it would take to collect."""

    cells: int
    kept: int
    """How many distinct answers the ledger has already."""
    calls: int
    """How many distinct answers are missing."""
    input_tokens: int
    """Of the missing ones, under `o200k_base`."""
    cost: float | None
    """At least this much: the input's price, where prices are known."""
    most: float | None
    """At most this much, without retries, where the longest answer is known too."""
    note: str = ""
    """What the numbers leave open."""

    def __str__(self) -> str:
        said = f"{self.calls:,} calls, {self.input_tokens:,} input tokens"
        if self.kept:
            said += f" ({self.kept:,} answers are there already)"
        if self.cost is not None:
            said += f"; {self.cost:.2f} for the input"
            said += f", at most {self.most:.2f} in all" if self.most is not None else ""
        return f"{said} ({self.note})" if self.note else said


def key_of(model: Model, ask: Ask, batch: str = "") -> Key:
    """Give the ledger's key of one request."""
    named = _realisation(model, ask, batch)
    return Key.of(model.name, model.settings, ask.text, batch=named, draw=ask.draw)


def _realisation(model: Model, ask: Ask, batch: str) -> str:
    """Name the batch; answers that are looked up by place are not shared between places."""
    if not getattr(model, "by_place", False):
        return batch
    return "@".join((batch, *(value for _, value in ask.place)))


def keys_of(model: Model, cells: Sequence[Cell], batch: str) -> list[Key]:
    """Give the keys of many cells; each text, and the settings, are hashed once."""
    if not cells:
        return []
    first = key_of(model, cells[0].ask, batch)
    hashed = {text: sha256(text) for text in {cell.ask.text for cell in cells}}
    return [
        Key(
            first.model,
            first.settings,
            hashed[cell.ask.text],
            _realisation(model, cell.ask, batch),
            cell.ask.draw,
        )
        for cell in cells
    ]


def dispatch_order(cells: Sequence[Cell]) -> list[Cell]:
    """Order cells so that no route is always asked first.

    Group by group; a group's n-th cells of each route make a round, and which route begins a round
    moves on by one from round to round and from group to group.
    """
    grouped: dict[str, dict[str, list[Cell]]] = {}
    for cell in cells:
        grouped.setdefault(cell.group or cell.question, {}).setdefault(cell.route, []).append(cell)
    ordered: list[Cell] = []
    for number, routes in enumerate(grouped.values()):
        columns = list(routes.values())
        for round_ in range(max(map(len, columns))):
            first = (number + round_) % len(columns)
            turn = columns[first:] + columns[:first]
            ordered.extend(column[round_] for column in turn if round_ < len(column))
    return ordered


def requests(model: Model, cells: Iterable[Cell], batch: str) -> dict[Key, tuple[Request, Cell]]:
    """Give the distinct requests in dispatch order; equal keys are one request."""
    ordered = dispatch_order(list(cells))
    wanted: dict[Key, tuple[Request, Cell]] = {}
    for key, cell in zip(keys_of(model, ordered, batch), ordered, strict=True):
        if key not in wanted:
            wanted[key] = Request(key, cell.ask.text, cell.question, cell.route), cell
    return wanted


def plan(
    cells: Sequence[Cell],
    ledger: Ledger | None,
    model: Model,
    *,
    batch: str = "",
    planned: set[Key] | None = None,
) -> Plan:
    """Say what collecting would take; without a ledger everything is missing.

    What is `planned` already counts no more; what counts now is added to it.
    """
    wanted = requests(model, cells, batch)
    if planned is not None:
        wanted = {key: request for key, request in wanted.items() if key not in planned}
        planned.update(wanted)
    missing = list(wanted) if ledger is None else ledger.missing(wanted)
    counted: dict[str, int] = {}
    total = 0
    for key in missing:
        if key.prompt not in counted:
            counted[key.prompt] = tokens.count(wanted[key][0].text)
        total += counted[key.prompt]
    cost, most = money(model, len(missing), total)
    return Plan(len(cells), len(wanted) - len(missing), len(missing), total, cost, most)


def money(model: Model, calls: int, input_tokens: int) -> tuple[float | None, float | None]:
    """Give what so many calls cost at least and at most, where prices are known."""
    price_in: float | None = getattr(model, "price_in", None)
    price_out: float | None = getattr(model, "price_out", None)
    longest: int | None = getattr(model, "max_tokens", None)
    if price_in is None:
        return None, None
    cost = input_tokens * price_in / 1e6
    if price_out is None or longest is None:
        return cost, None
    return cost, cost + calls * longest * price_out / 1e6
