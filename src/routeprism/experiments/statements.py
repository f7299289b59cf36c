"""Phrases that statements of every experiment share, made from rows by stated rules."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from routeprism.printing import pluralise
from routeprism.runs import EstimateRow, Rows, format_interval

P_VALUE, P_ADJUSTED = "p", "p_holm"
"""Prefixes of p-values: of a claim by itself, and adjusted for all claims of the run (Holm)."""
FLOOR = "floor"
"""Flag of estimates of correctness where no answer was right, so that nothing can be concluded."""

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


def join_names(names: Sequence[str]) -> str:
    """Join names as a sentence lists them."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


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
    is the schedule unless another one is given.
    """
    if isinstance(template, str):
        template = compose_rows(template, row=row, **values)
    scope = row.schedule if scope is None else scope
    place = (kind, row.policy, row.schedule)
    return Statement(template, *place, severity, next_step, scope, show_flags(row))


def excludes_zero(row: EstimateRow) -> bool:
    """Whether a row has an interval without zero."""
    return row.lower is not None and row.upper is not None and not row.lower <= 0 <= row.upper


def is_at_floor(row: EstimateRow) -> bool:
    """Whether no answer behind a row is correct."""
    return FLOOR in row.flags.split(";")


def describe_floor(row: EstimateRow) -> str:
    """Explain that no answer is correct, and what may be the reason."""
    reader = f"the model or the judge {row.judge}" if row.judge else "the model"
    return f"no answer is correct, so {reader} is at floor and accuracy allows no conclusion"


def describe_unreadable(find: Callable[[str], EstimateRow | None], route: str) -> str:
    """Explain that the answers in source order, on the route, or on both cannot be read.

    Empty if some answers of both can be read. `find` gives the row of a quantity.
    """
    silent = []
    for side, name in (("forward", "in source order"), ("route", route)):
        row = find(f"count.no_answer.{side}")
        if row is None:
            continue
        draws = (row.queries or 0) * (row.draws or 0) * len(row.filler.split("+"))
        if row.estimate == draws:
            silent.append((name, int(row.estimate)))
    if not silent:
        return ""
    total = sum(number for _, number in silent)
    where = "" if len(silent) == 2 else f" {silent[0][0]}"
    return (
        f"none of the {total} answers{where} could be read (refused or unparsable), so nothing "
        f"can be concluded about order"
    )


BUILD_AGAIN = "audit again with --builds 3 (builds=3 in Python)"
"""What separates order from the chance of a memory that was built once."""
RISK = 0.05
"""The risk of any false claim in a run."""
MARGIN = 0.05
"""A difference whose whole interval is within this margin of zero is shown to be small."""


def is_claim_shown(row: EstimateRow, rows: Mapping[str, EstimateRow]) -> bool:
    """Return whether a claim holds: its interval excludes zero, and its adjusted p is small.

    `rows` has the adjusted p-value by quantity, if the claim was tested. D_res and D_build are
    claims only above zero: they cannot be less than zero but by chance.
    """
    one_sided = row.quantity in ("D_res", "D_build")
    if not excludes_zero(row) or (one_sided and (row.estimate or 0.0) <= 0):
        return False
    adjusted = rows.get(f"{P_ADJUSTED}.{row.quantity}")
    return adjusted is None or (adjusted.estimate or 0.0) < RISK


def is_beyond_chance(rows: Rows) -> bool:
    """Whether builds in different orders are shown to differ more than builds in one order.

    `rows` are those of one policy that no model, mask or arm narrows down.
    """
    return any(
        "D_build" in group and is_claim_shown(group["D_build"], group)
        for group in rows.group("schedule").values()
    )


def describe_doubt(row: EstimateRow) -> str:
    """Explain that a change is not shown among all claims, although its own interval shows it."""
    if not excludes_zero(row):
        return ""
    if row.units is not None and 2 / 2**row.units >= RISK:  # the least p-value of sign flips
        return f"{pluralise(row.units, row.unit)} are too few to show a change"
    return "the change is not shown after the adjustment for all claims of the run"


def is_small(row: EstimateRow) -> bool:
    """Whether a difference is shown to be small: its whole interval is within the margin."""
    bounds = (row.lower, row.upper)
    return all(bound is not None and abs(bound) <= MARGIN for bound in bounds)


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


_KINDS = (
    *("severity", "overlap", "recommendation", "remedies", "causes", "updates", "accuracy"),
    "restoration",
)
"""The statements that matter most, in their order."""
_MOST_CHOSEN = 3


def comes_first(statement: Statement) -> bool:
    """Whether a statement precedes those about order, because it says what they are worth.

    It is about a memory that lacks evidence in any order, or warns of the whole run.
    """
    return statement.kind == "sanity" or (
        not statement.policy and statement.severity in ("warning", "problem")
    )


def choose_statements(
    statements: Sequence[Statement], memories: Sequence[str], *, first: str = "severity"
) -> Iterator[Statement]:
    """Choose at most three statements for each memory: its severity, then the kind named first.

    What the memory keeps and shows in source order always precedes them.
    """
    kinds = list(dict.fromkeys(("severity", first, *_KINDS)))
    for memory in memories:
        yield from (s for s in statements if s.policy == memory and s.kind == "source order")
        own = [s for s in statements if s.policy == memory and s.kind in kinds]
        by_kind = {s.kind: s for s in reversed(own)}  # the first of each kind
        yield from sorted(by_kind.values(), key=lambda s: kinds.index(s.kind))[:_MOST_CHOSEN]


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
