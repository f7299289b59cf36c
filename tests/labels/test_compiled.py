"""Compiled support: the context itself is read, blind to its route; quotations are looked up."""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import InputError, RunError, SpecError
from routeprism.labels import (
    COMPILED,
    SUPPORT,
    CompiledCard,
    CompiledReading,
    Passage,
    Readings,
    RouteName,
    cards_for,
    compiled_cards,
    make_ask,
    pass_statements,
    read_cards,
    read_reply,
    read_sheet,
    reading_rows,
    readings_from_json,
    readings_to_json,
    routes_of,
    stored_contexts,
    write_sheet,
)
from routeprism.records import Benchmark
from routeprism.runs import StoredRun

CONTEXT = "Topic: tea.\n\nAnn  drinks tea\nwith milk. Bob does not."


def card(tiny: Benchmark, context: str = CONTEXT) -> CompiledCard:
    return compiled_cards(tiny, [("ann_q1_abs", context)], COMPILED)[0]


def read(tiny: Benchmark, **message: Any) -> CompiledReading:
    reply = read_reply(json.dumps(message), card(tiny), COMPILED)
    assert isinstance(reply, CompiledReading)
    return reply


# --- cards -----------------------------------------------------------------------------------


def test_a_card_has_the_context_and_no_route(tiny: Benchmark) -> None:
    names = {field.name for field in dataclasses.fields(CompiledCard)}
    assert names == {"id", "question", "text", "options", "gold", "context"}
    item = card(tiny)
    assert item.context_sha256 == hashlib.sha256(CONTEXT.encode()).hexdigest()
    text = make_ask(item, COMPILED).text
    assert f"<context>\n{CONTEXT}\n</context>" in text
    assert "Right answer\ntea with\nmilk\n" in text
    assert "_abs" not in text


def test_routes_with_the_same_context_share_a_card_and_order_tells_nothing(
    tiny: Benchmark,
) -> None:
    forward = [("ann_q0_secretid", "one"), ("ann_q1_abs", "one"), ("bob_q1_abs", "same")]
    second = [("ann_q0_secretid", "two"), ("ann_q1_abs", "two"), ("bob_q1_abs", "same")]
    cards = compiled_cards(tiny, [*forward, *second], COMPILED)
    assert cards == compiled_cards(tiny, [*second, *forward], COMPILED)
    assert len(cards) == 5
    assert [first.id for first in cards] == sorted(first.id for first in cards)
    sheet = write_sheet(cards, COMPILED).decode()
    for secret in ("forward", "replay", "secretid", "_abs"):
        assert secret not in sheet


def test_a_context_of_an_unknown_question_is_refused(tiny: Benchmark) -> None:
    with pytest.raises(InputError, match=r"the question 'ann_q1_ab'.*Did you mean 'ann_q1_abs'"):
        compiled_cards(tiny, [("ann_q1_ab", "x")], COMPILED)
    with pytest.raises(SpecError, match="make its cards by cards_for"):
        compiled_cards(tiny, [], SUPPORT)


# --- replies ---------------------------------------------------------------------------------


def test_quotations_are_looked_up_with_white_space_folded(tiny: Benchmark) -> None:
    result = read(
        tiny, outcome="supports", passages=["Ann drinks tea with\tmilk."], reason="It is."
    )
    assert result == CompiledReading(
        "ann_q1_abs",
        card(tiny).context_sha256,
        "supports",
        (Passage("Ann drinks tea with\tmilk.", True),),
        "It is.",
    )
    assert result.standing == "supports"


@pytest.mark.parametrize(
    ("outcome", "passages", "verified", "standing"),
    [
        ("supports", ["Ann drinks tea"], [True], "supports"),
        ("supports", ["Ann drinks coffee"], [False], "unverified"),
        ("supports", ["ann drinks tea"], [False], "unverified"),  # word for word
        ("supports", ["nothing like it", "Topic: tea."], [False, True], "supports"),
        ("jointly", ["Topic: tea.", "with milk"], [True, True], "jointly"),
        ("jointly", ["Topic: tea.", "with sugar"], [True, False], "unverified"),
        ("none", [], [], "none"),
        ("Unresolved", [], [], "unresolved"),
    ],
)
def test_an_outcome_stands_if_its_quotations_bear_it_out(
    tiny: Benchmark, outcome: str, passages: list[str], verified: list[bool], standing: str
) -> None:
    result = read(tiny, outcome=outcome, passages=passages)
    assert result.outcome == outcome.casefold()
    assert [passage.verified for passage in result.passages] == verified
    assert result.standing == standing


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ({"outcome": "supports", "passages": []}, "'supports' needs 1 quoted passage or more"),
        ({"outcome": "supports"}, "'supports' needs 1 quoted passage or more"),
        ({"outcome": "jointly", "passages": ["tea"]}, "'jointly' needs 2 quoted passages or more"),
        ({"outcome": "none", "passages": ["tea"]}, "'none' quotes no passage, but there is one"),
        ({"outcome": "supports", "passages": [1]}, "'passages' is not a list of texts"),
        ({"outcome": "support"}, "outcome='support' is none of supports, jointly, none, unres"),
    ],
)
def test_what_contradicts_itself_is_unread(tiny: Benchmark, message: Any, why: str) -> None:
    result = read(tiny, **message)
    assert (result.outcome, result.standing) == ("unread", "unread")
    assert why in result.reason


