"""Options for models: answers, instructions, judges, and passes that read labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from routeprism.api._option_groups import answer_option, limit_options, output_option, reply_option
from routeprism.settings import (
    RESEARCH,
    option,
)

__all__ = [
    "Compiled",
    "EndpointOptions",
    "Instruction",
    "Instructions",
    "Judging",
    "Passes",
    "Readers",
    "Screening",
]


@dataclass(frozen=True)
class Readers:
    """Who answers, and how often."""

    models: Sequence[str] = answer_option(
        (),
        help="Model that answers: reader, openai:MODEL, smollm2, hf:PATH or recorded:FILE; repeat "
        "for more.",
        flag="--model",
        short="-m",
        accepts="Sequence[str | Model]",
    )
    draws: int = reply_option(
        1,
        help="Answers to collect for each route and prompt; 2 or more separate the effect of "
        "order from the model's own noise.",
        **limit_options("draws"),
    )
    control: str = reply_option(
        "exact",
        help="How to match the two prompts of a pair: none, exact, balanced or aligned.",
        group=RESEARCH,
    )
    fillers: Sequence[str] = reply_option(
        ("A",),
        help="Text that pads prompts to the same length: A or B; repeat for both.",
        flag="--filler",
        group=RESEARCH,
    )
    batches: Sequence[str] = reply_option(
        ("",),
        help="Name of an independent set of answers to the same prompts; repeat to compare.",
        flag="--batch",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instructions:
    """What prompts say about records that conflict."""

    provenance: Sequence[str] = reply_option(
        ("preserved",),
        help="Instruction to the model about conflicting records: preserved, gated, neutral or "
        "placebo; repeat to compare.",
        accepts="str | Sequence[str]",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Instruction:
    """What prompts say about records that conflict, once."""

    provenance: str = answer_option(
        "preserved",
        help="Instruction to the model about conflicting records: preserved, gated, neutral or "
        "placebo.",
        group=RESEARCH,
    )


@dataclass(frozen=True)
class Judging:
    """Who judges free text."""

    judge: str | None = reply_option(
        None,
        help="Judge of free-text answers: embedded, recorded or a model. Default: recorded if all "
        "answers have verdicts, otherwise embedded.",
        accepts="str | Judge | None",
    )


@dataclass(frozen=True)
class EndpointOptions:
    """Where models are served, and how fast they are asked."""

    base_url: str | None = answer_option(None, help="Address of an OpenAI-compatible endpoint.")
    rate_limit: float | None = answer_option(
        None, help="Maximum number of requests per minute to each model.", identity=False
    )
    concurrency: int | None = answer_option(
        None,
        help="Maximum number of simultaneous requests. Default: chosen by the model.",
        identity=False,
        **limit_options("concurrency"),
    )


@dataclass(frozen=True)
class Passes:
    """Who reads the cards."""

    passes: Sequence[str] = answer_option(
        (),
        help="Who labels the cards: NAME=MODEL, or NAME=FILE for a completed sheet; repeat for "
        "more.",
        flag="--pass",
        accepts="Sequence[str] | Mapping[str, Model | Path]",
    )
    primary: str | None = answer_option(
        None, help="Name of the primary pass; declare it before you read any outcome."
    )
    export: Path | None = option(
        None, help="Write the cards to a sheet for people to complete, and exit.", identity=False
    )


@dataclass(frozen=True)
class Screening:
    """Which questions may be reordered."""

    gold_visible: bool = answer_option(False, help="Use the rubric that shows the correct answer.")
    gate: str | None = answer_option(
        None,
        help="Which questions pass: intersection, majority, unanimity, or the name of a pass.",
        identity=False,
    )
    write_mask: Path | None = output_option(
        None, help="File to write the questions that pass the gate to."
    )


@dataclass(frozen=True)
class Compiled:
    """Contexts of a run instead of records."""

    compiled: Path | None = option(
        None, help="Finished run whose compiled contexts are labelled instead of records."
    )
    stale: bool = option(
        False, help="Label the records that state an outdated value of the fact in question."
    )
    policies: Sequence[str] = option(
        (),
        help="Use only the contexts of this policy of the run; repeat for more.",
        flag="--policy",
        short="-p",
    )
