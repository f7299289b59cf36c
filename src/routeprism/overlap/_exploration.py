"""Every interleaving of a few writes, without those that differ only in independent steps.

Depth-first search that performs the trial again for each interleaving, with sleep sets (Godefroid,
Partial-Order Methods for the Verification of Concurrent Systems, 1996): a step that was explored
at a node need not be explored again after steps that do not conflict with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from routeprism.errors import InapplicableError
from routeprism.overlap._access import Access, AccessRecorder
from routeprism.overlap._trials import Execution, Trial


@dataclass(frozen=True, slots=True)
class Exploration:
    """The interleavings of a trial that were performed."""

    executions: tuple[Execution, ...]
    """Those that were performed to their end; no two of them are equivalent."""
    performed: int
    """How often the trial was performed, including attempts that repeated an earlier one."""
    complete: bool
    """Whether every interleaving was covered."""


class _RedundantError(BaseException):
    """The interleaving is equivalent to one that was performed before."""


@dataclass(slots=True)
class _Node:
    """A moment at which some writes could continue."""

    enabled: tuple[int, ...]
    sleep: dict[int, Access]
    """Write → its next step, which need not be explored here."""
    explored: dict[int, Access] = field(default_factory=dict)
    choice: int = -1

    def next_choice(self) -> int | None:
        """Return a write that is still to be explored here."""
        candidates = (
            write
            for write in self.enabled
            if write not in self.sleep and write not in self.explored
        )
        return next(candidates, None)


class _Search:
    """The path of the search through the tree of choices."""

    def __init__(self, *, prune: bool) -> None:
        self.path: list[_Node] = []
        self.prune = prune
        self._depth = 0
        self._recorder: AccessRecorder | None = None
        self._before: Access | None = None

    def begin(self) -> None:
        self._depth, self._recorder, self._before = 0, None, None

    def attach(self, recorder: AccessRecorder) -> None:
        self._recorder, self._before = recorder, recorder.last

    def finish_step(self) -> None:
        """Note what the step before this moment used."""
        if not self._depth:
            return
        access = Access(outside=True)
        if self._recorder is not None:
            if self._recorder.last is not self._before:
                access = self._recorder.last
            self._before = self._recorder.last
        node = self.path[self._depth - 1]
        node.explored[node.choice] = access

    def choose(self, enabled: Sequence[int]) -> int:
        self.finish_step()
        if self._depth == len(self.path):
            self.path.append(_Node(tuple(enabled), self._inherit()))
        node = self.path[self._depth]
        if node.choice < 0 or node.choice not in enabled:
            choice = node.next_choice()
            if choice is None:
                raise _RedundantError
            node.choice = choice
        self._depth += 1
        return node.choice

    def _inherit(self) -> dict[int, Access]:
        """Return the steps that need not be explored after the step before this moment."""
        if not self.path or not self.prune:
            return {}
        parent = self.path[-1]
        step = parent.explored[parent.choice]
        asleep = {**parent.sleep, **parent.explored}
        return {
            write: access
            for write, access in asleep.items()
            if write != parent.choice and not access.conflicts_with(step)
        }

    def backtrack(self) -> bool:
        """Go back to the last moment with something to explore; False at the end of the search."""
        while self.path:
            choice = self.path[-1].next_choice()
            if choice is not None:
                self.path[-1].choice = choice
                return True
            self.path.pop()
        return False


def explore_interleavings(trial: Trial, *, limit: int = 10_000, prune: bool = True) -> Exploration:
    """Perform every interleaving of a trial, up to a limit; without pruning, equivalent ones also.

    Raises InapplicableError unless the writes are `async`.
    """
    if trial.manner != "async":
        raise InapplicableError(
            f"{trial.policy.name}: every interleaving can be performed only if `add` is `async`. "
            f"Use trial.sample(seed) instead"
        )
    executions: list[Execution] = []
    performed = 0
    for execution in _search(trial, prune=prune):
        if performed == limit:
            return Exploration(tuple(executions), performed, complete=False)
        performed += 1
        if execution is not None:
            executions.append(execution)
    return Exploration(tuple(executions), performed, complete=True)


def _search(trial: Trial, *, prune: bool) -> Iterator[Execution | None]:
    """Perform interleavings one by one; None for an attempt that was equivalent to an earlier."""
    search = _Search(prune=prune)
    going = True
    while going:
        search.begin()
        try:
            execution = trial.perform(search.choose, search.attach if prune else None)
        except _RedundantError:
            yield None
        else:
            search.finish_step()
            yield execution
        going = search.backtrack()
