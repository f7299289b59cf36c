"""The registry against the paper's source, where that is at hand: every label and every number."""

from __future__ import annotations

import os
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from routeprism.reproduction import ALIASES, PROTOCOL, TABLES, read_published

_NAME = os.environ.get("ROUTEPRISM_PAPER")
PAPER = (
    Path(_NAME)
    if _NAME
    else Path(__file__).parents[2].parent / "shared" / "paper" / "routeprism.tex"
)
pytestmark = pytest.mark.skipif(
    not PAPER.exists() and not os.environ.get("CI"),  # in CI, a missing file is a failure
    reason="the paper's source is not at hand; ROUTEPRISM_PAPER names it",
)

LABEL = re.compile(r"\\label\{((?:tab|fig):[^}]+)\}")
FLOAT = re.compile(r"\\begin\{(table|figure)\*?\}.*?\\end\{\1\*?\}", re.DOTALL)
TABULAR = re.compile(
    r"\\begin\{tabular\*?\}(?:\{\\linewidth\}|\{[\d.]*\\textwidth\}|\{\\columnwidth\})?"
    r"(?P<body>.*?)\\end\{tabular\*?\}",
    re.DOTALL,
)
RULES = re.compile(r"\\(?:top|mid|bottom)rule|\\cmidrule(?:\([lr]*\))?\{[^}]*\}|\\addlinespace")
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?|-?\.\d+|NA|NR")


SECTIONS = tuple(label for label in TABLES if label.startswith("app:"))
"""Sections whose numbers are in their text alone."""


@cache
def floats() -> dict[str, str]:
    """Give the text of each table and figure by its first label."""
    text = "\n".join(re.sub(r"(?<!\\)%.*", "", line) for line in PAPER.read_text().splitlines())
    values = {}
    for item in FLOAT.finditer(text):
        labels = LABEL.findall(item.group())
        if labels:
            values[labels[0]] = item.group()
    return values


def plain(cell: str) -> str:
    """Take the markup of a cell away."""
    cell = re.sub(r"\\multicolumn\{\d+\}\{[^}]*\}\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", cell)
    cell = re.sub(r"\\(?:textbf|mathbf|textit|emph)\{([^{}]*)\}", r"\1", cell)
    return cell.replace("$", "").replace("{", "").replace("}", "").replace("−", "-").strip()


def numbers(text: str) -> list[str]:
    """Give the numbers in the cells of a table's panels, row by row."""
    values = []
    for item in TABULAR.finditer(text):
        body = item.group("body")
        body = body[body.index("\\midrule") :] if "\\midrule" in body else body
        for line in re.split(r"\\\\", RULES.sub("", body)):
            values += [cell for cell in map(plain, line.split("&")) if NUMBER.fullmatch(cell)]
    return values


def registered(label: str) -> list[str]:
    """Give the numbers of the data file in its order, with those that are part of a row's name."""
    values = []
    before = None
    for item in read_published():
        if item.label != label:
            continue
        if (item.panel, item.row) != before:
            values += [part for part in item.row.split(" | ") if NUMBER.fullmatch(part)]
            before = (item.panel, item.row)
        if NUMBER.fullmatch(item.text):
            values.append(item.text)
    return values


def test_every_label_of_the_paper_is_in_the_registry() -> None:
    labels = set(LABEL.findall(PAPER.read_text()))
    assert labels == {*TABLES, *ALIASES} - {PROTOCOL, *SECTIONS}
    assert len(labels) == 74


@pytest.mark.parametrize("label", SECTIONS)
def test_the_numbers_of_a_section_stand_in_its_text(label: str) -> None:
    """Digit by digit, with the minus signs of formulas."""
    _, _, text = PAPER.read_text().partition(f"\\label{{{label}}}")
    section = re.split(r"\\(?:sub)?section\{", text)[0]
    # "contains no exact ties", "including two of the 63", "contain four, five, six, and seven".
    for number, word in enumerate(("no", "one", "two", "three", "four", "five", "six", "seven")):
        section = re.sub(rf"\b{word}\b", str(number), section)
    printed = Counter(
        re.findall(r"-?\d(?:[\d,]*\d)?(?:\.\d+)?", section.replace("$", "").replace("--", " "))
    )
    assert registered(label)
    for number, times in Counter(registered(label)).items():
        # "15 comparisons … All 15", and one estimate "on both" sets: printed once, two cells.
        assert printed[number] >= 1, number
        assert times <= max(printed[number], 2), number


@pytest.mark.parametrize("label", [table for table in TABLES if table.startswith("tab:")])
def test_the_numbers_of_a_table_are_those_of_the_data_file(label: str) -> None:
    assert registered(label) == numbers(floats()[label])


def test_the_data_file_has_as_many_cells_as_the_paper() -> None:
    printed = sum(len(numbers(text)) for label, text in floats().items() if label in TABLES)
    table_count = 9 + 1  # the thresholds of tab:order-structure, and an NA for an answer model
    tables = [table for table in read_published() if table.label not in (PROTOCOL, *SECTIONS)]
    total = sum(bool(NUMBER.fullmatch(table.text)) for table in tables)
    assert total == printed - table_count
