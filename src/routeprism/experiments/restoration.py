"""The four-condition intervention: does the displaced record matter? (§2.3, §3.2, Appendix F.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from routeprism.answers import Comparison, Cost
from routeprism.errors import SpecError, nearest
from routeprism.experiments._answer_statements import restoration_statements
from routeprism.experiments._collection import AnswersByModel, Asking, leave_out_silent
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
from routeprism.experiments._experiment import AnswerNames, AnswerSelection, Experiment
from routeprism.experiments._profiles import make_columns
from routeprism.experiments._restoration_exhibits import chart_restoration, tabulate_restoration
from routeprism.experiments._rows import Column, Key, estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import DISTINCT, Strata, enter, strata_of
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
    grouped: dict[tuple[str, str, str], dict[tuple[str, str], Comparison]] = {}
    for comparison in item.comparisons:
        design = (comparison.policy, comparison.schedule, comparison.condition)
        grouped.setdefault(design, {})[comparison.question.id, comparison.filler] = comparison
    for (policy, schedule, arm), decisions in grouped.items():
        for template, fillers, outcomes in make_columns("restoration", asking, case, answers):
            column = template._replace(
                policy=policy, schedule=schedule, arm=arm, labels=traced.labels
            )
            comparisons = [
                [decisions[q.id, filler] for filler in fillers if (q.id, filler) in decisions]
                for q in case.questions
            ]
            enter_conditions(case, strata, column, comparisons, len(fillers), outcomes, sums)


def _finish(collection: Gathered) -> StageResult:
    setting = collection.asking.setting(collection.traced.setting)
    duplicates = collection.has_duplicate_options
    rows = [
        row
        for row in estimate_rows(collection.tally, setting, left_out=_LEFT_OUT, tested=_TESTED)
        if (row.estimate or not _counts(row.quantity))
        and (duplicates or not row.mask.endswith(DISTINCT))  # else it repeats the plain rows
    ]
    unmatched = tuple(
        f"{number} eligible designs are left out: {reason}"
        for reason, number in collection.reasons.items()
    )
    readable, silent = leave_out_silent(rows, collection.outcomes, "restoration")
    statements = (*silent, *restoration_statements(readable))
    return StageResult(rows, statements, (*unmatched, *collection.notes))


def _counts(quantity: str) -> bool:
    return quantity.startswith("count.") and quantity[len("count.") :] in STRATA


def _list_decisions(traced: Traced, item: CaseComparisons) -> Iterator[Finding]:
    """List for every pair which records are exchanged, or why none is."""
    for decision in item.detail:
        outcomes = {
            "single": decision.single,
            "bundle": decision.bundle,
            "swap": decision.swap,
            "presence": decision.presence,
            "update": decision.update,
        }
        yield Finding(
            name="eligibility",
            value={
                name: _describe(outcome)
                for name, outcome in outcomes.items()
                if outcome is not None
            },
            policy=decision.policy,
            interface=traced.setting.interfaces.get(decision.policy, ""),
            schedule=decision.schedule,
            user=item.case.pool.user,
            question=decision.question.id,
        )


def _describe(outcome: Design | Bundle | Presence | Update | Ineligible) -> dict[str, object]:
    if isinstance(outcome, Ineligible):
        return {"stratum": outcome.stratum, "reason": outcome.reason}
    if isinstance(outcome, Bundle):
        return {"missing": list(outcome.missing), "absent": outcome.absent_schedule}
    if isinstance(outcome, Update):
        names = ("current", "outdated", "control", "replacement", "schedule")
        return {name: getattr(outcome, name) for name in names}
    if isinstance(outcome, Presence):
        return {
            "support": outcome.support,
            "present": outcome.present_schedule,
            "absent": outcome.absent_schedule,
        }
    return {
        "support": outcome.support,
        "removed": outcome.removed,
        "replacement": outcome.replacement,
        "present": outcome.present_schedule,
        "absent": outcome.absent_schedule,
    }


def _enter_eligibility(
    strata: Strata, decisions: Sequence[DesignDecision], traced: Traced, sums: Sums[Key]
) -> None:
    """Count the eligible pairs, under each rule as well, and the others by their reason."""
    grouped: dict[tuple[str, str], list[DesignDecision]] = {}
    for decision in decisions:
        grouped.setdefault((decision.policy, decision.schedule), []).append(decision)
    for (policy, schedule), of_route in grouped.items():
        counts: dict[tuple[str, str], list[float | None]] = {}
        for arm in of_route[0].by_arm:
            outcomes = [decision.by_arm[arm] for decision in of_route]
            counts[arm, "eligible"] = [
                None if outcome is None else float(not isinstance(outcome, Ineligible))
                for outcome in outcomes
            ]
            for stratum in STRATA:
                counts[arm, stratum] = [
                    None
                    if outcome is None
                    else float(isinstance(outcome, Ineligible) and outcome.stratum == stratum)
                    for outcome in outcomes
                ]
        for rule in ELIGIBILITY:
            counts["", f"eligible.{rule}"] = [float(rule in outcome.rules) for outcome in of_route]
        for (arm, name), flags in sorted(counts.items()):
            column = Column(
                "restoration", f"count.{name}", policy, schedule, arm=arm, labels=traced.labels
            )
            enter(sums, strata, column, flags)


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


def _place(names: AnswerNames) -> Mapping[str, str]:
    return {"condition": names.side, "design": names.condition or "single"}


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
    place=_place,
    answers_behind=_answers_behind,
)
