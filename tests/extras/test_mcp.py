"""MCP servers through the adapter: a server of these tests, and two published ones from npm."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import routeprism
from routeprism import Record
from routeprism.errors import InapplicableError, RouteError, SpecError
from routeprism.orders import parse_schedule
from routeprism.overlap import Trial, build_by_procedure, find_overlap, list_serial_outcomes
from routeprism.policies import make_policy
from routeprism.policies.own import closing_memory, find_own_memory
from routeprism.records import load_benchmark
from routeprism.routes.conformance import check_adapter

pytest.importorskip("mcp", reason="pip install 'routeprism[mcp]'")

DIRECTORY = Path(__file__).parent
SAMPLE = load_benchmark("sample", None)
BIN = Path(sys.prefix) / "node" / "node_modules" / ".bin"
TOYS = DIRECTORY / "mcp_toy.py"
PROFILE = DIRECTORY / "mcp_toy.toml"
RECORDS = tuple(
    Record(f"r{n}", n, f"[USER] On day {n} I planted tree number {n} behind the house.")
    for n in range(20)
)


def find_server(name: str) -> str:
    """Give the path of a server from npm; in CI a server that is missing is a failure."""
    path = BIN / name
    if shutil.which("node") and path.exists():
        return str(path)
    if os.environ.get("CI"):
        pytest.fail(f"{name} is missing: make .venv/.node installs it")
    pytest.skip(f"{name} is missing: make .venv/.node installs it, with node")


def toy(options: str = "", profile: Path = PROFILE) -> str:
    return f"mcp:command={sys.executable} {TOYS} {options},profile={profile}"


@pytest.fixture(params=["server-memory", "mcp-memory-libsql"])
def published(request) -> str:
    command = {"server-memory": "mcp-server-memory"}.get(request.param, request.param)
    return f"mcp:command={find_server(command)},profile={request.param}"


def test_a_published_server_is_a_memory_with_provenance(published) -> None:
    with closing_memory(make_policy(published).build(RECORDS[:4])) as memory:
        assert memory.retained() == {"r0", "r1", "r2", "r3"}
        assert [event.kind for event in memory.events()] == ["add"] * 4
        exposure = memory.expose("Which tree number is behind the house?")
        assert exposure.sources == {"r0", "r1", "r2", "r3"}
        assert {block.text for block in exposure.blocks} == {record.text for record in RECORDS[:4]}
        assert memory.expose("Nothing matches zzz").blocks == ()


def test_a_published_server_passes_check_adapter(published) -> None:
    checks = check_adapter(make_policy(published))
    assert {check.name: check.message for check in checks if check.outcome == "failed"} == {}
    assert {check.name for check in checks if check.outcome == "passed"} >= {
        *("contract", "isolation", "ids", "provenance", "clean-up"),
    }


def test_a_published_server_performs_procedures(published) -> None:
    policy = make_policy(published)
    for schedule in map(parse_schedule, ("bulk:size=2", "restart:every=2", "twice")):
        arrivals = [RECORDS[position] for position in schedule.order(4)]
        with closing_memory(build_by_procedure(policy, arrivals, schedule.procedure)) as memory:
            assert memory.retained() == {"r0", "r1", "r2", "r3"}
            assert len(memory.state()) == 4


def test_a_server_that_waits_between_reading_and_writing_loses_records(tmp_path) -> None:
    profile = tmp_path / "prompt.toml"
    profile.write_text(PROFILE.read_text().partition("[wait]")[0])
    meeting = tmp_path / "meeting"
    policy = make_policy(toy(f"--meeting {meeting}", profile))
    assert find_overlap(policy) == "requests"
    trial = Trial(find_own_memory(policy), (), RECORDS[:3])
    serial = list_serial_outcomes(trial)
    assert (serial.builds, serial.complete) == (6, True)
    meeting.touch()
    assert serial.classify(trial.sample(0).outcome) == "lost"
    queued = replace(trial, policy=find_own_memory(make_policy(f"queue({toy(profile=profile)})")))
    assert serial.classify(queued.sample(0).outcome) is None


def test_lag_is_not_reported_as_loss() -> None:
    policy = make_policy(toy("--lag 0.3"))
    trial = Trial(find_own_memory(policy), (), RECORDS[:3])
    with closing_memory(policy.build(RECORDS[:3])) as memory:
        assert memory.retained() == {"r0", "r1", "r2"}
    outcome = trial.sample(0).outcome
    assert outcome.retained == ("r0", "r1", "r2")


def test_a_running_server_has_a_namespace_for_each_build(monkeypatch) -> None:
    """It is reached directly: nothing listens at the address of this proxy."""
    for name, value in (("no_proxy", ""), ("NO_PROXY", ""), ("HTTP_PROXY", "http://127.0.0.1:9")):
        monkeypatch.setenv(name, value)
    with serve() as url:
        policy = make_policy(f"mcp:url={url},profile={PROFILE}")
        with (
            closing_memory(policy.build(RECORDS[:2])) as first,
            closing_memory(policy.build(RECORDS[2:5])) as second,
        ):
            assert first.retained() == {"r0", "r1"}
            assert second.retained() == {"r2", "r3", "r4"}
        with pytest.raises(InapplicableError, match="running already"):
            build_by_procedure(policy, RECORDS[:2], parse_schedule("restart").procedure)


TOKEN = "tok/SECRET+mcp=67890"  # noqa: S105


def test_a_running_server_gets_a_token_that_appears_nowhere(monkeypatch, tmp_path) -> None:
    with serve("--token", TOKEN) as url:
        spec = f"mcp:url={url},profile={PROFILE},token=TOY_TOKEN"
        monkeypatch.setenv("TOY_TOKEN", TOKEN)
        result = routeprism.audit(
            replace(SAMPLE, cases=SAMPLE.cases[:1]),
            spec,
            schedules=["replay"],
            resamples=100,
            run=tmp_path / "run",
        )
        assert result.value("J").estimate == 1
        assert any("stored verbatim: construction by a model was" in note for note in result.notes)
        for file in (tmp_path / "run").iterdir():
            assert b"SECRET" not in file.read_bytes(), file
        monkeypatch.setenv("TOY_TOKEN", f"{TOKEN}-wrong")
        with pytest.raises(RouteError, match="cannot be used") as raised:
            make_policy(spec).build(RECORDS[:1])
        assert "SECRET" not in str(raised.value)
    monkeypatch.delenv("TOY_TOKEN")
    with pytest.raises(SpecError, match="token=TOY_TOKEN: this environment variable is not set"):
        make_policy(spec).build(RECORDS[:1])
    with pytest.raises(SpecError, match=r"token=… with url=…"):
        make_policy(f"{toy()},token=TOY_TOKEN")


def test_data_on_a_running_server_is_never_deleted_unasked(tmp_path) -> None:
    """All builds share the space `mine`, in which someone has stored something."""
    profile = tmp_path / "shared.toml"
    reset = '[reset]\ntool = "forget"\narguments = { space = "mine", ids = "{keys}" }\n'
    profile.write_text(PROFILE.read_text().replace("{memory}", "mine") + reset)
    with serve() as url:
        policy = make_policy(f"mcp:url={url},profile={profile}")
        for number in (2, 3):
            with closing_memory(policy.build(RECORDS[:number])) as memory:
                assert len(memory.retained()) == number
        own = make_policy(f"mcp:url={url},profile={profile}").open()
        own.add(RECORDS[7])
        with pytest.raises(RouteError, match="contains 1 item before any record was added"):
            policy.build(RECORDS[:2])
        assert own.retained() == ["r7"]
        allowed = make_policy(f"mcp:url={url},profile={profile},discard=true")
        assert allowed.name == policy.name
        with closing_memory(allowed.build(RECORDS[:2])) as memory:
            assert memory.retained() == {"r0", "r1"}


def test_a_namespace_has_to_be_read_where_it_is_written(tmp_path) -> None:
    profile = tmp_path / "half.toml"
    profile.write_text(PROFILE.read_text().replace('"{memory}", query = ""', '"mine", query = ""'))
    with pytest.raises(SpecError, match=r"\[list\] arguments: it reads all memories"):
        make_policy(f"mcp:url=http://127.0.0.1:9/mcp,profile={profile}")


def test_a_server_reads_secrets_from_the_environment_alone(monkeypatch, tmp_path) -> None:
    profile = tmp_path / "secret.toml"
    text = PROFILE.read_text().replace("[environment]\n", '[environment]\nTOY_TOKEN = "${MINE}"\n')
    profile.write_text(text)
    with pytest.raises(SpecError, match=r"\[environment\] TOY_TOKEN reads the environment var"):
        make_policy(toy(profile=profile)).build(RECORDS[:1])
    monkeypatch.setenv("MINE", TOKEN)
    with pytest.raises(SpecError, match="add env=MINE to the policy"):
        make_policy(toy(profile=profile)).build(RECORDS[:1])
    monkeypatch.setenv("ROUTEPRISM_PROFILE_ENV", "MINE")
    with closing_memory(make_policy(toy(profile=profile)).build(RECORDS[:1])) as memory:
        assert memory.retained() == {"r0"}
    profile.write_text(text.replace("${MINE}", "abc"))
    with pytest.raises(SpecError, match="a secret does not belong in a file"):
        make_policy(toy(profile=profile))


@contextmanager
def serve(*options: str):
    """Run the toy server on a socket that listens already: requests wait until it has started."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        number = listener.fileno()
        command = [sys.executable, str(TOYS), "--descriptor", str(number), *options]
        server = subprocess.Popen(command, pass_fds=[number])
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    try:
        yield url
    finally:
        server.terminate()
        server.wait(120)


