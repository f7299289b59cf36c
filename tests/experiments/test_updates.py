"""Facts that change: what an audit reports, and that known faults are diagnosed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.experiments import Audit
from routeprism.judge import read_verdicts, tabulate_repairs
from routeprism.runs import Rows, StoredRun

from .update_faults import (
    AddsOnly,
    DeletesWithoutAdding,
    DiscardsNearDuplicates,
    LastIngestedWins,
    Repaired,
    TrustsReimports,
)

REDELIVERY = "redeliver:copies=3"


def audit(memory: Any, *schedules: str) -> Audit:
    return routeprism.audit(
        "sample-updates", memory, schedules=list(schedules), resamples=100, workers=1
    )


def numbers(result: Audit, schedule: str) -> Mapping[str, float | None]:
    rows = result.rows.where(experiment="updates", stratum="all", schedule=schedule, model="")
    return {row.quantity: row.estimate for row in rows if row.policy}


def list_texts(result: Audit, schedule: str = "") -> list[str]:
    return [
        "".join(map(str, statement.parts))
        for statement in result.statements
        if statement.kind == "updates" and schedule in ("", statement.schedule)
    ]


CLEAN = (
    "all 144 questions about changed facts are shown the current value alone, in source order and "
    "in this order"
)


def test_the_repaired_memory_comes_out_clean() -> None:
    result = audit(Repaired, "replay", REDELIVERY)
    assert list_texts(result) == [CLEAN, CLEAN]
    for schedule in ("replay", REDELIVERY):
        values = numbers(result, schedule)
        assert values["stale_only.route"] == values["count.inverted_supersessions"] == 0
        assert values["count.discarded_updates"] == values["both_exposed.route"] == 0
        assert values["current_exposed.route"] == 1


def test_last_ingested_wins() -> None:
    result = audit(LastIngestedWins, "replay")
    assert list_texts(result) == [
        "144 of 144 questions about updates end with the old value when records arrive in this "
        "order; resolving by event time prevents all of them",
        "an older record displaced a newer one in this order (96 in all)",
    ]
    assert numbers(result, "replay")["stale_only.forward"] == 0


def test_near_duplicates_are_discarded() -> None:
    result = audit(DiscardsNearDuplicates, "replay")
    # 96 updates in 48 chains: all are discarded in source order; in reverse none is.
    assert list_texts(result) == [
        "144 of 144 questions about updates end with the old value in source order already",
        "96 updates were discarded in source order although nothing newer had arrived",
    ]
    assert numbers(result, "replay")["count.discarded_updates"] == 0
    assert numbers(result, "replay")["stale_only.route"] == 0


def test_deleting_without_adding() -> None:
    result = audit(DeletesWithoutAdding, "replay")
    # Of a chain of 2 or 4 values nothing is left, of a chain of 3 the last arrival.
    assert list_texts(result) == [
        "48 of 144 questions about updates end with the old value when records arrive in this "
        "order; resolving by event time prevents all of them",
        "96 of 144 questions about updates end with neither value in this order",
        "96 of 144 questions about updates end with neither value in source order",
        # 16·1 + 16·1 + 16·2 deletions, each of a newer record by an older one.
        "an older record displaced a newer one in this order (64 in all)",
        "64 updates were discarded in source order although nothing newer had arrived",
    ]
    values = numbers(result, "forward")
    assert values["count.discarded_updates"] == 64  # 16·1 + 16·1 + 16·2 deletions without an add


def test_adding_only() -> None:
    result = audit(AddsOnly, "replay")
    assert list_texts(result) == [
        "144 of 144 questions are shown both values in this order, and the old one comes last in "
        "144",
        "144 of 144 questions are shown both values in source order, and the old one comes last "
        "in 0",
    ]
    assert numbers(result, "replay")["stale_last.forward"] == 0


def test_reimports_of_old_documents() -> None:
    result = audit(TrustsReimports, "replay", REDELIVERY)
    assert list_texts(result, "replay") == [CLEAN]
    stale, displaced = list_texts(result, REDELIVERY)
    values = numbers(result, REDELIVERY)
    number = round(values["stale_only.by_order_count"] or 0)
    assert number > 0
    assert stale == (
        f"{number} of 144 questions about updates end with the old value when old records are "
        f"delivered again; resolving by event time prevents all of them"
    )
    assert displaced.startswith("an older record displaced a newer one in this order (")


@pytest.mark.slow
def test_facts_by_arrival_is_wrong_where_the_schedule_says_so() -> None:
    schedules = ("replay", "half-swap", "odd-even", "random:seed=4", "event-time")
    result = routeprism.audit(
        "sample-updates",
        "facts:by=arrival",
        "facts:by=time",
        schedules=list(schedules),
        resamples=100,
    )
    from routeprism.orders import parse_schedule
    from routeprism.records import load_benchmark

    for schedule in schedules:
        expected = 0
        for case in load_benchmark("sample-updates").cases:
            place = {
                case.pool.records[position].id: at
                for at, position in enumerate(parse_schedule(schedule).on(case.pool))
            }
            for question in case.questions:
                (newest,) = question.labels["benchmark"]
                older = question.stale["benchmark"]
                expected += max(place[item] for item in older) > place[newest]
        rows = result.rows.where(
            quantity="stale_only.route_count", stratum="all", schedule=schedule
        )
        assert {row.policy: row.estimate for row in rows} == {
            "facts:by=arrival": expected,
            "facts:by=time": 0,
        }
        assert (expected == 0) == (schedule == "event-time")


def test_expectations_over_an_arrival_model_are_means_over_its_orders(own_data: OwnData) -> None:
    """With w=1 three records arrive as a b c, b a c or a c b: a comes after b in one of three."""
    records = [
        {"user": "ann", "id": "a", "text": "I live at Elm Street.", "timestamp": "2024-03-03"},
        {"user": "ann", "id": "b", "text": "Now at Oak.", "timestamp": "2024-03-05"},
        {"user": "ann", "id": "c", "text": "It rained.", "timestamp": "2024-03-06"},
    ]
    records[1]["supersedes"] = ["a"]  # type: ignore[assignment]
    question = {"user": "ann", "id": "q", "text": "Where do I live?", "support": ["b"]}
    result = routeprism.audit(
        own_data(records, [question]),
        LastOfTwoWins,
        schedules=[],
        arrivals=["jitter:w=1"],
        resamples=100,
    )
    values = numbers(result, "jitter:w=1")
    assert values["stale_only.route"] == pytest.approx(1 / 3)
    assert values["current_exposed.route"] == pytest.approx(2 / 3)
    assert values["stale_only.forward"] == 0
    assert list_texts(result, "jitter:w=1") == [
        "on average 0.3 of 1 questions about updates end with the old value under 1-place "
        "disorder; resolving by event time prevents all of them"
    ]


class LastOfTwoWins:
    """Keep the last arrival of the records `a` and `b`, and nothing else."""

    def __init__(self) -> None:
        self.record: Any = None

    def add(self, record: Any) -> None:
        if record.id in ("a", "b"):
            self.record = record

    def retained(self) -> list[str]:
        return [self.record.id] if self.record else []

    def expose(self, query: str) -> list[Any]:
        return [self.record]


OwnData = Callable[..., Path]


def write_pool(own_data: OwnData, *, dates: tuple[str, str], name: str = "data") -> Path:
    records = [
        {"user": "ann", "id": "r7", "text": "I live at Elm Street.", "timestamp": dates[0]},
        {"user": "ann", "id": "r9", "text": "I live at Oak Street.", "timestamp": dates[1]},
    ]
    later, earlier = (1, 0) if dates[1] > dates[0] else (0, 1)
    records[later]["supersedes"] = [records[earlier]["id"]]  # type: ignore[assignment]
    question = {
        "user": "ann",
        "id": "q",
        "text": "Where do I live?",
        "support": [records[later]["id"]],
        "options": ["Elm Street", "Oak Street"],
        "gold": "ab"[later],
        "outdated": ["ab"[earlier]],
    }
    return own_data(records, [question], name)


def test_where_source_order_is_not_event_time_the_schedule_decides(own_data: OwnData) -> None:
    data = write_pool(own_data, dates=("2024-03-05", "2024-03-03"))
    recent = {"policies": "recent:k=1", "resamples": 100}
    alone = routeprism.audit(data, schedules="odd-even", **recent)  # type: ignore[arg-type]
    assert list_texts(alone) == [
        "1 of 1 questions about updates end with the old value in source order already",
        "an older record displaced a newer one in this order (1 in all)",
        "an older record displaced a newer one in source order (1 in all)",
    ]
    both = routeprism.audit(data, schedules=["replay", "event-time"], **recent)  # type: ignore[arg-type]
    assert numbers(both, "event-time")["stale_only.route"] == 0
    assert numbers(both, "replay")["stale_only.route"] == 0


def write_chain(own_data: OwnData, texts: str, **question: Any) -> Path:
    """Write one user whose record `b` replaces `a`; the other records are small talk."""
    records = [
        {"user": "ann", "id": name, "text": f"Words about {name}.", "timestamp": f"2024-03-{at:02}"}
        for at, name in enumerate(texts, start=1)
    ]
    records[texts.index("b")]["supersedes"] = ["a"]  # type: ignore[assignment]
    question_entry = {
        "user": "ann",
        "id": "q",
        "text": "Which letter?",
        "support": ["b"],
        **question,
    }
    return own_data(records, [question_entry])


def test_a_question_that_loses_both_values_is_not_clean(own_data: OwnData) -> None:
    result = routeprism.audit(
        write_chain(own_data, "xayzb"), "recent:k=1", schedules="replay", resamples=100
    )
    assert list_texts(result) == [
        "1 of 1 questions about updates end with neither value in this order"
    ]


def test_a_question_that_source_order_shows_both_values_is_not_clean(own_data: OwnData) -> None:
    """In the order b x a a window of two holds x and a; in a x b it holds x and b."""
    result = routeprism.audit(
        write_chain(own_data, "xab"), "recent:k=2", schedules="explicit:order=1-0-2", resamples=100
    )
    assert list_texts(result) == [
        "1 of 1 questions are shown both values in source order, and the old one comes last in 0"
    ]


def test_prevention_is_counted_question_by_question(own_data: OwnData) -> None:
    """One question about `a` and one about `b`: whichever record is kept misleads one of them."""
    data = write_chain(own_data, "ab")
    past = {"user": "ann", "id": "past", "text": "Which letter before?", "support": ["a"]}
    with (data / "questions.jsonl").open("a") as file:
        import json

        file.write(json.dumps({**past, "stale": ["b"]}) + "\n")
    result = routeprism.audit(data, "recent:k=1", schedules="replay", resamples=100)
    assert numbers(result, "replay")["count.stale_only_prevented"] == 1
    assert list_texts(result)[0] == (
        "1 of 2 questions about updates end with the old value when records arrive in this order "
        "(1 of 2 in source order); resolving by event time prevents all of them"
    )


def test_losing_both_values_prevents_nothing(own_data: OwnData) -> None:
    """A window of one record ends with small talk in source order, and with `a` in x b a."""
    order = "explicit:order=2-1-0"
    result = routeprism.audit(
        write_chain(own_data, "abx"), "recent:k=1", schedules=order, resamples=100
    )
    assert list_texts(result, order)[0] == (
        "1 of 1 questions about updates end with the old value when records arrive in this order; "
        "adding the records in event-time order prevents none of them"
    )


def test_an_order_without_a_route_by_event_time_is_not_judged(own_data: OwnData) -> None:
    data = write_chain(own_data, "bxa")  # source order: the newest record first
    (data / "records.jsonl").write_text(
        "".join(
            line.replace(f"2024-03-{at:02}", f"2024-03-{9 - at:02}") + "\n"
            for at, line in enumerate((data / "records.jsonl").read_text().splitlines(), start=1)
        )
    )
    recent = {"policies": "recent:k=1", "resamples": 100}
    order = "explicit:order=0-2-1"
    alone = routeprism.audit(data, schedules=[order], **recent)  # type: ignore[arg-type]
    assert "count.stale_only_prevented" not in numbers(alone, order)
    both = routeprism.audit(data, schedules=["replay", "event-time"], **recent)  # type: ignore[arg-type]
    assert numbers(both, "replay")["count.stale_only_prevented"] == 0


def test_displacements_over_an_arrival_model_are_means_over_its_orders(own_data: OwnData) -> None:
    """With w=1 the orders are a b x, b a x and a x b: in b a x, `a` is displaced by x alone."""
    result = routeprism.audit(
        write_chain(own_data, "abx"),
        "recent:k=1",
        schedules=[],
        arrivals=["jitter:w=1"],
        resamples=100,
    )
    values = numbers(result, "jitter:w=1")
    # b a x: `a` pushes the newer `b` out of the window.
    assert values["count.inverted_supersessions"] == pytest.approx(1 / 3)
    late = result.rows.where(quantity="count.updates_out_of_order", schedule="jitter:w=1")
    assert [row.estimate for row in late] == pytest.approx([1 / 3])


def test_a_recommended_repair_names_what_it_does_to_old_values(own_data: OwnData) -> None:
    """A window of one record, reversed: `a` is left; a window of two shows both."""
    remedies = routeprism.remedy(
        write_chain(own_data, "ab"), "recent:k=1", schedules=["replay"], arrivals=[], resamples=100
    )
    (advice,) = remedies.remedies()
    assert advice.spec == "recent:k=2"
    # A mean over source order, which shows `b`, and reversal.
    assert "0 instead of 0.5 of 1 questions with the outdated value" in advice.text
    (table,) = tabulate_repairs(remedies.results)
    column = table.columns.index("outdated")
    outdated = {str(line[0]): str(line[column]) for line in table.rows}
    assert (outdated["(no repair)"], outdated["recent:k=2"]) == ("0.5 of 1", "0 of 1")


def test_a_record_that_arrives_again_counts_with_its_last_arrival(own_data: OwnData) -> None:
    data = write_chain(own_data, "ab")
    result = routeprism.audit(data, "raw", schedules="redeliver:copies=1,seed=4", resamples=100)
    from routeprism.orders import parse_schedule
    from routeprism.records import load_benchmark

    (case,) = load_benchmark(str(data)).cases
    expected = {}
    for name in ("forward", "redeliver:copies=1,seed=4"):
        order = parse_schedule(name).on(case.pool)
        places = {position: at for at, position in enumerate(order)}
        expected[name] = float(places[0] > places[1])
    rows = result.rows.where(quantity="count.updates_out_of_order")
    assert {row.schedule: row.estimate for row in rows} == expected


def test_an_audit_without_labels_has_no_such_rows() -> None:
    result = routeprism.audit("sample", "recent:k=3", resamples=100)
    assert len(Rows.of(result.rows).where(experiment="updates")) == 0
    assert list_texts(result) == []


def test_not_applicable_stays_not_applicable(own_data: OwnData) -> None:
    data = write_pool(own_data, dates=("2024-03-03", "2024-03-05"))
    plain = {"user": "ann", "id": "plain", "text": "Which street?", "support": ["r7"]}
    with (data / "questions.jsonl").open("a") as file:
        import json

        file.write(json.dumps(plain) + "\n")
    result = routeprism.audit(data, "recent:k=1", models=["reader:temperature=0"], resamples=100)
    rows = result.rows.where(experiment="updates", stratum="all", mask="", arm="")
    by_name = {row.quantity: row for row in rows if row.policy}
    assert by_name["stale_only.route"].queries == 1
    assert by_name["outdated_answer.route"].queries == 1
    assert by_name["outdated_answer.route"].estimate == 1
    assert by_name["outdated_answer.forward"].estimate == 0
    assert "stale_last.route" not in by_name


@pytest.mark.slow
def test_the_report_has_a_section(tmp_path: Path, cli: Callable[..., Any]) -> None:
    run = tmp_path / "run"
    ended = cli("audit", "sample-updates", "--policy", "facts:by=arrival", "--run", run)
    assert ended.code == 0
    text = (tmp_path / "run" / "report.html").read_text("utf-8")
    assert "Which value a memory ends with" in text
    assert "resolving by event time prevents" in text
    with StoredRun(run) as stored:
        (verdict,) = read_verdicts(stored)
    assert verdict.level == "evidence lost"
    assert f">{verdict.level}</span>" in text
