"""A small MCP server with a race between reading and writing, for the tests of the adapter."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import uuid
from collections import Counter
from pathlib import Path

import uvicorn
from mcp.server import MCPServer

parser = argparse.ArgumentParser()
parser.add_argument("--lag", type=float, default=0.0)
parser.add_argument("--broken", action="store_true")
parser.add_argument("--descriptor", type=int, help="the socket to serve on; without it, stdio")
parser.add_argument("--meeting", type=Path, help="while it exists, three adds read before a write")
parser.add_argument("--token", default="", help="the bearer token that a request needs")
options = parser.parse_args()
server = MCPServer("toy")
spaces: dict[str, list[dict[str, str]]] = {}
tasks = set()
readers: Counter[str] = Counter()


async def store(space: str, text: str) -> None:
    items = list(spaces.get(space, []))
    readers[space] += 1
    if options.meeting and options.meeting.exists():
        while readers[space] % 3:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.01)  # as if it waited for a disk
    spaces[space] = [*items, {"id": uuid.uuid4().hex, "text": text}]
    if file := os.environ.get("TOY_FILE"):
        Path(file).write_text(json.dumps(spaces))


async def store_later(space: str, text: str) -> None:
    await asyncio.sleep(options.lag)
    spaces.setdefault(space, []).append({"id": uuid.uuid4().hex, "text": text})


@server.tool()
async def remember(space: str, text: str, at: str = "") -> str:
    if options.broken:
        raise ValueError("broken on purpose")
    if options.lag:
        tasks.add(asyncio.create_task(store_later(space, text)))
    else:
        await store(space, text)
    return "stored"


@server.tool()
async def recall(space: str, query: str) -> list[dict[str, str]]:
    return [item for item in spaces.get(space, []) if query in item["text"]]


@server.tool()
async def forget(space: str, ids: list[str]) -> str:
    spaces[space] = [item for item in spaces.get(space, []) if item["id"] not in ids]
    return "forgotten"


async def serve_with_token(scope, receive, send) -> None:
    """Refuse requests without the token, and repeat what they had instead."""
    arguments = dict(scope.get("headers", ())).get(b"authorization", b"")
    wrong = options.token and arguments != f"Bearer {options.token}".encode()
    if scope["type"] == "http" and wrong:
        await send({"type": "http.response.start", "status": 401, "headers": []})
        await send({"type": "http.response.body", "body": b"not authorized: " + arguments})
        return
    await app(scope, receive, send)


if options.descriptor is None:
    server.run()
else:
    app = server.streamable_http_app()
    service = uvicorn.Server(uvicorn.Config(serve_with_token, log_level="error"))
    service.run(sockets=[socket.socket(fileno=options.descriptor)])
