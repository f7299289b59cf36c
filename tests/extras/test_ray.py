"""A Ray cluster gives the bytes that one process gives, also when a worker is lost on the way."""

from __future__ import annotations

import importlib
import operator
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import LimitError, RoutePrismError
from routeprism.landscape import CHECKED_ORDERS
from routeprism.models.openai import OpenAI
from routeprism.workers import ordered_map

from ..doubles import list_executed, plant_files
from ..support_server import Loopback
from ..test_planted_files import FEW, OWN_MEMORY, SCRIPT

# Not importorskip: what ray takes for this machine's address is decided when it is imported.
pytestmark = pytest.mark.skipif(
    find_spec("ray") is None, reason="needs the extra ray: make test-extras installs it"
)


SMALL = {"object_store_memory": 80 * 2**20, "node_ip_address": "127.0.0.1"}

FRAGILE = '''
import os, signal
from pathlib import Path


class Fragile:
    """Keeps the last three records; ends its process the first time it meets a pool's sixth."""

    def __init__(self):
        self.kept = []

    def add(self, record):
        flag = Path(os.environ["FRAGILE_FLAG"])
        if os.environ["FRAGILE_HOME"] != str(os.getpid()) and record.position == 5:
            try:
                flag.touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        self.kept = [*self.kept, record][-3:]

    def retained(self):
        return [record.id for record in self.kept]

    def expose(self, query):
        return self.kept
'''


@pytest.fixture(scope="module", autouse=True)
def flag(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The file that appears when a process has ended itself."""
    expected = tmp_path_factory.mktemp("flags") / "ended"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Read when ray is imported: 127.0.0.1 means the loopback address and no other.
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("FRAGILE_FLAG", str(expected))
        patch.setenv("FRAGILE_HOME", str(os.getpid()))
        yield expected


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two machines of one worker each, as far as Ray knows, bound to the loopback address."""
    from ray.cluster_utils import Cluster

    machine = {"num_cpus": 1, **SMALL}
    result = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **machine})
    result.add_node(**machine)
    yield result
    result.shutdown()


# What another machine can import: work(context, index).
triple, divide, single, three = operator.mul, operator.truediv, partial(int, 1), partial(int, 3)


def contents(directory: Path) -> tuple[bytes, bytes, list[str]]:
    with closing(sqlite3.connect(directory / "run.sqlite")) as connection:
        return (
            (directory / "estimates.csv").read_bytes(),
            (directory / "manifest.json").read_bytes(),
            sorted(connection.iterdump()),
        )


def test_nobody_listens() -> None:
    with pytest.raises(RoutePrismError, match=r"no Ray cluster to join at '127\.0\.0\.1:9'"):
        list(ordered_map(triple, three, 3, ray="127.0.0.1:9"))


def test_results_come_in_order_and_errors_as_they_were_raised(cluster: Any) -> None:
    values = list(ordered_map(triple, three, 21, ray=cluster.address, batch=2))
    assert values == list(range(0, 63, 3))
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
        list(ordered_map(divide, single, 21, ray=cluster.address, batch=2))


def test_workers_execute_no_files_of_the_current_directory(cluster: Any, tmp_path: Path) -> None:
    """A class of this directory is found all the same."""
    (tmp_path / "own_memory.py").write_text(OWN_MEMORY)
    plant_files(tmp_path, last=True)
    command = [SCRIPT, "audit", "sample", "-p", "own_memory:Memory", *FEW, "--ray", cluster.address]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert list_executed(tmp_path) == []
    assert done.returncode == 0, done.stderr


def test_orders_are_the_same_on_a_cluster(cluster: Any, tmp_path: Path) -> None:
    for name, where in (("local", None), ("ray", cluster.address)):
        routeprism.explore_orders("sample", "focal", "recent:k=3", run=tmp_path / name, ray=where)
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


