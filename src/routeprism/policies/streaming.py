"""`streaming`: learns from other users which records to hold, three at a time (Appendix D.9).

A ridge regression on TF-IDF features, fitted on other users' records, predicts how much a record
overlaps with the rest of its pool. Arrivals pass once: when one is too many, the subset with the
highest summed prediction plus 0.35·log(1 + different tokens) stays, equal ones by record id, and
what was dropped never comes back.

The paper leaves features, folds and penalty open. Here features are the focal tokens of the user
turns with scikit-learn's TF-IDF weights, the penalty is scikit-learn's own (1), and what is
predicted is a record's mean Jaccard overlap with the other records of its pool.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from routeprism import specs
from routeprism.errors import ContractError, MissingExtraError, SpecError
from routeprism.policies._contracts import Memory, fold
from routeprism.policies._retention import Retention
from routeprism.policies.interfaces import Budget, Interface, WholeRecords
from routeprism.records import Pool, Record
from routeprism.text.focal import focal_set, has_focal_tokens, record_focal_counts

__all__ = ["Predictor", "Streaming", "fit_predictor"]

_DIGITS = 12
"""Fitted numbers are cut here, so that the last bits of a solver decide nothing."""


@dataclass(frozen=True, slots=True)
class Predictor:
    """A fitted ridge regression on TF-IDF features."""

    intercept: float
    terms: Mapping[str, tuple[float, float]] = field(hash=False, repr=False)
    """Term → (inverse document frequency, weight)."""
    digest: str
    """SHA-256 of all parameters: the fitted part of every memory's state."""

    def score(self, record: Record) -> float:
        """Predict the record's mean overlap with the rest of its pool."""
        return record.derive(self._score)

    def _score(self, record: Record) -> float:
        weights = [
            (count * self.terms[term][0], self.terms[term][1])
            for term, count in record_focal_counts(record).items()
            if term in self.terms
        ]
        length = math.sqrt(math.fsum(value * value for value, _ in weights))
        if not length:
            return self.intercept
        return self.intercept + math.fsum(value * weight for value, weight in weights) / length


