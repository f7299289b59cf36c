"""Shards perform the trials of overlapping writes; merging gives the numbers of one run."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from overlap_toys import Base

import routeprism
from routeprism.records import Case, Pool, Question, Record

SPECS = ("overlap_toys:LostUpdate", "overlap_toys:Locked")


@pytest.mark.slow
def test_merged_trials_are_those_of_one_run(cli, tmp_path) -> None:
    policies = [word for spec in SPECS for word in ("--policy", spec)]
    words = ["audit", "sample", *policies, "--schedule", "overlap:k=2"]

    def audit(name, *options) -> str:
        outcome = cli(*words, "--overlap-trials", "2", "--run", tmp_path / name, *options)
        assert outcome.code == 0, outcome.err
        return outcome.out

    def read(name) -> str:
        return (tmp_path / name / "estimates.csv").read_text(encoding="utf-8")

    sentences = audit("whole")
    for number in (1, 2):
        assert "lose a record" in audit(f"part{number}", "--shard", f"{number}/2")
        assert "overlap,sample,overlap_toys:LostUpdate" in read(f"part{number}")
    parts = [tmp_path / f"part{number}" for number in (1, 2)]
    outcome = cli("merge", *parts, "--run", tmp_path / "merged")
    assert outcome.code == 0, outcome.err
    assert read("merged") == read("whole")
    merged = outcome.out
    marked = [line for line in sentences.splitlines() if "overlap:k=2" in line]
    assert marked
    assert [line for line in merged.splitlines() if "overlap:k=2" in line] == marked


class Blocking(Base):
    """Blocks if two adds of the users b and c overlap."""

    write_limit = 5.0
    writing = 0

    async def add(self, record) -> None:
        self.writing += 1
        await asyncio.sleep(0.01)
        if self.writing > 1 and record.id[0] in "bc":
            threading.Event().wait()
        self.items = (*self.items, record.id)
        self.writing -= 1


@pytest.mark.slow
def test_shards_that_block_at_different_users_are_merged_as_one_run(tmp_path) -> None:
    cases = []
    for user in "abcd":
        records = tuple(Record(f"{user}{at}", at, f"text {at}") for at in range(3))
        question = Question(id=f"q{user}", user=user, text="text 1", kind="")
        cases.append(Case(Pool(user, records), (question,)))
    benchmark = replace(routeprism.load_benchmark("sample"), cases=tuple(cases))

    def audit(name, **options) -> str:
        run = tmp_path / name
        words = {"schedules": ["overlap:k=2"], "rebuilds": 0, "overlap_trials": 4}
        routeprism.audit(benchmark, Blocking, run=run, **words, **options)
        return (run / "estimates.csv").read_text(encoding="utf-8")

    parts = [tmp_path / f"part{number}" for number in (1, 2)]
    whole = audit("whole")
    audit("part1", shard="1/2")
    audit("part2", shard="2/2")
    # No trials follow those of b, although the shard of c did not know that b had blocked.
    assert audit("merged", shards=parts) == whole
