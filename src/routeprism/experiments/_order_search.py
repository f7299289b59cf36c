"""Searches over the orders of a pool: the worst one, and the smallest change of an outcome."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import TypeAlias

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.exhibits import name_record, shorten
from routeprism.experiments._observations import Observations, observe_exposure
from routeprism.experiments._order_stale import StaleOutcomes
from routeprism.landscape import (
    Objective,
    OrderBuilds,
    Predicate,
    Reordering,
    RetainedValue,
    WorstOrder,
    describe_reordering,
    shrink_all,
    worst_order,
)
from routeprism.measures import jaccard
from routeprism.orders import ArrivalModel, Order
from routeprism.policies import Exposure, Memory, Policy, interface_of
from routeprism.policies.own import open_memory
from routeprism.records import Case, Pool, Question, Record, read_time
from routeprism.runs import Finding

Outcome: TypeAlias = "str | Callable[[Memory, Question], Hashable]"
"""One of `OUTCOMES`, or a function of a memory and a question."""

STALE_ONLY = "stale-only"
"""The outcome, and the objective, of questions about facts that change."""

OUTCOMES = {
    "support": "whether at least one supporting record is retained",
    "retained": "which records are retained",
    "exposed": "which records the question is shown",
    STALE_ONLY: "whether the question is shown outdated evidence without current evidence",
}
"""The outcomes that have a name."""

_LONGEST = 90
"""How many characters of a question a sentence quotes."""


def outcome_named(name: str) -> Outcome:
    """Return the outcome that a user named: one of ours, or `package.module:function`."""
    if name in OUTCOMES:
        return name
    if ":" not in name:
        raise SpecError(
            f"There is no outcome '{name}'. {nearest(name, OUTCOMES)} Your own is a function of a "
            f"memory and a question, named 'package.module:name'."
        )
    function = specs.load_object(name)
    if not callable(function):
        raise SpecError(f"Expected a function of a memory and a question but got {name!r}")
    outcome: Outcome = function
    return outcome


@dataclass(frozen=True, slots=True)
class OrderSearch:
    """A search over the orders of one pool under one policy."""

    policy: Policy
    case: Case
    arrivals: Sequence[ArrivalModel]
    most_states: int
    labels: str
    stale: StaleOutcomes | None = None
    """Reads which questions are shown the old value alone; None without outdated evidence."""
    builds: OrderBuilds | None = None
    """What the exploration of the pool has learned about its orders."""

    def observe_exposures(self, observations: Observations) -> None:
        """Count the contexts in source order, and those that J cannot see."""
        with self._build_forward() as forward:
            for question in self.case.questions:
                exposure = forward.expose(question.text)
                observe_exposure(
                    self.policy.name, exposure.blocks, len(exposure.context), observations
                )

    def find_worst(self, name: str) -> tuple[list[Finding], list[Order]]:
        """Find the worst order of each arrival model; give orders of the whole pool as well."""
        findings: list[Finding] = []
        orders: list[Order] = []
        pool = self.case.pool
        with self._build_forward() as forward:
            lowest = self._make_objective(name, forward)
            for model in self.arrivals if lowest is not None else ():
                worst = worst_order(
                    self.policy,
                    pool,
                    lowest,  # type: ignore[arg-type]
                    model,
                    seed=model.seed,
                    most_states=self.most_states,
                    builds=self.builds,
                )
                sentence = describe_worst(worst, name, pool)
                value = {**asdict(worst), "objective": name, "sentence": sentence}
                findings.append(self._finding("worst_order", value, schedule=model.name))
                if not model.redelivers:
                    orders.append(worst.order)
        return findings, orders

    def find_smallest(
        self, outcome: Outcome, supports: Sequence[frozenset[str]], orders: Sequence[Order]
    ) -> list[Finding]:
        """Find the smallest reordering that changes each question's outcome."""
        targets = [
            (question, support, predicate)
            for question, support in zip(self.case.questions, supports, strict=True)
            if (predicate := self._make_predicate(outcome, question, support)) is not None
        ]
        reorderings = shrink_all(
            self.policy,
            self.case.pool,
            [predicate for _, _, predicate in targets],
            most_states=self.most_states,
            seeds=list(dict.fromkeys(orders)),
            builds=self.builds,
        )
        return [
            self._finding(
                "smallest_reordering",
                self._describe_reordering(reordering, outcome, question, support),
                question=question.id,
            )
            for (question, support, _), reordering in zip(targets, reorderings, strict=True)
        ]

    def _build_forward(self) -> AbstractContextManager[Memory]:
        pool = self.case.pool
        return open_memory(self.policy, pool, range(len(pool)))

    def _describe_reordering(
        self,
        reordering: Reordering,
        outcome: Outcome,
        question: Question,
        support: frozenset[str],
    ) -> dict[str, object]:
        """Write a reordering as plain JSON."""
        if outcome == STALE_ONLY and self.stale is not None:
            sentence = describe_stale_change(
                reordering, question, self.case.pool, *self.stale.evidence(question)
            )
        else:
            sentence = describe_change(reordering, outcome, question, support, self.case.pool)
        return {
            "found": reordering.found,
            "order": reordering.order,
            "moves": [[move.record, move.after] for move in reordering.moves],
            "inversions": reordering.inversions,
            "exact": reordering.exact,
            "looked": reordering.looked,
            "outcome": outcome if isinstance(outcome, str) else "own",
            "forward_keeps": bool(reordering.forward) if outcome == "support" else None,
            "sentence": sentence,
        }

    def _make_predicate(
        self, outcome: Outcome, question: Question, support: frozenset[str]
    ) -> Predicate | None:
        """Return what of a memory may change for a question; None where nothing can change."""
        if outcome == "support":
            return RetainedValue(lambda retained: bool(retained & support)) if support else None
        if outcome == "retained":
            return RetainedValue(frozenset)
        if outcome == "exposed":
            return lambda memory: _expose_question(memory, question).sources
        if outcome == STALE_ONLY:
            return None if self.stale is None else self.stale.predicate(question)
        assert callable(outcome)  # noqa: S101 (every name was handled)
        own = outcome
        return lambda memory: own(memory, question)

    def _make_objective(self, name: str, forward: Memory) -> Objective | None:
        """Return what the worst order makes lowest; None where no question has a value for it."""
        questions = self.case.questions
        if name == "support":
            supports = [q.labels[self.labels] for q in questions if q.labels.get(self.labels)]
            if not supports:
                return None
            return RetainedValue(lambda retained: _mean([bool(retained & s) for s in supports]))
        if name == STALE_ONLY:
            return None if self.stale is None else self.stale.objective()
        if not questions:
            return None
        before = [_expose_question(forward, question).sources for question in questions]
        return lambda memory: _mean(
            [
                jaccard(sources, _expose_question(memory, question).sources)
                for question, sources in zip(questions, before, strict=True)
            ]
        )

    def _finding(self, name: str, value: object, **place: str) -> Finding:
        return Finding(
            name=name,
            value=value,
            policy=self.policy.name,
            interface=interface_of(self.policy),
            user=self.case.pool.user,
            **place,
        )


