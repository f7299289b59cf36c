"""Which models are asked, and the answers to any set of comparisons."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from routeprism.answers import (
    AnswerProgress,
    Cell,
    Collected,
    Comparison,
    Cost,
    EmbeddedJudge,
    Grade,
    Judge,
    Judged,
    ModelJudge,
    RecordedJudge,
    collect,
    judge_all,
    parse,
    plan,
    plan_judging,
    rubric_of,
)
from routeprism.errors import InputError
from routeprism.exhibits import Statement
from routeprism.experiments._experiment import AnswerNames, Place, name_answer
from routeprism.experiments._rows import Setting
from routeprism.models import Allowance, Model
from routeprism.models.recorded import Inspection, Recorded, RecordedAnswer
from routeprism.printing import pluralise
from routeprism.prompts import Control, Filler, Provenance
from routeprism.records import Question
from routeprism.runs import Answer, EstimateRow, Key, Ledger, Run
from routeprism.workers import RayCluster

_MOST_REQUESTS = 4_000
"""How many requests are prepared at once: prompts are long, so not all of them."""
_MOST_CHARACTERS = 50_000_000
"""How many characters of prompts are prepared at once."""
_NO_ANSWER = {"refused": "(refused)", "unparsable": "(unparsable)"}
"""A refused or unparsable answer counts as an answer, never a guess and never correct."""
_UNDECIDED = "undecided"
"""The outcome under which answers are counted that the judge did not decide."""
_MARKED = "marked"
"""The outcome under which answers are counted that could not be stored as they came."""

Sides = tuple[tuple[str, ...], ...]
"""For each side its symbols (option letters, or texts), draw by draw."""
Verdicts = tuple[tuple[bool, ...], ...]
"""For each side whether its answers are right, draw by draw."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How prompts are made and how often each is asked."""

    draws: int = 1
    """Answers per route and prompt; two or more give a residual."""
    control: Control = "exact"
    """Which properties the prompts of a pair share."""
    fillers: tuple[Filler, ...] = ("A",)
    """Which padding words are used, each with its own pair of prompts."""
    provenance: Provenance = "preserved"
    """What the prompt says about conflicting records."""
    allocate: bool = False
    """Whether a pilot decides how many of the draws each prompt gets."""
    first: int = 0
    """The first draw of each side, where earlier ones are a pilot."""
    stride: int = 0
    """The distance between the draw numbers of two sides; 0 for the number of draws."""

    def numbers(self, side: int) -> range:
        """Return a side's draw numbers; two sides of a comparison never share one (PROTOCOL §6)."""
        start = side * (self.stride or self.draws) + self.first
        return range(start, start + self.draws)


@dataclass(frozen=True, slots=True)
class Asking:
    """The models that are asked, the form of the prompts, and the judge of free text."""

    models: tuple[Model, ...]
    manner: Manner = field(default_factory=Manner)
    batches: tuple[str, ...] = ("",)
    """Independent realisations of the same prompts, by name."""
    judge: Judge = field(default_factory=EmbeddedJudge)
    """For free text; options need none."""
    rate_limit: float | None = None
    concurrency: int | None = None
    allowance: Allowance | None = None
    """The calls and the money that the command may still spend."""
    cluster: RayCluster | None = field(default=None, compare=False)
    """Where models that compute in this process answer instead."""
    instructions: tuple[Provenance, ...] = ()
    """All instructions that are compared; the first is the one of `manner`."""

    def described(self) -> Mapping[str, object]:
        """Describe what makes the answers comparable, for the manifest."""
        return {
            "models": {model.name: dict(model.settings) for model in self.models},
            "prompt_control": self.manner.control,
            "fillers": list(self.manner.fillers),
            "provenance": self.manner.provenance,
            "judge": self.judge.name,
            "draws": self.manner.draws,
            **({"allocate": True} if self.manner.allocate else {}),
            "batches": list(self.batches),
        }

    def setting(self, setting: Setting) -> Setting:
        """Add to a setting which models are embedded and how many draws there are."""
        embedded = {*setting.embedded, *(m.name for m in self.models if m.embedded)}
        if self.judge.embedded:
            embedded.add(self.judge.name)
        return replace(setting, embedded=embedded, draws=self.manner.draws)


