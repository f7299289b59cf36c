"""Gates: limits that estimates must keep, and the questions on which they do not."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.errors import SpecError, nearest
from routeprism.experiments.comparison import Difference, compare_runs, finished
from routeprism.runs import COLUMNS, Column, EstimateRow, Stored, StoredQuestion

__all__ = ["Checked", "FailedQuestion", "Gate", "Verdict", "check_run", "parse_gate"]

_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_TEXT = re.compile(
    r"(?:(?P<where>.*):)?(?P<quantity>[^:<>=\s]+)\s*(?P<operator>>=|<=|>|<)\s*"
    r"(?P<baseline>baseline)?\s*(?P<bound>[+-]?\s*[0-9.]+(?:e-?[0-9]+)?)?"
)
_NUMERIC = ("estimate", "lower", "upper", "queries", "units", "draws", "seed", "flags", "quantity")
_NARROWING = tuple(name for name in COLUMNS if name not in _NUMERIC)
_PARTS = ("forward-first", "route-first", "support-changed", "support-preserved")
"""Arms that are part of the questions, as strata are; a gate means them only where it says so."""
_NO_WORSE = ("J>=baseline", "recall.exposed.route>=baseline", "accuracy.route.upper>=baseline")
"""What a baseline alone asks for; answers vary by themselves, so theirs must be shown to be worse.
"""


@dataclass(frozen=True, slots=True)
class Gate:
    """A limit on an estimate, on one end of its interval, or on its change from a baseline."""

    text: str
    quantity: str
    limit: str
    """`estimate`, `lower` or `upper`."""
    operator: str
    bound: float
    where: Mapping[str, str]
    """Columns that narrow it down."""
    baseline: bool = False
    """Whether the bound is counted from the baseline's estimate, question by question."""


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """A question whose own value is beyond the limit."""

    id: str
    user: str
    text: str
    value: float
    """Its value, or its change from the baseline."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a gate says of one row."""

    gate: str
    row: EstimateRow
    passed: bool
    value: float
    """What was compared."""
    bound: float
    sentence: str
    questions: tuple[FailedQuestion, ...] = ()
    """Where it failed: the questions beyond the limit, the furthest first."""


@dataclass(frozen=True, slots=True)
class Checked:
    """What all gates say of a run."""

    run: str
    benchmark: str
    verdicts: tuple[Verdict, ...]
    limits: str = ""
    """How the run's 95% limits were read, in words."""

    @property
    def passed(self) -> bool:
        """Whether every gate holds for every row it speaks of."""
        return all(verdict.passed for verdict in self.verdicts)


def parse_gate(text: str) -> Gate:
    """Read `J>=0.9`, `restored-absent.lower<=0.1`, `policy=focal,schedule=replay:J>=baseline`."""
    found = _TEXT.fullmatch(text.strip())
    if found is None or (found["baseline"] is None and found["bound"] is None):
        raise SpecError(
            f"Expected a gate such as 'J>=0.9', 'restored-absent.lower<=0.1' or "
            f"'policy=focal,schedule=replay:J>=baseline-0.02' but got {text!r}"
        )
    quantity, _, limit = found["quantity"].rpartition(".")
    if limit not in ("estimate", "lower", "upper"):
        quantity, limit = found["quantity"], "estimate"
    try:
        bound = float((found["bound"] or "0").replace(" ", ""))
    except ValueError as error:
        raise SpecError(f"Expected a number in gate {text!r} but got {found['bound']!r}") from error
    return Gate(
        text.strip(),
        quantity,
        limit,
        found["operator"],
        bound,
        _where(found["where"], text),
        found["baseline"] is not None,
    )


def _where(text: str | None, gate: str) -> dict[str, str]:
    if text is None:
        return {}
    # A policy's own parameters have commas, too: only a known column begins another condition.
    parts = re.split(rf",\s*(?=(?:{'|'.join(_NARROWING)})=)", text)
    where = {}
    for part in parts:
        name, equals, value = part.strip().partition("=")
        if not equals or name not in _NARROWING:
            raise SpecError(
                f"Expected column=value but got {part!r} in gate {gate!r}. "
                + nearest(name, _NARROWING)
            )
        where[name] = value
    return where