def _expose_question(memory: Memory, question: Question) -> Exposure:
    return memory.expose(question.text)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _quote_question(question: Question) -> str:
    return f"“{shorten(' '.join(question.text.split()), _LONGEST)}”"


def describe_change(
    reordering: Reordering,
    outcome: Outcome,
    question: Question,
    evidence: frozenset[str],
    pool: Pool,
) -> str:
    """Describe in one sentence the effect of the smallest change of order, if any has one."""
    quoted = _quote_question(question)
    records = {1: "the only record", 2: "both records"}
    who = f"{records.get(len(evidence), f'all {len(evidence)} records')} with evidence for {quoted}"
    verb = "is" if len(evidence) == 1 else "are"
    if not reordering.found:
        sure = (
            "No order changes"
            if reordering.exact
            else f"None of {reordering.looked} orders tried changes"
        )
        if outcome != "support":
            return f"{sure} the outcome of {quoted}."
        state = "is kept" if reordering.forward else "is dropped"
        return f"{sure} whether evidence for {quoted} is kept: it {state} in all."
    end = _end_sentence(reordering)
    steps = describe_reordering(reordering.order, pool)
    if outcome != "support":
        return f"{steps[0].upper()}{steps[1:]}, and the outcome of {quoted} changes{end}"
    if reordering.forward:
        return f"{steps[0].upper()}{steps[1:]}, and {who} {verb} dropped{end}"
    consequence = "it is kept" if len(evidence) == 1 else "one of them is kept"
    return f"In source order {who} {verb} dropped already; {steps}, and {consequence}{end}"