@dataclass(frozen=True, slots=True)
class Answers:
    """One model's answers to some comparisons; one with a failed request is not in it."""

    collected: Collected
    symbols: Mapping[Comparison, Sides]
    right: Mapping[Comparison, Verdicts]
    """For each side its verdicts; empty where the right answer is not known."""
    first: Mapping[Comparison, int]
    """Which side was submitted first, where that is known."""
    undecided: int = 0
    """How many answers the judge did not decide."""


AnswersByModel = Mapping[tuple[str, str], Answers]
"""Answers by (model, batch)."""


def _make_cells(comparison: Comparison, side: int, manner: Manner) -> list[Cell]:
    """Make the cells of one side, one for each draw."""
    name, prompt = comparison.sides[side]
    place = _name_side(comparison, name, manner)
    return [
        Cell(
            replace(prompt.ask(draw), place=place, turn=turn),
            comparison.question.id,
            name,
            comparison.group,
            comparison.series,
        )
        for turn, draw in enumerate(manner.numbers(side))
    ]


def _list_cells(comparisons: Iterable[Comparison], manner: Manner) -> list[Cell]:
    return [
        cell
        for comparison in comparisons
        for side in range(len(comparison.sides))
        for cell in _make_cells(comparison, side, manner)
    ]


def _name_side(comparison: Comparison, side: str, manner: Manner) -> Place:
    names = AnswerNames(
        comparison.question.id,
        comparison.policy,
        comparison.schedule,
        comparison.filler,
        comparison.condition,
        side,
    )
    return name_answer(comparison.experiment, names, manner.control)


def measure_load(comparisons: Iterable[Comparison], manner: Manner) -> float:
    """Measure prompts as a share of what is prepared at once; 1 is enough."""
    lengths = [len(prompt.text) for item in comparisons for prompt in item.prompts]
    requests = manner.draws * len(lengths)
    return max(requests / _MOST_REQUESTS, sum(lengths) / _MOST_CHARACTERS)


def price_comparisons(
    comparisons: Sequence[Comparison],
    asking: Asking,
    ledger: Ledger,
    costs: dict[str, Cost],
    planned: set[Key],
) -> None:
    """Add to the costs by model what comparisons take; answers that are shared count once."""
    cells = _list_cells(comparisons, asking.manner)
    for model in asking.models:
        for batch in asking.batches:
            cost = plan(cells, ledger, model, batch=batch, planned=planned)
            costs[model.name] = cost.add_to(costs.get(model.name))
            if judging := _price_judging(comparisons, asking, cost.calls or 0):
                name = f"{asking.judge.name} (judging)"
                costs[name] = judging.add_to(costs.get(name))


def _price_judging(comparisons: Sequence[Comparison], asking: Asking, calls: int) -> Cost | None:
    """Price a model that judges new answers; None where it has nothing to judge."""
    free = [c for c in comparisons if c.question.gold is not None and not c.question.options]
    answers = asking.manner.draws * sum(len(comparison.sides) for comparison in free)
    if not isinstance(asking.judge, ModelJudge) or not min(answers, calls):
        return None
    unread = [_make_judged(comparison.question, "") for comparison in free]
    return plan_judging(asking.judge, unread, min(answers, calls))


def inspect_answers(
    comparisons: Sequence[Comparison], asking: Asking, inspections: Mapping[str, Inspection]
) -> None:
    """Look up in files of recorded answers what comparisons will read."""
    for model in asking.models:
        if not isinstance(model, Recorded):
            continue
        for comparison in comparisons:
            for cell in _list_cells([comparison], asking.manner):
                for batch in asking.batches:
                    entry = inspections[model.name].look(replace(cell.ask, batch=batch))
                    if entry is not None:
                        _check_verdict(entry, comparison.question, model, asking)


def _check_verdict(
    entry: RecordedAnswer, question: Question, model: Recorded, asking: Asking
) -> None:
    """Refuse a recorded verdict that contradicts the benchmark, or that is missing."""
    if question.gold is None:
        return
    wrong = ""
    if question.options:
        right = parse(entry.answer, question.options).answer == question.gold
        if entry.correct is not None and entry.correct is not right:
            wrong = (
                f"says that the answer {entry.answer!r:.40} to question {question.id} is "
                f"{'right' if entry.correct else 'wrong'}, but '{question.gold}' is right here"
            )
    elif entry.correct is None and isinstance(asking.judge, RecordedJudge):
        wrong = (
            f"there is no verdict for question {question.id}, although other questions have one; "
            f"add the missing verdicts, or pass judge=embedded or judge=MODEL"
        )
    if wrong:
        raise InputError(wrong, file=model.file, line=entry.line, field="correct")


