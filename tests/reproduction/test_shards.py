"""Shards of `reproduce`: each executes some of the source runs, and merging writes all values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError, SpecError
from routeprism.reproduction import SOURCES, reproduce


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without data, a source run gives its values at once, or the reason why it has none."""
    monkeypatch.delenv("ROUTEPRISM_DATA", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("count", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 5))])
def test_shards_execute_the_source_runs_of_a_single_call(count: int, tmp_path: Path) -> None:
    whole = reproduce(execute=True, model="reader", obtained="whole.json", keep="whole")
    assert whole.refresh is not None
    assert len(whole.refresh.missing) + len(whole.refresh.executed) == len(SOURCES)
    executed: list[str] = []
    runs = []
    for number in range(1, count + 1):
        runs.append(tmp_path / f"part-{number}")
        part = reproduce(
            execute=True, model="reader", shard=f"{number}/{count}", keep=runs[-1], obtained="all"
        )
        assert part.refresh is not None
        executed += [*part.refresh.executed, *part.refresh.missing]
    assert sorted(executed) == sorted(SOURCES)
    assert not Path("all").exists()
    merged = routeprism.merge(*runs, run="merged")
    assert merged.refresh == whole.refresh
    assert Path("all").read_bytes() == Path("whole.json").read_bytes()
    parts = [json.loads(Path(run, "manifest.json").read_text()) for run in ("merged", "whole")]
    assert parts[0] == parts[1]


@pytest.mark.slow
def test_the_command_divides_and_merges(cli: Any, tmp_path: Path) -> None:
    words = ("reproduce", "--run", "--quiet", "--obtained")
    single = cli(*words, tmp_path / "single.json").out
    parts = [tmp_path / "1", tmp_path / "2"]
    for number, part in enumerate(parts, start=1):
        cli(*words, tmp_path / "merged.json", "--shard", f"{number}/2", "--keep", part)
    merged = cli("merge", *parts, "--quiet", "--run", tmp_path / "all")
    assert (merged.out, merged.err) == (single, "")
    assert (tmp_path / "merged.json").read_bytes() == (tmp_path / "single.json").read_bytes()
    assert (tmp_path / "all" / "report.html").exists()


@pytest.mark.slow
def test_shards_that_cannot_be_merged_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="a shard stores its results: set keep as well"):
        reproduce(execute=True, shard="1/2")
    with pytest.raises(SpecError, match=r"shard applies when tables are executed; set execute"):
        reproduce(shard="1/2", keep="one")
    with pytest.raises(SpecError, match="one for each source run, but got 1/1000"):
        reproduce(execute=True, shard="1/1000", keep="one")
    reproduce(execute=True, shard="1/2", keep="one")
    reproduce(execute=True, model="reader", shard="2/2", keep="two")
    with pytest.raises(RunError, match="two does not belong to one: they differ in model"):
        routeprism.merge("one", "two")
    with pytest.raises(RunError, match=r"shards are missing: 2/2$"):
        routeprism.merge("one")
