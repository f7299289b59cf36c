"""Interfaces: what of a retained set of whole records reaches the prompt.

Policies that keep whole records share these; none writes its own retrieval, budget or display.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Any, Literal, Protocol, get_args

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.policies._contracts import SEPARATOR, Block, Event, Exposure, JsonValue
from routeprism.records import Record
from routeprism.text.bm25 import Ranker, TermStatistics, idf_overlap, order_by_score
from routeprism.text.focal import (
    focal_words,
    record_focal_counts,
    record_word_counts,
    words,
)

__all__ = [
    "INTERFACES",
    "TEXTS",
    "All",
    "Bm25Top",
    "Budget",
    "Display",
    "Interface",
    "Text",
    "WholeRecords",
    "parse_interface",
    "record_block",
    "whole_records",
]
Display = Literal["source", "arrival"]
"""In which order admitted records are shown."""
Text = Literal["user", "full"]
"""What is shown of a record: its user turns, or the complete record with the turns of all roles."""
TEXTS: tuple[Text, ...] = get_args(Text)
Expose = Callable[[str], Exposure]


class Interface(Protocol):
    """Decides, for a retained set, what a question's text brings to the prompt."""

    @property
    def name(self) -> str:
        """The spec in every output."""

    @property
    def display(self) -> Display:
        """Whether what is shown depends on arrival order."""

    def open(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Expose:
        """Prepare exposing `retained` (in arrival order), which is part of all `arrivals`."""

    def too_long(self, record: Record) -> bool:
        """Whether this record, alone, could never be exposed."""


def record_block(record: Record, text: Text = "user") -> Block:
    """Show a whole record: a header with its source position, then its user turns or all turns."""
    return record.derive(_user_block if text == "user" else _full_block)


def _user_block(record: Record) -> Block:
    # With one-digit positions the header has the 12 characters of the published lengths.
    return Block(
        "record", f"[session {record.position}]\n{record.user_text}", frozenset((record.id,))
    )


def _full_block(record: Record) -> Block:
    return Block(
        "record", f"[session {record.position}]\n{record.text.strip()}", frozenset((record.id,))
    )


def _position(record: Record) -> int:
    return record.position


def _drop_copies(records: Sequence[Record]) -> Sequence[Record]:
    """Drop redelivered copies; the last arrival of a record stands for it."""
    distinct = {record.id: record for record in reversed(records)}
    return records if len(distinct) == len(records) else tuple(reversed(distinct.values()))


def _identify_shown(records: Sequence[Record], display: Display) -> Hashable:
    """Name the records that could be shown, in their order if that depends on their arrival."""
    places = map(id, _drop_copies(records))
    return frozenset(places) if display == "source" else tuple(places)


def _show_records(records: Sequence[Record], display: Display, text: Text) -> Exposure:
    ordered = sorted(records, key=_position) if display == "source" else records
    return Exposure(tuple(record_block(record, text) for record in ordered))


@dataclass(frozen=True, slots=True)
class All:
    """Every retained record."""

    display: Display = "source"
    """In which order they are shown."""
    text: Text = "user"
    """Whether a record is shown with its user turns or complete."""

    @property
    def name(self) -> str:
        """The spec in every output."""
        return specs.write_spec("all", self)

    def key(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Hashable:
        """Name what `open` gives, for as long as these records live."""
        return _identify_shown(retained, self.display)

    def open(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Expose:
        """Show everything, whatever is asked."""
        exposure = _show_records(_drop_copies(retained), self.display, self.text)
        return lambda query: exposure

    def too_long(self, record: Record) -> bool:
        """There is no limit."""
        return False


@dataclass(frozen=True, slots=True)
class Budget:
    """The best `k` of the retained records by BM25, admitted whole while they fit."""

    chars: int = 32768
    """The largest number of characters in the context, with headers and separators."""
    k: int = 10
    """How many candidates retrieval gives."""
    admit: Literal["rank", "source"] = "rank"
    """In which order candidates are admitted, until the first that does not fit."""
    rank: Literal["bm25", "idf-overlap"] = "bm25"
    """The retriever; `idf-overlap` is the paper's identity check."""
    display: Display = "source"
    """In which order admitted records are shown."""
    text: Text = "user"
    """Whether a record is shown with its user turns or complete."""

    def __post_init__(self) -> None:
        specs.positive(self.name, chars=self.chars, k=self.k)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return specs.write_spec("budget", self)

    def unseen(self, record: Record) -> bool:
        """Whether no question's word can find the record."""
        return not record_word_counts(record)

    def too_long(self, record: Record) -> bool:
        """Whether the record alone passes the cap."""
        return len(record_block(record, self.text).text) > self.chars

    def key(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Hashable:
        """Name what `open` gives, for as long as these records live."""
        return _identify_shown(retained, self.display)

    def open(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Expose:
        """Prepare ranking under the statistics of the retained records."""
        records = _drop_copies(retained)
        blocks = [record_block(record, self.text) for record in records]
        ties = [record.position for record in records]
        lengths = [len(block.text) for block in blocks]
        display = list(range(len(records)))
        if self.display == "source":
            display.sort(key=ties.__getitem__)

        def show(admitted: set[int]) -> Exposure:
            return Exposure(tuple(blocks[index] for index in display if index in admitted))

        if len(records) <= self.k and _join_lengths(lengths) <= self.chars:
            everything = show(set(range(len(records))))
            return lambda query: everything  # whatever the ranking, all of it fits

        score = _scorer(self.rank, [record.derive(_word_document) for record in records])

        def expose(query: str) -> Exposure:
            candidates = order_by_score(score(words(query)), ties)[: self.k]
            if self.admit == "source":
                candidates.sort(key=ties.__getitem__)
            admitted: set[int] = set()
            used = -len(SEPARATOR)
            for index in candidates:
                used += len(SEPARATOR) + lengths[index]
                if used > self.chars:
                    break
                admitted.add(index)
            return show(admitted)

        return expose


def _join_lengths(lengths: Sequence[int]) -> int:
    return sum(lengths) + len(SEPARATOR) * max(0, len(lengths) - 1)


Document = tuple[Mapping[str, int], int]
"""What BM25 reads of a record: the counts of its tokens, and their number."""


def _scorer(rank: str, documents: Sequence[Document]) -> Callable[[Sequence[str]], list[float]]:
    counts, lengths = zip(*documents, strict=True)
    if rank == "idf-overlap":
        statistics = TermStatistics.when_asked(counts, lengths)
        return lambda terms: idf_overlap(terms, counts, statistics)
    return Ranker(counts, lengths)


def _word_document(record: Record) -> Document:
    counts = record_word_counts(record)
    return counts, sum(counts.values())


def _focal_document(record: Record) -> Document:
    counts = record_focal_counts(record)
    return counts, sum(counts.values())


class _PoolScores:
    """Scores every record of a pool under the pool's own statistics, each question once.

    They do not depend on what is retained, nor on the order of arrival: all routes share them.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = documents
        self._rank = _scorer("bm25", documents)
        self._known: dict[str, list[float]] = {}

    def __call__(self, query: str) -> list[float]:
        """Return the scores in source order."""
        scores = self._known.get(query)
        if scores is None:
            scores = self._known[query] = self._rank(focal_words(query))
        return scores


def _pool_scores(pool: Sequence[Record]) -> _PoolScores:
    """Return the scores of a pool in source order; its first record keeps them."""
    # A record must not keep the records of its pool: they would be freed by the collector alone.
    documents = [record.derive(_focal_document) for record in pool]
    scores_by_query = pool[0].derive(_kept_scores)
    for scores in scores_by_query:
        if len(scores.documents) == len(documents) and all(map(is_, scores.documents, documents)):
            return scores
    scores_by_query.append(_PoolScores(documents))
    return scores_by_query[-1]


def _kept_scores(record: Record) -> list[_PoolScores]:
    """Cache the scores of pools that begin with a record, for as long as it lives."""
    return []


@dataclass(frozen=True, slots=True)
class Bm25Top:
    """The best `k` by BM25 on focal tokens, statistics fixed from the full pool (Appendix O.2).

    User turns decide the ranking; the chosen records are shown complete.
    """

    k: int = 3
    """How many records are shown."""
    display: Display = "source"
    """In which order they are shown."""
    text: Text = "full"
    """Whether a record is shown with its user turns or complete."""

    def __post_init__(self) -> None:
        specs.positive(self.name, k=self.k)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return specs.write_spec("bm25", self)

    def unseen(self, record: Record) -> bool:
        """Whether no question's word can find the record."""
        return not record_focal_counts(record)

    def too_long(self, record: Record) -> bool:
        """There is no limit."""
        return False

    def key(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Hashable:
        """Name what `open` gives, for as long as these records live."""
        return _identify_shown(retained, self.display), frozenset(map(id, _drop_copies(arrivals)))

    def open(self, arrivals: Sequence[Record], retained: Sequence[Record]) -> Expose:
        """Prepare ranking under the statistics of everything that arrived."""
        records = _drop_copies(retained)
        if len(records) <= self.k:
            everything = _show_records(records, self.display, self.text)
            return lambda query: everything
        pool = sorted(_drop_copies(arrivals), key=_position)
        scores = _pool_scores(pool)
        at = {record.id: index for index, record in enumerate(pool)}
        places = [at[record.id] for record in records]
        ties = [record.position for record in records]

        def expose(query: str) -> Exposure:
            every = scores(query)
            best = order_by_score([every[place] for place in places], ties)
            positions = sorted(best[: self.k])
            return _show_records([records[index] for index in positions], self.display, self.text)

        return expose

    def ranked(self, pool: Sequence[Record], query: str) -> list[Record]:
        """Order a whole pool as it would be chosen from, best first."""
        ordered = sorted(pool, key=_position)
        scores = _pool_scores(ordered)(query)
        return [ordered[index] for index in order_by_score(scores, range(len(ordered)))]


INTERFACES: Mapping[str, type[All] | type[Budget] | type[Bm25Top]] = {
    "all": All,
    "budget": Budget,
    "bm25": Bm25Top,
}


def parse_interface(text: str) -> Interface:
    """Make the interface of a spec."""
    spec = specs.parse(text)
    factory: Any = INTERFACES.get(spec.name) or specs.find_extension("interfaces", spec)
    if factory is None:
        names = (*INTERFACES, *specs.registered("interfaces"))
        raise SpecError(f"There is no interface '{spec.name}'. {nearest(spec.name, names)}")
    item = specs.construct(factory, spec) if callable(factory) else factory
    missing = [name for name in _INTERFACE_PARTS if not hasattr(item, name)]
    if missing:
        raise SpecError(f"'{spec.name}' is not an interface: it has no '{missing[0]}'")
    interface: Interface = item
    return interface


_INTERFACE_PARTS = ("name", "display", "open", "too_long")


@dataclass(frozen=True, slots=True)
class WholeRecords:
    """Records kept whole, exposed through an interface."""

    records: tuple[Record, ...]
    """What is retained, in arrival order."""
    internal: JsonValue
    """What the signature is taken from."""
    interface: Interface
    """What of the records reaches the prompt."""
    arrivals: Sequence[Record]
    """Everything that arrived."""
    log: Callable[[], Sequence[Event]]
    """Makes the event log when it is asked for."""
    places: Mapping[str, str]
    """Dropped record → the retained record that replaced it, if the policy knows it."""
    _readers: list[Expose] = field(default_factory=list, init=False, repr=False, compare=False)
    """The interface, when it was opened on what is kept."""

    def retained(self) -> frozenset[str]:
        """Return the ids of the kept records."""
        return frozenset(record.id for record in self.records)

    def state(self) -> JsonValue:
        """Return what the policy declares as its internal state."""
        return self.internal

    def expose(self, query: str, /) -> Exposure:
        """Ask the interface."""
        if not self._readers:
            self._readers.append(self.interface.open(self.arrivals, self.records))
        return self._readers[0](query)

    def exposure_key(self) -> Hashable | None:
        """Name what every question is shown; None if the interface is not one of those above.

        As long as they live, memories with the same key expose the same.
        """
        if not isinstance(self.interface, All | Budget | Bm25Top):
            return None
        return self.interface, self.interface.key(self.arrivals, self.records)

    def stand_ins(self) -> Mapping[str, str]:
        """Return the kept record that took each dropped record's place."""
        return self.places

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        return self.log()


def whole_records(
    interface: Interface,
    arrivals: Sequence[Record],
    records: Sequence[Record],
    *,
    state: JsonValue = None,
    log: Callable[[], Sequence[Event]] = tuple,
    stand_ins: Mapping[str, str] | None = None,
) -> WholeRecords:
    """Make the memory; its state is, by default, the kept ids in arrival order."""
    internal = [record.id for record in records] if state is None else state
    return WholeRecords(tuple(records), internal, interface, arrivals, log, stand_ins or {})
