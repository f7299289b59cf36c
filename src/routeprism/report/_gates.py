"""Gates that a run keeps as it is: what a build could hold the memory to from now on."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from routeprism.report._html import Markup, fragment, tag
from routeprism.runs import EstimateRow

__all__ = ["gate_commands", "gate_section"]

_GATES = (
    ("routes", "J", "estimate", ">="),
    ("retention", "recall.exposed.route", "estimate", ">="),
    ("restoration", "restored-absent", "upper", "<="),
    ("orders", "order_change", "estimate", "<="),
)
"""What is worth holding: overlap, support that is left, what restoring would give, change."""
_MOST = 8
"""For how many policies commands are shown."""


def gate_commands(
    rows: Sequence[EstimateRow], directory: Path, aside: Collection[str] = ()
) -> list[str]:
    """Write a `check` for each policy, with limits that this run's own numbers keep."""
    gates: dict[str, list[str]] = {}
    for experiment, quantity, limit, sign in _GATES:
        meant = [
            row
            for row in rows
            if (row.experiment, row.quantity, row.stratum, row.mask)
            == (experiment, quantity, "all", "")
        ]
        arm = ",arm=" if any(row.arm for row in meant) else ""
        values: dict[tuple[str, str], list[float | None]] = {}
        for row in meant:
            if not row.arm:
                held = values.setdefault((row.policy, row.schedule), [])
                held.append(getattr(row, limit))
        for (policy, schedule), held in values.items():
            known = [value for value in held if value is not None]
            # One unit alone has no interval, and a comparator keeps everything.
            if policy in aside or len(known) < len(held) or policy.startswith("source-order("):
                continue
            worst = min(known) if sign == ">=" else max(known)
            bound = (math.floor if sign == ">=" else math.ceil)(round(worst * 100, 6)) / 100
            if bound == (0 if sign == ">=" else 1):  # anything keeps that
                continue
            where = f"policy={policy},schedule={schedule},experiment={experiment}{arm}"
            spoken = quantity if limit == "estimate" else f"{quantity}.{limit}"
            gates.setdefault(policy, []).append(f"{where}:{spoken}{sign}{bound:g}")
    return [
        shlex.join(
            ["routeprism", "check", str(directory)]
            + [part for gate in own for part in ("--gate", gate)]
        )
        for own in list(gates.values())[:_MOST]
    ]


def gate_section(
    rows: Sequence[EstimateRow], directory: Path, aside: Collection[str] = ()
) -> Markup | None:
    """Show how a build holds the memory to what it does now; `aside` are arms of others."""
    commands = gate_commands(rows, directory, aside)
    if not commands:
        return None
    return fragment(
        [
            tag(
                "p",
                "This run keeps these limits, which are its own numbers rounded. In a build they "
                "fail when another version of the memory does worse: exit code 1, with the "
                "questions. ",
                tag("code", "--junit FILE"),
                " and ",
                tag("code", "--github"),
                " write it where a build shows it; ",
                tag("code", "--baseline RUN"),
                " compares with this run question by question.",
            ),
            *(tag("pre", tag("code", command), tabindex="0") for command in commands),
        ]
    )
