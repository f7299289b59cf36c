"""Why evidence is lost, and what to do next: causes that were tested on the losing orders."""

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
from routeprism.experiments.severity import (
    MemoryVerdict,
    decide_outcome,
    decide_results,
    describe_arrival,
    list_arrivals,
    list_asides,
)
from routeprism.experiments.statements import join_names
from routeprism.orders import FORWARD
from routeprism.policies import Policy, describe_client, registered_policies
from routeprism.policies.own import OwnMemory
from routeprism.routes import MOST_TESTED, CauseKind, Loss, LossLevel, find_level, is_costly
from routeprism.runs import Finding

CAUSES: Mapping[CauseKind, str] = {
    "never kept": "the memory does not keep the record, even alone",
    "refused": "the memory refuses the record, even alone",
    "not retrievable": "the record is kept, but not shown even if it is the only one",
    "full": "the memory was full",
    "overwritten": "another record overwrote it",
    "merged": "another record was merged with it",
    "duplicate": "another record arrived first, and the memory keeps one of the two",
    "late": "the record was refused because newer ones had arrived",
    "procedure": "the memory loses it only if records are handed over in this way",
    "joint": "several records together displaced it",
    "tie": "another record ranks the same and is shown instead",
    "budget": "other records fill the limit of what is shown",
    "ranking": "the record is kept, but other records rank higher",
    "order of blocks": "the same blocks are shown in a different order",
    "rewritten": "the same records are shown in a different text",
    "state only": "only internal state differs",
    "untested": "not tested",
}
"""Causes, and what happened in each case."""

