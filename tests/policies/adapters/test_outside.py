"""Memories outside of this process: a service, a program, and traces recorded elsewhere."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import ContractError, InputError, RouteError, SpecError
from routeprism.orders import parse_schedule
from routeprism.policies import Event, make_policy
from routeprism.policies.adapters.command import Command
from routeprism.policies.adapters.http import Http
from routeprism.policies.adapters.recorded import Trace
from routeprism.policies.own import closing_memory
from routeprism.records import Benchmark, Record, load_benchmark
from routeprism.routes import trace_case

EXAMPLES = Path(__file__).parents[3] / "examples"
SERVER = runpy.run_path(str(EXAMPLES / "http_memory" / "server.py"))
PROGRAM = EXAMPLES / "command_memory" / "memory.py"
CASE = load_benchmark("sample", None).cases[0]
RECORDS = CASE.pool.records

Answer = Callable[[str, Mapping[str, Any]], Any]


@pytest.fixture
def serve() -> Iterator[Callable[..., Any]]:
    """Start the reference service; `instead` may answer first, or do something else."""
    started: list[Any] = []

    def start(instead: Answer = lambda verb, body: None) -> Any:
        class Misbehaving(SERVER["Service"]):  # type: ignore[misc]
            def answer(self, verb: str, body: dict[str, Any]) -> Any:
                text = instead(verb, body)
                return super().answer(verb, body) if text is None else text

            def handle_error(self, request: Any, address: Any) -> None:
                """A reply that nobody waits for is meant here."""

        service = Misbehaving()
        thread = threading.Thread(target=service.serve_forever, args=(0.01,))
        thread.start()
        started.append((service, thread))
        return service

    yield start
    for service, thread in started:
        service.shutdown()
        thread.join()
        service.server_close()


def at(service: Any, **settings: Any) -> Http:
    return Http(f"http://127.0.0.1:{service.server_address[1]}", **settings)


# --- HTTP ------------------------------------------------------------------------------------


def test_the_reference_service_is_audited(serve: Callable[..., Any]) -> None:
    """It keeps the twelve newest sentences, so that the reverse order keeps others."""
    service = serve()
    policy = at(service)
    memory = policy.build(RECORDS)
    assert memory.retained() <= {record.id for record in RECORDS}
    exposure = memory.expose(CASE.questions[0].text)
    assert 0 < len(exposure.blocks) <= 3
    assert exposure.sources <= memory.retained()
    items = memory.state()
    assert len(items) == 12
    assert {source for item in items for source in item["sources"]} == memory.retained()
    kinds = [(event.kind, event.record) for event in memory.events() if event.at == 0]
    assert kinds[0] == ("add", RECORDS[0].id)
    assert any(event.kind == "evict" for event in memory.events())
    memory.close()
    assert service.memories == {}  # nothing is left behind


@pytest.mark.parametrize("settle", [0.0, 0.2])
def test_items_that_repeat_their_records_are_counted(
    serve: Callable[..., Any], settle: float
) -> None:
    """The service stores sentences of the records, word for word."""
    with closing_memory(at(serve(), settle=settle).build(RECORDS[:2])) as memory:
        number = len(memory.state())
        assert memory.counts() == {"stored_items": number, "verbatim_items": number}
        assert number > 0


def test_a_service_that_evicts_is_read_a_few_times(serve: Callable[..., Any]) -> None:
    """It never has every record: it keeps the twelve newest sentences."""
    heard: list[str] = []
    policy = at(serve(lambda verb, request: heard.append(verb)), settle=0.4)
    records = [Record(f"r{n}", n, f"[USER] I planted tree number {n}.") for n in range(20)]
    with closing_memory(policy.build(records)) as memory:
        assert len(memory.retained()) < 20
    # One dump finds it empty; 0, 0.05, 0.15, 0.35 and 0.4 seconds after the last add there are two
    # (ids and state); the last one is the question's of this test.
    assert heard.count("add") == 20
    assert heard.count("dump") <= 1 + 2 * 5 + 1


@pytest.mark.parametrize(
    ("settings", "requests"),
    [
        # 4 records in 2 builds; 5 looks of 2 requests after each build.
        (",settle=0.4", "takes at least 20 requests and 1 seconds"),
        ("", ""),
    ],
)
def test_a_dry_run_counts_the_requests_of_waiting(
    cli: Callable[..., Any], own_data: Callable[..., Path], settings: str, requests: str
) -> None:
    rows = [{"user": "u", "id": f"r{n}", "text": f"fact {n}"} for n in range(4)]
    data = own_data(rows, [{"user": "u", "id": "q", "text": "Which?"}])
    policy = f"http:url=http://127.0.0.1:9{settings}"
    printed = cli("audit", data, "-p", policy, "-s", "replay", "--dry-run").out
    assert requests in " ".join(printed.split())
    assert ("waiting until" in printed) == bool(requests)


def test_builds_at_the_same_time_do_not_meet(serve: Callable[..., Any]) -> None:
    policy = at(serve())
    first, second = policy.build(RECORDS[:2]), policy.build(RECORDS[2:])
    assert first.retained() == {record.id for record in RECORDS[:2]}
    assert not second.retained() & first.retained()


@pytest.mark.parametrize("name", ["sample", "sample-updates"])
def test_a_service_never_sees_source_positions_labels_or_more_than_the_question(
    serve: Callable[..., Any], name: str
) -> None:
    case = load_benchmark(name).cases[0]
    heard: list[tuple[str, Mapping[str, Any]]] = []
    policy = at(serve(lambda verb, request: heard.append((verb, request))))
    trace_case(case, [policy], [parse_schedule("replay")])
    assert {verb for verb, _ in heard} == {"reset", "add", "search", "dump"}
    for verb, request in heard:
        fields = {"add": {"memory", "record"}, "search": {"memory", "query"}}
        assert set(request) == fields.get(verb, {"memory"})
        if verb == "add":
            assert set(request["record"]) == {"id", "text", "turns", "timestamp"}
    texts = {question.text for question in case.questions}
    assert {request["query"] for verb, request in heard if verb == "search"} == texts


def test_a_token_goes_with_every_request_and_into_no_name(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_TOKEN", "hush")
    policy = at(serve(), token="MEMORY_TOKEN")  # noqa: S106 (the name of a variable)
    heard: list[str] = []
    handler = SERVER["Handler"]
    plain = handler.do_POST
    monkeypatch.setattr(
        handler,
        "do_POST",
        lambda self: (heard.append(self.headers.get("Authorization")), plain(self)),
    )
    policy.build(RECORDS)
    assert set(heard) == {"Bearer hush"}
    assert "hush" not in policy.name + policy.origin()


def broken_status(verb: str, request: Mapping[str, Any]) -> None:
    if verb == "add":
        raise KeyError("disk full")


def silent(verb: str, request: Mapping[str, Any]) -> None:
    if verb == "add":
        time.sleep(8)


def replies(verb: str, reply: Any) -> Answer:
    return lambda spoken_verb, request: reply if spoken_verb == verb else None


@pytest.mark.parametrize(
    ("instead", "reason"),
    [
        (broken_status, "add: the service replied 400 Bad Request"),
        (silent, "add: no reply within 5 seconds"),
        (replies("dump", {}), "dump: expected a list 'items' but got NoneType"),
        (replies("dump", []), "dump: expected a JSON object but got list"),
        (replies("add", {"error": "no space"}), "add: no space"),
        (
            replies("dump", {"items": [{"text": "x", "sources": ["nobody"]}]}),
            "dump: item 0 names the source 'nobody', which never arrived",
        ),
        (replies("dump", {"items": [{"text": "x"}]}), "dump: item 0 names no sources"),
        (replies("dump", {"items": ["x"]}), "dump: item 0: expected an object with 'text'"),
        (replies("add", {"events": [{"kind": "burn"}]}), "add: expected an event of add, merge"),
        (
            replies("add", {"events": [{"kind": "evict", "record": "nobody"}]}),
            "add: an event is about 'nobody', which never arrived",
        ),
    ],
)
def test_what_a_service_does_wrong_is_said(
    serve: Callable[..., Any], instead: Answer, reason: str
) -> None:
    with pytest.raises(RouteError, match=reason):
        at(serve(instead), timeout=5 if instead is silent else 60).build(RECORDS).retained()


def test_a_service_in_trouble_is_said(
    serve: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SERVER["Handler"], "do_POST", lambda self: self.send_error(500))
    with pytest.raises(RouteError, match="reset: the service replied 500"):
        at(serve(), timeout=60).build(RECORDS)


def test_nobody_listens() -> None:
    with pytest.raises(RouteError, match=r"reset: http://127.0.0.1:9 cannot be asked"):
        Http("http://127.0.0.1:9").build(RECORDS)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://x", "Expected an address"),
        ("http://a:b@x", "without user, password"),
        ("http://x/?key=b", "without user, password and query"),
        ("http://x:port", "Expected an address"),
        ("x", "Expected"),
    ],
)
def test_an_address_that_cannot_be_used(url: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        make_policy(f"http:url={url}")


# --- a program -------------------------------------------------------------------------------


def program(tmp_path: Path, body: str) -> Command:
    """A program whose memory is one line of Python after reading each request."""
    lines = ["import json, sys, time", "for line in sys.stdin:", "    asked = json.loads(line)"]
    (tmp_path / "memory.py").write_text("\n".join([*lines, f"    {body}", ""]))
    return Command(f"{sys.executable} {tmp_path / 'memory.py'}", timeout=60)


@pytest.mark.parametrize("words", [[sys.executable, str(PROGRAM)], ["perl", "memory.pl"]])
def test_the_examples_keep_the_three_newest(words: list[str]) -> None:
    """In Python and in Perl; the trace is that of `recent:k=3`."""
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    words[-1] = str(PROGRAM.parent / Path(words[-1]).name)
    small = [CASE, load_benchmark("sample", None).cases[1]]
    for case in small:
        schedules = [parse_schedule("replay")]
        routes = trace_case(case, [Command(" ".join(words))], schedules)
        same = trace_case(case, [make_policy("recent:k=3")], schedules)
        assert [route.retained for route in routes] == [route.retained for route in same]
        for first, second in zip(routes, same, strict=True):
            records = [e.record for e in first.events if e.kind == "evict"]
            assert records == [e.record for e in second.events if e.kind == "evict"]


def test_a_program_never_sees_labels_of_changed_facts(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    policy = program(
        tmp_path,
        f'open({str(log)!r}, "a").write(line); print(json.dumps({{"items": []}}), flush=True)',
    )
    case = load_benchmark("sample-updates").cases[0]
    assert case.supersedes
    assert all(question.stale for question in case.questions)
    assert any(question.outdated for question in case.questions)
    trace_case(case, [policy], [parse_schedule("replay")])
    requests = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    records = [request["record"] for request in requests if request["do"] == "add"]
    assert {frozenset(record) for record in records} == {
        frozenset(("id", "text", "turns", "timestamp"))
    }
    assert {request["query"] for request in requests if request["do"] == "search"} == {
        question.text for question in case.questions
    }
    assert {
        frozenset(request) for request in requests if request["do"] not in ("add", "search")
    } == {frozenset(("do",))}


def test_each_build_is_a_process_that_ends(tmp_path: Path) -> None:
    policy = program(tmp_path, 'print(json.dumps({"items": []}), flush=True)')
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")

    def running() -> set[str]:
        return set(children.read_text().split()) if children.exists() else set()

    threads, before = {*threading.enumerate()}, running()
    memory = policy.build(RECORDS)
    if children.exists():
        assert len(running() - before) == 1
    memory.close()
    assert {*threading.enumerate()} <= threads
    assert running() <= before


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ('sys.exit("no memory left")', r"ended before it answered \(exit code 1\), and said: no"),
        ('print("oops", flush=True)', "reset: the reply is not JSON: 'oops"),
        ('print(json.dumps({"error": "locked"}), flush=True)', "reset: locked"),
    ],
)
def test_what_a_program_does_wrong_is_said(tmp_path: Path, body: str, reason: str) -> None:
    with pytest.raises(RouteError, match=reason):
        program(tmp_path, body).build(RECORDS)


def test_a_program_that_hangs_is_ended(tmp_path: Path) -> None:
    slow = program(tmp_path, "time.sleep(600)")
    with pytest.raises(RouteError, match=r"reset: no reply within 0\.3 seconds"):
        Command(slow.run, timeout=0.3).build(RECORDS)


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(RouteError, match="'no-such-program' cannot be started"):
        Command("no-such-program --now").build(RECORDS)


# --- recorded traces -------------------------------------------------------------------------


def dumped(directory: Path, schedule: str, benchmark: Benchmark | None = None, **more: Any) -> Path:
    """Record what `recent:k=2` keeps and shows, as a user's own script would."""
    policy = make_policy("recent:k=2")
    path = directory / f"{schedule}.jsonl"
    with path.open("w") as file:
        for case in (benchmark or load_benchmark("sample", None)).cases:
            order = parse_schedule(schedule).order(len(case.pool), case.pool.user)
            arrivals = [case.pool.records[position] for position in order]
            memory = policy.build(arrivals)
            retained_ids = [record for record in arrivals if record.id in memory.retained()]
            searches = [
                {
                    "question": question.id,
                    "items": [
                        {"text": block.text, "sources": sorted(block.sources)}
                        for block in memory.expose(question.text).blocks
                    ],
                }
                for question in case.questions
            ]
            line = {
                "user": case.pool.user,
                "arrivals": [record.id for record in arrivals],
                "items": [{"text": r.text, "sources": [r.id]} for r in retained_ids],
                "searches": searches,
                "events": [{"kind": "add", "record": arrivals[0].id, "by": arrivals[0].id}],
                **more,
            }
            file.write(json.dumps(line) + "\n")
    return path


