"""Which models can be asked, by name: the built-in ones are entry points like everyone else's.

A spec is `reader`, `reader:temperature=0.5`, or a name with what it cannot do without in front:
`openai:MODEL,temperature=0.2`, `hf:PATH`, `inspect:PROVIDER/MODEL`, `recorded:FILE`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.models._contracts import Model

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["make_model", "make_models", "registered_models"]


def registered_models() -> Mapping[str, EntryPoint]:
    """Give the entry points of the group `routeprism.models`, by name."""
    return specs.registered("models")


def make_model(text: str, **given: Any) -> Model:
    """Give the model that a user named; `given` holds settings from options of the command.

    Settings that this model does not have, or that are None, are passed over.
    """
    factory, spec, extra = _read(text, given)
    return specs.construct(factory, spec, **extra)


def make_models(text: str, **given: Any) -> list[Model]:
    """Give the models that a user named: one, or each of those whose answers a file holds."""
    factory, spec, extra = _read(text, given)
    held: Callable[[str], list[str]] | None = getattr(factory, "held", None)
    if held is not None and "model" not in {*spec.values, *extra}:
        names = held(spec.values[_required(factory)])
        if len(names) > 1:
            return [specs.construct(factory, spec, **extra, model=name) for name in names]
    return [specs.construct(factory, spec, **extra)]


def _read(
    text: str, given: Mapping[str, Any]
) -> tuple[Callable[..., Model], specs.Spec, dict[str, Any]]:
    """Find who is meant, and with which settings."""
    name, _, tail = text.strip().partition(":")
    known = registered_models()
    if name not in known:
        raise SpecError(f"There is no model '{name}'. {nearest(name, known)}")
    factory: Callable[..., Model] = known[name].load()
    wanted = _required(factory)
    values: dict[str, str] = {}
    first, _, rest = tail.partition(",")
    if wanted:
        if not first:
            raise SpecError(f"Expected '{name}:{wanted.upper()}' but got {text!r}")
        values[wanted] = first
        tail = rest
    values |= specs.parse(f"{name}:{tail}").values if tail else {}
    accepted = inspect.signature(factory).parameters
    extra = {
        key: value
        for key, value in given.items()
        if key in accepted and key not in values and value is not None
    }
    return factory, specs.Spec(text, name, values), extra


def _required(factory: Callable[..., Model]) -> str:
    """Name the one parameter that has no default."""
    names = [
        parameter.name
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty
    ]
    return names[0] if names else ""
