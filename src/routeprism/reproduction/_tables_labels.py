"""Tables of readings and labels, of what a comparison holds fixed, and the figures."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import COUNTS, LABELLED, NO_ANSWERS, SCREEN, machinery

__all__ = ["TABLES"]

_NO_READINGS = "the readings are not public"
_READ = machinery(SCREEN, _NO_READINGS)
_FACTS = {
    "kind": "data",
    "source": "personamem",
    "policy": "lexical",
    "schedule": "replay",
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
_PROSE = {"kind": "not derivable", "reason": "words, not numbers"}

TABLES = (
    Table(
        "tab:semantic-record-grounded",
        "readings that see single records, and the routes on what they admit",
        machinery(SCREEN, LABELLED),
        cells={
            ("Record pass *", "Queries"): _FACTS | {"number": "queries"},
            ("Record pass *", "Users"): _FACTS | {"number": "units"},
            ("Benchmark fact recall*", "Queries"): _FACTS | {"number": "queries"},
            ("Benchmark fact recall*", "Users"): _FACTS | {"number": "units"},
            ("Taxonomy", "Queries"): _FACTS | {"number": "queries"},
            ("Taxonomy", "Users"): _FACTS | {"number": "units"},
        },
    ),
    Table("tab:semantic-third-pass", "readings across contexts and models", _READ, cells=_PASSES),
    Table(
        "tab:record-semantic",
        "two readings of complete pools, and their agreement",
        _READ,
        panels={"3": {"reason": LABELLED}},
        cells={
            **{(row, "Queries"): _FACTS | {"number": "queries"} for row in ("Complete*", "Pass *")},
            **{(row, "Users"): _FACTS | {"number": "units"} for row in ("Complete*", "Pass *")},
            **_PASSES,
            ("Unanimous*", "Queries"): {**_MATRIX, "quantity": "count.both-admissible"},
            ("Unanimous*", "Label counts / Admissible"): {
                **_MATRIX,
                "quantity": "count.both-admissible",
            },
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
            "F-M *": _FACTS | {"stratum": "all"},
            "X-P *": _FACTS | {"stratum": "all"},
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
