"""Tables of answers along routes: profiles, subsets, repeats, reuse and readouts."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import (
    ACCURACY,
    ANSWERS,
    COORDINATES,
    COUNTS,
    GOLD,
    LABELLED,
    NO_LABELS,
    machinery,
)

__all__ = ["TABLES"]

_ROUTES = machinery(ANSWERS, schedule="replay", source="answers", filler="A", quantity="H")
_TRACES = {
    "F-EA": {"policy": "focal"},
    "F-EB": {"policy": "focal", "filler": "B"},
    "R-EA": {"policy": "recent"},
    "R-EB": {"policy": "recent", "filler": "B"},
}
_REUSE = machinery(
    "routeprism audit personamem --kind fact-recall --policy focal --policy memochat --model MODEL "
    "--draws 2 --filler A --filler B --reuse --readings FILE --labels audited:NAME",
    f"{LABELLED}; {NO_LABELS}",
    source="reuse",
    experiment="reuse",
    schedule="replay",
    filler="A+B",
    quantity="H",
)
_PAIRS = machinery(
    ANSWERS, schedule="replay", source="answers", experiment="readouts", filler="A+B"
)
_SAME = "no readings are at hand: rows that differ by them alone rest on the same questions here"
_PRESERVED = {**_ROUTES, "policy": "focal", **GOLD}

TABLES = (
    Table(
        "tab:main-route",
        "focal and Recent-3 on the primary questions",
        _ROUTES,
        rows={"Focal": {"policy": "focal"}, "Recent-3": {"policy": "recent"}},
        columns=COORDINATES,
    ),
    Table(
        "tab:semantic-crossmodel-route",
        "focal routes under other combinations of readings",
        {**_ROUTES, "policy": "focal"},
        columns={**COUNTS, **COORDINATES},
        note=_SAME,
    ),
    Table(
        "tab:option-sensitivity",
        "focal without questions that have two equal options",
        {**_ROUTES, "policy": "focal", "mask": "distinct-options"},
        rows={"B": {"filler": "B"}},
        columns=COORDINATES,
    ),
    Table(
        "tab:state-transfer-support",
        "other questions asked of one state (also tab:transfer-main)",
        {**_REUSE, "policy": "focal"},
        rows={
            "Support present": {"arm": "support-changed"},
            "Support absent": {"arm": "support-absent"},
        },
        columns={**COUNTS, **COORDINATES},
        cells={("Aligned minus absent", "*"): {"quantity": "changed-absent.Delta_rep"}},
    ),
    Table(
        "tab:external-memochat-transfer",
        "other questions asked of one MemoChat state",
        {**_REUSE, "policy": "memochat"},
        columns={
            **COORDINATES,
            **ACCURACY,
            "Coverage / Users": {"number": "units"},
            "Coverage / Targets": {"number": "queries"},
            "Coverage / Multi": {"quantity": "count.several_targets", "filler": ""},
            "Changed pairs / Δ S": {"quantity": "V_changed_count", "filler": ""},
            "Changed pairs / Δ C": {"quantity": "C_changed_count", "filler": ""},
        },
    ),
    Table(
        "tab:semantic-sensitivity",
        "two-draw focal routes by reading",
        {**_ROUTES, "policy": "focal"},
        columns={**COUNTS, **COORDINATES},
        note=_SAME,
    ),
    Table(
        "tab:support-localization",
        "focal answers where support changed and where it did not",
        machinery(
            "routeprism audit personamem --kind fact-recall --policy focal --model MODEL "
            "--readings FILE --labels audited:NAME --mask primary=FILE",
            f"{LABELLED}; {NO_LABELS}",
            source="answers",
            schedule="replay",
            policy="focal",
            filler="A",
            quantity="H",
        ),
        rows={"* | Changed": {"arm": "support-changed"}, "* | Pres*": {"arm": "support-preserved"}},
        columns={**COUNTS, **COORDINATES},
        cells={
            ("* | Difference", "H / *"): {"quantity": "changed-preserved.H"},
            ("* | Difference", "Δ / *"): {"quantity": "changed-preserved.Delta"},
            ("* | Difference", "Users"): {"quantity": "changed-preserved.H"},
        },
    ),
    Table(
        "tab:fresh-only",
        "residuals without the first answers",
        {**_ROUTES, "arm": "fresh"},
        rows={**_TRACES, "M-C": {"source": "memochat", "policy": "memochat"}},
        columns={
            **COORDINATES,
            "m": {
                "kind": "not derivable",
                "reason": "how often answers were drawn is a choice, not a result",
            },
        },
    ),
    Table(
        "tab:direct-route-details",
        "single-draw and repeated profiles of both fillers",
        _ROUTES,
        rows=_TRACES,
        columns={f"* / {name}": part for name, part in COORDINATES.items() if " / " not in name},
    ),
    Table(
        "tab:exact-token-control",
        "focal with equal prompt lengths",
        {**_ROUTES, "policy": "focal"},
        columns=COORDINATES,
    ),
    Table("tab:direct-trace", "focal, both fillers", _ROUTES, rows=_TRACES, columns=COORDINATES),
    Table(
        "tab:exact-repeat-estimands",
        "focal, repeated answers, both fillers",
        _ROUTES,
        rows=_TRACES,
        columns=COORDINATES,
    ),
    Table(
        "tab:exact-transitions",
        "focal: right and wrong answers on the two routes",
        {**_ROUTES, "policy": "focal"},
        rows={"Matched B": {"filler": "B"}},
        columns={
            f"Forward {before} / Replay {after}": {
                "quantity": f"count.transition.{before[0].upper()}{after[0].upper()}"
            }
            for before in ("correct", "incorrect")
            for after in ("correct", "incorrect")
        },
    ),
    Table(
        "tab:diagnostic-readouts",
        "what simpler readouts miss or add beside full-prompt identity",
        _PAIRS,
        rows={
            "Focal": {"policy": "focal"},
            "MemoChat": {"source": "memochat", "policy": "memochat", "filler": "A"},
            "A-MEM": {"source": "evolved", "policy": "amem", "filler": "A"},
        },
        columns={
            "Pairs": {"quantity": "count.pairs"},
            "Changed": {"quantity": "count.changed_prompts"},
            **{
                f"{readout} / {kind}": {"quantity": f"{kind.lower()}.{name}"}
                for readout, name in (
                    ("Source set", "sources"),
                    ("Answer", "answer"),
                    ("Correctness", "correctness"),
                )
                for kind in ("Miss", "Extra")
            },
        },
    ),
    Table(
        "tab:task-preservation",
        "an earlier reading that saw the target",
        _PRESERVED,
        panels={"2": {"filler": "B"}},
        columns={**COUNTS, **COORDINATES},
        note=_SAME,
    ),
    Table(
        "tab:fresh-task-repeat",
        "repeated answers where the task is preserved",
        _PRESERVED,
        rows={
            "Focal B*": {"filler": "B"},
            "State reuse*": {"source": "reuse", "experiment": "reuse", "filler": "A+B"},
        },
        columns={**COUNTS, **COORDINATES},
        note=_SAME,
    ),
)
