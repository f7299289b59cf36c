"""One object knows a number: its plain name, range and direction, whatever its name is made of."""

from __future__ import annotations

import ast
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RunError, SpecError
from routeprism.measures import COORDINATES, RETENTION, Coordinate
from routeprism.quantities import Quantity, built_in_quantities, find_quantity
from routeprism.runs import COLUMNS, EstimateRow

SOURCE = Path(routeprism.__file__).parent


@pytest.mark.parametrize(
    ("name", "base", "derivation", "estimator"),
    [
        ("V_changed_count", "V_changed", "count", "sum"),
        ("p.D_res", "D_res", "p", "p-value"),
        ("p_holm.D_res", "D_res", "p_holm", "p-value"),
        ("by_question.H", "H", "by_question", "mean"),
        ("Gamma.recall.exposed.route", "recall.exposed.route", "Gamma", "mean"),
        ("loo_min.changed-preserved.H", "changed-preserved.H", "loo_min", "least"),
        ("changed-preserved.H", "H", "changed-preserved", "difference"),
        ("changed-absent.within.H", "H", "changed-absent.within", "difference"),
        ("evidence.lost", "evidence.lost", "", "mean"),
    ],
)
def test_a_derived_quantity_knows_its_base(
    name: str, base: str, derivation: str, estimator: str
) -> None:
    quantity = find_quantity(name)
    assert quantity.base.name == base
    assert (quantity.derivation, quantity.estimator) == (derivation, estimator)


@pytest.mark.parametrize(
    ("name", "plain", "better", "range"),
    [
        ("evidence.lost", "questions that lose evidence", "lower", (0, 1)),
        ("evidence.gained", "questions that gain evidence", "", (0, 1)),
        ("evidence.net", "evidence gained minus lost", "", (-1, 1)),
        ("J", "overlap of the records shown", "higher", (0, 1)),
        ("accuracy.restored", "right answers, record restored", "higher", (0, 1)),
        ("restored-absent", "accuracy that a record restores", "", (-1, 1)),
        ("count.notes_differ_key_words", "notes that differ in key words", "", None),
        ("V_changed_count", "different records shown", "lower", None),
        ("context_length.route", "length of the context", "", None),
        ("count.assignment_ties", "ties in assignment that processing order decided", "", None),
        ("unheard_of", "unheard_of", "", None),
    ],
)
def test_a_quantity_has_a_plain_name_a_direction_and_a_range(
    name: str, plain: str, better: str, range: Any
) -> None:
    quantity = find_quantity(name)
    assert (quantity.plain, quantity.better, quantity.range) == (plain, better, range)


@pytest.mark.parametrize(
    ("name", "sides"),
    [
        ("accuracy.route.single", ("route",)),
        ("accuracy.restored:1", ("restored:1",)),
        ("restored-absent", ("restored", "absent")),
        ("loo_max.restored-absent", ("restored", "absent")),
        ("count.same_as_present.replacement", ("replacement", "present")),
        ("count.no_answer.forward", ("forward",)),
        ("H", ()),
    ],
)
def test_a_quantity_names_the_sides_that_it_reads(name: str, sides: tuple[str, ...]) -> None:
    assert find_quantity(name).sides == sides


@pytest.mark.parametrize(
    ("quantity", "is_count"),
    [("count.right.absent", True), ("miss.answer", True), ("J", False), ("J_count", True)],
)
def test_a_row_is_a_count_if_its_quantity_is(quantity: str, is_count: bool) -> None:
    row = EstimateRow(experiment="routes", benchmark="b", quantity=quantity, estimate=1.0)
    assert row.is_count is is_count


def test_every_built_in_quantity_has_a_plain_name_and_known_terms() -> None:
    quantities = built_in_quantities()
    assert all(quantity.plain != name or name == "kappa" for name, quantity in quantities.items())
    for quantity in quantities.values():
        assert all(find_quantity(term).plain != term for term in quantity.terms)
        assert quantity.range is None or quantity.range in ((0, 1), (-1, 1))
    assert all(c.meaning and c.symbol and c.reference for c in (*COORDINATES, *RETENTION))


def test_a_prefix_of_an_experiment_of_ones_own_is_a_derivation() -> None:
    assert find_quantity("late-early.J").derivation == ""
    quantity = find_quantity("late-early.J", "late-early")
    assert (quantity.derivation, quantity.base.name) == ("late-early", "J")


