"""In which order records could arrive."""

from routeprism.orders._schedules import (
    FORWARD,
    SCHEDULES,
    Schedule,
    parse_schedule,
)

__all__ = ["FORWARD", "SCHEDULES", "Schedule", "parse_schedule"]
