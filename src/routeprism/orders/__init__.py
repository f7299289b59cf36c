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
from routeprism.orders._processes import Order, Prefix, completions
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
from routeprism.orders._uncounted import (
    draw_jittered,
    draw_late_copies,
    mixed_extension,
    mixed_jitter,
    mixed_redelivery,
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
    "draw_jittered",
    "draw_late_copies",
    "every_permutation",
    "mixed_extension",
    "mixed_jitter",
    "mixed_redelivery",
    "name_reference",
    "names_procedure",
    "parse_arrival",
    "parse_schedule",
]
