"""Numbers of sentences that lead to their rows."""

from __future__ import annotations

from dataclasses import replace

from routeprism.report._row_links import row_links
from routeprism.runs import EstimateRow

ROW = EstimateRow(
    experiment="routes",
    benchmark="tiny",
    policy="focal",
    quantity="J",
    stratum="all",
    estimate=0.5,
    lower=0.4,
    upper=0.6,
)


def test_a_number_leads_to_the_only_row_that_reads_so() -> None:
    rows = [ROW, replace(ROW, policy="raw"), replace(ROW, quantity="H", estimate=0.51)]
    linked = row_links(rows)
    assert linked("It moves by 0.510 [0.400, 0.600] <b>", "focal") == (
        'It moves by <a href="#row=3" title="Row 3 of all estimates">0.510 [0.400, 0.600]</a> '
        "&lt;b&gt;"
    )
    assert "#row=2" in linked("0.500 [0.400, 0.600] of it", "raw")
    assert "#row=1" in linked("0.50 [0.40, 0.60] of it", "focal")
    assert "#row" not in linked("0.511 [0.400, 0.600] of it", "focal")


def test_a_number_that_two_rows_have_leads_nowhere_unless_it_is_named() -> None:
    linked = row_links([replace(ROW, quantity="overlap.retained"), ROW, replace(ROW, mask="m")])
    assert "#row" not in linked("0.500 [0.400, 0.600] of it", "focal")
    assert "#row=2" in linked("nothing moved (J = 0.500 [0.400, 0.600])", "focal")
    assert "#row" not in linked("H = 0.500 [0.400, 0.600]", "focal")


def test_rows_of_all_questions_come_before_those_of_some() -> None:
    some = replace(ROW, stratum="fact")
    assert "#row=2" in row_links([some, ROW])("0.500 [0.400, 0.600]", "focal")
    assert "#row=1" in row_links([some])("0.500 [0.400, 0.600]", "focal")
