"""Which questions about changed facts a memory shows the old value alone, in any order.

What a question is shown decides (`stale_only`, docs/updates.md). A built-in policy that keeps whole
records shows the same records of every retained set, in whichever order they arrived; of such a
policy the outcome is read from the retained set, so that enumerations and proofs can be used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from operator import itemgetter
from typing import TypeVar

from routeprism.landscape import RetainedValue
from routeprism.measures import is_stale_only
from routeprism.policies import (
    Exposure,
    Interface,
    Memory,
    Policy,
    builder_model,
    own_source,
    unwrap_policy,
)
from routeprism.policies.interfaces import INTERFACES, WholeRecords
from routeprism.policies.own import open_memory
from routeprism.records import Case, Question

T = TypeVar("T")

StaleValue = Callable[[Memory], tuple[bool, ...]]
"""Reads for each question with outdated evidence whether it is shown that alone."""


@dataclass(frozen=True, slots=True)
class StaleOutcomes:
    """Reads the memories of one pool under one policy."""

    case: Case
    updates: str
    """The label source of outdated evidence."""
    places: tuple[int, ...]
    """The places of the questions with current and outdated evidence."""
    interface: Interface | None
    """Decides what of a retained set is shown; None where more than the retained set decides."""
    _outcomes: dict[frozenset[str], tuple[bool, ...]] = field(default_factory=dict, compare=False)

    @classmethod
    def find(cls, policy: Policy, case: Case, updates: str) -> StaleOutcomes | None:
        """Return the reader of a pool; None where no question has outdated evidence."""
        places = tuple(
            at
            for at, question in enumerate(case.questions)
            if updates and question.labels.get(updates) and question.stale.get(updates)
        )
        return cls(case, updates, places, _find_interface(policy, case)) if places else None

    @property
    def queries(self) -> tuple[str, ...]:
        """The texts of the questions that are read."""
        return tuple(self.case.questions[place].text for place in self.places)

    def value(self) -> StaleValue:
        """Return what reads a memory; a `RetainedValue` where the retained set decides."""
        if self.interface is None:
            return lambda memory: self._read(memory.expose)
        return RetainedValue(partial(self._read_retained, self.interface))

    def evidence(self, question: Question) -> tuple[frozenset[str], frozenset[str]]:
        """Return the current and the outdated evidence of a question."""
        empty: frozenset[str] = frozenset()
        return question.labels.get(self.updates, empty), question.stale.get(self.updates, empty)

    def predicate(self, question: Question) -> Callable[[Memory], bool] | None:
        """Return what reads whether one question is shown the old value alone, if that applies."""
        ids = [self.case.questions[place].id for place in self.places]
        if question.id not in ids:
            return None
        return self._derive(itemgetter(ids.index(question.id)))

    def objective(self) -> Callable[[Memory], float]:
        """Return what reads the share of questions that are not shown the old value alone."""
        return self._derive(lambda outcome: 1 - sum(outcome) / len(outcome))

    def _derive(self, function: Callable[[tuple[bool, ...]], T]) -> Callable[[Memory], T]:
        value = self.value()
        if isinstance(value, RetainedValue):
            read = value.function
            return RetainedValue(lambda retained: function(read(retained)))
        return lambda memory: function(value(memory))

    def _read(self, expose: Callable[[str], Exposure]) -> tuple[bool, ...]:
        questions = [self.case.questions[place] for place in self.places]
        return tuple(
            is_stale_only(expose(question.text).sources, *self.evidence(question))
            for question in questions
        )

    def _read_retained(self, interface: Interface, retained: frozenset[str]) -> tuple[bool, ...]:
        outcome = self._outcomes.get(retained)
        if outcome is None:
            records = self.case.pool.records
            opened = interface.open(
                records, [record for record in records if record.id in retained]
            )
            outcome = self._outcomes[retained] = self._read(opened)
        return outcome


def _find_interface(policy: Policy, case: Case) -> Interface | None:
    """Find what a built-in policy of whole records exposes them through; None for others."""
    interface: Interface | None = getattr(unwrap_policy(policy), "interface", None)
    if own_source(policy) or builder_model(policy) is not None:
        return None
    if not isinstance(interface, tuple(INTERFACES.values())):
        return None
    with open_memory(policy, case.pool, range(len(case.pool))) as memory:
        return interface if isinstance(memory, WholeRecords) else None
