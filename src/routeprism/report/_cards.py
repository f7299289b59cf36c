"""The verdict as cards: one for each memory, its main sentences first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from routeprism.report._html import Markup, fragment, tag
from routeprism.report._row_links import Linked, row_links
from routeprism.report._verdict import Verdict
from routeprism.runs import EstimateRow

__all__ = ["verdict_cards"]


def verdict_cards(
    found: Sequence[Verdict], manifest: Mapping[str, Any], rows: Sequence[EstimateRow]
) -> Markup:
    """Make a card for each policy, and below them those of arms and comparators, and notes."""
    if not found:
        reason = (
            "The run is complete, but has no estimates."
            if manifest.get("status") == "complete"
            else "The run was interrupted. What it had stored is shown below."
        )
        return tag("p", reason)
    linked = row_links(rows)
    cards = [_card(one, linked) for one in found if not one.aside]
    aside = [_card(one, linked) for one in found if one.aside]
    notes = [tag("li", str(note)) for note in manifest.get("notes") or ()]
    return fragment(
        [
            tag("div", fragment(cards), class_="cards"),
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
                "Each number is a row of ",
                tag("a", "all estimates", href="#estimates"),
                ", which says how to trace it; where only one row can be meant, the number leads "
                "there.",
                class_="count",
            )
            if rows
            else None,
        ]
    )


_SHOWN = 4
"""How many sentences a card shows; the others are a press away."""


def _card(one: Verdict, linked: Linked) -> Markup:
    said = [
        tag("li", linked(_capital(sentence, one.subject), one.subject))
        for sentence in one.sentences
    ]
    rest = said[_SHOWN:] if len(said) > _SHOWN + 1 else []
    return tag(
        "article",
        *(tag("span", flag, class_="badge plain") for flag in _flags(one)),
        tag("h3", one.subject) if one.subject else None,
        tag("p", one.headline, class_="headline"),
        tag("ul", *said[: len(said) - len(rest)]),
        tag("details", tag("summary", f"{len(rest)} more sentences"), tag("ul", *rest))
        if rest
        else None,
        class_=f"card layer-{one.layer}",
    )


_SAID = {"(synthetic sample)": "synthetic", "[synthetic]": "synthetic", "[embedded]": "embedded"}
"""What sentences say of themselves; a card says it once."""


def _flags(one: Verdict) -> list[str]:
    said = " ".join(one.sentences)
    return sorted({flag for words, flag in _SAID.items() if words in said})


def _capital(sentence: str, subject: str) -> str:
    """Leave out what stands above already, and begin with a capital."""
    for words in reversed(_SAID):
        sentence = sentence.removesuffix(words).rstrip()
    for start in (f"{subject}: ", f"{subject}, ", f"{subject} "):
        if sentence.startswith(start):
            sentence = sentence[len(start) :]
            break
    # Without a subject the first word may be the name of a pass.
    return sentence[:1].upper() + sentence[1:] if subject else sentence
