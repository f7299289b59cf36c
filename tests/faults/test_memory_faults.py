"""Memories outside that fail: their route alone, with a reason, and nothing left running."""

from __future__ import annotations

import json
import os
import shlex
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from routeprism.errors import RouteError, SpecError
from routeprism.policies.adapters.command import Command
from routeprism.policies.adapters.http import Http
from routeprism.records import Record

from ..catalogue import mark_repeats
from . import fault_endpoint, fault_memory

DIRECTORY = Path(__file__).parent
USERS = ("u1", "u2")
RECORDS = [
    {"user": user, "id": f"{user}-r{n}", "text": f"fact {n} of {user}"}
    for user in USERS
    for n in range(3)
]
QUESTIONS = [{"user": user, "id": f"{user}-q", "text": "Which?"} for user in USERS]
ELSEWHERE = "http://elsewhere.invalid/add"


class Service:
    """The memory over HTTP; a fault is the first part of the path."""

    def __init__(self) -> None:
        self.memories: dict[str, Any] = {}
        self.faults = {**SERVICE_FAULTS, **dict.fromkeys(fault_memory.FAULTS), "none": None}
        self.endpoint = fault_endpoint.Endpoint(dict.fromkeys(self.faults, self.answer))

    def answer(self, connection: socket.socket, request: Any) -> None:
        _, name, verb = request.path.split("/")
        document = json.loads(request.raw.partition(b"\r\n\r\n")[2])
        memory = self.memories.setdefault(document["memory"], fault_memory.Memory())
        usual = memory.answer(verb, document)
        content = json.dumps(usual).encode()
        if memory.sick and name in SERVICE_FAULTS and verb == "add":
            SERVICE_FAULTS[name][0](connection, request)
            return
        if memory.sick and name in fault_memory.FAULTS:
            raw = fault_memory.FAULTS[name][0](verb, usual)
            content = content if raw is None else raw
        connection.sendall(fault_endpoint.reply(content))

    def spec(self, name: str, timeout: float = 60) -> str:
        return f"http:url=http://{self.endpoint.origin}/{name},timeout={timeout}"


def says(status: str, headers: str = "") -> Any:
    return fault_endpoint.says({"why": "made up"}, status, headers)


OK = b"HTTP/1.1 200 OK\r\n"
SERVICE_FAULTS = {
    "status-401": (says("401 No"), 'add: the service replied 401 No: {"why": "made up"}'),
    "status-500": (says("500 Oops"), "add: the service replied 500 Oops"),
    "status-204": (fault_endpoint.sends(b"HTTP/1.1 204 None\r\n\r\n"), "the service replied 204"),
    "redirect": (
        says("302 Moved", f"Location: {ELSEWHERE}\r\n"),
        f"add: the service redirects (302) to {ELSEWHERE}",
    ),
    "closed": (fault_endpoint.hangs_up(b""), "cannot be asked: Remote end closed"),
    "reset": (
        fault_endpoint.hangs_up(b"", reset=True),
        "(not repeated, because the service may have performed it; if that does no harm, declare "
        "it idempotent)",
    ),
    "status-garbage": (fault_endpoint.hangs_up(b"BANANA\r\n\r\n"), "cannot be asked: BANANA"),
    "short": (
        fault_endpoint.hangs_up(OK + b"Content-Length: 9\r\n\r\n{}"),
        "the reply ended before its stated length",
    ),
    "headers-endless": (
        fault_endpoint.hangs_up(OK + b"X: " + b"x" * 10**5 + b"\r\n\r\n"),
        "cannot be asked: got more than",
    ),
    "stall": (fault_endpoint.silent, "add: no reply within 5 seconds"),
    "stall-in-headers": (fault_endpoint.sends(OK), "add: no reply within 5 seconds"),
    "trickle-status": (
        fault_endpoint.trickles(b"HTTP/1.1 200 "),
        "add: no reply within 5 seconds",
    ),
    "trickle-headers": (fault_endpoint.trickles(OK + b"X: "), "add: no reply within 5 seconds"),
    "trickle-body": (
        fault_endpoint.trickles(OK + b"Content-Length: 99999\r\n\r\n"),
        "add: no reply within 5 seconds",
    ),
}


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    running = Service()
    with running.endpoint:
        yield running


