"""What the page shows beside the paper: the same experiments on data that it does not use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from routeprism.reproduction._cells import Number, Part, Reference, find
from routeprism.reproduction._obtained import Noted, Obtained

__all__ = ["BEYOND", "Beyond", "beyond_lines", "beyond_references"]


@dataclass(frozen=True, slots=True)
class Beyond:
    """A table without printed numbers: rows and columns, and the estimate row of each cell."""

    title: str
    source: str
    """The run that all of it is from."""
    command: str
    base: Part
    rows: Mapping[str, Part]
    columns: Mapping[str, Part]

    def reference(self, row: str, column: str) -> Reference:
        """Say where a cell comes from."""
        where = {"experiment": "", "arm": "", "filler": "", "mask": "", "batch": ""}
        where |= {"stratum": "all", **self.base, **self.rows[row], **self.columns[column]}
        number: Number = "queries" if where.pop("number", "") == "queries" else "estimate"
        return Reference(self.source, where, number)


_KINDS = ("single-hop", "multi-hop", "temporal", "open-domain", "adversarial")
_WINDOWS = {f"recent:k={k}": {"policy": f"recent-{k}"} for k in (8, 16)}
_POLICIES = {**_WINDOWS, "focal": {"policy": "focal"}}
_COMPARED = {**_POLICIES, "source-order(recent:k=8)": {"policy": "source-8"}}
_ASKED = (
    "routeprism audit locomo --policy recent:k=8 --policy recent:k=16 --policy focal "
    "--policy 'source-order(recent:k=8)'"
)
_RESTORED = "routeprism restore locomo --policy recent:k=8 --policy recent:k=16 --draws 2"
_CONDITIONS = ("present", "absent", "restored", "replacement")
_CONTRASTS = ("restored-absent", "restored-replacement", "restored-present")


def _routes(part: str) -> Mapping[str, Part]:
    return {
        "overlap": {"quantity": f"overlap.{part}"},
        "recall F": {"quantity": f"recall.{part}.forward"},
        "recall R": {"quantity": f"recall.{part}.route"},
        "R − F": {"quantity": f"recall.{part}.route-forward"},
        "questions": {"quantity": f"recall.{part}.forward", "number": "queries"},
    }


BEYOND = (
    Beyond(
        "Retention",
        "locomo-answers",
        _ASKED,
        {"experiment": "retention", "schedule": "replay"},
        _COMPARED,
        _routes("retained"),
    ),
    Beyond(
        "Exposure, BM25 top three",
        "locomo-answers",
        _ASKED,
        {"experiment": "retention", "schedule": "replay"},
        _COMPARED,
        _routes("exposed"),
    ),
    Beyond(
        "Coverage: questions all of whose evidence is exposed",
        "locomo-answers",
        _ASKED,
        {"experiment": "retention", "schedule": "replay"},
        _COMPARED,
        {
            "all-covered F": {"quantity": "all_covered.exposed.forward"},
            "all-covered R": {"quantity": "all_covered.exposed.route"},
            "R − F": {"quantity": "all_covered.exposed.route-forward"},
            "questions": {"quantity": "all_covered.exposed.forward", "number": "queries"},
        },
    ),
    Beyond(
        "Answers, free text",
        "locomo-answers",
        _ASKED,
        {"experiment": "routes", "schedule": "replay", "filler": "A"},
        {
            **_COMPARED,
            **{f"recent:k=8, {kind}": {"policy": "recent-8", "stratum": kind} for kind in _KINDS},
        },
        {
            "accuracy F": {"quantity": "accuracy.forward"},
            "accuracy R": {"quantity": "accuracy.route"},
            "R − F": {"quantity": "Delta_rep"},
            "questions": {"quantity": "Delta_rep", "number": "queries"},
        },
    ),
    Beyond(
        "Restoration, one record",
        "locomo-restoration",
        _RESTORED,
        {"experiment": "restoration", "schedule": "replay", "filler": "A"},
        {
            **{one: {"quantity": f"accuracy.{one}"} for one in _CONDITIONS},
            **{one.replace("-", " − "): {"quantity": one} for one in _CONTRASTS},
            "pairs": {"quantity": "restored-absent", "number": "queries"},
        },
        {
            **_WINDOWS,
            "recent:k=8, single-hop": {"policy": "recent-8", "stratum": "single-hop"},
        },
    ),
)
"""LoCoMo from records to restoration, answered and judged without any model."""


def beyond_references() -> dict[str, list[Reference]]:
    """Give what these tables need: source → the rows."""
    found: dict[str, list[Reference]] = {}
    for table in BEYOND:
        found.setdefault(table.source, []).extend(
            table.reference(row, column) for row in table.rows for column in table.columns
        )
    return found


_HEAD = """## LoCoMo, end to end

No table of the paper: the same experiments on a public benchmark that is at hand whole. LoCoMo is
used under CC BY-NC 4.0; intervals resample its ten conversations.
"""
_EMBEDDED = """The embedded reader quotes one sentence and the embedded judge counts words, so
accuracies are low and say nothing about language models; what can be read is the direction.
"""


def beyond_lines(obtained: Obtained) -> list[str]:
    """Write the tables; nothing where their runs were never executed."""
    if not any(table.source in obtained for table in BEYOND):
        return []
    runs = [obtained[name] for name in dict.fromkeys(t.source for t in BEYOND) if name in obtained]
    lines = [_HEAD, *([_EMBEDDED] if any(kept.embedded for kept in runs) else [])]
    for table in BEYOND:
        if table.source not in obtained:
            continue
        rows, model = obtained[table.source].rows, obtained[table.source].made["model"]
        lines += [f"### {table.title}", "", f"| | {' | '.join(table.columns)} |"]
        lines.append("| --- " * (len(table.columns) + 1) + "|")
        for row in table.rows:
            wanted = [table.reference(row, column) for column in table.columns]
            cells = [_shown(find(rows, one), one.number) for one in wanted]
            lines.append(f"| {row} | {' | '.join(cells)} |")
        lines += ["", f"- here: run `{table.source}`, `{table.command} --model {model}`", ""]
    return lines


def _shown(noted: Noted | None, number: Number) -> str:
    if noted is None or noted.row.estimate is None:
        return "–"
    row = noted.row
    if number == "queries":
        return f"{row.queries:,}"
    limits = "" if row.lower is None else f" [{row.lower:.3f}, {row.upper:.3f}]"
    return f"{row.estimate:.3f}{limits}".replace("-0.000", "0.000").replace("-", "−")
