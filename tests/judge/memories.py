"""Memories with one known fault or none; the class's first line says which."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from datetime import date, timedelta
from http.server import BaseHTTPRequestHandler
from random import Random
from typing import Any

from routeprism import Block, Exposure, Record, RouteError

from ..experiments.order_faults import AppendOnly


def fact_of(record: Record) -> str:
    """Name what a record is about: the words before the first colon."""
    return record.text.partition(":")[0]


def day_of(record: Record) -> date:
    return date.fromisoformat(str(record.timestamp)[:10])


def words_of(text: str) -> frozenset[str]:
    return frozenset(text.lower().replace(":", " ").replace(".", " ").replace("?", " ").split())


# Overwrites.


class KeyedOverwrite(AppendOnly):
    """The last arrival replaces the record of the same fact; shown as they arrived."""

    def add(self, record: Record) -> None:
        self.held = [*(r for r in self.held if fact_of(r) != fact_of(record)), record]

    def select(self, query: str) -> Sequence[Record]:
        return self.held


class OverwritingService(BaseHTTPRequestHandler):
    """A service with four verbs; the last arrival replaces what has the same key."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    memories: dict[str, dict[str, dict[str, Any]]]

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        memory = self.memories.setdefault(body["memory"], {})
        reply: dict[str, Any] = {}
        if self.path == "/reset":
            del self.memories[body["memory"]]
        elif self.path == "/add":
            record = body["record"]
            memory[record["text"].partition(":")[0]] = record
        else:
            items = sorted(memory.values(), key=lambda record: record["timestamp"])
            reply["items"] = [{"text": r["text"], "sources": [r["id"]]} for r in items]
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        pass


class CollidingSlots(AppendOnly):
    """Files each record under a digest modulo 11; the last arrival overwrites the slot."""

    def find_slot(self, record: Record) -> int:
        return int(hashlib.sha256(record.text.encode()).hexdigest(), 16) % 11

    def add(self, record: Record) -> None:
        slot = self.find_slot(record)
        self.held = [*(r for r in self.held if self.find_slot(r) != slot), record]


class OwnedSlots(CollidingSlots):
    """Files each record under a digest modulo 11; the first owner of a slot stays."""

    def add(self, record: Record) -> None:
        if self.find_slot(record) not in map(self.find_slot, self.held):
            self.held.append(record)


class BitemporalOffByOne(AppendOnly):
    """Resolves by event time, but a record that is one day older still counts as newer."""

    def is_newer(self, record: Record, stored: Record) -> bool:
        return day_of(record) >= day_of(stored) - timedelta(days=1)

    def add(self, record: Record) -> None:
        stored = next((r for r in self.held if fact_of(r) == fact_of(record)), None)
        if stored is None:
            self.held.append(record)
        elif self.is_newer(record, stored):
            self.held[self.held.index(stored)] = record


class EqualDaysOverwrite(BitemporalOffByOne):
    """Resolves by event time; of equal times, the last arrival wins."""

    def is_newer(self, record: Record, stored: Record) -> bool:
        return day_of(record) >= day_of(stored)


class ReplacedByImport(AppendOnly):
    """A record that begins with "Import" replaces all that was indexed before."""

    def add(self, record: Record) -> None:
        self.held = [record] if fact_of(record) == "Import" else [*self.held, record]


class ReplacedByNight(AppendOnly):
    """After every fourth arrival, the index is made anew from the last four."""

    def __init__(self) -> None:
        super().__init__()
        self.index: list[Record] = []

    def add(self, record: Record) -> None:
        self.held = [*self.index, *self.held[len(self.index) :], record]
        if len(self.held) - len(self.index) == 4:
            self.index = self.held = self.held[-4:]


class SoftDelete(AppendOnly):
    """Marks the record of the same fact that arrived before as deleted, and still lists it."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: set[str] = set()

    def add(self, record: Record) -> None:
        self.deleted |= {r.id for r in self.held if fact_of(r) == fact_of(record)}
        self.held.append(record)

    def select(self, query: str) -> Sequence[Record]:
        return [r for r in super().select(query) if r.id not in self.deleted]


class SoftDeleteUnlisted(SoftDelete):
    """Marks the record that arrived before as deleted, and lists only what is not."""

    def retained(self) -> frozenset[str]:
        return super().retained() - self.deleted


class SimilarityEviction(AppendOnly):
    """Evicts what shares half its words with the arriving record."""

    def add(self, record: Record) -> None:
        self.held = [*(r for r in self.held if not self.resemble(r, record)), record]

    def resemble(self, record: Record, rival: Record) -> bool:
        first, second = words_of(record.text), words_of(rival.text)
        return 2 * len(first & second) >= len(first | second)


class TwoVotes(AppendOnly):
    """Drops a record when two records of the same fact have arrived after it."""

    def add(self, record: Record) -> None:
        self.held.append(record)
        chain = [r for r in self.held if fact_of(r) == fact_of(record)]
        if len(chain) == 3:
            self.held.remove(chain[0])


class BadForOneUser(KeyedOverwrite):
    """Resolves by event time for all users but one, for whom the last arrival wins."""

    def add(self, record: Record) -> None:
        rivals = [r for r in self.held if fact_of(r) == fact_of(record)]
        if "user u250" in record.text or all(day_of(r) < day_of(record) for r in rivals):
            super().add(record)

    def select(self, query: str) -> Sequence[Record]:
        return sorted(self.held, key=day_of)


# Room.


class LeastRecentlyUsed(AppendOnly):
    """Has room for five; a record that is mentioned again is used, the least used goes."""

    def add(self, record: Record) -> None:
        used = [r for r in self.held if fact_of(r) in words_of(record.text)]
        self.held = [*(r for r in self.held if r not in used), *used, record][-5:]


class Decay(AppendOnly):
    """A record fades after five further arrivals."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0
        self.birth: dict[str, int] = {}

    def add(self, record: Record) -> None:
        self.arrived += 1
        self.birth[record.id] = self.arrived
        self.held.append(record)
        self.held = [r for r in self.held if self.arrived - self.birth[r.id] <= 5]


