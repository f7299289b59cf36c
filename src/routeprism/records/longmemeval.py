"""LongMemEval: 500 questions, each with its own long history and evidence by session id.

The released files are read question by question; their texts are never in memory together.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, Literal

from routeprism.errors import InputError, nearest
from routeprism.records._benchmarks import Benchmark, Case, LazyCases, Pool, Question, Record, Turn
from routeprism.records._files import (
    Element,
    ElementReader,
    data_directory,
    find_file,
    fingerprint,
    is_directory,
    scan_array,
)
from routeprism.records._times import event_order

__all__ = ["ABSTENTION", "TYPES", "UPDATES", "load"]

Variant = Literal["s", "m", "oracle", "index"]
"""The released sizes of history; `index` is a file of session ids without any text."""

TYPES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)
"""The benchmark's own question types; each is a kind."""

_UPDATE = TYPES[-1]

UPDATES = "updates"
"""The label source that parts the evidence of knowledge-update questions by time."""

ABSTENTION = "abstention"
"""The kind of questions that cannot be answered, whatever their type."""

_FILES: Mapping[Variant, tuple[str, ...]] = {
    "s": ("longmemeval_s_cleaned.json", "longmemeval_s.json"),
    "m": ("longmemeval_m_cleaned.json", "longmemeval_m.json"),
    "oracle": ("longmemeval_oracle.json",),
    "index": ("session_index_237.json",),
}
_MANY_SESSIONS = 150
"""S has 38 to 62 sessions in a history, M about 500."""
_NO_TEXT = "…"
"""The text of a session without words; no tokeniser finds a token in it."""


def load(
    data: Path | None = None,
    *,
    variant: Variant | None = None,
    path: str | None = None,
    abstention: Literal["apart", "only", "with"] = "apart",
) -> Benchmark:
    """Load from DATA/longmemeval, from DATA itself, or the file `path`.

    Without `variant` a file named by `path` says which it is; in a directory `s` is looked for, and
    the file must be that. Abstention questions have no evidence to find, and are set apart unless
    asked for.
    """
    if path is None:
        variant = variant or "s"
    file = _file(data, variant, path)
    index, digest = _index_file(file)
    shape = index.shape()
    if variant is not None and shape != variant:
        shapes = _read_data("texts")["shapes"]
        raise InputError(
            f"Expected variant={variant} ({shapes[variant]}) but the file has {shapes[shape]}: "
            f"use longmemeval:variant={shape} to load it",
            file=file,
        )
    questions = index.choose(abstention)
    places = tuple((index.places[at], index.ids[at]) for at in questions)
    inputs = {file.name.removesuffix(".gz"): digest}
    decided = any(index.ids[at] in _read_updates() for at in questions)
    return Benchmark(
        name="longmemeval" if shape == "s" else f"longmemeval-{shape}",
        cases=LazyCases(len(places), _Reader(ElementReader(file), places, file)),
        fingerprint=fingerprint({**inputs, "abstention": abstention}),
        unit="question",
        weighting="question",
        interval="percentile",
        arrivals=(),  # the published comparison is full reversal
        interface="all" if shape == "index" else "bm25",
        labels=("benchmark", UPDATES) if decided else ("benchmark",),
        updates=(UPDATES,) if decided else (),
        inputs=inputs,
        notes=index.notes(abstention, shape),
        licence="LongMemEval: MIT",
        has_text=shape != "index",
    )


def _index_file(file: Path) -> tuple[_Index, str]:
    """Scan a file once; return the places of its questions, and its digest."""
    index = _Index(file)
    digest = ""
    for item in scan_array(file):
        if isinstance(item, str):
            digest = item
        else:
            index.add(*item)
    if not index.places:
        raise InputError("there is no question in it", file=file)
    return index, digest


def _abstains(identity: str) -> bool:
    return "_abs" in identity


def _file(data: Path | None, variant: Variant | None, path: str | None) -> Path:
    if path is None:
        directory = data_directory(data, "longmemeval", "longmemeval")
        variant = variant or "s"
        benchmark = "longmemeval" if variant == "s" else f"longmemeval:variant={variant}"
        return find_file(
            directory, *_FILES[variant], fetched=None if variant == "index" else benchmark
        )
    places = [Path(path)]
    if data is not None and not places[0].is_absolute():
        places += [data / "longmemeval" / path, data / path]
    for place in places:
        if place.exists() and not is_directory(place):
            return place
    raise InputError("there is no such file", file=places[0])


