"""The four-condition intervention: does the displaced record matter? (§2.3, §3.2, Appendix F.3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from routeprism.answers import Comparison, Cost
from routeprism.errors import SpecError, nearest
from routeprism.experiments._collection import Answers, Asking
from routeprism.experiments._comparison_stage import CaseComparisons, ComparisonStage, Gathered
from routeprism.experiments._designs import (
    DESIGNS,
    KNOWN_DESIGNS,
    PRESENCE,
    SWAP,
    UPDATE,
    DesignDecision,
    DesignRules,
    decide_designs,
)
from routeprism.experiments._experiment import AnswerSelection, Experiment
from routeprism.experiments._options import BUNDLE_TOKENS, DesignName, RestorationSettings
from routeprism.experiments._profiles import (
    Groups,
    PoolAnswers,
    Read,
    add_groups,
    average_groups,
)
from routeprism.experiments._restoration_exhibits import (
    chart_restoration,
    restoration_statements,
    tabulate_restoration,
)
from routeprism.experiments._rows import estimate_rows
from routeprism.experiments._stages import StageResult, Traced
from routeprism.experiments._strata import DISTINCT, Sheet, Values, distinct_options, signed
from routeprism.labels import (
    ELIGIBILITY,
    STRATA,
    Eligibility,
    Ineligible,
)
from routeprism.measures import cross
from routeprism.quantities import find_quantity
from routeprism.records import Benchmark, Case
from routeprism.runs import EstimateRow, Finding, StoredRun
from routeprism.specs import check_sizes

_LEFT_OUT = ("restored-absent", "restored-replacement", "restored-present")
_REASONS = frozenset(f"count.{stratum}" for stratum in STRATA)
"""Counts of ineligible pairs, which have no row where there is none."""
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


def _enter(pool: PoolAnswers) -> None:
    """Add eligibility, and accuracies and contrasts for each filler and over all of them."""
    _enter_eligibility(pool)
    for (policy, schedule, arm), comparisons in pool.group().items():
        place = {"policy": policy, "schedule": schedule, "arm": arm, "labels": pool.traced.labels}
        for template, fillers, answers in pool.make_sheets("restoration"):
            groups = pool.select(comparisons, fillers)
            enter_conditions(pool.case, template.at(**place), groups, answers)


CONTRASTS = (
    ("restored", "absent"),
    ("restored", "replacement"),
    ("restored", "present"),
    ("present", "absent"),
    ("replacement", "absent"),
    ("both", "stale"),
    ("neither", "stale"),
    ("current", "stale"),
    ("current", "both"),
    ("current", "neither"),
)
"""The paired differences of accuracy, first minus second."""


def enter_conditions(case: Case, sheet: Sheet, groups: Groups, answers: Answers) -> None:
    """Add one design's accuracies, their contrasts, disagreement and prompt identity.

    Accuracies and contrasts are also entered without questions that have duplicate options (C.6).
    """

    def put(quantity: str, values: Values) -> None:
        sheet.put(quantity, values)
        sheet.put(quantity, distinct_options(case, values), mask=DISTINCT)

    arm = sheet.column.arm
    accuracy: dict[str, Values] = {}
    names = list(dict.fromkeys(name for group in groups for c in group for name in c.names))
    for name in names:
        accuracy[name] = average_groups(groups, partial(_accuracy, answers, name))
        put(f"accuracy.{name}", accuracy[name])
        if arm == UPDATE:
            outdated = average_groups(groups, partial(_outdated, answers, name))
            put(f"outdated_answer.{name}", outdated)
    for first, second in CONTRASTS:
        if first not in accuracy or second not in accuracy:
            continue
        put(f"{first}-{second}", signed([(1, accuracy[first]), (-1, accuracy[second])]))
        if arm in ("", SWAP, PRESENCE, UPDATE):
            differ = average_groups(groups, partial(_disagreement, answers, first, second))
            sheet.put("H", differ, arm=":".join(filter(None, (arm, f"{first}-{second}"))))
    if not arm:
        _enter_counts(sheet, groups, names, answers)


def _enter_counts(sheet: Sheet, groups: Groups, names: Sequence[str], answers: Answers) -> None:
    """Count equal prompts, and the answers of each condition: right ones, and beside others."""

    def count(quantity: str, read: Read, **place: str) -> None:
        sheet.put(f"count.{quantity}", add_groups(groups, read), **place)

    both = "present-restored"
    count("prompt_pairs", lambda c: 1 if c.prompts else None, arm=both)
    count("identical_prompts", lambda c: _identical(c) if c.prompts else None, arm=both)
    for name in names:
        count(f"right.{name}", partial(_number_right, answers, name))
        count(f"same_as_present.{name}", partial(_number_same, answers, name, "present", True))
        count(f"changed_from_absent.{name}", partial(_number_same, answers, name, "absent", False))


def _find_draws(
    sides: Mapping[Comparison, Sequence[Sequence[Any]]], comparison: Comparison, *names: str
) -> list[Sequence[Any]]:
    """Return the draws of some conditions; nothing if a condition has none."""
    draws = dict(zip(comparison.names, sides.get(comparison, ()), strict=False))
    return [draws[name] for name in names] if all(name in draws for name in names) else []


def _accuracy(answers: Answers, name: str, comparison: Comparison) -> float | None:
    draws = _find_draws(answers.right, comparison, name)
    return sum(draws[0]) / len(draws[0]) if draws else None


def _number_right(answers: Answers, name: str, comparison: Comparison) -> int | None:
    draws = _find_draws(answers.right, comparison, name)
    return sum(draws[0]) if draws else None


def _outdated(answers: Answers, name: str, comparison: Comparison) -> float | None:
    """Return the share of a condition's answers that were once right."""
    question = comparison.question
    draws = _find_draws(answers.symbols, comparison, name) if question.outdated else ()
    return sum(map(question.is_outdated, draws[0])) / len(draws[0]) if draws else None


