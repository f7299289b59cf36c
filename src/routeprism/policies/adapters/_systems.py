"""What adapters of memory systems share: imports, texts, embeddings, request counts, the memory."""

from __future__ import annotations

import importlib
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from routeprism.errors import MissingExtraError, SpecError
from routeprism.models import Endpoint, Line, open_endpoint
from routeprism.policies._contracts import Block, Event, Exposure, JsonValue
from routeprism.policies._lineage import joins, quotes
from routeprism.records import Record
from routeprism.redaction import hide_credentials
from routeprism.text.hashing import hash_words

Text = Literal["user", "full"]
"""The part of a record that a system receives: its user turns, or all roles."""


def _nothing() -> None:
    """Release nothing."""


@dataclass(frozen=True, slots=True)
class AdaptedMemory:
    """A memory system with all arrivals; it is read again each time, so that changes show."""

    list_blocks: Callable[[], Sequence[Block]]
    """Reads all items of the system, in its own order: kinds, texts and sources."""
    search: Callable[[str], Sequence[Block]]
    """Searches the system for a question's text."""
    log: tuple[Event, ...] = ()
    """What each arrival did."""
    end: Callable[[], object] = _nothing
    """Releases the system's resources."""
    read_state: Callable[[], JsonValue] | None = None
    """Reads the internal state, if it is more than the items."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """How often something happened while it was built."""
    arrivals: Sequence[Record] = ()
    """What arrived, if stored items that repeat it are counted."""

    def counts(self) -> Mapping[str, int]:
        """Return how often something happened while it was built."""
        verbatim = count_verbatim(self.list_blocks(), self.arrivals) if self.arrivals else {}
        return {**self.counters, **verbatim}

    def retained(self) -> frozenset[str]:
        """Return the ids of all records that some item came from."""
        return frozenset().union(*(block.sources for block in self.list_blocks()))

    def state(self) -> JsonValue:
        """Return the items in the system's order, or its declared state."""
        if self.read_state is not None:
            return self.read_state()
        return [[block.kind, block.text, sorted(block.sources)] for block in self.list_blocks()]

    def expose(self, query: str, /) -> Exposure:
        """Search."""
        return Exposure(tuple(self.search(query)))

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        return self.log

    def close(self) -> None:
        """Release the system's resources."""
        self.end()


def import_system(module: str, system: str, extra: str) -> Any:
    """Import a module of a memory system; name the extra if it is missing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its dependencies warn about each other
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"{system} ({error.name} is missing)", extra) from error


def list_versions(*packages: str) -> str:
    """List the packages behind an adapter with their versions, for stored traces."""
    names = []
    for package in packages:
        try:
            names.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            names.append(f"{package} missing")
    return ", ".join(names)


def cut_text(record: Record, text: Text, chars: int) -> str:
    """Return the text of a record's roles, cut to this many characters (0: whole)."""
    whole = record.user_text if text == "user" else record.text
    return whole[:chars] if chars else whole


def cut_turns(record: Record, text: Text, chars: int) -> list[tuple[str, str]]:
    """Return a record's turns as (role, text) for systems that take messages; `chars` in all."""
    turns = [(turn.role, turn.text) for turn in record.turns if turn.text]
    if text == "user":
        turns = [turn for turn in turns if turn[0] == "user"] or [("user", record.user_text)]
    left = chars or sum(len(words) for _, words in turns)
    shortened = []
    for role, words in turns:
        if left > 0:
            shortened.append((role if role in _ROLES else "user", words[:left]))
        left -= len(words)
    return shortened


_ROLES = ("user", "assistant", "system")


@dataclass(slots=True)
class Changes:
    """Derives an event log from the records that a system retains after each arrival."""

    before: frozenset[str] = frozenset()
    events: list[Event] = field(default_factory=list)

    def after(self, record: Record, at: int, holding: Iterable[str]) -> None:
        """Record what an arrival added, and what the system dropped."""
        now = frozenset(holding)
        kind: Literal["add", "skip"] = "add" if record.id in now else "skip"
        self.events.append(Event(kind, record.id, record.id, at))
        for record_id in sorted(self.before - now):
            self.events.append(Event("evict", record_id, record.id, at))
        self.before = now


Embedding = Literal["wordllama", "words"]
"""The kind of embedding: small static vectors, or counts of hashed words."""
Vector = tuple[float, ...]

DIMENSIONS = {"wordllama": 256, "words": 1025}
"""The length of the vectors."""


def embedding(name: Embedding, extra: str) -> Callable[[str], Vector]:
    """Return the function from a text to its vector; `extra` installs the package."""
    if name == "words":
        return lambda text: hash_words(text, DIMENSIONS["words"])
    _wordllama(extra)  # a missing package is reported before anything is built
    return lambda text: _static(text, extra)


@lru_cache(maxsize=2048)
def _static(text: str, extra: str) -> Vector:
    """Embed one text alone, so that its vector does not depend on its neighbours in a batch."""
    vector = _wordllama(extra).embed([text])[0]
    return tuple(float(value) for value in vector)


@lru_cache(maxsize=1)
def _wordllama(extra: str) -> Any:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    package = import_system("wordllama", "the embedding wordllama", extra)
    root.handlers[:] = handlers  # importing it makes every library print what it logs
    root.setLevel(level)
    directory = Path(package.__file__).parent  # the weights come with the package
    return package.WordLlama.load(cache_dir=directory, disable_download=True)


def open_line(policy: Any, arrivals: Sequence[Record], api_key: str = "") -> Endpoint:
    """Open the endpoint that one build's client asks: the model's, or the run's proxy to it."""
    line = Line(
        policy.name,
        [(record.id, record.text) for record in arrivals],
        policy.base_url,
        policy.price_in,
        policy.price_out,
        api_key,
    )
    return open_endpoint(policy.model, line, gateway=policy.gateway, allowance=policy.allowance)


def check_prices(name: str, price_in: float | None, price_out: float | None) -> None:
    """Refuse one price without the other, and prices below 0."""
    if (price_in is None) != (price_out is None):
        raise SpecError(f"Expected both price_in and price_out, or neither, in '{name}'")
    for price in (price_in, price_out):
        if price is not None and not 0 <= price < 1e9:
            raise SpecError(f"Expected prices of 0 or more but got {price:g} in '{name}'")


def check_address(policy: str, base_url: str) -> None:
    """Refuse credentials in an address that becomes part of a policy's name, which is stored."""
    if base_url and hide_credentials(base_url) != base_url:
        raise SpecError(
            f"Expected base_url without user, password and query in '{policy}'; a policy's name is "
            f"stored. Set OPENAI_BASE_URL instead"
        )


def count_verbatim(blocks: Sequence[Block], arrivals: Sequence[Record]) -> Mapping[str, int]:
    """Count the stored items, and those that repeat or join texts of records they came from."""
    records = {record.id: record for record in arrivals}
    number = 0
    for block in blocks:
        sources = [records[source] for source in sorted(block.sources) if source in records]
        quoted = any(quotes(record, block.text, cut=True) for record in sources)
        number += quoted or (bool(sources) and joins(sources, block.text))
    return {"stored_items": len(blocks), "verbatim_items": number}
