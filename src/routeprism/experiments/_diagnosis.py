"""The interface table: at which layer order shows for each policy, and a statement about it.

The rules are written down in docs/diagnosis.md; they read counts of pairs and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from routeprism.exhibits import Part, Severity, Statement, compose, join_parts
from routeprism.experiments._case_values import (
    NOTES_DIFFER,
    NOTES_MATCHED,
    STATES_CHANGED,
    STATES_COMPARED,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion
from routeprism.experiments._observations import mark_blind_spots
from routeprism.experiments.builds import build_statements
from routeprism.experiments.reach import (
    OUTERMOST_FIRST,
    Layer,
    LayerChanges,
    decide_reach,
    store_reaches,
)
from routeprism.experiments.statements import show_count, show_estimate
from routeprism.runs import EstimateRow, Finding, Rows

__all__ = ["Layers", "conclude_layers", "diagnose_layers", "interface_findings", "layers"]

_ANSWER_QUANTITIES = ("H", "D_res", "Delta_rep")
"""The quantities of answers that the table shows."""

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

    @property
    def changes(self) -> LayerChanges:
        """Return the counts that the verdict is decided by."""
        return LayerChanges(self.pairs, self.retained, self.sources, self.context, self.state)

    def value(self) -> Mapping[str, object]:
        """Return the line of the table as plain JSON."""
        return {
            "pairs": self.pairs,
            "retained": self.retained,
            "V": self.sources,
            "C": self.context,
            "I": self.state,
            "blocks": self.blocks,
            "J": _numbers(self.overlap),
            "answers": {
                model: {name: _numbers(row) for name, row in values.items()}
                for model, values in self.answers.items()
            },
        }


def _numbers(row: EstimateRow) -> Sequence[float | None]:
    return [row.estimate, row.lower, row.upper]


def layers(rows: Sequence[EstimateRow]) -> list[Layers]:
    """Read the table off the rows: one line for each policy and schedule."""
    plain = Rows.of(rows).where(experiment="routes", arm="")
    answers: dict[tuple[str, str], dict[str, dict[str, EstimateRow]]] = {}
    rows_with_answers = plain.where(quantity=_ANSWER_QUANTITIES, batch="")
    for (policy, schedule, model), of_model in rows_with_answers.group(
        "policy", "schedule", "model"
    ).items():
        if model:
            answers.setdefault((policy, schedule), {})[model] = of_model
    traced = plain.where(model="").group("policy", "interface", "schedule")
    return [
        Layers(
            policy,
            interface,
            schedule,
            group["V_changed_count"].queries or 0,
            _count(group, "retained_changed") or 0,
            _count(group, "V_changed") or 0,
            _count(group, "C_changed") or 0,
            _count(group, "B_changed") or 0,
            _count(group, "I_changed"),
            group["J"],
            answers.get((policy, schedule), {}),
        )
        for (policy, interface, schedule), group in traced.items()
        if schedule and "J" in group
    ]


def _count(group: Mapping[str, EstimateRow], quantity: str) -> int | None:
    row = group.get(f"{quantity}_count")
    return None if row is None else int(row.estimate or 0)


_SEVERITIES: Mapping[Layer, Severity] = {
    "sources": "problem",
    "context": "warning",
    "none": "good",
    "unknown": "warning",
}


def diagnose_layers(
    lines: Sequence[Layers], rewritten: Rewritten, *, synthetic: bool = False
) -> dict[str, tuple[Statement, ...]]:
    """Describe for each policy at which layers order shows; schedules that agree together."""
    grouped: dict[str, list[Layers]] = {}
    for line in lines:
        grouped.setdefault(line.policy, []).append(line)
    statements: dict[str, tuple[Statement, ...]] = {}
    for policy, routes in grouped.items():
        schedules: dict[str, list[str]] = {}
        phrases: dict[str, tuple[Part, ...]] = {}
        for line in routes:
            text = _describe_layer(line, rewritten.get(policy, {}))
            phrase = compose("{text}; J = {J}", text=text, J=show_estimate(line.overlap))
            words = "".join(map(str, phrase))
            phrases.setdefault(words, phrase)
            schedules.setdefault(words, []).append(line.schedule)
        parts = next(iter(phrases.values()))
        if len(routes) > 1:
            descriptions = [
                compose(
                    "{schedules}: {phrase}", schedules=" and ".join(names), phrase=phrases[words]
                )
                for words, names in schedules.items()
            ]
            parts = compose("{all}", all=join_parts("; ", descriptions))
        layers_reached = [decide_reach(line.changes).layer for line in routes]
        layer = min(layers_reached, key=OUTERMOST_FIRST.index)
        statements[policy] = (
            Statement(
                parts,
                "layers",
                policy,
                routes[0].schedule if len(routes) == 1 else "",
                _SEVERITIES.get(layer, "info"),
                flags=("synthetic",) if synthetic else (),
            ),
        )
    return statements


def interface_findings(
    lines: Sequence[Layers], statements: Mapping[str, Sequence[Statement]]
) -> list[Finding]:
    """Keep the table and its sentences with the run."""
    findings = [
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
    findings += [
        Finding(
            name="diagnosis",
            value="; ".join(map(str, of_policy)),
            policy=policy,
            interface=interfaces[policy],
        )
        for policy, of_policy in statements.items()
    ]
    return findings


def _describe_layer(line: Layers, rewritten: Mapping[str, int]) -> str:
    """Describe the outermost layer that order reached."""
    layer = decide_reach(line.changes).layer
    if layer == "sources":
        why = "different records are shown, although the same are kept"
        if line.retained:
            why = "different records are kept"
        return f"{_share(line.sources, line.pairs, 'sources')}: {why}"
    if layer == "context":
        reach = "but not the sources"
        if line.sources:
            reach = f"but hardly the sources ({line.sources} of {line.pairs})"
        changed = _share(line.context, line.pairs, "text")
        return f"order reaches the context {reach}, {changed}: {_describe_text(line, rewritten)}"
    if layer == "retained":
        return f"{_share(line.retained, line.pairs, 'retained set')}, but nothing that was exposed"
    if layer == "state":
        state = _share(line.state or 0, line.pairs, "internal state")
        return f"{state}, and nothing else changed"
    layers_measured = "sources and context" if line.state is None else "sources, context and state"
    return f"order changed nothing: {layers_measured} stayed the same"


def _describe_text(line: Layers, rewritten: Mapping[str, int]) -> str:
    if line.blocks <= line.sources:
        return "the same blocks are shown in a different order"
    kinds = sorted(rewritten, key=lambda kind: (-rewritten[kind], kind))
    if not kinds:
        return "the same records are shown in blocks of a different kind"
    *first, last = kinds
    names = f"{', '.join(first)} and {last}" if first else last
    return f"{names} blocks are rewritten"


def _share(count: int, total: int, noun: str) -> str:
    if count == total:
        return f"every pair changed its {noun}"
    return f"{count} of {total} pairs changed {'its' if count == 1 else 'their'} {noun}"


def note_statements(rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe for each policy and schedule in which fields notes of the same records differ."""
    grouped: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in Rows.of(rows).plain(experiment="routes", model=""):
        grouped.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    for (policy, schedule), counts in grouped.items():
        if NOTES_MATCHED not in counts or not counts[NOTES_MATCHED].estimate:
            continue
        differing = [
            compose(
                "{number} in {field}", number=show_count(row), field=name.removeprefix(NOTES_DIFFER)
            )
            for name, row in counts.items()
            if name.startswith(NOTES_DIFFER)
        ]
        parts = compose(
            "of {matched} notes of the same records, these differ: {differing}",
            matched=show_count(counts[NOTES_MATCHED]),
            differing=join_parts(", ", differing),
        )
        if STATES_COMPARED in counts:
            parts += compose(
                "; without their insertion order, the states still differ in {changed} of {pools} "
                "pools",
                changed=show_count(counts[STATES_CHANGED]),
                pools=show_count(counts[STATES_COMPARED]),
            )
        yield Statement(parts, "notes", policy, schedule, scope=schedule)


def conclude_layers(outcome: AuditOutcome) -> Conclusion:
    """Describe at which layers order shows, and store the table and the verdicts."""
    plan, observations = outcome.plan, outcome.observations
    lines, kinds = layers(outcome.rows), observations.rewritten_kinds
    statements = diagnose_layers(lines, kinds, synthetic=plan.benchmark.synthetic)
    statements |= build_statements(outcome.rows, outcome.noisy, plan.builds)
    statements = mark_blind_spots(observations, statements)
    findings = [*interface_findings(lines, statements), *store_reaches(outcome.reaches)]
    return Conclusion(
        (*chain.from_iterable(statements.values()), *note_statements(outcome.rows)),
        {"routes": findings},
    )
