"""The display intervention and the canonical-serialisation control, with known models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import routeprism
from routeprism.errors import SpecError
from routeprism.experiments import Manner, compare_layouts, reversed_within_kinds
from routeprism.models import Ask
from routeprism.orders import parse_schedule
from routeprism.policies import Block, make_policy, parse_interface
from routeprism.prompts import Prompt
from routeprism.records import load_benchmark, only_kinds
from routeprism.records.sample import load
from routeprism.routes import trace_case
from routeprism.runs import StoredRun

ARMS = ("construction:native", "construction:reversed", "construction")
LAYOUT_ARMS = ("display:forward", "display:route", "display")


def numbers(ask: Ask) -> list[int]:
    """Read the records in the order in which they are shown."""
    return [int(result) for result in re.findall(r"number(\d)", ask.memory)]


def estimates(result: routeprism.Audit, quantity: str, arms: tuple[str, ...]) -> list[float | None]:
    where = {"experiment": "display", "mask": ""}
    return [result.value(quantity, arm=arm, **where).estimate for arm in arms]


def test_a_model_that_reads_the_last_block_has_a_display_effect_alone(pools, scripted) -> None:
    # raw shows 0 1 2 3 on both routes; reversed 3 2 1 0. Gold is a.
    model = scripted(lambda ask: "a" if numbers(ask)[-1] == 3 else "b")
    audit = routeprism.audit(
        pools(), "raw", models=[model], draws=2, display=["reversed"], resamples=200
    )
    assert estimates(audit, "D_res", ARMS) == [0, 0, 0]
    assert estimates(audit, "D_res", LAYOUT_ARMS) == [1, 1, 1]
    assert estimates(audit, "Delta_rep", LAYOUT_ARMS) == [-1, -1, -1]
    row = audit.value("Gamma.D_res", arm="construction-display")
    assert (row.estimate, row.queries, row.units) == (-1, 12, 4)
    assert any(
        "the layout changes the answers more than the records that were kept do" in sentence
        and "difference -1.000 [-1.000, -1.000]" in sentence
        for sentence in audit.sentences
    )


def test_a_model_that_looks_for_a_record_has_a_construction_effect_alone(pools, scripted) -> None:
    # recent:k=2 shows 2 3 forward and 0 1 on replay.
    model = scripted(lambda ask: "a" if 0 in numbers(ask) else "b")
    audit = routeprism.audit(
        pools(), "recent:k=2", models=[model], draws=3, display=["reversed"], resamples=200
    )
    assert estimates(audit, "D_res", ARMS) == [1, 1, 1]
    assert estimates(audit, "Delta_rep", ARMS) == [1, 1, 1]
    assert estimates(audit, "D_res", LAYOUT_ARMS) == [0, 0, 0]
    assert audit.value("Gamma.D_res", arm="construction-display").estimate == 1
    cells = {"experiment": "display", "arm": "construction:reversed"}
    assert audit.value("accuracy.forward", **cells).estimate == 0
    assert audit.value("accuracy.route", **cells).estimate == 1


def test_contrasts_are_averaged_over_the_other_factor_by_hand(pools, scripted) -> None:
    # Shown last: forward 3 native, 2 reversed; replay 1 native, 0 reversed. Only 3 is answered a.
    model = scripted(lambda ask: "a" if numbers(ask)[-1] == 3 else "b")
    audit = routeprism.audit(
        pools(), "recent:k=2", models=[model], display=["reversed"], resamples=200
    )
    assert estimates(audit, "H", ARMS) == [1, 0, 0.5]
    assert estimates(audit, "H", LAYOUT_ARMS) == [1, 0, 0.5]
    assert estimates(audit, "Delta", ARMS) == [-1, 0, -0.5]
    assert estimates(audit, "Delta", LAYOUT_ARMS) == [-1, 0, -0.5]
    assert audit.value("Gamma.H", arm="construction-display").estimate == 0
    with pytest.raises(LookupError):  # one draw gives no residual
        audit.value("D_res", experiment="display", arm="construction")
    assert any("neither construction nor display is shown" in s for s in audit.sentences)


def test_the_four_prompts_have_one_length_and_the_same_blocks(pools, tmp_path: Path) -> None:
    tiny = pools(1, ["q0"])
    routeprism.audit(tiny, "recent:k=2", run=tmp_path / "run", resamples=100)
    policies = [make_policy("recent:k=2", parse_interface("all"))]
    manner = Manner(fillers=("A", "B"), control="aligned")
    schedules = [parse_schedule("replay")]
    with StoredRun(tmp_path / "run") as stored:
        result = list(
            compare_layouts(tiny.cases[0], stored, policies, schedules, manner, ["reversed"])
        )
    assert [item.filler for item in result] == ["A", "B"]
    for item in result:
        assert len({prompt.tokens for prompt in item.prompts}) == 1
        assert {name: numbers(prompt.ask(0)) for name, prompt in item.sides} == {
            "forward-native": [2, 3],
            "route-native": [0, 1],
            "forward-reversed": [3, 2],
            "route-reversed": [1, 0],
        }
        lines = [sorted(prompt.text.splitlines()) for prompt in item.prompts]
        assert lines[0] == lines[2]  # the same blocks, byte for byte
        assert lines[1] == lines[3]


def test_no_two_cells_share_a_draw(pools, scripted) -> None:
    # raw in source order: three of the four cells of the serialisation control read one text.
    model = scripted(lambda ask: "a")
    audit = routeprism.audit(
        pools(1, ["q0"]), "raw", models=[model], draws=2, display=["source"], resamples=100
    )
    values: dict[str, set[int]] = {}
    for ask in model.asked:
        values.setdefault(ask.text, set()).add(ask.draw)
    # Forward and route of the plain pair and three cells: 0 1 | 2 3, and 0 1 | 4 5 | 6 7.
    assert sorted(map(sorted, values.values())) == [[0, 1, 2, 3, 4, 5, 6, 7], [2, 3]]
    where = {"experiment": "display", "arm": "serialisation"}
    assert audit.value("count.rearranged.forward", **where).estimate == 0
    assert audit.value("count.rearranged.route", **where).estimate == 1


@pytest.mark.slow
def test_a_model_that_answers_by_chance_has_no_residual_on_average(pools, scripted) -> None:
    import hashlib

    def toss(ask: Ask) -> str:
        digest = hashlib.sha256(f"{ask.text}{ask.draw}".encode()).digest()
        return "ab"[digest[0] % 2]

    audit = routeprism.audit(
        pools(40), "recent:k=2", models=[scripted(toss)], draws=4, display=["reversed"]
    )
    for arm in ("construction", "display"):
        row = audit.value("D_res", experiment="display", arm=arm)
        assert row.lower < 0 < row.upper  # 40 users, seeded: the true value is 0


# --- what cannot be intervened on ------------------------------------------------------------


def test_an_exposure_without_two_blocks_of_a_kind_is_refused_and_counted(
    pools, scripted, tmp_path: Path
) -> None:
    model = scripted(lambda ask: "a")
    audit = routeprism.audit(
        pools(),
        "recent:k=1",
        "recent:k=2",
        models=[model],
        display=["reversed"],
        run=tmp_path / "run",
        resamples=100,
    )
    where = {"experiment": "display", "arm": "display"}
    assert audit.value("count.refused", policy="recent:k=1", **where).estimate == 12
    assert audit.value("count.refused", policy="recent:k=2", **where).estimate == 0
    assert not [
        row
        for row in audit.rows
        if row.experiment == "display" and row.policy == "recent:k=1" and row.model
    ]
    assert any(
        "12 comparisons are left out: a route shows fewer than two" in n for n in audit.notes
    )
    assert any("12 of 12 pairs cannot be reversed within their kinds" in s for s in audit.sentences)
    with StoredRun(tmp_path / "run") as stored:
        users = {question.user for question in stored.questions().values()}
        sides = [side for user in users for side in stored.comparison_sides(user)]
    refused = [side for side in sides if side.experiment == "display" and side.reason]
    assert len(refused) == 12
    assert {(side.policy, side.condition, side.side) for side in refused} == {
        ("recent:k=1", "reversed", "")
    }


class Merged:
    """Two summaries, each of several records: blocks without one place in source order."""

    def __init__(self) -> None:
        self.records = []

    def add(self, record) -> None:
        self.records.append(record)

    def retained(self):
        return frozenset(record.id for record in self.records)

    def expose(self, query: str):
        halves = self.records[:2], self.records[2:]
        return routeprism.Exposure(
            tuple(
                Block("summary", " / ".join(r.text for r in half), frozenset(r.id for r in half))
                for half in halves
            )
        )


def test_source_display_needs_blocks_of_one_record(pools, scripted) -> None:
    model = scripted(lambda ask: "a")
    audit = routeprism.audit(
        pools(), Merged, models=[model], display=["source", "reversed"], resamples=100
    )
    assert audit.value("count.refused", arm="serialisation").estimate == 12
    assert audit.value("count.refused", arm="display").estimate == 0
    assert any("comes from several records" in note for note in audit.notes)


def test_a_display_that_is_none_is_refused(pools, scripted) -> None:
    with pytest.raises(SpecError, match="Did you mean 'reversed'"):
        routeprism.audit(pools(), "raw", models=[scripted(str)], display=["revers"])
    with pytest.raises(SpecError, match="display needs a model to answer"):
        routeprism.audit(pools(), "raw", display=["reversed"])


# --- canonical serialisation -----------------------------------------------------------------


@pytest.mark.slow
def test_source_display_takes_an_effect_of_display_away(pools, scripted) -> None:
    # raw keeps everything: natively the last record shown is 3 forward and 0 on replay.
    model = scripted(lambda ask: "a" if numbers(ask)[-1] == 3 else "b")
    audit = routeprism.audit(
        pools(), "raw", "recent:k=2", models=[model], draws=2, display=["source"], resamples=100
    )

    def value(quantity: str, arm: str, policy: str = "raw", mask: str = "") -> float | None:
        where = {"experiment": "display", "policy": policy, "arm": arm, "mask": mask}
        return audit.value(quantity, **where).estimate

    assert value("D_res", "serialisation:native") == 1
    assert value("Delta_rep", "serialisation:native") == -1
    assert value("D_res", "serialisation:source") == 0
    assert value("Gamma.D_res", "serialisation:native-source") == 1
    assert value("D_res", "serialisation:source", mask="selection-unchanged") == 0
    assert value("D_res", "display:serialisation:route") == 1
    assert value("D_res", "display:serialisation:forward") == 0
    # recent:k=2 natively ends with 3 and 0, in source order with 3 and 1: nothing is taken away.
    assert value("D_res", "serialisation:source", "recent:k=2", "selection-changed") == 1
    with pytest.raises(LookupError):
        value("D_res", "serialisation:source", "recent:k=2", "selection-unchanged")
    assert any("source display removes a part" in sentence for sentence in audit.sentences)


def test_source_display_is_also_given_without_the_first_answers(pools, scripted) -> None:
    # Only the first of three answers depends on what is shown: 1 in 3 draws differs by route.
    model = scripted(lambda ask: "b" if ask.turn == 0 and numbers(ask)[0] == 0 else "a")
    audit = routeprism.audit(
        pools(), "recent:k=2", models=[model], draws=3, display=["source"], resamples=200
    )
    where = {"experiment": "display", "mask": "selection-changed"}
    every = audit.value("D_res", arm="serialisation:source", **where)
    fresh = audit.value("D_res", arm="serialisation:source:fresh", **where)
    # By hand: b a a against a a a gives H_cross 1/3, H_within (2/3 + 0) / 2 = 1/3.
    assert every.estimate == pytest.approx(0)
    assert audit.value("H_cross", arm="serialisation:source", **where).estimate == pytest.approx(
        1 / 3
    )
    assert audit.value("H_cross", arm="serialisation:source:fresh", **where).estimate == 0
    assert (fresh.estimate, fresh.queries) == (0, every.queries)


def evidence(prompt: Prompt) -> str:
    return prompt.text[prompt.evidence_span.start : prompt.evidence_span.end]


@pytest.mark.parametrize("policy", ["focal", "recent:k=3", "utility:k=3", "raw", "lexical:k=4"])
@pytest.mark.parametrize("schedule", ["replay", "random:seed=3"])
def test_the_native_order_is_what_arrival_display_shows(
    policy: str, schedule: str, tmp_path: Path
) -> None:
    whole = load()
    sample = replace(whole, cases=tuple(whole.cases)[:8])
    stored = {}
    for display in ("source", "arrival"):
        routeprism.audit(
            sample,
            policy,
            schedules=[schedule],
            interface=f"all:display={display}",
            run=tmp_path / display,
            resamples=100,
        )
        stored[display] = StoredRun(tmp_path / display)
    values = {d: make_policy(policy, parse_interface(f"all:display={d}")) for d in stored}
    names = {d: "own" if policy.startswith("lexical") else f"all:display={d}" for d in stored}
    names["source"] = names["source"].replace("all:display=source", "all")
    schedules = [parse_schedule(schedule)]
    with stored["source"] as source, stored["arrival"] as arrival:
        cells = [
            cell
            for case in sample.cases
            for cell in compare_layouts(
                case, source, [values["source"]], schedules, Manner(), ["source"]
            )
        ]
        assert any(cell.detail.rearranged[1] for cell in cells)  # else this would compare nothing
        for item in cells:
            for at, name in enumerate(("forward", schedule)):
                expected = arrival.exposure(policy, names["arrival"], name, item.question.id)
                context = "\n\n".join(text for _, text, _ in expected.blocks)
                assert evidence(item.prompts[at]) == context
                canonical = source.exposure(policy, names["source"], name, item.question.id)
                if not policy.startswith("lexical"):  # which shows by rank, not in source order
                    context = "\n\n".join(text for _, text, _ in canonical.blocks)
                    assert evidence(item.prompts[2 + at]) == context


# --- memochat, whose context has three kinds of blocks ---------------------------------------


@pytest.mark.slow
def test_memochat_on_the_sample_is_refused_nowhere_and_partly_reversed(scripted) -> None:
    # Its pools are short: two recent dialogs always, and one topic where the buffer was full.
    sample = load()
    small = replace(sample, cases=tuple(sample.cases)[:6])
    model = scripted(lambda ask: "a")
    audit = routeprism.audit(
        small, "memochat", models=[model], display=["reversed", "source"], resamples=100
    )
    total = sum(len(case.questions) for case in small.cases)
    where = {"experiment": "display", "arm": "display", "mask": ""}
    assert audit.value("count.refused", **where).estimate == 0
    for state in ("forward", "route"):
        assert audit.value(f"count.rearranged.{state}", **where).estimate == total
    assert any("some kind has one block, which stays" in note for note in audit.notes)
    assert audit.value("count.refused", experiment="display", arm="serialisation").estimate > 0
    assert audit.value("H", arm="construction", experiment="display").estimate == 0


@pytest.mark.realdata
def test_memochat_on_personamem_shows_four_four_and_two_blocks(data: Path) -> None:
    # Appendix H.2: four summaries, four retrieved and two recent dialogs in each context.
    facts = only_kinds(load_benchmark("personamem", data), ["fact-recall"])
    policy = make_policy("memochat")
    counted: Counter[tuple[tuple[str, int], ...]] = Counter()
    for case in facts.cases:
        for route in trace_case(case, [policy], [parse_schedule("replay")]):
            for exposure in route.exposures:
                counted[tuple(sorted(Counter(b.kind for b in exposure.blocks).items()))] += 1
                assert reversed_within_kinds(exposure.blocks) != exposure.blocks
    assert counted == {(("recent-dialog", 2), ("topic-dialog", 4), ("topic-summary", 4)): 292}


# --- layouts ---------------------------------------------------------------------------------

blocks = st.lists(
    st.builds(Block, st.sampled_from("abc"), st.text(max_size=3), st.just(frozenset("r"))),
    max_size=8,
)


@pytest.mark.slow
@given(blocks)
def test_reversal_keeps_kinds_in_place_and_every_text(given_blocks: list[Block]) -> None:
    result = reversed_within_kinds(given_blocks)
    assert [block.kind for block in result] == [block.kind for block in given_blocks]
    assert reversed_within_kinds(result) == tuple(given_blocks)
    for kind in "abc":
        before = [block for block in given_blocks if block.kind == kind]
        assert [block for block in result if block.kind == kind] == before[::-1]


# --- as a run --------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_dry_run_counts_what_is_asked_and_a_resumed_run_asks_nothing(
    pools, scripted, tmp_path: Path
) -> None:
    model = scripted(lambda ask: "a" if numbers(ask)[-1] == 3 else "b")
    settings = {
        "models": [model],
        "draws": 2,
        "display": ["reversed", "source"],
        "reuse": True,
        "provenance": ["preserved", "gated"],
        "fillers": ["A", "B"],
        "batches": ["", "again"],
        "run": tmp_path / "run",
        "resamples": 100,
    }
    costs = routeprism.audit(pools(2), "recent:k=2", "raw", dry_run=True, **settings).costs
    assert not model.asked
    first = routeprism.audit(pools(2), "recent:k=2", "raw", **settings)
    assert len(model.asked) == costs["scripted"].calls
    content = (tmp_path / "run" / "estimates.csv").read_bytes()
    second = routeprism.audit(pools(2), "recent:k=2", "raw", **settings)
    assert len(model.asked) == costs["scripted"].calls
    assert (tmp_path / "run" / "estimates.csv").read_bytes() == content
    assert first.sentences == second.sentences
    arms = {row.filler for row in first.rows if row.experiment == "display" and row.model}
    assert arms == {"A", "B", "A+B"}


def test_an_experiment_can_be_added_to_a_run(pools, scripted, tmp_path: Path) -> None:
    model = scripted(lambda ask: "a")
    settings = {"models": [model], "run": tmp_path / "run", "resamples": 100}
    routeprism.audit(pools(1), "raw", **settings)
    before = len(model.asked)
    audit = routeprism.audit(pools(1), "raw", display=["reversed"], **settings)
    assert len(model.asked) > before
    assert audit.value("H", experiment="display", arm="display", mask="").estimate == 0


@pytest.mark.slow
def test_the_same_bytes_under_every_hash_seed(own_data, tmp_path: Path) -> None:
    records = [
        {"user": user, "id": f"{user}-{at}", "text": f"I like {tree} number{at} best of all"}
        for user in ("ann", "bob", "cid")
        for at, tree in enumerate(("oak", "elm", "ash", "fir"))
    ]
    questions = [
        {
            "user": user,
            "id": f"{user}-q{at}",
            "text": "Which tree do I like best?",
            "options": ["oak", "elm", "ash", "fir"],
            "gold": "a",
            "support": [f"{user}-0"],
        }
        for user in ("ann", "bob", "cid")
        for at in range(2)
    ]
    data = own_data(records, questions)
    tables = []
    for seed in ("0", "1"):
        run = tmp_path / seed
        subprocess.run(
            [
                *(sys.executable, "-c", "from routeprism.cli import main; main()"),
                *("audit", str(data), "--policy", "recent:k=2", "--policy", "lexical"),
                *("--model", "reader", "--draws", "2", "--display", "reversed"),
                *("--display", "source", "--reuse", "--provenance", "preserved"),
                *("--provenance", "gated", "--provenance", "placebo", "--resamples", "200"),
                *("--run", str(run), "--json"),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.DEVNULL,
            check=True,
        )
        tables.append((run / "estimates.csv").read_bytes())
    assert tables[0] == tables[1]
    for name in (b"construction-display", b"serialisation:native-source", b"gated-preserved"):
        assert name in tables[0]


def test_the_command_line_refuses_what_nobody_would_answer(cli) -> None:
    refusals = {
        ("--display", "reversed"): "display needs a model to answer",
        ("--reuse",): "reuse needs a model to answer",
        ("--provenance", "gated"): "provenance applies to answers, and no model answers",
    }
    for option, reason in refusals.items():
        ended = cli("audit", "sample", "--policy", "raw", *option)
        assert ended.code == 2
        assert reason in ended.err
