"""`inspect:PROVIDER/MODEL`: every provider of Inspect AI, through its own `get_model`.

Only the model is used: no evaluation, no log file, no transcript. Keys are the providers' own
business and come from where Inspect AI looks for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any
from weakref import WeakKeyDictionary

from routeprism import specs
from routeprism.errors import MissingExtraError, ModelError, SpecError
from routeprism.models._contracts import Ask, Reply, Usage

__all__ = ["InspectModel"]

REFUSED = "[refused]"
"""Begins the raw text where the provider withheld an answer."""


@dataclass(frozen=True)
class InspectModel:
    """A model of one of Inspect AI's providers."""

    model: str
    """As Inspect AI writes it, such as `anthropic/NAME` or `ollama/NAME`."""
    temperature: float | None = None
    """The provider's own unless given."""
    max_tokens: int | None = None
    """The longest answer; the provider's own unless given."""
    seed: int | None = None
    """Draw n is asked with seed + n, so that seeded draws still differ."""
    timeout: int | None = 120
    """Seconds for a request with all its retries."""
    retries: int = 6
    """How often Inspect AI repeats a request after a failure that can pass."""
    concurrency: int = 16
    """How many requests are made at once."""
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """What the provider takes besides; from Python only."""
    _models: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = field(
        default_factory=WeakKeyDictionary, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        provider, slash, name = self.model.partition("/")
        if not (provider and slash and name):
            raise SpecError(f"Expected 'inspect:PROVIDER/MODEL' but got 'inspect:{self.model}'")
        specs.positive("inspect", concurrency=self.concurrency)
        for part in ("temperature", "retries"):
            value = getattr(self, part)
            if value is not None and not value >= 0:
                raise SpecError(f"Expected {part} of 0 or more but got {part}={value} in 'inspect'")

    def __getstate__(self) -> dict[str, Any]:
        """Travel to another process without connections."""
        return {part.name: getattr(self, part.name) for part in fields(self) if part.init}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_models", WeakKeyDictionary())

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return f"inspect:{self.model}"

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """All that can change an answer; of further arguments, the plain ones that are no key."""
        plain = {
            f"arguments.{name}": value
            for name, value in sorted(self.arguments.items())
            if isinstance(value, str | int | float) and "key" not in name.lower()
        }
        return {
            "temperature": self.temperature,
            "max_tokens": self.max_tokens,
            "seed": self.seed,
            **plain,
        }

    @property
    def embedded(self) -> bool:
        """Nothing of it is in this package."""
        return False

    async def answer(self, ask: Ask, /) -> Reply:
        """Send the prompt as one user message."""
        model, configure = self._opened()
        seeded = None if self.seed is None else self.seed + ask.draw
        try:
            output = await model.generate(ask.text, config=configure(seed=seeded))
        except Exception as error:  # providers raise what they like; a message could hold a key
            status = getattr(error, "status_code", None)
            what = type(error).__name__ + (f" (status {status})" if status else "")
            raise ModelError(f"{self.name} gave no answer: {what}") from error
        if output.error or not output.choices:
            raise ModelError(f"{self.name} gave no answer: {output.error or 'no choice'}")
        usage = output.usage
        used = Usage(usage.input_tokens, usage.output_tokens) if usage else Usage()
        withheld = output.stop_reason == "content_filter"
        return Reply(f"{REFUSED} {output.completion}" if withheld else output.completion, used)

    def _opened(self) -> tuple[Any, Any]:
        """Give this event loop's model, and what makes a request's configuration."""
        loop = asyncio.get_running_loop()
        if loop not in self._models:
            self._models[loop] = self._open()
        opened: tuple[Any, Any] = self._models[loop]
        return opened

    def _open(self) -> tuple[Any, Any]:
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
            raise ModelError(f"{self.name} cannot be opened: {_first_line(error)}") from error
        return model, GenerateConfig


def _first_line(error: Exception) -> str:
    said = str(getattr(error, "message", error)).strip()
    return said.splitlines()[0] if said else type(error).__name__
