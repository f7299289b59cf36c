"""Whether a memory keeps the same records in every order: the check behind the pytest assertion."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from routeprism.errors import ContractError, RoutePrismError, SpecError
from routeprism.experiments import is_unsourced
from routeprism.frames import OWN_ERRORS
from routeprism.judge import Depth, scale_depth
from routeprism.landscape import inspect_memory, inversions, merge_states, shrink
from routeprism.measures import jaccard
from routeprism.orders import Arrivals, Order, describe_arrival, every_permutation, parse_arrival
from routeprism.policies import (
    Memory,
    Policy,
    as_policy,
    make_policy,
    parse_interface,
    refuse_for_every_order,
)
from routeprism.policies.own import retained_ids
from routeprism.printing import pluralise
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark
from routeprism.review.breaches import Breach, describe_breach
from routeprism.routes import FIRST_POOLS, check_isolation, choose_checks, explain_loss
from routeprism.specs import check_sizes

__all__ = ["ORDERS", "Breach", "Stability", "order_stability"]

ORDERS = 1_000
"""Up to how many orders of a pool are built, by default."""


@dataclass(frozen=True, slots=True)
class MemoryContents:
    """The content of one build: the retained set, and the part that each question is shown."""

    retained: frozenset[str]
    exposed: tuple[frozenset[str], ...] = ()
    contexts: tuple[str, ...] = ()
    """The text that each question is shown."""
    unsourced: bool = False
    """Whether some of that text names no source."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """Which part of the records of source order an order has to keep."""

    least: float
    """The J that every order has to reach; of evidence, the share that has to be left."""
    evidence: frozenset[str] | None = None
    """The records that count; None for all of them."""
    of_questions: tuple[frozenset[str], ...] = ()
    """The records that count for each question."""

    def measure(self, forward: MemoryContents, outcome: MemoryContents) -> tuple[float, int]:
        """Return the least value and its place: a question's, or -1 for the retained set."""
        places = range(-1, len(forward.exposed))
        return min((self._compare(*self.select(forward, outcome, at)), at) for at in places)

    def select(
        self, forward: MemoryContents, outcome: MemoryContents, at: int
    ) -> tuple[frozenset[str], frozenset[str]]:
        """Return the records that count of one question, or of the retained set, in both orders."""
        before, after = (h.retained if at < 0 else h.exposed[at] for h in (forward, outcome))
        if self.evidence is None:
            return before, after
        evidence = self.evidence if at < 0 else self.of_questions[at]
        return before & evidence, after & evidence

    def _compare(self, before: frozenset[str], after: frozenset[str]) -> float:
        if self.evidence is None:
            return jaccard(before, after)
        return len(before & after) / len(before) if before else 1.0


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether every order keeps what source order keeps."""

    policy: str
    arrival: str
    least: float
    """The J that every order has to reach, or the share of the evidence."""
    pools: int
    breaches: tuple[Breach, ...]
    depth: Depth
    """How deep a difference reaches, over all orders that were built."""
    inconclusive: str = ""
    """Why nothing can be concluded; empty if something can."""
    only_evidence: bool = False
    """Whether only evidence had to be kept."""

    def __str__(self) -> str:
        if self.breaches:
            return "\n".join(_describe(self))
        pools = f"on {pluralise(self.pools, 'pool')} under {self.arrival}"
        if self.inconclusive:
            return (
                f"{self.policy} cannot be judged {pools}: {self.inconclusive}. "
                f"{_ADVICE[self.inconclusive]}"
            )
        return f"{self.policy} is stable {pools}: {self.depth}"


_SINGLE = "every pool has one record and so one order"
_NOTHING_KEPT = "the memory keeps no record in any order"
_NOTHING_SHOWN = "the memory shows nothing to any question"
_UNSOURCED = "the text that is shown names no records, so lost evidence would not be seen"
_ADVICE: Mapping[str, str] = {
    _SINGLE: "Give pools of two records or more",
    _NOTHING_KEPT: "Check that `add` stores records, and that `retained` returns their ids",
    _NOTHING_SHOWN: "Check that `expose` returns records, or leave out `questions`",
    _UNSOURCED: "Return records from `expose`, or blocks that name their sources; or leave out "
    "`questions` to compare only the records that are kept",
}
"""Why nothing can be concluded, and what to change."""


def order_stability(
    memory: Any,
    pools: Any,
    *,
    arrival: str = "jitter:w=2",
    min_jaccard: float = 1.0,
    questions: Any = None,
    evidence: bool | Collection[str] = False,
    interface: str = "all",
    orders: int = ORDERS,
    data: str | Path | None = None,
) -> Stability:
    """Build every order of an arrival model, or a sample, and compare with source order.

    The arguments are those of `routeprism.pytest_plugin.assert_order_stable`.
    """
    if not 0 < min_jaccard <= 1 or orders < 1:
        raise SpecError(
            f"Expected 0 < min_jaccard <= 1 and 1 order or more but got {min_jaccard=}, {orders=}"
        )
    check_sizes(orders=orders)
    policy = (
        make_policy(memory, parse_interface(interface))
        if isinstance(memory, str)
        else as_policy(memory)
    )
    refuse_for_every_order(policy)
    model = parse_arrival(arrival)
    breaches, counts = [], _Counts()
    if isinstance(pools, (str, Path)):
        pools = load_benchmark(str(pools), None if data is None else Path(data))
    cases = _make_cases(pools, questions)
    labelled = pools.cases if isinstance(pools, Benchmark) else cases
    required = _require(min_jaccard, evidence, cases, labelled)
    isolated = choose_checks([policy], (), len(cases), seed=0).isolated.get(policy.name, ())
    for index, case in enumerate(cases):
        if index in isolated:
            check_isolation(case, policy, (), full=index < FIRST_POOLS)
        check = _PoolCheck(policy, case, required[index])
        breach = check.find_breach(model.on(case.pool), orders, counts)
        if breach is not None:
            breaches.append(breach)
    depth = counts.find_depth()
    doubt = counts.find_doubt(cases, depth)
    whole = (policy.name, model.name, min_jaccard, len(cases), tuple(breaches), depth, doubt)
    return Stability(*whole, only_evidence=evidence is not False)


def _require(
    least: float, evidence: bool | Collection[str], cases: Sequence[Case], labelled: Sequence[Case]
) -> list[Requirement]:
    """Return the records of each pool that must be kept; `labelled` are the labelled cases."""
    if evidence is False:
        return [Requirement(least) for _ in cases]
    if isinstance(evidence, str):
        raise SpecError(f"Expected True or a list of record ids but got evidence={evidence!r}")
    if evidence is not True:
        if not evidence:
            raise SpecError("Expected True or a list of record ids but got an empty evidence")
        ids = {id for case in cases for id in case.pool.ids}
        if unknown := sorted(set(evidence) - ids):
            raise SpecError(f"evidence names the record {unknown[0]!r}, which no pool has")
    return [
        _require_evidence(least, evidence, case, whole)
        for case, whole in zip(cases, labelled, strict=True)
    ]


def _require_evidence(
    least: float, evidence: bool | Collection[str], case: Case, labelled: Case
) -> Requirement:
    if not isinstance(evidence, bool):
        evidence_ids = frozenset(evidence)
        return Requirement(least, evidence_ids, tuple(evidence_ids for _ in case.questions))
    support = {q.id: frozenset().union(*q.labels.values()) for q in labelled.questions}
    evidence_ids = frozenset().union(*support.values())
    if not evidence_ids:
        evidence_ids = frozenset(case.pool.ids).difference(*labelled.supersedes.values())
    of_questions = tuple(support.get(q.id) or evidence_ids for q in case.questions)
    return Requirement(least, evidence_ids, of_questions)


_FEWEST_RECORDS = 2
"""With fewer records there is one order."""


class _Counts:
    """Counts the orders that change a memory, layer by layer."""

    def __init__(self) -> None:
        self._retained = self._sources = self._context = 0
        self._keeps = self._shows = self._unsourced = False

    def add(self, forward: MemoryContents, outcome: MemoryContents, weight: int) -> None:
        self._keeps |= bool(forward.retained or outcome.retained)
        self._shows |= any(outcome.contexts)
        self._unsourced |= outcome.unsourced
        self._retained += weight * (forward.retained != outcome.retained)
        self._sources += weight * (forward.exposed != outcome.exposed)
        self._context += weight * (forward.contexts != outcome.contexts)

    def find_depth(self) -> Depth:
        return scale_depth(records=self._retained + self._sources, texts=self._context)

    def find_doubt(self, cases: Sequence[Case], depth: Depth) -> str:
        """Explain why nothing can be concluded; empty if something can."""
        if all(len(case.pool) < _FEWEST_RECORDS for case in cases):
            return _SINGLE
        if not any(case.questions for case in cases):
            return "" if self._keeps else _NOTHING_KEPT
        if not self._shows:
            return _NOTHING_SHOWN
        return _UNSOURCED if self._unsourced and depth == "text only" else ""


def _make_cases(pools: Any, questions: Any) -> list[Case]:
    """Return pools with the questions to ask of each."""
    if isinstance(pools, Benchmark):
        pairs = [(case.pool, case.questions) for case in pools.cases]
    else:
        pairs = [(pool, ()) for pool in _make_pools(pools)]
        if questions is True:
            raise SpecError("questions=True asks those of a benchmark, and these are pools alone")
    if not pairs:
        raise SpecError("there is no pool to build")
    return [
        Case(pool, own if questions is True else _make_questions(questions, pool.user))
        for pool, own in pairs
    ]


def _make_pools(pools: Any) -> list[Pool]:
    if isinstance(pools, Pool):
        return [pools]
    items = list(pools)
    if items and all(isinstance(item, (str, Record)) for item in items):
        items = [items]  # one pool, given as its records
    cases = []
    for number, item in enumerate(items):
        if isinstance(item, Pool):
            cases.append(item)
            continue
        records = [
            replace(record, position=at)
            if isinstance(record, Record)
            else Record(f"r{at}", at, record)
            for at, record in enumerate(item)
        ]
        cases.append(Pool(f"pool {number}", tuple(records)))
    return cases


def _make_questions(questions: Any, user: str) -> tuple[Question, ...]:
    if questions is None:
        return ()
    texts = questions.get(user, ()) if isinstance(questions, Mapping) else questions
    if isinstance(texts, str):
        raise SpecError(f"Expected a list of questions but got the text {texts!r:.60}")
    return tuple(
        replace(text, user=user, labels={})
        if isinstance(text, Question)
        else Question(id=f"q{at}", user=user, text=text)
        for at, text in enumerate(texts)
    )


@dataclass(frozen=True, slots=True)
class _PoolCheck:
    """A pool, the memory that is built from it, and what every order has to keep."""

    policy: Policy
    case: Case
    required: Requirement

    @property
    def source(self) -> Order:
        """Source order."""
        return tuple(range(len(self.case.pool)))

    @property
    def questions(self) -> list[str]:
        """The texts that the memory is exposed to."""
        return [question.text for question in self.case.questions]

    def find_breach(self, arrivals: Arrivals, most: int, counts: _Counts) -> Breach | None:
        """Find the breaking order with the fewest inversions; count what every order changes."""
        forward = self._build_forward()
        looked, broken, exact = 0, 0, True
        nearest: tuple[int, Order] | None = None
        contents: MemoryContents | str = forward
        for order, weight, outcome, whole in self._list_outcomes(arrivals, most):
            looked += weight
            exact = whole
            if not isinstance(outcome, str):
                counts.add(forward, outcome, weight)
            if isinstance(outcome, str) or self._breaks(forward, outcome):
                broken += weight
                place = (inversions(order), order)
                if nearest is None or place < nearest:
                    nearest, contents = place, outcome
        if nearest is None:
            return None
        order = nearest[1]
        if not exact and not arrivals.redelivers and not isinstance(contents, str):
            order, contents = self._reduce(arrivals, order, forward)
        breach = self._make_breach(order, forward, contents)
        breach = replace(breach, broken=broken, looked=looked, exact=exact)
        return breach if breach.error else self._explain(breach)

    def _breaks(self, forward: MemoryContents, outcome: MemoryContents) -> bool:
        return self.required.measure(forward, outcome)[0] < self.required.least

    def _build(self, order: Order) -> MemoryContents | str:
        """Build an order; an error is an outcome too."""
        try:
            return inspect_memory(self.policy, self.case.pool, order, self._read_contents)
        except RoutePrismError:
            raise
        except OWN_ERRORS as error:
            return f"{type(error).__name__}: {error}"

    def _read_contents(self, memory: Memory) -> MemoryContents:
        exposures = [memory.expose(question) for question in self.questions]
        return MemoryContents(
            retained_ids(memory),
            tuple(frozenset(exposure.sources) for exposure in exposures),
            tuple(exposure.context for exposure in exposures),
            any(is_unsourced(exposure.blocks) for exposure in exposures),
        )

    def _build_forward(self) -> MemoryContents:
        """Build the source order twice; refuse a memory that fails or is not deterministic."""
        name, user = self.policy.name, self.case.pool.user
        forward = self._build(self.source)
        if isinstance(forward, str):
            raise ContractError(f"{name} raises {forward} in source order (user '{user}')")
        if self._build(self.source) != forward:
            raise ContractError(
                f"{name} is not deterministic: built twice in source order it keeps different "
                f"records (user '{user}'), so no order can be blamed"
            )
        return forward

    def _list_outcomes(
        self, arrivals: Arrivals, most: int
    ) -> Iterator[tuple[Order, int, MemoryContents | str, bool]]:
        """Yield orders, how many end alike, what they hold, and whether these are all there are."""
        graph = merge_states(self.policy, self.case.pool, arrivals)
        if graph is not None and not graph.failed:
            for ending in graph.endings:
                yield ending.order, ending.weight, self._read_contents(ending.memory), True
            return
        orders = arrivals.orders(most)
        if orders is not None:
            for order, weight in orders:
                yield order, weight, self._build(order), True
            return
        for order in dict.fromkeys(arrivals.sample(index) for index in range(most)):
            yield order, 1, self._build(order), False

    def _reduce(
        self, arrivals: Arrivals, order: Order, forward: MemoryContents
    ) -> tuple[Order, MemoryContents]:
        """Find one exchange of neighbours that breaks, or sort a drawn order as far as it does.

        Sorting towards source order leads out of no model that is too large to be listed.
        """

        def breaks(memory: Memory) -> bool:
            return self._breaks(forward, self._read_contents(memory))

        pool = self.case.pool
        search = partial(shrink, self.policy, pool, breaks, most_states=0, most_orders=0)
        reordering = None
        if every_permutation(arrivals) or arrivals.name.startswith("jitter"):
            reordering = search(most_builds=len(pool) - 1)  # first the exchanges of neighbours
        if reordering is None or not reordering.found:
            reordering = search(start=order)
        contents = self._build(reordering.order)
        if isinstance(contents, str):
            raise ContractError(f"{self.policy.name} is not deterministic: {contents}")
        return reordering.order, contents

    def _make_breach(
        self, order: Order, forward: MemoryContents, outcome: MemoryContents | str
    ) -> Breach:
        pool, error = self.case.pool, outcome if isinstance(outcome, str) else ""
        contents = MemoryContents(frozenset()) if isinstance(outcome, str) else outcome
        value, at = (0.0, -1) if error else self.required.measure(forward, contents)
        before, after = self.required.select(forward, contents, at)
        return Breach(
            pool,
            order,
            value,
            self.questions[at] if at >= 0 else "",
            tuple(id for id in pool.ids if id in before - after),
            tuple(id for id in pool.ids if id in after - before),
            error,
        )

    def _explain(self, breach: Breach) -> Breach:
        """Add why the first lost records are lost, as tested on this order."""
        losses = tuple(
            explain_loss(self.case, self.policy, breach.order, record, breach.question)
            for record in breach.lost[:_EXPLAINED]
        )
        return replace(breach, losses=losses)


_EXPLAINED = 3
"""How many lost records of a reordering are explained."""


def _describe(stability: Stability) -> Iterator[str]:
    """Describe the smallest breach: which records it loses, why, and what helps."""
    first = min(stability.breaches, key=lambda breach: (inversions(breach.order), breach.pool.user))
    more = len(stability.breaches) - 1
    remainder = f", and on {pluralise(more, 'more pool')}" if more else ""
    name = describe_arrival(stability.arrival)
    arrival = stability.arrival if name == stability.arrival else f"{name} ({stability.arrival})"
    if first.error:
        effect = f"it raises {first.error}"
    else:
        verb = "shown" if first.question else "kept"
        noun = "evidence" if stability.only_evidence else "a record"
        effect = f"{noun} that is {verb} in source order is lost"
        if not first.lost:
            effect = f"records are {verb} that are not {verb} in source order"
    yield (
        f"{stability.policy} is not order-stable under {arrival}: {effect} "
        f"(user '{first.pool.user}', {len(first.pool)} records{remainder})"
    )
    measure = (
        "Share of the evidence left" if stability.only_evidence else "Overlap with source order (J)"
    )
    yield from describe_breach(first, measure=measure, least=stability.least)
    some = f"all {first.looked}" if first.exact else f"{first.looked} drawn"
    broken = f"{first.broken} of {some} orders of this pool break{'s' * (first.broken == 1)} it"
    if first.exact and first.looked == 1:
        broken = f"The only order of {stability.arrival} breaks it"
    yield f"Verdict over the orders that were built: {stability.depth}"
    yield f"{broken}. This one is schedule explicit:order={'-'.join(map(str, first.order))}"
