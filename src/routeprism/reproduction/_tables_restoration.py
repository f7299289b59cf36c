"""Tables of support restoration and of its replication by other models."""

from __future__ import annotations

from routeprism.reproduction._cells import Part, Table
from routeprism.reproduction._words import (
    LABELLED,
    NO_LABELS,
    RESTORE,
    machinery,
)

__all__ = ["TABLES"]

_WHY = f"{LABELLED}; {NO_LABELS}"
_RESTORED = machinery(
    RESTORE, _WHY, source="restoration", experiment="restoration", schedule="replay", filler="A+B"
)
_POLICIES: dict[str, Part] = {
    "Focal*": {"policy": "focal"},
    "Recent*": {"policy": "recent"},
}
_CONDITIONS: dict[str, Part] = {
    "Present / *": {"quantity": "accuracy.present"},
    "Absent / *": {"quantity": "accuracy.absent"},
    "Restored / *": {"quantity": "accuracy.restored"},
    "Replacement / *": {"quantity": "accuracy.replacement"},
}
_CONTRASTS: dict[str, Part] = {
    "Restored - Absent / *": {"quantity": "restored-absent"},
    "Restored - Replacement / *": {"quantity": "restored-replacement"},
    "Restored - Present / *": {"quantity": "restored-present"},
}
_REPLICATED = machinery(f"{RESTORE} (once for each model)", _WHY)

TABLES = (
    Table(
        "tab:restoration-main",
        "accuracy in four conditions, and contrasts",
        {**_RESTORED, "quantity": "accuracy.present"},
        rows=_POLICIES,
        columns={
            "* / Q": {"number": "queries"},
            "* / U": {"number": "units"},
            "* / Pres.": {"quantity": "accuracy.present"},
            "* / Abs.": {"quantity": "accuracy.absent"},
            "* / Res.": {"quantity": "accuracy.restored"},
            "* / Repl.": {"quantity": "accuracy.replacement"},
            "* R-A / *": {"quantity": "restored-absent"},
            "* R-P / *": {"quantity": "restored-replacement"},
        },
    ),
    Table("tab:model-replication-main", "five models: routes and restoration", _REPLICATED),
    Table("tab:answer-model-replication", "five models: routes and restoration", _REPLICATED),
    Table("tab:answer-model-intervals", "five models: limits", _REPLICATED),
    Table(
        "tab:crossfit-support-rescue",
        "restoration of two pairs of streaming",
        machinery(
            "routeprism restore personamem --kind fact-recall --policy streaming --model MODEL "
            "--readings FILE --labels audited:NAME",
            f"{_WHY}; streaming changes other pairs here",
        ),
    ),
    Table(
        "tab:support-intervention",
        "support present against removed, and identity swaps",
        {**_RESTORED, "policy": "focal"},
        columns={
            "Support present accuracy / *": {"quantity": "accuracy.present"},
            "Support removed accuracy / *": {"quantity": "accuracy.absent"},
            "Present minus removed accuracy / *": {"quantity": "present-absent"},
        },
    ),
    Table(
        "tab:support-rescue",
        "focal restoration",
        {**_RESTORED, "policy": "focal"},
        rows={
            "Support present": {"quantity": "accuracy.present"},
            "Support absent": {"quantity": "accuracy.absent"},
            "Support rescue": {"quantity": "accuracy.restored"},
            "Support placebo": {"quantity": "accuracy.replacement"},
        },
        cells={
            (row, column): (
                {"quantity": "H", "arm": contrast} if column == "H / *" else {"quantity": contrast}
            )
            for row, contrast in (
                ("Route contrast", "present-absent"),
                ("Rescue contrast", "restored-absent"),
                ("Placebo contrast", "replacement-absent"),
                ("Rescue to present", "restored-present"),
            )
            for column in ("H / *", "Δ / *")
        },
    ),
    Table(
        "tab:restoration-prompt-identity",
        "prompts that are the same with support present and restored",
        {
            **_RESTORED,
            "arm": "present-restored",
            "quantity": "count.identical_prompts",
        },
        rows=_POLICIES,
        columns={"Queries": {"number": "queries"}, "Users": {"number": "units"}},
        cells={("*", "Prompt pairs"): {"source": ""}},
    ),
    Table(
        "tab:recent-support-restoration",
        "Recent-3 restoration",
        {**_RESTORED, "policy": "recent"},
        columns={
            "Support present / *": {"quantity": "accuracy.present"},
            "Support absent / *": {"quantity": "accuracy.absent"},
            "Restoration / *": {"quantity": "accuracy.restored"},
            "Replacement / *": {"quantity": "accuracy.replacement"},
            "Restoration - absent / *": {"quantity": "restored-absent"},
            "Restoration - replacement / *": {"quantity": "restored-replacement"},
            "Restoration - present / *": {"quantity": "restored-present"},
        },
    ),
    Table(
        "tab:personamem-restoration-expanded",
        "restoration on primary, all eligible and other questions",
        {**_RESTORED, "quantity": "accuracy.present"},
        rows=_POLICIES,
        columns={
            "Queries": {"number": "queries"},
            "Users": {"number": "units"},
            **_CONDITIONS,
            **_CONTRASTS,
        },
    ),
)
