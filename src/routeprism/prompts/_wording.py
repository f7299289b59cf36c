"""The sentences of a prompt: our own words for the published instructions."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from routeprism.policies import Block
from routeprism.records import letters

__all__ = [
    "FREE_TEXT",
    "FREE_TEXT_SUFFIX",
    "GATED",
    "LETTER_SUFFIX",
    "NEUTRAL",
    "catalogue_numbers",
    "choose",
    "placebo",
]

LETTER_SUFFIX = "Your answer, one lower-case letter:"
FREE_TEXT_SUFFIX = "Your answer:"

FREE_TEXT = (
    "You answer questions for a user, with the help of the memory records below, which come from "
    "earlier sessions. Anything you say about the user's own life, preferences or past events must "
    "be found in these records. Only where the user asks for a recommendation may you add general "
    "background knowledge. Use no tools and look nothing up."
)
"""Personal facts from the records only; background knowledge for recommendations (O.6)."""

_RANKED = (
    "Where two records contradict each other, the one with the higher {number} says how things "
    "stand now, and those with lower numbers say how they were before. The order in which records "
    "arrived or are shown must not overrule that number."
)

GATED = _RANKED.format(number="session number, as its header [session N] shows it,")
"""Conflicts go to the higher benchmark session index."""

NEUTRAL = (
    "Where two records contradict each other, weigh what each of them says. Do not infer from "
    "their order which one is the more recent."
)
"""Evidence is compared, with no rule about recency."""


def choose(options: int) -> str:
    """Ask for one option on the ground of the records alone."""
    valid = letters(options)
    listed = ", ".join(valid[:-1]) + f" or {valid[-1]}" if options > 1 else valid[0]
    return (
        "You answer questions for a user, with the help of the memory records below, which come "
        "from earlier sessions. Going by these records alone, pick the option that answers the "
        "question best. Reply with one lower-case letter and nothing else. "
        f"Valid replies: {listed}."
    )


def placebo(blocks: Sequence[Block], user: str) -> str:
    """Give the gated rule with a number that means nothing.

    The numbers are listed here, in the order of the blocks, and not written into the blocks: so
    the context has the same bytes whatever the provenance.
    """
    numbers = ", ".join(str(number) for number in catalogue_numbers(blocks, user)) or "none"
    return (
        f"The records above have these catalogue numbers, in the order shown: {numbers}. "
        + _RANKED.format(number="catalogue number")
    )


def catalogue_numbers(blocks: Sequence[Block], user: str) -> tuple[int, ...]:
    """Give every block its rank, from 1, in the order of their digests.

    A digest knows neither source position nor arrival. It is the block's own, so that any two
    blocks stand in the same relation on every route, as they do under the benchmark's index.
    """

    def digest(index: int) -> bytes:
        block = blocks[index]
        parts = (user, block.kind, *sorted(block.sources), block.text)
        return hashlib.sha256("\0".join(parts).encode()).digest()

    ranked = sorted(range(len(blocks)), key=digest)
    return tuple(ranked.index(index) + 1 for index in range(len(blocks)))
