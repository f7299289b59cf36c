"""Source ids of stored items, derived by observing writes once they have ended.

For systems that give each item a key and pass no source ids on. You dump all items after each
write (and, where you can, before it). An item that a write created or changed has the written
record among its sources, and keeps the sources of every item whose text moved into it. Words decide
whether old text remains: those that the written record repeats, and those that most items contain,
prove nothing, so only the others count. If at least half of them remain, the old sources remain (a
merge); otherwise they do not (an overwrite).
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from routeprism.errors import RouteError
from routeprism.policies._contracts import Block, Event, EventKind
from routeprism.records import Record
from routeprism.redaction import Redactor

T = TypeVar("T")

_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff]+")
"""A word; scripts without spaces count by character."""
_REMAINING_SHARE = 0.5
"""The share of an item's own words that must remain for its old records to stay its sources."""
_FEWEST_ITEMS = 3
"""How many items there must be for a word that most of them contain to be ignored."""
_QUOTED_WORDS = 3
"""How many words an item needs to be recognised as a quotation from an earlier record."""


@dataclass(frozen=True, slots=True)
class Uncertainty:
    """An item whose sources could not be observed exactly."""

    kind: Literal["overlap", "late", "unknown"]
    """Writes overlapped, the item appeared after its write, or it was there before any write."""
    key: str
    """The item's key."""
    records: frozenset[str]
    """The records that the item is attributed to."""
    at: int
    """The arrival after which the item was seen, from 0; -1 before the first."""


