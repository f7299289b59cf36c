"""Tables of long histories: retention and exposure of LongMemEval-S, and answers on it."""

from __future__ import annotations

from routeprism.reproduction._cells import Table
from routeprism.reproduction._words import NO_ANSWERS, NO_RELEASE, machinery

__all__ = ["TABLES"]

_AUDIT = (
    "routeprism audit longmemeval --policy recent:k=8 --policy recent:k=16 --policy recent:k=32 "
    "--policy focal --comparators"
)
_DATA = {
    "kind": "data",
    "source": "longmemeval",
    "schedule": "replay",
    "experiment": "retention",
    "reason": NO_RELEASE,
    "command": _AUDIT,
}
_POLICIES = {
    **{f"Recent-{k}": {"policy": f"recent-{k}"} for k in (8, 16, 32)},
    **{f"Source-order-{k}": {"policy": f"source-{k}"} for k in (8, 16, 32)},
    "Focal": {"policy": "focal"},
}
_ASK = machinery(
    "routeprism audit longmemeval --policy recent:k=8 --model MODEL --judge MODEL",
    f"{NO_ANSWERS}; {NO_RELEASE}",
)
_RESTORE = machinery(
    "routeprism restore longmemeval --kind single-session-user --policy recent:k=8 --model MODEL "
    "--judge MODEL",
    f"{NO_ANSWERS}; {NO_RELEASE}",
)

TABLES = (
    Table(
        "tab:longmem-scale-main",
        "retention and exposure over 470 questions",
        _DATA,
        rows=_POLICIES,
        columns={
            "Retained sessions / Overlap": {"quantity": "overlap.retained"},
            "Retained sessions / Recall F": {"quantity": "recall.retained.forward"},
            "Retained sessions / Recall R": {"quantity": "recall.retained.route"},
            "Exposed sessions / Overlap": {"quantity": "overlap.exposed"},
            "Exposed sessions / Recall F": {"quantity": "recall.exposed.forward"},
            "Exposed sessions / Recall R": {"quantity": "recall.exposed.route"},
        },
    ),
    Table("tab:longmem-answers-main", "accuracy in four conditions, 24 questions", _RESTORE),
    *(
        Table(
            f"tab:longmem-{part}",
            f"{part} sessions over 470 questions, with limits",
            _DATA,
            rows=_POLICIES,
            columns={
                "Source overlap / *": {"quantity": f"overlap.{part}"},
                "Evidence recall F / *": {"quantity": f"recall.{part}.forward"},
                "Evidence recall R / *": {"quantity": f"recall.{part}.route"},
            },
        )
        for part in ("retained", "exposed")
    ),
    Table(
        "tab:longmem-allcovered",
        "change of exposed recall, and questions with all evidence exposed",
        _DATA,
        rows=_POLICIES,
        columns={
            "Recall R minus F / *": {"quantity": "recall.exposed.route-forward"},
            "All-covered F / *": {"quantity": "all_covered.exposed.forward"},
            "All-covered R / *": {"quantity": "all_covered.exposed.route"},
        },
    ),
    Table(
        "tab:longmem-answers", "accuracy in four conditions and contrasts, 24 questions", _RESTORE
    ),
    Table("tab:longmem-coverage-main", "answer accuracy by kind of question", _ASK),
    Table("tab:longmem-coverage-models", "answer accuracy of two models", _ASK),
)
