"""The interface table: at which layer order shows for each policy, and a sentence for it.

The rules are written down in docs/diagnosis.md; they read counts of pairs and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from routeprism.experiments._sentences import interval
from routeprism.runs import EstimateRow, Finding

__all__ = ["Layers", "diagnoses", "interface_findings", "layers"]

_HARDLY = 10
"""From how many changed contexts for one changed source set on order hardly reaches the sources."""
_TOLD = ("H", "D_res", "Delta_rep")
"""What the table says of answers."""

Rewritten = Mapping[str, Mapping[str, int]]
"""Policy → the kinds of its blocks that were rewritten, with how many pairs show it."""


@dataclass(frozen=True, slots=True)
class Layers:
    """How many pairs of one policy and schedule changed, layer by layer."""

    policy: str
    interface: str
    schedule: str
    pairs: int
    retained: int
    sources: int
    """V."""
    context: int
    """C."""
    blocks: int
    """Contexts that differ in more than the order of their blocks."""
    state: int | None
    """I; None where the memory shows no state."""
    overlap: EstimateRow
    """J."""
    answers: Mapping[str, Mapping[str, EstimateRow]] = field(default_factory=dict)
    """Model → H, D_res and Δ_rep."""

    def value(self) -> Mapping[str, object]:
        """Give the line of the table as plain JSON."""
        return {
            "pairs": self.pairs,
            "retained": self.retained,
            "V": self.sources,
            "C": self.context,
            "I": self.state,
            "blocks": self.blocks,
            "J": _numbers(self.overlap),
            "answers": {
                model: {name: _numbers(row) for name, row in found.items()}
                for model, found in self.answers.items()
            },
        }


def _numbers(row: EstimateRow) -> Sequence[float | None]:
    return [row.estimate, row.lower, row.upper]


def layers(rows: Sequence[EstimateRow]) -> list[Layers]:
    """Read the table off the rows: one line for each policy and schedule."""
    traced: dict[tuple[str, str, str], dict[str, EstimateRow]] = {}
    answers: dict[tuple[str, str], dict[str, dict[str, EstimateRow]]] = {}
    for row in rows:
        plain = row.experiment == "routes" and row.stratum == "all"
        if not plain or row.mask or row.arm or not row.schedule:
            continue
        if not row.model:
            place = (row.policy, row.interface, row.schedule)
            traced.setdefault(place, {})[row.quantity] = row
        elif row.quantity in _TOLD and not row.batch:
            models = answers.setdefault((row.policy, row.schedule), {})
            told = models.setdefault(row.model, {})
            # Of several fillers, the average over all of them has the longest name.
            if row.quantity not in told or len(row.filler) > len(told[row.quantity].filler):
                told[row.quantity] = row
    return [
        Layers(
            policy,
            interface,
            schedule,
            found["V_changed_count"].queries or 0,
            _count(found, "retained_changed") or 0,
            _count(found, "V_changed") or 0,
            _count(found, "C_changed") or 0,
            _count(found, "B_changed") or 0,
            _count(found, "I_changed"),
            found["J"],
            answers.get((policy, schedule), {}),
        )
        for (policy, interface, schedule), found in traced.items()
        if "J" in found
    ]


def _count(found: Mapping[str, EstimateRow], quantity: str) -> int | None:
    row = found.get(f"{quantity}_count")
    return None if row is None else int(row.estimate or 0)


def diagnoses(
    lines: Sequence[Layers], rewritten: Rewritten, *, synthetic: bool = False
) -> dict[str, str]:
    """Say for each policy at which layers order showed, schedule by schedule."""
    grouped: dict[str, list[Layers]] = {}
    for line in lines:
        grouped.setdefault(line.policy, []).append(line)
    tail = " (synthetic sample)" if synthetic else ""
    said = {}
    for policy, routes in grouped.items():
        found: dict[str, list[str]] = {}
        for line in routes:
            finding = _finding(line, rewritten.get(policy, {}))
            found.setdefault(f"{finding}; J = {interval(line.overlap)}", []).append(line.schedule)
        if len(routes) == 1:
            (told,) = found
        else:
            told = "; ".join(f"{' and '.join(names)}: {text}" for text, names in found.items())
        said[policy] = f"{policy}: {told}{tail}"
    return said


def interface_findings(lines: Sequence[Layers], said: Mapping[str, str]) -> list[Finding]:
    """Keep the table and its sentences with the run."""
    found = [
        Finding(
            name="layers",
            value=line.value(),
            policy=line.policy,
            interface=line.interface,
            schedule=line.schedule,
        )
        for line in lines
    ]
    interfaces = {line.policy: line.interface for line in lines}
    found += [
        Finding(name="diagnosis", value=text, policy=policy, interface=interfaces[policy])
        for policy, text in said.items()
    ]
    return found


def _finding(line: Layers, rewritten: Mapping[str, int]) -> str:
    """Name the outermost layer that order reached: sources, context, retained set, state."""
    if line.sources and line.sources * _HARDLY > line.context:
        why = "other records are kept" if line.retained else "others of the same records are chosen"
        return f"{_share(line.sources, line.pairs, 'sources')}: {why}"
    if line.context:
        reach = "but not the sources"
        if line.sources:
            reach = f"but hardly the sources ({line.sources} of {line.pairs})"
        changed = _share(line.context, line.pairs, "text")
        return f"order reaches the context {reach}, {changed}: {_how(line, rewritten)}"
    if line.retained:
        return f"{_share(line.retained, line.pairs, 'retained set')}, but nothing that was exposed"
    if line.state:
        return f"{_share(line.state, line.pairs, 'internal state')}, and nothing else moved"
    known = "sources and context" if line.state is None else "sources, context and state"
    return f"order changed nothing, {known} stayed the same"


def _how(line: Layers, rewritten: Mapping[str, int]) -> str:
    if line.blocks <= line.sources:
        return "the same blocks are shown in another order"
    kinds = sorted(rewritten, key=lambda kind: (-rewritten[kind], kind))
    *first, last = kinds
    listed = f"{', '.join(first)} and {last}" if first else last
    return f"{listed} blocks are rewritten"


def _share(count: int, total: int, what: str) -> str:
    if count == total:
        return f"every pair changed its {what}"
    return f"{count} of {total} pairs changed {'its' if count == 1 else 'their'} {what}"
