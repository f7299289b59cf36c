"""Every kind of run as command lines, with what they need: data, a memory, a model on loopback.

`{data}` is a directory with own data, `{place}` the directory in which runs are made. The model is
at the address of `OPENAI_BASE_URL`. Its reply depends on the prompt alone, so that a run that was
killed and resumed gives the same numbers as one that was not.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from routeprism.models.gateway import Gateway, Line, open_endpoint
from routeprism.policies import Block, Client, Exposure
from routeprism.records import Record

KEY = "sk-kinds-of-runs-0123456789"
_LETTERS = "abcd"


# --- a model -----------------------------------------------------------------------------------


class ModelServer(ThreadingHTTPServer):
    """A model at a port of the loopback address, which counts its replies."""

    daemon_threads = False  # closing waits for the replies under way
    request_queue_size = 128  # a refused connection would leave a note with its time in the run

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.replies = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def count_reply(self) -> None:
        with self._lock:
            self.replies += 1

    def handle_error(self, request: Any, address: Any) -> None:
        """Say nothing of the connections of a process that was killed."""


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = json.dumps(request["messages"], sort_keys=True)
        digest = hashlib.sha256(prompt.encode()).digest()
        message = {"role": "assistant", "content": _LETTERS[digest[0] % len(_LETTERS)]}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11}
        names = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
        body = json.dumps({**names, "choices": [choice], "usage": usage}).encode()
        self.server.count_reply()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Log nothing."""


def reserve_port() -> int:
    """Choose a port that is free now: a run is resumed with the same address of its model."""
    with ModelServer() as server:
        return server.port


def environment(port: int) -> dict[str, str]:
    """Give the variables with which commands find the model, and the classes of this file."""
    return {
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "PYTHONPATH": str(Path(__file__).parent),
    }


# --- memories ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Notes:
    blocks: tuple[Block, ...]

    def retained(self) -> frozenset[str]:
        return frozenset[str]().union(*(block.sources for block in self.blocks))

    def state(self) -> list[str]:
        return [block.text for block in self.blocks]

    def expose(self, query: str, /) -> Exposure:
        return Exposure(self.blocks)


@dataclass(frozen=True)
class Asking:
    """Keeps what its own client's model says about the last records."""

    k: int = 2
    gateway: Gateway | None = None
    deterministic: bool = False

    @property
    def name(self) -> str:
        return f"asking:k={self.k}"

    @property
    def client(self) -> Client:
        return Client("m", "", 1, 10, None, None, 3)

    def routed(self, gateway: Gateway, /) -> Asking:
        return replace(self, gateway=gateway)

    def build(self, arrivals: Sequence[Record], /) -> _Notes:
        line = Line(self.name, [(record.id, record.text) for record in arrivals])
        endpoint = open_endpoint("m", line, gateway=self.gateway)
        blocks = [
            Block("note", _ask(endpoint.base_url, endpoint.api_key, record.text), {record.id})
            for record in arrivals
        ]
        return _Notes(tuple(blocks[-self.k :]))


