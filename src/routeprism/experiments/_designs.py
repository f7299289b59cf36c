"""Designs of a restoration: prompts that differ only in the records that they show."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

from routeprism.answers import Comparison, find_records, match_prompts
from routeprism.experiments._collection import Manner
from routeprism.experiments._options import DesignName
from routeprism.experiments._route_comparisons import RoutePair, draft_question, list_route_pairs
from routeprism.labels import (
    ELIGIBILITY,
    Bundle,
    Design,
    Eligibility,
    Exposed,
    Ineligible,
    Presence,
    Update,
    bundle,
    design,
    presence_design,
    swap_design,
    update_design,
)
from routeprism.orders import Schedule, name_reference
from routeprism.policies import (
    TEXTS,
    Block,
    Policy,
    Text,
    interface_of,
    record_block,
    unwrap_policy,
)
from routeprism.prompts import Filler
from routeprism.records import Case, Pool, Question, Record
from routeprism.runs import StoredExposure, StoredRun

"""What is exchanged: one displaced record, several, one support record for another, or nothing."""
KNOWN_DESIGNS: tuple[DesignName, ...] = get_args(DesignName)
DESIGNS: tuple[DesignName, ...] = ("single", "bundle", "identity-swap")
"""The designs that are asked unless some are named."""
UPDATE = "update"
"""The arm of pairs that show the old value of a changed fact alone."""
PRESENCE = "presence"
"""The arm of pairs that are asked under Present and Absent alone."""
SWAP = "identity-swap"
"""The arm of pairs in which one supporting record stands in another's place."""


Outcome = Design | Bundle | Presence | Update | Ineligible
"""The conditions of a design, or why a pair is not eligible for it."""


@dataclass(frozen=True, slots=True)
class DesignDecision:
    """Which designs one pair is eligible for, decided before any answer."""

    question: Question
    policy: str
    schedule: str
    outcomes: Mapping[str, Outcome]
    """Arm in the estimates → the outcome of its design; a design that does not apply has none."""
    rules: frozenset[Eligibility] = frozenset()
    """The eligibility rules that allow the single-record design, whichever rule the run uses."""

    def describe(self) -> dict[str, dict[str, object]]:
        """Describe for the store which records each design exchanges, or why it exchanges none."""
        described: dict[str, dict[str, object]] = {}
        for arm, name in _STORED_ARMS.items():
            if (outcome := self.outcomes.get(arm)) is not None:
                attributes = _STORED[type(outcome)]
                described[name] = {key: getattr(outcome, at) for key, at in attributes.items()}
        return described


_STORED_ARMS = {
    "": "single",
    "bundle": "bundle",
    SWAP: "swap",
    PRESENCE: "presence",
    UPDATE: "update",
}
_ROUTES = {"present": "present_schedule", "absent": "absent_schedule"}
_STORED: Mapping[type, Mapping[str, str]] = {
    Ineligible: {name: name for name in ("stratum", "reason")},
    Bundle: {"missing": "missing", "absent": "absent_schedule"},
    Update: {n: n for n in ("current", "outdated", "control", "replacement", "schedule")},
    Presence: {"support": "support", **_ROUTES},
    Design: {**{n: n for n in ("support", "removed", "replacement")}, **_ROUTES},
}
"""What a run stores of each outcome: the name, and the attribute that it is read from."""


@dataclass(frozen=True, slots=True)
class DesignRules:
    """The rules by which pairs are decided, and the designs that are asked."""

    labels: str
    budget: int
    """How many tokens the prompt of a bundle may have."""
    designs: Collection[DesignName] = DESIGNS
    eligibility: Eligibility = "one-fewer"
    """The rule for the single-record design."""
    updates: str = ""
    """The label source of outdated evidence."""


def decide_designs(
    case: Case,
    stored: StoredRun,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
    rules: DesignRules,
) -> Iterator[tuple[DesignDecision, list[Comparison]]]:
    """Decide about every pair of a case, and make the prompts of those that are eligible."""
    user = case.pool.user
    places: dict[tuple[str, str], Mapping[str, str]] = {}
    rankings: dict[tuple[str, str], Sequence[str] | None] = {}
    for pair in list_route_pairs(case, stored, policies, schedules):
        policy, question = pair.policy, pair.question
        interface = interface_of(policy)
        key = (policy.name, question.id)
        if key not in rankings:
            rankings = {key: _rank_records(policy, case.pool, question)}
        sides = []
        reference = name_reference(pair.schedule.name)
        for name, exposure in ((reference, pair.forward), (pair.schedule.name, pair.route)):
            if (policy.name, name) not in places:
                stand_ins = stored.stand_ins(policy.name, interface, name, user)
                places[policy.name, name] = stand_ins
            sides.append(Exposed(name, exposure.sources, places[policy.name, name]))
        render = _find_renderer(policy, case.pool, (pair.forward, pair.route))
        decision = _decide(case.pool, pair, sides, rankings[key], rules)
        comparisons: list[Comparison] = []
        if render is None:
            decision = _refuse_rewritten(decision)
        else:
            comparisons = [
                comparison
                for filler in manner.fillers
                for comparison in _compare_conditions(
                    decision, case.pool, render, manner, filler, rules
                )
            ]
        yield decision, comparisons


