"""Where the client of a memory system asks its model: an endpoint of the user's, or one here."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from routeprism.models._allowance import Allowance
from routeprism.models._gateway import Gateway, Line
from routeprism.models.scripted import SCRIPTED, ScriptedEndpoint

__all__ = ["Endpoint", "is_scripted", "open_endpoint"]


def _release_nothing() -> None:
    """Release nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the key that a client gets."""

    base_url: str
    """Empty for the client's own default."""
    api_key: str
    close: Callable[[], None] = _release_nothing
    """Call it when the client makes no more requests."""


def is_scripted(model: str, base_url: str = "") -> bool:
    """Whether a memory system's model is the scripted one of this package."""
    return model == SCRIPTED and not base_url


def open_endpoint(
    model: str,
    line: Line,
    *,
    gateway: Gateway | None = None,
    allowance: Allowance | None = None,
) -> Endpoint:
    """Open the endpoint of a model for one build.

    `scripted` is served here until the endpoint is closed. The requests of any other model go
    through the gateway of the command. Without one they go through a gateway of their own if an
    allowance limits them, and otherwise directly to the model, with the key of the line or else
    the one in OPENAI_API_KEY.
    """
    if is_scripted(model, line.base_url):
        served = ScriptedEndpoint()
        return Endpoint(served.base_url, served.api_key, served.close)
    if gateway is not None and gateway.active:
        return Endpoint(*gateway.connect(line))
    if allowance is not None:
        stack = ExitStack()
        private = stack.enter_context(Gateway(allowance).serving())
        return Endpoint(*private.connect(line), stack.close)
    return Endpoint(line.base_url, line.api_key or os.environ.get("OPENAI_API_KEY", "none"))
