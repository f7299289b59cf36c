"""The questions of a run: a small index of all, and for each pool a chunk that is read on demand.

The index has what the list and its filters need. A chunk has a pool's records, routes, contexts,
answers and prompts; its texts are kept once each, and all of it is compressed.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from routeprism.exhibits import name_record
from routeprism.judge import describe_loss
from routeprism.orders import FORWARD, describe_arrival, name_reference
from routeprism.report._pool_findings import (
    PoolFindings,
    PromptReader,
    Texts,
    read_pool_findings,
)
from routeprism.runs import Finding, Loss, StoredQuestion, StoredRun, StoredTrace

FLAGS = {
    "retained": 1,
    "sources": 2,
    "context": 4,
    "state": 8,
    "lost-on-route": 16,
    "lost-on-forward": 32,
    "answer": 64,
    "correctness": 128,
    "asked": 256,
    "restored": 512,
}
"""What can be true of a pair, as bits: what changed, which support was lost, what was asked."""


@dataclass(slots=True)
class Questions:
    """The data of the view of single questions."""

    policies: list[str]
    schedules: list[str]
    """The orders of arrival other than source order."""
    pairs: list[tuple[str, str]]
    """(policy, schedule), in the order of the flags."""
    users: list[str] = field(default_factory=list)
    index: list[dict[str, Any]] = field(default_factory=list)
    """For each question its id, user, kind, text and one number of flags for each pair."""
    chunks: list[str] = field(default_factory=list)
    """One for each user: JSON, deflated, in base64."""

    @property
    def routes(self) -> list[str]:
        """The routes of a chunk: source order, every schedule, every further reference."""
        references = map(name_reference, self.schedules)
        return list(dict.fromkeys((FORWARD.name, *self.schedules, *references)))


def read_questions(
    stored: StoredRun,
    policies: Sequence[str],
    schedules: Sequence[str],
    labels: str,
    *,
    most: int = 10_000_000,
) -> Questions:
    """Read every pool of a run, one at a time.

    When the chunks together have `most` characters, further pools have none: they are listed and
    counted, and their texts stay in the store.
    """
    pairs = [(policy, schedule) for policy in policies for schedule in schedules]
    result = Questions(list(policies), list(schedules), pairs)
    experiments, routes = stored.experiments(), stored.routes()
    ordered = sorted(stored.questions().values(), key=lambda question: (question.user, question.id))
    findings: dict[str, list[tuple[str, Finding]]] = {}
    for name in experiments:
        for finding in stored.findings(name):
            findings.setdefault(finding.user, []).append((name, finding))
    size = 0
    for user, grouped in groupby(ordered, lambda question: question.user):
        about = findings.pop(user, ())
        _read_pool(stored, user, list(grouped), routes, about, labels, result, room=size < most)
        size += len(result.chunks[-1])
        stored.clear_texts()
    return result


@dataclass(slots=True)
class _Pool:
    """One pool while it is read: its routes and contexts, and the texts of its chunk."""

    reader: PromptReader
    questions: Sequence[StoredQuestion]
    findings: PoolFindings
    traces: Mapping[tuple[str, str], StoredTrace]
    texts: Mapping[str, str]
    """Record ids → what sentences call the record."""
    room: bool
    """Whether texts are written; without room, questions are listed and counted only."""
    contexts: list[dict[str, Any]] = field(default_factory=list)
    shown: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """(policy, schedule, question) → which context it is shown."""

    def read_contexts(self, routes: Sequence[tuple[str, str, str]]) -> None:
        """Read the context of every question on every route, each different one once."""
        numbers: dict[str, int] = {}
        for policy, interface, schedule in routes:
            for question in self.questions:
                context = self.reader.stored.context_of(policy, interface, schedule, question.id)
                if not context:
                    continue
                if context not in numbers:
                    numbers[context] = len(self.contexts)
                    self.contexts.append(self._read_context(context))
                self.shown[policy, schedule, question.id] = numbers[context]

    def _read_context(self, identity: str) -> dict[str, Any]:
        reader, context = self.reader, self.reader.stored.context(identity)
        return {
            "sources": self.find_places(context.sources),
            "sha256": context.sha256,
            "blocks": [
                [kind, reader.texts.place(reader.stored.text(text)), self.find_places(ids)]
                for kind, text, ids in (context.blocks if self.room else ())
            ],
        }

    def find_places(self, ids: Iterable[str]) -> list[int]:
        """Return the positions of records of the pool."""
        return [self.reader.place[id] for id in ids if id in self.reader.place]

    def find_sides(self, policy: str, schedule: str, question: str) -> list[int | None]:
        """Find the contexts of a pair: of its reference, and of its schedule."""
        names = (name_reference(schedule), schedule)
        return [self.shown.get((policy, name, question)) for name in names]

    def select(self, sides: Sequence[int | None]) -> list[dict[str, Any] | None]:
        """Return the contexts of a pair."""
        return [None if side is None else self.contexts[side] for side in sides]

    def flag_pair(self, pair: tuple[str, str], question: StoredQuestion, labels: str) -> int:
        """Return what is true of a question on one pair, as bits."""
        support = self.find_places(question.labels.get(labels, ()))
        both = self.select(self.find_sides(*pair, question.id))
        traces = [self.traces.get((pair[0], name)) for name in (name_reference(pair[1]), pair[1])]
        key = (*pair, question.id)
        entries = self.findings.comparisons.get(key, ())
        answer_bits = _flag_answers(entries, self.findings.eligibility.get(key))
        return _flag_routes(traces) | _flag_contexts(both, set(support)) | answer_bits

    def describe(
        self, question: StoredQuestion, pairs: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        """Return what the view of one question shows: options, evidence, contexts, answers."""
        exposures = [self.find_sides(*pair, question.id) for pair in pairs]
        keys = [(*pair, question.id) for pair in pairs]
        return {
            "options": list(question.options),
            "gold": question.gold,
            "support": {
                name: self.find_places(sorted(ids)) for name, ids in question.labels.items()
            },
            "shown": exposures,
            "asked": [
                self._show_comparisons(self.findings.comparisons.get(key, ()), self.select(sides))
                for key, sides in zip(keys, exposures, strict=True)
            ],
            "causes": [self._list_causes(question.id, *pair) for pair in pairs],
            "eligibility": [self.findings.eligibility.get(key) for key in keys],
            "findings": self.findings.remaining.get(question.id, []),
        }

    def _list_causes(self, question: str, policy: str, schedule: str) -> list[str]:
        """List why a question loses evidence on a pair, or else under another order of arrival."""
        losses = [f for f in self.findings.losses.get(question, ()) if f.policy == policy]
        pair = (name_reference(schedule), schedule)
        findings = [finding for finding in losses if finding.schedule in pair] or losses
        sentences = (explain_loss(loss, self.texts) for f in findings for loss in f.value)
        return list(dict.fromkeys(sentences))

    def _show_comparisons(
        self,
        entries: Sequence[tuple[str, Mapping[str, Any]]],
        contexts: Sequence[Mapping[str, Any] | None],
    ) -> list[dict[str, Any]]:
        """Make what was asked on one pair ready to be shown."""
        if not entries:
            return []
        texts = self.reader.texts.all()
        forward, route = (
            [(texts[text], records) for _, text, records in context["blocks"]] if context else []
            for context in contexts
        )
        return [self.reader.show(*entry, (forward, route)) for entry in entries]


def explain_loss(value: Mapping[str, Any], texts: Mapping[str, str]) -> str:
    """Explain in a sentence what an order takes from a question, why, and how that was tested.

    `value` is one of those of the finding `losses`; `texts` has each record's text.
    """
    loss = Loss(**value)
    schedule = loss.schedule
    where = "In source order" if schedule == FORWARD.name else f"Under {describe_arrival(schedule)}"
    return f"{where}: {describe_loss(loss, texts)}."


def _read_pool(
    stored: StoredRun,
    user: str,
    questions: Sequence[StoredQuestion],
    routes: Sequence[tuple[str, str, str]],
    findings: Sequence[tuple[str, Finding]],
    labels: str,
    view: Questions,
    *,
    room: bool,
) -> None:
    """Add a pool's questions to the index, and its chunk if there is room."""
    records = stored.records(user)
    traces = {
        (policy, schedule): trace
        for policy, interface, schedule in routes
        if (trace := stored.trace(policy, interface, schedule, user)) is not None
    }
    place = {record.id: at for at, record in enumerate(records)}
    reader = PromptReader(stored, Texts(), place)
    pool_findings = read_pool_findings(stored, questions, findings)
    texts = {record.id: stored.text(record.text_sha256) if room else "" for record in records}
    pool = _Pool(reader, questions, pool_findings, traces, texts, room)
    pool.read_contexts(routes)
    number = len(view.users)
    view.users.append(user)
    for question in questions:
        view.index.append(
            {
                "id": question.id,
                "user": number,
                "kind": question.kind,
                "text": question.text,
                "flags": [pool.flag_pair(pair, question, labels) for pair in view.pairs],
            }
        )
    if not room:
        view.chunks.append("")
        return
    details = {question.id: pool.describe(question, view.pairs) for question in questions}
    chunk = {
        "records": [
            [
                record.id,
                record.timestamp,
                reader.texts.place(stored.text(record.text_sha256)),
                name_record(record.id, texts[record.id]),
            ]
            for record in records
        ],
        "routes": [
            [_route(traces.get((policy, name)), place) for name in view.routes]
            for policy in view.policies
        ],
        "contexts": pool.contexts,
        "questions": details,
        "anchor": pool_findings.anchor,
        "findings": pool_findings.remaining.get("", []),
        "texts": reader.texts.all(),
    }
    view.chunks.append(packed(chunk))


