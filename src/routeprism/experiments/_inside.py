"""What memories say of their inside: counts of their building, and their notes field by field.

A pool counts once, however many questions are asked of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from routeprism.experiments._rows import Column, Key
from routeprism.measures import Sums
from routeprism.orders import FORWARD
from routeprism.records import Case
from routeprism.routes import Route
from routeprism.runs import EstimateRow

__all__ = ["enter_insides", "note_sentences", "reply_notes"]

_DIFFER = "count.notes_differ_"
_MATCHED = "count.notes_matched"
_POOLS, _CHANGED = "count.states_compared", "count.canonical_states_changed"


def enter_insides(
    case: Case, routes: Sequence[Route], sums: Sums[Key], counts: Counter[str]
) -> None:
    """Enter what each route counted, and what differs between its notes and forward's."""
    forward = {route.policy: route for route in routes if route.schedule == FORWARD.name}
    for route in routes:
        base = forward[route.policy]
        entered: dict[str, int] = {f"count.{name}": n for name, n in route.counts.items()}
        if route is not base:
            entered |= _differences(base, route)
        for name, number in route.counts.items():
            counts[f"{name}\0{route.policy}"] += number
        for quantity, number in entered.items():
            column = Column("routes", quantity, route.policy, route.schedule)
            sums[column, "all"] = (float(number), len(case.questions))


def _differences(base: Route, route: Route) -> dict[str, int]:
    """Count pools whose sorted states differ, and source-matched notes field by field."""
    found: dict[str, int] = {}
    if base.canonical is not None and route.canonical is not None:
        found[_POOLS] = 1
        found[_CHANGED] = int(base.canonical != route.canonical)
    matched = [record for record in base.notes if record in route.notes]
    if matched:
        found[_MATCHED] = len(matched)
        for field in base.notes[matched[0]]:
            found[f"{_DIFFER}{field}"] = sum(
                base.notes[record].get(field) != route.notes[record].get(field)
                for record in matched
            )
    return found


def note_sentences(rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say for each policy and schedule in which fields the notes of the same records differ."""
    grouped: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        inside = row.experiment == "routes" and row.quantity.startswith("count.")
        if inside and row.stratum == "all" and not (row.mask or row.arm or row.model):
            numbers = grouped.setdefault((row.policy, row.schedule), {})
            numbers[row.quantity] = int(row.estimate or 0)
    sentences = []
    for (policy, schedule), found in grouped.items():
        if not found.get(_MATCHED):
            continue
        first, *others = (
            (quantity.removeprefix(_DIFFER), number)
            for quantity, number in found.items()
            if quantity.startswith(_DIFFER)
        )
        said = f"of {found[_MATCHED]} notes of the same records, {first[1]} differ in {first[0]}"
        said += "".join(f", {number} in {name}" for name, number in others)
        if _POOLS in found:
            said += (
                f"; with insertion order taken out, the state still differs in {found[_CHANGED]} "
                f"of {found[_POOLS]} pools"
            )
        sentences.append(f"{policy}, {schedule}: {said}")
    return tuple(sentences)


def reply_notes(counts: Mapping[str, int]) -> tuple[str, ...]:
    """Say how many replies a policy could not use while it was built."""
    notes = []
    for key, number in counts.items():
        name, _, policy = key.partition("\0")
        if name == "unusable_replies" and number:
            every = counts[f"consultations\0{policy}"]
            notes.append(
                f"{number} of {every} replies that {policy} got while "
                f"building could not be used; its documented fallback stood in"
            )
    return tuple(notes)
