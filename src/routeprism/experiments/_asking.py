"""Asking: who is asked and how, and the answers to any set of prompts that are compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from routeprism.answers import (
    Cell,
    Collected,
    EmbeddedJudge,
    Judge,
    Judged,
    ModelJudge,
    RecordedJudge,
    collect,
    judge_all,
    plan,
    plan_judging,
    rubric_of,
)
from routeprism.answers import Plan as Cost
from routeprism.experiments._asked import Manner
from routeprism.experiments._places import Place, place_of
from routeprism.experiments._rows import Setting
from routeprism.experiments._stages import Asked, add_costs
from routeprism.models import Model
from routeprism.models.recorded import Recorded
from routeprism.prompts import Prompt
from routeprism.records import Question
from routeprism.runs import Key, Ledger, Run

__all__ = [
    "Answers",
    "Asking",
    "Compared",
    "answers_to",
    "cells_of",
    "cost_of",
    "count_outcomes",
    "filling",
    "outcome_notes",
]

MANY = 4_000
"""How many requests are made ready at once: prompts are long, so not all of them."""
MUCH = 50_000_000
"""How many characters of prompts are."""
_NO_ANSWER = {"refused": "(refused)", "unparsable": "(unparsable)"}
"""A refused or unparsable answer is an answer of its own, never a guess and never right."""
_UNDECIDED = "undecided"
"""How answers are counted that a judge decided nothing of."""


class Compared(Protocol):
    """Prompts of one question that are compared with each other."""

    @property
    def experiment(self) -> str:
        """Whose answers these are: `routes`, `restoration` or `display`."""

    @property
    def question(self) -> Question:
        """What is asked."""

    @property
    def policy(self) -> str:
        """Whose memory is read."""

    @property
    def schedule(self) -> str:
        """The route that is compared with forward."""

    @property
    def filler(self) -> str:
        """What the prompts are padded with."""

    @property
    def condition(self) -> str:
        """What else tells it apart, such as an instruction, a design or a layout; or nothing."""

    @property
    def group(self) -> str:
        """Name the comparison, so that its sides take turns in being asked first."""

    @property
    def sides(self) -> tuple[tuple[str, Prompt], ...]:
        """Give (route or condition, prompt); nothing where they could not be matched."""

    @property
    def reason(self) -> str:
        """Say why there are none; empty where there are."""


@dataclass(frozen=True, slots=True)
class Asking:
    """Who is asked, how, and who judges free text."""

    models: tuple[Model, ...]
    manner: Manner = field(default_factory=Manner)
    batches: tuple[str, ...] = ("",)
    """Independent realisations of the same prompts, by name."""
    judge: Judge = field(default_factory=EmbeddedJudge)
    """For free text; options need none."""
    rate_limit: float | None = None
    concurrency: int | None = None

    def described(self) -> Mapping[str, object]:
        """Give what makes the answers comparable, for the manifest."""
        return {
            "models": {model.name: dict(model.settings) for model in self.models},
            "prompt_control": self.manner.control,
            "fillers": list(self.manner.fillers),
            "provenance": self.manner.provenance,
            "judge": self.judge.name,
            "draws": self.manner.draws,
            "batches": list(self.batches),
        }

    def setting(self, setting: Setting) -> Setting:
        """Say who is embedded and how often was asked."""
        embedded = {*setting.embedded, *(m.name for m in self.models if m.embedded)}
        if self.judge.embedded:
            embedded.add(self.judge.name)
        return replace(setting, embedded=embedded, draws=self.manner.draws)


@dataclass(frozen=True, slots=True)
class Answers:
    """One model's answers to the comparisons at hand; one with a failed request is not in it."""

    collected: Collected
    said: Mapping[Compared, tuple[tuple[str, ...], ...]]
    """For each side its symbols (option letters, or texts), draw by draw."""
    right: Mapping[Compared, tuple[tuple[bool, ...], ...]]
    """For each side its verdicts; empty where the right answer is not known."""
    first: Mapping[Compared, int]
    """Which side was submitted first, where that is known."""
    undecided: int = 0
    """How many answers the judge said neither yes nor no to."""


