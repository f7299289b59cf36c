"""Findings: what an experiment says of a pool or a question that is no single number."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["MASKS", "Finding"]

MASKS = "masks"
"""Under this name stand the question ids of each mask, which is no experiment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One curve, order or map; an empty name means that it does not depend on that."""

    name: str
    """What it is, such as `survival` or `smallest_reordering`."""
    value: Any
    """Plain JSON."""
    policy: str = ""
    interface: str = ""
    schedule: str = ""
    """A schedule or an arrival model."""
    user: str = ""
    question: str = ""

    def row(self) -> Sequence[str]:
        """Write it for the store."""
        return (
            self.policy,
            self.interface,
            self.schedule,
            self.user,
            self.question,
            self.name,
            json.dumps(self.value, sort_keys=True, ensure_ascii=False),
        )
