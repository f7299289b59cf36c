"""Spending: a dry run makes no call, limits stop building and answering, and nothing is lost."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

import routeprism
from routeprism.errors import LimitError, SpecError
from routeprism.models import Allowance, Ask, Reply, Usage
from routeprism.policies import make_policy
from routeprism.records import load_benchmark

from .counting_server import Counting

SAMPLE = load_benchmark("sample", None)
SMALL = replace(SAMPLE, cases=SAMPLE.cases[:4])
RECORDS = sum(len(case.pool) for case in SMALL.cases)
QUESTIONS = sum(len(case.questions) for case in SMALL.cases)


@pytest.fixture
def counting() -> Iterator[Any]:
    server = Counting()
    yield server
    server.stop()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")


def own_data(directory: Path) -> Path:
    """Write four pools of the sample as somebody's own data."""
    directory.mkdir()
    records = [
        {"user": case.pool.user, "id": record.id, "text": record.text}
        for case in SMALL.cases
        for record in case.pool.records
    ]
    questions = [
        {
            "user": case.pool.user,
            "id": question.id,
            "text": question.text,
            "options": list(question.options),
            "gold": question.gold,
            "support": sorted(question.labels[SAMPLE.labels[0]]),
        }
        for case in SMALL.cases
        for question in case.questions
    ]
    for name, entries in (("records", records), ("questions", questions)):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        (directory / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    return directory


OWN = '''
import urllib.request

class Calling:
    """Calls a model for every record, in a way that nobody outside can see."""

    def __init__(self):
        self.held = []

    def add(self, record):
        body = b'{"messages": []}'
        request = urllib.request.Request("ADDRESS/v1/chat/completions", body, method="POST")
        urllib.request.urlopen(request).read()
        self.held.append(record)

    def retained(self):
        return [record.id for record in self.held]

    def expose(self, query):
        return self.held[-3:]

class Declaring(Calling):
    calls_per_add = 1

class Connecting(Calling):
    def __init__(self, k=3):
        super().__init__()
        self.add(k)

class Offline:
    offline = True

    def __init__(self):
        self.held = []

    def add(self, record):
        self.held.append(record)

    def retained(self):
        return [record.id for record in self.held[-3:]]

    def expose(self, query):
        return self.held[-3:]
'''


@pytest.fixture
def own(tmp_path: Path, counting: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name a module of somebody's own whose memories call the server."""
    name = f"calling_{counting.server_address[1]}"
    source = OWN.replace("ADDRESS", counting.address)
    (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    return name


def policies(counting: Any, own: str) -> dict[str, str]:
    """Give a policy of every kind that can make requests, by what it is called here."""
    words = f"import urllib.request as u; u.urlopen('{counting.address}/x', b'')"
    script = f'{sys.executable} -c "{words}"'
    return {
        "http": f"http:url={counting.address}",
        "command": f"command:run={script}",
        "own": f"{own}:Calling",
        "declared": f"{own}:Declaring",
        "comparator": f"source-order({own}:Calling)",
        "memochat": "memochat:words=5,model=openai:m",
        "amem": "amem:neighbours=identity,model=openai:m",
    }


KINDS = ("http", "command", "own", "declared", "comparator", "memochat", "amem")


@pytest.fixture
def kind(request: pytest.FixtureRequest) -> str:
    """Name a kind of policy, unless the packages that build it are missing."""
    if request.param == "amem":
        for package in ("chromadb", "wordllama"):
            pytest.importorskip(package, reason="pip install 'routeprism[amem]'")
    return str(request.param)


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_a_dry_run_of_an_audit_makes_no_request(
    kind: str, counting: Any, own: str, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    data = own_data(tmp_path / "data")
    spec = policies(counting, own)[kind]
    endpoint = ("--base-url", f"{counting.address}/v1")
    for more in (
        (),
        ("--model", "openai:m", "--builds", "2", "--comparators", "--reuse"),
    ):
        done = cli("audit", data, "-p", spec, *endpoint, *more, "--dry-run", "--json")
        assert done.code == 0, done.err
        assert json.loads(done.out)
        assert done.left == ()
    assert (counting.connections, counting.requests) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_a_dry_run_of_any_other_command_makes_no_request(
    kind: str, counting: Any, own: str, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    data = own_data(tmp_path / "data")
    spec = policies(counting, own)[kind]
    endpoint = ("--base-url", f"{counting.address}/v1")
    calls: list[Sequence[str | Path]] = [
        ("restore", data, "-p", spec, "--model", "openai:m", *endpoint),
        ("restore", data, "-p", spec),
        ("check-adapter", spec),
        ("screen", data, "--pass", "a=openai:m", *endpoint),
        ("support", data, "--pass", "a=openai:m", *endpoint),
        ("reproduce", "--run", "--model", f"openai:m,base_url={counting.address}/v1"),
    ]
    if kind not in ("memochat", "amem"):  # whose every order would ask
        calls.append(("orders", data, "-p", spec, "--orders", "5", "--worst", "J"))
    if kind == "memochat":
        calls.append(
            ("curve", data, "-p", "memochat:model=openai:m", "--budget", "words=5,9", *endpoint)
        )
    if kind == "http":
        calls.append(("curve", data, "-p", spec, "--budget", "timeout=5,9"))
    for call in calls:
        done = cli(*call, "--dry-run")
        assert done.code == 0, (call, done.err)
        assert done.left == ()
    assert (counting.connections, counting.requests) == (0, [])


@pytest.mark.slow
def test_a_dry_run_makes_no_object_of_a_memory_class(
    counting: Any, own: str, cli: Callable[..., Any]
) -> None:
    """Its `__init__` may connect: with and without parameters, behind a wrapper, and partial."""
    for spec in (f"{own}:Connecting", f"{own}:Connecting:k=2", f"queue({own}:Connecting:k=2)"):
        for schedule in ("replay", "overlap:k=2"):
            done = cli("audit", "sample", "-p", spec, "-s", schedule, "--dry-run")
            assert done.code == 0, done.err
        assert cli("check-adapter", spec, "--dry-run").code == 0
    configured = partial(sys.modules[own].Connecting, k=2)
    assert routeprism.audit(SMALL, configured, dry_run=True).costs
    assert counting.connections == 0


def test_enlarging_a_budget_of_a_memory_that_costs_money_builds_nothing_again(
    counting: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`remedy` doubles k, which is a default of the class: it still declares what it costs."""
    source = OWN.replace("ADDRESS", counting.address) + (
        "\nclass Newest(Declaring):\n"
        "    def __init__(self, k=3):\n"
        "        super().__init__()\n"
        "        self.k = k\n"
        "    def expose(self, query):\n"
        "        return self.held[-self.k:]\n"
    )
    (tmp_path / "newest_calls.py").write_text(source, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    costs = routeprism.remedy(SMALL, "newest_calls:Newest", dry_run=True).costs
    assert costs["building newest_calls:Newest:k=6"].calls == 2 * RECORDS
    costs_of_two = routeprism.remedy(SMALL, "newest_calls:Newest:k=2", dry_run=True).costs
    assert "building newest_calls:Newest:k=4" in costs_of_two
    routeprism.remedy(SMALL, "newest_calls:Newest", resamples=100)
    most = sum(cost.calls or 0 for cost in costs.values())  # `hold` drops writes that are late
    assert most - 2 * RECORDS < counting.model_calls() <= most


@pytest.mark.slow
def test_a_dry_run_counts_a_judge_and_asks_none(counting: Any, cli: Callable[..., Any]) -> None:
    call = ("--model", "openai:m", "--judge", "openai:j", "--base-url", f"{counting.address}/v1")
    done = cli("audit", "sample", "-p", "focal", *call, "--dry-run")
    assert done.code == 0 and "openai:m: 330 calls" in done.out
    assert counting.connections == 0


def test_a_dry_run_needs_no_model(cli: Callable[..., Any]) -> None:
    done = cli("audit", "sample", "-p", "focal", "--dry-run")
    assert (done.code, done.out) == (0, "No model and no memory system would be asked: 0 calls\n")
    assert cli("audit", "sample", "-p", "focal", "--dry-run", "--json").out == "{}\n"
    assert "each model: 1,308 calls" in cli("restore", "sample", "-p", "focal", "--dry-run").out


def test_an_audit_asks_as_often_as_its_dry_run_says(
    counting: Any, own: str, tmp_path: Path
) -> None:
    """Own classes are built once more on the first pool, and that is counted, too."""
    spec = f"{own}:Declaring"
    (cost,) = routeprism.audit(SMALL, spec, dry_run=True).costs.values()
    assert cost.estimated and counting.connections == 0
    assert cost.calls is not None and cost.calls >= 2 * RECORDS
    assert "as declared" in cost.note
    routeprism.audit(SMALL, spec, run=tmp_path / "run", resamples=100)
    assert counting.model_calls() == cost.calls


def test_what_nobody_can_know_is_said_not_guessed(own: str) -> None:
    (cost,) = routeprism.audit(SMALL, f"{own}:Calling", dry_run=True).costs.values()
    assert (cost.calls, cost.input_tokens) == (None, None)
    assert "an unknown number of calls" in str(cost) and "calls_per_add = N" in str(cost)


@pytest.mark.slow
def test_a_dry_run_of_restoration_does_not_guess_which_pairs_can_be_restored(
    counting: Any, own: str, tmp_path: Path
) -> None:
    """A stand-in loses no record; the memory itself shows the last three of four or more."""
    settings = {"models": ["openai:m"], "base_url": f"{counting.address}/v1", "resamples": 100}
    for spec in (f"{own}:Declaring", f"{own}:Calling"):
        cost = routeprism.restore(SMALL, spec, dry_run=True, **settings).costs["openai:m"]
        assert (cost.calls, cost.input_tokens, cost.cost) == (None, None, None)
        assert cost.estimated
        assert f"which of {QUESTIONS} pairs can be restored is not known" in cost.note
        assert counting.connections == 0
    exact = routeprism.restore(SMALL, f"{own}:Offline", dry_run=True, **settings).costs["openai:m"]
    assert exact.calls and not exact.estimated
    routeprism.restore(SMALL, f"{own}:Offline", run=tmp_path / "run", **settings)
    assert counting.model_calls() == exact.calls


@pytest.mark.slow
def test_answers_about_a_memory_that_a_model_builds_are_an_estimate(
    counting: Any, tmp_path: Path
) -> None:
    """Until the model has built it, nobody knows what the memory shows; afterwards it is known."""
    spec = "memochat:words=5,model=openai:m"
    settings: dict[str, Any] = {
        "models": ["openai:n"],
        "base_url": f"{counting.address}/v1",
        "resamples": 100,
        "run": tmp_path / "run",
    }
    costs = routeprism.audit(SMALL, spec, dry_run=True, **settings).costs
    built, cost = costs[f"openai:m (building {spec})"].calls, costs["openai:n"]
    assert (cost.calls, cost.estimated) == (2 * QUESTIONS, True)
    assert f"what {spec} shows depends on replies that are missing" in cost.note
    restored = routeprism.restore(
        SMALL, spec, dry_run=True, **{**settings, "run": tmp_path / "restored"}
    )
    assert restored.costs["openai:n"].calls is None and counting.connections == 0
    with pytest.raises(LimitError):
        routeprism.audit(SMALL, spec, max_calls=built, **settings)
    cost = routeprism.audit(SMALL, spec, dry_run=True, **settings).costs["openai:n"]
    assert (cost.calls, cost.estimated, cost.note) == (2 * QUESTIONS, False, "")


def test_a_memory_that_is_offline_is_priced_exactly(counting: Any, own: str) -> None:
    endpoint = f"{counting.address}/v1"
    settings = {"models": ["openai:m"], "base_url": endpoint, "resamples": 100}
    (cost,) = routeprism.audit(SMALL, f"{own}:Offline", dry_run=True, **settings).costs.values()
    assert not cost.estimated and counting.connections == 0
    (same,) = routeprism.audit(SMALL, "recent:k=3", dry_run=True, **settings).costs.values()
    assert same.calls == cost.calls == 2 * QUESTIONS


def test_measuring_builds_one_pool_and_only_if_it_is_allowed(counting: Any, own: str) -> None:
    settings = {"models": ["openai:m"], "base_url": f"{counting.address}/v1", "dry_run": True}
    spec = f"{own}:Calling"
    whole = routeprism.audit(SMALL, spec, **settings).costs["openai:m"]
    assert "the whole pool" in whole.note
    entry = routeprism.audit(SMALL, spec, measure=True, **settings).costs["openai:m"]
    assert counting.model_calls() == len(SMALL.cases[0].pool)
    assert entry.input_tokens < whole.input_tokens
    assert "as on one pool" in entry.note


def test_measuring_without_a_dry_run_is_refused(cli: Callable[..., Any]) -> None:
    done = cli("audit", "sample", "-p", "focal", "--measure")
    assert done.code == 2 and "measure applies to a dry run" in done.err


def contents(run: Path) -> dict[str, Any]:
    """Give a run's files, its store as statements."""
    with closing(sqlite3.connect(run / "run.sqlite")) as store:
        dumped = list(store.iterdump())
    files = {path.name: path.read_bytes() for path in run.iterdir() if "sqlite" not in path.name}
    return {**files, "store": dumped}


def test_a_dry_run_leaves_a_run_as_it_was(counting: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    settings = {"models": ["openai:m"], "base_url": f"{counting.address}/v1", "resamples": 100}
    routeprism.audit(SMALL, "focal", run=run, **settings)
    before = contents(run)
    audit = routeprism.audit(SMALL, "focal", run=run, dry_run=True, **settings)
    (cost,) = audit.costs.values()
    assert (cost.calls, cost.kept) == (0, 2 * QUESTIONS)
    assert contents(run) == before


# --- limits ----------------------------------------------------------------------------------


def answers(run: Path) -> int:
    with closing(sqlite3.connect(run / "run.sqlite")) as store:
        return int(store.execute("SELECT count(*) FROM answers").fetchone()[0])


@pytest.mark.slow
def test_a_limit_stops_answers_and_the_same_command_goes_on(
    counting: Any, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    data, run = own_data(tmp_path / "data"), tmp_path / "run"
    call = ("audit", data, "-p", "focal", "--model", "openai:m", "--run", run, "--resamples", "100")
    call = (*call, "--base-url", f"{counting.address}/v1", "--quiet")
    done = cli(*call, "--max-calls", "7")
    assert done.code == 3
    assert f"7 of {2 * QUESTIONS} answers of openai:m are in the run" in done.err
    assert done.err.count("\n") == 1
    assert counting.model_calls() == answers(run) == 7
    assert json.loads((run / "manifest.json").read_text())["status"] != "complete"
    while (done := cli(*call, "--max-calls", "9")).code == 3:
        assert counting.model_calls() == answers(run)
    assert done.code == 0
    assert counting.model_calls() == answers(run) == 2 * QUESTIONS
    whole = tmp_path / "whole"
    assert cli(*call[:6], *call[6:7], whole, *call[8:]).code == 0
    assert (run / "estimates.csv").read_bytes() == (whole / "estimates.csv").read_bytes()


@pytest.mark.slow
def test_a_limit_stops_building_and_the_same_command_goes_on(
    counting: Any, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    data, run = own_data(tmp_path / "data"), tmp_path / "run"
    call = ("audit", data, "-p", "memochat:words=5,model=openai:m", "--run", run)
    call = (*call, "--base-url", f"{counting.address}/v1", "--resamples", "100", "--quiet")
    (cost,) = json.loads(cli(*call, "--dry-run", "--json").out).values()
    done = cli(*call, "--max-calls", "5")
    assert done.code == 3 and "while memochat" in done.err
    assert counting.model_calls() == answers(run) == 5
    assert cli(*call).code == 0
    assert counting.model_calls() == answers(run) == cost["calls"]


def test_one_limit_holds_for_building_and_answering_together(counting: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "models": ["openai:m"],
        "base_url": f"{counting.address}/v1",
        "run": tmp_path / "run",
        "resamples": 100,
    }
    spec = "memochat:words=5,model=openai:m"
    costs = routeprism.audit(SMALL, spec, dry_run=True, **settings).costs
    built = costs["openai:m (building memochat:words=5,model=openai:m)"].calls
    assert built
    with pytest.raises(LimitError, match="3 of"):
        routeprism.audit(SMALL, spec, max_calls=built + 3, **settings)
    assert counting.model_calls() == built + 3


def test_a_limit_holds_for_a_memory_that_declares_its_calls(
    counting: Any, own: str, tmp_path: Path
) -> None:
    spec, run = f"{own}:Declaring", tmp_path / "run"
    (cost,) = routeprism.audit(SMALL, spec, dry_run=True).costs.values()
    with pytest.raises(LimitError, match="while memories were built"):
        routeprism.audit(SMALL, spec, run=run, resamples=100, max_calls=20)
    assert 0 < counting.model_calls() <= 20
    routeprism.audit(SMALL, spec, run=run, resamples=100)
    assert counting.model_calls() == cost.calls  # routes that were built are not built again


@pytest.mark.slow
def test_a_limit_that_cannot_hold_is_said(own: str, counting: Any) -> None:
    audit = routeprism.audit(SMALL, f"{own}:Calling", resamples=100, max_calls=1)
    assert any("The limits do not include what" in note for note in audit.notes)


@pytest.mark.parametrize("command", ["screen", "support"])
def test_a_limit_stops_a_pass(
    command: str, counting: Any, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    data, run = own_data(tmp_path / "data"), tmp_path / "run"
    call = (command, data, "--pass", "a=openai:m", "--base-url", f"{counting.address}/v1")
    done = cli(*call, "--run", run, "--resamples", "100", "--max-calls", "3", "--quiet")
    assert done.code == 3, done.err
    assert counting.model_calls() == answers(run) == 3
    assert cli(*call, "--run", run, "--resamples", "100", "--quiet").code == 0
    assert counting.model_calls() == QUESTIONS


@pytest.mark.slow
def test_a_curve_continues_what_a_limit_stopped(counting: Any, tmp_path: Path) -> None:
    call: dict[str, Any] = {
        "budgets": "words=5,9",
        "base_url": f"{counting.address}/v1",
        "run": tmp_path / "run",
        "resamples": 100,
    }
    spec = "memochat:model=openai:m"
    costs = routeprism.curve(SMALL, spec, dry_run=True, **call).costs
    total = sum(cost.calls or 0 for cost in costs.values())
    assert counting.connections == 0 and total > 6
    with pytest.raises(LimitError):
        routeprism.curve(SMALL, spec, max_calls=6, **call)
    assert counting.model_calls() == 6
    routeprism.curve(SMALL, spec, **call)
    assert counting.model_calls() == total


PRICED = "openai:m,price_in=1000,price_out=10000,max_tokens=100"
"""A call's output costs 1 at most: 100 tokens."""


def test_a_limit_on_money_is_never_passed(counting: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"base_url": f"{counting.address}/v1", "run": tmp_path / "run"}
    with pytest.raises(LimitError, match=r"max_cost"):
        routeprism.audit(SMALL, "focal", models=[PRICED], resamples=100, max_cost=9.0, **settings)
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as store:
        (spent,) = store.execute("SELECT sum(cost) FROM answers").fetchone()
    assert 5.0 < spent <= 9.0
    assert counting.model_calls() == answers(tmp_path / "run")


def test_money_cannot_be_limited_without_prices(cli: Callable[..., Any]) -> None:
    elsewhere = ("--base-url", "http://192.0.2.1/v1")
    done = cli(
        "audit", "sample", "-p", "focal", "-m", "openai:m", *elsewhere, "--max-cost", "1", "-y"
    )
    assert done.code == 2 and "max_cost needs prices" in done.err
    done = cli("audit", "sample", "-p", "http:url=http://192.0.2.1", "--max-cost", "1", "-y")
    assert done.code == 2 and "its prices are not known" in done.err


@pytest.mark.slow
def test_building_elsewhere_is_confirmed_first(cli: Callable[..., Any]) -> None:
    """192.0.2.1 is nobody's address: without --yes nothing is sent there."""
    for spec in (
        "http:url=http://192.0.2.1",
        "memochat:model=(openai:m,base_url=http://192.0.2.1/v1)",
    ):
        done = cli("audit", "sample", "-p", spec)
        assert done.code == 2 and "pass --yes" in done.err
        assert done.left == ()
    for command in (("check-adapter",), ("orders", "sample", "-p")):
        done = cli(*command, "http:url=http://192.0.2.1")
        assert done.code == 2 and "pass --yes" in done.err


class Failing:
    """Answers after one repetition of every request."""

    name = "failing"
    settings: ClassVar[dict[str, str]] = {}
    embedded = False
    concurrency = 1

    async def answer(self, ask: Ask, /) -> Reply:
        from routeprism.models import count_repetition

        count_repetition()
        return Reply("a", Usage())


def test_repeated_requests_count() -> None:
    with pytest.raises(LimitError, match="3 of"):
        routeprism.audit(SMALL, "focal", models=[Failing()], resamples=100, max_calls=7)


def test_an_allowance_can_be_shared() -> None:
    allowance = Allowance(max_calls=2)
    allowance.take()
    allowance.expect()
    allowance.take()
    for _ in range(2):
        with pytest.raises(LimitError, match="2 calls"):
            allowance.take()
    assert allowance.reached and allowance.calls == 2


@pytest.mark.parametrize(("name", "value"), [("max_calls", -1), ("max_cost", float("nan"))])
def test_a_limit_is_a_number(name: str, value: float) -> None:
    with pytest.raises(SpecError, match=name):
        Allowance(**{name: value})  # type: ignore[arg-type]


# --- absurd numbers --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "option", "number"),
    [
        ("audit", "--workers", "100000"),
        ("audit", "--draws", "99999999999"),
        ("audit", "--builds", "99999999999"),
        ("audit", "--resamples", "99999999999"),
        ("audit", "--concurrency", "99999999999"),
        ("restore", "--bundle-tokens", "99999999999"),
        ("restore", "--workers", "100000"),
        ("orders", "--orders", "99999999999"),
        ("orders", "--most-states", "99999999999"),
        ("orders", "--workers", "100000"),
        ("curve", "--workers", "100000"),
        ("curve", "--resamples", "99999999999"),
        ("screen", "--resamples", "99999999999"),
        ("support", "--concurrency", "99999999999"),
    ],
)
def test_absurd_numbers_are_refused_in_one_line(
    command: str, option: str, number: str, cli: Callable[..., Any]
) -> None:
    policy = () if command in ("screen", "support") else ("-p", "recent")
    done = cli(command, "no-such-benchmark", *policy, option, number)
    assert done.code == 2
    assert done.err.startswith("routeprism: Expected") and done.err.count("\n") == 1
    assert f"={number}" in done.err


@pytest.mark.parametrize(
    "settings",
    [{"workers": 100_000}, {"builds": 10**11}, {"resamples": 10**11}, {"concurrency": 10**11}],
)
def test_absurd_numbers_are_refused_in_python(settings: dict[str, int]) -> None:
    with pytest.raises(SpecError, match=r"Expected .* but got"):
        routeprism.audit(SMALL, "focal", **settings)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="Expected from 1 to 10,000 draws but got draws="):
        routeprism.audit(SMALL, "focal", models=["reader"], draws=10**11)


def test_calls_for_each_record_are_a_number() -> None:
    policy: Any = make_policy("http:url=http://127.0.0.1:1,calls_per_add=-1")
    with pytest.raises(SpecError, match="calls_per_add"):
        routeprism.audit(SMALL, policy, dry_run=True)


@pytest.mark.realdata
def test_reproduction_keeps_what_a_limit_stopped(
    counting: Any, data: Path, cli: Callable[..., Any]
) -> None:
    call = ("reproduce", "tab:restoration-main", "--run", "--data", data, "--workers", "1")
    call = (*call, "--model", f"openai:m,base_url={counting.address}/v1", "--quiet")
    counted = cli(*call, "--dry-run", "--json")
    assert counted.code == 0 and counted.left == () and counting.connections == 0
    calls = json.loads(counted.out)["restoration, openai:m"]["calls"]
    done = cli(*call, "--max-calls", "20")
    assert done.code == 3 and f"20 of {calls} answers" in done.err
    assert counting.model_calls() == 20
    repetition = json.loads(cli(*call, "--dry-run", "--json").out)["restoration, openai:m"]
    assert (repetition["calls"], repetition["kept"]) == (calls - 20, 20)