class LastFive(AppendOnly):
    """Keeps the last five arrivals."""

    def add(self, record: Record) -> None:
        self.held = [*self.held, record][-5:]


class SaysFull(AppendOnly):
    """Has room for five records, and returns "full" for the others."""

    def add(self, record: Record) -> str:
        if len(self.held) == 5:
            return "full"
        self.held.append(record)
        return "ok"


class RaisesFull(AppendOnly):
    """Has room for five records; for the others, the route fails."""

    def add(self, record: Record) -> None:
        if len(self.held) == 5:
            raise RouteError("the store is full")
        self.held.append(record)


class RefusesPrices(AppendOnly):
    """Returns why it does not take a record with a euro sign, in any order."""

    def add(self, record: Record) -> dict[str, str]:
        if "€" in record.text:
            return {"reason": "prices are not stored"}
        self.held.append(record)
        return {}


class RefusesLate(AppendOnly):
    """Discards a record that is older than the newest one it has seen."""

    def add(self, record: Record) -> None:
        if not self.held or day_of(record) > day_of(self.held[-1]):
            self.held.append(record)


# What is shown.


class SummaryByArrival(AppendOnly):
    """Every three arrivals are rewritten as one summary, which names its sources."""

    def expose(self, query: str) -> Exposure:
        groups = [self.held[at : at + 3] for at in range(0, len(self.held), 3)]
        return Exposure(tuple(self.summarise(group) for group in groups))

    def summarise(self, group: Sequence[Record]) -> Block:
        text = " / ".join(record.text[:24] for record in group)
        return Block("summary", text, frozenset(record.id for record in group))


class FirstSeenName(AppendOnly):
    """Calls a client by the name under which the client was seen first."""

    def expose(self, query: str) -> Exposure:
        names: dict[str, str] = {}
        for record in self.held:
            name, client = record.text.split(" (")[0], record.text.split(" (")[1]
            names.setdefault(client.partition(")")[0], name)
        return Exposure(tuple(self.show(record, names) for record in self.select(query)))

    def show(self, record: Record, names: dict[str, str]) -> Block:
        rest = record.text.split(" (")[1]
        return Block("record", f"{names[rest.partition(')')[0]]} ({rest}", frozenset((record.id,)))


class TiesByArrival(AppendOnly):
    """Shows the three records that share most words with the question; first come, first shown."""

    def select(self, query: str) -> Sequence[Record]:
        words = words_of(query) - {"the", "what", "does", "is"}
        return sorted(self.held, key=lambda r: -len(words & words_of(r.text)))[:3]


class ShowsLastThree(AppendOnly):
    """Keeps everything, and shows the three records that arrived last."""

    def select(self, query: str) -> Sequence[Record]:
        return self.held[-3:]


class CutsAtBudget(AppendOnly):
    """Keeps everything, and shows records as they arrived until 200 characters are used."""

    def select(self, query: str) -> Sequence[Record]:
        selection, used = [], 0
        for record in self.held:
            used += len(record.text)
            if used > 200:
                break
            selection.append(record)
        return selection


class CannotFind(AppendOnly):
    """Keeps everything, but its index has no word that begins with "r" or "g"."""

    def select(self, query: str) -> Sequence[Record]:
        words = {word for word in words_of(query) if word[0] not in "rg"} - words_of("the is with")
        return [r for r in super().select(query) if fact_of(r) in words]


class ShowsNothing(AppendOnly):
    """Keeps everything and shows nothing."""

    def select(self, query: str) -> Sequence[Record]:
        return ()


class WithoutSources(AppendOnly):
    """Shows the texts as they arrived and names no source."""

    def expose(self, query: str) -> Exposure:
        return Exposure(tuple(Block("text", r.text, frozenset()) for r in self.held[-3:]))


# What is never kept, and what is never current.


class AddsNothing(AppendOnly):
    """Its `add` does nothing."""

    def add(self, record: Record) -> None:
        pass


