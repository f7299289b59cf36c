"""Gates: limits that estimates must keep, and the questions on which they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from routeprism.errors import SpecError
from routeprism.exhibits import (
    Number,
    Statement,
    compose,
    format_share,
    make_card,
    shorten,
    shorten_lines,
)
from routeprism.experiments.statements import show_flags
from routeprism.judge import (
    LOST,
    MISSING,
    Verdict,
    describe_floor,
    is_at_floor,
    read_verdicts,
    recommend_gates,
)
from routeprism.quantities import find_quantity
from routeprism.review.selection import (
    Gate,
    name_column,
    parse_gate,
    read_values,
    select_gate_rows,
    select_questions,
)
from routeprism.runs import (
    IDENTITY,
    Column,
    EstimateRow,
    Rows,
    Shortfall,
    StoredQuestion,
    StoredRun,
    read_configuration,
)

if TYPE_CHECKING:
    from routeprism.review.changes import Change
    from routeprism.review.comparison import Difference, RunComparison

__all__ = [
    "CheckResult",
    "FailedQuestion",
    "Gate",
    "GateVerdict",
    "check_run",
    "list_lost_records",
    "parse_gate",
    "suggest_gates",
]

_NO_WORSE = ("J>=baseline", "recall.exposed.route>=baseline", "accuracy.route.upper>=baseline")
"""The gates of a baseline to which no gate refers.

Answers vary by themselves, so theirs must be shown to be worse.
"""


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """A question whose own value is beyond the limit."""

    id: str
    user: str
    text: str
    value: float
    """Its value, or its change from the baseline."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """The result of a gate for one row."""

    gate: str
    row: EstimateRow
    passed: bool
    value: float
    """The number that was compared with the bound."""
    bound: float
    statement: Statement
    questions: tuple[FailedQuestion, ...] = ()
    """The questions beyond the limit, the furthest first."""

    @property
    def sentence(self) -> str:
        """The statement as text."""
        return str(self.statement)


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult:
    """The results of all gates for a run."""

    run: str
    benchmark: str
    verdicts: tuple[GateVerdict, ...]
    limits: str = ""
    """How the run's 95% limits were read, in words."""
    shortfalls: tuple[tuple[str, Shortfall], ...] = ()
    """(run, what it lacks) of the run and its baseline, where more is missing than allowed."""
    memories: tuple[Verdict, ...] = ()
    """The verdict on each memory that the gates apply to."""
    remarks: tuple[str, ...] = ()
    """What a reader has to know about the gates themselves."""

    @property
    def passed(self) -> bool:
        """Whether every gate holds, nothing is missing, and the verdicts are conclusive."""
        return not (self.shortfalls or self.failures or self.doubts)

    @property
    def incomplete(self) -> bool:
        """Whether the run lacks anything, even if that is allowed."""
        return bool(self.shortfalls) or any(memory.is_incomplete for memory in self.memories)

    @property
    def failures(self) -> tuple[GateVerdict, ...]:
        """The verdicts on rows for which a gate does not hold."""
        return tuple(verdict for verdict in self.verdicts if not verdict.passed)

    @property
    def doubts(self) -> tuple[Verdict, ...]:
        """The memories about which nothing can be concluded, so that a gate that holds is void.

        Missing answers and routes are `shortfalls`, some of which may be allowed.
        """
        return tuple(memory for memory in self.memories if memory.inconclusive not in ("", MISSING))

    @property
    def headline(self) -> str:
        """The outcome in one sentence, the same in every output."""
        number = len(self.verdicts)
        state = " (incomplete)" if self.incomplete else ""
        if self.failures:
            return f"a gate fails{state}"
        if self.shortfalls:
            return f"too much is missing to decide{state}"
        if self.doubts:
            memory, *rest = self.doubts
            more = f" (and {len(rest)} more)" if rest else ""
            reason = f"nothing can be concluded{state}, whatever the limits: {memory.policy}: "
            return f"{reason}{memory.inconclusive}{more}"
        limits = f"{'the limit holds' if number == 1 else f'all {number} limits hold'}{state}"
        faulty = [memory for memory in self.memories if memory.is_red]
        if not faulty:
            return limits
        more = f" (and {len(faulty) - 1} more)" if len(faulty) > 1 else ""
        return f"{limits}, but the verdict is: {faulty[0]}{more}"

    @property
    def summary(self) -> str:
        """The outcome in one line, with the first limit that does not hold."""
        mark = "ok  " if self.passed else "FAIL"
        if not self.failures:
            return f"{mark} {self.headline}"
        state = " (incomplete)" if self.incomplete else ""
        count = f"{len(self.failures)} of {len(self.verdicts)} limits{state}"
        return f"{mark} {count}: {self.failures[0].sentence}"

    def _list_lines(self) -> list[str]:
        """Return the failures or the outcome, then every other gate, and the verdicts."""
        return [
            *(f"FAIL {verdict.sentence}" for verdict in self.failures),
            *([] if self.failures else [self.summary]),
            *(f"ok   {verdict.sentence}" for verdict in self.verdicts if verdict.passed),
            *(f"{run} is incomplete: {missing}" for run, missing in self.shortfalls),
            *map(str, self.memories),
            *(f"Note: {remark}" for remark in self.remarks),
        ]

    def __str__(self) -> str:
        return shorten_lines(self._list_lines(), "verdicts")

    def __repr__(self) -> str:
        return f"<CheckResult of {self.run}: {len(self.verdicts)} limits, {self._name_state()}>"

    def _repr_html_(self) -> str:
        """Show the outcome as a short card in a notebook."""
        return make_card(f"{self.run}: {self._name_state()}", self._list_lines())

    def _name_state(self) -> str:
        state = "passed" if self.passed else f"{len(self.failures)} failed"
        if self.doubts and not self.failures:
            state = "inconclusive"
        return f"{state}{' (incomplete)' * self.incomplete}"


