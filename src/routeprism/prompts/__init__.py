"""What exactly a model reads: drafts, prompts, and the controls that match their lengths."""

from routeprism.prompts._draft import Draft, Provenance, categorical, free_text
from routeprism.prompts._match import (
    CONTROLS,
    FILLERS,
    Control,
    Filler,
    Matched,
    Unmatched,
    match,
)
from routeprism.prompts._prompt import Prompt, Span

__all__ = [
    "CONTROLS",
    "FILLERS",
    "Control",
    "Draft",
    "Filler",
    "Matched",
    "Prompt",
    "Provenance",
    "Span",
    "Unmatched",
    "categorical",
    "free_text",
    "match",
]
