"""`inspect:PROVIDER/MODEL`: every provider of Inspect AI, through its own `get_model`.

Only the model is used: no evaluation, no log file, no transcript. Inspect AI finds the keys of its
providers itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakKeyDictionary

from routeprism import specs
from routeprism.errors import MissingExtraError, ModelError, SpecError
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.models._replies import REFUSED
from routeprism.redaction import Redactor, address_secrets, hide_credentials, names_secret

__all__ = ["InspectModel"]

T = TypeVar("T")


class LoopCache(Generic[T]):
    """A value for each event loop; a copy in another process starts empty."""

    def __init__(self) -> None:
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def __reduce__(self) -> tuple[type[LoopCache[T]], tuple[()]]:
        return type(self), ()

    def get(self, make: Callable[[], T]) -> T:
        """Return this event loop's value; make it if there is none."""
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = make()
        return self._values[loop]


@dataclass(frozen=True)
class InspectModel:
    """A model of one of Inspect AI's providers."""

    model: str
    """Its name in Inspect AI, such as `anthropic/NAME` or `ollama/NAME`."""
    temperature: float | None = None
    """By default the provider's own."""
    max_tokens: int | None = None
    """The longest answer; by default the provider's own."""
    seed: int | None = None
    """Draw n uses seed + n, so that seeded draws still differ."""
    timeout: int | None = 120
    """Seconds for a request with all its retries."""
    retries: int = 6
    """How often Inspect AI repeats a request after a temporary failure."""
    concurrency: int = 16
    """How many requests are made at once."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Further arguments of the provider; from Python only."""
    _models: LoopCache[tuple[Any, Any]] = field(
        default_factory=LoopCache, init=False, repr=False, compare=False
    )

    embedded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        provider, slash, name = self.model.partition("/")
        if not (provider and slash and name):
            raise SpecError(f"Expected 'inspect:PROVIDER/MODEL' but got 'inspect:{self.model}'")
        specs.positive("inspect", concurrency=self.concurrency)
        for part in ("temperature", "retries"):
            value = getattr(self, part)
            if value is not None and not value >= 0:
                raise SpecError(f"Expected {part} of 0 or more but got {part}={value} in 'inspect'")

    @property
    def name(self) -> str:
        """The spec in every output."""
        return f"inspect:{self.model}"

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything that can change an answer, with the plain arguments that are not secret."""
        plain = {
            f"arguments.{name}": hide_credentials(value) if isinstance(value, str) else value
            for name, value in sorted(self.arguments.items())
            if isinstance(value, str | int | float) and not names_secret(name)
        }
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            **plain,
        }

    async def answer(self, ask: Ask, /) -> Reply:
        """Send the prompt as one user message."""
        model, configure = self._models.get(self._open)
        redactor = self._redactor()
        seeded = None if self.seed is None else self.seed + ask.draw
        try:
            output = await model.generate(ask.text, config=configure(seed=seeded))
        except Exception as error:  # providers raise anything; a message could contain a key
            status = getattr(error, "status_code", None)
            summary = type(error).__name__ + (f" (status {status})" if status else "")
            raise ModelError(f"{self.name} gave no answer: {summary}") from error
        if output.error or not output.choices:
            words = redactor.redact_line(str(output.error or "no choice"))
            raise ModelError(f"{self.name} gave no answer: {words}")
        usage = output.usage
        used = Usage(usage.input_tokens, usage.output_tokens) if usage else Usage()
        withheld = output.stop_reason == "content_filter"
        text = redactor.redact(output.completion)
        return Reply(f"{REFUSED} {text}" if withheld else text, used)

    def _redactor(self) -> Redactor:
        """Redact the keys of providers in the environment and among the arguments."""
        texts = (value for value in self.arguments.values() if isinstance(value, str))
        addresses = (secret for value in texts for secret in address_secrets(value))
        secrets = (
            value
            for name, value in self.arguments.items()
            if isinstance(value, str) and names_secret(name)
        )
        return Redactor.configured(*secrets, *addresses)

    def _open(self) -> tuple[Any, Any]:
        """Open the model; give it with the class of a request's configuration."""
        try:
            from inspect_ai.model import (  # type: ignore[import-not-found, unused-ignore]
                GenerateConfig,
                get_model,
            )
        except ImportError:
            raise MissingExtraError(self.name, "inspect") from None
        config = GenerateConfig(
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            timeout=self.timeout,
            max_retries=self.retries,
            max_connections=self.concurrency,
        )
        try:
            model = get_model(self.model, config=config, memoize=False, **self.arguments)
        except Exception as error:  # an unknown provider, a missing package, a missing key
            words = self._redactor().redact_line(_first_line(error))
            raise ModelError(f"{self.name} cannot be opened: {words}") from error
        return model, GenerateConfig


def _first_line(error: Exception) -> str:
    message = str(getattr(error, "message", error)).strip()
    return message.splitlines()[0] if message else type(error).__name__
