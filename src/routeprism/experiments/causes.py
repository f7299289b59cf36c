"""Why evidence is lost, and what to do next: causes read from the traces of each memory."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from typing import get_args

from routeprism.exhibits import Results, Statement, Table, make_table, shorten
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._observations import MOST_LOSSES, LossCounts
from routeprism.judge import judge, list_asides
from routeprism.orders import FORWARD, describe_arrival, list_arrivals
from routeprism.policies import registered_policies
from routeprism.policies.own import OwnMemory
from routeprism.printing import join_names
from routeprism.routes import (
    CAUSES,
    MOST_EXPLAINED,
    Cause,
    Loss,
    LossLevel,
    describe_displacer,
)
from routeprism.runs import Finding

NEXT_STEPS: Mapping[Cause, str] = {
    "older overwrote newer": "resolve conflicts by event time, or hold records back",
    "newer overwrote older": "keep older values next to the newest one",
    "window too short": "enlarge the window, hold records back, or search a log of dropped records",
    "merge kept another record": "choose the member to keep by event time, or rebuild from a log",
    "discarded as a duplicate": (
        "compare event times before you discard a record, or search a log of discarded records"
    ),
    "discarded as late": "accept records that arrive late, or hold records back",
    "never kept": "check that `add` stores records, and that `retained` gives their ids",
    "retrieval chose other records": "break ties by event time, or retrieve more records",
    "blocks in a different order": "sort the blocks by source or event time before you show them",
    "text rewritten": "check whether answers differ: audit with a model",
    "state only": "nothing: questions see the same",
    "not explained": "let the memory report what each arrival does (`events()`)",
}


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


@dataclass(frozen=True, slots=True)
class _LikelyCause:
    """The most frequent cause of a memory's losses, and the schedules that share it."""

    policy: str
    cause: Cause
    schedules: list[str]
    typical: int
    """The number of cases with this cause."""
    explained: int
    """The number of cases it is the most frequent of."""
    total: int
    """The number of all cases of this kind, most of which may not have been explained."""
    example: Loss


def describe_causes(
    causes: Sequence[_LikelyCause], places: Places, flags: tuple[str, ...] = ()
) -> Iterator[Statement]:
    """State the most frequent cause for each memory and schedule, with one record as an example."""
    for likely in causes:
        cause, example = likely.cause, likely.example
        cases = "examined" if cause == "not explained" else "explained"
        yield Statement(
            (
                f"Likely cause {_describe_schedules(likely.schedules)}: {CAUSES[cause]} "
                f"({likely.typical:,} of {likely.explained:,} {cases} cases, "
                f"{likely.total:,} in all).",
                *filter(None, [_describe_example(example, places)]),
                f" Next: {NEXT_STEPS[cause]}",
            ),
            "causes",
            likely.policy,
            likely.schedules[0],
            "info",
            _choose_step(places, likely.policy, cause) if example.record else "",
            flags=flags,
            confirmation=_choose_confirmation(places, example),
        )


def find_causes(examples: Sequence[Loss], losses: LossCounts) -> list[_LikelyCause]:
    """Find the most frequent cause of each memory; schedules with the same cause share it.

    Lost records come before texts that differ, and these before internal state. Examples have the
    first loss of each kind, in the order of the schedules.
    """
    shared: dict[tuple[str, Cause], _LikelyCause] = {}
    for policy, schedule in dict.fromkeys((loss.policy, loss.schedule) for loss in examples):
        levels: dict[LossLevel, Counter[Cause]] = {}
        for (name, place, cause, has_record), number in losses.counts.items():
            if (name, place) == (policy, schedule):
                levels.setdefault(_find_level(cause, has_record), Counter())[cause] += number
        level = min(levels, key=get_args(LossLevel).index)
        totals = levels[level]
        cause = max(totals, key=lambda name: (totals[name], name))
        example = next(
            loss
            for loss in examples
            if (loss.policy, loss.schedule, loss.cause) == (policy, schedule, cause)
            and _find_level(loss.cause, bool(loss.record)) == level
        )
        new = _LikelyCause(policy, cause, [], 0, 0, 0, example)
        likely = shared.get((policy, cause), new)
        shared[policy, cause] = replace(
            likely,
            schedules=[*likely.schedules, schedule],
            typical=likely.typical + totals[cause],
            explained=likely.explained + totals.total(),
            total=likely.total + losses.cases[policy, schedule, level],
        )
    return list(shared.values())


def _find_level(cause: Cause, has_record: bool) -> LossLevel:
    if has_record:
        return "record"
    return "state" if cause == "state only" else "display"


def _choose_step(places: Places, policy: str, cause: Cause) -> str:
    """Return the command that measures repairs, or the Python call if there is none."""
    if cause == "never kept":
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
    if example.cause == "not explained":  # building it again may cost money
        return ""
    arrival = ("--arrival", example.schedule) if example.schedule in places.arrivals else ()
    outcome = "support" if places.is_labelled else "exposed"
    command = ("routeprism", "orders", places.benchmark, "--policy", example.policy, *arrival)
    return shlex.join((*command, "--shrink", outcome))


