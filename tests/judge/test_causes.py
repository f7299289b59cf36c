"""Causes in words and numbers, from losses made by hand: 'n1' is lost, and 'n2' displaces it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from routeprism.exhibits import Table
from routeprism.experiments import Conclusion, LossCounts, remedies, verdicts
from routeprism.experiments.causes import Places, describe_causes, experiment, find_causes
from routeprism.judge import CAUSES, NEVER_RIGHT, NEXT_STEPS, Cause, describe_loss, quote_text
from routeprism.policies import as_policy, make_policy
from routeprism.records import Case, Pool, Question, Record
from routeprism.routes import CauseKind, Loss, find_level
from routeprism.runs import Finding, Rows

from .rows import make_cause, make_loss, make_results, make_rows

TEXTS = {"n1": "Flight to Tbilisi", "n2": "Flight to Oslo"}


# One loss as a clause.


def test_every_cause_has_words_and_an_action() -> None:
    assert set(CAUSES) == set(NEXT_STEPS) == set(get_args(CauseKind))
    assert make_cause("full").action == NEXT_STEPS["full"]


@pytest.mark.parametrize(
    "cause",
    sorted(set(get_args(CauseKind)) - {"untested", "state only", "rewritten", "order of blocks"}),
)
def test_the_clause_names_the_lost_record_with_its_text(cause: CauseKind) -> None:
    text = describe_loss(make_loss(cause), TEXTS)
    assert "'n1' (“Flight to Tbilisi”)" in text
    displaced = {"never kept", "refused", "not retrievable", "full", "procedure"}
    assert ("'n2' (“Flight to Oslo”)" in text) is (cause not in displaced)


@pytest.mark.parametrize(
    ("cause", "words", "clause", "action"),
    [
        ("never kept", "does not keep", "does not keep", "`retained`"),
        ("refused", "refuses", "refuses", "`add` refuses"),
        ("not retrievable", "not shown", "does not show", "`expose` finds"),
        ("full", "was full", "had to leave", "enlarge the memory"),
        ("replaced", "most of its content", "most of its content", "instead of replacing"),
        ("overwritten", "overwrote", "'n2' overwrote", "before a record overwrites"),
        ("merged", "merged", "lost its id", "member to keep"),
        ("duplicate", "keeps one of the two", "discarded", "before you discard"),
        ("late", "newer ones", "too late", "arrive late"),
        ("procedure", "handed over", "handed over", "one by one"),
        ("joint", "several", "together", "keep all of them"),
        ("tie", "ranks the same", "both rank the same", "break ties"),
        ("budget", "limit", "limit", "may be shown"),
        ("ranking", "rank higher", "ranks 'n2' higher", "rank by relevance"),
        ("order of blocks", "different order", "different order", "sort the blocks"),
        ("rewritten", "different text", "different text", "with a model"),
        ("state only", "internal state", "internal state", "nothing"),
        ("untested", "not tested", "not tested", "compare what the memory does"),
    ],
)
def test_each_cause_has_words_a_clause_and_an_action_of_its_own(
    cause: CauseKind, words: str, clause: str, action: str
) -> None:
    assert words in CAUSES[cause]
    assert clause in describe_loss(make_loss(cause), {})
    assert action in NEXT_STEPS[cause]


def test_causes_that_nothing_excuses() -> None:
    assert set(NEVER_RIGHT) == {"never kept", "refused", "not retrievable"}


@pytest.mark.parametrize(
    ("more", "phrase"),
    [
        ({"cause": "full", "by": ()}, "was full when 'n1' arrived"),
        ({"cause": "full"}, "'n1' had to leave"),
        (
            {"cause": "overwritten", "is_when_full": True},
            "was full, and 'n2' took the place of 'n1'",
        ),
        ({"cause": "overwritten"}, "'n2' overwrote 'n1'"),
        ({"cause": "merged", "is_when_full": True}, "merged 'n1' with 'n2'"),
        ({"cause": "duplicate", "source_loses": True}, "whichever of the two arrives first"),
        ({"cause": "duplicate"}, "discarded 'n1' because 'n2' had arrived before"),
        ({"cause": "overwritten", "source_loses": True}, "'n2' overwrote 'n1'"),
        ({"cause": "late", "by": ()}, "because other records had arrived"),
    ],
)
def test_the_clause_follows_the_loss(more: Any, phrase: str) -> None:
    assert phrase in describe_loss(make_loss(**more), {})


@pytest.mark.parametrize(
    ("by", "names", "missing"),
    [
        (("n2",), "'n2', an older record, overwrote", "more"),
        (("n2", "n3"), "'n2' and 'n3' overwrote", "older"),
        (("n2", "n3", "n4"), "'n2', 'n3' and 1 more overwrote", "n4"),
        (("n2", "n3", "n4", "n5"), "'n2', 'n3' and 2 more", "n5"),
    ],
)
def test_two_displacers_are_named(by: Sequence[str], names: str, missing: str) -> None:
    text = describe_loss(make_loss(by=tuple(by), relation="older"), {})
    assert names in text
    assert missing not in text


@pytest.mark.parametrize(
    ("relation", "words"), [("older", "an older record"), ("newer", "a newer record")]
)
def test_the_relation_in_time_is_said(relation: Any, words: str) -> None:
    assert words in describe_loss(make_loss(relation=relation), {})


@pytest.mark.parametrize("relation", ["", "same time"])
def test_no_relation_in_time_is_said(relation: Any) -> None:
    assert "a record" not in describe_loss(make_loss(relation=relation), {})
    assert "'n2' overwrote 'n1'" in describe_loss(make_loss(relation=relation), {})


def test_the_test_and_the_reply_follow() -> None:
    text = describe_loss(make_loss("refused", by=(), test="given alone", reply="too long"), {})
    assert "refuses 'n1' (`add` returned “too long”): given alone" in text
    long = describe_loss(make_loss("refused", reply="x" * 81), {})
    assert f"“{'x' * 79}…”" in long
    assert f"“{'x' * 80}”" in describe_loss(make_loss("refused", reply="x" * 80), {})
    # A clause with a colon of its own is followed by a semicolon.
    text = describe_loss(make_loss("duplicate", source_loses=True, test="exchanging"), {})
    assert text.endswith("is kept; exchanging")
    assert describe_loss(make_loss(), {}) == "'n2' overwrote 'n1'"


@pytest.mark.parametrize(
    ("is_order", "schedule", "swapped"),
    [
        (True, "replay", True),
        (False, "replay", False),
        (None, "replay", False),
        (True, "forward", False),  # source order is no opposite
    ],
)
def test_the_opposite_order_is_said_if_it_helps(
    is_order: bool | None, schedule: str, swapped: bool
) -> None:
    text = describe_loss(make_loss(is_order=is_order, schedule=schedule), {})
    assert ("opposite order" in text) is swapped


# A cause with its counts.


def test_a_sentence_counts_what_was_tested() -> None:
    assert make_cause(cases=3).sentence == (
        "Under reversal: 'n2' overwrote 'n1' (tested in 2 of 3 losses)"
    )
    assert make_cause().sentence.endswith("(tested in 2 of 3 losses, 2 more were not tested)")
    assert (
        "1,200 of 3,000 losses, 2,000 more"
        in make_cause(explained=1200, tested=3000, cases=5000).sentence
    )
    cause = make_cause(record_text="Flight to Tbilisi", by_texts=("Flight to Oslo",))
    assert "'n2' (“Flight to Oslo”) overwrote 'n1' (“Flight to Tbilisi”)" in cause.sentence
    display = make_cause("order of blocks", record="", by=(), cases=3)
    assert "compared in 2 of 3 cases" in display.sentence


@pytest.mark.parametrize(
    ("schedules", "begin"),
    [
        (("forward",), "In source order: "),
        (("replay",), "Under reversal: "),
        (("replay", "jitter:w=2"), "Under reversal and ordinary disorder: "),
        (("forward", "replay"), "In source order and under reversal: "),
        (("jitter:w=2", "jitter:w=2,seed=1"), "Under ordinary disorder: "),
    ],
)
def test_a_sentence_names_the_orders(schedules: tuple[str, ...], begin: str) -> None:
    cause = make_cause(schedules=schedules)
    assert cause.sentence.startswith(begin)
    assert cause.is_baseline is (schedules == ("forward",))


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({}, "Likely cause under reversal: not tested (5 of 5 cases were not tested)"),
        (
            {"tested": 2, "price": "3 builds"},
            "not tested (3 of 5 cases were not tested; testing them takes 3 builds)",
        ),
        ({"tested": 4, "price": "1 build"}, "(1 of 5 cases were not tested; testing it takes"),
        (
            {"example": make_loss("untested", test="likely: pushed out by 'n4'")},
            "'n1' was pushed out by 'n4' (5 of 5",
        ),
        (
            {"example": make_loss("untested", test="the text that is shown names no records")},
            ": the text that is shown names no records (5 of 5",
        ),
        (
            {"example": make_loss("untested", test="the test failed: too few")},
            ": the test failed: too few (5 of 5",
        ),
    ],
)
def test_an_untested_cause_is_likely_and_has_a_price(more: Any, sentence: str) -> None:
    cause = make_cause("untested", **{"tested": 0, "explained": 0, **more})
    assert sentence in cause.sentence
    assert cause.sentence.startswith("Likely cause under")


def test_a_cause_is_read_back_from_json() -> None:
    cause = make_cause(by=("n2", "n3"), by_texts=("a", "b"), price="3 builds")
    value = json.loads(json.dumps(cause.to_json()))
    assert value.pop("sentence") == cause.sentence
    assert value.pop("action") == NEXT_STEPS["overwritten"]
    assert value["example"]["by"] == ["n2"]
    assert Cause(**value) == cause


def test_a_text_is_quoted_on_one_line() -> None:
    assert quote_text(" two\n lines ") == "“two lines”"
    assert quote_text(" \n") == ""
    assert quote_text("x" * 81) == f"“{'x' * 79}…”"


# Counting.


def count_losses(*losses: Loss, cases: dict[Any, int] | None = None) -> LossCounts:
    counts = LossCounts.of(losses)
    counts.cases.update(cases or {})
    return counts


def list_counts(causes: Sequence[Cause]) -> list[Any]:
    return [(c.cause, c.schedules, c.explained, c.tested, c.cases) for c in causes]


def test_the_most_frequent_cause_comes_first_and_untested_cases_last() -> None:
    losses = [
        make_loss("full"),
        make_loss("overwritten"),
        make_loss("overwritten", record="n7", schedule="jitter"),
        make_loss("untested", record="n8"),
    ]
    cases = {("memory", "replay", "record"): 3, ("memory", "jitter", "record"): 4}
    causes = find_causes(losses, count_losses(*losses, cases=cases))
    assert list_counts(causes) == [
        ("overwritten", ("replay", "jitter"), 2, 3, 7),
        ("full", ("replay",), 1, 3, 7),
        ("untested", ("replay",), 0, 3, 7),
    ]
    assert [cause.record for cause in causes] == ["n1", "n1", "n8"]
    assert causes[0].example is losses[1]


def test_causes_that_are_as_frequent_come_by_name() -> None:
    losses = [make_loss("overwritten"), make_loss("full")]
    causes = find_causes(losses, count_losses(*losses, cases={("memory", "replay", "record"): 2}))
    assert list_counts(causes) == [
        ("full", ("replay",), 1, 2, 2),
        ("overwritten", ("replay",), 1, 2, 2),
    ]


def test_source_order_and_each_memory_have_their_own_causes() -> None:
    losses = [
        make_loss("never kept", schedule="forward"),
        make_loss("full"),
        make_loss("tie", policy="another"),
    ]
    cases = {
        ("memory", "forward", "record"): 5,
        ("memory", "replay", "record"): 1,
        ("another", "replay", "record"): 1,
    }
    causes = find_causes(losses, count_losses(*losses, cases=cases))
    assert [
        (cause.policy, *counts) for cause, counts in zip(causes, list_counts(causes), strict=True)
    ] == [
        ("memory", "never kept", ("forward",), 1, 1, 5),
        ("memory", "untested", ("forward",), 0, 1, 5),
        ("memory", "full", ("replay",), 1, 1, 1),
        ("another", "tie", ("replay",), 1, 1, 1),
    ]
    # Of cases that are only counted, no example is stored.
    assert (causes[1].record, causes[1].user, causes[1].example.schedule) == ("", "ada", "forward")


def test_an_example_is_of_the_same_memory() -> None:
    losses = [
        make_loss("tie", policy="another", user="ben"),
        make_loss("full", user="cleo"),
        make_loss("full", user="ada", schedule="forward"),
    ]
    cases = {("memory", "replay", "record"): 2, ("memory", "forward", "record"): 2}
    causes = find_causes(
        losses, count_losses(*losses, cases={**cases, ("another", "replay", "record"): 1})
    )
    untested = [c for c in causes if c.cause == "untested"]
    assert [(c.policy, c.schedules, c.user) for c in untested] == [
        ("memory", ("replay",), "cleo"),
        ("memory", ("forward",), "ada"),
    ]


def test_lost_records_come_before_texts_and_texts_before_state() -> None:
    record = make_loss("full")
    text = make_loss("rewritten", record="", by=())
    state = make_loss("state only", record="", by=())
    places = [("memory", "replay", level) for level in ("record", "display", "state")]
    for losses, expected in (
        ([state, text, record], [("full", ("replay",), 1, 1, 1)]),
        ([state, text], [("rewritten", ("replay",), 1, 1, 1)]),
        ([state], [("state only", ("replay",), 1, 1, 1)]),
    ):
        cases = dict.fromkeys(places[3 - len(losses) :], 1)
        causes = find_causes(losses, count_losses(*losses, cases=cases))
        assert list_counts(causes) == expected


# Statements.

PLACES = Places(
    "own data",
    questions={("ada", "q"): "Where does Ada fly?"},
    arrivals=["jitter:w=2"],
)


def test_a_statement_names_the_question_the_action_and_the_commands() -> None:
    (statement,) = describe_causes([make_cause()], PLACES, ("synthetic",))
    assert "User 'ada', question “Where does Ada fly?”." in statement.text
    assert statement.text.endswith(f" To do: {NEXT_STEPS['overwritten']}")
    assert (statement.kind, statement.policy, statement.schedule) == ("causes", "memory", "replay")
    assert statement.flags == ("synthetic",)
    assert statement.next_step == "routeprism remedy 'own data' --policy memory"
    assert statement.confirmation == (
        "routeprism orders 'own data' --policy memory --shrink support"
    )


@pytest.mark.parametrize(
    ("more", "options", "confirmation"),
    [
        ({"schedule": "jitter:w=2"}, {}, "--policy memory --arrival jitter:w=2 --shrink support"),
        ({"schedule": "jitter:w=3"}, {}, "--policy memory --shrink support"),
        ({}, {"is_labelled": False}, "--shrink exposed"),
        ({"schedule": "forward"}, {}, ""),
        ({"record": ""}, {}, ""),
        ({}, {"unnamed": ["memory"]}, ""),
        ({"cause": "untested"}, {}, ""),  # building it again may cost money
    ],
)
def test_the_smallest_reordering_confirms_a_loss(
    more: Any, options: Any, confirmation: str
) -> None:
    loss = make_loss(**more)
    places = Places("own", **{"arrivals": ["jitter:w=2"], **options})
    cause = make_cause(loss.cause, example=loss, explained=int(loss.cause != "untested"))
    (statement,) = describe_causes([cause], places)
    assert statement.confirmation.endswith(confirmation)
    assert bool(statement.confirmation) is bool(confirmation)


@pytest.mark.parametrize(
    ("cause", "unnamed", "step"),
    [
        ("full", [], "routeprism remedy own --policy memory"),
        ("full", ["memory"], "call remedies() of this result"),
        ("never kept", [], "routeprism check-adapter memory"),
        ("refused", [], "routeprism check-adapter memory"),
        ("refused", ["memory"], ""),
        ("not retrievable", [], "routeprism remedy own --policy memory"),
    ],
)
def test_what_to_do_next(cause: Any, unnamed: list[str], step: str) -> None:
    (statement,) = describe_causes([make_cause(cause)], Places("own", unnamed=unnamed))
    assert statement.next_step == step


def test_a_text_that_differs_has_no_next_step_and_no_question() -> None:
    loss = make_loss("rewritten", record="", by=())
    (statement,) = describe_causes([make_cause("rewritten", example=loss)], PLACES)
    assert statement.next_step == ""
    assert "question" not in statement.text.partition("To do")[0]


def test_two_causes_are_stated_for_source_order_and_two_for_the_others() -> None:
    causes = [
        *(make_cause(cause, schedules=("forward",)) for cause in ("full", "late", "tie")),
        *(make_cause(cause) for cause in ("full", "late", "tie")),
        make_cause("budget", example=make_loss(policy="another")),
    ]
    statements = list(describe_causes(causes, PLACES))
    assert [(s.policy, s.schedule) for s in statements] == [
        ("memory", "forward"),
        ("memory", "forward"),
        ("memory", "replay"),
        ("memory", "replay"),
        ("another", "replay"),
    ]


def test_untested_cases_have_no_statement_beside_tested_ones() -> None:
    untested = make_cause("untested", explained=0)
    baseline = make_cause("untested", explained=0, schedules=("forward",))
    statements = list(describe_causes([make_cause(), untested, baseline], PLACES))
    assert [statement.schedule for statement in statements] == ["replay", "forward"]


# What an audit concludes.


class Costly:
    costly = True
    calls_per_add = 2


class Consults:
    """Asks a model through the run, whose calls are not known."""

    name = "consults"
    model = "reader"

    def consulting(self, consult: Any) -> Any:
        return self


class OfOwn:
    """A class of one's own, which no command can name."""


