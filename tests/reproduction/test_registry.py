"""The registry: every label is there, cells are judged by print, and the page is generated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from routeprism.errors import SpecError
from routeprism.reproduction import (
    PROTOCOL,
    SOURCES,
    TABLES,
    Cell,
    Printed,
    Table,
    cells_of,
    chosen,
    page,
    published,
    read_obtained,
    refresh,
    write_obtained,
)
from routeprism.reproduction._beyond import beyond_lines, beyond_references
from routeprism.reproduction._cells import cell_of
from routeprism.reproduction._obtained import Kept, Noted
from routeprism.reproduction._registry import references
from routeprism.runs import EstimateRow, Stored

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"


def printed(text: str, column: str = "J / Estimate") -> Printed:
    return Printed("tab:x", "1", "row", column, text)


@pytest.mark.parametrize(
    ("text", "value", "agrees"),
    [
        ("0.045", 0.045045, True),
        ("0.045", 0.0456, False),
        (".0", 0.0, True),
        ("20,400", 20400.0, True),
        ("20,400", 20401.0, False),
        ("6716", 6716.48, True),
        ("-0.000", -0.0004, True),
        ("NA", 0.0, False),
    ],
)
def test_agreement_is_to_the_printed_digits(text: str, value: float, agrees: bool) -> None:
    assert printed(text).agrees(value) is agrees


def test_every_printed_label_has_a_table() -> None:
    labels = list(dict.fromkeys(one.label for one in published()))
    assert list(TABLES) == labels
    # 68 tables, 5 figures, and the numbers of a correct build.
    assert len(labels) == 74
    assert sum(label.startswith("fig:") for label in labels) == 5


def test_no_cell_is_printed_twice() -> None:
    places = [(one.label, one.panel, one.row, one.column) for one in published()]
    assert len(set(places)) == len(places)


def test_every_cell_says_how_to_get_it_or_why_not() -> None:
    for table in TABLES.values():
        for cell in cells_of(table, {}):
            assert cell.value is None
            if cell.status == "not derivable":
                assert cell.reason, cell
            elif not table.part(cell.printed).get("source"):
                assert cell.status == "machinery" and cell.reason and cell.command, cell


def test_references_name_sources_and_roles() -> None:
    for name, wanted in (*references(tuple(TABLES.values())).items(), *beyond_references().items()):
        roles = {"", *SOURCES[name].policies}
        assert {one.where.get("policy", "") for one in wanted} <= roles, name


def test_protocol_numbers_are_all_reproduced() -> None:
    cells = cells_of(TABLES[PROTOCOL], read_obtained())
    assert {cell.status for cell in cells} == {"reproduced"}
    assert len(cells) == 77


def test_locomo_end_to_end_has_every_number_and_names_the_licence() -> None:
    said = "\n".join(beyond_lines(read_obtained()))
    assert "CC BY-NC 4.0" in said and "embedded" in said
    assert "| – |" not in said
    # PROTOCOL §4: Recent-8 on LoCoMo has recall 0.315 forward and 0.310 reversed.
    assert "| recent:k=8 | 0.000 [0.000, 0.000] | 0.315 [0.282, 0.352] | 0.310 [" in said
    assert beyond_lines({}) == []


def test_nothing_is_reproduced_without_a_run() -> None:
    for table in TABLES.values():
        assert {cell.status for cell in cells_of(table, {})} <= {"machinery", "not derivable"}


def test_every_reproduced_number_follows_its_row() -> None:
    """Another number in the row that was obtained, and the cell differs: none is typed in."""
    stored = read_obtained()
    moved = {
        name: replace(kept, rows=tuple(map(other, kept.rows))) for name, kept in stored.items()
    }
    seen = 0
    for table in TABLES.values():
        for before, after in zip(cells_of(table, stored), cells_of(table, moved), strict=True):
            if before.status == "reproduced":
                assert after.status == "differs", after
                seen += 1
    assert seen > 150


def other(noted: Noted) -> Noted:
    row = noted.row
    changed = {
        name: value + 1
        for name in ("estimate", "lower", "upper", "queries", "units")
        if (value := getattr(row, name)) is not None
    }
    return replace(noted, row=replace(row, **changed))


def test_numbers_that_differ_or_have_no_value_say_why() -> None:
    stored = read_obtained()
    for table in TABLES.values():
        for cell in cells_of(table, stored):
            if cell.status == "differs":
                assert cell.reason and cell.value is not None, cell
            if cell.status == "machinery" and cell.printed.number is not None:
                assert cell.reason and (cell.value is not None or cell.blank), cell


def test_a_stand_in_is_named_and_never_called_reproduced() -> None:
    row = EstimateRow(
        experiment="retention", benchmark="locomo", quantity="overlap.exposed", estimate=0.0
    )
    row = replace(row, policy="recent-8", schedule="replay", queries=10)
    table = TABLES["tab:longmem-exposed"]
    cell = cells_of(table, {"locomo": Kept({}, (Noted(row),))})[0]
    assert (cell.printed.text, cell.value) == ("0.000", 0.0)
    assert (cell.status, cell.stand_in) == ("machinery", "locomo")
    own = replace(row, benchmark="longmemeval")
    found = {"locomo": Kept({}, (Noted(row),)), "longmemeval": Kept({}, (Noted(own),))}
    cell = cells_of(table, found)[0]
    assert (cell.status, cell.stand_in) == ("reproduced", "")


def test_limits_are_within_noise_by_a_stated_rule() -> None:
    def judged(value: float, noise: float) -> Cell:
        row = replace(J, estimate=0.12, lower=0.08, upper=value)
        return cell_of(
            TABLE, printed("0.153", "J / Upper"), {"x": Kept({}, (Noted(row, 0, noise),))}
        )

    assert judged(0.1532, 0.0).agreement == "to print"
    # 3 √2 · 0.0005 + 0.0005 = 0.0026 away at most, and never more than 0.003.
    assert judged(0.1555, 0.0005).noise == 0.0005
    assert judged(0.1557, 0.0005).status == "differs"
    assert judged(0.1559, 0.01).status == "reproduced"
    assert judged(0.1561, 0.01).status == "differs"


J = EstimateRow(experiment="routes", benchmark="any", quantity="J", estimate=None)
TABLE = Table("tab:x", "a table", {"kind": "data", "source": "x", "quantity": "J"})


def test_what_is_kept_is_what_the_registry_needs() -> None:
    obtained = read_obtained()
    for name, kept in obtained.items():
        assert name in SOURCES
        assert kept.made["policies"] == dict(SOURCES[name].policies), name


def test_page_is_what_the_registry_renders() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read_obtained()), (
        "run: routeprism reproduce --write docs/reproduction.md"
    )


def test_the_page_of_a_run_is_the_page_of_what_it_keeps(tmp_path: Path) -> None:
    """A refresh has policies in the order of the source, the file has them sorted."""
    stored = read_obtained()
    run = {
        name: replace(kept, made={**kept.made, "policies": dict(SOURCES[name].policies)})
        for name, kept in stored.items()
    }
    assert page(run) == page(stored)


def test_obtained_values_are_written_as_they_are_read(tmp_path: Path) -> None:
    obtained = read_obtained()
    write_obtained(obtained, tmp_path / "again.json")
    assert read_obtained(tmp_path / "again.json") == obtained


def test_labels_may_leave_out_the_prefix_and_unknown_ones_suggest() -> None:
    assert chosen(("mechanism-state",)) == chosen(("tab:mechanism-state",))
    assert chosen(("tab:transfer-main",))[0].label == "tab:state-transfer-support"
    with pytest.raises(SpecError, match="mechanism-state"):
        chosen(("tab:mechanism-stat",))


def test_command_prints_a_summary_and_a_table(cli, tmp_path: Path) -> None:
    every = cli("reproduce")
    assert every.code == 0
    assert "tab:mechanism-state" in every.out and "differs" in every.out
    assert "…" not in every.out
    one = cli("reproduce", "tab:mechanism-state", "--keep", tmp_path / "kept")
    assert "0.9730" in one.out and "reproduced" in one.out
    with Stored(tmp_path / "kept") as stored:
        kept = {one.question: one.value for one in stored.findings("reproduction")}
    line = kept["tab:mechanism-state"]["lines"][0]
    assert line == ["Survivor selection", "Replay / J", "0.045", "0.0450", "reproduced"]
    assert kept["tab:policy-interfaces-main"]["counts"][:2] == [["reproduced", 7], ["differs", 3]]
    report = tmp_path / "kept" / "report.html"
    assert f"Report: {report}" in one.out
    shown = report.read_text(encoding="utf-8")
    assert "169 of 2264 printed numbers are reproduced" in shown and "No estimates" not in shown
    assert 'id="tab-mechanism-state"' in shown
    # Below its table stands why a number differs, and which command gives one of its kind.
    assert "ours is another" in shown and "routeprism audit personamem --kind" in shown
    assert f"routeprism reproduce --keep {tmp_path / 'kept'}" in shown
    assert cli("reproduce", "tab:nothing").code == 2


def test_what_is_known_is_held_after_every_run() -> None:
    held = []
    found = refresh(
        {}, sources={"readings": SOURCES["readings"]}, hold=lambda now: held.append(dict(now))
    )
    assert held == [found.obtained]
    assert list(held[0]) == ["readings"]


def test_absent_data_is_named_and_leaves_values_as_they_were(cli, tmp_path: Path) -> None:
    store = tmp_path / "obtained.json"
    before = {"personamem": read_obtained()["personamem"]}
    write_obtained(before, store)
    said = cli(
        *("reproduce", "tab:mechanism-state", "--run", "--data", tmp_path / "none"),
        *("--obtained", store),
    )
    assert said.code == 0
    assert "Left as it was: personamem" in said.out and "none" in said.out
    assert read_obtained(store) == before


def test_a_model_that_may_cost_money_is_not_asked_by_the_way(cli, tmp_path: Path) -> None:
    said = cli("reproduce", "--run", "--model", "openai:any", "--obtained", tmp_path / "o.json")
    assert said.code == 2
    assert "--yes" in said.err
    assert cli("reproduce", "--model", "reader").code == 2


def test_a_file_that_the_user_names_has_to_be_there(cli, tmp_path: Path) -> None:
    mine, nowhere = tmp_path / "mine.json", tmp_path / "nowhere"
    asks = ("reproduce", "tab:main-route", "--run", "--model", "reader", "--obtained", mine)
    for said in (
        cli("reproduce", "--obtained", nowhere),
        cli(*asks, "--mask", nowhere),
        cli(*asks, "--readings", nowhere, "--labels", "audited:nowhere"),
    ):
        assert said.code == 2
        assert said.err == f"routeprism: {nowhere}: there is no such file\n"
    assert not mine.exists()


@pytest.mark.parametrize("content", ["garbage", "[]", '{"a": 1}', '{"a": {"made": {}}}'])
def test_other_files_are_no_obtained_values(cli, tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(content, encoding="utf-8")
    said = cli("reproduce", "tab:main-route", "--obtained", file)
    assert said.code == 2
    assert said.err.endswith(
        "is no file of obtained values; routeprism reproduce --run writes one\n"
    )
