"""Tables of answers along routes: policies, operations, displays, repeats, readouts."""

from __future__ import annotations

from routeprism.reproduction._cells import Part, Table
from routeprism.reproduction._words import (
    ANSWERS,
    COORDINATES,
    COUNTS,
    LABELLED,
    NO_ANSWERS,
    NO_LABELS,
    NO_STREAMING,
    SCHEDULE_COLUMNS,
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
_POLICIES = machinery(
    "routeprism audit personamem --policy raw --policy focal --policy recent:k=3 "
    "--policy utility:k=3 --comparators --model MODEL --provenance preserved --provenance gated",
    NO_ANSWERS,
    source="policies",
    schedule="replay",
    filler="A",
)
_AGAINST = {"source": "policies", "arm": "ordered-comparator"}
_GATED = {"source": "provenance", "policy": "raw", "arm": "gated-preserved"}
_MEMOCHAT = machinery(
    "routeprism audit personamem --kind fact-recall --policy memochat --model MODEL --draws 7 "
    "--mask primary=FILE",
    source="answers",
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
_REUSE = machinery(
    "routeprism audit personamem --kind fact-recall --policy focal --policy memochat --model MODEL "
    "--draws 2 --filler A --filler B --reuse --readings FILE --labels audited:NAME",
    f"{LABELLED}; {NO_LABELS}",
    source="answers",
    experiment="reuse",
    schedule="replay",
    filler="A+B",
    quantity="H",
)
_STREAMING = machinery(
    "routeprism audit personamem --policy streaming --comparators -s replay -s half-swap "
    "-s odd-even --model MODEL --display source",
    NO_ANSWERS,
    source="held-out",
    filler="A",
)
_ACCURACY: dict[str, Part] = {
    "Chronological*": {"quantity": "accuracy.forward"},
    "Replay / *": {"quantity": "accuracy.route"},
    "Replay accuracy / *": {"quantity": "accuracy.route"},
}
_GOLD = machinery(
    "routeprism screen personamem --kind fact-recall --gold-visible --pass GOLD=MODEL "
    "--gate GOLD --write-mask FILE, then audit or restore with --mask FILE",
    f"{NO_ANSWERS}; its readings are not public",
)
_PAIRS = machinery(
    ANSWERS, schedule="replay", source="answers", experiment="readouts", filler="A+B"
)

TABLES = (
    Table(
        "tab:main-route",
        "focal and Recent-3 on the primary questions",
        _ROUTES,
        rows={"Focal": {"policy": "focal"}, "Recent-3": {"policy": "recent"}},
        columns=COORDINATES,
    ),
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
        "tab:policy-context-effects",
        "MemoChat: construction and display",
        _DISPLAY,
        rows={"M-R": {"arm": "construction"}, "M-D": {"arm": "display"}},
        columns=COORDINATES,
    ),
    Table(
        "tab:semantic-crossmodel-route",
        "focal routes under other combinations of readings",
        machinery(ANSWERS),
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
            **_ACCURACY,
            "Coverage / Users": {"number": "units"},
            "Coverage / Targets": {"number": "queries"},
            "Coverage / Multi": {"quantity": "count.several_targets", "filler": ""},
            "Changed pairs / Δ S": {"quantity": "V_changed_count", "filler": ""},
            "Changed pairs / Δ C": {"quantity": "C_changed_count", "filler": ""},
        },
    ),
    Table(
        "tab:full-primary",
        "all conditions on 589 questions",
        _POLICIES,
        rows={
            "Raw": {"source": "provenance", "policy": "raw"},
            "Canonical": {"policy": "focal-source"},
            "Arrival route": {"policy": "focal"},
            **{
                name: {"source": "provenance", "policy": "raw", "arm": name.lower()}
                for name in ("Preserved", "Gated", "Neutral", "Placebo")
            },
        },
        columns=COORDINATES,
    ),
    Table(
        "tab:paired-contrasts",
        "contrasts between conditions",
        _POLICIES,
        rows={
            "Exchangeable*": {**_AGAINST, "policy": "focal", "stratum": "fact-recall"},
            "Omnibus*": {**_AGAINST, "policy": "focal"},
        },
        columns={
            **COORDINATES,
            "Chronological accuracy contrast / *": {
                **_GATED,
                "quantity": "Gamma.accuracy.forward",
            },
            "Replay accuracy contrast / *": {**_GATED, "quantity": "Gamma.accuracy.route"},
        },
    ),
    Table(
        "tab:question-strata-main",
        "contrasts by kind of question",
        _POLICIES,
        rows={
            "Exchangeable": {**_AGAINST, "policy": "focal", "stratum": "fact-recall"},
            "Residual": {**_AGAINST, "policy": "focal", "stratum": "rest"},
            "all": {"source": "provenance", "policy": "raw", "stratum": "temporal"},
        },
        columns={
            **COORDINATES,
            "Raw reversal / H / *": {"quantity": "H"},
            "Raw reversal / Δ / *": {"quantity": "Delta"},
            "Gated minus preserved / Γ_H* / *": {
                "quantity": "Gamma.H",
                "arm": "gated-preserved",
            },
            "Gated minus preserved / Γ_Δ* / *": {
                "quantity": "Gamma.Delta",
                "arm": "gated-preserved",
            },
        },
        cells={
            ("*", column): {
                "kind": "data",
                "source": "personamem",
                "policy": "lexical",
                "quantity": "J",
                "number": number,
                "arm": "",
                "filler": "",
            }
            for column, number in (("Queries", "queries"), ("Users", "units"))
        },
    ),
    Table(
        "tab:semantic-sensitivity",
        "two-draw focal routes by reading",
        {**_ROUTES, "policy": "focal"},
        columns={**COUNTS, **COORDINATES},
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
        "tab:secondary-appendix",
        "contrasts of further policies with their comparators",
        {**_POLICIES, "arm": "ordered-comparator"},
        rows={
            "Overlap-IDF*": {"policy": "focal"},
            "Recent*": {"policy": "recent"},
            "Utility*": {"policy": "utility"},
            "Provenance*": _GATED,
        },
        columns=COORDINATES,
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
        "tab:fresh-only",
        "residuals without the first answers",
        {**_ROUTES, "arm": "fresh"},
        rows={**_TRACES, "M-C": {"policy": "memochat"}},
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
        "tab:crossfit-policy",
        "streaming against its comparator, by schedule",
        {**_STREAMING, "policy": "streaming", "arm": "ordered-comparator"},
        rows={
            "Replay": {"schedule": "replay"},
            "Half-swap": {"schedule": "half-swap"},
            "Odd-even": {"schedule": "odd-even"},
        },
        columns=COORDINATES,
    ),
    Table(
        "tab:repeat-decomposition",
        "streaming: changed selections, and residuals of repeated answers",
        machinery(
            "routeprism audit personamem --policy streaming --comparators --model MODEL --draws 3",
            NO_ANSWERS,
        ),
        cells={
            (row, "Changed fraction"): {
                "kind": "data",
                "source": "streaming",
                "policy": policy,
                "schedule": "replay",
                "quantity": "V_changed_count",
                "number": "share",
                "reason": NO_STREAMING,
            }
            for row, policy in (
                ("Arrival route", "streaming"),
                ("Source stable", "streaming-source"),
                ("Arrival minus source", "streaming"),
            )
        },
    ),
    Table(
        "tab:canonical-serialization",
        "streaming, the same selections in source order",
        {
            **_STREAMING,
            "policy": "streaming",
            "schedule": "replay",
            "experiment": "display",
            "arm": "serialisation:source",
        },
        rows={
            "Selection changed*": {"mask": "selection-changed"},
            "Selection unchanged*": {"mask": "selection-unchanged"},
        },
        columns=COORDINATES,
    ),
    Table(
        "tab:canonical-repeat",
        "repeated answers where streaming's selections differ",
        machinery(
            "routeprism audit personamem --policy streaming --model MODEL --draws 2 "
            "--display source",
            f"{NO_ANSWERS}; streaming changes other pairs here",
        ),
    ),
    Table(
        "tab:external-memochat",
        "MemoChat on the primary questions",
        _MEMOCHAT,
        columns={
            **COORDINATES,
            **_ACCURACY,
            "Changed pairs / Source changes": {"quantity": "V_changed_count", "filler": ""},
            "Changed pairs / Context changes": {"quantity": "C_changed_count", "filler": ""},
            "Changed pairs / Queries": {"quantity": "J", "filler": "", "number": "queries"},
        },
    ),
    Table(
        "tab:external-memochat-repeat",
        "MemoChat, repeated answers",
        _MEMOCHAT,
        columns={**COORDINATES, **_ACCURACY},
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
            "J / *": {"quantity": "J"},
            "Changed pairs / Signature changes": {"quantity": "I_changed_count"},
            "Changed pairs / Source changes": {"quantity": "V_changed_count"},
            "Changed pairs / Context changes": {"quantity": "C_changed_count"},
            "Changed pairs / Queries": {"quantity": "J", "number": "queries"},
        },
    ),
    Table(
        "tab:diagnostic-readouts",
        "what simpler readouts miss or add beside full-prompt identity",
        _PAIRS,
        rows={
            "Focal": {"policy": "focal"},
            "MemoChat": {"policy": "memochat", "filler": "A"},
            "A-MEM": {"source": ""},
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
    Table("tab:task-preservation", "an earlier reading that saw the target", _GOLD),
    Table("tab:fresh-task-repeat", "repeated answers where the task is preserved", _GOLD),
    Table("tab:fresh-task-accuracy", "restoration where the task is preserved", _GOLD),
    Table("tab:fresh-task-contrasts", "contrasts of that restoration", _GOLD),
    Table("tab:fresh-task-crossfit", "streaming where the task is preserved", _GOLD),
)
