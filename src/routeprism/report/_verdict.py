"""The verdict of a run in sentences, and what is missing from it with the way to get it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.exhibits import Statement, compose, format_row, read_statements
from routeprism.experiments.reach import Reach, summarise_reaches
from routeprism.experiments.severity import MemoryVerdict, summarise_verdicts
from routeprism.report._questions import FLAGS, Questions
from routeprism.runs import FINISHED, EstimateRow, Rows, Shortfall

if TYPE_CHECKING:
    from routeprism.report._page import Material


@dataclass(frozen=True, slots=True)
class Summary:
    """What the run shows about one policy, or about no policy in particular."""

    subject: str
    title: str
    statements: tuple[Statement, ...]
    reach: Reach | None = None
    """How far order reaches into the policy; None without a policy."""

    @property
    def is_aside(self) -> bool:
        """Whether it is an arm or a comparator of another policy, and not a memory by itself."""
        return self.reach is not None and self.reach.aside


@dataclass(frozen=True, slots=True)
class Missing:
    """A question that this run does not answer."""

    what: str
    how: str
    """How to get it."""
    command: str = ""


def summarise_policies(
    manifest: Mapping[str, Any],
    rows: Sequence[EstimateRow],
    questions: Questions,
    reaches: Sequence[Reach],
) -> list[Summary]:
    """Sort the statements of a run by policy, with what can be counted question by question."""
    # An interrupted run may still have the statements of its earlier state.
    statements = () if interrupted(manifest) else read_statements(manifest, rows)
    decided = {reach.policy: reach for reach in reaches}
    summaries = []
    for policy in filter(None, Rows.of(rows).values("policy")):
        own = [statement for statement in statements if statement.policy == policy]
        first = own[:1]
        main = [item for item in own[1:] if item.kind in _MAIN]
        rest = [item for item in own[1:] if item.kind not in _MAIN]
        evidence = _evidence_statements(policy, questions)
        recall = _recall_statements(Rows.of(rows).where(experiment="retention", policy=policy))
        ordered = (*first, *evidence, *main, *recall, *rest)
        reach = decided[policy]
        summaries.append(Summary(policy, reach.title, ordered, reach))
    unassigned = tuple(item for item in statements if item.policy not in decided)
    if unassigned:
        title = "Results of the run" if summaries else _title_without_policies(manifest)
        summaries.append(Summary("", title, unassigned))
    return summaries


_MAIN = ("answers", "restoration")
"""Statements of these kinds follow the first one of a policy."""
_READINGS = "Results of the readings"
_PRINTED = "Reproduced numbers"


def _title_without_policies(manifest: Mapping[str, Any]) -> str:
    """Return a title for a run that audits nothing."""
    command = manifest.get("configuration", {}).get("command")
    return _PRINTED if command == "reproduce" else _READINGS


def interrupted(manifest: Mapping[str, Any]) -> bool:
    """Return whether a run has not come to its estimates."""
    return manifest.get("status") not in FINISHED


def headline(
    summaries: Sequence[Summary], complete: bool, verdicts: Sequence[MemoryVerdict] = ()
) -> str:
    """Summarise the run in one sentence."""
    if verdicts:
        return summarise_verdicts(verdicts)
    memories = [
        summary.reach for summary in summaries if summary.reach is not None and not summary.is_aside
    ]
    if memories:
        verdict = summarise_reaches(memories)
        return verdict or "Different arrival orders, and the records that each of them keeps."
    if summaries:
        if summaries[0].title == _PRINTED:
            return "The paper's numbers, beside those that this package computes."
        return "Readings of the benchmark, and how far they agree."
    return "No estimates yet." if complete else "This run was interrupted before its estimates."


def _evidence_statements(policy: str, questions: Questions) -> Iterator[Statement]:
    """Count the questions that lose support on one of the two routes."""
    for at, (name, schedule) in enumerate(questions.pairs):
        if name != policy:
            continue
        flags = [question["flags"][at] for question in questions.index]
        on_route = sum(bool(bits & FLAGS["lost-on-route"]) for bits in flags)
        on_forward = sum(bool(bits & FLAGS["lost-on-forward"]) for bits in flags)
        if on_route or on_forward:
            text = (
                f"{on_route} of {len(flags)} questions lose a support record on {schedule} that "
                f"forward shows, {on_forward} lose one on forward that {schedule} shows"
            )
            yield Statement((text,), "evidence", policy, schedule, scope="evidence")


def _recall_statements(rows: Rows) -> Iterator[Statement]:
    """Compare how much support reaches the prompt on the two routes."""
    for row in rows.plain(quantity="recall.exposed.forward"):
        place = {"schedule": row.schedule, "labels": row.labels, "interface": row.interface}
        route = rows.plain().one("recall.exposed.route", **place)
        parts = compose(
            "{forward} of it forward, {route} on {schedule} (labels {labels})",
            forward=format_row(row),
            route=format_row(route),
            schedule=row.schedule,
            labels=row.labels,
        )
        scope = "support that reaches the prompt"
        if len(rows.values("interface")) > 1:
            scope += f" with {row.interface}"
        yield Statement(parts, "retention", row.policy, row.schedule, scope=scope)


def list_missing(material: Material) -> list[Missing]:
    """List what a reader might look for and not find, and how to get it."""
    shortfalls = [*_list_incomplete(material)]
    if material.configuration.get("passes"):
        shortfalls.append(_after_readings(material.configuration, material.directory))
    if material.configuration.get("policies"):
        shortfalls += [*_list_inputs(material), *_list_experiments(material)]
    return shortfalls


def _list_incomplete(run: Material) -> Iterator[Missing]:
    """List what the same command would add."""
    if shortfall := Shortfall.from_manifest(run.manifest):
        yield Missing(
            f"{shortfall.summary}.",
            f"{'; '.join(shortfall.reasons)}. No estimate contains them; run the same command "
            f"again to ask for them.",
            command_of(run.manifest, run.directory),
        )
    if interrupted(run.manifest):
        stored = ""
        if run.answers:
            stored = f" {run.answers} answers are kept and are not asked for again."
        yield Missing(
            "The run was interrupted, so it has no estimates.",
            f"The same command resumes where it stopped.{stored}",
            command_of(run.manifest, run.directory),
        )


def _list_inputs(run: Material) -> Iterator[Missing]:
    """List models, labels and users that an audit lacks."""
    if not run.configuration.get("models"):
        yield Missing(
            "No model was asked, so there are no answers, no restoration and no transitions.",
            "Name one: the embedded reader needs no download, openai:MODEL any endpoint.",
            f"{command_of(run.manifest, None)} --model reader --draws 3",
        )
    if not run.configuration.get("labels"):
        benchmark = str(run.configuration.get("benchmark", ""))
        yield Missing(
            "There are no support labels, so nothing shows whether what was lost matters.",
            "Give `support` in questions.jsonl, or let models or people label the records.",
            shlex.join(["routeprism", "support", benchmark, "--pass", "NAME=MODEL"]),
        )
    if run.questions.index and len(run.questions.users) < 2:
        yield Missing(
            "There is one user, so no estimate has an interval.",
            "Intervals come from resampling users; audit two or more.",
        )


def _list_experiments(run: Material) -> Iterator[Missing]:
    """List experiments that an audit did not perform, or that had nothing to work on."""
    configuration = run.configuration
    restored = run.rows.where(experiment="restoration")
    eligible = restored.plain(quantity="count.eligible", model="")
    if eligible and not any(row.estimate for row in eligible):
        yield Missing(
            "No pair of routes was eligible for restoration.",
            "The table of eligibility gives the reasons. A different schedule, policy or label "
            "source may give pairs that differ in exactly one support record.",
        )
    if configuration.get("models") and configuration.get("command") != "restore" and not restored:
        yield Missing(
            "Whether a displaced record matters was not tested.",
            "Restoration puts it back, against a matched record without support.",
            command_of(run.manifest, None, command="restore"),
        )
    if configuration.get("models") and configuration.get("draws") == 1:
        yield Missing(
            "One draw each: the model's own noise cannot be distinguished from an effect of order.",
            "Ask again with two draws or more; stored answers are not asked for again.",
            command_of(run.manifest, run.directory, draws=3),
        )
    if not run.rows.where(experiment="orders"):
        policies = (word for name in configuration["policies"] for word in ("--policy", str(name)))
        command = ["routeprism", "orders", str(configuration.get("benchmark", "")), *policies]
        yield Missing(
            "Only the named schedules were tried, not every order.",
            "Enumerate or sample all orders, and find the worst one.",
            shlex.join(command),
        )


def _after_readings(configuration: Mapping[str, Any], directory: Path) -> Missing:
    """Describe what readings are for."""
    audit = ["routeprism", "audit", str(configuration.get("benchmark", "")), "--policy", "focal"]
    (primary, *_) = configuration.get("primary") or configuration["passes"]
    if configuration.get("command") == "screen":
        return Missing(
            "Nothing was audited here.",
            "Write the questions that pass a gate into a file, screen --gate RULE --write-mask "
            "FILE, and every number of an audit is given within and outside them.",
            shlex.join([*audit, "--mask", "admissible=FILE"]),
        )
    readings = str(directory / f"readings-{primary}.json")
    return Missing(
        "Nothing was audited here.",
        "Read these labels in an audit, or in restore.",
        shlex.join([*audit, "--readings", readings, "--labels", f"audited:{primary}"]),
    )


def command_of(
    manifest: Mapping[str, Any], directory: Path | None, *, command: str = "", draws: int = 0
) -> str:
    """Write the command that resumes a run; a run made by other means has only its name.

    Without a directory it is a new run. `command` and `draws` replace those of the run.
    """
    configuration = manifest.get("configuration", {})
    name = str(configuration.get("command", "audit"))
    words = configuration.get("command_line") or [
        name,
        *filter(None, [configuration.get("benchmark")]),
    ]
    words = ["reproduce"] if name == "reproduce" else [*map(str, words)]
    if command:
        words[0] = command
    if draws:
        at = words.index("--draws") if "--draws" in words else len(words)
        words[at : at + 2] = ["--draws", str(draws)]
    place = "--keep" if name == "reproduce" else "--run"
    return shlex.join(["routeprism", *words, *([place, str(directory)] if directory else [])])
