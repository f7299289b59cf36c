"""`openai:MODEL` against a server on loopback that misbehaves, and what must never be shown."""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
import traceback
from collections.abc import Iterator
from datetime import datetime, timezone
from email.utils import formatdate
from typing import Any

import pytest

from routeprism import transport
from routeprism.errors import ModelError, SpecError
from routeprism.models import Ask, Model, Reply
from routeprism.models.openai import OpenAI

from .. import support_server

KEY = "sk-loopback-0123456789abcdef"


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with support_server.Loopback() as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    # Waits are asserted where they matter; elsewhere they only take time. Without the jitter the
    # first backoff is half a second times this.
    monkeypatch.setattr(transport.JITTER, "uniform", lambda low, high: 0.02)


def ask(text: str, draw: int = 0) -> Ask:
    return Ask(text, "", text, ("one", "two", "three", "four"), draw)


def answer(model: OpenAI, text: str, draw: int = 0) -> Reply:
    async def once() -> Reply:
        try:
            return await model.answer(ask(text, draw))
        finally:
            await model.aclose()

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("fault", "subject"),
    [
        ("429:2", "HTTP 429: trouble with Bearer [hidden]"),
        ("500:2", "HTTP 500: trouble with Bearer [hidden]"),
        ("drop:2", "the connection failed"),
        ("empty:2", "an answer that cannot be read (no choice with a message)"),
        ("malformed:2", "an answer that cannot be read (it is not valid JSON)"),
    ],
)
def test_a_passing_failure_is_tried_again_and_kept_in_the_history(
    server: Any, fault: str, subject: str
) -> None:
    reply = answer(OpenAI("m", base_url=server.url, seed=0), f"[[{fault}]] which? [[say:c]]")
    assert reply.raw == "c"
    reports = [line.partition(" ")[2].partition(" (R")[0] for line in reply.attempts]
    assert reports == [subject, subject]
    for line in reply.attempts:
        then = datetime.strptime(line.split()[0], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=timezone.utc)
        assert abs((datetime.now(timezone.utc) - then).total_seconds()) < 3600


def test_a_time_out_is_tried_again(server: Any) -> None:
    model = OpenAI("m", base_url=server.url, timeout=3)
    reply = answer(model, "[[hang:1]] slow [[say:d]]")
    assert reply.raw == "d"
    assert reply.attempts[0].endswith("no answer within 3 s")


def test_attempts_are_bounded_and_the_failure_carries_them(server: Any) -> None:
    with pytest.raises(ModelError, match="openai:m gave no answer after 3 attempts: HTTP 500") as e:
        answer(OpenAI("m", base_url=server.url, retries=2), "[[500:9]] never")
    assert len(e.value.attempts) == 3
    assert pickle.loads(pickle.dumps(e.value)).attempts == e.value.attempts  # noqa: S301


@pytest.mark.parametrize("status", [400, 401])
def test_other_client_errors_fail_at_once(server: Any, status: int) -> None:
    with pytest.raises(ModelError, match=f"after 1 attempt: HTTP {status}") as error:
        answer(OpenAI("m", base_url=server.url), f"[[{status}:9]] {status}")
    assert len(error.value.attempts) == 1


def test_a_refusal_outside_the_text_is_marked(server: Any) -> None:
    reply = answer(OpenAI("m", base_url=server.url), "[[refusal:9]] no")
    assert reply.raw == "[refused] That is nothing I do."


class FirstWait(Exception):  # noqa: N818 (it ends a request, and is no error)
    """Ends a request at its first wait."""


def record_waits(monkeypatch: pytest.MonkeyPatch, *, end: bool = False) -> list[float]:
    """Record how long is waited, and wait briefly; `end` stops the request instead."""
    waits: list[float] = []
    pause = transport.pause

    def record(stopped: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        if end:
            raise FirstWait
        return pause(stopped, min(seconds, 0.01))

    monkeypatch.setattr(transport, "pause", record)
    return waits


def test_retry_after_is_waited_for_by_every_request(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = record_waits(monkeypatch)
    answer(OpenAI("m", base_url=server.url), "[[429:1]] seconds [[say:a]]")
    assert waits[0] == 0.3  # the server says 0.3, the first backoff is 0.01


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        (["Retry-After: 7"], 7.0, 7.0),
        (["Retry-After: DATE"], 200.0, 250.0),  # 250 seconds ahead when the test begins
        (["Retry-After: Fri, 02 Jan 2026 03:00:00 GMT"], 0.01, 0.01),  # past: only the backoff
        (["Retry-After-Ms: 250", "Retry-After: 9"], 0.25, 0.25),
        (["Retry-After: soon"], 0.01, 0.01),
        ([], 0.01, 0.01),
    ],
    ids=["seconds", "date", "past", "milliseconds", "words", "nothing"],
)
def test_how_long_to_wait_is_read_from_headers(
    server: Any, monkeypatch: pytest.MonkeyPatch, headers: list[str], least: float, most: float
) -> None:
    waits = record_waits(monkeypatch, end=True)
    lines = "|".join(headers).replace("DATE", formatdate(time.time() + 250, usegmt=True))
    with pytest.raises(FirstWait):
        answer(OpenAI("m", base_url=server.url), f"[[429{{{lines}}}:1]] {least}")
    assert least <= waits[0] <= most