def make_policies() -> dict[str, Any]:
    kinds = (Costly, OfOwn)
    policies: dict[str, Any] = {kind.__name__: as_policy(kind) for kind in kinds}
    aliases = {name: as_policy(OfOwn, name=name) for name in ("lexical", "own:OfOwn")}
    return {**policies, **aliases, "consults": Consults(), "recent": make_policy("recent")}


POLICIES = make_policies()


def conclude(*losses: Loss, cases: Any = None, noisy: Any = (), **baseline: int) -> Conclusion:
    """Conclude from losses of users 'ada' and 'ben', who have two records and one question each."""
    names = dict.fromkeys(loss.policy for loss in losses)
    counts = {
        (loss.policy, loss.schedule, find_level(loss.cause, has_record=bool(loss.record))): 9
        for loss in losses
    }
    benchmark = SimpleNamespace(
        argument="own",
        synthetic=False,
        cases=[
            Case(
                Pool(user, tuple(Record(f"n{at}", at, f"{user} {at}") for at in range(3))),
                (Question("q", user, f"What of {user}?"),),
            )
            for user in ("ada", "ben")
        ],
    )
    outcome: Any = SimpleNamespace(
        plan=SimpleNamespace(
            benchmark=benchmark,
            policies=list(POLICIES.values()),
            labels="given",
            arrivals=[SimpleNamespace(name="jitter:w=2")],
            schedules=[SimpleNamespace(name="replay")],
        ),
        observations=SimpleNamespace(
            losses=count_losses(*losses, cases=counts if cases is None else cases),
            baseline=Counter({(policy, k): n for policy in names for k, n in baseline.items()}),
            totals={"records": 31, "pools": 3},
        ),
        rows=Rows.of(make_rows({"C_within": 0.2}, policy="recent")),
        noisy=frozenset(noisy),
    )
    return experiment.conclude(outcome)


