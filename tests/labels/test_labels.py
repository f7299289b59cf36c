"""Audited labels: read by models or people, compared, declared, and never mixed with others."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import InputError, SpecError
from routeprism.labels import (
    LABELS,
    SCREEN,
    SUPPORT,
    Readings,
    RecordReading,
    SupportReading,
    audited_labels,
    cards_for,
    load_readings,
    pass_statements,
    read_cards,
    read_reply,
    read_sheet,
    reading_rows,
    readings_from_json,
    readings_to_json,
    with_label_file,
    with_labels,
    with_readings,
    write_sheet,
)
from routeprism.models import Ask
from routeprism.records import Benchmark, load_benchmark


def entry(number: Any, label: str, **more: str) -> dict[str, Any]:
    return {"record": number, "label": label, **more}


def reply(*labels: str) -> str:
    entries = [
        entry(at, label, basis=f"because {at}", confidence="High")
        for at, label in enumerate(labels, start=1)
    ]
    return json.dumps({"records": entries})


def reading(tiny: Benchmark, labels: Sequence[str], name: str = "A") -> Readings:
    """Make a pass; each string has a letter (d, i, n) for each record of a card, or is empty."""
    words = {"d": "direct", "i": "indirect", "n": "none"}
    cards = {}
    for card, letters in zip(cards_for(tiny, SUPPORT), labels, strict=True):
        records = {
            record.id: RecordReading(words[letter], "+basis", "low")
            for record, letter in zip(card.records, letters, strict=False)
        }
        cards[card.id] = SupportReading(card.question, records, "" if letters else "no JSON")
    return Readings(name, "support", "support", SUPPORT.digest, "scripted", "0" * 64, cards)


# --- reading ---------------------------------------------------------------------------------


def test_a_model_labels_every_record(tiny: Benchmark, scripted: Any) -> None:
    model = scripted(lambda ask: reply("none", "indirect", "direct"))
    result = read_cards(cards_for(tiny, SUPPORT), SUPPORT, model, name="A")
    first = result.supported()["ann_q0_secretid"]
    assert first.records["answer_ann_1"] == RecordReading("indirect", "because 2", "high")
    assert first.direct == {"answer_ann_2"}
    assert result.counts == {"direct": 4, "indirect": 4, "none": 4, "unread": 0}
    assert audited_labels(result) == {
        question: frozenset({f"answer_{question[:3]}_2"})
        for question in ("ann_q0_secretid", "ann_q1_abs", "bob_q0_secretid", "bob_q1_abs")
    }


@pytest.mark.parametrize(
    ("message", "direct"),
    [
        ({"records": {"1": "direct", "record 2": {"label": "none"}, "#3": "none"}}, {0}),
        ({"Records": [entry("2", "DIRECT"), entry(1, "none"), entry(3, "direct")]}, {1, 2}),
        (
            {"records": [entry(1, "none", confidence="sure")] + [entry(n, "none") for n in (2, 3)]},
            set(),
        ),
    ],
)
def test_replies_may_be_written_in_other_ways(tiny: Benchmark, message: Any, direct: Any) -> None:
    result = read_reply(json.dumps(message), cards_for(tiny, SUPPORT)[0], SUPPORT)
    assert isinstance(result, SupportReading)
    assert result.unread == ""
    assert result.direct == {f"answer_ann_{at}" for at in direct}


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (reply("none", "direct"), "record 3 is not labelled"),
        (reply("none", "direct", "none", "none"), "record 4 is labelled, which the card does not"),
        (json.dumps({"records": [entry(1, "none")] * 2}), "record 1 is labelled twice"),
        (reply("none", "driect", "none"), "the label of record 2='driect' is none of direct"),
        (json.dumps({"records": ["direct"] * 3}), "'records' is not a list of objects"),
        (json.dumps({"records": [{"label": "none"}]}), "None is not the number of a record"),
        (json.dumps({"labels": []}), "no JSON object with 'records'"),
    ],
)
def test_a_reply_that_leaves_something_open_is_unread(
    tiny: Benchmark, message: str, why: str
) -> None:
    result = read_reply(message, cards_for(tiny, SUPPORT)[0], SUPPORT)
    assert isinstance(result, SupportReading)
    assert why in result.unread
    assert result.records == {}


# --- from a sheet ----------------------------------------------------------------------------


def test_labels_go_through_a_sheet_and_json(tiny: Benchmark, tmp_path: Path) -> None:
    result = reading(tiny, ["ddn", "nin", "nnn", "dnd"])
    cards = cards_for(tiny, SUPPORT)
    path = tmp_path / "labels.csv"
    path.write_bytes(write_sheet(cards, SUPPORT, readings=result))
    assert b",'+basis," in path.read_bytes()
    assert read_sheet(path, cards, SUPPORT, name="A").cards == result.cards
    assert readings_from_json(json.loads(json.dumps(readings_to_json(result)))) == result


def rows_of(tiny: Benchmark) -> list[list[str]]:
    return [
        [card.id, str(record.number), "none", ""]
        for card in cards_for(tiny, SUPPORT)
        for record in card.records
    ]


def write(
    path: Path, rows: Sequence[Sequence[str]], head: str = "card;record;label;confidence"
) -> Path:
    lines = [head, *(";".join(row) for row in rows)]
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode())
    return path


def test_rows_may_stand_in_any_order_and_name_ids(tiny: Benchmark, tmp_path: Path) -> None:
    cards = cards_for(tiny, SUPPORT)
    rows = [[*row[:2], "Direct" if row[1] == "2" else "none", "HIGH"] for row in rows_of(tiny)]
    numbers = write(tmp_path / "n.csv", rows[::-1])
    by_number = read_sheet(numbers, cards, SUPPORT, name="A")
    own = [
        [card.question, record.id, "direct" if record.number == 2 else "none", "high"]
        for card in cards
        for record in card.records
    ]
    names = write(tmp_path / "i.csv", own, "question;record_id;label;confidence")
    assert read_sheet(names, cards, SUPPORT, name="A").cards == by_number.cards
    assert audited_labels(by_number)["bob_q1_abs"] == {"answer_bob_1"}


@pytest.mark.parametrize(
    ("change", "message", "line", "field"),
    [
        ({1: None}, "row 2: {card} has no row for its record 2", 2, "record"),
        (
            {1: ["4", "none", ""]},
            "row 3: there is no record '4'; the card's records are 1 to 3",
            3,
            "record",
        ),
        ({1: ["", "none", ""]}, "row 3: there is no record; the card's records", 3, "record"),
        ({1: ["1", "none", ""]}, "row 3: record 1 of {card} is in row 2 already", 3, "record"),
        ({1: ["2", "indirekt", ""]}, "no label 'indirekt'. Did you mean 'indirect'?", 3, "label"),
        ({1: ["2", "", ""]}, "row 3: there is no label; expected one of direct, ", 3, "label"),
        ({1: ["2", "none", "hihg"]}, "no confidence 'hihg'. Did you mean 'high'?", 3, "confidence"),
        ({0: None, 1: None, 2: None}, "1 of 4 cards have no row: {card}", None, "card"),
    ],
)
def test_a_bad_label_sheet_is_refused_with_its_place(
    tiny: Benchmark, tmp_path: Path, change: Any, message: str, line: int | None, field: str
) -> None:
    rows: list[list[str]] = []
    for at, row in enumerate(rows_of(tiny)):
        if at not in change:
            rows.append(row)
        elif change[at] is not None:
            rows.append([row[0], *change[at]])
    path = write(tmp_path / "bad.csv", rows)
    cards = cards_for(tiny, SUPPORT)
    with pytest.raises(InputError) as refused:
        read_sheet(path, cards, SUPPORT, name="A")
    assert message.format(card=cards[0].id) in refused.value.problem
    assert (refused.value.file, refused.value.line) == (str(path), line)
    assert refused.value.field == field


def test_an_unknown_record_id_is_refused_with_the_nearest(tiny: Benchmark, tmp_path: Path) -> None:
    cards = cards_for(tiny, SUPPORT)
    path = write(
        tmp_path / "bad.csv",
        [[cards[0].question, "answer_ann_9", "none", ""]],
        "question;record_id;label;confidence",
    )
    with pytest.raises(InputError) as refused:
        read_sheet(path, [cards[0]], SUPPORT, name="A")
    assert "row 2: there is no record 'answer_ann_9'; Did you mean 'answer_ann_" in str(
        refused.value
    )


def test_stored_readings_of_other_records_are_refused(tiny: Benchmark) -> None:
    result = reading(tiny, ["ddn", "nin", "nnn", "dnd"])
    value = readings_to_json(result)
    card = next(iter(value["cards"]))
    value["cards"][card]["records"]["answer_ann_7"] = {"label": "direct"}
    with pytest.raises(InputError, match="labels the record 'answer_ann_7', which its pool does"):
        readings_from_json(value).check(cards_for(tiny, SUPPORT), SUPPORT)
    del value["cards"][card]["records"]["answer_ann_7"]
    del value["cards"][card]["records"]["answer_ann_1"]
    with pytest.raises(InputError, match="has no label for record 'answer_ann_1'"):
        readings_from_json(value).check(cards_for(tiny, SUPPORT), SUPPORT)


# --- a benchmark's labels --------------------------------------------------------------------


def test_a_pass_becomes_a_label_source_beside_the_others(tiny: Benchmark) -> None:
    result = reading(tiny, ["ddn", "", "nnn", "dnd"])
    labelled = with_readings(tiny, result)
    assert labelled.labels == ("benchmark", "audited:A")
    first, second = labelled.cases[0].questions
    assert first.labels == {
        "benchmark": frozenset({"answer_ann_2"}),
        "audited:A": frozenset({"answer_ann_0", "answer_ann_1"}),
    }
    assert second.labels == {}  # unread: no label of this source, and none of another in its place
    third = labelled.cases[1].questions[0]
    assert third.labels["audited:A"] == frozenset()  # read, and no record is direct
    assert tiny.cases[0].questions[0].labels == {"benchmark": frozenset({"answer_ann_2"})}
    assert set(labelled.inputs) - set(tiny.inputs) == {"labels audited:A"}
    repetition = with_labels(labelled, "audited:B", audited_labels(result))
    assert repetition.labels == ("benchmark", "audited:A", "audited:B")
    assert repetition.inputs["labels audited:A"] == repetition.inputs["labels audited:B"]
    assert len(repetition.cases[0:2]) == 2


@pytest.mark.parametrize(
    ("source", "labels", "message"),
    [
        ("audited:A", {"q9": frozenset()}, "name the question 'q9', which benchmark 'tiny' does"),
        (
            "audited:A",
            {"bob_q1_abs": frozenset({"answer_ann_0"})},
            "of question 'bob_q1_abs' name the record 'answer_ann_0', which user 'bob' does not "
            "have. Did you mean 'answer_bob_0'?",
        ),
        ("benchmark", {}, "Expected 'audited:NAME' but got source_name='benchmark'"),
        ("audited:", {}, "Expected 'audited:NAME'"),
        ("audited:a~b", {}, "for a pass"),
    ],
)
def test_bad_labels_are_refused_before_anything_is_built_on_them(
    tiny: Benchmark, source: str, labels: Any, message: str
) -> None:
    with pytest.raises((InputError, SpecError)) as refused:
        with_labels(tiny, source, labels)
    assert message in str(refused.value)


def test_a_label_source_is_never_overwritten(tiny: Benchmark) -> None:
    labelled = with_labels(tiny, "audited:A", {})
    with pytest.raises(SpecError, match="has labels 'audited:A' already"):
        with_labels(labelled, "audited:A", {})


def test_screenings_are_no_labels(tiny: Benchmark, scripted: Any) -> None:
    model = scripted(lambda ask: '{"label": "admissible"}')
    result = read_cards(cards_for(tiny, SCREEN), SCREEN, model, name="A")
    with pytest.raises(SpecError, match="labels no records: it reads 'screen'"):
        audited_labels(result)
    with pytest.raises(SpecError, match="is not a screening: it reads 'support'"):
        reading(tiny, ["ddn", "", "nnn", "dnd"]).screened()


# --- agreement -------------------------------------------------------------------------------


PAIRS = [f"{a}~{b}" for a in LABELS["support"] for b in LABELS["support"]]


def test_passes_agree_per_record_and_per_direct_set(tiny: Benchmark) -> None:
    first = reading(tiny, ["ddn", "nin", "nnn", "dnd"])
    second = reading(tiny, ["din", "nnn", "", "dnd"], "B")
    rows = reading_rows(tiny, [first, second], seed=1, resamples=100)
    values = {(row.arm, row.quantity): row.estimate for row in rows}
    # Nine records of three questions, bob's first being unread: ddn/din, nin/nnn and dnd/dnd.
    assert (values["A~B", "count.agreed"], values["A~B", "count.compared"]) == (7, 9)
    assert {row.queries for row in rows if row.arm == "A~B"} == {3}
    met = {pair: values["A~B", f"count.{pair}"] for pair in PAIRS}
    assert {pair: number for pair, number in met.items() if number} == {
        "direct~direct": 3,
        "direct~indirect": 1,
        "indirect~none": 1,
        "none~none": 4,
    }
    sets = [values["direct-sets:A~B", f"count.{name}"] for name in ("agreed", "compared")]
    assert sets == [2, 3]
    assert values["A~B", "agreement"] == pytest.approx(7 / 9)
    # Rows 4, 1, 4; columns 3, 1, 5: chance 12 + 1 + 20 = 33, κ = (63 − 33) / (81 − 33).
    assert values["A~B", "kappa"] == pytest.approx(30 / 48)
    assert values["direct-sets:A~B", "agreement"] == pytest.approx(2 / 3)
    # Membership: in/in 3, in/out 1, out/out 5; chance 4·3 + 5·6 = 42: κ = (72 − 42) / (81 − 42).
    assert values["direct-sets:A~B", "kappa"] == pytest.approx(30 / 39)
    assert values["A", "count.direct"] == 4
    assert values["B", "count.unread"] == 1
    assert {row.experiment for row in rows} == {"support"}
    assert {row.labels for row in rows if row.arm == "B"} == {"audited:B"}
    assert len({row.identity for row in rows}) == len(rows)
    assert str(list(pass_statements([first, second], rows))[-1]).startswith(
        "A and B agree on 7 of 9 record labels (0.778"
    )


# --- the command -----------------------------------------------------------------------------


def test_the_command_labels_the_sample(
    tmp_path: Path, capsys: Any, monkeypatch: Any, command: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"seed": 5, "resamples": 100}
    sample = load_benchmark("sample")
    command("support", "sample", export=Path("cards.csv"), **settings)
    assert Path("cards.rubric.txt").read_text() == SUPPORT.text + "\n"
    capsys.readouterr()
    gold = {q.id: q.labels["benchmark"] for case in sample.cases for q in case.questions}
    lines = ["question,record_id,label"]
    for card in cards_for(sample, SUPPORT):
        for record in card.records:
            label = "direct" if record.id in gold[card.question] else "none"
            lines.append(f"{card.question},{record.id},{label}")
    Path("a.csv").write_text("\n".join(lines))
    Path("b.csv").write_text("\n".join(lines).replace("direct", "indirect", 1))
    command(
        "support", "sample", passes=["A=a.csv", "B=b.csv"], json=True, run=Path("run"), **settings
    )
    document = json.loads(capsys.readouterr().out)
    number = len(gold)
    assert f"on {number - 1} of {number} direct-support sets" in document["sentences"][-1]
    assert document["labels"]["source"] == "audited:A"
    assert document["labels"]["questions"] == {id: sorted(ids) for id, ids in gold.items()}
    stored = load_readings(Path("run/readings-A.json"))
    labelled = with_readings(sample, stored)
    for case in labelled.cases:
        for question in case.questions:
            assert question.labels["audited:A"] == question.labels["benchmark"]


def test_prompts_name_records_by_number_alone(tiny: Benchmark, scripted: Any) -> None:
    requests: list[Ask] = []
    model = scripted(lambda ask: requests.append(ask) or reply("none", "none", "none"))
    read_cards(cards_for(tiny, SUPPORT), SUPPORT, model, name="A")
    assert '<record number="2" date="2024-02-01">\n[USER] I, ann' in requests[0].text
    assert not any("answer_" in ask.text or "secretid" in ask.text for ask in requests)


def test_a_table_of_questions_and_records_is_a_label_source(
    tiny: Benchmark, tmp_path: Path
) -> None:
    case = tiny.cases[0]
    item, alternative = (question.id for question in case.questions[:2])
    first, second = case.pool.ids[:2]
    file = tmp_path / "mine.csv"
    file.write_text(
        f"question,record,why\n{item},{first},\n{item},{second},both\n{alternative},,none\n"
    )
    labelled = with_label_file(tiny, file)
    assert labelled.labels[-1] == "audited:mine"
    values = {q.id: q.labels.get("audited:mine") for q in labelled.cases[0].questions}
    assert values[item] == {first, second}
    assert values[alternative] == frozenset()  # it was read
    assert set(values.values()) - {values[item], values[alternative]} <= {None}
    for text, problem in (
        (f"question,record\n{item},{first}\n{item},{first}\n", "line 3, field 'record'"),
        (f"question,record\n,{first}\n", "no question is named"),
        ("question,label\nq,direct\n", "record"),
        (f"question,record\n{item},nothing\n", "name the record 'nothing'"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=problem):
            with_label_file(tiny, file)
