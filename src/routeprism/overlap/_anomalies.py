"""Anomalies: outcomes of overlapping writes that no serial order of the same writes has."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, permutations
from typing import Any, Literal, get_args

from routeprism.overlap._durations import list_conditions, name_write
from routeprism.overlap._exploration import explore_interleavings, explore_order
from routeprism.overlap._trials import Execution, Outcome, Trial
from routeprism.policies import JsonValue
from routeprism.policies.own import closing_memory
from routeprism.records import Record

Kind = Literal["error", "lost", "duplicated", "torn", "stale"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of anomaly; an anomaly has the first that applies."""

_MOST_ORDERS = 720
"""Serial orders up to which every one is built."""
_DRAWN_ORDERS = 50
"""Serial orders that are drawn where there are more."""
_OUTSIDE_ORDERS = (6, 3)
"""The same two numbers for a system outside this process, of which each build takes long."""
_MOST_DURATIONS = 200
"""Outcomes that are tried for each serial order, if they depend on the durations of requests."""
_MOST_SIMILAR = 500
"""Interleavings that are tried to describe an anomaly more simply."""
_MOST_HANGING = 4
"""Interleavings that are tried to reduce an anomaly in which a write never ends."""
_MOST_STATES = 2_000
"""Merged states up to which serial outcomes are computed from them."""


@dataclass(frozen=True, slots=True)
class SerialOutcomes:
    """The outcomes of the same writes one after the other."""

    outcomes: tuple[Outcome, ...]
    builds: int
    """How many serial builds it took."""
    complete: bool
    """Whether these are the outcomes of all orders."""
    key: Callable[[Any], Any] | None = field(default=None, compare=False)
    """Names what counts of a state, if the memory declares it; equal keys are equal outcomes."""

    def classify(self, outcome: Outcome) -> Kind | None:
        """Name the anomaly that an outcome is; None if it is the outcome of a serial order.

        If not all orders were built, an undrawn order may keep different records. Then only an
        outcome with fewer records, more copies of one, or more errors than any built order counts.
        An outcome is compared with those of the same durations: a write whose own requests are
        fast enough does not exceed a timeout alone.
        """
        outcomes = [serial for serial in self.outcomes if serial.slow <= outcome.slow]
        if outcome.never_ended:
            return "error"
        if _write(outcome, self.key) in {_write(serial, self.key) for serial in outcomes}:
            return None
        if _has_new_error(outcome, outcomes, complete=self.complete):
            return "error"
        counts = [Counter(serial.retained) for serial in outcomes]
        retained = Counter(outcome.retained)
        if not self.complete:
            return _classify_drawn(retained, counts)
        return _classify_counts(retained, counts) or _classify_state(
            _list_content(outcome), [_list_content(serial) for serial in outcomes]
        )


def _list_content(outcome: Outcome) -> JsonValue:
    """Return what is compared beside records and errors."""
    exposures = [[[list(ids), text] for ids, text in blocks] for blocks in outcome.shown]
    return [outcome.state, exposures]


def _has_new_error(outcome: Outcome, serial: Sequence[Outcome], *, complete: bool) -> bool:
    if complete:
        errors = Counter(outcome.errors)
        return not any(errors <= Counter(each.errors) for each in serial)
    most: Counter[str] = Counter()
    for each in serial:
        most |= _count_errors(each)
    return bool(_count_errors(outcome) - most)


def _count_errors(outcome: Outcome) -> Counter[str]:
    """Count the errors of each class; their messages may name the records."""
    return Counter(error.partition(":")[0] for error in outcome.errors)


def _classify_counts(retained: Counter[str], counts: Sequence[Counter[str]]) -> Kind | None:
    """Compare how often each record is kept with the serial outcomes; None if that agrees."""
    nearest = min(counts, key=lambda count: _distance(count, retained))
    if nearest - retained:
        return "lost"
    extra = retained - nearest
    if not extra:
        return None
    # A record that every serial order evicts was kept because an add saw an old state.
    stored = set().union(*counts)
    return "duplicated" if any(id in stored or retained[id] > 1 for id in extra) else "stale"


def _classify_drawn(retained: Counter[str], counts: Sequence[Counter[str]]) -> Kind | None:
    """Compare with some of the serial outcomes: name only what no order is likely to give."""
    totals = {count.total() for count in counts}
    missing = any(
        retained[id] < number and all(count[id] >= number for count in counts)
        for id, number in counts[0].items()
    )
    if retained.total() < min(totals) and (missing or len(totals) == 1):
        return "lost"
    copied = any(
        number > 1 and number > max(count[id] for count in counts)
        for id, number in retained.items()
    )
    return "duplicated" if copied else None


def _distance(first: Counter[str], second: Counter[str]) -> int:
    return sum(((first - second) + (second - first)).values())