def list_causes(conclusion: Conclusion) -> list[Cause]:
    findings = conclusion.findings.get("causes", ())
    return [Cause(**v) for f in findings if f.name == "causes" for v in f.value]


def test_causes_are_stored_with_texts_and_stated() -> None:
    conclusion = conclude(make_loss(policy="Costly"))
    (cause,) = [cause for cause in list_causes(conclusion) if cause.explained]
    assert (cause.record_text, cause.by_texts) == ("ada 1", ("ada 2",))
    assert (cause.explained, cause.tested, cause.cases) == (1, 1, 9)
    # Of 31 records in 3 pools, a memory is given 10.
    assert cause.price == "about 3 builds × 10 adds each × 2 calls per add"
    (statement,) = conclusion.statements
    assert "question “What of ada?”" in statement.text
    assert {finding.policy for finding in conclusion.findings["causes"]} == {"Costly"}


@pytest.mark.parametrize(
    ("policy", "price", "step"),
    [
        ("consults", "about 3 builds × 10 adds each", "routeprism remedy own --policy consults"),
        ("OfOwn", "", "call remedies() of this result"),
        ("lexical", "", "routeprism remedy own --policy lexical"),  # registered by its name
        ("own:OfOwn", "", "routeprism remedy own --policy own:OfOwn"),
    ],
)
def test_a_memory_has_a_price_and_a_command(policy: str, price: str, step: str) -> None:
    conclusion = conclude(make_loss(policy=policy))
    assert {cause.price for cause in list_causes(conclusion)} == {price}
    assert conclusion.statements[0].next_step == step


