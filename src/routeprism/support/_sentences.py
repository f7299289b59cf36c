"""What passes found, in sentences that a person can repeat."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from routeprism.runs import EstimateRow
from routeprism.support._readings import Readings
from routeprism.support._rubrics import LABELS, UNREAD

__all__ = ["sentences"]

_ITEMS = {"screen": "pools", "support": "record labels", "compiled": "contexts"}
_READ = {"screen": "pools", "support": "cards", "compiled": "contexts"}


def sentences(passes: Sequence[Readings], rows: Sequence[EstimateRow]) -> tuple[str, ...]:
    """Say what each pass found, how far they agree, and what they find together."""
    plain = [row for row in rows if not row.mask]
    arms: dict[str, dict[str, EstimateRow]] = {}
    for row in plain:
        arms.setdefault(row.arm.rpartition(":")[2] if _prefixed(row) else row.arm, {})[
            row.quantity
        ] = row
    said = [_found(one) for one in passes]
    kind = passes[0].kind
    for at, one in enumerate(passes):
        for other in passes[at + 1 :]:
            said.append(_agree(one.name, other.name, arms, _ITEMS[kind]))
    names = [one.name for one in passes]
    listed = ",".join(names)
    if kind == "screen" and len(passes) == 2:
        both = _count(arms[f"intersection({listed})"], "admissible")
        said.append(f"{_and(names)} both find {both} pools admissible.")
    if kind == "screen" and len(passes) > 2:
        found = arms[f"majority({listed})"]
        told = ", ".join(f"{_count(found, label)} {label}" for label in LABELS["screen"])
        all_of = _count(arms[f"unanimity({listed})"], "admissible")
        said.append(f"By a strict majority of {_and(names)}: {told} pools.")
        said.append(f"All of {_and(names)} find {all_of} pools admissible.")
    return tuple(said)


def _prefixed(row: EstimateRow) -> bool:
    return ":" in row.arm and not row.arm.startswith("direct-sets:")


def _found(one: Readings) -> str:
    counts = dict(one.counts)
    unread = counts.pop(UNREAD)
    noun = _ITEMS[one.kind]
    told = ", ".join(f"{number} {label}" for label, number in counts.items())
    said = f"{one.name} ({one.source}, rubric '{one.rubric}') gives {told} {noun}"
    return said + (f"; {unread} {_READ[one.kind]} unread." if unread else ".")


def _agree(one: str, other: str, arms: Mapping[str, Mapping[str, EstimateRow]], noun: str) -> str:
    arm = f"{one}~{other}"
    found = arms[arm]
    said = f"{one} and {other} agree on {_of(found)} {noun} ({_value(found)}; {_kappa(found)})"
    sets = arms.get(f"direct-sets:{arm}")
    if sets is not None:
        said += f" and on {_of(sets)} direct-support sets ({_value(sets)})"
    return said + "."


def _of(found: Mapping[str, EstimateRow]) -> str:
    return f"{_count(found, 'agreed')} of {_count(found, 'compared')}"


def _count(found: Mapping[str, EstimateRow], label: str) -> int:
    return int(found[f"count.{label}"].estimate or 0)


def _value(found: Mapping[str, EstimateRow]) -> str:
    return _written(found["agreement"]) or "nothing to compare"


def _kappa(found: Mapping[str, EstimateRow]) -> str:
    written = _written(found["kappa"])
    return f"κ = {written}" if written else "κ is not defined"


def _written(row: EstimateRow) -> str:
    if row.estimate is None:
        return ""
    limits = "" if row.lower is None else f" [{row.lower:.3f}, {row.upper:.3f}]"
    return f"{row.estimate:.3f}{limits}"


def _and(names: Sequence[str]) -> str:
    return ", ".join(names[:-1]) + f" and {names[-1]}"
