"""How large a study should be, from the spread that a pilot run shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from routeprism.errors import RunError, SpecError, nearest
from routeprism.measures import (
    Spread,
    simulate_stops,
    spread_alone,
    spread_of,
    units_for_power,
    units_for_width,
)
from routeprism.quantities import find_quantity
from routeprism.review.selection import describe_rows, name_column, prefer_rows
from routeprism.runs import EstimateRow, QuestionValues, Rows, StoredRun, read_configuration

__all__ = ["StudyPlan", "StudySize", "plan_study"]


@dataclass(frozen=True, slots=True)
class StudySize:
    """A number of units, questions and draws that reaches the goal."""

    questions: float
    """For each unit."""
    draws: int | None
    """For each question and side; None where the quantity has none, or keeps the pilot's."""
    units: int


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """The sizes of a study that reach a goal."""

    quantity: str
    policy: str
    schedule: str
    unit: str
    """What is resampled: user, conversation, question."""
    pilot: tuple[int, int, int | None]
    """Units, questions and draws of the pilot."""
    spread: Spread
    goal: str
    ways: tuple[StudySize, ...]
    notes: tuple[str, ...] = ()
    sequential: tuple[int, int] | None = None
    """Units at which `until` is expected to stop (median, and 90% of simulated studies); None
    without a half-width, or where the range of the quantity is not known."""

    @property
    def sentence(self) -> str:
        """The size with the pilot's own questions and draws, in words."""
        way = self.ways[0]
        if self.unit == "question":
            draws = f" with {way.draws} draws" if way.draws else ""
            return (
                f"{self.quantity} of {self.policy} on {self.schedule}: {self.goal} takes "
                f"{way.units} questions{draws}"
            )
        draws = f" and {way.draws} draws" if way.draws else ""
        return (
            f"{self.quantity} of {self.policy} on {self.schedule}: {self.goal} takes {way.units} "
            f"{self.unit}s with {way.questions:.1f} questions each{draws}"
        )


@dataclass(frozen=True, slots=True)
class _Pilot:
    """What a pilot run shows about one quantity."""

    row: EstimateRow
    unit: str
    values: QuestionValues
    draws: int | None
    """For each prompt; None if the quantity needs no answers."""
    noise: float | None
    """The variance of one draw; None if the pilot does not show it."""

    @property
    def is_flat(self) -> bool:
        """Whether every question is a unit of its own."""
        return self.unit == "question"

    @property
    def spread(self) -> Spread:
        """The variances between units, questions and draws."""
        noise, draws = self.noise or 0.0, self.draws or 1
        units = [list(of_unit.values()) for of_unit in self.values.values()]
        if self.is_flat:
            return spread_alone(
                [value for unit in units for value in unit], noise=noise, draws=draws
            )
        return spread_of(units, noise=noise, draws=draws)

    @property
    def questions(self) -> float:
        """The harmonic mean of questions per unit."""
        if self.is_flat:
            return 1.0
        return len(self.values) / sum(1 / len(of_unit) for of_unit in self.values.values())


def plan_study(
    run: str | Path,
    quantity: str,
    *,
    half_width: float | None = None,
    effect: float | None = None,
    power: float = 0.8,
    policy: str | None = None,
    schedule: str | None = None,
    model: str | None = None,
    experiment: str | None = None,
    arm: str | None = None,
    questions: Sequence[float] = (),
    draws: Sequence[int] = (),
) -> StudyPlan:
    """Plan how many units, questions and draws reach a half-width or a power.

    Give exactly one of `half_width` and `effect`. `questions` and `draws` are the numbers to
    consider beside the pilot's own.
    """
    if (half_width is None) == (effect is None):
        raise SpecError("give either a half-width or an effect, with the power to show it")
    names = {"policy": policy, "schedule": schedule, "model": model}
    names |= {"experiment": experiment, "arm": arm}
    columns = {name: value for name, value in names.items() if value is not None}
    pilot = _read_pilot(Path(run), quantity, columns)
    if pilot.is_flat and questions:
        raise SpecError("every question is a unit of its own here: leave questions out")
    spread = pilot.spread

    def count_units(number: float, times: int | None) -> int:
        if half_width is not None:
            return units_for_width(spread, half_width, questions=number, draws=times or 1)
        return units_for_power(
            spread, effect or 0.0, power=power, questions=number, draws=times or 1
        )

    sizes = [
        StudySize(number, times, count_units(number, times))
        for number in dict.fromkeys((round(pilot.questions, 1), *map(float, questions)))
        for times in dict.fromkeys((pilot.draws, *(draws if pilot.noise is not None else ())))
    ]
    goal = f"showing an effect of {effect or 0:g} with probability {power:g}"
    if half_width is not None:
        goal = f"a half-width of {half_width:g}"
    return StudyPlan(
        quantity,
        pilot.row.policy,
        pilot.row.schedule,
        pilot.unit,
        (len(pilot.values), sum(map(len, pilot.values.values())), pilot.draws),
        spread,
        goal,
        tuple(sizes),
        tuple(_list_notes(pilot, quantity, more_draws=bool(draws))),
        _expect_stop(pilot, quantity, half_width),
    )


