"""Tables of MemoChat and A-MEM."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import (
    ACCURACY,
    COORDINATES,
    LABELLED,
    machinery,
)

__all__ = ["TABLES"]

_MEMOCHAT = machinery(
    "routeprism audit personamem --kind fact-recall --policy memochat --model MODEL --draws 7 "
    "--mask primary=FILE",
    source="memochat",
    policy="memochat",
    schedule="replay",
    filler="A",
)
_DISPLAY = machinery(
    "routeprism audit personamem --kind fact-recall --policy memochat --model MODEL --draws 2 "
    "--display reversed --mask primary=FILE",
    source="display",
    experiment="display",
    policy="memochat",
    schedule="replay",
    filler="A",
)
_EVOLVED = {"source": "evolved", "stratum": "all", "filler": "A"}

TABLES = (
    Table(
        "tab:policy-context-effects",
        "MemoChat: construction and display",
        _DISPLAY,
        rows={"M-R": {"arm": "construction"}, "M-D": {"arm": "display"}},
        columns=COORDINATES,
    ),
    Table(
        "tab:memochat-display",
        "MemoChat: residuals of construction and display",
        {**_DISPLAY, "quantity": "D_res"},
        rows={
            "Display": {"arm": "display"},
            "Construction, native layout": {"arm": "construction:native"},
            "Construction, reversed layout": {"arm": "construction:reversed"},
            "Construction, mean layouts": {"arm": "construction"},
            "Construction minus display": {
                "arm": "construction-display",
                "quantity": "Gamma.D_res",
            },
        },
    ),
    Table(
        "tab:external-memochat",
        "MemoChat on the primary questions",
        _MEMOCHAT,
        columns={
            **COORDINATES,
            **ACCURACY,
            "Changed pairs / Source changes": {"quantity": "V_changed_count", "filler": ""},
            "Changed pairs / Context changes": {"quantity": "C_changed_count", "filler": ""},
            "Changed pairs / Queries": {"quantity": "J", "filler": "", "number": "queries"},
        },
    ),
    Table(
        "tab:external-memochat-repeat",
        "MemoChat, repeated answers",
        _MEMOCHAT,
        columns={**COORDINATES, **ACCURACY},
    ),
    Table(
        "tab:external-amem",
        "A-MEM on the primary questions",
        machinery(
            "routeprism audit personamem --kind fact-recall --policy amem:model=MODEL "
            "--model MODEL --mask primary=FILE",
            f"{LABELLED}; its notes were evolved by a model",
            source="amem",
            policy="amem",
            schedule="replay",
            stratum="fact-recall",
        ),
        columns={
            **{name: {**part, **_EVOLVED} for name, part in {**COORDINATES, **ACCURACY}.items()},
            "J / *": {"quantity": "J"},
            "Changed pairs / Signature changes": {"quantity": "I_changed_count"},
            "Changed pairs / Source changes": {"quantity": "V_changed_count"},
            "Changed pairs / Context changes": {"quantity": "C_changed_count"},
            "Changed pairs / Queries": {"quantity": "J", "number": "queries"},
        },
    ),
)
