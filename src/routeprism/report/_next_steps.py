"""What to do next with a run: limits that a build can check, and what the run does not answer."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.orders import describe_arrival, locate_base
from routeprism.report._html import Markup, fragment, tag
from routeprism.report._summary import interrupted
from routeprism.runs import Rows, Shortfall

if TYPE_CHECKING:
    from routeprism.report._page import Material

MOST_LOST = 0.05
"""The share of questions that may lose evidence under arrivals that really happen."""
LEAST_OVERLAP = 0.9
"""The overlap with source order that a memory without labels should keep."""


@dataclass(frozen=True, slots=True)
class SuggestedGate:
    """A limit that is worth keeping, whatever the numbers of today are."""

    text: str
    """The gate as `check` reads it."""
    meaning: str
    failing: tuple[str, ...] = ()
    """The memories of this run that are beyond the limit."""
    passing: tuple[str, ...] = ()
    """The memories of this run that keep it."""


def suggest_gates(rows: Rows, aside: Collection[str] = ()) -> list[SuggestedGate]:
    """Suggest limits for the orders of arrival that really happen, or for reversal without them.

    With labels they are about evidence, without labels about overlap. With answers, accuracy must
    not be shown to fall. `aside` names arms of other policies.
    """
    plain = rows.where(stratum="all", mask="", arm="")
    lost = plain.where(experiment="retention", quantity="evidence_lost")
    overlap = plain.where(experiment="routes", quantity="J", model="")
    measured = lost if any(row.estimate is not None for row in lost) else overlap
    schedules = [name for name in measured.values("schedule") if name]
    ordinary = [name for name in schedules if name != "replay"] or schedules
    gates = [
        gate
        for name in ordinary
        for group, policy in _group(measured.where(schedule=name), "estimate", aside)
        for gate in [_limit(group, name, policy)]
    ]
    changes = plain.where(experiment="routes", quantity="Delta_rep")
    gates += [_limit_answers(group, policy) for group, policy in _group(changes, "upper", aside)]
    return gates


def _group(rows: Rows, limit: str, aside: Collection[str]) -> Iterator[tuple[Rows, str]]:
    """Yield the rows of one gate, or of one for each policy if some rows are not to be judged."""
    own = [row for row in rows if not row.policy.startswith("source-order(")]
    judged = Rows.of(
        row for row in own if row.policy not in aside and getattr(row, limit) is not None
    )
    if not judged:
        return
    if len(judged) == len(own):
        yield judged, ""
        return
    for policy in judged.values("policy"):
        group = judged.where(policy=policy)
        if len(group) == sum(row.policy == policy for row in own):
            yield group, f"policy={policy},"


def _limit(rows: Rows, schedule: str, policy: str) -> SuggestedGate:
    place = describe_arrival(schedule)
    if rows[0].quantity == "evidence_lost":
        failing = [row.policy for row in rows if (row.estimate or 0.0) > MOST_LOST]
        gate = f"evidence_lost<={MOST_LOST:g}"
        meaning = f"under {place}, at most {100 * MOST_LOST:g} of 100 questions lose evidence"
    else:
        failing = [row.policy for row in rows if (row.estimate or 0.0) < LEAST_OVERLAP]
        gate = f"J>={LEAST_OVERLAP:g}"
        records = f"the records shown {locate_base([schedule])}"
        meaning = f"under {place}, the overlap with {records} is at least {LEAST_OVERLAP:g}"
    where = f"{policy}schedule={schedule}"
    if rows[0].quantity == "J":  # other experiments have an overlap as well
        where = f"{policy}experiment={rows[0].experiment},schedule={schedule},arm="
    return _suggest(f"{where}:{gate}", meaning, failing, rows)


def _suggest(text: str, meaning: str, failing: Sequence[str], rows: Rows) -> SuggestedGate:
    memories = rows.values("policy")
    return SuggestedGate(
        text,
        meaning,
        tuple(name for name in memories if name in failing),
        tuple(name for name in memories if name not in failing),
    )


def _limit_answers(changes: Rows, policy: str) -> SuggestedGate:
    failing = [row.policy for row in changes if (row.upper or 0.0) < 0]
    meaning = "no interval of the change of accuracy lies below zero"
    text = f"{policy}experiment=routes,arm=:Delta_rep.upper>=0"
    return _suggest(text, meaning, failing, changes)


def gate_command(gates: Sequence[SuggestedGate], directory: Path) -> str:
    """Write the `check` that a build can run, one gate in each line."""
    options = [shlex.join(("--gate", gate.text)) for gate in gates]
    return " \\\n  ".join((shlex.join(("routeprism", "check", str(directory))), *options))


def gate_section(rows: Rows, directory: Path, aside: Collection[str] = ()) -> Markup | None:
    """Show limits that are worth keeping in a build, and what this run does about them."""
    gates = suggest_gates(rows, aside)
    if not gates:
        return None
    return fragment(
        [
            tag(
                "p",
                "Useful limits for a build. If a memory is beyond one, the command exits with code "
                "1 and names the questions and the lost records.",
            ),
            tag(
                "ul",
                *(
                    tag("li", f"{meaning[:1].upper()}{meaning[1:]}: ", _judge(group))
                    for meaning, group in _group_meanings(gates).items()
                ),
            ),
            tag("pre", tag("code", gate_command(gates, directory)), tabindex="0"),
            tag(
                "p",
                "If your memory does not keep these limits yet, require that a new version is no "
                "worse than this one:",
            ),
            tag(
                "pre",
                tag("code", f"routeprism check NEW --baseline {shlex.quote(str(directory))}"),
                tabindex="0",
            ),
            tag(
                "p",
                tag("code", "--junit FILE"),
                " and ",
                tag("code", "--github"),
                " write the result where a build shows it.",
            ),
        ]
    )


def _group_meanings(gates: Sequence[SuggestedGate]) -> dict[str, list[SuggestedGate]]:
    """Put the gates together that state the same limit for different memories."""
    groups: dict[str, list[SuggestedGate]] = {}
    for gate in gates:
        groups.setdefault(gate.meaning, []).append(gate)
    return groups


def _judge(gates: Sequence[SuggestedGate]) -> str:
    failing = [name for gate in gates for name in gate.failing]
    passing = [name for gate in gates for name in gate.passing]
    if not failing:
        return "every memory of this run keeps it"
    beyond = f"not kept by {', '.join(failing)}"
    return f"{beyond}; kept by {', '.join(passing)}" if passing else beyond


# --- what is missing --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Missing:
    """A question that this run does not answer."""

    what: str
    how: str
    """How to get it."""
    command: str = ""


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
        data = name_data(run.configuration)
        yield Missing(
            "There are no evidence labels, so nothing shows whether what was lost matters.",
            "Give `support` in questions.jsonl, or let models or people label the records.",
            shlex.join(("routeprism", "support", data, "--pass", "NAME=MODEL")),
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
            "source may give pairs that differ in exactly one record with evidence.",
        )
    if configuration.get("models") and configuration.get("command") != "restore" and not restored:
        yield Missing(
            "Whether a displaced record matters was not tested.",
            "Restoration puts it back, against a matched record without evidence.",
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
        command = ["routeprism", "orders", name_data(configuration), *policies]
        yield Missing(
            "Only the named schedules were tried, not every order.",
            "Enumerate or sample all orders, and find the worst one.",
            shlex.join(command),
        )


def _after_readings(configuration: Mapping[str, Any], directory: Path) -> Missing:
    """Describe what readings are for."""
    audit = ["routeprism", "audit", name_data(configuration), "--policy", "focal"]
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


def name_data(configuration: Mapping[str, Any]) -> str:
    """Name the data of a run as a command takes them: your own data by their directory."""
    words = [str(word) for word in configuration.get("command_line") or ()]
    if len(words) > 1 and not words[1].startswith("-"):
        return words[1]
    return str(configuration.get("benchmark", ""))


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
