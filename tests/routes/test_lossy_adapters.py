"""Adapters that see less than their users, or something else, are caught, and sound ones pass.

Every double is a memory as an adapter would show it: a store behind it, a list and a search. The
faults change how the adapter reads the store or names its records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from routeprism import Record
from routeprism.policies import Event, as_policy
from routeprism.routes.conformance import Check, check_adapter

from ..catalogue import mark_repeats


class Store:
    """A sound memory: it stores every record, lists all of them, and finds those with a word."""

    limit = 5
    """How many records a search brings."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> Any:
        self.records.append(record)

    def retained(self) -> Any:
        return [record.id for record in self.records]

    def rank(self, query: str) -> list[Record]:
        words = set(query.lower().split())

        def score(record: Record) -> int:
            return -len(words & set(record.text.lower().split()))

        return sorted((r for r in self.records if score(r)), key=score)[: self.limit]

    def expose(self, query: str) -> Any:
        return [(record.text, [record.id]) for record in self.rank(query)]


# --- adapters that see less, or something else ---------------------------------------------------


class LosesEveryFifth(Store):
    def __init__(self) -> None:
        super().__init__()
        self.number = 0

    def add(self, record: Record) -> None:
        self.number += 1
        if self.number % 5:
            super().add(record)


class LosesSomeIds(Store):
    """It loses ids by their last digit, whatever else was added."""

    def add(self, record: Record) -> None:
        if not record.id.endswith(("3", "8")):
            super().add(record)


class ListsTheFirstPage(Store):
    def retained(self) -> Any:
        return super().retained()[:10]


class ListsTheNewestPage(Store):
    def retained(self) -> Any:
        return super().retained()[-10:]


class Lags(Store):
    """Its list and its search see everything but the newest record."""

    def retained(self) -> Any:
        return super().retained()[:-1] if len(self.records) > 1 else super().retained()

    def expose(self, query: str) -> Any:
        ids = set(self.retained())
        return [pair for pair in super().expose(query) if pair[1][0] in ids]


class ListLags(Lags):
    """Its list alone sees everything but the newest record."""

    def expose(self, query: str) -> Any:
        return Store.expose(self, query)


class WrongSource(Store):
    """It names the record before the one that a text is from."""

    def expose(self, query: str) -> Any:
        ids = [record.id for record in self.records]
        return [
            (text, [ids[max(0, ids.index(source) - 1)]])
            for text, (source,) in super().expose(query)
        ]


class NamesTheFirst(Store):
    """It joins all texts that it finds, and names the source of the first."""

    def expose(self, query: str) -> Any:
        pairs = super().expose(query)
        return [(" ".join(text for text, _ in pairs), pairs[0][1])] if pairs else []


class DropsLongTexts(Store):
    def add(self, record: Record) -> None:
        if len(record.text) < 2000:
            super().add(record)


class DropsOtherScripts(Store):
    def add(self, record: Record) -> None:
        if record.text.isascii():
            super().add(record)


class DropsCopies(Store):
    def add(self, record: Record) -> None:
        if record.text not in [earlier.text for earlier in self.records]:
            super().add(record)


def stores_under(key: Callable[[str], str]) -> type:
    """A dictionary whose keys are not the ids; it gives the ids back as they came."""

    class Keyed(Store):
        def add(self, record: Record) -> None:
            table = {key(entry.id): entry for entry in (*self.records, record)}
            self.records = list(table.values())

    return Keyed


def names_by(key: Callable[[str], str]) -> type:
    """A store that gives its own form of an id back."""

    class Renaming(Store):
        def retained(self) -> Any:
            return [key(id) for id in super().retained()]

        def expose(self, query: str) -> Any:
            return [(text, [key(id)]) for text, (id,) in super().expose(query)]

    return Renaming


class Renumbers(Store):
    """An update gets an id of its own."""

    def add(self, record: Record) -> None:
        name = record.text.split()[1]
        for at, old in enumerate(self.records if len(name) > 9 else ()):
            if old.text.split()[1] == name and old.text[:-1] != record.text[:-1]:
                self.records[at] = Record(f"{old.id}-v2", old.position, record.text)
                return
        super().add(record)


class SearchWithoutList(Store):
    def retained(self) -> Any:
        return []


class ListWithoutSearch(Store):
    """Its index has every second record."""

    def rank(self, query: str) -> list[Record]:
        indexed = {record.id for record in self.records[::2]}
        return [record for record in super().rank(query) if record.id in indexed]


class FindsSomeWords(Store):
    """It finds whole texts, except those with two certain letters."""

    def rank(self, query: str) -> list[Record]:
        return [record for record in self.records if query in record.text and "on" not in query]


