"""`focal`: clusters arrivals by token overlap, keeps one record of each cluster (Appendix D.3–4).

Its two order-dependent operations are switched separately: which records are grouped (`cluster`)
and which one of a group is kept (`survivor`). The published arms are parameters of one policy:

    focal                                            both operations follow arrival
    focal:cluster=source                             survivor-only
    focal:survivor=source-position                   clustering-only
    focal:cluster=source,survivor=source-position    canonical: permutation-invariant
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.policies._contracts import Event, Memory
from routeprism.policies.interfaces import Budget, Interface, WholeRecords, whole_records
from routeprism.records import Record
from routeprism.text.focal import (
    focal_set,
    has_focal_tokens,
    preference_score,
    similarities,
    similarity,
)

__all__ = ["Assignment", "Cluster", "Focal", "Ties", "assign", "cluster_records", "count_ties"]

_MANY = 16
"""From how many records on they are all compared at once."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Records that were found alike, in the order they were processed."""

    members: tuple[Record, ...]
    """The records in it."""
    representative: Record
    """The member that newcomers are compared with: the first with the highest preference score."""

    def joined_by(self, record: Record) -> Cluster:
        """Add a member; it represents the cluster only if it scores strictly higher."""
        better = preference_score(record) > preference_score(self.representative)
        return Cluster((*self.members, record), record if better else self.representative)


@dataclass(frozen=True, slots=True)
class Assignment:
    """The cluster that a newcomer joins."""

    index: int | None
    """The cluster it joins; None for a new one."""
    tied: bool
    """Whether another cluster had exactly the same, greatest overlap."""


def assign(clusters: Sequence[Cluster], record: Record, threshold: float) -> Assignment:
    """Find the cluster of greatest overlap, the earliest of equals, if it reaches the threshold."""
    index, best, tied = None, 0.0, False
    tokens, overlaps = focal_set(record), record.derive(_overlaps)
    for at, cluster in enumerate(clusters):
        representative = focal_set(cluster.representative)
        overlap = overlaps.get(representative)
        if overlap is None:
            overlap = overlaps[representative] = similarity(tokens, representative)
            cluster.representative.derive(_overlaps)[tokens] = overlap
        if overlap > best:
            index, best, tied = at, overlap, False
        elif overlap == best and overlap > 0:
            tied = True
    return Assignment(None if best < threshold else index, tied)


def _overlaps(record: Record) -> dict[frozenset[str], float]:
    """Cache the overlaps of a record for as long as it lives: orders share many pairs."""
    return {}


def cluster_records(records: Sequence[Record], threshold: float) -> tuple[Cluster, ...]:
    """Cluster records in the order given: as `assign` would, with precomputed comparisons."""
    members: list[list[Record]] = []
    representatives: list[Record] = []
    compared: list[frozenset[str]] = []
    for record in records:
        record_overlaps = record.derive(_overlaps)
        try:
            overlaps = [record_overlaps[tokens] for tokens in compared]
        except KeyError:
            _compare(records, record, representatives)
            overlaps = [record_overlaps[tokens] for tokens in compared]
        best = max(overlaps, default=0.0)
        if best == 0 or best < threshold:
            members.append([record])
            representatives.append(record)
            compared.append(focal_set(record))
            continue
        index = overlaps.index(best)
        members[index].append(record)
        if preference_score(record) > preference_score(representatives[index]):
            representatives[index], compared[index] = record, focal_set(record)
    return tuple(map(Cluster, map(tuple, members), representatives))


def _compare(records: Sequence[Record], record: Record, candidates: Sequence[Record]) -> None:
    """Compute the overlaps of a record with others, or of many records with each other."""
    if len(records) < _MANY:
        for candidate in candidates:
            overlap = similarity(focal_set(record), focal_set(candidate))
            record.derive(_overlaps)[focal_set(candidate)] = overlap
            candidate.derive(_overlaps)[focal_set(record)] = overlap
        return
    sets = [focal_set(member) for member in records]
    for member, overlaps in zip(records, similarities(sets), strict=True):
        member.derive(_overlaps).update(zip(sets, overlaps, strict=True))


def _place_record(
    clusters: tuple[Cluster, ...], record: Record, threshold: float
) -> tuple[Cluster, ...]:
    index = assign(clusters, record, threshold).index
    if index is None:
        return (*clusters, Cluster((record,), record))
    return (*clusters[:index], clusters[index].joined_by(record), *clusters[index + 1 :])