def test_recorded_traces_give_the_numbers_of_the_memory_they_were_recorded_from(
    tmp_path: Path,
) -> None:
    forward, route = dumped(tmp_path, "forward"), dumped(tmp_path, "half-swap")
    spec = f"trace:forward={forward},route={route}"
    result = routeprism.audit("sample", spec, schedules=["half-swap"], resamples=100)
    same = routeprism.audit("sample", "recent:k=2", schedules=["half-swap"], resamples=100)
    for quantity in ("J", "V_changed", "C_changed", "retained_changed", "context_length.route"):
        row = result.value(quantity, policy=spec)
        alternative = same.value(quantity, policy="recent:k=2")
        assert (row.estimate, row.lower, row.upper) == (
            alternative.estimate,
            alternative.lower,
            alternative.upper,
        )


@pytest.fixture
def ten_pools(data: Path) -> Benchmark:
    """The first ten pools of PersonaMem with their 142 questions."""
    whole = load_benchmark("personamem", data)
    return replace(whole, name="personamem-10", cases=tuple(whole.cases)[:10])


def same_overlap(benchmark: Benchmark, policy: Any, like: str) -> None:
    """A memory outside that keeps what a built-in policy keeps has its numbers."""
    result = routeprism.audit(benchmark, policy, resamples=100)
    same = routeprism.audit(benchmark, like, resamples=100)
    name = policy if isinstance(policy, str) else policy.name
    row = result.value("retained_changed_count", policy=name)
    assert (row.estimate, row.queries) == (
        same.value("retained_changed_count", policy=like).estimate,
        142,
    )


