"""The layers that order reaches: records kept, records shown, text and state, for each policy.

The rules of the statements are written down in docs/diagnosis.md; they read counts of pairs and
nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from routeprism.exhibits import (
    Chart,
    Results,
    Severity,
    Statement,
    Table,
    compose,
    format_row,
    format_share,
    make_table,
    place_point,
    read_limits,
    shorten,
)
from routeprism.experiments._case_values import (
    NOTES_DIFFER,
    NOTES_MATCHED,
    STATES_CHANGED,
    STATES_COMPARED,
)
from routeprism.experiments._experiment import AuditOutcome, Conclusion, Experiment
from routeprism.experiments._observations import mark_blind_spots
from routeprism.experiments.builds import build_statements
from routeprism.experiments.reach import (
    OUTERMOST_FIRST,
    Layer,
    LayerChanges,
    decide_reach,
    store_reaches,
)
from routeprism.experiments.statements import (
    Phrase,
    compose_rows,
    join_names,
    join_phrases,
    mark_incomplete,
)
from routeprism.runs import EstimateRow, Finding, Rows

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
    changes: LayerChanges
    blocks: int
    """Contexts that differ in more than the order of their blocks."""
    overlap: EstimateRow
    """J."""
    answers: Mapping[str, Mapping[str, EstimateRow]] = field(default_factory=dict)
    """Model → H, D_res and Δ_rep."""

    def finding(self) -> Finding:
        """Keep the line of the table with the run."""
        changes = self.changes
        value = {
            "pairs": changes.pairs,
            "retained": changes.retained,
            "V": changes.sources,
            "C": changes.context,
            "I": changes.state,
            "blocks": self.blocks,
            "J": _numbers(self.overlap),
            "answers": {
                model: {name: _numbers(row) for name, row in values.items()}
                for model, values in self.answers.items()
            },
        }
        place = {"policy": self.policy, "interface": self.interface, "schedule": self.schedule}
        return Finding(name="layers", value=value, **place)


def _numbers(row: EstimateRow) -> Sequence[float | None]:
    return [row.estimate, row.lower, row.upper]


def read_layers(rows: Rows) -> list[Layers]:
    """Read the table off the rows: one line for each policy and schedule."""
    plain = rows.where(experiment="routes", arm="")
    answers: dict[tuple[str, str], dict[str, Mapping[str, EstimateRow]]] = {}
    by_model = plain.where(quantity=_ANSWER_QUANTITIES, batch="").group(
        "policy", "schedule", "model"
    )
    for (policy, schedule, model), group in by_model.items():
        if model:
            answers.setdefault((policy, schedule), {})[model] = group
    traced = plain.where(model="").group("policy", "interface", "schedule")
    return [
        Layers(
            policy,
            interface,
            schedule,
            LayerChanges.read(group),
            int(group["B_changed_count"].estimate or 0) if "B_changed_count" in group else 0,
            group["J"],
            answers.get((policy, schedule), {}),
        )
        for (policy, interface, schedule), group in traced.items()
        if schedule and "J" in group
    ]


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
        phrases: dict[str, tuple[Phrase, list[str]]] = {}
        for line in routes:
            text = _describe_layer(line, rewritten.get(policy, {}))
            phrase = compose_rows("{text}; J = {J}", text=text, J=line.overlap)
            words = "".join(map(str, phrase))
            phrases.setdefault(words, (phrase, []))[1].append(line.schedule)
        parts = next(iter(phrases.values()))[0]
        if len(routes) > 1:
            descriptions = (
                compose("{names}: {phrase}", names=" and ".join(names), phrase=phrase)
                for phrase, names in phrases.values()
            )
            parts = compose("{all}", all=join_phrases(descriptions))
        layer = min((decide_reach(r.changes).layer for r in routes), key=OUTERMOST_FIRST.index)
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


def _describe_layer(line: Layers, rewritten: Mapping[str, int]) -> str:
    """Describe the outermost layer that order reached."""
    changes = line.changes
    layer = decide_reach(changes).layer
    if layer == "sources":
        why = "different records are shown, although the same are kept"
        if changes.retained:
            why = "different records are kept"
        return f"{_share(changes.sources, changes.pairs, 'sources')}: {why}"
    if layer == "context":
        reach = "but not the sources"
        if changes.sources:
            reach = f"but hardly the sources ({changes.sources} of {changes.pairs})"
        share = _share(changes.context, changes.pairs, "text")
        return f"order reaches the context {reach}, {share}: {_describe_text(line, rewritten)}"
    if layer == "retained":
        share = _share(changes.retained, changes.pairs, "retained set")
        return f"{share}, but nothing that was exposed"
    if layer == "state":
        share = _share(changes.state or 0, changes.pairs, "internal state")
        return f"{share}, and nothing else changed"
    measured = "sources and context" if changes.state is None else "sources, context and state"
    return f"order changed nothing: {measured} stayed the same"


def _describe_text(line: Layers, rewritten: Mapping[str, int]) -> str:
    if line.blocks <= line.changes.sources:
        return "the same blocks are shown in a different order"
    if not rewritten:
        return "the same records are shown in blocks of a different kind"
    kinds = sorted(rewritten, key=lambda kind: (-rewritten[kind], kind))
    return f"{join_names(kinds)} blocks are rewritten"


def _share(count: int, total: int, noun: str) -> str:
    if count == total:
        return f"every pair changed its {noun}"
    return f"{count} of {total} pairs changed {'its' if count == 1 else 'their'} {noun}"


def describe_notes(rows: Rows) -> Iterator[Statement]:
    """Describe for each policy and schedule in which fields notes of the same records differ."""
    plain = rows.plain(experiment="routes", model="")
    for (policy, schedule), counts in plain.group("policy", "schedule").items():
        if NOTES_MATCHED not in counts or not counts[NOTES_MATCHED].estimate:
            continue
        differing = (
            compose_rows("{n:count} in {field}", n=row, field=name.removeprefix(NOTES_DIFFER))
            for name, row in counts.items()
            if name.startswith(NOTES_DIFFER)
        )
        parts = compose_rows(
            "of {matched:count} notes of the same records, these differ: {differing}",
            matched=counts[NOTES_MATCHED],
            differing=join_phrases(differing, ", "),
        )
        if STATES_COMPARED in counts:
            parts += compose_rows(
                "; without their insertion order, the states still differ in {changed:count} of "
                "{pools:count} pools",
                changed=counts[STATES_CHANGED],
                pools=counts[STATES_COMPARED],
            )
        yield Statement(parts, "notes", policy, schedule, scope=schedule)


def conclude_layers(outcome: AuditOutcome) -> Conclusion:
    """Describe at which layers order shows, and store the table, its sentences and the verdicts."""
    plan, observations = outcome.plan, outcome.observations
    lines, kinds = read_layers(outcome.rows), observations.rewritten_kinds
    statements = diagnose_layers(lines, kinds, synthetic=plan.benchmark.synthetic)
    statements |= build_statements(outcome.rows, outcome.noisy, plan.builds)
    statements = mark_blind_spots(observations, statements)
    if outcome.is_incomplete:
        statements = {
            policy: tuple(map(mark_incomplete, own)) for policy, own in statements.items()
        }
    interfaces = {line.policy: line.interface for line in lines}
    diagnoses = [
        Finding(
            name="diagnosis",
            value="; ".join(map(str, of_policy)),
            policy=policy,
            interface=interfaces[policy],
        )
        for policy, of_policy in statements.items()
    ]
    findings = [line.finding() for line in lines] + diagnoses + store_reaches(outcome.reaches)
    return Conclusion(
        (*chain.from_iterable(statements.values()), *describe_notes(outcome.rows)),
        {"routes": findings},
    )


_LAYERS = ("retained_changed", "V_changed", "C_changed", "I_changed")


def tabulate_layers(results: Results) -> list[Table]:
    """Show at which layers order had an effect, for each policy and schedule."""
    rows = results.rows.where(experiment="routes", arm="")
    models = [model for model in rows.values("model") if model]
    groups = rows.group("policy", "schedule", "model")
    cells = [
        (
            policy,
            schedule,
            *(format_share(group.get(f"{layer}_count")) for layer in _LAYERS),
            *(format_row(groups.get((policy, schedule, m), {}).get("H")) for m in models),
            format_row(group["J"]),
        )
        for (policy, schedule), group in rows.where(model="").group("policy", "schedule").items()
        if policy and "J" in group
    ]
    answers = tuple(f"answers differ ({model})" for model in models)
    return make_table(
        "layers",
        "Where order enters",
        "Pairs of routes that differ, layer by layer: records kept, records shown (V), text shown "
        "(C), internal state (I), and the share of first answers that differ (H). J is the overlap "
        "of the records shown: 1 means that both routes show the same records.",
        ("policy", "schedule", "kept", "shown", "text", "state", *answers, "J"),
        cells,
        names=2,
    )


def tabulate_ties(results: Results) -> list[Table]:
    """Show how often processing order decided between equals."""
    groups = {
        place: {name: row for name, row in group.items() if name.endswith("_ties")}
        for place, group in results.rows.where(experiment="routes", model="", arm="")
        .group("policy", "schedule")
        .items()
    }
    counts = list(dict.fromkeys(name for group in groups.values() for name in group))
    return make_table(
        "ties",
        "Ties that processing order decided",
        "How often two records were equal and the one processed first won, summed over questions.",
        ("policy", "schedule", *(c.removeprefix("count.").removesuffix("_ties") for c in counts)),
        [
            (*place, *(format_row(group.get(name)) for name in counts))
            for place, group in groups.items()
            if group
        ],
        names=2,
    )


def draw_profile(
    results: Results, rows: Rows, name: str, title: str, quantity: str, *, reverse: bool = False
) -> list[Chart]:
    """Draw a quantity unit by unit, with the mean and its interval; `reverse` draws 1 minus it."""
    values: list[dict[str, Any]] = []
    described = []
    groups = rows.where(arm="").group("policy", "schedule", "model")
    series = {
        place[2:]: means
        for place, means in results.units.items()
        if place[:2] == ("routes", quantity)
    }
    for names, means in series.items():
        label = " · ".join(map(shorten, filter(None, names)))
        values.extend(
            {
                "kind": "unit",
                "label": label,
                "estimate": 1 - mean if reverse else mean,
                "jitter": place_point(unit),
            }
            for unit, mean in enumerate(means.values())
        )
        row = groups.get(names, {}).get(quantity)
        if row is None or row.estimate is None:
            continue
        limits = read_limits(row)
        if reverse:
            lower, upper = (None if x is None else 1 - x for x in (row.upper, row.lower))
            limits = {"estimate": 1 - row.estimate, "lower": lower, "upper": upper}
        values.append({"kind": "mean", "label": label, **limits})
        described.append(f"{label} {limits['estimate']:.3f}")
    if not values:
        return []
    unit = next((row.unit for row in rows if row.unit), "unit")
    words = f"One point for each {unit}, with the mean and its interval. Means: "
    return [Chart(name, title, f"{words}{'; '.join(described)}.", "profile", tuple(values))]


def chart_overlap(results: Results) -> list[Chart]:
    """Draw the change of the records shown, unit by unit."""
    rows = results.rows.where(experiment="routes")
    title = "Change of the records shown (1 − J)"
    return draw_profile(results, rows, "profile-J", title, "J", reverse=True)


experiment = Experiment(
    name="layers",
    title="Layers",
    summary="Compare the records kept, the records shown, the text and the state of both routes.",
    rank=0,
    columns=("routes",),
    row_filter=lambda row: not row.model,
    tables=lambda results: [*tabulate_layers(results), *tabulate_ties(results)],
    charts=chart_overlap,
    conclude=conclude_layers,
)
