"""Every permutation at once, for the focal family and `recent:k`: vectorised over orders.

Orders are a tree of beginnings; a level of it is a set of arrays with a row for each beginning.
All thresholds share one tree, and all survivor rules one clustering. Large pools are done in
portions that share their first arrivals. No state is merged, so that this is an independent check
of the merged-state analysis, and vice versa.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from routeprism.policies.focal import cluster_records
from routeprism.records import Record
from routeprism.text.focal import focal_set, preference_score, similarity

LARGEST = 10
"""The largest pool whose orders are enumerated: 3.6 million."""

SURVIVORS = ("last-arrival", "first-arrival", "source-position")

_PORTION = 8
"""The number of records that a portion of the tree orders: 40,320 rows."""

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Enumerated:
    """The records that all permutations of a pool retain."""

    orders: int
    masks: Mapping[int, int]
    """Retained positions as bits → in how many orders."""
    clusters: Mapping[int, int] = field(default_factory=dict)
    """Number of clusters → in how many orders."""
    sizes: Mapping[int, int] = field(default_factory=dict)
    """Size of a cluster → how many clusters over all orders."""


@lru_cache(maxsize=16)
def _tree(size: int) -> tuple[Array, ...]:
    """Return for each level of the tree the record that is next in each row.

    The first continuations of all rows come first, then the second ones, and so on.
    """
    remaining = np.arange(size, dtype=np.uint8)[:, None]
    levels = []
    for left in range(size, 0, -1):
        levels.append(remaining.ravel())
        rest = [np.delete(remaining, position, axis=0) for position in range(left)]
        remaining = np.concatenate(rest, axis=1)
    return tuple(levels)


def _portions(size: int) -> Iterator[tuple[tuple[int, ...], list[Array]]]:
    """Return the first arrivals of each portion, and the records of each level below them."""
    if not 1 <= size <= LARGEST:
        raise ValueError(f"Expected 1 to {LARGEST} records but got {size}")
    positions = np.arange(size, dtype=np.uint8)
    portion = min(size, _PORTION)
    return (
        (begun, [np.delete(positions, begun).take(places) for places in _tree(portion)])
        for begun in itertools.permutations(range(size), size - portion)
    )


class _Clusters:
    """The clusters of many beginnings: one array for each cluster's place.

    All arrays have a row for each threshold and a column for each beginning.
    """

    __slots__ = ("number", "representative", "size", "survivors")

    def __init__(self, thresholds: int, nobody: int, rules: Sequence[str]) -> None:
        shape = (thresholds, 1)
        self.number = np.zeros(shape, np.uint8)
        self.representative = [np.full(shape, nobody, np.uint8)]
        self.size = [np.zeros(shape, np.uint8)]
        self.survivors = {rule: [np.zeros(shape, np.uint16)] for rule in rules}
        """For each rule and place, the survivor as a bit."""

    def continued(self, times: int) -> None:
        """Return each beginning as many continuations."""
        if times > 1:
            self.number = np.concatenate([self.number] * times, axis=1)
            every: list[list[Array]] = [self.representative, self.size, *self.survivors.values()]
            for survivors in every:
                survivors[:] = [np.concatenate([part] * times, axis=1) for part in survivors]

    def widened(self, places: int, nobody: int) -> None:
        """Make room for this many clusters."""
        shape = self.number.shape
        while len(self.size) < places:
            self.representative.append(np.full(shape, nobody, np.uint8))
            self.size.append(np.zeros(shape, np.uint8))
            for survivors in self.survivors.values():
                survivors.append(np.zeros(shape, np.uint16))


class _Focal:
    """The pool as numbers: ranks of overlaps, preference scores, and the thresholds' ranks."""

    def __init__(self, records: Sequence[Record], thresholds: Sequence[float]) -> None:
        size = len(records)
        sets = [focal_set(record) for record in records]
        overlaps = np.zeros((size, size + 1))  # the last column: nobody, with whom nobody overlaps
        for first, second in itertools.product(range(size), repeat=2):
            overlaps[first, second] = similarity(sets[first], sets[second])
        values, ranks = np.unique(np.append(overlaps.ravel(), 0.0), return_inverse=True)
        self.ranks = ranks.ravel()[:-1].astype(np.uint8)
        needed = [max(1, int(np.searchsorted(values, threshold))) for threshold in thresholds]
        self.needed = np.array(needed, np.uint8)[:, None]
        scores = [preference_score(record) for record in records]
        self.scores = np.searchsorted(sorted(set(scores)), [*scores, -1]).astype(np.uint8)
        self.scores[:-1] += 1  # nobody scores lower than anybody
        self.nobody = size
        self.width = size + 1

    def place(self, clusters: _Clusters, arriving: Array, *, finishing: bool) -> None:
        """Let each beginning's next record join the cluster of greatest overlap, or found one."""
        offsets = arriving * np.uint8(self.width)
        best = self.ranks.take(offsets + clusters.representative[0])
        target = np.zeros_like(best)
        for at, representative in enumerate(clusters.representative[1:], start=1):
            ranks = self.ranks.take(offsets + representative)
            np.putmask(target, ranks > best, at)
            np.maximum(best, ranks, out=best)
        founds = best < self.needed
        np.copyto(target, clusters.number, where=founds)
        clusters.number += founds
        clusters.widened(int(clusters.number.max()), self.nobody)
        bits = np.uint16(1) << arriving.astype(np.uint16)
        scores = self.scores.take(arriving)
        for at in range(len(clusters.size)):
            is_target = target == at
            whole = -is_target.astype(
                np.uint16
            )  # all bits or none: arithmetic is faster than choosing
            own = bits & whole
            for rule, survivors in clusters.survivors.items():
                survivor = survivors[at]
                if rule == "last-arrival":
                    survivor &= ~whole
                    survivor |= own
                elif rule == "first-arrival":
                    survivor |= own & -(clusters.size[at] == 0).astype(np.uint16)
                else:
                    np.maximum(survivor, own, out=survivor)
            clusters.size[at] += is_target
            if not finishing:
                representative = clusters.representative[at]
                is_target &= scores > self.scores.take(representative)
                np.copyto(representative, arriving, where=is_target)


