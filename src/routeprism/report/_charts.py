"""Charts of a run: each is a template by Altair, the values it shows, and what it says in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from routeprism.report._table import grouped, shown_interval
from routeprism.report._tables import CONDITIONS, CONTRASTS, MECHANISM
from routeprism.report._units import Points
from routeprism.runs import EstimateRow

__all__ = [
    "Chart",
    "Units",
    "chart_name",
    "charts",
    "jitter",
    "limits",
    "short",
    "spec_of",
    "templates",
]

_NAMES = (
    "policy",
    "schedule",
    "model",
    "judge",
    "prompt_control",
    "filler",
    "arm",
    "labels",
    "batch",
)
_LONGEST = 80

Units = Mapping[Points, Mapping[str, float]]
"""Quantity on a pair of routes → unit → mean."""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart."""

    name: str
    """What its file is called; unique in a report."""
    section: str
    title: str
    alternative: str
    """What a person who cannot see it should know."""
    template: str
    values: tuple[Mapping[str, Any], ...]


def short(text: str, most: int = _LONGEST) -> str:
    """Cut a name that is too long for a chart."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def charts(rows: Sequence[EstimateRow], values: Units) -> list[Chart]:
    """Make every chart that a run allows."""
    return [
        *_restoration(rows, values),
        *_mechanism(rows),
        *_transitions(rows),
        *_profiles(rows, values),
        *_replication(rows),
        *_forests(rows),
    ]


def _restoration(rows: Sequence[EstimateRow], values: Units) -> Iterable[Chart]:
    restored = [row for row in rows if row.experiment == "restoration" and row.model]
    for (policy, schedule, model), found in grouped(
        restored, ("policy", "schedule", "model")
    ).items():
        shown: list[dict[str, Any]] = []
        for name in CONDITIONS:
            quantity = f"accuracy.{name}"
            if quantity not in found or found[quantity].estimate is None:
                continue
            shown.append({"kind": "mean", "condition": name, **limits(found[quantity])})
            points = values.get(Points(quantity, policy, schedule, model), {})
            shown.extend(
                {"kind": "unit", "condition": name, "estimate": mean, "jitter": jitter(at)}
                for at, mean in enumerate(points.values())
            )
        if not shown:
            continue
        told = "; ".join(
            f"{name} {shown_interval(found[f'accuracy.{name}'])}"
            for name in CONDITIONS
            if f"accuracy.{name}" in found
        )
        contrasts = "; ".join(
            f"{name.replace('-', ' minus ')} {shown_interval(found[name])}"
            for name in CONTRASTS
            if name in found
        )
        yield Chart(
            f"restoration-{chart_name(policy, schedule, model)}",
            "restoration",
            f"{short(policy)}, {short(schedule)}, read by {short(model)}",
            f"Accuracy in the four conditions: {told}. Paired contrasts: {contrasts}.",
            "restoration",
            tuple(shown),
        )
        paired = [
            {"label": name.replace("-", " − "), **limits(row), "questions": row.queries}
            for name in CONTRASTS
            if (row := found.get(name)) is not None and row.estimate is not None
        ]
        if paired:
            yield Chart(
                f"contrasts-{chart_name(policy, schedule, model)}",
                "restoration",
                f"{short(policy)}, {short(schedule)}, read by {short(model)}: paired contrasts",
                f"Paired contrasts of accuracy with 95 % intervals: {contrasts}.",
                "forest",
                tuple(paired),
            )


def _mechanism(rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    """Draw the arms of a policy's family side by side: each operation, all of them, interaction."""
    by_quantity: dict[tuple[str, str, str], list[EstimateRow]] = {}
    for row in rows:
        quantity = row.quantity.partition(".")[2]
        plain = row.stratum == "all" and not row.mask and not row.batch
        if row.experiment != "mechanism" or not plain or row.lower is None:
            continue
        if quantity in MECHANISM:
            family = row.policy.partition(":")[0]
            by_quantity.setdefault((quantity, family, row.model), []).append(row)
    for (quantity, family, model), found in by_quantity.items():
        if quantity in _RESIDUAL and (_RESIDUAL[quantity], family, model) in by_quantity:
            continue
        # Single operations first, then all together, then what they do beyond their sum.
        found.sort(key=lambda row: (row.quantity.startswith("interaction"), row.arm.count("+")))
        several = len({(row.policy, row.arm) for row in found}) > len({row.arm for row in found})
        shown = [
            {"schedule": short(row.schedule), "arm": _arm(row, several), **limits(row)}
            for row in found
        ]
        told = "; ".join(
            f"{row.schedule}, {_arm(row, several)}, {shown_interval(row)}" for row in found
        )
        who = f", read by {short(model)}" if model else ""
        yield Chart(
            f"mechanism-{chart_name(quantity, family, model)}",
            "mechanism",
            f"{short(family)}: change of {quantity} by operation{who}",
            f"Difference of {quantity} that operations in arrival order make: {told}.",
            "mechanism",
            tuple(shown),
        )