def cells_of(items: Iterable[Compared], manner: Manner) -> Iterator[Cell]:
    """Give every answer that comparisons need."""
    for item in items:
        for side in range(len(item.sides)):
            yield from _side(item, side, manner)


def filling(items: Iterable[Compared], manner: Manner) -> float:
    """Say how much of what is made ready at once the prompts of comparisons are; 1 is enough."""
    lengths = [len(prompt.text) for item in items for _, prompt in item.sides]
    return max(manner.draws * len(lengths) / MANY, sum(lengths) / MUCH)


def _side(item: Compared, side: int, manner: Manner) -> list[Cell]:
    """Make the cells of one side, one for each draw."""
    name, prompt = item.sides[side]
    place = _place(item, name, manner)
    return [
        Cell(replace(prompt.ask(draw), place=place, turn=turn), item.question.id, name, item.group)
        for turn, draw in enumerate(manner.numbers(side))
    ]


def _place(item: Compared, side: str, manner: Manner) -> Place:
    return place_of(
        item.experiment,
        question=item.question.id,
        policy=item.policy,
        schedule=item.schedule,
        filler=item.filler,
        condition=item.condition,
        side=side,
        control=manner.control,
    )


def cost_of(
    items: Sequence[Compared],
    asking: Asking,
    ledger: Ledger,
    before: Mapping[str, Cost],
    planned: set[Key],
) -> dict[str, Cost]:
    """Add what these comparisons would take to what others do; answers they share count once."""
    totals = dict(before)
    cells = list(cells_of(items, asking.manner))
    for model in asking.models:
        for batch in asking.batches:
            one = plan(cells, ledger, model, batch=batch, planned=planned)
            totals[model.name] = add_costs(totals.get(model.name), one)
            if judging := _cost_of_judging(items, asking, one.calls):
                name = f"{asking.judge.name} (judging)"
                totals[name] = add_costs(totals.get(name), judging)
    return totals


def _cost_of_judging(items: Sequence[Compared], asking: Asking, calls: int) -> Cost | None:
    """Say what a model takes that judges new answers; None where there are none for it."""
    free = [item for item in items if item.question.gold is not None and not item.question.options]
    answers = asking.manner.draws * sum(len(item.sides) for item in free)
    if not isinstance(asking.judge, ModelJudge) or not min(answers, calls):
        return None
    unread = [_judged(item.question, "") for item in free]
    return plan_judging(asking.judge, unread, min(answers, calls))


def _judged(question: Question, response: str) -> Judged:
    kind = rubric_of(question.detail or question.kind, question.id)
    return Judged(question.text, question.gold or "", response, kind)


def answers_to(
    experiment: str, items: Sequence[Compared], asking: Asking, run: Run, asked: Asked | None
) -> dict[tuple[str, str], Answers]:
    """Collect the answers of every model and batch, and keep which comparison reads which."""
    cells = list(cells_of(items, asking.manner))
    run.add("comparisons", [row for item in items for row in _written(experiment, item, asking)])
    found: dict[tuple[str, str], Answers] = {}
    for model in asking.models:
        for batch in asking.batches:
            name = model.name
            collected = collect(
                run,
                model,
                cells,
                batch=batch,
                progress=None if asked is None else partial(asked, name),
                rate_limit=asking.rate_limit,
                concurrency=asking.concurrency,
            )
            found[name, batch] = _read(items, asking, run, collected)
    return found


def _written(experiment: str, item: Compared, asking: Asking) -> Iterator[Sequence[str | int]]:
    """Say for the store which prompt each side reads, and which draws are its own."""
    names = (item.policy, item.schedule, item.question.id, item.filler, item.condition)
    for side, (name, prompt) in enumerate(item.sides):
        draws = asking.manner.numbers(side)
        place = "@".join(value for _, value in _place(item, name, asking.manner))
        yield experiment, *names, name, prompt.sha256, draws.start, len(draws), place


