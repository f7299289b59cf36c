"""Models that answer prompts, behind one small protocol."""

from routeprism.models._allowance import (
    Allowance,
    costs_money,
    count_repetition,
    is_remote,
    make_allowance,
)
from routeprism.models._contracts import Ask, Model, Reply, Usage
from routeprism.models._endpoints import Endpoint, is_scripted, open_endpoint
from routeprism.models._gateway import Gateway, Line, client_route
from routeprism.models._registry import make_model, make_models, registered_models
from routeprism.models._replayed import replay_model
from routeprism.models._replies import clean_reply

__all__ = [
    "Allowance",
    "Ask",
    "Endpoint",
    "Gateway",
    "Line",
    "Model",
    "Reply",
    "Usage",
    "clean_reply",
    "client_route",
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
