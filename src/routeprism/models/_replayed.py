"""A model whose replies come from a cassette: it is never asked itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routeprism.models._contracts import Ask, Model, Reply
from routeprism.models.recorded import Recorded
from routeprism.runs import Cassette

__all__ = ["Replayed", "replay_model"]


@dataclass(frozen=True, slots=True)
class Replayed:
    """Stands for a model under its name; the run's ledger has the recorded replies."""

    model: Model
    cassette: Cassette

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """The settings of the model, so that the recorded keys are found."""
        return self.model.settings

    @property
    def embedded(self) -> bool:
        """Whether the model is built in; it is not."""
        return self.model.embedded

    @property
    def concurrency(self) -> int:
        """One: the first prompt without a reply ends the call."""
        return 1

    def answer(self, ask: Ask, /) -> Reply:
        """Refuse a prompt that was not recorded."""
        raise self.cassette.refuse(self.name, ask.text)


def replay_model(model: Model, cassette: Cassette | None) -> Model:
    """Put a cassette in the place of a model; built-in models and recorded answers stay."""
    if cassette is None or model.embedded or isinstance(model, (Recorded, Replayed)):
        return model
    return Replayed(model, cassette)