@pytest.mark.realdata
def test_ten_personamem_pools_by_a_program(ten_pools: Benchmark) -> None:
    same_overlap(ten_pools, Command(f"{sys.executable} {PROGRAM}"), "recent:k=3")


@pytest.mark.realdata
def test_ten_personamem_pools_by_recorded_traces(ten_pools: Benchmark, tmp_path: Path) -> None:
    paths = [dumped(tmp_path, schedule, ten_pools) for schedule in ("forward", "replay")]
    same_overlap(ten_pools, f"trace:forward={paths[0]},route={paths[1]}", "recent:k=2")


@pytest.mark.realdata
def test_ten_personamem_pools_by_a_service(serve: Callable[..., Any], ten_pools: Benchmark) -> None:
    """It keeps the twelve newest sentences: of long sessions, some of the last one alone."""
    policy = at(serve())
    result = routeprism.audit(ten_pools, policy, resamples=100)
    changed = result.value("retained_changed_count", policy=policy.name)
    assert (changed.estimate, changed.queries) == (142, 142)
    assert result.value("J", policy=policy.name).estimate == 0


@pytest.mark.slow
def test_recorded_traces_are_answered_and_restored(tmp_path: Path) -> None:
    """What needs no rebuilding works on them: here, answers."""
    forward, route = dumped(tmp_path, "forward"), dumped(tmp_path, "replay")
    spec = f"trace:forward={forward},route={route}"
    result = routeprism.audit("sample", spec, models=["reader"], draws=2, resamples=100)
    same = routeprism.audit("sample", "recent:k=2", models=["reader"], draws=2, resamples=100)
    for quantity in ("D_res", "accuracy.route"):
        row = result.value(quantity, policy=spec, filler="A", arm="", mask="")
        alternative = same.value(quantity, policy="recent:k=2", filler="A", arm="", mask="")
        assert row.estimate == alternative.estimate
    events = trace_case(CASE, [make_policy(spec)], [])[0].events
    assert events == (Event("add", RECORDS[0].id, RECORDS[0].id, 0),)


