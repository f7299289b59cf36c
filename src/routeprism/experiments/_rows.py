"""From tallied values to rows of the estimates table: one place for flags, counts and limits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from routeprism.measures import RESAMPLES, Drawing, Estimate, Interval, Tally
from routeprism.records import Benchmark
from routeprism.runs import Column, EstimateRow

__all__ = ["Column", "Key", "Setting", "difference_rows", "drawing", "estimate_rows", "in_order"]


Key = tuple[Column, str]
"""A column and a stratum."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all rows of a run share."""

    benchmark: Benchmark
    interfaces: Mapping[str, str]
    """Policy → the interface it exposes through."""
    seed: int
    interval: Interval
    """How limits are read from the resamples."""
    resamples: int = RESAMPLES
    counted: Collection[str] = ()
    """Quantities whose ones are counted too."""
    embedded: Collection[str] = ()
    """Models, judges and policies built by such models that are built in: their rows say so."""
    draws: int | None = None
    """Answers per route and prompt."""


def drawing(setting: Setting) -> Drawing:
    """Give what every estimate of a run is drawn with."""
    return Drawing(seed=setting.seed, resamples=setting.resamples, interval=setting.interval)


def estimate_rows(
    tally: Tally[Key], setting: Setting, *, left_out: Collection[str] = ()
) -> list[EstimateRow]:
    """Turn every column into a row; give leave-one-out limits for the quantities named."""
    rows: list[EstimateRow] = []
    found = tally.estimates(**drawing(setting))
    for (column, stratum), estimate in found.items():
        template = _template(setting, column, stratum, estimate, tally.count_of((column, stratum)))
        if column.quantity.startswith(("count.", "miss.", "extra.")):
            rows.append(template)
            continue
        rows.append(_with_limits(template, estimate, setting.seed))
        if column.quantity in setting.counted:
            rows.append(replace(template, quantity=f"{column.quantity}_count"))
        plain = not column.arm and not column.mask and column.quantity in left_out
        if plain and (limits := tally.leave_one_out((column, stratum))):
            for name, value in zip(("loo_min", "loo_max"), limits, strict=True):
                rows.append(replace(template, quantity=f"{name}.{column.quantity}", estimate=value))
    return rows


def _difference_row(
    tally: Tally[Key],
    setting: Setting,
    column: Column,
    stratum: str,
    groups: tuple[Key, Key],
) -> EstimateRow | None:
    """Make the row that compares two groups of questions within units."""
    found = tally.difference(*groups, **drawing(setting))
    if found is None:
        return None
    template = _template(setting, column, stratum, found, found.value)
    return _with_limits(template, found, setting.seed)


def difference_rows(
    tally: Tally[Key], setting: Setting, groups: Sequence[tuple[str, str, str]]
) -> list[EstimateRow]:
    """Compare groups of questions within units; each is (name, one arm, the other)."""
    rows = []
    for prefix, one, other in groups:
        for column, stratum in tally.keys():  # noqa: SIM118 (a method of its own)
            if column.arm == one and stratum == "all":
                sides = ((column, stratum), (column._replace(arm=other), stratum))
                named = column._replace(quantity=f"{prefix}.{column.quantity}", arm="")
                row = _difference_row(tally, setting, named, stratum, sides)
                if row is not None:
                    rows.append(row)
    return rows


def _template(
    setting: Setting, column: Column, stratum: str, estimate: Estimate, value: float
) -> EstimateRow:
    flags = ["synthetic"] if setting.benchmark.synthetic else []
    if {column.model, column.judge, column.policy} & {*setting.embedded}:
        flags.append("embedded")
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

    def place(known: Sequence[str]) -> Callable[[str], int]:
        places = {name: at for at, name in enumerate(known)}
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