def _flag_routes(traces: Sequence[StoredTrace | None]) -> int:
    """Return what the memory keeps differently on the two routes of a pair."""
    forward, route = traces
    if forward is None or route is None:
        return 0
    bits = FLAGS["retained"] * (forward.retained != route.retained)
    signed = forward.signature is not None and route.signature is not None
    return bits | FLAGS["state"] * (signed and forward.signature != route.signature)


def _flag_contexts(both: Sequence[Mapping[str, Any] | None], support: set[int]) -> int:
    """Return what a question is shown differently on the two routes of a pair."""
    first_side, second_side = both
    if first_side is None or second_side is None:
        return 0
    first, second = (frozenset[int](side["sources"]) for side in (first_side, second_side))
    bits = FLAGS["sources"] * (first != second)
    bits |= FLAGS["context"] * bool(first_side["sha256"] != second_side["sha256"])
    bits |= FLAGS["lost-on-route"] * bool(support & first - second)
    return bits | FLAGS["lost-on-forward"] * bool(support & second - first)


def _flag_answers(
    entries: Sequence[tuple[str, Mapping[str, Any]]], decided: Mapping[str, Any] | None
) -> int:
    """Return whether answers differ on the two routes of a pair, and whether it was restored."""
    bits = 0
    for experiment, entry in entries:
        for answer in entry["answers"]:
            bits |= FLAGS["asked"]
            if experiment != "routes" or entry["arm"] or len(answer["said"]) != 2:
                continue
            answers = [side[0] for side in answer["said"]]
            right = [side[0] for side in answer["right"]] or [None, None]
            bits |= FLAGS["answer"] * (answers[0] != answers[1])
            bits |= FLAGS["correctness"] * (right[0] != right[1])
    if decided is not None and "support" in decided["single"]:
        bits |= FLAGS["restored"]
    return bits


def _route(trace: StoredTrace | None, place: Mapping[str, int]) -> Any:
    if trace is None:
        return None
    return {
        "order": list(trace.arrivals),
        "retained": sorted(place[id] for id in trace.retained if id in place),
        "events": [
            [kind, place.get(record, -1), place.get(by, -1), at]
            for kind, record, by, at in trace.events
        ],
    }


def packed(chunk: object) -> str:
    """Write JSON, deflated, in base64."""
    text = json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(text) + packer.flush()).decode("ascii")
