"""Everything that an endpoint can do wrong: a documented outcome, no traceback, no silence."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import UnansweredError
from routeprism.review.gates import check_run

from ..catalogue import mark_repeats
from . import fault_endpoint

DIRECTORY = Path(__file__).parent
RECORDS = [{"user": "u", "id": f"r{n}", "text": f"fact {n}"} for n in range(2)]
QUESTIONS = [{"user": "u", "id": "q", "text": "Which?", "options": ["one", "two"], "gold": "a"}]
ANSWERS = 2
"""One question on two routes."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Any]:
    with fault_endpoint.Endpoint() as running:
        yield running


@pytest.fixture
def questions() -> list[dict[str, Any]]:
    return QUESTIONS


FIVE = [{**QUESTIONS[0], "id": f"q{n}", "text": f"Which {n}?"} for n in range(5)]
"""As many questions as a verdict takes, on two routes: ten answers."""


@pytest.fixture
def audit(
    cli: Callable[..., Any], own_data: Callable[..., Path], questions: list[dict[str, Any]]
) -> Callable[..., Any]:
    """Audit two records and one question with a model behind an address."""
    data = own_data(RECORDS, questions)

    def call(url: str, *more: str, model: str = "m,timeout=20,retries=0", run: str = "run") -> Any:
        settings = ("--resamples", "100", "--run", run, "--base-url", url, *more)
        return cli("audit", data, "-p", "recent:k=1", "--model", f"openai:{model}", *settings)

    return call


def manifest_of(run: str = "run") -> Any:
    return json.loads(Path(run, "manifest.json").read_text("utf-8"))


def rows_of(statement: str, run: str = "run") -> list[Any]:
    with closing(sqlite3.connect(Path(run, "run.sqlite"))) as connection:
        return connection.execute(statement).fetchall()


def kind_of(fault: Any) -> tuple[str, str]:
    """What becomes of a request, and how the message about it begins."""
    return fault.outcome, fault.reason.partition(" ")[0]


@pytest.mark.parametrize(
    "fault", mark_repeats(fault_endpoint.FAULTS, kind_of, lambda fault: str(fault.name))
)
def test_every_fault_has_its_outcome(audit: Callable[..., Any], endpoint: Any, fault: Any) -> None:
    model = f"m,timeout={fault.timeout},retries={fault.retries}"
    ended = audit(endpoint.url(fault.name), model=model)
    assert "Traceback" not in ended.err
    assert ended.code == fault.code, ended.err
    manifest = manifest_of()
    answers = rows_of("SELECT outcome FROM answers")
    if fault.outcome == "missing":
        assert (answers, manifest["status"]) == ([], "incomplete")
        assert manifest["missing"]["answers"] == ANSWERS
        assert f"{ANSWERS} answers are missing" in ended.err
        page = Path("run", "report.html").read_text("utf-8")
        assert f"{ANSWERS} answers are missing." in page
        for place in (ended.err, *manifest["missing"]["reasons"]):
            assert fault.reason in place
        return
    kind, _, mark = fault.outcome.partition(", ")
    assert (answers, manifest["status"]) == ([(kind,)] * ANSWERS, "complete")
    assert manifest["missing"] == {"answers": 0, "routes": 0, "reasons": []}
    if kind != "answered":
        assert f"{ANSWERS} answers were {kind}" in ended.out
    if mark:
        assert f"{ANSWERS} answers were stored with a mark" in ended.out
        assert len(rows_of("SELECT marks FROM marks")) == ANSWERS


def test_there_are_as_many_faults_as_promised() -> None:
    names = [fault.name for fault in fault_endpoint.FAULTS]
    assert len(set(names)) == len(names) >= 78


def test_the_page_has_the_table_of_the_catalogue() -> None:
    page = DIRECTORY.parents[1] / "docs" / "reliability.md"
    assert fault_endpoint.fault_table() in page.read_text("utf-8"), (
        "print the table again: python tests/faults/fault_endpoint.py"
    )


def test_nobody_listens(audit: Callable[..., Any]) -> None:
    with socket.socket() as silent:  # it has a port, so nobody else gets it, and does not listen
        silent.bind(("127.0.0.1", 0))
        ended = audit(f"http://127.0.0.1:{silent.getsockname()[1]}/v1")
    assert ended.code == 3
    assert "no connection to" in ended.err or "the connection failed" in ended.err


@pytest.mark.slow
def test_a_fault_that_passes_is_made_good_by_the_same_command(
    audit: Callable[..., Any], endpoint: Any
) -> None:
    """Missing answers are asked for again, and the finished run is that of no fault at all."""
    flaky = fault_endpoint.first(fault_endpoint.says({}, "401 No"), fault_endpoint.OK)
    endpoint._respond["flaky"] = flaky
    assert audit(endpoint.url("flaky")).code == 3
    assert audit(endpoint.url("flaky")).code == 0
    assert manifest_of()["status"] == "complete"
    audit(endpoint.url("close"), run="undisturbed")
    content = (Path(run, "estimates.csv").read_text() for run in ("run", "undisturbed"))
    assert len(set(content)) == 1