@dataclass(slots=True)
class _Index:
    """The places of the questions in a file, and notes about the file."""

    file: Path
    places: list[Element] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, element: Element, entry: Any) -> None:
        """Check a question for what can be checked without making its records."""
        try:
            self._add(entry)
        except InputError as error:
            before = f"question {len(self.places)}: "
            raise error.locate(self.file, element.line(self.file), before=before) from None
        self.places.append(element)

    def _add(self, entry: Any) -> None:
        identity, sessions, evidence = _check_entry(entry)
        if identity in self.known:
            raise InputError(f"there are two questions '{identity}'", field="question_id")
        self.known.add(identity)
        self.ids.append(identity)
        self.sizes.append(len(sessions))
        self.counts["text"] += "haystack_sessions" in entry
        self.counts["oracle"] += set(sessions) <= set(evidence)
        if _abstains(identity):
            self.counts["abstentions"] += 1
            return
        self._note("absent", identity, len(set(evidence) - set(sessions)))
        self._note("unlabelled", identity, int(not set(evidence) & set(sessions)))
        undecided = entry["question_type"] == _UPDATE and identity not in _read_updates()
        self._note("undecided", identity, int(undecided))
        self._note("twice", identity, len(sessions) - len(set(sessions)))
        wordless = sum(map(_is_wordless, entry.get("haystack_sessions") or ()))
        self._note("wordless", identity, wordless)

    def _note(self, reason: str, identity: str, number: int) -> None:
        if number:
            self.counts[reason] += number
            self.counts[f"{reason} in"] += 1
            self.examples.setdefault(reason, identity)

    def choose(self, abstention: str) -> list[int]:
        """Choose the questions with or without abstention, by their number in the file."""
        questions = [
            at
            for at, identity in enumerate(self.ids)
            if abstention == "with" or _abstains(identity) == (abstention == "only")
        ]
        if not questions:
            kind = "abstention question" if abstention == "only" else "question with evidence"
            raise InputError(f"there is no {kind} in it", file=self.file)
        return questions

    def shape(self) -> Variant:
        """Recognise the variant by its content."""
        if not self.counts["text"]:
            return "index"
        if self.counts["text"] < len(self.ids):
            raise InputError(
                f"{len(self.ids) - self.counts['text']} of {len(self.ids)} questions have no "
                f"sessions",
                file=self.file,
                field="haystack_sessions",
            )
        if self.counts["oracle"] == len(self.ids):
            return "oracle"
        return "m" if median(self.sizes) >= _MANY_SESSIONS else "s"

    def notes(self, abstention: str, shape: Variant) -> tuple[str, ...]:
        """List notes for readers of the numbers."""
        counts, notes = self.counts, []
        if shape == "index":
            notes.append(
                "the file has session ids and no text: it shows what is retained, but not "
                "what retrieval would expose"
            )
        if counts["abstentions"] and abstention == "apart":
            apart = _count_noun(
                counts["abstentions"], "abstention question is", "abstention questions are"
            )
            notes.append(f"{apart} set apart; longmemeval:abstention=only gives them")
        for reason, (singular, several) in _read_data("texts")["notes"].items():
            if counts[reason] and abstention != "only":
                where = _count_noun(counts[f"{reason} in"], "question", "questions")
                number = _count_noun(counts[reason], singular, several)
                notes.append(f"{number} ({where}, the first '{self.examples[reason]}')")
        return tuple(notes)


def _count_noun(number: int, singular: str, several: str) -> str:
    return f"{number} {singular if number == 1 else several}"


def _check_entry(entry: Any) -> tuple[str, list[str], list[str]]:
    """Return a question's id, session ids and evidence ids, or say what is not as released."""
    if not isinstance(entry, dict):
        raise InputError("Expected an object")
    for name in ("question_id", "question_type", "question"):
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            raise InputError(f"Expected text but got {name}={entry.get(name)!r:.60}", field=name)
    if entry["question_type"] not in TYPES:
        raise InputError(
            f"unknown type {entry['question_type']!r:.60}. "
            + nearest(entry["question_type"], TYPES),
            field="question_type",
        )
    if not isinstance(entry.get("answer"), str | int | float):
        raise InputError(
            f"Expected an answer but got answer={entry.get('answer')!r:.60}", field="answer"
        )
    sessions, evidence = (
        _texts(entry, name) for name in ("haystack_session_ids", "answer_session_ids")
    )
    if not sessions:
        raise InputError("the history has no session", field="haystack_session_ids")
    for name in ("haystack_sessions", "haystack_dates"):
        if name not in entry:
            continue
        if not isinstance(entry[name], list) or len(entry[name]) != len(sessions):
            number = len(entry[name]) if isinstance(entry[name], list) else 0
            raise InputError(
                f"Expected as many {name} as session ids but got {number} and {len(sessions)}: "
                f"every session needs its id",
                field=name,
            )
    return entry["question_id"], sessions, evidence


