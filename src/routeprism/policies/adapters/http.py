"""`http:url=…`: any memory service that speaks four small requests (docs/adapters/http.md)."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from routeprism.errors import RouteError, SpecError
from routeprism.policies._contracts import Memory
from routeprism.policies.adapters._wire import build_over, decoded
from routeprism.records import Record
from routeprism.specs import written

__all__ = ["Http"]

_LARGEST = 64 * 2**20
"""How many bytes of a reply are read."""


@dataclass(frozen=True, slots=True)
class Http:
    """Audits a memory service over HTTP: reset, add, search, dump."""

    url: str
    """Where the service listens, with any path before the verbs."""
    timeout: float = 30.0
    """How many seconds a request may take in all; then the route has failed."""
    token: str = ""
    """The environment variable that holds a bearer token, if the service wants one."""
    deterministic: bool = True
    """Whether the same records in the same order always give the same memory."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise SpecError(f"Expected an address such as http://127.0.0.1:8080 but got {self.url}")
        if parts.username or parts.password:
            raise SpecError("Expected an address without a password; name a variable with token=…")
        if self.timeout <= 0:
            raise SpecError(f"Expected a timeout above 0 but got timeout={self.timeout}")

    @property
    def name(self) -> str:
        """The spec that every output says."""
        return written("http", self)

    def origin(self) -> str:
        """Say what is behind it, as far as it is known here."""
        return f"service at {self.url}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Reset a memory of its own, then add every arrival."""
        memory = uuid.uuid4().hex  # builds at the same time must not meet
        call = partial(self._call, memory)
        return build_over(call, arrivals, end=partial(self._forget, memory))

    def _forget(self, memory: str) -> None:
        with suppress(RouteError):  # a service that is gone has nothing left to forget
            self._call(memory, "reset", {})

    def _call(self, memory: str, verb: str, what: Mapping[str, Any]) -> Mapping[str, Any]:
        deadline = time.monotonic() + self.timeout
        parts = urlsplit(self.url)
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        connection = kind(parts.hostname or "", parts.port, timeout=self.timeout)
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {os.environ.get(self.token, '')}"
        try:
            body = json.dumps({"memory": memory, **what}).encode()
            connection.request("POST", f"{parts.path.rstrip('/')}/{verb}", body, headers)
            reply = connection.getresponse()
            content = _read(reply, connection, deadline)
        except TimeoutError:
            raise RouteError(f"{verb}: no reply within {self.timeout:g} seconds") from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "strerror", None) or error or type(error).__name__
            raise RouteError(f"{verb}: {self.url} cannot be asked: {reason}") from None
        finally:
            connection.close()
        if reply.status != 200:
            shown = content.decode(errors="replace").strip()
            raise RouteError(
                f"{verb}: the service said {reply.status} {reply.reason}: {shown:.200}"
            )
        return decoded(content, verb)


def _read(reply: HTTPResponse, connection: HTTPConnection, deadline: float) -> bytes:
    """Read a reply piece by piece: one that trickles in for ever hangs like one that is silent."""
    pieces: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        if connection.sock is not None:
            connection.sock.settimeout(left)
        piece = reply.read1(65536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        size += len(piece)
        if size > _LARGEST:
            raise HTTPException(f"a reply of more than {_LARGEST} bytes")
