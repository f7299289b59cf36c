"""A small benchmark with options and labels, and what a run directory comes down to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

_TOPICS = ("tea", "rain", "chess", "bread")


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three users with four records and two questions each, as own data."""
    directory = tmp_path_factory.mktemp("data") / "small"
    directory.mkdir()
    records, questions = [], []
    for user in ("ann", "ben", "cleo"):
        for at, topic in enumerate(_TOPICS):
            text = f"I like {topic} on day {at}, and {_TOPICS[at - 1]} no more, says {user}."
            records.append({"user": user, "id": f"{user}-{at}", "text": text})
        for at in (0, 2):
            questions.append(
                {
                    "user": user,
                    "id": f"{user}-q{at}",
                    "text": f"What does {user} like on day {at}?",
                    "options": list(_TOPICS),
                    "gold": "abcd"[at],
                    "support": [f"{user}-{at}"],
                }
            )
    for name, entries in (("records", records), ("questions", questions)):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        (directory / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return directory
