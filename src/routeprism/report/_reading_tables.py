"""Tables of readings: agreement, what they admit, and how they label."""

from __future__ import annotations

from collections.abc import Sequence

from routeprism.report._table import Shown, Table, grouped, shown_interval
from routeprism.runs import EstimateRow

__all__ = ["admissible_table", "agreement_table", "reading_table"]


def agreement_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show how far readings agree."""
    readings = [row for row in rows if row.experiment in ("screen", "support") and row.arm]
    cells = [
        (
            experiment,
            arm,
            shown_interval(found.get("count.agreed")),
            shown_interval(found.get("count.compared")),
            shown_interval(found["agreement"]),
            shown_interval(found.get("kappa")),
        )
        for (experiment, arm), found in grouped(readings, ("experiment", "arm"), arms=True).items()
        if "agreement" in found
    ]
    if not cells:
        return None
    return Table(
        "agreement",
        "How far readings agree",
        "Share of items on which passes agree, and Cohen's κ, which takes chance out.",
        ("experiment", "passes", "agreed", "compared", "agreement", "κ"),
        tuple(cells),
        names=2,
    )


def admissible_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show how many questions pass each gate: every pass alone, and passes combined by a rule."""
    cells = [
        (row.arm, Shown(f"{row.estimate:.0f} of {row.queries}", row))
        for row in rows
        if (row.experiment, row.quantity) == ("screen", "count.admissible")
        and row.estimate is not None
        and "~" not in row.arm
        and not row.mask
    ]
    if not cells:
        return None
    return Table(
        "admissible",
        "Which questions pass a gate",
        "Questions whose pools may be reordered: by one pass, by both (intersection), by most "
        "(majority) or by all (unanimity).",
        ("gate", "admissible"),
        tuple(cells),
    )


def reading_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Show what each pass found."""
    cells = [
        (
            row.experiment,
            row.arm,
            row.model,
            row.quantity.removeprefix("count."),
            shown_interval(row),
        )
        for row in rows
        if row.experiment in ("screen", "support")
        and row.arm
        and not row.policy
        and not row.mask
        and row.quantity.startswith("count.")
        and "~" not in row.arm
        and "(" not in row.arm
    ]
    if not cells:
        return None
    return Table(
        "readings",
        "What each pass found",
        "Labels by pass.",
        ("experiment", "pass", "read by", "label", "number"),
        tuple(cells),
        names=4,
    )
