"""Extensions: objects that count as registered for as long as a block of code runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from routeprism.errors import SpecError
from routeprism.experiments import Experiment
from routeprism.orders import Procedure
from routeprism.quantities import Quantity
from routeprism.specs import EXTENSIONS, Extension, load_object

__all__ = ["use_extensions"]

_GROUPS = {Experiment: "experiments", Quantity: "coordinates", Procedure: "procedures"}


@contextmanager
def use_extensions(*objects: Experiment | Quantity[Any] | Procedure | str) -> Iterator[None]:
    """Extend RoutePrism with experiments, quantities and procedures inside a `with` block.

    Every function works as if an installed package registered the objects: their options are
    keyword arguments, and reports, `trace` and `check` know their rows. A text such as
    `package.module:Name` names an object to import.
    """
    extensions = tuple(map(_make_extension, objects))
    token = EXTENSIONS.set((*EXTENSIONS.get(), *extensions))
    try:
        yield
    finally:
        EXTENSIONS.reset(token)


def _make_extension(extension: Any) -> Extension:
    text = extension if isinstance(extension, str) else ""
    value = load_object(text) if text else extension
    group = next((name for kind, name in _GROUPS.items() if isinstance(value, kind)), None)
    if group is None:
        raise SpecError(f"Expected an Experiment, a Quantity or a Procedure but got {value!r:.60}")
    return Extension(group, value.name, value, text)
