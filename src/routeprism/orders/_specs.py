"""Schedules and arrival models by their specs, such as `random:seed=7` or `jitter:w=2`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import reduce
from itertools import pairwise
from operator import or_
from typing import Any

from routeprism.errors import SpecError, nearest
from routeprism.orders._arrivals import ARRIVALS, ArrivalModel, Maker
from routeprism.orders._procedures import ONE_BY_ONE, PROCEDURES, name_reference, split_procedure
from routeprism.orders._processes import (
    AllOrders,
    Interleaved,
    Jittered,
    LateBatch,
    LinearExtensions,
    ListedOrders,
    Order,
    Process,
    Redelivered,
)
from routeprism.orders._schedules import FIXED, SCHEDULES, Explicit, Schedule, Shuffled
from routeprism.records import TIME_EXAMPLES, Record, read_time
from routeprism.specs import Spec, construct, find_extension, parse, registered

__all__ = ["PRECISIONS", "parse_arrival", "parse_schedule", "ranks"]


PRECISIONS = ("exact", "minute", "hour", "day", "month")
"""The precisions to which times are rounded down before they are compared."""


def ranks(records: Sequence[Record], precision: str = "exact") -> tuple[int | None, ...]:
    """Rank each record among the distinct times; None if it has no time."""
    times = [_time(record, precision) for record in records]
    places = {time: place for place, time in enumerate(sorted({t for t in times if t}))}
    return tuple(None if time is None else places[time] for time in times)


def _time(record: Record, precision: str) -> datetime | None:
    if record.timestamp is None or not record.timestamp.strip():
        return None
    time = _read_time(record)
    if precision == "exact":
        return time
    time = time.replace(second=0, microsecond=0)
    if precision != "minute":
        time = time.replace(minute=0)
    if precision in ("day", "month"):
        time = time.replace(hour=0)
    return time.replace(day=1) if precision == "month" else time


def _read_time(record: Record) -> datetime:
    text = str(record.timestamp).strip()
    time = read_time(text)
    if time is None:
        raise SpecError(
            f"Expected a time such as {TIME_EXAMPLES} but got timestamp={text!r} of record "
            f"'{record.id}'"
        )
    return time


def parse_schedule(text: str | Schedule) -> Schedule:
    """Return the schedule that a user named: an order, a procedure, or `order+procedure`.

    An arrival model gives the order that its seed draws. `X vs Y` compares X with Y. A schedule
    that exists is unchanged.
    """
    if isinstance(text, Schedule):
        return text
    reference = name_reference(text)
    if reference != "forward":
        left = parse_schedule(text.removesuffix(reference).rstrip().removesuffix("vs"))
        return left.compare_with(parse_schedule(reference))
    order, procedure = split_procedure(text.strip())
    return _parse_order(order).perform(procedure)


def _parse_order(text: str) -> Schedule:
    """Return the order that a user named."""
    spec = parse(text)
    if spec.name in FIXED and not spec.values:
        return FIXED[spec.name]
    if spec.name == "random" and set(spec.values) == {"seed"}:
        return Schedule(spec.text, Shuffled(_whole_number(spec, "seed")))
    if spec.name == "explicit" and set(spec.values) == {"order"}:
        return Schedule(spec.text, Explicit(_chain(spec, spec.values["order"])))
    if spec.name in ("random", "explicit", *FIXED):
        pattern = next(candidate for candidate in SCHEDULES if candidate.startswith(spec.name))
        raise SpecError(f"Expected '{pattern}' but got schedule {text!r}")
    if spec.name in _MODELS:
        model = parse_arrival(text)
        return Schedule(spec.text, _RandomOrder(model), redelivers=model.redelivers)
    if (extension := find_extension("schedules", spec)) is not None:
        return _own_schedule(spec, extension)
    names = [candidate.partition(":")[0] for candidate in (*SCHEDULES, *ARRIVALS)]
    procedures = (name.partition(":")[0] for name in PROCEDURES)
    every = (*names, *procedures, *registered("schedules"))
    raise SpecError(f"There is no schedule '{spec.name}'. {nearest(spec.name, every)}")


def _own_schedule(spec: Spec, extension: Any) -> Schedule:
    """Return a schedule of the user's own under the name that they wrote."""
    schedule = extension
    if not isinstance(extension, Schedule) and callable(extension):
        schedule = construct(extension, spec)
    if not isinstance(schedule, Schedule):
        raise SpecError(
            f"Expected a routeprism.Schedule, or a function that returns one, but '{spec.name}' "
            f"gave {type(schedule).__name__}"
        )
    return replace(schedule, name=spec.text)


def parse_arrival(text: str | ArrivalModel) -> ArrivalModel:
    """Return the arrival model that a user named; a schedule is a model with one order."""
    if isinstance(text, ArrivalModel):
        return text
    if split_procedure(text)[1] != ONE_BY_ONE or name_reference(text) != "forward":
        raise SpecError(
            f"Expected an order of arrival but got {text!r}: procedures and references are for "
            f"schedules"
        )
    spec = parse(text)
    if spec.name not in _MODELS:
        schedule = parse_schedule(text)
        return ArrivalModel(schedule.name, _FixedOrder(schedule), redelivers=schedule.redelivers)
    make, parameters = _MODELS[spec.name]
    for key in spec.values:
        if key not in (*parameters, "seed"):
            raise SpecError(
                f"'{spec.name}' has no parameter '{key}'. {nearest(key, (*parameters, 'seed'))}"
            )
    return ArrivalModel(
        spec.text,
        make(spec),
        seed=_whole_number(spec, "seed", default=0, least=0),
        redelivers=spec.name == "redeliver",
        needs_records=spec.name == "timestamps",
    )


