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
from routeprism.orders._names import (
    describe_arrival,
    list_arrivals,
    locate_base,
    name_base,
    overlaps_writes,
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
    "describe_arrival",
    "draw_jittered",
    "draw_late_copies",
    "every_permutation",
    "mixed_extension",
    "mixed_jitter",
    "mixed_redelivery",
    "list_arrivals",
    "locate_base",
    "name_base",
    "name_reference",
    "names_procedure",
    "overlaps_writes",
    "parse_arrival",
    "parse_schedule",
]
