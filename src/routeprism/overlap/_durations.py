"""The durations of requests that an interleaving needs, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from routeprism.overlap._loop import Pause
from routeprism.overlap._trials import Execution
from routeprism.records import Record

_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def list_conditions(writes: Sequence[Record], execution: Execution) -> list[str]:
    """List what the durations of the requests have to be for an interleaving, in words."""
    requests = [each for each in execution.requests if each.write < len(writes)]
    numbers = Counter(request.write for request in requests)

    def name(request: Pause) -> str:
        write = name_write(writes, request.write)
        if numbers[request.write] == 1:
            return f"the request of {write}"
        return f"the {_name_number(request.number)} request of {write}"

    conditions = []
    for pair in combinations(requests, 2):
        early, late = sorted(pair, key=_ended)
        if early.write == late.write or early.ended is None:
            continue
        if late.began <= early.began:
            conditions.append(f"{name(late)} takes longer than {name(early)}")
        elif late.began < early.ended:
            conditions.append(f"{name(early)} ends before {name(late)}")
    for request in requests:
        conditions += [
            f"{name(request)} ends while {name_write(writes, write)} is between two steps"
            for write in request.between
        ]
        conditions += [
            f"{name(request)} ends before {name_write(writes, write)} begins"
            for write in request.unbegun
        ]
    for timeout in execution.timeouts:
        conditions += [
            f"{name(request)} lasts until the timeout of {timeout.seconds:g} seconds of "
            f"{name_write(writes, timeout.write)}"
            for request in requests
            if request.began < timeout.ended < _ended(request)
        ]
    return conditions


def name_write(writes: Sequence[Record], number: int) -> str:
    """Name a write by its record."""
    return writes[number].id if number < len(writes) else "the background"


def _ended(request: Pause) -> float:
    return float("inf") if request.ended is None else request.ended


def _name_number(number: int) -> str:
    return _ORDINALS[number - 1] if number <= len(_ORDINALS) else f"{number}th"
