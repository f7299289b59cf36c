"""PersonaMem-32K, read right: documents, queries and the original question file."""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from routeprism.errors import InputError
from routeprism.files import read_input
from routeprism.records._benchmarks import Benchmark, Case, Pool, Question, Record, letters
from routeprism.records._files import (
    data_directory,
    decode_utf8,
    find_file,
    fingerprint,
    hash_content,
    parse_json_file,
)
from routeprism.spreadsheets import long_cells

__all__ = ["GROUPS", "load"]

GROUPS: Mapping[str, str] = {
    "recall_user_shared_facts": "fact-recall",
    "recalling_facts_mentioned_by_the_user": "fact-recall",
    "track_full_preference_evolution": "temporal",
    "recalling_the_reasons_behind_previous_updates": "temporal",
    "suggest_new_ideas": "rest",
    "generalizing_to_new_scenarios": "rest",
    "provide_preference_aligned_recommendations": "rest",
}
"""The paper's partition of the benchmark's own question types (Appendix B.1)."""

_PUBLISHED = {
    "documents.json": "9bc45c36a506e4b036bcb4f1ab9323c53c5e2b388a0bb521f36e9d5f6ea9788b",
    "queries.json": "b46cf8fe1c79ebe853ab0f815de761b51a1886c3ad31d7bfc9446ac764c9cbef",
    "questions_32k.csv": "23f306a8d28b7ffcf133fe7dad09ade06fcb862fc7c3f19691362a5cd69409bd",
}
"""SHA-256 of the unpacked files that the published numbers come from."""

_NUMBER = re.compile(r"\d{1,18}\Z")
_LETTERED = re.compile(r"\s*\(([a-z])\)\s*(.*)\Z", re.DOTALL)


def load(data: Path | None = None) -> Benchmark:
    """Load from DATA/personamem-32k, or from DATA itself."""
    directory = data_directory(data, "personamem", "personamem-32k")
    paths = {name: find_file(directory, name, fetched="personamem") for name in _PUBLISHED}
    contents = {name: read_input(path) for name, path in paths.items()}
    inputs = {name: hash_content(content) for name, content in contents.items()}
    documents = _entries(contents, paths, "documents.json")
    queries = _entries(contents, paths, "queries.json")
    rows = _rows(contents["questions_32k.csv"], paths["questions_32k.csv"])

    pools = _pools(documents, paths["documents.json"])
    questions = _read_questions(queries, rows, pools, paths)
    return Benchmark(
        name="personamem",
        cases=tuple(Case(pool, tuple(questions[user])) for user, pool in pools.items()),
        fingerprint=fingerprint(inputs),
        interval="percentile",
        arrivals=(),  # the published comparison is full reversal
        labels=("reference-session",),
        inputs=inputs,
        notes=_notes(inputs),
        licence="PersonaMem: MIT",
    )


def _read_questions(
    queries: Sequence[Mapping[str, Any]],
    rows: Mapping[str, tuple[int, Mapping[str, str]]],
    pools: Mapping[str, Pool],
    paths: Mapping[str, Path],
) -> dict[str, list[Question]]:
    """Join queries with their rows; the questions of each user, in the order of the file."""
    file, table = paths["queries.json"], paths["questions_32k.csv"]
    turns = {
        user: sum(len(record.turns) for record in pool.records) for user, pool in pools.items()
    }
    questions: dict[str, list[Question]] = {user: [] for user in pools}
    ids: set[str] = set()
    for index, query in enumerate(queries):
        try:
            user, identity = _field(query, "user_id", index), _field(query, "id", index)
            if user not in pools:
                problem = f"query '{identity}' belongs to user '{user}', who has no documents"
                raise InputError(problem, field="user_id")
            if identity not in rows:
                raise InputError(f"query '{identity}' is not in {table.name}", field="id")
            if identity in ids:
                problem = f"entry {index}: there are two queries with the id '{identity}'"
                raise InputError(problem, field="id")
            ids.add(identity)
            meta = query.get("meta")
            text = _field(meta if isinstance(meta, dict) else {}, "retrieval_query", index)
        except InputError as error:
            raise error.locate(file) from None
        line, row = rows[identity]
        try:
            questions[user].append(_question(identity, pools[user], text, row, turns[user]))
        except InputError as error:
            renamed = "correct_answer" if error.field == "gold" else None
            raise error.locate(table, line, field=renamed) from None
    return questions


def _entries(
    contents: Mapping[str, bytes], paths: Mapping[str, Path], name: str
) -> list[dict[str, Any]]:
    parsed = parse_json_file(contents[name], paths[name])
    if not isinstance(parsed, list) or not all(isinstance(entry, dict) for entry in parsed):
        raise InputError("Expected a list of objects", file=paths[name])
    if not parsed:
        raise InputError("there is no entry in it", file=paths[name])
    return parsed


