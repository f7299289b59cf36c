"""One object with everything known about a number, which every output asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

Observed = TypeVar("Observed")

Alternative = Literal["two-sided", "greater"]
Direction = Literal["higher", "lower", ""]
Emphasis = Literal["headline", "table", ""]
Estimator = Literal["mean", "sum", "difference", "least", "greatest", "p-value", "items"]


def observe_nothing(observed: object) -> None:
    """Observe no value: the value of a quantity that an experiment computes by itself."""


@dataclass(frozen=True, slots=True)
class Quantity(Generic[Observed]):
    """One number observed of a question: of its pair of routes, or of the answers on both.

    Only `name` is required. A quantity with a `value` is computed for every pair; without one, it
    describes a number that an experiment computes.
    """

    name: str
    """Its name in `estimates.csv`."""
    symbol: str = ""
    """Its symbol in the paper."""
    meaning: str = ""
    """Its meaning, in a sentence."""
    zero: str = ""
    """The meaning of 0; empty if it has none."""
    meaning_of_one: str = ""
    """The meaning of 1; empty if it has none."""
    reference: str = ""
    """The definition in the paper."""
    value: Callable[[Observed], float | None] = observe_nothing
    """Its value; None where it does not apply."""
    is_counted: bool = False
    """Whether the number of pairs with value 1 is reported too, as `<name>_count`."""
    plain: str = ""
    """Its name in plain words, which every output prints; by default, its name."""
    better: Direction = ""
    """Which direction is better; empty if neither is by itself."""
    range: tuple[float, float] | None = None
    """The least and the greatest value that is possible; None if it is not known."""
    of: str = "question"
    """What it applies to: a question, pair, pool, order, answer or item."""
    estimator: Estimator = "mean"
    """How a row is computed from its values."""
    weighting: Literal["unit", "question", "order", ""] = ""
    """What counts equally; empty for what the benchmark chooses."""
    alternative: Alternative | Literal[""] = ""
    """The claim that is tested: that it is `greater` than zero, or differs from it; or none."""
    emphasis: Emphasis = "table"
    """Whether `compare` states its change in a sentence, lists it in its table, or does neither."""
    sides: tuple[str, ...] = ()
    """The routes or conditions that it reads; empty for both routes."""
    terms: tuple[str, ...] = ()
    """The two quantities whose difference it is, first minus second; empty if it is none."""
    reads_answers: bool = False
    """Whether it is computed from a model's answers."""
    correctness: Literal["level", "change", ""] = ""
    """Whether it is an accuracy, or a change of one."""
    first_draw: bool = False
    """Whether it reads only the first answer to each prompt."""
    is_profiled: bool = False
    """Whether a report draws it unit by unit."""
    words: tuple[str, ...] = ()
    """Words that people use for it."""
    derivation: str = ""
    """How it is derived from another one, such as `count` or `p_holm`; empty if it is not."""
    derived_from: Quantity[Any] | None = None
    """The quantity that it is derived from."""
    family: str = ""
    """The family that it belongs to, such as `count.notes_differ_{part}`; empty for none."""
    part: str = ""
    """The variable part of its name, if it belongs to a family, such as `eligible`."""

    def __post_init__(self) -> None:
        """Let a quantity without a plain name be called by its name."""
        if not self.plain:
            object.__setattr__(self, "plain", self.name)

    @property
    def is_count(self) -> bool:
        """Whether it is a count, which has no interval and is shown without decimals."""
        return self.estimator == "sum"

    @property
    def is_claim(self) -> bool:
        """Whether runs test it against zero, and adjust its p-value for all their claims."""
        return bool(self.alternative)

    @property
    def base(self) -> Quantity[Any]:
        """The quantity that it is derived from; itself, unless it is derived."""
        return self if self.derived_from is None else self.derived_from
