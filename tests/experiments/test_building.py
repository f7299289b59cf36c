"""Models that write while a memory is built: ledger, stored states, dry runs, and bad replies."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import routeprism
from routeprism.errors import ContractError, ModelError, RunError, SpecError
from routeprism.experiments import AddProgress
from routeprism.models import Ask
from routeprism.policies import Exposure, make_policy, record_block
from routeprism.policies.memochat import MemoChat
from routeprism.records import Benchmark, Case, Pool, Question, Record

from .. import support_server
from ..doubles import Scripted

USERS, RECORDS = 3, 3
CALLS = USERS * 2 * RECORDS
"""Forward and replay; every record fills a buffer of five words, so that each is one window."""


audit = partial(routeprism.audit, resamples=100)


def benchmark(text: Callable[[int, int], str] = lambda user, at: "tea and cake") -> Benchmark:
    cases = []
    for user in range(USERS):
        records = tuple(
            Record(f"u{user}r{at}", at, f"{text(user, at)} number {user} {at}")
            for at in range(RECORDS)
        )
        question = Question(f"q{user}", f"u{user}", "What was eaten?", ("cake", "soup"), "a")
        cases.append(Case(Pool(f"u{user}", records), (question,)))
    return Benchmark("own", tuple(cases), "f" * 64)


def topic(ask: Ask) -> str:
    """A good reply that differs from prompt to prompt."""
    return json.dumps({"topic": "meals", "summary": f"On food, {len(ask.text)} characters."})


def memochat(model: Any) -> MemoChat:
    return MemoChat(words=5, model=model)


NAME = "memochat:words=5,model=scripted"


def rows(result: routeprism.Audit, *quantities: str) -> list[float | None]:
    return [
        result.value(quantity, policy=NAME, schedule="replay").estimate for quantity in quantities
    ]


def table(directory: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(directory / "run.sqlite")) as store:
        return store.execute(sql).fetchall()


# --- the ledger ------------------------------------------------------------------------------


def test_every_reply_is_kept_under_its_route_and_build(tmp_path: Path) -> None:
    model = Scripted(topic)
    audit(benchmark(), memochat(model), run=tmp_path / "run")
    assert len(model.asked) == CALLS
    rows_of_requests = table(
        tmp_path / "run",
        "SELECT batch, question, route, count(*) FROM requests JOIN answers USING (submission) "
        "GROUP BY batch ORDER BY batch",
    )
    assert rows_of_requests == [
        (f"build 0 of {NAME}, user u{user}, order {order}", f"u{user}", route, RECORDS)
        for user in range(USERS)
        for order, route in (("0-1-2", "forward"), ("2-1-0", "replay"))
    ]


def test_the_same_command_asks_nobody_and_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(topic)
    first = audit(benchmark(), memochat(model), run=tmp_path / "run")
    before = (tmp_path / "run" / "estimates.csv").read_bytes()
    monkeypatch.setattr(MemoChat, "build", lambda *_: pytest.fail("built again"))
    result = audit(benchmark(), memochat(model), run=tmp_path / "run")
    assert len(model.asked) == CALLS
    assert result.rows == first.rows
    assert (tmp_path / "run" / "estimates.csv").read_bytes() == before


def test_a_snapshot_that_revives_another_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only revived memories are exposed, so numbers would be those of a different memory."""
    monkeypatch.setattr(MemoChat, "revive", lambda self, arrivals, snapshot: self.build(()))
    with pytest.raises(ContractError, match="does not restore faithfully: the memory of user 'u0'"):
        audit(benchmark(), memochat(Scripted(topic)), run=tmp_path / "run")


class Shuffled:
    """A built memory whose snapshot omits in which order it shows what it keeps."""

    name = "shuffled"
    deterministic = False

    def build(self, arrivals: Sequence[Record]) -> Any:
        return self.show(arrivals, arrivals[::-1])

    def show(self, arrivals: Sequence[Record], display: Sequence[Record]) -> Any:
        ids = [record.id for record in arrivals]
        return SimpleNamespace(
            retained=lambda: frozenset(ids),
            expose=lambda query: Exposure(tuple(map(record_block, display))),
            state=lambda: ids,
            snapshot=lambda: ids,
        )

    def revive(self, arrivals: Sequence[Record], snapshot: Any) -> Any:
        return self.show(arrivals, arrivals)


