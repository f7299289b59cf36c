"""`check` and `compare` at the command line: exit codes, and what build servers read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

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
