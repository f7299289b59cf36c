"""The registry: every label is there, cells are judged by print, and the page is generated."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from routeprism.errors import SpecError
from routeprism.reproduction import (
    PROTOCOL,
    QUESTION_SETS,
    SOURCES,
    STORED,
    TABLES,
    CheckedNumber,
    MeasuredRow,
    PublishedNumber,
    PublishedTable,
    SourceValues,
    check_number,
    check_table,
    count_numbers,
    count_tables,
    list_all_rows,
    list_references,
    read_obtained,
    read_published,
    refresh_values,
    render_page,
    select_tables,
    write_obtained,
)
from routeprism.runs import EstimateRow, StoredRun

PAGE = Path(__file__).parents[2] / "docs" / "reproduction.md"


def printed(text: str, column: str = "J / Estimate") -> PublishedNumber:
    return PublishedNumber("tab:x", "1", "row", column, text)


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
    labels = list(dict.fromkeys(item.label for item in read_published()))
    assert list(TABLES) == labels
    # 68 tables, 5 figures, 18 sections with numbers of their own, and those of a correct build.
    assert len(labels) == 92
    assert sum(label.startswith("app:") for label in labels) == 18
    assert sum(label.startswith("fig:") for label in labels) == 5


def test_no_cell_is_printed_twice() -> None:
    places = [(item.label, item.panel, item.row, item.column) for item in read_published()]
    assert len(set(places)) == len(places)


def test_every_cell_says_how_to_get_it_or_why_not() -> None:
    for table in TABLES.values():
        for cell in check_table(table, {}):
            assert cell.value is None
            if cell.status == "not derivable":
                assert cell.reason, cell
            elif not table.part(cell.printed).get("source"):
                assert cell.status == "machinery" and cell.reason and cell.command, cell


def test_references_name_sources_and_roles() -> None:
    needed = list_all_rows()
    assert {"answers", "locomo-answers", "locomo-restoration"} < needed.keys() <= SOURCES.keys()
    for name, references in needed.items():
        roles = {"", *SOURCES[name].policies}
        assert {reference.columns.get("policy", "") for reference in references} <= roles, name


def test_protocol_numbers_are_all_reproduced() -> None:
    cells = check_table(TABLES[PROTOCOL], read_obtained())
    assert {cell.status for cell in cells} == {"reproduced"}
    assert len(cells) == 69


def test_no_protocol_number_is_one_that_the_paper_prints() -> None:
    """Each number is counted once; the paper prints those of the protocol with fewer digits."""
    printed_numbers = {}
    protocol_numbers = {}
    for printed in read_published():
        numbers = protocol_numbers if printed.label == PROTOCOL else printed_numbers
        for reference in list_references(TABLES[printed.label], printed):
            if reference.comparable:
                place = reference.source, *sorted(reference.columns.items()), reference.number
                numbers[place, printed.number, printed.unit] = printed
    assert protocol_numbers
    assert not protocol_numbers.keys() & printed_numbers.keys()


def test_locomo_end_to_end_has_every_number_and_names_the_licence() -> None:
    stored = read_obtained()
    _, heading, text = render_page(stored).partition("## LoCoMo, end to end")
    assert heading
    assert "CC BY-NC 4.0" in text and "embedded" in text
    assert "| – |" not in text
    # PROTOCOL §4: Recent-8 on LoCoMo has recall 0.315 forward and 0.310 reversed.
    assert "| recent:k=8 | 0.000 [0.000, 0.000] | 0.315 [0.282, 0.352] | 0.310 [" in text
    without = {name: values for name, values in stored.items() if not name.startswith("locomo-")}
    assert "## LoCoMo, end to end" not in render_page(without)


def test_nothing_is_reproduced_without_a_run() -> None:
    for table in TABLES.values():
        assert {cell.status for cell in check_table(table, {})} <= {"machinery", "not derivable"}


def test_every_reproduced_number_follows_its_row() -> None:
    """Another number in the row that was obtained, and the cell differs: none is typed in."""
    stored = read_obtained()
    moved = {
        name: replace(content, rows=tuple(map(second, content.rows)))
        for name, content in stored.items()
    }
    number = 0
    for table in TABLES.values():
        for before, after in zip(
            check_table(table, stored), check_table(table, moved), strict=True
        ):
            if before.status == "reproduced":
                assert after.status == "differs", after
                number += 1
    assert number > 150


def second(noted: MeasuredRow) -> MeasuredRow:
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
        for cell in check_table(table, stored):
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
    cell = check_table(table, {"locomo": SourceValues({}, (MeasuredRow(row),))})[0]
    assert (cell.printed.text, cell.value) == ("0.000", 0.0)
    assert (cell.status, cell.stand_in) == ("machinery", "locomo")
    own = replace(row, benchmark="longmemeval")
    values = {
        "locomo": SourceValues({}, (MeasuredRow(row),)),
        "longmemeval": SourceValues({}, (MeasuredRow(own),)),
    }
    cell = check_table(table, values)[0]
    assert (cell.status, cell.stand_in) == ("reproduced", "")


def test_limits_are_within_noise_by_a_stated_rule() -> None:
    def judged(value: float, noise: float) -> CheckedNumber:
        row = replace(J, estimate=0.12, lower=0.08, upper=value)
        return check_number(
            TABLE,
            printed("0.153", "J / Upper"),
            {"x": SourceValues({}, (MeasuredRow(row, 0, noise),))},
        )

    assert judged(0.1532, 0.0).agreement == "to print"
    # 3 √2 · 0.0005 + 0.0005 = 0.0026 away at most, and never more than 0.003.
    assert judged(0.1555, 0.0005).noise == 0.0005
    assert judged(0.1557, 0.0005).status == "differs"
    assert judged(0.1559, 0.01).status == "reproduced"
    assert judged(0.1561, 0.01).status == "differs"


J = EstimateRow(experiment="routes", benchmark="any", quantity="J", estimate=None)
TABLE = PublishedTable("tab:x", "a table", {"kind": "data", "source": "x", "quantity": "J"})


def test_what_is_kept_is_what_the_registry_needs() -> None:
    obtained = read_obtained()
    for name, content in obtained.items():
        assert name in SOURCES
        assert content.made["policies"] == dict(SOURCES[name].policies), name


def test_page_is_what_the_registry_renders() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_page(read_obtained()), (
        "run: routeprism reproduce --write docs/reproduction.md"
    )


def test_the_page_of_a_run_is_the_page_of_what_it_keeps(tmp_path: Path) -> None:
    """A refresh has policies in the order of the source, the file has them sorted."""
    stored = read_obtained()
    run = {
        name: replace(content, made={**content.made, "policies": dict(SOURCES[name].policies)})
        for name, content in stored.items()
    }
    assert render_page(run) == render_page(stored)


def test_obtained_values_are_written_as_they_are_read(tmp_path: Path) -> None:
    obtained = read_obtained()
    write_obtained(obtained, tmp_path / "again.json")
    assert read_obtained(tmp_path / "again.json") == obtained


def test_labels_may_leave_out_the_prefix_and_unknown_ones_suggest() -> None:
    assert select_tables(("mechanism-state",)) == select_tables(("tab:mechanism-state",))
    assert select_tables(("tab:transfer-main",))[0].label == "tab:state-transfer-support"
    with pytest.raises(SpecError, match="mechanism-state"):
        select_tables(("tab:mechanism-stat",))


@pytest.mark.slow
def test_command_prints_a_summary_and_a_table(cli, tmp_path: Path) -> None:
    every = cli("reproduce")
    assert every.code == 0
    assert "tab:mechanism-state" in every.out and "differs" in every.out
    assert "…" not in every.out
    call = cli("reproduce", "tab:mechanism-state", "--keep", tmp_path / "kept")
    assert "0.9730" in call.out and "reproduced" in call.out
    with StoredRun(tmp_path / "kept") as stored:
        values_by_label = {call.question: call.value for call in stored.findings("reproduction")}
    line = values_by_label["tab:mechanism-state"]["lines"][0]
    assert line == ["Survivor selection", "Replay / J", "0.045", "0.0450", "reproduced"]
    assert values_by_label["tab:policy-interfaces-main"]["counts"][:3] == [
        ["reproduced: measured", 3],
        ["reproduced: denominators", 4],
        ["differs", 3],
    ]
    report = tmp_path / "kept" / "report.html"
    assert f"Report: {report}" in call.out
    text = report.read_text(encoding="utf-8")
    assert "Of the paper's 2327 numbers, 58 measured values are reproduced" in text
    assert "46 denominators and 14 numbers that follow from other printed numbers" in text
    assert "18 numbers depend only on which users are primary and are consistent" in text
    assert "69 of 69 target values" in text and "No estimates" not in text
    assert 'id="tab-mechanism-state"' in text
    # Below its table stands why a number differs, and which command gives one of its kind.
    assert "RoutePrism uses a different one" in text
    assert "routeprism audit personamem --kind" in text
    assert f"routeprism reproduce --keep {tmp_path / 'kept'}" in text
    assert cli("reproduce", "tab:nothing").code == 2


def test_what_is_known_is_held_after_every_run() -> None:
    entries = []
    result = refresh_values(
        {}, sources={"readings": SOURCES["readings"]}, save=lambda now: entries.append(dict(now))
    )
    assert entries == [result.obtained]
    assert list(entries[0]) == ["readings"]


def test_absent_data_is_named_and_leaves_values_as_they_were(cli, tmp_path: Path) -> None:
    store = tmp_path / "obtained.json"
    before = {"personamem": read_obtained()["personamem"]}
    write_obtained(before, store)
    call = cli(
        *("reproduce", "tab:mechanism-state", "--run", "--data", tmp_path / "none"),
        *("--obtained", store),
    )
    assert call.code == 0
    assert "Left as it was: personamem" in call.out and "none" in call.out
    assert read_obtained(store) == before


def test_a_model_that_may_cost_money_is_not_asked_by_the_way(cli, tmp_path: Path) -> None:
    call = cli("reproduce", "--run", "--model", "openai:any", "--obtained", tmp_path / "o.json")
    assert call.code == 2
    assert "--yes" in call.err
    assert cli("reproduce", "--model", "reader").code == 2


def test_a_file_that_the_user_names_has_to_be_there(cli, tmp_path: Path) -> None:
    expected, nowhere = tmp_path / "mine.json", tmp_path / "nowhere"
    asks = ("reproduce", "tab:main-route", "--run", "--model", "reader", "--obtained", expected)
    for text in (
        cli("reproduce", "--obtained", nowhere),
        cli(*asks, "--mask", nowhere),
        cli(*asks, "--readings", nowhere, "--labels", "audited:nowhere"),
    ):
        assert text.code == 2
        assert text.err == f"routeprism: {nowhere}: there is no such file\n"
    assert not expected.exists()


@pytest.mark.parametrize("content", ["garbage", "[]", '{"a": 1}', '{"a": {"made": {}}}'])
def test_other_files_are_no_obtained_values(cli, tmp_path: Path, content: str) -> None:
    file = tmp_path / "other.json"
    file.write_text(content, encoding="utf-8")
    call = cli("reproduce", "tab:main-route", "--obtained", file)
    assert call.code == 2
    assert call.err.endswith(
        "is not a file of obtained values; `routeprism reproduce --run` writes one\n"
    )


@pytest.mark.slow
def test_reproduced_numbers_are_counted_by_what_they_are() -> None:
    """Values, denominators, arithmetic on print and targets beside the paper are never one sum."""
    stored = read_obtained()
    counts = sum((counts for _, counts in count_tables(stored)), Counter[str]())
    assert {name: counts[name] for name in ("measured", "denominator", "arithmetic")} == {
        "measured": 58,
        "denominator": 46,
        "arithmetic": 14,
    }
    assert (counts["consistent"], counts["inconsistent"]) == (18, 0)
    assert "target" not in counts and "reproduced" not in counts
    assert count_numbers(check_table(TABLES[PROTOCOL], stored)) == Counter(target=69)
    for table in TABLES.values():
        for cell in check_table(table, stored):
            if cell.status == "reproduced" and cell.source == "readings":
                assert cell.basis in ("arithmetic", "denominator"), cell
            if table.part(cell.printed).get("number", "").endswith(("queries", "units")):
                assert cell.basis in ("denominator", "target"), cell
    text = render_page(stored)
    assert "| all | | 2327 | 58 | 46 | 14 |" in text
    assert "has 69 target values, of which 69 are reached here" in text
    assert "not in the paper" not in text  # it prints most of them, with fewer digits


def test_sets_of_questions_are_known_and_data_needs_none() -> None:
    for table in TABLES.values():
        for cell in check_table(table, {}):
            text = table.part(cell.printed)
            if name := text.get("questions", ""):
                assert name.removeprefix("outside-") in QUESTION_SETS, cell
                assert text["kind"] != "data", cell


@pytest.mark.parametrize(
    ("label", "row", "column", "questions"),
    [
        ("tab:restoration-main", "Focal", "Primary / Pres.", "primary"),
        ("tab:restoration-main", "Focal", "All eligible / Pres.", ""),
        ("tab:restoration-main", "Recent-3", "All eligible R-A / Lower", ""),
        ("tab:personamem-restoration-expanded", "Recent-3 (Primary)", "Queries", "primary"),
        ("tab:personamem-restoration-expanded", "Focal (All eligible)", "Absent / Upper", ""),
        (
            "tab:personamem-restoration-expanded",
            "Focal (Outside primary)",
            "Restored - Absent / Lower",
            "outside-primary",
        ),
        ("tab:support-localization", "Consensus | Changed", "H / Estimate", "primary"),
        ("tab:support-localization", "Coverage | Difference", "Users", ""),
        ("tab:semantic-sensitivity", "A admissible", "D_res / Lower", "reading-a"),
        ("tab:semantic-record-grounded", "Taxonomy", "D_res / Estimate", ""),
        ("tab:experiment-index", "F-S+ | Focal restoration, all eligible | Luna", "Queries", ""),
        ("tab:question-strata-main", "Exchangeable", "Γ_H / Estimate", ""),
        ("tab:fresh-task-contrasts", "Recent / Strict", "R-A / Lower", "strict"),
    ],
)
def test_cells_name_the_questions_that_the_paper_prints_them_for(
    label: str, row: str, column: str, questions: str
) -> None:
    (cell,) = {
        item
        for item in read_published()
        if (item.label, item.row, item.column) == (label, row, column)
    }
    assert TABLES[label].part(cell).get("questions", "") == questions


@pytest.mark.parametrize(
    ("label", "row", "column", "source", "quantity"),
    [
        ("answer-submission-balance", "Chronological*", "H / *", "balanced", "dispatch.H"),
        ("answer-submission-balance", "Combined", "H", "balanced", "H"),
        ("additional-operation-dispersion", "Odd-even", "Δ / *", "mechanism", "interaction.Delta"),
        ("memochat-fixed-source", "Same sources", "H_× / *", "memochat", "H_cross"),
        ("memochat-correctness", "Same sources", "D_correct / *", "memochat", "D_correct"),
        ("answer-endpoint-support", "*padding B", "H", "answers", "by_question.H"),
        ("app:additional-strata", "*absent", "* / Smallest", "restoration",
         "loo_min.restored-absent"),
        ("answer-canonical-serialization", "*exchangeable", "D_res / *", "repeated", "D_res"),
        ("tab:support-intervention", "all", "Support present*", "presence", "accuracy.present"),
        ("tab:recent-support-restoration", "all", "Support absent*", "recent-loss",
         "accuracy.absent"),
        ("tab:personamem-restoration-expanded", "Recent-3 (All*", "Absent*",
         "recent-restoration", "accuracy.absent"),
        ("tab:external-memochat-repeat", "all", "H / *", "memochat", "H_same"),
        ("tab:external-memochat", "all", "Replay acc*", "memochat", "accuracy.route.single"),
    ],
)  # fmt: skip
def test_numbers_have_the_experiment_that_the_paper_describes(
    label: str, row: str, column: str, source: str, quantity: str
) -> None:
    (table,) = select_tables((label,))
    stored = read_obtained()
    cells = [
        cell
        for cell in check_table(table, stored)
        if fnmatchcase(cell.printed.row, row) and fnmatchcase(cell.printed.column, column)
    ]
    assert cells
    for cell in cells:
        text = table.part(cell.printed)
        assert (text["source"], text["quantity"]) == (source, quantity)
        assert cell.value is not None, cell


def test_both_readings_of_raw_sessions_are_given() -> None:
    """The paper prints 6,562: user turns and complete sessions give other lengths."""
    stored = read_obtained()
    lengths = [
        cell
        for cell in check_table(TABLES["tab:full-pathways"], stored)
        if cell.printed.row == "Raw" and cell.printed.column.startswith("Context length")
    ]
    complete = [
        cell.value
        for cell in check_table(TABLES[PROTOCOL], stored)
        if cell.printed.row == "raw, turns of all roles"
    ]
    assert [round(cell.value or 0) for cell in lengths] == [6683, 6683]
    assert [round(value or 0) for value in complete] == [3192, 3192]
    for cell in lengths:
        assert cell.status == "differs"
        assert "user turns" in cell.reason and "3,192" in cell.reason
        assert "neither can be confirmed" in cell.reason


def test_restoration_follows_the_rule_that_each_table_states() -> None:
    """I.14 asks for no support at all on the other route, I.15 for one record fewer."""
    assert SOURCES["recent-loss"].options["eligibility"] == "none"
    assert "eligibility" not in SOURCES["recent-restoration"].options
    stored = read_obtained()
    pairs = {
        name: stored[name].rows[0].row.queries or 0
        for name in ("recent-loss", "recent-restoration")
    }
    assert 0 < pairs["recent-loss"] <= pairs["recent-restoration"]


def test_a_run_writes_into_the_directory_of_the_user(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = STORED.read_bytes()
    call = cli("reproduce", "tab:record-semantic", "--run", "--data", tmp_path / "none")
    assert call.code == 0, call.err
    assert "Values: reproduction/obtained.json" in call.out
    assert "readings" in read_obtained(tmp_path / "reproduction" / "obtained.json")
    assert STORED.read_bytes() == before


def test_a_place_that_cannot_be_written_is_named(
    cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file stands where the directory would be."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reproduction").write_text("a file of the user's", encoding="utf-8")
    call = cli("reproduce", "tab:record-semantic", "--run", "--data", tmp_path / "none")
    assert call.code == 2
    assert "obtained.json: cannot be written" in call.err and "file as obtained" in call.err
    assert (tmp_path / "reproduction").read_text(encoding="utf-8") == "a file of the user's"
