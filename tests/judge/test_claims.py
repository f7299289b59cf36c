"""What was once printed of a memory and was not true: one test for each such claim."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism import OwnCodeError, Record
from routeprism.policies import as_policy
from routeprism.policies.remedies import parse_remedy

from ..doubles import Scripted
from ..experiments.order_faults import AppendOnly
from . import data, memories
from .zoo import BY_NAME, SPARE, audit_once, is_red, measure_total, read_count, read_row

Cli = Callable[..., Any]
ROOT = Path(__file__).parents[2]


def judge(name: str) -> Any:
    (verdict,) = audit_once(name).verdicts
    return verdict


def read_text(result: Any) -> str:
    """Return what an audit says when it is printed."""
    return " ".join(str(result).split())


# "questions lose evidence (100%)": PersonaMem, focal, reversal.


@pytest.mark.realdata
def test_personamem_reversal_gains_evidence(data: Path) -> None:
    """The paper's own result: recall 0.018 in source order, 0.435 more in reversal."""
    result = routeprism.audit(
        "personamem", "focal", schedules=("replay",), data=data, resamples=200, workers=1
    )
    counts = {
        side: result.value(
            f"evidence.{side}_count", schedule="replay", stratum="fact-recall"
        ).estimate
        for side in ("lost", "gained")
    }
    assert counts == {"lost": 2, "gained": 63}
    assert (
        result.value("evidence.lost_count", schedule="replay", stratum="fact-recall").queries == 146
    )
    (verdict,) = result.verdicts
    assert (verdict.lost, verdict.gained, verdict.questions) == (4, 211, 589)
    assert verdict.depth == verdict.level == "evidence moves"
    text = read_text(result)
    assert "evidence lost" not in text
    assert not re.search(r"lose evidence[^.;]*100\s?%", text)


# "evidence lost, reversal 100%", gate fails: sixty hand-made questions.


def test_sixty_questions_of_which_one_loses_evidence() -> None:
    verdict = judge("gains-only")
    assert (verdict.lost, verdict.gained, verdict.questions) == (1, 59, 60)
    assert verdict.level == "evidence moves"
    assert not is_red(verdict)
    text = read_text(audit_once("gains-only"))
    assert "100%" not in re.sub(r"\([^)]*60 of 60[^)]*\)", "", text)
    assert "evidence lost" not in text


def test_sixty_questions_pass_the_recommended_gate(tmp_path: Path) -> None:
    """One of 60 is 0.0167, and the limit is 0.02."""
    BY_NAME["gains-only"].audit(run=tmp_path / "run")
    assert routeprism.check(tmp_path / "run", "evidence.lost<=0.02").passed


# "blocks are shown in a different order (6 of 6)": an older record overwrote a newer one.


def test_an_overwrite_is_the_stated_cause_although_blocks_move_as_well() -> None:
    verdict = judge("keyed-overwrite")
    assert verdict.causes[0].cause == "overwritten"
    text = read_text(audit_once("keyed-overwrite"))
    assert text.index(verdict.causes[0].record) < (text + "different order").index(
        "different order"
    )


def test_every_loss_is_counted_not_those_of_a_few_orders() -> None:
    """In reversal, 24 questions lose one record each."""
    result = BY_NAME["keyed-overwrite"].audit(schedules=("replay",))
    (verdict,) = result.verdicts
    assert verdict.lost == 24
    losses = [cause for cause in verdict.causes if cause.cause == "overwritten"]
    assert sum(cause.explained for cause in losses) == sum(c.cases for c in losses[:1]) == 24


def test_drawn_orders_are_all_looked_at() -> None:
    """Jitter's 16 orders of 8 pools lose 9 questions in the mean: 144 losses, none untested."""
    result = BY_NAME["keyed-overwrite"].audit(arrivals=("jitter:w=2",), schedules=())
    (verdict,) = result.verdicts
    first = verdict.causes[0]
    assert (first.cause, first.tested) == ("overwritten", first.explained)
    assert first.cases >= first.explained > 0


# "discarded because it arrived too late" (60 of 60): a hash collision.


@pytest.mark.parametrize("name", ["colliding-slots", "owned-slots"])
def test_a_hash_collision_is_not_called_late(name: str) -> None:
    verdict = judge(name)
    assert verdict.causes
    assert "late" not in {cause.cause for cause in verdict.causes}
    assert "too late" not in read_text(audit_once(name))
    # Source order discards as many: order only decides which.
    assert read_count(verdict.baseline, "lacking") == 19


def test_late_is_said_of_what_source_order_keeps() -> None:
    verdict = judge("refuses-late")
    assert verdict.causes[0].cause == "late"
    assert read_count(verdict.baseline, "lacking") == 0


