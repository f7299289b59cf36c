"""What a model is (`Model`, its requests, its replies), and how a spec names one.

The built-in models are entry points like everyone else's. A spec is `reader`,
`reader:temperature=0.5`, or a name with its required value first: `openai:MODEL,temperature=0.2`,
`hf:PATH`, `inspect:PROVIDER/MODEL`, `recorded:FILE`.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from routeprism import specs
from routeprism.errors import SpecError, nearest


@dataclass(frozen=True, slots=True)
class Ask:
    """One request for one answer."""

    text: str
    """The whole prompt; its SHA-256 is the prompt's identity."""
    memory: str
    """The memory field within it, for models that read passages or score with and without it."""
    question: str
    """The question within it."""
    options: tuple[str, ...]
    """The answer options, without their letters; empty for free text."""
    draw: int
    """The number of the draw; a sampling model in this process derives its seed from it."""
    place: tuple[tuple[str, str], ...] = ()
    """(name, value) of question, policy, schedule, condition and other columns, for recorded
    answers that are found by their place; a model does not read it."""
    turn: int = 0
    """The number of the draw within its route or condition, from 0."""
    batch: str = ""
    """The realisation of the same requests that this belongs to, likewise for recorded answers."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and the cost of an answer; None if they are not known."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    """In the currency of the prices."""


@dataclass(frozen=True, slots=True)
class Reply:
    """The unchanged reply of a model, from which others read the answer."""

    raw: str
    """The text of the answer; the letter, if the model chooses among options."""
    usage: Usage = Usage()
    scores: tuple[float, ...] | None = None
    """A score for each option, if the model has them."""
    attempts: tuple[str, ...] = ()
    """A line for each earlier attempt that failed, without secrets."""
    correct: bool | None = None
    """The verdict of an answer that was judged elsewhere."""
    order: int | None = None
    """Its place in the order of requests, if it was collected elsewhere."""
    marks: tuple[str, ...] = ()
    """The parts of it that could not be stored unchanged, in words."""


@runtime_checkable
class Model(Protocol):
    """Answers prompts. `answer` may be a plain method or a coroutine."""

    @property
    def name(self) -> str:
        """The spec in every output, such as `reader` or `openai:some-model`."""

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything that can change an answer; part of the ledger's key. Never a secret."""

    @property
    def embedded(self) -> bool:
        """Whether it is built into this package; every output then marks it."""

    @property
    def concurrency(self) -> int:
        """The number of requests that it accepts at once."""

    def answer(self, ask: Ask, /) -> Reply | Awaitable[Reply]:
        """Answer once; raise `routeprism.errors.ModelError` if there is no answer."""


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
