"""Events during tracing that a run reports once: failures, blind spots, fallbacks.

`J` compares the sources of exposed blocks. It cannot see text without sources, and two empty sets
of sources are equal. A lexical tokeniser cannot see records without Latin letters. None of that is
stability, so a run reports it next to its numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from routeprism.exhibits import Statement
from routeprism.experiments._arrival_values import DRAWN_ORDERS, LISTED_ORDERS
from routeprism.models import Model
from routeprism.policies import Block, Policy, unwrap_policy
from routeprism.records import Case
from routeprism.routes import (
    CauseKind,
    Leak,
    Loss,
    LossLevel,
    LossPlace,
    Route,
    RouteChecks,
    RouteCounts,
    describe_checks,
    list_counterparts,
)


@dataclass(frozen=True, slots=True)
class RouteFailure:
    """A route whose memory could not be built or asked."""

    policy: str
    user: str
    schedule: str
    build: int
    """Which build of the route it was, counted from 0."""
    reason: str
    leak: Leak | None = None
    """What the memory leaked, if it failed for that reason."""

    @property
    def place(self) -> str:
        """Name the route for a reader."""
        build = f", build {self.build + 1}" if self.build else ""
        return f"user '{self.user}', {self.schedule}{build}"


@dataclass(slots=True)
class Observations:
    """Counts over some pools; `add_counts` adds up those of several."""

    pools: int = 0
    records: int = 0
    questions: int = 0
    single_record_pools: int = 0
    oversized: Counter[str] = field(default_factory=Counter)
    """Interface → records that alone exceed its limit."""
    wordless: int = 0
    """Records in which at least one reader of words finds none."""
    wordless_for_policy: Counter[str] = field(default_factory=Counter)
    """Policy or interface → records in which it finds no word."""
    wordless_for_model: Counter[str] = field(default_factory=Counter)
    arrivals: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """(arrival model, whether every order was built) → pools."""
    losses: LossCounts = field(default_factory=lambda: LossCounts())
    """Explained cases of records that a question is no longer shown."""
    failures: list[RouteFailure] = field(default_factory=list)
    inapplicable: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """(policy, schedule, reason) → pools whose route the memory cannot perform."""
    exposures: Counter[str] = field(default_factory=Counter)
    """Policy → contexts that its routes showed."""
    unsourced: Counter[str] = field(default_factory=Counter)
    """Policy → contexts with text that names no source."""
    empty: Counter[str] = field(default_factory=Counter)
    """Policy → contexts without any text."""
    rewritten: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(policy, kind of block) → pairs that show the same sources in different blocks."""
    building: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(policy, event) → how often the memory counted that event while it was built."""
    assumed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(policy, `builds`, `adds` or `tokens`) → what stand-ins of a dry run were given."""
    baseline: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(policy, field of `judge.Baseline`) → questions, in the reference order."""
    routes: RouteCounts = field(default_factory=RouteCounts)
    """Routes that were traced, rebuilt and checked for shared state."""

    @property
    def totals(self) -> dict[str, int]:
        """Return the size of the benchmark as the manifest stores it."""
        return {name: getattr(self, name) for name in ("pools", "records", "questions")}

    @property
    def rewritten_kinds(self) -> Mapping[str, Mapping[str, int]]:
        """Return policy → kind of block → pairs in which the policy rewrote it."""
        kinds: dict[str, dict[str, int]] = {}
        for (policy, kind), number in self.rewritten.items():
            kinds.setdefault(policy, {})[kind] = number
        return kinds

    @property
    def failure_reasons(self) -> tuple[str, ...]:
        """Return policy and reason of each failed route."""
        return tuple(f"{failure.policy}: {failure.reason}" for failure in self.failures)


LossKind = tuple[str, str, CauseKind, bool]
"""Policy, schedule, cause, and whether a record was lost."""
MOST_LOSSES = 200
"""The number of explained cases that are stored for each memory and order of arrival."""


@dataclass(slots=True)
class LossCounts:
    """Counts of explained cases, with the first of them: memory does not grow with the users."""

    counts: Counter[LossKind] = field(default_factory=Counter)
    cases: Counter[LossPlace] = field(default_factory=Counter)
    """(policy, schedule, level) → all cases, of which some are explained."""
    examples: list[Loss] = field(default_factory=list)
    """The first cases of each memory and order, and the first one of each kind, in their order."""
    stored: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(policy, schedule) → cases among the examples."""

    @classmethod
    def of(cls, losses: Iterable[Loss]) -> LossCounts:
        """Count losses."""
        counts = cls()
        for loss in losses:
            counts._store(loss)
            counts.counts[_kind_of(loss)] += 1
        return counts

    def add(self, later: LossCounts) -> None:
        """Add the losses of later pools."""
        for loss in later.examples:
            self._store(loss)
        self.counts.update(later.counts)
        self.cases.update(later.cases)

    def count_all(self, policy: str, schedules: Iterable[str], level: LossLevel) -> int:
        """Count all cases of a level under some orders, tested or not."""
        return sum(self.cases[policy, schedule, level] for schedule in schedules)

    def _store(self, loss: Loss) -> None:
        place, kind = (loss.policy, loss.schedule), _kind_of(loss)
        if self.stored[place] < MOST_LOSSES or not self.counts[kind]:
            self.examples.append(loss)
            self.stored[place] += 1


