"""Statements and tables about passes: what each found, and how far they agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from routeprism.exhibits import (
    Number,
    Part,
    Results,
    Statement,
    Table,
    compose,
    format_row,
    format_share,
    join_parts,
    make_table,
)
from routeprism.labels._cards import LABELS, UNREAD
from routeprism.labels._readings import Readings
from routeprism.quantities import find_quantity
from routeprism.runs import EstimateRow, Rows

_ITEMS = {"screen": "pools", "support": "record labels", "compiled": "contexts"}
_READ = {"screen": "pools", "support": "cards", "compiled": "contexts"}

Arms = Mapping[str, Mapping[str, EstimateRow]]
"""Arm → quantity → its row."""


def pass_statements(passes: Sequence[Readings], rows: Sequence[EstimateRow]) -> Iterator[Statement]:
    """Describe what each pass found, how far they agree, and what they find together."""
    arms: dict[str, dict[str, EstimateRow]] = {}
    for row in Rows.of(rows).where(mask=""):
        arms.setdefault(_name_arm(row), {})[row.quantity] = row
    kind = passes[0].kind
    for readings in passes:
        yield Statement((_describe_readings(readings),), kind)
    for at, first in enumerate(passes):
        for second in passes[at + 1 :]:
            yield Statement(_describe_agreement(first, second, arms), kind)
    names = [readings.name for readings in passes]
    quoted, joined = ",".join(names), ", ".join(names[:-1]) + f" and {names[-1]}"
    if kind == "screen" and len(passes) == 2:
        both = _count(arms[f"intersection({quoted})"], "admissible")
        text = "{names} both find {both} pools admissible."
        yield Statement(compose(text, names=joined, both=both), kind)
    if kind == "screen" and len(passes) > 2:
        majority = arms[f"majority({quoted})"]
        labels = [
            compose("{number} {label}", number=_count(majority, label), label=label)
            for label in LABELS["screen"]
        ]
        text = "By a strict majority of {names}: {labels} pools."
        yield Statement(compose(text, names=joined, labels=join_parts(", ", labels)), kind)
        every = _count(arms[f"unanimity({quoted})"], "admissible")
        text = "All of {names} find {every} pools admissible."
        yield Statement(compose(text, names=joined, every=every), kind)


def _name_arm(row: EstimateRow) -> str:
    """Name an arm without the rubric that precedes it, such as `stale:direct-sets:A~B`."""
    rubric, _, name = row.arm.partition(":")
    return row.arm if not name or rubric == "direct-sets" else name


def _describe_readings(readings: Readings) -> str:
    counts = dict(readings.counts)
    unread = counts.pop(UNREAD)
    labels = ", ".join(f"{number} {label}" for label, number in counts.items())
    text = (
        f"{readings.name} ({readings.source}, rubric '{readings.rubric}') gives {labels} "
        f"{_ITEMS[readings.kind]}"
    )
    return text + (f"; {unread} {_READ[readings.kind]} unread." if unread else ".")


def _describe_agreement(first: Readings, second: Readings, arms: Arms) -> tuple[Part, ...]:
    arm = f"{first.name}~{second.name}"
    quantities = arms[arm]
    kappa = format_row(quantities["kappa"])
    parts = compose(
        "{first} and {second} agree on {agreed} of {compared} {noun} ({share}; {kappa})",
        first=first.name,
        second=second.name,
        agreed=_count(quantities, "agreed"),
        compared=_count(quantities, "compared"),
        noun=_ITEMS[first.kind],
        share=format_row(quantities["agreement"]) or "nothing to compare",
        kappa=("κ = ", kappa) if kappa else "κ is not defined",
    )
    sets = arms.get(f"direct-sets:{arm}")
    if sets is not None:
        parts += compose(
            " and on {agreed} of {compared} {noun} ({share})",
            noun="sets of outdated records" if first.rubric == "stale" else "direct-support sets",
            agreed=_count(sets, "agreed"),
            compared=_count(sets, "compared"),
            share=format_row(sets["agreement"]) or "nothing to compare",
        )
    return (*parts, ".")


def _count(quantities: Mapping[str, EstimateRow], label: str) -> Number:
    row = quantities[f"count.{label}"]
    return Number(f"{row.estimate or 0:.0f}", row)


_STUDIES = ("screen", "support")


def tabulate_readings(results: Results) -> list[Table]:
    """Show how far passes agree, what they admit, and how they label."""
    rows = results.rows.where(experiment=_STUDIES, mask="")
    single = [row for row in rows if row.arm and "~" not in row.arm and row.is_count]
    agreed = ("count.agreed", "count.compared", "agreement", "kappa")
    return [
        *make_table(
            "agreement",
            "How far passes agree",
            "Share of items on which passes agree, and Cohen's κ, which corrects for chance.",
            ("experiment", "passes", "agreed", "compared", "agreement", "κ"),
            [
                (*place, *(format_row(group.get(quantity)) for quantity in agreed))
                for place, group in rows.group("experiment", "arm").items()
                if place[1] and "agreement" in group
            ],
            names=2,
        ),
        *make_table(
            "admissible",
            "Which questions pass a gate",
            "Questions whose pools may be reordered: by one pass, by both (intersection), by most "
            "(majority) or by all (unanimity).",
            ("gate", "admissible"),
            [
                (row.arm, format_share(row))
                for row in single
                if (row.experiment, row.quantity) == ("screen", "count.admissible")
                and row.estimate is not None
            ],
        ),
        *make_table(
            "readings",
            "The labels of each pass",
            "Number of items by label.",
            ("experiment", "pass", "read by", "label", "number"),
            [
                (
                    *(row.experiment, row.arm, row.model),
                    find_quantity(row.quantity).part,
                    format_row(row),
                )
                for row in single
                if not row.policy and "(" not in row.arm
            ],
            names=4,
        ),
    ]