def test_an_arrival_model_is_named_in_the_command() -> None:
    (statement,) = conclude(make_loss(policy="consults", schedule="jitter:w=2")).statements
    assert "--arrival jitter:w=2 --shrink support" in statement.confirmation


def test_a_memory_that_differs_by_chance_has_no_causes() -> None:
    assert conclude(make_loss(policy="recent")).findings == {}
    assert conclude(make_loss(policy="OfOwn"), noisy=["OfOwn"]).statements == ()
    assert conclude(make_loss(policy="OfOwn")).statements != ()


def test_orders_come_as_they_were_asked_for() -> None:
    losses = [make_loss(policy="OfOwn", schedule=name) for name in ("replay", "jitter:w=2")]
    (cause,) = [cause for cause in list_causes(conclude(*losses)) if cause.explained]
    assert cause.schedules == ("jitter:w=2", "replay")


ABSENT = make_loss("full", policy="OfOwn", schedule="forward")


@pytest.mark.parametrize(
    ("loss", "baseline", "reported"),
    [
        # A capacity may be the reason for what is rare.
        (ABSENT, {"lacking": 4, "questions": 8}, False),
        (ABSENT, {"lacking": 5, "questions": 8}, True),
        (ABSENT, {"lacking": 1, "questions": 8, "outdated": 1}, True),
        (replace(ABSENT, cause="never kept"), {"lacking": 1, "questions": 8}, True),
        (replace(ABSENT, schedule="replay"), {"lacking": 1, "questions": 8}, True),
    ],
)
def test_what_source_order_lacks_is_reported_if_nothing_excuses_it(
    loss: Loss, baseline: Any, reported: bool
) -> None:
    causes = [c for c in list_causes(conclude(loss, **baseline)) if c.explained]
    assert bool(causes) is reported


