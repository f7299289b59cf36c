"""In which order records could arrive."""

from routeprism.orders._arrivals import (
    ARRIVALS,
    MOST_LISTED,
    ArrivalModel,
    Arrivals,
    every_permutation,
)
from routeprism.orders._procedures import (
    ONE_BY_ONE,
    PROCEDURES,
    Procedure,
    name_reference,
    names_procedure,
)
from routeprism.orders._processes import Order, Prefix, Process, completions
from routeprism.orders._schedules import FORWARD, SCHEDULES, Schedule
from routeprism.orders._specs import parse_arrival, parse_schedule

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
    "Process",
    "Schedule",
    "completions",
    "every_permutation",
    "name_reference",
    "names_procedure",
    "parse_arrival",
    "parse_schedule",
]
