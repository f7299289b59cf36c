"""Findings as pytest tests: each has its witness, and fails as long as the memory has the fault."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from routeprism.errors import RunError
from routeprism.experiments import Audit
from routeprism.files import write_output
from routeprism.judge import Cause, Verdict
from routeprism.orders import FORWARD
from routeprism.records import Benchmark, Case, Question, Record

__all__ = ["list_witnesses", "save_witnesses"]

_HEAD = '''"""What RoutePrism found: each test fails as long as the memory has the fault.

The records and questions of the witnesses are part of this file. Run: pytest {name}
"""

from __future__ import annotations

import routeprism
from routeprism.judge import Verdict
from routeprism.records import Benchmark, Case, Pool, Question, Record, Turn


def judge(memory: str, *cases: Case, **orders: list[str]) -> Verdict:
    """Audit a memory on the witness alone."""
    benchmark = Benchmark(
        "witness", cases, "0" * 64, labels=("given",), updates=("given",), interface={interface!r}
    )
    result = routeprism.audit(benchmark, memory, resamples=100, workers=1, **orders)
    return result.verdicts[0]
'''


def save_witnesses(audit: Audit, benchmark: Benchmark, path: Path) -> int:
    """Write a test for each finding of an audit; give their number."""
    tests = list(list_witnesses(audit, benchmark))
    text = _HEAD.format(name=path.name, interface=benchmark.interface)
    if not tests:
        text += '\n\ndef test_nothing_was_found() -> None:\n    """The audit found no fault."""\n'
    content = "\n\n".join([text.rstrip("\n") + "\n", *tests])
    try:
        write_output(path, content.encode())
    except OSError as error:
        raise RunError(f"{path} cannot be written: {error.strerror or error}") from error
    return len(tests)


def list_witnesses(audit: Audit, benchmark: Benchmark) -> Iterator[str]:
    """List a test as source text for each finding that has a witness."""
    names: dict[str, int] = {}
    cases_of_users = {case.pool.user: case for case in benchmark.cases}
    for verdict in audit.verdicts:
        claims = [
            *_claim_causes(verdict, cases_of_users),
            *_claim_promises(verdict, audit, cases_of_users),
        ]
        for title, claim, cases, orders in claims:
            name = re.sub(r"\W+", "_", title, flags=re.ASCII).strip("_").lower()
            names[name] = names.get(name, 0) + 1
            number = f"_{names[name]}" if names[name] > 1 else ""
            arguments = [repr(verdict.policy), *cases]
            arguments += [f"{kind}=[{order!r}]" for kind, order in orders.items()]
            lines = "".join(f"        {argument},\n" for argument in arguments)
            yield (
                f"def test_{name}{number}() -> None:\n"
                f"    verdict = judge(\n{lines}    )\n"
                f"    assert {claim}, str(verdict)\n"
            )


_Claim = tuple[str, str, list[str], Mapping[str, str]]
"""The title of a test, what it asserts, its cases, and the orders that it passes."""


def _claim_causes(verdict: Verdict, cases: Mapping[str, Case]) -> Iterator[_Claim]:
    for cause in verdict.causes:
        case = cases.get(cause.user)
        question = None if case is None else _find_question(case, cause.question)
        if case is None or question is None or not cause.record:
            continue
        witness = [_write_case(case, (question,))]
        if cause.is_baseline:
            claim = "not verdict.baseline.lacking"
            yield f"{cause.record} is shown in source order", claim, witness, _REVERSAL
        else:
            claim = "verdict.lost == 0"
            orders = _name_order(cause, verdict)
            yield f"{cause.record} is shown in this order", claim, witness, orders


def _claim_promises(verdict: Verdict, audit: Audit, cases: Mapping[str, Case]) -> Iterator[_Claim]:
    for promise in verdict.promises:
        name = "leaks" if promise.promise == "leaked" else f"anomaly.{promise.promise}"
        witnesses = [f for f in audit.findings if (f.name, f.policy) == (name, verdict.policy)]
        for finding in witnesses[:1]:
            users = (finding.value.get("owner", ""), finding.user)
            pools = [_write_case(cases[u], cases[u].questions) for u in users if u in cases]
            orders = {"schedules": promise.schedule} if promise.schedule else _REVERSAL
            title = f"no promise fails {promise.promise} {finding.user}"
            yield title, "not verdict.promises", pools, orders


_REVERSAL: Mapping[str, str] = {"schedules": "replay"}


def _find_question(case: Case, id: str) -> Question | None:
    return next((question for question in case.questions if question.id == id), None)


def _name_order(cause: Cause, verdict: Verdict) -> Mapping[str, str]:
    """Name the losing order: as a permutation if it is one, else by its schedule or model."""
    loss = cause.example
    places = loss.order
    if loss.schedule in verdict.rows and loss.schedule.partition(":")[0] not in _MODELS:
        return {"schedules": loss.schedule}
    if sorted(places) == list(range(len(places))) and places:
        return {"schedules": f"explicit:order={'-'.join(map(str, places))}"}
    kind = "arrivals" if loss.schedule.partition(":")[0] in _MODELS else "schedules"
    return {kind: loss.schedule or FORWARD.name}


_MODELS = ("jitter", "late-batch", "uniform", "interleave", "redeliver")
"""Arrival models, whose orders are drawn."""


def _write_case(case: Case, questions: tuple[Question, ...]) -> str:
    """Write a case as source text; repr escapes whatever a record contains."""
    records = "".join(f"                {_write_record(r)},\n" for r in case.pool.records)
    texts = "".join(f"                {_write_question(q)},\n" for q in questions)
    return (
        f"Case(\n            Pool({case.pool.user!r}, (\n{records}            )),\n"
        f"            (\n{texts}            ),\n        )"
    )


def _write_record(record: Record) -> str:
    turns = "".join(f"Turn({turn.role!r}, {turn.text!r}), " for turn in record.spoken)
    spoken = f", ({turns})" if turns else ""
    return (
        f"Record({record.id!r}, {record.position}, {record.text!r}, {record.timestamp!r}{spoken})"
    )


def _write_question(question: Question) -> str:
    support, stale = (
        sorted(frozenset().union(*labels.values())) for labels in (question.labels, question.stale)
    )
    labels = f", labels={{'given': frozenset({support!r})}}" if support else ""
    outdated = f", stale={{'given': frozenset({stale!r})}}" if stale else ""
    return f"Question({question.id!r}, {question.user!r}, {question.text!r}{labels}{outdated})"
