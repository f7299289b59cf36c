"""Cases of lost evidence: each record that a question loses in some order, with a simple order.

A case counts once for each arrival model or schedule, however many of its orders lose the record.
Its witness is the losing order with the fewest inversions.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from routeprism.orders import FORWARD, ONE_BY_ONE, Procedure
from routeprism.policies import Policy
from routeprism.records import Case
from routeprism.routes._interventions import Rebuilds, find_cause, read_likely_cause
from routeprism.routes._trace import Pair, Route, pair_routes
from routeprism.runs import CauseKind, Loss

LossLevel = Literal["record", "display", "state"]
"""What a case is about: a lost record, what is shown without one, or internal state alone."""
LossPlace = tuple[str, str, LossLevel]
"""Policy, schedule and level of cases that are counted together."""
_CaseKey = tuple[str, str, str, str]

MOST_TESTED = 3
"""How many cases of a pool are tested for each memory and arrival model or schedule."""
_LONGEST_ORDER = 500
"""Records of a pool up to which the losing order of each case is stored."""


@dataclass(frozen=True, slots=True)
class LostCase:
    """What a question loses under an arrival model or schedule."""

    schedule: str
    cause: CauseKind
    """What differs if no record is lost; `untested` for a lost record."""
    record: str
    """The lost record; empty if none is lost."""
    pair: Pair
    """The reference and the losing order."""

    @property
    def place(self) -> LossPlace:
        """What it is counted under."""
        level = find_level(self.cause, has_record=bool(self.record))
        return self.pair.route.policy, self.schedule, level

    @property
    def overlaps(self) -> bool:
        """Whether writes overlapped on one of the two routes."""
        names = (self.pair.forward.procedure, self.pair.route.procedure)
        return any(name.partition(":")[0] == "overlap" for name in names)

    @property
    def is_absence(self) -> bool:
        """Whether source order itself does not show the record."""
        return self.pair.route is self.pair.forward


def find_level(cause: CauseKind, *, has_record: bool) -> LossLevel:
    """Return the level of a case, from its cause if no record is lost."""
    if has_record:
        return "record"
    return "state" if cause == "state only" else "display"


def list_lost(pair: Pair, labels: str) -> list[str]:
    """List the evidence that the forward route shows and the other route does not.

    Without labels, every record that only the forward route shows counts.
    """
    lost = pair.forward_exposure.sources - pair.route_exposure.sources
    support = pair.question.labels.get(labels)
    return sorted(lost & support if support else lost)


def list_cases(routes: Sequence[Route], labels: str, schedule: str = "") -> list[LostCase]:
    """List what the questions of a pool lose, under the name of an arrival model if one is given.

    A question that loses a record in one order is not counted again for a different text.
    """
    cases: dict[_CaseKey, tuple[tuple[int, tuple[int, ...]], LostCase]] = {}
    disorder: dict[tuple[int, ...], int] = {}
    for pair in pair_routes(routes):
        name, order = schedule or pair.route.schedule, pair.route.order
        lost = list_lost(pair, labels)
        display = None if lost else _explain_display(pair)
        if not lost and display is None:
            continue
        if order not in disorder:
            disorder[order] = _count_inversions(order)
        for record in lost or [""]:
            key = (pair.route.policy, name, pair.question.id, record)
            witness = (disorder[order], order), LostCase(name, display or "untested", record, pair)
            cases[key] = min(cases.get(key, witness), witness, key=lambda item: item[0])
    losing = {key[:3] for key in cases if key[3]}
    return [case for key, (_, case) in cases.items() if key[3] or key[:3] not in losing]


def _count_inversions(order: Sequence[int]) -> int:
    arrived: list[int] = []
    number = 0
    for position in order:
        number += len(arrived) - bisect_right(arrived, position)
        insort(arrived, position)
    return number


def _explain_display(pair: Pair) -> CauseKind | None:
    before, after = pair.forward_exposure, pair.route_exposure
    if before.context_sha256 != after.context_sha256:
        if before.sources != after.sources:
            return None  # records that carry no evidence
        texts = [sorted(block.text for block in side.blocks) for side in (before, after)]
        return "order of blocks" if texts[0] == texts[1] else "rewritten"
    has_signatures = pair.forward.signature is not None and pair.route.signature is not None
    return (
        "state only" if has_signatures and pair.forward.signature != pair.route.signature else None
    )


def list_absences(case: Case, routes: Sequence[Route], labels: str) -> list[LostCase]:
    """List the evidence of a pool that is not shown in source order."""
    return [
        LostCase(FORWARD.name, "untested", record, Pair(question, route, route, exposure, exposure))
        for route in routes
        if route.schedule == FORWARD.name and not route.failed
        for question, exposure in zip(case.questions, route.exposures, strict=True)
        for record in sorted(question.labels.get(labels, frozenset()) - exposure.sources)
    ]


def explain_cases(
    case: Case,
    policies: Sequence[Policy],
    cases: Iterable[LostCase],
    procedures: Mapping[str, Procedure],
) -> Iterator[Loss]:
    """Test a few cases of a pool for each memory and arrival model or schedule."""
    selected = list(_choose_cases(cases))
    for policy in policies:
        own = [lost for lost in selected if lost.pair.route.policy == policy.name]
        queries = dict.fromkeys(lost.pair.question.text for lost in own if lost.record)
        rebuilds = Rebuilds(case, policy, tuple(queries)) if queries else None
        for lost in own:
            loss = _explain_case(lost, rebuilds, procedures)
            yield loss if len(loss.order) <= _LONGEST_ORDER else replace(loss, order=())


def _explain_case(
    lost: LostCase, rebuilds: Rebuilds | None, procedures: Mapping[str, Procedure]
) -> Loss:
    """Test a case; a text that differs needs no test."""
    route, question = lost.pair.route, lost.pair.question
    place = (route.policy, lost.schedule, route.user, question.id)
    if not lost.record or rebuilds is None:
        return Loss(lost.cause, *place, order=route.order)
    likely = read_likely_cause(lost.record, route.events)
    loss = Loss(lost.cause, *place, lost.record, order=route.order, test=likely)
    by_name = {ONE_BY_ONE.name: ONE_BY_ONE, **procedures}
    procedure = by_name.get(route.procedure)
    before = by_name.get(lost.pair.forward.procedure)
    if procedure is None or before is None:
        return loss
    reference = None if lost.is_absence else (lost.pair.forward.order, before)
    return find_cause(rebuilds, loss, question.text, procedure=procedure, reference=reference)


def _choose_cases(cases: Iterable[LostCase]) -> Iterator[LostCase]:
    """Choose the cases to test: lost records first, of different questions first."""
    chosen_cases: Counter[tuple[str, str]] = Counter()
    numbers: Counter[tuple[LossPlace, str]] = Counter()
    ranked = []
    for at, lost in enumerate(cases):
        key = lost.place, lost.pair.question.id
        ranked.append((not lost.record, numbers[key], at, lost))
        numbers[key] += 1
    for _, _, _, lost in sorted(ranked, key=lambda item: item[:3]):
        place = lost.place[:2]
        chosen_cases[place] += 1
        if chosen_cases[place] <= MOST_TESTED:
            yield lost
