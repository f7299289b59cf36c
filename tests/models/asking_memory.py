"""A memory system with a client of its own, as a program that tests start, kill and start again.

    python asking_memory.py RUN UPSTREAM [KILL_AFTER]

It audits a memory that asks its model once for each record, through RoutePrism's proxy, and kills
itself with SIGKILL after the given number of replies.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import routeprism
from routeprism.models import Allowance
from routeprism.models.gateway import Gateway, Line, open_endpoint
from routeprism.policies import Block, Client, Exposure
from routeprism.records import Record, load_benchmark

SAMPLE = load_benchmark("sample", None)
SMALL = replace(SAMPLE, cases=SAMPLE.cases[:2])
_replies: list[str] = []
_kill_after = 0


@dataclass(frozen=True)
class Memory:
    blocks: tuple[Block, ...]

    def retained(self) -> frozenset[str]:
        return frozenset().union(*(block.sources for block in self.blocks))

    def state(self) -> list[str]:
        return [block.text for block in self.blocks]

    def expose(self, query: str, /) -> Exposure:
        return Exposure(self.blocks)


@dataclass(frozen=True)
class Asking:
    """Keeps what its model says about the last three records; the reply is part of the text."""

    base_url: str
    name: str = "asking"
    price_in: float | None = None
    price_out: float | None = None
    gateway: Gateway | None = None
    allowance: Allowance | None = None
    deterministic: bool = False

    @property
    def client(self) -> Client:
        return Client("m", self.base_url, 1, 10, self.price_in, self.price_out, 3)

    def routed(self, gateway: Gateway, /) -> Asking:
        return replace(self, gateway=gateway)

    def metered(self, allowance: Allowance, /) -> Asking:
        return replace(self, allowance=allowance)

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        line = Line(
            self.name,
            [(record.id, record.text) for record in arrivals],
            self.base_url,
            self.price_in,
            self.price_out,
        )
        endpoint = open_endpoint("m", line, gateway=self.gateway, allowance=self.allowance)
        blocks = []
        for record in arrivals:
            try:
                text = ask(endpoint.base_url, endpoint.api_key, record.text)
            except urllib.error.HTTPError as error:
                error.close()
                if self.allowance is not None:
                    self.allowance.check()
                raise
            blocks.append(Block("note", text, frozenset({record.id})))
        return Memory(tuple(blocks[-3:]))


def ask(base_url: str, key: str, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(  # noqa: S310
        f"{base_url}/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}"},
    )
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        reply: dict[str, Any] = json.load(response)
    _replies.append("")
    if len(_replies) == _kill_after:
        os.kill(os.getpid(), signal.SIGKILL)
    return str(reply["choices"][0]["message"]["content"])


if __name__ == "__main__":
    if len(sys.argv) > 3:
        _kill_after = int(sys.argv[3])
    policy: Any = Asking(sys.argv[2])
    routeprism.audit(SMALL, policy, run=Path(sys.argv[1]), resamples=100, builds=2)
