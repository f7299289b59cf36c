"""Everything known about a number: its plain name, its range, and which direction is better."""

from routeprism.quantities._quantity import Alternative, Quantity, observe_nothing
from routeprism.quantities._registry import (
    built_in_quantities,
    find_quantity,
    list_quantities,
    registered_quantities,
)

__all__ = [
    "Alternative",
    "Quantity",
    "built_in_quantities",
    "find_quantity",
    "list_quantities",
    "observe_nothing",
    "registered_quantities",
]
