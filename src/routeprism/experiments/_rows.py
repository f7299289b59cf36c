"""From tallied values to rows of the estimates table: one place for flags, counts and limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from routeprism.judge import FLOOR, P_ADJUSTED, P_VALUE
from routeprism.measures import (
    RESAMPLES,
    Drawing,
    Estimate,
    Interval,
    Tally,
    adjust_holm,
)
from routeprism.quantities import Alternative, find_quantity
from routeprism.records import Benchmark
from routeprism.runs import Column, EstimateRow

__all__ = [
    "BY_QUESTION",
    "Column",
    "Group",
    "Key",
    "Setting",
    "adjust_p_values",
    "difference_rows",
    "drawing",
    "estimate_rows",
    "in_order",
]

BY_QUESTION = "by_question"
"""Prefix of estimates in which every question counts equally, where units usually do (I.4)."""


Key = tuple[Column, str]
"""A column and a stratum."""


class Group(NamedTuple):
    """Two arms with different questions that are compared."""

    name: str
    """The prefix of the difference."""
    first: str
    second: str
    rule: Literal["within", "means"] = "within"
    """Within the units that have both arms (F.2), or as a difference of the arms' means (D.9)."""
    left_out: Collection[str] = ()
    """Quantities whose range within units is reported when any one unit is left out (F.1)."""
    union: str = ""
    """Where a question can be in both arms, a quantity that every question of either has once."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The values that all rows of a run share."""

    benchmark: Benchmark
    interfaces: Mapping[str, str]
    """Policy → the interface it exposes through."""
    seed: int
    interval: Interval
    """How limits are read from the resamples."""
    resamples: int = RESAMPLES
    counts: Collection[str] = ()
    """Quantities whose ones are also counted."""
    embedded: Collection[str] = ()
    """Models and judges that are built in, and policies built by them; their rows are flagged."""
    draws: int | None = None
    """Answers per route and prompt."""
    scripted: Collection[str] = ()
    """Policies whose memories the scripted model built; their rows are flagged."""
    is_sequential: bool = False
    """Whether the run stops early; limits of quantities with a range then hold at every look."""


def drawing(setting: Setting) -> Drawing:
    """Return what every estimate of a run is drawn with."""
    return Drawing(seed=setting.seed, resamples=setting.resamples, interval=setting.interval)


def estimate_rows(
    tally: Tally[Key],
    setting: Setting,
    *,
    left_out: Collection[str] = (),
    by_question: Collection[str] = (),
    is_tested: bool = False,
) -> list[EstimateRow]:
    """Turn every column into a row.

    The quantities named also have leave-one-out limits, and an estimate in which every question
    counts equally. With `is_tested`, a claim has a p-value.
    """
    rows: list[EstimateRow] = []
    estimates = tally.estimates(**drawing(setting))
    for (column, stratum), estimate in estimates.items():
        template = _template(setting, column, stratum, estimate, tally.count_of((column, stratum)))
        quantity = find_quantity(column.quantity)
        if quantity.is_count:
            rows.append(template)
            continue
        bounds = quantity.range if setting.is_sequential else None
        sequence = bounds and tally.follow_sequence((column, stratum), bounds)
        rows.append(
            _with_limits(template, _at_every_look(estimate, sequence, setting), setting.seed)
        )
        if column.quantity in setting.counts:
            rows.append(replace(template, quantity=f"{column.quantity}_count"))
        plain = not column.arm and column.quantity in left_out
        if plain and (limits := tally.leave_one_out((column, stratum))):
            rows.extend(_left_out_rows(template, limits))
        whole = stratum == "all" and not (column.arm or column.mask)
        if is_tested and whole and quantity.alternative:
            p = _test_claim(tally, (column, stratum), setting, sequence, quantity.alternative)
            rows.append(replace(template, quantity=f"{P_VALUE}.{column.quantity}", estimate=p))
    return _mark_floor([*rows, *_question_rows(tally, setting, by_question)])


