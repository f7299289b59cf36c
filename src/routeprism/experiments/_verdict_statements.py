"""Sentences about the severity of a memory, its evidence in source order, and its answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routeprism.exhibits import (
    Number,
    Part,
    Statement,
    join_parts,
)
from routeprism.experiments._verdicts import (
    EVIDENCE,
    LEVELS,
    Level,
    MemoryVerdict,
    describe_arrival,
    list_arrivals,
    locate_base,
)
from routeprism.experiments.statements import (
    BUILD_AGAIN,
    MARGIN,
    describe_doubt,
    describe_floor,
    describe_unreadable,
    is_at_floor,
    is_claim_shown,
    is_small,
    show_flags,
)
from routeprism.orders import names_procedure
from routeprism.runs import EstimateRow

__all__ = [
    "describe_answers",
    "describe_one_order",
    "describe_sanity",
    "describe_verdict",
    "join_names",
    "show_percent",
    "summarise_verdicts",
]


def show_percent(row: EstimateRow | None) -> Part:
    if row is None or row.estimate is None:
        return ""
    return _show_share(row)


def describe_sanity(verdict: MemoryVerdict) -> Iterator[Statement]:
    """State what the memory keeps and shows in source order, before anything about order."""
    evidence = verdict.find(EVIDENCE)
    if verdict.is_silent:
        text = "The memory shows nothing to any question, so nothing can be concluded about order"
        yield Statement((text,), "sanity", verdict.policy, severity="problem", flags=verdict.flags)
    elif evidence is not None and verdict.lacks_evidence:
        routes = [group.get("all_covered.exposed.route") for group in verdict.rows.values()]
        always = all(row is not None and (row.estimate or 0.0) < 0.5 for row in routes)
        start = "In any order, most questions lack evidence: even" if always else "Even"
        yield Statement(
            (
                f"{start} {verdict.place}, only ",
                show_percent(evidence),
                " of the questions are shown all of their evidence. Solve this before you look at "
                "order",
            ),
            "sanity",
            verdict.policy,
            severity="problem",
            flags=verdict.flags,
        )
    yield Statement(_list_sanity(verdict), "source order", verdict.policy, flags=verdict.flags)


def _list_sanity(verdict: MemoryVerdict) -> tuple[Part, ...]:
    """Return what a memory keeps and shows in source order."""
    length = verdict.find("context_length.forward")
    characters = None if length is None else f"{4 * (length.estimate or 0):,.0f}"
    values: tuple[tuple[str, Part | None], ...] = (
        ("records kept", show_percent(verdict.find("kept.forward"))),
        (
            "questions whose evidence is kept",
            show_percent(verdict.find("all_covered.retained.forward")),
        ),
        ("questions that are shown all of their evidence", show_percent(verdict.find(EVIDENCE))),
        ("characters shown", characters),
    )
    phrases = [(f"{name} ", value) for name, value in values if value]
    place = verdict.place
    return (f"{place[:1].upper()}{place[1:]}: ", *join_parts(", ", phrases))


def describe_verdict(verdict: MemoryVerdict) -> Statement:
    """State how bad it is: first under arrivals that really happen, then under full reversal."""
    step = ""
    if verdict.is_silent:
        parts: tuple[Part, ...] = ("Nothing is shown, so order has nothing to change",)
    elif verdict.level == "chance, order not shown":
        built = verdict.find("D_build") is not None
        tail = (
            "builds of the same order differ, and different orders are not shown to differ more"
            if built
            else "each order was built once, so order cannot be distinguished from chance"
        )
        step = "" if built else BUILD_AGAIN
        parts = (f"The memory differs by chance, and order is not shown to matter: {tail}",)
    else:
        levels = dict.fromkeys((verdict.ordinary_level, verdict.level))
        harm = [level for level in levels if LEVELS.index(level) >= LEVELS.index("evidence lost")]
        phrases = [_describe_level(verdict, level) for level in (harm or [verdict.level])]
        parts = tuple(join_parts(". ", phrases))
    place = ("severity", verdict.policy, "", verdict.severity, step)
    return Statement(parts, *place, flags=verdict.flags)


def describe_one_order(verdict: MemoryVerdict) -> Statement:
    """State that no memory can be compared, because no pool has two orders."""
    text = "Every pool has one record and so one order: nothing can be concluded about order"
    return Statement((text,), "severity", verdict.policy, severity="warning", flags=verdict.flags)


def _describe_level(verdict: MemoryVerdict, level: Level) -> tuple[Part, ...]:
    """State what happens under the orders of arrival that have this level."""
    schedules = list_arrivals(
        schedule for schedule, item in verdict.levels.items() if item == level
    )
    names = join_names([describe_arrival(schedule) for schedule in schedules])
    if level == "answers worse":
        group = verdict.answers[schedules[0]]
        before, after = (
            show_percent(group.get(f"accuracy.{side}")) for side in ("forward", "route")
        )
        change = _show_signed(group["Delta_rep"])
        text = f"Answers get worse under {names}: accuracy falls from "
        return (text, before, " to ", after, " (", change, ")")
    if level == "evidence lost":
        shares = [
            (f"{describe_arrival(s)} (", _show_share(verdict.rows[s]["evidence_lost"]), ")")
            for s in schedules
        ]
        head = f"Questions lose evidence that {verdict.reference} shows: under "
        return (head, *join_parts(", ", shares))
    if level.startswith("different records"):
        if level.endswith("unknown") and verdict.is_unsourced:
            text = f"Different text is shown under {names}, and it does not name its records"
            return (f"{text}, so it is not known whether evidence is lost: name them as sources",)
        unknown = (
            f"and {verdict.reference} shows no evidence that could be lost"
            if verdict.find(EVIDENCE) is not None
            else "and without labels it is not known whether evidence is lost: label the evidence "
            "of your questions, or audit with a model"
        )
        tail = "but no evidence is lost" if level.endswith("kept") else unknown
        return (f"Different records are shown under {names}, {tail}",)
    if level == "text only":
        return (f"The same records are shown under {names}, but in a different text or order",)
    if level == "internal only":
        return (f"Only internal state differs under {names}; questions see the same",)
    return ("Order changes nothing that was observed",)


_HEADLINES: Mapping[Level, tuple[str, str]] = {
    "answers worse": ("{} answers worse", "{} answer worse"),
    "evidence lost": ("{} loses evidence", "{} lose evidence"),
    "different records, evidence unknown": (
        "{} shows different records",
        "{} show different records",
    ),
    "different records, evidence kept": (
        "{} shows different records but keeps the evidence",
        "{} show different records but keep the evidence",
    ),
    "text only": ("{} shows the same records in a different text", "{} show different text"),
    "internal only": ("{} shows the same to every question", "{} show the same to every question"),
    "chance, order not shown": ("{} differs by chance", "{} differ by chance"),
    "stable": ("{} does not change", "{} do not change"),
}
"""How a headline puts each level, of one memory and of several."""


def summarise_verdicts(verdicts: Sequence[MemoryVerdict]) -> str:
    """Summarise a run in one sentence: first arrivals that really happen, then full reversal."""
    if not verdicts:
        return ""
    ordinary = _summarise_levels([verdict.ordinary_level for verdict in verdicts])
    if all(set(verdict.levels) == {"replay"} for verdict in verdicts):
        return f"{ordinary} when all records arrive in reverse."
    sentence = f"{ordinary} {_name_change(verdicts)}"
    reversed_levels = [verdict.levels.get("replay", "stable") for verdict in verdicts]
    worst = max(reversed_levels, key=LEVELS.index)
    if LEVELS.index(worst) > max(LEVELS.index(verdict.ordinary_level) for verdict in verdicts):
        rest = _summarise_levels(reversed_levels)
        sentence += f"; {rest[:1].lower()}{rest[1:]} under full reversal"
    return f"{sentence}."


def _name_change(verdicts: Sequence[MemoryVerdict]) -> str:
    """Name what differs from the reference: the order alone, or also how records are added."""
    if not any(names_procedure(schedule) for verdict in verdicts for schedule in verdict.levels):
        return "when records arrive out of order"
    return f"when {'it is' if len(verdicts) == 1 else 'they are'} built in a different way"


def _summarise_levels(levels: Sequence[Level]) -> str:
    """Count the memories that have the most severe level."""
    worst = max(levels, key=LEVELS.index)
    number, total = levels.count(worst), len(levels)
    singular, plural = _HEADLINES[worst]
    if total == 1:
        return singular.format("This memory")
    everyone = "Both memories" if total == 2 else f"All {total} memories"
    subject = everyone if number == total else f"{number} of {total} memories"
    return (singular if number == 1 and number != total else plural).format(subject)


def describe_answers(verdict: MemoryVerdict) -> Iterator[Statement]:
    """State in plain words what order does to accuracy."""
    for schedule, group in verdict.answers.items():
        before, after = group.get("accuracy.forward"), group.get("accuracy.route")
        change = group.get("Delta_rep")
        if before is None or after is None or change is None:
            continue
        unreadable = describe_unreadable(group.get, f"under {describe_arrival(schedule)}")
        if unreadable:
            yield _state_answers(verdict, change, (f"{change.model}: {unreadable}",))
            continue
        if is_at_floor(change):
            tail = describe_floor(change)
        elif is_claim_shown(change, group):
            tail = (
                f"accuracy {'falls' if (change.estimate or 0.0) < 0 else 'rises'} with this order"
            )
        elif is_small(change):
            tail = f"any change is shown to be small (within {100 * MARGIN:g} points)"
        else:
            tail = "no change of accuracy is shown, which does not mean that there is none"
            tail = describe_doubt(change) or tail
        parts = (
            f"Accuracy of the answers by {change.model}: ",
            show_percent(before),
            f" {locate_base([schedule])}, ",
            show_percent(after),
            f" under {describe_arrival(schedule)}: {tail}",
        )
        yield _state_answers(verdict, change, parts)


def _state_answers(
    verdict: MemoryVerdict, change: EstimateRow, parts: tuple[Part, ...]
) -> Statement:
    flags = show_flags(change)
    return Statement(parts, "accuracy", verdict.policy, change.schedule, flags=flags)


def join_names(names: Sequence[str]) -> str:
    """Join names as a sentence lists them."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _show_signed(row: EstimateRow) -> Part:
    return Number(f"{row.estimate or 0:+.3f} [{row.lower:+.3f}, {row.upper:+.3f}]", row)


def _show_share(row: EstimateRow) -> Part:
    share = 100 * (row.estimate or 0)
    return Number("<1%" if 0 < share < 0.5 else f"{share:.0f}%", row)
