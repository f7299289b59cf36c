"""What adapters of memory systems share: imports, texts, embeddings, request counts, the memory."""

from __future__ import annotations

import importlib
import logging
import os
import threading
import types
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from routeprism.errors import MissingExtraError, RouteError, SpecError
from routeprism.models import Allowance
from routeprism.policies._contracts import Block, Event, Exposure, JsonValue
from routeprism.policies._lineage import joins, quotes
from routeprism.policies._wrappers import Client
from routeprism.records import Record
from routeprism.redaction import Redactor, hide_credentials
from routeprism.specs import positive, write_spec
from routeprism.text.hashing import hash_words

if TYPE_CHECKING:
    from routeprism.models.gateway import Endpoint, Gateway

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
    """The records that arrived, if stored items that repeat them are counted."""

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
        return describe_blocks(self.list_blocks())

    def expose(self, query: str, /) -> Exposure:
        """Search."""
        return Exposure(tuple(self.search(query)))

    def events(self) -> Sequence[Event]:
        """Return what each arrival did."""
        return self.log

    def close(self) -> None:
        """Release the system's resources."""
        self.end()


def describe_blocks(blocks: Sequence[Block]) -> JsonValue:
    """Return items in plain JSON, as the state of a memory."""
    return [[block.kind, block.text, sorted(block.sources)] for block in blocks]


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


def log_changes(
    arrivals: Sequence[Record],
    add: Callable[[Record], object],
    list_retained: Callable[[], Iterable[str]],
) -> tuple[Event, ...]:
    """Add the arrivals one by one; log what each of them added, and what the system dropped."""
    before: frozenset[str] = frozenset()
    events: list[Event] = []
    for at, record in enumerate(arrivals):
        add(record)
        now = frozenset(list_retained())
        events.append(Event("add" if record.id in now else "skip", record.id, record.id, at))
        events.extend(Event("evict", id, record.id, at) for id in sorted(before - now))
        before = now
    return tuple(events)


def adapt_system(
    arrivals: Sequence[Record],
    add: Callable[[Record], object],
    list_blocks: Callable[[], Sequence[Block]],
    search: Callable[[str], Sequence[Block]],
    end: Callable[[], object] = _nothing,
) -> AdaptedMemory:
    """Add the arrivals to a system that keeps their ids, and give its memory."""

    def list_retained() -> Iterable[str]:
        return (id for block in list_blocks() for id in block.sources)

    try:
        log = log_changes(arrivals, add, list_retained)
    except BaseException:
        end()
        raise
    return AdaptedMemory(list_blocks, search, log, end, arrivals=arrivals)


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


System = TypeVar("System", bound="ClientSystem")


