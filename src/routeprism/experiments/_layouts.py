"""Layouts of what a route shows: native, reversed within kinds, and in source order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from routeprism.answers import Comparison, match_prompts
from routeprism.experiments._collection import Manner
from routeprism.experiments._route_comparisons import (
    RoutePair,
    draft_question,
    list_blocks,
    list_route_pairs,
)
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Block, Exposure, Policy, SourceOrder
from routeprism.prompts import Prompt
from routeprism.records import Case, Pool
from routeprism.runs import StoredExposure, StoredRun, sha256

Layout = Literal["reversed", "source"]
"""What the native order is compared with: blocks reversed within their kinds, or source order."""
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

_NOTHING_TO_REVERSE = (
    "a route shows fewer than two blocks of every kind, so there is no order to reverse"
)
_NOTHING_CHANGES = (
    "a route's blocks of each kind have the same text, so reversing them changes nothing"
)
_NO_PLACE = "a block that comes from several records has no single place in source order"


class Arrangement(NamedTuple):
    """How a layout changes what two routes show."""

    refused: bool
    """Whether there is nothing to intervene on, as opposed to prompts that cannot be matched."""
    rearranged: tuple[bool, bool]
    """Whether the layout shows forward's blocks, and the other route's, in a different order."""
    partly: bool
    """Whether some kind has one block, which stays where it is."""


State = tuple[tuple[Block, ...], tuple[Block, ...]]
"""One route's blocks, natively and in the other layout."""


def compare_layouts(
    case: Case,
    stored: StoredRun,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
    layouts: Sequence[Layout],
) -> Iterator[Comparison]:
    """Make the prompts of two states in two layouts each; no memory is built."""
    for pair in list_route_pairs(case, stored, policies, schedules):
        for layout in layouts:
            yield from _compare_layout(case.pool, pair, layout, manner)


def _compare_layout(
    pool: Pool, pair: RoutePair, layout: Layout, manner: Manner
) -> Iterator[Comparison]:
    states = [
        _lay_out(pair.policy, pool, exposure, schedule, layout)
        for exposure, schedule in (
            (pair.forward, pair.schedule.reference or FORWARD),
            (pair.route, pair.schedule),
        )
    ]
    refusal = next((state for state in states if isinstance(state, str)), "")
    laid_out = [state for state in states if not isinstance(state, str)]
    blocks = [state[at] for at in (0, 1) for state in laid_out]
    drafts = [draft_question(exposure, pair.question, pool, manner) for exposure in blocks]
    routes = (FORWARD.name, "route")
    sides = tuple(f"{route}-{name}" for name in ("native", layout) for route in routes)
    for filler in manner.fillers:
        prompts: tuple[Prompt, ...] = ()
        reason = refusal
        if not refusal:
            prompts, reason = match_prompts(drafts, manner.control, filler)
        yield Comparison(
            "display",
            pair.question,
            pair.policy.name,
            pair.schedule.name,
            filler,
            sides,
            prompts,
            layout,
            reason,
            (pair.forward, pair.route),
            detail=_describe_states(laid_out, bool(refusal)),
        )


def _describe_states(states: Sequence[State], refused: bool) -> Arrangement:
    forward, route = (
        (False, False) if refused else (native != laid_out for native, laid_out in states)
    )
    partly = any(1 in Counter(b.kind for b in native).values() for native, _ in states)
    return Arrangement(refused, (forward, route), partly)


def _lay_out(
    policy: Policy, pool: Pool, exposure: StoredExposure, schedule: Schedule, layout: Layout
) -> State | str:
    """Return a route's blocks in both layouts, or say why there is nothing to compare."""
    blocks = list_blocks(exposure)
    if layout == "reversed":
        if len({block.kind for block in blocks}) == len(blocks):
            return _NOTHING_TO_REVERSE
        reversal = reversed_within_kinds(blocks)
        if [block.text for block in reversal] == [block.text for block in blocks]:
            return _NOTHING_CHANGES
        return blocks, reversal
    if any(len(block.sources) != 1 for block in blocks):
        return _NO_PLACE
    positions = {record.id: record.position for record in pool.records}
    native = _by_source(blocks, _arrivals(pool, schedule)) if hides_arrival(policy) else blocks
    return native, _by_source(native, positions)


def _arrivals(pool: Pool, schedule: Schedule) -> dict[str, int]:
    """Return each record's place in the order of arrival."""
    order = schedule.on(pool)
    return {pool.records[position].id: at for at, position in enumerate(order)}


def show_arrival(
    policy: Policy, pool: Pool, exposure: StoredExposure, schedule: Schedule
) -> StoredExposure:
    """Lay what a route shows out in order of arrival, where its interface hides that order."""
    if not hides_arrival(policy) or any(len(sources) != 1 for *_, sources in exposure.blocks):
        return exposure
    blocks = _by_source(list_blocks(exposure), _arrivals(pool, schedule))
    laid_out = tuple((block.kind, block.text, block.sources) for block in blocks)
    return StoredExposure(exposure.sources, sha256(Exposure(blocks).context), laid_out)


def hides_arrival(policy: Policy) -> bool:
    """Whether an interface put the blocks into source order; a comparator's arrive in it."""
    interface = getattr(policy, "interface", None)
    return not isinstance(policy, SourceOrder) and getattr(interface, "display", "") == "source"


def reversed_within_kinds(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Reverse the blocks of each kind; kinds keep their places, and no text is touched."""
    return _rearrange(blocks, lambda blocks: blocks[::-1])


def _by_source(blocks: Sequence[Block], places: Mapping[str, int]) -> tuple[Block, ...]:
    def place(block: Block) -> int:
        (source,) = block.sources
        return places[source]

    return _rearrange(blocks, lambda blocks: sorted(blocks, key=place))


def _rearrange(
    blocks: Sequence[Block], order: Callable[[list[Block]], list[Block]]
) -> tuple[Block, ...]:
    kinds: dict[str, list[Block]] = {}
    for block in blocks:
        kinds.setdefault(block.kind, []).append(block)
    waiting = {kind: iter(order(same)) for kind, same in kinds.items()}
    return tuple(next(waiting[block.kind]) for block in blocks)
