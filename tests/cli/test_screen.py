"""What `audit` prints: one judgement on at most 25 lines of 80 columns, with counts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.cli._console import fold_texts

Cli = Callable[..., Any]
MEMORIES = """
import asyncio


class Kept:
    def __init__(self):
        self.records = []

    def add(self, record):
        self.records = [*self.records, record]

    def retained(self):
        return [record.id for record in self.records]

    def expose(self, query):
        return sorted(self.records, key=lambda record: record.id)


class Silent(Kept):
    def expose(self, query):
        return []


class LostUpdate(Kept):
    async def add(self, record):
        records = self.records
        await asyncio.sleep(0)
        self.records = [*records, record]
"""
FAST = ("--resamples", "100", "--workers", "1")


@pytest.fixture
def screen(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run commands on a screen of 80 columns, beside a module with memories."""
    (tmp_path / "screen_memories.py").write_text(MEMORIES, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("COLUMNS", "80")
    return cli


def count_lines(out: str) -> int:
    """Count lines as a terminal of 80 columns shows them."""
    return sum(max(1, math.ceil(len(line.rstrip()) / 80)) for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "level", "count"),
    [
        # A window of three shows the last records in source order and the first ones in reversal.
        (("sample", "-p", "recent:k=3"), "evidence moves", "83 of 165 questions lose evidence"),
        (("sample", "-p", "raw"), "internal only", "0 of 165 questions lose evidence"),
        (("sample", "-p", "screen_memories:Kept"), "stable", "0 of 165 questions lose evidence"),
        (("sample", "-p", "screen_memories:Silent"), "inconclusive", "165 of 165 questions lack"),
        (
            ("sample", "-p", "screen_memories:LostUpdate", "-s", "overlap:k=2", "-s", "replay"),
            "promise failed",
            "trials with overlapping writes lose a record",
        ),
        (
            ("sample-updates", "-p", "facts:by=arrival", "-m", "reader"),
            "answers worse",
            "144 of 144 questions lose evidence",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else value[2],
)
def test_one_memory_takes_25_lines(
    words: tuple[str, ...], level: str, count: str, screen: Cli
) -> None:
    ended = screen("audit", *words, *FAST)
    assert ended.code == 0, ended.err
    assert count_lines(ended.out) <= 25
    assert f"\n{words[2]}: {level} [synthetic]" in ended.out
    assert count in " ".join(ended.out.split())
    # Shares have counts: the only percentage is that of a confidence.
    assert set(re.findall(r"\d+%", ended.out)) <= {"95%"}
    commands = [line for line in ended.out.splitlines() if line.startswith("  Next: ")]
    assert len(commands) <= 1
    # All that is printed but commands and paths fits into 80 columns.
    texts = [line for line in ended.out.splitlines() if "routeprism" not in line]
    assert max(len(line.rstrip()) for line in texts if "Report: " not in line) <= 80


@pytest.mark.slow
def test_every_output_has_the_level_and_the_counts(screen: Cli) -> None:
    words = ("audit", "sample", "-p", "recent:k=3", *FAST)
    quiet, verbose = screen(*words, "-q").out, screen(*words, "-v").out
    assert quiet.startswith("recent:k=3: evidence moves. Under reversal, 83 of 165 questions")
    assert quiet.count("\n") == 1
    assert "evidence moves" in verbose and count_lines(verbose) > 25


def test_a_text_that_is_cut_ends_with_a_mark() -> None:
    text = " ".join(f"word{n}" for n in range(40))
    lines = fold_texts([text, "second"], 60, 3)
    assert len(lines) == 3 and lines[-1].endswith(" …")
    assert max(map(len, lines)) <= 60
    assert fold_texts([text, "second"], 60)[-1] == "second"
    assert fold_texts(["short", "second"], 60, 3) == ["short", "second"]
    assert fold_texts([], 60, 3) == []
