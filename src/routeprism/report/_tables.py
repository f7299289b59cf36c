"""The tables of a run, each made once from its estimate rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from routeprism.report._reading_tables import admissible_table, agreement_table, reading_table
from routeprism.report._table import Found, Shown, Table, grouped, shown_interval
from routeprism.runs import COLUMNS, EstimateRow

__all__ = [
    "CONDITIONS",
    "CONTRASTS",
    "DESIGNS",
    "MAIN",
    "MECHANISM",
    "TABLES",
    "answer_table",
    "eligibility_table",
    "estimate_table",
    "evidence_table",
    "layer_table",
    "mechanism_table",
    "replication_table",
    "restoration_table",
    "tables",
]


def _share(found: Found, quantity: str) -> str:
    count = found.get(f"{quantity}_count")
    if count is None or count.estimate is None:
        return ""
    return Shown(f"{count.estimate:.0f} of {count.queries}", count)


def layer_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show at which layers order showed, for each policy and schedule."""
    routes = [row for row in rows if row.experiment == "routes" and row.policy]
    traced = grouped([row for row in routes if not row.model], ("policy", "schedule"))
    models = list(dict.fromkeys(row.model for row in routes if row.model))
    answered = grouped([row for row in routes if row.model], ("policy", "schedule", "model"))
    cells = []
    for (policy, schedule), found in traced.items():
        if "J" not in found:
            continue
        asked = [answered.get((policy, schedule, model), {}) for model in models]
        cells.append(
            (
                policy,
                schedule,
                _share(found, "retained_changed"),
                _share(found, "V_changed"),
                _share(found, "C_changed"),
                _share(found, "I_changed"),
                *(shown_interval(one.get("H")) for one in asked),
                shown_interval(found["J"]),
            )
        )
    if not cells:
        return None
    answers = tuple(f"answers differ ({model})" for model in models)
    return Table(
        "layers",
        "Where order enters",
        "Pairs of routes that differ, layer by layer: retained records, exposed sources (V), "
        "compiled context (C), internal state (I), and the share whose formal answers differ (H). "
        "J is the overlap of exposed sources: 1 means the same.",
        ("policy", "schedule", "retained", "sources", "context", "state", *answers, "J"),
        tuple(cells),
        names=2,
    )


def evidence_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show how much of the support each route still has."""
    retention = [row for row in rows if row.experiment == "retention"]
    cells = [
        (
            policy,
            schedule,
            labels,
            *(
                shown_interval(found.get(f"recall.{where}.{side}"))
                for where in ("retained", "exposed")
                for side in ("forward", "route")
            ),
            shown_interval(found.get("J_T")),
        )
        for (policy, schedule, labels), found in grouped(
            retention, ("policy", "schedule", "labels")
        ).items()
        if any(name.startswith("recall.") for name in found)
    ]
    if not cells:
        return None
    return Table(
        "evidence",
        "What is left of the evidence",
        "Share of the support records that each route retains and exposes, and J^T, the overlap "
        "of exposed support. The label source says where the support labels come from.",
        (
            "policy",
            "schedule",
            "labels",
            "retained, forward",
            "retained, other order",
            "exposed, forward",
            "exposed, other order",
            "J^T",
        ),
        tuple(cells),
        names=3,
    )


def answer_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show what the answers did."""
    routes = [row for row in rows if row.experiment == "routes" and row.model]
    cells = []
    for (policy, schedule, model), found in grouped(
        routes, ("policy", "schedule", "model")
    ).items():
        quantities = ("H", "Delta", "D_res", "Delta_rep", "accuracy.forward", "accuracy.route")
        shown = [shown_interval(found.get(quantity)) for quantity in quantities]
        moves = [shown_interval(found.get(f"count.transition.{way}")) for way in _WAYS]
        if any(shown):
            cells.append((policy, schedule, model, *shown, *moves))
    if not cells:
        return None
    return Table(
        "answers",
        "What the answers do",
        "H: formal answers differ; Δ: change of correctness; D_res: disagreement beyond the "
        "model's own sampling; Δ_rep: change of accuracy over all draws. Transitions of the formal "
        "answers, forward then the other order: C correct, I incorrect.",
        (
            "policy",
            "schedule",
            "model",
            "H",
            "Δ",
            "D_res",
            "Δ_rep",
            "accuracy, forward",
            "accuracy, other order",
            *_WAYS,
        ),
        tuple(cells),
        names=3,
    )


_WAYS = ("CC", "CI", "IC", "II")


DESIGNS = ("", "bundle", "identity-swap")
"""Arms of restoration that exchange records: one, several, or support for support."""


CONDITIONS = ("present", "absent", "restored", "replacement")


CONTRASTS = (
    "restored-absent",
    "restored-replacement",
    "restored-present",
    "present-absent",
    "replacement-absent",
)