def test_what_was_not_recorded_cannot_be_had(tmp_path: Path) -> None:
    forward, route = dumped(tmp_path, "forward"), dumped(tmp_path, "replay")
    policy = Trace(str(forward), str(route))
    with pytest.raises(InputError, match=r"replay.jsonl: there is no line for user 'u01'"):
        trace_case(CASE, [policy], [parse_schedule("half-swap")])
    with pytest.raises(ContractError, match="cannot be built again"):
        routeprism.audit("sample", policy, comparators=True, resamples=100)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "line 1: is not valid JSON"),
        ("[]", "line 1: Expected a JSON object"),
        ("", "there is no trace in it"),
        ({"user": ""}, "line 1, field 'user'"),
        ({"arrivals": "r1"}, "line 1, field 'arrivals': Expected a list of record ids"),
        (
            {"items": [{"text": "x", "sources": ["zz"]}]},
            "item 0 names the source 'zz', which never arrived",
        ),
        ({"items": [{"text": "x", "sources": []}]}, "item 0 names no sources"),
        ({"items": [{"sources": []}]}, "field 'items': item 0: expected an object with 'text'"),
        ({"searches": [{}]}, "field 'searches': Expected objects with 'question'"),
        ({"events": [{"kind": "burn"}]}, "field 'events': Expected one of add"),
        ({"events": [{"kind": "add"}]}, "Expected 'record' and 'by' to be ids"),
        ({}, "there is no search for question"),
    ],
)
def test_a_dump_that_cannot_be_used_names_the_place(
    tmp_path: Path, line: str | dict[str, Any], reason: str
) -> None:
    path = tmp_path / "dump.jsonl"
    if isinstance(line, dict):
        arrivals = [record.id for record in RECORDS]
        line = json.dumps({"user": "u01", "arrivals": arrivals, "items": [], **line})
    path.write_text(line)
    with pytest.raises(InputError, match=reason):
        trace_case(CASE, [Trace(str(path), str(path))], [])


def test_other_dumps_are_another_run(tmp_path: Path) -> None:
    forward, route = dumped(tmp_path, "forward"), dumped(tmp_path, "replay")
    policy = Trace(str(forward), str(route))
    before = policy.origin()
    dumped(tmp_path, "replay", state=["changed"])
    assert policy.origin() != before