def check_run(run: Path, gates: Sequence[str], baseline: Path | None = None) -> Checked:
    """Judge every gate on every row it speaks of; with a baseline alone, it must not be worse."""
    parsed = [parse_gate(text) for text in gates]
    if not parsed and baseline is None:
        raise SpecError("say what to check: --gate 'J>=0.9', or --baseline RUN")
    if baseline is None and any(gate.baseline for gate in parsed):
        raise SpecError("a gate speaks of the baseline: say which run that is, --baseline RUN")
    with Stored(run) as stored:
        benchmark = str(finished(stored, run)["benchmark"])
        limits = str(stored.manifest().get("limits", ""))
        rows = stored.estimates()
        changes = {} if baseline is None else _changes(baseline, run)
        if not parsed:  # what both runs have, and nothing else
            rows = [row for row in rows if _column(row) in changes]
            known = {row.quantity for row in rows}
            made = [parse_gate(text) for text in _NO_WORSE]
            parsed = [gate for gate in made if gate.quantity in known]
        questions = stored.questions()
        verdicts = []
        for gate in parsed:
            for row in _meant(gate, rows):
                if gate.baseline:
                    verdicts.append(_against(gate, row, changes, str(baseline), stored, questions))
                else:
                    verdicts.append(_judged(gate, row, stored, questions))
    return Checked(str(run), benchmark, tuple(verdicts), limits)


def _meant(gate: Gate, rows: Sequence[EstimateRow]) -> list[EstimateRow]:
    """Give the rows that a gate speaks of: no comparators, and all questions unless it says so."""
    if gate.quantity not in {row.quantity for row in rows}:
        known = {row.quantity for row in rows}
        raise SpecError(
            f"gate {gate.text!r}: the run has no {gate.quantity!r}. {nearest(gate.quantity, known)}"
        )
    where = {"stratum": "all", "mask": "", **gate.where}
    found = [
        row
        for row in rows
        if row.quantity == gate.quantity
        and all(getattr(row, name) == value for name, value in where.items())
        and ("policy" in where or not row.policy.startswith("source-order("))
        and ("arm" in where or row.arm not in _PARTS)
    ]
    if found:
        return found
    for name, value in gate.where.items():
        known = {getattr(row, name) for row in rows if row.quantity == gate.quantity}
        if value not in known:
            raise SpecError(
                f"gate {gate.text!r}: no {gate.quantity} has {name} {value!r}. "
                + nearest(value, known)
            )
    raise SpecError(f"gate {gate.text!r} speaks of no row of the run")


def _judged(
    gate: Gate, row: EstimateRow, stored: Stored, questions: Mapping[str, StoredQuestion]
) -> Verdict:
    value = getattr(row, gate.limit)
    if value is None:
        raise SpecError(
            f"gate {gate.text!r} cannot be judged for {_who(row)}: "
            + (
                "it is not applicable there"
                if row.estimate is None
                else f"one {row.unit or 'unit'} alone gives no interval"
            )
        )
    held = _OPERATORS[gate.operator]
    passed = held(value, gate.bound)
    shown = f"{_named(gate)} is {_number(value)}"
    if gate.limit == "estimate" and row.lower is not None and row.upper is not None:
        shown += f" [{row.lower:.3f}, {row.upper:.3f}]"
    own = {} if passed else _values(row, stored)
    bound = 0.5 if row.quantity.endswith("_count") else gate.bound  # each is counted or is not
    failed = _beyond(own, questions, lambda one: held(one, bound), gate.operator)
    return _verdict(gate, row, passed, float(value), gate.bound, shown, failed, len(own))