class Unsteady(Store):
    """What it lists depends on how often it was read since the last add."""

    reads = 0

    def add(self, record: Record) -> None:
        super().add(record)
        self.reads = 0

    def retained(self) -> Any:
        self.reads += 1
        ids = super().retained()
        return ids[1:] if self.reads > 1 and len(ids) > 9 else ids


class LosesBatches(Store):
    def add_many(self, records: list[Record]) -> None:
        for record in records[:-1]:
            self.add(record)


class ReopensTwice(Store):
    """After it was opened again, it has every record twice."""

    def reopen(self) -> Store:
        self.records = [*self.records, *self.records]
        return self


class ForgetsInSnapshots(Store):
    def snapshot(self) -> Any:
        return [[r.id, r.position, r.text] for r in self.records[1:]]

    def revive(self, snapshot: Any) -> None:
        self.records = [Record(*entry) for entry in snapshot]


def shows_other_users() -> type:
    """Users have lists of their own, and one index."""
    index: list[Record] = []

    class Shared(Store):
        def add(self, record: Record) -> None:
            super().add(record)
            index.append(record)

        def expose(self, query: str) -> Any:
            words = {word for word in query.lower().split() if len(word) > 7}
            return [
                (record.text, [record.id])
                for record in dict.fromkeys([*self.records, *index])
                if record in self.records or words & set(record.text.lower().split())
            ]

    return Shared


def shares_ids() -> type:
    """Users share a table by id, so that one user's record replaces another's."""
    table: dict[str, Record] = {}

    class Shared(Store):
        def add(self, record: Record) -> None:
            super().add(record)
            table[record.id] = record

        def expose(self, query: str) -> Any:
            return [(table[id].text, [id]) for id in self.retained()]

    return Shared


FAULTY: dict[str, tuple[Callable[[], Any], str, str]] = {
    "loses every fifth": (
        lambda: LosesEveryFifth,
        "walk, losses",
        "was added, and is neither listed nor accounted for; the memory kept more at another time",
    ),
    "loses some ids": (
        lambda: LosesSomeIds,
        "single records",
        "are neither retained nor shown for their own text, and nothing says why",
    ),
    "lists the first page": (
        lambda: ListsTheFirstPage,
        "walk, list",
        "which the list of 10 records leaves out",
    ),
    "lists the newest page": (
        lambda: ListsTheNewestPage,
        "walk, list",
        "which the list of 10 records leaves out",
    ),
    "lags": (
        lambda: Lags,
        "walk, list",
        "it lags: 'D1:3' ",
    ),
    "list lags": (
        lambda: ListLags,
        "walk, list",
        "it lags: 'D1:3' ",
    ),
    "wrong source": (
        lambda: WrongSource,
        "walk, sources",
        "as its source",
    ),
    "names the first source": (
        lambda: NamesTheFirst,
        "walk, sources",
        "as its source",
    ),
    "drops long texts": (
        lambda: DropsLongTexts,
        "single records",
        "2 of 40 records that a memory was given alone are neither retained nor shown",
    ),
    "drops other scripts": (
        lambda: DropsOtherScripts,
        "single records",
        "'私は京都に住んでいて、猫を二匹飼っています。'",
    ),
    "drops copies": (
        lambda: DropsCopies,
        "walk, copies",
        "have the same text, but only the second is listed",
    ),
    "cuts ids in its table": (
        lambda: stores_under(lambda id: id[:40]),
        "walk, losses",
        "vanished when 'support-conversation",
    ),
    "folds ids in its table": (
        lambda: stores_under(str.casefold),
        "walk, losses",
        "(it differs from 'session-7A' only in case)",
    ),
    "keys without punctuation": (
        lambda: stores_under(lambda id: "".join(filter(str.isalnum, id))),
        "walk, losses",
        "vanished when 'D11:3' was added (it differs from 'D11:3' only in punctuation)",
    ),
    "cuts ids": (
        lambda: names_by(lambda id: id[:24]),
        "single records",
        "which never arrived (it is the beginning of ",
    ),
    "folds ids": (lambda: names_by(str.casefold), "single records", "only in case)"),
    "renumbers updates": (
        lambda: Renumbers,
        "walk, ids",
        "-v2', which never arrived (it begins with the same 36 characters as ",
    ),
    "renumbers": (
        lambda: names_by(lambda id: f"m-{len(id)}"),
        "ids",
        "retained() names 'm-8', which never arrived",
    ),
    "search without list": (
        lambda: SearchWithoutList,
        "walk, list",
        "which the list of 0 records leaves out",
    ),
    "list without search": (
        lambda: ListWithoutSearch,
        "walk, search",
        "but its own text does not bring it, although ",
    ),
    "finds some texts": (lambda: FindsSomeWords, "walk, search", "but its own text brings nothing"),
    "unsteady list": (lambda: Unsteady, "walk, list", "it changes while nothing is added"),
    "loses from batches": (
        lambda: LosesBatches,
        "walk, add_many",
        "was added, and is neither listed nor accounted for",
    ),
    "opens twice": (lambda: ReopensTwice, "walk, reopen", "it has 'D1:3' again"),
    "forgets in snapshots": (
        lambda: ForgetsInSnapshots,
        "walk, snapshot",
        "the list is different after it: it lacks 'ann-000'",
    ),
    "shows other users": (
        shows_other_users,
        "users",
        "of user 'ann' is shown to user 'ben' for the question ",
    ),
    "shares ids": (
        shares_ids,
        "users",
        "of user 'ben' is shown to user 'ann' for the question ",
    ),
}


