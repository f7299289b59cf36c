"""In which order records could arrive."""

from routeprism.orders._arrivals import ARRIVALS, LISTED, ArrivalModel, Arrivals, every_permutation
from routeprism.orders._named import parse_arrival, parse_schedule
from routeprism.orders._processes import Order, Prefix, Process, completions
from routeprism.orders._schedules import FORWARD, SCHEDULES, Schedule

__all__ = [
    "ARRIVALS",
    "FORWARD",
    "LISTED",
    "SCHEDULES",
    "ArrivalModel",
    "Arrivals",
    "Order",
    "Prefix",
    "Process",
    "Schedule",
    "completions",
    "every_permutation",
    "parse_arrival",
    "parse_schedule",
]
