"""Tables of support restoration and of its replication by other models."""

from __future__ import annotations

from routeprism.reproduction._cells import Part, Table
from routeprism.reproduction._words import (
    GOLD,
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
_RECENT = {"source": "recent-restoration", "policy": "recent", "filler": "A"}
_POLICIES: dict[str, Part] = {
    "Focal*": {"policy": "focal"},
    "Recent*": _RECENT,
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
_REPLICATED = {**_RESTORED, "command": f"{RESTORE} (once for each model)"}
_ROUTE = {"source": "answers", "experiment": "routes", "policy": "focal"}
_MODELS: dict[str, Part] = {
    "H_focal": {**_ROUTE, "quantity": "H"},
    "Δ_focal*": {**_ROUTE, "quantity": "Delta"},
    **{
        f"{name} R–{against}*": {**part, "quantity": quantity}
        for name, part in (("Focal", {"policy": "focal"}), ("Recent", _RECENT))
        for against, quantity in (("A", "restored-absent"), ("P", "restored-replacement"))
    },
}
_ONE_MODEL = "one model answered here, so the rows of all models show the same run"
_SUBSETS = "no readings are at hand: Gold and Strict are all eligible pairs here"
_ELIGIBLE: dict[str, Part] = {
    "Queries": {"number": "queries"},
    "Users": {"number": "units"},
}
_NO_SWAP = "the public label names one session, so no pair has one in another's place"

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
    *(
        Table(label, title, _REPLICATED, columns=_MODELS, note=_ONE_MODEL)
        for label, title in (
            ("tab:model-replication-main", "five models: routes and restoration"),
            ("tab:answer-model-replication", "five models: routes and restoration"),
            ("tab:answer-model-intervals", "five models: limits"),
        )
    ),
    Table(
        "tab:support-intervention",
        "support present against removed, and identity swaps",
        {**_RESTORED, "policy": "focal"},
        columns={
            "Support present accuracy / *": {"quantity": "accuracy.present"},
            "Support removed accuracy / *": {"quantity": "accuracy.absent"},
            "Present minus removed accuracy / *": {"quantity": "present-absent"},
            "H / *": {"quantity": "H", "arm": "present-absent"},
            "Δ / *": {"quantity": "present-absent"},
        },
        cells={
            ("Identity swap", "H / *"): {"arm": "identity-swap:present-absent", "blank": _NO_SWAP},
            ("Identity swap", "Δ / *"): {"arm": "identity-swap", "blank": _NO_SWAP},
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
        columns={**_ELIGIBLE, "Prompt pairs": {"quantity": "count.prompt_pairs"}},
    ),
    Table(
        "tab:recent-support-restoration",
        "Recent-3 restoration",
        {**_RESTORED, **_RECENT},
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
        columns={**_ELIGIBLE, **_CONDITIONS, **_CONTRASTS},
    ),
    *(
        Table(
            label,
            title,
            {**_RESTORED, **GOLD, "quantity": "accuracy.present"},
            rows={"Compactor*": {"policy": "focal"}, **_POLICIES},
            columns={**_ELIGIBLE, **columns},
            note=_SUBSETS,
        )
        for label, title, columns in (
            (
                "tab:fresh-task-accuracy",
                "restoration where the task is preserved",
                _CONDITIONS,
            ),
            (
                "tab:fresh-task-contrasts",
                "contrasts of that restoration",
                {
                    "R-A / *": {"quantity": "restored-absent"},
                    "R-N / *": {"quantity": "restored-replacement"},
                    "R-P / *": {"quantity": "restored-present"},
                },
            ),
        )
    ),
)
