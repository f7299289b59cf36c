"""mem0 behind its REST API: the hosted platform, or a server of your own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from urllib.parse import urlsplit

from routeprism.policies._contracts import Memory
from routeprism.policies.adapters._profile import Profile, load_profile
from routeprism.policies.adapters._session import build_session
from routeprism.policies.adapters._systems import Text, cut_turns
from routeprism.records import Record, Turn

__all__ = ["Mem0Service", "is_platform"]

_PLATFORM = "api.mem0.ai"
_KEY = "MEM0_API_KEY"
"""The variable in the headers of both profiles."""


@dataclass(frozen=True, slots=True)
class Mem0Service:
    """Where a mem0 service is, and how to use it."""

    host: str
    platform: bool
    """Whether it has the API of the hosted platform."""
    token: str
    """The environment variable with the key; empty for a server that requires none."""
    infer: bool
    """Whether its model extracts memories, or turns are stored as they are."""
    k: int
    timeout: float
    text: Text
    chars: int

    @property
    def profile(self) -> Profile:
        """Return the requests of the service."""
        name = "mem0_platform" if self.platform else "mem0_server"
        file = files("routeprism.policies.adapters").joinpath(f"profiles/{name}.toml")
        profile = load_profile(str(file), self.host)
        headers = {
            header: template.replace(_KEY, self.token)
            for header, template in profile.headers.items()
            if self.token
        }
        add = replace(profile.add, body={**profile.add.body, "infer": self.infer})
        wait = profile.wait
        if not self.infer:  # the platform then stores at once, and its reply has no event
            add, wait = replace(add, capture={}), None
        search = replace(profile.search, size=self.k)
        return replace(profile, headers=headers, add=add, wait=wait, search=search)

    def build(self, arrivals: Sequence[Record]) -> Memory:
        """Add every arrival under a user id that no other build has."""
        return build_session(self.profile, list(map(self._cut, arrivals)), self.timeout)

    def _cut(self, record: Record) -> Record:
        """Return a record with the turns that the service receives."""
        turns = [Turn(role, words) for role, words in cut_turns(record, self.text, self.chars)]
        return Record.from_turns(record.id, record.position, turns, timestamp=record.timestamp)


def is_platform(host: str) -> bool:
    """Whether an address is that of the hosted platform."""
    return urlsplit(host).hostname == _PLATFORM
