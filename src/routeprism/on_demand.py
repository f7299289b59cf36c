"""Names of a package that are imported when they are first used, so that it starts light."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any


def names_on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's `__getattr__` and `__dir__`, from modules and the names they have.

    The names of a module are parted by spaces.
    """
    home_of = {name: module for module, names in homes.items() for name in names.split()}

    def find(name: str) -> Any:
        """Import a public name when it is used."""
        if name not in home_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        from importlib import import_module

        return getattr(import_module(home_of[name], package), name)

    def names() -> list[str]:
        """List all names, including those imported on first use, for `help` and completion."""
        return sorted({*vars(sys.modules[package]), *home_of})

    return find, names
