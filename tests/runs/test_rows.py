"""Selections of estimate rows: narrowing, finding exactly one, arranging, formatting."""

from __future__ import annotations

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.runs import EstimateRow, Rows, format_interval, to_csv

pytestmark = pytest.mark.usefixtures("only_reversal")


def row(policy: str, schedule: str, quantity: str, estimate: float, **columns: str) -> EstimateRow:
    return EstimateRow(
        experiment="routes",
        benchmark="b",
        policy=policy,
        schedule=schedule,
        quantity=quantity,
        estimate=estimate,
        **columns,  # type: ignore[arg-type]
    )


ROWS = Rows.of(
    [
        row("focal", "replay", "J", 0.1),
        row("focal", "odd-even", "J", 0.2),
        row("raw", "replay", "J", 1.0),
        row("raw", "replay", "J", 0.9, mask="primary"),
        row("raw", "replay", "J", 0.8, stratum="plan"),
        row("raw", "replay", "H", 0.3),
    ]
)


def test_rows_are_narrowed_by_any_columns() -> None:
    assert [r.estimate for r in ROWS.where(policy="focal")] == [0.1, 0.2]
    assert [r.estimate for r in ROWS.where(schedule=["replay", "odd-even"], quantity="H")] == [0.3]
    assert [r.estimate for r in ROWS.plain(quantity="J")] == [0.1, 0.2, 1.0]
    assert len(ROWS[:2]) == 2
    with pytest.raises(SpecError, match=r"There is no column 'polcy'. Did you mean 'policy'?"):
        ROWS.where(polcy="focal")


def test_exactly_one_row_is_found_or_the_reason_named() -> None:
    assert ROWS.one("J", policy="focal", schedule="replay").estimate == 0.1
    with pytest.raises(LookupError, match=r"2 rows have .* they differ in schedule"):
        ROWS.one("J", policy="focal")
    with pytest.raises(LookupError, match="0 rows have quantity='K'"):
        ROWS.one("K")


def test_rows_are_arranged_by_two_columns() -> None:
    table = ROWS.plain(quantity="J").pivot("policy", "schedule")
    assert table["focal"]["odd-even"].estimate == 0.2
    assert list(table["raw"]) == ["replay"]
    with pytest.raises(LookupError, match="two rows have policy='raw' and schedule='replay'"):
        ROWS.pivot("policy", "schedule")
    assert ROWS.values("quantity") == ("J", "H")


def test_a_value_is_written_with_its_limits() -> None:
    assert format_interval(0.0531, 0.008, 0.111) == "0.053 [0.008, 0.111]"
    assert format_interval(0.0531, 0.008, 0.111, signed=True) == "+0.053 [+0.008, +0.111]"
    assert format_interval(0.5, digits=1) == "0.5"
    assert format_interval(None) == "–"


def test_the_noise_of_a_sum_is_not_written() -> None:
    """Python 3.12 and newer add floats differently: 50.00000000000001 there, 50.0 elsewhere."""
    noisy, exact = (row("raw", "replay", "J", value) for value in (50.00000000000001, 50.0))
    assert to_csv([noisy]) == to_csv([exact])
    assert ",50," in to_csv([exact])


def test_an_audit_gives_its_rows_as_a_selection() -> None:
    audit = routeprism.audit("sample", "recent:k=2", "raw", resamples=100)
    assert isinstance(audit.rows, Rows)
    assert audit.rows.one("J", policy="raw").estimate == 1
    assert audit.value("J", policy="raw") is audit.rows.one("J", policy="raw")


def test_rows_become_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed; pip install pandas")
    frame = ROWS.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["estimate"]) == [0.1, 0.2, 1.0, 0.9, 0.8, 0.3]
