"""The verdict of a run in sentences, and what is missing from it with the way to get it."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from routeprism.report._command import command_of
from routeprism.report._questions import FLAGS, Questions
from routeprism.report._table import grouped, shown_interval
from routeprism.runs import EstimateRow

__all__ = ["Missing", "Verdict", "headline", "missing", "verdicts"]

Layer = Literal["sources", "context", "retained", "state", "none"]

_LAYERS: tuple[tuple[Layer, str, str], ...] = (
    ("sources", "V_changed_count", "Order changes which records are shown"),
    ("context", "C_changed_count", "Order changes the text, not the records"),
    ("retained", "retained_changed_count", "Order changes what is kept, not what is shown"),
    ("state", "I_changed_count", "Order changes the internal state alone"),
)
_UNCHANGED = "Order changes nothing that was observed"
_AUDITED = (*(words for _, _, words in _LAYERS), _UNCHANGED)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the run says of one policy, or of readings."""

    subject: str
    layer: Layer
    """The outermost layer that order reached."""
    headline: str
    sentences: tuple[str, ...]
    aside: bool = False
    """Whether it is an arm or a comparator of another policy, and no memory by itself."""


@dataclass(frozen=True, slots=True)
class Missing:
    """Something that this run does not tell."""

    what: str
    how: str
    """How to get it."""
    command: str = ""


def verdicts(
    manifest: Mapping[str, Any],
    rows: Sequence[EstimateRow],
    questions: Questions,
    arms: Collection[str] = (),
) -> list[Verdict]:
    """Sort what the run said by policy, with what can be counted question by question.

    `arms` are the policies that stand for another one with operations of it fixed.
    """
    policies = list(dict.fromkeys(row.policy for row in rows if row.policy))
    said: dict[str, list[str]] = {policy: [] for policy in policies}
    others: list[str] = []
    for sentence in manifest.get("sentences") or ():
        owners = [name for name in policies if _is_of(str(sentence), name)]
        place = said[max(owners, key=len)] if owners else others
        place.append(str(sentence))
    found = []
    for policy in policies:
        own = [row for row in rows if row.policy == policy]
        first, *rest = [*said[policy], ""]
        main = [one for one in rest if one.startswith(f"{policy} read by") or _RESTORED in one]
        more = [one for one in rest if one not in main]
        told = (first, *_lost(policy, questions), *main, *_recall(own), *more)
        layer, words = _outermost(own)
        aside = policy in arms or policy.startswith("source-order(")
        found.append(Verdict(policy, layer, words, tuple(filter(None, told)), aside))
    if all(one.aside for one in found):  # then they are what the run is about
        found = [replace(one, aside=False) for one in found]
    if others:
        title = "What the run says" if policies else _without_policies(manifest)
        found.append(Verdict("", "none", title, tuple(others)))
    return found


_READINGS = "What the readings say"
_PRINTED = "What is reproduced"


def _without_policies(manifest: Mapping[str, Any]) -> str:
    """Say what a run is about that audits nothing."""
    made = manifest.get("configuration", {})
    return _PRINTED if made.get("command") == "reproduce" else _READINGS


_RESTORED = "putting the displaced record back"
"""What the sentence about restoration says; with the answers it comes before all others."""


def _is_of(sentence: str, policy: str) -> bool:
    return sentence.startswith(policy) and sentence[len(policy) : len(policy) + 1] in (
        ":",
        ",",
        " ",
    )


def headline(found: Sequence[Verdict], complete: bool) -> str:
    """Say in one sentence what to remember."""
    policies = [one for one in found if one.subject and not one.aside]
    if not policies:
        if found:
            if found[0].headline == _PRINTED:
                return "The paper's numbers, beside what this package gives."
            return "Readings of the benchmark, and how far they agree."
        return "No estimates yet." if complete else "This run was interrupted before its estimates."
    if not any(one.headline in _AUDITED for one in policies):
        return "Other arrival orders, and what they retain."
    reached = [one.subject for one in policies if one.layer == "sources"]
    if reached:
        noun = "memory" if len(policies) == 1 else f"{len(policies)} memories"
        share = "this" if len(policies) == 1 else f"{len(reached)} of"
        return (
            f"Arrival order changes which records {share} {noun} show{'s' * (len(policies) == 1)}."
        )
    if any(one.layer == "context" for one in policies):
        return "Arrival order changes the text that is shown, but not which records it comes from."
    return "Arrival order changes nothing that these memories show."


def _outermost(rows: Sequence[EstimateRow]) -> tuple[Layer, str]:
    for layer, quantity, words in _LAYERS:
        if any(row.quantity == quantity and row.estimate and not row.model for row in rows):
            return layer, words
    if any(row.quantity == "V_changed_count" for row in rows):
        return "none", _UNCHANGED
    for row in rows:
        if row.quantity == "order_change" and row.stratum == "all" and not row.mask:
            if row.estimate:
                return "retained", "Other orders retain other records"
            return "none", "Every order retains the same records"
    return "none", "What was found"