@pytest.fixture
def audit(cli: Callable[..., Any], own_data: Callable[..., Path]) -> Callable[[str], Any]:
    """Audit two users' records with a memory outside, and report what is missing."""
    data = own_data(RECORDS, QUESTIONS)

    def call(policy: str) -> Any:
        return cli("audit", data, "-p", policy, "--run", "run", "--json", "--resamples", "100")

    return call


def assert_one_user_fails(ended: Any, reason: str) -> None:
    """Both routes of the second user are missing, for that reason; the first user's are there."""
    assert "Traceback" not in ended.err
    assert ended.code == 3, ended.err
    document = json.loads(ended.out)
    assert (document["missing"]["answers"], document["missing"]["routes"]) == (0, 2)
    assert reason in " ".join(document["missing"]["reasons"])
    assert "2 routes are missing" in ended.err
    assert reason in ended.err
    manifest = json.loads(Path("run", "manifest.json").read_text("utf-8"))
    assert (manifest["status"], manifest["missing"]) == ("incomplete", document["missing"])
    assert "2 routes are missing." in Path("run", "report.html").read_text("utf-8")
    (row,) = [r for r in document["estimates"] if (r["quantity"], r["stratum"]) == ("J", "all")]
    assert row["units"] == 1


@pytest.mark.parametrize(
    "name", mark_repeats(fault_memory.FAULTS, lambda name: fault_memory.FAULTS[name][1].split()[0])
)
def test_a_reply_that_cannot_be_used_fails_its_route_alone(
    audit: Callable[..., Any], service: Service, name: str
) -> None:
    assert_one_user_fails(audit(service.spec(name)), fault_memory.FAULTS[name][1])


@pytest.mark.parametrize(
    "name",
    mark_repeats(SERVICE_FAULTS, lambda name: tuple(SERVICE_FAULTS[name][1].split()[:3])),
)
def test_a_service_that_fails_fails_its_route_alone(
    audit: Callable[..., Any], service: Service, name: str
) -> None:
    reason = SERVICE_FAULTS[name][1]
    timeout = 5 if "5 seconds" in reason else 60
    assert_one_user_fails(audit(service.spec(name, timeout)), reason)


JSON_OBJECTS = ("choice", "message-", "content-", "finish-reason-", "tool-call", "refusal")
"""Faults of answers: to a memory, they are JSON objects like any other."""
NOT_READ = ("body-null", "body-number", "body-list", "error-object", "error-text")
"""A profile reads of the reply to an add what [add] captures."""
NO_CONTENT = ("created", "no-content", "body-empty", "body-blank", "body-17-megabytes")
"""A profile accepts every status from 200 to 299, and blanks in place of a body."""
PROFILE = """
url = "URL"
add = { request = "POST /add", body = { name = "{memory}", text = "{text}" } }
list = { request = "POST /list", body = { name = "{memory}" }, items = "/items", text = "" }
search = { request = "POST /search", body = { name = "{memory}" }, items = "/items", text = "" }
"""


def is_failure_of_add(fault: Any, kind: str) -> bool:
    """Whether an add that meets a fault of the endpoints' catalogue has failed."""
    name = fault.name
    if kind == "profile" and name in (*NOT_READ, *NO_CONTENT):
        return False
    if name.startswith("once-"):
        return name != "once-429"  # only this one states that the record was not added
    if name in ("created", "filtered-400", "surrogate", "surrogate-refusal"):
        return True
    return fault.outcome == fault_endpoint.MISSING and not name.startswith(JSON_OBJECTS)


@pytest.mark.parametrize(
    "fault",
    mark_repeats(
        fault_endpoint.FAULTS,
        lambda fault: (fault.outcome, fault.reason.partition(" ")[0]),
        lambda fault: str(fault.name),
    ),
)
@pytest.mark.parametrize("kind", ["verbs", "profile"])
def test_every_fault_of_an_endpoint_ends_an_add(tmp_path: Path, kind: str, fault: Any) -> None:
    """Whether it fails does not depend on how the service is described."""
    adds = []

    def answer(connection: socket.socket, request: Any) -> None:
        verb = request.path.rpartition("/")[2]
        if verb == "add":
            adds.append(request)
            fault.respond(connection, request)
        else:
            connection.sendall(fault_endpoint.reply(b'{"items": []}'))

    with fault_endpoint.Endpoint({"memory": answer}) as endpoint:
        url = f"http://{endpoint.origin}/memory"
        settings: dict[str, Any] = {"timeout": fault.timeout, "retries": fault.retries}
        if kind == "profile":
            (tmp_path / "faults.toml").write_text(PROFILE.replace("URL", url))
            settings["profile"] = str(tmp_path / "faults.toml")
        memory: Any = Http(url, **settings).open()
        failure = ""
        try:
            memory.add(Record("r", 0, "text"))
        except RouteError as error:
            failure = str(error)
    assert bool(failure) is is_failure_of_add(fault, kind), failure
    says_so = fault.name in ("once-429", "no-quota") or fault.name.startswith("retry-after-")
    is_repeated = says_so and fault.name != "retry-after-hours"
    assert len(adds) == (2 if is_repeated else 1)


