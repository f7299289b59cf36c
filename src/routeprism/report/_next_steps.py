"""What to do next with a run: limits that a build can check, and what the run does not answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.judge import Verdict
from routeprism.report._html import Markup, fragment, tag
from routeprism.report._summary import interrupted
from routeprism.review.gates import suggest_gates
from routeprism.runs import Shortfall

if TYPE_CHECKING:
    from routeprism.report._page import Material


def gate_section(verdicts: Sequence[Verdict], directory: Path) -> Markup | None:
    """Show the limits that are worth keeping in a build."""
    gates = suggest_gates(verdicts)
    if not gates:
        return None
    options = [shlex.join(("--gate", gate)) for gate in gates]
    command = " \\\n  ".join((shlex.join(("routeprism", "check", str(directory))), *options))
    return fragment(
        [
            tag(
                "p",
                f"Recommended for a build: {'; '.join(_MEANINGS[gate] for gate in gates)}. If a "
                "memory is beyond a limit, the command exits with code 1 and names the questions "
                "and the lost records. It exits with code 3 if nothing can be concluded.",
            ),
            tag("pre", tag("code", command), tabindex="0"),
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


_MEANINGS: Mapping[str, str] = {
    "evidence.lost<=0.02": "in each order of arrival, at most 2 of 100 questions lose evidence",
    "anomaly<=0": "overlapping writes always end like some serial order",
    "J>=0.9": "in each order of arrival, the records shown overlap with those of source order by "
    "0.9 or more",
}
"""What the limits that every output recommends mean."""


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
