"""What the README shows is what happens."""

from __future__ import annotations

import contextlib
import io
import json
import re
from pathlib import Path

import pytest

import routeprism
from routeprism.cli._audit import show_demo

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
BLOCKS = [(kind, body) for kind, body in FENCE.findall(README)]


def shown(name: str) -> str:
    """Give the text block between two markers."""
    between = README.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]
    return FENCE.search(between)[2]


def ran(code: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})  # noqa: S102
    return out.getvalue()


def test_the_two_commands_come_first() -> None:
    first = next(body for kind, body in BLOCKS if kind == "console")
    assert [line.split("#")[0].strip() for line in first.splitlines()] == [
        "$ make demo",
        "$ make test",
    ]
    makefile = (ROOT / "Makefile").read_text()
    assert re.search(r"^demo: setup", makefile, re.M)
    assert re.search(r"^test: check", makefile, re.M)


def test_the_ten_lines_are_at_most_ten_and_print_what_is_shown() -> None:
    (code,) = [body for kind, body in BLOCKS if kind == "python"]
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    assert ran(code) == shown("own")


def test_the_demo_prints_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    show_demo(run=Path("runs/demo"), as_json=False, quiet=True)
    printed = "".join(line.rstrip() + "\n" for line in capsys.readouterr().out.splitlines())
    assert printed == shown("demo")


def test_the_two_files_load(tmp_path: Path) -> None:
    records, questions = [body for kind, body in BLOCKS if kind == "json"]
    (tmp_path / "records.jsonl").write_text(records)
    (tmp_path / "questions.jsonl").write_text(questions)
    assert json.loads(questions)["gold"] == "a"
    found = routeprism.audit(tmp_path, "focal", "recent:k=3", resamples=100)
    assert found.counts == {"pools": 1, "records": 2, "questions": 1}
