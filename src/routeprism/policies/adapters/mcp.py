"""`mcp:command=…` and `mcp:url=…`: memory servers of the Model Context Protocol."""

from __future__ import annotations

import shlex
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from routeprism.errors import InapplicableError, RouteError, SpecError
from routeprism.policies._contracts import Block, JsonValue, Memory
from routeprism.policies._lineage import Lineage
from routeprism.policies._wrappers import Client, check_calls
from routeprism.policies.adapters._observed import ObservedMemory
from routeprism.policies.adapters._session import refuse_to_delete, show_record
from routeprism.policies.adapters._systems import import_system, list_versions
from routeprism.policies.adapters._templates import fill_value
from routeprism.policies.adapters._tools import (
    ToolCall,
    ToolClient,
    ToolListing,
    ToolProfile,
    load_tool_profile,
)
from routeprism.policies.adapters._wire import read_token
from routeprism.policies.own import OwnMemory
from routeprism.records import Record
from routeprism.redaction import Redactor, hide_credentials
from routeprism.specs import SpecName, check_timeout, positive
from routeprism.text.focal import focal_words
from routeprism.transport import bypass_proxy

__all__ = ["Mcp"]


@dataclass(frozen=True, slots=True)
class Mcp:
    """Audits a memory server of the Model Context Protocol (MCP)."""

    name = SpecName("mcp")

    command: str = ""
    """The command line of a server that speaks over its input and output; one process per build."""
    url: str = ""
    """The address of a server that is running already (streamable HTTP)."""
    profile: str = "server-memory"
    """Which tools add, list and search: a profile of RoutePrism, or a TOML file of your own."""
    processes: int = 1
    """Server processes on the same storage; adds go to them in turn."""
    timeout: float = 30.0
    """How many seconds a call may take; then the route has failed."""
    deterministic: bool = True
    """Whether the same records in the same order always give the same memory."""
    token: str = ""
    """The environment variable with a bearer token, if the server at `url` requires one."""
    discard: bool = field(default=False, metadata={"named": False})
    """Whether `[reset]` may delete what a running server contained before the first build."""
    env: str = field(default="", metadata={"named": False})
    """The environment variables that the profile may read, such as `TOKEN` or `TOKEN+TENANT`."""
    calls_per_add: float | None = field(default=None, metadata={"named": False})
    """Model calls that the server makes for each record, for `--dry-run` and `--max-calls`."""

    def __post_init__(self) -> None:
        if bool(self.command) == bool(self.url):
            raise SpecError("Expected either command=… or url=… for an MCP server")
        check_timeout(self.timeout)
        positive(self.name, processes=self.processes)
        profile = load_tool_profile(self.profile)
        if self.command:
            if self.token:
                raise SpecError("Expected token=… with url=…: a command has [environment]")
            self._split_command()
            return
        if hide_credentials(self.url) != self.url or not self.url.startswith("http"):
            raise SpecError("Expected an address such as http://127.0.0.1:8000/mcp without secrets")
        if self.processes != 1:
            raise SpecError("Expected processes=N with command=…: a server at url=… is running")
        profile.check_separation()

    def _split_command(self) -> list[str]:
        try:
            words = shlex.split(self.command)
        except ValueError as error:
            raise SpecError(f"Expected a command but got {self.command}: {error}") from None
        if not words:
            raise SpecError("Expected a command but got none")
        return words

    @property
    def procedures(self) -> tuple[str, ...]:
        """The procedures that it can perform beside adding records one by one."""
        return ("bulk", "restart", "overlap")

    @property
    def client(self) -> Client:
        """Describe the address and the model calls of the server, as far as they are declared."""
        calls = check_calls(self.name, self.calls_per_add)
        wait = load_tool_profile(self.profile).wait
        waiting = None if wait is None else wait.plan()
        return Client(address=self.url, calls_per_add=calls, waiting=waiting)

    @property
    def exclusive(self) -> bool:
        """Whether only one build may be open at a time."""
        return bool(self.url) and not load_tool_profile(self.profile).by_namespace

    def origin(self) -> str:
        """Name the server, the profile and the SDK."""
        digest = load_tool_profile(self.profile).sha256[:12]
        where = self.command or self.url
        return f"MCP server {where}, profile {digest}, {list_versions('mcp')}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Start a server, or a namespace on a running one, and add every arrival."""
        return OwnMemory(self.open, self.name, outside=True).build(arrivals)

    def open(self) -> ObservedMemory:
        """Return an empty memory, to which records can be added one by one or at once."""
        profile = load_tool_profile(self.profile)
        if self.url:
            token = read_token(self.token)
            connect = partial(_connect_to_url, self.url, token)
            session = _ToolSession(
                profile, lambda number: (connect, None), 1, self.timeout, secrets=(token,)
            )
            session.clear(discard=self.discard)
            return ObservedMemory(session)
        environment, secrets = profile.resolve_environment(self.env)
        directory = Path(tempfile.mkdtemp(prefix="routeprism-mcp-"))
        variables = {
            name: text.replace("{directory}", str(directory)) for name, text in environment.items()
        }
        words = self._split_command()

        def prepare(number: int) -> tuple[Any, Path]:
            log = directory / f"errors-{number}.log"
            return partial(_connect_to_command, words, variables, log), log

        try:
            session = _ToolSession(
                profile, prepare, self.processes, self.timeout, directory, secrets=secrets
            )
        except BaseException:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        return ObservedMemory(session)