SEQUENTIAL, FIXED_LIMITS = "sequential", "fixed-limits"
"""Flags of a run that stopped early: on all its rows, and on those with ordinary limits."""


def _at_every_look(
    estimate: Estimate, sequence: tuple[float, float, float] | None, setting: Setting
) -> Estimate:
    """Replace the limits of an estimate from a run that stopped early, where that is possible."""
    if not setting.is_sequential:
        return estimate
    if sequence is None:
        return replace(estimate, warnings=(*estimate.warnings, FIXED_LIMITS))
    lower, upper, _ = sequence
    return replace(estimate, lower=lower, upper=upper, warnings=())


def _test_claim(
    tally: Tally[Key],
    key: Key,
    setting: Setting,
    sequence: tuple[float, float, float] | None,
    alternative: Alternative,
) -> float:
    """Return the p-value of a claim; that of a fixed number of units fails after stopping early."""
    if setting.is_sequential:
        return 1.0 if sequence is None else sequence[2]
    return tally.p_value(key, seed=setting.seed, alternative=alternative)


def adjust_p_values(rows: Sequence[EstimateRow]) -> list[EstimateRow]:
    """Adjust the p-values of all claims that a run makes.

    Of several fillers the average over all of them makes the claim, of several batches the first.
    """
    claims: dict[tuple[str, ...], EstimateRow] = {}
    for row in rows:
        if find_quantity(row.quantity).derivation == P_VALUE:
            place = (row.experiment, row.policy, row.schedule, row.model, row.quantity)
            earlier = claims.get(place)
            wider = earlier is not None and len(row.filler) > len(earlier.filler)
            if earlier is None or (wider and earlier.batch == row.batch):
                claims[place] = row
    adjusted = adjust_holm({row: row.estimate or 0.0 for row in claims.values()})
    return [
        replace(
            row, quantity=f"{P_ADJUSTED}.{find_quantity(row.quantity).base.name}", estimate=value
        )
        for row, value in adjusted.items()
    ]


def _left_out_rows(template: EstimateRow, limits: tuple[float, float]) -> list[EstimateRow]:
    """Return the range of an estimate when any one unit is left out."""
    return [
        replace(template, quantity=f"{name}.{template.quantity}", estimate=value)
        for name, value in zip(("loo_min", "loo_max"), limits, strict=True)
    ]


def _question_rows(
    tally: Tally[Key], setting: Setting, quantities: Collection[str]
) -> list[EstimateRow]:
    """Weigh questions equally where the benchmark weighs units equally; limits resample units."""
    if not quantities or setting.benchmark.weighting != "unit":
        return []

    def is_selected(key: Key) -> bool:
        return not key[0].arm and key[0].quantity in quantities

    estimates = tally.select(is_selected, weighting="question").estimates(**drawing(setting))
    return [
        _with_limits(
            _template(
                setting,
                column._replace(quantity=f"{BY_QUESTION}.{column.quantity}"),
                stratum,
                estimate,
                estimate.value,
            ),
            estimate,
            setting.seed,
        )
        for (column, stratum), estimate in estimates.items()
    ]


_Place = tuple[str, ...]
_ON_FLOOR = ("", P_VALUE, "loo_min", "loo_max", BY_QUESTION)
"""Derivations that are flagged where the quantity itself is."""


def _mark_floor(rows: Sequence[EstimateRow]) -> list[EstimateRow]:
    """Flag statements about correctness if every accuracy that they compare is zero."""
    accuracies: dict[_Place, list[float | None]] = {}
    for row in rows:
        if find_quantity(row.quantity).correctness == "level":
            accuracies.setdefault(_place(row), []).append(row.estimate)
    floor = {place for place, values in accuracies.items() if all(v == 0 for v in values)}
    return [
        replace(row, flags=";".join(filter(None, (row.flags, FLOOR))))
        if _is_of_floor(row, floor)
        else row
        for row in rows
    ]