# --- passes ----------------------------------------------------------------------------------


def passes(tiny: Benchmark, scripted: Any) -> tuple[tuple[CompiledCard, ...], list[Readings]]:
    contexts = [("ann_q1_abs", CONTEXT), ("ann_q1_abs", "Nothing."), ("bob_q1_abs", CONTEXT)]
    cards = compiled_cards(tiny, contexts, COMPILED)

    def reply_first(ask: Any) -> str:
        if "Nothing." in ask.memory:
            return '{"outcome": "none"}'
        if "bob" in ask.question:
            return '{"outcome": "unresolved", "reason": "=who?"}'
        return '{"outcome": "supports", "passages": ["-x", "Ann drinks tea"]}'

    def reply_second(ask: Any) -> str:
        quote = "Ann drinks tea" if "ann" in ask.question else "Bob drinks tea"
        values = {"outcome": "supports", "passages": [quote]}
        return '{"outcome": "none"}' if "Nothing." in ask.memory else json.dumps(values)

    return cards, [
        read_cards(cards, COMPILED, scripted(say), name=name)
        for name, say in (("A", reply_first), ("B", reply_second))
    ]


def test_outcomes_are_counted_and_unresolved_ones_kept_apart(
    tiny: Benchmark, scripted: Any
) -> None:
    _, (first, second) = passes(tiny, scripted)
    assert first.counts == {
        "supports": 1,
        "jointly": 0,
        "none": 1,
        "unresolved": 1,
        "unverified": 0,
        "unread": 0,
    }
    assert (second.counts["supports"], second.counts["unverified"]) == (1, 1)
    digest = hashlib.sha256(CONTEXT.encode()).hexdigest()
    assert second.compiled()["bob_q1_abs", digest].standing == "unverified"
    rows = reading_rows(tiny, [first, second], seed=1, resamples=100)
    values = {(row.arm, row.quantity): row.estimate for row in rows}
    assert values["compiled:A", "count.unverified_passages"] == 1
    assert values["compiled:B", "count.unverified_passages"] == 1
    assert values["compiled:A~B", "agreement"] == pytest.approx(2 / 3)
    assert values["compiled:A~B", "count.unresolved~unverified"] == 1
    assert {row.experiment for row in rows} == {"support"}
    assert str(list(pass_statements([first, second], rows))[-1]).startswith(
        "A and B agree on 2 of 3 contexts (0.667"
    )


def test_compiled_readings_go_through_a_sheet_and_json(
    tiny: Benchmark, scripted: Any, tmp_path: Path
) -> None:
    cards, (item, _) = passes(tiny, scripted)
    path = tmp_path / "c.csv"
    path.write_bytes(write_sheet(cards, COMPILED, readings=item))
    assert read_sheet(path, cards, COMPILED, name="A").cards == item.cards
    assert readings_from_json(json.loads(json.dumps(readings_to_json(item)))) == item
    item.check(cards, COMPILED)
    empty = write_sheet(cards, COMPILED)
    head = next(csv.reader(io.StringIO(empty.decode("utf-8-sig"))))
    assert head == [
        *("card", "outcome", "passage 1", "passage 2", "passage 3", "reason"),
        *("text", "options", "gold", "context"),
    ]


def test_a_sheet_with_more_passages_than_columns_were_written(
    tiny: Benchmark, tmp_path: Path
) -> None:
    item = card(tiny)
    path = tmp_path / "c.csv"
    path.write_text(
        f"passage 10,card,passage 2,outcome,passage 1\nBob does,{item.id},with milk,jointly,Topic\n"
    )
    entry = read_sheet(path, [item], COMPILED, name="A").cards[item.id]
    assert isinstance(entry, CompiledReading)
    assert [passage.text for passage in entry.passages] == ["Topic", "with milk", "Bob does"]
    (tmp_path / "wide.csv").write_bytes(
        write_sheet(
            [item],
            COMPILED,
            readings=Readings(
                "A",
                "compiled",
                "compiled",
                COMPILED.digest,
                "x",
                "0" * 64,
                {
                    item.id: CompiledReading(
                        item.question,
                        item.context_sha256,
                        "jointly",
                        (*entry.passages, Passage("tea", True)),
                        "why",
                    )
                },
            ),
        )
    )
    repetition = read_sheet(tmp_path / "wide.csv", [item], COMPILED, name="A").cards[item.id]
    assert isinstance(repetition, CompiledReading)
    assert (len(repetition.passages), repetition.reason) == (4, "why")


