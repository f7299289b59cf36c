"""The reference service of the HTTP protocol: four requests, standard library alone.

    python examples/http_memory/server.py --port 8377
    routeprism audit sample --policy http:url=http://127.0.0.1:8377

Its memory keeps the newest notes, one sentence each, and gives those that share most words with a
question. Every item says which records it came from; a sentence that comes again is merged.
"""

from __future__ import annotations

import argparse
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WORD = re.compile(r"[a-z']{3,}")


class Notes:
    """At most `size` sentences, newest last."""

    def __init__(self, size: int = 12) -> None:
        self.size = size
        self.items: list[dict[str, Any]] = []

    def add(self, record: dict[str, Any]) -> list[dict[str, str]]:
        """Take a record's sentences in, and say what that did to others."""
        events = [{"kind": "add", "record": record["id"]}]
        held = self._held()
        said = " ".join(turn["text"] for turn in record["turns"] if turn["role"] != "assistant")
        for sentence in re.split(r"(?<=[.!?])\s+", said):
            known = next((item for item in self.items if item["text"] == sentence), None)
            if known is not None:
                events += [{"kind": "merge", "record": one} for one in known["sources"]]
                known["sources"] = sorted({*known["sources"], record["id"]})
            elif sentence.strip():
                self.items.append({"text": sentence, "sources": [record["id"]]})
        del self.items[: -self.size]
        gone = sorted(held - self._held())
        return events + [{"kind": "evict", "record": one} for one in gone]

    def search(self, query: str, best: int = 3) -> list[dict[str, Any]]:
        """Give the sentences that share most words with the question, equal ones newest first."""
        wanted = set(WORD.findall(query.lower()))
        scored = [
            (len(wanted & set(WORD.findall(item["text"].lower()))), at, item)
            for at, item in enumerate(self.items)
        ]
        ranked = sorted(scored, key=lambda one: (one[0], one[1]), reverse=True)
        return [item for score, _, item in ranked[:best] if score]

    def _held(self) -> set[str]:
        return {source for item in self.items for source in item["sources"]}


class Service(ThreadingHTTPServer):
    """One memory for each id that a client chooses."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.memories: dict[str, Notes] = {}
        self.lock = threading.Lock()

    def answer(self, verb: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked of a memory."""
        name = asked["memory"]
        with self.lock:
            if verb == "reset":  # the first request of a build and, to clean up, its last
                self.memories.pop(name, None)
                return {}
            memory = self.memories.setdefault(name, Notes())
            if verb == "add":
                return {"events": memory.add(asked["record"])}
            if verb == "search":
                return {"items": memory.search(asked["query"])}
            if verb == "dump":
                return {"items": memory.items}
        raise KeyError(verb)


class Handler(BaseHTTPRequestHandler):
    """Reads a JSON object, answers with one."""

    server: Service

    def do_POST(self) -> None:
        """Answer one request."""
        length = int(self.headers.get("Content-Length", 0))
        asked = json.loads(self.rfile.read(length))
        try:
            status, reply = 200, self.server.answer(self.path.strip("/"), asked)
        except KeyError as error:
            status, reply = 400, {"error": f"missing or unknown: {error}"}
        body = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8377)
    with Service(parser.parse_args().port) as service:
        print(f"http://127.0.0.1:{service.server_address[1]}", flush=True)
        service.serve_forever()


if __name__ == "__main__":
    main()
