"""Whose item is it: source ids for systems that rewrite their items and pass no metadata on.

A system's items are looked at after each arrival, by key. A new key comes from the record that has
just arrived. A changed text still comes from the old records as well if it kept at least half of
the old text's words (a merge); else the old records are gone from it (an overwrite).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from routeprism.policies._contracts import Block, Event
from routeprism.records import Record

__all__ = ["Lineage"]

_WORD = re.compile(r"\w+")
_KEPT = 0.5
"""Which share of an item's words has to stay for its old records to count as its sources."""


@dataclass(slots=True)
class Lineage:
    """Follows every item from arrival to arrival, and notes what each arrival did."""

    kind: str
    """What the system calls an item."""
    items: dict[str, Block] = field(default_factory=dict)
    """Key → the item with its sources, oldest first."""
    events: list[Event] = field(default_factory=list)
    """What happened so far."""

    def after(self, record: Record, at: int, now: Mapping[str, str]) -> None:
        """Compare what is there now with what was there before this record arrived."""
        here = frozenset({record.id})
        noted = len(self.events)
        for key, text in now.items():
            old = self.items.get(key)
            if old is None:
                self.items[key] = Block(self.kind, text, here)
                if not any(event.kind == "add" for event in self.events[noted:]):
                    self.events.append(Event("add", record.id, record.id, at))
            elif old.text != text:
                kept = _kept(old.text, text)
                self.items[key] = Block(self.kind, text, old.sources | here if kept else here)
                for source in sorted(old.sources):
                    self.events.append(
                        Event("merge" if kept else "overwrite", source, record.id, at)
                    )
        for key in [key for key in self.items if key not in now]:
            for source in sorted(self.items.pop(key).sources):
                self.events.append(Event("evict", source, record.id, at))
        if len(self.events) == noted:
            self.events.append(Event("skip", record.id, record.id, at))

    def block(self, key: str, text: str) -> Block:
        """Give an item as it is shown; a key that was never seen has no sources."""
        known = self.items.get(key)
        return Block(self.kind, text, known.sources if known is not None else frozenset())


def _kept(old: str, new: str) -> bool:
    before = set(_WORD.findall(old.lower()))
    after = set(_WORD.findall(new.lower()))
    return len(before & after) >= _KEPT * len(before)
