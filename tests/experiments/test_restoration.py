"""The four-condition intervention: what it finds, and that only one record is exchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import routeprism
from routeprism.answers import Comparison
from routeprism.errors import RoutePrismError, SpecError
from routeprism.experiments import DesignDecision, DesignRules, Manner, decide_designs
from routeprism.labels import Design
from routeprism.orders import parse_schedule
from routeprism.policies import make_policy, parse_interface, record_block
from routeprism.records import Benchmark, Case, load_benchmark, only_kinds
from routeprism.runs import StoredRun

from ..doubles import Scripted

BETWEEN = "\n\n"


def decided(
    benchmark: Benchmark, specs: list[str], labels: str, run: Path, *, interface: str = ""
) -> Iterator[tuple[Case, DesignDecision, list[Comparison]]]:
    """Trace, then decide about every pair and make the prompts, with both fillers."""
    name = interface or benchmark.interface
    routeprism.audit(benchmark, *specs, interface=name, run=run, resamples=100)
    policies = [make_policy(spec, parse_interface(name)) for spec in specs]
    manner = Manner(1, "aligned", ("A", "B"))
    with StoredRun(run) as stored:
        for case in benchmark.cases:
            if case.questions:
                rules = DesignRules(labels, 16_000)
                result = decide_designs(
                    case, stored, policies, [parse_schedule("replay")], manner, rules
                )
                for verdict, outcome in result:
                    yield case, verdict, outcome


def check_bytes(case: Case, verdict: DesignDecision, first: Comparison) -> None:
    """Apart from the exchanged record and padding, the prompts are the same, byte for byte."""
    design = verdict.outcomes[first.condition]
    assert isinstance(design, Design)
    prompts = dict(first.sides)
    block = {record.id: record_block(record).text for record in case.pool.records}
    frames = set()
    for name, prompt in prompts.items():
        evidence = BETWEEN.join(block[identity] for identity in design.conditions[name])
        assert prompt.evidence == evidence
        before = prompt.text[: prompt.evidence_span.start]
        after = prompt.text[prompt.evidence_span.end :]
        word = {"A": " one", "B": " x"}[first.filler]
        assert before.count(word * 32) == 1  # the same prefix of fillers for all
        frames.add((before, after.replace(word * prompt.padding[1], "", 1)))
    assert len(frames) == 1
    assert len({prompt.tokens for prompt in prompts.values()}) == 1
    assert len({prompt.question_span.token for prompt in prompts.values()}) == 1
    rest = [
        [block[i] for i in design.conditions[name] if i != exchanged]
        for name, exchanged in (
            ("absent", design.removed),
            ("restored", design.support),
            ("replacement", design.replacement),
        )
    ]
    assert rest[0] == rest[1] == rest[2]
    places = [
        design.conditions["restored"].index(design.support),
        design.conditions["replacement"].index(design.replacement),
    ]
    assert places[0] == places[1]


@pytest.mark.slow
def test_every_sample_pair_is_byte_checked(tmp_path: Path) -> None:
    sample = load_benchmark("sample")
    checked = 0
    for case, verdict, result in decided(
        sample, ["focal", "recent:k=3", "utility:k=3", "streaming"], "benchmark", tmp_path / "run"
    ):
        for item in result:
            if item.condition != "bundle":
                check_bytes(case, verdict, item)
                checked += 1
    assert checked > 2 * 40 * 2  # at least 40 pairs each for focal and recent, two fillers


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("interface", "eligible"),
    [("budget", {"focal": 62, "recent:k=3": 72}), ("all", {"focal": 62, "recent:k=3": 122})],
)
def test_every_personamem_pair_is_byte_checked(
    data: Path, tmp_path: Path, interface: str, eligible: dict[str, int]
) -> None:
    """The counts are this package's own: the published labels are not public."""
    facts = only_kinds(load_benchmark("personamem", data), ["fact-recall"])
    result = dict.fromkeys(eligible, 0)
    for case, verdict, outcome in decided(
        facts, list(eligible), "reference-session", tmp_path / "run", interface=interface
    ):
        result[verdict.policy] += isinstance(verdict.outcomes[""], Design)
        for item in outcome:
            assert item.prompts, item.reason
            check_bytes(case, verdict, item)
    assert result == eligible


