"""Executing sources: ordinary calls of the package; the rows that tables need are kept."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from routeprism import api
from routeprism.measures import Confusion, Tally
from routeprism.policies import make_policy
from routeprism.records import Benchmark, load_benchmark, only_questions
from routeprism.reproduction._cells import Reference, find
from routeprism.reproduction._obtained import Kept, Noted
from routeprism.reproduction._published import published
from routeprism.reproduction._sources import Source
from routeprism.runs import Column, EstimateRow, Stored
from routeprism.support import mask_from_file, with_label_file

__all__ = ["perform"]

_SEEDS = range(1, 21)
"""Seeds over which limits are compared, to know how far resampling alone moves them."""
_PRIMARY = "primary"
"""How the mask of primary questions is called."""
_FACTS = "fact-recall"
"""The stratum whose cells are about primary questions in the paper."""
_PACKAGES = ("routeprism", "numpy", "scikit-learn")
_MATRIX = "tab:fullpool-semantic-confusion"
Pools = Callable[[int, int], None]


def perform(
    source: Source,
    wanted: Collection[Reference],
    *,
    data: Path | None = None,
    model: str | None = None,
    readings: Sequence[Path] = (),
    mask: Path | None = None,
    workers: int | None = 1,
    progress: Pools | None = None,
    **given: Any,
) -> Kept:
    """Execute one source, and keep the rows that are wanted.

    `readings` are support passes that become labels; `mask` lists the questions that stand for the
    paper's primary ones. `given` are further arguments of the call, such as `labels`; they win over
    the source's own.
    """
    made: dict[str, Any] = {
        "benchmark": source.benchmark,
        "policies": dict(source.policies),
        "packages": {name: version(name) for name in _PACKAGES},
    }
    if source.call == "readings":
        rows = _readings()
        return Kept(made, _kept([Noted(row) for row in rows], wanted))
    benchmark = load_benchmark(source.benchmark, data)
    for file in readings:
        benchmark = with_label_file(benchmark, file)
    options = {**source.options, **given}
    made["fingerprint"] = benchmark.fingerprint
    made["options"] = {name: _plain(value) for name, value in options.items()}
    if mask is not None:
        chosen = mask_from_file(mask, benchmark, name=_PRIMARY)
        made["mask"] = f"{len(chosen)} questions of {mask.name}"
        if options.get("kinds"):  # all of it rests on primary questions
            benchmark = only_questions(benchmark, chosen.question_ids)
        else:
            options["masks"] = {_PRIMARY: chosen.question_ids}
    options |= {"workers": workers, "progress": progress}
    if source.asks:
        options["models"] = [model]
        made["model"] = model
    calls: Mapping[str, Callable[..., api.Audit]] = {
        "audit": api.audit,
        "restore": api.restore,
        "orders": api.explore_orders,
    }
    # The same spec may be written in several ways; rows have the canonical one.
    roles = {make_policy(spec).name: role for role, spec in source.policies.items()}
    with tempfile.TemporaryDirectory() as scratch:
        limits = [one for one in wanted if one.judged and one.number in ("lower", "upper")]
        run = Path(scratch) / "run" if limits else None
        found = calls[source.call](benchmark, *source.policies.values(), run=run, **options)
        rows = [replace(row, policy=roles.get(row.policy, row.policy)) for row in found.rows]
        rows = [*_primary(rows), *_orders(found, roles)]
        kept = _kept([Noted(row) for row in rows], wanted)
        if run is not None:
            noisy = {id(find(kept, one)) for one in limits}
            names = {role: name for name, role in roles.items()}
            with Stored(run) as stored:
                kept = tuple(
                    _noise(one, stored, benchmark, names) if id(one) in noisy else one
                    for one in kept
                )
    return Kept(made, kept)


def _kept(rows: Sequence[Noted], wanted: Collection[Reference]) -> tuple[Noted, ...]:
    found = {
        noted.row.identity: noted
        for reference in wanted
        if (noted := find(rows, reference)) is not None
    }
    return tuple(found.values())


def _primary(rows: Sequence[EstimateRow]) -> list[EstimateRow]:
    """Let numbers within the mask stand for those of the fact-recall questions, if there is one."""
    inside = [row for row in rows if row.mask == _PRIMARY]
    if not inside:
        return list(rows)
    others = [row for row in rows if row.stratum != _FACTS]
    return [*others, *(replace(row, mask="", stratum=_FACTS) for row in inside)]


def _noise(noted: Noted, stored: Stored, benchmark: Benchmark, names: Mapping[str, str]) -> Noted:
    """Measure how far the limits move with the seed, from the values by question."""
    row = noted.row
    where = {
        name: getattr(row, name)
        for name in Column._fields
        if name not in ("policy", "quantity") and hasattr(row, name)
    }
    policy = names.get(row.policy, row.policy)
    values = stored.per_question(policy=policy, quantity=row.quantity, **where)
    if len(values) != 1 or row.stratum != "all":
        return noted
    tally: Tally[str] = Tally(benchmark.weighting)
    for answers in next(iter(values.values())).values():
        if answers:
            tally.append({"": (sum(answers.values()), len(answers))})
    ends = [tally.estimates(seed=seed, interval=benchmark.interval)[""] for seed in _SEEDS]
    lower = [end.lower for end in ends if end.lower is not None]
    upper = [end.upper for end in ends if end.upper is not None]
    if len(lower) < len(ends) or len(upper) < len(ends):
        return noted
    return Noted(row, round(statistics.stdev(lower), 6), round(statistics.stdev(upper), 6))


def _orders(found: api.Audit, roles: Mapping[str, str]) -> list[EstimateRow]:
    """Count the orders that were looked at, for each policy."""
    orders: dict[str, list[int]] = {}
    for finding in found.findings:
        if finding.name == "order_distribution":
            orders.setdefault(finding.policy, []).append(finding.value["orders"])
    return [
        EstimateRow(
            experiment="orders",
            benchmark=found.benchmark,
            policy=roles.get(policy, policy),
            schedule="uniform",
            quantity="count.orders",
            estimate=float(sum(numbers)),
            units=len(numbers),
        )
        for policy, numbers in orders.items()
    ]


def _readings() -> list[EstimateRow]:
    """Compute agreement, κ and the two readings' counts from the printed confusion matrix."""
    cells = [one for one in published() if one.label == _MATRIX]
    labels = tuple(dict.fromkeys(one.row for one in cells))
    counts = tuple(tuple(int(one.text) for one in cells if one.row == row) for row in labels)
    matrix = Confusion(labels, counts)
    numbers: dict[str, float | None] = {
        "count.agreed": float(matrix.agreed),
        "agreement": matrix.agreement,
        "kappa": matrix.kappa,
    }
    for at, label in enumerate(labels):
        numbers[f"count.A.{label}"] = float(sum(counts[at]))
        numbers[f"count.B.{label}"] = float(sum(row[at] for row in counts))
    return [
        EstimateRow(
            experiment="screen",
            benchmark="",
            quantity=quantity,
            estimate=value,
            queries=matrix.total,
        )
        for quantity, value in numbers.items()
    ]


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
