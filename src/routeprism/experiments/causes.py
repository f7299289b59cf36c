"""Why evidence is lost, and what to do next: causes read from the traces of each memory."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict

from routeprism.exhibits import Results, Statement, Table, make_table
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments.severity import (
    MemoryVerdict,
    decide_outcome,
    describe_arrival,
    join_names,
)
from routeprism.orders import FORWARD
from routeprism.policies.own import OwnMemory
from routeprism.records import Benchmark
from routeprism.routes import CAUSES, Cause, Loss
from routeprism.runs import Finding

__all__ = ["NEXT_STEPS", "describe_causes", "experiment"]

_MOST_STORED = 200
"""The number of explained cases that a run stores for each memory and order of arrival."""

NEXT_STEPS: Mapping[Cause, str] = {
    "older overwrote newer": "resolve conflicts by event time, or hold records back",
    "newer overwrote older": "keep older values beside the newest one",
    "window too short": "enlarge the window, hold records back, or search a log of dropped records",
    "merge kept another record": "choose the member to keep by event time, or rebuild from a log",
    "discarded as a duplicate": (
        "compare event times before you discard a record, or search a log of discarded records"
    ),
    "retrieval chose other records": "break ties by event time, or retrieve more records",
    "blocks in a different order": "sort the blocks by source or event time before you show them",
    "text rewritten": "check whether answers differ: audit with a model",
    "state only": "nothing to do: questions see the same",
    "not explained": "let the memory report events, or audit it with a smaller pool",
}


def describe_causes(
    losses: Sequence[Loss],
    texts: Mapping[tuple[str, str], str],
    benchmark: str,
    flags: tuple[str, ...] = (),
    unnamed: Collection[str] = (),
) -> Iterator[Statement]:
    """State the most frequent cause for each memory and schedule, with one record as an example.

    Lost records come before texts that differ, and these before internal state. Schedules with the
    same cause share a statement. `unnamed` are classes that no command can name.
    """
    for (policy, cause), schedules in _group_causes(losses).items():
        explained = [loss for group in schedules.values() for loss in group]
        losses_of_cause = [loss for loss in explained if loss.cause == cause]
        example = losses_of_cause[0]
        yield Statement(
            (
                f"Likely cause {_describe_places(list(schedules))}: {CAUSES[cause]} "
                f"({len(losses_of_cause)} of {len(explained)} explained cases)"
                f"{_describe_example(example, texts)}. Next: "
                f"{NEXT_STEPS[cause]}",
            ),
            "causes",
            policy,
            next(iter(schedules)),
            "info",
            _choose_step(benchmark, policy, unnamed) if example.record else "",
            flags=flags,
        )


def _group_causes(losses: Sequence[Loss]) -> dict[tuple[str, Cause], dict[str, list[Loss]]]:
    """Group explained losses by memory and most frequent cause, then by schedule."""
    groups: dict[tuple[str, str], list[Loss]] = {}
    for loss in losses:
        groups.setdefault((loss.policy, loss.schedule), []).append(loss)
    shared: dict[tuple[str, Cause], dict[str, list[Loss]]] = {}
    for (policy, schedule), every in groups.items():
        visible = [loss for loss in every if loss.cause != "state only"]
        group = [loss for loss in visible if loss.record] or visible or every
        counts = Counter(loss.cause for loss in group)
        cause = max(counts, key=lambda name: (counts[name], name))
        shared.setdefault((policy, cause), {})[schedule] = group
    return shared


def _choose_step(benchmark: str, policy: str, unnamed: Collection[str]) -> str:
    """Return the command that measures repairs, or the Python call if there is none."""
    if policy in unnamed:
        return "call remedies() of this result"
    return shlex.join(("routeprism", "remedy", benchmark, "--policy", policy))


def _describe_places(schedules: Sequence[str]) -> str:
    """Name the orders of arrival that a cause explains."""
    names = [describe_arrival(schedule) for schedule in schedules if schedule != FORWARD.name]
    places = ["in source order"] if FORWARD.name in schedules else []
    return join_names([*places, *([f"under {join_names(names)}"] if names else [])])


def _describe_example(loss: Loss, texts: Mapping[tuple[str, str], str]) -> str:
    if not loss.record:
        return ""
    text = " ".join(texts.get((loss.user, loss.record), "").split())
    quoted = f" (“{text[:80]}{'…' * (len(text) > 80)}”)" if text else ""
    by = f" when '{loss.by}' arrived" if loss.by and loss.by != loss.record else ""
    return f", for example record '{loss.record}'{quoted} of user '{loss.user}'{by}"


def _is_reported(loss: Loss, verdict: MemoryVerdict | None) -> bool:
    """Leave out chance, and evidence that is missing in source order where that is rare."""
    if verdict is None:
        return True
    if loss.schedule == FORWARD.name:
        return verdict.lacks_evidence
    return not verdict.is_random


def _conclude(outcome: AuditOutcome) -> Conclusion:
    verdicts = {verdict.policy: verdict for verdict in decide_outcome(outcome)}
    losses = [
        loss
        for loss in outcome.observations.losses
        if _is_reported(loss, verdicts.get(loss.policy))
    ]
    texts = _quote_records(losses, outcome.plan.benchmark)
    places = [FORWARD.name, *(a.name for a in outcome.plan.arrivals)]
    places += [schedule.name for schedule in outcome.plan.schedules]
    losses.sort(key=lambda loss: places.index(loss.schedule))
    benchmark = outcome.plan.benchmark.argument
    questions: dict[tuple[str, str, str, str], list[Loss]] = {}
    stored: Counter[tuple[str, str]] = Counter()
    for loss in losses:
        stored[loss.policy, loss.schedule] += 1
        if stored[loss.policy, loss.schedule] > _MOST_STORED:
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
    unnamed = {
        policy.name
        for policy in outcome.plan.policies
        if isinstance(policy, OwnMemory) and ":" not in policy.name
    }
    statements = tuple(describe_causes(losses, texts, benchmark, flags, unnamed))
    return Conclusion(statements, {"causes": findings} if findings else {})


def _quote_records(losses: Sequence[Loss], benchmark: Benchmark) -> dict[tuple[str, str], str]:
    """Return the text of every lost record, by user and id."""
    lost = {(loss.user, loss.record) for loss in losses if loss.record}
    users = {user for user, _ in lost}
    return {
        (case.pool.user, record.id): record.text
        for case in benchmark.cases
        if case.pool.user in users
        for record in case.pool.records
        if (case.pool.user, record.id) in lost
    }


def _tabulate(results: Results) -> list[Table]:
    counts: Counter[tuple[str, str, Cause]] = Counter()
    repairs = {finding.policy for finding in results.findings.get("repair", ())}
    for finding in results.findings.get("losses", ()):
        if finding.policy in repairs:
            continue
        for loss in finding.value:
            counts[finding.policy, finding.schedule, loss["cause"]] += 1
    return make_table(
        "causes",
        "Likely causes",
        "Why questions are shown different records or text, in the cases that were explained "
        f"(at most {_MOST_STORED} for each memory and order of arrival).",
        ("memory", "arrival", "cause", "what to do", "cases"),
        [
            (policy, describe_arrival(schedule), CAUSES[cause], NEXT_STEPS[cause], str(number))
            for (policy, schedule, cause), number in counts.most_common()
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
    columns=(),
    row_filter=lambda row: False,
    conclude=_conclude,
    tables=_tabulate,
    charts=lambda results: (),
)
