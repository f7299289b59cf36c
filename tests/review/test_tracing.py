"""Every number of every experiment leads to rows that give the number again."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.cli import run_command
from routeprism.errors import RunError, SpecError
from routeprism.labels import (
    SCREEN,
    SUPPORT,
    Readings,
    RecordReading,
    ScreenReading,
    SupportReading,
    cards_for,
    run_study,
    save_readings,
)
from routeprism.records import Benchmark, load_benchmark
from routeprism.review.tracing import Trail, trace_row, trace_rows
from routeprism.runs import StoredRun

pytestmark = pytest.mark.usefixtures("only_reversal")


@pytest.fixture(scope="module")
def small() -> Benchmark:
    """Three users of the sample with three questions each."""
    whole = load_benchmark("sample")
    cases = (replace(case, questions=case.questions[:3]) for case in whole.cases[:3])
    return replace(whole, cases=tuple(cases))


@pytest.fixture(scope="module")
def masks(small: Benchmark) -> dict[str, list[str]]:
    return {"some": [question.id for case in small.cases for question in case.questions[:2]]}


@pytest.fixture(scope="module")
def answered_run(
    small: Benchmark, masks: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    run = tmp_path_factory.mktemp("asked") / "run"
    settings = {"models": ["reader"], "draws": 2, "resamples": 100, "run": run}
    settings |= {"batches": ["", "again"], "masks": masks, "ties": True, "over_time": True}
    routeprism.audit(small, "focal", comparators=True, reuse=True, **settings)
    return run


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "coordinates.md"
ANY = r"FIELD|CONDITION|LABEL|\bN\b"
"""What stands for several names on the page of coordinates."""


@lru_cache(maxsize=1)
def names() -> re.Pattern[str]:
    """Read every name that the page describes; Q stands for any other one."""
    first = (line.split("|")[1] for line in PAGE.read_text("utf-8").splitlines() if "|" in line)
    entries = [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]
    prefixes = [name[:-1] for name in entries if name.endswith(".Q")]
    plain = [name for name in entries if "Q" not in name]
    content = (re.sub(ANY, ".+", re.escape(name)) for name in plain)
    before = "|".join(map(re.escape, prefixes))
    return re.compile(rf"(?:{before})?(?:{'|'.join(content)})(?:_count)?")


def taken_again(trail: Trail) -> float | None:
    """Aggregate the printed rows by the printed rule, with nothing else of the package."""
    if trail.rule == "items":
        return trail.recomputed  # shares, counts and κ of items have a test of their own
    sides = []
    for units in trail.groups.values():
        means = {}
        for unit in units:
            if unit.questions:
                assert unit.total == pytest.approx(sum(unit.questions.values()), abs=1e-12)
                assert unit.number == len(unit.questions)
            means[unit.user] = (unit.total, unit.number)
        sides.append(means)
    assert all(sides), "nothing is printed"

    def mean(side: dict[str, tuple[float, float]]) -> float:
        if trail.weighting in ("question", "order"):
            return sum(t for t, _ in side.values()) / sum(n for _, n in side.values())
        return sum(t / n for t, n in side.values()) / len(side)

    side = sides[0]
    if trail.rule == "sum":
        return sum(total for total, _ in side.values())
    if trail.rule == "mean":
        return mean(side)
    if trail.rule == "means":
        return mean(side) - mean(sides[1])
    if len(sides) > 1:
        both = [user for user in side if user in sides[1]]
        gaps = [side[u][0] / side[u][1] - sides[1][u][0] / sides[1][u][1] for u in both]
        return sum(gaps) / len(gaps)
    rest = [mean({u: item for u, item in side.items() if u != out}) for out in side]
    return min(rest) if trail.rule == "least" else max(rest)


def check(run: Path, experiments: set[str]) -> None:
    """Trace every row of a run: its rows give the number again, and answers give their shares."""
    with StoredRun(run) as stored:
        rows = stored.estimates()
    assert {row.experiment for row in rows} == experiments
    index = json.loads((run / "manifest.json").read_text())["experiments"]
    assert index.keys() == experiments
    from_answers = 0
    for trail in trace_rows(run, range(1, len(rows) + 1)):
        row = trail.row
        message = (row.identity, row.estimate, trail.recomputed)
        assert names().fullmatch(row.quantity), f"{PAGE.name} does not say what {row.quantity} is"
        if row.quantity.startswith(("p.", "p_holm.")):
            continue  # a p-value is no mean of units
        assert taken_again(trail) == pytest.approx(row.estimate, abs=1e-9), message
        assert trail.agrees, message
        assert trail.experiment == index[row.experiment]
        asked_somebody = row.model and row.experiment not in ("screen", "support")
        assert bool(trail.answers) == bool(asked_somebody) or row.experiment == "support", message
        if row.quantity.startswith("accuracy.") and not row.arm and trail.answers:
            from_answers += 1
            right: dict[str, list[bool]] = {}
            for answer in trail.answers:
                right.setdefault(answer.answer.question, []).append(bool(answer.correct))
            shares = {question: sum(result) / len(result) for question, result in right.items()}
            values = {q: v for unit in trail.groups[""] for q, v in unit.questions.items()}
            assert values == pytest.approx(shares, abs=1e-12), message
    answered_run = any(row.quantity.startswith("accuracy.") and not row.arm for row in rows)
    assert (from_answers > 0) == answered_run


@pytest.mark.slow
def test_answers_reuse_replication_readouts_retention(answered_run: Path) -> None:
    check(answered_run, {"routes", "retention", "reuse", "replication", "readouts", "support"})


@pytest.mark.slow
def test_mechanism_display_and_instructions(small: Benchmark, tmp_path: Path) -> None:
    settings = {"models": ["reader"], "resamples": 100, "run": tmp_path / "run"}
    settings |= {"display": ["reversed", "source"], "provenance": ["preserved", "gated"]}
    two = replace(small, cases=small.cases[:2])
    routeprism.audit(two, "focal", mechanism=True, **settings)
    names = {"routes", "retention", "mechanism", "display", "readouts", "support"}
    check(tmp_path / "run", names)


@pytest.mark.slow
def test_restoration(small: Benchmark, masks: dict[str, list[str]], tmp_path: Path) -> None:
    settings = {"models": ["reader"], "draws": 2, "resamples": 100, "run": tmp_path / "run"}
    routeprism.restore(small, "recent:k=2", fillers=["A", "B"], masks=masks, **settings)
    check(tmp_path / "run", {"routes", "retention", "restoration"})
    names = "quantity=restored-absent,filler=A"
    trail = trace_row(tmp_path / "run", names)
    assert {answer.answer.side for answer in trail.answers} == {"restored", "absent"}
    # From answers alone: the share of right ones, restored minus absent, by user and question.
    shares: dict[tuple[str, str], list[bool]] = {}
    for answer in trail.answers:
        shares.setdefault((answer.answer.question, answer.answer.side), []).append(
            bool(answer.correct)
        )
    for unit in trail.groups[""]:
        for question, value in unit.questions.items():
            sides = [shares[question, side] for side in ("restored", "absent")]
            assert value == pytest.approx(sum(sides[0]) / 2 - sum(sides[1]) / 2, abs=1e-12)


@pytest.mark.slow
def test_orders_and_curves(small: Benchmark, masks: dict[str, list[str]], tmp_path: Path) -> None:
    run = tmp_path / "orders"
    routeprism.explore_orders(small, "focal", masks=masks, resamples=100, run=run)
    check(run, {"orders"})
    trail = trace_row(run, "quantity=order_change")
    assert {finding.name for finding in trail.findings} >= {"survival", "order_distribution"}
    changed = {
        finding.user: finding.value["changed"]
        for finding in trail.findings
        if "changed" in finding.value
    }
    assert changed == pytest.approx({unit.user: unit.mean for unit in trail.groups[""]})
    assert trace_row(run, "quantity=mean_clusters").weighting == "order"
    curve = tmp_path / "curve"
    routeprism.curve(small, budgets="k=1,2", contexts="k=1,2", resamples=100, run=curve)
    check(curve, {"routes", "retention"})


def test_repeated_builds_and_questions_that_count_equally(small: Benchmark, tmp_path: Path) -> None:
    uneven = replace(small.cases[0], questions=small.cases[0].questions[:1])
    weighed = replace(small, weighting="question", cases=(uneven, *small.cases[1:]))
    run = tmp_path / "run"
    routeprism.audit(weighed, "utility:k=2", builds=2, resamples=100, run=run)
    check(run, {"routes", "retention"})
    assert trace_row(run, "quantity=D_build").weighting == "question"


def _pass(kind: str, name: str, small: Benchmark, directory: Path) -> Path:
    """Make a pass that disagrees with others now and then: a function of its name."""
    rubric = SCREEN if kind == "screen" else SUPPORT
    cards: dict[str, ScreenReading | SupportReading] = {}
    for at, card in enumerate(cards_for(small, rubric)):
        turn = (at + ord(name)) % 3
        if kind == "screen":
            label = ("admissible", "inadmissible", "admissible")[turn]
            cards[card.id] = ScreenReading(card.question, label)
        else:
            labels = {
                record.id: RecordReading("direct" if (place + turn) % 2 else "none")
                for place, record in enumerate(card.records)
            }
            cards[card.id] = SupportReading(card.question, labels)
    result = Readings(name, rubric.kind, rubric.name, rubric.digest, "file:x", "0" * 64, cards)
    save_readings(result, directory / f"{kind}-{name}.json")
    return directory / f"{kind}-{name}.json"


@pytest.mark.parametrize("kind", ["screen", "support"])
def test_every_number_of_a_study(kind: str, small: Benchmark, tmp_path: Path) -> None:
    rubric = SCREEN if kind == "screen" else SUPPORT
    passes = {name: _pass(kind, name, small, tmp_path) for name in "ABC"}
    run = tmp_path / "run"
    cards = cards_for(small, rubric)
    run_study(small, cards, rubric, passes, seed=1, resamples=100, directory=run)
    with StoredRun(run) as stored:
        rows = stored.estimates()
    assert {"agreement", "kappa", "count.agreed"} <= {row.quantity for row in rows}
    for trail in trace_rows(run, range(1, len(rows) + 1)):
        assert names().fullmatch(trail.row.quantity)
        assert trail.agrees, (trail.row.identity, trail.row.estimate, trail.recomputed)


@pytest.mark.slow
def test_an_answer_is_the_one_that_the_ledger_has(answered_run: Path) -> None:
    names = "experiment=routes,policy=focal,quantity=accuracy.route,batch=again"
    trail = trace_row(answered_run, names, prompts=True)
    assert {answer.answer.side for answer in trail.answers} == {"replay"}
    assert len(trail.answers) == 9 * 2  # questions and draws
    assert trail.prompts is not None
    with StoredRun(answered_run) as stored:
        questions = stored.questions()
    for answer in trail.answers:
        assert questions[answer.answer.question].text in trail.prompts[answer.answer.prompt_sha256]
    right: dict[str, list[bool]] = {}
    for answer in trail.answers:
        right.setdefault(answer.answer.question, []).append(bool(answer.correct))
    values = {q: v for unit in trail.groups[""] for q, v in unit.questions.items()}
    assert values == {question: sum(result) / 2 for question, result in right.items()}


def test_what_is_meant_by_a_row(answered_run: Path, tmp_path: Path) -> None:
    assert (
        trace_row(answered_run, "policy=focal,schedule=replay,quantity=J,experiment=routes").row.arm
        == ""
    )
    with pytest.raises(SpecError, match=r"(?s)\d rows have policy=focal.*experiment=reuse"):
        trace_row(answered_run, "policy=focal,quantity=J")
    with pytest.raises(SpecError, match=r"no row has policy=fokal\. Did you mean 'focal'"):
        trace_row(answered_run, "policy=fokal,quantity=J")
    with pytest.raises(SpecError, match=r"Expected columns such as .* but got 'polcy=focal'"):
        trace_row(answered_run, "polcy=focal")
    with pytest.raises(SpecError, match=r"Expected a row from 1 to \d+ .* but got row=0"):
        trace_row(answered_run, "0")
    with pytest.raises(SpecError, match="the run has no question 'q'"):
        trace_row(answered_run, "1", question="q")
    with pytest.raises(RunError, match="contains no run"):
        trace_row(tmp_path / "none", "1")


def test_the_command_prints_it(answered_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "experiment=routes,policy=focal,quantity=D_res,batch="
    command = ["trace", str(answered_run), "--row", names]
    run_command(command)
    text = capsys.readouterr().out
    assert "every unit counts equally. Computed again, it is" in text
    assert "as in the run." in text
    assert "prompt SHA-256" in text
    run_command([*command, "--json"])
    document = json.loads(capsys.readouterr().out)
    assert document["agrees"]
    assert document["experiment"]["answers"]["number"] > 0
    assert len(document["answers"]) == 9 * 2 * 2


def test_a_run_without_estimates_has_nothing_to_trace(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    assert cli("reproduce", "tab:mechanism-state", "--keep", tmp_path / "kept").code == 0
    with pytest.raises(RunError, match="there is no row to trace"):
        trace_row(tmp_path / "kept", "1")


@pytest.mark.slow
def test_one_command_for_a_number_of_each_experiment(
    answered_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with StoredRun(answered_run) as stored:
        rows = stored.estimates()
    first = {row.experiment: number for number, row in reversed(list(enumerate(rows, start=1)))}
    assert len(first) == 6
    for experiment, number in first.items():
        command = ["trace", str(answered_run), "--row", str(number), "--json"]
        run_command(command)
        document = json.loads(capsys.readouterr().out)
        assert (document["row"]["experiment"], document["number"]) == (experiment, number)
        assert document["agrees"]
        assert document["items"] or any(document["groups"].values())