@pytest.mark.parametrize(
    ("row", "message", "field"),
    [
        ("supports,,", "row 2: 'supports' needs 1 quoted passage or more", "passage 1"),
        ("jointly,tea,", "row 2: 'jointly' needs 2 quoted passages or more", "passage 1"),
        ("none,tea,", "row 2: 'none' quotes no passage, but there is one", "passage 1"),
        ("suports,tea,", "no outcome 'suports'. Did you mean 'supports'?", "outcome"),
        (",,", "row 2: there is no outcome; expected one of supports", "outcome"),
    ],
)
def test_a_bad_sheet_is_refused(
    tiny: Benchmark, tmp_path: Path, row: str, message: str, field: str
) -> None:
    item = card(tiny)
    path = tmp_path / "c.csv"
    path.write_text(f"card,outcome,passage 1,passage 2\n{item.id},{row}\n")
    with pytest.raises(InputError) as refused:
        read_sheet(path, [item], COMPILED, name="A")
    assert message in refused.value.problem
    assert (refused.value.line, refused.value.field) == (2, field)


def test_readings_of_another_context_are_refused(tiny: Benchmark) -> None:
    item = card(tiny)
    text = read(tiny, outcome="supports", passages=["Ann drinks tea"])
    moved = dataclasses.replace(text, context_sha256="0" * 64)
    claimed = dataclasses.replace(text, passages=(Passage("Ann drinks coffee", True),))
    for reading in (moved, claimed):
        result = Readings(
            "A", "compiled", "compiled", COMPILED.digest, "x", "0" * 64, {item.id: reading}
        )
        with pytest.raises(InputError, match="was read on another context"):
            result.check([item], COMPILED)


# --- from a run ------------------------------------------------------------------------------


def test_contexts_come_from_a_finished_run(tiny: Benchmark, tmp_path: Path) -> None:
    run = tmp_path / "run"
    routeprism.audit(tiny, "recent:k=2", "raw", run=run, resamples=100)
    routes = routes_of(run)
    assert set(routes) == {
        RouteName(policy, "all", schedule)
        for policy in ("recent:k=2", "raw")
        for schedule in ("forward", "replay")
    }
    questions = [question.id for case in tiny.cases for question in case.questions]
    contexts = list(stored_contexts(run, routes, questions))
    assert len(contexts) == 4 * len(questions)
    cards = compiled_cards(tiny, contexts, COMPILED)
    # raw shows the same on both routes, recent does not: three contexts for each question.
    assert len(cards) == 3 * len(questions)
    with StoredRun(run) as stored:
        digests = {
            stored.exposure(*route, id).context_sha256 for route in routes for id in questions
        }
    assert {item.context_sha256 for item in cards} == digests


def test_a_directory_without_a_finished_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="contains no run"):
        routes_of(tmp_path)


@pytest.mark.slow
def test_the_command_reads_the_contexts_of_a_run(
    tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch, command: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"seed": 1, "resamples": 100}
    routeprism.audit("sample", "focal", "raw", run="run", resamples=100)
    command(
        "support",
        "sample",
        compiled=Path("run"),
        policies=["focal"],
        export=Path("c.csv"),
        **settings,
    )
    text = capsys.readouterr().out
    with Path("c.csv").open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert f"{len(rows)} cards are in c.csv" in text
    lines = ["card,outcome", *(f"{row['card']},none" for row in rows)]
    Path("filled.csv").write_text("\n".join(lines))
    command(
        "support",
        "sample",
        compiled=Path("run"),
        policies=["focal"],
        passes=["people=filled.csv"],
        json=True,
        **settings,
    )
    document = json.loads(capsys.readouterr().out)
    assert document["passes"]["people"]["none"] == len(rows)
    assert "labels" not in document
    with pytest.raises(SpecError, match=r"has no policy 'focl'\. Did you mean 'focal'"):
        command("support", "sample", compiled=Path("run"), policies=["focl"], **settings)
    with pytest.raises(SpecError, match="set compiled as well"):
        command("support", "sample", policies=["focal"], **settings)


def test_support_cards_are_of_another_kind(tiny: Benchmark) -> None:
    assert not any(isinstance(item, CompiledCard) for item in cards_for(tiny, SUPPORT))
