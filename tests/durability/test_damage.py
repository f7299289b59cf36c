"""A damaged, truncated or foreign run gives one line that says what is wrong, and stays."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError
from routeprism.runs import StoredRun

pytestmark = pytest.mark.slow

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "report": ("report", "RUN", "--out", "page.html"),
    "tables": ("report", "RUN", "--out", "page.html", "--tables", "tables"),
    "answers": ("report", "RUN", "--out", "page.html", "--answers", "answers.csv"),
    "check": ("check", "RUN", "--gate", "J>=0"),
    "baseline": ("check", "GOOD", "--baseline", "RUN"),
    "compare": ("compare", "GOOD", "RUN"),
    "trace": ("trace", "RUN", "--row", "1"),
    "plan": ("plan", "RUN", "--quantity", "J", "--half-width", "0.1"),
    "support": ("support", "DATA", "--compiled", "RUN", "--export", "cards"),
    "resume": (
        *("audit", "DATA", "-p", "recent:k=2", "--model", "reader", "--run", "RUN"),
        *("--resamples", "100", "--quiet"),
    ),
}


def change_manifest(change: Callable[[dict[str, Any]], Any]) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        path = run / "manifest.json"
        manifest = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(change(manifest)), encoding="utf-8")

    return damage


def without(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(manifest: dict[str, Any]) -> dict[str, Any]:
        inner = manifest
        for name in names[:-1]:
            inner = inner[name]
        del inner[names[-1]]
        return manifest

    return change


def execute(*statements: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        with closing(sqlite3.connect(run / "run.sqlite")) as store, store:
            for statement in statements:
                store.execute(statement)

    return damage


def cut(name: str, share: float) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        content = (run / name).read_bytes()
        (run / name).write_bytes(content[: int(len(content) * share)])

    return damage


def overwrite(name: str, content: bytes) -> Callable[[Path], None]:
    return lambda run: (run / name).write_bytes(content) and None


def scramble(run: Path) -> None:
    """Write noise into the middle of every page but the first."""
    path = run / "run.sqlite"
    content = bytearray(path.read_bytes())
    for page in range(4096, len(content), 4096):
        content[page + 8 : page + 64] = b"\xa5" * 56
    path.write_bytes(bytes(content))


def replace_store(run: Path) -> None:
    (run / "run.sqlite").unlink()
    with closing(sqlite3.connect(run / "run.sqlite")) as store, store:
        store.execute("CREATE TABLE estimates (name, value)")
        store.execute("INSERT INTO estimates VALUES ('J', 1)")
        store.execute("CREATE TABLE questions (name)")


def change_page(number: int, content: bytes) -> Callable[[Path], None]:
    """Put something else in the place of a page, counted from 0; of the last one with -1."""

    def damage(run: Path) -> None:
        path = run / "run.sqlite"
        pages = [path.read_bytes()[at : at + 4096] for at in range(0, path.stat().st_size, 4096)]
        pages[number] = content
        path.write_bytes(b"".join(pages))

    return damage


INCOMPLETE_STORES: Mapping[str, Callable[[Path], Any]] = {
    **{f"store cut to {share}": cut("run.sqlite", share) for share in (0.95, 0.99, 0.999)},
    "empty store": cut("run.sqlite", 0.0),
    "store without its last byte": lambda run: os.truncate(
        run / "run.sqlite", (run / "run.sqlite").stat().st_size - 1
    ),
    "store without a page": change_page(9, b""),
    "store without its last page": change_page(-1, b""),
    "store with an empty page": change_page(9, bytes(4096)),
    "store with an empty last page": change_page(-1, bytes(4096)),
}
FORMATS = {"none": without("format")} | {
    repr(value): lambda manifest, value=value: {**manifest, "format": value}
    for value in (None, True, 1.0, "1", [1], 0, 2)
}
DAMAGES: Mapping[str, Callable[[Path], Any]] = {
    **{f"store cut to {share}": cut("run.sqlite", share) for share in (0.0, 0.01, 0.3, 0.7)},
    **{f"manifest cut to {share}": cut("manifest.json", share) for share in (0.0, 0.4, 0.99)},
    "no store": lambda run: (run / "run.sqlite").unlink(),
    "no manifest": lambda run: (run / "manifest.json").unlink(),
    "store is text": overwrite("run.sqlite", b"no database, but long enough to be one" * 99),
    "store is of somebody else": replace_store,
    "store is scrambled": scramble,
    "manifest is no object": overwrite("manifest.json", b"[1, 2]"),
    "manifest is no text": overwrite("manifest.json", b"\xff\xfe\x00{"),
    "manifest is deep": overwrite("manifest.json", b"[" * 100_000),
    "no configuration": change_manifest(without("configuration")),
    "no status": change_manifest(without("status")),
    "unknown status": change_manifest(lambda manifest: {**manifest, "status": "odd"}),
    "no benchmark": change_manifest(without("configuration", "benchmark")),
    "no policies": change_manifest(without("configuration", "policies")),
    "no schedules": change_manifest(without("configuration", "schedules")),
    "no batches": change_manifest(without("configuration", "batches")),
    "no command": change_manifest(without("configuration", "command")),
    "no weighting": change_manifest(without("configuration", "weighting")),
    "no index": change_manifest(without("experiments")),
    "notes are a number": change_manifest(lambda manifest: {**manifest, "notes": 3}),
    "counts are text": change_manifest(lambda manifest: {**manifest, "counts": "x"}),
    "index is a list": change_manifest(lambda manifest: {**manifest, "experiments": [1]}),
    "configuration is text": change_manifest(lambda manifest: {**manifest, "configuration": "x"}),
    "a manifest of something else": overwrite("manifest.json", b'{"name": "app", "version": 3}'),
    "no estimates": execute("DROP TABLE estimates"),
    "no questions": execute("DROP TABLE questions"),
    "no exposures": execute("DROP TABLE exposures"),
    "no traces": execute("DROP TABLE traces"),
    "no texts": execute("DELETE FROM texts"),
    "no values": execute("DROP TABLE per_question"),
    "no answers": execute("DROP TABLE answers"),
    "a column less": execute("ALTER TABLE estimates DROP COLUMN flags"),
    "estimates are text": execute("UPDATE estimates SET estimate = 'x'"),
    "values are no JSON": execute("UPDATE per_question SET quantities = '{'"),
    "options are no JSON": execute("UPDATE questions SET options = '['"),
    "retained ids are NULL": execute("UPDATE traces SET retained = NULL"),
    "blocks are a number": execute("UPDATE contexts SET blocks = '7'"),
    "answers are NULL": execute("UPDATE answers SET answer = NULL"),
    "questions are gone": execute("DELETE FROM questions"),
}


@pytest.fixture(scope="module")
def good(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("good") / "run"
    routeprism.audit(small_data, "recent:k=2", models=["reader"], run=directory, resamples=100)
    return directory


def ledger(run: Path) -> bytes:
    """The store's bytes: reading commands change nothing in it."""
    return (run / "run.sqlite").read_bytes() if (run / "run.sqlite").exists() else b""


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_run_gives_one_line(
    good: Path, small_data: Path, tmp_path: Path, cli: Any, damage: str, command: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(good, run)
    DAMAGES[damage](run)
    before = ledger(run)
    places = {"RUN": run, "GOOD": good, "DATA": small_data}
    outcome = cli(*(places.get(word, word) for word in COMMANDS[command]))
    assert outcome.code in (0, 1, 2, 3), outcome.err
    assert "Traceback" not in outcome.err
    if outcome.code == 2:
        lines = outcome.err.strip().splitlines()
        assert lines[0].startswith("routeprism: ")
        # A run with another configuration is refused with a line for each difference.
        assert len(lines) == 1 or lines[0].endswith(":")
        assert all(line.startswith("  ") for line in lines[1:])
    if command != "resume":
        assert ledger(run) == before


def assert_refused(good: Path, data: Path, run: Path, cli: Any, command: str, reason: str) -> None:
    before = ledger(run)
    places = {"RUN": run, "GOOD": good, "DATA": data}
    outcome = cli(*(places.get(word, word) for word in COMMANDS[command]))
    assert outcome.code == 2, outcome.out
    [line] = outcome.err.strip().splitlines()
    assert reason in line
    assert ledger(run) == before


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("damage", INCOMPLETE_STORES)
def test_a_store_that_lost_content_is_refused(
    good: Path, small_data: Path, tmp_path: Path, cli: Any, damage: str, command: str
) -> None:
    shutil.copytree(good, tmp_path / "run")
    INCOMPLETE_STORES[damage](tmp_path / "run")
    assert_refused(good, small_data, tmp_path / "run", cli, command, "run.sqlite")


def test_every_page_of_a_store_is_missed(good: Path, tmp_path: Path) -> None:
    pages = (good / "run.sqlite").stat().st_size // 4096
    for number in range(pages):
        for content in (b"", bytes(4096)):
            run = tmp_path / f"{number}-{len(content)}"
            shutil.copytree(good, run)
            change_page(number, content)(run)
            with pytest.raises(RunError), StoredRun(run):
                pass


def test_a_damaged_shard_is_not_merged(small_data: Path, tmp_path: Path) -> None:
    shards = [tmp_path / "1", tmp_path / "2"]
    for at, shard in enumerate(shards, start=1):
        options: dict[str, Any] = {"models": ["reader"], "resamples": 100, "shard": f"{at}/2"}
        routeprism.audit(small_data, "recent:k=2", run=shard, **options)
    cut("run.sqlite", 0.999)(shards[1])
    with pytest.raises(RunError, match=r"2/run\.sqlite is damaged: \d+ bytes are missing"):
        routeprism.merge(*shards, run=tmp_path / "merged")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("version", FORMATS)
def test_a_manifest_without_the_current_format_is_refused(
    good: Path, small_data: Path, tmp_path: Path, cli: Any, version: str, command: str
) -> None:
    shutil.copytree(good, tmp_path / "run")
    change_manifest(FORMATS[version])(tmp_path / "run")
    assert_refused(good, small_data, tmp_path / "run", cli, command, "format")


def replace_by_pipe(name: str) -> Callable[[Path], None]:
    def damage(run: Path) -> None:
        (run / name).unlink()
        os.mkfifo(run / name)

    return damage


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda run: (run / "run.sqlite").unlink(), "run.sqlite is missing"),
        (replace_by_pipe("run.sqlite"), "run.sqlite is not a regular file"),
        (replace_by_pipe("manifest.json"), "manifest.json is not a regular file"),
    ],
    ids=["no store", "store is a pipe", "manifest is a pipe"],
)
def test_a_finished_run_without_its_files_is_refused(
    good: Path,
    small_data: Path,
    tmp_path: Path,
    cli: Any,
    damage: Callable[[Path], None],
    reason: str,
    command: str,
) -> None:
    run = tmp_path / "run"
    shutil.copytree(good, run)
    damage(run)
    before = sorted(path.name for path in run.iterdir())
    places = {"RUN": run, "GOOD": good, "DATA": small_data}
    outcome = cli(*(places.get(word, word) for word in COMMANDS[command]))
    assert outcome.code == 2
    assert reason in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
    assert sorted(path.name for path in run.iterdir()) == before
