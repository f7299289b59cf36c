"""Why evidence is lost, and what to do next: causes that were tested on the losing orders."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import get_args

from routeprism.exhibits import Results, Statement, Table, make_table
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._observations import MOST_LOSSES, LossCounts
from routeprism.judge import (
    CAUSES,
    NEVER_RIGHT,
    NEXT_STEPS,
    Cause,
    differs_by_chance,
    judge,
    list_asides,
    quote_text,
)
from routeprism.orders import FORWARD, describe_arrival
from routeprism.policies import Policy, describe_client, registered_policies
from routeprism.policies.own import OwnMemory
from routeprism.routes import MOST_TESTED, CauseKind, Loss, LossLevel, find_level, is_costly
from routeprism.runs import Finding

_WITHOUT_LOSS = ("order of blocks", "rewritten", "state only")
_BUILDS_PER_TEST = 3
"""How many builds a test usually takes."""


_MOST_STATED = 2
"""How many causes are stated for source order, and as many for the other orders."""


@dataclass(frozen=True, slots=True)
class Places:
    """Where the memories, records and questions of explained losses are found."""

    benchmark: str
    """The benchmark as commands name it."""
    records: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The text of each lost record, by user and id."""
    questions: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The text of each question, by user and id."""
    unnamed: Collection[str] = ()
    """Memories that no command can name."""
    is_labelled: bool = True
    """Whether questions name their evidence."""
    arrivals: Collection[str] = ()
    """The arrival models of the audit; for any other order, `orders` tries all of them."""
    prices: Mapping[str, str] = field(default_factory=dict)
    """Memory whose construction costs something → what one test takes."""


def describe_causes(
    causes: Sequence[Cause], places: Places, flags: tuple[str, ...] = ()
) -> Iterator[Statement]:
    """State the causes of each memory, with one record as an example."""
    tested = {(cause.policy, cause.is_baseline) for cause in causes if cause.explained}
    stated: Counter[tuple[str, bool]] = Counter()
    for cause in causes:
        if cause.cause == "untested" and (cause.policy, cause.is_baseline) in tested:
            continue  # the sentences before count these cases as well
        stated[cause.policy, cause.is_baseline] += 1
        if stated[cause.policy, cause.is_baseline] > _MOST_STATED:
            continue
        question = quote_text(places.questions.get((cause.user, cause.question), ""))
        yield Statement(
            (
                f"{cause.sentence}.",
                *(
                    [f" User '{cause.user}', question {question}."]
                    * bool(cause.record and question)
                ),
                f" To do: {cause.action}",
            ),
            "causes",
            cause.policy,
            cause.schedules[0],
            "info",
            _choose_step(places, cause.policy, cause.cause) if cause.example.record else "",
            flags=flags,
            confirmation=_choose_confirmation(places, cause.example),
        )


def find_causes(examples: Sequence[Loss], losses: LossCounts) -> list[Cause]:
    """Find the causes of each memory, the most frequent first and untested cases last.

    Lost records come before texts that differ, and these before internal state. Source order has
    its own causes. Examples have the first loss of each kind, in the order of the schedules.
    """
    places: dict[tuple[str, bool], list[str]] = {}
    for loss in examples:
        schedules = places.setdefault((loss.policy, loss.schedule == FORWARD.name), [])
        if loss.schedule not in schedules:
            schedules.append(loss.schedule)
    return [
        cause
        for (policy, _), schedules in places.items()
        for cause in _rank_causes(policy, schedules, examples, losses)
    ]


def _rank_causes(
    policy: str, schedules: Sequence[str], examples: Sequence[Loss], losses: LossCounts
) -> Iterator[Cause]:
    """Count the causes of a memory under some orders, at the first level that has cases."""
    numbers = {level: losses.count_all(policy, schedules, level) for level in get_args(LossLevel)}
    level = next(level for level, number in numbers.items() if number)
    totals: Counter[CauseKind] = Counter()
    orders: dict[CauseKind, list[str]] = {}
    for (name, schedule, cause, has_record), number in losses.counts.items():
        is_here = name == policy and schedule in schedules
        if is_here and find_level(cause, has_record=has_record) == level:
            totals[cause] += number
            orders.setdefault(cause, []).append(schedule)
    totals.pop("untested", 0)
    tested = totals.total()
    ranked = sorted(totals, key=lambda cause: (-totals[cause], cause))
    if numbers[level] > tested:
        ranked.append("untested")
    for cause in ranked:
        own = [schedule for schedule in schedules if schedule in orders.get(cause, schedules)]
        example = _choose_example(examples, policy, own, cause, level)
        place = (example.record, example.by, example.user, example.question)
        counts = (tested, totals[cause], numbers[level])
        yield Cause(policy, cause, tuple(own), *place, *counts, example)


def _choose_example(
    examples: Sequence[Loss], policy: str, schedules: Sequence[str], cause: CauseKind, level: str
) -> Loss:
    """Choose the first loss of a kind; of untested cases that are only counted, none is stored."""
    own = [e for e in examples if e.policy == policy and e.schedule in schedules]
    matching = [
        e
        for e in own
        if e.cause == cause and find_level(e.cause, has_record=bool(e.record)) == level
    ]
    if matching:
        return matching[0]
    first = own[0]
    return Loss("untested", policy, first.schedule, first.user, "")


def _choose_step(places: Places, policy: str, cause: CauseKind) -> str:
    """Return the command that measures repairs, or the Python call if there is none."""
    if cause in ("never kept", "refused"):
        return (
            "" if policy in places.unnamed else shlex.join(("routeprism", "check-adapter", policy))
        )
    if policy in places.unnamed:
        return "call remedies() of this result"
    return shlex.join(("routeprism", "remedy", places.benchmark, "--policy", policy))


def _choose_confirmation(places: Places, example: Loss) -> str:
    """Return the command that finds the smallest reordering with the same loss."""
    if not example.record or example.schedule == FORWARD.name or example.policy in places.unnamed:
        return ""
    if example.cause == "untested":  # building it again may cost money
        return ""
    arrival = ("--arrival", example.schedule) if example.schedule in places.arrivals else ()
    outcome = "support" if places.is_labelled else "exposed"
    command = ("routeprism", "orders", places.benchmark, "--policy", example.policy, *arrival)
    return shlex.join((*command, "--shrink", outcome))


def _is_reported(cause: Cause, baseline: Mapping[tuple[str, str], int]) -> bool:
    """Leave out what source order lacks where that is rare and a capacity can be the reason."""
    if not cause.is_baseline or cause.cause in NEVER_RIGHT:
        return True
    lacking, questions = (baseline[cause.policy, name] for name in ("lacking", "questions"))
    return bool(2 * lacking > questions or baseline[cause.policy, "outdated"])


def _conclude(outcome: AuditOutcome) -> Conclusion:
    plan, observations = outcome.plan, outcome.observations
    orders = [FORWARD.name, *(a.name for a in plan.arrivals), *(s.name for s in plan.schedules)]
    losses = [
        loss
        for loss in observations.losses.examples
        if not differs_by_chance(outcome.rows, loss.policy, declared=loss.policy in outcome.noisy)
    ]
    losses.sort(key=lambda loss: orders.index(loss.schedule))
    causes = find_causes(losses, observations.losses)
    places = _find_places(causes, outcome)
    causes = [
        _add_texts(cause, places) for cause in causes if _is_reported(cause, observations.baseline)
    ]
    findings = [*_store_losses(losses), *_store_causes(causes)]
    flags = ("synthetic",) if plan.benchmark.synthetic else ()
    statements = tuple(describe_causes(causes, places, flags))
    return Conclusion(statements, {"causes": findings} if findings else {})


def _store_causes(causes: Sequence[Cause]) -> Iterator[Finding]:
    """Store all causes of each memory, with exact counts."""
    for policy in dict.fromkeys(cause.policy for cause in causes):
        value = [asdict(cause) for cause in causes if cause.policy == policy]
        yield Finding(name="causes", value=value, policy=policy)


def _store_losses(examples: Sequence[Loss]) -> Iterator[Finding]:
    """Store the first losses of each memory and order, question by question."""
    questions: dict[tuple[str, str, str, str], list[Loss]] = {}
    stored: Counter[tuple[str, str]] = Counter()
    for loss in examples:
        stored[loss.policy, loss.schedule] += 1
        if stored[loss.policy, loss.schedule] <= MOST_LOSSES:
            place = (loss.policy, loss.schedule, loss.user, loss.question)
            questions.setdefault(place, []).append(loss)
    for (policy, schedule, user, question), losses in questions.items():
        value = [asdict(loss) for loss in losses]
        names = {"policy": policy, "schedule": schedule, "user": user, "question": question}
        yield Finding(name="losses", value=value, **names)


def _add_texts(cause: Cause, places: Places) -> Cause:
    return replace(
        cause,
        record_text=places.records.get((cause.user, cause.record), ""),
        by_texts=tuple(places.records.get((cause.user, id), "") for id in cause.by),
        price=places.prices.get(cause.policy, ""),
    )


def _find_places(causes: Sequence[Cause], outcome: AuditOutcome) -> Places:
    """Return the texts of lost records and of the questions that need them, by user and id."""
    benchmark = outcome.plan.benchmark
    users = {cause.example.user for cause in causes if cause.example.record}
    # The pools after the last of these users are not read.
    cases = list(islice((c for c in benchmark.cases if c.pool.user in users), len(users)))
    totals = outcome.observations.totals
    adds = round(totals["records"] / totals["pools"]) if totals["pools"] else 0
    return Places(
        benchmark.argument,
        {
            (case.pool.user, record.id): record.text
            for case in cases
            for record in case.pool.records
        },
        {(case.pool.user, q.id): q.text for case in cases for q in case.questions},
        {policy.name for policy in outcome.plan.policies if _has_no_spec(policy)},
        bool(outcome.plan.labels),
        [model.name for model in outcome.plan.arrivals],
        {policy.name: _price_test(policy, adds) for policy in outcome.plan.policies},
    )


def _has_no_spec(policy: Policy) -> bool:
    """Whether no command can name a memory, because it was given as an object."""
    is_object = isinstance(policy, OwnMemory) and ":" not in policy.name
    return is_object and policy.name not in registered_policies()


def _price_test(policy: Policy, adds: int) -> str:
    """State what a test takes: builds, the records that each adds, and model calls for each.

    Empty if it costs nothing.
    """
    if not is_costly(policy):
        return ""
    client = describe_client(policy)
    calls = None if client is None else client.calls_per_add
    price = f"about {_BUILDS_PER_TEST} builds × {adds:,} adds each"
    return price if calls is None else f"{price} × {calls:g} calls per add"


def _tabulate(results: Results) -> list[Table]:
    """Count the causes of each memory, the most frequent first, harmless ones last."""
    counts: Counter[tuple[str, CauseKind, str]] = Counter()
    aside, losing = list_asides(results), set[str]()
    for finding in results.findings.get("losses", ()):
        if finding.policy not in aside:
            for loss in finding.value:
                counts[finding.policy, loss["cause"], finding.schedule] += 1
                losing.update({finding.policy} if loss["record"] else ())
    for policy, cause, schedule in list(counts):
        if policy in losing and cause in _WITHOUT_LOSS:
            del counts[policy, cause, schedule]
    memories = [verdict.policy for verdict in judge(results)]
    totals: Counter[tuple[str, CauseKind]] = Counter()
    for (policy, cause, _), number in counts.items():
        totals[policy, cause] += number

    def rank(item: tuple[str, CauseKind]) -> tuple[int, bool, int]:
        policy, cause = item
        place = memories.index(policy) if policy in memories else len(memories)
        return place, cause == "state only", -totals[item]

    return make_table(
        "causes",
        "Why questions are shown something different",
        "Cases that were tested: what a question loses under an order of arrival, at most "
        f"{MOST_TESTED} of each pool and {MOST_LOSSES} for each memory and order.",
        ("memory", "cause", "arrivals", "what to do", "cases"),
        [
            (
                policy,
                CAUSES[cause],
                ", ".join(
                    f"{describe_arrival(schedule)} {number}"
                    for (p, c, schedule), number in counts.items()
                    if (p, c) == (policy, cause)
                ),
                NEXT_STEPS[cause],
                str(totals[policy, cause]),
            )
            for policy, cause in sorted(totals, key=rank)
        ],
        names=4,
    )


experiment = Experiment(
    name="causes",
    title="Causes",
    summary="Test which arrivals displaced the evidence, and say what to do about it.",
    commands=("audit", "remedy", "demo"),
    rank=-5,
    tab="summary",
    conclude=_conclude,
    tables=_tabulate,
    charts=lambda results: (),
)
