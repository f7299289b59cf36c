"""The embedded reader: how it scores, draws and answers, and how well it reads."""

from __future__ import annotations

import dataclasses
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from routeprism.errors import SpecError
from routeprism.models import Ask, Model
from routeprism.models.reader import NOTHING, Reader, affect, read_passages, stem, words
from routeprism.policies.interfaces import record_block
from routeprism.prompts import Matched, categorical, match
from routeprism.records import Question, Record, load_benchmark

GREEDY = Reader(temperature=0)

MEMORY = """[session 0]
The old kayak leaks again. I patched it with tar on Sunday. My cousin Ines watched.

[session 1]
Ines opened a bakery beside the station. She sells rye bread, and I love the smell."""
QUESTION = "What does Ines sell at the bakery?"
OPTIONS = ("tickets for the ferry", "rye bread", "second-hand kayaks", "tar")


def ask(
    memory: str = MEMORY,
    question: str = QUESTION,
    options: tuple[str, ...] = OPTIONS,
    draw: int = 0,
    text: str | None = None,
) -> Ask:
    whole = f"{memory}\n\n{question}\n{options}" if text is None else text
    return Ask(whole, memory, question, options, draw)


def context(records: Sequence[Record]) -> str:
    return "\n\n".join(record_block(record).text for record in records)


def test_it_keeps_the_contract_of_a_model() -> None:
    assert isinstance(Reader(), Model)
    assert Reader().embedded is True
    assert Reader().name == "reader"
    assert Reader(temperature=0.5).name == "reader:temperature=0.5"
    assert Reader(temperature=0.5).settings == {"temperature": 0.5, "version": 1}
    assert pickle.loads(pickle.dumps(Reader(temperature=0.5))) == Reader(temperature=0.5)  # noqa: S301


@pytest.mark.parametrize("temperature", [-0.1, float("nan"), float("inf")])
def test_an_impossible_temperature_is_refused(temperature: float) -> None:
    with pytest.raises(SpecError, match="Expected temperature of 0 or more"):
        Reader(temperature=temperature)


def test_the_option_that_a_passage_supports_near_the_question_wins() -> None:
    reply = GREEDY.answer(ask())
    assert reply.raw == "b"
    assert reply.scores is not None
    # "kayak" and "tar" occur, but in a passage that says nothing of a bakery; no ferry occurs.
    assert reply.scores[1] > reply.scores[3] > 0
    assert reply.scores[0] == 0


def test_words_that_all_options_have_decide_nothing() -> None:
    bare = GREEDY.scores(ask(options=("rye", "oats")))
    assert GREEDY.scores(ask(options=("rye bread", "oats bread"))) == bare
    first, second = GREEDY.scores(ask(options=("Ines sells rye bread", "Ines sells rye bread")))
    assert first == second > 0


def test_without_evidence_all_options_score_nothing() -> None:
    assert GREEDY.scores(ask(memory="")) == (0.0, 0.0, 0.0, 0.0)


def test_the_affect_of_the_evidence_tells_a_liking_from_its_denial() -> None:
    options = ("You enjoy pottery classes.", "You don't enjoy pottery classes.")
    question = "I went to a pottery class."
    liked = "I joined a pottery class. I enjoy it so much, it is a delight."
    hated = "I joined a pottery class. I hate it so much, it is a boring chore."
    assert GREEDY.answer(ask(liked, question, options)).raw == "a"
    assert GREEDY.answer(ask(hated, question, options)).raw == "b"


def test_ties_do_not_go_to_the_first_letter() -> None:
    letters = {GREEDY.answer(ask(memory="", text=f"prompt {n}")).raw for n in range(60)}
    assert letters == {"a", "b", "c", "d"}


def test_greedy_answers_do_not_depend_on_the_draw() -> None:
    assert len({GREEDY.answer(ask(memory="", draw=draw)).raw for draw in range(30)}) == 1


