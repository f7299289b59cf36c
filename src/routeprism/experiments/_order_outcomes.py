"""What is asked of every order of a pool: which outcome may change, and what is worst."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeAlias

from routeprism.errors import SpecError, nearest
from routeprism.landscape import Objective, Predicate, Reordering, WorstOrder, say_moves
from routeprism.landscape import moves_of as moves
from routeprism.measures import jaccard
from routeprism.policies import Exposure, Memory
from routeprism.policies._registry import load_object
from routeprism.records import Case, Question

__all__ = [
    "OUTCOMES",
    "Outcome",
    "objective",
    "outcome_named",
    "predicate",
    "reordering_sentence",
    "worst_sentence",
]

Outcome: TypeAlias = "str | Callable[[Memory, Question], Hashable]"
"""`support`, `retained` or `exposed`, or a function of a memory and a question."""

OUTCOMES = {
    "support": "whether at least one supporting record is retained",
    "retained": "which records are retained",
    "exposed": "which records the question is shown",
}
"""The outcomes that have a name."""

_LONGEST = 90
"""How much of a question a sentence quotes."""


def outcome_named(name: str) -> Outcome:
    """Give the outcome that a user named: one of ours, or `package.module:function`."""
    if name in OUTCOMES:
        return name
    if ":" not in name:
        raise SpecError(
            f"There is no outcome '{name}'. {nearest(name, OUTCOMES)} Your own is a function of a "
            f"memory and a question, named 'package.module:name'."
        )
    function = load_object(name)
    if not callable(function):
        raise SpecError(f"Expected a function of a memory and a question but got {name!r}")
    made: Outcome = function
    return made


def predicate(outcome: Outcome, question: Question, support: frozenset[str]) -> Predicate | None:
    """Give what of a memory may change for a question; None where there is nothing to change."""
    if outcome == "support":
        return (lambda memory: bool(memory.retained() & support)) if support else None
    if outcome == "retained":
        return lambda memory: memory.retained()
    if outcome == "exposed":
        return lambda memory: _shown(memory, question).sources
    assert callable(outcome)  # noqa: S101 (every name was handled)
    own = outcome
    return lambda memory: own(memory, question)


def objective(name: str, case: Case, labels: str, forward: Memory) -> Objective | None:
    """Give what the worst order makes lowest; None where no question says anything about it."""
    if name == "support":
        supports = [q.labels[labels] for q in case.questions if q.labels.get(labels)]
        if not supports:
            return None
        return lambda memory: _mean([bool(memory.retained() & support) for support in supports])
    if not case.questions:
        return None
    before = [_shown(forward, question).sources for question in case.questions]
    return lambda memory: _mean(
        [
            jaccard(sources, _shown(memory, question).sources)
            for question, sources in zip(case.questions, before, strict=True)
        ]
    )


def _shown(memory: Memory, question: Question) -> Exposure:
    return memory.expose(question.text)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _quoted(question: Question) -> str:
    text = " ".join(question.text.split())
    return f"«{text}»" if len(text) <= _LONGEST else f"«{text[:_LONGEST].rstrip()}…»"


def reordering_sentence(
    found: Reordering, outcome: Outcome, question: Question, support: frozenset[str]
) -> str:
    """Say in one sentence what the smallest change of order does, or that none does anything."""
    quoted = _quoted(question)
    who = (
        f"the only record supporting {quoted}"
        if len(support) == 1
        else f"all {len(support)} records supporting {quoted}"
    )
    verb = "is" if len(support) == 1 else "are"
    if not found.found:
        sure = "No order changes" if found.exact else f"None of {found.looked} orders tried changes"
        if outcome != "support":
            return f"{sure} the outcome of {quoted}."
        return f"{sure} whether support of {quoted} is kept: it {_kept(found.forward)} in all."
    if outcome != "support":
        return f"{found.instruction}, and the outcome of {quoted} changes."
    if found.forward:
        return f"{found.instruction}, and {who} {verb} dropped."
    step = found.instruction[0].lower() + found.instruction[1:]
    again = "it is kept" if len(support) == 1 else "one of them is kept"
    return f"In source order {who} {verb} dropped already; {step}, and {again}."


def _kept(forward: Any) -> str:
    return "is kept" if forward else "is dropped"


def worst_sentence(found: WorstOrder, name: str, user: str) -> str:
    """Say which order is worst, and whether that is known or only what a search met."""
    what = "share of questions with support kept" if name == "support" else "mean J with forward"
    if not found.value < found.forward:
        sure = "no order lowers" if found.exact else "a search found no order that lowers"
        return f"{user}: {sure} the {what}, {found.forward:.3f} forward"
    sure = "the worst order" if found.exact else f"the worst of {found.looked} orders searched"
    steps = moves(found.order)
    told = say_moves(steps) if len(steps) <= 3 else "the order " + "-".join(map(str, found.order))
    return f"{user}: {what} {found.value:.3f} in {sure} ({told}), {found.forward:.3f} forward"