def test_a_revived_memory_that_shows_something_different_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="shuffled does not restore faithfully"):
        audit(benchmark(), Shuffled(), run=tmp_path / "run")


def test_lost_states_are_built_again_from_the_ledger(tmp_path: Path) -> None:
    model = Scripted(topic)
    first = audit(benchmark(), memochat(model), run=tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as store, store:
        store.execute("DELETE FROM states WHERE user = 'u1'")
    result = audit(benchmark(), memochat(model), run=tmp_path / "run")
    assert len(model.asked) == CALLS
    assert result.rows == first.rows
    assert len(table(tmp_path / "run", "SELECT * FROM states")) == 2 * USERS


def test_another_experiment_on_the_run_exposes_the_same_states(tmp_path: Path) -> None:
    """Answers are asked of the contexts that the first building gave."""
    model = Scripted(topic)
    results = [
        audit(benchmark(), memochat(model), models=["reader"], draws=draws, run=tmp_path / "run")
        for draws in (1, 2)
    ]
    assert len(model.asked) == CALLS
    contexts = [item.value("C_changed", policy=NAME, schedule="replay") for item in results]
    assert contexts[0] == contexts[1]


def test_without_a_run_the_ledger_lives_as_long_as_the_call(tmp_path: Path) -> None:
    model = Scripted(topic)
    for times in (1, 2):
        audit(benchmark(), memochat(model))
        assert len(model.asked) == times * CALLS


def test_routes_do_not_share_replies(tmp_path: Path) -> None:
    """The first window of every pool holds one record; both routes of a pool of one ask alike."""
    model = Scripted(topic)
    single = Benchmark(
        "own",
        (
            Case(
                Pool("u", (Record("a", 0, "the same words"), Record("b", 1, "the same words"))),
                (Question("q", "u", "Which?"),),
            ),
        ),
        "f" * 64,
    )
    audit(single, memochat(model), run=tmp_path / "run")
    prompts = Counter(ask.text for ask in model.asked)
    assert sorted(prompts.values()) == [2, 2]
    seeds = {(ask.text, ask.draw) for ask in model.asked}
    assert len(seeds) == 4  # a seeded model does not repeat itself either


def test_a_prompt_that_one_build_repeats_is_another_draw(tmp_path: Path) -> None:
    class Twice(MemoChat):
        def build(self, arrivals: Sequence[Record], /) -> Any:
            assert self.consult is not None
            self.consult("again")
            self.consult("again")
            return MemoChat.build(self, arrivals)

    model = Scripted(topic)
    audit(benchmark(), Twice(words=5, model=model), run=tmp_path / "run")
    draws = table(
        tmp_path / "run",
        "SELECT draw, count(*) FROM requests JOIN prompts ON sha256 = prompt_sha256 "
        "WHERE text = 'again' GROUP BY draw",
    )
    assert draws == [(0, 2 * USERS), (1, 2 * USERS)]


def test_a_comparator_is_built_with_the_model_too() -> None:
    model = Scripted(topic)
    result = audit(benchmark(), memochat(model), comparators=True)
    assert len(model.asked) == 2 * CALLS
    fixed = {"policy": f"source-order({NAME})", "schedule": "replay"}
    assert result.value("I_changed_count", **fixed).estimate == 0  # its replies follow the prompt


def test_other_settings_of_the_model_are_another_run(tmp_path: Path) -> None:
    audit(benchmark(), memochat(Scripted(topic)), run=tmp_path / "run")
    warmer = Scripted(topic, settings={"temperature": 1.0})
    with pytest.raises(RunError, match="builders"):
        audit(benchmark(), memochat(warmer), run=tmp_path / "run")
    assert warmer.asked == []


# --- what a model writes ---------------------------------------------------------------------


def test_names_and_summaries_are_the_models(tmp_path: Path) -> None:
    model = Scripted(lambda ask: '```json\n{"topic": "  tea\\n time ", "summary": "Tea."}\n```')
    audit(benchmark(), memochat(model), run=tmp_path / "run")
    texts = {text for (text,) in table(tmp_path / "run", "SELECT text FROM texts")}
    assert "Topic: tea time\nTea." in texts


def test_a_prompt_contains_records_and_nothing_of_a_question() -> None:
    model = Scripted(topic)
    audit(benchmark(), memochat(model))
    for ask in model.asked:
        assert "tea and cake number" in ask.text
        assert "What was eaten" not in ask.text and "soup" not in ask.text
        assert (ask.memory, ask.question, ask.options) == ("", "", ())


BAD = {
    "nothing": "",
    "rubbish": "I would rather not.",
    "half": '{"topic": "meals", "summ',
    "a list": '["meals", "On food."]',
    "no summary": '{"topic": "meals"}',
    "empty": '{"topic": " ", "summary": "x"}',
    "numbers": '{"topic": 3, "summary": 4}',
    "a long name": json.dumps({"topic": "x" * 81, "summary": "On food."}),
    "deep": "{" * 100_000,
    "refused": "[refused] content_filter",
}


@pytest.mark.parametrize("reply", BAD.values(), ids=BAD.keys())
def test_a_bad_reply_leaves_the_window_to_the_rule_and_is_counted(reply: str) -> None:
    result = audit(benchmark(), memochat(Scripted(lambda ask: reply)))
    plain = audit(benchmark(), MemoChat(words=5))
    layers = ("V_changed", "C_changed", "I_changed", "context_length.route", "J")
    assert rows(result, *layers) == [
        plain.value(layer, policy="memochat:words=5", schedule="replay").estimate
        for layer in layers
    ]
    assert rows(result, "count.consultations", "count.unusable_replies") == [9, 9]
    assert (
        f"{CALLS} of {CALLS} replies that {NAME} got while building could not be used; its "
        f"documented fallback was used instead"
    ) in result.notes


def test_good_replies_are_counted_as_such() -> None:
    result = audit(benchmark(), memochat(Scripted(topic)))
    assert rows(result, "count.consultations", "count.unusable_replies") == [9, 0]
    assert not any("could not be used" in note for note in result.notes)


def test_what_an_embedded_model_wrote_is_flagged() -> None:
    class Embedded(Scripted):
        pass

    result = audit(benchmark(), memochat(Embedded(topic, embedded=True)))
    traced = [row for row in result.rows if row.policy == NAME]
    assert traced and all("embedded" in row.flags for row in traced)
    alternative = audit(benchmark(), memochat(Scripted(topic)))
    assert not any("embedded" in row.flags for row in alternative.rows)


# --- who asks --------------------------------------------------------------------------------


def test_a_dry_run_counts_and_asks_nobody(tmp_path: Path) -> None:
    model = Scripted(topic)
    result = audit(benchmark(), memochat(model), dry_run=True, run=tmp_path / "run")
    (cost,) = result.costs.values()
    assert list(result.costs) == [f"scripted (building {NAME})"]
    assert (cost.calls, cost.kept) == (CALLS, 0)
    assert cost.input_tokens > CALLS * 50
    assert "an estimate" in str(cost)
    assert model.asked == [] and not (tmp_path / "run").exists()
    audit(benchmark(), memochat(model), run=tmp_path / "run")
    before = table(tmp_path / "run", "SELECT * FROM states")
    repetition = audit(benchmark(), memochat(model), dry_run=True, run=tmp_path / "run")
    (cost,) = repetition.costs.values()
    assert (cost.calls, cost.kept, cost.input_tokens) == (0, CALLS, 0)
    assert table(tmp_path / "run", "SELECT * FROM states") == before


@pytest.mark.slow
def test_one_process_asks_and_says_so() -> None:
    result = audit(benchmark(), memochat(Scripted(topic)), workers=4)
    assert f"One process instead of 4: {NAME} asks a model while it is built" in result.notes


def test_a_build_without_an_audit_is_refused() -> None:
    policy = memochat(Scripted(topic))
    with pytest.raises(ContractError, match="only an audit can ask"):
        policy.build(benchmark().cases[0].pool.records)
    by_hand = policy.consulting(lambda prompt: '{"topic": "t", "summary": "s"}')
    state = by_hand.build(benchmark().cases[0].pool.records).state()
    assert list(state["topics"]) == ["t"]  # type: ignore[index, call-overload, arg-type]


def test_a_model_is_named_in_a_spec() -> None:
    policy = make_policy("memochat:words=5,model=openai:some", base_url="http://127.0.0.1:9/v1")
    assert policy.name == "memochat:words=5,model=openai:some"
    assert policy.model.base_url == "http://127.0.0.1:9/v1"  # type: ignore[attr-defined]
    warm = make_policy("memochat:model=(openai:some,temperature=0.5),k=2")
    assert warm.name == "memochat:k=2,model=openai:some"
    assert warm.model.temperature == 0.5  # type: ignore[attr-defined]
    fixed = make_policy("source-order(memochat:model=openai:some)")
    assert fixed.name == "source-order(memochat:model=openai:some)"
    with pytest.raises(SpecError, match=r"There is no model 'opnai'\. Did you mean 'openai'"):
        make_policy("memochat:model=opnai:x")
    with pytest.raises(SpecError, match="'focal' has no parameter 'model'"):
        make_policy("focal:model=openai:x")


# --- over HTTP -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with support_server.Loopback() as running:
        yield running


def own(directory: Path, text: Callable[[int, int], str]) -> Path:
    directory.mkdir()
    cases = benchmark(text).cases
    records = [
        {"user": case.pool.user, "id": r.id, "text": r.text}
        for case in cases
        for r in case.pool.records
    ]
    questions = [{"user": f"u{at}", "id": f"q{at}", "text": "What?"} for at in range(USERS)]
    for name, entries in (("records", records), ("questions", questions)):
        lines = "".join(json.dumps(entry) + "\n" for entry in entries)
        (directory / f"{name}.jsonl").write_text(lines)
    return directory


@pytest.mark.slow
def test_a_failing_endpoint_stops_the_run_and_the_same_command_goes_on(
    tmp_path: Path, server: Any, cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    text = '[[say:{"topic": "meals", "summary": "On food."}]]'
    # The last user's first record is refused once: a status that no retry cures.
    data = own(
        tmp_path / "data",
        lambda user, at: f"{text} tea" + (" [[400:1]]" if (user, at) == (2, 0) else ""),
    )
    policy = "memochat:words=5,model=(openai:m,concurrency=1)"
    call = (
        *("audit", data, "-p", policy, "--base-url", server.url),
        *("--run", tmp_path / "run", "--json", "--resamples", "100"),
    )
    before = server.read_counts()["total"]
    counted = cli(*call, "--dry-run")
    assert counted.code == 0
    (cost,) = json.loads(counted.out).values()
    assert cost["calls"] == CALLS
    assert server.read_counts()["total"] == before

    failed = cli(*call)
    assert failed.code == 3
    assert "memochat:words=5,model=openai:m could not be built for user 'u2'" in failed.err
    assert "the same command resumes" in failed.err
    paid = len(table(tmp_path / "run", "SELECT * FROM answers"))
    assert 0 < paid < CALLS
    assert len(table(tmp_path / "run", "SELECT * FROM failures")) >= 1

    done = cli(*call)
    faults = len(table(tmp_path / "run", "SELECT * FROM failures"))
    while done.code == 3 and faults < 6:  # every prompt with that record is refused once
        done = cli(*call)
        faults = len(table(tmp_path / "run", "SELECT * FROM failures"))
    assert done.code == 0, done.err
    assert server.read_counts()["total"] == before + CALLS + faults
    assert len(table(tmp_path / "run", "SELECT * FROM answers")) == CALLS


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL, which Windows does not have")
def test_a_killed_run_pays_for_no_reply_twice(tmp_path: Path, server: Any) -> None:
    text = '[[say:{"topic": "meals", "summary": "On food."}]]'
    data = own(tmp_path / "data", lambda user, at: f"{text} tea")
    command = [
        *(sys.executable, "-c", "from routeprism.cli import main; main()", "audit", str(data)),
        *("-p", "memochat:words=5,model=(openai:killed,concurrency=2)", "--base-url", server.url),
        *("--run", str(tmp_path / "run"), "--resamples", "100", "--json"),
    ]
    environment = {**os.environ, "OPENAI_API_KEY": "sk-none"}
    before = server.read_counts()["total"]
    server.hold(before + 6)  # so that the audit cannot end before it is killed
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        server.wait_for(before + 7)
        process.kill()
    total = server.settle()
    server.release()
    paid = len(table(tmp_path / "run", "SELECT * FROM answers"))
    lost = total - before - paid
    assert 0 < paid < CALLS and 0 <= lost <= 2  # what was under way
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    assert server.read_counts()["total"] == before + CALLS + lost
    assert len(table(tmp_path / "run", "SELECT * FROM answers")) == CALLS


def test_spending_while_building_is_asked_about(cli: Callable[..., Any]) -> None:
    ended = cli("audit", "sample", "-p", "memochat:model=openai:some-model")
    assert (ended.code, ended.left) == (2, ())
    assert "this would ask a model that may cost money" in ended.err
    assert "openai:some-model (building memochat:model=openai:some-model)" in ended.err


@pytest.mark.slow
def test_a_key_is_never_stored(tmp_path: Path, server: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    audit(benchmark(), "memochat:words=5,model=openai:m", base_url=server.url, run=tmp_path / "run")
    for path in (tmp_path / "run").iterdir():
        assert b"sk-secret" not in path.read_bytes()


def test_a_model_that_raises_ends_the_audit() -> None:
    def broken(ask: Ask) -> str:
        raise ModelError("no answer today")

    with pytest.raises(ModelError, match="could not be built for user 'u0': no answer today"):
        audit(benchmark(), memochat(Scripted(broken)))


# --- orders ----------------------------------------------------------------------------------


def test_orders_of_a_memory_that_a_model_builds_share_their_beginnings(tmp_path: Path) -> None:
    model = Scripted(topic)
    explore = partial(routeprism.explore_orders, resamples=100, run=tmp_path / "run")
    costs = routeprism.explore_orders(benchmark(), memochat(model), dry_run=True).costs
    beginnings = USERS * (3 + 6 + 6)
    assert [cost.calls for cost in costs.values()] == [beginnings]
    assert model.asked == []
    landscape = explore(benchmark(), memochat(model))
    assert len(model.asked) == beginnings  # one window for each arrival
    assert landscape.value("orders_covered", policy=NAME).estimate == 1.0
    repetition = explore(benchmark(), memochat(model))
    assert len(model.asked) == beginnings  # the ledger has every reply
    assert repetition.rows == landscape.rows


def test_a_limit_on_calls_chooses_orders_before_the_model_is_asked() -> None:
    model = Scripted(topic)
    exploration = routeprism.explore_orders(
        benchmark(), memochat(model), max_calls=30, resamples=100
    )
    assert 0 < len(model.asked) <= 30
    covered = exploration.value("orders_covered", policy=NAME).estimate
    assert covered is not None
    assert 0 < covered < 1


def test_replies_are_reported_while_the_first_memory_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first report comes before any memory is complete, with an estimate of the rest."""
    names: list[str] = []
    begin = AddProgress.__init__
    monkeypatch.setattr(
        AddProgress,
        "__init__",
        lambda self, *args, **options: begin(self, *args, **options, patience=1e-6),
    )
    audit(
        benchmark(),
        memochat(Scripted(topic)),
        run=tmp_path / "run",
        answer_progress=lambda name, progress: names.append(name),
    )
    assert names.index(f"replies that build {NAME}") < names.index(f"building {NAME}")
