"""Tables of sources, contexts, states and orders, and the numbers a correct build gives."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._published import PROTOCOL
from routeprism.reproduction._words import (
    COUNTS,
    NO_LABELS,
    NO_PRIMARY,
    NO_RELEASE,
    NO_SALIENCE,
    NO_STREAMING,
    SCHEDULE_COLUMNS,
    SCREEN,
    machinery,
)

__all__ = ["TABLES"]

_DATA = {"kind": "data", "schedule": "replay"}
_ALL = {**_DATA, "source": "personamem", "policy": "lexical", "quantity": "J"}
"""A cell that counts all questions and users, whatever the policy."""
_FACTS = {**_ALL, "stratum": "fact-recall"}
_ANSWERED = {"source": "answers", "policy": "focal", "quantity": "H"}
_AUDIT = "routeprism audit personamem --policy SPEC --mask primary=FILE"
_LENGTHS = {
    "Context length / Forward": {"quantity": "context_length.forward"},
    "Context length / Replay": {"quantity": "context_length.route"},
}
_RETAINED = {
    "Overlap": {"quantity": "overlap.retained"},
    "Recall F": {"quantity": "recall.retained.forward"},
    "Recall R": {"quantity": "recall.retained.route"},
}
_WINDOWS = {f"Recent-{k}": {"policy": f"recent-{k}"} for k in (3, 8, 16, 32)}
_CHANGED = {
    "V": {"quantity": "V_changed_count"},
    "C": {"quantity": "C_changed_count"},
    "Internal": {"quantity": "I_changed_count"},
}
_SURVIVORS = {
    f"{threshold} | {rule}": {"policy": f"{threshold} | {rule}"}
    for threshold in ("0.025", "0.055", "0.100")
    for rule in ("Last arrival", "First arrival", "Largest source position")
}
_ORDERS = {"experiment": "orders", "source": "orders", "schedule": "uniform"}

_PROTOCOL = Table(
    PROTOCOL,
    "what a correct build gives where the paper's own number rests on the same data",
    {**_DATA, "source": "personamem"},
    panels={
        "LoCoMo": {"source": "locomo", "experiment": "retention"},
        "LongMemEval-S index": {"source": "index", "experiment": "retention"},
    },
    rows={
        "focal*": {"policy": "focal"},
        "* | 146 fact-recall questions": {"stratum": "fact-recall"},
        "146 fact-recall questions": {
            "stratum": "fact-recall",
            "schedule": "",
            "policy": "",
            "quantity": "count.duplicate_options",
        },
        "survivor only": {"policy": "survivor"},
        "clustering only": {"policy": "clustering"},
        "both operations": {"policy": "focal"},
        "ties*": {"policy": "focal", "stratum": "fact-recall"},
        "Recent-3 |*": {"policy": "recent"},
        "Recent-3 comparator": {"policy": "recent-source"},
        "lexical*": {"policy": "lexical"},
        "memochat*": {"policy": "memochat", "source": "buffers"},
        "every order": {**_ORDERS, "policy": "0.055 | Last arrival", "quantity": "count.orders"},
        **{row: {**part, **_ORDERS} for row, part in _SURVIVORS.items()},
        **{
            threshold: {**_ORDERS, "policy": f"{threshold} | Last arrival"}
            for threshold in ("0.025", "0.055", "0.100")
        },
        **_WINDOWS,
        "all": {"policy": "recent-8", "quantity": "overlap.retained", "number": "queries"},
    },
    columns={
        "J": {"quantity": "J"},
        "J / *": {"quantity": "J"},
        "* / J": {"quantity": "J"},
        "1-J": {"quantity": "J", "number": "complement"},
        "* / C_chg": {"quantity": "C_changed"},
        "Changed": {"quantity": "V_changed_count"},
        "Representative, *": {"quantity": "count.representative_ties"},
        "Assignment, *": {"quantity": "count.assignment_ties"},
        "*, source": {"schedule": "forward"},
        "J before the budget": {"quantity": "overlap.retained", "experiment": "retention"},
        "Change": {"quantity": "order_change"},
        "Mean clusters": {"quantity": "mean_clusters"},
        "Context length / Plain": {"quantity": "context_length.forward"},
        "Context length / admit=source": {
            "quantity": "context_length.forward",
            "source": "admitted",
        },
        **_LENGTHS,
        **_RETAINED,
        **_CHANGED,
        **SCHEDULE_COLUMNS,
    },
)

TABLES = (
    _PROTOCOL,
    Table(
        "tab:experiment-overview-main",
        "how many questions and users each experiment has",
        machinery(SCREEN, NO_PRIMARY, schedule="replay", filler="A"),
        rows={
            "Route diagnostics*": _ANSWERED,
            "Core route*": _ANSWERED,
            "*upport restoration*": {
                "reason": NO_LABELS,
                "source": "restoration",
                "experiment": "restoration",
                "filler": "A+B",
                "quantity": "accuracy.present",
            },
            "*upport restoration | Focal*": {"policy": "focal"},
            "*upport restoration | Recent*": {
                "source": "recent-restoration",
                "policy": "recent",
                "filler": "A",
            },
            "Mechanism*": {**_ANSWERED, "source": "mechanism", "stratum": "fact-recall"},
            "Policy interfaces | MemoChat*": {
                **_ANSWERED,
                "source": "memochat",
                "policy": "memochat",
            },
            "*LongMemEval-S*": {
                "reason": NO_RELEASE,
                "command": "routeprism audit longmemeval --policy recent:k=8",
                "policy": "recent-8",
            },
            "Long-history coverage*": {
                "source": "long-answers",
                "quantity": "accuracy.forward",
                "instead.source": "locomo-answers",
            },
            "Long-history retention*": {
                "kind": "data",
                "source": "longmemeval",
                "experiment": "retention",
                "filler": "",
                "quantity": "overlap.retained",
                "instead.source": "index",
            },
            "Policy interfaces | Lexical*": {**_ALL, "filler": ""},
        },
        columns=COUNTS,
    ),
    Table(
        "tab:policy-interfaces-main",
        "pairs that change at the source, context and internal interfaces",
        _DATA,
        rows={
            "Lexical*": {"source": "personamem", "policy": "lexical"},
            "Cross-fitted*": {
                "source": "streaming",
                "policy": "streaming",
                "reason": NO_STREAMING,
            },
            "MemoChat": machinery(
                _AUDIT, NO_PRIMARY, source="buffers", policy="memochat", stratum="fact-recall"
            ),
            "A-MEM": machinery(
                _AUDIT,
                f"{NO_PRIMARY}; its notes were evolved by a model",
                source="amem",
                policy="amem",
                stratum="fact-recall",
            ),
        },
        columns={
            "Queries": {"quantity": "J", "number": "queries"},
            "Users": {"quantity": "J", "number": "units"},
            **_CHANGED,
        },
    ),
    Table(
        "tab:full-pathways",
        "source overlap and context lengths of all conditions, 589 questions",
        _DATA,
        rows={
            "Raw": {
                "source": "buffers",
                "policy": "raw",
                "reason": "the paper does not say how raw sessions meet the cap; here they "
                "go through the same budget as every other policy",
            },
            "Canonical": {"source": "personamem", "policy": "canonical"},
            "Arrival route": {"source": "personamem", "policy": "focal"},
            "Preserved": {
                "kind": "not derivable",
                "reason": "the paper does not say which records the preserved condition selects",
            },
            "Bounded recent*": {"source": "personamem", "policy": "recent"},
            "Bounded source*": {"source": "admitted", "policy": "recent-source"},
            "Utility by arrival*": {
                "source": "buffers",
                "policy": "utility",
                "reason": NO_SALIENCE,
            },
            "Utility by source*": {
                "source": "buffers",
                "policy": "utility-source",
                "reason": NO_SALIENCE,
            },
        },
        columns={"Jaccard*": {"quantity": "J"}, **_LENGTHS},
    ),
    Table(
        "tab:mechanism-state",
        "source overlap and changed contexts of each operation alone, 589 questions",
        {**_DATA, "source": "personamem"},
        rows={
            "Survivor selection": {"policy": "survivor"},
            "Clustering only": {"policy": "clustering"},
        },
        columns={
            **SCHEDULE_COLUMNS,
            "* / J": {"quantity": "J"},
            "* / C_chg": {"quantity": "C_changed"},
        },
    ),
    Table(
        "tab:order-structure",
        "survivor sets and support over every order, by threshold and survivor rule",
        machinery(
            "routeprism orders personamem --policy focal:threshold=… --readings FILE "
            "--labels audited:NAME --mask primary=FILE",
            f"{NO_PRIMARY}; {NO_LABELS}",
            **_ORDERS,
            stratum="fact-recall",
        ),
        rows=_SURVIVORS,
        columns={
            "Change": {"quantity": "order_change"},
            "Forward": {"quantity": "support_kept.forward"},
            "Reverse": {"quantity": "support_kept.reverse"},
            "Uniform": {"quantity": "support_kept.uniform"},
        },
    ),
    Table(
        "tab:common-interface",
        "exposed support under focal construction and BM25 top three",
        machinery(
            "routeprism audit personamem --policy focal --interface bm25:k=3 --readings FILE "
            "--labels audited:NAME --mask primary=FILE",
            f"{NO_PRIMARY}; {NO_LABELS}",
            schedule="replay",
            experiment="retention",
            policy="focal",
        ),
        rows={
            "PersonaMem": {"source": "bm25", "stratum": "fact-recall"},
            "LongMemEval-S": {
                "source": "longmemeval",
                "kind": "data",
                "reason": NO_RELEASE,
                "instead.source": "locomo",
            },
        },
        columns={
            "Forward / *": {"quantity": "recall.exposed.forward"},
            "Reverse / *": {"quantity": "recall.exposed.route"},
            "Reverse minus forward / *": {"quantity": "recall.exposed.route-forward"},
        },
    ),
)
