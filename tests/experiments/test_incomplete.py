"""While routes or answers are missing, every output says so next to each statement of a level."""

from __future__ import annotations

import html
import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.judge import LEVELS
from routeprism.report import write_report
from routeprism.review.comparison import compare_runs

FAULTY = """
import json, sys

items, broken = [], False
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "reset":
        items, broken = [], False
    if request["do"] == "add":
        record = request["record"]
        broken = broken or (not items and record["id"].startswith("u2") and record["id"] != "u2-r0")
        items = [*items, {"text": record["text"], "sources": [record["id"]]}][-2:]
    print("banana" if broken else json.dumps({"items": items}), flush=True)
"""
"""Keeps two records, and fails for one user in all orders that do not begin with the first one."""
pytestmark = pytest.mark.slow
USERS = ("u1", "u2", "u3")
RECORDS = [
    {"user": user, "id": f"{user}-r{n}", "text": f"fact {n} of {user}"}
    for user in USERS
    for n in range(4)
]
QUESTIONS = [
    {"user": user, "id": f"{user}-q", "text": "fact?", "support": [f"{user}-r0", f"{user}-r3"]}
    for user in USERS
]
PHRASES = (
    *(level for level in LEVELS if level not in ("stable", "different records")),
    *(r"\bstable\b", "different records(?! shown| kept)"),  # which are quantities, in tables
    *("lose evidence that", "No difference", "questions that differ", "see the same"),
    *(
        "shows? the same (?:to|records in)",
        "shows? different",
        "nothing to repair",
        "no standard repair",
    ),
    *(
        "limits? holds?",
        "every gate holds",
        ": passed",
        ", passed",
        "lost or gained evidence",
        "change was shown",
    ),
)
MARKS = ("incomplete", "answers or routes are missing")
NEAR = 160
"""Characters around a phrase in which a mark has to be."""
COMMANDS = {
    "audit": "audit {data} -p {policy} {few}",
    "audit --verbose": "audit {data} -p {policy} {few} --verbose",
    "audit --quiet": "audit {data} -p {policy} {few} --quiet",
    "audit --json": "audit {data} -p {policy} {few} --json",
    "remedy": "remedy {data} -p {policy} {few}",
    "orders": "orders {data} -p {policy} --resamples 100 --arrival jitter:w=2",
    "orders --json": "orders {data} -p {policy} --resamples 100 --arrival jitter:w=2 --json",
    "check": "check {run} --gate J>=0 --allow-missing 99 --junit gates.xml",
    "check --quiet": "check {run} --gate J>=0 --allow-missing 99 --quiet",
    "check --json": "check {run} --gate J>=0 --allow-missing 99 --json",
    "compare": "compare {run} {again}",
    "compare --json": "compare {run} {again} --json",
    "compare --markdown": "compare {run} {again} --markdown comment.md --quiet",
    "compare --html": "compare {run} {again} --html page.html --quiet",
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Audit a program that fails for one user, twice, and return the words of commands."""
    folder = tmp_path_factory.mktemp("incomplete")
    (folder / "data").mkdir()
    for name, rows in (("records", RECORDS), ("questions", QUESTIONS)):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "data" / f"{name}.jsonl").write_text(text)
    (folder / "faulty.py").write_text(FAULTY)
    policy = f"command:run={shlex.join([sys.executable, '-I', '-S', str(folder / 'faulty.py')])}"
    for name in ("run", "again"):
        result = routeprism.audit(folder / "data", policy, run=folder / name, resamples=100)
        assert result.shortfall.routes == 1
        write_report(folder / name, folder / name / "report.html")
    return {
        "data": str(folder / "data"),
        "policy": shlex.quote(policy),
        "few": "--resamples 100 --workers 1",
        "run": str(folder / "run"),
        "again": str(folder / "again"),
    }


def find_unmarked(text: str) -> list[str]:
    """Return every phrase about a level that no mark is next to."""
    plain = html.unescape(re.sub(r"<(script|style).*?</\1>|<[^>]*>", " ", text, flags=re.DOTALL))
    plain = " ".join(plain.split())
    passages = [
        plain[max(0, match.start() - NEAR) : match.end() + NEAR]
        for match in re.finditer("|".join(PHRASES), plain)
    ]
    return [text for text in passages if not any(mark in text.lower() for mark in MARKS)]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_prints_a_level_as_if_nothing_were_missing(
    command: str,
    places: dict[str, str],
    cli: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ended = cli(*shlex.split(COMMANDS[command].format(**places)))
    files = [*Path.cwd().glob("*.md"), *Path.cwd().glob("*.html"), *Path.cwd().glob("*.xml")]
    texts = [ended.out, *(file.read_text(encoding="utf-8") for file in files)]
    assert [find_unmarked(text) for text in texts] == [[] for _ in texts]
    assert any("incomplete" in text.lower() for text in texts)


def test_no_result_and_no_report_shows_a_level_as_if_nothing_were_missing(
    places: dict[str, str],
) -> None:
    result = routeprism.audit(Path(places["data"]), shlex.split(places["policy"])[0], resamples=100)
    report = (Path(places["run"]) / "report.html").read_text(encoding="utf-8")
    texts = [str(result), repr(result), result._repr_html_(), *map(repr, result.verdicts), report]
    check = routeprism.check(places["run"], "J>=0", allow_missing=99)
    texts += [repr(check), check._repr_html_()]
    assert [find_unmarked(text) for text in texts] == [[] for _ in texts]
    assert result.verdict == "inconclusive (incomplete)"


@pytest.mark.parametrize("whole_first", [True, False])
def test_a_route_that_failed_neither_loses_nor_gains_evidence(
    whole_first: bool, places: dict[str, str], tmp_path: Path
) -> None:
    """Both memories keep the last two records, and only one of them has every route."""
    routeprism.audit(
        Path(places["data"]),
        "recent:k=2",
        schedules=("replay",),
        run=tmp_path / "whole",
        resamples=100,
    )
    whole, faulty = tmp_path / "whole", Path(places["run"])
    policy = shlex.split(places["policy"])[0]
    if whole_first:
        comparison = compare_runs(whole, faulty, [("recent:k=2", policy)])
    else:
        comparison = compare_runs(faulty, whole, [(policy, "recent:k=2")])
    assert comparison.support == ()
    assert "Incomplete: No question lost or gained evidence." in comparison.sentences


def test_gates_that_hold_for_a_part_are_no_all_clear(
    places: dict[str, str], cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    ended = cli("check", places["run"], "--gate", "J>=0", "--quiet")
    assert ended.code == 3
    assert "FAIL too much is missing to decide (incomplete)" in ended.out
    summary = Path("summary.md").read_text(encoding="utf-8")
    assert summary.startswith("### RoutePrism: too much is missing to decide (incomplete)\n")