@asynccontextmanager
async def _connect_to_url(url: str, token: str) -> AsyncIterator[Any]:
    sdk = _import("mcp")
    bypass_proxy(urlsplit(url).hostname or "")
    async with AsyncExitStack() as stack:
        target = url
        if token:
            transport = _import("mcp.client.streamable_http")
            headers = {"Authorization": f"Bearer {token}"}
            http = await stack.enter_async_context(
                transport.create_mcp_http_client(headers=headers)
            )
            target = transport.streamable_http_client(url, http_client=http)
        yield await stack.enter_async_context(sdk.Client(target))


@asynccontextmanager
async def _connect_to_command(
    words: Sequence[str], variables: Mapping[str, str], log: Path
) -> AsyncIterator[Any]:
    sdk, stdio = _import("mcp"), _import("mcp.client.stdio")
    parameters = sdk.StdioServerParameters(
        command=words[0], args=list(words[1:]), env=dict(variables)
    )
    with log.open("a", encoding="utf-8", errors="replace") as errors:
        async with sdk.Client(stdio.stdio_client(parameters, errlog=errors)) as client:
            yield client


def _import(module: str) -> Any:
    return import_system(module, "the MCP SDK", "mcp")


class _ToolSession:
    """The connections to an MCP server, with one memory for this build."""

    def __init__(
        self,
        profile: ToolProfile,
        prepare: Any,
        processes: int,
        timeout: float,
        directory: Path | None = None,
        *,
        secrets: Sequence[str],
    ) -> None:
        _import("mcp")  # a missing one is reported here
        self._profile, self._prepare, self._timeout = profile, prepare, timeout
        self._processes, self._directory = processes, directory
        self._memory = uuid.uuid4().hex
        self._redactor = Redactor.configured(*secrets)
        self.lineage = Lineage("entity", redactor=self._redactor)
        self._clients: list[ToolClient] = []
        self._connect()

    def write(self, record: Record, number: int) -> None:
        """Send a record to the next of the server's processes."""
        client = self._clients[number % len(self._clients)]
        self._call(self._profile.add, show_record(record), client)

    def write_all(self, records: Sequence[Record]) -> None:
        """Send several records in one call; not applicable if the profile has none."""
        call = self._profile.bulk
        if call is None:
            raise InapplicableError(f"{self._profile.name} has no table [bulk]")
        values = ({"memory": self._memory, **show_record(record)} for record in records)
        self._call(call, {"records": [fill_value(call.record, value) for value in values]})

    def wait(self, before: Mapping[str, str], records: Sequence[Record]) -> Mapping[str, str]:
        """Wait until ingestion has ended; give all items."""
        wait = self._profile.wait
        return self._list() if wait is None else wait.settle(self._list, before)

    def read_blocks(self) -> list[Block]:
        """Return all items in the server's order; one that came late is recorded as such."""
        items = self._list()
        self.lineage.check(items)
        return [self.lineage.block(key, text) for key, text in items.items()]

    def describe_state(self, blocks: Sequence[Block]) -> JsonValue:
        """Return the texts of all items."""
        return [block.text for block in blocks]

    def search(self, query: str) -> list[Block]:
        """Search for a question's text, as a whole or word by word."""
        listing = self._profile.search
        queries = list(dict.fromkeys(focal_words(query))) if listing.by_word else [query]
        texts: dict[str, str] = {}
        hits: Counter[str] = Counter()
        for words in queries:
            items = self._ask(listing, {"query": words})
            texts |= items
            hits.update(list(items))
        places = {key: at for at, key in enumerate(self._list())}
        ranked = sorted(hits, key=lambda key: (-hits[key], places.get(key, len(places)), key))
        ordered = ranked if listing.by_word else list(texts)
        return [self.lineage.block(key, texts[key]) for key in ordered[: listing.size]]

    def restart(self) -> None:
        """End the server and start it again on the same storage."""
        if self._directory is None:
            raise InapplicableError("RoutePrism cannot restart a server that is running already")
        self._disconnect()
        self._connect()

    def end(self) -> None:
        """End the server, or remove what was added to it."""
        if self._directory is None:
            with suppress(RouteError):  # a server that is gone has nothing left
                self._reset()
        self._disconnect()
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)

    def clear(self, *, discard: bool) -> None:
        """Empty a running server, unless it contains what may be someone's data."""
        try:
            if not (discard or self._profile.by_namespace) and (keys := self._list()):
                raise refuse_to_delete(len(keys))
            self._reset()
        except BaseException:
            self._disconnect()
            raise

    def _connect(self) -> None:
        try:
            for number in range(self._processes):
                connect, log = self._prepare(number)
                self._clients.append(ToolClient(connect, self._timeout, self._redactor, log))
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        while self._clients:
            self._clients.pop().close()

    def _reset(self) -> None:
        if self._profile.reset is not None and (keys := list(self._list())):
            self._call(self._profile.reset, {"keys": keys})

    def _call(
        self, call: ToolCall, values: Mapping[str, Any], client: ToolClient | None = None
    ) -> Any:
        arguments = fill_value(call.arguments, {"memory": self._memory, **values})
        return (client or self._clients[0]).call(call.tool, arguments)

    def _ask(self, listing: ToolListing, values: Mapping[str, Any]) -> dict[str, str]:
        result = self._call(listing.call, values)
        return listing.read(result, listing.call.tool, self._redactor)

    def _list(self) -> dict[str, str]:
        return self._ask(self._profile.list, {})