@pytest.mark.slow
def test_the_reader_on_the_sample() -> None:
    restoration = routeprism.restore("sample", "focal", "recent:k=3", models=["reader"])
    for policy in ("focal", "recent:k=3"):
        for contrast in ("restored-absent", "restored-replacement"):
            row = restoration.value(contrast, policy=policy, arm="")
            assert row.estimate > 0.4
            assert row.lower > 0
            assert row.flags.startswith("synthetic;embedded")
    same = restoration.value("restored-present", policy="focal", arm="")
    assert same.lower <= 0 <= same.upper
    texts = [s for s in restoration.sentences if "putting the displaced record back recovers" in s]
    assert len(texts) == 2
    assert "labels benchmark" in texts[0]


def test_streaming_is_restored_and_its_identity_swaps_stand_apart() -> None:
    """Counts are the sample's own; a reader that counts words is lost without either record."""
    restoration = routeprism.restore(
        "sample", "streaming", models=["reader"], draws=2, resamples=500
    )
    assert restoration.value("count.eligible", arm="").estimate == 8
    assert restoration.value("restored-absent", arm="").lower > 0
    assert restoration.value("restored-replacement", arm="").lower > 0
    assert restoration.value("count.identity-swap", arm="").estimate == 3
    swaps = restoration.value("count.eligible", arm="identity-swap")
    assert (swaps.estimate, swaps.queries) == (3, 3)
    accuracy = {
        name: restoration.value(f"accuracy.{name}", arm="identity-swap").estimate
        for name in ("present", "absent", "restored", "replacement")
    }
    assert accuracy == {"present": 1, "absent": 1, "restored": 1, "replacement": 0}
    # Right on both routes is the same answer; without either record no answer is the right one.
    for arm, differ in (("present-absent", 0), ("restored-replacement", 1)):
        assert restoration.value("H", arm=f"identity-swap:{arm}").estimate == differ
    assert any(
        "where one record with evidence stands in another's place" in s
        for s in restoration.sentences
    )


@pytest.mark.slow
def test_counts_of_reasons_add_up() -> None:
    restoration = routeprism.restore("sample", "focal", models=["reader"], draws=1, resamples=100)
    counts = [
        row
        for row in restoration.rows
        if row.experiment == "restoration"
        and row.quantity.startswith("count.")
        and not row.model
        and not row.arm
        and row.stratum == "all"
    ]
    by_rule = {row.quantity: row.estimate for row in counts if "eligible." in row.quantity}
    reasons = {row.quantity: row.estimate for row in counts if row.quantity not in by_rule}
    assert sum(reasons.values()) == 165
    assert by_rule["count.eligible.one-fewer"] == reasons["count.eligible"]
    assert {row.queries for row in counts} == {165}
    assert "count.identity-swap" in {row.quantity for row in counts}


def informed_model() -> Scripted:
    """Make a model that knows the answer when a marked record is shown."""
    return Scripted(lambda ask: "a" if "secret" in ask.memory else "b")


def pool(support: list[int], size: int = 6) -> Benchmark:
    """One cluster of records; those of `support` carry the secret."""
    from routeprism.records import Pool, Question, Record

    words = "walnut bread oven kitchen morning"
    cases = []
    for user in ("u0", "u1"):
        records = tuple(
            Record(
                f"{user}r{at}", at, f"{words} {'secret' if at in support else 'plain'} {at}{user}"
            )
            for at in range(size)
        )
        question = Question(
            f"{user}q",
            user,
            "Which tree?",
            ("oak", "elm"),
            "a",
            labels={"benchmark": frozenset(f"{user}r{at}" for at in support)},
        )
        cases.append(Case(Pool(user, records), (question,)))
    return Benchmark("tiny", tuple(cases), "0" * 64, labels=("benchmark",), interface="all")