def _classify_state(state: JsonValue, serial: Sequence[JsonValue]) -> Kind:
    """Distinguish a mixture of several serial states from a value that no serial state has."""
    leaves = [set(_list_leaves(outcome)) for outcome in serial]
    serial_leaves: set[tuple[str, str]] = set().union(*leaves)
    return "torn" if set(_list_leaves(state)) <= serial_leaves else "stale"


def _list_leaves(state: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(state, Mapping):
        for key, value in state.items():
            yield from _list_leaves(value, f"{path}/{key}")
    elif isinstance(state, (list, tuple)):
        yield f"{path}#", str(len(state))
        for at, value in enumerate(state):
            yield from _list_leaves(value, f"{path}/{at}")
    else:
        yield path, repr(state)


def _write(outcome: Outcome, key: Callable[[Any], Any] | None = None) -> str:
    # A key names all that counts, so what is shown may differ.
    content = _list_content(outcome) if key is None else repr(key(outcome.state))
    return json.dumps([outcome.retained, content, outcome.errors], sort_keys=True, default=repr)


def list_serial_outcomes(trial: Trial) -> SerialOutcomes:
    """Build the writes of a trial one after the other, in every order.

    A memory that declares `key(state)` is built only once for states with the same future. If
    there are more than 720 orders otherwise (6 for a system outside this process), orders are
    drawn.
    """
    number = len(trial.writes)
    merged = None if trial.policy.outside else _merge_serial_states(trial)
    if merged is not None:
        return merged
    most, sample_size = _OUTSIDE_ORDERS if trial.policy.outside else (_MOST_ORDERS, _DRAWN_ORDERS)
    exhaustive = math.factorial(number) <= most
    orders = list(permutations(range(number))) if exhaustive else _draw_orders(number, sample_size)
    outcomes: dict[tuple[str, frozenset[str]], Outcome] = {}
    # By chance, an order can have outcomes that were not built.
    complete = exhaustive and trial.policy.deterministic
    builds = 0
    for order in orders:
        results, covered = explore_order(trial, order, limit=_MOST_DURATIONS)
        builds += len(results)
        complete = complete and covered
        outcomes |= {(_write(outcome), outcome.slow): outcome for outcome in results}
        if any(outcome.over_limit for outcome in results):
            complete = False  # every further order may take as long
            break
    return SerialOutcomes(tuple(outcomes.values()), builds, complete)


def _draw_orders(number: int, orders: int) -> list[tuple[int, ...]]:
    forward = tuple(range(number))
    chooser = random.Random(number)  # noqa: S311
    sample = [tuple(chooser.sample(forward, number)) for _ in range(orders - 2)]
    return [forward, forward[::-1], *sample]


def _merge_serial_states(trial: Trial) -> SerialOutcomes | None:
    """Extend one order of each set of writes and key.

    Gives None if the memory does not declare `key(state)`, or if there are too many states.
    """
    if not trial.policy.deterministic:
        return None
    with closing_memory(trial.policy.factory()) as memory:
        key = getattr(memory, "key", None)
        if not callable(key) or not callable(getattr(memory, "state", None)):
            return None
        level: dict[tuple[frozenset[int], str], tuple[int, ...]] = {(frozenset(), ""): ()}
        builds = 0
        outcomes: dict[str, Outcome] = {}
        for _ in trial.writes:
            following: dict[tuple[frozenset[int], str], tuple[int, ...]] = {}
            for (arrived, _), order in level.items():
                for write in range(len(trial.writes)):
                    if write in arrived:
                        continue
                    longer = (*order, write)
                    results, _ = explore_order(trial, longer, limit=2)
                    builds += 1
                    outcome = results[0]
                    if len(results) > 1 or outcome.never_ended:
                        return None
                    identity = _write(outcome, key)
                    following.setdefault((arrived | {write}, identity), longer)
                    if len(longer) == len(trial.writes):
                        outcomes[identity] = outcome
                    if len(following) > _MOST_STATES:
                        return None
            level = following
    return SerialOutcomes(tuple(outcomes.values()), builds, complete=True, key=key)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """An outcome that no serial order has, with the smallest set of writes that shows it."""

    kind: Kind
    trial: Trial
    execution: Execution
    nearest: Outcome
    """The serial outcome that is most similar."""
    seed: int | None = None
    """The seed from which the interleaving can be repeated; None if it was found exhaustively."""

    def list_conditions(self) -> list[str]:
        """Describe the durations that it needs, in words; nothing if it needs none."""
        return list_conditions(self.trial.writes, self.execution)

    @property
    def missing(self) -> tuple[str, ...]:
        """The ids that the most similar serial outcome retains and this one does not."""
        retained = Counter(self.execution.outcome.retained)
        return tuple(sorted((Counter(self.nearest.retained) - retained).elements()))

    def list_steps(self) -> list[str]:
        """Describe the interleaving step by step; nothing if RoutePrism did not choose it."""
        if not self.execution.controlled:
            return []
        verb = "waits at" if self.trial.manner == "async" else "stops before"
        words = {
            "end": "ends",
            "background": "continues in the background",
            "function": "a function on another thread ends",
            "timeout": "a timeout ends",
        }
        return [
            f"{number}. {name_write(self.trial.writes, step.write)}: "
            + words.get(step.place, f"{verb} {step.place}")
            for number, step in enumerate(self.execution.steps, start=1)
        ]


def describe_anomaly(
    trial: Trial, serial: SerialOutcomes, execution: Execution, kind: Kind, seed: int | None
) -> Anomaly:
    """Put an anomaly together with the serial outcome that is most similar."""
    retained = Counter(execution.outcome.retained)
    nearest = min(
        serial.outcomes,
        key=lambda outcome: (
            len(outcome.slow - execution.outcome.slow),
            _distance(Counter(outcome.retained), retained),
        ),
    )
    return Anomaly(kind, trial, execution, nearest, seed)


def shrink_anomaly(anomaly: Anomaly, *, limit: int = 200) -> Anomaly:
    """Find the fewest of the writes that show an anomaly of the same kind, and how they show it.

    Sets of writes are tried by size, as long as there are at most `limit` of a size, and then by
    leaving out one write at a time. Each set gets up to `limit` interleavings or repetitions.
    """
    if anomaly.execution.outcome.never_ended:
        limit = min(limit, _MOST_HANGING)
    if anomaly.trial.policy.outside:
        return _shrink_outside(anomaly)
    for writes, minimal in _list_smaller_sets(anomaly.trial.writes, limit):
        smaller = _find_kind(replace(anomaly.trial, writes=writes), anomaly.kind, limit)
        if smaller is not None:
            return smaller if minimal else shrink_anomaly(smaller, limit=limit)
    if anomaly.trial.manner != "async":
        return anomaly
    # The one that a seed has drawn may have conditions that no anomaly needs.
    return _find_kind(anomaly.trial, anomaly.kind, limit) or anomaly


def _list_smaller_sets(
    writes: tuple[Record, ...], limit: int
) -> Iterator[tuple[tuple[Record, ...], bool]]:
    """List sets of writes to try, each with whether all smaller sets come before it."""
    number = len(writes)
    for size in range(2, number):
        if math.comb(number, size) > limit:
            yield from ((subset, False) for subset in combinations(writes, number - 1))
            return
        yield from ((subset, True) for subset in combinations(writes, size))


def _shrink_outside(anomaly: Anomaly) -> Anomaly:
    """Try the first two, four, eight and so on of the writes, three times each."""
    writes = anomaly.trial.writes
    size = 2
    while size < len(writes):
        smaller = _find_kind(replace(anomaly.trial, writes=writes[:size]), anomaly.kind, 3)
        if smaller is not None:
            return smaller
        size *= 2
    return anomaly


def find_simplest(
    trial: Trial, serial: SerialOutcomes, executions: Sequence[Execution], kind: Kind | None = None
) -> Anomaly | None:
    """Find the anomaly, of one kind or of any, that needs the fewest conditions and steps."""
    simplest = _choose_simplest(trial, serial, executions, kind)
    if simplest is None or not _begins_late(simplest):
        return simplest
    # Writes that begin at once show the same more simply, but were left out as equivalent.
    similar = explore_interleavings(trial, limit=_MOST_SIMILAR, prune=False).executions
    return _choose_simplest(trial, serial, [simplest.execution, *similar], simplest.kind)


def _choose_simplest(
    trial: Trial, serial: SerialOutcomes, executions: Sequence[Execution], kind: Kind | None
) -> Anomaly | None:
    kinds = ((execution, serial.classify(execution.outcome)) for execution in executions)
    return min(
        (
            describe_anomaly(trial, serial, execution, anomaly, None)
            for execution, anomaly in kinds
            if anomaly is not None and anomaly == (kind or anomaly)
        ),
        key=lambda anomaly: (
            _begins_late(anomaly),
            len(anomaly.list_conditions()),
            len(anomaly.execution.steps),
        ),
        default=None,
    )


def _begins_late(anomaly: Anomaly) -> bool:
    """Whether a write begins only after a request of another write has ended."""
    return any(request.unbegun for request in anomaly.execution.requests)


def _find_kind(trial: Trial, kind: Kind, limit: int) -> Anomaly | None:
    """Perform every interleaving, and if there are too many drawn ones also."""
    serial = list_serial_outcomes(trial)
    draws = min(limit, 50)
    if trial.manner == "async":
        exploration = explore_interleavings(trial, limit=limit)
        simplest = find_simplest(trial, serial, exploration.executions, kind)
        if simplest is not None or (exploration.complete and not exploration.bounds):
            return simplest
        draws = limit
    for seed in range(draws):
        execution = trial.sample(seed)
        if serial.classify(execution.outcome) == kind:
            return describe_anomaly(trial, serial, execution, kind, seed)
    return None
