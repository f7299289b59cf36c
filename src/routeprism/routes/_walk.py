"""A walk with a memory: many records, one by one, with a look at it after each step.

After every step the list of what the memory retains is compared with the list before, and with
what the text of the new record brings. Records are easy to tell apart (`_specimens`), so that a
loss, a wrong source or a confused id shows. A loss is explained by what the memory reports (an
event, a reply, an exception), or by its size: it may be full if it never held more than the record
would have made it hold. Any other loss is a fault. What did not occur is not observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from routeprism.errors import InapplicableError
from routeprism.policies import Exposure
from routeprism.printing import pluralise
from routeprism.routes._candidate import Candidate, describe_record, quote, resemble_id
from routeprism.routes._specimens import Specimen, Specimens, make_walk

MOST_RECORDS = 64
"""How many records a walk adds until something is evicted."""
MOST_RECORDS_OUTSIDE = 28
"""The same for a system outside this process, or one that costs."""
FEWEST_RECORDS = 24
"""How many records every walk adds: copies, updates and confusing ids are among the first."""
_STRIDE = 4
"""The number of records between two looks at a memory that takes time to settle."""
_MOST_QUERIES = 10
"""How many listed, and as many unlisted, records a thorough look searches for."""
_THOROUGH = 12
"""The number of records between two thorough looks."""
_RANKED, _NEARLY_ALL = 6, 0.9
"""From how many records, and from which share of them that come first for their own texts, it is
clear that a search ranks by text."""
_MARGIN = 1.1
"""By how much a memory must have held more characters at another time, to count as not full."""


@dataclass(frozen=True, slots=True)
class Observation:
    """What a walk shows about one property."""

    name: str
    problem: str = ""
    """What is wrong; empty if nothing is."""
    fix: str = ""
    """The name of the advice."""
    unobserved: str = ""
    """What could not be observed; empty if there was something to observe."""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that an adapter may offer, and that must not change what the memory lists.

    To try another one, such as deleting or replacing a record, add it to `OPERATIONS`.
    """

    name: str
    methods: tuple[str, ...]
    """The methods that it needs."""
    perform: Callable[[Walk], None]


@dataclass(slots=True)
class _Look:
    """What was seen after a step."""

    listed: Counter[str]
    before: frozenset[str]
    """What was listed before it."""
    new: tuple[Specimen, ...]
    size: int
    """The characters of the listed records."""
    verdict: str
    """Where a loss is reported."""