def test_failures_are_described_in_words(tmp_path) -> None:
    with pytest.raises(RouteError, match="cannot be used"):
        make_policy("mcp:command=false").build(RECORDS[:1])
    with pytest.raises(RouteError, match="remember: the server replied: Error executing tool"):
        make_policy(toy("--broken")).build(RECORDS[:1])
    with pytest.raises(SpecError, match="either command=… or url=…"):
        make_policy("mcp:profile=server-memory")
    with pytest.raises(SpecError, match="RoutePrism has mcp-memory-libsql, server-memory"):
        make_policy("mcp:command=x,profile=missing.toml")
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(PROFILE.read_text().replace("{text}", "{words}"))
    with pytest.raises(SpecError, match=r"\{words\}: there is no such placeholder here"):
        make_policy(f"mcp:command=x,profile={wrong}")
    wrong.write_text(PROFILE.read_text().replace("{memory}", "fixed"))
    with pytest.raises(SpecError, match="nothing separates one build"):
        make_policy(f"mcp:url=http://127.0.0.1:1/mcp,profile={wrong}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "limit = 120.0",
            'limit = "3"',
            "[wait] limit: expected a number of 0 or more but got '3'",
        ),
        ("[wait]", "[wai]", "wai: there is no such key. Did you mean 'wait'"),
        ('key = "/id"', 'key = "id"', "[list] key: expected a JSON pointer such as '/id'"),
        ('tool = "recall"\n', "", "[list] tool: expected a text, but it is missing"),
        ("[wait]", "size = 'x'\n[wait]", "[list] size: there is no such key"),
        ("[wait]", '[bulk]\ntool = "all"\n[wait]', "[bulk] record: expected the template of a"),
    ],
)
def test_a_wrong_profile_is_refused_with_table_and_key(tmp_path, old, new, message) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(PROFILE.read_text().replace(old, new))
    with pytest.raises(SpecError) as raised:
        make_policy(toy(profile=wrong))
    assert message in str(raised.value)


