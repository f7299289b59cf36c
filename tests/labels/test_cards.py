"""Cards: what a reader sees, what no reader may see, and the way through a spreadsheet and back."""

from __future__ import annotations

import csv
import dataclasses
import io
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import InputError, SpecError
from routeprism.labels import (
    COMPILED,
    SCREEN,
    SCREEN_GOLD,
    STALE,
    SUPPORT,
    Rubric,
    ScreenCard,
    SupportCard,
    cards_for,
    make_ask,
    read_sheet,
    write_sheet,
)
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark, only_kinds
from routeprism.spreadsheets import CELL, read_table, split_cell, write_table


def fields(kind: type) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def list_shown(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline="")))


# --- what is on a card -----------------------------------------------------------------------


def test_a_screen_card_has_question_options_and_the_complete_pool(tiny: Benchmark) -> None:
    cards = cards_for(tiny, SCREEN)
    assert [card.question for card in cards] == [
        "ann_q0_secretid",
        "ann_q1_abs",
        "bob_q0_secretid",
        "bob_q1_abs",
    ]
    card = cards[0]
    assert isinstance(card, ScreenCard)
    assert fields(ScreenCard) == {"id", "question", "text", "options", "records"}
    assert card.options == ("a) zero", "b) =SUM(A1)", "c) two")
    assert [record.number for record in card.records] == [1, 2, 3]
    assert [record.id for record in card.records] == [f"answer_ann_{at}" for at in range(3)]
    assert [record.date for record in card.records] == ["2024-01-01", "2024-02-01", "2024-03-01"]


def test_a_support_card_adds_the_right_answer_and_nothing_else(tiny: Benchmark) -> None:
    blind, open_ = cards_for(tiny, SCREEN), cards_for(tiny, SUPPORT)
    assert fields(SupportCard) - fields(ScreenCard) == {"gold"}
    assert [card.id for card in blind] == [card.id for card in open_]
    golds = [card.gold for card in open_ if isinstance(card, SupportCard)]
    assert golds == ["c) two", "tea with\nmilk"] * 2


@pytest.mark.parametrize("rubric", [SCREEN, SCREEN_GOLD, SUPPORT])
def test_neither_prompt_nor_sheet_shows_ids_kinds_or_labels(
    tiny: Benchmark, rubric: Rubric
) -> None:
    cards = cards_for(tiny, rubric)
    sheet = write_sheet(cards, rubric).decode()
    for text in (*(make_ask(card, rubric).text for card in cards), sheet):
        for secret in ("secretid", "_abs", "answer_", "fact-recall", "secretdetail"):
            assert secret not in text


def test_a_screen_card_never_shows_the_gold_answer(tiny: Benchmark) -> None:
    cards = cards_for(tiny, SCREEN)
    text = write_sheet(cards, SCREEN).decode() + "".join(make_ask(c, SCREEN).text for c in cards)
    assert "tea with" not in text
    assert "gold" not in text.casefold()
    assert "Right answer\n" not in text
    # The same cards whatever the gold answer is: it cannot have leaked.
    moved = dataclasses.replace(
        tiny,
        cases=[
            Case(
                case.pool,
                tuple(
                    dataclasses.replace(q, gold="a" if q.options else "cola")
                    for q in case.questions
                ),
            )
            for case in tiny.cases
        ],
    )
    assert cards_for(moved, SCREEN) == cards
    assert cards_for(moved, SUPPORT) != cards_for(tiny, SUPPORT)


def test_gold_visible_prompts_do_show_it(tiny: Benchmark) -> None:
    for rubric in (SCREEN_GOLD, SUPPORT):
        text = make_ask(cards_for(tiny, rubric)[0], rubric).text
        assert "Right answer\nc) two\n" in text
        assert text.startswith(rubric.text)


def test_a_rubric_that_shows_gold_refuses_a_question_without() -> None:
    case = Case(Pool("u", (Record("r", 0, "Words."),)), (Question("q", "u", "Which?"),))
    benchmark = Benchmark("none", (case,), "0" * 64)
    assert len(cards_for(benchmark, SCREEN)) == 1
    with pytest.raises(InputError, match="question 'q' has no gold answer, which rubric 'support'"):
        cards_for(benchmark, SUPPORT)


def test_a_question_that_is_there_twice_is_refused(tiny: Benchmark) -> None:
    twice = dataclasses.replace(tiny, cases=[*tiny.cases, tiny.cases[0]])
    with pytest.raises(InputError, match="is 'ann_q0_secretid' there twice"):
        cards_for(twice, SCREEN)


def test_rubrics_have_names_digests_and_checks() -> None:
    rubrics = (SCREEN, SCREEN_GOLD, SUPPORT, STALE, COMPILED)
    assert [rubric.name for rubric in rubrics] == [
        "screen",
        "screen-gold",
        "support",
        "stale",
        "compiled",
    ]
    assert len({rubric.digest for rubric in rubrics}) == len(rubrics)
    with pytest.raises(SpecError, match="so it has to show it"):
        Rubric("mine", "support", shows_gold=False, text="Words.")
    with pytest.raises(SpecError, match="Did you mean 'support'"):
        Rubric("mine", "suport", shows_gold=True, text="Words.")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="make its cards by compiled_cards"):
        cards_for(load_benchmark("sample"), COMPILED)


# --- sheets ----------------------------------------------------------------------------------


