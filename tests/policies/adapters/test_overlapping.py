"""Writes that overlap on services and programs: losses are found, and a delay is not a loss."""

from __future__ import annotations

import json
import runpy
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from routeprism import Record
from routeprism.errors import InapplicableError, SpecError
from routeprism.orders import parse_schedule
from routeprism.overlap import Trial, build_by_procedure, find_overlap, list_serial_outcomes
from routeprism.policies import make_policy
from routeprism.policies.own import closing_memory, find_own_memory

EXAMPLES = Path(__file__).parents[3] / "examples"
RECORDS = tuple(Record(f"r{n}", n, f"[USER] I planted tree number {n}.") for n in range(3))


class Service(ThreadingHTTPServer):
    """Speaks the four verbs; each add reads the list, waits, and writes it back.

    With `meeting`, an add waits until so many have read the list, and otherwise for a moment: the
    first finds a loss for certain, and the second one that a lock or a queue does not prevent.
    """

    daemon_threads = True
    meeting: threading.Barrier | None = None

    def __init__(self, *, locked: bool = False, lag: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.memories: dict[str, list[Any]] = {}
        self.lock = threading.Lock() if locked else None
        self.lag = lag

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def let_adds_meet(self) -> None:
        self.meeting = threading.Barrier(len(RECORDS))

    def add(self, memory: str, record: dict[str, Any]) -> None:
        if self.lag:
            number = int(record["id"][1:])
            threading.Timer(self.lag * (1 + number), self.store, (memory, record)).start()
        elif self.lock is not None:
            with self.lock:
                self.store(memory, record)
        else:
            self.store(memory, record)

    def store(self, memory: str, record: dict[str, Any]) -> None:
        items = list(self.memories.get(memory, []))
        if self.meeting is not None:
            self.meeting.wait(120)
        else:
            time.sleep(0 if self.lag else 0.05)
        items.append({"text": record["text"], "sources": [record["id"]]})
        self.memories[memory] = items


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        verb, memory = self.path.rpartition("/")[2], body["memory"]
        if verb == "reset":
            self.server.memories.pop(memory, None)
        elif verb == "add":
            self.server.add(memory, body["record"])
        reply = {"items": self.server.memories.get(memory, [])} if verb != "add" else {}
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


@contextmanager
def run_server(server: Any) -> Iterator[Any]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def judge(spec: str, prepare: Callable[[], object] = lambda: None) -> str | None:
    """Add one by one in every order, then `prepare` the service, and add all at the same time."""
    policy = make_policy(spec)
    assert find_overlap(policy) == "requests"
    trial = Trial(find_own_memory(policy), (), RECORDS)
    serial = list_serial_outcomes(trial)
    assert (serial.builds, serial.complete) == (6, True)
    prepare()
    execution = trial.sample(0)
    assert not execution.controlled
    return serial.classify(execution.outcome)


def test_a_service_that_waits_between_reading_and_writing_loses_records() -> None:
    with run_server(Service()) as server:
        assert judge(f"queue(http:url={server.url})") is None
        assert judge(f"http:url={server.url}", server.let_adds_meet) == "lost"
    with run_server(Service(locked=True)) as server:
        assert judge(f"http:url={server.url}") is None


def test_a_delay_is_not_a_loss() -> None:
    # The last of three records is stored 0.3 seconds after its add; dumps before that agree.
    with run_server(Service(lag=0.1)) as server:
        policy = make_policy(f"http:url={server.url},settle=5")
        trial = Trial(find_own_memory(policy), (), RECORDS)
        assert trial.sample(0).outcome.retained == ("r0", "r1", "r2")
        # The same holds for records that are added one by one.
        with closing_memory(policy.build(RECORDS)) as memory:
            assert memory.retained() == {"r0", "r1", "r2"}


SLOW_PROGRAM = """
import json, sys, threading

items = []
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "add":
        record = request["record"]
        item = {"text": record["text"], "sources": [record["id"]]}
        threading.Timer(0.1, items.append, (item,)).start()
    print(json.dumps({"items": items}), flush=True)
"""


def test_a_program_that_stores_later_is_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(SLOW_PROGRAM)
    for schedule in map(parse_schedule, ("forward", "overlap:k=3")):
        policy = make_policy(f"command:run={sys.executable} {program},settle=5")
        with closing_memory(build_by_procedure(policy, RECORDS, schedule.procedure)) as memory:
            assert memory.retained() == {"r0", "r1", "r2"}


def test_overlapping_writes_through_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The service of the example stores each note 0.3 seconds later.
    monkeypatch.setenv("NOTES_TOKEN", "overlap-token")
    monkeypatch.setenv("ROUTEPRISM_PROFILE_ENV", "NOTES_TOKEN")
    make_server = runpy.run_path(str(EXAMPLES / "notes_service" / "server.py"))["NoteService"]
    with run_server(make_server("overlap-token")) as server:
        example = (EXAMPLES / "profiles" / "notes.toml").read_text()
        profile = tmp_path / "notes.toml"
        profile.write_text(example.replace("patience = 1.0", "patience = 30.0"))
        policy = make_policy(f"http:profile={profile},url={server.url}")
        procedure = parse_schedule("overlap:k=3").procedure
        with closing_memory(build_by_procedure(policy, RECORDS, procedure)) as memory:
            assert memory.retained() == {"r0", "r1", "r2"}


PROGRAM = """
import asyncio, json, os, sys

async def main():
    items, reading, loop = [], [], asyncio.get_running_loop()
    async def answer(line):
        nonlocal items
        request = json.loads(line)
        if request["do"] == "add":
            before = items
            reading.append(line)
            if os.path.exists("MEETING"):  # wait until three adds have read the items
                while len(reading) % 3:
                    await asyncio.sleep(0.01)
            else:
                await asyncio.sleep(0.05)
            record = request["record"]
            items = [*before, {"text": record["text"], "sources": [record["id"]]}]
        elif request["do"] == "reset":
            items, reading[:] = [], []
        print(json.dumps({"items": items}), flush=True)
    tasks = []
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        tasks.append(asyncio.create_task(answer(line)))

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_program_receives_requests_before_it_has_answered(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    meeting = tmp_path / "meeting"
    program.write_text(PROGRAM.replace("MEETING", str(meeting)))
    assert judge(f"queue(command:run={sys.executable} {program})") is None
    assert judge(f"command:run={sys.executable} {program}", meeting.touch) == "lost"


BATCH_PROGRAM = """
import json, sys

items = []
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "add":
        items.append(request["record"])
    elif request["do"] == "add_many":  # a batch keeps only its last record
        items.append(request["records"][-1])
    shown = [{"text": item["text"], "sources": [item["id"]]} for item in items]
    print(json.dumps({"items": shown}), flush=True)
"""


def test_a_batch_request_of_a_program_is_used_only_if_it_is_declared(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(BATCH_PROGRAM)
    spec = f"command:run={sys.executable} {program}"
    for schedule, expected in (("bulk", {"r2"}), ("bulk:size=2", {"r1", "r2"})):
        procedure = parse_schedule(schedule).procedure
        built = build_by_procedure(make_policy(f"{spec},bulk=true"), RECORDS, procedure)
        with closing_memory(built) as memory:
            assert memory.retained() == expected
        with pytest.raises(InapplicableError):
            build_by_procedure(make_policy(spec), RECORDS, procedure)


class _BatchHandler(_Handler):
    def do_POST(self) -> None:
        if not self.path.endswith("/add_many"):
            super().do_POST()
            return
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        for record in body["records"]:
            self.server.add(body["memory"], record)
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")


def test_a_batch_endpoint_is_waited_for() -> None:
    service = Service(lag=0.05)
    service.RequestHandlerClass = _BatchHandler
    with run_server(service) as server:
        policy = make_policy(f"http:url={server.url},settle=5,bulk=true")
        procedure = parse_schedule("bulk").procedure
        with closing_memory(build_by_procedure(policy, RECORDS, procedure)) as memory:
            assert memory.retained() == {"r0", "r1", "r2"}


class _RestHandler(BaseHTTPRequestHandler):
    """Notes of an account: one or several are added, and all are listed."""

    notes: ClassVar[dict[str, list[str]]] = {}
    requests: ClassVar[list[str]] = []

    def _reply(self, content: Any) -> None:
        data = json.dumps(content).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        account = self.path.split("/")[1]
        self.requests.append(self.path.rpartition("/")[2])
        notes = [note["content"] for note in body["notes"]] if "notes" in body else [body["note"]]
        self.notes.setdefault(account, []).extend(notes)
        self._reply({})

    def do_GET(self) -> None:
        notes = self.notes.get(self.path.split("/")[1], [])
        self._reply([{"id": f"n{at}", "text": note} for at, note in enumerate(notes)])

    def log_message(self, *arguments: Any) -> None:
        """Print nothing."""


REST_PROFILE = """
url = "http://127.0.0.1:1"
[add]
request = "POST /{memory}/note"
body = { note = "{text}" }
[bulk]
request = "POST /{memory}/batch"
body = { notes = "{records}" }
record = { content = "{text}" }
[list]
request = "GET /{memory}/notes"
items = ""
id = "/id"
text = "/text"
[search]
request = "GET /{memory}/find?q={query}"
items = ""
id = "/id"
text = "/text"
"""


def test_a_batch_endpoint_of_a_profile(tmp_path: Path) -> None:
    profile = tmp_path / "notes.toml"
    profile.write_text(REST_PROFILE)
    procedure = parse_schedule("bulk:size=2").procedure
    with run_server(ThreadingHTTPServer(("127.0.0.1", 0), _RestHandler)) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        policy = make_policy(f"http:profile={profile},url={url}")
        with closing_memory(build_by_procedure(policy, RECORDS, procedure)) as memory:
            assert memory.retained() == {"r0", "r1", "r2"}
            state = memory.state()
        assert _RestHandler.requests == ["batch", "batch"]
        with closing_memory(policy.build(RECORDS)) as memory:
            assert memory.state() == state  # the service stores the same, one by one or in batches
        profile.write_text(REST_PROFILE.replace('record = { content = "{text}" }', ""))
        with pytest.raises(SpecError, match=r"\[bulk\] record: expected the template of a record"):
            make_policy(f"http:profile={profile},url={url}")