def _read(items: Sequence[Compared], asking: Asking, run: Run, collected: Collected) -> Answers:
    said: dict[Compared, tuple[tuple[str, ...], ...]] = {}
    recorded: dict[Compared, tuple[tuple[bool | None, ...], ...]] = {}
    first: dict[Compared, int] = {}
    elsewhere = isinstance(collected.model, Recorded)  # in whose order nobody was asked here
    for item in items:
        sides: list[tuple[str, ...]] = []
        verdicts: list[tuple[bool | None, ...]] = []
        places: list[int | None] = []
        for side in range(len(item.sides)):
            cells = _side(item, side, asking.manner)
            answers = [answer for cell in cells if (answer := collected.of(cell)) is not None]
            if len(answers) == len(cells):
                sides.append(tuple(_NO_ANSWER.get(a.outcome) or a.answer or "" for a in answers))
                verdicts.append(tuple(a.correct for a in answers))
                places.append(answers[0].order if elsewhere else answers[0].submission)
        if sides and len(sides) == len(item.sides):  # else it waits for the next run
            said[item] = tuple(sides)
            recorded[item] = tuple(verdicts)
            known = [place for place in places if place is not None]
            if len(known) == len(places):
                first[item] = places.index(min(known))
    right, undecided = _verdicts(said, recorded, asking, run, collected.batch)
    return Answers(collected, said, right, first, undecided)


def _verdicts(
    said: Mapping[Compared, tuple[tuple[str, ...], ...]],
    recorded: Mapping[Compared, tuple[tuple[bool | None, ...], ...]],
    asking: Asking,
    run: Run,
    batch: str,
) -> tuple[dict[Compared, tuple[tuple[bool, ...], ...]], int]:
    """Say of every answer whether it is right; count those that the judge decided nothing of."""
    right: dict[Compared, tuple[tuple[bool, ...], ...]] = {}
    items: list[Judged] = []
    for item, sides in said.items():
        gold = item.question.gold
        if gold is None:
            right[item] = ()
        elif item.question.options:
            right[item] = tuple(tuple(answer == gold for answer in side) for side in sides)
        elif isinstance(asking.judge, RecordedJudge):
            right[item] = tuple(tuple(bool(one) for one in side) for side in recorded[item])
        else:
            items.extend(_judged(item.question, answer) for side in sides for answer in side)
    judge = asking.judge
    if isinstance(judge, ModelJudge) and judge.run is None:
        judge = replace(judge, run=run)
    paced = partial(judge_all, rate_limit=asking.rate_limit, concurrency=asking.concurrency)
    decided = [one.correct for one in paced(judge, items, batch=batch)] if items else []
    verdicts = iter(decided)
    for item, sides in said.items():
        if item not in right:
            right[item] = tuple(tuple(bool(next(verdicts)) for _ in side) for side in sides)
    return right, decided.count(None)


def _answers(number: int) -> str:
    return "1 answer was" if number == 1 else f"{number} answers were"


def outcome_notes(outcomes: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    """Say how many answers were none, by (model, outcome)."""
    notes = []
    for (model, outcome), number in outcomes.items():
        if number and outcome in _NO_ANSWER:
            notes.append(f"{model}: {_answers(number)} {outcome}; each counts as its own answer")
        if number and outcome == "failed":
            requests = "1 request" if number == 1 else f"{number} requests"
            notes.append(f"{model}: {requests} failed; the same command asks again")
        if number and outcome == _UNDECIDED:
            notes.append(
                f"{model}: {_answers(number)} given neither yes nor no by the judge; each counts "
                f"as wrong"
            )
    return tuple(notes)


def count_outcomes(
    counted: Counter[tuple[str, str]], found: Mapping[tuple[str, str], Answers]
) -> None:
    """Add up how answers ended."""
    for (model, _), answers in found.items():
        for outcome, number in answers.collected.outcomes.items():
            counted[model, outcome] += number
        counted[model, _UNDECIDED] += answers.undecided
