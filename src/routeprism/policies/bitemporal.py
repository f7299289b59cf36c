"""`bitemporal`: keeps every value of a fact with the time from which, and until which, it held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from routeprism.policies._contracts import Block, Event, Exposure, JsonValue
from routeprism.policies._event_order import sort_events
from routeprism.policies.facts import SAMPLE_KEYS, KeyFunction, find_key_function
from routeprism.policies.interfaces import record_block
from routeprism.records import Record

__all__ = ["Bitemporal"]


@dataclass(frozen=True, slots=True)
class _Validity:
    """A record and when its statement held."""

    record: Record
    since: str
    until: str | None
    """None where it still holds."""
    by: str
    """The record that ended it; empty where it still holds."""


@dataclass(frozen=True, slots=True)
class _Intervals:
    """The memory: every record with its validity, in event-time order."""

    validities: tuple[_Validity, ...]
    arrivals: tuple[Record, ...]
    show: Literal["current", "history"]

    def retained(self) -> frozenset[str]:
        return frozenset(validity.record.id for validity in self.validities)

    def state(self) -> JsonValue:
        return [
            [validity.record.id, validity.since, validity.until] for validity in self.validities
        ]

    def expose(self, query: str, /) -> Exposure:
        """Show the current values, or with `show=history` all values, each with its interval."""
        if self.show == "current":
            records = [validity.record for validity in self.validities if validity.until is None]
            return Exposure(tuple(record_block(record, "user") for record in records))
        return Exposure(tuple(map(_write_validity, self.validities)))

    def events(self) -> Sequence[Event]:
        """Report that every record was added once: nothing is ever displaced."""
        ids: set[str] = set()
        events = []
        for at, record in enumerate(self.arrivals):
            events.append(Event("skip" if record.id in ids else "add", record.id, record.id, at))
            ids.add(record.id)
        return tuple(events)

    def notes(self) -> Mapping[str, Mapping[str, JsonValue]]:
        """Return the interval of each record, for comparison between routes."""
        return {
            validity.record.id: {"since": validity.since, "until": validity.until}
            for validity in self.validities
        }


def _write_validity(validity: _Validity) -> Block:
    block = record_block(validity.record, "user")
    since = validity.since or "an unknown time"
    until = f"until {validity.until or 'an unknown time'}" if validity.by else "still valid"
    return Block("interval", f"[valid since {since}, {until}]\n{block.text}", block.sources)


@dataclass(frozen=True, slots=True)
class Bitemporal:
    """Orders the records of each fact by event time, whenever they arrive."""

    show: Literal["current", "history"] = "current"
    """Whether a question is shown the current values, or all values with their intervals."""
    keys: str | KeyFunction = SAMPLE_KEYS
    """Names the fact that a record states, from its text: a function, or `package.module:name`."""

    @property
    def name(self) -> str:
        """The spec that every output shows."""
        parameters = [f"show={self.show}"] if self.show != "current" else []
        if isinstance(self.keys, str) and self.keys != SAMPLE_KEYS:
            parameters.append(f"keys={self.keys}")
        return ":".join(filter(None, ("bitemporal", ",".join(parameters))))

    def build(self, arrivals: Sequence[Record], /) -> _Intervals:
        """Take the time of the next record of the same fact as the end of each record."""
        name = find_key_function(self.keys)
        records = sort_events(arrivals)
        following: dict[str, Record] = {}
        validities = []
        for record in reversed(records):
            key = name(record)
            after = None if key is None else following.get(key)
            if key is not None:
                following[key] = record
            validities.append(
                _Validity(
                    record,
                    record.timestamp or "",
                    None if after is None else after.timestamp or "",
                    "" if after is None else after.id,
                )
            )
        return _Intervals(tuple(reversed(validities)), tuple(arrivals), self.show)
