"""The answer boundary of an audit: ask every pair of routes, and estimate what the answers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from routeprism.answers import (
    Cell,
    EmbeddedJudge,
    Judge,
    Judged,
    ModelJudge,
    Progress,
    collect,
    judge_all,
    plan,
    rubric_of,
)
from routeprism.answers import Plan as Cost
from routeprism.experiments._answered import MAIN, Answers, enter_answers
from routeprism.experiments._asked import AskedPair, Manner, asked_pairs, draws_of
from routeprism.experiments._case import Contrast
from routeprism.experiments._rows import Key, Setting, difference_row, estimate_rows
from routeprism.measures import Sums, Tally
from routeprism.models import Model
from routeprism.orders import Schedule
from routeprism.policies import Policy
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Run, Stored

__all__ = ["Answered", "Asking", "ask_routes", "price_routes"]

_MANY = 4_000
"""How many requests are made ready at once; prompts are long, so not all of them."""
_NO_ANSWER = {"refused": "(refused)", "unparsable": "(unparsable)"}
"""A refused or unparsable answer is an answer of its own, never a guess and never right."""


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
        }


@dataclass(frozen=True, slots=True)
class Answered:
    """What the answers gave."""

    rows: list[EstimateRow]
    notes: tuple[str, ...]


def ask_routes(
    run: Run,
    benchmark: Benchmark,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    contrasts: Sequence[Contrast],
    asking: Asking,
    setting: Setting,
    *,
    progress: Callable[[str, Progress], None] | None = None,
) -> Answered:
    """Collect what is missing, pool by pool, and turn all answers into rows."""
    tally: Tally[Key] = Tally(benchmark.weighting)
    reasons: Counter[str] = Counter()
    outcomes: Counter[tuple[str, str]] = Counter()
    duplicates = False
    with Stored(run.directory) as stored:
        for cases in _portions(benchmark, stored, policies, schedules, asking.manner):
            everything = [pair for _, pairs in cases for pair in pairs]
            duplicates |= any(pair.question.duplicate_options for pair in everything)
            reasons.update(pair.reason for pair in everything if pair.prompts is None)
            sums: list[Sums[Key]] = [{} for _ in cases]
            found: dict[tuple[str, str], Answers] = {}
            for model in asking.models:
                for batch in asking.batches:
                    answers = _collect(run, model, everything, asking, batch, progress)
                    for outcome, number in answers.collected.outcomes.items():
                        outcomes[model.name, outcome] += number
                    found[model.name, batch] = answers
            for (case, pairs), unit in zip(cases, sums, strict=True):
                enter_answers(case, pairs, contrasts, asking.manner, asking.judge.name, found, unit)
                tally.append(unit)
    setting = replace(
        setting,
        embedded={m.name for m in asking.models if m.embedded}
        | ({asking.judge.name} if asking.judge.embedded else set()),
        draws=asking.manner.draws,
    )
    rows = [
        row
        for row in estimate_rows(tally, setting, left_out=MAIN)
        if duplicates or row.mask != "distinct-options"  # else it repeats the plain rows
    ]
    return Answered([*rows, *_dispatch_rows(tally, setting)], _notes(reasons, outcomes))


def price_routes(
    benchmark: Benchmark,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    asking: Asking,
    run: Run,
) -> Mapping[str, Cost]:
    """Say for each model what asking would take, without asking."""
    totals: dict[str, Cost] = {}
    with Stored(run.directory) as stored, run.ledger() as ledger:
        for cases in _portions(benchmark, stored, policies, schedules, asking.manner):
            cells = list(_cells((pair for _, pairs in cases for pair in pairs), asking.manner))
            for model in asking.models:
                for batch in asking.batches:
                    one = plan(cells, ledger, model, batch=batch)
                    totals[model.name] = _added(totals.get(model.name), one)
    return totals


def _added(one: Cost | None, other: Cost) -> Cost:
    if one is None:
        return other
    return Cost(
        one.cells + other.cells,
        one.kept + other.kept,
        one.calls + other.calls,
        one.input_tokens + other.input_tokens,
        None if one.cost is None or other.cost is None else one.cost + other.cost,
        None if one.most is None or other.most is None else one.most + other.most,
    )


def _portions(
    benchmark: Benchmark,
    stored: Stored,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
) -> Iterator[list[tuple[Case, list[AskedPair]]]]:
    """Make prompts ready for some cases at a time."""
    portion: list[tuple[Case, list[AskedPair]]] = []
    ready = 0
    for case in benchmark.cases:
        if case.questions:
            pairs = list(asked_pairs(case, stored, policies, schedules, manner))
            portion.append((case, pairs))
            ready += 2 * manner.draws * len(pairs)
        if ready >= _MANY:
            yield portion
            portion, ready = [], 0
    if portion:
        yield portion


def _cells(pairs: Iterable[AskedPair], manner: Manner) -> Iterator[Cell]:
    for pair in pairs:
        if pair.prompts is not None:
            group = "\0".join((pair.policy, pair.schedule, pair.question.id, pair.filler))
            for side, (prompt, route) in enumerate(
                zip(pair.prompts, ("forward", pair.schedule), strict=True)
            ):
                for draw in manner.numbers(side):
                    yield Cell(prompt.ask(draw), pair.question.id, route, group)


def _collect(
    run: Run,
    model: Model,
    pairs: Sequence[AskedPair],
    asking: Asking,
    batch: str,
    progress: Callable[[str, Progress], None] | None,
) -> Answers:
    manner = asking.manner
    collected = collect(
        run,
        model,
        list(_cells(pairs, manner)),
        batch=batch,
        progress=None if progress is None else lambda now: progress(model.name, now),
        rate_limit=asking.rate_limit,
        concurrency=asking.concurrency,
    )
    said: dict[AskedPair, tuple[list[str], list[str]]] = {}
    first: dict[AskedPair, bool] = {}
    for pair in pairs:
        if pair.prompts is None:
            continue
        sides: tuple[list[str], list[str]] = ([], [])
        places: list[int] = []
        for side, prompt in enumerate(pair.prompts):
            for draw in manner.numbers(side):
                answer = collected.of(Cell(prompt.ask(draw), "", ""))
                if answer is None:
                    break
                sides[side].append(_NO_ANSWER.get(answer.outcome) or answer.answer or "")
                places.append(answer.submission)
        if len(places) == 2 * manner.draws:  # a pair with a failed request waits for the next run
            said[pair] = sides
            first[pair] = places[0] < places[manner.draws]
    verdicts = _verdicts(run, said, asking, batch)
    draws = {pair: draws_of(pair, sides, verdicts[pair]) for pair, sides in said.items()}
    return Answers(collected, draws, first)


def _verdicts(
    run: Run,
    said: Mapping[AskedPair, tuple[list[str], list[str]]],
    asking: Asking,
    batch: str,
) -> dict[AskedPair, tuple[list[bool], list[bool]]]:
    """Say of every answer whether it is right; an unreadable verdict is not."""
    verdicts: dict[AskedPair, tuple[list[bool], list[bool]]] = {}
    items: list[Judged] = []
    places: list[tuple[AskedPair, int]] = []
    for pair, sides in said.items():
        gold = pair.question.gold
        if gold is None or pair.question.options:
            right = tuple([answer == gold for answer in side] for side in sides)
            verdicts[pair] = (right[0], right[1])
            continue
        verdicts[pair] = ([], [])
        kind = rubric_of(pair.question.detail or pair.question.kind, pair.question.id)
        for side, answers in enumerate(sides):
            for answer in answers:
                items.append(Judged(pair.question.text, gold, answer, kind))
                places.append((pair, side))
    judge = asking.judge
    if isinstance(judge, ModelJudge) and judge.run is None:
        judge = replace(judge, run=run)
    for (pair, side), verdict in zip(
        places, judge_all(judge, items, batch=batch) if items else [], strict=True
    ):
        verdicts[pair][side].append(bool(verdict.correct))
    return verdicts


def _dispatch_rows(tally: Tally[Key], setting: Setting) -> list[EstimateRow]:
    """Compare pairs whose forward prompt was submitted first with the others, within units."""
    rows = []
    for column, stratum in tally.keys():  # noqa: SIM118 (a method of its own)
        if column.arm == "forward-first" and stratum == "all":
            groups = ((column, stratum), (column._replace(arm="route-first"), stratum))
            named = column._replace(quantity=f"dispatch.{column.quantity}", arm="")
            row = difference_row(tally, setting, named, stratum, groups)
            if row is not None:
                rows.append(row)
    return rows


def _notes(reasons: Mapping[str, int], outcomes: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    notes = [
        f"{number} pairs could not be matched and are in no matched estimate: {reason}"
        for reason, number in reasons.items()
    ]
    for (model, outcome), number in outcomes.items():
        if number and outcome in _NO_ANSWER:
            notes.append(f"{model}: {number} answers were {outcome}; each counts as its own answer")
        if number and outcome == "failed":
            notes.append(f"{model}: {number} requests failed; the same command asks for them again")
    return tuple(notes)
