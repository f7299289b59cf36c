"""The four-condition intervention: does the displaced record matter? (§2.3, §3.2, Appendix F.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from routeprism.answers import Cost
from routeprism.errors import SpecError, nearest
from routeprism.experiments._collection import AnswersByModel, Asking
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._condition_values import CONTRASTS, enter_conditions
from routeprism.experiments._designs import (
    DESIGNS,
    KNOWN_DESIGNS,
    UPDATE,
    DesignDecision,
    DesignName,
    DesignRules,
    decide_designs,
)
from routeprism.experiments._experiment import AnswerSelection, Experiment
from routeprism.experiments._profiles import group_by_condition, make_columns
from routeprism.experiments._restoration_exhibits import (
    chart_restoration,
    restoration_statements,
    tabulate_restoration,
)
from routeprism.experiments._rows import Column, Key, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import DISTINCT, Sheet, Strata, Values, strata_of
from routeprism.labels import (
    ELIGIBILITY,
    STRATA,
    Bundle,
    Design,
    Eligibility,
    Ineligible,
    Presence,
    Update,
)
from routeprism.measures import Alternative, Sums
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Finding, StoredRun
from routeprism.settings import ANSWERS, option
from routeprism.specs import SIZES, check_sizes

__all__ = ["CONTRASTS", "RestorationSettings", "experiment", "restore_records"]

_LEFT_OUT = ("restored-absent", "restored-replacement", "restored-present")
_TESTED: Mapping[str, Alternative] = {"restored-absent": "greater"}
"""Quantities whose difference from zero is a claim about the displaced record."""
_REASONS = frozenset(f"count.{stratum}" for stratum in STRATA)
"""Counts of ineligible pairs, which have no row where there is none."""
BUNDLE_TOKENS = 16_000
"""How many tokens the prompt of a bundle may have by default."""


def restore_records(
    asking: Asking,
    budget: int = BUNDLE_TOKENS,
    designs: tuple[DesignName, ...] = DESIGNS,
    eligibility: Eligibility = "one-fewer",
) -> ComparisonStage:
    """Make the stage that puts displaced records back, against ones without the answer.

    `budget` is how many tokens the prompt of a bundle may have. Only these `designs` are asked;
    eligibility is decided for all, by the rule `eligibility`.
    """
    some = {} if set(designs) == set(DESIGNS) else {"designs": list(designs)}
    return ComparisonStage(
        "restoration",
        asking,
        partial(_compare, DesignRules("", budget, designs, eligibility)),
        _enter,
        _finish,
        {"bundle_tokens": budget, "eligibility": eligibility, **some},
        _list_decisions,
        _check_labels,
        _leave_open,
    )


def _check_labels(traced: Traced) -> None:
    if not traced.labels:
        raise SpecError(
            f"benchmark '{traced.benchmark.name}' has no support labels: restoration needs to "
            f"know which records carry the answer"
        )


def _leave_open(traced: Traced, costs: dict[str, Cost]) -> dict[str, Cost]:
    """Return no numbers where the pairs to restore depend on what an unbuilt memory loses."""
    policies = sum(policy.name in traced.assumed for policy in traced.policies)
    if not policies:
        return costs
    questions = sum(len(case.questions) for case in traced.benchmark.cases)
    pairs = questions * len(traced.schedules) * policies
    note = f"which of {pairs:,} pairs can be restored is not known before the memory is built"
    return {
        name: replace(cost, calls=None, input_tokens=None, cost=None, most=None, note=note)
        for name, cost in costs.items()
    }


def _compare(
    rules: DesignRules, traced: Traced, asking: Asking, case: Case, stored: StoredRun
) -> CaseComparisons:
    sources = traced.benchmark.updates
    updates = traced.labels if traced.labels in sources else next(iter(sources), "")
    rules = replace(rules, labels=traced.labels, updates=updates)
    routes = traced.policies, traced.schedules
    decided = list(decide_designs(case, stored, *routes, asking.manner, rules))
    comparisons = [comparison for _, designed in decided for comparison in designed]
    return CaseComparisons(case, comparisons, [decision for decision, _ in decided])


def _enter(
    traced: Traced,
    asking: Asking,
    item: CaseComparisons,
    answers: AnswersByModel,
    sums: Sums[Key],
) -> None:
    """Enter eligibility, and accuracies and contrasts for each filler and over all of them."""
    case, strata = item.case, strata_of(item.case, traced.masks)
    _enter_eligibility(strata, item.detail, traced, sums)
    for (policy, schedule, arm), decisions in group_by_condition(item.comparisons).items():
        place = {"policy": policy, "schedule": schedule, "arm": arm, "labels": traced.labels}
        for template, fillers, outcomes in make_columns("restoration", asking, case, answers):
            sheet = Sheet(sums, strata, template._replace(**place))
            comparisons = [
                [decisions[q.id, filler] for filler in fillers if (q.id, filler) in decisions]
                for q in case.questions
            ]
            enter_conditions(case, sheet, comparisons, len(fillers), outcomes)


def _finish(collection: Gathered) -> StageResult:
    duplicates = collection.has_duplicate_options
    every = estimate_rows(collection.tally, collection.setting, left_out=_LEFT_OUT, tested=_TESTED)
    rows = [
        row
        for row in every
        if (row.estimate or row.quantity not in _REASONS)
        and (duplicates or not row.mask.endswith(DISTINCT))  # else it repeats the plain rows
    ]
    unmatched = collection.list_reasons("{number} eligible designs are left out: {reason}")
    return collection.conclude("restoration", rows, restoration_statements, unmatched)


_RECORDED: Mapping[type, Mapping[str, str]] = {
    Ineligible: {"stratum": "stratum", "reason": "reason"},
    Bundle: {"missing": "missing", "absent": "absent_schedule"},
    Update: {n: n for n in ("current", "outdated", "control", "replacement", "schedule")},
    Presence: {
        "support": "support",
        "present": "present_schedule",
        "absent": "absent_schedule",
    },
    Design: {
        **{n: n for n in ("support", "removed", "replacement")},
        "present": "present_schedule",
        "absent": "absent_schedule",
    },
}
"""What a run records of each decision: the name, and the attribute that it is read from."""


def _list_decisions(traced: Traced, item: CaseComparisons) -> Iterator[Finding]:
    """List for every pair which records are exchanged, or why none is."""
    for decision in item.detail:
        outcomes = {
            name: outcome
            for name in ("single", "bundle", "swap", "presence", "update")
            if (outcome := getattr(decision, name)) is not None
        }
        yield Finding(
            name="eligibility",
            value={
                name: {key: getattr(o, source) for key, source in _RECORDED[type(o)].items()}
                for name, o in outcomes.items()
            },
            policy=decision.policy,
            interface=traced.setting.interfaces.get(decision.policy, ""),
            schedule=decision.schedule,
            user=item.case.pool.user,
            question=decision.question.id,
        )


def _enter_eligibility(
    strata: Strata, decisions: Sequence[DesignDecision], traced: Traced, sums: Sums[Key]
) -> None:
    """Count the eligible pairs, under each rule as well, and the others by their reason."""
    grouped: dict[tuple[str, str], list[DesignDecision]] = {}
    for decision in decisions:
        grouped.setdefault((decision.policy, decision.schedule), []).append(decision)
    for (policy, schedule), of_route in grouped.items():
        sheet = Sheet(
            sums, strata, Column("restoration", "", policy, schedule, labels=traced.labels)
        )
        counts: dict[tuple[str, str], Values] = {}
        for arm in of_route[0].by_arm:
            reasons = [_find_reason(decision.by_arm[arm]) for decision in of_route]
            for name in ("eligible", *STRATA):
                counts[arm, name] = [None if r is None else float(r == name) for r in reasons]
        for rule in ELIGIBILITY:
            counts["", f"eligible.{rule}"] = [float(rule in outcome.rules) for outcome in of_route]
        for (arm, name), flags in sorted(counts.items()):
            sheet.put(f"count.{name}", flags, arm=arm)


def _find_reason(outcome: object) -> str | None:
    """Name why a design is ineligible, or `eligible`; None where the design does not apply."""
    if outcome is None:
        return None
    return outcome.stratum if isinstance(outcome, Ineligible) else "eligible"


@dataclass(frozen=True, slots=True)
class RestorationSettings:
    """Options for restoration."""

    designs: Sequence[DesignName] = option(
        (),
        help="Restore only this design: single, bundle or identity-swap. Two more designs run "
        "only if you name them: presence, and update (the old and the new record of a changed "
        "fact). Repeat for several.",
        group=ANSWERS,
        flag="--design",
    )
    eligibility: Eligibility = option(
        "one-fewer",
        help="Evidence that the route without the record may still show: none, or one-fewer than "
        "the route that has it.",
        group=ANSWERS,
    )
    bundle_tokens: int = option(
        BUNDLE_TOKENS,
        help="Maximum number of tokens in the prompt of a bundle.",
        group=ANSWERS,
        minimum=SIZES["bundle_tokens"][0],
        maximum=SIZES["bundle_tokens"][1],
    )


_COUNTED_BESIDE = {
    "right": (),
    "same_as_present": ("present",),
    "changed_from_absent": ("absent",),
}
"""Counts of a condition's answers, with the condition that they are compared with."""


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    design = row.arm.partition(":")[0]
    arm = design if design in KNOWN_DESIGNS else ""
    return AnswerSelection("restoration", _sides_read(row), (arm,))


