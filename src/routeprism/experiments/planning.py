"""How large a study should be: what a pilot run shows of a quantity's spread, and what follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.errors import RunError, SpecError, nearest
from routeprism.measures import (
    Spread,
    spread_alone,
    spread_of,
    units_for_power,
    units_for_width,
)
from routeprism.runs import Column, QuestionValues, Stored

__all__ = ["Plan", "Planned", "plan_study"]

_SIDES: Mapping[str, tuple[str, str]] = {
    "Delta_rep": ("accuracy.forward", "accuracy.route"),
    "restored-absent": ("accuracy.restored", "accuracy.absent"),
    "restored-replacement": ("accuracy.restored", "accuracy.replacement"),
    "restored-present": ("accuracy.restored", "accuracy.present"),
    "present-absent": ("accuracy.present", "accuracy.absent"),
}
"""Differences of two accuracies: what their draws add to the variance can be worked out."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One way to reach the goal."""

    questions: float
    """For each unit."""
    draws: int | None
    """For each question and side; None where the quantity has none, or keeps the pilot's."""
    units: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a study takes."""

    quantity: str
    policy: str
    schedule: str
    unit: str
    """What is resampled: user, conversation, question."""
    pilot: tuple[int, int, int | None]
    """Units, questions and draws of the pilot."""
    spread: Spread
    goal: str
    ways: tuple[Planned, ...]
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """Say the way with the pilot's own questions and draws."""
        way = self.ways[0]
        if self.unit == "question":
            drawn = f" with {way.draws} draws" if way.draws else ""
            return (
                f"{self.quantity} of {self.policy} on {self.schedule}: {self.goal} takes "
                f"{way.units} questions{drawn}"
            )
        drawn = f" and {way.draws} draws" if way.draws else ""
        return (
            f"{self.quantity} of {self.policy} on {self.schedule}: {self.goal} takes {way.units} "
            f"{self.unit}s with {way.questions:.1f} questions each{drawn}"
        )


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
) -> Plan:
    """Say how many units, questions and draws a wanted half-width or power takes.

    Exactly one of `half_width` and `effect` is given. `questions` and `draws` are the numbers to
    consider beside the pilot's own.
    """
    if (half_width is None) == (effect is None):
        raise SpecError("say either a half-width or an effect, with the power to show it")
    run = Path(run)
    with Stored(run) as stored:
        configuration = stored.manifest()["configuration"]
        asked = {"policy": policy, "schedule": schedule, "model": model}
        asked |= {"experiment": experiment, "arm": arm}
        column, values = _chosen(stored, run, quantity, asked)
        sides = [
            stored.per_question(**_names(column), quantity=side).get(
                column._replace(quantity=side), {}
            )
            for side in _SIDES.get(quantity, ())
        ]
    drawn = configuration.get("draws") if column.model else None
    known = [list(found.values()) for found in values.values()]
    noise = _noise(sides, drawn or 1) if drawn and drawn > 1 and all(sides) and sides else None
    alone = configuration["unit"] == "question"
    if alone and questions:
        raise SpecError("every question is a unit of its own here: leave questions out")
    if configuration["weighting"] == "question" and not alone:
        raise SpecError(
            f"this benchmark weighs questions equally and resamples {configuration['unit']}s; "
            f"planning knows equal units only. The interval shrinks with the square root of the "
            f"number of {configuration['unit']}s"
        )
    total = sum(map(len, known))
    if alone:
        flat = [value for one in known for value in one]
        spread = spread_alone(flat, noise=noise or 0.0, draws=drawn or 1)
        usual = 1.0
    else:
        spread = spread_of(known, noise=noise or 0.0, draws=drawn or 1)
        usual = len(known) / sum(1 / len(one) for one in known)
    ways = []
    for number in dict.fromkeys((round(usual, 1), *map(float, questions))):
        for times in dict.fromkeys((drawn, *(draws if noise is not None else ()))):
            need = (
                units_for_width(spread, half_width, questions=number, draws=times or 1)
                if half_width is not None
                else units_for_power(
                    spread, effect or 0.0, power=power, questions=number, draws=times or 1
                )
            )
            ways.append(Planned(number, times, need))
    goal = (
        f"a half-width of {half_width:g}"
        if half_width is not None
        else f"showing an effect of {effect:g} with probability {power:g}"
    )
    notes = []
    if column.model and noise is None and draws:
        notes.append(
            f"what more draws would save cannot be told for {quantity} from this pilot; its own "
            f"number of draws is kept"
        )
    if not spread.unit + spread.question + spread.draw:
        notes.append("all values of this pilot are the same, so it shows no spread to plan with")
    if len(known) < 10:
        notes.append(f"a pilot of {len(known)} units shows its own spread poorly")
    return Plan(
        quantity,
        column.policy,
        column.schedule,
        configuration["unit"],
        (len(known), total, drawn),
        spread,
        goal,
        tuple(ways),
        tuple(notes),
    )


_PLAIN = "routes"
"""The experiment that is meant where several have a quantity and none is named."""


def _names(column: Column) -> dict[str, str]:
    return {name: value for name, value in column._asdict().items() if name != "quantity"}


def _chosen(
    stored: Stored, run: Path, quantity: str, asked: Mapping[str, str | None]
) -> tuple[Column, QuestionValues]:
    """Find the one column that is meant; say what there is where it is not one."""
    every = stored.per_question()
    if not every:
        raise RunError(f"{run} keeps no values per question; run its command again")
    found = {c: v for c, v in every.items() if c.quantity == quantity}
    if not found:
        known = sorted({column.quantity for column in every})
        raise SpecError(f"{run} has no '{quantity}'. {nearest(quantity, known)}")
    wanted = {name: value for name, value in asked.items() if value is not None}
    left = {
        c: v for c, v in found.items() if all(getattr(c, n) == value for n, value in wanted.items())
    }
    left = {c: v for c, v in left.items() if not c.arm} or left
    left = {c: v for c, v in left.items() if not c.mask} or left  # all questions are meant
    left = {c: v for c, v in left.items() if "+" in c.filler} or left
    left = {c: v for c, v in left.items() if c.experiment == _PLAIN} or left
    if len(left) != 1:
        listed = "; ".join(
            ", ".join(f"{n}={v}" for n, v in _names(c).items() if v)
            for c in list(left or found)[:6]
        )
        also = "".join(f", {name}={value}" for name, value in wanted.items())
        raise SpecError(
            f"{len(left)} rows of {run} are meant by {quantity}{also}. "
            f"Say policy, schedule, model, experiment or arm; there are: {listed}"
        )
    return next(iter(left.items()))


def _noise(sides: Sequence[QuestionValues], draws: int) -> float:
    """Give the variance of one draw of a difference of accuracies: p(1 − p) of both sides."""
    total = 0.0
    for side in sides:
        shares = [share for found in side.values() for share in found.values()]
        total += sum(share * (1 - share) for share in shares) * draws / (draws - 1) / len(shares)
    return total
