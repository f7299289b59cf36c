"""Audited labels: direct-support sets from a pass or a file, beside a benchmark's own labels."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from routeprism.errors import InputError, SpecError, closest, nearest
from routeprism.inputs import read_input
from routeprism.labels._cards import STALE
from routeprism.labels._readings import Readings, check_name, load_readings
from routeprism.records import Benchmark, Case, LazyCases, Question, derive_stale
from routeprism.spreadsheets import read_table

__all__ = [
    "PREFIX",
    "LabelFile",
    "audited_labels",
    "with_label_file",
    "with_labels",
    "with_readings",
]

PREFIX = "audited:"
"""The start of the name of a label source that is made here."""


def audited_labels(readings: Readings) -> Mapping[str, frozenset[str]]:
    """Map each question to its direct-support records; an unread question has no entry.

    A question without any direct record has an empty set.
    """
    supported = readings.supported().items()
    return {id: reading.direct for id, reading in supported if not reading.unread}


@dataclass(frozen=True, slots=True)
class LabelFile:
    """The file that labels were read from, which errors name."""

    path: Path
    lines: Mapping[tuple[str, str], int] = field(default_factory=dict, hash=False)
    """The line of each (question, record); the record is empty for a question without one."""

    def error(self, problem: str, question: str, record: str = "") -> InputError:
        """Make the error of a label, with its line if the file has lines."""
        lines = [at for (of, id), at in self.lines.items() if of == question and record in ("", id)]
        column = "record" if record else "question"
        return InputError(problem, file=self.path, line=min(lines, default=None), field=column)


def with_labels(
    benchmark: Benchmark,
    source_name: str,
    labels: Mapping[str, frozenset[str]],
    *,
    file: LabelFile | None = None,
) -> Benchmark:
    """Add a label source to a benchmark's questions, after its own sources.

    A question that `labels` does not name gets no label of this source. The digest of the labels
    is added to the benchmark's inputs, so that a run records them. Errors name the `file`.
    """
    if not source_name.startswith(PREFIX) or not source_name[len(PREFIX) :]:
        raise SpecError(f"Expected '{PREFIX}NAME' but got source_name={source_name!r}")
    check_name(source_name[len(PREFIX) :])
    if source_name in benchmark.labels:
        raise SpecError(
            f"benchmark '{benchmark.name}' has labels '{source_name}' already; choose another name"
        )
    _check_labels(benchmark, source_name, labels, file)
    text = json.dumps({id: sorted(records) for id, records in labels.items()}, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return replace(
        benchmark,
        cases=LazyCases(
            len(benchmark.cases),
            partial(_label_case, benchmark.cases, source_name, dict(labels)),
        ),
        labels=(*benchmark.labels, source_name),
        updates=(*benchmark.updates, source_name) if benchmark.updates else (),
        inputs={**benchmark.inputs, f"labels {source_name}": digest},
    )


def with_readings(
    benchmark: Benchmark, readings: Readings, *, file: Path | None = None
) -> Benchmark:
    """Add a support pass as the label source `audited:` and its name.

    A pass under the rubric `stale` adds outdated evidence to the benchmark's own support.
    """
    place = None if file is None else LabelFile(file)
    labels = audited_labels(readings)
    add = with_stale if readings.rubric_digest == STALE.digest else with_labels
    return add(benchmark, f"{PREFIX}{readings.name}", labels, file=place)


def with_stale(
    benchmark: Benchmark,
    source_name: str,
    labels: Mapping[str, frozenset[str]],
    *,
    file: LabelFile | None = None,
) -> Benchmark:
    """Add outdated evidence as a label source; its current evidence is the benchmark's own support.

    A record that supports the answer is never outdated for the same question.
    """
    _check_labels(benchmark, source_name, labels, file)
    support = {
        question.id: question.labels.get("benchmark", frozenset())
        for case in benchmark.cases
        for question in case.questions
        if question.id in labels
    }
    supported = with_labels(benchmark, source_name, support, file=file)
    text = json.dumps({id: sorted(records) for id, records in labels.items()}, sort_keys=True)
    return replace(
        supported,
        cases=LazyCases(
            len(supported.cases), partial(_mark_stale, supported.cases, source_name, dict(labels))
        ),
        updates=(*benchmark.updates, source_name),
        inputs={
            **supported.inputs,
            f"stale {source_name}": hashlib.sha256(text.encode()).hexdigest(),
        },
    )


def _mark_stale(
    cases: Sequence[Case], source: str, labels: Mapping[str, frozenset[str]], index: int
) -> Case:
    def mark(question: Question) -> Question:
        remaining = {name: ids for name, ids in question.stale.items() if name != source}
        stale = labels.get(question.id, frozenset()) - question.labels.get(source, frozenset())
        return replace(question, stale={**remaining, source: stale} if stale else remaining)

    case = cases[index]
    return replace(case, questions=tuple(map(mark, case.questions)))


def _check_labels(
    benchmark: Benchmark,
    source: str,
    labels: Mapping[str, frozenset[str]],
    file: LabelFile | None,
) -> None:
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
                raise _make_error(file, problem, question.id, unknown[0])
    if remaining:
        first = min(remaining)
        problem = (
            f"labels '{source}' name the question '{first}', which benchmark '{benchmark.name}' "
            f"does not have. {closest(first, record_ids)}"
        )
        raise _make_error(file, problem.rstrip(), first)


def _make_error(
    file: LabelFile | None, problem: str, question: str, record: str = ""
) -> InputError:
    if file is not None:
        return file.error(problem, question, record)
    return InputError(problem, field="record" if record else "question")


def _label_case(
    cases: Sequence[Case], source: str, labels: Mapping[str, frozenset[str]], index: int
) -> Case:
    case = cases[index]

    def label(question: Question) -> Question:
        if question.id not in labels:
            return question
        support = labels[question.id]
        stale = derive_stale(case.supersedes, support)
        stale = stale or question.stale.get("benchmark", frozenset()) - support
        return replace(
            question,
            labels={**question.labels, source: support},
            stale={**question.stale, source: stale} if stale else question.stale,
        )

    return replace(case, questions=tuple(map(label, case.questions)))


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
