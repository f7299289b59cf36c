"""Does a memory keep the same, whatever order comes: the check behind the pytest assertion."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from routeprism.errors import ContractError, RoutePrismError, SpecError
from routeprism.landscape import inversions, merge_states, moves_of, shrink
from routeprism.landscape._build import look
from routeprism.measures import jaccard
from routeprism.orders import Arrivals, Order, every_permutation, parse_arrival
from routeprism.policies import Memory, Policy, as_policy, make_policy, parse_interface
from routeprism.records import Benchmark, Case, Pool, Question, Record, load_benchmark

__all__ = ["ORDERS", "Breach", "Stability", "cases_of", "order_stability"]

ORDERS = 1_000
"""Up to how many orders of a pool are built, unless the caller says otherwise."""

_SHOWN = 90
"""Characters of a text in a message."""


@dataclass(frozen=True, slots=True)
class Held:
    """What one build holds: the retained set, and what each question is shown of it."""

    retained: frozenset[str]
    exposed: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True)
class Breach:
    """The smallest reordering of a pool on which too little stays the same."""

    pool: Pool
    order: Order
    value: float
    """J, of what differs most."""
    question: str
    """The text of the question whose exposed set it is; empty for the retained set."""
    lost: tuple[str, ...]
    """Records that are there in source order and not in this one."""
    gained: tuple[str, ...]
    error: str = ""
    """What the memory raised on this order, if it did."""
    broken: int = 0
    """How many of the orders that were looked at break it."""
    looked: int = 0
    exact: bool = True
    """Whether these are all orders of the arrival model."""


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether every order keeps what source order keeps."""

    policy: str
    arrival: str
    least: float
    """The J that every order has to reach."""
    pools: int
    breaches: tuple[Breach, ...]

    def __str__(self) -> str:
        if not self.breaches:
            return f"{self.policy} is stable on {self.pools} pools under {self.arrival}"
        return "\n".join(_told(self))


def order_stability(
    memory: Any,
    pools: Any,
    *,
    arrival: str = "uniform",
    min_jaccard: float = 1.0,
    questions: Any = None,
    interface: str = "all",
    orders: int = ORDERS,
    data: str | Path | None = None,
) -> Stability:
    """Build every order of an arrival model, or a sample, and compare with source order.

    Args:
        memory: a memory class, a policy, or a spec such as `focal`.
        pools: a pool or several, each a `Pool`, or a list of records or texts; a benchmark or its
            name.
        arrival: which orders may come, such as `uniform`, `jitter:w=2` or `replay`.
        min_jaccard: the overlap with source order that every order has to reach.
        questions: texts to expose each memory to, or a mapping from user to texts; True for those
            of the benchmark.
        interface: what whole-record policies named by a spec expose through.
        orders: up to how many orders of a pool are built; where there are more, so many are drawn.
        data: where benchmark files are.

    """
    if not 0 < min_jaccard <= 1 or orders < 1:
        raise SpecError(
            f"Expected 0 < min_jaccard <= 1 and 1 order or more but got {min_jaccard=}, {orders=}"
        )
    policy = (
        make_policy(memory, parse_interface(interface))
        if isinstance(memory, str)
        else as_policy(memory)
    )
    model = parse_arrival(arrival)
    breaches = []
    cases = cases_of(pools, questions, data)
    for case in cases:
        asked = tuple(question.text for question in case.questions)
        breach = _breach(policy, case.pool, model.on(case.pool), asked, min_jaccard, orders)
        if breach is not None:
            breaches.append(breach)
    return Stability(policy.name, model.name, min_jaccard, len(cases), tuple(breaches))


def cases_of(pools: Any, questions: Any, data: str | Path | None = None) -> list[Case]:
    """Give pools with the questions to ask of each."""
    if isinstance(pools, (str, Path)):
        pools = load_benchmark(str(pools), None if data is None else Path(data))
    if isinstance(pools, Benchmark):
        found = [(case.pool, case.questions) for case in pools.cases]
    else:
        found = [(pool, ()) for pool in _pools(pools)]
        if questions is True:
            raise SpecError("questions=True asks those of a benchmark, and these are pools alone")
    if not found:
        raise SpecError("there is no pool to look at")
    return [
        Case(pool, own if questions is True else _asked(questions, pool.user))
        for pool, own in found
    ]


