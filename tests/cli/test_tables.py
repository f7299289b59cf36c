"""The tables of the terminal: the verdict by default, every table of the run with --verbose."""

from __future__ import annotations

import pytest

from routeprism.api.settings import settings_for
from routeprism.cli._audit import render_table
from routeprism.cli._console import SafeConsole
from routeprism.cli._terminal import name_flags
from routeprism.exhibits import Table
from routeprism.settings import make_settings


@pytest.mark.slow
def test_the_verdict_is_the_first_table(cli) -> None:
    out = cli("audit", "sample", "-p", "raw", "-p", "recent:k=3", "--resamples", "100").out
    lines = out.splitlines()
    assert lines[0] == "sample (synthetic): 30 pools, 165 records, 165 questions"
    (raw,) = [line.split() for line in lines if line.startswith("raw  ")]
    # 165 of 165 questions are shown their evidence; none loses or gains any in three orders.
    assert raw == ["raw", "internal", "only", "165", "of", "165", *["−0", "+0"] * 3]
    assert "Where order enters" not in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "headings"),
    [
        (("-p", "focal", "--ties"), ["Where order enters", "Ties that processing order decided"]),
        (("-p", "focal", "--mechanism"), ["Which operation does it"]),
        (("-p", "recent:k=3", "--over-time"), ["What is kept as the history grows"]),
        (
            ("-p", "raw", "-m", "reader", "-m", "reader:temperature=0.5", "--draws", "2"),
            ["What the answers do", "Model by model"],
        ),
    ],
)
def test_every_table_is_printed_on_demand(cli, arguments, headings) -> None:
    out = cli("audit", "sample", *arguments, "-s", "replay", "--resamples", "100", "-v").out
    for heading in headings:
        assert heading in out.splitlines()


@pytest.mark.slow
def test_restoration_has_a_line_for_each_model(cli) -> None:
    arguments = ("-p", "recent:k=3", "-m", "reader", "--draws", "1", "--resamples", "100", "-v")
    out = cli("restore", "sample", *arguments).out
    assert "Does the displaced record matter?" in out.splitlines()


def test_columns_fold_and_no_number_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    cells = tuple(("memory", "a policy with a long name", "0.123 [0.012, 0.345]") for _ in "ab")
    columns = ("kind", "policy", "J [95%]", "H [95%]", "D_res [95%]")
    wide = tuple((*line, line[-1], line[-1]) for line in cells)
    SafeConsole(width=60).print(render_table(Table("t", "T", "", columns, wide, names=2)))
    out = capsys.readouterr().out
    assert out.count("0.123 [0.012, 0.345]") == 6
    assert max(map(len, out.splitlines())) <= 60


def test_notes_name_the_options_of_the_command_line() -> None:
    settings = make_settings(settings_for("audit"), {"benchmark": "sample", "policies": ["raw"]})
    note = "memochat:model=m: pass arrivals=MODEL; rebuilds=N builds N routes"
    text = "memochat:model=m: pass --arrival MODEL; --rebuilds N builds N routes"
    assert name_flags(note, settings) == text
