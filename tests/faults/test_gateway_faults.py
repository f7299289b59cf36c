"""The proxy of memory systems: no fault of an endpoint is stored as a reply, or hangs a build."""

from __future__ import annotations

import json
import sqlite3
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.models.gateway import Gateway, Line
from routeprism.runs import Run

from ..models import asking_memory
from . import fault_endpoint

DIRECTORY = Path(__file__).parent


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Any]:
    with fault_endpoint.Endpoint() as running:
        yield running


def post(gateway: Gateway, url: str) -> tuple[int, bytes]:
    """Ask through the proxy, as the client of a memory system does."""
    address, key = gateway.connect(Line("memory", [("r", "text")], url))
    request = urllib.request.Request(  # noqa: S310
        f"{address}/chat/completions",
        json.dumps({"model": "m", "messages": [{"role": "user", "content": "q"}]}).encode(),
        {"Authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


@pytest.mark.parametrize("fault", fault_endpoint.FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_an_error_for_the_client_and_not_stored(
    endpoint: Any, fault: Any, tmp_path: Path
) -> None:
    proxy = Gateway(timeout=min(fault.timeout, 5.0), retries=fault.retries)
    with Run.open(tmp_path / "run", {}, inputs={}) as run, proxy.serving(run) as gateway:
        status, body = post(gateway, endpoint.url(fault.name))
        with closing(sqlite3.connect(run.store)) as store:
            (answers,) = store.execute("SELECT count(*) FROM answers").fetchone()
            (failures,) = store.execute("SELECT count(*) FROM failures").fetchone()
    value = json.loads(body)
    if status == 200:
        assert (answers, failures) == (1, 0)
        assert fault.outcome != "missing"
        json.dumps(value, ensure_ascii=False).encode()  # no half of a surrogate pair
        assert isinstance(value["choices"][0]["message"], dict)
    else:
        assert (answers, failures) == (0, 1)
        assert status >= 400
        assert value["error"]


def test_a_build_that_met_a_fault_is_repeated_with_a_proper_reply(tmp_path: Path) -> None:
    """A page in place of a reply, once: the next command does not get it from the ledger."""
    pages = [b"<html>Log in</html>"]

    def respond(connection: Any, request: Any) -> None:
        body = pages.pop() if pages else json.dumps(fault_endpoint.completion("noted")).encode()
        connection.sendall(fault_endpoint.reply(body))

    with fault_endpoint.Endpoint({"once": respond}) as endpoint:
        policy = asking_memory.Asking(endpoint.url("once"))
        with pytest.raises(routeprism.errors.OwnCodeError, match="502"):
            routeprism.audit(asking_memory.SMALL, policy, run=tmp_path / "run", resamples=100)
        routeprism.audit(asking_memory.SMALL, policy, run=tmp_path / "run", resamples=100)
    with closing(sqlite3.connect(tmp_path / "run" / "run.sqlite")) as store:
        raw = {text for (text,) in store.execute("SELECT raw FROM answers")}
    assert raw
    assert all("noted" in text for text in raw)
