"""Find policies by name; the built-in ones are entry points like everyone else's."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, get_args

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.models import Model, make_model
from routeprism.policies._contracts import Policy
from routeprism.policies._wrappers import SourceOrder
from routeprism.policies.interfaces import Interface
from routeprism.policies.own import as_policy
from routeprism.policies.remedies import parse_remedy

_COMPARATOR = "source-order("
_DEEPEST = 50
"""Policies around a policy; each of them is a call within a call."""


def registered_policies() -> Mapping[str, specs.Registration]:
    """Return the entry points of the group `routeprism.policies`, by name."""
    return specs.registered("policies")


def make_policy(
    text: str, interface: Interface | None = None, *, base_url: str | None = None
) -> Policy:
    """Make the policy of a spec; whole-record policies take the interface.

    A model that it asks while building is served at `base_url`, where that is not a fixed one.
    """
    text = text.strip()
    if text.count("(") > _DEEPEST:
        raise SpecError(f"Expected at most {_DEEPEST} brackets in a policy but got {text[:60]}…")
    if text.startswith(_COMPARATOR):
        if not text.endswith(")"):
            raise SpecError(f"Expected 'source-order(SPEC)' but got {text!r}")
        inner = make_policy(text[len(_COMPARATOR) : -1], interface, base_url=base_url)
        return SourceOrder(inner)
    make = partial(make_policy, interface=interface, base_url=base_url)
    if (repaired := parse_remedy(text, make)) is not None:
        return repaired
    factories = registered_policies()
    spec = specs.parse(text)
    if spec.is_object:
        head, _, tail = spec.name.partition(":")
        if head in factories:
            raise SpecError(f"Expected key=value but got {tail!r} in {text!r}")
        return as_policy(
            _construct_policy(specs.load_object(spec.name), spec, interface, base_url),
            name=spec.text,
        )
    if spec.name not in factories:
        raise SpecError(
            f"There is no policy '{spec.name}'. {nearest(spec.name, factories)} "
            f"Your own class is named 'package.module:Name'."
        )
    return as_policy(
        _construct_policy(factories[spec.name].load(), spec, interface, base_url), name=spec.text
    )


def _construct_policy(
    factory: Any, spec: specs.Spec, interface: Interface | None, base_url: str | None
) -> Any:
    is_policy = hasattr(factory, "build")
    if not spec.values and not (is_policy and inspect.isclass(factory)):
        return factory
    if not callable(factory):
        raise SpecError(f"'{spec.name}' takes no parameters: it is not a class")
    if not is_policy:  # a memory class, or what makes one: a fresh one is made for every build
        specs.arguments(factory, spec)  # a wrong parameter is refused before anything is built
        return _MemoryFactory(factory, spec)
    arguments: dict[str, Any] = {}
    if interface is not None and "interface" in inspect.signature(factory).parameters:
        arguments["interface"] = interface
    if "model" in spec.values and takes_model(factory):
        values = dict(spec.values)
        arguments["model"] = make_model(values.pop("model"), base_url=base_url)
        spec = replace(spec, values=values)
    return specs.construct(factory, spec, **arguments)


def takes_model(factory: Any) -> bool:
    """Whether a policy's parameter `model` is a model that it asks while building."""
    kind = specs.hints(factory).get("model")
    return kind is Model or Model in get_args(kind)


@dataclass(frozen=True, slots=True)
class _MemoryFactory:
    """Makes fresh memories with a spec's parameters."""

    factory: Any
    spec: specs.Spec

    def __call__(self) -> Any:
        return specs.construct(self.factory, self.spec)
