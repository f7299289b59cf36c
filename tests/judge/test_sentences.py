"""What a verdict says: counts and key words, of 40 questions of 10 users under reversal."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from routeprism.judge import (
    ALWAYS_WRONG,
    DEPTHS,
    EXPLAINED,
    INCONCLUSIVE,
    LEVELS,
    PROMISE_FAILED,
    RECOMMENDED_GATES,
    Baseline,
    Promise,
    Verdict,
    choose_command,
    describe_answers,
    describe_doubt,
    describe_floor,
    describe_source,
    describe_unreadable,
    describe_verdict,
    explain_verdict,
    list_explanations,
    recommend_gates,
    state_verdict,
    summarise_verdicts,
    tabulate_memories,
    tabulate_orders,
    tabulate_verdicts,
)
from routeprism.runs import EstimateRow

from .rows import Values, count_evidence, make_cause, make_group, make_row, make_verdict

LABELS = count_evidence(0, 0)
CHANGED: Values = {"V_changed": 0.0, "V_changed_count": 0.0, "C_changed_count": 0.0}
TORN = Promise("torn", 2, 8, "overlap:k=2", "writes a, b")


def describe(verdict: Verdict) -> str:
    return "".join(map(str, describe_verdict(verdict)))


# Which level, and what to do.


def test_all_levels_from_the_mildest_to_the_most_severe() -> None:
    assert LEVELS == (
        "stable",
        "internal only",
        "text only",
        "different records",
        "evidence moves",
        ALWAYS_WRONG,
        INCONCLUSIVE,
        PROMISE_FAILED,
        "evidence lost",
        "answers worse",
    )
    assert [level for level in LEVELS if level in DEPTHS] == list(DEPTHS)


@pytest.mark.parametrize("depth", DEPTHS[:-1])
def test_a_statement_begins_with_the_level(depth: str) -> None:
    verdict = make_verdict(depth, {**LABELS, **CHANGED}, command="routeprism remedy")
    statement = state_verdict(verdict)
    assert statement.text.startswith(f"{depth}. ")
    assert (statement.kind, statement.policy, statement.schedule) == ("verdict", "memory", "")
    assert statement.severity == verdict.severity
    assert statement.next_step == choose_command(verdict)
    assert str(verdict) == str(statement)


def test_a_statement_has_the_flags_of_its_numbers() -> None:
    rows = {"replay": make_group({**LABELS, **CHANGED}, flags="synthetic")}
    assert state_verdict(Verdict("memory", {"replay": "stable"}, rows)).flags == ("synthetic",)


@pytest.mark.parametrize(
    ("labels", "schedules", "gates"),
    [
        (LABELS, ["replay"], ["evidence.lost<=0.02"]),
        (LABELS, ["replay", "overlap:k=2"], ["evidence.lost<=0.02", "anomaly<=0"]),
        ({}, ["overlap:k=2"], ["anomaly<=0"]),
        ({}, ["replay"], ["J>=0.9"]),
    ],
)
def test_the_recommended_gates_have_rows(labels: Values, schedules: Any, gates: list[str]) -> None:
    verdict = make_verdict(dict.fromkeys(schedules, "stable"), dict.fromkeys(schedules, labels))
    assert recommend_gates(verdict) == gates
    assert set(gates) <= {*RECOMMENDED_GATES, "J>=0.9"}


SHOWS: Values = {"context_length.route": 100.0}


@pytest.mark.parametrize(
    ("depth", "values", "more", "run", "command"),
    [
        ("stable", LABELS, {}, "my run", "routeprism check 'my run' -g 'evidence.lost<=0.02'"),
        ("stable", LABELS, {}, "", ""),
        ("stable", LABELS, {"command": "fix"}, "", ""),  # nothing is wrong
        ("text only", LABELS, {"command": "fix"}, "run", "fix"),
        ("evidence lost", LABELS, {"command": "fix"}, "run", "fix"),
        ("evidence lost", LABELS, {"command": "fix", "inconclusive": "few"}, "", "fix"),
        (
            "stable",
            {},
            {"command": "fix", "inconclusive": "n"},
            "",
            "routeprism check-adapter memory",
        ),
        (
            "stable",
            {"context_length.route": 0.0},
            {"command": "fix", "inconclusive": "n"},
            "",
            "routeprism check-adapter memory",
        ),
        ("stable", {}, {"inconclusive": "n"}, "run", ""),  # no command can name the memory
        ("stable", SHOWS, {"command": "fix", "inconclusive": "n"}, "run", ""),
    ],
)
def test_one_command_follows(depth: str, values: Values, more: Any, run: str, command: str) -> None:
    assert choose_command(make_verdict(depth, values, **more), run) == command


def test_a_run_that_is_not_stored_has_no_command_to_check_it() -> None:
    assert choose_command(make_verdict("stable", LABELS)) == ""


# What it is based on.


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("error", "fail"),
        ("lost", "lose a record"),
        ("duplicated", "twice"),
        ("torn", "parts of different records"),
        ("stale", "a value that has changed"),
    ],
)
def test_a_failed_promise_is_counted(name: str, words: str) -> None:
    text = describe(make_verdict({}, promises=(replace(TORN, promise=name),)))
    assert "2 of 8 trials" in text and words in text
    text = describe(make_verdict({}, promises=(replace(TORN, promise=name, of=None),)))
    assert text.startswith("2 trials")


def test_leaks_are_counted_in_routes() -> None:
    leak = replace(TORN, promise="leaked", of=None, witness="a record of ben")
    text = describe(make_verdict({}, promises=(leak, TORN)))
    assert text.startswith("2 routes leaked")
    assert "2 of 8 trials" in text
    assert "trials" not in describe(make_verdict({}, promises=(leak,)))
    assert "a record of ben" in text
    texts = list_texts(make_verdict({}, promises=(leak, TORN)), is_brief=True)
    assert [text for text in texts if text.startswith("Witness")] == ["Witness: writes a, b"]
    assert describe(make_verdict({}, promises=(replace(leak, failed=1),))).startswith("1 route ")


def test_trials_without_an_anomaly_are_counted_over_all_schedules() -> None:
    names = ("overlap:k=2", "overlap:k=3")
    values = {name: {"anomaly": 0.0} for name in names}
    text = describe(make_verdict({}, values))
    assert "80 trials" in text and "serial order" in text
    assert "80 trials" not in describe(make_verdict({}, values, promises=(TORN,)))
    assert "serial order" not in describe(make_verdict("stable", {**LABELS, **CHANGED}))


@pytest.mark.parametrize(
    ("baseline", "more", "words", "missing"),
    [
        ({"updates": 8, "outdated": 3}, {}, ["3 of 8", "outdated"], ["evidence in source"]),
        ({"questions": 8, "lacking": 5}, {}, ["5 of 8", "in source order"], ["no order"]),
        ({"questions": 8, "lacking": 4}, {}, [], ["of 8", "lack"]),
        (
            {"questions": 8, "lacking": 1},
            {"causes": (make_cause("never kept"),)},
            ["1 of 8"],
            ["no order"],
        ),
        ({"questions": 8, "lacking": 0}, {"causes": (make_cause("never kept"),)}, [], ["of 8"]),
        (
            {"questions": 8, "lacking": 6, "never_kept": 2, "never_shown": 3},
            {},
            ["2, no order keeps it and", "3, no order shows it"],
            [],
        ),
        (
            {"questions": 8, "lacking": 6, "never_kept": 6},
            {},
            ["6, no order keeps"],
            ["shows it"],
        ),
    ],
)
def test_the_baseline_is_counted(
    baseline: Any, more: Any, words: list[str], missing: list[str]
) -> None:
    verdict = make_verdict(
        "text only", {**LABELS, **CHANGED}, baseline=Baseline(**baseline), **more
    )
    text = describe(verdict)
    assert all(word in text for word in words), text
    assert not any(word in text for word in missing), text


def test_a_doubt_is_given_and_hides_no_count() -> None:
    text = describe(make_verdict("stable", {**LABELS, **CHANGED}, inconclusive="too few"))
    assert text.endswith("too few")
    assert "No difference" not in text
    # What was seen under chance is no effect of order, but it was seen.
    for counts, words in ((count_evidence(3, 0), "3 of 40"), (count_evidence(0, 2), "2 gain")):
        text = describe(make_verdict("stable", counts, inconclusive="chance"))
        assert words in text and "chance" in text
    text = describe(make_verdict("evidence lost", count_evidence(3, 0), inconclusive="few"))
    assert "few" in text
    assert text.count("3 of 40") == 1


def test_an_incomplete_run_says_so_next_to_its_level() -> None:
    verdict = make_verdict("evidence lost", count_evidence(3), is_incomplete=True)
    assert state_verdict(verdict).text.startswith("evidence lost (incomplete). ")
    assert verdict.label == "evidence lost (incomplete)"
    assert "incomplete" not in repr(make_verdict("evidence lost", count_evidence(3)))
    (table,) = tabulate_orders(verdict)
    assert str(table.rows[0][-1]) == "evidence lost (incomplete)"
    (table,) = tabulate_verdicts([("A", verdict)])
    assert table.rows[0][1] == "evidence lost (incomplete)"


@pytest.mark.parametrize(
    ("depth", "counts", "words"),
    [
        ("evidence lost", count_evidence(3, 0), ["Under reversal", "3 of 40", "none gains any"]),
        ("evidence moves", count_evidence(1, 9), ["1 of 40", "9 gain", "source order"]),
        ("evidence lost", count_evidence(3.4, 1.25), ["3.4 of 40", "1.2 gain"]),
    ],
)
def test_lost_and_gained_evidence_are_counted(depth: str, counts: Values, words: Any) -> None:
    text = describe(make_verdict(depth, counts))
    assert all(word in text for word in words), text
    assert "as well" not in text


@pytest.mark.parametrize(
    ("depth", "words"), [("evidence lost", "is lost"), ("evidence moves", "moves")]
)
def test_orders_of_the_same_depth_are_named(depth: str, words: str) -> None:
    schedules = ("replay", "jitter:w=2", "late-batch:k=3")
    depths = {**dict.fromkeys(schedules, depth), "streams": "text only"}
    values = {
        name: count_evidence(number, 0) for name, number in zip(schedules, (2, 5, 1), strict=True)
    }
    text = describe(make_verdict(depths, {**values, "streams": LABELS}))
    assert text.startswith("Under ordinary disorder, 5 of 40")
    assert words in text
    assert text.endswith("under reversal and late batch, k 3 as well")
    assert "streams" not in text


def test_different_records_are_counted() -> None:
    changed: Values = {"V_changed_count": 4.0, "C_changed_count": 9.0}
    text = describe(make_verdict("different records", {**LABELS, **changed}))
    assert "4 of 40" in text and "no question loses evidence" in text and "label" not in text
    text = describe(make_verdict("different records", changed))
    assert "4 of 40" in text and "label the evidence" in text and "no question" not in text
    assert "and to" not in text
    text = describe(make_verdict("different records", {**LABELS, "V_changed_count": 0.0}))
    assert "kept under reversal" in text and "questions see the same" in text
    values = {"replay": changed, "jitter:w=2": {"V_changed_count": 1.0}}
    text = describe(make_verdict(dict.fromkeys(values, "different records"), values))
    assert "4 of 40" in text and "under ordinary disorder" in text


def test_different_texts_are_counted() -> None:
    text = describe(make_verdict("text only", {**LABELS, "C_changed_count": 9.0}))
    assert "The same records" in text and "9 of 40" in text
    assert "and to" not in text
    changes = {"replay": {"C_changed_count": 2.0}, "jitter:w=2": {"C_changed_count": 9.0}}
    text = describe(make_verdict(dict.fromkeys(changes, "text only"), changes))
    assert "9 of 40 questions under ordinary disorder" in text and "under reversal" in text


UNITS: dict[str, Any] = {"units": 59, "unit": "user"}


def make_clear(depths: Any = "stable", **columns: Any) -> Verdict:
    depths = {"replay": depths} if isinstance(depths, str) else depths
    rows = {name: make_group({**LABELS, **CHANGED}, schedule=name, **columns) for name in depths}
    return Verdict("memory", depths, rows)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"units": 59, "unit": "user"}, ["0 of 40", "at most 5 of 100 such users", "59 users"]),
        # 1 - 0.05 ** (1 / 10) = 0.2589, rounded up
        ({"units": 10, "unit": "dialogue"}, ["at most 25.9 of 100 such dialogues"]),
        ({"units": 2}, ["at most 77.7 of 100"]),  # 1 - sqrt(0.05) = 0.7764
        ({"units": 1}, ["one user", "nothing is known"]),
        ({"units": None}, ["nothing is known"]),
    ],
)
def test_an_all_clear_says_what_it_does_not_exclude(columns: Any, words: list[str]) -> None:
    text = describe(make_clear(**columns))
    assert text.startswith("No difference: ")
    assert all(word in text for word in words), text
    assert ("at most" in text) is not ("nothing is known" in text)


def test_an_all_clear_names_what_was_compared() -> None:
    assert "lose evidence" in describe(make_clear())
    unlabelled = Verdict("memory", {"replay": "stable"}, {"replay": make_group(CHANGED)})
    assert "are shown different records" in describe(unlabelled)
    assert describe(make_verdict("stable")) == "Every order keeps the same records"
    text = describe(make_clear("internal only"))
    assert text.startswith("No difference") and "internal state differs under reversal" in text
    assert "internal" not in describe(make_clear())
    verdict = make_clear()
    assert "overlapping" not in describe(verdict)
    rows = {**verdict.rows, "overlap:k=2": make_group({"V_changed": 0.0})}
    assert "without overlapping writes" in describe(replace(verdict, rows=rows))


ACCURACY: Values = {
    "accuracy.forward": (0.75, 0.7, 0.8),
    "accuracy.route": (0.5, 0.4, 0.6),
    "Delta_rep": (-0.25, -0.3, -0.1),
}


def make_worse(values: Values = LABELS, **more: Any) -> Verdict:
    answers = {"replay": make_group(ACCURACY, model="reader", queries=16)}
    return make_verdict("answers worse", values, answers=answers, **more)


def test_worse_answers_are_stated_with_both_accuracies_and_the_evidence() -> None:
    text = describe(make_worse(count_evidence(3, 0)))
    assert "Answers get worse under reversal" in text
    assert "reader 0.750 [0.700, 0.800] in source order, then 0.500" in text
    assert "16 questions" in text and "3 of 40" in text
    assert "lose evidence" not in describe(make_worse({"V_changed": 0.0}))


# Source order and answers.


def test_source_order_is_described_with_counts() -> None:
    values = {"kept.forward": 0.5, "context_length.forward": 250.0}
    baseline = Baseline(records=10, kept=5, questions=8, lacking=3)
    statement = describe_source(make_verdict("stable", values, baseline=baseline))
    text = statement.text
    assert text.startswith("In source order: ")
    assert "5 of 10 records kept" in text
    assert "5 of 8 questions" in text
    assert "1,000 characters" in text  # four for each
    assert (statement.kind, statement.policy) == ("source order", "memory")


def test_source_order_is_described_as_far_as_it_is_known() -> None:
    text = describe_source(make_verdict("stable", {"kept.forward": 0.5})).text
    assert "0.50 of the records kept" in text
    assert "questions" not in text and "characters" not in text
    assert "records" not in describe_source(make_verdict("stable", {"kept.forward": None})).text
    baseline = Baseline(records=10, kept=5)
    assert "records" not in describe_source(make_verdict("stable", baseline=baseline)).text


def explain(change: Any, adjusted: float | None = None, **columns: Any) -> str:
    values = {**ACCURACY, "Delta_rep": change}
    if adjusted is not None:
        values["p_holm.Delta_rep"] = adjusted
    group = make_group(values, **{"model": "reader", "queries": 16, **columns})
    (statement,) = describe_answers(make_verdict("stable", answers={"replay": group}))
    assert (statement.kind, statement.schedule) == ("accuracy", "replay")
    return statement.text


@pytest.mark.parametrize(
    ("change", "adjusted", "columns", "words"),
    [
        ((-0.25, -0.3, -0.1), None, {}, "accuracy falls"),
        ((0.25, 0.1, 0.3), None, {}, "accuracy rises"),
        ((0.01, -0.05, 0.05), None, {}, "small (within 0.05)"),
        ((0.02, -0.05, 0.06), None, {}, "no change of accuracy is shown"),
        ((-0.25, -0.3, -0.1), 0.05, {}, "adjustment for all claims"),
        # Signs of five differences have 32 arrangements: the least p is 2 / 32 = 0.0625.
        ((-0.25, -0.3, -0.1), 0.2, {"units": 5}, "5 users are too few"),
        ((-0.25, -0.3, -0.1), 0.2, {"units": 6}, "adjustment"),  # 2 / 64 = 0.03125
        ((-0.25, -0.3, -0.1), 0.2, {"units": None}, "adjustment"),
        ((-0.25, -0.3, -0.1), None, {"flags": "floor"}, "no answer is correct"),
    ],
)
def test_a_change_of_accuracy_is_put_into_words(
    change: Any, adjusted: float | None, columns: Any, words: str
) -> None:
    text = explain(change, adjusted, **columns)
    assert words in text
    assert "reader: 0.750" in text and "0.500 [0.400, 0.600] under reversal" in text
    assert "16 questions" in text


def test_doubt_is_raised_where_an_interval_excludes_zero() -> None:
    assert describe_doubt(make_row("Delta_rep", (0.1, -0.1, 0.3))) == ""
    assert describe_doubt(make_row("Delta_rep", (0.2, 0.1, 0.3)))


def test_a_floor_names_the_judge_if_there_is_one() -> None:
    assert "the model is at floor" in describe_floor(make_row("accuracy.route", 0.0))
    text = describe_floor(make_row("accuracy.route", 0.0, judge="exact"))
    assert "the model or the judge exact" in text


@pytest.mark.parametrize(
    ("forward", "route", "words"),
    [
        (16, 16, "none of the 32 answers could"),
        (16, 15, "none of the 16 answers in source order could"),
        (15, 16, "none of the 16 answers under reversal could"),
        (15, 15, ""),
    ],
)
def test_answers_that_cannot_be_read(forward: int, route: int, words: str) -> None:
    values = {"count.no_answer.forward": forward, "count.no_answer.route": route}
    group = make_group(values, queries=16, draws=1)
    text = describe_unreadable(group.get, "under reversal")
    assert words in text and bool(text) is bool(words)
    group |= make_group(ACCURACY, model="reader")
    (statement,) = describe_answers(make_verdict("stable", answers={"replay": group}))
    assert statement.text.startswith("reader: none") is bool(words)


def test_nothing_unreadable_was_asked() -> None:
    group = make_group({"count.no_answer.route": 0}, queries=0, draws=1)
    assert describe_unreadable(group.get, "under reversal") == ""


@pytest.mark.parametrize("missing", ["accuracy.forward", "accuracy.route", "Delta_rep"])
def test_answers_of_one_order_are_not_described(missing: str) -> None:
    values = {name: value for name, value in ACCURACY.items() if name != missing}
    answers = {"replay": make_group(values), "jitter": make_group(ACCURACY, schedule="jitter")}
    (statement,) = describe_answers(make_verdict("stable", answers=answers))
    assert statement.schedule == "jitter"


def test_flags_of_answers_are_their_own() -> None:
    rows = {"replay": make_group({**LABELS, **CHANGED}, flags="synthetic")}
    answers = {"replay": make_group(ACCURACY, flags="scripted")}
    verdict = Verdict("memory", {"replay": "stable"}, rows, answers)
    (statement,) = describe_answers(verdict)
    assert statement.flags == ("scripted",)


# All of it.


def list_texts(verdict: Verdict, **options: Any) -> list[str]:
    return ["".join(map(str, parts)) for parts in explain_verdict(verdict, **options)]


def test_an_explanation_goes_from_the_most_important_to_source_order() -> None:
    verdict = make_verdict(
        "evidence lost", count_evidence(3), promises=(TORN,), causes=(make_cause(),)
    )
    texts = list_texts(verdict)
    assert texts[0] == describe(verdict)
    assert [text.partition(":")[0] for text in texts[1:]] == ["Witness", "Cause", "In source order"]
    assert texts[1] == "Witness: writes a, b"
    cause = verdict.causes[0]
    assert cause.sentence in texts[2] and texts[2].endswith(f"To do: {cause.action}")
    assert list_texts(verdict, is_brief=True) == texts[:3]
    assert list_explanations(verdict) == texts[1:3]


def test_a_repair_takes_the_place_of_what_to_do() -> None:
    texts = list_texts(
        make_verdict("stable", causes=(make_cause(),), advice="use it"), is_brief=True
    )
    assert texts[-1] == "Repair: use it"
    assert "To do" not in texts[1]


def test_worse_answers_are_not_described_twice() -> None:
    assert not any(text.startswith("Accuracy") for text in list_texts(make_worse()))
    answers = {"replay": make_group(ACCURACY, model="reader")}
    verdict = make_verdict("text only", {**LABELS, **CHANGED}, answers=answers)
    assert [t for t in list_texts(verdict) if t.startswith("Accuracy")]
    assert not [t for t in list_texts(verdict, is_brief=True) if t.startswith("Accuracy")]
    more = {**make_worse().answers, "jitter": make_group(ACCURACY, schedule="jitter")}
    verdict = replace(make_worse(), answers=more)
    assert sum(text.startswith("Accuracy") for text in list_texts(verdict)) == 1
    assert set(EXPLAINED) == {"verdict", "source order", "accuracy", "causes"}


# Several memories.


def name_verdict(policy: str, *arguments: Any, **more: Any) -> Verdict:
    return replace(make_verdict(*arguments, **more), policy=policy)


LOSES = name_verdict("a", "evidence lost", count_evidence(3))
CLEAR = make_clear()


@pytest.mark.parametrize(
    ("verdicts", "words", "missing"),
    [
        ([], [], ["a"]),
        ([LOSES], ["This memory loses evidence under reversal."], []),
        ([LOSES, CLEAR], ["1 of 2 memories loses evidence under reversal"], []),
        ([LOSES, LOSES], ["Both memories lose evidence"], []),
        ([LOSES] * 3, ["All 3 memories lose evidence"], []),
        ([LOSES, CLEAR, LOSES], ["2 of 3 memories lose"], []),
        ([CLEAR], ["No difference: 0 of 40"], ["memor"]),
        ([CLEAR, CLEAR], ["Both memories show the same to every question. No difference"], []),
        ([CLEAR, make_clear("internal only")], ["1 of 2 memories shows the same"], []),
        (
            [make_clear("text only"), replace(LOSES, is_incomplete=True)],
            ["Incomplete: 1 of 2"],
            [],
        ),
        ([replace(CLEAR, is_incomplete=True)], ["Incomplete: No difference"], []),
        (
            [replace(CLEAR, inconclusive="too few")],
            ["This memory allows no conclusion: too few."],
            ["Nothing can be"],
        ),
        (
            [replace(CLEAR, inconclusive="too few")] * 2,
            ["Both memories allow no conclusion."],
            ["too few"],
        ),
        (
            [replace(CLEAR, promises=(TORN,))],
            ["This memory breaks a promise: 2 of 8 trials"],
            [],
        ),
        (
            [replace(CLEAR, baseline=Baseline(updates=4, outdated=3))],
            ["is wrong in every order: 3 of 4"],
            [],
        ),
        ([make_worse()], ["This memory answers worse under reversal."], [": "]),
    ],
)
def test_a_run_in_one_sentence(verdicts: Any, words: list[str], missing: list[str]) -> None:
    text = summarise_verdicts(verdicts)
    assert all(word in text for word in words), text
    assert not any(word in text for word in missing), text


def test_the_orders_of_the_most_severe_level_are_named_once() -> None:
    depths = {"replay": "evidence lost", "jitter:w=2": "text only"}
    more = {"jitter:w=2": "evidence lost", "jitter:w=2,seed=1": "evidence lost"}
    values = {name: count_evidence(1) for name in (*depths, *more)}
    first = make_verdict(depths, {name: values[name] for name in depths})
    second = make_verdict(more, {name: values[name] for name in more})
    assert summarise_verdicts([first]).endswith("under reversal.")
    assert summarise_verdicts([first, second]).endswith("under reversal and ordinary disorder.")


@pytest.mark.parametrize("level", LEVELS)
def test_the_most_severe_level_is_the_headline(level: str) -> None:
    milder = LEVELS[: LEVELS.index(level)]

    def make(name: str) -> Verdict:
        if name == "answers worse":
            return make_worse()
        if name in DEPTHS:
            return make_verdict(name, {**LABELS, **CHANGED})
        more: Any = {
            PROMISE_FAILED: {"promises": (TORN,)},
            INCONCLUSIVE: {"inconclusive": "few"},
            ALWAYS_WRONG: {"baseline": Baseline(updates=4, outdated=1)},
        }[name]
        return replace(make_clear(), **more)

    verdict = make(level)
    assert verdict.level == level
    for name in milder:
        headline = summarise_verdicts([make(name), verdict])
        assert headline == summarise_verdicts([verdict, make(name)])
        assert headline.startswith("1 of 2 memories")
        if level != "internal only":  # whose headline is that of `stable`
            verb = summarise_verdicts([verdict]).removeprefix("This memory ").split(" ")[0]
            assert headline.split(" ")[4] == verb


# Tables.


def read_table(tables: Any) -> list[tuple[str, ...]]:
    (table,) = tables
    return [table.columns, *(tuple(map(str, row)) for row in table.rows)]


def test_memories_are_tabulated_with_lost_and_gained_evidence() -> None:
    baseline = Baseline(questions=8, lacking=3)
    first = name_verdict("a", "evidence moves", count_evidence(1.5, 2), baseline=baseline)
    second = name_verdict("b", {"jitter:w=2": "stable"}, {"jitter:w=2": LABELS})
    assert read_table(tabulate_verdicts([("A", first), ("B", second)])) == [
        ("memory", "level", "evidence shown", "reversal", "ordinary disorder"),
        ("A", "evidence moves", "5 of 8", "−1.5 +2", ""),
        ("B", "stable", "", "", "−0 +0"),
    ]
    (table,) = tabulate_memories([first, second])
    assert [str(row[0]) for row in table.rows] == ["a", "b"]
    assert "evidence" in table.caption and "source order" in table.caption
    assert table.names == 2


def test_memories_without_labels_are_tabulated_with_records() -> None:
    values = {"V_changed": 0.1, "V_changed_count": 4.5, "kept.forward": 0.5}
    verdict = name_verdict("a", "different records", values, baseline=Baseline(records=10, kept=5))
    assert read_table(tabulate_verdicts([("A", verdict)])) == [
        ("memory", "level", "records kept", "reversal"),
        ("A", "different records", "5 of 10", "4.5 of 40"),
    ]
    (table,) = tabulate_verdicts([("A", verdict)])
    assert "different records" in table.caption and "loses" not in table.caption
    # One that has labels is enough.
    assert read_table(tabulate_verdicts([("A", verdict), ("B", CLEAR)]))[0][2] == "evidence shown"
    assert read_table(tabulate_verdicts([("A", verdict), ("B", CLEAR)]))[1][3] == ""


def test_drawn_orders_have_no_columns_of_their_own() -> None:
    depths = {"jitter:w=2": "stable", "jitter:w=2,seed=1": "stable"}
    verdict = make_verdict(depths, dict.fromkeys(depths, LABELS))
    assert read_table(tabulate_verdicts([("A", verdict)]))[0][3:] == ("ordinary disorder",)
    assert [row[0] for row in read_table(tabulate_orders(verdict))[1:]] == ["ordinary disorder"]


@pytest.mark.parametrize(
    ("values", "cell"),
    [
        (ACCURACY, "0.75→0.50 of 16"),
        ({**ACCURACY, "Delta_rep": (-0.25, -0.3, 0.1)}, "0.75≈0.50 of 16"),
        ({**ACCURACY, "accuracy.route": 0.75, "Delta_rep": (0.0, -0.1, 0.1)}, "0.75 of 16"),
        ({**ACCURACY, "Delta_rep": None, "Delta": -0.25}, ""),
        ({"accuracy.forward": 0.75, "Delta_rep": -0.25}, ""),
        ({"accuracy.route": 0.75, "Delta_rep": -0.25}, ""),
        ({"accuracy.route": 0.5, "accuracy.forward": 0.75, "Delta": -0.25}, "0.75≈0.50 of 16"),
        ({"accuracy.route": 0.5, "accuracy.forward": 0.75}, ""),
    ],
)
def test_right_answers_are_tabulated(values: Values, cell: str) -> None:
    answers = {"replay": make_group(values, model="reader", queries=16)}
    verdict = make_verdict("stable", LABELS, answers=answers)
    header, row = read_table(tabulate_verdicts([("A", verdict)]))
    assert (header[-1], row[-1]) == ("right answers", cell)
    (table,) = tabulate_verdicts([("A", verdict), ("B", CLEAR)])
    assert str(table.rows[1][-1]) == ""
    assert "reader" in table.caption


def test_the_first_order_with_answers_is_tabulated() -> None:
    answers = {"replay": make_group({"Delta_rep": 0.1}), "jitter": make_group(ACCURACY)}
    verdict = make_verdict("stable", LABELS, answers=answers)
    assert read_table(tabulate_verdicts([("A", verdict)]))[1][-1] == "0.75→0.50 of 40"


def test_one_memory_is_tabulated_by_its_orders() -> None:
    values = {
        "replay": {**count_evidence(1.5, 2), "V_changed_count": 3.0, "C_changed_count": 4.0},
        "jitter:w=2": {**LABELS, "V_changed_count": 0.0, "C_changed_count": 0.0},
        "overlap:k=2": {"V_changed_count": 5.0},
        "overlap:k=3": {},
    }
    depths = {"replay": "evidence moves", "jitter:w=2": "stable"}
    promises = (TORN, replace(TORN, schedule="overlap:k=4"))
    verdict = make_verdict(depths, values, promises=promises)
    table = read_table(tabulate_memories([verdict]))
    assert table[0] == ("order", "lose evidence", "gain evidence", "records differ", "effect")
    assert table[1][1:] == ("1.5 of 40", "2 of 40", "3 of 40", "evidence moves")
    assert table[2][1:] == ("0 of 40", "0 of 40", "0 of 40", "stable")
    assert table[3][1:] == ("", "", "5 of 40", PROMISE_FAILED)
    assert table[4][1:] == ("", "", "", "promises kept")
    assert tabulate_orders(verdict)[0].title == "memory"


def test_a_text_that_differs_is_tabulated_where_no_record_does() -> None:
    values: Values = {"V_changed_count": 0.0, "C_changed_count": 4.0}
    table = read_table(tabulate_orders(make_verdict("text only", values)))
    assert table[0] == ("order", "records differ", "text differs", "effect")
    assert table[1][1:] == ("0 of 40", "4 of 40", "text only")


def test_a_run_without_memories_has_no_table() -> None:
    assert tabulate_verdicts([]) == []
    assert tabulate_memories([]) == []


def test_the_row_behind_a_number_is_kept() -> None:
    rows: list[EstimateRow] = [
        part.row for part in describe_verdict(LOSES) if not isinstance(part, str)
    ]
    assert [row.quantity for row in rows] == ["evidence.lost_count"]
    moves = make_verdict("evidence moves", count_evidence(1, 9))
    numbers = [part for part in describe_verdict(moves) if not isinstance(part, str)]
    assert [number.row.quantity for number in numbers] == [
        "evidence.lost_count",
        "evidence.gained_count",
    ]