def enumerate_focal(
    records: Sequence[Record],
    thresholds: Sequence[float],
    survivors: Sequence[str] = SURVIVORS,
    *,
    cluster: str = "arrival",
) -> Mapping[tuple[float, str], Enumerated]:
    """Return for each threshold and survivor rule what all permutations of a pool retain."""
    size = len(records)
    portions = _portions(size)
    if cluster == "source":
        return _enumerate_settled(records, thresholds)
    focal = _Focal(records, thresholds)
    masks = {rule: np.zeros((len(thresholds), 1 << size), np.int64) for rule in survivors}
    numbers = np.zeros((len(thresholds), size + 1), np.int64)
    sizes = np.zeros((len(thresholds), size + 1), np.int64)
    for begun, levels in portions:
        clusters = _Clusters(len(thresholds), focal.nobody, survivors)
        for position in begun:
            focal.place(clusters, np.array([position], np.uint8), finishing=False)
        for left, arriving in zip(range(len(levels), 0, -1), levels, strict=True):
            clusters.continued(left)
            focal.place(clusters, arriving, finishing=left == 1)
        together = {
            rule: np.bitwise_or.reduce(survivor_masks)
            for rule, survivor_masks in clusters.survivors.items()
        }
        for at in range(len(thresholds)):
            for rule, mask in together.items():
                masks[rule][at] += np.bincount(mask[at], minlength=1 << size)
            numbers[at] += np.bincount(clusters.number[at], minlength=size + 1)
            for cluster_sizes in clusters.size:
                sizes[at] += np.bincount(cluster_sizes[at], minlength=size + 1)
    sizes[:, 0] = 0  # places that no cluster took
    return {
        (threshold, rule): Enumerated(
            math.factorial(size),
            _to_counts(masks[rule][at]),
            _to_counts(numbers[at]),
            _to_counts(sizes[at]),
        )
        for at, threshold in enumerate(thresholds)
        for rule in survivors
    }


def _to_counts(counts: Array) -> dict[int, int]:
    return {int(at): int(counts[at]) for at in counts.nonzero()[0]}


def _enumerate_settled(
    records: Sequence[Record], thresholds: Sequence[float]
) -> Mapping[tuple[float, str], Enumerated]:
    """Enumerate where clusters are formed in source order: only the survivors can differ."""
    size = len(records)
    enumerations: dict[tuple[float, str], Enumerated] = {}
    for threshold in thresholds:
        clusters = cluster_records(records, threshold)
        members = np.zeros(size, np.uint16)
        for cluster in clusters:
            bits = sum(1 << record.position for record in cluster.members)
            for record in cluster.members:
                members[record.position] = bits
        last = sum(1 << max(r.position for r in cluster.members) for cluster in clusters)
        total = math.factorial(size)
        sizes: dict[int, int] = {}
        for cluster in clusters:
            sizes[len(cluster.members)] = sizes.get(len(cluster.members), 0) + total
        shape = ({len(clusters): total}, dict(sorted(sizes.items())))
        masks = _survivor_masks(size, members)
        for rule in ("last-arrival", "first-arrival"):
            # Read backwards, the first arrival is the last one, and all orders are read.
            enumerations[threshold, rule] = Enumerated(total, masks, *shape)
        enumerations[threshold, "source-position"] = Enumerated(total, {last: total}, *shape)
    return enumerations


def _survivor_masks(size: int, members: Array) -> dict[int, int]:
    counts = np.zeros(1 << size, np.int64)
    for begun, levels in _portions(size):
        masks = np.zeros(1, np.uint16)
        for position in begun:
            masks = (masks & ~members[position]) | np.uint16(1 << position)
        for level, arriving in enumerate(levels):
            masks = np.tile(masks, len(levels) - level) & ~members.take(arriving)
            masks |= np.uint16(1) << arriving.astype(np.uint16)
        counts += np.bincount(masks, minlength=1 << size)
    return _to_counts(counts)


def enumerate_recent(size: int, k: int) -> Enumerated:
    """Count what all permutations of a pool leave in a window of the last k."""
    portions = _portions(size)
    counts = np.zeros(1 << size, np.int64)
    for begun, levels in portions:
        masks = np.full(1, sum(1 << position for position in begun[max(0, size - k) :]), np.uint16)
        for level, arriving in enumerate(levels):
            masks = np.tile(masks, len(levels) - level)
            if len(begun) + level >= size - k:
                masks |= np.uint16(1) << arriving.astype(np.uint16)
        counts += np.bincount(masks, minlength=1 << size)
    return Enumerated(math.factorial(size), _to_counts(counts))