def test_two_hundred_losses_of_an_order_are_stored() -> None:
    losses = [make_loss(policy="OfOwn", question=f"q{at}") for at in range(200)]
    rare = make_loss("tie", policy="OfOwn", question="q0")
    other_order = make_loss(policy="OfOwn", schedule="jitter:w=2")
    findings = conclude(*losses, rare, other_order).findings
    stored = [(f.name, f.schedule, f.question, len(f.value)) for f in findings["causes"]]
    assert [row for row in stored if row[0] == "losses"] == [
        ("losses", "jitter:w=2", "q", 1),
        *(("losses", "replay", f"q{at}", 1) for at in range(200)),
    ]
    two = [make_loss(policy="OfOwn"), make_loss(policy="OfOwn", record="n2", by=("n1",))]
    (finding,) = [f for f in conclude(*two).findings["causes"] if f.name == "losses"]
    assert [value["record"] for value in finding.value] == ["n1", "n2"]
    assert (finding.policy, finding.user, finding.question) == ("OfOwn", "ada", "q")


def test_causes_follow_the_verdict_and_come_before_repairs() -> None:
    ranks = [verdicts.experiment.rank, experiment.rank, 0, remedies.experiment.rank]
    assert ranks == sorted(ranks)
    assert (remedies.experiment.rank, remedies.experiment.tab) == (2, "summary")