class LimitedService(Service):
    """Refuses each hundredth request with 503; after 40 requests, all with 429 for a second."""

    def __init__(self, *, limited: bool) -> None:
        super().__init__()
        self._limited = limited
        self._number = self._accepted = 0
        self._opens = 0.0
        self.refusals: Counter[int] = Counter()

    def answer(self, connection: socket.socket, request: Any) -> None:
        self._number += 1
        if self._accepted == 40:
            self._accepted, self._opens = 0, time.monotonic() + 1
        is_full = time.monotonic() < self._opens
        status = 503 if self._number % 100 == 0 else 429 if is_full else 200
        if self._limited and status != 200:
            self.refusals[status] += 1
            headers = "Retry-After: 1\r\n" if status == 429 else ""
            connection.sendall(fault_endpoint.reply(b"busy", f"{status} Busy", headers))
            return
        self._accepted += 1
        super().answer(connection, request)


@pytest.mark.slow
def test_a_limited_service_is_audited_to_the_same_numbers(
    cli: Callable[..., Any], own_data: Callable[..., Path]
) -> None:
    """It keeps the last two records of each user."""
    users = [f"u{n}" for n in range(8)]
    records = [{**RECORDS[0], "user": u, "id": f"{u}-{n}"} for u in users for n in range(5)]
    support = {u: [f"{u}-4"] for u in users}
    questions = [{**QUESTIONS[0], "user": u, "id": f"{u}-q", "support": support[u]} for u in users]
    data = own_data(records, questions)
    tables = []
    for limited in (False, True):
        service = LimitedService(limited=limited)
        origin = service.endpoint.origin
        with service.endpoint:
            policy = f"http:url=http://{origin}/none"
            run = f"limited-{limited}"
            ended = cli("audit", data, "-p", policy, "--run", run, "--resamples", "100", "--quiet")
        assert ended.code == 0, ended.err
        lines = Path(run, "estimates.csv").read_text("utf-8").splitlines()
        tables.append([line.replace(origin, "") for line in lines])
    assert tables[0] == tables[1]
    assert set(service.refusals) == {429, 503}


def test_the_same_service_without_a_fault_has_everything(
    audit: Callable[..., Any], service: Service
) -> None:
    ended = audit(service.spec("none"))
    assert ended.code == 0
    assert json.loads(ended.out)["missing"] == {"answers": 0, "routes": 0, "reasons": []}


def program(name: str, timeout: float = 60) -> str:
    words = [sys.executable, "-I", "-S", str(DIRECTORY / "fault_memory.py"), name]
    return f"command:run={shlex.join(words)},timeout={timeout}"


PROGRAM_REPLIES = ("no-json", "deep", "event-record-list", "text-surrogate", "state-surrogate")
"""Replies are read by the same code for services and programs; these show that it is."""


