"""Cases that are made when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import overload

from routeprism.records._nouns import Case

__all__ = ["LazyCases"]


@dataclass(frozen=True, slots=True)
class LazyCases(Sequence[Case]):
    """A sequence that makes its n-th case by a function, and keeps none."""

    number: int
    make: Callable[[int], Case]
    """Importable or picklable, where cases are worked on in several processes."""

    def __len__(self) -> int:
        return self.number

    @overload
    def __getitem__(self, index: int) -> Case: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...
    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        if isinstance(index, slice):
            return tuple(self[at] for at in range(*index.indices(self.number)))
        at = index + self.number if index < 0 else index
        if not 0 <= at < self.number:
            raise IndexError(f"there are {self.number} cases, and no case {index}")
        return self.make(at)
