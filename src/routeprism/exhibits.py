"""What a person is shown, as data: statements, tables and charts whose numbers know their rows.

Experiments and reviews make exhibits; the terminal, the report, notebooks and JSON render them. No
code reads an exhibit's words back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from html import escape
from string import Formatter
from typing import Any, Literal, NamedTuple

from routeprism.runs import EstimateRow, Finding, Rows, format_interval

__all__ = [
    "Chart",
    "Number",
    "Part",
    "Results",
    "Series",
    "Severity",
    "Statement",
    "Table",
    "compose",
    "draw_forest",
    "format_count",
    "format_row",
    "format_share",
    "join_parts",
    "make_card",
    "make_table",
    "name_chart",
    "name_record",
    "place_point",
    "read_limits",
    "read_statements",
    "shorten",
    "shorten_lines",
    "write_share",
]

Severity = Literal["good", "info", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it is shown, and the row of `estimates.csv` that it comes from."""

    text: str
    row: EstimateRow

    def __str__(self) -> str:
        return self.text


Part = str | Number
"""A piece of a sentence or a table cell."""


def format_row(
    row: EstimateRow | None, *, digits: int = 3, signed: bool = False, limits: bool = True
) -> Part:
    """Format an estimate with its interval, or a count; empty if it does not apply."""
    if row is None or row.estimate is None:
        return ""
    if row.is_count:
        return Number(f"{row.estimate:.0f}", row)
    if not limits:
        return Number(f"{row.estimate:.{digits}f}", row)
    text = format_interval(row.estimate, row.lower, row.upper, digits=digits, signed=signed)
    return Number(text, row)


def format_share(row: EstimateRow | None, *, is_mean: bool = True) -> Part:
    """Format a count with what it is out of, such as `12 of 40`; empty if it does not apply.

    The mean of counts over several orders is written as `3.4 of 40 on average`, unless its table
    explains that.
    """
    if row is None or row.estimate is None:
        return ""
    text = write_share(row.estimate, row.queries or 0)
    return Number(text if is_mean else text.removesuffix(_MEAN), row)


_MEAN = " on average"


def write_share(part: float, whole: float) -> str:
    """Write a share with its counts, such as `12 of 40` or `3.4 of 40 on average`."""
    counts = f"{format_count(part)} of {format_count(whole)}"
    return counts if part == round(part) else f"{counts}{_MEAN}"


def format_count(number: float) -> str:
    """Format a count, or the mean of counts with one decimal."""
    return f"{number:.1f}".removesuffix(".0")


def join_parts(separator: str, phrases: Iterable[Iterable[Part]]) -> Iterator[Part]:
    """Put a separator between phrases, as `str.join` does between texts."""
    for at, phrase in enumerate(phrases):
        if at:
            yield separator
        yield from phrase