def test_backoff_doubles_with_jitter_up_to_a_ceiling(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = record_waits(monkeypatch)
    for jitter, share in ((min, 0.5), (max, 1.0)):
        monkeypatch.setattr(
            transport.JITTER, "uniform", lambda low, high, choose=jitter: choose(low, high)
        )
        waits.clear()
        with pytest.raises(ModelError, match="after 13 attempts"):
            answer(OpenAI("m", base_url=server.url, retries=12), f"[[500:99]] {share}")
        assert waits == [share * min(30.0, 0.5 * 2**number) for number in range(12)]


def test_the_request_says_what_was_set_and_nothing_else(server: Any) -> None:
    model = OpenAI("m", base_url=server.url, effort="low", temperature=0.5, seed=10, max_tokens=3)
    answer(model, "settings", draw=4)
    assert server.read_counts()["bodies"][-1] == {
        "model": "m",
        "reasoning_effort": "low",
        "temperature": 0.5,
        "seed": 14,
        "max_tokens": 3,
    }
    answer(OpenAI("m", base_url=server.url), "plain")
    assert server.read_counts()["bodies"][-1] == {"model": "m"}


def test_draws_of_a_seeded_model_differ_in_their_seed(server: Any) -> None:
    model = OpenAI("m", base_url=server.url, seed=5)
    for draw in range(4):
        assert answer(model, "same prompt", draw).raw == support_server.answer(
            "same prompt", 5 + draw
        )


def test_usage_and_cost_are_counted_where_prices_are_given(server: Any) -> None:
    usage = answer(OpenAI("m", base_url=server.url, price_in=2.0, price_out=8.0), "cost").usage
    # The server counts 11 tokens in and 1 out.
    assert (usage.input_tokens, usage.output_tokens) == (11, 1)
    assert usage.cost == pytest.approx((11 * 2.0 + 1 * 8.0) / 1e6)
    assert answer(OpenAI("m", base_url=server.url), "free").usage.cost is None


def test_the_key_is_nowhere_to_be_seen(server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    secret = "hunter2-and-more"  # noqa: S105
    address = server.url.replace("127.0.0.1", f"someone:{secret}@127.0.0.1") + f"?token={secret}x"
    for base_url in (server.url, address):
        model = OpenAI("m", base_url=base_url, retries=0)
        texts = [repr(model), str(model.settings), pickle.dumps(model.settings).decode("latin-1")]
        try:
            answer(model, "[[401:9]] told")
        except ModelError as error:
            assert error.__cause__ is None
            assert error.__context__ is None
            texts += ["".join(traceback.format_exception(error)), *error.attempts]
        texts.append(answer(model, "[[echo:9]] back").raw)
        assert texts[-1].startswith("You sent ")
        captured = capfd.readouterr()
        for text in (*texts, captured.out, captured.err):
            assert KEY not in text
            assert secret not in text
        assert model.settings["base_url"] == server.url
    assert f"Bearer {KEY}" in server.read_counts()["authorizations"]


def test_a_server_of_ones_own_needs_no_key(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert answer(OpenAI("m", base_url=server.url), "[[say:b]]").raw == "b"
    with pytest.raises(ModelError, match="OPENAI_API_KEY is not set"):
        answer(OpenAI("m"), "x")


def test_an_address_from_the_environment_is_a_setting(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    assert OpenAI("m").settings["base_url"] == server.url
    assert answer(OpenAI("m"), "[[say:c]]").raw == "c"


def test_it_is_a_model_and_travels_without_connections(server: Any) -> None:
    model = OpenAI("m", base_url=server.url, seed=1)
    assert isinstance(model, Model)
    assert (model.name, model.embedded, model.concurrency) == ("openai:m", False, 16)
    answer(model, "before")
    repetition = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert repetition == model
    assert answer(repetition, "[[say:d]]").raw == "d"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"concurrency": 0}, "from 1 to 4,096 concurrency but got concurrency=0"),
        ({"retries": -1}, "from 0 to 100 retries but got retries=-1"),
        ({"timeout": 0}, "a timeout above 0 and up to 604800 seconds but got timeout=0"),
        ({"price_in": 1.0}, "both price_in and price_out"),
        ({"base_url": "127.0.0.1:80"}, "to be an address such as"),
        ({"model": ""}, "a model's name"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        OpenAI(**{"model": "m", **wrong})


def test_an_address_where_nobody_listens_is_no_time_out() -> None:
    import asyncio
    import socket

    from routeprism.errors import ModelError
    from routeprism.models import Ask
    from routeprism.models.openai import OpenAI

    async def ask(model: OpenAI) -> None:
        try:
            await model.answer(Ask("p", "", "q", (), 0))
        finally:
            await model.aclose()

    with socket.socket() as silent:  # it has a port, so nobody else gets it, and does not listen
        silent.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(ModelError, match="connection"):
            asyncio.run(ask(OpenAI(model="x", base_url=url, retries=0)))
