"""Whether a free-text answer is right, by a model or by counting words.

A judge sees the question, the gold answer and the response, and nothing that tells where the
response came from. The rubrics are those of LongMemEval (PROTOCOL §5) in our own words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from routeprism import specs
from routeprism.answers._cells import Cell, Cost, money
from routeprism.answers._collector import collect
from routeprism.errors import SpecError
from routeprism.models import Allowance, Ask, Model, make_model, registered_models
from routeprism.records import normalise
from routeprism.runs import Run
from routeprism.text import tokens
from routeprism.workers import RayCluster


@dataclass(frozen=True, slots=True)
class Judged:
    """A response to judge; a judge sees nothing else."""

    question: str
    gold: str
    """The right answer, or the rubric of a preference."""
    response: str
    kind: str = ""
    """Which rubric: a LongMemEval type, or `factual`, `temporal`, `update`, `preference`,
    `abstention`."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What a judge decides about one answer; `correct` is None if its reply cannot be read."""

    correct: bool | None
    raw: str = ""
    missing: bool = False
    """Whether the judge could not be asked; a repeated command asks again."""


@runtime_checkable
class Judge(Protocol):
    """Decides whether a response is right."""

    @property
    def name(self) -> str:
        """The value of the column `judge`."""

    @property
    def embedded(self) -> bool:
        """Whether it is built into this package; every output then marks its verdicts."""

    def judge(self, question: str, gold: str, response: str, kind: str) -> Grade:
        """Judge one response."""


_RUBRICS = {
    "factual": (
        "The response is right if it contains the correct answer, says the same in other words, or "
        "goes through every intermediate step that leads to it. It is wrong if it gives only a "
        "part of what the correct answer asks for."
    ),
    "temporal": (
        "The response is right if it contains the correct answer, says the same in other words, or "
        "goes through every intermediate step that leads to it. It is wrong if it gives only a "
        "part of it. Forgive a count of days, weeks or months that is off by one."
    ),
    "update": (
        "The correct answer is the most recent state of something that changed. The response is "
        "right if it gives that updated answer, even if it mentions the earlier one beside it."
    ),
    "preference": (
        "In place of a correct answer there is a description of what a response suited to this "
        "user would take up. The response is right if it recalls what the user told about "
        "themselves and makes proper use of it; it need not meet every point."
    ),
    "abstention": (
        "The question cannot be answered from what is known; the text below explains why. The "
        "response is right if it recognises that, for instance by saying that the information is "
        "missing or that something else was mentioned instead."
    ),
}

_TYPES = {
    "single-session-user": "factual",
    "single-session-assistant": "factual",
    "multi-session": "factual",
    "temporal-reasoning": "temporal",
    "knowledge-update": "update",
    "single-session-preference": "preference",
}


def rubric_of(kind: str, question_id: str = "") -> str:
    """Name the rubric for a question's type; an id with `_abs` is an abstention."""
    if "_abs" in question_id:
        return "abstention"
    name = _TYPES.get(kind, kind)
    return name if name in _RUBRICS else "factual"


def ask_judge(item: Judged) -> Ask:
    """Write the question to the judge."""
    gold = {"preference": "Description", "abstention": "Explanation"}
    rubric = rubric_of(item.kind)
    text = (
        "Decide whether a response answers a question correctly.\n\n"
        f"{_RUBRICS[rubric]}\n\n"
        f"Question:\n{item.question}\n\n"
        f"{gold.get(rubric, 'Correct answer')}:\n{item.gold}\n\n"
        f"Response to judge:\n{item.response}\n\n"
        "Is the response right? Reply with one word, yes or no."
    )
    return Ask(text=text, memory="", question=item.question, options=(), draw=0)


@dataclass(frozen=True, slots=True)
class ModelJudge:
    """Asks a model for yes or no under the rubric of the question's kind."""

    model: Model
    run: Run | None = None
    """The run whose ledger stores its verdicts."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def embedded(self) -> bool:
        """Whether its model is built into this package."""
        return self.model.embedded

    def judge(self, question: str, gold: str, response: str, kind: str) -> Grade:
        """Judge one response."""
        return judge_all(self, [Judged(question, gold, response, kind)])[0]


@dataclass(frozen=True, slots=True)
class EmbeddedJudge:
    """Counts words: no model, no download, and not the judgement of a reader."""

    threshold: float = 0.5
    """The token F1 at which a response counts as correct without containing the gold answer."""

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise SpecError(
                f"Expected a threshold in (0, 1] but got threshold={self.threshold} for 'embedded'"
            )

    @property
    def name(self) -> str:
        """Its name, with the threshold."""
        return f"embedded:f1={self.threshold:g}"

    @property
    def embedded(self) -> bool:
        """True: it is part of this package."""
        return True

    def judge(self, question: str, gold: str, response: str, kind: str) -> Grade:
        """Look for the gold answer's words in one piece, else compare the bags of words."""
        if rubric_of(kind) == "abstention":
            return Grade(bool(_ABSTAINS.search(normalise(response))))
        expected, actual = normalise(gold), normalise(response)
        if not expected or not actual:
            return Grade(gold.strip() == response.strip())
        contained = f" {expected} " in f" {actual} "
        return Grade(contained or token_f1(expected, actual) >= self.threshold)


