"""What `check` does and prints: the verdict of every gate, for people and for build servers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from routeprism.api.reviews import prepare_adapter, price_adapter, run_adapter_checks
from routeprism.cli._console import print_json, print_line
from routeprism.cli._terminal import may_proceed, reading
from routeprism.errors import RunError, UnansweredError
from routeprism.files import write_output
from routeprism.policies import describe_client
from routeprism.printing import printable
from routeprism.report import REPORT
from routeprism.review import CheckResult, check_run
from routeprism.review.gates import GateVerdict, list_lost_records
from routeprism.routes.conformance import Check

__all__ = ["annotation", "as_junit", "show_adapter_checks", "show_check"]

_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold; record and question ids may."""


def show_check(settings: Any) -> None:
    """Run `check`: exit with 1 if a gate fails, and with 3 if too many answers are missing."""
    with reading(settings.run, settings.baseline):
        check = check_run(
            settings.run,
            settings.gates,
            settings.baseline,
            allow_missing=settings.allow_missing,
        )
        lost = {
            verdict.sentence: list_lost_records(settings.run, verdict) for verdict in check.failures
        }
        report = Path(settings.run) / REPORT
        _inform_build(check, lost, report, settings)
        if settings.json:
            print_json(_as_json(check))
        elif settings.quiet:
            print_line(_state_verdict(check))
        else:
            _print_verdicts(check, lost, report)
        _exit_on_failure(check)


def _inform_build(
    result: CheckResult, lost: Mapping[str, Sequence[str]], report: Path, settings: Any
) -> None:
    """Write what a build server reads: a JUnit file, annotations, the summary of the step."""
    junit = settings.junit
    if junit is not None:
        try:
            write_output(junit, as_junit(result))
        except OSError as error:
            raise RunError(f"{junit} cannot be written: {error.strerror or error}") from error
    if settings.github or os.environ.get("GITHUB_ACTIONS") == "true":
        for verdict in result.failures:
            print(annotation(verdict), file=sys.stderr)
        for name, shortfall in result.shortfalls:
            print(
                f"::error title=incomplete run::{_escape_text(f'{name}: {shortfall}')}",
                file=sys.stderr,
            )
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(summarise_check(result, lost, report))


def _print_verdicts(result: CheckResult, lost: Mapping[str, Sequence[str]], report: Path) -> None:
    for verdict in result.verdicts:
        print_line(f"{'ok  ' if verdict.passed else 'FAIL'} {verdict.sentence}")
        for line in lost.get(verdict.sentence, ()):
            print_line(f"     {line}")
    for memory in result.memories:
        print_line(f"     {memory}")
    if result.limits:
        print_line(result.limits)
    if report.exists():
        print_line(f"Report: {report}")


def _exit_on_failure(result: CheckResult) -> None:
    """Exit with 3 if too many answers are missing, and with 1 if a gate fails."""
    for name, shortfall in result.shortfalls:
        print_line(
            f"routeprism: {name} is incomplete: {shortfall}. Run its command again to ask for them,"
            f" or allow them with --allow-missing {shortfall.total}",
            file=sys.stderr,
        )
    if result.shortfalls:
        sys.exit(UnansweredError.exit_code)
    if not result.passed:
        sys.exit(1)


def _state_verdict(result: CheckResult) -> str:
    """Return the verdict in one line, with the first limit that does not hold."""
    failures, number = result.failures, len(result.verdicts)
    if not failures:
        return f"ok   {'the limit holds' if number == 1 else f'all {number} limits hold'}"
    return f"FAIL {len(failures)} of {number} limits: {failures[0].sentence}"