def compose(template: str, **values: Part | Iterable[Part]) -> tuple[Part, ...]:
    """Fill the `{names}` of a template, as `str.format` does, and keep its numbers as numbers."""
    parts: list[Part] = []

    def add(part: Part) -> None:
        if part and isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        elif part:
            parts.append(part)

    for text, name, _, _ in Formatter().parse(template):
        add(text)
        if name is not None:
            value = values[name]
            for part in (value,) if isinstance(value, str | Number) else value:
                add(part)
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence as data: text and numbers, what it is about, and what to do next."""

    parts: tuple[Part, ...]
    kind: str
    """The experiment or review that makes it, or `note`."""
    policy: str = ""
    """The memory that it describes; empty if it describes the whole run."""
    schedule: str = ""
    severity: Severity = "info"
    next_step: str = ""
    """A command or an action that follows from it; empty if there is none."""
    scope: str = ""
    """What narrows it down besides the policy, such as `replay, read by reader`."""
    flags: tuple[str, ...] = ()
    """Marks of its numbers: `synthetic` data, an `embedded` or `scripted` model."""
    confirmation: str = ""
    """A command that shows the same by other means; empty if there is none."""

    def __str__(self) -> str:
        subject = ", ".join(filter(None, (self.policy, self.scope)))
        text = "".join(map(str, self.parts))
        flags = "".join(f" [{flag}]" for flag in self.flags)
        step = f"; {self.next_step}" if self.next_step else ""
        return f"{f'{subject}: ' if subject else ''}{text}{step}{flags}"

    @property
    def text(self) -> str:
        """The sentence for a place that shows its policy, its next step and its flags."""
        return f"{f'{self.scope}: ' if self.scope else ''}{''.join(map(str, self.parts))}"

    @property
    def parts_below_policy(self) -> tuple[Part, ...]:
        """Return the sentence for a place that shows its policy and its flags."""
        parts = compose(
            "{scope}{parts}{step}",
            scope=f"{self.scope}: " if self.scope else "",
            parts=self.parts,
            step=f"; {self.next_step}" if self.next_step else "",
        )
        first = parts[0] if parts else ""
        if not self.policy or not isinstance(first, str):
            return parts
        return (first[:1].upper() + first[1:], *parts[1:])

    def to_json(self, numbers: Mapping[EstimateRow, int]) -> dict[str, Any]:
        """Write it for the manifest; `numbers` gives each row's number, counted from 1."""
        parts = [
            part if isinstance(part, str) else {"text": part.text, "row": numbers.get(part.row)}
            for part in self.parts
        ]
        fields = ("kind", "policy", "schedule", "severity", "next_step", "scope")
        texts = {name: getattr(self, name) for name in fields}
        more = {"confirmation": self.confirmation} if self.confirmation else {}
        return {"parts": parts, **texts, **more, "flags": list(self.flags)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any], rows: tuple[EstimateRow, ...]) -> Statement:
        """Read it back from a manifest, given the run's rows in their order."""
        parts: list[Part] = []
        for part in value["parts"]:
            if isinstance(part, str):
                parts.append(part)
            elif part["row"] is None or part["row"] > len(rows):  # its row is not in the run
                parts.append(part["text"])
            else:
                parts.append(Number(part["text"], rows[part["row"] - 1]))
        rest = {name: text for name, text in value.items() if name not in ("parts", "flags")}
        return cls(tuple(parts), **rest, flags=tuple(value.get("flags", ())))


def read_statements(
    manifest: Mapping[str, Any], rows: Sequence[EstimateRow]
) -> tuple[Statement, ...]:
    """Read the statements of a finished run; one of an earlier version has them as plain texts."""
    if "statements" not in manifest:
        return tuple(Statement((str(text),), "note") for text in manifest.get("sentences") or ())
    return tuple(Statement.from_json(value, tuple(rows)) for value in manifest["statements"])


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a run; an empty cell does not apply."""

    name: str
    """The name of its file and its anchor, such as `restoration`."""
    title: str
    caption: str
    """How to read it."""
    columns: tuple[str, ...]
    rows: tuple[tuple[Part, ...], ...]
    names: int = 1
    """How many columns from the left are names; the rest are numbers."""


def make_table(
    name: str,
    title: str,
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Part]],
    *,
    names: int = 1,
) -> list[Table]:
    """Make a table, or none at all where there are no rows."""
    cells = tuple(tuple(row) for row in rows)
    return [Table(name, title, caption, tuple(columns), cells, names)] if cells else []


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a run: values for a template."""

    name: str
    """The name of its file, unique in a report."""
    title: str
    alternative: str
    """Its description for people who cannot see it."""
    template: str
    """The name of a chart template of the package `report`, or a whole Vega-Lite spec as JSON."""
    values: tuple[Mapping[str, Any], ...]


class Series(NamedTuple):
    """A quantity of one pair of routes, whose means are shown unit by unit."""

    experiment: str
    quantity: str
    policy: str
    schedule: str
    model: str