def test_the_four_conditions_by_hand() -> None:
    model = informed_model()
    restoration = routeprism.restore(pool([0]), "focal", models=[model], draws=2, resamples=100)
    expected = {
        "accuracy.present": 1,
        "accuracy.absent": 0,
        "accuracy.restored": 1,
        "accuracy.replacement": 0,
        "restored-absent": 1,
        "restored-replacement": 1,
        "restored-present": 0,
        "present-absent": 1,
        "replacement-absent": 0,
        "loo_min.restored-absent": 1,
    }
    got = {name: restoration.value(name, arm="").estimate for name in expected}
    assert got == expected
    assert restoration.value("H", arm="restored-absent", experiment="restoration").estimate == 1
    # Present and Restored are the same prompt here, and yet no draw is shared.
    assert restoration.value("count.identical_prompts", arm="present-restored").estimate == 2
    assert restoration.value("count.prompt_pairs", arm="present-restored").estimate == 2
    # Two users, two draws each: right with the evidence, wrong and the other letter without.
    counted = {
        name: [
            restoration.value(f"count.{count}.{name}", arm="").estimate
            for count in ("right", "same_as_present", "changed_from_absent")
        ]
        for name in ("present", "absent", "restored", "replacement")
    }
    assert counted == {
        "present": [4, 4, 4],
        "absent": [0, 0, 0],
        "restored": [4, 4, 4],
        "replacement": [0, 0, 0],
    }
    draws = sorted(ask.draw for ask in model.asked if "u0" in ask.memory)
    assert draws == [0, 1, 2, 3, 4, 5, 6, 7]


def test_the_eligibility_rule_decides_whether_absent_may_show_support(tmp_path: Path) -> None:
    """recent:k=4 of six shows r2…r5 forward, r0…r3 on replay; r0 and r2 support the answer."""
    values = {
        rule: routeprism.restore(
            pool([0, 2]),
            "recent:k=4",
            models=[informed_model()],
            designs=["single"],
            eligibility=rule,
            run=tmp_path / rule,
            resamples=100,
        )
        for rule in ("one-fewer", "none")
    }
    counts = {
        rule: [
            audit.value(f"count.{name}", arm="").estimate
            for name in ("eligible", "eligible.none", "eligible.one-fewer")
        ]
        for rule, audit in values.items()
    }
    assert counts == {"one-fewer": [2, 0, 2], "none": [0, 0, 2]}
    assert values["none"].value("count.support-left", arm="").estimate == 2
    # Absent still shows r2, and so its answers are right.
    assert values["one-fewer"].value("accuracy.absent", arm="").estimate == 1
    assert not [row for row in values["none"].rows if row.quantity == "accuracy.absent"]
    text = "2 of 2 pairs are eligible (0 by the rule none, 2 by the rule one-fewer)"
    assert any(text in sentence for sentence in values["one-fewer"].sentences)
    for rule in values:
        result = json.loads((tmp_path / rule / "manifest.json").read_text())["configuration"]
        assert result["eligibility"] == rule


def test_restoration_without_duplicate_options_within_a_mask() -> None:
    """Appendix C.6: the reduced restoration set of the primary questions."""
    from dataclasses import replace

    plain = pool([0])
    first, second = plain.cases
    twins = tuple(replace(q, options=("oak", "oak")) for q in first.questions)
    mixed = replace(plain, cases=(replace(first, questions=twins), second))
    restoration = routeprism.restore(
        mixed, "focal", models=[informed_model()], masks={"primary": {"u0q", "u1q"}}, resamples=100
    )
    for quantity, value in (("accuracy.restored", 1), ("restored-absent", 1)):
        row = restoration.value(quantity, arm="", mask="primary:distinct-options")
        assert (row.estimate, row.queries) == (value, 1)
    assert restoration.value("restored-absent", arm="", mask="primary").queries == 2
    assert restoration.value("loo_min.restored-absent", arm="", mask="primary").estimate == 1


def test_another_eligibility_rule_is_another_run(tmp_path: Path) -> None:
    routeprism.restore(pool([0]), "focal", models=[informed_model()], run=tmp_path, resamples=100)
    with pytest.raises(RoutePrismError, match="eligibility"):
        routeprism.restore(
            pool([0]),
            "focal",
            models=[informed_model()],
            eligibility="none",
            run=tmp_path,
            resamples=100,
        )
    with pytest.raises(SpecError, match="Expected eligibility to be none or one-fewer but got 'x'"):
        routeprism.restore(pool([0]), "focal", models=[informed_model()], eligibility="x")  # type: ignore[arg-type]


