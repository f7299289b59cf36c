"""No percentage is printed without the counts that it is made of, such as `2 of 146`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

_CONFIDENCE = re.compile(r"\[?\b95%(\]|[- ](interval|limit|confidence|bootstrap)\w*)")
"""The level of an interval, which is no share of anything."""
_COUNTED = re.compile(r"\d[\d,.]* of \d[\d,.]*( on average)? \(<?\d+(\.\d+)?%\)")
_PERCENTAGE = re.compile(r"\d ?%")

BLOCKS = frozenset("td th p li dt dd div tr h1 h2 h3 pre summary".split())


class VisibleText(HTMLParser):
    """Collects what a page shows: a line for each block, without scripts and styles."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden = 0
        self.lines = [""]
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hidden += tag in ("script", "style")
        if tag in BLOCKS:
            self.lines.append("")
        self.labels += [text or "" for name, text in attrs if name in ("title", "aria-label")]

    def handle_endtag(self, tag: str) -> None:
        self.hidden -= tag in ("script", "style")
        if tag in BLOCKS:
            self.lines.append("")

    def handle_data(self, data: str) -> None:
        if not self.hidden:
            self.lines[-1] += data


def read_page(path: Path) -> list[str]:
    page = VisibleText()
    page.feed(path.read_text(encoding="utf-8"))
    return [" ".join(line.split()) for line in (*page.lines, *page.labels)]


def find_percentages(lines: list[str]) -> Iterator[str]:
    """Yield the lines with a percentage that has no counts."""
    for line in lines:
        text = _COUNTED.sub("", _CONFIDENCE.sub("", line))
        if _PERCENTAGE.search(text):
            yield line


@pytest.mark.parametrize(
    ("line", "is_bare"),
    [
        ("22% of the questions change", True),
        ("loss prevented: 7 %", True),
        ("33 of 146 (23%) change", False),
        ("3.4 of 146 on average (2.3%)", False),
        ("J 0.4, the 95% interval excludes zero", False),
        ("change [95%]", False),
        ("95% of the questions change", True),
    ],
)
def test_a_percentage_needs_counts(line: str, is_bare: bool) -> None:
    assert list(find_percentages([line])) == [line] * is_bare


def test_no_command_prints_a_percentage_without_counts(cli: Callable[..., Any]) -> None:
    few = ("--resamples", "100")
    commands: dict[str, tuple[str, ...]] = {
        "audit": ("audit", "sample", "-p", "recent:k=3", "-p", "focal", *few, "--run", "audit"),
        "updates": ("audit", "sample-updates", "-p", "recent:k=3", *few, "--run", "updates"),
        "verbose": ("audit", "sample", "-p", "recent:k=2", *few, "--verbose", "--run", "verbose"),
        "remedy": ("remedy", "sample", "-p", "recent:k=3", *few, "--run", "remedy"),
        "orders": ("orders", "sample", "-p", "recent:k=3", *few, "--run", "orders"),
        "check": ("check", "audit", "--gate", "J>=0.9"),
        "compare": (
            *("compare", "audit", "verbose", "--policy-a", "recent:k=3", "--policy-b"),
            *("recent:k=2", "--html", "compare.html", "--markdown", "compare.md"),
        ),
        "demo": ("demo",),
    }
    lines: dict[str, list[str]] = {}
    for name, words in commands.items():
        printed = cli(*words)
        assert printed.code in (0, 1), printed.err
        lines[name] = (printed.out + printed.err).splitlines()
    pages = [*Path().rglob("report.html"), Path("compare.html")]
    assert len(pages) >= 6
    lines |= {str(page): read_page(page) for page in pages}
    lines["comment"] = Path("compare.md").read_text("utf-8").splitlines()
    bare = {name: list(find_percentages(printed)) for name, printed in lines.items()}
    assert {name: printed for name, printed in bare.items() if printed} == {}