@dataclass(frozen=True, slots=True)
class _State:
    arrived: tuple[Record, ...] = ()
    clusters: tuple[Cluster, ...] = ()


def _position(record: Record) -> int:
    return record.position


@dataclass(frozen=True, slots=True)
class Focal:
    """The compactor of the paper, and every arm of its mechanism study."""

    threshold: float = 0.055
    """The overlap from which a record joins a cluster."""
    cluster: Literal["arrival", "source"] = "arrival"
    """In which order clusters are formed."""
    survivor: Literal["last-arrival", "first-arrival", "source-position"] = "last-arrival"
    """Which member of a cluster is kept."""
    interface: Interface = field(default_factory=Budget)
    """What of the survivors reaches the prompt."""

    def __post_init__(self) -> None:
        if not 0 <= self.threshold <= 1:
            raise SpecError(
                f"Expected a threshold from 0 to 1 but got threshold={self.threshold} in 'focal'"
            )

    @property
    def name(self) -> str:
        """The spec in every output."""
        return specs.write_spec("focal", self)

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations that still follow arrival order."""
        follow = {
            "clustering": self.cluster == "arrival",
            "survivor": self.survivor != "source-position",
        }
        return tuple(operation for operation, follows in follow.items() if follows)

    def fixed(self, operation: str, /) -> Focal:
        """Tie one operation to source order."""
        if operation == "clustering":
            return replace(self, cluster="source")
        if operation == "survivor":
            return replace(self, survivor="source-position")
        names = ("clustering", "survivor")
        raise SpecError(f"focal has no operation '{operation}'. {nearest(operation, names)}")

    def unseen(self, record: Record) -> bool:
        """Whether similarity cannot see the record, so that it can only be its own cluster."""
        return not has_focal_tokens(record)

    def ties(self, arrivals: Sequence[Record]) -> Mapping[str, int]:
        """Count how often processing order decides between equals (Appendix D.5)."""
        records = arrivals if self.cluster == "arrival" else sorted(arrivals, key=_position)
        met = count_ties(records, self.threshold)
        return {"representative_ties": met.representative, "assignment_ties": met.assignment}

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Cluster the arrivals and keep each cluster's survivor."""
        arrived = tuple(arrivals)
        if self.cluster == "source":
            return self.finish(_State(arrived))
        return self.finish(_State(arrived, cluster_records(arrived, self.threshold)))

    def start(self) -> _State:
        """Start without any arrival."""
        return _State()

    def step(self, state: _State, record: Record, /) -> _State:
        """Place the record; clustering in source order waits until all have arrived."""
        arrived = (*state.arrived, record)
        if self.cluster == "source":
            return _State(arrived)
        return _State(arrived, _place_record(state.clusters, record, self.threshold))

    def finish(self, state: _State, /) -> WholeRecords:
        """Keep the survivors, in arrival order."""
        clusters = self._clusters(state)
        at = {record.id: index for index, record in enumerate(state.arrived)}
        survivors = self._survivors(clusters, state.arrived)
        survivor_ids = {survivor.id for survivor in survivors}
        return whole_records(
            self.interface,
            state.arrived,
            sorted(survivors, key=lambda record: at[record.id]),
            state=[
                {
                    "members": [record.id for record in cluster.members],
                    "representative": cluster.representative.id,
                    "survivor": survivor.id,
                }
                for cluster, survivor in zip(clusters, survivors, strict=True)
            ],
            log=lambda: self._log(clusters, state.arrived),
            stand_ins={
                record.id: survivor.id
                for cluster, survivor in zip(clusters, survivors, strict=True)
                for record in cluster.members
                if record.id not in survivor_ids
            },
        )

    def key(self, state: _State, /) -> Hashable:
        """Name what later arrivals can still depend on."""
        if self.cluster == "source":
            # The partition of a larger set is not decided yet, so any order among them may matter.
            order = self.survivor != "source-position" or self.interface.display == "arrival"
            return tuple(record.id for record in state.arrived) if order else ()
        survivors = self._survivors(state.clusters, state.arrived)
        pairs = tuple(
            (cluster.representative.id, survivor.id)
            for cluster, survivor in zip(state.clusters, survivors, strict=True)
        )
        if self.interface.display == "source":
            return pairs
        at = {record.id: index for index, record in enumerate(state.arrived)}
        return pairs, tuple(r.id for r in sorted(survivors, key=lambda record: at[record.id]))

    def foreseeing(self, records: Sequence[Record], /) -> Focal | _Settled:
        """Decide the clusters, which follow from source order once all arrivals are known."""
        if self.cluster == "arrival" or self.survivor == "source-position":
            return self
        clusters = cluster_records(sorted(records, key=_position), self.threshold)
        home = {record.id: at for at, cluster in enumerate(clusters) for record in cluster.members}
        return _Settled(self, home)

    def _clusters(self, state: _State) -> tuple[Cluster, ...]:
        if self.cluster == "arrival":
            return state.clusters
        distinct = {record.id: record for record in state.arrived}
        return cluster_records(sorted(distinct.values(), key=_position), self.threshold)

    def _survivors(self, clusters: Sequence[Cluster], arrived: Sequence[Record]) -> list[Record]:
        """Choose one member of each cluster, by arrival or by source position."""
        if self.survivor == "source-position":
            return [max(cluster.members, key=_position) for cluster in clusters]
        last = self.survivor == "last-arrival"
        if self.cluster == "arrival":  # members are in order of arrival
            return [cluster.members[-1 if last else 0] for cluster in clusters]
        ordered = arrived if last else tuple(reversed(arrived))
        at = {record.id: index for index, record in enumerate(ordered)}
        return [max(cluster.members, key=lambda record: at[record.id]) for cluster in clusters]

    def _log(self, clusters: Sequence[Cluster], arrived: Sequence[Record]) -> Sequence[Event]:
        home = {record.id: index for index, c in enumerate(clusters) for record in c.members}
        survivors: dict[int, Record] = {}
        events: list[Event] = []
        for at, record in enumerate(arrived):
            before = survivors.get(home[record.id])
            if before is None:
                events.append(Event("add", record.id, record.id, at))
                survivors[home[record.id]] = record
                continue
            events.append(Event("merge", record.id, record.id, at))
            stays = (
                before.id == record.id
                or self.survivor == "first-arrival"
                or (self.survivor == "source-position" and before.position > record.position)
            )
            if stays:
                events.append(Event("skip", record.id, record.id, at))
            else:
                events.append(Event("overwrite", before.id, record.id, at))
                survivors[home[record.id]] = record
        return tuple(events)


