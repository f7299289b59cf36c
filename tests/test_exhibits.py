"""Statements keep their numbers tied to rows, in the manifest as well."""

from __future__ import annotations

import json

import pytest

from routeprism.exhibits import Number, Statement, format_row, join_parts, name_chart, name_record
from routeprism.runs import EstimateRow


def row(quantity: str = "J", estimate: float | None = 0.25, **columns: object) -> EstimateRow:
    return EstimateRow(
        experiment="routes", benchmark="toy", quantity=quantity, estimate=estimate, **columns
    )  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("display", "text"),
    [
        (row(lower=0.125, upper=0.5), "0.250 [0.125, 0.500]"),
        (row(), "0.250"),
        (row("count.eligible", 12.0, lower=3.0, upper=20.0), "12"),
        (row(estimate=None), ""),
    ],
)
def test_an_estimate_is_shown_with_its_interval_and_a_count_without(
    display: EstimateRow, text: str
) -> None:
    assert str(format_row(display)) == text


def test_a_statement_survives_the_manifest_with_its_rows() -> None:
    first, second = row("J"), row("H", 0.5)
    statement = Statement(
        ("J is ", Number("0.250", first), " and H is ", Number("0.500", second)),
        kind="routes",
        policy="recent:k=3",
        severity="problem",
        next_step="routeprism orders sample --policy recent:k=3",
    )
    document = json.loads(json.dumps(statement.to_json({first: 1, second: 2})))
    assert [part["row"] for part in document["parts"] if not isinstance(part, str)] == [1, 2]
    assert Statement.from_json(document, (first, second)) == statement
    assert str(statement) == (
        "recent:k=3: J is 0.250 and H is 0.500; routeprism orders sample --policy recent:k=3"
    )


def test_a_number_without_a_row_in_the_run_becomes_text() -> None:
    content = Statement((Number("0.250", row()),), kind="note").to_json({})
    assert Statement.from_json(content, ()).parts == ("0.250",)


def test_phrases_are_joined_like_texts() -> None:
    assert list(join_parts(", ", [["a"], [Number("1", row())], ["c"]]))[1::2] == [", ", ", "]


def test_charts_of_names_that_begin_alike_have_different_names() -> None:
    long = "my.package.memories:A" + "very" * 15
    names = {name_chart("forest", f"{long}Long{kind}Memory") for kind in ("Small", "Large")}
    assert len(names) == 2
    assert {len(name) for name in names} == {60}
    assert name_chart("forest", "recent:k=3") == "forest-recent-k=3"


@pytest.mark.parametrize(
    ("id", "text", "name"),
    [
        ("n26", "Flight to Tbilisi", "'n26' (“Flight to Tbilisi”)"),
        ("n26", " two\n\n lines\t", "'n26' (“two lines”)"),
        ("n26", "", "'n26'"),
        ("a\nb", "x", "'a b' (“x”)"),
        ("n26", "x" * 48, f"'n26' (“{'x' * 48}”)"),
        ("n26", "x" * 49, f"'n26' (“{'x' * 47}…”)"),  # 48 characters with the ellipsis
    ],
)
def test_a_record_is_named_by_its_id_and_the_beginning_of_its_text(
    id: str, text: str, name: str
) -> None:
    assert name_record(id, text) == name
