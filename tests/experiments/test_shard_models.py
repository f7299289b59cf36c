"""Shards ask the models of their own pools; merging unites the ledgers and asks nobody."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.answers import ModelJudge
from routeprism.errors import LimitError, RunError
from routeprism.experiments import (
    Budgets,
    Curve,
    RunExecution,
    ShardResults,
    Statistics,
    Subject,
    audit_budgets,
    parse_shard,
)
from routeprism.models import Ask, Reply
from routeprism.orders import parse_schedule
from routeprism.policies import parse_interface
from routeprism.policies.memochat import MemoChat
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.report import write_report

USERS = 7


@dataclass(frozen=True)
class Counting:
    """Replies by rule, and counts how often it was asked for each draw of a prompt."""

    asks: Counter[tuple[str, int, str]] = field(default_factory=Counter, compare=False)
    settings: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    name: str = "counting"
    embedded: bool = False
    concurrency: int = 3
    salt: str = ""

    def answer(self, ask: Ask, /) -> Reply:
        self.asks[ask.text, ask.draw, ask.batch] += 1
        digest = hashlib.sha256(f"{self.salt}{ask.text}{ask.draw}".encode()).digest()
        if ask.options:
            return Reply("ab"[digest[0] % 2])
        topic = {"topic": f"meals {digest[0] % 3}", "summary": f"Food, {digest[1] % 4}."}
        return Reply(json.dumps(topic) if "topic" in ask.text else "yes" if digest[0] % 2 else "no")


def make_benchmark(*, free: bool = False) -> Benchmark:
    cases = []
    for user in range(USERS):
        records = tuple(
            Record(f"u{user}r{at}", at, f"On day {at} user {user} had dish {user * 7 + at}.")
            for at in range(4)
        )
        questions = tuple(
            Question(
                f"u{user}q{number}",
                f"u{user}",
                f"What did user {user} have on day {number}?",
                () if free else ("cake", "soup"),
                "cake" if free else "a",
                labels={"given": frozenset({f"u{user}r{number}"})},
            )
            for number in range(1 + user % 3)
        )
        cases.append(Case(Pool(f"u{user}", records), questions))
    return Benchmark("own", tuple(cases), "f" * 64, labels=("given",))


def list_studies() -> dict[str, Any]:
    common = {"resamples": 100, "schedules": ["replay"]}
    asking = {"draws": 2, "fillers": ["A", "B"], "control": "aligned"}

    def study(function: Any, *policies: Any, free: bool = False, **options: Any) -> Any:
        def perform(model: Counting, **more: Any) -> Any:
            values = [make(model) if callable(make) else make for make in policies]
            filled = {
                name: value(model) if callable(value) else value for name, value in options.items()
            }
            return function(make_benchmark(free=free), *values, **filled, **more)

        return perform

    def chat(model: Counting) -> MemoChat:
        return MemoChat(words=5, model=model)

    def alone(model: Counting) -> list[Counting]:
        return [model]

    judged = partial(Counting, name="judge")
    return {
        "answers": study(routeprism.audit, "recent:k=2", models=alone, **asking, **common),
        "judge": study(
            *(routeprism.audit, "recent:k=2"),
            free=True,
            models=alone,
            judge=lambda model: ModelJudge(judged(asks=model.asks)),
            **common,
        ),
        "restore": study(routeprism.restore, "recent:k=2", models=alone, draws=2, **common),
        "remedy": study(routeprism.remedy, "recent:k=2", models=alone, **common),
        "memories": study(routeprism.audit, chat, **common),
        "builds": study(routeprism.audit, chat, builds=2, models=alone, **common),
        "orders": study(routeprism.explore_orders, chat, resamples=100, orders=6),
    }


STUDIES = list_studies()
LONG_STUDIES = ("remedy", "builds")
FILES = ("configuration", "counts", "statements", "notes", "limits", "missing", "experiments")


def read_manifest(run: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((run / "manifest.json").read_text())
    return manifest


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow) if name in LONG_STUDIES else name
        for name in STUDIES
    ],
)
@pytest.mark.parametrize(
    "count",
    [2, pytest.param(1, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.slow)],
)
def test_shards_pay_for_their_own_pools_and_merging_for_nothing(
    name: str, count: int, tmp_path: Path
) -> None:
    perform = STUDIES[name]
    model, parts = Counting(), Counting()
    perform(model, run=tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "whole")  # a report names its directory
    assert model.asks and set(model.asks.values()) == {1}
    runs = [tmp_path / f"part-{number}" for number in range(1, count + 1)]
    for number, run in enumerate(runs, start=1):
        perform(parts, run=run, shard=f"{number}/{count}")
    assert parts.asks == model.asks
    perform(Counting(asks=parts.asks), run=tmp_path / "run", shards=runs)
    assert parts.asks == model.asks
    for part in FILES:
        assert read_manifest(tmp_path / "run")[part] == read_manifest(tmp_path / "whole")[part]
    estimates = (tmp_path / "run" / "estimates.csv").read_bytes()
    assert estimates == (tmp_path / "whole" / "estimates.csv").read_bytes()
    merged = write_report(tmp_path / "run", tmp_path / "merged.html").read_bytes()
    (tmp_path / "run").rename(tmp_path / "merged")
    (tmp_path / "whole").rename(tmp_path / "run")
    assert merged == write_report(tmp_path / "run", tmp_path / "whole.html").read_bytes()


@pytest.mark.parametrize("name", ["answers", "memories", "orders"])
def test_a_dry_run_of_a_shard_prices_the_shard_alone(name: str, tmp_path: Path) -> None:
    perform = STUDIES[name]
    whole = perform(Counting(), run=tmp_path / "whole", dry_run=True).costs
    parts = [
        perform(Counting(), run=tmp_path / str(number), shard=f"{number}/3", dry_run=True).costs
        for number in (1, 2, 3)
    ]
    for model, cost in whole.items():
        assert cost.calls == sum(part[model].calls for part in parts) > parts[0][model].calls > 0
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["answers", "memories", "orders", "builds"])
def test_a_merge_is_priced_at_nothing(name: str, tmp_path: Path) -> None:
    perform = STUDIES[name]
    runs = [tmp_path / "1", tmp_path / "2"]
    for number, run in enumerate(runs, start=1):
        perform(Counting(), run=run, shard=f"{number}/2")
    costs = perform(Counting(), run=tmp_path / "all", shards=runs, dry_run=True).costs
    assert sum(cost.calls for cost in costs.values()) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["answers", "builds"])
def test_a_shard_that_stops_at_a_limit_pays_for_the_rest_alone(name: str, tmp_path: Path) -> None:
    perform = STUDIES[name]
    model, parts = Counting(), Counting()
    perform(model, run=tmp_path / "whole")
    runs = [tmp_path / "1", tmp_path / "2"]
    perform(parts, run=runs[0], shard="1/2")
    paid = parts.asks.total()
    with pytest.raises(LimitError):
        perform(parts, run=runs[1], shard="2/2", max_calls=5)
    assert parts.asks.total() == paid + 5
    with pytest.raises(RunError, match="is not finished: run the command of shard 2/2 again"):
        perform(parts, run=tmp_path / "all", shards=runs)
    perform(parts, run=runs[1], shard="2/2")
    assert parts.asks == model.asks
    perform(parts, run=tmp_path / "all", shards=runs)
    assert parts.asks == model.asks
    estimates = (tmp_path / "all" / "estimates.csv").read_bytes()
    assert estimates == (tmp_path / "whole" / "estimates.csv").read_bytes()


def test_an_answer_that_a_shard_lacks_is_requested_by_merging(tmp_path: Path) -> None:
    perform = STUDIES["answers"]
    parts = Counting()
    runs = [tmp_path / "1", tmp_path / "2"]
    for number, run in enumerate(runs, start=1):
        perform(parts, run=run, shard=f"{number}/2")
    paid = parts.asks.total()
    with closing(sqlite3.connect(runs[1] / "run.sqlite")) as store, store:
        store.execute("DELETE FROM answers WHERE submission = 3")
    perform(parts, run=tmp_path / "all", shards=runs)
    assert parts.asks.total() == paid + 1


def test_shards_whose_answers_to_one_request_differ_are_refused(tmp_path: Path) -> None:
    perform = STUDIES["answers"]
    runs = [tmp_path / "1", tmp_path / "2"]
    for number, run in enumerate(runs, start=1):
        perform(Counting(), run=run, shard=f"{number}/2")
    with closing(sqlite3.connect(runs[1] / "run.sqlite")) as store, store:
        store.execute("ATTACH ? AS first", (str(runs[0] / "run.sqlite"),))
        store.execute(
            "INSERT INTO requests SELECT NULL, model, settings_sha256, prompt_sha256, batch, draw, "
            "question, route FROM first.requests WHERE submission = 1"
        )
        store.execute(
            "INSERT INTO answers SELECT (SELECT max(submission) FROM requests), outcome, answer, "
            "'different', scores, input_tokens, output_tokens, cost, asked_at, latency, attempts "
            "FROM first.answers WHERE submission = 1"
        )
    with pytest.raises(RunError, match=r"2 cannot be merged: counting replied to the same request"):
        perform(Counting(), run=tmp_path / "all", shards=runs)
    assert not (tmp_path / "all" / "estimates.csv").exists()


@pytest.mark.slow
def test_shards_of_a_curve_of_model_built_memories_pay_once(tmp_path: Path) -> None:
    """The audit of each interface has a ledger of its own inside the run."""

    def draw(model: Counting, **where: Any) -> None:
        curve = Curve(
            "memochat",
            Budgets.parse("words=5,9"),
            lambda interface: [MemoChat(words=words, model=model) for words in (5, 9)],
            [parse_interface("all")],
        )
        subject = Subject(make_benchmark(), (), [parse_schedule("replay")])
        audit_budgets(
            subject,
            curve,
            statistics=Statistics(resamples=100),
            execution=RunExecution(workers=1, **where),
        )

    model, parts = Counting(), Counting()
    draw(model, directory=tmp_path / "whole")
    runs = [tmp_path / "1", tmp_path / "2"]
    for number, run in enumerate(runs, start=1):
        shard = parse_shard(f"{number}/2").write_to(run)
        draw(parts, directory=run, shard=shard)
        shard.finish()
    assert parts.asks == model.asks
    draw(parts, directory=tmp_path / "all", merged=ShardResults(runs))
    assert parts.asks == model.asks
    estimates = (tmp_path / "all" / "estimates.csv").read_bytes()
    assert estimates == (tmp_path / "whole" / "estimates.csv").read_bytes()