def _end_sentence(reordering: Reordering) -> str:
    return "." if reordering.exact else " (found by a search: a smaller reordering may exist)."


def describe_stale_change(
    reordering: Reordering,
    question: Question,
    pool: Pool,
    current: frozenset[str],
    stale: frozenset[str],
) -> str:
    """Name the records, with their dates, whose order decides between the old and the new value."""
    quoted = _quote_question(question)
    if not reordering.found:
        if reordering.forward:
            return f"In every order looked at, {quoted} ends with the old value alone."
        sure = "In no order" if reordering.exact else f"In none of {reordering.looked} orders tried"
        return f"{sure} does {quoted} end with the old value alone."
    end = _end_sentence(reordering)
    if reordering.forward:
        steps = describe_reordering(reordering.order, pool)
        return (
            f"In source order {quoted} ends with the old value alone; {steps}, and it does not{end}"
        )
    inverted = (
        _find_inversion(reordering, pool, current, stale) if len(reordering.moves) == 1 else None
    )
    if inverted is not None:
        earlier, later = (_name_with_date(pool.records[position]) for position in inverted)
        arrivals = [f"{earlier} arrives after {later}"]
    else:
        arrivals = [
            f"{_name_with_date(pool.records[move.record])} arrives "
            + (
                "first"
                if move.after is None
                else f"after {_name_with_date(pool.records[move.after])}"
            )
            for move in reordering.moves
        ]
    return f"If {' and '.join(arrivals)}, the memory shows only the old value for {quoted}{end}"


def _find_inversion(
    reordering: Reordering, pool: Pool, current: frozenset[str], stale: frozenset[str]
) -> tuple[int, int] | None:
    """Find the last outdated record that arrives after a current record which it precedes."""
    places = {position: at for at, position in enumerate(reordering.order)}
    inverted = [
        (earlier.position, later.position)
        for earlier in pool.records
        for later in pool.records
        if earlier.id in stale and later.id in current
        if earlier.position < later.position
        if places[earlier.position] > places[later.position]
    ]
    return inverted[-1] if inverted else None


def _name_with_date(record: Record) -> str:
    time = None if record.timestamp is None else read_time(record.timestamp)
    date = f" of {time.day} {time:%B %Y}" if time else ""
    return f"{name_record(record.id, record.text)}{date}"


_OBJECTIVES = {
    "support": "share of questions with some evidence kept",
    STALE_ONLY: "share of questions that do not end with the old value alone",
}

_MOST_MOVES = 2
"""How many moves the sentence about a worst order lists; the finding contains all."""


def describe_worst(worst: WorstOrder, name: str, pool: Pool) -> str:
    """Describe which order is worst, and whether that is known or only what a search met."""
    measure = _OBJECTIVES.get(name, "mean overlap with source order (J)")
    if not worst.value < worst.forward:
        sure = "no order lowers" if worst.exact else "a search found no order that lowers"
        return f"{pool.user}: {sure} the {measure}, {worst.forward:.3f} in source order"
    sure = "the worst order" if worst.exact else f"the worst of {worst.looked} orders searched"
    steps = describe_reordering(worst.order, pool, most=_MOST_MOVES)
    return (
        f"{pool.user}: {measure} {worst.value:.3f} in {sure} ({steps}), {worst.forward:.3f} in "
        f"source order"
    )