def _kind_of(loss: Loss) -> LossKind:
    return loss.policy, loss.schedule, loss.cause, bool(loss.record)


def add_counts(total: Any, part: Any) -> None:
    """Add the counts of a part to a total of the same class, field by field."""
    for item in fields(total):
        value, more = getattr(total, item.name), getattr(part, item.name)
        if isinstance(value, Counter):
            value.update(more)
        elif isinstance(value, list):
            value.extend(more)
        elif isinstance(value, LossCounts):
            value.add(more)
        elif is_dataclass(value):
            add_counts(value, more)
        else:
            setattr(total, item.name, value + more)


def observe_case(
    case: Case, policies: Sequence[Policy], models: Sequence[Model], observations: Observations
) -> None:
    """Count a pool, its questions, and the records that some policies or models cannot see."""
    observations.pools += 1
    observations.records += len(case.pool)
    observations.questions += len(case.questions)
    observations.single_record_pools += len(case.pool) == 1
    observe_words(case, policies, models, observations)
    interfaces = {
        interface.name: interface
        for policy in policies
        if (interface := getattr(unwrap_policy(policy), "interface", None)) is not None
    }
    for name, interface in interfaces.items():
        observations.oversized[name] += sum(map(interface.too_long, case.pool.records))


def observe_words(
    case: Case, policies: Iterable[Policy], models: Sequence[Model], observations: Observations
) -> None:
    """Count the records without a word for those who look for words.

    A policy, an interface or a model that needs Latin letters has a method `unseen(record)`.
    """
    readers: dict[str, object] = {}
    for policy in policies:
        inner = unwrap_policy(policy)
        readers[policy.name] = inner
        if (interface := getattr(inner, "interface", None)) is not None:
            readers[interface.name] = interface
    wordless: set[str] = set()
    for counts, words in (
        (observations.wordless_for_model, {model.name: model for model in models}),
        (observations.wordless_for_policy, readers),
    ):
        for name, reader in words.items():
            if callable(unseen := getattr(reader, "unseen", None)):
                ids = {record.id for record in case.pool.records if unseen(record)}
                wordless |= ids
                counts[name] += len(ids)
    observations.wordless += len(wordless)


def observe_failures(repeated: Sequence[Sequence[Route]], observations: Observations) -> None:
    """Record the failed routes of every build of a pool."""
    observations.failures.extend(
        RouteFailure(route.policy, route.user, route.schedule, build, route.failed, route.leak)
        for build, routes in enumerate(repeated)
        for route in routes
        if route.failed and route.applicable
    )
    for route in repeated[0]:
        if not route.applicable:
            observations.inapplicable[route.policy, route.schedule, route.failed] += 1


