"""Which fact a record states: what memories of facts resolve by."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

from routeprism import specs
from routeprism.errors import SpecError
from routeprism.records import Record

__all__ = ["SAMPLE_KEYS", "KeyFunction", "find_key_function"]

KeyFunction: TypeAlias = Callable[[Record], str | None]
"""Names the fact that a record states, from its text; None for a record that states none."""

SAMPLE_KEYS = "routeprism.records.sample_updates:name_fact"
"""The function for the sample with updates."""


def find_key_function(keys: str | KeyFunction) -> KeyFunction:
    """Return a function that was passed, or that is named `package.module:function`."""
    function = _load(keys) if isinstance(keys, str) else keys
    if not callable(function):
        raise SpecError(f"Expected a function of a record but got keys={keys!r:.60}")
    key_function: KeyFunction = function
    return key_function


@lru_cache(maxsize=16)
def _load(name: str) -> object:
    return specs.load_object(name)