def test_draws_disagree_where_evidence_is_weak_and_agree_where_it_is_strong() -> None:
    strong = [Reader().answer(ask(draw=draw)).raw for draw in range(50)]
    weak = [Reader().answer(ask(memory="", draw=draw)).raw for draw in range(50)]
    assert set(strong) == {"b"}
    assert set(weak) == {"a", "b", "c", "d"}


def test_draws_follow_the_softmax_of_the_scores() -> None:
    item = ask(memory="The shop sells rye bread.", options=("rye bread", "rye", "oats"))
    scores = Reader().scores(item)
    temperature = 0.5
    weights = [2.718281828459045 ** (score / temperature) for score in scores]
    draws = 4000
    texts = [
        Reader(temperature=temperature).answer(dataclasses.replace(item, draw=draw)).raw
        for draw in range(draws)
    ]
    for letter, weight in zip("abc", weights, strict=True):
        # Four standard errors of a share of 4,000 draws are at most 0.032.
        assert texts.count(letter) / draws == pytest.approx(weight / sum(weights), abs=0.032)


@pytest.mark.slow
def test_an_answer_depends_on_prompt_and_draw_alone() -> None:
    code = (
        "from routeprism.models import Ask; from routeprism.models.reader import Reader;"
        "print(''.join(Reader(temperature=9.0).answer("
        "Ask('p', 'rye bread', 'what?', ('rye', 'oats', 'tar'), n)).raw for n in range(40)))"
    )
    names = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(names) == 1
    assert set(names.pop().strip()) == {"a", "b", "c"}


def test_free_text_is_the_best_supported_sentence() -> None:
    where = ask(question="Where is the bakery of Ines?", options=())
    assert GREEDY.answer(where).raw == "Ines opened a bakery beside the station."
    assert GREEDY.answer(where).scores is None


def test_free_text_says_where_nothing_is_found() -> None:
    unknown = ask(question="Which violin strings are best?", options=())
    assert Reader().answer(unknown).raw == NOTHING == "The records do not say."
    assert Reader().answer(ask(memory="", options=())).raw == NOTHING


def test_headers_are_no_evidence() -> None:
    assert GREEDY.scores(ask(options=("session", "rye bread")))[0] == 0
    assert all("session" not in text for text in read_passages(MEMORY).texts)


@pytest.mark.parametrize("filler", [" one", " x"])
@pytest.mark.parametrize("count", [1, 2, 3, 400])
def test_padding_around_the_evidence_changes_no_score(filler: str, count: int) -> None:
    padded = f"records begin{filler * count}\n{MEMORY}\nrecords end{filler * count}"
    assert GREEDY.scores(ask(padded)) == GREEDY.scores(ask())
    text = MEMORY.replace("\n\n", f"{filler * count}\n\n")
    assert GREEDY.scores(ask(text)) == GREEDY.scores(ask())


@pytest.mark.parametrize("filler", ["A", "B"])
@pytest.mark.parametrize("control", ["exact", "balanced", "aligned"])
def test_matched_prompts_read_as_their_contexts_do(control: str, filler: str) -> None:
    case = load_benchmark("sample").cases[0]
    question = case.questions[0]
    values = [record_block(record) for record in case.pool.records]
    drafts = [categorical(blocks, question) for blocks in (values, values[:2])]
    matched = match(drafts, control, filler)  # type: ignore[arg-type]
    assert isinstance(matched, Matched)
    for prompt, records in zip(
        matched.prompts, (case.pool.records, case.pool.records[:2]), strict=True
    ):
        bare = ask(context(records), question.text, question.options)
        assert GREEDY.scores(prompt.ask(0)) == GREEDY.scores(bare)


@given(st.text(max_size=300), st.text(max_size=60), st.lists(st.text(max_size=40), max_size=6))
def test_any_text_gets_an_answer(memory: str, question: str, options: list[str]) -> None:
    reply = Reader().answer(Ask("prompt", memory, question, tuple(options), 0))
    if options:
        assert reply.raw in "abcdef"[: len(options)]
        assert reply.scores is not None
        assert all(0 <= score <= 1.5 for score in reply.scores)


