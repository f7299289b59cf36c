"""Which prompts a display intervention needs: two states, each in two orders of its own blocks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from routeprism.experiments._asked import Manner, drafted
from routeprism.experiments._plans import interface_of
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Block, Policy, SourceOrder
from routeprism.prompts import Filler, Prompt, Unmatched, match
from routeprism.records import Case, Pool, Question
from routeprism.runs import Shown, Stored

__all__ = ["LAYOUTS", "Cells", "Layout", "display_cells", "reversed_within_kinds"]

Layout = Literal["reversed", "source"]
"""What the native order is compared with: blocks reversed within their kinds, or source order."""
LAYOUTS: tuple[Layout, ...] = get_args(Layout)

_NOTHING_TO_REVERSE = (
    "a route shows fewer than two blocks of every kind, so that there is no order to reverse"
)
_NOTHING_CHANGES = (
    "a route's blocks of each kind have the same text, so that reversing shows it again"
)
_NO_PLACE = "a block that comes from several records has no single place in source order"


@dataclass(frozen=True, slots=True, eq=False)  # told apart by identity: its texts are long
class Cells:
    """The four matched prompts of one question under one filler: two states × two layouts."""

    question: Question
    policy: str
    schedule: str
    layout: Layout
    filler: Filler
    shown: tuple[Shown, Shown]
    """What forward and the other route exposed."""
    rearranged: tuple[bool, bool]
    """Whether the layout shows forward's blocks, and the other route's, in another order."""
    partly: bool
    """Whether some kind has one block, which stays where it is."""
    prompts: tuple[Prompt, ...]
    """In the order of `names`; none where they were refused or could not be matched."""
    reason: str = ""
    """Why there are none."""
    refused: bool = False
    """Whether there is nothing to intervene on, as opposed to prompts that could not be matched."""

    @property
    def names(self) -> tuple[str, ...]:
        """Name the cells."""
        layouts = ("native", self.layout)
        return tuple(f"{state}-{layout}" for layout in layouts for state in ("forward", "route"))

    @property
    def experiment(self) -> str:
        """Name whose answers these are."""
        return "display"

    @property
    def condition(self) -> str:
        """Tell layouts of the same pair apart."""
        return self.layout

    @property
    def group(self) -> str:
        """Name the comparison."""
        parts = (self.layout, self.policy, self.schedule, self.question.id, self.filler)
        return "\0".join(("display", *parts))

    @property
    def sides(self) -> tuple[tuple[str, Prompt], ...]:
        """Give the cells with their prompts."""
        return tuple(zip(self.names, self.prompts, strict=True)) if self.prompts else ()


def display_cells(
    case: Case,
    stored: Stored,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    manner: Manner,
    layouts: Sequence[Layout],
) -> Iterator[Cells]:
    """Make the prompts of every cell of a case from what the run stored; no memory is built."""
    for policy in policies:
        interface = interface_of(policy)
        user = case.pool.user
        there = [one for one in schedules if stored.both(policy.name, interface, one.name, user)]
        for question in case.questions if there else ():
            base = stored.shown(policy.name, interface, FORWARD.name, question.id)
            for schedule in there:
                other = stored.shown(policy.name, interface, schedule.name, question.id)
                for layout in layouts:
                    states = [
                        _laid_out(policy, case.pool, shown, one, layout)
                        for shown, one in ((base, FORWARD), (other, schedule))
                    ]
                    yield from _cells(
                        case.pool, question, policy, schedule, layout, (base, other), states, manner
                    )
    stored.forget()


State = tuple[tuple[Block, ...], tuple[Block, ...]]
"""One route's blocks, natively and in the other layout."""


def _cells(
    pool: Pool,
    question: Question,
    policy: Policy,
    schedule: Schedule,
    layout: Layout,
    shown: tuple[Shown, Shown],
    states: Sequence[State | str],
    manner: Manner,
) -> Iterator[Cells]:
    refusal = next((state for state in states if isinstance(state, str)), "")
    laid = [state for state in states if not isinstance(state, str)]
    rearranged = [native != other for native, other in laid]
    drafts = [
        drafted(state[at], question, pool, manner) for at in (0, 1) for state in laid if not refusal
    ]
    for filler in manner.fillers:
        found = match(drafts, manner.control, filler) if drafts else None
        yield Cells(
            question,
            policy.name,
            schedule.name,
            layout,
            filler,
            shown,
            (rearranged[0], rearranged[1]) if not refusal else (False, False),
            any(1 in Counter(b.kind for b in native).values() for native, _ in laid),
            () if found is None or isinstance(found, Unmatched) else found.prompts,
            found.reason if isinstance(found, Unmatched) else refusal,
            refused=bool(refusal),
        )


def _laid_out(
    policy: Policy, pool: Pool, shown: Shown, schedule: Schedule, layout: Layout
) -> State | str:
    """Give a route's blocks in both layouts, or say why there is nothing to compare."""
    blocks = tuple(Block(*block) for block in shown.blocks)
    if layout == "reversed":
        if len({block.kind for block in blocks}) == len(blocks):
            return _NOTHING_TO_REVERSE
        other = reversed_within_kinds(blocks)
        if [block.text for block in other] == [block.text for block in blocks]:
            return _NOTHING_CHANGES
        return blocks, other
    if any(len(block.sources) != 1 for block in blocks):
        return _NO_PLACE
    positions = {record.id: record.position for record in pool.records}
    native = blocks
    if _hides_arrival(policy):
        order = schedule.order(len(pool), pool.user)
        arrived = {pool.records[position].id: at for at, position in enumerate(order)}
        native = _by_source(blocks, arrived)
    return native, _by_source(native, positions)


def _hides_arrival(policy: Policy) -> bool:
    """Whether an interface put the blocks into source order; a comparator's arrive in it."""
    interface = getattr(policy, "interface", None)
    return not isinstance(policy, SourceOrder) and getattr(interface, "display", "") == "source"


def reversed_within_kinds(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Reverse the blocks of each kind; kinds keep their places, and no text is touched."""
    return _rearranged(blocks, lambda found: found[::-1])


def _by_source(blocks: Sequence[Block], places: Mapping[str, int]) -> tuple[Block, ...]:
    def place(block: Block) -> int:
        (source,) = block.sources
        return places[source]

    return _rearranged(blocks, lambda found: sorted(found, key=place))


def _rearranged(
    blocks: Sequence[Block], order: Callable[[list[Block]], list[Block]]
) -> tuple[Block, ...]:
    kinds: dict[str, list[Block]] = {}
    for block in blocks:
        kinds.setdefault(block.kind, []).append(block)
    waiting = {kind: iter(order(found)) for kind, found in kinds.items()}
    return tuple(next(waiting[block.kind]) for block in blocks)
