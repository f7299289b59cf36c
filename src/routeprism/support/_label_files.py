"""Labels from a file: a stored support pass, or a plain table of questions and records."""

from __future__ import annotations

from pathlib import Path

from routeprism.records import Benchmark
from routeprism.support._labels import PREFIX, with_labels, with_readings
from routeprism.support._sheets import read_bytes, read_table
from routeprism.support._stored import load_readings

__all__ = ["with_label_file"]


def with_label_file(benchmark: Benchmark, path: Path) -> Benchmark:
    """Add the labels of a file as `audited:` and its name.

    A pass (JSON) has a name of its own. A table (.csv, .tsv) is named like its file and has the
    columns `question` and `record`, one row for each record that carries the answer; a question
    with an empty record was read, and has none.
    """
    if path.suffix.lower() not in (".csv", ".tsv"):
        return with_readings(benchmark, load_readings(path))
    labels: dict[str, set[str]] = {}
    for row in read_table(read_bytes(path), path, [["question"], ["record"]]):
        question, record = row.get("question"), row.get("record")
        if not question:
            raise row.error("no question is named", "question")
        if record and record in labels.get(question, ()):
            raise row.error(f"the record '{record}' of question '{question}' is there", "record")
        labels.setdefault(question, set()).update([record] if record else [])
    found = {question: frozenset(records) for question, records in labels.items()}
    return with_labels(benchmark, f"{PREFIX}{path.stem}", found)