_RESIDUAL = {"H": "D_res", "Delta": "Delta_rep"}
"""What several draws say instead."""


def _arm(row: EstimateRow, several: bool) -> str:
    interaction = "interaction " if row.quantity.startswith("interaction") else ""
    return short(f"{interaction}{row.arm}" + (f", {row.policy}" if several else ""))


WAYS = {
    "CC": "right on both",
    "CI": "right, then wrong",
    "IC": "wrong, then right",
    "II": "wrong on both",
}


def _transitions(rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    asked = [row for row in rows if row.experiment == "routes" and row.model]
    shown: list[dict[str, Any]] = []
    told = []
    for names, found in grouped(asked, ("policy", "schedule", "model")).items():
        counts = {
            words: found[f"count.transition.{way}"].estimate or 0.0
            for way, words in WAYS.items()
            if f"count.transition.{way}" in found
        }
        if not counts:
            continue
        label = " · ".join(map(short, names))
        told.append(f"{label}: " + ", ".join(f"{n:.0f} {words}" for words, n in counts.items()))
        shown.extend(
            {"label": label, "way": words, "order": at, "count": number}
            for at, (words, number) in enumerate(counts.items())
        )
    if shown:
        yield Chart(
            "transitions",
            "answers",
            "Correctness of the formal answers, forward then the other order",
            "; ".join(told) + ".",
            "transitions",
            tuple(shown),
        )


_PROFILES = {
    "1-J": ("Source change (1 − J)", "J"),
    "H": ("Answers differ (H)", "H"),
    "Delta": ("Change of correctness (Δ)", "Delta"),
}


def _profiles(rows: Sequence[EstimateRow], values: Units) -> Iterable[Chart]:
    routes = [row for row in rows if row.experiment == "routes" and row.policy]
    found = grouped(routes, ("policy", "schedule", "model"))
    for quantity, (title, estimated) in _PROFILES.items():
        shown: list[dict[str, Any]] = []
        told = []
        points = {name[1:]: means for name, means in values.items() if name.quantity == estimated}
        for names, means in points.items():
            label = " · ".join(short(name) for name in names if name)
            shown.extend(
                {
                    "kind": "unit",
                    "label": label,
                    "estimate": 1 - mean if quantity == "1-J" else mean,
                    "jitter": jitter(at),
                }
                for at, mean in enumerate(means.values())
            )
            row = found.get(names, {}).get(estimated)
            if row is None or row.estimate is None:
                continue
            found_limits = limits(row)
            if quantity == "1-J":
                found_limits = {
                    "estimate": 1 - row.estimate,
                    "lower": None if row.upper is None else 1 - row.upper,
                    "upper": None if row.lower is None else 1 - row.lower,
                }
            shown.append({"kind": "mean", "label": label, **found_limits})
            told.append(f"{label} {found_limits['estimate']:.3f}")
        if shown:
            noun = next((row.unit for row in routes if row.unit), "unit")
            yield Chart(
                f"profile-{estimated}",
                "answers",
                title,
                f"One point for each {noun}, with the mean and its interval. Means: "
                + "; ".join(told)
                + ".",
                "profile",
                tuple(shown),
            )


def _replication(rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    asked = [row for row in rows if row.model and row.policy and row.experiment != "support"]
    if len({row.model for row in asked}) < 2:
        return
    for quantity in ("D_res", "Delta_rep", "H", "restored-absent", "restored-replacement"):
        found = [
            row
            for places in grouped(asked, ("policy", "schedule", "model")).values()
            if (row := places.get(quantity)) is not None and row.estimate is not None
        ]
        found.sort(key=lambda row: (row.policy, row.schedule))
        if len({row.model for row in found}) > 1:
            yield _forest(
                f"replication-{quantity}", "replication", f"{quantity}, model by model", found
            )


def _forests(rows: Sequence[EstimateRow]) -> Iterable[Chart]:
    """Make one forest plot for each quantity of each experiment; kinds and masks have their own."""
    found: dict[tuple[str, str, bool], list[EstimateRow]] = {}
    for row in rows:
        if row.estimate is not None and row.lower is not None:
            plain = row.stratum == "all" and not row.mask
            found.setdefault((row.experiment, row.quantity, plain), []).append(row)
    for (experiment, quantity, plain), several in found.items():
        part = "" if plain else "-parts"
        title = quantity if plain else f"{quantity}, by kind of question and mask"
        yield _forest(
            f"forest-{experiment}-{quantity}{part}", f"forest-{experiment}", title, several
        )


def _forest(name: str, section: str, title: str, rows: Sequence[EstimateRow]) -> Chart:
    varying = [
        column
        for column in (*_NAMES, "stratum", "mask")
        if column in ("policy", "schedule") or len({getattr(row, column) for row in rows}) > 1
    ]
    shown, told, seen = [], [], set[str]()
    for row in rows:
        parts = [short(str(getattr(row, column))) for column in varying if getattr(row, column)]
        label = short(" · ".join(parts) or "all", 2 * _LONGEST)
        while label in seen:  # names that were cut may look alike
            label += " "
        seen.add(label)
        shown.append({"label": label, **limits(row), "questions": row.queries})
        told.append(f"{label} {shown_interval(row)}")
    more = f"; and {len(told) - 12} more, in the table of all estimates" if len(told) > 12 else ""
    return Chart(
        name,
        section,
        title,
        f"Estimates with 95 % intervals of {title}: " + "; ".join(told[:12]) + more + ".",
        "forest",
        tuple(shown),
    )


def limits(row: EstimateRow) -> dict[str, Any]:
    """Give an estimate with its limits, as charts read them."""
    return {"estimate": row.estimate, "lower": row.lower, "upper": row.upper}


def jitter(unit: int) -> float:
    """Spread points of equal value: a fixed place for each unit, well mixed."""
    return round((unit * 0.6180339887498949) % 1 - 0.5, 4)


def chart_name(*names: str) -> str:
    """Make names fit for a file's name."""
    joined = "-".join(name for name in names if name)
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in short(joined, 60))


def spec_of(chart: Chart) -> dict[str, Any]:
    """Give the whole Vega-Lite specification of a chart."""
    spec: dict[str, Any] = {**templates()[chart.template], "description": chart.alternative}
    values = [dict(value) for value in chart.values]
    spec["datasets"] = {**spec.get("datasets", {}), "values": values}
    return spec


@lru_cache(maxsize=1)
def templates() -> dict[str, dict[str, Any]]:
    """Read the templates: Vega-Lite whose values are the data set called `values`."""
    written = resources.files("routeprism.report").joinpath("assets/charts.json").read_text("utf-8")
    made: dict[str, dict[str, Any]] = json.loads(written)
    return made
