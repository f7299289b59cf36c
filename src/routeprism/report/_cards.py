"""The verdict as cards: one for each memory, its main statements first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeprism.report._html import Markup, fragment, tag
from routeprism.report._tables import RowNumbers, link_number
from routeprism.report._verdict import Summary, interrupted
from routeprism.runs import EstimateRow

__all__ = ["verdict_cards"]


def verdict_cards(
    summaries: Sequence[Summary], manifest: Mapping[str, Any], rows: Sequence[EstimateRow]
) -> Markup:
    """Make a card for each policy, and below them those of arms and comparators, and notes."""
    if not summaries:
        reason = (
            "The run is complete, but has no estimates."
            if not interrupted(manifest)
            else "The run was interrupted. What it had stored is shown below."
        )
        return tag("p", reason)
    numbers = {row: number for number, row in enumerate(rows, start=1)}
    cards = [_card(summary, numbers) for summary in summaries if not summary.is_aside]
    aside = [_card(summary, numbers) for summary in summaries if summary.is_aside]
    notes = [tag("li", str(note)) for note in manifest.get("notes") or ()]
    return fragment(
        [
            tag(
                "details",
                tag("summary", f"Every statement ({len(cards)} cards)"),
                tag("div", fragment(cards), class_="cards"),
            )
            if len(cards) > 1
            else tag("div", fragment(cards), class_="cards"),
            tag(
                "details",
                tag("summary", f"Arms and comparators ({len(aside)})"),
                tag("div", fragment(aside), class_="cards"),
            )
            if aside
            else None,
            tag("details", tag("summary", f"Notes ({len(notes)})"), tag("ul", *notes))
            if notes
            else None,
            tag(
                "p",
                "Each linked number is a row of ",
                tag("a", "all estimates", href="#estimates"),
                ", which shows how to trace it.",
                class_="count",
            )
            if rows
            else None,
        ]
    )


_MOST_STATEMENTS = 4
"""How many sentences a card shows before it is opened."""


def _card(summary: Summary, numbers: RowNumbers) -> Markup:
    items = [
        tag(
            "li",
            *(
                part if isinstance(part, str) else link_number(part, numbers)
                for part in statement.parts_below_policy
            ),
        )
        for statement in summary.statements
    ]
    rest = items[_MOST_STATEMENTS:] if len(items) > _MOST_STATEMENTS + 1 else []
    flags = sorted({flag for statement in summary.statements for flag in statement.flags})
    layer = "none" if summary.reach is None else summary.reach.layer
    return tag(
        "article",
        *(tag("span", flag, class_="badge plain") for flag in flags),
        tag("h3", summary.subject) if summary.subject else None,
        tag("p", summary.title, class_="headline"),
        tag("ul", *items[: len(items) - len(rest)]),
        tag("details", tag("summary", f"{len(rest)} more sentences"), tag("ul", *rest))
        if rest
        else None,
        class_=f"card layer-{layer}",
    )
