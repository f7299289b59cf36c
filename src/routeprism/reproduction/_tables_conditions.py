"""Tables of conditions on all 589 questions, and of contrasts between them."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import (
    COORDINATES,
    NO_ANSWERS,
    machinery,
)

__all__ = ["TABLES"]

_POLICIES = machinery(
    "routeprism audit personamem --policy raw --policy focal --policy recent:k=3 "
    "--policy utility:k=3 --comparators --model MODEL --provenance preserved --provenance gated",
    NO_ANSWERS,
    source="policies",
    schedule="replay",
    filler="A",
)
_AGAINST = {"source": "policies", "arm": "ordered-comparator"}
_GATED = {"source": "provenance", "policy": "raw", "arm": "gated-preserved"}
_FLIPS = {
    "source": "repeated",
    "policy": "streaming-source",
    "mask": "flip-sample",
    "quantity": "H_within",
}

TABLES = (
    Table(
        "tab:full-primary",
        "all conditions on 589 questions",
        _POLICIES,
        rows={
            "Raw": {"source": "provenance", "policy": "raw"},
            "Canonical": {"policy": "focal-source"},
            "Arrival route": {"policy": "focal"},
            **{
                name: {"source": "provenance", "policy": "raw", "arm": name.lower()}
                for name in ("Preserved", "Gated", "Neutral", "Placebo")
            },
        },
        columns=COORDINATES,
    ),
    Table(
        "tab:paired-contrasts",
        "contrasts between conditions",
        _POLICIES,
        rows={
            "Exchangeable*": {**_AGAINST, "policy": "focal", "stratum": "fact-recall"},
            "Omnibus*": {**_AGAINST, "policy": "focal"},
        },
        columns={
            **COORDINATES,
            "Same-prompt flip rate / *": _FLIPS,
            "Chronological accuracy contrast / *": {
                **_GATED,
                "quantity": "Gamma.accuracy.forward",
            },
            "Replay accuracy contrast / *": {**_GATED, "quantity": "Gamma.accuracy.route"},
        },
    ),
    Table(
        "tab:question-strata-main",
        "contrasts by kind of question",
        _POLICIES,
        rows={
            "Exchangeable": {**_AGAINST, "policy": "focal", "stratum": "fact-recall"},
            "Residual": {**_AGAINST, "policy": "focal", "stratum": "rest"},
            "all": {"source": "provenance", "policy": "raw", "stratum": "temporal"},
        },
        columns={
            **COORDINATES,
            "Raw reversal / H / *": {"quantity": "H"},
            "Raw reversal / Δ / *": {"quantity": "Delta"},
            "Gated minus preserved / Γ_H* / *": {
                "quantity": "Gamma.H",
                "arm": "gated-preserved",
            },
            "Gated minus preserved / Γ_Δ* / *": {
                "quantity": "Gamma.Delta",
                "arm": "gated-preserved",
            },
        },
        cells={
            ("*", column): {
                "kind": "data",
                "source": "personamem",
                "policy": "lexical",
                "quantity": "J",
                "number": number,
                "arm": "",
                "filler": "",
            }
            for column, number in (("Queries", "queries"), ("Users", "units"))
        },
    ),
    Table(
        "tab:secondary-appendix",
        "contrasts of further policies with their comparators",
        {**_POLICIES, "arm": "ordered-comparator"},
        rows={
            "Overlap-IDF*": {"policy": "focal"},
            "Recent*": {"policy": "recent"},
            "Utility*": {"policy": "utility"},
            "Provenance*": _GATED,
        },
        columns=COORDINATES,
    ),
)