def collect_answers(
    comparisons: Sequence[Comparison],
    asking: Asking,
    run: Run,
    progress: AnswerProgress | None,
    pools: Mapping[str, int],
    *,
    store: bool = True,
) -> dict[tuple[str, str], Answers]:
    """Collect the answers of every model and batch, and store which comparison reads which.

    `pools` has the number of the pool of each question.
    """
    cells = _list_cells(comparisons, asking.manner)
    if store:
        store_comparisons(comparisons, asking.manner, run)
    answers: dict[tuple[str, str], Answers] = {}
    for model in asking.models:
        for batch in asking.batches:
            name = model.name
            collected = collect(
                run,
                model,
                cells,
                batch=batch,
                pools=pools,
                progress=None if progress is None else partial(progress, name),
                rate_limit=asking.rate_limit,
                concurrency=asking.concurrency,
                allowance=asking.allowance,
                cluster=asking.cluster,
            )
            answers[name, batch] = _read_answers(comparisons, asking, run, collected)
    return answers


def store_comparisons(comparisons: Sequence[Comparison], manner: Manner, run: Run) -> None:
    """Store which prompts and draws each comparison reads."""
    run.add("comparisons", [row for c in comparisons for row in _list_sides(c, manner)])


def _list_sides(comparison: Comparison, manner: Manner) -> Iterator[Sequence[str | int]]:
    """Describe for the store the prompt and the draws of each side, or why there are none."""
    names = (
        comparison.experiment,
        comparison.policy,
        comparison.schedule,
        comparison.question.id,
        comparison.filler,
        comparison.condition,
    )
    if not comparison.prompts:
        yield *names, "", "", 0, 0, "", 0, "[]", 0, 0, "[]", comparison.reason
    for side, (name, prompt) in enumerate(comparison.sides):
        draws = manner.numbers(side)
        place = "@".join(value for _, value in _name_side(comparison, name, manner))
        spans = comparison.records[side] if comparison.records else ()
        padding, span = json.dumps(prompt.padding), prompt.evidence_span
        parts = (prompt.tokens, padding, span.start, span.end, json.dumps(spans), "")
        yield *names, name, prompt.sha256, draws.start, len(draws), place, *parts


def _read_answers(
    comparisons: Sequence[Comparison], asking: Asking, run: Run, collected: Collected
) -> Answers:
    symbols: dict[Comparison, Sides] = {}
    recorded: dict[Comparison, tuple[tuple[bool | None, ...], ...]] = {}
    first: dict[Comparison, int] = {}
    elsewhere = isinstance(collected.model, Recorded)  # it was not asked in the order of this run
    for comparison in comparisons:
        sides = _find_answers(comparison, asking.manner, collected)
        if not sides:
            continue
        symbols[comparison] = tuple(
            tuple(_NO_ANSWER.get(a.outcome) or a.answer or "" for a in side) for side in sides
        )
        recorded[comparison] = tuple(tuple(a.correct for a in side) for side in sides)
        places = [side[0].order if elsewhere else side[0].submission for side in sides]
        places_in_file = [place for place in places if place is not None]
        if len(places_in_file) == len(places):
            first[comparison] = places.index(min(places_in_file))
    right, undecided = _judge_answers(symbols, recorded, asking, run, collected.batch)
    return Answers(collected, symbols, right, first, undecided)


def _find_answers(
    comparison: Comparison, manner: Manner, collected: Collected
) -> list[list[Answer]]:
    """Return the answers of every side; nothing if one is missing, which waits for the next run."""
    sides: list[list[Answer]] = []
    for side in range(len(comparison.sides)):
        answers = [collected.of(cell) for cell in _make_cells(comparison, side, manner)]
        available = [answer for answer in answers if answer is not None]
        if len(available) < len(answers):
            return []
        sides.append(available)
    return sides


def _make_judged(question: Question, response: str) -> Judged:
    kind = rubric_of(question.detail or question.kind, question.id)
    return Judged(question.text, question.gold or "", response, kind)


