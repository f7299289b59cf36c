"""What the page on gates shows is what happens."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from routeprism.pytest_plugin import assert_order_stable

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci-gate.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


def test_the_test_passes() -> None:
    exec(compile(BLOCKS["python"], "ci-gate.md", "exec"), {"__name__": "page"})  # noqa: S102


@pytest.mark.slow
def test_the_commands_hold(cli: Callable[..., Any]) -> None:
    for line in BLOCKS["bash"].splitlines():
        ended = cli(*shlex.split(line)[1:])
        assert (ended.code, ended.err) == (0, "")


def test_the_message_is_the_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples" / "order_bug")
    from test_notes import POOL, Notes  # type: ignore[import-not-found]

    with pytest.raises(AssertionError) as failed:
        assert_order_stable(Notes, [POOL], arrival="jitter:w=1", questions=["Where is home?"])
    assert f"AssertionError: {failed.value}\n" == BLOCKS["text"]
    for name in ("notes", "test_notes"):
        sys.modules.pop(name)


def test_the_workflow_asks_for_what_there_is() -> None:
    commands = [line.split("run: ")[1] for line in BLOCKS["yaml"].splitlines() if "run: " in line]
    assert [command.split()[:2] for command in commands] == [
        ["pip", "install"],
        ["pytest", "-n"],
        ["routeprism", "audit"],
        ["routeprism", "check"],
    ]
