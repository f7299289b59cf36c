"""Text from outside cannot command a terminal or a build server, whichever command prints it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.printing import printable, printable_json

HOSTILE = "q\x1b[2J\x9b1m\x07\r\n::error::injected\n##[set-env]x##vso[task.complete]\u202edlrow"
UNSAFE = ("\x1b", "\x9b", "\x07", "\r", "\u202e", "##[", "##vso[")


def is_safe(text: str) -> bool:
    lines = [line.strip() for line in text.split("\n")]
    return not any(mark in text for mark in UNSAFE) and not any(
        line.startswith("::") for line in lines
    )


def test_escapes_are_visible() -> None:
    assert printable("a\x1b[1mb\nc") == r"a\x1b[1mb\nc"
    assert printable("a\n::error::b", lines=True) == "a\n\\x3a:error::b"
    assert printable("##[group]x") == r"#\x23[group]x"
    assert printable("##vso[task.complete]") == r"#\x23vso[task.complete]"
    assert printable("##teamcity[buildStop]") == r"#\x23teamcity[buildStop]"
    assert printable("\u202eabc") == r"\u202eabc"
    assert printable("Δ_rep = 0.1 (a::b)") == "Δ_rep = 0.1 (a::b)"


@given(st.text())
def test_every_text_is_safe_in_lines_and_alone(text: str) -> None:
    assert is_safe(printable(text, lines=True))
    assert "\n" not in printable(text)


@given(st.text())
def test_json_is_the_same_value(text: str) -> None:
    content = printable_json({"text": text})
    assert json.loads(content) == {"text": text}
    assert not any(mark in content for mark in UNSAFE)


@pytest.fixture
def hostile_run(own_data: Callable[..., Path], cli: Callable[..., Any]) -> Path:
    """A run whose user, record and question ids, texts and kinds try to command the terminal."""
    records = [
        {"user": HOSTILE, "id": f"{HOSTILE}{n}", "text": f"[USER] I like number{n}. {HOSTILE}"}
        for n in range(4)
    ]
    question = {
        "user": HOSTILE,
        "id": HOSTILE,
        "text": f"Which number? {HOSTILE}",
        "options": ["number0", f"number1 {HOSTILE}"],
        "gold": "a",
        "support": [f"{HOSTILE}0"],
    }
    directory = own_data(records, [question])
    audited = cli("audit", directory, "-p", "recent:k=2", "-m", "reader", "--run", "hostile")
    assert audited.code == 0, audited.err
    assert is_safe(audited.out + audited.err)
    return Path("hostile")


@pytest.mark.parametrize(
    "command",
    [
        ("check", "hostile", "--gate", "J>=0.9"),
        ("check", "hostile", "--gate", "J>=0.9", "--github"),
        ("check", "hostile", "--gate", "J>=0.9", "--json"),
        ("compare", "hostile", "hostile"),
        ("trace", "hostile", "--row", "quantity=J,stratum=all"),
        ("trace", "hostile", "--row", "quantity=H,stratum=all"),
        ("report", "hostile"),
    ],
)
def test_commands_on_a_hostile_run_print_nothing_unsafe(
    hostile_run: Path, cli: Callable[..., Any], command: tuple[str, ...]
) -> None:
    outcome = cli(*command)
    content = outcome.out + outcome.err
    if "--github" in command:
        annotations = [line for line in content.split("\n") if line.startswith("::")]
        assert annotations
        for annotation in annotations:
            content = content.replace(annotation, "")
            assert is_safe(annotation.removeprefix("::"))
    assert content.strip()
    assert is_safe(content)


@pytest.mark.parametrize("command", ["orders", "restore"])
def test_commands_on_hostile_data_print_nothing_unsafe(
    own_data: Callable[..., Path], cli: Callable[..., Any], command: str
) -> None:
    records = [
        {"user": "u", "id": f"{HOSTILE}{n}", "text": f"[USER] I like number{n}."} for n in range(4)
    ]
    question = {"user": "u", "id": HOSTILE, "text": "Which?", "support": [f"{HOSTILE}0"]}
    options = {"options": ["number0", "number1"], "gold": "a"}
    directory = own_data(records, [{**question, **options}])
    more = (
        ("--shrink", "support", "--worst", "support") if command == "orders" else ("-m", "reader")
    )
    outcome = cli(command, directory, "-p", "recent:k=2", *more)
    assert outcome.out.strip(), outcome.err
    assert is_safe(outcome.out + outcome.err)