def summarise_check(result: CheckResult, lost: Mapping[str, Sequence[str]], report: Path) -> str:
    """Write the verdicts as Markdown for the summary of a build step."""
    title = "every gate holds" if result.passed else "a gate fails"
    lines = [f"### RoutePrism: {title}", ""]
    for verdict in result.verdicts:
        lines.append(f"- {'ok' if verdict.passed else '**FAIL**'}: {_quote(verdict.sentence)}")
        lines += [f"  - {_quote(line)}" for line in lost.get(verdict.sentence, ())]
    lines += [f"- incomplete: {_quote(f'{name}: {gap}')}" for name, gap in result.shortfalls]
    if report.exists():
        lines += ["", f"Report: `{_quote(str(report))}`"]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Keep a text on one line, without HTML."""
    plain = printable(" ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("`", "'")


def as_junit(result: CheckResult) -> bytes:
    """Write one test case for each row that a gate applies to."""
    suite = ElementTree.Element(
        "testsuite",
        name="routeprism check",
        tests=str(len(result.verdicts) + len(result.shortfalls)),
        failures=str(len(result.failures)),
        errors=str(len(result.shortfalls)),
    )
    for name, shortfall in result.shortfalls:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_printable(f"routeprism.{result.benchmark}"),
            name=_printable(f"complete [{name}]"),
        )
        ElementTree.SubElement(case, "error", message=_printable(str(shortfall)), type="missing")
    for verdict in result.verdicts:
        row = verdict.row
        names = (row.policy, row.schedule, row.model, row.arm, row.filler, row.batch)
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_printable(f"routeprism.{result.benchmark}.{row.experiment}"),
            name=_printable(f"{verdict.gate} [{', '.join(name for name in names if name)}]"),
        )
        if not verdict.passed:
            failure = ElementTree.SubElement(
                case, "failure", message=_printable(verdict.sentence), type="gate"
            )
            failure.text = _printable(
                "\n".join(
                    f"{question.id}\t{question.value:g}\t{question.text}"
                    for question in verdict.questions
                )
            )
    xml: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return xml


def annotation(verdict: GateVerdict) -> str:
    """Write a failure as GitHub's workflow command; text cannot end it or begin another."""
    title = _escape_text(f"gate {verdict.gate}").replace(":", "%3A").replace(",", "%2C")
    return f"::error title={title}::{_escape_text(verdict.sentence)}"


def _escape_text(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)


def _as_json(result: CheckResult) -> dict[str, Any]:
    return {
        "run": result.run,
        "benchmark": result.benchmark,
        "passed": result.passed,
        "missing": [
            {"run": name, **shortfall.to_manifest()} for name, shortfall in result.shortfalls
        ],
        "limits": result.limits,
        "verdicts": [asdict(reach) for reach in result.reaches],
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
                    {
                        "id": question.id,
                        "user": question.user,
                        "text": question.text,
                        "value": question.value,
                    }
                    for question in verdict.questions
                ],
            }
            for verdict in result.verdicts
        ],
    }


_NAMES = ("experiment", "policy", "schedule", "model", "arm", "labels", "stratum", "quantity")


_MARKS = {"passed": "ok     ", "failed": "FAILED ", "not tried": "–      "}


def _print_check(check: Check) -> None:
    """Print a result at once: a check of a slow service takes a while."""
    detail = f": {check.message}" if check.message else ""
    print(printable(f"{_MARKS[check.outcome]}{check.name}{detail}", lines=True), flush=True)
    if check.fix:
        print(printable(f"       to fix it: {check.fix}", lines=True), flush=True)


def _print_untried(checks: Sequence[Check]) -> None:
    """Print the checks that were not tried, in one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for check in checks:
        if check.outcome == "not tried":
            reasons.setdefault(check.message, []).append(check.name)
    for message, names in reasons.items():
        _print_check(Check(", ".join(names), "not tried", message))


def show_adapter_checks(settings: Any) -> None:
    """Run `check-adapter`; exit with 1 if anything is wrong with it."""
    policy, allowance = prepare_adapter(settings)
    client = describe_client(policy)
    spends = client is not None and client.spends
    if not may_proceed(settings, spends, lambda: price_adapter(policy)):
        return
    checks: list[Check] = []
    for check in run_adapter_checks(policy, allowance):
        checks.append(check)
        if not (settings.json or settings.quiet) and check.outcome != "not tried":
            _print_check(check)
    failed = [check for check in checks if check.outcome == "failed"]
    if settings.json:
        print_json({"adapter": policy.name, "checks": [asdict(check) for check in checks]})
    else:
        _print_untried(() if settings.quiet else checks)
        verdict = (
            f"{policy.name}: {len(failed)} of {len(checks)} checks failed"
            if failed
            else f"{policy.name} can be audited"
        )
        print(printable(verdict, lines=True))
    if failed:
        sys.exit(1)