def _judge_answers(
    symbols: Mapping[Comparison, Sides],
    recorded: Mapping[Comparison, tuple[tuple[bool | None, ...], ...]],
    asking: Asking,
    run: Run,
    batch: str,
) -> tuple[dict[Comparison, Verdicts], int]:
    """Decide which answers are right, and count those that the judge did not decide."""
    right: dict[Comparison, Verdicts] = {}
    unjudged: list[Comparison] = []
    for comparison, sides in symbols.items():
        gold = comparison.question.gold
        if comparison.question.options or gold is None:
            right[comparison] = _compare_with_gold(sides, gold)
        elif isinstance(asking.judge, RecordedJudge):
            right[comparison] = tuple(tuple(map(bool, side)) for side in recorded[comparison])
        else:
            unjudged.append(comparison)
    texts = [
        _make_judged(comparison.question, answer)
        for comparison in unjudged
        for side in symbols[comparison]
        for answer in side
    ]
    decisions = _ask_judge(texts, asking, run, batch) if texts else []
    verdicts = iter(decisions)
    for comparison in unjudged:
        judged = [[next(verdicts) for _ in side] for side in symbols[comparison]]
        right[comparison] = _read_verdicts(judged)
    undecided = sum(verdict.correct is None and not verdict.missing for verdict in decisions)
    return right, undecided


def _compare_with_gold(sides: Sides, gold: str | None) -> Verdicts:
    if gold is None:
        return ()
    return tuple(tuple(answer == gold for answer in side) for side in sides)


def _read_verdicts(judged: Sequence[Sequence[Grade]]) -> Verdicts:
    """Return the verdicts of all sides; nothing if one is missing."""
    if any(verdict.missing for side in judged for verdict in side):
        return ()
    return tuple(tuple(bool(verdict.correct) for verdict in side) for side in judged)


def _ask_judge(texts: Sequence[Judged], asking: Asking, run: Run, batch: str) -> list[Grade]:
    judge = asking.judge
    if isinstance(judge, ModelJudge) and judge.run is None:
        judge = replace(judge, run=run)
    return list(
        judge_all(
            judge,
            texts,
            batch=batch,
            rate_limit=asking.rate_limit,
            concurrency=asking.concurrency,
            allowance=asking.allowance,
            cluster=asking.cluster,
        )
    )


def count_unread(symbols: Sequence[str]) -> int:
    """Count the draws that were refused or unparsable."""
    return sum(symbol in _NO_ANSWER.values() for symbol in symbols)


def leave_out_silent(
    rows: Sequence[EstimateRow], outcomes: Mapping[tuple[str, str], int], experiment: str
) -> tuple[list[EstimateRow], tuple[Statement, ...]]:
    """Remove the rows of models none of whose answers could be read, with a statement for each."""
    silent: dict[str, int] = {}
    for model in dict.fromkeys(model for model, _ in outcomes):
        unread = sum(outcomes.get((model, outcome), 0) for outcome in _NO_ANSWER)
        if unread and not outcomes.get((model, "answered"), 0):
            silent[model] = unread
    statements = tuple(
        Statement(
            (
                f"none of its {number} answers for {experiment} could be read (refused or "
                f"unparsable), so nothing can be concluded from them",
            ),
            experiment,
            severity="warning",
            scope=model,
        )
        for model, number in silent.items()
    )
    return [row for row in rows if row.model not in silent], statements


def count_outcomes(outcomes: Counter[tuple[str, str]], answers: AnswersByModel) -> None:
    """Add up how answers ended, by (model, outcome)."""
    for (model, _), results in answers.items():
        for outcome, number in results.collected.outcomes.items():
            outcomes[model, outcome] += number
        outcomes[model, _MARKED] += sum(bool(a.marks) for a in results.collected.answers.values())
        outcomes[model, _UNDECIDED] += results.undecided


_NOTES = {
    **{name: f"{{answers}} {name}; each counts as its own answer" for name in _NO_ANSWER},
    "failed": "{requests} failed; run the same command to retry",
    _MARKED: "{answers} stored with a mark, because the reply contained characters or token counts "
    "that cannot be stored; the table marks of run.sqlite explains each of them",
    _UNDECIDED: "{answers} given neither yes nor no by the judge; each counts as wrong",
}
"""What a reader should know about answers that ended in some way."""


def describe_outcomes(outcomes: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
    """Describe how many answers were missing or special, by (model, outcome)."""
    notes = []
    for (model, outcome), number in outcomes.items():
        if number and outcome in _NOTES:
            answers = "1 answer was" if number == 1 else f"{number} answers were"
            requests = pluralise(number, "request")
            note = _NOTES[outcome].format(answers=answers, requests=requests)
            notes.append(f"{model}: {note}")
    return tuple(notes)
