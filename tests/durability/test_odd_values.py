"""Values that no number stands for, or that nobody can wait for: one line, and nothing is left."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.orders import parse_schedule
from routeprism.report import write_report

HUGE = str(10**23)
AUDIT = ("audit", "DATA", "-p", "recent:k=2", "--run", "RUN")
ORDERS = ("orders", "DATA", "-p", "recent:k=2", "--run", "RUN")
CURVE = ("curve", "DATA", "-p", "recent", "--budget", "k=1,2", "--run", "RUN")
REMEDY = ("remedy", "DATA", "-p", "recent:k=2", "--run", "RUN")
LOCAL = ("--yes", "--base-url", "http://127.0.0.1:1/v1")
SEED = f"Expected a seed from 0 to 9223372036854775807 but got seed={HUGE}"
CASES: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        (*AUDIT, "--seed", HUGE),
        SEED,
    ),
    (
        (*ORDERS, "--seed", HUGE),
        SEED,
    ),
    (
        (*CURVE, "--seed", HUGE),
        SEED,
    ),
    (
        (*AUDIT, "--resamples", HUGE),
        f"Expected from 100 to 1,000,000 resamples but got resamples={HUGE}",
    ),
    ((*AUDIT, "--builds", HUGE), f"Expected from 1 to 10,000 builds but got builds={HUGE}"),
    (
        (*AUDIT, "--model", "openai:m,timeout=nan", *LOCAL),
        "Expected a timeout above 0 and up to 604800 seconds but got timeout=nan",
    ),
    (
        (*AUDIT, "--model", "openai:m,timeout=inf", *LOCAL),
        "Expected a timeout above 0 and up to 604800 seconds but got timeout=inf",
    ),
    (
        (*AUDIT, "--model", "openai:m,temperature=nan", *LOCAL),
        "Expected a finite temperature but got temperature=nan",
    ),
    (
        (*AUDIT, "--model", "openai:m,price_in=inf,price_out=1", *LOCAL),
        "Expected a finite price_in but got price_in=inf",
    ),
    (
        (*AUDIT, "--model", "openai:m", "--yes", "--base-url", "http://127.0.0.1:port/v1"),
        "Expected base_url to be an address",
    ),
    (
        ("audit", "DATA", "-p", "http:url=http://127.0.0.1:port", "--run", "RUN"),
        "Expected an address such as http://127.0.0.1:8080 but got http://127.0.0.1:port",
    ),
    ((*AUDIT, "--model", "reader", "--rate-limit", "nan"), "Expected a rate limit above 0"),
    (
        (*AUDIT, "--model", f"openai:m,retries={HUGE}", *LOCAL),
        f"Expected from 0 to 100 retries but got retries={HUGE}",
    ),
    (
        (*AUDIT, "--schedule", "overlap:k=2", "--overlap-trials", HUGE),
        f"Expected from 1 to 100,000 overlap_trials but got overlap_trials={HUGE}",
    ),
    (
        (*REMEDY, "--disorder", HUGE),
        f"Expected from 1 to 1,000 disorder but got disorder={HUGE}",
    ),
    ((*CURVE, "--stable", "nan"), "Expected from 0 to 1 stable but got stable=nan"),
    (
        ("audit", "DATA", "-p", "source-order(" * 60 + "raw" + ")" * 60, "--run", "RUN"),
        "Expected at most 50 brackets in a policy but got source-order(source-order(",
    ),
    (
        ("report", "GOOD", "--out", "page.html", "--megabytes", "inf"),
        "Expected from 0 to 10,000 megabytes but got megabytes=inf",
    ),
    (("check", "GOOD", "--gate", "J>=1e999"), "Expected a finite number in gate 'J>=1e999'"),
    (
        ("plan", "GOOD", "--schedule", "replay", "--quantity", "J", "--half-width", "inf"),
        "Expected a half-width above 0",
    ),
)


@pytest.fixture(scope="module")
def good(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("good") / "run"
    routeprism.audit(small_data, "recent:k=2", run=directory, resamples=100)
    return directory


@pytest.mark.parametrize(("words", "message"), CASES, ids=lambda value: " ".join(value)[-60:])
def test_an_odd_value_is_refused_in_one_line(
    good: Path, small_data: Path, cli: Callable[..., Any], words: tuple[str, ...], message: str
) -> None:
    places = {"DATA": small_data, "RUN": "new", "GOOD": good}
    outcome = cli(*(places.get(word, word) for word in words))
    assert outcome.code == 2
    assert outcome.err.startswith(f"routeprism: {message}")
    assert len(outcome.err.splitlines()) == 1
    assert outcome.left == ()


@pytest.mark.parametrize("split", ["", ",split=turns"])
def test_more_streams_than_records_end_at_once(split: str) -> None:
    """Streams without a record are not listed, however many there are."""
    for size in (0, 1, 5):
        order = parse_schedule(f"interleave:k={HUGE}{split},seed=1").order(size, "user")
        assert sorted(order) == list(range(size))


@pytest.mark.parametrize("megabytes", [float("nan"), float("inf"), -1.0])
def test_the_python_call_refuses_it_too(good: Path, tmp_path: Path, megabytes: float) -> None:
    with pytest.raises(SpecError, match="Expected from 0 to 10,000 megabytes but got megabytes="):
        write_report(good, tmp_path / "page.html", megabytes=megabytes)
    assert list(tmp_path.iterdir()) == []