@dataclass(slots=True)
class Walk:
    """The state of a walk, and the faults that it found."""

    candidate: Candidate
    material: Specimens
    specimens: dict[str, Specimen] = field(default_factory=dict)
    looks: list[_Look] = field(default_factory=list)
    problems: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Verdict → what is wrong, and the name of the advice."""
    missing: dict[str, _Look] = field(default_factory=dict)
    """Record that was not listed when it was added, without a reason → the look."""
    vanished: dict[str, _Look] = field(default_factory=dict)
    """Record that was listed no longer, without a reason → the look."""
    explained: dict[str, str] = field(default_factory=dict)
    """Record that is not kept → what the memory says about it."""
    unshown: dict[str, int] = field(default_factory=dict)
    """Listed record that its own text did not bring → the number of items that it brought."""
    places: Counter[int] = field(default_factory=Counter)
    """Place of a record, added earlier, among the items that its own text brought → records."""
    unobserved: dict[str, str] = field(default_factory=dict)

    def blame(self, verdict: str, fix: str, problem: str) -> None:
        """Note a fault."""
        self.problems.setdefault(verdict, []).append((problem, fix))

    # --- looking -------------------------------------------------------------------------------

    def look(
        self, new: Sequence[Specimen], *, thorough: bool = False, verdict: str = "losses"
    ) -> None:
        """Compare the list with the one before, and with what texts bring."""
        candidate = self.candidate
        before = frozenset(self.looks[-1].listed) if self.looks else frozenset()
        ids = candidate.list_ids()
        self._check_ids(ids, "the list names")
        size = sum(len(self.specimens[id].record.text) for id in ids if id in self.specimens)
        look = _Look(ids, before, tuple(new), size, verdict)
        self.looks.append(look)
        events = candidate.events()
        arrived = {specimen.record.id for specimen in new}
        for id in sorted((before | arrived) - set(ids)):
            if reason := candidate.find_reason(id, events):
                self.explained.setdefault(id, reason)
            elif id in arrived:
                self.missing[id] = look
            else:
                self.vanished[id] = look
        for specimen in new[-1:] if not thorough else new:
            self._ask_for(specimen, look)
        if thorough:
            self._look_around(look)

    def _look_around(self, look: _Look) -> None:
        """Search for listed and for unlisted records, and read the list again."""
        for is_listed in (True, False):
            ids = [id for id in self.specimens if (id in look.listed) is is_listed]
            for id in _spread(ids, _MOST_QUERIES):
                self._ask_for(self.specimens[id], look)
                self._ask_beginning(self.specimens[id], look)
        after = self.candidate.list_ids()
        if after != look.listed:
            change = describe_change(look.listed, after)
            self.blame("list", "lag", f"it changes while nothing is added: {change}")
            look.listed = after

    def _ask_for(self, specimen: Specimen, look: _Look) -> None:
        """Ask with the text of a record, which should bring it if it is retained."""
        record = specimen.record
        exposure = self._ask(record.user_text, look)
        if record.id not in look.listed:
            return
        places = [at for at, block in enumerate(exposure.blocks) if record.id in block.sources]
        if not places:
            self.unshown[record.id] = len(exposure.blocks)
            return
        self.unshown.pop(record.id, None)
        # Some memories show the newest first, whatever is asked; copies have no place of their own.
        if specimen not in look.new and not self._list_relatives(record.id, look):
            self.places[places[0]] += 1

    def _ask_beginning(self, specimen: Specimen, look: _Look) -> None:
        """Ask with the beginning of a text: what names its other words comes from the memory."""
        for block in self._ask(specimen.query, look).blocks:
            words = block.text.casefold()
            for owner in self.specimens.values():
                if block.sources & {owner.record.id} or not owner.marks_text(words):
                    continue
                own_marks = {mark for id in block.sources for mark in self._find_marks(id)}
                if any(mark in words for mark in owner.marks - own_marks):
                    names = ", ".join(map(quote, sorted(block.sources)[:3])) or "nothing"
                    self.blame(
                        "sources",
                        "mixed sources",
                        f"a text with words of {describe_record(owner.record)} names {names} "
                        f"as its source",
                    )

    def _find_marks(self, id: str) -> frozenset[str]:
        return self.specimens[id].marks if id in self.specimens else frozenset()

    def _ask(self, query: str, look: _Look) -> Exposure:
        exposure = self.candidate.ask(query)
        self._check_ids(exposure.sources, "the search shows")
        for id in sorted(exposure.sources & set(self.specimens) - set(look.listed)):
            lists = pluralise(len(look.listed), "record")
            self.blame(
                "list",
                "list",
                f"the search for {quote(query)} shows "
                f"{describe_record(self.specimens[id].record)}, which the list of {lists} leaves "
                f"out",
            )
        return exposure

    def _check_ids(self, ids: Iterable[str], where: str) -> None:
        arrived = {record.id for record in self.candidate.arrivals}
        for id in sorted(set(ids) - arrived):
            last = [*self.specimens.values()][-1]
            update = f", which updates {quote(last.original)}," if last.kind == "update" else ""
            self.blame(
                "ids",
                "ids",
                f"{where} {quote(id, 100)}, which never arrived{resemble_id(id, arrived)}; "
                f"{quote(last.record.id, 100)}{update} was added last",
            )

    # --- operations ----------------------------------------------------------------------------

    def add(self, specimens: Sequence[Specimen], *, at_once: bool = False) -> None:
        """Add records."""
        self.specimens |= {specimen.record.id: specimen for specimen in specimens}
        self.candidate.add([specimen.record for specimen in specimens], at_once=at_once)

    def operate(self, operation: Operation) -> None:
        """Perform an operation if the adapter offers it, and look at what it changed."""
        if not self.candidate.offers(*operation.methods):
            methods = " and ".join(f"{name}()" for name in operation.methods)
            self.unobserved[operation.name] = f"the adapter has no {methods}"
            return
        try:
            operation.perform(self)
        except InapplicableError as error:
            self.unobserved[operation.name] = str(error)

    # --- conclusions ---------------------------------------------------------------------------

    def is_full(self, look: _Look) -> bool:
        """Whether size may explain what a step dropped: it never held as much at another time."""
        ids = {*look.before, *(specimen.record.id for specimen in look.new)}
        records = [self.specimens[id].record for id in ids if id in self.specimens]
        number, size = len(records), sum(len(record.text) for record in records)
        return not any(
            len(later.listed) >= number and later.size >= _MARGIN * size
            for later in self.looks
            if later is not look
        )

    @property
    def is_over(self) -> bool:
        """Whether enough was added, and something was dropped."""
        return len(self.specimens) >= FEWEST_RECORDS and self.has_evicted

    @property
    def has_evicted(self) -> bool:
        """Whether some record was dropped that was listed before."""
        return any(look.before - set(look.listed) for look in self.looks)

    def conclude(self) -> Iterator[Observation]:
        """Yield what was observed of each property."""
        self._judge_losses()
        yield self._verdict("ids", note="every id that was named had arrived")
        yield self._verdict("list", note="everything shown was listed, at every step")
        yield self._judge_search()
        yield self._verdict("losses", note=self._describe_kept())
        yield self._verdict("copies", note="copies and updates were kept or accounted for")
        yield self._verdict("sources", note="every text named the record whose words it has")
        for operation in OPERATIONS:
            yield self._verdict(operation.name, note="what was listed before was listed after it")
        added = pluralise(len(self.specimens), "record")
        if self.has_evicted:
            dropped = {id for look in self.looks for id in look.before - set(look.listed)}
            note = f"{len(dropped)} of {added} were dropped by later ones"
            yield self._verdict("eviction", note=note)
        else:
            yield Observation(
                "eviction", unobserved=f"nothing that was listed was dropped by {added}"
            )

    def _verdict(self, name: str, note: str = "") -> Observation:
        if problems := self.problems.get(name, []):
            # A list that lags also lacks what is shown: the reason comes first.
            problem, fix = next((pair for pair in problems if pair[1] == "lag"), problems[0])
            more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
            return Observation(name, problem + more, fix)
        return Observation(name, unobserved=self.unobserved.get(name, ""), note=note)

    def _judge_search(self) -> Observation:
        """Judge whether listed records are shown for their own text, as far as that is decided.

        Where others come first for their own texts, or a text brings nothing, no limit explains
        why a record is missing. Elsewhere the search may prefer other records.
        """
        first, total = self.places[0], self.places.total()
        by_rank = total >= _RANKED and first >= _NEARLY_ALL * total
        undecided = []
        for id, brought in self.unshown.items():
            specimen = self.specimens[id]
            problem = f"the list has {describe_record(specimen.record)}, but its own text"
            if not brought and total:
                self.blame("search", "search", f"{problem} brings nothing")
            elif by_rank and specimen.kind == "new":
                rest = f"although {first} of {total} records come first for theirs"
                self.blame("search", "search", f"{problem} does not bring it, {rest}")
            else:
                undecided.append(describe_record(specimen.record))
        if undecided:
            verb = "was not shown for its" if len(undecided) == 1 else "were not shown for their"
            self.unobserved["search"] = (
                f"{pluralise(len(undecided), 'listed record')} {verb} own text, perhaps because "
                f"others were preferred; the first is {undecided[0]}"
            )
        return self._verdict("search", note="listed records were shown for their own text")

    def _judge_losses(self) -> None:
        late = [id for id, look in self.missing.items() if self._is_listed_after(id, look)]
        if not self.candidate.is_steady:
            self.unobserved["losses"] = "builds differ by chance, so nothing shows what was lost"
            return
        for id, look in (*self.missing.items(), *self.vanished.items()):
            specimen = self.specimens.get(id)
            if specimen is None or self.is_full(look):
                continue
            if id in late:
                self._blame_lag(specimen, late)
            elif relatives := self._list_relatives(id, look):
                self._judge_copy(specimen, relatives, look)
            else:
                self._blame_loss(specimen, look)

    def _blame_lag(self, specimen: Specimen, late: Sequence[str]) -> None:
        self.blame(
            "list",
            "lag",
            f"it lags: {describe_record(specimen.record)} was missing after it was added and "
            f"was listed after a later record, like {len(late)} of "
            f"{pluralise(len(self.specimens), 'record')}",
        )

    def _blame_loss(self, specimen: Specimen, look: _Look) -> None:
        text = describe_record(specimen.record)
        if specimen in look.new:
            text = f"{text} was added, and is neither listed nor accounted for"
        else:
            by = quote(look.new[-1].record.id, 100) if look.new else "nothing"
            likeness = resemble_id(specimen.record.id, {new.record.id for new in look.new})
            text = f"{text} vanished when {by} was added{likeness}"
        self.blame(
            look.verdict,
            "losses",
            f"{text}; the memory kept more at another time, so it was not full, and it gives no "
            f"reason",
        )

    def _judge_copy(self, lost: Specimen, relatives: Sequence[Specimen], look: _Look) -> None:
        """Judge a lost record, while its copy, its original or its update is listed."""
        kinds = {lost.kind, relatives[0].kind}
        pair = f"{describe_record(lost.record)} and {quote(relatives[0].record.id, 100)}"
        if "copy" in kinds:
            self.blame(
                "copies",
                "copies",
                f"{pair} have the same text, but only the second is listed, and nothing accounts "
                f"for the first",
            )
        else:
            self.unobserved["copies"] = (
                f"{pair} are alike, but only the second is listed: the memory does not report "
                f"whether it replaced the first"
            )

    def _list_relatives(self, id: str, look: _Look) -> list[Specimen]:
        """List the listed copies, updates or originals of a record."""
        marks = self.specimens[id].marks
        return [
            specimen
            for name, specimen in self.specimens.items()
            if name != id and name in look.listed and specimen.marks & marks
        ]

    def _is_listed_after(self, id: str, look: _Look) -> bool:
        return any(id in later.listed for later in self.looks[self.looks.index(look) + 1 :])

    def _describe_kept(self) -> str:
        """Describe how many records were listed when they were added, and what others lack."""
        number = sum(new.record.id in look.listed for look in self.looks for new in look.new)
        text = f"{number} of {pluralise(len(self.specimens), 'record')} were listed once they were "
        if not self.explained:
            return f"{text}added"
        id, reason = next(iter(self.explained.items()))
        more = f", and {len(self.explained) - 1} more" if len(self.explained) > 1 else ""
        return f"{text}added; dropped, with a reason: {quote(id, 100)} ({reason}){more}"


def _add_many(walk: Walk) -> None:
    new = [walk.material.make() for _ in range(3)]
    walk.add(new, at_once=True)
    walk.look(new, verdict="add_many")


def _renew(kind: str, name: str) -> Callable[[Walk], None]:
    def perform(walk: Walk) -> None:
        before = walk.candidate.list_ids()
        walk.candidate.renew(kind)
        after = walk.candidate.list_ids()
        if before != after:
            change = describe_change(before, after)
            walk.blame(name, "renewal", f"the list is different after it: {change}")
            walk.looks[-1].listed = after

    return perform


OPERATIONS: tuple[Operation, ...] = (
    Operation("add_many", ("add_many",), _add_many),
    Operation("snapshot", ("snapshot", "revive"), _renew("reload", "snapshot")),
    Operation("reopen", ("reopen",), _renew("restart", "reopen")),
)
"""What a walk tries beside adding records one by one."""


def describe_change(before: Counter[str], after: Counter[str]) -> str:
    """Describe the difference between two lists."""
    lost, added = sorted((before - after).elements()), sorted((after - before).elements())
    parts = [f"it lacks {quote(lost[0], 100)}"] if lost else []
    if added:
        times = " again" if before[added[0]] else ""
        parts.append(f"it has {quote(added[0], 100)}{times}")
    return " and ".join(parts)


def _spread(items: Sequence[str], number: int) -> Sequence[str]:
    """Choose evenly spaced items, the last one among them."""
    step = max(1, -(-len(items) // number))
    return items[::-1][::step]


def walk_memory(candidate: Candidate, seed: int, *, is_costly: bool) -> Walk:
    """Walk with a memory until something is evicted, or up to a stated number of records."""
    walk = Walk(candidate, Specimens("ann", seed))
    most = MOST_RECORDS_OUTSIDE if is_costly else MOST_RECORDS
    material = make_walk(walk.material)
    while len(walk.specimens) < most and not walk.is_over:
        stride = _STRIDE if candidate.takes_time else 1
        new = list(islice(material, stride))
        walk.add(new)
        number = len(walk.specimens)
        if candidate.is_real:
            walk.look(new, thorough=number % _THOROUGH < stride)
        if _THOROUGH <= number < _THOROUGH + stride:
            for operation in OPERATIONS if candidate.is_real else OPERATIONS[:0]:
                walk.operate(operation)
    if candidate.is_real:
        walk.look((), thorough=True)
    return walk