def test_a_registered_quantity_is_found_and_two_of_one_name_are_refused() -> None:
    own: Quantity[Any] = Quantity("Own_J", plain="my overlap", better="higher", range=(0.0, 1.0))
    with routeprism.use_extensions(own):
        assert find_quantity("Own_J") is own
        assert find_quantity("Own_J_count").base is own
    assert find_quantity("Own_J").plain == "Own_J"
    with (
        routeprism.use_extensions(Coordinate("J")),
        pytest.raises(SpecError, match="two quantities are called 'J'"),
    ):
        find_quantity("Own_J")


def list_cut_names() -> Iterator[str]:
    """List calls such as `row.quantity.startswith(…)` outside the registry of quantities."""
    cuts = {"startswith", "endswith", "partition", "rpartition", "split", "removeprefix"}
    cuts |= {"rsplit", "removesuffix"}
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            text = node.func.value
            name = text.attr if isinstance(text, ast.Attribute) else getattr(text, "id", "")
            if node.func.attr in cuts and name == "quantity":
                yield f"{file.relative_to(SOURCE)}:{node.lineno}"


def test_no_code_takes_the_name_of_a_quantity_apart() -> None:
    assert "quantity" in COLUMNS
    assert list(list_cut_names()) == []


def show_few_blocks(pair: Any) -> float:
    return float(len(pair.route_exposure.blocks) < 3)


FEW_BLOCKS: Quantity[Any] = Quantity(
    "few_blocks",
    meaning="whether the other route shows fewer than three blocks",
    value=show_few_blocks,
    plain="questions with few blocks",
    better="lower",
    range=(0.0, 1.0),
    emphasis="headline",
)


def test_a_quantity_of_ones_own_is_compared_stopped_at_and_named(tmp_path: Path, cli: Any) -> None:
    few: dict[str, Any] = {"schedules": ["replay"], "resamples": 100}
    runs = [tmp_path / name for name in ("before", "after")]
    with routeprism.use_extensions(FEW_BLOCKS):
        for run, policy in zip(runs, ("recent:k=3", "recent:k=2"), strict=True):
            routeprism.audit("sample", policy, run=run, **few)
        pair = {"policies_a": ["recent:k=3"], "policies_b": ["recent:k=2"]}
        page, comment = tmp_path / "page.html", tmp_path / "comment.md"
        comparison = routeprism.compare(*runs, html=page, markdown=comment, **pair)
        (change,) = [d for d in comparison.differences if d.column.quantity == "few_blocks"]
        # A window of two records shows two blocks; one of three shows at least as many.
        assert (change.after, change.before < 1, change.direction) == (1.0, True, -1)
        (sentence,) = [text for text in comparison.sentences if "few blocks" in text]
        assert "questions with few blocks (few_blocks): worse" in sentence
        assert "<td" in page.read_text() and "questions with few blocks" in page.read_text()
        assert "| questions with few blocks |" in comment.read_text()
        result = routeprism.audit(
            "sample", "recent:k=2", schedules=["replay"], until="few_blocks±0.2"
        )
        row = result.value("few_blocks", experiment="routes")
        # Every value is 1: the limits of a confidence sequence stay within the range.
        assert row.estimate == 1.0 and row.upper == 1.0
        assert "fixed-limits" not in row.flags.split(";")
    with pytest.raises(SpecError, match="'few_blocks' has no known range"):
        routeprism.audit("sample", "recent:k=2", until="few_blocks±0.2", run=tmp_path / "none")


def test_the_list_of_coordinates_gives_the_plain_name_the_direction_and_the_range(
    cli: Any,
) -> None:
    document = json.loads(cli("list", "coordinates", "--json").out)
    assert document["J"] == "overlap of the records shown; higher is better; from 0 to 1"
    assert document["Delta"] == "change of correctness; from -1 to 1"


def test_a_run_without_the_newer_counts_of_evidence_is_not_compared(tmp_path: Path) -> None:
    runs = [tmp_path / name for name in ("older", "newer")]
    for run in runs:
        routeprism.audit("sample", "recent:k=3", run=run, schedules=["replay"], resamples=100)
    with closing(sqlite3.connect(runs[0] / "run.sqlite")) as store:
        for number, text in store.execute("SELECT rowid, quantities FROM per_question").fetchall():
            values = {
                name: value
                for name, value in json.loads(text).items()
                if not name.startswith("evidence.")
            }
            change = "UPDATE per_question SET quantities = ? WHERE rowid = ?"
            store.execute(change, (json.dumps(values), number))
        store.commit()
    for pair in (runs, runs[::-1]):
        with pytest.raises(RunError, match="older is of an earlier version") as refusal:
            routeprism.compare(*pair)
        assert "Run its command again with this version" in str(refusal.value)
    assert routeprism.compare(runs[0], runs[0]).differences