def test_a_sheet_has_a_byte_order_mark_and_one_row_for_each_card(tiny: Benchmark) -> None:
    content = write_sheet(cards_for(tiny, SCREEN), SCREEN)
    assert content.startswith(b"\xef\xbb\xbfcard,label,reason,text,options,record 1,")
    rows = list_shown(content)
    assert len(rows) == 4
    assert rows[0]["record 2"].startswith(
        '[date 2024-02-01]\n[USER] I, ann, said "words", number 1'
    )
    assert rows[2]["record 2"].startswith("[USER] I, bob")
    assert rows[0]["options"] == "a) zero\nb) =SUM(A1)\nc) two"
    assert rows[0]["label"] == rows[0]["reason"] == ""


def test_a_support_sheet_has_one_row_for_each_card_and_record(tiny: Benchmark) -> None:
    content = write_sheet(cards_for(tiny, SUPPORT), SUPPORT)
    rows = list_shown(content)
    assert list(rows[0]) == [
        *("card", "record", "label", "basis", "confidence"),
        *("text", "options", "gold", "date", "content"),
    ]
    assert [row["record"] for row in rows] == ["1", "2", "3"] * 4
    assert rows[1]["content"] == tiny.cases[0].pool.records[1].text


def test_the_gold_visible_screen_is_one_row_for_each_card_with_gold(tiny: Benchmark) -> None:
    rows = list_shown(write_sheet(cards_for(tiny, SCREEN_GOLD), SCREEN_GOLD))
    assert [row["gold"] for row in rows] == ["c) two", "tea with\nmilk"] * 2


def test_a_text_too_long_for_a_cell_goes_on_in_the_next() -> None:
    text = "=" + "x" * (CELL + 10)
    case = Case(Pool("u", (Record("r", 0, text),)), (Question("q", "u", "Which?"),))
    card = cards_for(Benchmark("long", (case,), "0" * 64), SCREEN)
    (row,) = list_shown(write_sheet(card, SCREEN))
    assert row["record 1"].startswith("'=xxx")
    assert row["record 1"][1:] + row["record 1 (2)"] == text
    assert max(map(len, row.values())) <= 32_767
    assert split_cell("") == [""]
    pieces = split_cell("🍵" * 40_000)
    assert "".join(pieces) == "🍵" * 40_000
    assert max(len(piece.encode("utf-16-le")) // 2 for piece in pieces) <= 32_767


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "'=", "''+", "＝"])
def test_what_a_spreadsheet_would_run_is_guarded(start: str) -> None:
    cell = f"{start}cmd|' /C calc'!A0"
    content = write_table(["card", "label"], [[cell, cell]])
    assert f"'{cell}" in content.decode()
    (row,) = read_table(content, Path("x.csv"), [["card"]])
    assert row.cells == {"card": cell, "label": cell}


_CELLS = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=12
) | st.sampled_from(["=1", "'=1", "''", "-", '"', '";"', "a\r\nb", "a\nb\r", ";", ",", "\t@x"])


@given(st.lists(st.tuples(_CELLS, _CELLS), max_size=5))
def test_every_cell_survives(pairs: list[tuple[str, str]]) -> None:
    content = write_table(["key", "one", "two"], [("k", *pair) for pair in pairs])
    rows = read_table(content, Path("x.csv"), [["key"]])
    assert [(row.cells["one"], row.cells["two"]) for row in rows] == pairs
    assert [row.number for row in rows] == list(range(2, len(pairs) + 2))


def test_the_sample_goes_out_and_comes_back(tmp_path: Path) -> None:
    cards = cards_for(load_benchmark("sample"), SCREEN)
    rows = list_shown(write_sheet(cards, SCREEN))
    labels = ["admissible", "ambiguous", "inadmissible"]
    filled = write_table(
        list(rows[0]),
        [[*(row | {"label": labels[at % 3]}).values()] for at, row in enumerate(rows)],
    )
    path = tmp_path / "filled.csv"
    path.write_bytes(filled)
    result = read_sheet(path, cards, SCREEN, name="A")
    assert list(result.cards) == [card.id for card in cards]
    assert list(result.screened().values()) == [labels[at % 3] for at in range(len(cards))]


@pytest.mark.realdata
def test_the_fact_cards_of_personamem(data: Path) -> None:
    """146 cards, by pool size 18/68/54/6 (Appendix B.2), and 778 source labels (Appendix F.1)."""
    benchmark = only_kinds(load_benchmark("personamem", data), ["fact-recall"])
    cards = cards_for(benchmark, SCREEN)
    sizes = Counter(len(card.records) for card in cards)
    assert dict(sizes) == {4: 18, 5: 68, 6: 54, 7: 6}
    rows = list_shown(write_sheet(cards_for(benchmark, SUPPORT), SUPPORT))
    assert len(rows) == 778
    assert max(len(cell) for row in rows for cell in row.values()) <= 32_767


@pytest.mark.slow
def test_cards_and_sheets_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import hashlib\n"
        "from routeprism.records import load_benchmark\n"
        "from routeprism.labels import *\n"
        "b = load_benchmark('sample')\n"
        "for r in (SCREEN, SUPPORT):\n"
        "    print(hashlib.sha256(write_sheet(cards_for(b, r), r)).hexdigest())\n"
        "c = compiled_cards(b, [(q.id, t) for k in b.cases for q in k.questions for t in 'xy'], "
        "COMPILED)\n"
        "print([card.id for card in c][:5])\n"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(names) == 1
