"""Models that answer prompts, behind one small protocol."""

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
from routeprism.models._scores import contrast_options
from routeprism.models.recorded import Replayed, replay_model

__all__ = [
    "ALLOWANCE",
    "Allowance",
    "Ask",
    "Model",
    "Replayed",
    "Reply",
    "Usage",
    "clean_reply",
    "contrast_options",
    "costs_money",
    "count_repetition",
    "is_remote",
    "make_allowance",
    "make_model",
    "make_models",
    "registered_models",
    "replay_model",
]
