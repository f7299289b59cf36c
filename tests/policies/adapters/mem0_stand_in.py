"""A stand-in for mem0's REST APIs on loopback: the hosted platform (v3) and the open server.

Paths, headers, bodies and replies follow mem0's documentation (docs/openapi.json and
server/main.py of its repository). It stores the words of each message; a message that begins with
the same three words as a stored one replaces it, as a model's UPDATE would.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from ...doubles import LoopbackServer

KEY = "m0-secret-key-1234567890"


class Mem0StandIn(LoopbackServer):
    """Keeps memories by user, and every request with its headers."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.users: dict[str, dict[str, str]] = {}
        self.pending: dict[str, list[Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.number = 0
        self.polls = 1
        """After how many polls an event has succeeded."""
        self.lock = threading.Lock()

    def store(self, body: dict[str, Any]) -> None:
        memories = self.users.setdefault(body["user_id"], {})
        for message in body["messages"]:
            words = message["content"]
            same = [key for key, old in memories.items() if old.split()[:3] == words.split()[:3]]
            if same and body["infer"]:
                memories[same[0]] = words
            else:
                self.number += 1
                memories[f"m{self.number}"] = words

    def show(self, user: str) -> list[dict[str, str]]:
        return [
            {"id": key, "memory": words, "user_id": user, "created_at": f"2024-01-01T{key}"}
            for key, words in self.users.get(user, {}).items()
        ]

    def find(self, body: dict[str, Any]) -> list[dict[str, str]]:
        expected = set(body["query"].lower().split())
        result = self.show(body["filters"]["user_id"])
        result.sort(key=lambda first: -len(expected & set(first["memory"].lower().split())))
        return result[: body["top_k"]]


class _Handler(BaseHTTPRequestHandler):
    server: Mem0StandIn
    protocol_version = "HTTP/1.1"

    def _answer(self, method: str) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = json.loads(self.rfile.read(length) or b"{}")
        parts = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        platform = parts.path.startswith(("/v1/", "/v3/"))
        arguments = self.headers.get("Authorization" if platform else "X-API-Key")
        with self.server.lock:
            self.server.requests.append((method, parts.path))
            if arguments != (f"Token {KEY}" if platform else KEY):
                self._send(401, {"detail": f"the key {arguments} is wrong"})
                return
            reply = self._platform if platform else self._open
            self._send(200, reply(f"{method} {parts.path}", body, query))

    def _platform(self, request: str, body: dict[str, Any], query: dict[str, str]) -> Any:
        server = self.server
        if request == "POST /v3/memories/add/":
            if not body["infer"]:
                server.store(body)
                return {"message": "stored", "results": []}
            event = f"e{len(server.pending)}"
            server.pending[event] = [body, server.polls]
            return {"event_id": event, "status": "PENDING"}
        if request.startswith("GET /v1/event/"):
            waiting = server.pending[request.split("/")[3]]
            waiting[1] -= 1
            if waiting[1] == 0:
                server.store(waiting[0])
            return {"status": "PENDING" if waiting[1] > 0 else "SUCCEEDED"}
        if request == "POST /v3/memories/":
            result = server.show(body["filters"]["user_id"])
            page, size = int(query["page"]), int(query["page_size"])
            return {"count": len(result), "results": result[(page - 1) * size : page * size]}
        if request == "POST /v3/memories/search/":
            return {"results": server.find(body)}
        assert request == "DELETE /v1/memories/"
        server.users.pop(query["user_id"], None)
        return {"message": "Memories deleted successfully!"}

    def _open(self, request: str, body: dict[str, Any], query: dict[str, str]) -> Any:
        server = self.server
        if request == "POST /memories":
            server.store(body)
            return {"results": []}
        if request == "GET /memories":
            return {"results": server.show(query["user_id"])[: int(query["top_k"])]}
        if request == "POST /search":
            return {"results": server.find(body)}
        assert request == "DELETE /memories"
        server.users.pop(query["user_id"], None)
        return {"message": "All relevant memories deleted"}

    def _send(self, status: int, reply: Any) -> None:
        content = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, format: str, *arguments: object) -> None:
        """Print nothing."""
