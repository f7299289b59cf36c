"""The tables of the terminal, made from the rows of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from rich.markup import escape
from rich.table import Table

from routeprism.experiments import layers, moment_of
from routeprism.runs import EstimateRow

__all__ = [
    "cell",
    "evidence_table",
    "interface_table",
    "mechanism_table",
    "point",
    "replication_table",
    "restoration_table",
    "retention_table",
    "ties_table",
]

_MOMENTS = 8
"""How many moments of a growing history fit side by side."""
_TIES = "_ties"
"""How counts of ties end; what comes before says what was tied."""
_CONDITIONS = ("present", "absent", "restored", "replacement")
_HEADINGS = {"D_res": "D_res", "Delta_rep": "Δ_rep", "H": "H", "Delta": "Δ"}


def interface_table(rows: Sequence[EstimateRow]) -> Table:
    """Say for each policy and schedule how many pairs changed, layer by layer."""
    lines = layers(rows)
    models = {model for line in lines for model in line.answers}
    # Two models or more have a table of their own.
    told = [model for model in models if len(models) == 1]
    found = {name for line in lines for one in line.answers.values() for name in one}
    # Free text has no options to disagree on.
    asked = ("D_res" if "D_res" in found else "H", "Delta_rep")
    shown = [name for name in asked if told and name in found]
    table = _table("policy", "schedule")
    # With answers beside it J is without its interval, which the sentences give: 80 columns.
    overlap = "J" if shown else "J [95%]"
    for heading in ("retained", "V", "C", "I", overlap, *(_HEADINGS[name] for name in shown)):
        table.add_column(heading, justify="right", no_wrap=True)
    before = ""
    for line in lines:
        answers = line.answers.get(told[0], {}) if told else {}
        table.add_row(
            escape(line.policy) if line.policy != before else "",
            escape(line.schedule),
            *(str(number) for number in (line.retained, line.sources, line.context)),
            "n/a" if line.state is None else str(line.state),
            point(line.overlap) if shown else cell(line.overlap),
            *(point(answers.get(name)) for name in shown),
        )
        before = line.policy
    return table


def evidence_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Say how much of the evidence is kept and shown; for benchmarks that publish it by session."""
    found: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in _plain(rows, "retention"):
        if row.quantity.startswith("recall.") and row.unit != "user" and not row.arm:
            found.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    if not found:
        return None
    table = _table("policy", "schedule")
    for heading in ("kept F", "R", "R−F", "shown F", "R", "R−F"):  # limits would not fit beside
        table.add_column(heading, justify="right", no_wrap=True)
    for place, recall in found.items():
        table.add_row(
            *map(escape, place),
            *(
                point(recall.get(f"recall.{where}.{side}"))
                for where in ("retained", "exposed")
                for side in ("forward", "route", "route-forward")
            ),
        )
    return table


def replication_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Put the models of an audit side by side; nothing for fewer than two."""
    lines = layers(rows)
    if len({model for line in lines for model in line.answers}) < 2:
        return None
    places = [(line.policy, line.schedule, model) for line in lines for model in line.answers]
    told = _telling(places)
    table = _table(*(_PLACE[at] for at in told))
    if len(told) == 3:
        table.columns[2].max_width = _MODEL
    table.add_column("H", justify="right", no_wrap=True)
    for heading in ("D_res [95%]", "Δ_rep [95%]"):
        table.add_column(heading, justify="right", max_width=_HALF if len(told) == 3 else None)
    for line in lines:
        for model, found in line.answers.items():
            place = (line.policy, line.schedule, model)
            table.add_row(
                *(escape(place[at]) for at in told),
                point(found.get("H")),
                cell(found.get("D_res")),
                cell(found.get("Delta_rep")),
            )
    return table


_HALF = len("0.000 [0.000,")
"""How wide an interval is that takes two lines."""
_MODEL = 12
"""How wide the column of models is at most beside policies, schedules and intervals."""
_PLACE = ("policy", "schedule", "model")


def _telling(places: Collection[tuple[str, str, str]]) -> list[int]:
    """Leave out what is the same in every line, but for the policy: the intervals need the room."""
    return [at for at in range(3) if at == 0 or len({place[at] for place in places}) > 1]


_POLICY = 16
"""How wide the column of policies is at least."""


def restoration_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Give the four accuracies and the two contrasts, one line for each model."""
    grouped: dict[tuple[str, str, str], dict[str, EstimateRow]] = {}
    for row in _plain(rows, "restoration"):
        if row.model and not row.arm:
            found = grouped.setdefault((row.policy, row.schedule, row.model), {})
            if row.quantity not in found or len(row.filler) > len(found[row.quantity].filler):
                found[row.quantity] = row
    if not grouped:
        return None
    told = _telling(grouped)
    table = _table(*(_PLACE[at] for at in told))
    table.columns[0].no_wrap = max(len(policy) for policy, *_ in grouped) <= _POLICY
    for name in _CONDITIONS:
        table.add_column(name, justify="right", no_wrap=True)
    for heading in ("R−A [95%]", "R−P [95%]"):
        table.add_column(heading, justify="right", overflow="fold")
    for place, found in grouped.items():
        table.add_row(
            *(escape(place[at]) for at in told),
            *(point(found.get(f"accuracy.{name}")) for name in _CONDITIONS),
            cell(found.get("restored-absent")),
            cell(found.get("restored-replacement")),
        )
    return table


