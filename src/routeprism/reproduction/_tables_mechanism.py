"""Tables of the operations of focal, apart and together, by schedule."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import (
    COORDINATES,
    NO_ANSWERS,
    SCHEDULE_COLUMNS,
    machinery,
)

__all__ = ["TABLES"]

_ARMS = {
    "Both*": {"policy": "focal"},
    "Survivor*": {"policy": "survivor"},
    "Clust*": {"policy": "clustering"},
}
_SCHEDULE_ROWS = {
    "* | Replay": {"schedule": "replay"},
    "* | Half-swap": {"schedule": "half-swap"},
    "* | Odd-even": {"schedule": "odd-even"},
}
_OPERATIONS = {
    "Both*": {"policy": "focal", "arm": "clustering+survivor"},
    "Survivor*": {"policy": "survivor", "arm": "survivor"},
    "Clust*": {"policy": "clustering", "arm": "clustering"},
}
_MECHANISM = (
    "routeprism audit personamem --policy focal --mechanism -s replay -s half-swap -s odd-even "
    "--model MODEL --mask primary=FILE"
)
_STAGED = machinery(_MECHANISM, source="mechanism", stratum="fact-recall", filler="A")
_ALL = machinery(_MECHANISM, NO_ANSWERS, source="mechanism", filler="A")

TABLES = (
    Table(
        "tab:mechanism-localization",
        "operations by schedule on the primary questions",
        _STAGED,
        rows=_ARMS,
        columns={
            **SCHEDULE_COLUMNS,
            "* / H": {"quantity": "H"},
            "* / Δ": {"quantity": "Delta"},
            "* / Changed": {"quantity": "V_changed_count", "filler": ""},
        },
    ),
    Table(
        "tab:full-mechanism-schedule",
        "operations against the canonical arm, 589 questions",
        _ALL,
        rows={**_OPERATIONS, **_SCHEDULE_ROWS},
        columns=COORDINATES,
    ),
    Table(
        "tab:semantic-mechanism-dd",
        "operations against the canonical arm, primary questions",
        _STAGED,
        rows={**_OPERATIONS, **_SCHEDULE_ROWS},
        columns=COORDINATES,
    ),
    Table(
        "tab:semantic-mechanism-direct",
        "each operation, primary questions",
        _STAGED,
        rows={**_ARMS, **_SCHEDULE_ROWS},
        columns={**COORDINATES, "Changed": {"quantity": "V_changed_count", "filler": ""}},
    ),
)
