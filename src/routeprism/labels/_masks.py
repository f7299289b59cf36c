"""Masks: the questions that an estimate covers, chosen without looking at any outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from routeprism.errors import InputError, SpecError, closest, nearest
from routeprism.inputs import read_input
from routeprism.labels._cards import UNREAD
from routeprism.labels._readings import Readings, same_cards
from routeprism.records import Benchmark
from routeprism.spreadsheets import decode_text, read_table

__all__ = [
    "RULES",
    "Mask",
    "Rule",
    "admissible",
    "combine",
    "gate",
    "intersect",
    "mask_from_file",
    "taxonomy",
]

Rule: TypeAlias = Literal["intersection", "majority", "unanimity"]
RULES: tuple[Rule, ...] = get_args(Rule)


@dataclass(frozen=True, slots=True)
class Mask:
    """A named set of questions."""

    name: str
    """The value of the column `mask`."""
    question_ids: frozenset[str]
    """The questions that it includes."""
    description: str
    """How it was chosen, in words."""

    def __post_init__(self) -> None:
        if not self.name:
            raise SpecError("Expected a mask with a name")

    def __len__(self) -> int:
        return len(self.question_ids)

    def __contains__(self, question: str) -> bool:
        return question in self.question_ids


def admissible(readings: Readings, *, name: str = "") -> Mask:
    """Select the questions that one screening found admissible."""
    labels = readings.screened()
    return Mask(
        name or readings.name,
        frozenset(id for id, label in labels.items() if label == "admissible"),
        f"admissible by {readings.name} ({readings.source}, rubric '{readings.rubric}')",
    )


def combine(rule: Rule, passes: Sequence[Readings]) -> Mapping[str, str]:
    """Combine the labels that several screenings give to each question (Appendix B.5).

    `majority`: the label that more than half of the passes gave; without one, `ambiguous`. A pass
    that could not read the card counts as a pass without a label. `unanimity`: `admissible` if
    every pass gives that label, else `inadmissible`. `intersection`: the same for exactly two.
    """
    if rule not in RULES:
        raise SpecError(f"There is no rule '{rule}'. {nearest(rule, RULES)}")
    least, most = (2, 2) if rule == "intersection" else (2, len(passes))
    if not least <= len(passes) <= most:
        expected = "2" if rule == "intersection" else "2 or more"
        raise SpecError(f"Expected {expected} passes for '{rule}' but got {len(passes)}")
    same_cards(passes)
    labels = [readings.screened() for readings in passes]
    choose = _choose_majority if rule == "majority" else _choose_unanimous
    return {id: choose([screened[id] for screened in labels]) for id in labels[0]}


def _choose_majority(labels: Sequence[str]) -> str:
    for label, number in Counter(labels).items():
        if 2 * number > len(labels) and label != UNREAD:
            return label
    return "ambiguous"


def _choose_unanimous(labels: Sequence[str]) -> str:
    return "admissible" if set(labels) == {"admissible"} else "inadmissible"


def gate(rule: Rule, passes: Sequence[Readings], *, name: str = "") -> Mask:
    """Select the questions that several screenings together find admissible."""
    labels = combine(rule, passes)
    names = ",".join(readings.name for readings in passes)
    how = {
        "intersection": "admissible by both of",
        "majority": "admissible by more than half of",
        "unanimity": "admissible by all of",
    }
    return Mask(
        name or f"{rule}({names})",
        frozenset(id for id, label in labels.items() if label == "admissible"),
        f"{how[rule]} {', '.join(f'{each.name} ({each.source})' for each in passes)}",
    )


def intersect(masks: Sequence[Mask], *, name: str = "") -> Mask:
    """Select the questions that are in every mask, such as two rubrics' (Appendix N.3)."""
    if not masks:
        raise SpecError("Expected at least one mask but got none")
    return Mask(
        name or "&".join(mask.name for mask in masks),
        frozenset.intersection(*(mask.question_ids for mask in masks)),
        "in all of: " + "; ".join(mask.description for mask in masks),
    )


def taxonomy(benchmark: Benchmark, kinds: Sequence[str], *, name: str = "") -> Mask:
    """Select questions of some kinds of the benchmark's own taxonomy."""
    questions: dict[str, list[str]] = {}
    for case in benchmark.cases:
        for question in case.questions:
            questions.setdefault(question.kind, []).append(question.id)
    for kind in kinds:
        if kind not in questions:
            raise SpecError(
                f"benchmark '{benchmark.name}' has no questions of kind '{kind}'. "
                + nearest(kind, questions)
            )
    return Mask(
        name or f"kinds({','.join(kinds)})",
        frozenset(id for kind in kinds for id in questions[kind]),
        f"of kind {', '.join(kinds)} in the taxonomy of '{benchmark.name}'",
    )


def mask_from_file(path: Path, benchmark: Benchmark, *, name: str = "") -> Mask:
    """Read question ids from a file: one on each line, or a table with a column `question`."""
    ids = {question.id for case in benchmark.cases for question in case.questions}
    lines: dict[str, int] = {}
    for line, id in _list_questions(path):
        problem = ""
        if id not in ids:
            problem = f"benchmark '{benchmark.name}' has no question '{id}'. {closest(id, ids)}"
        elif id in lines:
            problem = f"the question '{id}' is in line {lines[id]} already"
        if problem:
            raise InputError(problem, file=path, line=line, field="question")
        lines[id] = line
    if not lines:
        raise InputError("there is no question in it", file=path)
    return Mask(name or path.stem, frozenset(lines), f"the questions listed in {path.name}")


def _list_questions(path: Path) -> Iterable[tuple[int, str]]:
    content = read_input(path)
    try:
        rows = read_table(content, path, [["question"]])
    except InputError:
        if path.suffix.lower() in (".csv", ".tsv"):
            raise
        lines = enumerate(decode_text(content, path).splitlines(), start=1)
        return [(at, line.strip()) for at, line in lines if line.strip()]
    for row in rows:
        if not row.get("question"):
            raise row.error("no question is named", "question")
    return [(row.line, row.get("question")) for row in rows]