# "the memory was full, enlarge the window".


@pytest.mark.parametrize(
    "name",
    [
        "http-overwrite",
        "keyed-overwrite",
        "replaced-by-import",
        "replaced-by-night",
        "soft-delete",
        "soft-delete-unlisted",
    ],
)
def test_no_window_is_enlarged_where_none_was_full(name: str) -> None:
    verdict = judge(name)
    assert "full" not in {cause.cause for cause in verdict.causes}
    text = read_text(audit_once(name))
    assert "was full" not in text
    assert "window" not in text


# "Recommended: hold:w=2"; "rebuilding (then stable)".


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "old-after-rebuilding",
        "first-arrival-wins",
        "oldest-wins",
        "deduplicates-updates",
        "keyed-overwrite",
    ],
)
def test_no_recommended_repair_ends_with_the_old_value(name: str) -> None:
    planted = BY_NAME[name]
    remedies = routeprism.remedy(planted.benchmark(), planted.memory, **SPARE)
    (verdict,) = remedies.verdicts
    assert verdict.repair
    inner = as_policy(planted.memory)
    spec = verdict.repair if "(" in verdict.repair else f"{verdict.repair}({inner.name})"
    repaired = parse_remedy(spec, lambda _: inner)
    assert repaired is not None
    result = planted.audit(repaired)
    for schedule in planted.schedules:
        assert read_row(result, "stale_only.route_count", schedule).estimate == 0
        assert read_row(result, "stale_only.forward_count", schedule).estimate == 0


def test_a_wrong_answer_is_not_made_stable() -> None:
    """Rebuilt in event order, the oldest value of each fact comes first and stays."""
    verdict = judge("old-after-rebuilding")
    assert "rebuild" not in verdict.repair
    assert "hold" not in verdict.repair


# `stable`, "nothing to repair": the outdated value in every order.


def test_stale_in_every_order_is_red_and_has_a_cause() -> None:
    result, verdict = audit_once("oldest-wins"), judge("oldest-wins")
    assert read_count(verdict.baseline, "outdated") == 24
    assert verdict.depth == "stable"
    assert verdict.causes
    assert verdict.repair
    text = read_text(result)
    assert "24 of 32" in text or "24 of 24" in text
    assert "nothing to repair" not in text.lower()


def test_stale_in_every_order_is_no_all_clear_of_remedy() -> None:
    planted = BY_NAME["oldest-wins"]
    remedies = routeprism.remedy(planted.benchmark(), planted.memory, **SPARE)
    assert "nothing to repair" not in read_text(remedies).lower()


# `stable` beside torn writes; "evidence lost" for what equals a serial order.


def test_torn_writes_are_red_whatever_the_depth() -> None:
    verdict = judge("torn-writes")
    assert verdict.level == "promise failed"
    (torn,) = [promise for promise in verdict.promises if promise.failed]
    assert torn.promise == "torn"
    row = read_row(audit_once("torn-writes"), "anomaly.torn", "overlap:k=3")
    assert torn.failed / torn.of == pytest.approx(row.estimate)


def test_an_outcome_of_a_serial_order_is_no_fault() -> None:
    verdict = judge("serial-window")
    assert not [promise for promise in verdict.promises if promise.failed]
    assert verdict.level != "evidence lost"
    assert not is_red(verdict)
    assert read_row(audit_once("serial-window"), "anomaly", "overlap:k=3").estimate == 0


# `check -g 'J>=0.9'`: "all limits hold".


@pytest.mark.parametrize(
    "name", ["adds-nothing", "shows-nothing", "raises-full", "keeps-at-random"]
)
def test_gates_that_hold_for_a_memory_without_content_end_with_3(
    name: str, cli: Cli, tmp_path: Path
) -> None:
    BY_NAME[name].audit(run=tmp_path / "run")
    gate = "J<=1" if name == "keeps-at-random" else "J>=0.9"
    ended = cli("check", tmp_path / "run", "-g", gate)
    assert ended.code == 3
    assert "all limits hold" not in ended.out
    assert "the limit holds" not in ended.out
    quiet = cli("check", tmp_path / "run", "-g", gate, "--quiet")
    assert quiet.code == 3
    assert not quiet.out.startswith("ok")


