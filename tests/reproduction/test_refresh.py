"""Executing again on the real files: the stored values come out, and a changed policy shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routeprism.reproduction import (
    PROTOCOL,
    SOURCES,
    TABLES,
    Refreshed,
    cells_of,
    read_obtained,
    refresh,
    with_role,
)

pytestmark = pytest.mark.realdata

FAST = ("index", "readings", "personamem")


@pytest.fixture(scope="module")
def refreshed(data: Path) -> Refreshed:
    return refresh({}, data=data, sources={name: SOURCES[name] for name in FAST})


def test_a_refresh_gives_the_stored_values(refreshed: Refreshed) -> None:
    stored = read_obtained()
    for name in FAST:
        now = {one.row.identity: one for one in refreshed.obtained[name].rows}
        for one in stored[name].rows:
            assert now[one.row.identity].row.estimate == pytest.approx(one.row.estimate, abs=1e-9)
            if one.row.lower is not None:
                again = now[one.row.identity].row
                assert (again.lower, again.upper) == pytest.approx((one.row.lower, one.row.upper))


def test_a_cell_without_its_run_is_not_called_reproduced(refreshed: Refreshed) -> None:
    cells = cells_of(TABLES[PROTOCOL], refreshed.obtained)
    assert {cell.status for cell in cells} == {"reproduced", "machinery"}
    assert {cell.source for cell in cells if cell.status == "reproduced"} == {"personamem", "index"}
    # Both limits of Recent-3 depend on the resamples: 0.087 and 0.154 there.
    limits = [c for c in cells if c.printed.column in ("J / Lower", "J / Upper")]
    assert {c.agreement for c in limits} <= {"to print", "within resampling noise"}


@pytest.mark.parametrize(
    ("name", "role", "spec", "row", "column"),
    [
        ("personamem", "clustering", "focal:threshold=0.1,survivor=source-position",
         "clustering only", "Replay / J"),
        ("index", "recent-8", "recent:k=9", "Recent-8", "Recall F"),
    ],
)  # fmt: skip
def test_another_policy_in_a_role_turns_its_cells_to_differs(
    data: Path, name: str, role: str, spec: str, row: str, column: str
) -> None:
    source = replace(with_role(SOURCES[name], role, spec), policies={role: spec})
    found = refresh({}, data=data, sources={name: source}).obtained
    stored = read_obtained()
    for obtained, status in ((stored, "reproduced"), (found, "differs")):
        cells = cells_of(TABLES[PROTOCOL], obtained)
        cell = next(c for c in cells if (c.printed.row, c.printed.column) == (row, column)
                    and c.printed.panel in ("1", "LongMemEval-S index"))  # fmt: skip
        assert cell.status == status, cell
