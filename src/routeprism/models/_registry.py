"""Find models by name; the built-in ones are entry points like everyone else's.

A spec is `reader`, `reader:temperature=0.5`, or a name with its required value first:
`openai:MODEL,temperature=0.2`, `hf:PATH`, `inspect:PROVIDER/MODEL`, `recorded:FILE`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from routeprism import specs
from routeprism.errors import SpecError, nearest
from routeprism.models._contracts import Model


def registered_models() -> Mapping[str, specs.Registration]:
    """Return the entry points of the group `routeprism.models`, by name."""
    return specs.registered("models")


def make_model(text: str, **options: Any) -> Model:
    """Make the model of a spec; `options` are settings from the options of the command.

    Options that this model does not have, or that are None, are ignored.
    """
    factory, spec, extra = _find_factory(text, options)
    model = specs.construct(factory, spec, **extra)
    if not specs.fulfils(model, Model):
        parts = "name, settings, embedded, concurrency and answer"
        raise SpecError(f"'{spec.name}' is not a model: it needs {parts}")
    return model


def make_models(text: str, **options: Any) -> list[Model]:
    """Make the models of a spec: one, or each of those whose answers a file contains."""
    factory, spec, extra = _find_factory(text, options)
    list_models: Callable[[str], list[str]] | None = getattr(factory, "list_models", None)
    if list_models is not None and "model" not in {*spec.values, *extra}:
        names = list_models(spec.values[_find_required(factory)])
        if len(names) > 1:
            return [specs.construct(factory, spec, **extra, model=name) for name in names]
    return [make_model(text, **options)]


def _find_factory(
    text: str, options: Mapping[str, Any]
) -> tuple[Callable[..., Model], specs.Spec, dict[str, Any]]:
    name, _, tail = text.strip().partition(":")
    models = registered_models()
    if name not in models:
        return _load_own_model(specs.parse(text), models, options)
    factory: Callable[..., Model] = models[name].load()
    required = _find_required(factory)
    values: dict[str, str] = {}
    first, _, rest = tail.partition(",")
    if required:
        if not first:
            raise SpecError(f"Expected '{name}:{required.upper()}' but got {text!r}")
        values[required] = first
        tail = rest
    values |= specs.parse(f"{name}:{tail}").values if tail else {}
    extra = _select_accepted(factory, {key: options[key] for key in options if key not in values})
    return factory, specs.Spec(text, name, values), extra


def _load_own_model(
    spec: specs.Spec, models: Mapping[str, specs.Registration], options: Mapping[str, Any]
) -> tuple[Callable[..., Model], specs.Spec, dict[str, Any]]:
    """Find a model class of the user's own; another name may be a misspelt model."""
    name = spec.name.partition(":")[0]
    unknown = SpecError(
        f"There is no model '{name}'. {nearest(name, models)} "
        f"Your own class is named 'package.module:Name'."
    )
    if not spec.is_object:
        raise unknown
    try:
        own = specs.load_object(spec.name)
    except specs.NoSuchModuleError:
        if nearest(name, models).startswith("Did"):
            raise unknown from None
        raise
    return own, spec, _select_accepted(own, options)


def _select_accepted(factory: Callable[..., Model], options: Mapping[str, Any]) -> dict[str, Any]:
    parameters = inspect.signature(factory).parameters
    return {key: value for key, value in options.items() if key in parameters and value is not None}


def _find_required(factory: Callable[..., Model]) -> str:
    """Name the parameter that has no default, if there is one."""
    names = [
        parameter.name
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.default is parameter.empty
    ]
    return names[0] if names else ""
