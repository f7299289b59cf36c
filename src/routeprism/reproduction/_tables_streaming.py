"""Tables of cross-fitted streaming: contrasts, display, repeats, support and rescue."""

from __future__ import annotations

from routeprism.reproduction._cells import Part, Table
from routeprism.reproduction._words import (
    COORDINATES,
    COUNTS,
    GOLD,
    LABELLED,
    NO_ANSWERS,
    NO_LABELS,
    NO_STREAMING,
    machinery,
)

__all__ = ["TABLES"]

_STREAMING = machinery(
    "routeprism audit personamem --policy streaming --comparators -s replay -s half-swap "
    "-s odd-even --model MODEL --display source",
    NO_ANSWERS,
    source="held-out",
    filler="A",
)
_REPLAY = {**_STREAMING, "policy": "streaming", "schedule": "replay"}
_SERIALISED = {**_REPLAY, "experiment": "display", "arm": "serialisation:source"}
_HERE = {"kind": "data", "source": "streaming", "schedule": "replay", "reason": NO_STREAMING}
_FACTS = {**_REPLAY, "stratum": "fact-recall"}
_COUNTED = {
    "Visible change": "visible_change",
    "Direct support change": "support_change",
    "Support loss": "support_loss",
}
"""Row → what its pairs have in common."""
_STEPS = ("visible_change", "support_change", "support_loss", "answer_change")
_NONE = "under the public label none of the 146 pairs is such a pair, so there is no user to count"


def _funnel() -> dict[tuple[str, str], Part]:
    """Give the counts of each row: pairs that went at least as far as the row's own step."""
    found: dict[tuple[str, str], Part] = {}
    columns = ("Visible", "Support", "Loss", "Answer")
    for row, own in {"All audited": _STEPS[0], **_COUNTED}.items():
        for column, step in zip(columns, _STEPS, strict=True):
            last = max(own, step, key=_STEPS.index)
            place = "Task" if column == "Answer" else "State change"
            found[row, f"{place} / {column}"] = {"quantity": f"count.{last}"}
    for row, own in _COUNTED.items():
        found[row, "Coverage / Pools"] = {"quantity": f"count.{own}"}
    return found


TABLES = (
    Table(
        "tab:crossfit-policy",
        "streaming against its comparator, by schedule",
        {**_STREAMING, "policy": "streaming", "arm": "ordered-comparator"},
        rows={
            "Replay": {"schedule": "replay"},
            "Half-swap": {"schedule": "half-swap"},
            "Odd-even": {"schedule": "odd-even"},
        },
        columns=COORDINATES,
    ),
    Table(
        "tab:repeat-decomposition",
        "streaming: changed selections, and residuals of repeated answers",
        {
            **_REPLAY,
            "command": "routeprism audit personamem --policy streaming --comparators "
            "--model MODEL --draws 3",
            "source": "repeated",
            "quantity": "D_res",
        },
        rows={
            "Source stable": {"policy": "streaming-source"},
            "Arrival minus source": {"arm": "ordered-comparator", "quantity": "Gamma.D_res"},
        },
        columns={
            "Changed fraction": {
                **_HERE,
                "arm": "",
                "filler": "",
                "quantity": "V_changed_count",
                "number": "share",
            }
        },
    ),
    Table(
        "tab:canonical-serialization",
        "streaming, the same selections in source order",
        _SERIALISED,
        rows={
            "Selection changed*": {"mask": "selection-changed"},
            "Selection unchanged*": {"mask": "selection-unchanged"},
        },
        columns=COORDINATES,
    ),
    Table(
        "tab:canonical-repeat",
        "repeated answers where streaming's selections differ",
        {
            **_SERIALISED,
            "source": "repeated",
            "mask": "selection-changed",
            "command": "routeprism audit personamem --policy streaming --model MODEL --draws 3 "
            "--display source",
            "reason": f"{NO_ANSWERS}; streaming changes other pairs here",
        },
        columns={
            **COORDINATES,
            "H_×^(m) / *": {"quantity": "H_cross"},
            "H_within^(m) / *": {"quantity": "H_within"},
        },
    ),
    Table(
        "tab:crossfit-support",
        "where the support of cross-fitted streaming changes, 146 questions",
        {
            **_FACTS,
            **machinery(
                "routeprism audit personamem --kind fact-recall --policy streaming --model MODEL "
                "--readings FILE --labels audited:NAME",
                NO_LABELS,
            ),
            "experiment": "support",
        },
        cells={
            **_funnel(),
            ("Visible change", "Coverage / Users"): {
                "experiment": "display",
                "arm": "serialisation:source",
                "mask": "selection-changed",
                "quantity": "H",
                "number": "units",
            },
            ("Direct support change", "Coverage / Users"): {
                "experiment": "routes",
                "arm": "support-changed",
                "quantity": "H",
                "number": "units",
                "blank": _NONE,
            },
            ("Support loss", "Coverage / Users"): {"blank": _NONE},
            **{
                ("All audited", column): {
                    **_HERE,
                    "filler": "",
                    "experiment": "routes",
                    **part,
                }
                for column, part in {
                    "Coverage / Pools": {"quantity": "J", "number": "queries"},
                    "Coverage / Users": {"quantity": "J", "number": "units"},
                    "State change / Visible": {"quantity": "V_changed_count"},
                }.items()
            },
        },
    ),
    Table(
        "tab:crossfit-support-rescue",
        "restoration of two pairs of streaming",
        machinery(
            "routeprism restore personamem --policy streaming --model MODEL --draws 2 "
            "--filler A --filler B --readings FILE --labels audited:NAME",
            f"{LABELLED}; {NO_LABELS}; streaming changes other pairs here",
            source="rescue",
            experiment="restoration",
            policy="streaming",
            schedule="replay",
            filler="A+B",
        ),
        cells={
            (row, column): {"quantity": f"{quantity}.{condition}"}
            for row, condition in (
                ("Support present", "present"),
                ("Support absent", "absent"),
                ("Support rescue", "restored"),
                ("Replacement*", "replacement"),
            )
            for column, quantity in (
                ("* / Correct", "count.right"),
                ("* / Accuracy", "accuracy"),
                ("* / Same as present", "count.same_as_present"),
                ("* / Change from absent", "count.changed_from_absent"),
            )
        },
        note="none of the 146 fact-recall pairs is eligible under the public label; here are all "
        "that are among the 589 questions",
    ),
    Table(
        "tab:fresh-task-crossfit",
        "streaming where the task is preserved",
        {**_FACTS, **GOLD, "quantity": "H"},
        rows={"Source*": {"policy": "streaming-source"}},
        columns={**COUNTS, **COORDINATES},
        note="no readings are at hand: both subsets are the 146 fact-recall questions here",
    ),
)
