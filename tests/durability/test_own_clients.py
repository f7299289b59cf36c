"""Memories whose own client asks a model through the proxy: each request is counted and paid once.

`Asking` is asked for each of 4 records of 3 users, and cannot limit its requests itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import routeprism
from routeprism.errors import LimitError

from .kinds_of_runs import Asking, ModelServer, environment

pytestmark = pytest.mark.slow


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as server:
        for name, value in environment(server.port).items():
            monkeypatch.setenv(name, value)
        yield server


def test_an_audit_goes_on_where_its_limit_ended_it(
    small_data: Path, tmp_path: Path, model: ModelServer
) -> None:
    """Two routes of 12 records; the limit ends the third build."""
    with pytest.raises(LimitError, match="limit of 10 calls"):
        routeprism.audit(
            small_data, Asking(), run=tmp_path / "run", resamples=100, rebuilds=0, max_calls=10
        )
    assert model.replies == 10
    routeprism.audit(small_data, Asking(), run=tmp_path / "run", resamples=100, rebuilds=0)
    assert model.replies == 24


def test_more_orders_of_a_run_ask_for_the_new_ones_alone(
    small_data: Path, tmp_path: Path, model: ModelServer
) -> None:
    """48 calls are 4 orders of 4 records for each user, and 72 are 6: forward, reverse, drawn."""
    options = {"run": tmp_path / "run", "orders": 5, "resamples": 100}
    routeprism.explore_orders(small_data, Asking(), max_calls=48, **options)
    assert model.replies == 48
    routeprism.explore_orders(small_data, Asking(), **options)
    assert model.replies == 72
    routeprism.explore_orders(small_data, Asking(), **options)
    assert model.replies == 72
