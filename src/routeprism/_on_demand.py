"""Names of a package that are imported when they are first used, so that it starts light."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["names_on_demand"]


def names_on_demand(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """Give a package's `__getattr__`, from modules and the names, parted by spaces, they have."""
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        from importlib import import_module

        return getattr(import_module(home_of[name], package), name)

    return find
