"""The options that experiments add to commands, which help lists without importing experiments.

They are registered in the entry-point group `routeprism.options`, each under the name of its
experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from routeprism.orders import Schedule
from routeprism.settings import ANSWERS, ARRIVALS, RESEARCH, option
from routeprism.specs import SIZES

Layout = Literal["reversed", "source"]
DesignName = Literal["single", "bundle", "identity-swap", "presence", "update"]
MARGIN = 0.02
BUNDLE_TOKENS = 16_000


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """What a command needs to know of an experiment to list its options."""

    settings: type
    commands: tuple[str, ...] = ("audit",)
    rank: int = 100


@dataclass(frozen=True)
class OverlapSettings:
    """Options for overlapping writes."""

    overlap_trials: int | None = option(
        None,
        help="Trials of overlapping writes in each pool, for --schedule overlap:k=N. Default: "
        "100, or 10 for a system outside the process.",
        group=ARRIVALS,
        minimum=SIZES["overlap_trials"][0],
        maximum=SIZES["overlap_trials"][1],
    )
    schedules: Sequence[str | Schedule] = field(default=())
    """The schedules of the run, which decide whether writes overlap."""


@dataclass(frozen=True, slots=True)
class ProvenanceSettings:
    """Options for comparing instructions."""

    margin: float = option(
        MARGIN,
        help="Largest loss of accuracy that counts as no worse when instructions are compared.",
        group=RESEARCH,
    )


@dataclass(frozen=True, slots=True)
class DisplaySettings:
    """Options for the display intervention."""

    display: Sequence[Layout] = option(
        (),
        help="Compare the memory's own order of blocks with `reversed` or `source`; repeat for "
        "both.",
        group=RESEARCH,
    )


@dataclass(frozen=True, slots=True)
class ReuseSettings:
    """Options for state reuse."""

    reuse: bool = option(
        False,
        help="Also estimate over all questions but the first one of each user.",
        group=RESEARCH,
    )


@dataclass(frozen=True, slots=True)
class RestorationSettings:
    """Options for restoration."""

    designs: Sequence[DesignName] = option(
        (),
        help="Restore only this design: single, bundle or identity-swap. Two more designs run "
        "only if you name them: presence, and update (the old and the new record of a changed "
        "fact). Repeat for several.",
        group=ANSWERS,
        flag="--design",
    )
    eligibility: Literal["none", "one-fewer"] = option(
        "one-fewer",
        help="Evidence that the route without the record may still show: none, or one-fewer than "
        "the route that has it.",
        group=ANSWERS,
    )
    bundle_tokens: int = option(
        BUNDLE_TOKENS,
        help="Maximum number of tokens in the prompt of a bundle.",
        group=ANSWERS,
        minimum=SIZES["bundle_tokens"][0],
        maximum=SIZES["bundle_tokens"][1],
    )


overlap = ExperimentOptions(OverlapSettings, rank=12)
provenance = ExperimentOptions(ProvenanceSettings, rank=30)
display = ExperimentOptions(DisplaySettings, rank=40)
reuse = ExperimentOptions(ReuseSettings, rank=50)
restoration = ExperimentOptions(RestorationSettings, ("restore",), rank=60)