# The table.


def store_losses(*losses: Loss) -> list[Finding]:
    return [
        Finding(name="losses", policy=loss.policy, schedule=loss.schedule, value=[asdict(loss)])
        for loss in losses
    ]


def tabulate(*losses: Loss, more: Sequence[Finding] = ()) -> list[tuple[str, ...]]:
    rows = [
        row
        for policy in ("memory", "another", "rebuild(memory)")
        for row in make_rows({"V_changed": 0.1}, policy=policy)
    ]
    tables: list[Table] = list(experiment.tables(make_results(rows, *store_losses(*losses), *more)))
    return [tuple(map(str, row)) for table in tables for row in table.rows]


def test_the_table_counts_tested_cases_by_memory_and_cause() -> None:
    rows = tabulate(
        make_loss("tie", policy="another"),
        make_loss("tie", policy="unjudged"),
        make_loss("full"),
        make_loss("overwritten"),
        make_loss("overwritten", schedule="jitter:w=2"),
    )
    assert [(row[0], row[1], row[2], row[4]) for row in rows] == [
        ("memory", CAUSES["overwritten"], "reversal 1, ordinary disorder 1", "2"),
        ("memory", CAUSES["full"], "reversal 1", "1"),
        ("another", CAUSES["tie"], "reversal 1", "1"),
        ("unjudged", CAUSES["tie"], "reversal 1", "1"),
    ]
    assert [row[3] for row in rows[:2]] == [NEXT_STEPS["overwritten"], NEXT_STEPS["full"]]


def test_what_only_looks_different_is_counted_where_nothing_is_lost() -> None:
    differences = [make_loss(kind, record="", by=()) for kind in ("rewritten", "order of blocks")]
    assert [row[1] for row in tabulate(make_loss("full"), *differences)] == [CAUSES["full"]]
    state = make_loss("state only", record="", by=())
    rows = tabulate(state, state, *differences)
    assert [row[1] for row in rows] == [
        CAUSES["rewritten"],
        CAUSES["order of blocks"],
        CAUSES["state only"],
    ]


def test_losses_of_repairs_are_not_counted() -> None:
    repair = Finding(
        name="repair", policy="rebuild(memory)", value={"memory": "memory", "action": "rebuilding"}
    )
    loss = make_loss("full", policy="rebuild(memory)")
    assert tabulate(loss, more=[repair]) == []
    assert len(tabulate(loss)) == 1