@dataclass(frozen=True, slots=True)
class Streaming:
    """A small buffer whose choices were learned from other users."""

    name = specs.SpecName("streaming")

    k: int = 3
    """How many records it retains."""
    bonus: float = 0.35
    """The weight of the logarithm of 1 + the different tokens of the buffer."""
    penalty: float = 1.0
    """The penalty of the ridge regression."""
    interface: Interface = field(default_factory=Budget)
    """What of the buffer reaches the prompt."""
    predictor: Predictor | None = None
    """The fitted predictor; `fit` gives the policy that has it."""

    def __post_init__(self) -> None:
        specs.positive("streaming", k=self.k)
        if not self.penalty > 0:
            raise SpecError(f"Expected a penalty above 0 but got penalty={self.penalty}")

    def fit(self, pools: Sequence[Pool], /) -> Streaming:
        """Learn from these pools, none of which the fitted policy is then used on."""
        return replace(self, predictor=fit_predictor(pools, self.penalty))

    def unseen(self, record: Record) -> bool:
        """Whether the record has no token to learn or predict from."""
        return not has_focal_tokens(record)

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Hold the best k, arrival by arrival."""
        return fold(self, arrivals)

    def start(self) -> Retention:
        """Start without any arrival."""
        return Retention()

    def step(self, state: Retention, record: Record, /) -> Retention:
        """Take the record in; if that is one too many, drop the one the rest is best without."""
        if any(before.id == record.id for before in state.arrived):  # redelivered: never revisited
            return state.take(record, state.records, ("skip", record))
        members = (*state.records, record)
        if len(members) <= self.k:
            return state.take(record, members, ("add", record))
        dropped = max(members, key=lambda member: self._value_without(members, member))
        rest = (member for member in members if member is not dropped)
        return state.take(record, rest, ("add", record), ("evict", dropped))

    def finish(self, state: Retention, /) -> WholeRecords:
        """Keep the buffer; its state is what was learned and what is held, whatever the order."""
        retained = sorted(record.id for record in state.records)
        learned = self._require_predictor().digest
        return state.finish(self.interface, {"predictor": learned, "retained": retained})

    def key(self, state: Retention, /) -> Hashable:
        """Name the buffer; its order matters only if records are displayed in it."""
        return state.name_records(in_order=self.interface.display == "arrival")

    def _value_without(self, records: Sequence[Record], dropped: Record) -> tuple[float, str]:
        """Value the buffer without a record; of equals, the record with the largest id goes."""
        rest = [record for record in records if record is not dropped]
        different = _count_different(frozenset(map(focal_set, rest)))
        scores = math.fsum(map(self._require_predictor().score, rest))
        return scores + self.bonus * math.log1p(different), dropped.id

    def _require_predictor(self) -> Predictor:
        if self.predictor is None:
            raise ContractError(
                f"{self.name} has to be fitted before it builds: policy.fit(pools of other users)"
            )
        return self.predictor


@lru_cache(maxsize=256)  # the orders of a pool share few buffers: 120 of three among ten
def _count_different(sets: frozenset[frozenset[str]]) -> int:
    return len(frozenset[str]().union(*sets))


def fit_predictor(pools: Sequence[Pool], penalty: float = 1.0) -> Predictor:
    """Fit the mean overlap of records with the rest of their pool on their TF-IDF features."""
    import numpy as np

    try:
        from scipy.sparse import csr_matrix
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.linear_model import Ridge
    except ModuleNotFoundError:
        raise MissingExtraError("The policy streaming", "streaming") from None
    several = [pool for pool in pools if len(pool) > 1]
    counts = [record_focal_counts(record) for pool in several for record in pool.records]
    vocabulary = sorted({term for count in counts for term in count})
    if not vocabulary:
        raise SpecError(
            "streaming learns how much the records of a pool overlap: it needs a pool of other "
            "users with two records or more that have Latin-letter words"
        )
    place = {term: at for at, term in enumerate(vocabulary)}
    ends = np.cumsum([0, *map(len, counts)])
    columns = np.fromiter((place[term] for count in counts for term in count), dtype=np.int64)
    numbers = np.fromiter((n for count in counts for n in count.values()), dtype=np.float64)
    matrix = csr_matrix((numbers, columns, ends), shape=(len(counts), len(vocabulary)))
    overlaps: list[Any] = []
    start = 0
    for pool in several:
        overlaps.extend(_mean_overlaps(matrix[start : start + len(pool)]))
        start += len(pool)
    weighting = TfidfTransformer()
    features = weighting.fit_transform(matrix)
    # Without randomness, and far past the point where another iteration would change a choice.
    model = Ridge(alpha=penalty, solver="sparse_cg", tol=1e-12).fit(features, np.array(overlaps))
    inverse = np.round(weighting.idf_, _DIGITS).tolist()
    weights = np.round(model.coef_, _DIGITS).tolist()
    terms = dict(zip(vocabulary, zip(inverse, weights, strict=True), strict=True))
    intercept = round(float(model.intercept_), _DIGITS)
    text = json.dumps([intercept, list(terms.items())])
    return Predictor(intercept, terms, hashlib.sha256(text.encode()).hexdigest())


def _mean_overlaps(counts: Any) -> Any:
    """Return each row's mean Jaccard overlap with the other rows; empty token sets have none."""
    import numpy as np

    present = (counts > 0).astype(np.float64)
    common = (present @ present.T).toarray()
    sizes = common.diagonal()
    union = sizes[:, None] + sizes[None, :] - common
    overlap = np.divide(common, union, out=np.zeros_like(common), where=union > 0)
    np.fill_diagonal(overlap, 0.0)
    return overlap.sum(axis=1) / (len(sizes) - 1)
