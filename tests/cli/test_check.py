"""`check` and `compare` at the command line: exit codes, and what build servers read."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator

import routeprism

HOSTILE = "q\x00]]>\n::error::<b>"


@pytest.fixture
def run(own_data: Callable[..., Path], tmp_path: Path) -> Path:
    """One pool, one question whose id and text try to break out of every format."""
    directory = own_data(
        [{"user": "u", "id": f"r{n}", "text": f"word{n} tea"} for n in range(4)],
        [{"user": "u", "id": HOSTILE, "text": "tea?\x01</failure>%", "support": ["r0"]}],
    )
    settings = {"schedules": ("replay",), "resamples": 100, "run": tmp_path / "run"}
    routeprism.audit(directory, "recent:k=1", **settings)
    return tmp_path / "run"


def test_exit_codes(cli: Callable[..., Any], run: Path) -> None:
    assert cli("check", run, "--gate", "J<=0.5").code == 0
    assert cli("check", run, "--gate", "J>=0.5").code == 1
    assert cli("check", run, "--gate", "K>=0.5").code == 2
    assert cli("check", run, "--gate", "J.lower>=0.5").code == 2  # one user has no interval
    assert cli("check", run).code == 2
    assert cli("check", "nowhere", "--gate", "J>=0.5").code == 2


def test_quiet_prints_the_verdict_in_one_line(cli: Callable[..., Any], run: Path) -> None:
    ended = cli("check", run, "-g", "J<=0.5", "-g", "J>=0.5", "--quiet")
    assert ended.out.startswith("FAIL 1 of 2 limits: recent:k=1, replay: J>=0.5 fails: J is 0")
    assert ended.out.count("\n") == 1
    assert cli("check", run, "-g", "J<=0.5", "-q").out == "ok   the limit holds\n"


def test_junit_and_annotations_hold_hostile_text(
    cli: Callable[..., Any], run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    ended = cli(
        "check", run, "-g", "J>=0.5", "-g", "J<=0.5", "--junit", tmp_path / "j.xml", "--json"
    )
    assert ended.code == 1
    (line,) = ended.err.splitlines()
    assert line.startswith("::error title=gate J>=0.5::recent:k=1, replay: J>=0.5 fails")
    assert "%0A::error::<b>" in line  # one command, not two
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()  # noqa: S314
    assert suite.attrib["tests"] == "2" and suite.attrib["failures"] == "1"
    failure = suite[0].find("failure")
    assert failure is not None and failure.text is not None
    assert "</failure>" in failure.text and "\x01" not in failure.text
    document = json.loads(ended.out)
    assert document["passed"] is False
    assert [gate["passed"] for gate in document["gates"]] == [False, True]
    assert document["gates"][0]["questions"][0]["id"] == HOSTILE


def test_compare_prints_and_gives_json(cli: Callable[..., Any], run: Path, tmp_path: Path) -> None:
    routeprism.audit(tmp_path / "mydata", "recent:k=4", resamples=100, run=tmp_path / "later")
    ended = cli("compare", run, tmp_path / "later")
    assert ended.code == 0
    assert (
        "overlap of the records shown (J): no change is shown, +1.000, 0.000 before, 1.000 after "
        "(1 question, 1 user)" in ended.out
    )
    assert "before: recent:k=1" in ended.out and "after: recent:k=4" in ended.out
    assert "recent:k=1 → recent:k=4, reversal (replay)" in ended.out
    assert "overlap of the records shown" in ended.out  # in plain words
    assert "nothing can be concluded: new version: 1 question cannot show that" in ended.out
    assert "recent:k=4, source order: the new version gains evidence for 1 question" in ended.out
    assert "Evidence gained (1):" in ended.out
    document = json.loads(cli("compare", run, tmp_path / "later", "--json").out)
    assert document["policies"] == [["recent:k=1", "recent:k=4"]]
    assert [(c["schedule"], c["lost"], c["kept"]) for c in document["support"]] == [
        ("forward", [], ["r0"])
    ]
    assert cli("compare", run, tmp_path / "later", "--policy-a", "recent:k=1").code == 2


@pytest.mark.slow
def test_a_failed_check_names_lost_records_and_writes_a_summary(
    cli: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, summary = tmp_path / "run", tmp_path / "summary.md"
    routeprism.audit("sample", "recent:k=3", resamples=100, workers=1, run=run)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ended = cli("check", run, "--gate", "schedule=replay:J>=0.9")
    assert ended.code == 1
    line = "of user 'u01' (question u01-q0): the memory was full, and 'u01-r3' (“[USER] Since "
    assert "lost record 'u01-r3' “[USER] Since you remember everything, the telescope" in ended.out
    assert line in ended.out
    assert summary.read_text("utf-8").startswith("### RoutePrism: a gate fails\n\n- **FAIL**: ")
    assert line in summary.read_text("utf-8")


class FirstOnly:
    """Keeps and shows the record that came first."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def add(self, record: Any) -> None:
        self.records = [*self.records, record][:1]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Any]:
        return self.records


class Ignoring(FirstOnly):
    """Keeps nothing, so that nothing can be concluded."""

    def add(self, record: Any) -> None:
        pass