def restoration_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show the four conditions and their contrasts."""
    restored = [row for row in rows if row.experiment == "restoration" and row.arm in DESIGNS]
    cells = []
    names = ("policy", "schedule", "model", "arm")
    for (policy, schedule, model, arm), found in grouped(restored, names, arms=True).items():
        if "restored-absent" not in found:
            continue
        one = found["restored-absent"]
        cells.append(
            (
                policy,
                schedule,
                model,
                arm or "single record",
                str(one.queries),
                *(shown_interval(found.get(f"accuracy.{name}")) for name in CONDITIONS),
                *(shown_interval(found.get(name)) for name in CONTRASTS[:3]),
            )
        )
    if not cells:
        return None
    return Table(
        "restoration",
        "Does the displaced record matter?",
        "Accuracy with the record present, absent, put back (restored), and with a matched record "
        "without support in its place (replacement); differences are paired within units.",
        (
            "policy",
            "schedule",
            "model",
            "design",
            "pairs",
            *CONDITIONS,
            *(name.replace("-", " − ") for name in CONTRASTS[:3]),
        ),
        tuple(cells),
        names=4,
    )


def eligibility_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show how many pairs were eligible, and why the others were not."""
    counted = [
        row
        for row in rows
        if row.experiment == "restoration" and not row.model and row.quantity.startswith("count.")
    ]
    cells = [
        (
            policy,
            schedule,
            arm or "single record",
            quantity.removeprefix("count."),
            shown_interval(row),
        )
        for (policy, schedule, arm), found in grouped(
            [row for row in counted if row.arm in DESIGNS],
            ("policy", "schedule", "arm"),
            arms=True,
        ).items()
        for quantity, row in found.items()
        if row.estimate is not None
    ]
    if not cells:
        return None
    return Table(
        "eligibility",
        "Which pairs could be restored",
        "Decided by labels and exposed sources alone, before any answer existed.",
        ("policy", "schedule", "design", "verdict", "pairs"),
        tuple(cells),
        names=4,
    )


MECHANISM = ("J", "C_changed", "H", "Delta", "D_res", "Delta_rep")
"""What operations are compared by; the other quantities are among all estimates."""


def mechanism_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show what each order-dependent operation does."""
    cells = [
        (row.policy, row.schedule, row.model, row.arm, row.quantity, shown_interval(row))
        for row in rows
        if row.experiment == "mechanism"
        and row.stratum == "all"
        and not row.mask
        and row.quantity.partition(".")[2] in MECHANISM
    ]
    if not cells:
        return None
    return Table(
        "mechanism",
        "Which operation does it",
        "δ^op: the policy against the arm in which the named operations follow source order; the "
        "interaction is what both together do beyond the sum of each.",
        ("policy", "schedule", "model", "operations", "quantity", "estimate"),
        tuple(cells),
        names=5,
    )


MAIN = ("H", "D_res", "Delta_rep", "restored-absent", "restored-replacement")
"""What is compared between models."""


def replication_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show the main answer quantities model by model."""
    asked = [row for row in rows if row.model and row.policy and row.experiment != "support"]
    if len({row.model for row in asked}) < 2:
        return None
    cells = []
    for (policy, schedule, model), found in grouped(asked, ("policy", "schedule", "model")).items():
        shown = [shown_interval(found.get(quantity)) for quantity in MAIN]
        if any(shown):
            cells.append((policy, schedule, model, *shown))
    return Table(
        "replication",
        "Model by model",
        "The same prompts read by different models.",
        (
            "policy",
            "schedule",
            "model",
            "H",
            "D_res",
            "Δ_rep",
            "restored − absent",
            "restored − replacement",
        ),
        tuple(sorted(cells, key=lambda row: row[:2])),
        names=3,
    )


def estimate_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show every number, column by column, leaving out columns that are empty throughout."""
    names = [
        name
        for name in COLUMNS
        if name not in ("estimate", "lower", "upper", "benchmark", "seed", "unit")
        and any(getattr(row, name) not in ("", None) for row in rows)
    ]
    if not rows:
        return None
    numbers = [name for name in names if name in ("queries", "units", "draws")]
    texts = [name for name in names if name not in numbers]
    return Table(
        "estimates",
        "Every estimate",
        "All rows of estimates.csv. The first column is what routeprism trace RUN --row takes; it "
        "goes from a row to the units, questions and answers behind it.",
        ("row", *texts, "estimate [95 %]", *numbers),
        tuple(
            (
                str(at),
                *(str(getattr(row, name)) for name in texts),
                shown_interval(row),
                *("" if (v := getattr(row, name)) is None else str(v) for name in numbers),
            )
            for at, row in enumerate(rows, start=1)
        ),
        names=len(texts) + 1,
    )


TABLES: tuple[Callable[[Sequence[EstimateRow]], Table | None], ...] = (
    layer_table,
    evidence_table,
    answer_table,
    restoration_table,
    eligibility_table,
    mechanism_table,
    agreement_table,
    admissible_table,
    reading_table,
    replication_table,
    estimate_table,
)
"""Every table, in the order of the report."""


def tables(rows: Sequence[EstimateRow]) -> list[Table]:
    """Make every table that these rows allow."""
    return [table for make in TABLES if (table := make(rows)) is not None]
