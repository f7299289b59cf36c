"""Repairs by total outcome: 40 questions, of which ten are about updates, in two orders."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from routeprism.experiments.remedies import Remedies, describe_repair, keep_repairs
from routeprism.judge import (
    Advice,
    Baseline,
    Repair,
    RepairOutcome,
    Verdict,
    choose_repair,
    judge,
    list_effects,
    measure_outcome,
    read_repairs,
    tabulate_repairs,
)
from routeprism.policies import as_policy, make_policy
from routeprism.policies.remedies import Fallback, Hold, Rebuild
from routeprism.runs import EstimateRow, Finding, Rows

from .rows import Values, make_cause, make_results, make_row, make_rows, make_verdict


def show(
    policy: str,
    source: float = 1.0,
    replay: float = 1.0,
    *,
    outdated: tuple[float, float] | None = None,
    more: Values | None = None,
    schedule: str = "replay",
) -> list[EstimateRow]:
    """Make the rows of a memory that shows these shares of the evidence."""
    values = {
        "J": 1.0,
        "evidence.lost": 0.0,
        "recall.exposed.forward": source,
        "recall.exposed.route": replay,
        "context_length.route": 100.0,
        **(more or {}),
    }
    rows = make_rows(values, policy=policy, schedule=schedule)
    if outdated is not None:
        sides = {"stale_only.forward": outdated[0], "stale_only.route": outdated[1]}
        rows += make_rows(sides, policy=policy, schedule=schedule, queries=10)
    return rows


def declare(*names: str, memory: str = "memory", **value: Any) -> list[Finding]:
    """Make the findings that these policies are repairs of a memory."""
    return [
        Finding(
            name="repair",
            policy=name,
            value={"memory": memory, "action": f"using {name}", "only_reorders": False, **value},
        )
        for name in names
    ]


def choose(
    unrepaired: list[EstimateRow], *repaired: list[EstimateRow], verdict: Verdict | None = None
) -> Advice:
    names = [rows[0].policy for rows in repaired]
    rows = [row for rows in (unrepaired, *repaired) for row in rows]
    advice = choose_repair(
        verdict or make_verdict("evidence lost"), make_results(rows, *declare(*names))
    )
    assert advice is not None
    return advice


# What a repair shows.


def measure(rows: list[EstimateRow], repair: Repair | None = None) -> RepairOutcome:
    outcome = measure_outcome(repair or Repair("memory", "memory"), Rows.of(rows))
    assert outcome is not None
    return outcome


def test_an_outcome_has_every_order_and_source_order_first() -> None:
    rows = [
        *show("memory", 0.9, 0.5, outdated=(0.1, 0.2), schedule="jitter"),
        *show("memory", 0.9, 0.4, outdated=(0.1, 0.3)),
    ]
    outcome = measure(rows)
    assert list(outcome.evidence.items()) == [("forward", 0.9), ("jitter", 0.5), ("replay", 0.4)]
    assert outcome.outdated == {"forward": 0.1, "jitter": 0.2, "replay": 0.3}
    assert (outcome.questions, outcome.updates) == (40, 10)
    assert outcome.repair == Repair("memory", "memory", "", None, False)
    # 1 - (0.9 + 0.5 + 0.4) / 3, and (0.1 + 0.2 + 0.3) / 3
    assert outcome.fault == pytest.approx(0.4 + 0.2)


def test_an_outcome_without_labels_has_no_evidence() -> None:
    outcome = measure(make_rows({"J": 1.0, "V_changed": 0.25, "C_changed": 0.5}, queries=7))
    assert (outcome.evidence, outcome.outdated, outcome.questions, outcome.updates) == (
        {},
        {},
        7,
        0,
    )
    assert (outcome.fault, outcome.records, outcome.texts) == (0.0, 0.25, 0.5)


def test_questions_are_those_of_the_traces_if_evidence_has_no_number() -> None:
    rows = [*make_rows({"J": 1.0}, queries=7), make_row("evidence.lost", 0.0, queries=None)]
    assert measure(rows).questions == 7


def test_what_was_not_compared_has_no_outcome() -> None:
    repair = Repair("memory", "memory")
    assert measure_outcome(repair, Rows.of(make_rows({"V_changed": 0.0}))) is None
    assert measure_outcome(repair, Rows.of(show("another"))) is None
    assert measure_outcome(repair, Rows.of([make_row("J", 1.0, arm="writes")])) is None


def test_overlapping_writes_count_by_their_anomalies_alone() -> None:
    rows = [
        *show("memory", 1.0, 0.5),
        *show("memory", 0.0, 0.0, outdated=(1.0, 1.0), schedule="overlap:k=2"),
        *make_rows({"anomaly": 0.25}, schedule="overlap:k=2"),
    ]
    outcome = measure(rows)
    assert outcome.evidence == {"forward": 1.0, "replay": 0.5}
    assert (outcome.outdated, outcome.updates, outcome.anomalies) == ({}, 0, 0.25)
    assert outcome.fault == 0.5  # 1 - 0.75, and 0.25


def test_costs_are_per_record_and_per_memory() -> None:
    """Ten users in each of two orders: 50 + 50 arrivals, 60 + 90 writes."""
    first: Values = {"count.arrivals": 50, "count.writes": 60, "count.delay": 20}
    second: Values = {"count.arrivals": 50, "count.writes": 90, "count.delay": 40}
    calls = ({"count.model_calls": 30}, {"count.consultations": 50})
    rows = [
        *show("memory", more={**first, **calls[0]}),
        *show(
            "memory", more={**second, **calls[1], "context_length.route": 300.0}, schedule="jitter"
        ),
    ]
    outcome = measure(rows)
    assert outcome.writes == pytest.approx(0.5)  # 150 / 100 - 1
    assert outcome.calls == 4  # (3 + 5) / 2
    assert outcome.delay == 3  # (2 + 4) / 2
    assert outcome.length == 800  # 4 characters for each of 200
    assert outcome.cost == (pytest.approx(0.5), 4, 800, 3)


def test_costs_that_are_not_counted() -> None:
    fewer = measure(show("memory", more={"count.arrivals": 50, "count.writes": 40}))
    assert fewer.writes == 0.0
    repair = Repair("memory", "memory", calls=7.0)
    assert measure(show("memory"), repair).calls == 7.0
    assert measure(show("memory")).calls is None
    assert measure(show("memory")).cost == (0.0, 0.0, 400, 0.0)
    both = {"count.model_calls": 30, "count.consultations": 50}
    assert measure(show("memory", more=both)).calls == 3.0
    row = make_row("count.delay", 30, units=None)
    assert measure([*show("memory"), row]).delay == 0.0


# Which one is chosen.


def test_the_repair_with_the_best_total_is_chosen() -> None:
    """The second one shows more under reversal, at the same in source order."""
    advice = choose(
        show("memory", 1.0, 0.5),
        show("first", 1.0, 0.75),
        show("second", 1.0, 0.9),
        show("third", 1.0, 0.8),
    )
    assert advice.spec == "second"
    assert advice.action == "using second"
    assert "shows the evidence of 38 instead of 30 of 40 questions" in advice.reason  # 0.95, 0.75
    assert "2 orders" in advice.reason
    assert str(advice) == f"memory: {advice.text}"


def test_outdated_values_count_as_much_as_evidence() -> None:
    advice = choose(
        show("memory", 1.0, 0.5, outdated=(0.5, 0.5)),
        show("evidence", 1.0, 0.75, outdated=(0.5, 0.5)),
        show("updates", 1.0, 0.5, outdated=(0.25, 0.25)),
    )
    assert advice.spec == "updates"
    assert "leaves 2.5 instead of 5 of 10 questions with the outdated value" in advice.reason
    assert "shows the evidence" not in advice.reason


@pytest.mark.parametrize(
    "worse",
    [
        # Each is better in total, and worse in one order.
        show("repair", 0.95, 1.0, outdated=(0.1, 0.1)),
        show("repair", 1.0, 1.0, outdated=(0.0, 0.2)),
        show("repair", 1.0, 1.0, outdated=(0.11, 0.0)),
    ],
)
def test_a_repair_that_is_worse_in_any_order_is_not_chosen(worse: list[EstimateRow]) -> None:
    advice = choose(show("memory", 1.0, 0.5, outdated=(0.1, 0.1)), worse)
    assert (advice.repair, advice.spec, advice.action) == (None, "", "")
    assert "no standard repair" in advice.reason
    same = show("repair", 1.0, 1.0, outdated=(0.1, 0.1))
    assert choose(show("memory", 1.0, 0.5, outdated=(0.1, 0.1)), same).spec == "repair"


def test_an_order_that_was_not_built_without_the_repair_says_nothing() -> None:
    unrepaired, repaired = (measure(show("memory", 1.0, share)) for share in (0.5, 0.9))
    more = replace(repaired, evidence={**repaired.evidence, "jitter": 0.1})
    assert more.is_never_worse(unrepaired)
    assert not unrepaired.is_never_worse(repaired)
    rounding = replace(repaired, evidence={**unrepaired.evidence, "replay": 0.5 - 1e-12})
    assert rounding.is_never_worse(unrepaired)


def test_as_good_repairs_are_chosen_by_what_order_changes() -> None:
    advice = choose(
        show("memory", 1.0, 0.5, more={"V_changed": 0.5, "C_changed": 0.5}),
        show("text", more={"V_changed": 0.25, "C_changed": 0.25}),
        show("records", more={"V_changed": 0.0, "C_changed": 0.5}),
        show("all", more={"V_changed": 0.0, "C_changed": 0.25}),
    )
    assert advice.spec == "all"


ARRIVED: Values = {"count.arrivals": 100}


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [
        # Extra writes come first, then calls, then text, then delay.
        (
            {"count.writes": 110, "count.model_calls": 90, "context_length.route": 900.0},
            {"count.writes": 120},
        ),
        ({"count.model_calls": 10, "context_length.route": 900.0}, {"count.model_calls": 20}),
        ({"context_length.route": 101.0, "count.delay": 90}, {"context_length.route": 102.0}),
        ({"count.delay": 10}, {"count.delay": 20}),
    ],
)
def test_as_good_repairs_are_chosen_by_their_cost(cheap: Values, dear: Values) -> None:
    unrepaired = show("memory", 1.0, 0.5)
    repaired = show("cheap", more={**ARRIVED, **cheap}), show("dear", more={**ARRIVED, **dear})
    for order in (repaired, repaired[::-1]):
        advice = choose(unrepaired, *order)
        assert advice.spec == "cheap"
        assert advice.partial == ()


def test_cheaper_repairs_follow_with_what_they_leave() -> None:
    """The best one costs 0.4 writes; of three cheaper ones, the two best are named."""
    repaired = [
        show(name, 1.0, share, more={**ARRIVED, "count.writes": writes})
        for name, share, writes in (
            ("best", 1.0, 140),
            ("low", 0.6, 110),
            ("high", 0.9, 130),
            ("middle", 0.8, 120),
            ("dear", 0.95, 150),
            ("equal", 0.97, 140),
        )
    ]
    advice = choose(show("memory", 1.0, 0.5), *repaired)
    assert advice.spec == "best"
    assert advice.partial == (
        "using high leaves 2 of 40 without evidence",  # 0.05 of 40
        "using middle leaves 4 of 40 without evidence",
    )
    assert advice.text == (
        f"{advice.reason}. Cheaper: using high leaves 2 of 40 without evidence; using middle "
        "leaves 4 of 40 without evidence"
    )


def test_without_labels_order_and_records_count() -> None:
    def differ(policy: str, records: float, texts: float, writes: int) -> list[EstimateRow]:
        values = {"J": 0.5, "V_changed": records, "C_changed": texts}
        costs = {**ARRIVED, "count.writes": writes, "context_length.route": 1.0}
        return make_rows({**values, **costs}, policy=policy)

    unrepaired = differ("memory", 0.5, 0.5, 100)
    advice = choose(unrepaired, differ("part", 0.25, 0.5, 110), differ("whole", 0.0, 0.0, 120))
    assert advice.spec == "whole"
    assert "shows other records to 0 instead of 20 of 40 questions" in advice.reason
    assert "all orders" in advice.reason
    assert "0.20 extra writes per record" in advice.reason
    assert advice.partial == ("using part leaves 10 of 40 with other records",)
    advice = choose(unrepaired, differ("text", 0.5, 0.25, 100))
    assert "shows another text to 10 instead of 20 of 40 questions" in advice.reason
    assert choose(unrepaired, differ("same", 0.5, 0.5, 100)).repair is None


def find_repair(verdict: Verdict, *, only_reorders: bool) -> Advice:
    rows = [*show("memory", 0.5, 0.25), *show("hold", 0.5, 0.5)]
    findings = declare("hold", only_reorders=only_reorders)
    advice = choose_repair(verdict, make_results(rows, *findings))
    assert advice is not None
    return advice


@pytest.mark.parametrize(
    ("causes", "only_reorders", "is_chosen"),
    [
        # Another order cannot help a record that the memory does not keep even alone.
        (["never kept"], True, False),
        (["never kept", "refused"], True, False),
        (["never kept"], False, True),
        (["never kept", "overwritten"], True, True),
        (["overwritten"], True, True),
        ([], True, True),
    ],
)
def test_no_repair_contradicts_the_tested_cause(
    causes: list[Any], only_reorders: bool, is_chosen: bool
) -> None:
    verdict = make_verdict("evidence lost", causes=tuple(map(make_cause, causes)))
    assert bool(find_repair(verdict, only_reorders=only_reorders).repair) is is_chosen


def test_a_text_that_differs_as_well_does_not_permit_another_order() -> None:
    causes = (make_cause("not retrievable"), make_cause("order of blocks", record="", by=()))
    verdict = make_verdict("text only", causes=causes)
    assert find_repair(verdict, only_reorders=True).repair is None


def test_another_order_is_no_repair_for_what_source_order_loses() -> None:
    causes = [make_cause("full", schedules=("forward",)), make_cause("never kept")]
    verdict = make_verdict("text only", causes=tuple(causes))
    assert find_repair(verdict, only_reorders=True).repair is None
    assert find_repair(verdict, only_reorders=False).spec == "hold"
    verdict = make_verdict("text only", causes=(*causes, make_cause("full")))
    assert find_repair(verdict, only_reorders=True).spec == "hold"


def test_an_untested_cause_excludes_no_repair() -> None:
    causes = (make_cause("never kept", explained=0),)
    verdict = make_verdict("evidence lost", causes=causes)
    assert find_repair(verdict, only_reorders=True).spec == "hold"


@pytest.mark.parametrize(
    ("verdict", "source", "reason"),
    [
        (make_verdict("stable"), 1.0, "nothing to repair"),
        (make_verdict("internal only"), 1.0, "nothing to repair"),
        (make_verdict("stable", inconclusive="too few"), 1.0, "nothing can be concluded: too few"),
        (make_verdict("stable"), 0.9, "no standard repair"),  # something lacks in every order
        (make_verdict("text only"), 1.0, "no standard repair"),
        (make_verdict("stable", baseline=Baseline(outdated=1)), 1.0, "no standard repair"),
    ],
)
def test_nothing_to_repair(verdict: Verdict, source: float, reason: str) -> None:
    advice = choose(show("memory", source, source), show("hold", source, source), verdict=verdict)
    assert advice.repair is None
    assert advice.text.startswith(reason)


def test_an_incomplete_run_says_so() -> None:
    findings = declare("hold")
    for share, spec in ((0.5, "hold"), (0.25, "")):
        rows = [*show("memory", 1.0, 0.25), *show("hold", 1.0, share)]
        advice = choose_repair(
            make_verdict("evidence lost"), make_results(rows, *findings, incomplete=True)
        )
        assert advice is not None
        assert advice.text.startswith("Incomplete: ")
        assert advice.spec == spec
    rows = [*show("memory"), *show("hold")]
    advice = choose_repair(make_verdict("stable"), make_results(rows, *findings, incomplete=True))
    assert advice is not None and advice.text.startswith("Incomplete: nothing")
    complete = choose_repair(make_verdict("stable"), make_results(rows, *findings))
    assert complete is not None and complete.text == "nothing to repair"


def test_no_repair_was_measured() -> None:
    verdict = make_verdict("evidence lost")
    assert choose_repair(verdict, make_results(show("memory", 1.0, 0.5))) is None
    # The memory was not compared, or the repair belongs to another one, or was not compared.
    rows, findings = [*show("hold"), *show("memory")], declare("hold")
    assert choose_repair(verdict, make_results(show("hold"), *findings)) is None
    assert choose_repair(verdict, make_results(show("memory"), *findings)) is None
    another = declare("hold", memory="another")
    assert choose_repair(verdict, make_results(rows, *another)) is None
    assert choose_repair(verdict, make_results(rows, *findings)) is not None


def test_a_measured_repair_becomes_that_of_the_verdict() -> None:
    observation = Finding(
        name="observed", policy="memory", value={"data": "own", "command": "routeprism remedy"}
    )
    counts: Values = {
        "V_changed": 0.5,
        "evidence.lost_count": 9.0,
        "evidence.gained_count": 0.0,
    }
    rows = show("memory", 1.0, 0.5, more=counts)
    findings = [*declare("hold"), observation]
    (verdict,) = judge(make_results([*rows, *show("hold", more={"V_changed": 0.0})], *findings))
    assert (verdict.repair, verdict.level) == ("hold", "evidence lost")
    assert verdict.command == "routeprism audit own --policy hold"
    assert "shows the evidence of 40 instead of 30" in verdict.advice
    # If none of the measured repairs helps, there is no command.
    useless = show("hold", 1.0, 0.5, more={"V_changed": 0.5})
    (verdict,) = judge(make_results([*rows, *useless], *findings))
    assert (verdict.repair, verdict.command) == ("", "")
    assert "no standard repair" in verdict.advice
    (verdict,) = judge(make_results(rows, observation))
    assert verdict.command == "routeprism remedy"


# In words.


def list_changes(after: list[EstimateRow], before: list[EstimateRow]) -> list[str]:
    return list(list_effects(measure(after), measure(before)))


def test_what_gets_worse_is_said_as_well() -> None:
    (effect,) = list_changes(show("memory", 0.5, 0.5), show("memory", 1.0, 0.5))
    assert effect == "shows the evidence of 20 instead of 30 of 40 questions"
    (effect,) = list_changes(
        show("memory", outdated=(0.5, 0.5)), show("memory", outdated=(0.0, 0.5))
    )
    assert effect.startswith("leaves 5 instead of 2.5 of 10 questions")


def test_what_is_rare_is_not_written_as_none() -> None:
    """Means under 0.05 would be rounded to 0."""
    before = show("memory", 1.0, 0.5)
    (effect,) = list_changes(show("memory", 0.002, 0.0), before)
    assert effect == "shows the evidence of under 0.1 instead of 30 of 40 questions"  # 0.04
    (effect,) = list_changes(show("memory", 0.003, 0.0), before)
    assert effect == "shows the evidence of 0.1 instead of 30 of 40 questions"  # 0.06
    (effect,) = list_changes(show("memory", 0.0, 0.0), before)
    assert effect == "shows the evidence of 0 instead of 30 of 40 questions"


@pytest.mark.parametrize(("after", "words"), [(0.25, "fewer"), (0.75, "more"), (0.5, "")])
def test_fewer_or_more_writes_end_like_no_serial_order(after: float, words: str) -> None:
    before, now = (
        [*show("memory"), make_row("anomaly", share, schedule="overlap:k=2")]
        for share in (0.5, after)
    )
    effects = list_changes(now, before)
    if words:
        assert effects == [f"ends {words} overlapping writes in a way that no serial order does"]
    else:
        assert effects == ["shows another text to 0 instead of 0 of 40 questions"]


def describe_costs(more: Values, unrepaired: Values | None = None) -> str:
    advice = choose(
        show("memory", 1.0, 0.5, more=unrepaired), show("hold", more={**ARRIVED, **more})
    )
    return advice.reason.partition(", at ")[2]


@pytest.mark.parametrize(
    ("more", "costs"),
    [
        ({}, "no extra writes"),
        ({"count.writes": 125}, "0.25 extra writes per record"),
        ({"count.model_calls": 25}, "no extra writes and 2.5 model calls per memory"),
        ({"count.model_calls": 30}, "no extra writes and 3 model calls per memory"),
        ({"count.model_calls": 1005}, "no extra writes and 100 model calls per memory"),
        ({"count.model_calls": 995}, "no extra writes and 99.5 model calls per memory"),
        ({"count.model_calls": 12340}, "no extra writes and 1,234 model calls per memory"),
        ({"context_length.route": 104.0}, "no extra writes"),
        ({"context_length.route": 105.0}, "no extra writes and 1.1 times as much text"),
        ({"context_length.route": 250.0}, "no extra writes and 2.5 times as much text"),
        ({"count.delay": 10}, "no extra writes and a delay of 1 record"),
        ({"count.delay": 24}, "no extra writes and a delay of 2 records"),
        ({"count.delay": 4}, "no extra writes"),
    ],
)
def test_costs_in_words(more: Values, costs: str) -> None:
    assert describe_costs(more) == costs


def test_a_memory_that_showed_nothing_does_not_grow_beyond_all_bounds() -> None:
    assert describe_costs({}, {"context_length.route": 0.0}) == "no extra writes"


# As a table.


def test_the_table_of_repairs() -> None:
    hold, rebuild = "hold(memory)", "rebuild(memory)"
    costs = {**ARRIVED, "count.writes": 125, "count.model_calls": 25, "count.delay": 20}
    rows = [
        *show("memory", 1.0, 0.5, outdated=(0.0, 0.5), more={"V_changed": 0.25}),
        *show(hold, 1.0, 0.75, outdated=(0.0, 0.2), more=costs),
        *show(rebuild, 1.0, 1.0, schedule="jitter:w=2"),
    ]
    (table,) = tabulate_repairs(make_results(rows, *declare(hold, rebuild)))
    assert table.columns == (
        "repair",
        "source order",
        "reversal",
        "ordinary disorder",
        "outdated",
        "other records",
        "extra writes",
        "model calls",
        "delay",
        "characters",
    )
    # Outdated: means over source order and reversal of ten questions.
    assert table.rows == (
        (
            "(no repair)",
            "40 of 40",
            "20 of 40",
            "",
            "2.5 of 10",
            "10 of 40",
            "0.00",
            "",
            "0",
            "400",
        ),
        ("hold", "40 of 40", "30 of 40", "", "1 of 10", "0 of 40", "0.25", "2.5", "2", "400"),
        ("rebuild", "40 of 40", "", "40 of 40", "0 of 0", "0 of 40", "0.00", "", "0", "400"),
    )
    assert table.title.startswith("memory: ")


def test_the_table_leaves_out_what_does_not_apply() -> None:
    rows = [*show("memory", 1.0, 0.5), *show("hold(memory)", more={"context_length.route": 500.0})]
    (table,) = tabulate_repairs(make_results(rows, *declare("hold(memory)")))
    assert not {"outdated", "model calls"} & set(table.columns)
    assert len(table.rows[0]) == len(table.columns)
    assert table.rows[1][-1] == "2,000"
    two = [*declare("hold(memory)"), *declare("x", memory="another")]
    rows += [*show("another"), *show("x")]
    assert [
        table.title.partition(":")[0] for table in tabulate_repairs(make_results(rows, *two))
    ] == [
        "memory",
        "another",
    ]
    assert tabulate_repairs(make_results(rows)) == []


# How a run stores its repairs.


def test_repairs_are_read_back_from_findings() -> None:
    repairs = [
        Repair("memory", "hold(memory)", "holding back", 0.0, True),
        Repair("memory", "log(memory)", "searching a log", None),
    ]
    findings = keep_repairs(repairs)
    assert read_repairs(make_results([], *findings)) == repairs
    stored = Finding(name="repair", policy="p", value={"memory": "memory", "action": "a"})
    assert read_repairs(make_results([], stored)) == [Repair("memory", "p", "a")]


@pytest.mark.parametrize(
    ("wrap", "only_reorders"), [(Hold, True), (Rebuild, True), (Fallback, False)]
)
def test_a_repair_of_a_memory_is_described(wrap: Any, only_reorders: bool) -> None:
    memory = make_policy("recent")
    repair = describe_repair(memory, wrap(memory))
    assert (repair.memory, repair.policy) == (memory.name, wrap(memory).name)
    assert repair.only_reorders is only_reorders
    assert repair.calls == 0.0
    assert repair.action == wrap(memory).action
    assert repair.label == wrap(memory).name.removesuffix(f"({memory.name})")


class AsksAModel:
    """Counts no calls, and makes two for each record."""

    costly = True
    calls_per_add = 2

    def add(self, record: Any) -> None: ...

    def retained(self) -> list[str]:
        return []

    def expose(self, query: str) -> str:
        return ""


class Consults:
    """Asks a model through the run."""

    name = "consults"
    model = "reader"

    def consulting(self, consult: Any) -> Any:
        return self


def test_the_calls_of_a_policy_that_asks_a_model_are_not_known() -> None:
    consults: Any = Consults()
    assert describe_repair(make_policy("recent"), consults).calls is None


class AsksNobody(AsksAModel):
    costly = False
    offline = True


def test_a_policy_that_is_a_repair_by_itself_is_named() -> None:
    memory = make_policy("recent")
    repair = describe_repair(memory, make_policy("recent:k=99"))
    assert repair.action == f"using {repair.policy}"
    assert (repair.calls, repair.only_reorders) == (0.0, False)
    asking = as_policy(AsksAModel)
    assert describe_repair(asking, Hold(asking, 1)).calls is None
    counted = as_policy(AsksNobody)
    assert describe_repair(counted, Hold(counted, 1)).calls == 0.0


def test_a_stage_describes_each_memory_with_its_repairs() -> None:
    memory = make_policy("recent")
    stage = Remedies.of({memory: [Hold(memory, 1), Rebuild(memory)]})
    assert stage.described() == {
        "repairs": [[memory.name, Hold(memory, 1).name], [memory.name, Rebuild(memory).name]]
    }