@pytest.mark.parametrize("reply", ["", "I'm sorry, I can't help with that."])
def test_gates_that_hold_for_answers_that_say_nothing_end_with_3(
    reply: str, cli: Cli, tmp_path: Path
) -> None:
    """Sixteen calls: eight questions in two orders, all of them refused or empty."""

    def write_eight() -> data.Lines:
        return data.make_diary(range(8), users=1)

    directory = write_eight().write(tmp_path / "eight")
    result = routeprism.audit(
        directory,
        memories.SortedSet,
        models=[Scripted(lambda ask: reply)],
        schedules=("replay",),
        run=tmp_path / "run",
        **SPARE,
    )
    (verdict,) = result.verdicts
    assert verdict.inconclusive
    assert verdict.level == "inconclusive"
    ended = cli("check", tmp_path / "run", "-g", "J>=0.9")
    assert ended.code == 3
    # J is of the records shown: its own line may say that it holds, and the outcome must not.
    only, *_, outcome = [line for line in ended.out.splitlines() if line[:5] in ("ok   ", "FAIL ")]
    assert only.startswith("ok   SortedSet, replay: J>=0.9 holds")
    assert outcome.startswith("FAIL nothing can be concluded, whatever the limits: SortedSet: none")
    quiet = cli("check", tmp_path / "run", "-g", "J>=0.9", "--quiet")
    assert quiet.code == 3
    assert quiet.out.startswith("FAIL nothing can be concluded, whatever the limits")
    assert "holds" not in quiet.out


def test_an_error_of_add_names_the_record_and_what_was_said() -> None:
    """An exception of the memory's own code ends the audit: that is no judgement."""

    class Raises(AppendOnly):
        """Raises an error when five records are there."""

        def add(self, record: Record) -> None:
            if len(self.held) == 5:
                raise ValueError("the store is full")
            super().add(record)

    with pytest.raises(OwnCodeError, match=r"record 'ada-n5' raised ValueError: the store is full"):
        routeprism.audit(data.load(data.write_diary), Raises, **SPARE)


# "this change loses evidence on 1 question": the change repaired the memory.


class DropsEarlyPrices(AppendOnly):
    """Keeps prices as well, unless one is among the first three arrivals."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0

    def add(self, record: Record) -> None:
        self.arrived += 1
        if "€" not in record.text or self.arrived > 3:
            super().add(record)


REPAIRS = [
    ("oldest-wins", memories.NewestOfFact),
    ("oldest-wins", memories.BitemporalOffByOne),
    ("keyed-overwrite", "hold:w=2"),
    ("gains-only", "log-fallback:k=3"),
    ("lossy-adapter", DropsEarlyPrices),  # stable before; now it depends on order, and shows more
]


@pytest.mark.parametrize(
    ("name", "repair"), REPAIRS, ids=[f"{name}-{i}" for i, (name, _) in enumerate(REPAIRS)]
)
def test_a_repair_never_reads_as_a_loss_of_evidence(name: str, repair: Any, tmp_path: Path) -> None:
    planted = BY_NAME[name]
    inner = as_policy(planted.memory)
    after = (
        parse_remedy(f"{repair}({inner.name})", lambda _: inner)
        if isinstance(repair, str)
        else as_policy(repair)
    )
    assert after is not None
    results = [
        planted.audit(memory, run=tmp_path / run)
        for run, memory in (("before", inner), ("after", after))
    ]
    totals = [measure_total(result, planted.schedules) for result in results]
    assert totals[1][0] > totals[0][0]  # it is a repair
    comparison = routeprism.compare(
        tmp_path / "before",
        tmp_path / "after",
        policies_a=[inner.name],
        policies_b=[after.name],
        markdown=tmp_path / "comment.md",
        html=tmp_path / "page.html",
    )
    texts = [*comparison.sentences, (tmp_path / "comment.md").read_text("utf-8")]
    for text in texts:
        assert not re.search(r"(this change|new version) (loses|lost) evidence", text)
        assert not re.search(r"\bgot worse\b(?!.*\bnothing\b)", text)


# `audit --json`: another concept.


@pytest.mark.parametrize("name", ["keyed-overwrite", "gains-only", "adds-nothing", "sorted-set"])
def test_json_has_the_level_that_the_terminal_prints(
    name: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = BY_NAME[name]
    monkeypatch.syspath_prepend(str(ROOT))
    words = [
        *("audit", planted.benchmark().directory, "-p", planted.name_command()),
        *("--resamples", "100", "--workers", "1"),
        *(word for s in planted.options.get("schedules", ()) for word in ("--schedule", s)),
    ]
    (verdict,) = json.loads(cli(*words, "--json").out)["verdicts"]
    assert set(verdict) >= {
        *("policy", "level", "depth", "inconclusive", "promises", "baseline"),
        *("lost", "gained", "questions", "causes", "repair", "command"),
    }
    assert verdict["level"] == judge(name).level
    assert verdict["level"] in cli(*words).out
    for cause in verdict["causes"]:
        assert set(cause) >= {"cause", "record", "by", "tested", "explained", "cases"}
