"""In which order records could arrive."""

from routeprism.orders._arrivals import (
    ARRIVALS,
    MOST_LISTED,
    ArrivalModel,
    Arrivals,
    every_permutation,
    parse_arrival,
    parse_schedule,
)
from routeprism.orders._processes import Order, Prefix, completions, mixed_extension
from routeprism.orders._schedules import (
    FORWARD,
    ONE_BY_ONE,
    PROCEDURES,
    SCHEDULES,
    Procedure,
    Schedule,
    name_reference,
    names_procedure,
)

__all__ = [
    "ARRIVALS",
    "FORWARD",
    "MOST_LISTED",
    "ONE_BY_ONE",
    "PROCEDURES",
    "SCHEDULES",
    "ArrivalModel",
    "Arrivals",
    "Order",
    "Prefix",
    "Procedure",
    "Schedule",
    "completions",
    "every_permutation",
    "mixed_extension",
    "name_reference",
    "names_procedure",
    "parse_arrival",
    "parse_schedule",
]