def _lost(policy: str, questions: Questions) -> list[str]:
    """Count the questions that lose support on one of the two routes."""
    said = []
    for at, (name, schedule) in enumerate(questions.pairs):
        if name != policy:
            continue
        flags = [one["flags"][at] for one in questions.index]
        on_route = sum(bool(bits & FLAGS["lost-on-route"]) for bits in flags)
        on_forward = sum(bool(bits & FLAGS["lost-on-forward"]) for bits in flags)
        if on_route or on_forward:
            said.append(
                f"evidence: {on_route} of {len(flags)} questions lose a support record on "
                f"{schedule} that forward shows, {on_forward} lose one on forward that "
                f"{schedule} shows"
            )
    return said


def _recall(rows: Sequence[EstimateRow]) -> list[str]:
    retention = [row for row in rows if row.experiment == "retention"]
    said = []
    for (schedule, labels), found in grouped(retention, ("schedule", "labels")).items():
        sides = [found.get(f"recall.exposed.{side}") for side in ("forward", "route")]
        if all(side is not None and side.estimate is not None for side in sides):
            forward, route = (shown_interval(side) for side in sides)
            said.append(
                f"support that reaches the prompt: {forward} of it forward, {route} on {schedule} "
                f"(labels {labels})"
            )
    return said


def missing(
    manifest: Mapping[str, Any],
    rows: Sequence[EstimateRow],
    questions: Questions,
    directory: Path,
    answers: int,
) -> list[Missing]:
    """Say what a reader might look for and not find, and how to get it."""
    made = manifest.get("configuration", {})
    again = command_of(manifest, directory)
    audited = bool(made.get("policies"))
    named = str(made.get("benchmark", ""))
    found: list[Missing] = []
    if manifest.get("status") != "complete":
        kept = f" {answers} answers are kept and are not asked for again." if answers else ""
        found.append(
            Missing(
                "The run was interrupted, so it has no estimates.",
                f"The same command goes on where it stopped.{kept}",
                again,
            )
        )
    if made.get("passes"):
        found.append(_after_readings(made, directory))
    if audited and not made.get("models"):
        found.append(
            Missing(
                "No model was asked, so there are no answers, no restoration and no transitions.",
                "Name one: the embedded reader needs no download, openai:MODEL any endpoint.",
                f"{_without_run(again)} --model reader --draws 3",
            )
        )
    if audited and not made.get("labels"):
        found.append(
            Missing(
                "There are no support labels, so nothing says whether what was lost matters.",
                "Give `support` in questions.jsonl, or let models or people label the records.",
                shlex.join(["routeprism", "support", named, "--pass", "NAME=MODEL"]),
            )
        )
    if audited and questions.index and len(questions.users) < 2:
        found.append(
            Missing(
                "There is one user, so no estimate has an interval.",
                "Intervals come from resampling users; audit two or more.",
            )
        )
    eligible = [
        row.estimate or 0
        for row in rows
        if row.experiment == "restoration"
        and row.quantity == "count.eligible"
        and not (row.arm or row.mask or row.model)
        and row.stratum == "all"
    ]
    if eligible and not any(eligible):
        found.append(
            Missing(
                "No pair of routes was eligible for restoration.",
                "The table of eligibility says why. Another schedule, policy or label source may "
                "give pairs that differ in exactly one support record.",
            )
        )
    tried = any(row.experiment == "restoration" for row in rows)
    if audited and made.get("models") and made.get("command") != "restore" and not tried:
        found.append(
            Missing(
                "Whether a displaced record matters was not tried.",
                "Restoration puts it back, against a matched record without support.",
                _without_run(again).replace("routeprism audit", "routeprism restore", 1),
            )
        )
    if made.get("models") and made.get("draws") == 1:
        found.append(
            Missing(
                "One draw each: the model's own noise cannot be told from an effect of order.",
                "Ask again with two draws or more; kept answers are not asked for again.",
                again.replace("--draws 1", "--draws 3"),
            )
        )
    if audited and not any(row.experiment == "orders" for row in rows):
        found.append(
            Missing(
                "Only the named schedules were tried, not every order.",
                "Enumerate or sample all orders, and find the worst one.",
                shlex.join(
                    [
                        "routeprism",
                        "orders",
                        str(made.get("benchmark", "")),
                        *(
                            part
                            for policy in made["policies"]
                            for part in ("--policy", str(policy))
                        ),
                    ]
                ),
            )
        )
    return found


def _after_readings(made: Mapping[str, Any], directory: Path) -> Missing:
    """Say what readings are for."""
    audit = ["routeprism", "audit", str(made.get("benchmark", "")), "--policy", "focal"]
    (primary, *_) = made.get("primary") or made["passes"]
    if made.get("command") == "screen":
        return Missing(
            "Nothing was audited here.",
            "Write the questions that pass a gate into a file, screen --gate RULE --write-mask "
            "FILE, and every number of an audit is given within and outside of them.",
            shlex.join([*audit, "--mask", "admissible=FILE"]),
        )
    readings = str(directory / f"readings-{primary}.json")
    return Missing(
        "Nothing was audited here.",
        "Read these labels in an audit, or in restore.",
        shlex.join([*audit, "--readings", readings, "--labels", f"audited:{primary}"]),
    )


def _without_run(command: str) -> str:
    return command.rpartition(" --run ")[0]
