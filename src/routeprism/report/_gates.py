"""Gates that a build can check a memory against: useful limits, and whether this run keeps them."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.experiments.severity import describe_arrival, name_base
from routeprism.report._html import Markup, fragment, tag
from routeprism.runs import Rows

MOST_LOST = 0.05
"""The share of questions that may lose evidence under arrivals that really happen."""
LEAST_OVERLAP = 0.9
"""The overlap with source order that a memory without labels should keep."""


@dataclass(frozen=True, slots=True)
class SuggestedGate:
    """A limit that is worth keeping, whatever the numbers of today are."""

    text: str
    """The gate as `check` reads it."""
    meaning: str
    failing: tuple[str, ...] = ()
    """The memories of this run that are beyond the limit."""
    passing: tuple[str, ...] = ()
    """The memories of this run that keep it."""


def suggest_gates(rows: Rows, aside: Collection[str] = ()) -> list[SuggestedGate]:
    """Suggest limits for the orders of arrival that really happen, or for reversal without them.

    With labels they are about evidence, without labels about overlap. With answers, accuracy must
    not be shown to fall. `aside` names arms of other policies.
    """
    plain = rows.where(stratum="all", mask="", arm="")
    lost = plain.where(experiment="retention", quantity="evidence_lost")
    overlap = plain.where(experiment="routes", quantity="J", model="")
    measured = lost if any(row.estimate is not None for row in lost) else overlap
    schedules = [name for name in measured.values("schedule") if name]
    ordinary = [name for name in schedules if name != "replay"] or schedules
    gates = [
        gate
        for name in ordinary
        for group, policy in _group(measured.where(schedule=name), "estimate", aside)
        for gate in [_limit(group, name, policy)]
    ]
    changes = plain.where(experiment="routes", quantity="Delta_rep")
    gates += [_limit_answers(group, policy) for group, policy in _group(changes, "upper", aside)]
    return gates


def _group(rows: Rows, limit: str, aside: Collection[str]) -> Iterator[tuple[Rows, str]]:
    """Yield the rows of one gate, or of one for each policy if some rows are not to be judged."""
    own = [row for row in rows if not row.policy.startswith("source-order(")]
    judged = Rows.of(
        row for row in own if row.policy not in aside and getattr(row, limit) is not None
    )
    if not judged:
        return
    if len(judged) == len(own):
        yield judged, ""
        return
    for policy in judged.values("policy"):
        group = judged.where(policy=policy)
        if len(group) == sum(row.policy == policy for row in own):
            yield group, f"policy={policy},"


def _limit(rows: Rows, schedule: str, policy: str) -> SuggestedGate:
    place = describe_arrival(schedule)
    if rows[0].quantity == "evidence_lost":
        failing = [row.policy for row in rows if (row.estimate or 0.0) > MOST_LOST]
        gate = f"evidence_lost<={MOST_LOST:g}"
        meaning = f"under {place}, at most {100 * MOST_LOST:g}% of the questions lose evidence"
    else:
        failing = [row.policy for row in rows if (row.estimate or 0.0) < LEAST_OVERLAP]
        gate = f"J>={LEAST_OVERLAP:g}"
        share = f"{100 * LEAST_OVERLAP:g}%"
        base = name_base([schedule])
        meaning = f"under {place}, the records shown overlap with those of {base} by {share}"
    where = f"{policy}schedule={schedule}"
    if rows[0].quantity == "J":  # other experiments have an overlap as well
        where = f"{policy}experiment={rows[0].experiment},schedule={schedule},arm="
    return _suggest(f"{where}:{gate}", meaning, failing, rows)


def _suggest(text: str, meaning: str, failing: Sequence[str], rows: Rows) -> SuggestedGate:
    memories = rows.values("policy")
    return SuggestedGate(
        text,
        meaning,
        tuple(name for name in memories if name in failing),
        tuple(name for name in memories if name not in failing),
    )


def _limit_answers(changes: Rows, policy: str) -> SuggestedGate:
    failing = [row.policy for row in changes if (row.upper or 0.0) < 0]
    meaning = "no interval of the change of accuracy lies below zero"
    text = f"{policy}experiment=routes,arm=:Delta_rep.upper>=0"
    return _suggest(text, meaning, failing, changes)


def gate_command(gates: Sequence[SuggestedGate], directory: Path) -> str:
    """Write the `check` that a build can run, one gate in each line."""
    options = [shlex.join(("--gate", gate.text)) for gate in gates]
    return " \\\n  ".join((shlex.join(("routeprism", "check", str(directory))), *options))


def gate_section(rows: Rows, directory: Path, aside: Collection[str] = ()) -> Markup | None:
    """Show limits that are worth keeping in a build, and what this run does about them."""
    gates = suggest_gates(rows, aside)
    if not gates:
        return None
    return fragment(
        [
            tag(
                "p",
                "Useful limits for a build. If a memory is beyond one, the command exits with code "
                "1 and names the questions and the lost records.",
            ),
            tag(
                "ul",
                *(
                    tag("li", f"{meaning[:1].upper()}{meaning[1:]}: ", _judge(group))
                    for meaning, group in _group_meanings(gates).items()
                ),
            ),
            tag("pre", tag("code", gate_command(gates, directory)), tabindex="0"),
            tag(
                "p",
                "If your memory does not keep these limits yet, require that a new version is no "
                "worse than this one:",
            ),
            tag(
                "pre",
                tag("code", f"routeprism check NEW --baseline {shlex.quote(str(directory))}"),
                tabindex="0",
            ),
            tag(
                "p",
                tag("code", "--junit FILE"),
                " and ",
                tag("code", "--github"),
                " write the result where a build shows it.",
            ),
        ]
    )


def _group_meanings(gates: Sequence[SuggestedGate]) -> dict[str, list[SuggestedGate]]:
    """Put the gates together that state the same limit for different memories."""
    groups: dict[str, list[SuggestedGate]] = {}
    for gate in gates:
        groups.setdefault(gate.meaning, []).append(gate)
    return groups


def _judge(gates: Sequence[SuggestedGate]) -> str:
    failing = [name for gate in gates for name in gate.failing]
    passing = [name for gate in gates for name in gate.passing]
    if not failing:
        return "every memory of this run keeps it"
    beyond = f"not kept by {', '.join(failing)}"
    return f"{beyond}; kept by {', '.join(passing)}" if passing else beyond