@dataclass(slots=True)
class Lineage:
    """Follows every item from write to write, and records what each write did."""

    kind: str = "item"
    """The id of an item in the system."""
    items: dict[str, Block] = field(default_factory=dict)
    """Key → the item with its sources, oldest first."""
    events: list[Event] = field(default_factory=list)
    """What each write did, so far."""
    uncertainties: list[Uncertainty] = field(default_factory=list)
    """Items whose sources could not be observed exactly."""
    redactor: Redactor = field(default_factory=Redactor.configured)
    """Removes secrets from the texts of items."""
    _arrived: list[Record] = field(default_factory=list)
    _last: tuple[Record, ...] = ()
    _observed: int = 0

    def observe(
        self,
        records: Record | Sequence[Record],
        items: Mapping[str, str],
        *,
        before: Mapping[str, str] | None = None,
    ) -> None:
        """Compare all items after a write (key → text) with those before it.

        Args:
            records: the record, or several if their writes overlapped.
            items: every item after the write.
            before: every item just before the write. A difference from the items after the
                previous write means that ingestion lags, and is recorded as `late`.

        """
        if before is not None:
            self.check(before)
        group = (records,) if isinstance(records, Record) else tuple(records)
        self._arrived.extend(group)
        self._last = group
        self._compare(items, late=False)

    def check(self, items: Mapping[str, str]) -> bool:
        """Compare all items with those after the last write; give whether they are the same.

        Differences are attributed to the last write, and recorded as `late`.
        """
        if {key: block.text for key, block in self.items.items()} == dict(items):
            return True
        self._compare(items, late=True)
        return False

    def retained(self) -> frozenset[str]:
        """Return the ids of all records that some item came from."""
        return frozenset().union(*(block.sources for block in self.items.values()))

    def block(self, key: str, text: str) -> Block:
        """Return an item as it is shown, with its sources.

        An unknown key is looked up by its text; an item that was never seen has no sources.
        """
        item = self.items.get(key)
        sources = (
            item.sources
            if item is not None
            else frozenset().union(
                *(candidate.sources for candidate in self.items.values() if candidate.text == text)
            )
        )
        return Block(self.kind, self.redactor.redact(text), sources)

    def blocks(self, items: Mapping[str, str]) -> list[Block]:
        """Return all items of a dump with their sources, the oldest first."""
        shared = [key for key in self.items if key in items]
        unknown = sorted(items.keys() - set(shared))
        return [self.block(key, items[key]) for key in [*shared, *unknown]]

    def counts(self) -> Mapping[str, int]:
        """Count the items whose sources are uncertain, by reason; nothing if there are none."""
        if not self.uncertainties:
            return {}
        numbers = Counter(f"uncertain_{uncertainty.kind}" for uncertainty in self.uncertainties)
        return {"observed_items": self._observed, **numbers}

    # --- comparing two dumps -------------------------------------------------------------------

    def _compare(self, items: Mapping[str, str], *, late: bool) -> None:
        """Take the difference from the known items over, and record what happened."""
        log = _Log(self._last, len(self._arrived))
        vanished = {key: block for key, block in self.items.items() if key not in items}
        self._rename(vanished, items)
        lost = vanished | self._list_lost(items)
        ignored = _words_of(self._last) | _list_common([item.text for item in self.items.values()])
        for key, text in items.items():
            old = self.items.get(key)
            if old is None or old.text != text:
                self.items[key] = self._follow(key, text, lost, ignored, log, late=late)
                self._observed += 1
        for key in [key for key in self.items if key not in items]:
            sources = self.items.pop(key).sources
            if key not in log.moved:  # text that moved into an item was merged
                log.note("evict", sources)
        if not late:
            log.note_skips()
        self.events.extend(sorted(log.events, key=lambda event: event.at))

    def _follow(
        self,
        key: str,
        text: str,
        lost: Mapping[str, Block],
        ignored: frozenset[str],
        log: _Log,
        *,
        late: bool,
    ) -> Block:
        """Return a new or changed item with its sources: its records, and what moved into it."""
        old = self.items.get(key)
        writers = self._attribute(key, text, late=late)
        sources = set(writers)
        log.touched |= writers
        if old is None:
            log.note_additions(writers)
        elif _remains(old.text, text, ignored, if_ignored=True):
            sources |= old.sources
            log.note("merge", old.sources, writers)
        else:
            log.note("overwrite", old.sources, writers)
        for name, block in lost.items():
            if name != key and _remains(block.text, text, ignored):
                sources |= block.sources
                log.note("merge", block.sources, writers)
                log.moved.add(name)
        return Block(self.kind, text, frozenset(sources))

    def _list_lost(self, items: Mapping[str, str]) -> dict[str, Block]:
        """Return the words that changed items have lost, which may have moved into another item."""
        lost: dict[str, Block] = {}
        for key, block in self.items.items():
            if key in items and items[key] != block.text:
                now = set(_words(items[key]))
                words = [word for word in _words(block.text) if word not in now]
                lost[key] = Block(self.kind, " ".join(words), block.sources)
        return lost

    def _rename(self, vanished: dict[str, Block], items: Mapping[str, str]) -> None:
        """Carry over what has a new key and an old text, unless the written records quote it."""
        for key, text in items.items():
            if key in self.items or any(quotes(record, text) for record in self._last):
                continue
            old = next((name for name, block in vanished.items() if block.text == text), None)
            if old is not None:
                self.items[key] = self.items.pop(old)
                del vanished[old]

    def _attribute(self, key: str, text: str, *, late: bool) -> frozenset[str]:
        """Decide which records a new or changed item came from, beside the items before it."""
        kind: Literal["overlap", "late", "unknown"] | None = "late" if late else None
        quoted = frozenset(record.id for record in self._last if quotes(record, text))
        if not quoted and len(_words(text)) >= _QUOTED_WORDS:
            earlier = frozenset(arrived.id for arrived in self._arrived if quotes(arrived, text))
            quoted, kind = earlier, ("late" if earlier else kind)
        writers = quoted or frozenset(record.id for record in self._last)
        if kind is None and len(writers) > 1:
            kind = "overlap"
        if not writers:
            kind = "unknown"
        if kind is not None:
            self.uncertainties.append(Uncertainty(kind, key, writers, len(self._arrived) - 1))
        return writers


class _Log:
    """The events of one write, or of several that overlapped."""

    def __init__(self, group: Sequence[Record], arrived: int) -> None:
        self._places = {
            record.id: at for at, record in enumerate(group, start=arrived - len(group))
        }
        self._last = group[-1].id if group else ""
        self.events: list[Event] = []
        self.touched: set[str] = set()
        """The records that some new or changed item came from."""
        self.moved: set[str] = set()
        """The keys of items whose text moved into another item."""

    def note(self, kind: EventKind, sources: Iterable[str], writers: Iterable[str] = ()) -> None:
        """Record what happened to some records, each time once."""
        writing = [record for record in self._places if record in writers]
        by = writing[-1] if writing else self._last
        for source in sorted(sources):
            event = Event(kind, source, by, self._places.get(by, -1))
            if by and event not in self.events:
                self.events.append(event)

    def note_additions(self, writers: Iterable[str]) -> None:
        """Record that a new item came from these records."""
        for record in sorted(writers):
            self.note("add", (record,), (record,))

    def note_skips(self) -> None:
        """Record the written records that did nothing."""
        for record in self._places:
            did = any(event.by == record and event.kind != "add" for event in self.events)
            if record not in self.touched and not did:
                self.note("skip", (record,), (record,))


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _phrase(record: Record) -> str:
    """Return the words of a record in their order, for looking quotations up."""
    turns = " ".join(turn.text for turn in record.turns)
    texts = (record.text, record.user_text, turns)
    return " | ".join(f" {' '.join(_words(text))} " for text in texts)


