"""A Ray cluster gives the bytes that one process gives, also when a worker is lost on the way."""

from __future__ import annotations

import operator
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import RoutePrismError
from routeprism.workers import ordered_map

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
    made = tmp_path_factory.mktemp("flags") / "ended"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        # Read when ray is imported: 127.0.0.1 means the loopback address and no other.
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        patch.setenv("FRAGILE_FLAG", str(made))
        patch.setenv("FRAGILE_HOME", str(os.getpid()))
        yield made


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two machines of one worker each, as far as Ray knows, bound to the loopback address."""
    from ray.cluster_utils import Cluster

    machine = {"num_cpus": 1, **SMALL}
    made = Cluster(initialize_head=True, head_node_args={"include_dashboard": False, **machine})
    made.add_node(**machine)
    yield made
    made.shutdown()


# What another machine can import: work(context, index).
triple, divide, one, three = operator.mul, operator.truediv, partial(int, 1), partial(int, 3)


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
    found = list(ordered_map(triple, three, 21, ray=cluster.address, batch=2))
    assert found == list(range(0, 63, 3))
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
        list(ordered_map(divide, one, 21, ray=cluster.address, batch=2))


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

    asked = ("sample", "focal", "recent:k=3", Fragile)
    settings: dict[str, Any] = {"schedules": ["replay", "random:seed=7"], "resamples": 200}
    routeprism.audit(*asked, run=tmp_path / "local", **settings)
    assert not flag.exists()

    (second,) = cluster.worker_nodes
    progress = []

    def lose_a_machine(done: int, total: int) -> None:
        progress.append(done)
        if done == 2:
            cluster.remove_node(second, allow_graceful=False)

    routeprism.audit(
        *asked, run=tmp_path / "ray", ray=cluster.address, progress=lose_a_machine, **settings
    )
    assert flag.exists()
    assert progress == list(range(1, len(progress) + 1))
    assert contents(tmp_path / "ray") == contents(tmp_path / "local")


BUILDERS = '''
import json, os, signal
from dataclasses import dataclass, field
from pathlib import Path

from routeprism.models import Reply
from routeprism.policies.memochat import MemoChat


@dataclass(frozen=True)
class Scripted:
    """Replies by rule, and remembers what it was asked."""

    asks: list = field(default_factory=list, compare=False)
    settings: dict = field(default_factory=dict)
    name: str = "scripted"
    embedded: bool = False
    concurrency: int = 2

    def answer(self, ask):
        self.asks.append(ask)
        summary = f"On food, {len(ask.text)} characters."
        return Reply(json.dumps({"topic": "meals", "summary": summary}))


class FragileChat(MemoChat):
    """Ends its process the first time a memory is complete, when all replies are paid for."""

    def build(self, arrivals):
        memory = MemoChat.build(self, arrivals)
        if os.environ["FRAGILE_HOME"] != str(os.getpid()):
            try:
                Path(os.environ["FRAGILE_FLAG"] + "-chat").touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return memory
'''


def test_memories_that_ask_a_model_are_built_there_and_pay_for_no_reply_twice(
    cluster: Any, flag: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that completes the first memory is lost; every reply is in the one ledger here."""
    (tmp_path / "builders.py").write_text(BUILDERS)
    monkeypatch.syspath_prepend(tmp_path)
    from builders import FragileChat, Scripted  # type: ignore[import-not-found]

    asked = {}
    for name, where in (("local", None), ("ray", cluster.address)):
        model = Scripted()
        found = routeprism.audit(
            "sample",
            FragileChat(words=200, model=model),
            schedules=["replay"],
            resamples=100,
            run=tmp_path / name,
            ray=where,
        )
        asked[name] = sorted(ask.text for ask in model.asks)
        assert bool(where) == any("is built on" in note for note in found.notes)
    assert Path(f"{flag}-chat").exists()
    assert asked["ray"] == asked["local"] != []
    rows = [(tmp_path / name / "estimates.csv").read_bytes() for name in asked]
    assert rows[0] == rows[1]