def _describe_schedules(schedules: Sequence[str]) -> str:
    """Name the orders of arrival that a cause explains."""
    orders = [schedule for schedule in schedules if schedule != FORWARD.name]
    names = [describe_arrival(schedule) for schedule in list_arrivals(orders)]
    first = ["in source order"] if FORWARD.name in schedules else []
    return join_names([*first, *([f"under {join_names(names)}"] if names else [])])


def _describe_example(loss: Loss, places: Places) -> str:
    """Quote a lost record, the question that needs it, and the arrival that displaced it."""
    if not loss.record:
        return ""
    record = _quote(places.records.get((loss.user, loss.record), ""))
    question = _quote(places.questions.get((loss.user, loss.question), ""))
    needed = f", for the question {question}," if question else ""
    by = describe_displacer(loss.cause, loss.record, loss.by, lambda id: f"'{id}'")
    return (
        f" Example: '{loss.record}'{f' {record}' if record else ''} of user '{loss.user}'{needed} "
        f"was lost{f' {by}' if by else ''}."
    )


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return f"“{shorten(words)}”" if words else ""


def _conclude(outcome: AuditOutcome) -> Conclusion:
    examples = [
        loss for loss in outcome.observations.losses.examples if loss.policy not in outcome.noisy
    ]
    places = [FORWARD.name, *(a.name for a in outcome.plan.arrivals)]
    places += [schedule.name for schedule in outcome.plan.schedules]
    examples.sort(key=lambda loss: places.index(loss.schedule))
    causes = find_causes(examples, outcome.observations.losses)
    questions: dict[tuple[str, str, str, str], list[Loss]] = {}
    stored: Counter[tuple[str, str]] = Counter()
    for loss in examples:
        stored[loss.policy, loss.schedule] += 1
        if stored[loss.policy, loss.schedule] > MOST_LOSSES:
            continue
        place = (loss.policy, loss.schedule, loss.user, loss.question)
        questions.setdefault(place, []).append(loss)
    findings = [
        Finding(
            name="losses",
            value=[asdict(loss) for loss in group],
            policy=policy,
            schedule=schedule,
            user=user,
            question=question,
        )
        for (policy, schedule, user, question), group in questions.items()
    ]
    flags = ("synthetic",) if outcome.plan.benchmark.synthetic else ()
    statements = tuple(describe_causes(causes, _find_places(causes, outcome), flags))
    return Conclusion(statements, {"causes": findings} if findings else {})


def _find_places(causes: Sequence[_LikelyCause], outcome: AuditOutcome) -> Places:
    """Return the texts of lost records and of the questions that need them, by user and id."""
    benchmark = outcome.plan.benchmark
    users = {likely.example.user for likely in causes if likely.example.record}
    # The pools after the last of these users are not read.
    cases = list(islice((c for c in benchmark.cases if c.pool.user in users), len(users)))
    return Places(
        benchmark.argument,
        {
            (case.pool.user, record.id): record.text
            for case in cases
            for record in case.pool.records
        },
        {(case.pool.user, q.id): q.text for case in cases for q in case.questions},
        {
            policy.name
            for policy in outcome.plan.policies
            if isinstance(policy, OwnMemory)
            and ":" not in policy.name
            and policy.name not in registered_policies()
        },
        bool(outcome.plan.labels),
        [model.name for model in outcome.plan.arrivals],
    )


def _tabulate(results: Results) -> list[Table]:
    """Count the causes of each memory, the most frequent first, harmless ones last."""
    counts: Counter[tuple[str, Cause, str]] = Counter()
    aside = list_asides(results)
    for finding in results.findings.get("losses", ()):
        if finding.policy not in aside:
            for loss in finding.value:
                counts[finding.policy, loss["cause"], finding.schedule] += 1
    memories = [verdict.policy for verdict in judge(results)]
    totals: Counter[tuple[str, Cause]] = Counter()
    for (policy, cause, _), number in counts.items():
        totals[policy, cause] += number

    def rank(item: tuple[str, Cause]) -> tuple[int, bool, int]:
        policy, cause = item
        place = memories.index(policy) if policy in memories else len(memories)
        return place, cause == "state only", -totals[item]

    return make_table(
        "causes",
        "Why questions are shown something different",
        "Cases that were explained: a question under an order of arrival, at most "
        f"{MOST_EXPLAINED} of each pool and {MOST_LOSSES} for each memory and order.",
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
    title="Likely causes",
    summary="Explain which arrivals displaced the evidence, and what to do about it.",
    commands=("audit", "remedy", "demo"),
    rank=-5,
    tab="summary",
    conclude=_conclude,
    tables=_tabulate,
    charts=lambda results: (),
)