def _sides_read(row: EstimateRow) -> tuple[str, ...]:
    """Name the conditions whose answers a quantity reads; empty for all of them."""
    quantity = row.quantity
    for limit in ("loo_min.", "loo_max."):
        quantity = quantity.removeprefix(limit)
    for prefix in ("accuracy.", "outdated_answer."):
        if quantity.startswith(prefix):
            return (quantity.removeprefix(prefix),)
    difference = row.arm.rpartition(":")[2] if quantity == "H" else quantity
    for first, second in CONTRASTS:
        if difference == f"{first}-{second}":
            return first, second
    if quantity in ("count.identical_prompts", "count.prompt_pairs"):
        return "present", "restored"
    counter, _, name = quantity.removeprefix("count.").partition(".")
    return (name, *_COUNTED_BESIDE[counter]) if counter in _COUNTED_BESIDE else ()


def _stage(
    settings: RestorationSettings, asking: Asking | None, benchmark: Benchmark
) -> ComparisonStage:
    check_sizes(bundle_tokens=settings.bundle_tokens)
    for name in settings.designs:
        if name not in KNOWN_DESIGNS:
            raise SpecError(f"There is no design '{name}'. {nearest(name, KNOWN_DESIGNS)}")
    if settings.eligibility not in ELIGIBILITY:
        raise SpecError(
            f"Expected eligibility to be {' or '.join(ELIGIBILITY)} but got "
            f"'{settings.eligibility}'"
        )
    if asking is None:
        raise SpecError("restoration needs at least one model to answer")
    designs = tuple(settings.designs) or DESIGNS
    if UPDATE in designs and not benchmark.updates:
        raise SpecError(
            f"benchmark '{benchmark.name}' has no labels of outdated evidence, which the design "
            f"'{UPDATE}' reads; see docs/updates.md"
        )
    return restore_records(asking, settings.bundle_tokens, designs, settings.eligibility)


experiment = Experiment(
    name="restoration",
    title="Restoration",
    summary="Put displaced records back, against matched records that do not carry the answer.",
    commands=("restore",),
    rank=60,
    settings=RestorationSettings,
    stage=_stage,
    configuration=("bundle_tokens",),
    masks=(DISTINCT,),
    tables=tabulate_restoration,
    charts=chart_restoration,
    place=lambda names: {"condition": names.side, "design": names.condition or "single"},
    answers_behind=_answers_behind,
)