def _pools(pools: Any) -> list[Pool]:
    if isinstance(pools, Pool):
        return [pools]
    listed = list(pools)
    if listed and all(isinstance(item, (str, Record)) for item in listed):
        listed = [listed]  # one pool, given as its records
    made = []
    for number, item in enumerate(listed):
        if isinstance(item, Pool):
            made.append(item)
            continue
        records = [
            replace(one, position=at) if isinstance(one, Record) else Record(f"r{at}", at, one)
            for at, one in enumerate(item)
        ]
        made.append(Pool(f"pool {number}", tuple(records)))
    return made


def _asked(questions: Any, user: str) -> tuple[Question, ...]:
    if questions is None:
        return ()
    listed = questions.get(user, ()) if isinstance(questions, Mapping) else questions
    if isinstance(listed, str):
        raise SpecError(f"Expected a list of questions but got the text {listed!r:.60}")
    return tuple(
        replace(one, user=user, labels={})
        if isinstance(one, Question)
        else Question(id=f"q{at}", user=user, text=one)
        for at, one in enumerate(listed)
    )


def _breach(
    policy: Policy,
    pool: Pool,
    arrivals: Arrivals,
    questions: Sequence[str],
    least: float,
    most: int,
) -> Breach | None:
    """Find the breaking order with the fewest inversions."""
    source = tuple(range(len(pool)))
    forward = _built(policy, pool, source, questions)
    if isinstance(forward, str):
        raise ContractError(f"{policy.name} raises {forward} in source order (user '{pool.user}')")
    if _built(policy, pool, source, questions) != forward:
        raise ContractError(
            f"{policy.name} is not deterministic: built twice in source order it keeps different "
            f"records (user '{pool.user}'), so no order can be blamed"
        )
    looked, broken, exact = 0, 0, True
    nearest: tuple[int, Order] | None = None
    held: Held | str = forward
    for order, weight, found, whole in _outcomes(policy, pool, arrivals, questions, most):
        looked += weight
        exact = whole
        if isinstance(found, str) or _overlap(forward, found)[0] < least:
            broken += weight
            place = (inversions(order), order)
            if nearest is None or place < nearest:
                nearest, held = place, found
    if nearest is None:
        return None
    order = nearest[1]
    if not exact and not arrivals.redelivers and not isinstance(held, str):
        order, held = _reduced(policy, pool, arrivals, order, forward, questions, least)
    value, at = (0.0, -1) if isinstance(held, str) else _overlap(forward, held)
    before, after = _sides(forward, held, at)
    return Breach(
        pool,
        order,
        value,
        questions[at] if at >= 0 else "",
        tuple(id for id in pool.ids if id in before - after),
        tuple(id for id in pool.ids if id in after - before),
        held if isinstance(held, str) else "",
        broken,
        looked,
        exact,
    )


def _outcomes(
    policy: Policy, pool: Pool, arrivals: Arrivals, questions: Sequence[str], most: int
) -> Iterator[tuple[Order, int, Held | str, bool]]:
    """Give orders, how many end alike, what they hold, and whether these are all there are."""
    graph = merge_states(policy, pool, arrivals)
    if graph is not None and not graph.failed:
        for ending in graph.endings:
            yield ending.order, ending.weight, _held(ending.memory, questions), True
        return
    listed = arrivals.orders(most)
    if listed is not None:
        for order, weight in listed:
            yield order, weight, _built(policy, pool, order, questions), True
        return
    for order in dict.fromkeys(arrivals.sample(index) for index in range(most)):
        yield order, 1, _built(policy, pool, order, questions), False


