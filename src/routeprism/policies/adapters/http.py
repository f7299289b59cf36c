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
from routeprism.policies.adapters._observed import ObservedMemory
from routeprism.policies.adapters._profile import Profile, load_profile
from routeprism.policies.adapters._session import ServiceSession, build_session
from routeprism.policies.adapters._walk import ProfileStep, walk_profile
from routeprism.policies.adapters._wire import (
    Call,
    RemoteMemory,
    Transport,
    check_service_address,
    decode_reply,
    read_token,
)
from routeprism.policies.own import OwnMemory, plan_settling
from routeprism.records import Record
from routeprism.redaction import Redactor
from routeprism.specs import SpecName, check_sizes, check_timeout
from routeprism.transport import RETRIES, Connections

__all__ = ["Http"]

_IN_PROFILES: Mapping[str, str] = {
    "token": "the token in [headers]",
    "settle": "a table [wait]",
    "bulk": "a table [bulk]",
    "idempotent": "idempotent = true in [add]",
}
"""Setting → where a profile has it."""


@dataclass(frozen=True, slots=True)
class Http:
    """Audits a memory service over HTTP: reset, add, search, dump."""

    name = SpecName("http")

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
    """Seconds within which an added record is stored, if the service answers before that.

    RoutePrism waits until nothing has changed for so long.
    """
    discard: bool = field(default=False, metadata={"named": False})
    """Whether `[reset]` may delete what the memory contained before the first build."""
    bulk: bool = False
    """Whether the service has a fifth request, `add_many`, that adds several records."""
    calls_per_add: float | None = field(default=None, metadata={"named": False})
    """Model calls that the service makes for each record, for `--dry-run` and `--max-calls`."""
    env: str = field(default="", metadata={"named": False})
    """The environment variables that the profile may read, such as `TOKEN` or `TOKEN+TENANT`."""
    retries: int = field(default=RETRIES, metadata={"named": False})
    """How often a request is repeated after a temporary failure, where that is safe."""
    idempotent: bool = field(default=False, metadata={"named": False})
    """Whether adding the same record twice has the same effect as adding it once."""
    _connections: Connections = field(
        default_factory=Connections, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        check_timeout(self.timeout)
        check_sizes(retries=self.retries)
        if not self.url and not self.profile:
            raise SpecError("Expected url=ADDRESS, or profile=FILE.toml for an existing API")
        if self.profile:
            for name, place in _IN_PROFILES.items():
                if getattr(self, name):
                    raise SpecError(f"Expected {place} of the profile, not {name}=…")
            load_profile(self.profile, self.url)  # refuse a wrong one before anything is built
            return
        check_service_address(
            self.url, "name the environment variable of a bearer token with token=…"
        )

    @property
    def _api(self) -> Profile | None:
        return load_profile(self.profile, self.url) if self.profile else None

    @property
    def procedures(self) -> tuple[str, ...]:
        """The procedures that it can perform beside adding records one by one."""
        bulk = api.bulk if (api := self._api) else self.bulk
        return ("bulk", "overlap") if bulk else ("overlap",)

    @property
    def client(self) -> Client:
        """Describe the address and the model calls of the service, as far as they are declared."""
        calls = check_calls(self.name, self.calls_per_add)
        if api := self._api:
            return Client(address=api.url, calls_per_add=calls, waiting=api.waiting)
        waiting = plan_settling(self.settle)
        return Client(address=self.url, calls_per_add=calls, waiting=waiting)

    def origin(self) -> str:
        """Name the service, as far as it is known here."""
        if api := self._api:
            return f"service at {api.url}, profile sha256 {api.sha256}"
        return f"service at {self.url}"

    @property
    def exclusive(self) -> bool:
        """Whether only one build may be open at a time."""
        return (api := self._api) is not None and api.isolation == "reset"

    def walk(self) -> Iterator[ProfileStep]:
        """Try the steps of the profile one after the other, and describe what each found."""
        if api := self._api:
            yield from walk_profile(api, partial(self._start_session, api))

    def build(self, arrivals: Sequence[Record], /) -> Memory:
        """Reset a new memory, then add every arrival."""
        if api := self._api:
            return build_session(self._start_session(api), arrivals)
        return OwnMemory(self.open, self.name).build(arrivals)

    def open(self) -> RemoteMemory | ObservedMemory:
        """Return an empty memory, to which records can be added one by one or at once."""
        if api := self._api:
            session = self._start_session(api)
            session.clear()
            session.open()
            return ObservedMemory(session)
        return RemoteMemory(*self._connect(), self.settle)

    def _start_session(self, api: Profile) -> ServiceSession:
        return ServiceSession(
            api,
            self.timeout,
            self._connections,
            retries=self.retries,
            discard=self.discard,
            variables=self.env,
        )

    def _connect(self) -> tuple[Call, Callable[[], object], Redactor]:
        """Return how to speak the four verbs to a new memory, and how to forget it."""
        secret = read_token(self.token)
        redactor = Redactor.configured(secret)
        headers = {"Content-Type": "application/json"}
        if secret:
            headers["Authorization"] = f"Bearer {secret}"
        transport = Transport(
            self.url, self.timeout, headers, redactor, self._connections, self.retries
        )
        memory = uuid.uuid4().hex  # builds at the same time must not meet

        def call(
            verb: str, content: Mapping[str, Any], *, retries: int | None = None
        ) -> Mapping[str, Any]:
            body = json.dumps({"memory": memory, **content}).encode()
            safe = self.idempotent or verb not in ("add", "add_many")
            reply = transport.send(verb, "POST", f"/{verb}", body, safe=safe, retries=retries)
            return decode_reply(reply, verb, redactor)

        def forget() -> None:
            with suppress(RouteError):  # a service that is gone has nothing left to forget
                call("reset", {}, retries=0)

        return call, forget, redactor
