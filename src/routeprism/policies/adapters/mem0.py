"""mem0 with in-process Qdrant and a local embedding: verbatim, or with a model's decisions.

What a memory came from is observed by its id (`Lineage`), so that the event log names which arrival
added, changed or deleted which memory, whatever version of mem0 decides it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import ClassVar, Literal
from urllib.parse import urlsplit

from routeprism.errors import MissingExtraError, SpecError
from routeprism.policies._contracts import Memory
from routeprism.policies._wrappers import Client, check_calls
from routeprism.policies.adapters._mem0_store import (
    HistoryLog,
    OpenedMem0,
    import_mem0,
    load_config,
)
from routeprism.policies.adapters._profile import Profile, load_profile
from routeprism.policies.adapters._session import ServiceSession, build_session
from routeprism.policies.adapters._systems import (
    AdaptedMemory,
    ClientSystem,
    Embedding,
    Text,
    cut_turns,
    import_system,
    list_versions,
)
from routeprism.policies.adapters._wire import check_service_address
from routeprism.records import Record, Turn
from routeprism.specs import check_timeout
from routeprism.text import tokens
from routeprism.transport import Connections

__all__ = ["Mem0"]

_PLATFORM = "api.mem0.ai"
_KEY = "MEM0_API_KEY"
"""The variable in the headers of both profiles."""
_PROMPTS = (
    "ADDITIVE_EXTRACTION_PROMPT",
    "FACT_RETRIEVAL_PROMPT",
    "DEFAULT_UPDATE_MEMORY_PROMPT",
)
"""The instructions of mem0 2.x, then the two of 1.x."""


@dataclass(frozen=True, slots=True)
class Mem0(ClientSystem):
    """mem0: every turn stored as it is, or what a model extracts, updates and deletes."""

    spec: ClassVar[str] = "mem0"

    date: str = "2025-01-01"
    """The date in prompts, fixed so that answers collected yesterday are still valid."""
    embed: Embedding = "wordllama"
    """Which embedding."""
    text: Text = "user"
    """All roles' turns, or the user's alone."""
    chars: int = 0
    """The number of characters that each record is cut to; 0 leaves it whole."""
    config: str = ""
    """A JSON or YAML file in mem0's own format: vector store, model, embedder."""
    env: str = field(default="", metadata={"named": False})
    """The environment variables that this file may read, such as `TOKEN` or `TOKEN+TENANT`."""
    host: str = ""
    """Where a mem0 server listens, or https://api.mem0.ai for the hosted platform."""
    api: Literal["", "platform", "server"] = ""
    """Which API the host has; empty decides by its address."""
    token: str = _KEY
    """The environment variable with the key of the host; `none` if it requires none."""
    infer: bool = True
    """Whether the model of the host extracts memories, or turns are stored as they are."""
    timeout: float = field(default=60.0, metadata={"named": False})
    """How many seconds a request to the host may take."""
    calls_per_add: float | None = field(default=None, metadata={"named": False})
    """Model calls that the host makes for each record, for `--dry-run` and `--max-calls`."""
    _connections: Connections = field(
        default_factory=Connections, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        ClientSystem.__post_init__(self)
        self._check_place()
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", self.date):
            raise SpecError(f"Expected a date such as 2025-01-01 but got date={self.date}")

    def _check_place(self) -> None:
        """Refuse options that exclude each other, and a configuration that cannot be used."""
        check_timeout(self.timeout)
        if self.host and (self.config or self.model or self.base_url):
            raise SpecError(
                "Expected host=… alone: a mem0 server has its own model and configuration"
            )
        if self.host:
            check_service_address(self.host, "name the environment variable of a key with token=…")
        if self.config:
            load_config(self.config, self.env)  # refuse a wrong one before anything is built

    @property
    def platform(self) -> bool:
        """Whether the host has the API of the hosted platform."""
        by_address = urlsplit(self.host).hostname == _PLATFORM
        return self.api == "platform" or (not self.api and by_address)

    @property
    def configured(self) -> Mem0:
        """Return the policy with the model of its configuration, unless it names its own."""
        if not self.config or self.model:
            return self
        config = load_config(self.config, self.env)
        return replace(self, model=config.model or config.provider, base_url=config.base_url)

    @property
    def deterministic(self) -> bool:
        """Whether the same arrivals always give the same memory; not with a language model."""
        if self.host:
            return not self.infer
        return not self.configured.model or self.scripted

    @property
    def client(self) -> Client | None:
        """Describe its own client: mem0 1.x makes two requests for each record."""
        if self.host:
            calls = check_calls(self.name, self.calls_per_add)
            return Client(address=self.host, calls_per_add=calls, k=self.k)
        policy = self.configured
        if not policy.model or self.scripted:
            return None
        calls = 2 if _version().startswith(("0.", "1.")) else 1
        return policy.make_client(calls, _instructions())

    def origin(self) -> str:
        """Name the packages or the service behind it."""
        if self.host:
            return f"mem0 at {self.host}"
        packages = list_versions("mem0ai", "qdrant-client", "wordllama")
        if not self.config:
            return packages
        return f"{packages}, config sha256 {load_config(self.config, self.env).sha256}"

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Add every record to a new memory."""
        if self.host:
            records = list(map(self._cut, arrivals))
            session = ServiceSession(
                self._make_profile(), self.timeout, self._connections, variables=self.token
            )
            return build_session(session, records)
        policy = self.configured
        key = load_config(self.config, self.env).api_key if self.config and not self.model else ""
        opened = OpenedMem0.make(policy, import_mem0(), policy.connect(arrivals, key))
        log = HistoryLog(opened.memory.db.connection)
        try:
            with opened.counted_names():
                for at, record in enumerate(arrivals):
                    turns = cut_turns(record, self.text, self.chars)
                    opened.add(record, turns, bool(policy.model))
                    log.observe(record, at, opened.list_memories())
        except BaseException:
            opened.end()
            raise
        lineage = log.lineage
        return AdaptedMemory(
            list_blocks=lambda: lineage.blocks(opened.list_memories()),
            search=lambda query: [
                lineage.block(key, words) for key, words in opened.search(query, self.k)
            ],
            log=tuple(log.events),
            end=opened.end,
            counters=lineage.counts(),
            arrivals=() if policy.model else arrivals,  # a model may quote what it extracts
        )

    def _make_profile(self) -> Profile:
        """Return the requests of the host."""
        name = "mem0_platform" if self.platform else "mem0_server"
        file = files("routeprism.policies.adapters").joinpath(f"profiles/{name}.toml")
        profile = load_profile(str(file), self.host)
        headers = {
            header: template.replace(_KEY, self.token)
            for header, template in profile.headers.items()
            if self.token not in ("", "none")
        }
        add = replace(profile.add, body={**profile.add.body, "infer": self.infer})
        wait = profile.wait
        if not self.infer:  # the platform then stores at once, and its reply has no event
            add, wait = replace(add, capture={}), None
        search = replace(profile.search, size=self.k)
        return replace(profile, headers=headers, add=add, wait=wait, search=search)

    def _cut(self, record: Record) -> Record:
        """Return a record with the turns that the host receives."""
        turns = [Turn(role, words) for role, words in cut_turns(record, self.text, self.chars)]
        return Record.from_turns(record.id, record.position, turns, timestamp=record.timestamp)


def _version() -> str:
    """Return mem0's version; empty if it is missing."""
    with suppress(PackageNotFoundError):
        return version("mem0ai")
    return ""


def _instructions() -> int:
    """Count the tokens of the instructions that mem0 sends with every record."""
    with suppress(MissingExtraError):
        import_mem0()
        prompts = import_system("mem0.configs.prompts", "mem0", "mem0")
        lengths = [
            tokens.count(getattr(prompts, prompt))
            for prompt in _PROMPTS
            if hasattr(prompts, prompt)
        ]
        newest = lengths[:1] if hasattr(prompts, _PROMPTS[0]) else lengths
        return round(sum(newest) / len(newest)) if newest else 0
    return 0