def _against(
    gate: Gate,
    row: EstimateRow,
    changes: Mapping[Column, Difference],
    baseline: str,
    stored: Stored,
    questions: Mapping[str, StoredQuestion],
) -> Verdict:
    """Judge the change from the baseline, over the questions that both runs have."""
    if row.stratum != "all" or row.mask or row.quantity.endswith("_count"):
        raise SpecError(
            f"gate {gate.text!r}: a change from the baseline is of a mean over all questions"
        )
    change = changes.get(_column(row))
    if change is None:
        raise SpecError(
            f"gate {gate.text!r}: {baseline} has no {gate.quantity} for {_who(row)} to compare with"
        )
    found = change.difference
    value = {"estimate": found.value, "lower": found.lower, "upper": found.upper}[gate.limit]
    if value is None:
        raise SpecError(
            f"gate {gate.text!r} cannot be judged for {_who(row)}: one {row.unit} alone gives no "
            f"interval"
        )
    held = _OPERATORS[gate.operator]
    passed = held(value, gate.bound)
    number = f"{found.value:+.3f}"
    if found.lower is not None and found.upper is not None:
        number += f" [{found.lower:+.3f}, {found.upper:+.3f}]"
    shown = (
        f"{gate.quantity} is {change.after:.3f}, {change.before:.3f} in {baseline}: "
        f"a change of {number}"
    )
    own: dict[str, float] = {}
    if not passed:
        with Stored(Path(baseline)) as other:
            before = _values(row, other, change.policy_before)
        own = {id: one - before[id] for id, one in _values(row, stored).items() if id in before}
    failed = _beyond(own, questions, lambda one: held(one, gate.bound), gate.operator)
    return _verdict(gate, row, passed, float(value), gate.bound, shown, failed, len(own))


def _changes(baseline: Path, run: Path) -> dict[Column, Difference]:
    if baseline.resolve() == run.resolve():
        raise SpecError(f"{run} cannot be its own baseline")
    return {change.column: change for change in compare_runs(baseline, run).differences}


def _column(row: EstimateRow) -> Column:
    names = {name: getattr(row, name) for name in Column._fields}
    return Column(**{**names, "quantity": row.quantity.removesuffix("_count")})


def _values(row: EstimateRow, stored: Stored, policy: str | None = None) -> dict[str, float]:
    """Give the values that the row is the mean of, within its stratum; none where none are kept."""
    column = _column(row)
    if policy is not None:
        column = column._replace(policy=policy)
    found = stored.per_question(**column._asdict()).get(column, {})
    kinds = stored.questions() if row.stratum != "all" else {}
    return {
        id: value
        for values in found.values()
        for id, value in values.items()
        if row.stratum == "all" or kinds[id].kind == row.stratum
    }


def _beyond(
    values: Mapping[str, float],
    questions: Mapping[str, StoredQuestion],
    held: Callable[[float], bool],
    sign: str,
) -> tuple[FailedQuestion, ...]:
    failed = [(value, id) for id, value in values.items() if not held(value)]
    failed.sort(key=lambda one: (one[0] if sign.startswith(">") else -one[0], one[1]))
    return tuple(
        FailedQuestion(id, questions[id].user, questions[id].text, value) for value, id in failed
    )


def _verdict(
    gate: Gate,
    row: EstimateRow,
    passed: bool,
    value: float,
    bound: float,
    shown: str,
    failed: tuple[FailedQuestion, ...],
    known: int,
) -> Verdict:
    wanted = f"{gate.operator} {'baseline' if gate.baseline else ''}{_bound(gate)}"
    head = f"{gate.text} {'holds' if passed else 'fails'} for {_who(row)}: {shown}"
    sentence = head if passed else f"{head}, wanted {wanted}{_where_failed(failed, known)}"
    return Verdict(gate.text, row, passed, value, bound, sentence, failed)


def _bound(gate: Gate) -> str:
    if not gate.baseline:
        return _number(gate.bound)
    return f"{gate.bound:+g}" if gate.bound else ""


def _where_failed(failed: Sequence[FailedQuestion], known: int, most: int = 5) -> str:
    if not known:
        return " (the run keeps no values per question for it)"
    if not failed:
        return f"; none of its {known} questions alone is beyond that"
    listed = ", ".join(f"{one.id} ({_number(one.value)})" for one in failed[:most])
    more = f" and {len(failed) - most} more" if len(failed) > most else ""
    return f". {len(failed)} of {known} questions are beyond it: {listed}{more}"


def _named(gate: Gate) -> str:
    return (
        gate.quantity if gate.limit == "estimate" else f"the {gate.limit} limit of {gate.quantity}"
    )


def _who(row: EstimateRow) -> str:
    parts = [row.policy, row.schedule, f"read by {row.model}" if row.model else ""]
    parts += [row.arm, f"filler {row.filler}" if row.filler else "", row.batch, row.mask]
    parts.append(row.stratum if row.stratum != "all" else "")
    told = ", ".join(part for part in parts if part) or row.experiment
    return told + "".join(f" [{f}]" for f in row.flags.split(";") if f in ("synthetic", "embedded"))


def _number(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".") if abs(value) < 1e6 else f"{value:g}"
