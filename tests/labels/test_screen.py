"""Screenings: by models through the ledger, by people through a sheet, stored, and compared."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import InputError, ModelError, SpecError
from routeprism.labels import (
    SCREEN,
    SCREEN_GOLD,
    Readings,
    ScreenReading,
    cards_for,
    load_readings,
    make_ask,
    plan_study,
    read_cards,
    read_reply,
    read_sheet,
    reading_rows,
    readings_from_json,
    readings_to_json,
    run_study,
    same_cards,
    save_readings,
    write_sheet,
)
from routeprism.models import Ask, make_model
from routeprism.records import Benchmark
from routeprism.runs import COLUMNS, to_csv

Saying = Callable[[Ask], str]


def says(label: str, reason: str = "Because.") -> Saying:
    return lambda ask: json.dumps({"label": label, "reason": reason})


def by_question(**labels: str) -> Saying:
    """Answer by what the question is about: `say` or `like`."""
    return lambda ask: json.dumps(
        {"label": labels["say" if "number" in ask.question else "like"], "reason": "r"}
    )


def sheet(path: Path, cards: Sequence[Any], labels: Sequence[str], mark: str = ",") -> Path:
    lines = [mark.join(("card", "label", "reason"))]
    lines += [mark.join((card.id, label, "ok")) for card, label in zip(cards, labels, strict=True)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# --- by a model ------------------------------------------------------------------------------


def test_a_model_reads_every_card_once(tiny: Benchmark, scripted: Any) -> None:
    cards = cards_for(tiny, SCREEN)
    model = scripted(by_question(say="admissible", like="ambiguous"))
    result = read_cards(cards, SCREEN, model, name="A")
    assert len(model.asked) == 4
    assert result.screened() == {
        "ann_q0_secretid": "admissible",
        "ann_q1_abs": "ambiguous",
        "bob_q0_secretid": "admissible",
        "bob_q1_abs": "ambiguous",
    }
    assert result.counts == {"admissible": 2, "ambiguous": 2, "inadmissible": 0, "unread": 0}
    assert (result.name, result.rubric, result.source) == ("A", "screen", "scripted")
    assert result.rubric_digest == SCREEN.digest
    assert {ask.options for ask in model.asked} == {()}


@pytest.mark.parametrize(
    ("reply", "label", "reason"),
    [
        ('{"label": "admissible", "reason": " Same. "}', "admissible", "Same."),
        ('Sure!\n```json\n{"Label": "Inadmissible"}\n```\nDone.', "inadmissible", ""),
        ('<think>{"label": "ambiguous"}?</think>{"label": "admissible."}', "admissible", ""),
        ('{"label": "ambiguous"}\n{"label": "ambiguous"}', "ambiguous", ""),
        ('{broken {"label": "ambiguous", "reason": "two\nlines"}', "ambiguous", "two\nlines"),
        (
            '{"label": "admissible"} or {"label": "ambiguous"}',
            "unread",
            "2 JSON objects that differ",
        ),
        ("admissible", "unread", "no JSON object with 'label'"),
        ('{"label": "admissable"}', "unread", "is none of admissible, ambiguous, inadmissible"),
        ('{"label": ["admissible"]}', "unread", "is none of"),
        ('{"label": "admissible", "LABEL": "ambiguous"}', "unread", "no JSON object"),
        ('{"label": "admissible", "reason": "and so', "unread", "allow the model more tokens"),
        ("", "unread", "no JSON object"),
    ],
)
def test_replies_are_read_leniently_and_never_guessed(
    tiny: Benchmark, reply: str, label: str, reason: str
) -> None:
    card = cards_for(tiny, SCREEN)[0]
    result = read_reply(reply, card, SCREEN)
    assert isinstance(result, ScreenReading)
    assert result.label == label
    assert reason in result.reason


def test_unread_replies_stay_unread_until_another_pass(
    tiny: Benchmark, scripted: Any, tmp_path: Path
) -> None:
    cards = cards_for(tiny, SCREEN)
    reports = {"n": 0}

    def say(ask: Ask) -> str:
        reports["n"] += 1
        return "hm" if reports["n"] <= 4 else '{"label": "admissible"}'

    model = scripted(say)

    def study(*names: str) -> Any:
        return run_study(
            tiny, cards, SCREEN, dict.fromkeys(names, model), seed=1, directory=tmp_path / "run"
        )

    first = study("A")
    assert first.passes[0].counts["unread"] == 4
    repetition = study("A", "B")
    assert len(model.asked) == 8
    assert [item.counts["unread"] for item in repetition.passes] == [4, 0]
    assert repetition.passes[0] == first.passes[0]
    # Nothing is left to compare: agreement is not applicable, and unread ones are counted.
    values = {(row.arm, row.quantity): row.estimate for row in repetition.rows}
    assert values["A~B", "agreement"] is None
    assert values["A~B", "kappa"] is None
    assert values["A", "count.unread"] == 4
    assert "4 pools unread." in repetition.sentences[0]


def test_a_refusal_is_unread(tiny: Benchmark, scripted: Any) -> None:
    model = scripted(lambda ask: "I'm sorry, but I can't help with that.")
    result = read_cards(cards_for(tiny, SCREEN), SCREEN, model, name="A")
    assert {card.reason for card in result.cards.values()} == {"the model refused"}  # type: ignore[union-attr]


def test_passes_are_independent_batches(tiny: Benchmark, scripted: Any) -> None:
    model = scripted(says("admissible"))
    cards = cards_for(tiny, SCREEN)
    for name in ("A", "B"):
        read_cards(cards, SCREEN, model, name=name)
    draws = {(ask.text, ask.draw) for ask in model.asked}
    assert len(draws) == 8  # a seeded model would not repeat the first pass


def test_a_pass_with_failures_is_none(tiny: Benchmark, scripted: Any, tmp_path: Path) -> None:
    cards = cards_for(tiny, SCREEN)

    def fails(ask: Ask) -> str:
        if "bob like" in ask.question and not (tmp_path / "up").exists():
            raise ModelError("the server is down")
        return '{"label": "admissible"}'

    model = scripted(fails)
    settings: dict[str, Any] = {"seed": 1, "directory": tmp_path / "run"}
    with pytest.raises(
        ModelError, match="1 of 4 requests failed; the last error was: the server is"
    ):
        run_study(tiny, cards, SCREEN, {"A": model}, **settings)
    (tmp_path / "up").touch()
    plans = plan_study(cards, SCREEN, {"A": model}, run=tmp_path / "run")
    assert (plans["A"].kept, plans["A"].calls) == (3, 1)
    result = run_study(tiny, cards, SCREEN, {"A": model}, **settings)
    assert len(model.asked) == 5
    assert result.passes[0].counts["admissible"] == 4


def test_the_embedded_reader_is_refused_with_what_can(tiny: Benchmark) -> None:
    with pytest.raises(SpecError) as refused:
        read_cards(cards_for(tiny, SCREEN), SCREEN, make_model("reader"), name="A")
    for word in ("'reader' scores options", "openai:MODEL", "inspect:", "hf:PATH", "people"):
        assert word in str(refused.value)


@pytest.mark.parametrize("name", ["", "A~B", "a/b", "A,B", "-a"])
def test_a_pass_needs_a_name_that_survives(tiny: Benchmark, scripted: Any, name: str) -> None:
    with pytest.raises(SpecError, match="for a pass"):
        read_cards(cards_for(tiny, SCREEN), SCREEN, scripted(says("ambiguous")), name=name)


# --- from a sheet ----------------------------------------------------------------------------

LABELS = ("admissible", "ambiguous", "inadmissible", "admissible")


def spreadsheet(cards: Sequence[Any]) -> dict[str, bytes]:
    """The same reading as several programs would save it."""
    rows = [(card.id, label) for card, label in zip(cards, LABELS, strict=True)]
    reason = 'he said ""no"";\r\nthen, yes'
    plain = "".join(f'{id},{label},"{reason}"\n' for id, label in rows)
    semicolons = "".join(f'{id};{label};"{reason}"\r\n' for id, label in rows)
    tabs = "".join(f'"{reason}"\t{id}\t\t{label.upper()} \r\n' for id, label in rows)
    backwards = "".join(f'{label},"{reason}",,{id},x\n' for id, label in reversed(rows))
    return {
        "plain": b"card,label,reason\n" + plain.encode(),
        "excel": b"\xef\xbb\xbfcard;label;reason\r\n" + semicolons.encode() + b";;\r\n\r\n",
        "sep": b"sep=;\r\ncard;label;reason\r\n" + semicolons.encode(),
        "unicode-text": ("reason\tCard\tnotes\tLABEL\r\n" + tabs).encode("utf-16"),
        "quoted": (
            '"card";"label";"reason"\n'
            + "".join(f'"{id}";"{label}";"{reason}"\n' for id, label in rows)
        ).encode(),
        "moved": b"label,reason,,card,who\n" + backwards.encode(),
    }


@pytest.mark.parametrize("program", ["plain", "excel", "sep", "unicode-text", "quoted", "moved"])
def test_a_sheet_saved_by_a_spreadsheet_is_read(
    tiny: Benchmark, tmp_path: Path, program: str
) -> None:
    cards = cards_for(tiny, SCREEN)
    path = tmp_path / "filled.csv"
    path.write_bytes(spreadsheet(cards)[program])
    result = read_sheet(path, cards, SCREEN, name="people")
    assert tuple(result.screened().values()) == LABELS
    assert {card.reason for card in result.cards.values()} == {  # type: ignore[union-attr]
        'he said "no";\r\nthen, yes'
    }
    assert (result.source, result.model) == ("file:filled.csv", "")


def test_a_sheet_of_ones_own_may_name_questions(tiny: Benchmark, tmp_path: Path) -> None:
    cards = cards_for(tiny, SCREEN)
    path = tmp_path / "own.tsv"
    path.write_text(
        "question\tlabel\n" + "".join(f"{card.question}\tambiguous\n" for card in cards)
    )
    assert read_sheet(path, cards, SCREEN, name="A").counts["ambiguous"] == 4


def broken(cards: Sequence[Any]) -> dict[str, tuple[bytes, str, int | None, str | None]]:
    """Sheets that cannot be used: content, part of the message, line, field."""
    ids = [card.id for card in cards]
    good = [f"{id},admissible,ok\n" for id in ids]
    head = "card,label,reason\n"

    def text(*lines: str) -> bytes:
        return (head + "".join(lines)).encode()

    return {
        "missing cards": (
            text(*good[:2]),
            f"2 of 4 cards have no row: {ids[2]}, {ids[3]}",
            None,
            "card",
        ),
        "unknown card": (
            text(*good, f"{ids[0][:-1]}x,admissible,\n"),
            f"row 6: there is no card '{ids[0][:-1]}x'. Did you mean '{ids[0]}'?",
            6,
            "card",
        ),
        "no card": (text(*good[:3], ",admissible,\n"), "row 5: no card is named", 5, "card"),
        "duplicated card": (
            text(*good, good[1]),
            f"row 6: {ids[1]} is in row 3 already",
            6,
            "card",
        ),
        "typo": (
            text(good[0], f"{ids[1]},admissable,ok\n", *good[2:]),
            "row 3: there is no label 'admissable'. Did you mean 'admissible'?",
            3,
            "label",
        ),
        "empty label": (
            text(*good[:3], f"{ids[3]},,forgot\n"),
            "row 5: there is no label; expected one of admissible, ambiguous, inadmissible",
            5,
            "label",
        ),
        "unread": (
            text(*good[:3], f"{ids[3]},unread,\n"),
            "row 5: 'unread' is not a reading; fill in the label",
            5,
            "label",
        ),
        # The row is not the line: a quoted cell goes over two lines before it.
        "after a quoted newline": (
            text(f'{ids[0]},admissible,"two\nlines"\n', f"{ids[1]},maybe,\n", *good[2:]),
            "row 3: there is no label 'maybe'",
            4,
            "label",
        ),
        "unquoted comma": (
            text(*good[:3], f"{ids[3]},admissible,well, no\n"),
            "row 5: Expected 3 cells, as in the header, but got 4; a text with commas needs quotes",
            5,
            None,
        ),
        "open quote": (
            text(*good[:3], f'{ids[3]},admissible,"well\n'),
            "is a quotation mark missing?",
            5,
            None,
        ),
        "no label column": (
            b"card,verdict\nx,y\n",
            "the column 'label' is missing; the first line has 'card', 'verdict'",
            1,
            "label",
        ),
        "column twice": (
            b"card,label,Label\nx,y,z\n",
            "the column is there twice",
            1,
            "label",
        ),
        "Latin-1": (
            "card,label\nx,naïve\n".encode("latin-1"),
            "is not UTF-8 text (invalid continuation byte); save it as 'CSV UTF-8'",
            2,
            None,
        ),
        "nothing": (b"\xef\xbb\xbf\n", "there is nothing in it", None, None),
    }


@pytest.mark.parametrize(
    "case",
    [
        "missing cards",
        "unknown card",
        "no card",
        "duplicated card",
        "typo",
        "empty label",
        "unread",
        "after a quoted newline",
        "unquoted comma",
        "open quote",
        "no label column",
        "column twice",
        "Latin-1",
        "nothing",
    ],
)
def test_a_bad_sheet_is_refused_with_its_place(tiny: Benchmark, tmp_path: Path, case: str) -> None:
    cards = cards_for(tiny, SCREEN)
    content, message, line, field = broken(cards)[case]
    path = tmp_path / "bad.csv"
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_sheet(path, cards, SCREEN, name="A")
    assert message in refused.value.problem
    assert (refused.value.file, refused.value.line) == (str(path), line)
    assert refused.value.field == field


def test_a_file_that_is_not_there_is_an_input_error(tiny: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_sheet(tmp_path / "none.csv", cards_for(tiny, SCREEN), SCREEN, name="A")


# --- stored ----------------------------------------------------------------------------------


def reading(tiny: Benchmark, labels: Sequence[str] = LABELS, name: str = "A") -> Readings:
    cards = cards_for(tiny, SCREEN)
    return Readings(
        name,
        "screen",
        "screen",
        SCREEN.digest,
        "scripted",
        "0" * 64,
        {
            card.id: ScreenReading(card.question, label, "=why\r\n")
            for card, label in zip(cards, labels, strict=True)
        },
    )


def test_readings_come_back_from_json_and_from_a_sheet(tiny: Benchmark, tmp_path: Path) -> None:
    result = reading(tiny)
    assert readings_from_json(json.loads(json.dumps(readings_to_json(result)))) == result
    save_readings(result, tmp_path / "a.json")
    assert load_readings(tmp_path / "a.json") == result
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]
    cards = cards_for(tiny, SCREEN)
    (tmp_path / "a.csv").write_bytes(write_sheet(cards, SCREEN, readings=result))
    assert read_sheet(tmp_path / "a.csv", cards, SCREEN, name="A").cards == result.cards


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "field 'format': Expected format=1 but got 2"),
        ({"kind": "scren"}, "field 'kind': there is no kind 'scren'. Did you mean 'screen'?"),
        ({"name": ""}, "field 'name': Expected text but got name=''"),
        ({"cards": []}, "field 'cards': Expected a JSON object but got []"),
        ({"cards": {"x": {"label": "admissible"}}}, "field 'cards.x.question'"),
        (
            {"cards": {"x": {"question": "q", "label": "admissble"}}},
            "field 'cards.x.label': there is no label 'admissble'. Did you mean 'admissible'?",
        ),
        ({"cards": {"x": {"question": "q", "label": "ambiguous", "reason": 1}}}, "cards.x.reason"),
    ],
)
def test_stored_readings_are_checked(tiny: Benchmark, change: Any, message: str) -> None:
    value = readings_to_json(reading(tiny)) | change
    with pytest.raises(InputError) as refused:
        readings_from_json(value)
    assert message in str(refused.value)


def test_a_stored_file_that_is_broken_says_where(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"format": 1,\n"name": }')
    with pytest.raises(InputError, match=r"a\.json, line 2: is not valid JSON"):
        load_readings(path)
    path.write_text('{"cards": {"c": 1, "c": 2}}')
    with pytest.raises(InputError, match="the field 'c' is given twice"):
        load_readings(path)


def test_readings_of_other_cards_or_rubrics_are_refused(tiny: Benchmark) -> None:
    result = reading(tiny)
    cards = cards_for(tiny, SCREEN)
    with pytest.raises(InputError, match=r"1 only in 'A' \(card-"):
        result.check(cards[1:], SCREEN)
    with pytest.raises(InputError, match="was read under another rubric"):
        result.check(cards_for(tiny, SCREEN_GOLD), SCREEN_GOLD)


def test_two_annotators_with_different_cards_are_refused(tiny: Benchmark) -> None:
    first, second = reading(tiny), reading(tiny, name="B")
    fewer = Readings(**{name: getattr(second, name) for name in _FIELDS} | {"cards": _some(second)})
    with pytest.raises(InputError) as refused:
        same_cards([first, fewer])
    missing = sorted(set(first.cards) - set(fewer.cards))
    assert str(refused.value) == (
        f"pass 'A' and pass 'B' are not about the same cards: "
        f"2 only in 'A' ({missing[0]}, {missing[1]})"
    )
    with pytest.raises(SpecError, match="two passes have the same name"):
        same_cards([first, first])


_FIELDS = ("name", "kind", "rubric", "rubric_digest", "source", "source_digest", "cards")


def _some(readings: Readings) -> dict[str, Any]:
    return dict(list(readings.cards.items())[:2])


# --- estimates -------------------------------------------------------------------------------


def test_two_screenings_become_rows(tiny: Benchmark) -> None:
    first = reading(tiny, ("admissible", "ambiguous", "inadmissible", "admissible"))
    second = reading(tiny, ("admissible", "inadmissible", "inadmissible", "unread"), "B")
    rows = reading_rows(tiny, [first, second], seed=3, resamples=200)
    values = {(row.arm, row.quantity): row.estimate for row in rows}
    expected = {
        ("A", "count.admissible"): 2,
        ("A", "count.unread"): 0,
        ("B", "count.admissible"): 1,
        ("B", "count.unread"): 1,
        ("A~B", "count.agreed"): 2,
        ("A~B", "count.compared"): 3,
        ("A~B", "count.ambiguous~inadmissible"): 1,
        ("A~B", "count.inadmissible~inadmissible"): 1,
        ("intersection(A,B)", "count.admissible"): 1,
    }
    assert {key: values[key] for key in expected} == expected
    assert values["A~B", "agreement"] == pytest.approx(2 / 3)
    # Rows (1,0,0),(0,0,1),(0,0,1); chance = 1·1 + 1·0 + 1·2 = 3: κ = (2·3 − 3) / (9 − 3).
    assert values["A~B", "kappa"] == pytest.approx(0.5)
    share = next(row for row in rows if row.quantity == "agreement")
    assert (share.experiment, share.queries, share.units, share.unit) == ("screen", 3, 2, "user")
    assert (share.lower, share.upper) == (0.5, 1.0)  # ann alone: 1 of 2; bob alone: 1 of 1
    assert len({row.identity for row in rows}) == len(rows)
    assert to_csv(rows) == to_csv(reading_rows(tiny, [first, second], seed=3, resamples=200))


def test_three_passes_have_pairs_and_all_of_them(tiny: Benchmark) -> None:
    passes = [reading(tiny, LABELS, "A"), reading(tiny, LABELS, "B")]
    passes.append(reading(tiny, ("admissible",) * 4, "C"))
    rows = reading_rows(tiny, passes, seed=3, resamples=100)
    values = {(row.arm, row.quantity): row.estimate for row in rows}
    assert values["A~B~C", "agreement"] == 0.5
    assert values["A~B", "kappa"] == 1
    assert values["A~C", "agreement"] == 0.5
    assert values["majority(A,B,C)", "count.ambiguous"] == 1
    assert values["unanimity(A,B,C)", "count.inadmissible"] == 2


# --- the command -----------------------------------------------------------------------------


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"seed": 5, "resamples": 100}


def test_the_command_exports_reads_back_and_gates(
    settings: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    command("screen", "sample", export=Path("cards.csv"), **settings)
    assert "cards are in cards.csv" in capsys.readouterr().out
    assert Path("cards.rubric.txt").read_text() == SCREEN.text + "\n"
    with pytest.raises(InputError, match="so it is not overwritten"):
        command("screen", "sample", export=Path("cards.csv"), **settings)
    from routeprism.records import load_benchmark

    cards = cards_for(load_benchmark("sample"), SCREEN)
    number = len(cards)
    sheet(Path("a.csv"), cards, ["admissible"] * 100 + ["inadmissible"] * (number - 100), ";")
    sheet(Path("b.csv"), cards, ["admissible"] * 90 + ["inadmissible"] * (number - 90))
    command(
        "screen",
        "sample",
        passes=["A=a.csv", "B=b.csv"],
        gate="intersection",
        write_mask=Path("mask.txt"),
        run=Path("run"),
        **settings,
    )
    out = capsys.readouterr().out
    assert f"A and B agree on {number - 10} of {number} pools" in out
    assert "A and B both find 90 pools admissible." in out
    assert f"Gate intersection(A,B): 90 of {number} questions pass." in out
    ids = Path("mask.txt").read_text().split()
    assert sorted(card.question for card in cards[:90]) == ids
    manifest = json.loads(Path("run/manifest.json").read_text())["configuration"]
    assert manifest["primary"] == {"A": "file:a.csv"}
    assert manifest["declaration"] == {
        "primary": "A",
        "passes": {"A": SCREEN.digest, "B": SCREEN.digest},
    }
    assert load_readings(Path("run/readings-B.json")).counts["admissible"] == 90
    # A stored pass is a pass like any other; another primary one is another run.
    values: dict[str, Any] = {"passes": ["A=run/readings-A.json"], "json": True, **settings}
    command("screen", "sample", gate="A", masks=["m=mask.txt"], **values)
    document = json.loads(capsys.readouterr().out)
    assert len(document["gate"]["questions"]) == 100
    assert {row["mask"] for row in document["estimates"]} == {"", "m"}
    assert set(document["estimates"][0]) == set(COLUMNS)
    from routeprism.errors import RunError

    with pytest.raises(RunError, match="holds another run"):
        command(
            "screen",
            "sample",
            passes=["A=a.csv", "B=b.csv"],
            primary="B",
            run=Path("run"),
            **settings,
        )


@pytest.mark.slow
def test_the_command_asks_models_and_resumes(
    settings: Any, tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    """With replies that were recorded elsewhere, found by their prompts."""
    from routeprism.records import load_benchmark

    monkeypatch.chdir(tmp_path)
    cards = cards_for(load_benchmark("sample"), SCREEN)
    replies = [
        {
            "prompt_sha256": hashlib.sha256(make_ask(card, SCREEN).text.encode()).hexdigest(),
            "draw": 0,
            "answer": '{"label": "admissible", "reason": "Yes."}' if at else "Well.",
        }
        for at, card in enumerate(cards)
    ]
    Path("replies.jsonl").write_text("\n".join(map(json.dumps, replies)))
    call: dict[str, Any] = {"passes": ["A=recorded:replies.jsonl"], "json": True, **settings}
    command("screen", "sample", dry_run=True, **call)
    assert json.loads(capsys.readouterr().out)["A"]["calls"] == len(cards)
    assert not Path("runs").exists()
    command("screen", "sample", **call)
    document = json.loads(capsys.readouterr().out)
    assert document["passes"]["A"]["unread"] == 1
    assert document["passes"]["A"]["admissible"] == len(cards) - 1
    command("screen", "sample", dry_run=True, **call)
    repetition = json.loads(capsys.readouterr().out)["A"]
    assert (repetition["calls"], repetition["kept"]) == (0, len(cards))
    assert sorted(path.name for path in Path(document["run"]).iterdir()) == [
        *("estimates.csv", "manifest.json", "readings-A.json", "report.html", "run.sqlite"),
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "Expected at least one pass"),
        ({"passes": ["a.csv"]}, "Expected NAME=FILE or NAME=MODEL but got the pass 'a.csv'"),
        ({"passes": ["A=x.csv", "A=y.csv"]}, "two passes are called 'A'"),
        ({"passes": ["A=reader"]}, "cannot read cards"),
        ({"passes": ["A=redaer"]}, "There is no model 'redaer'. Did you mean 'reader'?"),
        ({"passes": ["A=x.csv"], "gate": "majority"}, "Expected 2 or more passes"),
        ({"passes": ["A=x.csv"], "gate": "majorty"}, "Did you mean 'majority'"),
        ({"passes": ["A=x.csv"], "primary": "B"}, "Expected a primary pass among A"),
        ({"passes": ["A=x.csv"], "write_mask": Path("m")}, "set gate as well"),
    ],
)
def test_the_command_refuses_what_it_cannot_do(
    settings: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: Any,
    message: str,
    command: Any,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError) as refused:
        command("screen", "sample", **arguments, **settings)
    assert message in str(refused.value)
    assert list(tmp_path.iterdir()) == []
