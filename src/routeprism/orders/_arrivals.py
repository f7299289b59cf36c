"""Arrival models: distributions of schedules, because real systems do not reverse.

Each is uniform over a set of sequences that it can describe arrival by arrival, and has a name with
its parameters, and a seed for the orders drawn from it. Specs such as `jitter:w=2` name a model,
and specs such as `random:seed=7` a schedule.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial, reduce
from itertools import pairwise
from operator import or_
from typing import Any, TypeAlias

from routeprism.errors import SpecError, nearest
from routeprism.orders._processes import (
    MOST_COUNTED,
    Interleaved,
    Jittered,
    LateBatch,
    LinearExtensions,
    ListedOrders,
    Order,
    Prefix,
    Process,
    Redelivered,
    all_orders,
    completions,
    draw,
    every_order,
)
from routeprism.orders._schedules import (
    FIXED,
    ONE_BY_ONE,
    PROCEDURES,
    SCHEDULES,
    SPECS,
    PoolFunction,
    Procedure,
    Schedule,
    keep_positions,
    name_reference,
    shuffle,
    split_procedure,
)
from routeprism.orders._uncounted import draw_uncounted
from routeprism.records import TIME_EXAMPLES, Pool, Record, read_time
from routeprism.specs import Spec, construct, find_extension, parse, registered

MOST_LISTED = 50_000
"""The default for the largest number of orders that are listed."""

Maker: TypeAlias = Callable[[int, str, "Sequence[Record] | None"], Process]
"""(pool size, user, the pool's records if known) → the possible sequences."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """An arrival model on one pool."""

    name: str
    """The model's name."""
    process: Process
    """The possible sequences, all equally likely."""
    seed: int
    user: str
    size: int
    redelivers: bool = False
    _counts: dict[str, dict[Prefix, int] | None] = field(
        default_factory=dict, init=False, repr=False, compare=False, hash=False
    )

    def count(self) -> int | None:
        """Count the orders; None if that would take too long."""
        total = self.process.total()
        if total is None and (counts := self._completions()) is not None:
            total = counts[self.process.start()]
        return total

    def countable(self) -> bool:
        """Whether all orders can be followed at once, beginning by beginning."""
        if every_permutation(self):  # half of the records are yet to come, on average
            return (self.size << self.size) // 2 <= MOST_COUNTED
        return self._completions() is not None

    def orders(self, limit: int = MOST_LISTED) -> Iterator[tuple[Order, int]] | None:
        """List every order with its weight; None if there are more than the limit."""
        total = self.count()
        if total is None or total > limit:
            return None
        return ((order, 1) for order in every_order(self.process))

    def sample(self, index: int = 0) -> Order:
        """Draw the order number `index`: the same in every process."""
        identity = f"{self.name}\0{self.seed}\0{self.size}\0{self.user}\0{index}"
        digest = hashlib.sha256(identity.encode()).digest()
        generator = random.Random(int.from_bytes(digest[:16], "big"))  # noqa: S311
        order = draw(self.process, generator, None)
        if order is None and (counts := self._completions()) is not None:
            order = draw(self.process, generator, counts)
        return draw_uncounted(self.process, generator) if order is None else order

    def _completions(self) -> dict[Prefix, int] | None:
        if "" not in self._counts:
            counts = completions(self.process)
            if counts is not None and not counts[self.process.start()]:
                raise SpecError(
                    f"'{self.name}' has no order for the {self.size} records of user '{self.user}'"
                )
            self._counts[""] = counts
        return self._counts[""]


def every_permutation(arrivals: Arrivals) -> bool:
    """Whether all permutations are possible and equally likely."""
    return arrivals.process.total() == math.factorial(arrivals.size) and not arrivals.redelivers


@dataclass(frozen=True, slots=True)
class ArrivalModel:
    """A named distribution of schedules."""

    name: str
    """Its name in every output, including parameters."""
    maker: Maker
    """A function that makes its sequences for a pool."""
    seed: int = 0
    """The seed of the orders drawn from it."""
    redelivers: bool = False
    """Whether a record may arrive more than once."""
    needs_records: bool = False
    """Whether the sequences depend on more of a pool than its size: on timestamps."""

    def on(self, pool: Pool) -> Arrivals:
        """Apply the model to a pool."""
        return self.bound(len(pool), pool.user, pool.records)

    def sample(self, size: int, index: int = 0, user: str = "") -> Order:
        """Draw the order number `index` for a pool of this size."""
        return self.bound(size, user, None).sample(index)

    def orders(self, size: int, limit: int = MOST_LISTED) -> Iterator[tuple[Order, int]] | None:
        """List every order of a pool of this size with its weight; None if there are too many."""
        return self.bound(size, "", None).orders(limit)

    def bound(self, size: int, user: str, records: Sequence[Record] | None) -> Arrivals:
        """Apply the model to a pool of which this is known."""
        if self.needs_records and records is None:
            raise SpecError(f"'{self.name}' reads the records' timestamps: it needs the pool")
        process = self.maker(size, user, records)
        return Arrivals(self.name, process, self.seed, user, size, self.redelivers)


ARRIVALS: Mapping[str, str] = SPECS["arrivals"]
"""The arrival models besides the schedules, described in one sentence each; all take seed=N."""

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
    zeros = {"second": 0, "microsecond": 0, "minute": 0, "hour": 0, "day": 1}
    number = {"exact": 0, "minute": 2, "hour": 3, "day": 4, "month": 5}[precision]
    return time.replace(**dict(list(zeros.items())[:number]))  # type: ignore[arg-type]


def _read_time(record: Record) -> datetime:
    text = str(record.timestamp).strip()
    time = read_time(text)
    if time is None:
        raise SpecError(
            f"Expected a time such as {TIME_EXAMPLES} but got timestamp={text!r} of record "
            f"'{record.id}'"
        )
    return time


def parse_schedule(text: str | Schedule | Procedure) -> Schedule:
    """Return the schedule that a user named: an order, a procedure, or `order+procedure`.

    An arrival model gives the order that its seed draws. `X vs Y` compares X with Y. An existing
    schedule is unchanged, and an existing procedure adds the records in source order.
    """
    if isinstance(text, Schedule):
        return text
    if isinstance(text, Procedure):
        return FIXED["forward"].perform(text)
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
        return Schedule(spec.text, PoolFunction(shuffle, (_whole_number(spec, "seed"),)))
    if spec.name == "explicit" and set(spec.values) == {"order"}:
        positions = _chain(spec, spec.values["order"])
        return Schedule(spec.text, PoolFunction(keep_positions, (positions,)))
    if spec.name in ("random", "explicit", *FIXED):
        pattern = next(candidate for candidate in SCHEDULES if candidate.startswith(spec.name))
        raise SpecError(f"Expected '{pattern}' but got schedule {text!r}")
    if spec.name in _MODELS:
        model = parse_arrival(text)
        return Schedule(spec.text, PoolFunction(_draw_order, (model,)), model.redelivers)
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
    if isinstance(schedule, Procedure):
        return FIXED["forward"].perform(replace(schedule, name=spec.text))
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
        maker = PoolFunction(_list_order, (schedule,))
        return ArrivalModel(schedule.name, maker, redelivers=schedule.redelivers)
    make, parameters = _MODELS[spec.name]
    for key in spec.values:
        if key not in (*parameters, "seed"):
            raise SpecError(
                f"'{spec.name}' has no parameter '{key}'. {nearest(key, (*parameters, 'seed'))}"
            )
    return ArrivalModel(
        spec.text,
        PoolFunction(make, tuple(read(spec, key) for key, read in parameters.items())),
        seed=_whole_number(spec, "seed", default=0, least=0),
        redelivers=spec.name == "redeliver",
        needs_records=spec.name == "timestamps",
    )


Records: TypeAlias = "Sequence[Record] | None"


def _draw_order(size: int, user: str, records: Records, model: ArrivalModel) -> Order:
    """Return the first order that an arrival model draws for a pool."""
    return model.bound(size, user, records).sample(0)


def _list_order(size: int, user: str, records: Records, schedule: Schedule) -> Process:
    return ListedOrders((schedule.bound(size, user, records),))


def _uniform(size: int, user: str, records: Records) -> Process:
    return all_orders(size)


def _jitter(size: int, user: str, records: Records, width: int) -> Process:
    return Jittered(size, width)


def _late_batch(
    size: int, user: str, records: Records, length: int | None, delay: int | None
) -> Process:
    """Delay every run that fits; where none does, nothing can be late."""
    if (length or 1) + (delay or 1) > size:
        return ListedOrders((tuple(range(size)),))
    return LateBatch(size, length, delay)


def _interleave(size: int, user: str, records: Records, number: int, split: str) -> Process:
    sources = min(number, max(size, 1))  # further ones have no record
    if split == "turns":
        streams = [range(first, size, sources) for first in range(sources)]
    else:
        bounds = [size * part // sources for part in range(sources + 1)]
        streams = [range(*pair) for pair in pairwise(bounds)]
    return Interleaved(tuple(tuple(stream) for stream in streams if stream))


def _redeliver(size: int, user: str, records: Records, copies: int, within: int | None) -> Process:
    return Redelivered(size, copies, size if within is None else within)


def _timestamps(size: int, user: str, records: Records, precision: str) -> Process:
    placed = ranks(records or (), precision)
    before = [
        sum(
            1 << later
            for later, earlier in enumerate(placed)
            if rank is not None and earlier is not None and earlier < rank
        )
        for rank in placed
    ]
    return LinearExtensions(tuple(before), placed)


def _partial(
    size: int, user: str, records: Records, text_and_chains: tuple[str, tuple[Order, ...]]
) -> Process:
    """Take the chains of this pool; positions that it does not have are ignored."""
    text, chains = text_and_chains
    before = [0] * size
    for chain in chains:
        present = [position for position in chain if position < size]
        for earlier, later in pairwise(present):
            before[later] |= 1 << earlier
    settled = False
    while not settled:  # what comes before a predecessor comes before, too
        settled = True
        for position, needed in enumerate(before):
            earlier = reduce(or_, (before[p] for p in _list_bits(needed)), needed)
            settled &= earlier == needed
            before[position] = earlier
    if any(needed >> position & 1 for position, needed in enumerate(before)):
        raise SpecError(f"{text!r} goes in a circle: no order can keep it")
    return LinearExtensions(tuple(before))


def _list_bits(bits: int) -> Iterator[int]:
    """Yield the numbers of the bits that are set."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def _read_chains(spec: Spec, key: str) -> tuple[str, tuple[Order, ...]]:
    if key not in spec.values:
        raise SpecError(f"Expected 'partial:before=0-2+1-2' but got {spec.text!r}")
    return spec.text, tuple(_chain(spec, chain) for chain in spec.values[key].split("+"))


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
) -> Any:
    if key not in spec.values:
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


_MODELS: Mapping[str, tuple[Callable[..., Process], Mapping[str, Callable[[Spec, str], Any]]]] = {
    "uniform": (_uniform, {}),
    "jitter": (_jitter, {"w": partial(_whole_number, default=2, least=0)}),
    "late-batch": (
        _late_batch,
        dict.fromkeys(("length", "delay"), partial(_whole_number, least=1)),
    ),
    "interleave": (
        _interleave,
        {
            "k": partial(_whole_number, default=2, least=1),
            "split": partial(_choice, allowed=("blocks", "turns")),
        },
    ),
    "redeliver": (
        _redeliver,
        {
            "copies": partial(_whole_number, default=1, least=1),
            "within": partial(_whole_number, least=0),
        },
    ),
    "timestamps": (_timestamps, {"precision": partial(_choice, allowed=PRECISIONS)}),
    "partial": (_partial, {"before": _read_chains}),
}
"""Arrival model → the function that makes its process, and how its arguments are read."""
