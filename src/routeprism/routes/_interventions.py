"""Why a record is lost: experiments on the losing order itself.

RoutePrism builds the memory again, with the record alone, without the arrival that displaced it, or
with two records in the opposite order. An arrival is never left out of an order, because a memory
may be full: it is exchanged for a placebo, which is an unrelated record of equal length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from routeprism.errors import RoutePrismError
from routeprism.frames import OWN_ERRORS
from routeprism.orders import ONE_BY_ONE, Order, Procedure
from routeprism.policies import (
    REPAIRS,
    Block,
    Event,
    Memory,
    Policy,
    is_deterministic,
    unwrap_policy,
)
from routeprism.policies.own import close_memory, closing_memory, find_own_memory, retained_ids
from routeprism.policies.remedies import sort_events
from routeprism.records import Case, Record, read_time
from routeprism.redaction import Redactor
from routeprism.routes._checks import is_costly
from routeprism.routes._placebos import Placebos, date_after, date_before
from routeprism.runs import CauseKind, Loss, Relation

T = TypeVar("T")

PLACEBOS = 3
"""How many placebos are tried: one alone may hit the same place of a hash table by chance."""
_MOST_BUILDS = 24
"""How many builds a search for records that displace another one together may take."""
_MOST_WATCHED = 400
"""Arrivals up to which what is retained is read after each of them; of more, by bisection."""
_MOST_PARTNERS = 8
"""With how many other records a record is built to find out whether there is room for two."""
_LATER = (1, 30, 365)
"""How many days after the newest record placebos are dated, to be newer than any record."""
_LONGEST_CHAIN = 3
"""How many arrivals that displace a record one after the other are named."""


@dataclass(frozen=True, slots=True)
class _Contents:
    """The content of one build."""

    retained: frozenset[str]
    blocks: Mapping[str, tuple[Block, ...] | None]
    """The text of each question → what it is shown; None if the memory raised an error."""
    events: tuple[Event, ...]

    def list_shown(self, query: str) -> list[str]:
        """List the ids that a question is shown, in the order of the blocks."""
        blocks = self.blocks[query]
        if blocks is None:
            raise RoutePrismError("the memory cannot show a part of the records")
        return list(dict.fromkeys(id for block in blocks for id in sorted(block.sources)))


@dataclass(slots=True)
class Rebuilds:
    """Builds a memory from changed records of one pool, each sequence once."""

    case: Case
    policy: Policy
    queries: tuple[str, ...] = ()
    """The texts of the questions that a build is exposed to if it is exposed to one of them."""
    placebos: Placebos = field(init=False)
    built: int = 0
    _contents: dict[tuple[tuple[Record, ...], Procedure], _Contents] = field(default_factory=dict)
    _watched: dict[tuple[Record, ...], _Watch | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.placebos = Placebos.of(self.case)

    @property
    def allowed(self) -> bool:
        """Whether building is cheap and repeatable, and the memory can take changed records."""
        if not is_deterministic(self.policy) or is_costly(self.policy):
            return False
        return not callable(getattr(self.policy, "recall", None))

    def build(self, arrivals: Iterable[Record], procedure: Procedure, query: str = "") -> _Contents:
        """Build a memory, and read what it retains, and what it shows if a query is given."""
        key = (tuple(arrivals), procedure)
        stored = self._contents.get(key)
        if stored is None or (query and query not in stored.blocks):
            queries = list(dict.fromkeys([*self.queries, query])) if query else []
            stored = self._contents[key] = self._read(*key, queries)
        return stored

    def _read(
        self, arrivals: tuple[Record, ...], procedure: Procedure, queries: Sequence[str]
    ) -> _Contents:
        from routeprism.overlap import build_by_procedure

        self.built += 1
        with closing_memory(build_by_procedure(self.policy, arrivals, procedure)) as memory:
            log = getattr(memory, "events", None)
            events = tuple(log()) if callable(log) else ()
            return _Contents(
                retained_ids(memory, self.policy.name),
                {query: _expose(memory, query) for query in queries},
                tuple(event for event in events if event.kind != "add"),
            )

    def watch(self, arrivals: tuple[Record, ...], procedure: Procedure) -> _Watch | None:
        """Build an own class, and read what it retains after each arrival; None for any other."""
        own = find_own_memory(self.policy)
        if own is None or own.outside or procedure.kind not in (ONE_BY_ONE.kind, "twice"):
            return None
        if getattr(own.kind, "settle", None) or len(arrivals) > _MOST_WATCHED:
            return None  # each look would wait
        if arrivals not in self._watched:
            self.built += 1
            retained, replies = [], []
            with own.begin() as memory:
                for record in arrivals:
                    replies.append(own.add(memory, record))
                    own.settle(memory)
                    retained.append(retained_ids(memory, self.policy.name))
            close_memory(memory)
            self._watched[arrivals] = _Watch(tuple(retained), tuple(map(_read_reply, replies)))
        return self._watched[arrivals]


@dataclass(frozen=True, slots=True)
class _Watch:
    """What a memory retained after each arrival, and what its `add` returned."""

    retained: tuple[frozenset[str], ...]
    replies: tuple[str, ...]


def _expose(memory: Memory, query: str) -> tuple[Block, ...] | None:
    return _try(lambda: memory.expose(query).blocks)


def _try(function: Callable[[], T]) -> T | None:
    try:
        return function()
    except (*OWN_ERRORS, RoutePrismError):
        return None


def _read_reply(reply: Any) -> str:
    """Return what `add` returned as a short text; empty if it returned nothing, or True."""
    return "" if reply is None or reply is True else Redactor.configured().redact_line(str(reply))


def find_cause(
    rebuilds: Rebuilds,
    loss: Loss,
    query: str,
    *,
    procedure: Procedure = ONE_BY_ONE,
    reference: tuple[Order, Procedure] | None = None,
) -> Loss:
    """Test why the order of a loss loses its record; give the loss with what was found.

    `query` is the text of the question, or empty if only what is retained counts. The reference is
    the order that shows the record; None if none is known, because source order loses it.
    """
    if not rebuilds.allowed or procedure.kind == "overlap":
        return loss
    before = rebuilds.built
    try:
        explained = _Inquiry(rebuilds, loss, query, procedure, reference).explain()
    except (*OWN_ERRORS, RoutePrismError) as error:
        text = Redactor.configured().redact_line(str(error))
        explained = replace(loss, test=f"the test failed: {text}")
    return replace(explained, builds=rebuilds.built - before)


@dataclass(frozen=True, slots=True)
class _Inquiry:
    """Experiments on one lost record."""

    rebuilds: Rebuilds
    loss: Loss
    query: str
    procedure: Procedure
    reference: tuple[Order, Procedure] | None

    @property
    def arrivals(self) -> tuple[Record, ...]:
        """The losing order."""
        return self._arrange(self.loss.order)

    @property
    def record(self) -> Record:
        """The record that is lost."""
        return next(r for r in self.rebuilds.case.pool.records if r.id == self.loss.record)

    def _arrange(self, order: Order) -> tuple[Record, ...]:
        records = self.rebuilds.case.pool.records
        return tuple(records[position] for position in order)

    def _build(self, arrivals: Iterable[Record]) -> _Contents:
        return self.rebuilds.build(arrivals, self.procedure)

    def _keeps(self, arrivals: Iterable[Record]) -> bool:
        return self.record.id in self._build(arrivals).retained

    def _shows(self, arrivals: Iterable[Record]) -> bool:
        return self.record.id in self._list_shown(arrivals)

    def _list_shown(self, arrivals: Iterable[Record]) -> list[str]:
        return self.rebuilds.build(arrivals, self.procedure, self.query).list_shown(self.query)

    def _exchange(
        self, arrivals: Iterable[Record], ids: Iterable[str], number: int, *, short: bool = False
    ) -> tuple[Record, ...]:
        """Exchange records for their placebos."""
        exchanged, make = set(ids), self.rebuilds.placebos.make
        return tuple(make(r, number, short=short) if r.id in exchanged else r for r in arrivals)

    def _find_placebo(self, arrivals: Sequence[Record], ids: Sequence[str]) -> int | None:
        """Return the first placebo whose exchange keeps the record; None if all displace it."""
        numbers = range(PLACEBOS)
        return next((n for n in numbers if self._keeps(self._exchange(arrivals, ids, n))), None)

    def _conclude(
        self, cause: CauseKind, by: Sequence[str] = (), test: str = "", **more: Any
    ) -> Loss:
        """State a cause, with the relation of both records and whether their order decides."""
        loss = replace(self.loss, cause=cause, by=tuple(by), test=test, **more)
        if not by:
            return loss
        loss = replace(loss, relation=self._compare(by[0]))
        if cause in ("full", "replaced", "joint"):
            return loss
        # Of several that displace it one after the other, the last one may be the one to exchange.
        partners = dict.fromkeys((by[0], by[-1]) if len(by) <= _LONGEST_CHAIN else (by[0],))
        return replace(loss, is_order=any(map(self._is_back_after_swap, partners)))

    def _compare(self, id: str) -> Relation:
        records = {record.id: record for record in sort_events(self.rebuilds.case.pool.records)}
        times = [records[name].timestamp for name in (self.record.id, id)]
        if all(times) and len({read_time(time or "") for time in times}) == 1:
            return "same time"
        places = list(records)
        return "newer" if places.index(id) > places.index(self.record.id) else "older"

    def _is_back_after_swap(self, id: str) -> bool:
        """Exchange the places of the record and of another one in the losing order."""
        two = {self.record.id, id}
        first, second = (next(r for r in self.arrivals if r.id == i) for i in sorted(two))
        places = {first.id: second, second.id: first}
        swapped = [places.get(record.id, record) for record in self.arrivals]
        is_hidden = self.record.id in self._build(self.arrivals).retained
        return self._shows(swapped) if is_hidden else self._keeps(swapped)

    # --- which experiment comes first ------------------------------------------------------------

    def explain(self) -> Loss:
        """Find the cause."""
        is_retained = self._keeps(self.arrivals)
        if is_retained and (not self.query or self._shows(self.arrivals)):
            return replace(self.loss, test="the memory loses nothing when it is built again")
        if not is_retained and self.procedure.kind not in (ONE_BY_ONE.kind, "twice"):
            usual = self.rebuilds.build(self.arrivals, ONE_BY_ONE)
            if self.record.id in usual.retained:
                test = f"added one by one in the same order, '{self.record.id}' is kept"
                return self._conclude("procedure", test=test)
        if is_retained and self._shows_unnamed_text():
            return replace(self.loss, test="the text that is shown names no records")
        alone = self._test_alone(is_retained=is_retained)
        if alone is not None:
            return alone
        if is_retained:
            return self._explain_hidden()
        moment = self._find_moment(self.arrivals)
        return self._explain_refusal() if moment is None else self._explain_removal(moment)

    def _shows_unnamed_text(self) -> bool:
        """Whether the question is shown text without sources, in which the record may be."""
        blocks = self.rebuilds.build(self.arrivals, self.procedure, self.query).blocks[self.query]
        return any(block.text.strip() and not block.sources for block in blocks or ())

    def _test_alone(self, *, is_retained: bool) -> Loss | None:
        """Build the memory from this record alone; None if it keeps and shows it."""
        name, single = f"'{self.record.id}'", (self.record,)
        if not is_retained:
            contents = _try(lambda: self._build(single))
            if contents is None or self.record.id not in contents.retained:
                reply = self._read_refusal()
                if contents is None and not reply:
                    raise RoutePrismError(f"the memory cannot be read with {name} alone")
                test = f"given {name} alone, the memory does not keep it"
                return self._conclude("refused" if reply else "never kept", test=test, reply=reply)
        elif self.reference is None and not self._shows(single):
            test = f"given {name} alone, the memory does not show it to the question"
            return self._conclude("not retrievable", test=test)
        return None

    def _read_refusal(self) -> str:
        """Return what `add` returns or raises if the memory is given the record alone."""
        own = find_own_memory(unwrap_policy(self.rebuilds.policy))
        self.rebuilds.built += 1
        try:
            if own is None:
                close_memory(self.rebuilds.policy.build((self.record,)))
                return ""
            with own.begin() as memory:
                reply = own.add(memory, self.record)
            close_memory(memory)
        except (*OWN_ERRORS, RoutePrismError) as error:
            text = f"{type(error).__name__}: {error}" if own is not None else str(error)
            return Redactor.configured().redact_line(text)
        return _read_reply(reply)

    # --- a record that went ----------------------------------------------------------------------

    def _find_moment(self, arrivals: tuple[Record, ...]) -> int | None:
        """Find the arrival with which the record went; None if it was never there."""
        id = self.record.id
        watch = self.rebuilds.watch(arrivals, self.procedure)
        if watch is not None and id not in watch.retained[-1]:
            present = [at for at, retained in enumerate(watch.retained) if id in retained]
            return present[-1] + 1 if present else None
        absent = len(arrivals) - 1
        own = [at for at, record in enumerate(arrivals) if record.id == id]
        for low in reversed(own):
            if self._keeps(arrivals[: low + 1]):
                break
            absent = low
        else:
            return None
        while absent - low > 1:
            middle = (low + absent) // 2
            if self._keeps(arrivals[: middle + 1]):
                low = middle
            else:
                absent = middle
        return absent

    def _explain_removal(self, moment: int) -> Loss:
        """Exchange the arrival with which the record went for placebos."""
        name, by = f"'{self.record.id}'", self.arrivals[moment]
        if by.id == self.record.id:
            return self._conclude("duplicate", (), f"{name} goes when it is delivered again")
        beginning = self.arrivals[: moment + 1]
        number = self._find_placebo(beginning, [by.id])
        two = tuple(r for r in beginning if r.id in (self.record.id, by.id))
        stays = self._keeps(two)
        if number is None:
            return self._explain_any_arrival(beginning, stays=stays)
        if stays:
            displaced = [
                not self._keeps(self._exchange(beginning, [by.id], number))
                for number in range(PLACEBOS)
            ]
            if 2 * sum(displaced) > PLACEBOS:
                return self._conclude_full(by.id, stays=stays)
            partner = self._find_partner(beginning, by)
            if partner is not None:
                ids = [partner.id, by.id]
                return self._conclude("joint", ids, f"{_join(ids)} alone remove {name}")
        return self._confirm_removal(by.id, number, stays=stays)

    def _explain_any_arrival(self, beginning: tuple[Record, ...], *, stays: bool) -> Loss:
        """Explain why unrelated records in place of the last arrival remove the record as well."""
        name, by = f"'{self.record.id}'", beginning[-1].id
        if isinstance(self.rebuilds.policy, REPAIRS):
            culprit = self._find_culprit(beginning)  # held back, and released by this arrival
            if culprit:
                back = f"exchanging {_join(culprit)} brings {name} back"
                kind: CauseKind = "joint" if len(culprit) > 1 else self._name_kind(culprit[0])
                return self._conclude(kind, culprit, back)
        if self._replaces_content(beginning):
            removed, before = self._count_removed(beginning)
            test = (
                f"{removed} of {before} records go at once, and so they do with a short record in "
            )
            return self._conclude("replaced", (by,), f"{test}place of '{by}'")
        if stays or not self._has_room():
            return self._conclude_full(by, stays=stays)
        test = f"'{by}' removes {name} even if the memory is given no other record"
        return self._conclude(self._name_kind(by), (by,), test)

    def _conclude_full(self, by: str, *, stays: bool) -> Loss:
        test = f"an unrelated record in place of '{by}' pushes '{self.record.id}' out as well"
        return self._conclude("full", (by,), test, is_when_full=stays)

    def _confirm_removal(self, by: str, number: int, *, stays: bool) -> Loss:
        """Exchange the arrival in the whole order, and what displaces the record after it."""
        name, chain = f"'{self.record.id}'", [by]
        arrivals = self._exchange(self.arrivals, chain, number)
        while not self._keeps(arrivals) and len(chain) < _LONGEST_CHAIN:
            moment = self._find_moment(arrivals)
            if moment is None or arrivals[moment].id not in self.rebuilds.case.pool.ids:
                break
            chain.append(arrivals[moment].id)
            arrivals = self._exchange(self.arrivals, chain, number)
        if not self._keeps(arrivals):
            chain = [by]
        elif len(chain) > 1 and not stays and not all(map(self._displaces_alone, chain)):
            test = f"exchanging {_join(chain)} together brings {name} back"
            return self._conclude("joint", chain, test)
        is_back = len(chain) > 1 or self._keeps(arrivals)
        test = f"exchanging {_join(chain)} brings {name} back"
        if not is_back:
            test = f"exchanging '{by}' keeps {name} until later records arrive"
        kind: CauseKind = "overwritten" if stays else self._name_kind(by)
        return self._conclude(kind, chain, test, is_when_full=stays)

    def _count_removed(self, beginning: tuple[Record, ...]) -> tuple[int, int]:
        """Count the records that the last arrival removes, and how many there were before it."""
        before = self._build(beginning[:-1]).retained
        return len(before - self._build(beginning).retained), len(before)

    def _replaces_content(self, beginning: tuple[Record, ...]) -> bool:
        """Whether an arrival of any length removes most records, such as by replacing an index."""
        short = self._exchange(beginning, [beginning[-1].id], 0, short=True)
        counts = [self._count_removed(arrivals) for arrivals in (beginning, short)]
        return all(removed > 1 and 2 * removed >= before for removed, before in counts)

    def _find_partner(self, beginning: tuple[Record, ...], by: Record) -> Record | None:
        """Find the one record with which an arrival displaces the record, if it needs one."""
        for partner in beginning[:_MOST_BUILDS]:
            three = {self.record.id, by.id, partner.id}
            alone = tuple(record for record in beginning if record.id in three)
            if len(three) == 3 and not self._keeps(alone):
                is_content = self._find_placebo(alone, [partner.id]) is not None
                return partner if is_content else None
        return None

    def _name_kind(self, by: str) -> CauseKind:
        """Distinguish an overwrite from a merge, after which the displacer is not there alone."""
        contents = self._build(self.arrivals)
        if any(e.kind == "merge" and e.record == self.record.id for e in contents.events):
            return "merged"
        ids = [record.id for record in self.arrivals]
        two = tuple(r for r in self.arrivals if r.id in (self.record.id, by))
        if by not in self._build(two).retained:
            return "merged"
        is_later = ids.index(by) > ids.index(self.record.id)
        policy = self.rebuilds.policy
        if isinstance(policy, REPAIRS):  # it may release the two in event order
            inner = Rebuilds(self.rebuilds.case, policy.inner)
            ordered = sorted(two[:2], key=lambda record: record.id != self.record.id)
            is_later = self.record.id not in inner.build(ordered, ONE_BY_ONE).retained
            self.rebuilds.built += inner.built
        return "overwritten" if is_later else "duplicate"

    def _displaces_alone(self, by: str) -> bool:
        return not self._keeps(r for r in self.arrivals if r.id in (self.record.id, by))

    def _has_room(self) -> bool:
        """Whether the record stays beside at least one other record."""
        partners = [r for r in self.rebuilds.case.pool.records if r.id != self.record.id]
        return any(self._keeps((self.record, partner)) for partner in partners[:_MOST_PARTNERS])

    # --- a record that was never admitted --------------------------------------------------------

    @property
    def _earlier(self) -> tuple[Record, ...]:
        """What arrived before the record."""
        ids = [record.id for record in self.arrivals]
        return self.arrivals[: ids.index(self.record.id)]

    def _explain_refusal(self) -> Loss:
        """Find what has to arrive first so that the record is not admitted."""
        earlier = self._earlier
        low, high = 0, len(earlier)
        while high - low > 1:
            middle = (low + high) // 2
            if self._keeps((*earlier[:middle], self.record)):
                low = middle
            else:
                high = middle
        blocker, reply = earlier[high - 1], self._read_reply_in_order()
        if not self._keeps((blocker, self.record)):
            return self._explain_blocker(blocker, reply)
        if self._find_placebo((*earlier, self.record), [r.id for r in earlier]) is None:
            return self._explain_no_room(earlier, reply)
        together = self._reduce(earlier[:high])
        if len(together) <= _LONGEST_CHAIN:
            ids = [record.id for record in together]
            test = f"given only {_join(ids)} before '{self.record.id}', it is not kept"
            return self._conclude("joint", ids, test, reply=reply)
        return self._conclude("full", (), self._describe_no_room(), reply=reply)

    def _explain_blocker(self, blocker: Record, reply: str) -> Loss:
        """Distinguish a duplicate, or a place that is taken, from a record that is too late."""
        name, by, two = f"'{self.record.id}'", blocker.id, (blocker, self.record)
        number = self._find_placebo(two, [by])
        if number is None:
            late = self._explain_late((blocker,), reply)
            if (
                late is not None
                and self._compare(by) != "older"
                and self._is_refused_after_newer(blocker)
            ):
                return late
            if not self._has_room():
                return self._conclude("full", (), self._describe_no_room(), reply=reply)
            test = f"given only '{by}' before {name}, the memory does not keep it"
        else:
            exchanged = self._exchange(self.arrivals, [by], number)
            test = f"exchanging '{by}' brings {name} back"
            if not self._keeps(exchanged):
                test = f"given only '{by}' before {name}, the memory does not keep it, but it keeps"
                test += " it after an unrelated record"
        if self._name_kind(by) == "merged":
            return self._conclude("merged", (by,), test, reply=reply)
        is_first_kept = by not in self._build((self.record, blocker)).retained
        return self._conclude("duplicate", (by,), test, reply=reply, source_loses=is_first_kept)

    def _is_refused_after_newer(self, blocker: Record) -> bool:
        """Whether the record is refused after any unrelated newer record, as late ones are."""
        newest, make = sort_events(self.rebuilds.case.pool.records)[-1], self.rebuilds.placebos.make
        newer = [date_after(newest, make(blocker, at), days) for at, days in enumerate(_LATER)]
        return not any(self._keeps((placebo, self.record)) for placebo in newer)

    def _explain_no_room(self, earlier: tuple[Record, ...], reply: str) -> Loss:
        late = self._explain_late(earlier, reply)
        return late or self._conclude("full", (), self._describe_no_room(), reply=reply)

    def _explain_late(self, earlier: tuple[Record, ...], reply: str) -> Loss | None:
        """Exchange all that came before for older placebos; None if that does not help."""
        if self.reference is None:
            return None
        order, procedure = self.reference
        source = self.rebuilds.build(self._arrange(order), procedure)
        if self.record.id not in source.retained:
            return None
        for number in range(PLACEBOS):
            placebos = self._exchange(earlier, [r.id for r in earlier], number)
            record, dated = date_before(self.record, placebos)
            if self._keeps((*dated, record)):
                # All that had arrived before the first newer record is older.
                newer = [r for r in earlier if self._compare(r.id) != "older"]
                first = newer[0] if newer else earlier[-1]
                test = f"after older records alone, the memory keeps '{record.id}'"
                return self._conclude("late", (first.id,), test, reply=reply)
        return None

    def _describe_no_room(self) -> str:
        return f"with unrelated records in place of all others, '{self.record.id}' is not kept"

    def _read_reply_in_order(self) -> str:
        """Return what `add` returned for the record in the losing order."""
        watch = self.rebuilds.watch(self.arrivals, self.procedure)
        return "" if watch is None else watch.replies[len(self._earlier)]

    def _reduce(self, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Leave out records as long as those that are left keep the record out."""
        for left_out in records[: _MOST_BUILDS + 1]:
            fewer = tuple(record for record in records if record is not left_out)
            if not self._keeps((*fewer, self.record)):
                records = fewer
        return records

    def _find_culprit(self, arrivals: tuple[Record, ...]) -> tuple[str, ...]:
        """Find the fewest other records whose exchange brings the record back; none if all fail."""
        ids = list(dict.fromkeys(r.id for r in arrivals if r.id != self.record.id))
        number = self._find_placebo(arrivals, ids)
        if number is None:
            return ()

        def suffices(part: Sequence[str]) -> bool:
            return self._keeps(self._exchange(arrivals, part, number))

        # Delta debugging: halves first, then smaller parts and what is left without them.
        size = 2
        for _ in range(_MOST_BUILDS):
            step = -(-len(ids) // size)
            parts = [ids[at : at + step] for at in range(0, len(ids), step)]
            parts += [[id for id in ids if id not in part] for part in parts]
            smaller = [part for part in parts if 0 < len(part) < len(ids)]
            reduced = next(filter(suffices, smaller), None)
            if reduced is None and size >= len(ids):
                break
            ids, size = (ids, 2 * size) if reduced is None else (reduced, 2)
        return tuple(ids) if len(ids) <= _LONGEST_CHAIN else ()

    # --- a record that is kept but not shown -----------------------------------------------------

    def _explain_hidden(self) -> Loss:
        """Exchange what is shown in place of the record."""
        name, visible = f"'{self.record.id}'", self._list_shown(self.arrivals)
        before = None
        if self.reference is not None:
            order, procedure = self.reference
            before = self.rebuilds.build(self._arrange(order), procedure, self.query)
        usual = before.list_shown(self.query) if before is not None else []
        by = [id for id in visible if id not in usual]
        if by and (exchanged := self._find_shown_instead(by, usual)):
            back = f"exchanging {_join(exchanged)} brings {name} back"
            if self._is_deleted_by(by[0]):
                return self._conclude(self._name_kind(by[0]), exchanged, back)
            if before is not None and before.retained.issuperset(by):
                return self._conclude("tie", by, back)
            return self._conclude("ranking", by, back)
        for ids in filter(None, (by, visible)):
            if self._shows(self._exchange(self.arrivals, ids, 0, short=True)):
                test = f"with very short records in place of {_join(ids)}, {name} is shown"
                return self._conclude("budget", by, test)
        test = f"unrelated records in place of {_join(by or visible)} are shown as well"
        return self._conclude("ranking", by, test if visible else "nothing is shown")

    def _is_deleted_by(self, by: str) -> bool:
        """Whether a record is listed, but not shown even to its own text beside another one."""
        text, two = self.record.text, {self.record.id, by}
        alone = tuple(record for record in self.arrivals if record.id in two)
        return self.record.id not in self.rebuilds.build(alone, self.procedure, text).list_shown(
            text
        )

    def _find_shown_instead(self, by: Sequence[str], usual: Sequence[str]) -> list[str]:
        """Find the records that have to be exchanged so that the record is shown; none if all fail.

        Records that appear in place of those that are exchanged are exchanged as well.
        """
        for number in range(PLACEBOS):
            exchanged = list(by)
            for _ in range(_LONGEST_CHAIN):
                arrivals = self._exchange(self.arrivals, exchanged, number)
                visible = self._list_shown(arrivals)
                if self.record.id in visible:
                    return exchanged
                listed_ids = {*usual, *exchanged}
                more = [r.id for r in self.arrivals if r.id in visible and r.id not in listed_ids]
                exchanged += dict.fromkeys(more)
                if not more:
                    break
        return []


def _join(ids: Sequence[str]) -> str:
    names = [f"'{id}'" for id in ids[:_LONGEST_CHAIN]]
    if len(ids) > _LONGEST_CHAIN:
        return f"{', '.join(names)} and {len(ids) - _LONGEST_CHAIN} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def explain_loss(case: Case, policy: Policy, order: Order, record: str, query: str = "") -> Loss:
    """Test why an order of arrival loses a record that source order keeps, or shows a question."""
    question = next((q.id for q in case.questions if q.text == query), "") if query else ""
    loss = Loss("untested", policy.name, "", case.pool.user, question, record, order=order)
    rebuilds = Rebuilds(case, policy, (query,) if query else ())
    source = tuple(range(len(case.pool)))
    return find_cause(rebuilds, loss, query, reference=(source, ONE_BY_ONE))


def read_likely_cause(record: str, events: Sequence[Event]) -> str:
    """Read from the memory's own log what removed a record, as a clause; empty if it is silent."""
    removals = [event for event in events if event.record == record and event.kind != "add"]
    if not removals:
        return ""
    event = removals[-1]
    by = f" by '{event.by}'" if event.by and event.by != record else ""
    return f"likely: {_EVENTS[event.kind]}{by}"


_EVENTS: Mapping[str, str] = {
    "evict": "pushed out",
    "merge": "merged",
    "overwrite": "overwritten",
    "skip": "discarded",
}