def mechanism_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Give each arm against the canonical one: sources and contexts, and answers where asked."""
    found: dict[tuple[str, str, str, str], dict[str, EstimateRow]] = {}
    for row in _plain(rows, "mechanism"):
        place = (row.policy, row.arm.replace("×", " × "), row.schedule, row.model)
        quantities = found.setdefault(place, {})
        quantity = row.quantity.partition(".")[2]
        if quantity not in quantities or len(row.filler) > len(quantities[quantity].filler):
            quantities[quantity] = row
    if not found:
        return None
    models = sorted({model for *_, model in found if model})
    known = {name for quantities in found.values() for name in quantities}
    answers = ("D_res", "Delta_rep") if "D_res" in known else ("H", "Delta") if models else ()
    several = len({place[:3] for place in found}) > len({place[1:3] for place in found})
    table = _table(*(["policy"] if several else []), "in arrival order", "schedule")
    for heading in ("δ J", "δ C"):
        table.add_column(heading, justify="right", no_wrap=True)
    for model in models:
        for name in answers:
            heading = f"δ {_HEADINGS[name]}" + (f" {model}" if len(models) > 1 else "")
            table.add_column(escape(heading), justify="right", overflow="fold")
    schedules = list(dict.fromkeys(schedule for _, _, schedule, _ in found))
    for (policy, arm, schedule, model), traced in sorted(
        found.items(), key=lambda item: (schedules.index(item[0][2]), "×" in item[0][1])
    ):
        if model:
            continue
        asked = [found.get((policy, arm, schedule, model), {}) for model in models]
        table.add_row(
            *map(escape, (*([policy] if several else []), arm, schedule)),
            point(traced.get("J")),
            point(traced.get("C_changed")),
            *(point(one.get(name)) for one in asked for name in answers),
        )
    return table


def retention_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Give the overlap of what is retained at some moments of a growing history."""
    found: dict[str, dict[str, EstimateRow]] = {}
    for row in _plain(rows, "retention"):
        if row.quantity == "overlap.retained" and row.arm.startswith("t="):
            found.setdefault(row.policy, {})[row.arm] = row
    if not found:
        return None
    arms = sorted({arm for curve in found.values() for arm in curve}, key=moment_of)
    if len(arms) > _MOMENTS:  # the powers of two say enough; the rows have all
        arms = [arm for arm in arms if arm[2:] in ("all", *(str(2**at) for at in range(20)))]
    table = _table("policy")
    for arm in arms:
        table.add_column(arm, justify="right", no_wrap=True)
    for policy, curve in found.items():
        table.add_row(escape(policy), *(point(curve.get(arm)) for arm in arms))
    return table


def ties_table(rows: Sequence[EstimateRow]) -> Table | None:
    """Give how often processing order decided between equals, on the forward route, too."""
    found: dict[tuple[str, str], dict[str, EstimateRow]] = {}
    for row in _plain(rows, "routes"):
        if row.quantity.startswith("count.") and row.quantity.endswith(_TIES):
            found.setdefault((row.policy, row.schedule), {})[row.quantity] = row
    if not found:
        return None
    quantities = list(dict.fromkeys(name for counted in found.values() for name in counted))
    table = _table("policy", "schedule")
    for name in quantities:
        heading = name.removeprefix("count.").removesuffix(_TIES)
        table.add_column(escape(heading), justify="right", no_wrap=True)
    for place, counted in found.items():
        numbers = (counted[name].estimate if name in counted else None for name in quantities)
        table.add_row(*map(escape, place), *("–" if n is None else f"{n:g}" for n in numbers))
    return table


def _plain(rows: Sequence[EstimateRow], experiment: str) -> Iterator[EstimateRow]:
    for row in rows:
        if row.experiment == experiment and row.stratum == "all" and not (row.mask or row.batch):
            yield row


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in names:
        wide = _POLICY if name == "policy" else None
        table.add_column(name, overflow="fold", min_width=wide, no_wrap=name == "schedule")
    return table


def point(row: EstimateRow | None) -> str:
    """Write an estimate without its limits."""
    return "n/a" if row is None or row.estimate is None else f"{row.estimate:.3f}"


def cell(row: EstimateRow | None) -> str:
    """Write an estimate, with its limits where it has some."""
    if row is None or row.lower is None or row.upper is None:
        return point(row)
    return f"{point(row)} [{row.lower:.3f}, {row.upper:.3f}]"