def _is_of_floor(row: EstimateRow, floor: Collection[_Place]) -> bool:
    quantity = find_quantity(row.quantity)
    is_affected = bool(quantity.base.correctness) and quantity.derivation in _ON_FLOOR
    return bool(floor) and is_affected and _place(row) in floor


def _place(row: EstimateRow) -> _Place:
    """Return the names that rows share which are taken from the same answers."""
    names = (name for name in Column._fields if name != "quantity")
    return (*(str(getattr(row, name)) for name in names), row.stratum)


def difference_rows(
    tally: Tally[Key], setting: Setting, groups: Sequence[Group]
) -> list[EstimateRow]:
    """Compare arms with different questions, with leave-one-out limits where the group has them."""
    rows = []
    for group in groups:
        for column, stratum in tally.keys():  # noqa: SIM118 (a method of its own)
            if column.arm == group.first and stratum == "all":
                sides = ((column, stratum), (column._replace(arm=group.second), stratum))
                target = column._replace(quantity=f"{group.name}.{column.quantity}", arm="")
                limits = column.quantity in group.left_out
                rows += _difference_rows(tally, setting, group, target, sides, left_out=limits)
    return rows


def _difference_rows(
    tally: Tally[Key],
    setting: Setting,
    group: Group,
    column: Column,
    sides: tuple[Key, Key],
    *,
    left_out: bool,
) -> list[EstimateRow]:
    """Make the row that compares two arms, and its leave-one-out limits."""
    if group.rule == "means":
        estimate = tally.difference_of_means(*sides, **drawing(setting))
    else:
        target = column._replace(quantity=group.union)
        union = (target, sides[0][1]) if group.union else None
        estimate = tally.difference(*sides, union=union, **drawing(setting))
    if estimate is None:
        return []
    template = _template(setting, column, sides[0][1], estimate, estimate.value)
    rows = [_with_limits(template, estimate, setting.seed)]
    limits = tally.difference_left_out(*sides) if left_out else None
    return rows if limits is None else [*rows, *_left_out_rows(template, limits)]


def _template(
    setting: Setting, column: Column, stratum: str, estimate: Estimate, value: float
) -> EstimateRow:
    flags = ["synthetic"] if setting.benchmark.synthetic else []
    if {column.model, column.judge, column.policy} & {*setting.embedded}:
        flags.append("embedded")
    if column.policy in setting.scripted:
        flags.append("scripted")
    if setting.is_sequential:
        flags.append(SEQUENTIAL)
    return EstimateRow(
        **column._asdict(),
        benchmark=setting.benchmark.name,
        interface=setting.interfaces.get(column.policy, ""),
        stratum=stratum,
        estimate=value,
        queries=estimate.queries,
        units=estimate.units,
        unit=setting.benchmark.unit,
        draws=setting.draws if column.model else None,
        flags=";".join(flags),
    )


def _with_limits(template: EstimateRow, estimate: Estimate, seed: int) -> EstimateRow:
    flags = [flag for flag in template.flags.split(";") if flag]
    flags.extend(estimate.warnings)
    return replace(
        template,
        estimate=estimate.value,
        lower=estimate.lower,
        upper=estimate.upper,
        seed=seed,
        flags=";".join(flags),
    )


def in_order(
    rows: Sequence[EstimateRow], policies: Sequence[str], schedules: Sequence[str]
) -> list[EstimateRow]:
    """Order rows as the user asked: by experiment, policy, schedule, stratum."""
    experiments = list(dict.fromkeys(row.experiment for row in rows))

    def place(names: Sequence[str]) -> Callable[[str], int]:
        places = {name: at for at, name in enumerate(names)}
        return lambda name: places.get(name, -1)

    policy, schedule, experiment = place(policies), place(schedules), place(experiments)
    return sorted(
        rows,
        key=lambda row: (
            experiment(row.experiment),
            policy(row.policy),
            schedule(row.schedule),
            row.stratum != "all",
            row.stratum,
        ),
    )
