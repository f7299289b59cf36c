"""Who can be asked: answer models behind one small protocol."""

from routeprism.models._contracts import Ask, Model, Reply, Usage

__all__ = ["Ask", "Model", "Reply", "Usage"]
