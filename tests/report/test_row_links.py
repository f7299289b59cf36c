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


def test_a_sentence_says_which_of_several_routes_models_or_sizes_is_meant() -> None:
    rows = [
        replace(ROW, schedule=schedule, model=model, queries=20)
        for schedule in ("replay", "half-swap")
        for model in ("", "reader")
    ]
    told = "J = 0.500 [0.400, 0.600]"
    linked = row_links([*rows, replace(rows[0], mask="fixed-source", queries=12)])
    # Rows 1 and 3 are of no model, which no sentence says: they stay beside those of the reader.
    assert "#row" not in linked(f"Replay: {told}", "focal")
    assert "#row=2" in linked(f"Read by reader: {told} on replay", "focal")
    assert "#row=4" in linked(f"Read by reader: {told} on half-swap", "focal")
    assert "#row=5" in linked(f"Where sources agree (12 pairs, 11 users), {told}", "focal")
    both = row_links(rows[::2])(f"Replay: {told}; half-swap: {told}", "focal")
    assert both.index("#row=1") < both.index("half-swap: ") < both.index("#row=2")
    assert "#row" not in row_links(rows[::2])(told, "focal")


def test_a_named_quantity_never_leads_to_another_one() -> None:
    assert "#row" not in row_links([ROW])("H = 0.500 [0.400, 0.600]", "focal")
    kappa = replace(ROW, quantity="kappa", policy="", arm="A~B")
    assert "#row=1" in row_links([kappa, replace(kappa, quantity="agreement")])(
        "A and B agree (κ = 0.500 [0.400, 0.600])", ""
    )
    arms = [replace(ROW, arm=arm, queries=9, experiment="display") for arm in ("one", "other")]
    # Both arms read alike, and like the routes: nothing says which is meant.
    linked = row_links([replace(ROW, queries=9), *arms])
    assert "#row" not in linked("one J = 0.500 [0.400, 0.600] (9 pairs, 3 users)", "focal")


def test_a_quantity_may_be_named_in_words() -> None:
    put_back = replace(ROW, experiment="restoration", queries=1)
    rows = [
        replace(put_back, quantity="present-absent"),
        replace(put_back, quantity="restored-absent"),
        replace(put_back, quantity="restored-replacement", queries=8),
        replace(put_back, quantity="restored-replacement", arm="bundle"),
        replace(ROW, quantity="Delta_rep"),
    ]
    number = "0.500 [0.400, 0.600]"
    said = row_links(rows)(
        f"putting it back recovers {number} of accuracy; against a matched record without support "
        f"{number}, against the route that had it {number} (1 pair, 1 user)",
        "focal",
    )
    assert [part.split('"')[0] for part in said.split("#row=")[1:]] == ["2", "4"]
    assert "#row=5" in row_links(rows)(f"accuracy 0.6 forward, 0.7 on replay ({number})", "focal")