class LossyAdapter(AppendOnly):
    """Drops every record with a euro sign, in any order."""

    def add(self, record: Record) -> None:
        if "€" not in record.text:
            self.held.append(record)


class OldestWins(AppendOnly):
    """Keeps the oldest record of each fact by event time, in any order."""

    def add(self, record: Record) -> None:
        rivals = [r for r in self.held if fact_of(r) == fact_of(record)]
        if not rivals or day_of(record) < day_of(rivals[0]):
            self.held = [*(r for r in self.held if r not in rivals), record]


class FirstArrivalWins(AppendOnly):
    """Keeps the record of each fact that arrived first."""

    def add(self, record: Record) -> None:
        if fact_of(record) not in map(fact_of, self.held):
            self.held.append(record)


class ShowsByChance(AppendOnly):
    """Shows three records by chance."""

    deterministic = False

    # One sequence for all builds, so that a test ends the same every time.
    chance = Random(11)  # noqa: S311

    def __init__(self) -> None:
        super().__init__()
        self.order = self.chance.random()

    def select(self, query: str) -> Sequence[Record]:
        return Random(self.order).sample(self.held, min(3, len(self.held)))  # noqa: S311


# Writes that overlap.


class TornWrites(AppendOnly):
    """Writes the id and the text of the latest record with an await between them."""

    def __init__(self) -> None:
        super().__init__()
        self.latest = ["", ""]

    async def add(self, record: Record) -> None:
        self.held.append(record)
        self.latest[0] = record.id
        await asyncio.sleep(0)
        self.latest[1] = record.text

    def state(self) -> list[str]:
        return self.latest


class LostUpdates(AppendOnly):
    """Reads its list, waits, and writes it back with one more record."""

    async def add(self, record: Record) -> None:
        records = list(self.held)
        await asyncio.sleep(0)
        self.held = [*records, record]


class DuplicatedWrites(AppendOnly):
    """Looks whether a record of the fact is there, waits, and then replaces or inserts."""

    async def add(self, record: Record) -> None:
        rivals = [r for r in self.held if fact_of(r) == fact_of(record)]
        await asyncio.sleep(0)
        self.held = [*(r for r in self.held if r not in rivals), record]


class SerialWindow(AppendOnly):
    """Keeps the two records whose writes ended last; each outcome is that of a serial order."""

    async def add(self, record: Record) -> None:
        await asyncio.sleep(0)
        self.held = [*self.held, record][-2:]


# Without a fault.


class SortedSet(AppendOnly):
    """Keeps every record by id, and shows all of them by id."""

    def select(self, query: str) -> Sequence[Record]:
        return sorted(self.held, key=lambda record: record.id)


class NewestOfFact(AppendOnly):
    """Keeps the newest record of each fact by time, ties by id."""

    def add(self, record: Record) -> None:
        rivals = [r for r in (*self.held, record) if fact_of(r) == fact_of(record)]
        newest = max(rivals, key=lambda r: (day_of(r), r.id))
        self.held = [*(r for r in self.held if r not in rivals), newest]


class RanksByWords(AppendOnly):
    """Ranks all records by the rare words that they share with the question, ties by id."""

    def select(self, query: str) -> Sequence[Record]:
        frequency = Counter(word for r in self.held for word in words_of(r.text))
        return sorted(self.held, key=lambda r: (-self.score(query, r, frequency), r.id))[:3]

    def score(self, query: str, record: Record, frequency: Counter[str]) -> int:
        return sum(1000 // frequency[word] for word in words_of(query) & words_of(record.text))


class KeyedByTime(AppendOnly):
    """Keeps records under their times, and shows them by time."""

    def __init__(self) -> None:
        super().__init__()
        self.days: dict[date, Record] = {}

    def add(self, record: Record) -> None:
        self.days[day_of(record)] = record
        self.held = [self.days[day] for day in sorted(self.days)]


class SummaryByTime(SummaryByArrival):
    """Rewrites all records as summaries of three, by time; each names its sources."""

    def add(self, record: Record) -> None:
        self.held = sorted([*self.held, record], key=day_of)


class NewestFour(AppendOnly):
    """Keeps the four records that are newest by time."""

    def add(self, record: Record) -> None:
        self.held = sorted([*self.held, record], key=day_of)[-4:]


class WordCounts(AppendOnly):
    """Counts words, as a grow-only counter, and shows the counts with all their sources."""

    def expose(self, query: str) -> Exposure:
        counts = Counter(word for r in self.held for word in r.text.split())
        text = ", ".join(f"{word} {number}" for word, number in sorted(counts.items()))
        return Exposure((Block("counts", text, self.retained()),) if self.held else ())


class SkipsCopies(AppendOnly):
    """Keeps a record that arrives again only once."""

    def add(self, record: Record) -> None:
        if record.id not in self.retained():
            self.held.append(record)


class AsyncWithLock(LostUpdates):
    """Reads, waits and writes under a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = asyncio.Lock()

    async def add(self, record: Record) -> None:
        async with self.lock:
            await super().add(record)
