"""The adapter kit: good adapters pass, and six broken ones fail where they are broken."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import tempfile
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from routeprism import Block, Exposure, Record
from routeprism.policies import Event, Policy, as_policy, make_policy
from routeprism.routes.conformance import check_adapter


class Adapter:
    """A good one: keeps the three newest records. The broken ones change one thing."""

    name = "adapter"

    def build(self, arrivals: Sequence[Record]) -> Any:
        return Records(arrivals)


class Records:
    def __init__(self, arrivals: Sequence[Record]) -> None:
        self.arrivals = arrivals
        self.kept = list(arrivals)[-3:]

    def retained(self) -> frozenset[str]:
        return frozenset(record.id for record in self.kept)

    def state(self) -> Any:
        return [record.id for record in self.kept]

    def expose(self, query: str) -> Exposure:
        return Exposure(tuple(Block("record", r.text, frozenset({r.id})) for r in self.kept))

    def events(self) -> Sequence[Event]:
        log = [Event("add", r.id, r.id, at) for at, r in enumerate(self.arrivals)]
        for at, record in enumerate(self.arrivals[3:], start=3):
            log.append(Event("evict", self.arrivals[at - 3].id, record.id, at))
        return log


def failed(policy: Policy | Any) -> dict[str, tuple[str, str]]:
    checks = check_adapter(as_policy(policy))
    return {check.name: (check.message, check.fix) for check in checks if check.outcome == "failed"}


def adapter(memory: Callable[[Sequence[Record]], Any]) -> Any:
    return type("Broken", (Adapter,), {"build": lambda self, arrivals: memory(arrivals)})()


# --- six broken ones ---------------------------------------------------------------------------


class LeaksState(Records):
    """All builds share one list."""

    shared: list[Record] = []  # noqa: RUF012 (that is what is broken)

    def __init__(self, arrivals: Sequence[Record]) -> None:
        super().__init__(arrivals)
        self.shared.extend(arrivals)
        self.kept = self.shared


class DropsProvenance(Records):
    """Its summary does not say where it came from."""

    def expose(self, query: str) -> Exposure:
        return Exposure((Block("summary", "They moved.", frozenset()),))


class InventsIds(Records):
    """It names its own ids instead of the records'."""

    def retained(self) -> frozenset[str]:
        return frozenset(f"memory-{at}" for at, _ in enumerate(self.kept))


class Peeks(Records):
    """It remembers what it was asked."""

    def __init__(self, arrivals: Sequence[Record]) -> None:
        super().__init__(arrivals)
        self.asked: list[str] = []

    def state(self) -> Any:
        return [super().state(), self.asked]

    def expose(self, query: str) -> Exposure:
        self.asked.append(query)
        return super().expose(query)


class Chancy(Records):
    """No two builds are the same."""

    number = itertools.count()

    def __init__(self, arrivals: Sequence[Record]) -> None:
        super().__init__(arrivals)
        self.mine = next(self.number)

    def state(self) -> Any:
        return [super().state(), self.mine]


class StaysBehind(Records):
    """Its files are never removed."""

    def __init__(self, arrivals: Sequence[Record]) -> None:
        super().__init__(arrivals)
        Path(tempfile.mkdtemp(prefix="store-")).joinpath("notes").write_text("kept for ever")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "check", "message", "fix"),
    [
        (LeaksState, "users", "leak: the record 'ann-000' of user 'ann' is shown to", "namespace"),
        (DropsProvenance, "provenance", "shows 'They moved.' without sources", "every Block the"),
        (InventsIds, "ids", "names 'memory-0', which never arrived", "carry record.id through"),
        (Peeks, "no question leakage", "changed when questions were asked", "read alone"),
        (Chancy, "determinism", "in the same order differ", "declare deterministic = False"),
        (StaysBehind, "clean-up", "stayed in the temporary directory", "in close()"),
    ],
)
def test_a_broken_adapter_fails_where_it_is_broken(
    broken: type[Records], check: str, message: str, fix: str
) -> None:
    LeaksState.shared.clear()
    result = failed(adapter(broken))
    assert list(result) == [check]
    assert message in result[check][0]
    assert fix in result[check][1]


# --- other faults ------------------------------------------------------------------------------


def test_a_thread_that_is_not_ended() -> None:
    stop = threading.Event()

    class Threaded(Records):
        def __init__(self, arrivals: Sequence[Record]) -> None:
            super().__init__(arrivals)
            threading.Thread(target=stop.wait, name="poller", daemon=True).start()

    try:
        assert failed(adapter(Threaded))["clean-up"][0] == "the thread 'poller' is still running"
    finally:
        stop.set()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="child processes are listed on Linux alone")
