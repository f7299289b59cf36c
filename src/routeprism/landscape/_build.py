"""Building one order, with what the contract promises checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from routeprism.errors import ContractError, RoutePrismError
from routeprism.orders import Order
from routeprism.policies import Memory, Policy
from routeprism.records import Pool
from routeprism.routes import signature

__all__ = ["build", "canonical", "check_retained", "look", "twice_the_same"]

T = TypeVar("T")


@contextmanager
def build(policy: Policy, pool: Pool, order: Order) -> Iterator[Memory]:
    """Build a memory from a pool in an order; close it at the end, if it can be."""
    memory = policy.build(tuple(pool.records[position] for position in order))
    if not isinstance(memory, Memory):
        raise ContractError(
            f"{policy.name}.build gave {type(memory).__name__}. "
            f"Expected a memory with retained(), state() and expose(query)"
        )
    try:
        yield memory
    finally:
        close = getattr(memory, "close", None)
        if callable(close):
            close()


def look(policy: Policy, pool: Pool, order: Order, see: Callable[[Memory], T]) -> T:
    """Build an order and give what is seen of it."""
    with build(policy, pool, order) as memory:
        return see(memory)


def check_retained(policy: Policy, pool: Pool, memory: Memory) -> frozenset[str]:
    """Give the retained ids, which must all be the pool's."""
    retained = frozenset(memory.retained())
    if unknown := sorted(retained.difference(pool.ids)):
        raise ContractError(
            f"{policy.name} retains '{unknown[0]}', which user '{pool.user}' does not have"
        )
    return retained


def twice_the_same(policy: Policy, pool: Pool, orders: Iterable[Order]) -> list[bool]:
    """Build each order twice and say whether both gave the same memory, or the same error."""

    def seen(memory: Memory) -> tuple[frozenset[str], str | None]:
        return frozenset(memory.retained()), signature(memory.state())

    def built(order: Order) -> object:
        try:
            return look(policy, pool, order, seen)
        except RoutePrismError:
            raise
        except Exception as error:
            return type(error)

    return [built(order) == built(order) for order in orders]


def canonical(
    distribution: dict[frozenset[str], int], ids: Sequence[str]
) -> dict[frozenset[str], int]:
    """Order a distribution by its sets' source positions, so that equal ones are written alike."""
    place = {record: position for position, record in enumerate(ids)}
    return dict(
        sorted(distribution.items(), key=lambda item: sorted(place[record] for record in item[0]))
    )
