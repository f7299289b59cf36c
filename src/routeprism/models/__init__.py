"""Models that answer prompts, behind one small protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from routeprism.models._allowance import (
    ALLOWANCE,
    Allowance,
    costs_money,
    count_repetition,
    is_remote,
    make_allowance,
)
from routeprism.models._contracts import (
    Ask,
    Model,
    Reply,
    Usage,
    make_model,
    make_models,
    registered_models,
)
from routeprism.models._replies import clean_reply
from routeprism.on_demand import names_on_demand

if TYPE_CHECKING:
    from routeprism.models._scores import contrast_options
    from routeprism.models.gateway import (
        GATEWAY,
        Endpoint,
        Gateway,
        Line,
        client_route,
        is_scripted,
        open_endpoint,
    )
    from routeprism.models.recorded import Replayed, replay_model

__all__ = [
    "ALLOWANCE",
    "GATEWAY",
    "Allowance",
    "Ask",
    "Endpoint",
    "Gateway",
    "Line",
    "Model",
    "Replayed",
    "Reply",
    "Usage",
    "clean_reply",
    "client_route",
    "contrast_options",
    "costs_money",
    "count_repetition",
    "is_remote",
    "is_scripted",
    "make_allowance",
    "make_model",
    "make_models",
    "open_endpoint",
    "registered_models",
    "replay_model",
]

if not TYPE_CHECKING:  # a server and stored runs, which few memories need
    __getattr__, __dir__ = names_on_demand(
        __name__,
        {
            ".gateway": "GATEWAY Endpoint Gateway Line client_route is_scripted open_endpoint",
            "._scores": "contrast_options",
            ".recorded": "Replayed replay_model",
        },
    )