def test_a_thread_that_ends_during_a_scan_hides_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of the caller's is no process of the memory's, whatever the first scan missed."""
    read, missed = Path.read_text, []

    def read_text(path: Path, *arguments: Any, **options: Any) -> str:
        if path.name == "children" and not missed:
            missed.append(path)
            raise ProcessLookupError
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", read_text)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        assert failed(Adapter()) == {}
    finally:
        child.communicate(b"\n")
    assert len(missed) == 1


@pytest.mark.slow
def test_an_open_file_is_found() -> None:
    opened = []

    class Open(Records):
        def __init__(self, arrivals: Sequence[Record]) -> None:
            super().__init__(arrivals)
            opened.append(Path(__file__).open())  # noqa: SIM115 (that is what is broken)

    try:
        text, _ = failed(adapter(Open))["clean-up"]
        assert text == "1 files or connections are still open"
    finally:
        for file in opened:
            file.close()


@pytest.mark.slow
def test_what_is_closed_in_time_is_fine() -> None:
    class Closing(Records):
        def __init__(self, arrivals: Sequence[Record]) -> None:
            super().__init__(arrivals)
            self.place = tempfile.TemporaryDirectory()

        def close(self) -> None:
            self.place.cleanup()

    assert failed(adapter(Closing)) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "message"),
    [
        ([Event("add", "moving-0", "moving-1", 0)], "arrival 0 was 'moving-1'"),
        ([Event("evict", "moving-4", "moving-0", 0)], "to 'moving-4', which had not arrived"),
        ([Event("add", "moving-4", "moving-4", 4)], "'moving-0' arrived, is not retained, and no"),
    ],
)
def test_an_event_log_that_cannot_be_right(events: list[Event], message: str) -> None:
    broken = type("Logging", (Records,), {"events": lambda self: events})
    assert message in failed(adapter(broken))["traceability"][0]


@pytest.mark.slow
def test_declared_chance_is_no_fault_and_is_counted() -> None:
    policy = adapter(Chancy)
    type(policy).deterministic = False
    checks = {check.name: check for check in check_adapter(policy)}
    assert checks["determinism"].outcome == "passed"
    message = checks["determinism"].message
    assert message.startswith("declared nondeterministic: 3 of 3 builds differ")


def test_what_rests_on_a_failed_check_is_not_tried() -> None:
    checks = {c.name: c for c in check_adapter(adapter(lambda arrivals: object()))}
    assert checks["contract"].message == "build gave object"
    assert {c.outcome for name, c in checks.items() if name != "contract"} == {"not tried"}


def test_an_adapter_that_wants_the_question() -> None:
    class Curious(Adapter):
        def build(self, arrivals: Sequence[Record], question: str) -> Any:  # type: ignore[override]
            return Records(arrivals)

    policy: Any = Curious()
    (contract, *_) = check_adapter(policy)
    assert "construction receives the arriving records and nothing else" in contract.message


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["recent:k=2", "focal", "lexical", "raw", "memochat"])
def test_the_built_in_policies_pass(spec: str) -> None:
    assert failed(make_policy(spec)) == {}


# --- the command -------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_says_what_is_wrong_and_exits_with_one(
    cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("my_adapters")
    vars(module).update(Good=Adapter, Bad=type(adapter(DropsProvenance)))
    monkeypatch.setitem(sys.modules, "my_adapters", module)
    good = cli("check-adapter", "my_adapters:Good")
    assert good.code == 0
    assert good.out.splitlines()[-1] == "adapter can be audited"
    bad = cli("check-adapter", "my_adapters:Bad")
    assert bad.code == 1
    assert "FAILED provenance: expose('Where do I live?') shows 'They moved.'" in bad.out
    assert "to fix it: give every Block the ids of all records its text came from" in bad.out
    document = json.loads(cli("check-adapter", "my_adapters:Bad", "--json").out)
    assert [c["name"] for c in document["checks"] if c["outcome"] == "failed"] == ["provenance"]
    assert cli("check-adapter", "no_such_module:Name").code == 2


@pytest.mark.slow
def test_a_policy_that_learns_is_fitted_first() -> None:
    outcomes = {check.outcome for check in check_adapter(make_policy("streaming"))}
    assert outcomes == {"passed", "not observed"}