def test_two_conditions_need_no_replacement() -> None:
    """Each of the two users has two records; one of them supports the answer."""
    restoration = routeprism.restore(
        pool([0], size=2), "recent:k=1", models=["reader"], designs=["presence"], draws=1,
        resamples=100,
    )  # fmt: skip
    rows = {(row.quantity, row.arm): row for row in restoration.rows if row.stratum == "all"}
    assert rows["count.eligible", "presence"].estimate == 2
    # With two records there is none that could be put in: four conditions are not possible.
    assert rows["count.no-replacement", ""].estimate == 2
    assert ("accuracy.restored", "presence") not in rows
    display, losses = (
        rows[f"accuracy.{name}", "presence"].estimate for name in ("present", "absent")
    )
    assert display is not None and losses is not None
    assert rows["present-absent", "presence"].estimate == display - losses
    assert ("H", "presence:present-absent") in rows
    assert any(
        "the route that shows the displaced record gains" in sentence
        for sentence in restoration.sentences
    )


@pytest.mark.slow
def test_two_conditions_are_asked_only_if_named() -> None:
    restoration = routeprism.restore("sample", "focal", models=["reader"], draws=1, resamples=100)
    assert not [row for row in restoration.rows if row.arm.startswith("presence")]


def test_bundles_show_the_dose_response() -> None:
    # recent:k=2 keeps r4 r5 forward and r0 r1 on replay; all of r0 r1 is missing forward.
    restoration = routeprism.restore(
        pool([0, 1]), "recent:k=2", models=[informed_model()], resamples=100
    )
    assert restoration.value("count.eligible", arm="bundle").estimate == 2
    assert restoration.value("count.several-records", arm="").estimate == 2
    accuracies = {
        name: restoration.value(f"accuracy.{name}", arm="bundle").estimate
        for name in ("absent", "restored:1", "restored", "replacement")
    }
    assert accuracies == {"absent": 0, "restored:1": 1, "restored": 1, "replacement": 0}


def test_a_bundle_over_its_budget_is_left_out_with_the_reason() -> None:
    restoration = routeprism.restore(
        pool([0, 1]), "recent:k=2", models=[informed_model()], bundle_tokens=20, resamples=100
    )
    assert not [row for row in restoration.rows if row.quantity == "accuracy.absent"]
    assert any(
        "2 eligible designs are left out: a bundle's prompt passes" in n for n in restoration.notes
    )


def test_policies_that_show_no_whole_records_are_ineligible() -> None:
    restoration = routeprism.restore(
        pool([0]), "lexical:k=1", models=[informed_model()], resamples=100
    )
    rows = {
        row.quantity: row.estimate for row in restoration.rows if row.experiment == "restoration"
    }
    assert rows["count.eligible"] == 0


def test_restoration_needs_labels_and_a_model() -> None:
    from dataclasses import replace

    bare = replace(pool([0]), labels=())
    with pytest.raises(SpecError, match="has no support labels"):
        routeprism.restore(bare, "focal", models=[informed_model()], resamples=100)
    with pytest.raises(SpecError, match="at least one model"):
        routeprism.restore(pool([0]), "focal", models=[])


def test_audit_localises_changes_of_support() -> None:
    model = informed_model()
    audit = routeprism.audit(pool([0]), "focal", models=[model], draws=2, resamples=100)
    changed = audit.value("H", arm="support-changed")
    assert (changed.estimate, changed.queries, changed.labels) == (1, 2, "benchmark")
    assert audit.value("count.support_loss", experiment="support").estimate == 2
    assert audit.value("count.answer_change", experiment="support").estimate == 2
    assert audit.value("J_T").estimate == 0


def test_masks_cut_the_same_answers_without_asking_again(tmp_path: Path) -> None:
    model = informed_model()
    run = tmp_path / "run"
    routeprism.restore(pool([0]), "focal", models=[model], run=run, resamples=100)
    number = len(model.asked)
    restoration = routeprism.restore(
        pool([0]), "focal", models=[model], run=run, masks={"primary": {"u0q"}}, resamples=100
    )
    assert len(model.asked) == number
    sizes = {
        mask: restoration.value("restored-absent", arm="", mask=mask).queries
        for mask in ("", "primary", "outside-primary")
    }
    assert sizes == {"": 2, "primary": 1, "outside-primary": 1}
    with pytest.raises(SpecError, match="a mask cannot be called 'outside-x'"):
        routeprism.audit(pool([0]), "focal", masks={"outside-x": set()})
