"""Causes in words: what removed a record, how that was tested, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from routeprism.exhibits import name_record, shorten
from routeprism.orders import FORWARD, describe_arrival, list_arrivals
from routeprism.printing import join_names
from routeprism.runs import CauseKind, Loss

CAUSES: Mapping[CauseKind, str] = {
    "never kept": "the memory does not keep the record, even alone",
    "refused": "the memory refuses the record, even alone",
    "not retrievable": "the record is kept, but not shown even if it is the only one",
    "full": "the memory was full",
    "replaced": "the memory replaced most of its content at once",
    "overwritten": "another record overwrote it",
    "merged": "another record was merged with it",
    "duplicate": "another record arrived first, and the memory keeps one of the two",
    "late": "the record was refused because newer ones had arrived",
    "procedure": "the memory loses it only if records are handed over in this way",
    "joint": "several records together displaced it",
    "tie": "another record ranks the same and is shown instead",
    "budget": "other records fill the limit of what is shown",
    "ranking": "the record is kept, but other records rank higher",
    "order of blocks": "the same blocks are shown in a different order",
    "rewritten": "the same records are shown in a different text",
    "state only": "only internal state differs",
    "untested": "not tested",
}
"""Causes, and what happened in each case."""

NEXT_STEPS: Mapping[CauseKind, str] = {
    "never kept": "check that `add` stores records, and that `retained` gives their ids",
    "refused": "check why `add` refuses the record",
    "not retrievable": "check how `expose` finds a record that is kept",
    "full": "enlarge the memory, or search a log of dropped records",
    "replaced": "add to what is there instead of replacing it, or search a log of dropped records",
    "overwritten": "compare event times before a record overwrites another, or keep both",
    "merged": "choose the member to keep by event time, or keep both",
    "duplicate": "keep both records, or compare event times before you discard one",
    "late": "accept records that arrive late, or hold records back",
    "procedure": "store in this procedure what the memory stores if records are added one by one",
    "joint": "compare event times before records replace another, or keep all of them",
    "tie": "break ties by event time",
    "budget": "enlarge what a question may be shown, or show shorter records",
    "ranking": "rank by relevance or event time, or retrieve more records",
    "order of blocks": "sort the blocks by source or event time before you show them",
    "rewritten": "check whether answers differ: audit with a model",
    "state only": "nothing: questions see the same",
    "untested": "compare what the memory does with each of the two records alone",
}
NEVER_RIGHT: tuple[CauseKind, ...] = ("never kept", "refused", "not retrievable")
"""Causes that no capacity and no order excuses: a record that is alone is not kept or not shown."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause of a memory's losses, in source order or under all orders that lose evidence."""

    policy: str
    cause: CauseKind
    schedules: tuple[str, ...]
    """The orders with this cause, or `forward` for source order."""
    record: str
    """The id of a lost record, which is the example; so are the other ids and texts."""
    by: tuple[str, ...]
    user: str
    question: str
    tested: int
    """The number of cases that were tested, whatever the result."""
    explained: int
    """The number of tested cases with this cause."""
    cases: int
    """The number of all cases under all orders."""
    example: Loss
    record_text: str = ""
    by_texts: tuple[str, ...] = ()
    price: str = ""
    """What testing one more case takes; empty if it costs nothing."""

    def __post_init__(self) -> None:
        # As it is read back from JSON.
        for name in ("schedules", "by", "by_texts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if isinstance(self.example, dict):
            object.__setattr__(self, "example", Loss(**self.example))

    @property
    def is_baseline(self) -> bool:
        """Whether it explains what source order itself lacks."""
        return self.schedules == (FORWARD.name,)

    @property
    def action(self) -> str:
        """What to do about it."""
        return NEXT_STEPS[self.cause]

    @property
    def sentence(self) -> str:
        """What was found and how it was tested, with the number of cases."""
        likely = "" if self.explained else "likely cause "
        begin = likely + _describe_schedules(self.schedules)
        return f"{begin[:1].upper()}{begin[1:]}: {_describe_cause(self)}"

    def to_json(self) -> dict[str, Any]:
        """Return what `--json` prints of it."""
        return {**asdict(self), "sentence": self.sentence, "action": self.action}


def _is_collision(loss: Loss) -> bool:
    return loss.cause == "duplicate" and loss.source_loses


def describe_loss(loss: Loss, texts: Mapping[str, str]) -> str:
    """Describe what removed a record and how that was tested, as a clause."""
    clause = _CLAUSES.get(loss.cause, CAUSES[loss.cause])
    if loss.cause == "full" and not loss.by:
        clause = "the memory was full when {record} arrived"
    elif loss.cause == "overwritten" and loss.is_when_full:
        clause = "the memory was full, and {by} took the place of {record}"
    elif _is_collision(loss):
        clause = "{by} had taken the place of {record}: whichever of the two arrives first is kept"
    text = clause.format(
        record=name_record(loss.record, texts.get(loss.record, "")),
        by=_name_displacers(loss, texts),
    )
    reply = f" (`add` returned “{shorten(loss.reply, _REPLY)}”)" if loss.reply else ""
    test = f"{';' if ':' in clause else ':'} {loss.test}" if loss.test else ""
    is_order = loss.is_order and loss.schedule != FORWARD.name
    return (
        f"{text}{reply}{test}{'; in the opposite order of the two it is there' if is_order else ''}"
    )


def _name_displacers(loss: Loss, texts: Mapping[str, str]) -> str:
    """Name the records that displaced another one; a single one with its relation in time."""
    if not loss.by:
        return "other records"
    names = [name_record(id, texts.get(id, "")) for id in loss.by[:_MOST_NAMED]]
    if len(loss.by) > _MOST_NAMED:
        names.append(f"{len(loss.by) - _MOST_NAMED} more")
    relation = {"older": ", an older record,", "newer": ", a newer record,"}.get(loss.relation, "")
    return join_names(names) + (relation if len(names) == 1 else "")


_CLAUSES: Mapping[CauseKind, str] = {
    "never kept": "the memory does not keep {record}",
    "refused": "the memory refuses {record}",
    "not retrievable": "the memory keeps {record}, but does not show it",
    "full": "the memory was full, and {record} had to leave",
    "replaced": "the memory replaced most of its content when {by} arrived, and lost {record}",
    "overwritten": "{by} overwrote {record}",
    "merged": "the memory merged {record} with {by} and lost its id",
    "duplicate": "the memory discarded {record} because {by} had arrived before",
    "late": "{record} arrived too late, because {by} had arrived before",
    "procedure": "the memory does not keep {record} if records are handed over in this way",
    "joint": "{by} displaced {record} together",
    "tie": "the memory keeps {record}, but shows {by} instead, although both rank the same",
    "budget": "the memory keeps {record}, but {by} filled the limit of what is shown",
    "ranking": "the memory keeps {record}, but ranks {by} higher",
}
_MOST_NAMED = 2
_REPLY = 80
"""Characters of a reply in a sentence."""


def _describe_cause(cause: Cause) -> str:
    """Describe a cause with the number of cases that were tested."""
    if cause.cause == "untested":
        clue = cause.example.test
        of_record = clue or "not tested"
        if clue.startswith(_LIKELY):
            event = clue.removeprefix(_LIKELY)
            of_record = f"'{cause.record}' was {event}" if cause.record else "not tested"
        number = cause.cases - cause.tested
        more = (
            f"; testing {'it' if number == 1 else 'them'} takes {cause.price}"
            if cause.price
            else ""
        )
        return f"{of_record} ({number:,} of {cause.cases:,} cases were not tested{more})"
    texts = dict(zip(cause.by, cause.by_texts, strict=False)) | {cause.record: cause.record_text}
    clause = describe_loss(cause.example, texts)
    noun = "losses" if cause.record else "cases"
    untested = cause.cases - cause.tested
    rest = f", {untested:,} more were not tested" if untested else ""
    verb = "tested in" if cause.record else "compared in"
    return f"{clause} ({verb} {cause.explained:,} of {cause.tested:,} {noun}{rest})"


_LIKELY = "likely: "
"""How a clue begins that an event of the memory gives; other clues say why nothing was tested."""


def _describe_schedules(schedules: Sequence[str]) -> str:
    """Name the orders of arrival that a cause explains."""
    orders = [schedule for schedule in schedules if schedule != FORWARD.name]
    names = [describe_arrival(schedule) for schedule in list_arrivals(orders)]
    first = ["in source order"] if FORWARD.name in schedules else []
    return join_names([*first, *([f"under {join_names(names)}"] if names else [])])


def quote_text(text: str) -> str:
    """Quote a text on one line, shortened."""
    words = " ".join(text.split())
    return f"“{shorten(words)}”" if words else ""