def observe_routes(routes: Sequence[Route], observations: Observations) -> None:
    """Count what the routes of a pool showed, and what their memories counted while built."""
    for route in routes:
        name = route.policy
        for event, number in route.counts.items():
            observations.building[name, event] += number
        for exposure in route.exposures:
            observe_exposure(name, exposure.blocks, exposure.context_chars, observations)
    _observe_rewriting(routes, observations.rewritten)


def observe_exposure(
    policy: str, blocks: Iterable[Block], characters: int, observations: Observations
) -> None:
    """Count one context that a policy shows."""
    observations.exposures[policy] += 1
    observations.empty[policy] += not characters
    observations.unsourced[policy] += is_unsourced(blocks)


def is_unsourced(blocks: Iterable[Block]) -> bool:
    """Return whether some of the text that is shown names no source."""
    return any(not block.sources and block.text.strip() for block in blocks)


def _observe_rewriting(routes: Sequence[Route], rewritten: Counter[tuple[str, str]]) -> None:
    """Count, by the kind of block, the pairs that show the same sources in different blocks."""
    sources: dict[tuple[object, object], frozenset[str]] = {}
    for base, route in list_counterparts(routes):
        if base.exposures is route.exposures:
            continue
        for first, second in zip(base.exposures, route.exposures, strict=True):
            same_text = first.context_sha256 == second.context_sha256
            if same_text or first.sources != second.sources:
                continue
            kinds = sources.get((first.blocks, second.blocks))
            if kinds is None:
                kinds = _list_changed_kinds(first.blocks, second.blocks)
                sources[first.blocks, second.blocks] = kinds
            rewritten.update((route.policy, kind) for kind in kinds)


def _list_changed_kinds(first: Iterable[Block], second: Iterable[Block]) -> frozenset[str]:
    before = Counter((block.kind, block.text) for block in first)
    after = Counter((block.kind, block.text) for block in second)
    return frozenset(kind for kind, _ in (before - after) + (after - before))


def _shows_nothing(observations: Observations, policy: str) -> bool:
    return 0 < observations.exposures[policy] == observations.empty[policy]


def mark_blind_spots(
    observations: Observations, statements: Mapping[str, Sequence[Statement]]
) -> dict[str, tuple[Statement, ...]]:
    """Add to each policy's statements what J cannot see of it."""
    return {
        policy: tuple(
            replace(statement, parts=(*statement.parts, text)) if text else statement
            for statement in described
        )
        for policy, described in statements.items()
        for text in [_blind_spot(observations, policy)]
    }


def _blind_spot(observations: Observations, policy: str) -> str:
    if _shows_nothing(observations, policy):
        return ". It shows nothing to any question, so J has no meaning"
    if unsourced := observations.unsourced[policy]:
        exposures = observations.exposures[policy]
        return (
            f". {unsourced} of {exposures} contexts contain text without sources, which J ignores"
        )
    return ""


def list_notes(
    observations: Observations, policies: Sequence[str], checks: RouteChecks
) -> tuple[str, ...]:
    """List what a reader of the numbers should know about failures, blind spots and checks."""
    return (
        *_failure_notes(observations.failures),
        *(
            f"{schedule} is not applicable to {policy} on {pools} of {observations.pools} pools: "
            f"{reason}"
            for (policy, schedule, reason), pools in observations.inapplicable.items()
        ),
        *exposure_notes(observations, policies),
        *_pool_notes(observations),
        *describe_checks(checks, observations.routes, observations.pools),
    )


def _failure_notes(failures: Sequence[RouteFailure]) -> list[str]:
    """Report for each policy how many routes failed, and why the first one did."""
    by_policy: dict[str, list[RouteFailure]] = {}
    for failure in failures:
        by_policy.setdefault(failure.policy, []).append(failure)
    return [
        f"{len(failed)} route{'s' if len(failed) > 1 else ''} of {policy} failed; no estimate "
        f"includes their pairs, and the same command with the same run builds only them again "
        f"({failed[0].place}: {failed[0].reason})"
        for policy, failed in by_policy.items()
    ]