@dataclass(frozen=True, slots=True)
class _RandomOrder:
    """The first order that an arrival model draws for a pool."""

    model: ArrivalModel

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Order:
        return self.model.bound(size, user, records).sample(0)


@dataclass(frozen=True, slots=True)
class _FixedOrder:
    schedule: Schedule

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        return ListedOrders((self.schedule.bound(size, user, records),))


@dataclass(frozen=True, slots=True)
class _Uniform:
    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        return AllOrders(size)


@dataclass(frozen=True, slots=True)
class _Jitter:
    width: int

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        return Jittered(size, self.width)


@dataclass(frozen=True, slots=True)
class _LateBatch:
    length: int | None
    delay: int | None

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        """Delay every run that fits; where none does, nothing can be late."""
        if (self.length or 1) + (self.delay or 1) > size:
            return ListedOrders((tuple(range(size)),))
        return LateBatch(size, self.length, self.delay)


@dataclass(frozen=True, slots=True)
class _Interleave:
    sources: int
    split: str

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        sources = min(self.sources, max(size, 1))  # further ones have no record
        if self.split == "turns":
            streams = [range(first, size, sources) for first in range(sources)]
        else:
            bounds = [size * part // sources for part in range(sources + 1)]
            streams = [range(*pair) for pair in pairwise(bounds)]
        return Interleaved(tuple(tuple(stream) for stream in streams if stream))


@dataclass(frozen=True, slots=True)
class _Redeliver:
    copies: int
    within: int | None

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        return Redelivered(size, self.copies, size if self.within is None else self.within)


@dataclass(frozen=True, slots=True)
class _Timestamps:
    precision: str

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        placed = ranks(records or (), self.precision)
        before = [
            sum(
                1 << later
                for later, earlier in enumerate(placed)
                if rank is not None and earlier is not None and earlier < rank
            )
            for rank in placed
        ]
        return LinearExtensions(tuple(before), placed)


@dataclass(frozen=True, slots=True)
class _Partial:
    chains: tuple[Order, ...]
    text: str

    def __call__(self, size: int, user: str, records: Sequence[Record] | None) -> Process:
        """Take the chains of this pool; positions that it does not have are ignored."""
        before = [0] * size
        for chain in self.chains:
            present = [position for position in chain if position < size]
            for earlier, later in pairwise(present):
                before[later] |= 1 << earlier
        for _ in range(size):  # what comes before a predecessor comes before, too
            before = [
                needed | reduce(or_, (before[p] for p in range(size) if needed >> p & 1), 0)
                for needed in before
            ]
        if any(needed >> position & 1 for position, needed in enumerate(before)):
            raise SpecError(f"{self.text!r} goes in a circle: no order can keep it")
        return LinearExtensions(tuple(before))


def _late_batch(spec: Spec) -> Maker:
    values = {
        key: _whole_number(spec, key, least=1) if key in spec.values else None
        for key in ("length", "delay")
    }
    return _LateBatch(values["length"], values["delay"])


def _redeliver(spec: Spec) -> Maker:
    within = _whole_number(spec, "within", least=0) if "within" in spec.values else None
    return _Redeliver(_whole_number(spec, "copies", default=1, least=1), within)


def _interleave(spec: Spec) -> Maker:
    sources = _whole_number(spec, "k", default=2, least=1)
    return _Interleave(sources, _choice(spec, "split", ("blocks", "turns")))


def _partial(spec: Spec) -> Maker:
    if "before" not in spec.values:
        raise SpecError(f"Expected 'partial:before=0-2+1-2' but got {spec.text!r}")
    chains = (_chain(spec, chain) for chain in spec.values["before"].split("+"))
    return _Partial(tuple(chains), spec.text)


_MODELS: Mapping[str, tuple[Callable[[Spec], Maker], tuple[str, ...]]] = {
    "uniform": (lambda spec: _Uniform(), ()),
    "jitter": (lambda spec: _Jitter(_whole_number(spec, "w", default=2, least=0)), ("w",)),
    "late-batch": (_late_batch, ("length", "delay")),
    "interleave": (_interleave, ("k", "split")),
    "redeliver": (_redeliver, ("copies", "within")),
    "timestamps": (
        lambda spec: _Timestamps(_choice(spec, "precision", PRECISIONS)),
        ("precision",),
    ),
    "partial": (_partial, ("before",)),
}


def _chain(spec: Spec, text: str) -> Order:
    return tuple(_number(part, spec.text) for part in text.split("-"))


def _choice(spec: Spec, key: str, allowed: Sequence[str]) -> str:
    value = spec.values.get(key, allowed[0])
    if value not in allowed:
        raise SpecError(
            f"Expected one of {', '.join(allowed)} but got {key}={value} in '{spec.text}'. "
            + nearest(value, allowed)
        )
    return value


def _whole_number(
    spec: Spec, key: str, *, default: int | None = None, least: int | None = None
) -> int:
    if key not in spec.values and default is not None:
        return default
    value = _number(spec.values[key], spec.text)
    if least is not None and value < least:
        raise SpecError(f"Expected {key} of {least} or more but got {key}={value} in '{spec.text}'")
    return value


def _number(value: str, text: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise SpecError(f"Expected a whole number but got {value!r} in {text!r}") from None
