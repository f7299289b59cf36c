"""Tables of a run, each made once and written as HTML, Markdown or LaTeX."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from routeprism.report._html import Markup, fragment, tag
from routeprism.runs import COLUMNS, EstimateRow

__all__ = [
    "TABLES",
    "Shown",
    "Table",
    "as_html",
    "as_latex",
    "as_markdown",
    "numbered",
    "shown_interval",
    "tables",
]


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are shown; empty means not applicable."""

    name: str
    """What its file is called."""
    title: str
    caption: str
    """How to read it."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    names: int = 1
    """How many columns from the left are names; the others are numbers."""


class Shown(str):
    """A number as it is shown, which knows the row of `estimates.csv` that it is."""

    __slots__ = ("number", "row")

    row: EstimateRow
    number: int | None
    """Which row of the run it is, from 1; None for a table of no run."""

    def __new__(cls, text: str, row: EstimateRow, number: int | None = None) -> Shown:
        """Keep the row with the text."""
        made = super().__new__(cls, text)
        made.row, made.number = row, number
        return made


def numbered(table: Table, rows: Mapping[EstimateRow, int]) -> Table:
    """Say of every number of a table which row it is, so that it can be traced."""
    cells = (
        tuple(
            Shown(cell, cell.row, rows.get(cell.row)) if isinstance(cell, Shown) else cell
            for cell in line
        )
        for line in table.rows
    )
    return replace(table, rows=tuple(cells))


def shown_interval(row: EstimateRow | None, digits: int = 3) -> str:
    """Write an estimate and its limits; nothing where it does not apply."""
    if row is None or row.estimate is None:
        return ""
    if row.quantity.endswith("_count") or row.quantity.startswith(("count.", "miss.", "extra.")):
        return Shown(f"{row.estimate:.0f}", row)
    value = f"{row.estimate:.{digits}f}"
    if row.lower is None or row.upper is None:
        return Shown(value, row)
    return Shown(f"{value} [{row.lower:.{digits}f}, {row.upper:.{digits}f}]", row)


Found = dict[str, EstimateRow]


def grouped(
    rows: Iterable[EstimateRow], names: Sequence[str], *, arms: bool = False
) -> dict[tuple[str, ...], Found]:
    """Group the plain rows (all questions, no mask) by some of their names, quantity by quantity.

    Of several fillers the average over all of them stays, and of several batches the first.
    """
    found: dict[tuple[str, ...], Found] = {}
    for row in rows:
        if row.stratum != "all" or row.mask or (row.arm and not arms):
            continue
        place = found.setdefault(tuple(getattr(row, name) for name in names), {})
        before = place.get(row.quantity)
        if before is None or (before.batch == row.batch and len(row.filler) > len(before.filler)):
            place[row.quantity] = row
    return found


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


def as_html(table: Table, *, caption: bool = True) -> Markup:
    """Write a table for the page; it scrolls on its own where it is too wide."""
    head = tag(
        "tr",
        *(
            tag("th", column, scope="col", class_="number" if at >= table.names else None)
            for at, column in enumerate(table.columns)
        ),
    )
    body = [
        tag("tr", *(_cell(cell, at, table.names) for at, cell in enumerate(row)))
        for row in table.rows
    ]
    shown = tag(
        "table",
        tag("caption", table.caption) if caption else None,
        tag("thead", head),
        tag("tbody", fragment(body)),
    )
    return tag("div", shown, class_="scroll", tabindex="0", role="region", aria_label=table.title)


_LONG = 40
_SHARE = re.compile(r"(\d+) of (\d+)")


def _cell(text: str, at: int, names: int) -> Markup:
    """Make a cell; shares also have a bar."""
    long = "long" if len(text) > _LONG else None
    if at == 0:
        return tag("th", text, scope="row", class_=long)
    if at < names:
        return tag("td", text, class_=long)
    if not text:
        return tag("td", tag("span", "n/a", class_="none"), class_="number")
    bar = None
    if share := _SHARE.fullmatch(text):
        part, whole = map(int, share.groups())
        bar = tag("span", class_="share", style=f"--share:{part / whole if whole else 0:.4f}")
    shown: Markup | str = text
    if isinstance(text, Shown) and text.number is not None:
        place = f"Row {text.number} of all estimates"
        shown = tag("a", text, href=f"#row={text.number}", title=place)
    return tag("td", shown, bar, class_="number")


def as_markdown(table: Table) -> str:
    """Write a table as GitHub-flavoured Markdown."""
    marks = ["---" if at < table.names else "---:" for at in range(len(table.columns))]
    lines = [f"### {_markdown(table.title)}", "", _markdown(table.caption), ""]
    for cells in (table.columns, marks, *table.rows):
        shown = cells if cells is marks else [_markdown(cell) or "n/a" for cell in cells]
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def _markdown(text: str) -> str:
    escaped = "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$" else c for c in text)
    return " ".join(escaped.replace("&", "&amp;").split())


def as_latex(table: Table) -> str:
    """Write a table for LaTeX with the booktabs package."""
    columns = "l" * table.names + "r" * (len(table.columns) - table.names)
    lines = [
        r"\begin{table}",
        rf"\caption{{{_latex(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(_latex(column) for column in table.columns) + r" \\",
        r"\midrule",
        *(" & ".join(_latex(cell) or "--" for cell in row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


_LATEX = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "κ": r"$\kappa$",
    "Δ": r"$\Delta$",
    "δ": r"$\delta$",
    "Γ": r"$\Gamma$",
    "−": "$-$",
    "×": r"$\times$",
    "[": "{[}",
    "]": "{]}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def _latex(text: str) -> str:
    return " ".join("".join(_LATEX.get(character, character) for character in text).split())
