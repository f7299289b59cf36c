"""Recorded answers: found by prompt or by route, and files that cannot be used."""

from __future__ import annotations

import gzip
import hashlib
import json
import pickle
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from routeprism.errors import InputError, ModelError
from routeprism.models import Ask, Model
from routeprism.models.recorded import Inspection, Recorded

PROMPT = "Which one?\na) this\nb) that"
SHA = hashlib.sha256(PROMPT.encode()).hexdigest()
SECOND = "0" * 64


def make_ask(draw: int = 0, text: str = PROMPT) -> Ask:
    return Ask(text, "", "Which one?", ("this", "that"), draw)


def placed(question: str, policy: str, schedule: str, *, turn: int = 0, **more: str) -> Ask:
    place = {"question": question, "policy": policy, "schedule": schedule, **more}
    return replace(make_ask(), place=tuple(place.items()), turn=turn)


def write(directory: Path, content: str | bytes, name: str = "answers.csv") -> str:
    path = directory / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def test_answers_are_found_by_the_hash_of_the_prompt_and_the_draw(tmp_path: Path) -> None:
    file = write(
        tmp_path, f"prompt_sha256,draw,answer\n{SHA},0,a\n{SHA},1,(b) that\n{SECOND},0,c\n"
    )
    model = Recorded(file)
    assert isinstance(model, Model)
    assert (model.answer(make_ask(0)).raw, model.answer(make_ask(1)).raw) == ("a", "(b) that")
    assert (model.by_prompt, model.by_route) == (True, False)
    assert model.embedded is False
    assert model.name == f"recorded:{file}"


def test_a_draw_that_the_collector_moved_for_its_batch_is_the_same_draw(tmp_path: Path) -> None:
    model = Recorded(write(tmp_path, f"prompt_sha256,draw,answer\n{SHA},1,a\n"))
    assert model.answer(make_ask((5 << 20) + 1)).raw == "a"


def test_a_prompt_is_found_whatever_else_its_row_says(tmp_path: Path) -> None:
    file = write(tmp_path, f"prompt_sha256,filler,design,draw,answer\n{SHA},A,single,0,a\n")
    assert Recorded(file).answer(make_ask()).raw == "a"
    with pytest.raises(InputError, match="line 3, field 'prompt_sha256': line 2 already answers"):
        Recorded(write(tmp_path, f"prompt_sha256,filler,draw,answer\n{SHA},A,0,a\n{SHA},B,0,b\n"))


def test_answers_are_found_by_question_and_route(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "question,policy,route,condition,draw,answer,by\n"
        "q1,focal,forward,,0,a,me\nq1,focal,reverse,,0,b,me\nq1,focal,reverse,restored,0,c,me\n",
    )
    model = Recorded(file)
    assert model.answer(placed("q1", "focal", "forward")).raw == "a"
    assert model.answer(placed("q1", "focal", "reverse")).raw == "b"
    assert model.answer(placed("q1", "focal", "reverse", condition="restored")).raw == "c"
    assert (model.by_prompt, model.by_route) == (False, True)


def test_json_lines_say_the_same(tmp_path: Path) -> None:
    rows = [
        {"prompt_sha256": SHA.upper(), "draw": 0, "answer": "b, of\ncourse", "latency": 0.2},
        {"question": "q", "policy": "raw", "schedule": "forward", "draw": "3", "answer": ""},
    ]
    text = "\r\n".join(json.dumps(row) for row in rows)
    model = Recorded(write(tmp_path, text, "answers.jsonl"))
    assert model.answer(make_ask()).raw == "b, of\ncourse"
    model = Recorded(write(tmp_path, json.dumps(rows[1]), "route.jsonl"))
    assert model.answer(placed("q", "raw", "forward", turn=3)).raw == ""


def test_a_byte_order_mark_and_gzip_are_no_hindrance(tmp_path: Path) -> None:
    content = f"\ufeffprompt_sha256,draw,answer\r\n{SHA},0,a\r\n\r\n".encode()
    assert Recorded(write(tmp_path, content)).answer(make_ask()).raw == "a"
    packed = write(tmp_path, gzip.compress(content), "answers.csv.gz")
    assert Recorded(packed).answer(make_ask()).raw == "a"


