"""Who can be asked: answer models behind one small protocol."""

from routeprism.models._contracts import Ask, Model, Reply, Usage
from routeprism.models._registry import make_model, make_models, registered_models

__all__ = ["Ask", "Model", "Reply", "Usage", "make_model", "make_models", "registered_models"]