@dataclass(frozen=True, slots=True)
class ClientSystem:
    """The options of a memory system that asks a model with a client of its own."""

    spec: ClassVar[str]
    """The name of the policy."""

    model: str = ""
    """The model that decides what is stored, or `scripted`; empty for none."""
    base_url: str = ""
    """Where the model is, an OpenAI-compatible endpoint; key from OPENAI_API_KEY."""
    k: int = 10
    """How many items a question brings. The default of the systems."""
    price_in: float | None = field(default=None, metadata={"named": False})
    """Price of a million input tokens of the model, for `--dry-run` and `--max-cost`."""
    price_out: float | None = field(default=None, metadata={"named": False})
    """Price of a million output tokens of the model."""
    allowance: Allowance | None = field(default=None, compare=False, repr=False)
    """The calls and the money that the command may still spend; an audit sets it."""
    gateway: Gateway | None = field(default=None, compare=False, repr=False)
    """The proxy that the model's requests go through; an audit sets it."""

    def __post_init__(self) -> None:
        if self.base_url and hide_credentials(self.base_url) != self.base_url:
            raise SpecError(
                f"Expected base_url without user, password and query in '{self.spec}'; a policy's "
                f"name is stored. Set OPENAI_BASE_URL instead"
            )
        positive(self.name, k=self.k)
        if (self.price_in is None) != (self.price_out is None):
            raise SpecError(f"Expected both price_in and price_out, or neither, in '{self.name}'")
        for price in (self.price_in, self.price_out):
            if price is not None and not 0 <= price < 1e9:
                raise SpecError(f"Expected prices of 0 or more but got {price:g} in '{self.name}'")

    @property
    def name(self) -> str:
        """The spec in every output."""
        return write_spec(self.spec, self)

    @property
    def deterministic(self) -> bool:
        """Whether the same arrivals always give the same memory; not with a language model."""
        return not self.model or self.scripted

    @property
    def scripted(self) -> bool:
        """Whether the scripted model of this package decides what to keep."""
        from routeprism.models.gateway import is_scripted

        return is_scripted(self.model, self.base_url)

    def metered(self: System, allowance: Allowance, /) -> System:
        """Return the same policy, counting every request of the system's client."""
        return replace(self, allowance=allowance)

    def routed(self: System, gateway: Gateway, /) -> System:
        """Return the same policy, whose client asks through a proxy."""
        return replace(self, gateway=gateway)

    def make_client(self, calls_per_add: float, instructions: int) -> Client:
        """Describe the system's client: its calls for each record, and their instructions."""
        return Client(
            self.model,
            self.base_url or os.environ.get("OPENAI_BASE_URL", ""),
            calls_per_add,
            instructions,
            self.price_in,
            self.price_out,
            self.k,
        )

    def connect(self, arrivals: Sequence[Record], api_key: str = "") -> Endpoint:
        """Open the endpoint that one build's client asks: the model's, or the run's proxy to it."""
        from routeprism.models.gateway import Line, open_endpoint

        texts = [(record.id, record.text) for record in arrivals]
        prices = self.price_in, self.price_out
        line = Line(self.name, texts, self.base_url, *prices, api_key)
        return open_endpoint(self.model, line, gateway=self.gateway, allowance=self.allowance)


def explain_failure(
    action: str,
    error: Exception,
    *,
    allowance: Allowance | None = None,
    redactor: Redactor | None = None,
) -> RouteError:
    """Make the error of a system that failed; not if an allowance refused a call."""
    if allowance is not None:
        allowance.check()
    words = (redactor or Redactor.configured()).redact_line(f"{type(error).__name__}: {error}")
    return RouteError(f"{action}: {words}")


_patching = threading.Lock()


@contextmanager
def count_names(*modules: Any, name: Callable[[int], uuid.UUID]) -> Iterator[None]:
    """Replace random names by numbers, so that equal arrivals give equal memories and prompts.

    A module has imported `uuid4`, or the whole module `uuid`.
    """
    numbers = count(1)

    def uuid4() -> uuid.UUID:
        return name(next(numbers))

    shim = types.SimpleNamespace(**{**vars(uuid), "uuid4": uuid4})
    with _patching:
        names = ["uuid4" if hasattr(module, "uuid4") else "uuid" for module in modules]
        places = [
            (module, name, getattr(module, name))
            for module, name in zip(modules, names, strict=True)
        ]
        try:
            for module, attribute, _ in places:
                setattr(module, attribute, uuid4 if attribute == "uuid4" else shim)
            yield
        finally:
            for place in places:
                setattr(*place)


def count_verbatim(blocks: Sequence[Block], arrivals: Sequence[Record]) -> Mapping[str, int]:
    """Count the stored items, and those that repeat or join texts of records they came from."""
    records = {record.id: record for record in arrivals}
    number = 0
    for block in blocks:
        sources = [records[source] for source in sorted(block.sources) if source in records]
        quoted = any(quotes(record, block.text, cut=True) for record in sources)
        number += quoted or (bool(sources) and joins(sources, block.text))
    return {"stored_items": len(blocks), "verbatim_items": number}
