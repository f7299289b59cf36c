"""Tables in narrow terminals: every column is there, and no number is cut."""

from __future__ import annotations

import io

import pytest
from rich.table import Table

from routeprism.cli._console import SafeConsole

NUMBERS = [f"0.{at}17 [0.{at}50, 1.000]" for at in range(1, 8)]


def printed(table: Table, width: int) -> str:
    out = io.StringIO()
    SafeConsole(file=out, width=width).print(table)
    return out.getvalue()


def wide_table(columns: int, *, no_wrap: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title="Everything")
    table.add_column("policy", overflow="fold", min_width=16)
    table.add_column("schedule", no_wrap=True)
    for at in range(columns):
        table.add_column(f"Q{at} [95%]".replace("[", r"\["), justify="right", no_wrap=no_wrap)
    name = "mine.module:Memory:threshold=0.5,survivor=first"
    table.add_row(
        name, "explicit:order=0-1-2-3", *(n.replace("[", r"\[") for n in NUMBERS[:columns])
    )
    return table


@pytest.mark.parametrize("width", [30, 40, 60, 80, 120, 300])
@pytest.mark.parametrize("no_wrap", [True, False])
def test_every_number_is_whole_at_every_width(width: int, no_wrap: bool) -> None:
    out = printed(wide_table(7, no_wrap=no_wrap), width)
    for at, number in enumerate(NUMBERS):
        assert f"Q{at}" in out
        for part in (number,) if no_wrap else number.split():
            assert part in out
    assert "…" not in out
    assert out.count("Everything") == 1
    assert max(map(len, out.splitlines())) <= max(width, 44)  # two names and one whole number


def test_names_are_folded_and_not_cut() -> None:
    out = printed(wide_table(2, no_wrap=True), 80)
    policy = "".join(line[:80].split("  ")[0].strip() for line in out.splitlines()[2:])
    assert policy == "mine.module:Memory:threshold=0.5,survivor=first"


def test_a_table_that_fits_is_left_as_it_is() -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("policy")
    table.add_column("J", justify="right")
    table.add_row("focal", "0.917")
    assert printed(table, 80) == "policy      J\nfocal   0.917\n"


@pytest.mark.slow
def test_the_audit_of_long_names_in_80_columns(cli, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = "focal:threshold=0.0625,survivor=first-arrival"
    call = cli("orders", "sample", "-p", long, "--resamples", "100")
    assert call.code == 0
    head = [line for line in call.out.splitlines() if line.startswith("policy")]
    assert " ".join(head).split() == "policy arrival records kept order reversal".split()
    assert "…" not in call.out.split("Share of orders")[0]
