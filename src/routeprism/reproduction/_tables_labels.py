"""Tables of readings and labels, of what a comparison holds fixed, and the figures."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import (
    COORDINATES,
    COUNTS,
    LABELLED,
    NO_ANSWERS,
    NO_READER,
    NO_RELEASE,
    SCREEN,
    machinery,
)

__all__ = ["TABLES"]

_NO_READINGS = "the readings are not public"
_READ = machinery(SCREEN, _NO_READINGS, blank=NO_READER)
_FACTS = {
    "kind": "data",
    "source": "personamem",
    "policy": "lexical",
    "schedule": "replay",
    "filler": "",
    "quantity": "J",
    "stratum": "fact-recall",
}
_MATRIX = {"kind": "data", "source": "readings", "experiment": "screen"}


def _marginals(name: str) -> dict[str, dict[str, str]]:
    return {
        f"Label counts / {label}": {**_MATRIX, "quantity": f"count.{name}.{label}"}
        for label in ("Admissible", "Ambiguous", "Inadmissible")
    }


_PASSES = {
    (f"Pass {name}*", column): part
    for name in ("A", "B")
    for column, part in _marginals(name).items()
}
_ANSWERS = {"source": "answers", "schedule": "replay", "filler": "A", "quantity": "H"}
_RESTORED = {
    "source": "restoration",
    "experiment": "restoration",
    "schedule": "replay",
    "filler": "A+B",
    "quantity": "accuracy.present",
}
_CONTRAST = {
    **_ANSWERS,
    "reason": LABELLED,
    "source": "policies",
    "policy": "focal",
    "arm": "ordered-comparator",
    "stratum": "fact-recall",
    "quantity": "Gamma.H",
}
_RESCUED = {**_RESTORED, "source": "rescue", "policy": "streaming"}
_LONG = {"reason": f"{NO_ANSWERS}; {NO_RELEASE}", "policy": "recent-8", "filler": "A"}
_LONG_ANSWERS = {**_ANSWERS, **_LONG, "source": "long-answers", "quantity": "accuracy.forward"}
_LONG_RESTORED = {
    **_RESTORED,
    **_LONG,
    "source": "long-restoration",
    "instead.source": "locomo-restoration",
    "instead.stratum": "single-hop",
}
_PROSE = {"kind": "not derivable", "reason": "words, not numbers"}

TABLES = (
    Table(
        "tab:semantic-record-grounded",
        "readings that see single records, and the routes on what they admit",
        {**_READ, "reason": LABELLED},
        panels={panel: {**_ANSWERS, "policy": "focal"} for panel in ("2", "3")},
        columns={**COUNTS, **COORDINATES},
        cells={
            ("Record pass *", "Queries"): _FACTS | {"number": "queries"},
            ("Record pass *", "Users"): _FACTS | {"number": "units"},
            ("Benchmark fact recall*", "Queries"): _FACTS | {"number": "queries"},
            ("Benchmark fact recall*", "Users"): _FACTS | {"number": "units"},
            ("Taxonomy", "Queries"): _FACTS | {"number": "queries"},
            ("Taxonomy", "Users"): _FACTS | {"number": "units"},
        },
        note="no readings are at hand: what two reads admit is all 146 questions here",
    ),
    Table("tab:semantic-third-pass", "readings across contexts and models", _READ, cells=_PASSES),
    Table(
        "tab:record-semantic",
        "two readings of complete pools, and their agreement",
        _READ,
        panels={"3": _CONTRAST},
        cells={
            **{("all", column): part for column, part in {**COUNTS, **COORDINATES}.items()},
            **{(row, "Queries"): _FACTS | {"number": "queries"} for row in ("Complete*", "Pass *")},
            **{(row, "Users"): _FACTS | {"number": "units"} for row in ("Complete*", "Pass *")},
            **_PASSES,
            ("Exact agreement", "Queries"): {**_MATRIX, "quantity": "count.agreed"},
            ("Exact agreement", "Agreement / *"): {**_MATRIX, "quantity": "agreement"},
            ("Cohen's κ", "Queries"): {**_MATRIX, "quantity": "kappa", "number": "queries"},
            ("Cohen's κ", "Agreement / *"): {**_MATRIX, "quantity": "kappa"},
            ("Exact agreement", "Users"): _FACTS | {"number": "units"},
            ("Cohen's κ", "Users"): _FACTS | {"number": "units"},
        },
    ),
    Table("tab:fullpool-semantic-confusion", "labels of one reading by those of the other", _READ),
    Table(
        "tab:experiment-index",
        "the answer experiments: questions, users, draws",
        machinery("routeprism audit personamem --model MODEL --draws M", LABELLED),
        rows={
            "F-* | * matched routes | *": {**_ANSWERS, "policy": "focal"},
            "F-C *": {**_ANSWERS, "policy": "focal"},
            "F-S*": {**_RESTORED, "policy": "focal"},
            "F-U *": {**_ANSWERS, "source": "reuse", "policy": "focal", "experiment": "reuse"},
            "R-E *": {**_ANSWERS, "policy": "recent"},
            "R-S*": {
                **_RESTORED,
                "source": "recent-restoration",
                "policy": "recent",
                "filler": "A",
            },
            "F-M *": _FACTS | {"stratum": "all"},
            "X-P *": _FACTS | {"stratum": "all"},
            "X-T *": _RESCUED,
            "X-I *": _RESCUED,
            "M-C *": {**_ANSWERS, "source": "memochat", "policy": "memochat"},
            "M-R/*": {
                **_ANSWERS,
                "source": "display",
                "experiment": "display",
                "policy": "memochat",
                "arm": "construction",
            },
            "A-Q *": {**_ANSWERS, "source": "evolved", "policy": "amem"},
            "L-A*": {**_LONG_ANSWERS, "instead.source": "locomo-answers"},
            "L-R*": _LONG_RESTORED,
        },
        columns={
            **COUNTS,
            "m": {
                "kind": "not derivable",
                "reason": "how often answers were drawn is a choice, not a result",
            },
        },
    ),
    Table("tab:claim-boundaries", "what each comparison holds fixed", _PROSE),
    Table("tab:comparison-planes", "what other evaluations compare", _PROSE),
    Table(
        "fig:overview",
        "how the protocol goes",
        {"kind": "not derivable", "reason": "a diagram; it shows no number"},
    ),
    *(
        Table(
            label,
            title,
            machinery("routeprism report RUN", f"drawn from the named tables; {NO_ANSWERS}"),
        )
        for label, title in (
            ("fig:support-restoration", "accuracies in four conditions, contrasts, state reuse"),
            ("fig:primary-profile", "users' source change, H, Δ, and transitions"),
            ("fig:crossfit-policy-app", "contrasts of streaming by schedule"),
            ("fig:crossfit-repeat", "changed selections and residuals of streaming"),
        )
    ),
)
