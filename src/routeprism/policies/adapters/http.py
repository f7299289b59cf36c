"""Memory services: `http:url=…` with four small requests, `http:profile=…` for an existing API."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from routeprism.errors import RouteError, SpecError
from routeprism.policies._contracts import Memory
from routeprism.policies._wrappers import Client, check_calls
from routeprism.policies.adapters._exchange import (
    Transport,
    check_service_address,
    read_token,
)
from routeprism.policies.adapters._profile import load_profile
from routeprism.policies.adapters._remote import RemoteMemory
from routeprism.policies.adapters._service_memory import ServiceMemory
from routeprism.policies.adapters._session import ServiceSession, build_session
from routeprism.policies.adapters._walk import ProfileStep, walk_profile
from routeprism.policies.adapters._wire import Call, build_remote, decode_reply
from routeprism.policies.own import OwnMemory
from routeprism.records import Record
from routeprism.redaction import Redactor
from routeprism.specs import check_timeout, write_spec

__all__ = ["Http"]


@dataclass(frozen=True, slots=True)
class Http:
    """Audits a memory service over HTTP: reset, add, search, dump."""

    url: str = ""
    """Where the service listens, with any path before the verbs; replaces that of a profile."""
    timeout: float = 30.0
    """How many seconds a request may take in all; then the route has failed."""
    token: str = ""
    """The environment variable with a bearer token, if the service requires one."""
    deterministic: bool = True
    """Whether the same records in the same order always give the same memory."""
    profile: str = ""
    """A TOML file that maps the memory onto an existing API (docs/adapters/profiles.md)."""
    settle: float = 0.0
    """Seconds within which an added record is stored, if the service answers before that."""
    discard: bool = field(default=False, metadata={"named": False})
    """Whether `[reset]` may delete what the memory contained before the first build."""
    bulk: bool = False
    """Whether the service has a fifth request, `add_many`, that adds several records."""
    calls_per_add: float | None = field(default=None, metadata={"named": False})
    """Model calls that the service makes for each record, for `--dry-run` and `--max-calls`."""

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        if not self.url and not self.profile:
            raise SpecError("Expected url=ADDRESS, or profile=FILE.toml for an existing API")
        if self.profile:
            if self.token:
                raise SpecError("Expected the token in [headers] of the profile, not as token=…")
            load_profile(self.profile, self.url)  # refuse a wrong one before anything is built
            return
        check_service_address(
            self.url, "name the environment variable of a bearer token with token=…"
        )

    @property
    def procedures(self) -> tuple[str, ...]:
        """The procedures that it can perform beside adding records one by one."""
        bulk = load_profile(self.profile, self.url).bulk if self.profile else self.bulk
        return ("bulk", "overlap") if bulk else ("overlap",)

    @property
    def name(self) -> str:
        """The spec in every output."""
        return write_spec("http", self)

    @property
    def client(self) -> Client:
        """Describe the address and the model calls of the service, as far as they are declared."""
        calls = check_calls(self.name, self.calls_per_add)
        return Client(address=self._address(), calls_per_add=calls)

    def origin(self) -> str:
        """Name the service, as far as it is known here."""
        if self.profile:
            digest = load_profile(self.profile, self.url).sha256
            return f"service at {self._address()}, profile sha256 {digest}"
        return f"service at {self.url}"

    @property
    def exclusive(self) -> bool:
        """Whether only one build may be open at a time."""
        return bool(self.profile) and load_profile(self.profile, self.url).isolation == "reset"

    def _address(self) -> str:
        return load_profile(self.profile, self.url).url if self.profile else self.url

    def walk(self) -> Iterator[ProfileStep]:
        """Try the steps of the profile one after the other, and say in words what each found."""
        if self.profile:
            profile = load_profile(self.profile, self.url)
            yield from walk_profile(profile, self.timeout, discard=self.discard)

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Reset a new memory, then add every arrival."""
        if self.profile:
            profile = load_profile(self.profile, self.url)
            return build_session(profile, arrivals, self.timeout, discard=self.discard)
        if self.settle:
            return OwnMemory(self.open, self.name).build(arrivals)
        call, end, redactor = self._connect()
        return build_remote(call, arrivals, end=end, redactor=redactor)

    def open(self) -> RemoteMemory | ServiceMemory:
        """Return an empty memory, to which records can be added one by one or at once."""
        if self.profile:
            profile = load_profile(self.profile, self.url)
            session = ServiceSession(profile, self.timeout, discard=self.discard)
            return ServiceMemory(session)
        return RemoteMemory(*self._connect(), self.settle)

    def _connect(self) -> tuple[Call, Callable[[], object], Redactor]:
        service = _Service(self.url, self.timeout, read_token(self.token))
        memory = uuid.uuid4().hex  # builds at the same time must not meet
        return partial(service.call, memory), partial(service.forget, memory), service.redactor


class _Service:
    """Speaks the four verbs to a memory service."""

    def __init__(self, url: str, timeout: float, secret: str) -> None:
        headers = {"Content-Type": "application/json"}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        self.redactor = Redactor.configured(secret)
        self._transport = Transport(url, timeout, headers, self.redactor)

    def forget(self, memory: str) -> None:
        """Let the service forget a memory."""
        with suppress(RouteError):  # a service that is gone has nothing left to forget
            self.call(memory, "reset", {})

    def call(self, memory: str, verb: str, content: Mapping[str, Any]) -> Mapping[str, Any]:
        """Send one request, and read its reply."""
        body = json.dumps({"memory": memory, **content}).encode()
        reply = self._transport.send(verb, "POST", f"/{verb}", body)
        return decode_reply(reply, verb, self.redactor)