def test_a_missing_answer_is_named(tmp_path: Path) -> None:
    model = Recorded(write(tmp_path, f"prompt_sha256,draw,answer\n{SHA},0,a\n"))
    with pytest.raises(ModelError, match=f"no answer for prompt_sha256={SHA}, draw=2"):
        model.answer(make_ask(2))
    route = "question,policy,schedule,draw,answer\nq,raw,forward,0,a\n"
    with pytest.raises(ModelError, match="question=q, policy=raw, schedule=reverse, draw=0"):
        Recorded(write(tmp_path, route)).answer(placed("q", "raw", "reverse"))


def test_every_batch_has_its_own_answers_and_one_can_be_chosen(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        f"prompt_sha256,draw,answer,batch,model\n{SHA},0,a,,m\n{SHA},0,b,second,m\n",
    )
    both = Recorded(file)
    assert both.answer(make_ask()).raw == "a"
    assert both.answer(replace(make_ask(), batch="second")).raw == "b"
    with pytest.raises(ModelError, match="batch=third, draw=0"):
        both.answer(replace(make_ask(), batch="third"))
    assert Recorded(file, batch="").answer(make_ask()).raw == "a"
    second = Recorded(file, batch="second")
    assert second.answer(make_ask()).raw == "b"
    assert second.name == f"recorded:{file},batch=second"
    with pytest.raises(InputError, match="no answer with model=n; there are: m"):
        Recorded(file, batch="", model="n")


def test_settings_follow_the_content_and_not_the_place(tmp_path: Path) -> None:
    content = f"prompt_sha256,draw,answer\n{SHA},0,a\n"
    item = Recorded(write(tmp_path, content, "one.csv"))
    two = Recorded(write(tmp_path, content, "two.csv"))
    assert item.settings == two.settings
    assert item.settings["sha256"] == hashlib.sha256(content.encode()).hexdigest()
    assert pickle.loads(pickle.dumps(item)).answer(make_ask()).raw == "a"  # noqa: S301


@pytest.mark.parametrize(
    "content",
    [
        f"\ufeffprompt_sha256;draw;answer\r\n{SHA};0;yes, a\r\n",
        f"prompt_sha256\tdraw\tanswer\n{SHA}\t0\tyes, a\n",
        f'Prompt_SHA256, Draw, Answer\n{SHA}, 0, "yes, a"\n',
    ],
)
def test_what_spreadsheets_and_people_write_is_read(tmp_path: Path, content: str) -> None:
    assert Recorded(write(tmp_path, content)).answer(make_ask()).raw == "yes, a"


HEADER = "prompt_sha256,draw,answer\n"