@dataclass(frozen=True, slots=True)
class _Settled:
    """Clustering in source order, when it is known what will have arrived in the end."""

    focal: Focal
    home: Mapping[str, int]
    """Record → the cluster it will be in."""

    def start(self) -> _State:
        return self.focal.start()

    def step(self, state: _State, record: Record, /) -> _State:
        return self.focal.step(state, record)

    def finish(self, state: _State, /) -> WholeRecords:
        return self.focal.finish(state)

    def key(self, state: _State, /) -> Hashable:
        """Name the survivor of each cluster so far, in order of arrival if that is shown."""
        survivors: dict[int, str] = {}
        for record in state.arrived:
            cluster = self.home[record.id]
            if self.focal.survivor == "first-arrival":
                survivors.setdefault(cluster, record.id)
            else:
                survivors.pop(cluster, None)
                survivors[cluster] = record.id
        if self.focal.interface.display == "arrival":
            return tuple(survivors.values())
        return tuple(sorted(survivors.items()))


@dataclass(frozen=True, slots=True)
class Ties:
    """How often processing order had to decide between equals (Appendix D.5)."""

    representative: int
    """Comparisons with a cluster whose highest preference score two members share."""
    assignment: int
    """Newcomers for which two clusters had the same, greatest overlap."""


def count_ties(records: Iterable[Record], threshold: float = 0.055) -> Ties:
    """Count the ties met while clustering records in the order given."""
    clusters: tuple[Cluster, ...] = ()
    representative = assignment = 0
    for record in records:
        representative += sum(_shares_top_score(cluster) for cluster in clusters)
        assignment += assign(clusters, record, threshold).tied
        clusters = _place_record(clusters, record, threshold)
    return Ties(representative, assignment)


def _shares_top_score(cluster: Cluster) -> bool:
    top = preference_score(cluster.representative)
    return sum(preference_score(member) == top for member in cluster.members) > 1
