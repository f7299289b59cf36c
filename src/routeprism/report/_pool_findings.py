"""The prompts and answers of a question, with the prompts cut into their parts.

A prompt is a list of pieces. `[text]` is its frame, `[text, records]` a block that comes from these
records, `[text, [], times]` padding: the text this many times. Put together they are the prompt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from routeprism.experiments import registered_experiments
from routeprism.orders import name_reference
from routeprism.prompts import FILLERS
from routeprism.review.answers import TracedAnswer, judge_answers
from routeprism.runs import Finding, StoredQuestion, StoredRun, StoredSide

__all__ = ["PoolFindings", "Shown", "Texts", "read_pool_findings", "comparison"]

Entry = Mapping[str, Any]
"""One comparison as `experiments` keeps it: its sides and its answers."""
Place = tuple[str, str, str]
"""(policy, schedule, question)."""
Shown = Sequence[tuple[str, Sequence[int]]]
"""Blocks that may stand in a prompt: their texts, and the records that they come from."""

_PADDING = {word: re.compile(f"(?:{re.escape(word)}){{8,}}") for word in FILLERS.values()}
"""Fewer fillers are left in the text."""


class Texts:
    """Texts of one chunk, each kept once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Give the place of a text."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """Give them in the order of their places."""
        return list(self._places)


@dataclass(slots=True)
class PoolFindings:
    """The findings of a pool, sorted by what they are about."""

    comparisons: dict[Place, list[tuple[str, Entry]]] = field(default_factory=dict)
    """What was asked, each with its experiment."""
    eligibility: dict[Place, Mapping[str, Any]] = field(default_factory=dict)
    """What restoration decided."""
    anchor: str = ""
    """The question whose state reuse asks the others of; empty where it did not."""
    others: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """All other findings, by question."""


def read_pool_findings(
    stored: StoredRun,
    questions: Sequence[StoredQuestion],
    findings: Iterable[tuple[str, Finding]],
) -> PoolFindings:
    """Sort the findings of a pool, each with its experiment, and read its comparisons."""
    found = PoolFindings(comparisons=read_comparisons(stored, questions))
    for experiment, one in findings:
        if one.name == "eligibility":
            found.eligibility[one.policy, one.schedule, one.question] = one.value
        elif one.name == "anchor":
            found.anchor = one.value
        else:
            found.others.setdefault(one.question, []).append(
                {
                    "experiment": experiment,
                    "name": one.name,
                    "policy": one.policy,
                    "schedule": one.schedule,
                    "value": one.value,
                }
            )
    return found


def read_comparisons(
    stored: StoredRun, questions: Sequence[StoredQuestion]
) -> dict[Place, list[tuple[str, Entry]]]:
    """Read a pool's comparisons with their answers: first of the routes, then of interventions.

    A comparison with the prompts of an earlier one, such as that of a reused state, is left out.
    """
    grouped: dict[tuple[str, ...], list[StoredSide]] = {}
    for side in stored.comparison_sides(questions[0].user):
        pair = (side.experiment, side.policy, side.schedule, side.question)
        grouped.setdefault((*pair, side.filler, side.condition), []).append(side)
    answers = _read_answers(stored, questions, {names[:2] for names in grouped})
    comparisons: dict[Place, list[tuple[str, Entry]]] = {}
    known = set()
    for names, sides in sorted(grouped.items(), key=lambda item: _turn(item[0][0])):
        experiment, policy, schedule, question, filler, condition = names
        prompts = (*names[1:], *(side.prompt_sha256 for side in sides))
        if prompts in known or (not sides[0].side and not sides[0].reason):
            continue
        known.add(prompts)
        entry = {
            "filler": filler,
            "arm": condition,
            "reason": sides[0].reason,
            "sides": [
                {
                    "name": side.side,
                    "prompt": side.prompt_sha256,
                    "tokens": side.tokens,
                    "evidence": side.evidence,
                    "records": side.records,
                }
                for side in sides
                if side.side
            ],
            "answers": answers.get(names, []),
        }
        place = comparisons.setdefault((policy, schedule, question), [])
        place.append((experiment, entry))
    return comparisons


def _turn(experiment: str) -> tuple[int, str]:
    """Order experiments by rank; the routes come first."""
    ranks = {one.source: one.rank for one in reversed(registered_experiments())}
    return ranks.get(experiment, len(ranks)), experiment


def _read_answers(
    stored: StoredRun, pool: Sequence[StoredQuestion], sources: Collection[tuple[str, ...]]
) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    """Read what each model said in each batch, side by side, for every complete comparison."""
    if not sources:
        return {}
    configuration = stored.manifest()["configuration"]
    questions = {question.id: question for question in pool}
    user = pool[0].user
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for experiment, policy in sorted(sources):
        for model in configuration.get("models", ()):
            for batch in configuration.get("batches", ()):
                given = stored.answers(
                    experiment, model=model, batch=batch, policy=policy, user=user
                )
                sides: dict[tuple[str, ...], dict[str, list[TracedAnswer]]] = {}
                for answer in judge_answers(stored, configuration["judge"], given, questions):
                    one = answer.given
                    names = (one.schedule, one.question, one.filler, one.condition)
                    by_side = sides.setdefault((experiment, policy, *names), {})
                    by_side.setdefault(one.side, []).append(answer)
                for key, by_side in sides.items():
                    ordered = sorted(by_side.values(), key=lambda answers: answers[0].given.draw)
                    gold = questions[key[3]].gold
                    found.setdefault(key, []).append(
                        {
                            "model": model,
                            "batch": batch,
                            "said": [[_symbol(one) for one in side] for side in ordered],
                            "right": [[bool(one.correct) for one in side] for side in ordered]
                            if gold is not None
                            else [],
                        }
                    )
    return found


def _symbol(answer: TracedAnswer) -> str:
    given = answer.given
    return (given.answer or "") if given.outcome == "answered" else f"({given.outcome})"


def comparison(
    stored: StoredRun,
    named_entry: tuple[str, Entry],
    texts: Texts,
    place: Mapping[str, int],
    shown: tuple[Shown, Shown],
) -> dict[str, Any]:
    """Make one comparison ready to be shown; `shown` are the blocks of the pair's two contexts."""
    experiment, entry = named_entry
    references = {name_reference(side["name"]) for side in entry["sides"]}
    sides = [
        {
            "name": side["name"],
            "prompt": side["prompt"],
            "tokens": side["tokens"],
            "pieces": list(
                _pieces(
                    stored,
                    side,
                    entry["filler"],
                    texts,
                    place,
                    shown[_on_route(side["name"], references)],
                )
            ),
        }
        for side in entry["sides"]
    ]
    return {
        "experiment": experiment,
        "filler": entry["filler"],
        "arm": entry["arm"],
        "reason": entry["reason"],
        "sides": sides,
        "answers": entry["answers"],
    }