@dataclass(frozen=True, slots=True, repr=False)
class Results:
    """The results of a run that its tables and charts are made from."""

    rows: Rows
    findings: Mapping[str, Sequence[Finding]] = field(default_factory=dict)
    """Results that are not a single number, by name."""
    units: Mapping[Series, Mapping[str, float]] = field(default_factory=dict)
    """The mean of each unit."""
    incomplete: bool = False
    """Whether answers or routes are missing."""

    @classmethod
    def of(cls, rows: Rows, findings: Iterable[Finding], *, incomplete: bool = False) -> Results:
        """Put rows together with findings, which are grouped by their names."""
        by_name: dict[str, list[Finding]] = {}
        for finding in findings:
            by_name.setdefault(finding.name, []).append(finding)
        return cls(rows, by_name, incomplete=incomplete)

    def __repr__(self) -> str:
        number = sum(map(len, self.findings.values()))
        return f"<Results: {len(self.rows)} numbers, {number} findings>"


_LONGEST_NAME = 80


def shorten(text: str, limit: int = _LONGEST_NAME) -> str:
    """Cut a name that is too long for a chart."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


_MOST_QUOTED = 48
"""How many characters of a record's text a sentence quotes."""


def name_record(id: str, text: str) -> str:
    """Name a record by its id and the beginning of its text: `'n26' (“Flight to Tbilisi…”)`."""
    words = shorten(" ".join(text.split()), _MOST_QUOTED)
    return f"'{shorten(' '.join(id.split()))}'" + (f" (“{words}”)" if words else "")


MOST_LINES = 30
"""Maximum number of lines that a result prints."""


def shorten_lines(texts: Iterable[str], rest: str = "statements and notes") -> str:
    """Join texts to at most 30 lines; the last one counts the others and names where they are."""
    lines = [line for text in texts if text for line in text.splitlines()]
    if len(lines) > MOST_LINES:
        more = len(lines) - MOST_LINES + 1
        lines = [*lines[: MOST_LINES - 1], f"… {more} more lines in {rest} of the result"]
    return "\n".join(lines)


def make_card(
    title: str, sentences: Sequence[str], table: Sequence[Sequence[str]] = (), *, most: int = 6
) -> str:
    """Make a short HTML card for a notebook: a title, a table with its header, a few sentences."""
    lines = [
        "<tr>"
        + "".join(f'<{cell} style="text-align:left">{escape(text)}</{cell}>' for text in row)
        + "</tr>"
        for cell, row in zip(("th", *["td"] * len(table)), table, strict=False)
    ]
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences[:most])
    more = len(sentences) - most
    rest = f"<p>… and {more} more sentences</p>" if more > 0 else ""
    table_html = f"<table>{''.join(lines)}</table>" if lines else ""
    return f"<div><strong>{escape(title)}</strong>{table_html}<ul>{items}</ul>{rest}</div>"


def name_chart(*names: str) -> str:
    """Join names into one that is fit for a file; long names that begin alike stay different.

    Names that differ in their marks alone may become the same; a report numbers their charts.
    """
    joined = "-".join(name for name in names if name)
    if len(joined) > 60:
        joined = f"{joined[:51]}-{sha256(joined.encode()).hexdigest()[:8]}"
    return "".join(c if c.isalnum() or c in "-_.=" else "-" for c in joined)


def read_limits(row: EstimateRow) -> dict[str, Any]:
    """Return an estimate and its interval under the names that chart templates use."""
    return {"estimate": row.estimate, "lower": row.lower, "upper": row.upper}


def place_point(unit: int) -> float:
    """Spread points of equal value: a fixed, well-mixed place for each unit."""
    return round((unit * 0.6180339887498949) % 1 - 0.5, 4)


def draw_forest(name: str, title: str, lines: Sequence[tuple[str, EstimateRow]]) -> Chart:
    """Draw estimates with their intervals below each other, each line with its label."""
    described = [f"{label.rstrip()} {format_row(row)}" for label, row in lines]
    rest = len(described) - 12
    more = f"; and {rest} more, in the table of all estimates" if rest > 0 else ""
    return Chart(
        name,
        title,
        f"Estimates with 95% intervals of {title}: {'; '.join(described[:12])}{more}.",
        "forest",
        tuple(
            {"label": label, **read_limits(row), "questions": row.queries} for label, row in lines
        ),
    )
