"""A small MCP server with a race between reading and writing, for the tests of the adapter."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import uuid
from pathlib import Path

from mcp.server import MCPServer

parser = argparse.ArgumentParser()
parser.add_argument("--lag", type=float, default=0.0)
parser.add_argument("--broken", action="store_true")
parser.add_argument("--port", type=int, default=0)
options = parser.parse_args()
server = MCPServer("toy")
spaces: dict[str, list[dict[str, str]]] = {}
tasks = set()


async def store(space: str, text: str) -> None:
    items = list(spaces.get(space, []))
    await asyncio.sleep(0.01)  # as if it waited for a disk
    spaces[space] = [*items, {"id": uuid.uuid4().hex, "text": text}]
    if file := os.environ.get("TOY_FILE"):
        Path(file).write_text(json.dumps(spaces))


async def store_later(space: str, text: str) -> None:
    await asyncio.sleep(options.lag)
    spaces.setdefault(space, []).append({"id": uuid.uuid4().hex, "text": text})


@server.tool()
async def remember(space: str, text: str) -> str:
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


if options.port:
    server.run(transport="streamable-http", host="127.0.0.1", port=options.port)
else:
    server.run()
