"""A connection to an MCP server, usable from any thread.

The official SDK is asynchronous. Each connection has its own thread with a loop, so calls from
several threads are in flight at the same time.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from routeprism.errors import RouteError
from routeprism.redaction import Redactor

__all__ = ["ToolClient"]

_CLOSING = 10.0
"""Seconds that a server has to end."""


class ToolClient:
    """A connection to an MCP server."""

    def __init__(
        self, connect: Callable[[], Any], timeout: float, redactor: Redactor, log: Path | None
    ) -> None:
        self._connect, self._timeout, self._redactor, self._log = connect, timeout, redactor, log
        self._client: Any = None
        self._stop = asyncio.Event()
        self._opened: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="mcp", daemon=True)
        self._thread.start()
        try:
            self._opened.result(timeout)
        except Exception as error:
            self.close()
            raise RouteError(f"the MCP server cannot be used: {self._explain(error)}") from None

    def call(self, tool: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool, and give its result as JSON."""
        work = self._client.call_tool(tool, dict(arguments))
        pending = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            result = pending.result(self._timeout)
        except concurrent.futures.TimeoutError:
            pending.cancel()
            raise RouteError(f"{tool}: no reply within {self._timeout:g} seconds") from None
        except Exception as error:
            raise RouteError(f"{tool}: {self._explain(error)}") from None
        return self._read_result(tool, result)

    def close(self) -> None:
        """End the connection, and the server if it is a process of this connection."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(_CLOSING)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:  # raised where the connection is used
            if not self._opened.done():
                self._opened.set_exception(error)
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        async with self._connect() as client:
            self._client = client
            self._opened.set_result(None)
            await self._stop.wait()

    def _explain(self, error: BaseException) -> str:
        while isinstance(inner := getattr(error, "exceptions", None), tuple) and inner:
            error = inner[0]
        words = str(error) or type(error).__name__
        if self._log is not None and self._log.exists():
            output = self._log.read_bytes()[-500:].decode(errors="replace").strip()
            words += f"; its error output ends with: {output}" if output else ""
        return self._redactor.redact_line(words)

    def _read_result(self, tool: str, result: Any) -> Any:
        text = "".join(getattr(part, "text", "") for part in result.content)
        if result.is_error:
            raise RouteError(f"{tool}: the server replied: {self._redactor.redact_line(text)}")
        if result.structured_content is not None:
            return result.structured_content
        try:
            return json.loads(text) if text else None
        except ValueError:
            return text
