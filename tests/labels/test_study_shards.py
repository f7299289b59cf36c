"""Shards of `screen` and `support`: each reads the cards of its pools, and merging asks nobody."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError, SpecError
from routeprism.models import Ask, Reply


@dataclass(frozen=True)
class Reader:
    """Reads cards by rule, and counts how often it was asked for each."""

    asks: Counter[tuple[str, str]] = field(default_factory=Counter, compare=False)
    name: str = "rule"
    settings: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    embedded: bool = False
    concurrency: int = 3

    def answer(self, ask: Ask, /) -> Reply:
        self.asks[ask.text, ask.batch] += 1
        digest = hashlib.sha256(f"{ask.text}{ask.batch}".encode()).digest()
        if '"records"' not in ask.text:
            label = ("admissible", "ambiguous", "inadmissible")[digest[0] % 3]
            return Reply(json.dumps({"label": label, "reason": "a rule"}))
        number = ask.text.count("<record number=")
        labels = [("direct", "none")[digest[at % 32] % 2] for at in range(number)]
        records = [{"record": at, "label": label} for at, label in enumerate(labels, start=1)]
        return Reply(json.dumps({"records": records}))


def perform(command: str, reader: Reader, sheet: Path, **options: Any) -> Any:
    passes = {"one": reader, "two": reader, "people": sheet}
    return getattr(routeprism, command)("sample", passes=passes, resamples=100, **options)


def complete_sheet(command: str, directory: Path) -> Path:
    sheet = directory / "sheet.csv"
    getattr(routeprism, command)("sample", export=sheet)
    head, *lines = sheet.read_text(encoding="utf-8-sig").splitlines()
    label = {"screen": "admissible", "support": "none"}[command]
    import csv
    import io

    rows = list(csv.DictReader(io.StringIO("\n".join([head, *lines]))))
    with sheet.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows({**row, "label": label} for row in rows)
    return sheet


@pytest.mark.parametrize("command", ["screen", pytest.param("support", marks=pytest.mark.slow)])
def test_shards_of_a_study_give_the_run_of_a_single_one(command: str, tmp_path: Path) -> None:
    sheet = complete_sheet(command, tmp_path)
    reader = Reader()
    whole = perform(command, reader, sheet, run=tmp_path / "whole")
    assert reader.asks and set(reader.asks.values()) == {1}
    expected = json.loads((tmp_path / "whole" / "manifest.json").read_text())
    for count in (1, 2, 5):
        parts = Reader()
        runs = [tmp_path / f"{number}-of-{count}" for number in range(1, count + 1)]
        for number, run in enumerate(runs, start=1):
            perform(command, parts, sheet, run=run, shard=f"{number}/{count}")
        assert parts.asks == reader.asks
        merged = perform(command, parts, sheet, run=tmp_path / f"all-{count}", shards=runs[::-1])
        assert parts.asks == reader.asks
        assert (merged.rows, merged.statements) == (whole.rows, whole.statements)
        manifest = json.loads((tmp_path / f"all-{count}" / "manifest.json").read_text())
        for part in ("configuration", "counts", "statements", "notes", "limits"):
            assert manifest[part] == expected[part]
        for name in ("estimates.csv", "readings-one.json", "readings-people.json"):
            content = (tmp_path / f"all-{count}" / name).read_bytes()
            assert content == (tmp_path / "whole" / name).read_bytes()
    assert perform(command, parts, sheet, shards=runs).rows == whole.rows
    assert parts.asks == reader.asks


def test_a_shard_of_a_study_is_refused_without_a_run_and_with_an_export(tmp_path: Path) -> None:
    sheet = complete_sheet("screen", tmp_path)
    with pytest.raises(SpecError, match="a shard stores its results: set run as well"):
        perform("screen", Reader(), sheet, shard="1/2")
    with pytest.raises(SpecError, match="shard applies to passes, and export writes all cards"):
        routeprism.screen("sample", export=tmp_path / "cards.csv", shard="1/2")
    perform("screen", Reader(), sheet, run=tmp_path / "1", shard="1/2")
    with pytest.raises(RunError, match=r"shards are missing: 2/2$"):
        perform("screen", Reader(), sheet, run=tmp_path / "all", shards=[tmp_path / "1"])


def test_a_dry_run_of_a_shard_counts_its_own_cards(cli: Any, tmp_path: Path) -> None:
    words = ("screen", "sample", "--pass", "a=openai:m", "--base-url", "http://127.0.0.1:1/v1")
    whole = json.loads(cli(*words, "--dry-run", "--json").out)["a"]["calls"]
    parts = [
        json.loads(cli(*words, "--dry-run", "--json", "--shard", f"{number}/3").out)["a"]["calls"]
        for number in (1, 2, 3)
    ]
    assert sum(parts) == whole
    assert all(0 < part < whole for part in parts)


def test_merging_a_screen_in_python_writes_the_questions_of_its_gate(tmp_path: Path) -> None:
    """Completed sheets can be named on a command line, so that `merge` finds them again."""
    sheet = complete_sheet("screen", tmp_path)
    options = {"passes": [f"people={sheet}"], "gate": "people", "resamples": 100}
    mask = tmp_path / "mask.txt"
    whole = routeprism.screen("sample", **options, write_mask=mask)
    expected = mask.read_text()
    assert expected.splitlines()
    runs = [tmp_path / "1", tmp_path / "2"]
    mask.unlink()
    for number, run in enumerate(runs, start=1):
        shard = f"{number}/2"
        routeprism.screen("sample", **options, write_mask=mask, run=run, shard=shard)
    assert not mask.exists()
    merged = routeprism.merge(*runs, run=tmp_path / "all")
    assert merged.rows == whole.rows
    assert mask.read_text() == expected


def test_shards_of_a_screen_whose_data_changed_are_refused(
    own_data: Callable[..., Path], tmp_path: Path
) -> None:
    records = [{"user": user, "id": f"{user}-r", "text": "A record."} for user in "ab"]
    questions = [{"user": user, "id": f"{user}-q", "text": "Which?"} for user in "ab"]
    data = own_data(records, questions)
    runs = [tmp_path / "1", tmp_path / "2"]
    for number, run in enumerate(runs, start=1):
        passes = {"rule": Reader()}
        routeprism.screen(data, passes=passes, resamples=100, run=run, shard=f"{number}/2")
    file = data / "records.jsonl"
    file.write_text(file.read_text().replace("A record.", "A different record."))
    with pytest.raises(RunError, match="cannot be merged: the data changed since it was made"):
        routeprism.screen(data, passes={"rule": Reader()}, resamples=100, shards=runs)