def _field(entry: Mapping[str, Any], name: str, index: int) -> str:
    value = entry.get(name)
    if not isinstance(value, str) or not value:
        problem = f"entry {index}: Expected a non-empty string but got {name}={value!r:.60}"
        raise InputError(problem, field=name)
    return value


def _pools(documents: list[dict[str, Any]], path: Path) -> dict[str, Pool]:
    by_user: dict[str, list[tuple[int, str, str]]] = {}
    pools = {}
    try:
        for index, document in enumerate(documents):
            identity = _field(document, "id", index)
            suffix = identity.rpartition("_")[2]
            if not _NUMBER.match(suffix):
                problem = f"Expected an id that ends in _NUMBER but got id={identity!r}"
                raise InputError(f"entry {index}: {problem}", field="id")
            user, content = _field(document, "user_id", index), _field(document, "content", index)
            by_user.setdefault(user, []).append((int(suffix), identity, content))
        for user, entries in by_user.items():
            records = (
                Record(identity, position, content)
                for position, (_, identity, content) in enumerate(sorted(entries))
            )
            pools[user] = Pool(user, tuple(records))
    except InputError as error:
        raise error.locate(path, field="content" if error.field == "text" else None) from None
    return pools


def _rows(content: bytes, path: Path) -> dict[str, tuple[int, dict[str, str]]]:
    needed = {
        "question_id",
        "question_type",
        "correct_answer",
        "all_options",
        "end_index_in_shared_context",
        "distance_to_ref_in_blocks",
    }
    reader = csv.DictReader(io.StringIO(decode_utf8(content, path), newline=""))
    if missing := sorted(needed - set(reader.fieldnames or ())):
        raise InputError(f"the header has no column '{missing[0]}'", file=path, line=1)
    rows: dict[str, tuple[int, dict[str, str]]] = {}
    try:
        with long_cells():
            for row in reader:
                if any(row.get(name) is None for name in needed):
                    problem = "the row ends early; the file may be truncated"
                    raise InputError(problem, file=path, line=reader.line_num)
                rows[row["question_id"]] = (reader.line_num, row)
    except csv.Error as error:
        raise InputError(f"is not valid CSV: {error}", file=path, line=reader.line_num) from error
    return rows


def _question(identity: str, pool: Pool, text: str, row: Mapping[str, str], turns: int) -> Question:
    options = _options(row["all_options"])
    gold = _LETTERED.match(row["correct_answer"])
    if not gold:
        answer = row["correct_answer"]
        raise InputError(f"Expected '(a)' … but got {answer!r}", field="correct_answer")
    kind = GROUPS.get(row["question_type"])
    if kind is None:
        raise InputError(f"unknown type {row['question_type']!r}", field="question_type")
    return Question(
        id=identity,
        user=pool.user,
        text=text,
        options=options,
        gold=gold[1],
        kind=kind,
        detail=row["question_type"],
        labels={"reference-session": _reference_session(pool, row, turns)},
    )


def _options(text: str) -> tuple[str, ...]:
    try:
        lines = json.loads(text)
    except json.JSONDecodeError:
        try:
            lines = ast.literal_eval(text)  # the release mixes JSON and Python list literals
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            lines = None
    except RecursionError:
        lines = None
    if not isinstance(lines, list):
        lines = []
    matches = [_LETTERED.match(str(line)) for line in lines]
    options = [match[2] for match in matches if match]
    if not lines or [match and match[1] for match in matches] != list(letters(len(lines))):
        raise InputError("Expected a list of options '(a) …', '(b) …'", field="all_options")
    return tuple(options)


def _reference_session(pool: Pool, row: Mapping[str, str], turns: int) -> frozenset[str]:
    """Find the session the question was made from, counted back from where it was asked."""
    try:
        end = int(row["end_index_in_shared_context"])
        distance = int(row["distance_to_ref_in_blocks"])
    except ValueError as error:
        raise InputError(
            f"Expected whole numbers: {error}", field="distance_to_ref_in_blocks"
        ) from None
    position = (len(pool) if end == turns - 1 else len(pool) - 1) - distance
    if not 0 <= position < len(pool):
        raise InputError(
            f"the reference session would be number {position} of {len(pool)}",
            field="distance_to_ref_in_blocks",
        )
    return frozenset((pool.records[position].id,))


def _notes(inputs: Mapping[str, str]) -> tuple[str, ...]:
    changed = [name for name, digest in inputs.items() if digest != _PUBLISHED[name]]
    if not changed:
        return ()
    return (f"{', '.join(changed)}: not the files that the published numbers come from",)