def _decide(
    pool: Pool,
    pair: RoutePair,
    sides: Sequence[Exposed],
    candidates: Sequence[str] | None,
    rules: DesignRules,
) -> DesignDecision:
    """Decide which designs a pair is eligible for, by labels and exposed sources alone."""
    support = pair.question.labels.get(rules.labels, frozenset())
    by_rule = {
        rule: design(pool.ids, support, *sides, candidates=candidates, eligibility=rule)
        for rule in ELIGIBILITY
    }
    outcomes: dict[str, Outcome | None] = {
        "": by_rule[rules.eligibility],
        SWAP: swap_design(pool.ids, support, *sides, candidates=candidates),
    }
    if PRESENCE in rules.designs:
        rule = rules.eligibility
        outcomes[PRESENCE] = presence_design(pool.ids, support, *sides, eligibility=rule)
    if UPDATE in rules.designs:
        current, stale = (
            labels.get(rules.updates, frozenset())
            for labels in (pair.question.labels, pair.question.stale)
        )
        outcomes[UPDATE] = update_design(pool.ids, current, stale, *sides, candidates=candidates)
    outcomes["bundle"] = bundle(pool.ids, support, *sides)
    return DesignDecision(
        pair.question,
        pair.policy.name,
        pair.schedule.name,
        {arm: outcome for arm, outcome in outcomes.items() if outcome is not None},
        frozenset(rule for rule, outcome in by_rule.items() if isinstance(outcome, Design)),
    )


def _refuse_rewritten(decision: DesignDecision) -> DesignDecision:
    """Refuse every design of a pair whose policy does not show whole records."""
    outcomes = {
        arm: outcome if isinstance(outcome, Ineligible) else Ineligible("rewritten")
        for arm, outcome in decision.outcomes.items()
    }
    return replace(decision, outcomes=outcomes, rules=frozenset())


def _rank_records(policy: Policy, pool: Pool, question: Question) -> Sequence[str] | None:
    """Order the pool as the policy's interface ranks it for the question, if it does (O.5)."""
    rank = getattr(_interface(policy), "ranked", None)
    if not callable(rank):
        return None
    return [record.id for record in rank(pool.records, question.text)]


def _list_conditions(
    decision: DesignDecision, designs: Collection[DesignName]
) -> Iterator[tuple[str, Mapping[str, Sequence[str]]]]:
    """List the designs to ask: the arm, and the records that each condition shows."""
    for arm, outcome in decision.outcomes.items():
        if isinstance(outcome, Ineligible) or (arm or "single") not in designs:
            continue
        if isinstance(outcome, Bundle):
            *steps, last = outcome.steps
            yield (
                arm,
                {
                    "absent": outcome.absent,
                    **{f"restored:{at}": ids for at, ids in enumerate(steps, start=1)},
                    "restored": last,
                    "replacement": outcome.replacement,
                },
            )
        else:
            yield arm, dict(outcome.conditions.items())


def _compare_conditions(
    decision: DesignDecision,
    pool: Pool,
    render: Callable[[Record], Block],
    manner: Manner,
    filler: Filler,
    rules: DesignRules,
) -> Iterator[Comparison]:
    """Make the matched prompts of each design under one filler."""
    records = {record.id: record for record in pool.records}
    for arm, conditions in _list_conditions(decision, rules.designs):
        blocks = [[render(records[record]) for record in ids] for ids in conditions.values()]
        drafts = [draft_question(exposure, decision.question, pool, manner) for exposure in blocks]
        prompts, reason = match_prompts(drafts, manner.control, filler)
        longest = max((prompt.tokens for prompt in prompts), default=0)
        if arm == "bundle" and longest > rules.budget:
            prompts, reason = (), f"a bundle's prompt passes the declared {rules.budget} tokens"
        yield Comparison(
            "restoration",
            decision.question,
            decision.policy,
            decision.schedule,
            filler,
            tuple(conditions),
            prompts,
            arm,
            reason,
            records=tuple(find_records(*both) for both in zip(prompts, blocks, strict=False)),
        )


def _find_renderer(
    policy: Policy, pool: Pool, exposures: Sequence[StoredExposure]
) -> Callable[[Record], Block] | None:
    """Find how a policy shows whole records; None where it shows anything else.

    Its interface knows; records of one role look the same with their user turns and complete.
    """
    records = {record.id: record for record in pool.records}
    own: Text = getattr(_interface(policy), "text", "user")
    for text in dict.fromkeys((own, *TEXTS)):
        render = partial(record_block, text=text)
        if all(
            len(sources) == 1 and render(records[next(iter(sources))]).text == words
            for exposure in exposures
            for _, words, sources in exposure.blocks
        ):
            return render
    return None


def _interface(policy: Policy) -> object:
    """Return what a policy of whole records exposes through; None for any other policy."""
    return getattr(unwrap_policy(policy), "interface", None)
