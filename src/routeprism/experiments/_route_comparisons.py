"""The prompts of pairs of routes and their layouts, made from the traces that a run stored."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from routeprism.answers import Comparison, match_prompts
from routeprism.experiments._collection import Manner
from routeprism.experiments._options import Layout
from routeprism.orders import FORWARD, Schedule, name_reference
from routeprism.policies import Block, Exposure, Policy, SourceOrder, interface_of
from routeprism.prompts import Draft, Prompt, categorical, free_text
from routeprism.records import Case, Pool, Question
from routeprism.runs import StoredExposure, StoredRun, sha256

FLIP_SAMPLE = 3
"""How many questions of each unit measure the same-prompt flip rate."""


class RoutePair(NamedTuple):
    """What forward and another route of one policy show for one question."""

    policy: Policy
    question: Question
    schedule: Schedule
    forward: StoredExposure
    route: StoredExposure

    @property
    def sides(self) -> tuple[tuple[StoredExposure, Schedule], tuple[StoredExposure, Schedule]]:
        """Return what each route shows, with its order of arrival."""
        reference = self.schedule.reference or FORWARD
        return (self.forward, reference), (self.route, self.schedule)


def list_route_pairs(
    case: Case, stored: StoredRun, policies: Sequence[Policy], schedules: Sequence[Schedule]
) -> Iterator[RoutePair]:
    """List the pairs of routes that were built for a case, question by question."""
    for policy in policies:
        interface, user = interface_of(policy), case.pool.user
        built = [
            schedule
            for schedule in schedules
            for names in [(schedule.name, user, name_reference(schedule.name))]
            if stored.has_pair(policy.name, interface, *names)
        ]
        for question in case.questions if built else ():
            for schedule in built:
                reference = name_reference(schedule.name)
                forward = stored.exposure(policy.name, interface, reference, question.id)
                route = stored.exposure(policy.name, interface, schedule.name, question.id)
                yield RoutePair(policy, question, schedule, forward, route)
    stored.clear_texts()


def compare_routes(
    case: Case,
    stored: StoredRun,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
    *,
    experiment: str = "routes",
    condition: str = "",
    by_arrival: bool = False,
) -> Iterator[Comparison]:
    """Make the prompts of every pair of a case from what the run stored.

    With `by_arrival`, blocks are shown in order of arrival where the interface hides that order.
    """
    for pair in list_route_pairs(case, stored, policies, schedules):
        exposures = pair.forward, pair.route
        if by_arrival and hides_arrival(pair.policy):
            first, second = (_show_arrival(case.pool, *side) for side in pair.sides)
            exposures = first, second
        drafts = [
            draft_question(list_blocks(exposure), pair.question, case.pool, manner)
            for exposure in exposures
        ]
        schedule = pair.schedule.name
        for filler in manner.fillers:
            prompts, reason = match_prompts(drafts, manner.control, filler)
            yield Comparison(
                experiment,
                pair.question,
                pair.policy.name,
                schedule,
                filler,
                (name_reference(schedule), schedule),
                prompts,
                condition,
                reason,
                exposures,
            )


def list_blocks(exposure: StoredExposure) -> tuple[Block, ...]:
    """Return the blocks that a route shows."""
    return tuple(Block(*block) for block in exposure.blocks)


def draft_question(
    blocks: Sequence[Block], question: Question, pool: Pool, manner: Manner
) -> Draft:
    """Draft a question over blocks: with its options, or as free text with the records' dates."""
    if question.options:
        return categorical(blocks, question, provenance=manner.provenance)
    dates = {r.id: r.timestamp for r in pool.records if r.timestamp is not None}
    return free_text(
        blocks,
        question,
        question_date=question.date,
        dates=dates,
        provenance=manner.provenance,
    )


def choose_flip_sample(case: Case) -> frozenset[str]:
    """Choose the questions whose same-prompt flips are measured: by id alone, before any answer."""
    ids = sorted(
        (question.id for question in case.questions),
        key=lambda identity: hashlib.sha256(identity.encode()).hexdigest(),
    )
    return frozenset(ids[:FLIP_SAMPLE])


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


def name_cells(layout: Layout) -> tuple[str, ...]:
    """Name the sides of a comparison: both states in their own layout, then both in this one."""
    return tuple(f"{state}-{name}" for name in ("native", layout) for state in ("forward", "route"))


def _compare_layout(
    pool: Pool, pair: RoutePair, layout: Layout, manner: Manner
) -> Iterator[Comparison]:
    states = [_lay_out(pair.policy, pool, *side, layout) for side in pair.sides]
    refusal = next((state for state in states if isinstance(state, str)), "")
    laid_out = [state for state in states if not isinstance(state, str)]
    blocks = [state[at] for at in (0, 1) for state in laid_out]
    drafts = [draft_question(exposure, pair.question, pool, manner) for exposure in blocks]
    sides = name_cells(layout)
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


def _show_arrival(pool: Pool, exposure: StoredExposure, schedule: Schedule) -> StoredExposure:
    """Lay what a route shows out in order of arrival, unless a block has several sources."""
    if any(len(sources) != 1 for *_, sources in exposure.blocks):
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
