"""What runs gave: the estimate rows that tables refer to, kept in a generated file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.resources import files
from pathlib import Path
from typing import Any

from routeprism.errors import InputError
from routeprism.runs import EstimateRow

__all__ = ["STORED", "Kept", "Noted", "Obtained", "read_obtained", "write_obtained"]

STORED = Path(str(files(__package__).joinpath("obtained.json")))
"""The values of the last refresh; written by `reproduce --run` alone."""
_EMPTY = EstimateRow(experiment="", benchmark="", quantity="", estimate=None)


@dataclass(frozen=True, slots=True)
class Noted:
    """An estimate row, with how far its limits move from one seed of the bootstrap to another."""

    row: EstimateRow
    lower_noise: float | None = None
    """The standard deviation of the lower limit over seeds; None where it was not measured."""
    upper_noise: float | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What one source gave."""

    made: Mapping[str, Any]
    """With what it was made: benchmark and fingerprint, policies by role, options, versions."""
    rows: tuple[Noted, ...]
    """The rows that tables refer to; their policy is a role."""

    @property
    def embedded(self) -> bool:
        """Whether an embedded model answered."""
        return any("embedded" in noted.row.flags for noted in self.rows)


Obtained = Mapping[str, Kept]
"""Source → what it gave."""


def read_obtained(path: Path = STORED) -> Obtained:
    """Read what was obtained; nothing where there is no such file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: Kept(kept["made"], tuple(_noted(entry) for entry in kept["rows"]))
            for name, kept in content.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "is no file of obtained values; routeprism reproduce --run writes one", file=path
        ) from error


def write_obtained(obtained: Obtained, path: Path = STORED) -> None:
    """Write what was obtained: the same values give the same bytes."""
    content = {
        name: {"made": dict(kept.made), "rows": _entries(kept.rows)}
        for name, kept in sorted(obtained.items())
    }
    # One row a line: what a refresh changed can be read in a difference.
    lines = ["{"]
    for at, (name, kept) in enumerate(content.items()):
        made = json.dumps(kept["made"], ensure_ascii=False, sort_keys=True)
        lines.append(f"{json.dumps(name)}: {{")
        lines.append(f'"made": {made},')
        lines.append('"rows": [')
        lines.append(",\n".join(json.dumps(row, ensure_ascii=False) for row in kept["rows"]))
        lines.append("]}" + ("," if at < len(content) - 1 else ""))
    lines.append("}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _entries(rows: Iterable[Noted]) -> Sequence[Mapping[str, Any]]:
    found = []
    for noted in sorted(rows, key=lambda one: one.row.identity):
        entry: dict[str, Any] = {
            part.name: value
            for part in fields(EstimateRow)
            if (value := getattr(noted.row, part.name)) != getattr(_EMPTY, part.name)
        }
        if noted.lower_noise is not None:
            entry["lower_noise"] = noted.lower_noise
            entry["upper_noise"] = noted.upper_noise
        found.append(entry)
    return found


def _noted(entry: Mapping[str, Any]) -> Noted:
    values = dict(entry)
    noise = values.pop("lower_noise", None), values.pop("upper_noise", None)
    values = {"experiment": "", "benchmark": "", "quantity": "", "estimate": None, **values}
    return Noted(EstimateRow(**values), *noise)
