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


def read_ledger(directory: Path) -> list[tuple[Any, ...]]:
    """Give the ledger but for clocks."""
    with closing(sqlite3.connect(directory / "run.sqlite")) as store:
        return store.execute(
            "SELECT submission, model, settings_sha256, prompt_sha256, batch, draw, question, "
            "route, outcome, answer, raw, input_tokens, output_tokens, attempts "
            "FROM answers JOIN requests USING (submission) ORDER BY submission"
        ).fetchall()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL, which Windows does not have")
def test_ten_kills_lose_nothing_and_repeat_only_what_was_under_way(tmp_path: Path) -> None:
    moments = Random("routeprism kill -9")  # noqa: S311
    directory = tmp_path / "killed"
    with support_server.Loopback(latency=0.04) as server:

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
            replies = server.read_counts()["total"] + moments.randint(20, 45)
            server.hold(replies)  # so that the collection cannot end before it is killed
            with subprocess.Popen(command(directory), stdout=subprocess.DEVNULL) as process:
                server.wait_for(replies + 1)
                time.sleep(moments.uniform(0, 0.03))
                process.kill()
            total = server.settle()
            server.release()
            answers = read_ledger(directory)
            assert len(answers) < ANSWERS
            repeated = total - len(answers) - lost
            assert 0 <= repeated <= CONCURRENCY
            lost += repeated
        assert lost > 0 and answers  # the kills fell into the middle
        subprocess.run(command(directory), check=True, stdout=subprocess.DEVNULL, timeout=600)
        answers = read_ledger(directory)
        assert len(answers) == ANSWERS
        assert server.read_counts()["total"] == ANSWERS + lost  # each lost one again, none else
        assert server.read_counts()["peak"] <= CONCURRENCY

        undisturbed = tmp_path / "undisturbed"
        subprocess.run(command(undisturbed), check=True, stdout=subprocess.DEVNULL, timeout=600)
    # The server's answers depend on prompt and seed alone, so all but the clocks is the same.
    assert answers == read_ledger(undisturbed)
