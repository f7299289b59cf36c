"""What `check` does and prints: the verdict of every gate, for people and for build servers."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import typer

from routeprism.errors import RunError
from routeprism.experiments import Checked, check_run
from routeprism.experiments.gates import Verdict

__all__ = ["annotation", "as_junit", "run_check"]

_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold; record and question ids may."""


def run_check(
    run: Path,
    gates: Sequence[str],
    *,
    baseline: Path | None,
    junit: Path | None,
    github: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Judge the gates, say what they found, and end with 1 where one failed."""
    found = check_run(run, gates, baseline)
    if junit is not None:
        try:
            junit.write_bytes(as_junit(found))
        except OSError as error:
            raise RunError(f"{junit} cannot be written: {error.strerror or error}") from error
    if github or os.environ.get("GITHUB_ACTIONS") == "true":
        for verdict in found.verdicts:
            if not verdict.passed:
                print(annotation(verdict), file=sys.stderr)
    if as_json:
        json.dump(_as_json(found), sys.stdout, indent=2, ensure_ascii=False)
        sys.stdout.write("\n")
    else:
        for verdict in found.verdicts:
            if not (quiet and verdict.passed):
                print(f"{'ok  ' if verdict.passed else 'FAIL'} {verdict.sentence}")
        if not quiet and found.limits:
            print(found.limits)
    if not found.passed:
        raise typer.Exit(1)


def as_junit(found: Checked) -> bytes:
    """Write one test case for each row a gate speaks of."""
    failed = sum(not verdict.passed for verdict in found.verdicts)
    suite = ElementTree.Element(
        "testsuite",
        name="routeprism check",
        tests=str(len(found.verdicts)),
        failures=str(failed),
        errors="0",
    )
    for verdict in found.verdicts:
        row = verdict.row
        names = (row.policy, row.schedule, row.model, row.arm, row.filler, row.batch)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_printable(f"routeprism.{found.benchmark}.{row.experiment}"),
            name=_printable(f"{verdict.gate} [{', '.join(name for name in names if name)}]"),
        )
        if not verdict.passed:
            failure = ElementTree.SubElement(
                case, "failure", message=_printable(verdict.sentence), type="gate"
            )
            failure.text = _printable(
                "\n".join(f"{one.id}\t{one.value:g}\t{one.text}" for one in verdict.questions)
            )
    written: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return written


def annotation(verdict: Verdict) -> str:
    """Write a failure as GitHub's workflow command; text cannot end it or begin another."""
    title = _escaped(f"gate {verdict.gate}").replace(":", "%3A").replace(",", "%2C")
    return f"::error title={title}::{_escaped(verdict.sentence)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)


def _as_json(found: Checked) -> dict[str, Any]:
    return {
        "run": found.run,
        "benchmark": found.benchmark,
        "passed": found.passed,
        "limits": found.limits,
        "gates": [
            {
                "gate": verdict.gate,
                "passed": verdict.passed,
                "value": verdict.value,
                "bound": verdict.bound,
                "sentence": verdict.sentence,
                "row": {
                    name: getattr(verdict.row, name)
                    for name in (*_NAMES, "estimate", "lower", "upper", "flags")
                },
                "questions": [
                    {"id": one.id, "user": one.user, "text": one.text, "value": one.value}
                    for one in verdict.questions
                ],
            }
            for verdict in found.verdicts
        ],
    }


_NAMES = ("experiment", "policy", "schedule", "model", "arm", "labels", "stratum", "quantity")
