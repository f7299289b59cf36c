"""The questions of a run: a small index of all, and for each pool a chunk that is read on demand.

The index has what the list and its filters need. A chunk has a pool's records, routes, contexts,
answers and prompts; its texts are kept once each, and all of it is compressed.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from routeprism.orders import FORWARD
from routeprism.report._asked import Texts, asked_of, comparison
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
    texts = Texts()
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
                context_rows.append(_context(stored, context, texts, place, room))
            shown[policy, schedule, question.id] = contexts[context]
    told = asked_of(findings)
    number = len(found.users)
    found.users.append(user)
    details: dict[str, Any] = {}
    for question in questions:
        support = question.labels.get(labels, frozenset())
        flags, exposures = [], []
        for policy, schedule in found.pairs:
            key = (policy, schedule)
            sides = [shown.get((policy, name, question.id)) for name in (FORWARD.name, schedule)]
            asked = told.comparisons.get((*key, question.id), [])
            decided = told.eligibility.get((*key, question.id))
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
                _comparisons(
                    stored,
                    told.comparisons.get((*key, question.id), []),
                    texts,
                    place,
                    [None if side is None else context_rows[side] for side in sides],
                )
                for key, sides in zip(found.pairs, exposures, strict=True)
            ],
            "eligibility": [told.eligibility.get((*key, question.id)) for key in found.pairs],
            "findings": told.others.get(question.id, []),
        }
    if not room:
        found.chunks.append("")
        return
    chunk = {
        "records": [
            [record.id, record.timestamp, texts.place(stored.text(record.text_sha256))]
            for record in records
        ],
        "routes": [
            [_route(traces.get((policy, name)), place) for name in (FORWARD.name, *found.schedules)]
            for policy in found.policies
        ],
        "contexts": context_rows,
        "questions": details,
        "anchor": told.anchor,
        "findings": told.others.get("", []),
        "texts": texts.all(),
    }
    found.chunks.append(packed(chunk))


def _comparisons(
    stored: Stored,
    asked: Sequence[tuple[str, Mapping[str, Any]]],
    texts: Texts,
    place: Mapping[str, int],
    contexts: Sequence[Mapping[str, Any] | None],
) -> list[dict[str, Any]]:
    """Make what was asked on one pair ready to be shown."""
    if not asked:
        return []
    written = texts.all()
    forward, route = (
        [(written[text], records) for _, text, records in one["blocks"]] if one else []
        for one in contexts
    )
    return [comparison(stored, one, texts, place, (forward, route)) for one in asked]


def _context(
    stored: Stored, identity: str, texts: Texts, place: Mapping[str, int], room: bool
) -> dict[str, Any]:
    one = stored.context(identity)
    return {
        "sources": [place[id] for id in one.sources if id in place],
        "sha256": one.sha256,
        "blocks": [
            [kind, texts.place(stored.text(text)), [place[id] for id in ids if id in place]]
            for kind, text, ids in (one.blocks if room else ())
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
