"""Source runs: the calls of the package that numbers come from, and the values that they gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

from routeprism.errors import InputError
from routeprism.files import replace_file
from routeprism.reproduction._templates import read_data
from routeprism.runs import EstimateRow


@dataclass(frozen=True, slots=True)
class SourceRun:
    """One call of the package, or arithmetic on a published table."""

    name: str
    meaning: str
    """What is run, for the page."""
    benchmark: str = ""
    policies: Mapping[str, str] = field(default_factory=dict)
    """Role → spec. Tables name roles, so a different spec in a role gives different numbers."""
    call: str = "audit"
    """The function of `routeprism.api` to call."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the call."""
    asks: bool = False
    """Whether it requires a model that answers."""
    masks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Name of a mask → the kinds of questions in it."""
    total: Mapping[str, str] = field(default_factory=dict)
    """A `field` of all findings with the name `finding` to add up, and the columns of its row."""
    matrix: Mapping[str, str] = field(default_factory=dict)
    """The published `table` to compute agreement from instead of calling the package, and the
    columns of its rows."""


def _read_sources() -> Mapping[str, SourceRun]:
    content, _ = read_data("sources.json")
    return {name: SourceRun(name, **entry) for name, entry in content["sources"].items()}


SOURCES: Mapping[str, SourceRun] = MappingProxyType(_read_sources())
"""Every run, by its name."""

STORED = Path(str(files(__package__).joinpath("obtained.json")))
"""The values that come with the package."""
_EMPTY = EstimateRow(experiment="", benchmark="", quantity="", estimate=None)


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """An estimate row, and how far its limits move from one bootstrap seed to another."""

    row: EstimateRow
    lower_noise: float | None = None
    """The standard deviation of the lower limit over seeds; None if it was not measured."""
    upper_noise: float | None = None


@dataclass(frozen=True, slots=True)
class SourceValues:
    """What one source run gave."""

    made: Mapping[str, Any]
    """How it was made: benchmark and fingerprint, policies by role, options, versions."""
    rows: tuple[MeasuredRow, ...]
    """The rows that tables refer to; their policy is a role."""

    @property
    def embedded(self) -> bool:
        """Whether an embedded model answered."""
        return any("embedded" in measured.row.flags for measured in self.rows)

    @property
    def masks(self) -> Mapping[str, str]:
        """The question sets that were passed: name → what was read."""
        masks: Mapping[str, str] = self.made.get("masks", {})
        return masks

    @property
    def coverage(self) -> str:
        """Why only a part of the questions was answered; empty if all were."""
        return str(self.made.get("part", ""))


ObtainedValues = Mapping[str, SourceValues]
"""Name of a source run → what it gave."""


def read_obtained(path: Path = STORED) -> ObtainedValues:
    """Read obtained values; give none if the file does not exist."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {
            name: SourceValues(entry["made"], tuple(map(_parse_row, entry["rows"])))
            for name, entry in content.items()
        }
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            "is not a file of obtained values; `routeprism reproduce --run` writes one", file=path
        ) from error


def write_obtained(obtained: ObtainedValues, path: Path) -> None:
    """Write obtained values and create the directory; the same values give the same bytes."""
    # One row per line: a difference between two files shows what a refresh changed.
    entries = [
        f"{json.dumps(name)}: {{\n"
        f'"made": {json.dumps(dict(values.made), ensure_ascii=False, sort_keys=True)},\n'
        '"rows": [\n'
        + ",\n".join(json.dumps(row, ensure_ascii=False) for row in _format_rows(values.rows))
        + "\n]}"
        for name, values in sorted(obtained.items())
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(
        path, "\n".join(["{", *([",\n".join(entries)] if entries else []), "}\n"]).encode()
    )


def _format_rows(rows: Iterable[MeasuredRow]) -> Sequence[Mapping[str, Any]]:
    entries = []
    for measured in sorted(rows, key=lambda measured: measured.row.identity):
        entry: dict[str, Any] = {
            column.name: value
            for column in fields(EstimateRow)
            if (value := getattr(measured.row, column.name)) != getattr(_EMPTY, column.name)
        }
        if measured.lower_noise is not None:
            entry["lower_noise"] = measured.lower_noise
            entry["upper_noise"] = measured.upper_noise
        entries.append(entry)
    return entries


def _parse_row(entry: Mapping[str, Any]) -> MeasuredRow:
    values = dict(entry)
    noise = values.pop("lower_noise", None), values.pop("upper_noise", None)
    values = {"experiment": "", "benchmark": "", "quantity": "", "estimate": None, **values}
    return MeasuredRow(EstimateRow(**values), *noise)
