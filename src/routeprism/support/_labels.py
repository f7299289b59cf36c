"""Audited labels: direct-support sets from a pass, put beside a benchmark's own, never mixed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from routeprism.errors import InputError, SpecError, nearest
from routeprism.records import Benchmark, Case, LazyCases
from routeprism.support._readings import Readings, check_name
from routeprism.support._rubrics import Rubric
from routeprism.support._stored import Place

__all__ = ["Declaration", "audited_labels", "declare", "with_labels", "with_readings"]

PREFIX = "audited:"
"""How the label sources made here begin (DESIGN: labels have one shape)."""


def audited_labels(readings: Readings) -> Mapping[str, frozenset[str]]:
    """Give each question's direct-support records; a question that is unread has no entry.

    A question of which no record is direct has an empty set: that is a reading.
    """
    return {id: one.direct for id, one in readings.supported().items() if not one.unread}


def with_labels(
    benchmark: Benchmark, source_name: str, labels: Mapping[str, frozenset[str]]
) -> Benchmark:
    """Add a label source to a benchmark's questions, as its last one.

    A question that `labels` does not name gets no label of this source. The labels' digest becomes
    one of the benchmark's inputs, so that a run knows which labels it was made with.
    """
    if not source_name.startswith(PREFIX) or not source_name[len(PREFIX) :]:
        raise SpecError(f"Expected '{PREFIX}NAME' but got source_name={source_name!r}")
    check_name(source_name[len(PREFIX) :])
    if source_name in benchmark.labels:
        raise SpecError(
            f"benchmark '{benchmark.name}' has labels '{source_name}' already; choose another name"
        )
    _check(benchmark, source_name, labels)
    written = json.dumps({id: sorted(records) for id, records in labels.items()}, sort_keys=True)
    digest = hashlib.sha256(written.encode()).hexdigest()
    return replace(
        benchmark,
        cases=LazyCases(
            len(benchmark.cases),
            partial(_labelled, benchmark.cases, source_name, dict(labels)),
        ),
        labels=(*benchmark.labels, source_name),
        inputs={**benchmark.inputs, f"labels {source_name}": digest},
    )


def with_readings(benchmark: Benchmark, readings: Readings) -> Benchmark:
    """Add a support pass as the label source `audited:` and its name."""
    return with_labels(benchmark, f"{PREFIX}{readings.name}", audited_labels(readings))


def _check(benchmark: Benchmark, source: str, labels: Mapping[str, frozenset[str]]) -> None:
    """Refuse labels of unknown questions or records before anything is built on them."""
    left = dict(labels)
    known: list[str] = []
    for case in benchmark.cases:
        pool = frozenset(case.pool.ids)
        for question in case.questions:
            known.append(question.id)
            unknown = sorted(left.pop(question.id, frozenset()) - pool)
            if unknown:
                raise InputError(
                    f"labels '{source}' of question '{question.id}' name the record "
                    f"'{unknown[0]}', which user '{case.pool.user}' does not have. "
                    + nearest(unknown[0], pool),
                    field="record",
                )
    if left:
        first = min(left)
        suggestion = nearest(first, known)
        raise InputError(
            f"labels '{source}' name the question '{first}', which benchmark '{benchmark.name}' "
            f"does not have. {suggestion if suggestion.startswith('Did') else ''}".rstrip(),
            field="question",
        )


def _labelled(
    cases: Sequence[Case], source: str, labels: Mapping[str, frozenset[str]], index: int
) -> Case:
    case = cases[index]
    return Case(
        case.pool,
        tuple(
            replace(q, labels={**q.labels, source: labels[q.id]}) if q.id in labels else q
            for q in case.questions
        ),
    )


@dataclass(frozen=True, slots=True)
class Declaration:
    """Which pass is primary, said before any outcome is read; a run's manifest keeps it."""

    primary: str
    """The pass that estimates are reported on."""
    passes: Mapping[str, str] = field(hash=False)
    """Every declared pass with the SHA-256 of its rubric."""

    def __post_init__(self) -> None:
        for name in self.passes:
            check_name(name)
        if self.primary not in self.passes:
            raise SpecError(
                f"Expected a primary pass among {', '.join(self.passes) or 'none'} "
                f"but got primary={self.primary!r}"
            )

    def to_json(self) -> dict[str, Any]:
        """Give it as plain JSON values; it has no date, so the same words are the same bytes."""
        return {"primary": self.primary, "passes": dict(sorted(self.passes.items()))}

    @classmethod
    def from_json(cls, value: object) -> Declaration:
        """Read one back."""
        place = Place().inside("declaration")
        entry = place.object(value)
        passes = place.inside("passes").object(entry.get("passes"))
        inner = place.inside("passes")
        return cls(
            place.text(entry, "primary"), {name: inner.text(passes, name) for name in passes}
        )

    def choose(self, passes: Sequence[Readings]) -> Readings:
        """Give the primary one of these passes; refuse if a declared one is not what it said."""
        given = {one.name: one for one in passes}
        for name, digest in self.passes.items():
            if name in given and given[name].rubric_digest != digest:
                raise SpecError(
                    f"pass '{name}' was declared under rubric {digest[:8]} "
                    f"but read under {given[name].rubric_digest[:8]}"
                )
        if self.primary not in given:
            raise SpecError(f"the primary pass '{self.primary}' is not there")
        return given[self.primary]


def declare(primary: str, passes: Mapping[str, Rubric] | Sequence[Readings]) -> Declaration:
    """Declare the primary pass among planned passes, or among those that were read."""
    if isinstance(passes, Mapping):
        digests = {name: rubric.digest for name, rubric in passes.items()}
    else:
        digests = {one.name: one.rubric_digest for one in passes}
    return Declaration(primary, digests)