@pytest.mark.parametrize(
    "name",
    mark_repeats(
        [*PROGRAM_REPLIES, *fault_memory.PROGRAM_FAULTS], lambda name: name in PROGRAM_REPLIES
    ),
)
def test_a_program_that_fails_fails_its_route_alone(
    audit: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.setenv("FAULT_PIDS", str(tmp_path / "pids"))
    _, reason = {**fault_memory.FAULTS, **fault_memory.PROGRAM_FAULTS}[name]
    timeout = 5 if "5 seconds" in reason else 60
    assert_one_user_fails(audit(program(name, timeout)), reason)
    if "grandchild" in name:
        started = [int(line) for line in (tmp_path / "pids").read_text().split()]
        assert len(started) == 2
        assert not any(map(alive, started))


def alive(pid: int, seconds: float = 90) -> bool:
    """Say whether a process still runs after a while; one that has ended may not be reaped."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return False
        if state == "Z":
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-program-anywhere", "'no-such-program-anywhere' cannot be started: No such file"),
        ("/", "'/' cannot be started: Permission denied"),
    ],
)
def test_a_program_that_does_not_exist_fails_every_route(
    audit: Callable[..., Any], command: str, reason: str
) -> None:
    ended = audit(f"command:run={command}")
    assert ended.code == 3
    document = json.loads(ended.out)
    assert document["missing"]["routes"] == 4
    assert reason in ended.err


def test_a_process_that_leaves_the_group_cannot_hold_the_audit_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the pipes open for ten minutes; the program is let go without it."""
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import time; "
        f"time.sleep(600)'], start_new_session=True)\nopen({str(tmp_path / 'pid')!r}, 'w')"
        ".write(str(child.pid))\n"
        "for line in sys.stdin:\n    print('{\"items\": []}', flush=True)\n"
    )
    (tmp_path / "leaving.py").write_text(script)
    words = shlex.join([sys.executable, "-I", "-S", str(tmp_path / "leaving.py")])
    monkeypatch.setattr("routeprism.policies.adapters.command._PATIENCE", 0.2)
    memory: Any = Command(words).build([Record("r", 0, "text")])
    assert list(memory.retained()) == []
    memory.close()
    os.kill(int((tmp_path / "pid").read_text()), 9)


def test_a_program_that_does_not_read_cannot_hold_the_audit_up() -> None:
    words = shlex.join([sys.executable, "-I", "-S", "-c", fault_memory.GRANDCHILD])
    with pytest.raises(RouteError, match="no reply within"):
        Command(words, timeout=0.5).build([Record("r", 0, "x" * 10**6)])


@pytest.mark.parametrize("timeout", ["nan", "inf", "-1", "0", "1e30"])
def test_a_time_limit_that_is_none_is_refused(audit: Callable[..., Any], timeout: str) -> None:
    for policy in ("http:url=http://127.0.0.1:9", "command:run=cat"):
        ended = audit(f"{policy},timeout={timeout}")
        assert ended.code == 2
        assert "Expected a timeout above 0" in ended.err


def test_a_token_that_no_header_can_contain_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("sesame-open\nnow", "sésame-öpen-now"):
        monkeypatch.setenv("MEMORY_TOKEN", value)
        with pytest.raises(SpecError, match="characters that a header cannot contain") as caught:
            Http("http://127.0.0.1:9", token="MEMORY_TOKEN").build([])  # noqa: S106
        assert value[:6] not in str(caught.value)
    monkeypatch.delenv("MEMORY_TOKEN")
    with pytest.raises(SpecError, match="MEMORY_TOKEN: this environment variable is not set"):
        Http("http://127.0.0.1:9", token="MEMORY_TOKEN").build([])  # noqa: S106


@pytest.mark.parametrize("good", range(5))
def test_a_dump_that_breaks_later_fails_its_route_alone(
    audit: Callable[..., Any], good: int
) -> None:
    """The first dumps of each memory are as they should be; every later one has no items."""
    memories: dict[str, Any] = {}
    dumps: dict[str, int] = {}

    def answer(connection: socket.socket, request: Any) -> None:
        document = json.loads(request.raw.partition(b"\r\n\r\n")[2])
        memory = memories.setdefault(document["memory"], fault_memory.Memory())
        verb = request.path.rpartition("/")[2]
        usual = memory.answer(verb, document)
        if verb == "dump" and memory.sick:
            dumps[document["memory"]] = dumps.get(document["memory"], 0) + 1
            usual = usual if dumps[document["memory"]] <= good else {}
        connection.sendall(fault_endpoint.reply(json.dumps(usual).encode()))

    with fault_endpoint.Endpoint({"late": answer}) as endpoint:
        ended = audit(f"http:url=http://{endpoint.origin}/late")
    assert max(dumps.values()) > good
    assert_one_user_fails(ended, "dump: expected a list 'items' but got NoneType")


def test_later_builds_that_fail_are_missing_too(
    audit: Callable[..., Any], cli: Callable[..., Any], service: Service, tmp_path: Path
) -> None:
    policy = service.spec("error") + ",deterministic=false"
    ended = cli(
        "audit", tmp_path / "mydata", "-p", policy, "--builds", "2", "--run", "run", "--json"
    )
    assert ended.code == 3
    assert json.loads(ended.out)["missing"]["routes"] == 4