def failures(memory: Any) -> dict[str, Check]:
    checks = check_adapter(as_policy(memory))
    return {check.name: check for check in checks if check.outcome == "failed"}


@pytest.mark.parametrize("name", mark_repeats(FAULTY, lambda name: "faulty"))
def test_what_an_adapter_loses_is_named(name: str) -> None:
    make, check, message = FAULTY[name]
    failed = failures(make())
    assert check in failed, failed
    assert message in failed[check].message
    assert failed[check].fix


# --- sound adapters ------------------------------------------------------------------------------


class Window(Store):
    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-4:]


class Logged(Store):
    """It says what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Event] = []
        self.number = 0

    def add(self, record: Record) -> None:
        self.note("add", record, record)
        self.records.append(record)
        self.number += 1

    def note(self, kind: Any, record: Record, by: Record) -> None:
        self.log.append(Event(kind, record.id, by.id, self.number))

    def drop(self, kind: Any, record: Record, by: Record) -> None:
        self.note(kind, record, by)
        self.records.remove(record)

    def events(self) -> list[Event]:
        return self.log


class Overwrites(Logged):
    """The first word is the key, and an update replaces the record before."""

    def add(self, record: Record) -> None:
        for old in [r for r in self.records if r.text.split()[1] == record.text.split()[1]]:
            self.drop("overwrite", old, record)
        super().add(record)


class SoftDeletes(Overwrites):
    """What is replaced stays in the store with a mark, and is neither listed nor shown."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted: list[Record] = []

    def drop(self, kind: Any, record: Record, by: Record) -> None:
        self.deleted.append(record)
        super().drop(kind, record, by)


class OverwritesSilently(Store):
    """The same without a log: of copies it keeps both."""

    def add(self, record: Record) -> None:
        name = record.text.split()[1]
        self.records = [
            r for r in self.records if r.text.split()[1] != name or r.text == record.text
        ]
        super().add(record)


class LeastRecentlyUsed(Store):
    """A write of the same text counts as use; the record that was used longest ago is dropped."""

    def add(self, record: Record) -> None:
        same = [r for r in self.records if r.text == record.text]
        rest = [r for r in self.records if r.text != record.text]
        self.records = [*rest, *same, record][-6:]


class NamesCopies(Store):
    """It keeps one of several copies, and names all of them as its sources."""

    def __init__(self) -> None:
        super().__init__()
        self.copies: dict[str, list[str]] = {}

    def add(self, record: Record) -> None:
        self.copies.setdefault(record.text, []).append(record.id)
        if len(self.copies[record.text]) == 1:
            super().add(record)

    def retained(self) -> Any:
        return [id for ids in self.copies.values() for id in ids]

    def expose(self, query: str) -> Any:
        return [(text, self.copies[text]) for text, _ in super().expose(query)]


class SkipsCopies(Logged):
    def add(self, record: Record) -> None:
        if any(earlier.text == record.text for earlier in self.records):
            self.note("skip", record, record)
            self.number += 1
        else:
            super().add(record)


class Budget(Logged):
    """It drops the oldest records until the rest fit, and says so."""

    characters = 600

    def add(self, record: Record) -> None:
        super().add(record)
        self.number -= 1
        while sum(len(r.text) for r in self.records) > self.characters:
            self.drop("evict", self.records[0], record)
        self.number += 1


class SilentBudget(Store):
    """It drops the oldest records until the rest fit, and cuts what does not fit at all."""

    def add(self, record: Record) -> None:
        super().add(record)
        while len(self.records) > 1 and sum(len(r.text) for r in self.records) > 900:
            self.records.pop(0)