def test_an_argument_without_a_value_is_left_out(tmp_path) -> None:
    """The records have no time, and the server refuses `at = null`."""
    profile = tmp_path / "time.toml"
    profile.write_text(
        PROFILE.read_text().replace('text = "{text}"', 'text = "{text}", at = "{time}"')
    )
    with closing_memory(make_policy(toy(profile=profile)).build(RECORDS[:1])) as memory:
        assert memory.retained() == {"r0"}


def test_the_case_study(tmp_path, capsys) -> None:
    """The numbers of docs/concurrent-writes.md: what each way to add 20 records keeps."""
    server = find_server("mcp-server-memory")
    data = tmp_path / "data"
    data.mkdir()
    write_diary(data)
    serial = f"mcp:command={server}"
    memories = {
        "one process": serial,
        "two processes": f"{serial},processes=2",
        "two processes and a queue": f"queue({serial},processes=2)",
    }
    audit = routeprism.audit(
        str(data),
        *memories.values(),
        schedules=["overlap:k=20"],
        overlap_trials=3,
        run=tmp_path / "run",
        rebuilds=0,
    )
    rates = {row.policy: row.estimate for row in audit.rows if row.quantity == "anomaly.lost"}
    sentences = {
        statement.policy: str(statement)
        for statement in audit.statements
        if statement.kind == "overlap"
    }
    for name, policy in memories.items():
        queued = "queue" in name
        assert rates[policy] == 0 if queued else rates[policy] > 0
        if not queued:
            assert "(20 of 20 when added one by one)" in sentences[policy]
            assert "concurrent adds overwrite each other" in sentences[policy]
    checked = routeprism.check(tmp_path / "run", gates=["anomaly<=0"])
    failed = {verdict.row.policy for verdict in checked.verdicts if not verdict.passed}
    assert failed == {memories["one process"], memories["two processes"]}
    page = (DIRECTORY.parents[1] / "docs" / "concurrent-writes.md").read_text(encoding="utf-8")
    assert page.count("(20 of 20 when added one by one): concurrent adds overwrite") == 2
    with capsys.disabled():
        for name, policy in memories.items():
            print(f"\n{name}: {sentences[policy]}".replace(server, "mcp-server-memory"))


def write_diary(directory: Path) -> None:
    """Write 20 records and a question of each of two users."""
    users = ("ada", "ben")
    records = [
        {"user": user, "id": f"{user}-{n}", "text": f"On day {n} {user} planted tree {n}."}
        for user in users
        for n in range(1, 21)
    ]
    questions = [{"user": user, "id": f"{user}-q", "text": "Which tree?"} for user in users]
    for name, rows in (("records", records), ("questions", questions)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (directory / f"{name}.jsonl").write_text(lines)
