"""How two answers in words are compared."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["normalise"]


def normalise(text: str) -> str:
    """Fold case, accents' encoding, punctuation, articles and white space, for comparing texts."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = re.sub(r"[^\w\s]", " ", folded.replace("'", "").replace("’", "")).split()
    return " ".join(word for word in words if word not in ("a", "an", "the"))
