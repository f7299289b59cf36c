"""Kill commands of every kind at random moments, several times each, and see what is left.

Real processes, a real model server on loopback, SIGKILL for the command and everything that it
started. After each kill the same command runs again, and is killed again, until it may end. Then
its `estimates.csv` must be that of a run that was not disturbed, every answer that was ever on the
disk must still be there, and no request may have been sent whose answer was on the disk:

    python tests/durability/random_kills.py DATA SCRATCH [KILLS] [SEED]
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from kinds_of_runs import KINDS, Command, Kind, ModelServer, environment, reserve_port

MOST_UNDER_WAY = 32
"""Replies that a command may be waiting for when it is killed: its concurrency."""

Keys = frozenset[tuple[str, ...]]


@dataclass
class Tally:
    """What happened to all kinds."""

    kills: int = 0
    replies: int = 0
    """Replies that the model sent to commands that were killed or resumed."""
    unfinished: int = 0
    """Those of them that were under way when a command was killed, and reached no disk."""
    failures: list[str] = field(default_factory=list)


class Commands:
    """The commands of one kind, in one directory, with a model at one address."""

    def __init__(self, data: Path, place: Path, port: int) -> None:
        self._data, self._place, self._port = data, place, port

    def run(self, commands: Sequence[Command], seconds: float | None = None) -> tuple[bool, int]:
        """Run commands, for some seconds at most; give whether all ended, and the replies."""
        ends = None if seconds is None else time.monotonic() + seconds
        with ModelServer(self._port) as model:
            for command in commands:
                words = [word.format(data=self._data, place=self._place) for word in command]
                if not self._run_one(words, ends):
                    break
            else:
                return True, model.replies
        return False, model.replies

    def _run_one(self, words: Sequence[str], ends: float | None) -> bool:
        process = subprocess.Popen(
            [sys.executable, "-m", "routeprism", *words],
            env={**os.environ, **environment(self._port)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _, errors = process.communicate(
                timeout=None if ends is None else max(0.0, ends - time.monotonic())
            )
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return False
        if process.returncode:
            raise RuntimeError(f"{' '.join(words)}: {errors.decode()[-500:]}")
        return True

    def stored(self) -> Keys:
        """List the keys of all answers on the disk."""
        keys: set[tuple[str, ...]] = set()
        for store in self._place.glob("run/**/run.sqlite"):
            with closing(sqlite3.connect(store)) as connection:
                tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'answers'")
                if tables.fetchone() is not None:
                    rows = connection.execute(
                        "SELECT prompt_sha256, draw, model, settings_sha256, batch, raw "
                        "FROM requests JOIN answers USING (submission)"
                    )
                    keys.update((str(store), *map(str, row)) for row in rows)
        return frozenset(keys)

    def estimates(self) -> bytes:
        return (self._place / "run" / "estimates.csv").read_bytes()


@dataclass
class Trial:
    """One kind of run: its undisturbed result, and what is compared with it."""

    name: str
    kind: Kind
    commands: Commands
    place: Path
    tally: Tally

    def disturb(self, kills: int, rng: random.Random) -> None:
        """Run the commands undisturbed, then again with kills, and compare."""
        first = self.place.with_name("first")
        self.place.mkdir(parents=True)
        self.commands.run(self.kind.before)
        shutil.copytree(self.place, first)
        begun = time.monotonic()
        _, needed = self.commands.run(self.kind.commands)
        seconds = time.monotonic() - begun
        expected, every = self.commands.estimates(), self.commands.stored()
        target, ended = self.tally.kills + kills, True
        while self.tally.kills < target:
            if ended:
                shutil.rmtree(self.place)
                shutil.copytree(first, self.place)
            present = self.commands.stored()
            limit = rng.uniform(0.1, 0.9) * seconds
            ended, replies = self.commands.run(self.kind.commands, limit)
            self._count(present, replies, ended)
        present = self.commands.stored()
        _, replies = self.commands.run(self.kind.commands)
        self._count(present, replies, ended=True)
        if replies != (len(every - present) if needed else 0):
            self._fail(f"{replies} replies for {len(every - present)} missing answers")
        if self.commands.stored() != every:
            self._fail("the answers differ")
        if self.commands.estimates() != expected:
            self._fail("the estimates differ")

    def _count(self, before: Keys, replies: int, ended: bool) -> None:
        """Count a call, and the replies that it did not store: at most those under way."""
        after = self.commands.stored()
        self.tally.kills += not ended
        self.tally.replies += replies
        if lost := before - after:
            self._fail(f"{len(lost)} answers were lost")
        if self.kind.asks:
            unstored = replies - len(after - before)
            self.tally.unfinished += unstored
            if unstored > (0 if ended else MOST_UNDER_WAY):
                self._fail(f"{unstored} replies were not stored")

    def _fail(self, problem: str) -> None:
        self.tally.failures.append(f"{self.name}: {problem}")


def main(data: Path, scratch: Path, kills: int = 100, seed: int = 1) -> int:
    """Spread the kills over all kinds, print what happened, and return 1 if anything went wrong."""
    tally, rng = Tally(), random.Random(seed)  # noqa: S311 (to repeat it)
    for number, (name, kind) in enumerate(KINDS.items()):
        share = kills // len(KINDS) + (number < kills % len(KINDS))
        place = scratch / str(number) / "place"
        commands = Commands(data.resolve(), place.resolve(), reserve_port())
        try:
            Trial(name, kind, commands, place, tally).disturb(share, rng)
        except RuntimeError as error:
            tally.failures.append(f"{name}: {error}")
        shutil.rmtree(place.parent)
        print(f"{name}: {tally.kills} kills, {len(tally.failures)} failures", flush=True)
    print(json.dumps(tally.__dict__))
    return bool(tally.failures)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), *map(int, sys.argv[3:])))