def _texts(entry: Mapping[str, Any], name: str) -> list[str]:
    items = entry.get(name)
    if not isinstance(items, list):
        raise InputError(f"Expected a list of ids but got {name}={items!r:.60}", field=name)
    for at, item in enumerate(items):
        if not isinstance(item, str) or not item.strip():
            raise InputError(f"session {at} has no id: Expected text but got {item!r}", field=name)
    return items


def _is_wordless(session: Any) -> bool:
    return isinstance(session, list) and not any(
        isinstance(turn, dict) and str(turn.get("content", "")).strip() for turn in session
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Makes the case of one question from its place in the file."""

    elements: ElementReader
    places: tuple[tuple[Element, str], ...]
    file: Path

    def __call__(self, index: int) -> Case:
        element, identity = self.places[index]
        try:
            entry = self.elements.read(element)
            if _check_entry(entry)[0] != identity:
                raise InputError("changed while it was read")
            return _case(entry)
        except InputError as error:
            before = f"question '{identity}': "
            raise error.locate(self.file, element.line(self.file), before=before) from None


def _case(entry: Mapping[str, Any]) -> Case:
    identity, sessions, evidence = _check_entry(entry)
    names = _name_sessions(sessions)
    dates = entry.get("haystack_dates") or [None] * len(sessions)
    turns_by_session = entry.get("haystack_sessions") or [[]] * len(sessions)
    records = tuple(
        _record(name, at, turns, date)
        for at, (name, turns, date) in enumerate(zip(names, turns_by_session, dates, strict=True))
    )
    evidence_ids = frozenset(evidence)
    support = frozenset(
        name for name, id in zip(names, sessions, strict=True) if id in evidence_ids
    )
    labels = {"benchmark": support} if support and not _abstains(identity) else {}
    current, stale = _split_by_time(identity, records, support)
    if current:
        labels[UPDATES] = current
    date = entry.get("question_date")
    question = Question(
        id=identity,
        user=identity,
        text=entry["question"],
        gold=str(entry["answer"]),
        kind=ABSTENTION if _abstains(identity) else entry["question_type"],
        detail=entry["question_type"],
        labels=labels,
        date=None if date is None else str(date),
        stale={UPDATES: stale} if stale else {},
    )
    return Case(Pool(identity, records), (question,))


def _read_updates() -> Mapping[str, Mapping[str, str]]:
    """Read which value each knowledge-update question asks for, as it was decided by hand."""
    return _read_data("updates")["questions"]


@cache
def _read_data(name: str) -> Mapping[str, Mapping[str, Any]]:
    path = files(__package__).joinpath(f"longmemeval_{name}.json")
    data: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text("utf-8"))
    return data


def _split_by_time(
    identity: str, records: Sequence[Record], support: frozenset[str]
) -> tuple[frozenset[str], frozenset[str]]:
    """Part the evidence into the session that the question asks for and the misleading one.

    By session date, or by session order without dates; never by assuming that the later one is
    asked for. A question without a decision has neither.
    """
    asks = _read_updates().get(identity, {}).get("asks")
    if asks is None or len(support) < 2:
        return frozenset(), frozenset()
    if asks == "both":
        return support, frozenset()
    ordered = [records[at].id for at in event_order(records) if records[at].id in support]
    current = frozenset((ordered[-1] if asks == "later" else ordered[0],))
    return current, support - current


def _name_sessions(sessions: Sequence[str]) -> list[str]:
    """Name every delivery of a session: some histories hold one twice, under two dates."""
    used, names = set(sessions), []
    counts: Counter[str] = Counter()
    for identity in sessions:
        counts[identity] += 1
        name = identity
        while counts[identity] > 1 and name in used:
            name = f"{identity}~{counts[identity]}" if name == identity else f"{name}~"
        used.add(name)
        names.append(name)
    return names


def _record(identity: str, position: int, turns: Any, date: Any) -> Record:
    if not isinstance(turns, list):
        raise InputError(f"session '{identity}' is not a list of turns", field="haystack_sessions")
    try:
        spoken = [Turn(turn["role"].lower(), turn["content"]) for turn in turns]
        texts = [turn.text.strip() for turn in spoken]
    except (TypeError, KeyError, AttributeError):
        raise InputError(
            f"session '{identity}' has a turn without role or content", field="haystack_sessions"
        ) from None
    timestamp = None if date is None else str(date)
    if not any(texts):
        return Record(identity, position, _NO_TEXT, timestamp)
    return Record.from_turns(identity, position, spoken, timestamp=timestamp)