@pytest.mark.parametrize(
    ("content", "place", "problem"),
    [
        ("", "", "there is no answer in it"),
        (HEADER, "", "there is no answer in it"),
        (f"prompt_sha256;draw;answer\n{SHA};0;a;b\n", "line 2", "a text with semicolons needs"),
        (f"prompt_sha256,draw\n{SHA},0\n", "line 1, field 'answer'", "it is missing"),
        (f"prompt_sha256,answer\n{SHA},a\n", "line 1, field 'draw'", "it is missing"),
        ("draw,answer\n0,a\n", "line 1, field 'prompt_sha256'", "it is missing; a row needs"),
        ("question,policy,draw,answer\nq,raw,0,a\n", "line 1, field 'schedule'", "it is missing"),
        ("prompt_sha256,draw,draw,answer\n", "line 1, field 'draw'", "the column is there twice"),
        (f"{HEADER}{SHA},0,yes, b\n", "line 2", "Expected 3 fields"),
        (f"{HEADER}{SHA},0,a\n{SHA},0,b\n", "line 3, field 'prompt_sha256'", "line 2 already"),
        (f'{HEADER}{SHA},0,"a\nb"\n{SHA},0,b\n', "line 4, field", "line 2 already answers"),
        (f"{HEADER}{SHA},first,a\n", "line 2, field 'draw'", "Expected a whole number"),
        (f"{HEADER}{SHA},-1,a\n", "line 2, field 'draw'", "Expected a whole number"),
        (f"{HEADER}abc,0,a\n", "line 2, field 'prompt_sha256'", "Expected 64 hexadecimal digits"),
        (f"{HEADER},0,a\n", "line 2, field 'prompt_sha256'", "Expected a 'prompt_sha256', or"),
        (f'{HEADER}{SHA},0,"a\n', "line 2", "is not valid CSV"),
        (HEADER.encode() + b"\xff\xfe,0,a\n", "line 2", "is not UTF-8 text"),
        (HEADER.encode("utf-16"), "line 1", "is not UTF-8 text"),
        (f'{{"prompt_sha256": "{SHA}", "draw": 0, "answer": "a"}}\n[1]\n', "line 2", "Expected a"),
        (f'{{"prompt_sha256": "{SHA}", "draw": 0, "answer"', "line 1", "is not a JSON object"),
        ('{"draw": 0, "draw": 1, "answer": "a"}', "line 1", "it gives a field twice"),
        (f'{{"prompt_sha256": "{SHA}", "draw": 0}}', "line 1, field 'answer'", "it is missing"),
        (
            f'{{"prompt_sha256": "{SHA}", "draw": 0, "answer": 2}}',
            "line 1, field 'answer'",
            "Expected text but got answer=2",
        ),
        (
            f'{{"prompt_sha256": "{SHA}", "draw": 0.5, "answer": "a"}}',
            "line 1, field 'draw'",
            "Expected a whole number but got draw=0.5",
        ),
        (
            f'{{"prompt_sha256": "{SHA}", "draw": true, "answer": "a"}}',
            "line 1, field 'draw'",
            "Expected a whole number but got draw=True",
        ),
        (
            '{"question": "q", "policy": "p", "schedule": "s", "route": "s", "draw": 0, '
            '"answer": "a"}',
            "line 1, field 'route'",
            "are the same column",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_place(
    tmp_path: Path, content: str | bytes, place: str, problem: str
) -> None:
    file = write(tmp_path, content)
    with pytest.raises(InputError, match=re.escape(problem)) as caught:
        Recorded(file)
    assert str(caught.value).startswith(f"{file}, {place}" if place else f"{file}: ")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: cannot be read: No such file"):
        Recorded(str(tmp_path / "none.csv"))
    with pytest.raises(InputError, match="is not a complete gzip file"):
        Recorded(write(tmp_path, b"plain", "plain.csv.gz"))


CELLS = st.tuples(
    st.sampled_from(["q1", "q2"]),
    st.sampled_from(["forward", "replay"]),
    st.sampled_from(["", "restored"]),
    st.sampled_from(["replay", "half-swap"]),
    st.sampled_from(["single", "bundle"]),
    st.sampled_from(["A", "B"]),
    st.sampled_from(["", "second"]),
    st.integers(0, 1),
)
NAMES = ("question", "schedule", "condition", "pair", "design", "filler", "batch", "draw")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    cells=st.lists(CELLS, unique=True, min_size=1, max_size=6),
    dropped=st.sets(st.sampled_from(["pair", "design", "filler", "batch"])),
)
def test_whatever_columns_lack_an_answer_is_its_own_or_refused(
    tmp_path: Path, cells: list[tuple[str | int, ...]], dropped: set[str]
) -> None:
    """Only comparisons with several routes may share what was said on forward (PROTOCOL §6)."""
    entries = [name for name in NAMES if name not in dropped]
    lines = [",".join(["policy", *entries, "answer"])]
    places = [dict(zip(NAMES, map(str, cell), strict=True)) for cell in cells]
    for number, place in enumerate(places):
        lines.append(",".join(["focal", *(place[name] for name in entries), f"said {number}"]))
    try:
        inspection = Inspection(Recorded(write(tmp_path, "\n".join(lines))))
        values = []
        for place in places:
            named_place = {**place, "policy": "focal"}
            turn, batch = int(named_place.pop("draw")), named_place.pop("batch")
            ask = replace(make_ask(), place=tuple(named_place.items()), turn=turn, batch=batch)
            values.append(inspection.look(ask))
    except InputError as error:
        assert "already answers" in str(error) or "would serve for" in str(error)
        without = [tuple(v for n, v in p.items() if n not in dropped) for p in places]
        assert len(set(without)) < len(places)  # they cannot be told apart
        return
    assert [item and item.answer for item in values] == [f"said {at}" for at in range(len(places))]
