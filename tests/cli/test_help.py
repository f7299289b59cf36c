"""Help at 80 columns, whole, as golden files: `python tests/cli/test_help.py` writes them again."""

from __future__ import annotations

import contextlib
import io
import os
import shlex
from pathlib import Path

import pytest

from routeprism.cli import COMMANDS, parse, run_command

GOLDEN = Path(__file__).parent / "help"
NAMES = ("", *COMMANDS)


def show_help(name: str) -> str:
    os.environ["COLUMNS"] = "80"
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        run_command([*([name] if name else []), "--help"])
    return out.getvalue()


def golden_file(name: str) -> Path:
    return GOLDEN / f"{name or 'routeprism'}.txt"


@pytest.mark.parametrize("name", NAMES)
def test_help_is_the_golden_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = show_help(name)
    assert text == golden_file(name).read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80
    cut = [line for line in text.splitlines() if line.endswith(("…", "..."))]
    assert not cut


def test_every_command_has_a_golden_file_and_none_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {name or "routeprism" for name in NAMES}


def test_the_overview_shows_each_summary_in_one_line() -> None:
    overview = golden_file("").read_text(encoding="utf-8")
    for command in COMMANDS.values():
        assert f"  {command.name:<15}{command.summary}\n" in overview
    groups = ("Find", "Gate", "Look", "Research", "Set up")
    assert tuple(dict.fromkeys(command.group for command in COMMANDS.values())) == groups


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_examples_can_be_parsed_and_end_the_help(command) -> None:  # type: ignore[no-untyped-def]
    assert command.examples
    for words, _ in command.examples:
        name, *rest = shlex.split(words)
        assert name == command.name
        parse(name, rest)
    last = command.examples[-1][0]
    text = golden_file(command.name).read_text(encoding="utf-8")
    assert text.endswith(f"\n  routeprism {last}\n")


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_help_starts_with_the_subject_of_the_command(command) -> None:  # type: ignore[no-untyped-def]
    """Only commands that build memories have a group "What to audit"."""
    _, *blocks = golden_file(command.name).read_text(encoding="utf-8").split("\n\n")
    headings = [block.partition(":\n")[0] for block in blocks if ":\n" in block]
    builds = command.name in ("audit", "restore", "remedy", "orders", "curve")
    assert (headings[0] == "What to audit") is builds
    assert "What to audit" not in headings[1:]


def test_a_default_of_one_command_replaces_the_general_one() -> None:
    """`curve` compares two schedules, so the default of other commands does not apply."""
    text = golden_file("curve").read_text(encoding="utf-8")
    option = text[text.index("-s, --schedule") : text.index("--against")]
    assert "[default: replay, jitter:w=2]" in " ".join(option.split())
    assert "Default:" not in option


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for command_name in NAMES:
        golden_file(command_name).write_text(show_help(command_name), encoding="utf-8")