def _ask(base_url: str, key: str, text: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": text}]}
    request = urllib.request.Request(  # noqa: S310
        f"{base_url or os.environ['OPENAI_BASE_URL']}/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {key}"},
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
            reply: Mapping[str, Any] = json.load(response)
    except urllib.error.HTTPError as error:
        error.close()
        raise
    return f"{text} {reply['choices'][0]['message']['content']}"


class Racing:
    """Looks up what it has, waits, and writes: overlapping writes lose records."""

    def __init__(self) -> None:
        self.records: tuple[Record, ...] = ()

    async def add(self, record: Record) -> None:
        import asyncio

        before = self.records
        await asyncio.sleep(0)
        self.records = (*before, record)[-2:]

    def retained(self) -> list[str]:
        return [record.id for record in self.records]

    def expose(self, query: str) -> list[Record]:
        return list(self.records)


# --- kinds -------------------------------------------------------------------------------------

Command = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """The commands of one kind of run, which are killed, and those that come before them."""

    commands: tuple[Command, ...]
    before: tuple[Command, ...] = ()
    asks: bool = True
    """Whether the commands that are killed ask a model."""


def _line(text: str) -> Command:
    return (*text.split(), "--quiet", "--yes")


_RUN = "--run {place}/run --resamples 100"
_ASK = "-m openai:m"
_AUDIT = f"audit {{data}} -p recent:k=2 {_RUN}"
_BUILT = "memochat:lines=2,model=openai:m"
_IN_TURN = "--concurrency 1"
_OWN = "kinds_of_runs:Asking"


def _shards(text: str) -> tuple[Command, ...]:
    return tuple(_line(f"{text} --run {{place}}/{at} --shard {at}/2") for at in (1, 2))


_MERGED = f"audit {{data}} -p recent:k=2 {_ASK} --resamples 100"
_MERGE = _line("merge {place}/1 {place}/2 --run {place}/run")[:-1]
_REPORT = _line("report {place}/run --answers {place}/answers.csv --tables {place}/tables")[:-2]

KINDS = {
    "run": Kind((_line(f"{_AUDIT} {_ASK} --draws 2 --display reversed"), _REPORT)),
    "extension": Kind(
        (_line(f"{_AUDIT} {_ASK} --draws 2 --display reversed"), _REPORT),
        before=(_line(f"{_AUDIT} {_ASK}"), _REPORT),
    ),
    "repetition": Kind(
        (_line(f"{_AUDIT} {_ASK}"), _REPORT),
        before=(_line(f"{_AUDIT} {_ASK}"), _REPORT),
        asks=False,
    ),
    "report": Kind((_REPORT,), before=(_line(f"{_AUDIT} {_ASK}"),), asks=False),
    "own client": Kind((_line(f"audit {{data}} -p {_OWN} {_ASK} {_RUN}"),)),
    "own client, extended": Kind(
        (_line(f"audit {{data}} -p {_OWN} {_ASK} --draws 2 {_RUN}"),),
        before=(_line(f"audit {{data}} -p {_OWN} {_ASK} {_RUN}"),),
    ),
    "own client, shard": Kind((_line(f"audit {{data}} -p {_OWN} {_ASK} {_RUN} --shard 1/2"),)),
    "built by a model": Kind((_line(f"audit {{data}} -p {_BUILT} {_ASK} {_IN_TURN} {_RUN}"),)),
    "shard": Kind((_line(f"{_AUDIT} {_ASK} --shard 1/2"),)),
    "merge": Kind((_MERGE,), before=_shards(_MERGED), asks=False),
    "overlapping writes": Kind(
        (_line(f"audit {{data}} -p kinds_of_runs:Racing -s overlap:k=2 {_ASK} {_RUN}"),)
    ),
    "until": Kind((_line(f"{_AUDIT} {_ASK} --until H±0.45"),)),
    "cassette": Kind((_line(f"{_AUDIT} {_ASK} --record {{place}}/tape.jsonl"),)),
    "orders": Kind((_line(f"orders {{data}} -p recent:k=2 --shrink retained {_RUN}"),), asks=False),
    "orders, built by a model": Kind((_line(f"orders {{data}} -p {_BUILT} --orders 5 {_RUN}"),)),
    "orders, own client": Kind((_line(f"orders {{data}} -p {_OWN} --orders 5 {_RUN}"),)),
    "orders, own client, shard": Kind(
        (_line(f"orders {{data}} -p {_OWN} --orders 5 {_RUN} --shard 2/2"),)
    ),
    "remedy": Kind((_line(f"remedy {{data}} -p recent:k=2 {_ASK} {_RUN}"),)),
    "remedy, own client": Kind((_line(f"remedy {{data}} -p {_OWN} {_RUN}"),)),
    "curve": Kind((_line(f"curve {{data}} -p recent --budget k=1,2 {_RUN}"),), asks=False),
    "curve, built by a model": Kind(
        (_line(f"curve {{data}} -p {_BUILT} --budget k=1,2 {_IN_TURN} {_RUN}"),)
    ),
    "curve, own client": Kind((_line(f"curve {{data}} -p {_OWN} --budget k=1,2 {_RUN}"),)),
    "restore": Kind((_line(f"restore {{data}} -p recent:k=2 {_ASK} {_RUN}"),)),
    "screen": Kind((_line(f"screen {{data}} --pass a=openai:m {_RUN}"),)),
    "support": Kind((_line(f"support {{data}} --pass a=openai:m {_RUN}"),)),
    "support, shard": Kind((_line(f"support {{data}} --pass a=openai:m {_RUN} --shard 1/2"),)),
    "support, merge": Kind(
        (_MERGE,), before=_shards("support {data} --pass a=openai:m --resamples 100"), asks=False
    ),
}