def _record_words(record: Record) -> frozenset[str]:
    return frozenset(_words(record.text))


def _words_of(records: Iterable[Record]) -> frozenset[str]:
    return frozenset().union(*(record.derive(_record_words) for record in records))


def quotes(record: Record, text: str, *, cut: bool = False) -> bool:
    """Whether a record contains the words of a text, in this order; the last may be `cut`."""
    words = _words(text)
    return bool(words) and f" {' '.join(words)}{'' if cut else ' '}" in record.derive(_phrase)


def joins(records: Iterable[Record], text: str) -> bool:
    """Whether a text contains whole texts of records, and no further word."""
    rest = f" {' '.join(_words(text))} "
    for record in records:
        phrases = {f" {words.strip()} " for words in record.derive(_phrase).split("|")} - {"  "}
        for phrase in sorted(phrases, key=len, reverse=True):
            if phrase in rest:
                rest = rest.replace(phrase, "  ", 1)
                break
    return not rest.strip()


def _list_common(texts: Sequence[str]) -> frozenset[str]:
    """Return the words of most items, such as "the user said", which tell no item from another."""
    if len(texts) < _FEWEST_ITEMS:
        return frozenset()
    numbers = Counter(word for text in texts for word in set(_words(text)))
    return frozenset(word for word, number in numbers.items() if 2 * number > len(texts))


def _remains(old: str, new: str, ignored: frozenset[str], *, if_ignored: bool = False) -> bool:
    """Whether enough of an old text is in a new one, beside the words that prove nothing.

    If all words of the old text are ignored, the same key still counts (`if_ignored`), but a
    different key does not.
    """
    before = set(_words(old))
    if own := before - ignored:
        return len(own & set(_words(new))) >= _REMAINING_SHARE * len(own)
    return if_ignored and len(before & set(_words(new))) >= _REMAINING_SHARE * len(before)


# --- When a system has ingested what it was given ------------------------------------------------


def settle(
    dump: Callable[[], T],
    *,
    before: T | None = None,
    interval: float = 0.1,
    stable: float | None = None,
    patience: float = 0.0,
    limit: float = 30.0,
    advice: str = "Raise the limit, or let nothing else write to this memory",
    sleep: Callable[[float], object] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Dump until nothing has changed for `stable` seconds, and give the last dump.

    Choose more seconds than the longest pause of the system between two writes. A dump that equals
    `before` may mean that ingestion has not begun, so it counts as settled only after `patience`
    seconds. The gaps between the dumps double, so that few are needed.

    Args:
        dump: reads everything that the system contains.
        before: the dump before the write, if you have it.
        interval: seconds between the first two dumps.
        stable: seconds without a change after which ingestion has ended; by default, five
            intervals.
        patience: seconds to wait for a first change from `before`.
        limit: seconds after which the route fails.
        advice: what to change if the limit is reached.
        sleep: waits some seconds.
        clock: gives the time in seconds.

    Raises:
        RouteError: the content still changes at the limit.

    """
    stable = _LOOKS * interval if stable is None else stable
    start = clock()
    content = dump()
    changed, dumps, gap = clock(), 1, max(interval, stable / 50)
    while True:
        end = changed + stable
        if before is not None and content == before:
            end = max(end, start + min(patience, limit))
        if clock() - start >= limit and end - clock() > _MOMENT:
            raise RouteError(
                f"ingestion did not end within {limit:g} seconds: {dumps} dumps, and the content "
                f"never stayed the same for {stable:g} seconds. {advice}"
            )
        sleep(max(0.0, min(gap, end - clock())))
        gap *= 2
        begun = clock()
        latest = dump()
        dumps += 1
        if latest != content:
            content, changed = latest, clock()
        elif begun >= end - _MOMENT:
            return content


_LOOKS = 5
"""Intervals without a change after which ingestion has ended, unless a number is stated."""
_MOMENT = 1e-6
"""Seconds by which a clock may be wrong."""


def count_dumps(interval: float, stable: float | None) -> int:
    """Count the dumps of `settle` if the first one has the new content already."""
    moment = [0.0]

    def sleep(seconds: float) -> None:
        moment[0] += seconds

    dumps = 0

    def dump() -> None:
        nonlocal dumps
        dumps += 1

    settle(dump, interval=interval, stable=stable, limit=1e9, sleep=sleep, clock=lambda: moment[0])
    return dumps
