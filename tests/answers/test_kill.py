"""kill -9 in the middle of collecting, ten times in a row: nothing is lost or paid for twice."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from .. import support_server
from . import collection_process

ANSWERS, CONCURRENCY, KILLS = 500, 32, 10


def kept(directory: Path) -> list[tuple[Any, ...]]:
    """Give the ledger but for clocks."""
    with closing(sqlite3.connect(directory / "run.sqlite")) as store:
        return store.execute(
            "SELECT submission, model, settings_sha256, prompt_sha256, batch, draw, question, "
            "route, outcome, answer, raw, input_tokens, output_tokens, attempts "
            "FROM answers JOIN requests USING (submission) ORDER BY submission"
        ).fetchall()


def settled(server: Any) -> Any:
    """Wait until a killed client's last requests have come in and gone."""
    before = server.seen()
    while True:
        time.sleep(0.1)
        now = server.seen()
        if now["total"] == before["total"] and now["in_flight"] == 0:
            return now
        before = now


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL, which Windows does not have")
def test_ten_kills_lose_nothing_and_repeat_only_what_was_under_way(tmp_path: Path) -> None:
    moments = Random("routeprism kill -9")  # noqa: S311
    directory = tmp_path / "killed"
    with support_server.Loopback(latency=0.04, seconds=180) as server:

        def command(into: Path) -> list[str]:
            return [
                sys.executable,
                collection_process.__file__,
                "many",
                server.url,
                str(into),
                str(ANSWERS),
                str(CONCURRENCY),
            ]

        lost = 0
        for _ in range(KILLS):
            before = server.seen()["total"]
            wanted = before + moments.randint(20, 75)
            with subprocess.Popen(command(directory), stdout=subprocess.DEVNULL) as process:
                while server.seen()["total"] < wanted:
                    assert process.poll() is None
                    time.sleep(0.002)
                time.sleep(moments.uniform(0, 0.03))
                process.kill()
            seen = settled(server)
            answers = kept(directory)
            assert len(answers) < ANSWERS
            repeated = seen["total"] - len(answers) - lost
            assert 0 <= repeated <= CONCURRENCY
            lost += repeated
        assert lost > 0 and answers  # the kills fell into the middle
        subprocess.run(command(directory), check=True, stdout=subprocess.DEVNULL, timeout=60)
        answers = kept(directory)
        assert len(answers) == ANSWERS
        assert server.seen()["total"] == ANSWERS + lost  # each lost one again, none else
        assert server.seen()["peak"] <= CONCURRENCY

        undisturbed = tmp_path / "undisturbed"
        subprocess.run(command(undisturbed), check=True, stdout=subprocess.DEVNULL, timeout=60)
    # The server's answers depend on prompt and seed alone, so all but the clocks is the same.
    assert answers == kept(undisturbed)