class RefusesLongTexts(Store):
    def add(self, record: Record) -> None:
        if len(record.text) > 2000:
            raise ValueError(f"more than 2,000 characters: {len(record.text)}")
        super().add(record)


class RepliesToLongTexts(Store):
    def add(self, record: Record) -> Any:
        if len(record.text) > 2000:
            return {"stored": False, "reason": "too long"}
        super().add(record)
        return {"stored": True}


class Settles(Store):
    """What is added shows in the second list after it; it declares that this takes time."""

    settle = 0.01
    costly = True

    def add(self, record: Record) -> None:
        super().add(record)
        self.lists = 0

    def retained(self) -> Any:
        self.lists = self.lists + 1 if self.records else 2
        return super().retained() if self.lists > 1 else super().retained()[:-1]


def keeps_users_apart() -> type:
    """All users are in one table, which every request filters."""
    table: list[tuple[int, Record]] = []
    users: list[int] = []

    class Tenant(Store):
        def __init__(self) -> None:
            self.user = len(users)
            users.append(self.user)

        @property
        def records(self) -> Any:
            return [record for user, record in table if user == self.user]

        def add(self, record: Record) -> None:
            table.append((self.user, record))

    return Tenant


class Complete(Store):
    """It offers everything that an adapter can."""

    def add_many(self, records: list[Record]) -> None:
        self.records.extend(records)

    def reopen(self) -> Store:
        return self

    def snapshot(self) -> Any:
        return [[r.id, r.position, r.text] for r in self.records]

    def revive(self, snapshot: Any) -> None:
        self.records = [Record(*entry) for entry in snapshot]


class Summary(Store):
    """One text from the first words of everything."""

    def expose(self, query: str) -> Any:
        words = " ".join(record.text.split()[1] for record in self.records)
        return [(words, self.retained())]


class ShowsTheNewest(Store):
    """It keeps everything and shows the newest three, whatever is asked."""

    def expose(self, query: str) -> Any:
        return self.records[-3:]


class FlushesInBulk(Store):
    """When it is full, it drops half of what it has."""

    def add(self, record: Record) -> None:
        super().add(record)
        if len(self.records) > 10:
            self.records = self.records[5:]


class Asynchronous(Store):
    async def add(self, record: Record) -> None:  # type: ignore[override]
        super().add(record)

    async def retained(self) -> Any:
        return super().retained()


class Built:
    """A policy: the four newest of the arrivals."""

    name = "built"

    def build(self, arrivals: Any) -> Any:
        memory = Window()
        for record in arrivals:
            memory.add(record)
        return as_policy(lambda: memory, name="w").finish(memory, arrivals)  # type: ignore[attr-defined]


SOUND: dict[str, tuple[Callable[[], Any], str]] = {
    "keeps everything": (lambda: Store, "eviction"),
    "window": (lambda: Window, ""),
    "keyed overwrite that declares it": (lambda: Overwrites, ""),
    "soft delete": (lambda: SoftDeletes, ""),
    "keyed overwrite without a word": (lambda: OverwritesSilently, "copies"),
    "least recently used": (lambda: LeastRecentlyUsed, ""),
    "copies named as sources": (lambda: NamesCopies, "eviction"),
    "copies skipped, which it declares": (lambda: SkipsCopies, "eviction"),
    "budget": (lambda: Budget, ""),
    "budget without a word": (lambda: SilentBudget, ""),
    "refuses long texts": (lambda: RefusesLongTexts, "eviction"),
    "replies to long texts": (lambda: RepliesToLongTexts, "eviction"),
    "eventual consistency, settled": (lambda: Settles, "eviction"),
    "several users in one table": (keeps_users_apart, "eviction"),
    "every operation": (lambda: Complete, "eviction"),
    "one summary": (lambda: Summary, "eviction"),
    "shows the newest": (lambda: ShowsTheNewest, "search"),
    "flushes in bulk": (lambda: FlushesInBulk, ""),
    "async": (lambda: Asynchronous, "eviction"),
    "a policy that builds": (lambda: Built(), ""),
}


@pytest.mark.parametrize("name", mark_repeats(SOUND, lambda name: "sound"))
def test_a_sound_adapter_passes(name: str) -> None:
    make, unobserved = SOUND[name]
    checks = {check.name: check for check in check_adapter(as_policy(make()))}
    assert {n: c for n, c in checks.items() if c.outcome == "failed"} == {}
    if unobserved:
        assert checks[f"walk, {unobserved}"].outcome == "not observed"
    else:
        assert checks["walk, eviction"].outcome == "passed"
