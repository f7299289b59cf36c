"""A plain REST API for notes that knows nothing of RoutePrism, standard library alone.

    python examples/notes_service/server.py --port 8388
    routeprism audit sample --policy http:profile=examples/profiles/notes.toml

A worker stores each note 300 ms after it was sent, under an id of its own. An account keeps its
four newest notes, and lists them in pages of two. If NOTES_TOKEN is set, requests need that token.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

LAG = 0.3
KEEP = 4
PAGE = 2


class NoteService(ThreadingHTTPServer):
    """Serves accounts with notes."""

    daemon_threads = True

    def __init__(self, token: str, *, lag: float = LAG, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.token, self.lag = token, lag
        self.accounts: dict[str, list[dict[str, Any]]] = {}
        self.received: dict[str, list[str]] = {}
        """Account → the bodies that were sent, in order: the truth about arrivals."""
        self.requests: list[tuple[str, str]] = []
        self.echo = False
        """Whether errors repeat the request's token."""
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """Give the address of the API."""
        return f"http://127.0.0.1:{self.server_address[1]}/api/v3"

    def handle_error(self, request: Any, address: Any) -> None:
        """Say nothing of connections that a client gave up."""

    def take(self, account: str, content: str) -> None:
        """Store a note after the lag, and drop the oldest beyond the limit."""
        with self._lock:
            self.received.setdefault(account, []).append(content)

        def store() -> None:
            time.sleep(self.lag)
            with self._lock:
                number = next(self._numbers)
                note = {"uid": f"n-{number * 7919 % 10007:05d}", "content": content, "seq": number}
                notes = self.accounts.setdefault(account, [])
                notes.append(note)
                del notes[:-KEEP]

        threading.Thread(target=store, daemon=True).start()

    def notes(self, account: str) -> list[dict[str, Any]]:
        """Give the notes of an account, sorted by id, which is no order of arrival."""
        with self._lock:
            return sorted(self.accounts.get(account, []), key=lambda note: str(note["uid"]))


class _Handler(BaseHTTPRequestHandler):
    server: NoteService

    def do_POST(self) -> None:
        self._answer("POST")

    def do_GET(self) -> None:
        self._answer("GET")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def _answer(self, method: str) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        self.server.requests.append((method, self.path))
        token = self.server.token
        if token and self.headers.get("Authorization") != f"Bearer {token}":
            shown = self.headers.get("Authorization") if self.server.echo else "no"
            return self._send(401, {"detail": f"not authorized: {shown}"})
        pieces = [unquote(piece) for piece in parts.path.split("/")]
        if pieces[:4] != ["", "api", "v3", "accounts"] or len(pieces) < 5:
            return self._send(404, {"detail": "not found"})
        account, rest = pieces[4], pieces[5:]
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if method == "POST" and rest == ["notes"]:
            self.server.take(account, json.loads(raw)["note"]["content"])
            return self._send(202, {"status": "queued"})
        if method == "GET" and rest == ["notes"]:
            start = (int(query.get("page", 1)) - 1) * PAGE
            notes = self.server.notes(account)
            return self._send(
                200, {"total": len(notes), "data": {"notes": notes[start : start + PAGE]}}
            )
        if method == "GET" and rest == ["find"]:
            words = set(query["q"].lower().split())
            notes = self.server.notes(account)
            notes.sort(key=lambda note: -int(note["seq"]))
            hits = sorted(
                notes, key=lambda note: -len(words & set(note["content"].lower().split()))
            )
            found = [{"uid": note["uid"], "snippet": note["content"]} for note in hits[:3]]
            return self._send(200, {"hits": found})
        if method == "DELETE" and not rest:
            self.server.accounts.pop(account, None)
            return self._send(204, None)
        return self._send(405, {"detail": "not allowed"})

    def _send(self, status: int, value: Any) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8388)
    parser.add_argument("--lag", type=float, default=LAG, help="seconds until a note is stored")
    given = parser.parse_args()
    NoteService(os.environ.get("NOTES_TOKEN", ""), lag=given.lag, port=given.port).serve_forever()