def test_an_endpoint_that_never_answers_is_given_up(
    cli: Callable[..., Any], own_data: Callable[..., Path], endpoint: Any
) -> None:
    questions = [{**QUESTIONS[0], "id": f"q{n}", "text": f"Which {n}?"} for n in range(20)]
    data = own_data(RECORDS, questions)
    ended = cli(
        *("audit", data, "-p", "recent:k=1", "--model", "openai:m,retries=0,concurrency=2"),
        *("--base-url", endpoint.url("status-401"), "--run", "run"),
    )
    assert ended.code == UnansweredError.exit_code == 3
    assert "5 requests in a row failed" in ended.err
    assert "HTTP 401: made up" in ended.err


@pytest.mark.parametrize("questions", [FIVE])
def test_check_refuses_missing_answers_unless_they_are_allowed(
    audit: Callable[..., Any], cli: Callable[..., Any], endpoint: Any
) -> None:
    audit(endpoint.url("status-401"))
    refused = cli("check", "run", "--gate", "J>=0", "--junit", "checked.xml", "--github")
    assert refused.code == 3
    assert "run is incomplete: 10 answers are missing" in refused.err
    assert "HTTP 401: made up" in refused.err
    assert "::error title=incomplete run::run: 10 answers" in refused.err
    assert 'errors="1"' in Path("checked.xml").read_text()
    checked = json.loads(cli("check", "run", "--gate", "J>=0", "--json").out)
    assert (checked["passed"], checked["missing"][0]["answers"]) == (False, 10)
    assert cli("check", "run", "--gate", "J>=0", "--allow-missing", "9").code == 3
    assert cli("check", "run", "--gate", "J>=0", "--allow-missing", "10").code == 0
    assert cli("check", "run", "--gate", "J>=2", "--allow-missing", "10").code == 1
    assert cli("check", "run", "--gate", "H<=1").code == 3  # there is no H: nobody answered
    assert cli("check", "run", "--gate", "J>=0", "--allow-missing", "-1").code == 2
    assert check_run(Path("run"), ["J>=0"], allow_missing=10).passed


@pytest.mark.parametrize("questions", [FIVE])
def test_check_holds_a_baseline_to_the_same(
    audit: Callable[..., Any], cli: Callable[..., Any], endpoint: Any
) -> None:
    audit(endpoint.url("close"), run="good")
    audit(endpoint.url("status-401"), run="bad")
    ended = cli("check", "good", "--baseline", "bad")
    assert ended.code == 3
    assert "bad is incomplete: 10 answers are missing" in ended.err
    assert cli("check", "good", "--baseline", "bad", "--allow-missing", "10").code == 0
    notes = json.loads(cli("compare", "bad", "good", "--json").out)["notes"]
    assert any(note.startswith("the first run is incomplete: 10 answers") for note in notes)


def test_an_older_run_that_does_not_say_what_is_missing_is_counted(
    audit: Callable[..., Any], cli: Callable[..., Any], endpoint: Any
) -> None:
    audit(endpoint.url("status-401"))
    manifest = manifest_of()
    del manifest["missing"]
    Path("run", "manifest.json").write_text(json.dumps({**manifest, "status": "complete"}))
    ended = cli("check", "run", "--gate", "J>=0")
    assert ended.code == 3
    assert "2 answers are missing" in ended.err


def test_a_judge_that_cannot_be_asked_leaves_no_verdict(
    cli: Callable[..., Any], own_data: Callable[..., Path], endpoint: Any
) -> None:
    """An answer without a verdict is neither right nor wrong."""
    questions = [{"user": "u", "id": "q", "text": "Which?", "gold": "fact"}]
    data = own_data(RECORDS, questions)
    ended = cli(
        *("audit", data, "-p", "recent:k=1", "--model", "reader", "--run", "run", "--json"),
        *("--judge", "openai:m,retries=0", "--base-url", endpoint.url("status-403")),
    )
    assert ended.code == 3
    document = json.loads(ended.out)
    assert document["missing"]["answers"] >= 1
    assert "HTTP 403" in document["missing"]["reasons"][0]
    quantities = {row["quantity"] for row in document["estimates"]}
    assert "accuracy.forward" not in quantities
    assert not any("neither yes nor no" in note for note in document["notes"])


@pytest.mark.parametrize("address", ["", " ", "ftp://x", "http://", "http://x:port", "nonsense"])
def test_what_is_no_address_is_refused(audit: Callable[..., Any], address: str) -> None:
    """An empty one does not stand for the public service."""
    ended = audit(address)
    assert (ended.code, ended.out) == (2, "")
    assert "Expected base_url to be an address" in ended.err


def test_an_empty_variable_is_no_address(
    cli: Callable[..., Any], own_data: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "")
    data = own_data(RECORDS, QUESTIONS)
    ended = cli("audit", data, "-p", "recent:k=1", "--model", "openai:m")
    assert ended.code == 2
    assert "Expected OPENAI_BASE_URL to be an address" in ended.err


@pytest.mark.slow
def test_redirects_send_nothing_elsewhere(audit: Callable[..., Any]) -> None:
    with fault_endpoint.Endpoint({"there": fault_endpoint.OK}) as target:
        away = f"Location: {target.url('there')}/chat/completions\r\n"
        for status in ("301", "302", "303", "307", "308"):
            respond = {"here": fault_endpoint.says({}, f"{status} Moved", away)}
            with fault_endpoint.Endpoint(respond) as redirecting:
                ended = audit(redirecting.url("here"), run=status)
            assert ended.code == 3
            assert f"the server redirects to {target.url('there')}" in ended.err
        assert target.requests == []
