"""A server on loopback that counts connections and requests, and answers as a model or a memory."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

from .doubles import LoopbackServer


class Counting(LoopbackServer):
    """Counts what reaches it; a dry run must leave all counts at 0."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.connections = 0
        self.requests: list[str] = []
        self.memories: dict[str, list[Any]] = {}
        self.lock = threading.Lock()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def verify_request(self, request: Any, address: Any) -> bool:
        """Count every connection, whatever is said on it."""
        with self.lock:
            self.connections += 1
        return True

    def model_calls(self) -> int:
        """Count the requests for a model's reply."""
        return sum(path.endswith("/chat/completions") for path in self.requests)


class _Handler(BaseHTTPRequestHandler):
    server: Counting
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(self.path)
            reply = self._chat(request) if "chat" in self.path else self._memory(request)
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _chat(self, request: dict[str, Any]) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "a"}
        if request.get("response_format"):  # mem0
            message["content"] = json.dumps({"memory": [{"id": "0", "text": "A fact."}]})
        elif request.get("tools"):  # LangMem
            arguments = json.dumps({"content": "A fact."})
            function = {"name": "Memory", "arguments": arguments}
            message["content"] = None
            message["tool_calls"] = [{"id": "c", "type": "function", "function": function}]
        words = sum(len(str(entry.get("content")).split()) for entry in request["messages"])
        usage = {"prompt_tokens": words, "completion_tokens": 100, "total_tokens": words + 100}
        return {
            "id": "x",
            "object": "chat.completion",
            "created": 0,
            "model": request.get("model", "m"),
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": usage,
        }

    def _memory(self, request: dict[str, Any]) -> dict[str, Any]:
        verb, name = self.path.rpartition("/")[2], str(request.get("memory"))
        if verb == "reset":
            self.server.memories[name] = []
        if verb == "add":
            self.server.memories.setdefault(name, []).append(request["record"])
        records = self.server.memories.get(name, [])
        return {
            "items": [{"text": record["text"], "sources": [record["id"]]} for record in records]
        }

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