@pytest.fixture
def diary(own_data: Callable[..., Path]) -> Path:
    """Write eight questions, each about one of six records of its user."""
    return own_data(
        [{"user": u, "id": f"{u}{n}", "text": f"fact {n} of {u}"} for u in "ab" for n in range(6)],
        [
            {"user": u, "id": f"q{u}{n}", "text": f"fact {n}?", "support": [f"{u}{n}"]}
            for u in "ab"
            for n in range(4)
        ],
    )


def test_a_gate_that_holds_for_nothing_is_no_all_clear(
    cli: Callable[..., Any], diary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, summary = tmp_path / "run", tmp_path / "summary.md"
    routeprism.audit(diary, Ignoring, schedules=["replay"], resamples=100, run=run)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gates = ("-g", "J>=0.9", "-g", "evidence.lost<=0.02")
    ended = cli("check", run, *gates, "--github", "--junit", tmp_path / "j.xml")
    reason = "Ignoring: the memory shows nothing to any question"
    assert ended.code == 3
    assert f"::error title=inconclusive::{reason}" in ended.err
    quiet, data = (cli("check", run, *gates, option) for option in ("--quiet", "--json"))
    assert quiet.out == f"FAIL nothing can be concluded, whatever the limits: {reason}\n"
    document = json.loads(data.out)
    assert (quiet.code, data.code, document["passed"]) == (3, 3, False)
    assert document["verdicts"][0]["inconclusive"] == reason.partition(": ")[2]
    suite = ElementTree.parse(tmp_path / "j.xml").getroot()  # noqa: S314
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("0", "1")
    assert [error.attrib["message"] for error in suite.iter("error")] == [reason.partition(": ")[2]]
    texts = (ended.out, quiet.out, document["headline"], summary.read_text("utf-8"))
    for text in texts:
        assert reason in text
        assert "limits hold" not in text and "every gate holds" not in text


def test_a_red_verdict_follows_gates_that_hold(
    cli: Callable[..., Any], diary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the record that came first is shown: reversal takes evidence and gives none back."""
    run, summary = tmp_path / "run", tmp_path / "summary.md"
    routeprism.audit(diary, FirstOnly, schedules=["replay"], resamples=100, run=run)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    ended = cli("check", run, "-g", "J>=0", "--junit", tmp_path / "j.xml", "--github")
    start = "the limit holds, but the verdict is: FirstOnly: evidence lost. 6 of 8 questions lack"
    counts = "Under reversal, 2 of 8 questions lose evidence that source order shows, and "
    texts = [
        *(ended.out, ended.err, summary.read_text("utf-8")),
        *(cli("check", run, "-g", "J>=0", option).out for option in ("--quiet", "--json")),
        (tmp_path / "j.xml").read_text("utf-8"),
    ]
    assert ended.code == 0
    for text in texts:
        assert start in text and counts in text
    assert "::warning title=verdict::" in ended.err


def test_recommended_gates_apply_to_any_run_with_labels(
    cli: Callable[..., Any], diary: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    routeprism.audit(diary, FirstOnly, schedules=["replay"], resamples=100, run=run)
    hint = cli("check", run)
    assert hint.code == 2
    assert "give a gate such as 'evidence.lost<=0.02', or a baseline" in hint.err
    ended = cli("check", run, "-g", "evidence.lost<=0.02", "-g", "anomaly<=0")
    assert ended.code == 1  # 2 of 8: fact 0 of each user
    assert "evidence.lost is 0.25 [" in ended.out and "(2 of 8 questions)" in ended.out
    assert "Note: anomaly<=0 applies to no row: no writes of this run overlap" in ended.out
    assert cli("check", run, "-g", "anomaly<=0").code == 2
    former = cli("check", run, "-g", "evidence_lost<=1")
    assert former.code == 0
    assert (
        "Note: evidence_lost<=1: evidence_lost counts only questions with evidence to lose (at "
        "most 2 of 8). It is replaced by evidence.lost, which counts all 8 questions with labels"
    ) in former.out


@pytest.mark.parametrize("command", ["audit", "check", "compare"])
def test_json_has_the_verdict_of_the_schema(
    command: str, cli: Callable[..., Any], diary: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    few = ("-p", "recent:k=2", "-s", "replay", "--resamples", "100", "--workers", "1")
    audited = cli("audit", diary, *few, "--run", run, "--json")
    calls = {"check": ("check", run, "-g", "J>=0"), "compare": ("compare", run, run)}
    text = cli(*calls[command], "--json").out if command in calls else audited.out
    verdicts = json.loads(text)["verdicts"]
    schema = json.loads((files("routeprism.cli") / "output.schema.json").read_text("utf-8"))
    validator = Draft202012Validator({"$ref": "#/$defs/verdict", "$defs": schema["$defs"]})
    (verdict, *_) = verdicts[0] if command == "compare" else verdicts
    validator.validate(verdict)
    # Of eight questions, those on facts 0 and 1 gain and none of the two records shown is asked.
    assert (verdict["lost"], verdict["gained"], verdict["questions"]) == (0, 4, 8)
