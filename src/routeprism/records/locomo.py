"""LoCoMo: long two-person conversations, with evidence by dialogue id."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from routeprism.errors import InputError
from routeprism.files import read_input
from routeprism.records._benchmarks import Benchmark, Case, Pool, Question, Record, Turn
from routeprism.records._files import (
    data_directory,
    find_file,
    fingerprint,
    hash_content,
    parse_json_file,
)

__all__ = ["CATEGORIES", "load"]

CATEGORIES: Mapping[int, str] = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
"""The benchmark's numbered categories by name."""

_ADVERSARIAL = 5
_UNANSWERABLE = "The question assumes what the conversation does not say; it cannot be answered."
"""What is right for adversarial questions; the answer that the release gives is the trap."""

_SESSION = re.compile(r"session_(\d+)\Z")
_DIALOGUE = re.compile(r"D(\d+):\d+\Z")
_SEPARATORS = re.compile(r"[;,\s]+")


def load(data: Path | None = None) -> Benchmark:
    """Load from DATA/locomo, or from DATA itself."""
    directory = data_directory(data, "locomo", "locomo")
    path = find_file(directory, "locomo10.json", fetched="locomo")
    content = read_input(path)
    parsed = parse_json_file(content, path)
    if not isinstance(parsed, list) or not parsed:
        raise InputError("Expected a list of conversations", file=path)
    inputs = {"locomo10.json": hash_content(content)}
    notes: list[str] = []
    cases = []
    for index, entry in enumerate(parsed):
        try:
            cases.append(_case(entry, notes))
        except InputError as error:
            raise error.locate(path, before=f"conversation {index}: ") from None
        except KeyError as error:
            name = str(error.args[0])
            raise InputError(
                f"conversation {index} is not as released: there is no '{name}'",
                file=path,
                field=name,
            ) from error
        except (TypeError, AttributeError, ValueError) as error:
            raise InputError(
                f"conversation {index} is not as released ({type(error).__name__}: {error})",
                file=path,
            ) from error
    if not any(case.questions for case in cases):
        raise InputError("there is no question in it", file=path, field="qa")
    users = [case.pool.user for case in cases]
    if twice := sorted({user for user in users if users.count(user) > 1}):
        raise InputError(f"there are two conversations '{twice[0]}'", file=path, field="sample_id")
    return Benchmark(
        name="locomo",
        cases=tuple(cases),
        fingerprint=fingerprint(inputs),
        unit="conversation",
        weighting="question",
        interval="percentile",
        arrivals=(),  # the published comparison is full reversal
        interface="bm25",
        labels=("benchmark",),
        inputs=inputs,
        notes=tuple(notes),
        licence="LoCoMo: CC BY-NC 4.0",
    )


def _case(entry: Mapping[str, Any], notes: list[str]) -> Case:
    user = str(entry["sample_id"])
    conversation = entry["conversation"]
    numbers = sorted(
        int(match[1])
        for match in map(_SESSION.match, conversation)
        if match and conversation[match[0]]
    )
    records: dict[int, Record] = {}
    for position, number in enumerate(numbers):
        session = conversation[f"session_{number}"]
        turns = [Turn(_text(turn, "speaker").lower(), _read_utterance(turn)) for turn in session]
        date = conversation.get(f"session_{number}_date_time")
        timestamp = None if date is None else str(date)
        records[number] = Record.from_turns(f"D{number}", position, turns, timestamp=timestamp)
    pool = Pool(user, tuple(records.values()))
    questions = tuple(
        _question(f"{user}-q{index}", user, qa, pool, notes) for index, qa in enumerate(entry["qa"])
    )
    return Case(pool, questions)


def _read_utterance(turn: Mapping[str, Any]) -> str:
    caption = turn.get("blip_caption")
    text = _text(turn, "text")
    return f"{text} [shares a picture: {caption}]" if caption else text


def _text(entry: Mapping[str, Any], name: str) -> str:
    if not isinstance(entry[name], str):
        raise InputError(f"Expected text but got {name}={entry[name]!r:.60}", field=name)
    return str(entry[name])


def _question(
    identity: str, user: str, qa: Mapping[str, Any], pool: Pool, notes: list[str]
) -> Question:
    # Two adversarial questions have an answer of their own; the others have only the trap.
    adversarial = qa["category"] == _ADVERSARIAL and "answer" not in qa
    answer = _UNANSWERABLE if adversarial else qa.get("answer")
    return Question(
        id=identity,
        user=user,
        text=_text(qa, "question"),
        gold=None if answer is None else str(answer),
        kind=CATEGORIES.get(qa["category"], f"category-{qa['category']}"),
        detail="abstention" if adversarial else "",
        labels=_labels(identity, _evidence(qa), pool, notes),
    )


def _evidence(qa: Mapping[str, Any]) -> list[str]:
    evidence = qa.get("evidence") or []
    return [evidence] if isinstance(evidence, str) else evidence


def _labels(
    identity: str, evidence: list[str], pool: Pool, notes: list[str]
) -> dict[str, frozenset[str]]:
    """Map dialogue ids to the sessions that contain them; list those without a session."""
    ids = frozenset(pool.ids)
    sessions: set[str] = set()
    for reference in evidence:
        for part in filter(None, _SEPARATORS.split(str(reference))):
            match = _DIALOGUE.match(part)
            session = f"D{int(match[1])}" if match else ""
            if session in ids:
                sessions.add(session)
            else:
                notes.append(f"{identity}: the evidence id '{part}' names no session; left out")
    if not evidence:
        notes.append(f"{identity}: has no evidence; kept, without a support label")
    return {"benchmark": frozenset(sessions)} if sessions else {}
