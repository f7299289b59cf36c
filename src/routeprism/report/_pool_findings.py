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

Entry = Mapping[str, Any]
"""One comparison as `experiments` keeps it: its sides and its answers."""
Place = tuple[str, str, str]
"""(policy, schedule, question)."""
ExposedBlocks = Sequence[tuple[str, Sequence[int]]]
"""Blocks that may stand in a prompt: their texts, and the records that they come from."""

_PADDING = {word: re.compile(f"(?:{re.escape(word)}){{8,}}") for word in FILLERS.values()}
"""Fewer fillers are left in the text."""


class Texts:
    """Texts of one chunk, each kept once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Return the place of a text."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """Return them in the order of their places."""
        return list(self._places)


@dataclass(slots=True)
class PoolFindings:
    """The findings of a pool, sorted by what they are about."""

    comparisons: dict[Place, list[tuple[str, Entry]]] = field(default_factory=dict)
    """The questions that models answered, each with its experiment."""
    eligibility: dict[Place, Mapping[str, Any]] = field(default_factory=dict)
    """What restoration decided."""
    losses: dict[str, list[Finding]] = field(default_factory=dict)
    """Why a question loses evidence, by question."""
    anchor: str = ""
    """The question whose state reuse asks the others of; empty where it did not."""
    remaining: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    """All other findings, by question."""


def read_pool_findings(
    stored: StoredRun, questions: Sequence[StoredQuestion], findings: Iterable[tuple[str, Finding]]
) -> PoolFindings:
    """Sort the findings of a pool, each with its experiment, and read its comparisons."""
    findings_of_pool = PoolFindings(comparisons=read_comparisons(stored, questions))
    for experiment, finding in findings:
        if finding.name == "eligibility":
            findings_of_pool.eligibility[finding.policy, finding.schedule, finding.question] = (
                finding.value
            )
        elif finding.name == "losses":
            findings_of_pool.losses.setdefault(finding.question, []).append(finding)
        elif finding.name == "anchor":
            findings_of_pool.anchor = finding.value
        else:
            names = ("name", "policy", "schedule", "value")
            entry = {"experiment": experiment, **{name: getattr(finding, name) for name in names}}
            findings_of_pool.remaining.setdefault(finding.question, []).append(entry)
    return findings_of_pool


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
    ids = set()
    for names, sides in sorted(grouped.items(), key=lambda item: _turn(item[0][0])):
        experiment, policy, schedule, question, filler, condition = names
        prompts = (*names[1:], *(side.prompt_sha256 for side in sides))
        if prompts in ids or (not sides[0].side and not sides[0].reason):
            continue
        ids.add(prompts)
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
    ranks = {item.source: item.rank for item in reversed(registered_experiments())}
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
    groups: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for experiment, policy in sorted(sources):
        for model in configuration.get("models", ()):
            for batch in configuration.get("batches", ()):
                answers = stored.answers(
                    experiment, model=model, batch=batch, policy=policy, user=user
                )
                sides: dict[tuple[str, ...], dict[str, list[TracedAnswer]]] = {}
                for answer in judge_answers(stored, configuration["judge"], answers, questions):
                    cell = answer.answer
                    names = (cell.schedule, cell.question, cell.filler, cell.condition)
                    by_side = sides.setdefault((experiment, policy, *names), {})
                    by_side.setdefault(cell.side, []).append(answer)
                for key, by_side in sides.items():
                    ordered = sorted(by_side.values(), key=lambda answers: answers[0].answer.draw)
                    gold = questions[key[3]].gold
                    groups.setdefault(key, []).append(
                        {
                            "model": model,
                            "batch": batch,
                            "said": [[_symbol(cell) for cell in side] for side in ordered],
                            "right": [[bool(cell.correct) for cell in side] for side in ordered]
                            if gold is not None
                            else [],
                        }
                    )
    return groups


def _symbol(answer: TracedAnswer) -> str:
    cell = answer.answer
    return (cell.answer or "") if cell.outcome == "answered" else f"({cell.outcome})"


@dataclass(frozen=True, slots=True)
class PromptReader:
    """Reads the prompts of a pool: its texts are kept once each, its records have a place."""

    stored: StoredRun
    texts: Texts
    place: Mapping[str, int]
    """Record ids → their position."""

    def show(
        self, experiment: str, entry: Entry, exposures: tuple[ExposedBlocks, ExposedBlocks]
    ) -> dict[str, Any]:
        """Make a comparison ready to be shown; the blocks are those of the pair's two contexts."""
        references = {name_reference(side["name"]) for side in entry["sides"]}
        sides = []
        for side in entry["sides"]:
            blocks = exposures[_on_route(side["name"], references)]
            names = {key: side[key] for key in ("name", "prompt", "tokens")}
            sides.append({**names, "pieces": list(self._cut(side, entry["filler"], blocks))})
        names = {key: entry[key] for key in ("filler", "arm", "reason")}
        return {"experiment": experiment, **names, "sides": sides, "answers": entry["answers"]}

    def _cut(
        self, side: Mapping[str, Any], filler: str, blocks: ExposedBlocks
    ) -> Iterator[list[Any]]:
        """Yield the pieces of a prompt: blocks that come from records, and the text around."""
        text = self.stored.prompt(side["prompt"])
        if not text:
            return
        cuts: list[tuple[int, int, Sequence[int]]] = [
            (start, end, [self.place[record]] if record in self.place else [])
            for record, start, end in side["records"]
        ]
        if not cuts:
            cuts = list(_find_blocks(text, side.get("evidence") or (0, len(text)), blocks))
        at = 0
        for start, end, records in cuts:
            yield from self._frame(text[at:start], filler)
            yield [self.texts.place(text[start:end]), records]
            at = end
        yield from self._frame(text[at:], filler)

    def _frame(self, text: str, filler: str) -> Iterator[list[Any]]:
        """Yield the text around the blocks, with its padding counted instead of written out."""
        word = FILLERS["B" if filler == "B" else "A"]
        padding = _PADDING[word].search(text)
        if padding is None:
            if text:
                yield [self.texts.place(text)]
            return
        start, end = padding.span()
        yield [self.texts.place(text[:start])]
        yield [self.texts.place(word), [], (end - start) // len(word)]
        yield [self.texts.place(text[end:])]


def _on_route(side: str, references: Collection[str]) -> bool:
    """Whether a side reads the compared route: `replay`, or `route-native` of a display."""
    return side not in references and not side.startswith("forward-")


def _find_blocks(
    text: str, evidence: Sequence[int], exposure: ExposedBlocks
) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Find blocks in the evidence, in whatever order they stand there."""
    at, last = evidence
    waiting = {block: (text.find(block, at, last), records) for block, records in exposure if block}
    while waiting := {block: spot for block, spot in waiting.items() if spot[0] >= 0}:
        # Of two that begin at the same place the longer one is there.
        block = min(waiting, key=lambda candidate: (waiting[candidate][0], -len(candidate)))
        start, records = waiting[block]
        if start >= at:
            at = start + len(block)
            yield start, at, records
        waiting[block] = (text.find(block, at, last), records)
