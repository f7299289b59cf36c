"""What `check` does and prints: the verdict of every gate, for people and for build servers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from routeprism.cli._console import print_json, print_line
from routeprism.cli._terminal import reading
from routeprism.errors import RunError, UnansweredError
from routeprism.files import write_output
from routeprism.judge import list_explanations
from routeprism.printing import printable
from routeprism.review.gates import CheckResult, check_run, list_lost_records
from routeprism.runs import REPORT

_UNPRINTABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot contain, but record and question ids can."""


def show_check(settings: Any) -> None:
    """Run `check`: exit with 1 if a gate fails, and with 3 if nothing can be concluded."""
    with reading(settings.run, settings.baseline):
        check = check_run(
            settings.run, settings.gates, settings.baseline, allow_missing=settings.allow_missing
        )
        lost = {
            verdict.sentence: list_lost_records(settings.run, verdict) for verdict in check.failures
        }
        report = Path(settings.run) / REPORT
        _inform_build(check, lost, report, settings)
        if settings.json:
            print_json(_as_json(check))
        elif settings.quiet:
            print_line(check.summary)
        else:
            _print_verdicts(check, lost, report)
        _exit_on_failure(check)


def _mark(passed: bool) -> str:
    return "ok  " if passed else "FAIL"


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
        for line in _list_annotations(result):
            print(line, file=sys.stderr)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(summarise_check(result, lost, report))


def _list_annotations(result: CheckResult) -> Iterator[str]:
    """List what GitHub shows: failed gates, what is missing, doubts, and faults despite gates."""
    for verdict in result.failures:
        yield annotate(f"gate {verdict.gate}", verdict.sentence)
    for name, shortfall in result.shortfalls:
        yield annotate("incomplete run", f"{name}: {shortfall}")
    for memory in result.doubts:
        yield annotate("inconclusive", f"{memory.policy}: {memory.inconclusive}")
    if result.passed and any(memory.is_red for memory in result.memories):
        yield annotate("verdict", result.headline, level="warning")


def _print_verdicts(result: CheckResult, lost: Mapping[str, Sequence[str]], report: Path) -> None:
    """Print every gate, the verdict on every memory with its cause, and then the outcome."""
    for verdict in result.verdicts:
        print_line(f"{_mark(verdict.passed)} {verdict.sentence}")
        for line in lost.get(verdict.sentence, ()):
            print_line(f"     {line}")
    for memory in result.memories:
        for line in (str(memory), *list_explanations(memory)):
            print_line(f"     {line}")
    for remark in result.remarks:
        print_line(f"Note: {remark}")
    print_line(f"{_mark(result.passed)} {result.headline}")
    if result.limits:
        print_line(result.limits)
    if report.exists():
        print_line(f"Report: {report}")


def _exit_on_failure(result: CheckResult) -> None:
    """Exit with 3 if too much is missing, with 1 if a gate fails, with 3 if all is in doubt."""
    for name, shortfall in result.shortfalls:
        print_line(
            f"routeprism: {name} is incomplete: {shortfall}. Run its command again to ask for them,"
            f" or allow them with --allow-missing {shortfall.total}",
            file=sys.stderr,
        )
    if result.shortfalls:
        sys.exit(UnansweredError.exit_code)
    if result.failures:
        sys.exit(1)
    if result.doubts:
        sys.exit(UnansweredError.exit_code)


def summarise_check(result: CheckResult, lost: Mapping[str, Sequence[str]], report: Path) -> str:
    """Write the verdicts as Markdown for the summary of a build step."""
    lines = [f"### RoutePrism: {_quote(result.headline)}", ""]
    for verdict in result.verdicts:
        lines.append(f"- {'ok' if verdict.passed else '**FAIL**'}: {_quote(verdict.sentence)}")
        lines += [f"  - {_quote(line)}" for line in lost.get(verdict.sentence, ())]
    lines += [f"- incomplete: {_quote(f'{name}: {gap}')}" for name, gap in result.shortfalls]
    for memory in result.memories:
        lines.append(f"- verdict: {_quote(str(memory))}")
        lines += [f"  - {_quote(line)}" for line in list_explanations(memory)]
    lines += [f"- note: {_quote(remark)}" for remark in result.remarks]
    if report.exists():
        lines += ["", f"Report: `{_quote(str(report))}`"]
    return "\n".join(lines) + "\n"


def _quote(text: str) -> str:
    """Keep a text on one line, without HTML."""
    plain = printable(" ".join(text.split()))
    return plain.replace("&", "&amp;").replace("<", "&lt;").replace("`", "'")


def as_junit(result: CheckResult) -> bytes:
    """Write one test case for each row that a gate applies to, and one for each doubt."""
    errors = [
        *((f"complete [{name}]", str(gap), "missing") for name, gap in result.shortfalls),
        *((f"conclusive [{m.policy}]", m.inconclusive, "inconclusive") for m in result.doubts),
    ]
    suite = ElementTree.Element(
        "testsuite",
        name="routeprism check",
        tests=str(len(result.verdicts) + len(errors)),
        failures=str(len(result.failures)),
        errors=str(len(errors)),
    )

    def add(parent: ElementTree.Element, kind: str, **texts: str) -> ElementTree.Element:
        attributes = {name: _printable(text) for name, text in texts.items()}
        return ElementTree.SubElement(parent, kind, attributes)

    place = f"routeprism.{result.benchmark}"
    for name, message, kind in errors:
        case = add(suite, "testcase", classname=place, name=name)
        add(case, "error", message=message, type=kind)
    for verdict in result.verdicts:
        row = verdict.row
        names = (row.policy, row.schedule, row.model, row.arm, row.filler, row.batch)
        title = f"{verdict.gate} [{', '.join(filter(None, names))}]"
        case = add(suite, "testcase", classname=f"{place}.{row.experiment}", name=title)
        if not verdict.passed:
            failure = add(case, "failure", message=verdict.sentence, type="gate")
            lines = (f"{q.id}\t{q.value:g}\t{q.text}" for q in verdict.questions)
            failure.text = _printable("\n".join(lines))
    texts = [
        text for memory in result.memories for text in (str(memory), *list_explanations(memory))
    ]
    add(suite, "system-out").text = _printable("\n".join((result.headline, *texts)))
    xml: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return xml


def annotate(title: str, text: str, *, level: str = "error") -> str:
    """Write GitHub's workflow command; text cannot end it or begin another."""
    title = _escape_text(title).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={title}::{_escape_text(text)}"


def _escape_text(text: str) -> str:
    return printable(text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A"))


def _printable(text: str) -> str:
    return _UNPRINTABLE.sub("\ufffd", text)


def _as_json(result: CheckResult) -> dict[str, Any]:
    return {
        "run": result.run,
        "benchmark": result.benchmark,
        "passed": result.passed,
        "headline": result.headline,
        "remarks": list(result.remarks),
        "missing": [
            {"run": name, **shortfall.to_manifest()} for name, shortfall in result.shortfalls
        ],
        "limits": result.limits,
        "verdicts": [memory.to_json() for memory in result.memories],
        "gates": [
            {
                **{
                    name: getattr(verdict, name)
                    for name in ("gate", "passed", "value", "bound", "sentence")
                },
                "row": {name: getattr(verdict.row, name) for name in _COLUMNS},
                "questions": [asdict(question) for question in verdict.questions],
            }
            for verdict in result.verdicts
        ],
    }


_COLUMNS = (
    *("experiment", "policy", "schedule", "model", "arm", "labels", "stratum", "quantity"),
    *("estimate", "lower", "upper", "flags"),
)