def _on_route(side: str, references: Collection[str]) -> bool:
    """Whether a side reads the compared route: `replay`, or `route-native` of a display."""
    return side not in references and not side.startswith("forward-")


def _pieces(
    stored: StoredRun,
    side: Mapping[str, Any],
    filler: str,
    texts: Texts,
    place: Mapping[str, int],
    shown: Shown,
) -> Iterator[list[Any]]:
    text = stored.prompt(side["prompt"])
    if not text:
        return
    cuts: list[tuple[int, int, Sequence[int]]] = [
        (start, end, [place[record]] if record in place else [])
        for record, start, end in side["records"]
    ]
    if not cuts:
        cuts = list(_found(text, side.get("evidence") or (0, len(text)), shown))
    at = 0
    for start, end, records in cuts:
        yield from _frame(text[at:start], filler, texts)
        yield [texts.place(text[start:end]), records]
        at = end
    yield from _frame(text[at:], filler, texts)


def _found(
    text: str, evidence: Sequence[int], shown: Shown
) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Find blocks in the evidence, in whatever order they stand there."""
    at, last = evidence
    waiting = {block: (text.find(block, at, last), records) for block, records in shown if block}
    while waiting := {block: spot for block, spot in waiting.items() if spot[0] >= 0}:
        # Of two that begin at the same place the longer one is there.
        block = min(waiting, key=lambda one: (waiting[one][0], -len(one)))
        start, records = waiting[block]
        if start >= at:
            at = start + len(block)
            yield start, at, records
        waiting[block] = (text.find(block, at, last), records)


def _frame(text: str, filler: str, texts: Texts) -> Iterator[list[Any]]:
    """Give the text around the blocks, with its padding counted instead of written out."""
    word = FILLERS["B" if filler == "B" else "A"]
    padding = _PADDING[word].search(text)
    if padding is None:
        if text:
            yield [texts.place(text)]
        return
    start, end = padding.span()
    yield [texts.place(text[:start])]
    yield [texts.place(word), [], (end - start) // len(word)]
    yield [texts.place(text[end:])]
