"""Cross-fitting: a policy that learns meets only users that it did not learn from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from routeprism.errors import SpecError
from routeprism.policies import Policy, fit_policy, needs_fit
from routeprism.records import Case

FOLDS = 5
"""Into how many groups users are split, if there are as many."""


@dataclass(frozen=True, slots=True)
class CrossFit:
    """Policies as they are to be used on each user."""

    policies: tuple[Policy, ...]
    """As they were named; those that learn are not fitted."""
    fold_of: Mapping[str, int] = field(default_factory=dict)
    """User → fold; empty if nothing learns."""
    by_fold: tuple[tuple[Policy, ...], ...] = ()
    """For each fold, the same policies, fitted on the users of all other folds."""

    def for_user(self, user: str) -> tuple[Policy, ...]:
        """Return the policies that did not learn from this user."""
        return self.by_fold[self.fold_of[user]] if self.by_fold else self.policies


def folds(users: Iterable[str], number: int = FOLDS) -> Mapping[str, int]:
    """Deal users to folds by the order of their names' SHA-256: equal sizes, no chance in it."""
    dealt = sorted(set(users), key=lambda user: hashlib.sha256(user.encode()).hexdigest())
    return {user: at % number for at, user in enumerate(dealt)}


def cross_fit(policies: Sequence[Policy], cases: Sequence[Case]) -> CrossFit:
    """Fit every policy that learns once for each fold, on the pools of the other folds.

    A fit receives pools, which contain only records: no question, and no user of its own fold. It
    happens here, once, whatever the number of processes that then use it.
    """
    names = tuple(policies)
    if not any(map(needs_fit, names)):
        return CrossFit(names)
    pools = [case.pool for case in cases]
    users = {pool.user for pool in pools}
    if len(users) < 2:
        who = next(policy.name for policy in names if needs_fit(policy))
        raise SpecError(f"{who} learns from other users, and there is only one user here")
    number = min(FOLDS, len(users))
    fold_of = folds(users, number)
    by_fold = []
    for fold in range(number):
        training_pools = tuple(pool for pool in pools if fold_of[pool.user] != fold)
        by_fold.append(tuple(fit_policy(policy, training_pools) for policy in names))
    return CrossFit(names, fold_of, tuple(by_fold))
