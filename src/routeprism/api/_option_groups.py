"""Constructors of options, one for each group of the help."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from routeprism.settings import (
    ANSWERS,
    ARRIVALS,
    EXECUTION,
    MONEY,
    OUTPUT,
    STATISTICS,
    option,
)
from routeprism.specs import SIZES

__all__ = [
    "answer_option",
    "arrival_option",
    "limit_options",
    "money_option",
    "output_option",
    "place_option",
    "reply_option",
    "statistic_option",
]


def limit_options(name: str) -> Mapping[str, Any]:
    """Return the smallest and the largest value of a size."""
    least, most = SIZES[name]
    return {"minimum": least, "maximum": most}


answer_option = partial(option, group=ANSWERS)
reply_option = partial(option, group=ANSWERS, needs_model=True)
arrival_option = partial(option, group=ARRIVALS)
statistic_option = partial(option, group=STATISTICS)
money_option = partial(option, group=MONEY, identity=False)
place_option = partial(option, group=EXECUTION, identity=False)
output_option = partial(option, group=OUTPUT, identity=False)
