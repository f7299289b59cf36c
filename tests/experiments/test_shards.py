"""Shards: several runs on parts of the pools give the numbers of a single run."""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError, SpecError
from routeprism.experiments import Shard, check_shards, parse_shard

from ..doubles import Everything

audit = partial(routeprism.audit, "sample", "focal", "recent:k=3", resamples=200)
restore = partial(routeprism.restore, "sample", "focal", models=["reader"], resamples=200)
orders = partial(routeprism.explore_orders, "sample", "focal", "recent:k=3", resamples=200)
curve = partial(routeprism.curve, "sample", "recent", budgets="k=2,4", resamples=200)
COMMANDS = {"audit": audit, "restore": restore, "orders": orders, "curve": curve}


def shard_runs(perform: Any, directory: Path, count: int) -> list[Path]:
    runs = [directory / f"part-{number}-of-{count}" for number in range(1, count + 1)]
    for number, run in enumerate(runs, start=1):
        perform(run=run, shard=f"{number}/{count}")
    return runs


def read_manifest(run: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return manifest


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_shards_give_the_numbers_of_a_single_run(name: str, tmp_path: Path) -> None:
    perform = COMMANDS[name]
    whole = perform(run=tmp_path / "whole")
    expected = (tmp_path / "whole" / "estimates.csv").read_bytes()
    manifest = read_manifest(tmp_path / "whole")
    for count in (1, 2, 5):
        runs = shard_runs(perform, tmp_path, count)
        notes = read_manifest(runs[0])["notes"]
        assert notes[0].startswith(f"These numbers are those of shard 1/{count} alone")
        merged = perform(run=tmp_path / f"merged-{count}", shards=runs[::-1])
        assert (tmp_path / f"merged-{count}" / "estimates.csv").read_bytes() == expected
        repetition = read_manifest(tmp_path / f"merged-{count}")
        for part in ("configuration", "counts", "statements", "notes", "limits"):
            assert repetition[part] == manifest[part], part
        assert list(map(str, merged.verdicts)) == list(map(str, whole.verdicts))
        assert merged.findings == whole.findings


@pytest.mark.slow
def test_the_command_merges_and_writes_the_same_report(cli: Any, tmp_path: Path) -> None:
    words = ("orders", "sample", "-p", "focal", "--resamples", "100", "-q")
    run = tmp_path / "run"  # the report names its directory, so both runs have the same
    cli(*words, "--run", run)
    run.rename(tmp_path / "whole")
    for number in (1, 2):
        cli(*words, "--shard", f"{number}/2", "--run", tmp_path / str(number))
    outcome = cli("merge", tmp_path / "1", tmp_path / "2", "-q", "--run", run)
    assert outcome.err == ""
    for file in ("estimates.csv", "report.html"):
        assert (run / file).read_bytes() == (tmp_path / "whole" / file).read_bytes()
    merged = routeprism.merge(tmp_path / "1", tmp_path / "2", run=tmp_path / "merged")
    assert merged.rows == routeprism.merge(tmp_path / "2", tmp_path / "1").rows
    expected = (tmp_path / "whole" / "estimates.csv").read_bytes()
    assert (tmp_path / "merged" / "estimates.csv").read_bytes() == expected


@pytest.mark.slow
def test_shards_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    runs = shard_runs(audit, tmp_path, 2)
    with pytest.raises(RunError, match=r"shards are missing: 2/2$"):
        check_shards(runs[:1])
    with pytest.raises(RunError, match="are both shard 1/2"):
        check_shards([runs[0], runs[0]])
    audit(run=tmp_path / "seed", shard="2/2", seed=5)
    with pytest.raises(RunError, match="they differ in seed"):
        check_shards([runs[0], tmp_path / "seed"])
    audit(run=tmp_path / "third", shard="1/3")
    with pytest.raises(RunError, match="they differ in shards"):
        check_shards([runs[0], tmp_path / "third"])
    audit(run=tmp_path / "whole")
    with pytest.raises(RunError, match="is not a shard"):
        check_shards([tmp_path / "whole"])
    (runs[1] / "cases.jsonl.gz").unlink()
    with pytest.raises(RunError, match=r"is not finished: shard 2/2"):
        check_shards(runs)


@pytest.mark.parametrize("text", ["0/2", "3/2", "2", "a/b", "1/0", ""])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="Expected a shard such as 2/8"):
        parse_shard(text)


def test_every_pool_is_in_one_shard() -> None:
    counts = Counter(at for number in (1, 2, 3) for at in parse_shard(f"{number}/3").choose(8))
    assert counts == Counter(range(8))
    with pytest.raises(SpecError, match="Expected at most 2 shards"):
        parse_shard("1/3").choose(2)