def _built(policy: Policy, pool: Pool, order: Order, questions: Sequence[str]) -> Held | str:
    """Build an order; what it raises is an outcome, too."""
    try:
        return look(policy, pool, order, lambda memory: _held(memory, questions))
    except RoutePrismError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _held(memory: Memory, questions: Sequence[str]) -> Held:
    return Held(
        frozenset(memory.retained()),
        tuple(frozenset(memory.expose(question).sources) for question in questions),
    )


def _overlap(forward: Held, other: Held) -> tuple[float, int]:
    """Give the least J and whose it is: a question's place, or -1 for the retained set."""
    pairs = zip(forward.exposed, other.exposed, strict=True)
    values = [(jaccard(*pair), at) for at, pair in enumerate(pairs)]
    return min([(jaccard(forward.retained, other.retained), -1), *values])


def _sides(forward: Held, held: Held | str, at: int) -> tuple[frozenset[str], frozenset[str]]:
    if isinstance(held, str):
        return forward.retained, frozenset()
    if at < 0:
        return forward.retained, held.retained
    return forward.exposed[at], held.exposed[at]


def _reduced(
    policy: Policy,
    pool: Pool,
    arrivals: Arrivals,
    order: Order,
    forward: Held,
    questions: Sequence[str],
    least: float,
) -> tuple[Order, Held]:
    """Find one exchange of neighbours that breaks, or sort a drawn order as far as it still does.

    Sorting towards source order leads out of no model that is too large to be listed.
    """

    def breaks(memory: Memory) -> bool:
        return _overlap(forward, _held(memory, questions))[0] < least

    search = partial(shrink, policy, pool, breaks, most_states=0, most_orders=0)
    found = None
    if every_permutation(arrivals) or arrivals.name.startswith("jitter"):
        found = search(most_builds=len(pool) - 1)  # it begins with the exchanges of neighbours
    if found is None or not found.found:
        found = search(start=order)
    held = _built(policy, pool, found.order, questions)
    if isinstance(held, str):
        raise ContractError(f"{policy.name} is not deterministic: {held}")
    return found.order, held


def _told(found: Stability) -> Iterator[str]:
    """Say what broke, on the pool where least has to move, and what was lost."""
    first = min(found.breaches, key=lambda one: (inversions(one.order), one.pool.user))
    more = len(found.breaches) - 1
    others = f", and on {more} more pool{'s' * (more != 1)}" if more else ""
    yield (
        f"{found.policy} is not order-stable under {found.arrival}: "
        + (
            f"it raises {first.error}"
            if first.error
            else f"J of {_whose(first)} is {first.value:.3g}, wanted {found.least:g} or more"
        )
        + f" (user '{first.pool.user}', {len(first.pool)} records{others})"
    )
    yield f"The smallest reordering that breaks it: {_moves(first)}"
    for title, ids in (("Lost", first.lost), ("Gained", first.gained)):
        for id in ids:
            yield f"  {title + ':':8}{_record(first.pool, id)}"
    some = f"all {first.looked}" if first.exact else f"{first.looked} drawn"
    broken = f"{first.broken} of {some} orders of this pool break{'s' * (first.broken == 1)} it"
    if first.exact and first.looked == 1:
        broken = f"The only order of {found.arrival} breaks it"
    yield f"{broken}. This one is --schedule explicit:order={'-'.join(map(str, first.order))}"


def _whose(breach: Breach) -> str:
    if not breach.question:
        return "retained sets"
    return f"the sets exposed to «{_short(breach.question)}»"


def _moves(breach: Breach) -> str:
    records = breach.pool.records
    if sorted(breach.order) != list(range(len(records))):
        again = sorted({p for p in breach.order if breach.order.count(p) > 1})
        named = ", ".join(_record(breach.pool, records[p].id) for p in again)
        return f"deliver again {named}"
    said = []
    for move in moves_of(breach.order):
        put = "to the front" if move.after is None else ""
        put = put or f"after {_record(breach.pool, records[move.after or 0].id)}"
        said.append(f"move {_record(breach.pool, records[move.record].id)} {put}")
    return ", then ".join(said)


def _record(pool: Pool, id: str) -> str:
    text = next(record.text for record in pool.records if record.id == id)
    return f"'{id}' «{_short(text)}»"


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"