def test_lost_workers_pools_are_redone(
    cluster: Any, flag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First a process ends itself in the middle of a pool, then a whole machine goes."""
    (tmp_path / "fragile.py").write_text(FRAGILE)
    monkeypatch.syspath_prepend(tmp_path)
    from fragile import Fragile  # type: ignore[import-not-found]

    arguments = ("sample", "focal", "recent:k=3", Fragile)
    settings: dict[str, Any] = {"schedules": ["replay", "random:seed=7"], "resamples": 200}
    routeprism.audit(*arguments, run=tmp_path / "local", **settings)
    assert not flag.exists()

    (second,) = cluster.worker_nodes
    progress = []

    def lose_a_machine(done: int, total: int) -> None:
        progress.append(done)
        if done == 2:
            cluster.remove_node(second, allow_graceful=False)

    routeprism.audit(
        *arguments, run=tmp_path / "ray", ray=cluster.address, progress=lose_a_machine, **settings
    )
    assert flag.exists()
    assert progress == list(range(1, len(progress) + 1))
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


BUILDERS = """
import json, os, signal, urllib.request
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from routeprism.models import Reply
from routeprism.models.gateway import Line, open_endpoint
from routeprism.policies import Block, Client, Exposure
from routeprism.policies.memochat import MemoChat

HERE = Path(__file__).parent


def write(name, line):
    with (HERE / name).open("a") as file:
        file.write(f"{line}\\n")


def end_once(name):
    '''End this process, the first time that it is not the one of the tests.'''
    if os.environ["FRAGILE_HOME"] != str(os.getpid()):
        try:
            (HERE / name).touch(exist_ok=False)
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Scripted:
    '''Replies by rule, and writes down what it was asked; a local model that computes.'''

    log: str
    ends_at: int = 0
    settings: dict = field(default_factory=dict)
    name: str = "scripted"
    embedded: bool = False
    concurrency: int = 2

    def answer(self, ask):
        write(self.log, json.dumps([ask.text[-40:], ask.draw]))
        if self.ends_at and len((HERE / self.log).read_text().splitlines()) >= self.ends_at:
            end_once(f"{self.log}-ended")
        if ask.options:
            return Reply("abcd"[len(ask.text) % len(ask.options)])
        return Reply(json.dumps({"topic": "meals", "summary": f"{len(ask.text)} characters."}))


class FragileChat(MemoChat):
    '''Ends its process the first time a memory is complete, when all replies are paid for.'''

    def build(self, arrivals):
        memory = MemoChat.build(self, arrivals)
        end_once("chat-ended")
        return memory


@dataclass(frozen=True)
class NoteMemory:
    notes: tuple

    def retained(self):
        return self.notes

    def state(self):
        return list(self.notes)

    def expose(self, query):
        return Exposure(tuple(Block("note", note, frozenset((note,))) for note in self.notes))

    def snapshot(self):
        return list(self.notes)


@dataclass(frozen=True)
class Notes:
    '''Keeps the notes that a model wants to keep, and can be grown from a snapshot.'''

    model: Any
    consult: Any = field(default=None, compare=False, repr=False)
    name: ClassVar[str] = "notes"
    deterministic: ClassVar[bool] = False

    def consulting(self, consult):
        return replace(self, consult=consult)

    def build(self, arrivals):
        memory = NoteMemory(())
        for record in arrivals:
            memory = self.add(memory, record)
        return memory

    def add(self, memory, record):
        write("pids", os.getpid())
        reply = self.consult(f"Which of {memory.notes} to forget for {record.id}?")
        place = sum(map(ord, reply)) % 3
        return NoteMemory((*(n for at, n in enumerate(memory.notes) if at != place), record.id))

    def grow(self, arrivals, snapshot, record):
        return self.add(NoteMemory(tuple(snapshot)), record)

    def revive(self, arrivals, snapshot):
        return NoteMemory(tuple(snapshot))


@dataclass(frozen=True)
class Service:
    '''A memory system whose own client asks a model for each record, over HTTP.'''

    base_url: str
    gateway: Any = field(default=None, compare=False, repr=False)
    allowance: Any = field(default=None, compare=False, repr=False)
    name: ClassVar[str] = "service"
    client: ClassVar[Client] = Client(model="loopback", calls_per_add=1)

    def metered(self, allowance):
        return replace(self, allowance=allowance)

    def routed(self, gateway):
        return replace(self, gateway=gateway)

    def build(self, arrivals):
        line = Line(self.name, [(record.id, record.text) for record in arrivals], self.base_url)
        endpoint = open_endpoint(
            "loopback", line, gateway=self.gateway, allowance=self.allowance
        )
        notes = ()
        for record in arrivals:
            write("pids", os.getpid())
            message = {"role": "user", "content": f"Which of {notes} for {record.id}?"}
            body = json.dumps({"model": "loopback", "seed": 0, "messages": [message]}).encode()
            headers = {
                "Content-Type": "application/json",
                "Authorization": f"Bearer {endpoint.api_key}",
            }
            request = urllib.request.Request(
                f"{endpoint.base_url}/chat/completions", body, headers
            )
            with urllib.request.urlopen(request, timeout=120) as response:
                reply = json.load(response)["choices"][0]["message"]["content"]
            place = sum(map(ord, reply)) % 3
            notes = (*(n for at, n in enumerate(notes) if at != place), record.id)
        endpoint.close()
        return NoteMemory(notes)


class Costly:
    '''Makes one request of its own for each record, and keeps the last two.'''

    calls_per_add = 1

    def __init__(self):
        self.kept = []

    def add(self, record):
        write("adds", record.id)
        if len((HERE / "adds").read_text().splitlines()) >= 25:
            end_once("adds-ended")
        self.kept = [*self.kept, record.id][-2:]

    def retained(self):
        return self.kept

    def expose(self, query):
        return []

    def snapshot(self):
        return self.kept

    def revive(self, snapshot):
        self.kept = list(snapshot)
"""


@pytest.fixture
def builders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module above under a name of its own: workers keep what they imported."""
    name = f"builders_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(BUILDERS)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module(name)
    sys.modules.pop(name)


def count_lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_memories_that_ask_a_model_are_built_there_and_pay_for_no_reply_twice(
    cluster: Any, builders: Any, tmp_path: Path
) -> None:
    """The worker that completes the first memory is lost; every reply is in the one ledger here."""
    for name, where in (("local", None), ("ray", cluster.address)):
        audit = routeprism.audit(
            "sample",
            builders.FragileChat(words=200, model=builders.Scripted(f"{name}.log")),
            schedules=["replay"],
            resamples=100,
            run=tmp_path / name,
            ray=where,
        )
        assert bool(where) == any("is built on" in note for note in audit.notes)
    assert (tmp_path / "chat-ended").exists()
    requests = [sorted((tmp_path / f"{name}.log").read_text().splitlines()) for name in RUNS]
    assert requests[0] == requests[1] != []
    rows = [(tmp_path / name / "estimates.csv").read_bytes() for name in RUNS]
    assert rows[0] == rows[1]


RUNS = ("local", "ray")


def test_orders_of_a_memory_that_a_model_builds_survive_a_killed_worker(
    cluster: Any, builders: Any, tmp_path: Path
) -> None:
    """One of the two workers is killed by its process id; the server counts the requests.

    A reply is stored before the worker gets it, so not even the request under way is repeated.
    """
    totals = {}
    for name, where in (("local", None), ("ray", cluster.address)):
        with Loopback(latency=0.005) as server:
            model = OpenAI("loopback", base_url=server.url, seed=0)
            (tmp_path / "pids").write_text("")
            if where:
                server.hold(totals["local"] // 3)
            stop = threading.Event()
            killer = threading.Thread(
                target=kill_builder, args=(tmp_path / "pids", server, totals.get("local"), stop)
            )
            killer.start()
            routeprism.explore_orders(
                "sample",
                builders.Notes(model),
                arrivals=["jitter:w=2"],
                orders=2,
                run=tmp_path / name,
                ray=where,
            )
            stop.set()
            killer.join()
            totals[name] = server.read_counts()["total"]
    assert totals["ray"] == totals["local"] > 100
    assert len({*(tmp_path / "pids").read_text().split()}) >= 2  # several processes built
    assert (tmp_path / "killed").exists()
    rows = [(tmp_path / name / "estimates.csv").read_bytes() for name in RUNS]
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in RUNS]
    assert rows[0] == rows[1]
    assert manifests[0] == manifests[1]


def test_clients_of_memory_systems_ask_through_the_one_proxy_from_every_worker(
    cluster: Any, builders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is killed by its process id: its builds get the stored replies of their draws.

    The request that was under way when it was killed may be answered for it, and is stored.
    """
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    totals: dict[str, int] = {}
    for name, where in (("local", None), ("ray", cluster.address)):
        with Loopback(latency=0.005) as server:
            (tmp_path / "pids").write_text("")
            if where:
                server.hold(totals["local"] // 3)
            stop = threading.Event()
            killer = threading.Thread(
                target=kill_builder, args=(tmp_path / "pids", server, totals.get("local"), stop)
            )
            killer.start()
            result = routeprism.audit(
                "sample",
                builders.Service(server.url),
                schedules=["replay"],
                resamples=100,
                max_calls=100_000,
                run=tmp_path / name,
                ray=where,
            )
            stop.set()
            killer.join()
            totals[name] = server.read_counts()["total"]
        assert not any("built in one process" in note for note in result.notes)
    assert (tmp_path / "killed").exists()
    assert totals["ray"] == totals["local"] > 100
    assert len({*(tmp_path / "pids").read_text().split()}) >= 2
    rows = [(tmp_path / name / "estimates.csv").read_bytes() for name in RUNS]
    assert rows[0] == rows[1]


def kill_builder(pids: Path, server: Any, total: int | None, stop: threading.Event) -> None:
    """Kill a worker that builds, once a third of the requests has come in.

    The server answers no more than these until then, so that the work cannot end before.
    """
    while total is not None and not stop.wait(0.01):
        builders = {*map(int, pids.read_text().split())} - {os.getpid()}
        if server.read_counts()["total"] > total // 3 and builders:
            os.kill(min(builders), signal.SIGKILL)
            pids.with_name("killed").touch()
            server.release()
            return


def test_local_models_answer_there_and_only_a_lost_answer_is_repeated(
    cluster: Any, builders: Any, tmp_path: Path
) -> None:
    """The worker that gives the twentieth answer ends before the answer arrives here."""
    results = {}
    for name, where in (("local", None), ("ray", cluster.address)):
        model = builders.Scripted(f"{name}.log", ends_at=20)
        results[name] = routeprism.audit(
            "sample",
            "recent:k=2",
            schedules=["replay"],
            models=[model],
            resamples=100,
            run=tmp_path / name,
            ray=where,
        )
    assert (tmp_path / "ray.log-ended").exists()
    assert count_lines(tmp_path / "ray.log") == count_lines(tmp_path / "local.log") + 1
    requests = [{*(tmp_path / f"{name}.log").read_text().splitlines()} for name in RUNS]
    assert requests[0] == requests[1]
    assert results["ray"].rows == results["local"].rows
    rows = [(tmp_path / name / "estimates.csv").read_bytes() for name in RUNS]
    assert rows[0] == rows[1]


def test_adds_of_a_lost_worker_are_not_paid_for_again(
    cluster: Any, builders: Any, tmp_path: Path
) -> None:
    """The process that makes the 25th request ends; what its memories had left is kept here."""
    values: dict[str, Any] = {"arrivals": ["jitter:w=2"], "orders": 2, "max_calls": 2_000}
    alone = routeprism.explore_orders("sample", builders.Costly, **values)
    calls = count_lines(tmp_path / "adds")
    (tmp_path / "adds").unlink()
    exploration = routeprism.explore_orders(
        "sample", builders.Costly, **values, ray=cluster.address
    )
    assert (tmp_path / "adds-ended").exists()
    # One request more than without a loss: the one that was under way. If the worker ended while
    # it checked what the orders of a pool share, it builds these few orders in one go again.
    longest = max(len(case.pool) for case in routeprism.load_benchmark("sample").cases)
    repeated = count_lines(tmp_path / "adds") - calls
    assert 1 <= repeated <= 1 + (1 + CHECKED_ORDERS) * longest < calls // 20
    assert exploration.rows == alone.rows
    assert exploration.notes == alone.notes


def test_a_limit_ends_an_audit_on_a_cluster(cluster: Any, builders: Any, tmp_path: Path) -> None:
    """The adds of all workers are counted here, before they are made."""
    (tmp_path / "adds-ended").touch()  # no process ends in this test
    with pytest.raises(LimitError, match="the limit of 40 calls"):
        routeprism.audit(
            "sample",
            builders.Costly,
            schedules=["replay"],
            max_calls=40,
            ray=cluster.address,
            run=tmp_path / "run",
        )
    assert 0 < count_lines(tmp_path / "adds") <= 40