def suggest_gates(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the recommended limits that a run on these memories can be compared with."""
    gates = dict.fromkeys(gate for verdict in verdicts for gate in recommend_gates(verdict))
    return list(gates)


def check_run(
    run: Path, gates: Sequence[str], baseline: Path | None = None, *, allow_missing: int = 0
) -> CheckResult:
    """Judge every gate on every row that it applies to.

    A baseline to which no gate refers must not be better.

    A run that lacks more than `allow_missing` answers and routes does not pass.
    """
    if allow_missing < 0:
        raise SpecError(f"Expected 0 or more but got allow_missing={allow_missing}")
    parsed = [parse_gate(text) for text in gates]
    has_reference = any(gate.baseline for gate in parsed)
    if baseline is None and has_reference:
        raise SpecError("a gate compares with a baseline: give the run that is the baseline")
    with StoredRun(run) as stored:
        benchmark = str(read_configuration(stored, run)["benchmark"])
        memories = read_verdicts(stored)
        if not parsed and baseline is None:
            raise SpecError(_suggest_call(memories))
        limits = str(stored.manifest().get("limits", ""))
        rows = Rows.of(stored.estimates())
        comparison = None if baseline is None else _compare(baseline, run)
        changes = _index_changes(comparison)
        shortfalls = _shortfalls(stored, run, baseline, allow_missing)
        judging = _Judging(stored, stored.questions(), changes, baseline, rows, memories)
        is_lacking = bool(shortfalls) or _is_without_rows(memories)
        verdicts, remarks = judging.judge_gates(parsed, is_lacking=is_lacking)
        if comparison is not None and not has_reference:
            verdicts_of_baseline, remarks_of_baseline = judging.judge_baseline(comparison)
            verdicts += verdicts_of_baseline
            remarks += remarks_of_baseline
    subjects = _select_subjects(memories, parsed)
    outcome = tuple(verdicts), limits, shortfalls, subjects, tuple(remarks)
    return CheckResult(str(run), benchmark, *outcome)


def _suggest_call(memories: Sequence[Verdict]) -> str:
    hint = " and ".join(f"'{gate}'" for gate in suggest_gates(memories) or ["J>=0.9"])
    return f"nothing to check: give a gate such as {hint}, or a baseline"


def _index_changes(comparison: RunComparison | None) -> dict[Column, Difference]:
    differences = () if comparison is None else comparison.differences
    return {difference.column: difference for difference in differences}


def _select_subjects(memories: Sequence[Verdict], gates: Sequence[Gate]) -> tuple[Verdict, ...]:
    """Select the memories that gates apply to."""
    policies = {gate.where.get("policy", "") for gate in gates} or {""}
    return tuple(memory for memory in memories if policies & {"", memory.policy})


def _is_without_rows(memories: Sequence[Verdict]) -> bool:
    """Whether no memory was compared under any order, so that no gate can have a row."""
    return bool(memories) and not any(memory.rows for memory in memories)


_TOTAL = "total>=baseline"
"""Names the requirement that a memory is not worse in total than in the baseline."""
_OVERLAP = "anomaly"
"""The quantity of overlapping writes, which a run without them lacks."""
_REPLACED = "evidence_lost"
"""The quantity that `evidence.lost` replaces in this version."""


def _explain_replaced(gate: Gate, rows: Rows) -> list[str]:
    """Explain what the former quantity of lost evidence counts, if a gate names it."""
    if gate.quantity != _REPLACED:
        return []
    plain = rows.where(stratum="all", mask="", arm="")
    former, counted = (
        max((row.queries or 0 for row in plain.where(quantity=name)), default=0)
        for name in (_REPLACED, LOST)
    )
    return [
        f"{gate.text}: {_REPLACED} counts only questions with evidence to lose (at most {former} "
        f"of {counted}). It is replaced by {LOST}, which counts all {counted} questions with labels"
    ]


def _shortfalls(
    stored: StoredRun, run: Path, baseline: Path | None, allowed: int
) -> tuple[tuple[str, Shortfall], ...]:
    """Return what the run, and its baseline, lack beyond what is allowed."""
    shortfalls = [(str(run), stored.shortfall())]
    if baseline is not None:
        with StoredRun(baseline) as before:
            shortfalls.append((str(baseline), before.shortfall()))
    return tuple((name, shortfall) for name, shortfall in shortfalls if shortfall.total > allowed)


def list_lost_records(run: Path, verdict: GateVerdict) -> list[str]:
    """Name the records that a memory of a failed gate lost, and why each was lost.

    A record that several orders lose is named once.
    """
    from routeprism.judge import describe_loss
    from routeprism.runs import Loss

    row = verdict.row
    with StoredRun(run) as stored:
        losses = {
            (loss["user"], loss["question"], loss["record"]): loss
            for finding in stored.findings("causes", "losses")
            if (finding.policy, finding.schedule) == (row.policy, row.schedule)
            for loss in reversed(finding.value)
            if loss["record"]
        }
        texts = {
            (user, record.id): stored.text(record.text_sha256)
            for user in dict.fromkeys(user for user, _, _ in losses)
            for record in stored.records(user)
        }
    return [
        f"lost record {_quote_record(record, texts.get((user, record), ''))} of user '{user}' "
        f"(question {question}): "
        + describe_loss(
            Loss(**loss), {id: text for (owner, id), text in texts.items() if owner == user}
        )
        for (user, question, record), loss in list(losses.items())[:_MOST_EXAMPLES]
    ]


_QUOTED = 60
"""Characters of a record in a message."""


def _quote_record(id: str, text: str) -> str:
    words = " ".join(text.split())
    return f"'{id}'" + (f" “{shorten(words, _QUOTED)}”" if words else "")


@dataclass(frozen=True, slots=True)
class _Judging:
    """A run whose gates are judged, and its changes from a baseline."""

    stored: StoredRun
    questions: Mapping[str, StoredQuestion]
    changes: Mapping[Column, Difference]
    baseline: Path | None
    rows: Rows
    memories: Sequence[Verdict]
    """Those that have a verdict, and not the repairs and arms of another one."""

    def judge_gates(
        self, gates: Sequence[Gate], *, is_lacking: bool
    ) -> tuple[list[GateVerdict], list[str]]:
        """Judge gates; one without a row is a wrong call, unless everything `is_lacking`."""
        verdicts: list[GateVerdict] = []
        remarks = []
        for gate in gates:
            is_absent = gate.quantity == _OVERLAP and not self.rows.where(quantity=_OVERLAP)
            if is_absent and len(gates) > 1:
                remarks.append(f"{gate.text} applies to no row: no writes of this run overlap")
                continue
            try:
                verdicts += self.judge_rows(gate, self.rows)
            except SpecError:
                if not is_lacking:
                    raise
            remarks += _explain_replaced(gate, self.rows)
        return verdicts, remarks

    def judge_rows(self, gate: Gate, candidates: Rows) -> list[GateVerdict]:
        """Judge a gate on each of its rows with a number; it has to name repairs and arms."""
        rows = select_gate_rows(gate, candidates)
        if "policy" not in gate.where:
            policies = {"", *(memory.policy for memory in self.memories)}
            rows = Rows.of(row for row in rows if row.policy in policies) or rows
        rows = Rows.of(row for row in rows if row.estimate is not None) or rows
        judge = self._judge_change if gate.baseline else self._judge_row
        return [judge(gate, row) for row in rows]

    def judge_baseline(self, comparison: RunComparison) -> tuple[list[GateVerdict], list[str]]:
        """Judge what must not be worse than in a baseline to which no gate refers.

        A memory that is better in total may depend more on order: a repair is not a failure.
        """
        shared = Rows.of(row for row in self.rows if _column(row) in self.changes)
        quantities = shared.values("quantity")
        gates = [gate for gate in map(parse_gate, _NO_WORSE) if gate.quantity in quantities]
        verdicts: list[GateVerdict] = []
        remarks = []
        changes = {change.after.policy: change for change in comparison.changes}
        for verdict in chain.from_iterable(self.judge_rows(gate, shared) for gate in gates):
            change = changes.get(verdict.row.policy)
            if not (verdict.passed or verdict.row.model) and change and change.outcome == "better":
                sentence = verdict.sentence.replace(" fails: ", " is left out: ", 1)
                remarks.append(f"{sentence}. In total the new version is better: {change.reason}")
            else:
                verdicts.append(verdict)
        return [*verdicts, *self._judge_totals(changes, verdicts)], remarks

    def _judge_totals(
        self, changes: Mapping[str, Change], verdicts: Sequence[GateVerdict]
    ) -> Iterator[GateVerdict]:
        """Fail every memory that is worse in total although each of its numbers holds."""
        failing = {verdict.row.policy for verdict in verdicts if not verdict.passed}
        for policy, change in changes.items():
            if change.severity == "problem" and policy not in failing:
                text = f"{_TOTAL} fails: {change}"
                statement = Statement((text,), "gate", policy, severity="problem")
                row = self.rows.where(policy=policy)[0]
                yield GateVerdict(_TOTAL, row, False, -1, 0, statement)

    def _judge_row(self, gate: Gate, row: EstimateRow) -> GateVerdict:
        value = getattr(row, gate.limit)
        if value is None:
            raise _refusal(gate, row, applies=row.estimate is not None, units=row.units or 0)
        text = _number(value)
        is_count = find_quantity(row.quantity).derivation == "count"  # a question counts or not
        if is_count:
            text += f" of {row.queries}"
        if gate.limit == "estimate" and row.lower is not None and row.upper is not None:
            text += f" [{row.lower:.3f}, {row.upper:.3f}]"
        names = {name: getattr(row, name) for name in IDENTITY}
        for count in self.rows.where(**names | {"quantity": f"{row.quantity}_count"}):
            text += f" ({format_share(count)} questions)"
        name = gate.quantity
        if gate.limit != "estimate":
            name = f"the {gate.limit} limit of {gate.quantity}"
        parts = (f"{name} is ", Number(text, row))
        values = {} if gate.holds(value) else _read_values(row, self.stored)
        bound = 0.5 if is_count else gate.bound
        return self._decide(gate, row, float(value), parts, values, bound)

    def _judge_change(self, gate: Gate, row: EstimateRow) -> GateVerdict:
        """Judge the change from the baseline, over the questions that both runs have."""
        if row.stratum != "all" or row.mask or row.is_count:
            raise SpecError(
                f"gate {gate.text!r}: a change from the baseline is of a mean over all questions"
            )
        change = self.changes.get(_column(row))
        if change is None or self.baseline is None:
            raise SpecError(
                f"gate {gate.text!r}: {self.baseline} has no {gate.quantity} for "
                f"{_name_row(row)} to compare with"
            )
        gap = change.difference
        value = {"estimate": gap.value, "lower": gap.lower, "upper": gap.upper}[gate.limit]
        if value is None:
            raise _refusal(gate, row, applies=True, units=1)
        parts = (
            f"{gate.quantity} is {change.after:.3f}, {change.before:.3f} in {self.baseline}: a "
            f"change of {change.change}",
        )
        values: dict[str, float] = {}
        if not gate.holds(value):
            with StoredRun(self.baseline) as stored:
                before = _read_values(row, stored, change.policy_before)
            after = _read_values(row, self.stored)
            values = {id: own - before[id] for id, own in after.items() if id in before}
        return self._decide(gate, row, float(value), parts, values, gate.bound)

    def _decide(
        self,
        gate: Gate,
        row: EstimateRow,
        value: float,
        sentence: Sequence[str | Number],
        values: Mapping[str, float],
        bound: float,
    ) -> GateVerdict:
        """Make the verdict, with the questions whose own values are beyond the bound."""
        passed = gate.holds(value)
        sign = 1 if gate.operator.startswith(">") else -1
        beyond = sorted(
            (item for item in values.items() if not gate.holds(item[1], bound)),
            key=lambda item: (sign * item[1], item[0]),
        )
        failed = tuple(
            FailedQuestion(id, self.questions[id].user, self.questions[id].text, own)
            for id, own in beyond
        )
        parts = compose(
            "{gate} {verdict}: {shown}{floor}{required}",
            gate=gate.text,
            verdict="holds" if passed else "fails",
            shown=sentence,
            floor=f" ({describe_floor(row)})" if is_at_floor(row) else "",
            required="" if passed else _describe_failure(gate, failed, len(values)),
        )
        statement = Statement(
            parts,
            "gate",
            row.policy,
            row.schedule,
            "good" if passed else "problem",
            scope=_name_scope(row),
            flags=show_flags(row),
        )
        return GateVerdict(gate.text, row, passed, value, gate.bound, statement, failed)


def _refusal(gate: Gate, row: EstimateRow, *, applies: bool, units: int) -> SpecError:
    unit = row.unit or "unit"
    reason = "it is not applicable there"
    if applies:
        reason = f"too few {unit}s for an interval"
        if units < 2:
            reason = f"one {unit} alone gives no interval"
    return SpecError(f"gate {gate.text!r} cannot be judged for {_name_row(row)}: {reason}")


def _compare(baseline: Path, run: Path) -> RunComparison:
    from routeprism.review.comparison import compare_runs

    if baseline.resolve() == run.resolve():
        raise SpecError(f"{run} cannot be its own baseline")
    return compare_runs(baseline, run)


def _column(row: EstimateRow) -> Column:
    quantity = find_quantity(row.quantity)
    counted = quantity.base if quantity.derivation == "count" else quantity
    return name_column(row, quantity=counted.name)


def _read_values(
    row: EstimateRow, stored: StoredRun, policy: str | None = None
) -> dict[str, float]:
    """Read the values that a row is the mean of; empty if none are stored."""
    column = _column(row)
    if policy is not None:
        column = column._replace(policy=policy)
    of_users = read_values(stored, column).values()
    values = {id: value for of_user in of_users for id, value in of_user.items()}
    if row.stratum == "all" and not row.mask:
        return values
    selected = select_questions(row, stored.questions(), stored.masks())
    return {id: value for id, value in values.items() if id in selected}


def _describe_failure(gate: Gate, failed: Sequence[FailedQuestion], total: int) -> str:
    bound = _number(gate.bound)
    if gate.baseline:
        bound = "baseline" + (f"{gate.bound:+g}" if gate.bound else "")
    required = f", required {gate.operator} {bound}"
    if not total:
        return f"{required} (the run contains no values per question for it)"
    if not failed:
        return f"{required}; none of its {total} questions alone is beyond that"
    examples = ", ".join(
        f"{question.id} ({_number(question.value)})" for question in failed[:_MOST_EXAMPLES]
    )
    more = f" and {len(failed) - _MOST_EXAMPLES} more" if len(failed) > _MOST_EXAMPLES else ""
    return f"{required}. {len(failed)} of {total} questions are beyond it: {examples}{more}"


_MOST_EXAMPLES = 5
"""How many failed questions a statement lists."""


def _name_scope(row: EstimateRow) -> str:
    """Name what a row is about, besides its policy."""
    parts = [row.schedule, f"read by {row.model}" if row.model else "", row.arm]
    parts += [f"filler {row.filler}" if row.filler else "", row.batch, row.mask]
    parts.append(row.stratum if row.stratum != "all" else "")
    return ", ".join(filter(None, parts)) or ("" if row.policy else row.experiment)


def _name_row(row: EstimateRow) -> str:
    return ", ".join(filter(None, (row.policy, _name_scope(row))))


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:g}"
