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

from routeprism.orders import FORWARD
from routeprism.runs import Finding, Stored, StoredQuestion, StoredTrace

__all__ = ["FLAGS", "Questions", "packed", "read_questions"]

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
    """What the per-question view needs."""

    policies: list[str]
    schedules: list[str]
    """The orders compared with forward."""
    pairs: list[tuple[str, str]]
    """(policy, schedule), in the order of the flags."""
    users: list[str] = field(default_factory=list)
    index: list[dict[str, Any]] = field(default_factory=list)
    """For each question its id, user, kind, text and one number of flags for each pair."""
    chunks: list[str] = field(default_factory=list)
    """One for each user: JSON, deflated, in base64."""


class _Texts:
    """Texts of one chunk, each kept once; stored ones are read when the chunk is packed."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._places: dict[tuple[str, str], int] = {}

    def place(self, text: str = "", *, digest: str = "") -> int:
        """Give the place of a text, or of a stored one by its digest."""
        return self._places.setdefault((digest, text), len(self._places))

    def all(self) -> list[str]:
        """Read them, in the order of their places."""
        return [self._stored.text(digest) if digest else text for digest, text in self._places]


def read_questions(
    stored: Stored,
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
    found = Questions(list(policies), list(schedules), pairs)
    experiments, routes = stored.experiments(), stored.routes()
    ordered = sorted(stored.questions().values(), key=lambda question: (question.user, question.id))
    for user, grouped in groupby(ordered, lambda question: question.user):
        questions = list(grouped)
        findings = [(name, one) for name in experiments for one in stored.findings(name, user=user)]
        room = sum(map(len, found.chunks)) < most
        _read_pool(stored, user, questions, routes, findings, labels, found, room=room)
        stored.forget()
    return found


def _read_pool(
    stored: Stored,
    user: str,
    questions: Sequence[StoredQuestion],
    routes: Sequence[tuple[str, str, str]],
    findings: Sequence[tuple[str, Finding]],
    labels: str,
    found: Questions,
    *,
    room: bool,
) -> None:
    texts = _Texts(stored)
    records = stored.records(user)
    place = {record.id: at for at, record in enumerate(records)}
    traces = {
        (policy, schedule): trace
        for policy, interface, schedule in routes
        if (trace := stored.trace(policy, interface, schedule, user)) is not None
    }
    contexts: dict[str, int] = {}
    context_rows: list[Any] = []
    shown: dict[tuple[str, str, str], int] = {}
    for policy, interface, schedule in routes:
        for question in questions:
            context = stored.context_of(policy, interface, schedule, question.id)
            if not context:
                continue
            if context not in contexts:
                contexts[context] = len(context_rows)
                context_rows.append(_context(stored, context, texts, place))
            shown[policy, schedule, question.id] = contexts[context]
    answers, eligibility, other = _by_question(findings)
    number = len(found.users)
    found.users.append(user)
    details: dict[str, Any] = {}
    for question in questions:
        support = question.labels.get(labels, frozenset())
        flags, exposures = [], []
        for policy, schedule in found.pairs:
            key = (policy, schedule)
            sides = [shown.get((policy, name, question.id)) for name in (FORWARD.name, schedule)]
            asked = answers.get((*key, question.id), [])
            decided = eligibility.get((*key, question.id))
            both = [None if side is None else context_rows[side] for side in sides]
            bits = _flags(both, _two(traces, key), {place[i] for i in support if i in place})
            flags.append(bits | _answer_flags(asked, decided))
            exposures.append(sides)
        found.index.append(
            {
                "id": question.id,
                "user": number,
                "kind": question.kind,
                "text": question.text,
                "flags": flags,
            }
        )
        if not room:
            continue
        details[question.id] = {
            "options": list(question.options),
            "gold": question.gold,
            "support": {
                name: [place[id] for id in sorted(ids) if id in place]
                for name, ids in question.labels.items()
            },
            "shown": exposures,
            "asked": [
                [
                    _comparison(stored, one, texts, place)
                    for one in answers.get((*key, question.id), [])
                ]
                for key in found.pairs
            ],
            "eligibility": [eligibility.get((*key, question.id)) for key in found.pairs],
            "findings": other.get(question.id, []),
        }
    if not room:
        found.chunks.append("")
        return
    chunk = {
        "records": [
            [record.id, record.timestamp, texts.place(digest=record.text_sha256)]
            for record in records
        ],
        "routes": [
            [_route(traces.get((policy, name)), place) for name in (FORWARD.name, *found.schedules)]
            for policy in found.policies
        ],
        "contexts": context_rows,
        "questions": details,
        "findings": other.get("", []),
        "texts": texts.all(),
    }
    found.chunks.append(packed(chunk))


def _context(
    stored: Stored, identity: str, texts: _Texts, place: Mapping[str, int]
) -> dict[str, Any]:
    one = stored.context(identity)
    return {
        "sources": [place[id] for id in one.sources if id in place],
        "sha256": one.sha256,
        "blocks": [
            [kind, texts.place(digest=text), [place[id] for id in ids if id in place]]
            for kind, text, ids in one.blocks
        ],
    }


def _two(
    traces: Mapping[tuple[str, str], StoredTrace], key: tuple[str, str]
) -> tuple[StoredTrace, StoredTrace] | None:
    forward, route = traces.get((key[0], FORWARD.name)), traces.get(key)
    return None if forward is None or route is None else (forward, route)


def _flags(
    both: Sequence[Mapping[str, Any] | None],
    traces: tuple[StoredTrace, StoredTrace] | None,
    support: set[int],
) -> int:
    """Say what differs between the two routes of a pair."""
    bits = 0
    if traces is not None:
        forward, route = traces
        bits |= FLAGS["retained"] * (forward.retained != route.retained)
        signed = forward.signature is not None and route.signature is not None
        bits |= FLAGS["state"] * (signed and forward.signature != route.signature)
    one, other = both
    if one is None or other is None:
        return bits
    first, second = (frozenset[int](side["sources"]) for side in (one, other))
    here, there = support & first, support & second
    bits |= FLAGS["sources"] * (first != second)
    bits |= FLAGS["context"] * bool(one["sha256"] != other["sha256"])
    bits |= FLAGS["lost-on-route"] * bool(here - there)
    bits |= FLAGS["lost-on-forward"] * bool(there - here)
    return bits


def _answer_flags(
    asked: Sequence[tuple[str, Mapping[str, Any]]], decided: Mapping[str, Any] | None
) -> int:
    bits = 0
    for experiment, entry in asked:
        for one in entry["answers"]:
            bits |= FLAGS["asked"]
            if experiment != "routes" or len(one["said"]) != 2:
                continue
            said = [side[0] for side in one["said"]]
            right = [side[0] for side in one["right"]] or [None, None]
            bits |= FLAGS["answer"] * (said[0] != said[1])
            bits |= FLAGS["correctness"] * (right[0] != right[1])
    if decided is not None and "support" in decided["single"]:
        bits |= FLAGS["restored"]
    return bits


def _by_question(
    findings: Iterable[tuple[str, Finding]],
) -> tuple[
    dict[tuple[str, str, str], list[tuple[str, Mapping[str, Any]]]],
    dict[tuple[str, str, str], Mapping[str, Any]],
    dict[str, list[Mapping[str, Any]]],
]:
    """Sort findings: answers and eligibility by pair and question; the others by question."""
    answers: dict[tuple[str, str, str], list[tuple[str, Mapping[str, Any]]]] = {}
    eligibility: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    other: dict[str, list[Mapping[str, Any]]] = {}
    for experiment, one in findings:
        key = (one.policy, one.schedule, one.question)
        kind, _, asked = experiment.partition(".")
        if kind == "answers" and one.name == "answers":
            answers.setdefault(key, []).extend((asked, entry) for entry in one.value)
        elif kind == "answers" and one.name == "eligibility":
            eligibility[key] = one.value
        else:
            other.setdefault(one.question, []).append(
                {
                    "experiment": experiment,
                    "name": one.name,
                    "policy": one.policy,
                    "schedule": one.schedule,
                    "value": one.value,
                }
            )
    return answers, eligibility, other


def _comparison(
    stored: Stored,
    asked: tuple[str, Mapping[str, Any]],
    texts: _Texts,
    place: Mapping[str, int],
) -> dict[str, Any]:
    """Make one comparison ready to be shown, its prompts cut where their records stand."""
    experiment, entry = asked
    sides = []
    for side in entry["sides"]:
        pieces: list[list[int]] = []
        if side["records"]:
            text, at = stored.prompt(side["prompt"]), 0
            for record, start, end in side["records"]:
                pieces.append([texts.place(text[at:start]), -1])
                pieces.append([texts.place(text[start:end]), place.get(record, -1)])
                at = end
            pieces.append([texts.place(text[at:]), -1])
        sides.append(
            {
                "name": side["name"],
                "prompt": side["prompt"],
                "tokens": side["tokens"],
                "pieces": pieces,
            }
        )
    return {
        "experiment": experiment,
        "filler": entry["filler"],
        "arm": entry["arm"],
        "reason": entry["reason"],
        "sides": sides,
        "answers": entry["answers"],
    }


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
    written = json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )
    packer = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    return base64.b64encode(packer.compress(written) + packer.flush()).decode("ascii")
