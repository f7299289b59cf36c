"""Reasons, commands and columns that several tables share."""

from __future__ import annotations

from collections.abc import Mapping

from routeprism.reproduction._cells import Part

__all__ = [
    "ACCURACY",
    "ANSWERS",
    "COORDINATES",
    "COUNTS",
    "GOLD",
    "LABELLED",
    "NO_ANSWERS",
    "NO_LABELS",
    "NO_PRIMARY",
    "NO_READER",
    "NO_RELEASE",
    "NO_SALIENCE",
    "NO_STREAMING",
    "RESTORE",
    "SCHEDULE_COLUMNS",
    "SCREEN",
    "machinery",
]

NO_ANSWERS = "the paper's answers are not public"
NO_PRIMARY = "the 63 primary questions were chosen by readings that are not public"
NO_LABELS = "the paper's support labels were made by a model and are not public"
NO_READER = (
    "a reading follows a written rubric, which the embedded reader cannot; a language model can, "
    "and so can people (docs/restoration.md)"
)
NO_RELEASE = "the released LongMemEval-S file is not at hand (routeprism fetch longmemeval)"
NO_SALIENCE = "the paper does not define its salience score; ours is another"
NO_STREAMING = (
    "the paper names neither folds, features nor penalty; one configuration was chosen and run "
    "once: five folds, focal tokens, TF–IDF and penalty 1 as scikit-learn has them, mean overlap "
    "within the pool as target"
)
LABELLED = f"{NO_ANSWERS}; {NO_PRIMARY}"

_ASK = "--model MODEL --draws 3 --control aligned --filler A --filler B"
ANSWERS = (
    "routeprism audit personamem --kind fact-recall --policy focal --policy recent:k=3 "
    f"{_ASK} --mask primary=FILE"
)
RESTORE = (
    "routeprism restore personamem --kind fact-recall --policy focal --policy recent:k=3 "
    "--model MODEL --filler A --filler B --readings FILE --labels audited:NAME --mask primary=FILE"
)
SCREEN = (
    "routeprism screen personamem --kind fact-recall --pass A=MODEL --pass B=MODEL "
    "--gate intersection --write-mask FILE"
)

COORDINATES: Mapping[str, Part] = {
    "J": {"quantity": "J", "filler": ""},
    "J / *": {"quantity": "J", "filler": ""},
    "H": {"quantity": "H"},
    "H / *": {"quantity": "H"},
    "H_1": {"quantity": "H"},
    "Δ": {"quantity": "Delta"},
    "Δ / *": {"quantity": "Delta"},
    "Δ_1": {"quantity": "Delta"},
    "H_×": {"quantity": "H_cross"},
    "H_× / *": {"quantity": "H_cross"},
    "H_within": {"quantity": "H_within"},
    "H_within / *": {"quantity": "H_within"},
    "D_res": {"quantity": "D_res"},
    "D_res / *": {"quantity": "D_res"},
    "D^[*] / *": {"quantity": "D_star"},
    "Δ_rep": {"quantity": "Delta_rep"},
    "Δ_rep / *": {"quantity": "Delta_rep"},
    "H_eq / *": {"quantity": "H_eq"},
    "Γ_H / *": {"quantity": "Gamma.H"},
    "Γ_Δ / *": {"quantity": "Gamma.Delta"},
    "δ_H^op / *": {"quantity": "delta_op.H", "experiment": "mechanism"},
    "δ_Δ^op / *": {"quantity": "delta_op.Delta", "experiment": "mechanism"},
}
"""The paper's column names for coordinates."""
ACCURACY: Mapping[str, Part] = {
    "Chronological*": {"quantity": "accuracy.forward"},
    "Replay / *": {"quantity": "accuracy.route"},
    "Replay accuracy / *": {"quantity": "accuracy.route"},
}
COUNTS: Mapping[str, Part] = {
    "Queries": {"number": "queries"},
    "Users": {"number": "units"},
}
"""Columns that say on how much an estimate rests."""
SCHEDULE_COLUMNS: Mapping[str, Part] = {
    "Replay / *": {"schedule": "replay"},
    "Half-swap / *": {"schedule": "half-swap"},
    "Odd-even / *": {"schedule": "odd-even"},
}


def machinery(command: str, reason: str = LABELLED, **more: str) -> Part:
    """Say that an experiment runs on any model or labels, and by which command."""
    return {"kind": "machinery", "command": command, "reason": reason, **more}


GOLD: Part = machinery(
    "routeprism screen personamem --kind fact-recall --gold-visible --pass GOLD=MODEL "
    "--gate GOLD --write-mask FILE, then audit or restore with --mask FILE",
    f"{NO_ANSWERS}; its readings are not public",
)
"""For tables on questions that a reading with the gold answer in view lets through."""