_MOST_EXPECTED = 2_000


def _expect_stop(pilot: _Pilot, quantity: str, half_width: float | None) -> tuple[int, int] | None:
    """Draw the pilot's units again and again until limits that hold at every look are narrow."""
    bounds = find_quantity(quantity).range
    means = [sum(unit.values()) / len(unit) for unit in pilot.values.values()]
    if pilot.is_flat:
        means = [value for unit in pilot.values.values() for value in unit.values()]
    if half_width is None or bounds is None:
        return None
    stops = simulate_stops(means, bounds, half_width, seed=0, most=_MOST_EXPECTED)
    return stops[len(stops) // 2], stops[len(stops) * 9 // 10]


def _list_notes(pilot: _Pilot, quantity: str, *, more_draws: bool) -> Iterator[str]:
    spread = pilot.spread
    if pilot.row.model and pilot.noise is None and more_draws:
        yield (
            f"this pilot does not show what more draws would save for {quantity}; the plan keeps "
            f"the pilot's number of draws"
        )
    if not spread.unit + spread.question + spread.draw:
        yield "all values of this pilot are the same, so it shows no spread to plan with"
    if len(pilot.values) < 10:
        yield f"a pilot of {len(pilot.values)} units shows its own spread poorly"


def _read_pilot(run: Path, quantity: str, columns: Mapping[str, str]) -> _Pilot:
    """Read the values of the only row that is meant, and of the two sides that it subtracts."""
    measured = find_quantity(quantity)
    # What draws add to the variance of a difference of two accuracies can be worked out.
    is_worked_out = measured.correctness == "change"
    with StoredRun(run) as stored:
        configuration = read_configuration(stored, run)
        row = _select_row(Rows.of(stored.estimates()), run, quantity, columns)
        values, *sides = (
            _read_values(stored, row, name)
            for name in (quantity, *(measured.terms if is_worked_out else ()))
        )
    if not values:
        raise RunError(f"{run} contains no values per question; run its command again")
    _refuse_weighting(configuration)
    draws = configuration.get("draws") if row.model else None
    noise = _noise(sides, draws) if draws and draws > 1 and sides and all(sides) else None
    return _Pilot(row, configuration["unit"], values, draws, noise)


def _refuse_weighting(configuration: Mapping[str, Any]) -> None:
    unit = configuration["unit"]
    if configuration["weighting"] == "question" and unit != "question":
        raise SpecError(
            f"this benchmark weighs questions equally and resamples {unit}s, and a plan requires "
            f"units with equal weights. The interval shrinks with the square root of the number "
            f"of {unit}s"
        )


def _select_row(rows: Rows, run: Path, quantity: str, columns: Mapping[str, str]) -> EstimateRow:
    """Select the only row that is meant; list the rows if it is not one."""
    every = rows.where(quantity=quantity, stratum="all")
    if not every:
        raise SpecError(f"{run} has no '{quantity}'. {nearest(quantity, rows.values('quantity'))}")
    selected = prefer_rows(every.where(**columns), arm="", mask="")
    # Of several fillers the row over all of them is meant, of several experiments the first.
    widest = max((row.filler.count("+") for row in selected), default=0)
    selected = Rows.of(row for row in selected if row.filler.count("+") == widest)
    if selected and "experiment" not in columns:
        selected = selected.where(experiment=selected[0].experiment)
    if len(selected) == 1:
        return selected[0]
    detail = "".join(f", {name}={value}" for name, value in columns.items())
    numbers = {row: number for number, row in enumerate(rows, start=1)}
    raise SpecError(
        f"{len(selected)} rows of {run} have {quantity}{detail}. Choose one by its policy, "
        f"schedule, model, experiment or arm:\n{describe_rows(selected or every, numbers)}"
    )


def _read_values(stored: StoredRun, row: EstimateRow, quantity: str) -> QuestionValues:
    column = name_column(row, quantity=quantity)
    return stored.per_question(**column._asdict()).get(column, {})


def _noise(sides: Sequence[QuestionValues], draws: int) -> float:
    """Return the variance of one draw of a difference of accuracies: p(1 − p) of both sides."""
    total = 0.0
    for side in sides:
        shares = [share for shares_of_side in side.values() for share in shares_of_side.values()]
        total += sum(share * (1 - share) for share in shares) * draws / (draws - 1) / len(shares)
    return total