@dataclass(frozen=True, slots=True)
class RecordedJudge:
    """Takes the verdicts that were recorded with the answers; it sees no response."""

    @property
    def name(self) -> str:
        """The name for verdicts that come with the answers."""
        return "recorded"

    @property
    def embedded(self) -> bool:
        """False: the verdicts come from elsewhere."""
        return False

    def judge(self, question: str, gold: str, response: str, kind: str) -> Grade:
        """Refuse: there is a verdict for each recorded answer, and none for a text."""
        raise SpecError("the judge 'recorded' applies only to answers of recorded:FILE")


def make_judge(text: str, *, base_url: str | None = None) -> Judge:
    """Return the judge that a user named.

    That is `embedded`, a judge of an installed package, `package.module:Name`, or a model's spec.
    """
    head = text.partition(":")[0]
    if text == "embedded":
        return EmbeddedJudge()
    if head not in registered_models():
        spec = specs.parse(text)
        try:
            factory = specs.find_extension("judges", spec)
        except specs.NoSuchModuleError:
            factory = None  # a misspelt model, which the model's error says
        if factory is not None:
            judge: Judge = specs.construct(factory, spec) if callable(factory) else factory
            if not specs.fulfils(judge, Judge):
                raise SpecError(f"'{spec.name}' is not a judge: it needs name, embedded and judge")
            return judge
    return ModelJudge(make_model(text, base_url=base_url))


def token_f1(left: str, right: str) -> float:
    """Return the harmonic mean of token precision and recall of two normalised texts."""
    first, second = left.split(), right.split()
    shared = sum((Counter(first) & Counter(second)).values())
    return 2 * shared / (len(first) + len(second)) if shared else 0.0


def judge_all(
    judge: Judge,
    items: Sequence[Judged],
    *,
    batch: str = "",
    rate_limit: float | None = None,
    concurrency: int | None = None,
    allowance: Allowance | None = None,
    cluster: RayCluster | None = None,
) -> list[Grade]:
    """Judge many; a model judges several at a time, through its ledger, and equal items once."""
    if not isinstance(judge, ModelJudge):
        return [judge.judge(item.question, item.gold, item.response, item.kind) for item in items]
    cells = [Cell(ask_judge(item), "", "judge", group="judge") for item in items]
    collected = collect(
        judge.run,
        judge.model,
        cells,
        batch=batch,
        rate_limit=rate_limit,
        concurrency=concurrency,
        allowance=allowance,
        cluster=cluster,
    )
    answers = (collected.of(cell) for cell in cells)
    return [
        Grade(None, missing=True) if answer is None else read_verdict(answer.raw)
        for answer in answers
    ]


def plan_judging(judge: ModelJudge, items: Sequence[Judged], calls: int) -> Cost:
    """Estimate the cost of the verdicts before there is any response to read."""
    input_tokens = sum(tokens.count(ask_judge(item).text) for item in items) * calls // len(items)
    cost, most = money(judge.model, calls, input_tokens)
    note = "at most, and without the answers that it reads"
    return Cost(calls, 0, calls, input_tokens, cost, most, note, estimated=True)


_ABSTAINS = re.compile(
    r"\b(?:(?:do|does|did|is|are|was|were|has|have|can|could) ?not|dont|doesnt|didnt|isnt|arent|"
    r"wasnt|cannot|cant|couldnt|never|no|unknown|unclear)\b.*\b(?:know|mention(?:ed)?|information|"
    r"record(?:s|ed)?|say|said|state[ds]?|specif\w+|provide[ds]?|available|found|find|answer\w*|"
    r"determine[ds]?|enough|told|tell)\b|\b(?:unknown|unanswerable|not enough information)\b"
)


def read_verdict(raw: str) -> Grade:
    """Read yes or no; a reply that says both, or neither, decides nothing."""
    text = raw.casefold()
    if lead := _LEADS.match(text):
        return Grade(lead[1] == "yes", raw)
    words = {"yes", "no"}.intersection(re.findall(r"[a-z]+", text))
    return Grade(None if len(words) != 1 else words == {"yes"}, raw)


_LEADS = re.compile(r"\W*(yes|no)\s*(?:[^\w\s]|$)")
"""Yes or no, and then a mark or nothing: `No doubt` is neither."""
