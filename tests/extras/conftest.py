"""What tests of real memory systems share: no network but loopback, and small benchmarks."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from routeprism.records import Benchmark, load_benchmark

DIRECTORY = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder as slow: importing these systems alone takes seconds."""
    for item in items:
        if item.path.is_relative_to(DIRECTORY):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse every connection that leaves this machine."""
    connect: Callable[..., Any] = socket.socket.connect

    def local(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0][:4] != "127.":
            raise AssertionError(f"a connection to {address} was tried")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", local)


@pytest.fixture(scope="session")
def ten_pools(data: Path) -> Benchmark:
    """The first ten pools of PersonaMem with their 142 questions."""
    whole = load_benchmark("personamem", data)
    return replace(whole, name="personamem-10", cases=tuple(whole.cases)[:10])