NEXT_STEPS: Mapping[CauseKind, str] = {
    "never kept": "check that `add` stores records, and that `retained` gives their ids",
    "refused": "check why `add` refuses the record",
    "not retrievable": "check how `expose` finds a record that is kept",
    "full": "enlarge the memory, or search a log of dropped records",
    "overwritten": "compare event times before a record overwrites another, or keep both",
    "merged": "choose the member to keep by event time, or keep both",
    "duplicate": "keep both records, or compare event times before you discard one",
    "late": "accept records that arrive late, or hold records back",
    "procedure": "store in this procedure what the memory stores if records are added one by one",
    "joint": "compare event times before records replace another, or keep all of them",
    "tie": "break ties by event time",
    "budget": "enlarge what a question may be shown, or show shorter records",
    "ranking": "rank by relevance or event time, or retrieve more records",
    "order of blocks": "sort the blocks by source or event time before you show them",
    "rewritten": "check whether answers differ: audit with a model",
    "state only": "nothing: questions see the same",
    "untested": "compare what the memory does with each of the two records alone",
}
_WITHOUT_LOSS = ("order of blocks", "rewritten", "state only")
_BUILDS_PER_TEST = 3
"""How many builds a test usually takes."""


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


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a memory's losses, in source order or under all orders that lose evidence."""

    policy: str
    cause: CauseKind
    schedules: tuple[str, ...]
    """The orders with this cause, or `forward` for source order."""
    record: str
    """The id of a lost record, which is the example; so are the other ids and texts."""
    by: tuple[str, ...]
    user: str
    question: str
    tested: int
    """The number of cases that were tested, whatever the result."""
    explained: int
    """The number of tested cases with this cause."""
    cases: int
    """The number of all cases under all orders."""
    example: Loss
    record_text: str = ""
    by_texts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        # As it is read back from JSON.
        for name in ("schedules", "by", "by_texts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if isinstance(self.example, dict):
            object.__setattr__(self, "example", Loss(**self.example))


def _is_collision(loss: Loss) -> bool:
    return loss.cause == "duplicate" and loss.source_loses


def describe_loss(loss: Loss, texts: Mapping[str, str]) -> str:
    """Describe what removed a record and how that was tested, as a clause."""
    clause = _CLAUSES.get(loss.cause, CAUSES[loss.cause])
    if loss.cause == "full" and not loss.by:
        clause = "the memory was full when {record} arrived"
    elif loss.cause == "overwritten" and loss.is_when_full:
        clause = "the memory was full, and {by} took the place of {record}"
    elif _is_collision(loss):
        clause = "{by} had taken the place of {record}: whichever of the two arrives first is kept"
    text = clause.format(record=_name_record(loss.record, texts), by=_name_displacers(loss, texts))
    reply = f" (`add` returned “{shorten(loss.reply, _REPLY)}”)" if loss.reply else ""
    test = f"{';' if ':' in clause else ':'} {loss.test}" if loss.test else ""
    is_order = loss.is_order and loss.schedule != FORWARD.name
    order = "; in the opposite order of the two it is there" if is_order else ""
    return f"{text}{reply}{test}{order}"


def _name_displacers(loss: Loss, texts: Mapping[str, str]) -> str:
    """Name the records that displaced another one; a single one with its relation in time."""
    if not loss.by:
        return "other records"
    names = [_name_record(id, texts) for id in loss.by[:_MOST_NAMED]]
    if len(loss.by) > _MOST_NAMED:
        names.append(f"{len(loss.by) - _MOST_NAMED} more")
    relation = {"older": ", an older record,", "newer": ", a newer record,"}.get(loss.relation, "")
    return join_names(names) + (relation if len(names) == 1 else "")


_CLAUSES: Mapping[CauseKind, str] = {
    "never kept": "the memory does not keep {record}",
    "refused": "the memory refuses {record}",
    "not retrievable": "the memory keeps {record}, but does not show it",
    "full": "the memory was full, and {record} had to leave",
    "overwritten": "{by} overwrote {record}",
    "merged": "the memory merged {record} with {by} and lost its id",
    "duplicate": "the memory discarded {record} because {by} had arrived before",
    "late": "{record} arrived too late, because {by} had arrived before",
    "procedure": "the memory does not keep {record} if records are handed over in this way",
    "joint": "{by} displaced {record} together",
    "tie": "the memory keeps {record}, but shows {by} instead, although both rank the same",
    "budget": "the memory keeps {record}, but {by} filled the limit of what is shown",
    "ranking": "the memory keeps {record}, but ranks {by} higher",
}
_MOST_NAMED = 2
_MOST_STATED = 2
"""Causes of a memory that have a sentence, in source order and under all orders of arrival."""
_REPLY = 80
"""Characters of a reply in a sentence."""


def _name_record(id: str, texts: Mapping[str, str]) -> str:
    text = _quote(texts.get(id, ""))
    return f"'{id}' ({text})" if text else f"'{id}'"


def describe_causes(
    causes: Sequence[Cause], places: Places, flags: tuple[str, ...] = ()
) -> Iterator[Statement]:
    """State the causes of each memory, with one record as an example."""
    tested = {(cause.policy, _is_baseline(cause)) for cause in causes if cause.explained}
    stated: Counter[tuple[str, bool]] = Counter()
    for cause in causes:
        if cause.cause == "untested" and (cause.policy, _is_baseline(cause)) in tested:
            continue  # the sentences before count these cases as well
        stated[cause.policy, _is_baseline(cause)] += 1
        if stated[cause.policy, _is_baseline(cause)] > _MOST_STATED:
            continue
        example = cause.example
        likely = "" if cause.explained else "Likely cause "
        begin = likely + _describe_schedules(cause.schedules)
        question = _quote(places.questions.get((cause.user, cause.question), ""))
        yield Statement(
            (
                f"{begin[:1].upper()}{begin[1:]}: {_describe_cause(cause, places)}.",
                *(
                    [f" User '{cause.user}', question {question}."]
                    * bool(cause.record and question)
                ),
                f" Next: {NEXT_STEPS[cause.cause]}",
            ),
            "causes",
            cause.policy,
            cause.schedules[0],
            "info",
            _choose_step(places, cause.policy, cause.cause) if example.record else "",
            flags=flags,
            confirmation=_choose_confirmation(places, example),
        )


def _describe_cause(cause: Cause, places: Places) -> str:
    """Describe a cause with the number of cases that were tested."""
    if cause.cause == "untested":
        clue = cause.example.test.removeprefix("likely: ")
        of_record = f"'{cause.record}' was {clue}" if clue and cause.record else "not tested"
        if clue.startswith("the test failed"):
            of_record = clue
        price = places.prices.get(cause.policy, "")
        number = cause.cases - cause.tested
        more = f"; testing {'it' if number == 1 else 'them'} takes {price}" if price else ""
        return f"{of_record} ({number:,} of {cause.cases:,} cases were not tested{more})"
    texts = dict(zip(cause.by, cause.by_texts, strict=False)) | {cause.record: cause.record_text}
    clause = describe_loss(cause.example, texts)
    noun = "losses" if cause.record else "cases"
    untested = cause.cases - cause.tested
    rest = f", {untested:,} more were not tested" if untested else ""
    verb = "tested in" if cause.record else "compared in"
    return f"{clause} ({verb} {cause.explained:,} of {cause.tested:,} {noun}{rest})"


def _is_baseline(cause: Cause) -> bool:
    return cause.schedules == (FORWARD.name,)


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


def _describe_schedules(schedules: Sequence[str]) -> str:
    """Name the orders of arrival that a cause explains."""
    orders = [schedule for schedule in schedules if schedule != FORWARD.name]
    names = [describe_arrival(schedule) for schedule in list_arrivals(orders)]
    first = ["in source order"] if FORWARD.name in schedules else []
    return join_names([*first, *([f"under {join_names(names)}"] if names else [])])


def _quote(text: str) -> str:
    words = " ".join(text.split())
    return f"“{shorten(words)}”" if words else ""


def _is_reported(loss: Loss, verdict: MemoryVerdict | None) -> bool:
    """Leave out chance, and evidence that is missing in source order where that is rare."""
    if verdict is None:
        return True
    if loss.schedule == FORWARD.name:
        return verdict.lacks_evidence
    return not verdict.is_random


def _conclude(outcome: AuditOutcome) -> Conclusion:
    verdicts = {verdict.policy: verdict for verdict in decide_outcome(outcome)}
    plan = outcome.plan
    orders = [FORWARD.name, *(a.name for a in plan.arrivals), *(s.name for s in plan.schedules)]
    random = {policy for policy, verdict in verdicts.items() if verdict.is_random}
    losses = [loss for loss in outcome.observations.losses.examples if loss.policy not in random]
    losses.sort(key=lambda loss: orders.index(loss.schedule))
    causes = find_causes(losses, outcome.observations.losses)
    places = _find_places(causes, outcome)
    causes = [_add_texts(cause, places) for cause in causes]
    examples = [loss for loss in losses if _is_reported(loss, verdicts.get(loss.policy))]
    findings = [*_store_losses(examples), *_store_causes(causes)]
    flags = ("synthetic",) if plan.benchmark.synthetic else ()
    reported = [c for c in causes if _is_reported(c.example, verdicts.get(c.policy))]
    statements = tuple(describe_causes(reported, places, flags))
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
    memories = [verdict.policy for verdict in decide_results(results)]
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