def _disagreement(
    answers: Answers, first: str, second: str, comparison: Comparison
) -> float | None:
    draws = _find_draws(answers.symbols, comparison, first, second)
    return cross(draws[0], draws[1]) if draws and comparison.question.options else None


def _number_same(
    answers: Answers, name: str, beside: str, is_same: bool, comparison: Comparison
) -> int | None:
    """Count a condition's answers that are, or are not, those of another, draw by draw."""
    draws = _find_draws(answers.symbols, comparison, name, beside)
    if not draws or not comparison.question.options:
        return None
    return sum((first == second) is is_same for first, second in zip(*draws, strict=True))


def _identical(comparison: Comparison) -> bool:
    prompts = dict(comparison.sides)
    return prompts["present"].sha256 == prompts["restored"].sha256


def _finish(collection: Gathered) -> StageResult:
    duplicates = collection.has_duplicate_options
    every = estimate_rows(collection.tally, collection.setting, left_out=_LEFT_OUT, is_tested=True)
    rows = [
        row
        for row in every
        if (row.estimate or row.quantity not in _REASONS)
        and (duplicates or not row.mask.endswith(DISTINCT))  # else it repeats the plain rows
    ]
    unmatched = collection.list_reasons("{number} eligible designs are left out: {reason}")
    return collection.conclude("restoration", rows, restoration_statements, unmatched)


def _list_decisions(traced: Traced, item: CaseComparisons) -> Iterator[Finding]:
    """List for every pair which records are exchanged, or why none is."""
    for decision in item.detail:
        yield Finding(
            name="eligibility",
            value=decision.describe(),
            policy=decision.policy,
            interface=traced.setting.interfaces.get(decision.policy, ""),
            schedule=decision.schedule,
            user=item.case.pool.user,
            question=decision.question.id,
        )


def _enter_eligibility(pool: PoolAnswers) -> None:
    """Count the eligible pairs, under each rule as well, and the others by their reason."""
    grouped: dict[tuple[str, str], list[DesignDecision]] = {}
    for decision in pool.detail:
        grouped.setdefault((decision.policy, decision.schedule), []).append(decision)
    for (policy, schedule), decisions in grouped.items():
        sheet = pool.make_sheet("restoration", policy, schedule, labels=pool.traced.labels)
        counts: dict[tuple[str, str], Values] = {}
        for arm in {arm for decision in decisions for arm in decision.outcomes}:
            reasons = [_find_reason(decision.outcomes.get(arm)) for decision in decisions]
            for name in ("eligible", *STRATA):
                counts[arm, name] = [None if r is None else float(r == name) for r in reasons]
        for rule in ELIGIBILITY:
            counts["", f"eligible.{rule}"] = [float(rule in d.rules) for d in decisions]
        for (arm, name), flags in sorted(counts.items()):
            sheet.put(f"count.{name}", flags, arm=arm)


def _find_reason(outcome: object) -> str | None:
    """Name why a design is ineligible, or `eligible`; None where the design does not apply."""
    if outcome is None:
        return None
    return outcome.stratum if isinstance(outcome, Ineligible) else "eligible"


def _answers_behind(
    row: EstimateRow, configuration: Mapping[str, Any], conditions: Collection[str]
) -> AnswerSelection:
    design = row.arm.partition(":")[0]
    arm = design if design in KNOWN_DESIGNS else ""
    # The arm of a disagreement names the contrast of the conditions that disagree.
    name = row.arm.rpartition(":")[2] if row.quantity == "H" else row.quantity
    return AnswerSelection("restoration", find_quantity(name).sides, (arm,))


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
