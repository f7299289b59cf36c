"""Shards perform the trials of overlapping writes; merging gives the numbers of one run."""

from __future__ import annotations

import pytest

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
        assert "when added one by one" in audit(f"part{number}", "--shard", f"{number}/2")
        assert "overlap,sample,overlap_toys:LostUpdate" in read(f"part{number}")
    parts = [tmp_path / f"part{number}" for number in (1, 2)]
    outcome = cli("merge", *parts, "--run", tmp_path / "merged")
    assert outcome.code == 0, outcome.err
    assert read("merged") == read("whole")
    merged = outcome.out
    marked = [line for line in sentences.splitlines() if "overlap:k=2" in line]
    assert marked
    assert [line for line in merged.splitlines() if "overlap:k=2" in line] == marked
