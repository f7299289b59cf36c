"""Tables of long histories: retention and exposure of LongMemEval-S, and answers on it."""

from __future__ import annotations

from collections.abc import Mapping

from routeprism.reproduction._cells import Part, Table
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
    "instead.source": "locomo",
}
_INDEX = {"instead.source": "index"}
_STANDS_IN = (
    "where the released file is not at hand, a public index of session ids stands in for what ids "
    "suffice for (233 questions that one system got wrong), and LoCoMo for what needs text; no "
    "history of LoCoMo has more than 32 sessions"
)
_POLICIES = {
    **{f"Recent-{k}": {"policy": f"recent-{k}"} for k in (8, 16, 32)},
    **{f"Source-order-{k}": {"policy": f"source-{k}"} for k in (8, 16, 32)},
    "Focal": {"policy": "focal"},
}
_ASK = machinery(
    "routeprism audit longmemeval --policy recent:k=8 --model MODEL --judge MODEL",
    f"{NO_ANSWERS}; {NO_RELEASE}",
    source="long-answers",
    policy="recent-8",
    schedule="replay",
    filler="A",
    quantity="accuracy.forward",
    **{"instead.source": "locomo-answers"},
)
_RESTORE = machinery(
    "routeprism restore longmemeval --kind single-session-user --policy recent:k=8 --model MODEL "
    "--judge MODEL --draws 2",
    f"{NO_ANSWERS}; {NO_RELEASE}",
    source="long-restoration",
    experiment="restoration",
    policy="recent-8",
    schedule="replay",
    filler="A",
    **{"instead.source": "locomo-restoration", "instead.stratum": "single-hop"},
)
_ANSWERED = {
    "Queries": {"number": "queries"},
    "Forward / *": {"quantity": "accuracy.forward"},
    "Reverse / *": {"quantity": "accuracy.route"},
    "Reverse minus forward / *": {"quantity": "Delta_rep"},
}
_NO_KIND = {
    "instead.source": "",
    "blank": f"{NO_RELEASE}, and LoCoMo has no such questions",
}
_KINDS: Mapping[str, Part] = {
    "User": {"stratum": "single-session-user", "instead.stratum": "single-hop"},
    "Assistant": {"stratum": "single-session-assistant", **_NO_KIND},
    "Preference": {"stratum": "single-session-preference", **_NO_KIND},
    "Multi-session": {"stratum": "multi-session", "instead.stratum": "multi-hop"},
    "Temporal": {"stratum": "temporal-reasoning", "instead.stratum": "temporal"},
    "Update": {"stratum": "knowledge-update", **_NO_KIND},
}
_CONDITIONS = {
    "Present": {"quantity": "accuracy.present"},
    "Absent": {"quantity": "accuracy.absent"},
    "Restored": {"quantity": "accuracy.restored"},
    "Replacement": {"quantity": "accuracy.replacement"},
    "Present minus Absent": {"quantity": "present-absent"},
    "Restored minus Absent": {"quantity": "restored-absent"},
    "Replacement minus Absent": {"quantity": "replacement-absent"},
    "Restored minus Replacement": {"quantity": "restored-replacement"},
}
_ONE_MODEL = (
    "one model answered here, so the columns or rows of all models show the same run; where the "
    "released file is not at hand, LoCoMo stands in: its single-hop questions for those about one "
    "session"
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
        cells={("Recent-*", "Retained sessions / *"): _INDEX},
        note=_STANDS_IN,
    ),
    Table(
        "tab:longmem-answers-main",
        "accuracy in four conditions, 24 questions",
        _RESTORE,
        rows=_CONDITIONS,
        note=_ONE_MODEL,
    ),
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
            cells={(f"{name}-*", "*"): stand_in for name in ("Recent", "Source-order")},
            note=_STANDS_IN,
        )
        for part, stand_in in (("retained", _INDEX), ("exposed", {}))
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
        note=_STANDS_IN,
    ),
    Table(
        "tab:longmem-answers",
        "accuracy in four conditions and contrasts, 24 questions",
        _RESTORE,
        rows=_CONDITIONS,
        note=_ONE_MODEL,
    ),
    Table(
        "tab:longmem-coverage-main",
        "answer accuracy by kind of question",
        _ASK,
        rows=_KINDS,
        columns=_ANSWERED,
        note=_ONE_MODEL,
    ),
    Table(
        "tab:longmem-coverage-models",
        "answer accuracy of two models",
        _ASK,
        columns=_ANSWERED,
        note=_ONE_MODEL,
    ),
)
