"""Phrases that statements of every experiment share, made from rows by stated rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from string import Formatter
from typing import TypeVar

from routeprism.exhibits import (
    Number,
    Part,
    Severity,
    Statement,
    compose,
    format_share,
    join_parts,
)
from routeprism.judge import MARGIN, is_small
from routeprism.orders import describe_arrival
from routeprism.printing import pluralise
from routeprism.runs import EstimateRow, format_interval

Entry = TypeVar("Entry")
Phrase = tuple[Part, ...]
Value = EstimateRow | Part | Iterable[Part]
"""What fills a place in a template: a row, a text or number, or several of these."""


def show_estimate(row: EstimateRow) -> Part:
    """Show an estimate with its interval, or say why it has none."""
    if row.estimate is None:
        return "not applicable"
    text = format_interval(row.estimate, row.lower, row.upper)
    if row.lower is None or row.upper is None:
        few = f"one {row.unit}" if (row.units or 0) < 2 else f"too few {row.unit}s"
        text = f"{text} ({few}, no interval)"
    return Number(text, row)


def show_value(row: EstimateRow) -> Part:
    """Show an estimate without its interval."""
    return "not applicable" if row.estimate is None else Number(f"{row.estimate:.3f}", row)


def show_count(row: EstimateRow) -> Number:
    """Show a count."""
    return Number(f"{row.estimate or 0:.0f}", row)


def describe_size(row: EstimateRow) -> str:
    """Describe how many pairs and units an estimate is based on."""
    return f"{pluralise(row.queries, 'pair')}, {pluralise(row.units, row.unit)}"


_FORMS: Mapping[str, Callable[[EstimateRow], Part]] = {
    "": show_estimate,
    "value": show_value,
    "count": show_count,
    "share": format_share,
    "size": describe_size,
    "labels": lambda row: row.labels,
}


def compose_rows(template: str, **values: Value) -> Phrase:
    """Fill the `{names}` of a template; a row is shown as its estimate with the interval.

    `{name:value}` shows the estimate of a row without its interval, `{name:count}` a count,
    `{name:share}` a count with what it is out of, `{name:size}` the number of its pairs and units,
    `{name:labels}` its label source.
    """
    parts: list[Part] = []
    for text, name, form, _ in Formatter().parse(template):
        parts.append(text)
        if name is not None:
            value = values[name]
            part = _FORMS[form or ""](value) if isinstance(value, EstimateRow) else value
            parts.extend((part,) if isinstance(part, str | Number) else part)
    return compose("{parts}", parts=parts)


def join_phrases(phrases: Iterable[Phrase], separator: str = "; ") -> Phrase:
    """Join phrases with a separator."""
    return tuple(join_parts(separator, phrases))


def state_row(
    kind: str,
    row: EstimateRow,
    template: str | Phrase,
    *,
    severity: Severity = "info",
    next_step: str = "",
    scope: str | None = None,
    **values: Value,
) -> Statement:
    """Make a statement about the policy and the schedule of a row, with the flags of the row.

    The template is that of `compose_rows`, where `{row}` is the row, or already a phrase. The scope
    is the schedule in plain words unless another one is given.
    """
    if isinstance(template, str):
        template = compose_rows(template, row=row, **values)
    scope = describe_arrival(row.schedule) if scope is None else scope
    place = (kind, row.policy, row.schedule)
    return Statement(template, *place, severity, next_step, scope, show_flags(row))


BUILD_AGAIN = "audit again with --builds 3 (builds=3 in Python)"
"""What separates order from the chance of a memory that was built once."""


def describe_residual(
    row: EstimateRow, *, established: bool | None = None, moved: bool = False
) -> str:
    """Describe what D_res shows.

    It is `shown` if its claim holds among all claims of the run; by default, its own interval
    decides. `moved` if accuracy is shown to change with order.
    """
    established = (row.lower or 0.0) > 0 if established is None else established
    if row.lower is None:
        return f"one {row.unit} alone gives no interval"
    if established:
        return "the routes disagree more than the model disagrees with itself"
    if moved:
        return (
            "order changes the answers, although disagreement beyond the model's own is not shown "
            "by itself"
        )
    if is_small(row):
        return f"disagreement beyond the model's own is shown to be small (within {MARGIN:g})"
    return "no disagreement beyond the model's own is shown"


def mark_incomplete(statement: Statement) -> Statement:
    """Say before a statement about the effect of order that answers or routes are missing."""
    return replace(statement, parts=("Incomplete: ", *statement.parts))


def show_flags(row: EstimateRow) -> tuple[str, ...]:
    """Return the flags that a statement shows: synthetic data, an embedded or a scripted model."""
    visible = ("synthetic", "embedded", "scripted")
    return tuple(flag for flag in row.flags.split(";") if flag in visible)


def keep_widest(
    grouped: Mapping[tuple[str, ...], Entry],
) -> Iterator[tuple[tuple[str, ...], Entry]]:
    """Keep, of several fillers (the last name of a place), the average over all of them."""
    longest: dict[tuple[str, ...], str] = {}
    for *place, filler in grouped:
        longest[tuple(place)] = max(longest.get(tuple(place), ""), filler, key=len)
    for whole, entry in grouped.items():
        if longest[whole[:-1]] == whole[-1]:
            yield whole, entry