def exposure_notes(observations: Observations, policies: Sequence[str]) -> list[str]:
    """Report which policies show text without sources, or nothing at all, and what to do."""
    notes = []
    for name in policies:
        if unsourced := observations.unsourced[name]:
            notes.append(
                f"{name} shows text without sources in {unsourced} of "
                f"{observations.exposures[name]} contexts: J, V_changed and every number about "
                f"evidence cannot see that text. Give every text the ids of all records that it "
                f"came from"
            )
        if _shows_nothing(observations, name):
            notes.append(
                f"{name} shows nothing to any question: J is 1 because nothing is equal to nothing"
            )
    return notes


def _pool_notes(observations: Observations) -> list[str]:
    """Report pools of one record, records that cannot be seen, and unusable replies."""
    notes = []
    if single := observations.single_record_pools:
        notes.append(
            f"{single} of {observations.pools} pools have one record: they have only one order, "
            f"so order cannot change them"
        )
    notes.extend(wordless_notes(observations))
    notes.extend(_arrival_notes(observations))
    notes.extend(
        f"{number} of {observations.records} records are longer than the limit of the interface "
        f"{interface}; they can be kept but never shown"
        for interface, number in observations.oversized.items()
        if number
    )
    notes.extend(
        f"{number} of {observations.building[policy, 'consultations']} replies that {policy} got "
        f"while building could not be used; its documented fallback was used instead"
        for (policy, event), number in observations.building.items()
        if event == "unusable_replies" and number
    )
    notes.extend(_uncertainty_notes(observations.building))
    notes.extend(
        f"{policy}: stored verbatim: construction by a model was not tested. All {number} stored "
        f"items repeat text of their records"
        for (policy, event), number in observations.building.items()
        if event == "verbatim_items" and 0 < number == observations.building[policy, "stored_items"]
    )
    return notes


_UNCERTAIN = {
    "uncertain_overlap": "were written while several records were added at once: each names all of "
    "these records as its sources",
    "uncertain_late": "appeared after their write had seemed complete: their sources are the "
    "records that they quote, or else the last record before they appeared. Unless the memory "
    "holds records back on purpose, RoutePrism did not wait long enough, and the last records may "
    "be missing: in a profile, raise stable and patience in [wait], or add this table",
    "uncertain_unknown": "were there before anything was written: they have no sources",
}


def _uncertainty_notes(building: Mapping[tuple[str, str], int]) -> list[str]:
    """Report how many sources of stored items could not be observed exactly, and why."""
    return [
        f"{policy}: {number} of {building[policy, 'observed_items']} observed items {reason}"
        for (policy, event), number in building.items()
        for reason in [_UNCERTAIN.get(event)]
        if reason and number
    ]


def _arrival_notes(observations: Observations) -> list[str]:
    """Report for which arrival models orders were drawn rather than listed."""
    incomplete = {
        m: number for (m, complete), number in observations.arrivals.items() if not complete
    }
    models: dict[int, list[str]] = {}
    for model, number in incomplete.items():
        models.setdefault(number, []).append(model)
    return [
        f"{' and '.join(names)}: pools with up to {LISTED_ORDERS} orders were built in all of "
        f"them, and {number} of {observations.pools} pools in {DRAWN_ORDERS} drawn ones"
        for number, names in models.items()
    ]


def wordless_notes(observations: Observations) -> tuple[str, ...]:
    """Report how many records have no word, and for whom that matters."""
    share = f"{observations.wordless} of {observations.records} records"
    policies, models = (
        ", ".join(name for name, number in counts.items() if number)
        for counts in (observations.wordless_for_policy, observations.wordless_for_model)
    )
    notes = []
    if policies:
        notes.append(
            f"{share} have no Latin-letter words: the lexical tokeniser of {policies} finds "
            f"nothing in them to compare or to rank"
        )
    if models:
        notes.append(
            f"{share} have no Latin-letter words: {models} splits text at spaces and knows English "
            f"word forms alone, so that its answers about them show little"
        )
    return tuple(notes)
