"""What passes and files give to a benchmark: masks of its questions, and label sources.

A mask names the questions that an estimate covers, chosen without looking at any outcome. Audited
labels are direct-support sets, beside a benchmark's own labels.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias, get_args

from routeprism.errors import InputError, SpecError, closest, nearest
from routeprism.files import read_input
from routeprism.labels._cards import STALE, UNREAD
from routeprism.labels._readings import Readings, check_name, load_readings, same_cards
from routeprism.records import Benchmark, Case, LazyCases, derive_stale
from routeprism.spreadsheets import decode_text, read_table

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


LabelSets: TypeAlias = Mapping[str, frozenset[str]]
"""Question → the records that a source names for it."""
PREFIX = "audited:"
"""The start of the name of a label source that is made here."""


def audited_labels(readings: Readings) -> LabelSets:
    """Map each question to its direct-support records; an unread question has no entry.

    A question without any direct record has an empty set.
    """
    supported = readings.supported().items()
    return {id: reading.direct for id, reading in supported if not reading.unread}


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The file that labels were read from, which errors name."""

    path: Path | None = None
    """None for labels that were not read from a file."""
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)
    """The line of each (question, record); the record is empty for a question without one."""

    def error(self, problem: str, question: str, record: str = "") -> InputError:
        """Make the error of a label, with its line if the file has lines."""
        lines = [at for (of, id), at in self.lines.items() if of == question and record in ("", id)]
        column = "record" if record else "question"
        return InputError(problem, file=self.path, line=min(lines, default=None), field=column)


_NO_FILE = LabelFile()


def with_labels(
    benchmark: Benchmark, source_name: str, labels: LabelSets, *, file: LabelFile = _NO_FILE
) -> Benchmark:
    """Add a label source to a benchmark's questions, after its own sources.

    A question that `labels` does not name gets no label of this source. The digest of the labels
    is added to the benchmark's inputs, so that a run records them. Errors name the `file`.
    """
    _check_source(benchmark, source_name)
    _check_labels(benchmark, source_name, labels, file)
    updates = (*benchmark.updates, source_name) if benchmark.updates else ()
    return replace(_add_source(benchmark, source_name, labels), updates=updates)


def with_stale(
    benchmark: Benchmark, source_name: str, labels: LabelSets, *, file: LabelFile = _NO_FILE
) -> Benchmark:
    """Add outdated evidence as a label source; its current evidence is the benchmark's own support.

    A record that supports the answer is never outdated for the same question.
    """
    _check_source(benchmark, source_name)
    _check_labels(benchmark, source_name, labels, file)
    support = {
        question.id: question.labels.get("benchmark", frozenset())
        for case in benchmark.cases
        for question in case.questions
        if question.id in labels
    }
    updates = (*benchmark.updates, source_name)
    return replace(_add_source(benchmark, source_name, support, labels), updates=updates)


def with_readings(
    benchmark: Benchmark, readings: Readings, *, file: Path | None = None
) -> Benchmark:
    """Add a support pass as the label source `audited:` and its name.

    A pass under the rubric `stale` adds outdated evidence to the benchmark's own support.
    """
    labels = audited_labels(readings)
    add = with_stale if readings.rubric_digest == STALE.digest else with_labels
    return add(benchmark, f"{PREFIX}{readings.name}", labels, file=LabelFile(file))


def _add_source(
    benchmark: Benchmark, source: str, support: LabelSets, stale: LabelSets | None = None
) -> Benchmark:
    """Add a label source and its digests; without `stale`, outdated evidence is derived."""
    make = partial(_label_case, benchmark.cases, source, dict(support), stale)
    inputs = {f"labels {source}": _digest_labels(support)}
    if stale is not None:
        inputs[f"stale {source}"] = _digest_labels(stale)
    return replace(
        benchmark,
        cases=LazyCases(len(benchmark.cases), make),
        labels=(*benchmark.labels, source),
        inputs={**benchmark.inputs, **inputs},
    )


def _digest_labels(labels: LabelSets) -> str:
    text = json.dumps({id: sorted(records) for id, records in labels.items()}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _label_case(
    cases: Sequence[Case], source: str, labels: LabelSets, outdated: LabelSets | None, index: int
) -> Case:
    case = cases[index]
    questions = []
    for question in case.questions:
        if question.id in labels:
            support = labels[question.id]
            if outdated is None:
                stale = derive_stale(case.supersedes, support)
                stale = stale or question.stale.get("benchmark", frozenset()) - support
            else:
                stale = outdated[question.id] - support
            question = replace(
                question,
                labels={**question.labels, source: support},
                stale={**question.stale, source: stale} if stale else question.stale,
            )
        questions.append(question)
    return replace(case, questions=tuple(questions))


def _check_source(benchmark: Benchmark, source: str) -> None:
    """Refuse a name that is not that of a new label source."""
    if not source.startswith(PREFIX) or not source[len(PREFIX) :]:
        raise SpecError(f"Expected '{PREFIX}NAME' but got source_name={source!r}")
    check_name(source[len(PREFIX) :])
    if source in benchmark.labels:
        raise SpecError(
            f"benchmark '{benchmark.name}' has labels '{source}' already; choose another name"
        )


def _check_labels(benchmark: Benchmark, source: str, labels: LabelSets, file: LabelFile) -> None:
    """Refuse labels of unknown questions or records."""
    remaining = dict(labels)
    record_ids: list[str] = []
    for case in benchmark.cases:
        pool = frozenset(case.pool.ids)
        for question in case.questions:
            record_ids.append(question.id)
            unknown = sorted(remaining.pop(question.id, frozenset()) - pool)
            if unknown:
                problem = (
                    f"labels '{source}' of question '{question.id}' name the record "
                    f"'{unknown[0]}', which user '{case.pool.user}' does not have. "
                    + nearest(unknown[0], pool)
                )
                raise file.error(problem, question.id, unknown[0])
    if remaining:
        first = min(remaining)
        problem = (
            f"labels '{source}' name the question '{first}', which benchmark '{benchmark.name}' "
            f"does not have. {closest(first, record_ids)}"
        )
        raise file.error(problem.rstrip(), first)


def with_label_file(benchmark: Benchmark, path: Path) -> Benchmark:
    """Add the labels of a file as the label source `audited:NAME`.

    A stored pass (JSON) has a name. A table (.csv, .tsv) is named like its file and has the columns
    `question` and `record`, with one row for each record that carries the answer. A question with
    an empty record was read and has none.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        return with_readings(benchmark, load_readings(path), file=path)
    labels: dict[str, set[str]] = {}
    lines: dict[tuple[str, str], int] = {}
    for row in read_table(read_input(path), path, [["question"], ["record"]]):
        question, record = row.get("question"), row.get("record")
        if not question:
            raise row.error("no question is named", "question")
        if record and record in labels.get(question, ()):
            raise row.error(f"the record '{record}' of question '{question}' is there", "record")
        labels.setdefault(question, set()).update([record] if record else [])
        lines.setdefault((question, record), row.line)
    sets = {question: frozenset(records) for question, records in labels.items()}
    return with_labels(benchmark, f"{PREFIX}{path.stem}", sets, file=LabelFile(path, lines))