@given(st.permutations(range(4)))
def test_the_order_of_the_options_does_not_matter(order: list[int]) -> None:
    plain = GREEDY.scores(ask())
    moved = GREEDY.scores(ask(options=tuple(OPTIONS[index] for index in order)))
    assert moved == pytest.approx([plain[index] for index in order])


@pytest.mark.parametrize(
    ("forms", "root"),
    [
        (("perform", "performs", "performed", "performing"), "perform"),
        (("library", "libraries"), "librari"),
        (("enjoy", "enjoyed", "enjoyable", "enjoyment"), "enjoi"),
        (("plan", "planned", "planning", "planner"), "plan"),
    ],
)
def test_forms_of_a_word_share_a_stem(forms: tuple[str, ...], root: str) -> None:
    assert {stem(form) for form in forms} == {root}


@pytest.mark.parametrize(
    ("message", "value"),
    [
        ("I love it and enjoy it", 2),
        ("I do not really enjoy it", -1),
        ("I never hated it", 1),
        ("no fan of long, slow and winding walks, which I like", 0),
        ("the bus was late", 0),
    ],
)
def test_negation_turns_affect_round_within_its_reach(message: str, value: int) -> None:
    assert affect(words(message)) == value


SEEDS = (101, 202, 303, 404, 505)
"""Of sample benchmarks that were not looked at while the reader was built."""


def sample(seed: int) -> Iterator[tuple[Question, Ask, Ask]]:
    """Give each question with its whole pool, and with the pool minus its supporting records."""
    for case in load_benchmark(f"sample:seed={seed}").cases:
        for question in case.questions:
            support = question.labels["benchmark"]
            left = [record for record in case.pool.records if record.id not in support]
            whole = context(case.pool.records)
            yield (
                question,
                ask(whole, question.text, question.options),
                ask(context(left), question.text, question.options),
            )


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sample_is_answered_with_its_support_and_not_without(seed: int) -> None:
    requests = list(sample(seed))
    with_support = [GREEDY.answer(whole).raw == question.gold for question, whole, _ in requests]
    without = [GREEDY.answer(left).raw == question.gold for question, _, left in requests]
    # Measured over these seeds: 1.00 with support, 0.05 to 0.07 without (chance is 0.25; what is
    # left of a pool supports the wrong options).
    assert sum(with_support) / len(requests) >= 0.85
    assert sum(without) / len(requests) < 0.45


@pytest.fixture(scope="module")
def facts(data: Path) -> list[tuple[Question, Ask, Ask]]:
    """PersonaMem's fact questions with the whole pool, and without the reference session."""
    return [
        (
            question,
            ask(context(case.pool.records), question.text, question.options),
            ask(
                context(
                    [
                        record
                        for record in case.pool.records
                        if record.id not in question.labels["reference-session"]
                    ]
                ),
                question.text,
                question.options,
            ),
        )
        for case in load_benchmark("personamem", data).cases
        for question in case.questions
        if question.kind == "fact-recall"
    ]


@pytest.mark.realdata
def test_personamem_facts_are_read(facts: list[tuple[Question, Ask, Ask]]) -> None:
    assert len(facts) == 146
    whole = sum(GREEDY.answer(request).raw == question.gold for question, request, _ in facts)
    absent = sum(GREEDY.answer(request).raw == question.gold for question, _, request in facts)
    # Measured: 68 and 46 of 146. Chance is 0.25; 0.40 is required with the whole pool.
    assert whole / 146 >= 0.40
    assert absent < whole


@pytest.mark.realdata
def test_personamem_draws_disagree_in_part(facts: list[tuple[Question, Ask, Ask]]) -> None:
    apart = 0
    for _, request, _ in facts:
        item, two, three = (
            Reader().answer(dataclasses.replace(request, draw=draw)).raw for draw in range(3)
        )
        apart += (item != two) + (item != three) + (two != three)
    # Measured: 0.20 of all pairs of draws.
    assert 0.1 <= apart / (3 * 146) <= 0.3
