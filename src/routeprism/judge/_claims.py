"""When a number supports a claim, and how large a loss no observation can exclude."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from routeprism.runs import EstimateRow, Rows

P_VALUE, P_ADJUSTED = "p", "p_holm"
"""Prefixes of p-values: of a claim by itself, and adjusted for all claims of the run (Holm)."""
FLOOR = "floor"
"""Flag of estimates of correctness where no answer was right, so that nothing can be concluded."""
RISK = 0.05
"""The risk of any false claim in a run."""
MARGIN = 0.05
"""A difference whose whole interval is within this margin of zero is shown to be small."""


def excludes_zero(row: EstimateRow) -> bool:
    """Whether a row has an interval without zero."""
    return row.lower is not None and row.upper is not None and not row.lower <= 0 <= row.upper


def is_claim_shown(row: EstimateRow, rows: Mapping[str, EstimateRow]) -> bool:
    """Return whether a claim holds: its interval excludes zero, and its adjusted p is small.

    `rows` has the adjusted p-value by quantity, if the claim was tested. D_res and D_build are
    claims only above zero: they cannot be less than zero but by chance.
    """
    one_sided = row.quantity in ("D_res", "D_build")
    if not excludes_zero(row) or (one_sided and (row.estimate or 0.0) <= 0):
        return False
    adjusted = rows.get(f"{P_ADJUSTED}.{row.quantity}")
    return adjusted is None or (adjusted.estimate or 0.0) < RISK


def is_beyond_chance(rows: Rows) -> bool:
    """Whether builds in different orders are shown to differ more than builds in one order.

    `rows` are those of one policy that no model, mask or arm narrows down.
    """
    return any(
        "D_build" in group and is_claim_shown(group["D_build"], group)
        for group in rows.group("schedule").values()
    )


def is_at_floor(row: EstimateRow) -> bool:
    """Whether no answer behind a row is correct."""
    return FLOOR in row.flags.split(";")


def is_small(row: EstimateRow) -> bool:
    """Whether a difference is shown to be small: its whole interval is within the margin."""
    bounds = (row.lower, row.upper)
    return all(bound is not None and abs(bound) <= MARGIN for bound in bounds)


def limit_unseen(units: int) -> float:
    """Return the share of units that may behave differently although none of `units` did.

    It is Clopper and Pearson's upper limit with 95% confidence, 1 - 0.05 ** (1 / units).
    """
    return 1.0 - RISK ** (1.0 / units) if units else 1.0


def count_unreadable(find: Callable[[str], EstimateRow | None], side: str) -> tuple[int, int]:
    """Count the answers of one side that cannot be read, and all its answers."""
    row = find(f"count.no_answer.{side}")
    if row is None:
        return 0, 0
    draws = (row.queries or 0) * (row.draws or 0) * len(row.filler.split("+"))
    return int(row.estimate or 0), draws
