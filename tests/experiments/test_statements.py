"""Statements: every number refers to the row of `estimates.csv` that it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import routeprism
from routeprism.exhibits import Number, read_statements
from routeprism.report import write_report
from routeprism.runs import StoredRun, read_manifest

pytestmark = [pytest.mark.usefixtures("only_reversal"), pytest.mark.slow]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("statements") / "run"
    routeprism.audit(
        "sample",
        "focal",
        "memochat",
        models=["reader"],
        draws=2,
        display=["reversed", "source"],
        reuse=True,
        mechanism=True,
        over_time=True,
        resamples=100,
        run=directory,
    )
    return directory


def test_every_number_of_a_run_is_the_estimate_of_its_row(run: Path) -> None:
    with StoredRun(run) as stored:
        rows = tuple(stored.estimates())
    statements = read_statements(read_manifest(run), rows)
    kinds = {statement.kind for statement in statements}
    assert kinds >= {"layers", "answers", "mechanism", "retention", "display", "reuse"}
    numbers = [
        (statement, part)
        for statement in statements
        for part in statement.parts
        if isinstance(part, Number)
    ]
    for statement, number in numbers:
        assert number.row.policy in (statement.policy, "") or statement.kind == "mechanism"
        value = re.match(r"-?[\d.,]+", number.text)
        assert value is not None
        # Characters are four times a length in quarters; a mean count is rounded to a tenth.
        is_length = number.row.quantity.startswith("context_length")
        expected = pytest.approx(
            (4 if is_length else 1) * number.row.estimate,
            abs=0.51 if is_length else 0.051 if number.row.is_count else 0.0006,
        )
        assert float(value[0].replace(",", "").rstrip(".")) == expected or number.text == "all"
    assert len(numbers) > 50


@pytest.mark.slow
def test_a_statement_without_a_row_is_stored_as_text_alone(run: Path) -> None:
    manifest = json.loads((run / "manifest.json").read_text("utf-8"))
    parts = [part for statement in manifest["statements"] for part in statement["parts"]]
    assert all(isinstance(part, str) or part["row"] is not None for part in parts)


def test_the_report_links_each_number_to_its_row(run: Path) -> None:
    page = write_report(run).read_text("utf-8")
    with StoredRun(run) as stored:
        rows = tuple(stored.estimates())
    cards = page[page.index('class="cards"') : page.index('id="layers"')]
    links = re.findall(r'href="#row=(\d+)"[^>]*>(-?[\d.]+)(?![\d.]*\s*%)', cards)
    assert len(links) > 50
    for number, text in links:
        row = rows[int(number) - 1]
        rounding = 0.051 if row.is_count else 0.0006  # a mean count has one decimal
        assert float(text) == pytest.approx(row.estimate, abs=rounding)
    assert "Replay, read by reader, filler A: " in cards  # the card's heading is the policy