def test_a_shard_needs_a_run() -> None:
    with pytest.raises(SpecError, match="a shard stores its results: set run as well"):
        audit(shard="1/2")


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Give the two shards of an audit by the command line."""
    first, second = shard_runs(audit, tmp_path_factory.mktemp("halves"), 2)
    return first, second


def pack(*lines: bytes) -> bytes:
    return gzip.compress(b"".join(line + b"\n" for line in lines))


def damage(name: str, content: bytes) -> bytes:
    """Damage the file of a shard in one of many ways."""
    head, *lines = gzip.decompress(content).splitlines()
    middle = len(content) // 2
    return {
        "empty": b"",
        "cut in the middle": content[:middle],
        "without its checksum": content[:-3],
        "a wrong byte": content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :],
        "not packed": gzip.decompress(content),
        "no lines": gzip.compress(b""),
        "no results": pack(head),
        "the last result is missing": pack(head, *lines[:-1]),
        "the first result is missing": pack(head, *lines[1:]),
        "a result twice": pack(head, lines[0], *lines),
        "half a result": gzip.compress(head + b"\n" + b"\n".join(lines)[:-50]),
        "no head": pack(*lines),
        "a head of something else": pack(b'{"results": 3}', *lines),
        "results that are no JSON": pack(head, *([b"0\t{{"] * len(lines))),
        "results that are no results": pack(head, *([b"0\tnull"] * len(lines))),
        "a class of Python": pack(head, *([b'0\t["object", "os:stat_result", 1]'] * len(lines))),
        "no class": pack(head, *([b'0\t["object", "routeprism.files:Nothing"]'] * len(lines))),
        "no module": pack(head, *([b'0\t["object", "routeprism.nothing:X"]'] * len(lines))),
        "nested too deeply": pack(head, *([b"0\t" + b"[" * 100_000] * len(lines))),
    }[name]


DAMAGES = (
    *("empty", "cut in the middle", "without its checksum", "a wrong byte", "not packed"),
    *("no lines", "no results", "the last result is missing", "the first result is missing"),
    *("a result twice", "half a result", "no head", "a head of something else"),
    *("results that are no JSON", "results that are no results", "a class of Python"),
    *("no class", "no module", "nested too deeply"),
)


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_shard_is_refused_and_no_pool_is_left_out(
    name: str, halves: tuple[Path, Path], tmp_path: Path
) -> None:
    first, second = halves
    shutil.copytree(second, tmp_path / "second")
    file = tmp_path / "second" / "cases.jsonl.gz"
    file.write_bytes(damage(name, file.read_bytes()))
    with pytest.raises(RunError, match=r"second/cases\.jsonl\.gz cannot be used: .* again$"):
        audit(run=tmp_path / "merged", shards=[first, tmp_path / "second"])
    assert not (tmp_path / "merged").exists()


@pytest.mark.slow
def test_a_shard_without_its_replies_is_refused(halves: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(halves[1], tmp_path / "second")
    (tmp_path / "second" / "run.sqlite").unlink()
    with pytest.raises(RunError, match=r"is damaged: shard 2/2 has no run\.sqlite"):
        check_shards([halves[0], tmp_path / "second"])


def test_a_shard_whose_store_has_wrong_bytes_is_refused(
    halves: tuple[Path, Path], tmp_path: Path
) -> None:
    shutil.copytree(halves[1], tmp_path / "second")
    store = tmp_path / "second" / "run.sqlite"
    # The name of a table, in the schema: SQLite quotes it in its message.
    store.write_bytes(store.read_bytes().replace(b"estimatesestimates", b"\x9c" * 18))
    with pytest.raises(RunError, match=r"run\.sqlite cannot be read"):
        audit(run=tmp_path / "merged", shards=[halves[0], tmp_path / "second"])


class Notes(Everything):
    """A memory whose code changes between the shards and the merged run."""


def change_code() -> Any:
    class Notes(Everything):
        """The same memory after a change."""

    return Notes


@pytest.mark.parametrize(
    ("change", "names"), [("data", "fingerprint, inputs"), ("memory", "sources")]
)
def test_shards_of_earlier_data_or_code_are_refused(
    change: str, names: str, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for name, text in (("records", "Ann has a dog"), ("questions", "Which pet?")):
        lines = [json.dumps({"user": u, "id": f"{name}-{u}", "text": text}) for u in "ab"]
        (data / f"{name}.jsonl").write_text("\n".join(lines))
    perform = partial(routeprism.explore_orders, str(data))
    runs = shard_runs(partial(perform, Notes), tmp_path, 2)
    perform(Notes, run=tmp_path / "same", shards=runs)
    memory: Any = Notes
    if change == "data":
        (data / "records.jsonl").write_text((data / "records.jsonl").read_text() + " ")
    else:
        memory = change_code()
    match = rf"part-1-of-2 cannot be merged: {names} changed since it was made"
    with pytest.raises(RunError, match=match):
        perform(memory, run=tmp_path / "merged", shards=runs)
    assert not (tmp_path / "merged").exists()


@pytest.mark.slow
def test_a_shard_that_is_not_finished_is_refused(halves: tuple[Path, Path], tmp_path: Path) -> None:
    first, second = halves
    shutil.copytree(second, tmp_path / "second")
    path = tmp_path / "second" / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**manifest, "status": "running"}), encoding="utf-8")
    with pytest.raises(RunError, match=r"is not finished: run the command of shard 2/2 again$"):
        check_shards([first, tmp_path / "second"])


@pytest.mark.slow
def test_a_shard_killed_between_its_run_and_its_results_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run has been extended, and the results are those from before."""
    run = tmp_path / "first"
    extend = partial(restore, run=run, shard="1/1")
    extend(draws=1)
    with monkeypatch.context() as patch:
        patch.setattr(Shard, "finish", lambda *_: None)
        extend(draws=2)
    with pytest.raises(RunError, match="it was written before the run was extended"):
        check_shards([run])
    extend(draws=2)
    assert check_shards([run])[0] == [run]
