"""What exactly a model reads: drafts, prompts, and the controls that match their lengths."""

from routeprism.prompts._draft import Draft, Provenance, categorical, free_text
from routeprism.prompts._prompt import (
    FILLERS,
    Control,
    Filler,
    Matched,
    Prompt,
    Unmatched,
    match,
)

__all__ = [
    "FILLERS",
    "Control",
    "Draft",
    "Filler",
    "Matched",
    "Prompt",
    "Provenance",
    "Unmatched",
    "categorical",
    "free_text",
    "match",
]
