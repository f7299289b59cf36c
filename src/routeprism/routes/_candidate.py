"""A memory under test, to which records are added step by step, however its policy builds."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any

from routeprism.errors import (
    ContractError,
    InapplicableError,
    LimitError,
    MissingExtraError,
    SpecError,
)
from routeprism.frames import OWN_ERRORS
from routeprism.policies import (
    DeclaredCalls,
    Event,
    Exposure,
    Memory,
    Policy,
    StandIn,
    can_revive,
    is_deterministic,
    revive_memory,
)
from routeprism.policies.own import (
    OwnMemory,
    close_memory,
    count_retained,
    find_own_memory,
    wrap_asynchronous,
)
from routeprism.printing import pluralise
from routeprism.records import Record
from routeprism.redaction import Redactor

_REASONS = ("reason", "error", "skipped", "rejected")
"""The keys of a reply under which a memory may say why it did not keep a record."""
_QUOTED = 60
"""Characters of a text that are shown."""
_LIKE = 16
"""From how many equal first characters on two ids are easily confused."""
_PUNCTUATION = re.compile(r"[\W_]")


class Candidate:
    """One memory: it is added to if it takes records one by one, and else built again each time."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        inner = policy.inner if isinstance(policy, DeclaredCalls) else policy
        self.own: OwnMemory | None = find_own_memory(inner)
        self.arrivals: list[Record] = []
        self.reasons: dict[str, str] = {}
        """Record → why the memory did not keep it, as its reply or its exception says."""
        self.requests: Counter[str] = Counter()
        """How often records were added, the list was read, and a question was asked."""
        self._begun: Any = None
        self._live: Any = None
        self._built: Memory | None = None

    @property
    def is_real(self) -> bool:
        """Whether there is a memory; a dry run only counts what one would be given."""
        return not isinstance(self.policy, StandIn)

    @property
    def takes_time(self) -> bool:
        """Whether a look waits for what the memory stores in the background."""
        return self.own is not None and bool(getattr(self.live, "settle", None))

    @property
    def is_steady(self) -> bool:
        """Whether a record that vanishes between two looks was dropped, and not left to chance."""
        return self.own is not None or is_deterministic(self.policy)

    def add(self, records: Sequence[Record], *, at_once: bool = False) -> None:
        """Add records, one by one or in one request; note what is refused."""
        self._forget()
        self.requests["adds"] += len(records)
        self._count_calls(len(records))
        if self.own is None:
            self._try_arrivals(records)
        elif at_once:
            self.live.add_many(list(records))
            self.arrivals += records
        else:
            live = self.live
            for record in records:
                reply = self._note_error(record, partial(self.own.add, live, record))
                self.arrivals.append(record)
                if reason := _read_reason(reply):
                    self.reasons.setdefault(record.id, reason)

    @property
    def live(self) -> Any:
        """The object that records are added to."""
        if self._live is None and self.own is not None:
            self._begun = self.own.begin()
            self._live = self._begun.__enter__()
        return self._live

    def offers(self, *methods: str) -> bool:
        """Whether records can be added, or the memory renewed, with these methods."""
        if self.own is None:
            return methods == ("snapshot", "revive") and can_revive(self.policy)
        allowed = self.own.procedures
        if methods == ("add_many",) and allowed is not None and "bulk" not in allowed:
            return False
        return all(callable(getattr(self.live, method, None)) for method in methods)

    def renew(self, kind: str) -> None:
        """Continue from the storage (`restart`) or from a snapshot (`reload`) of the memory."""
        from routeprism.overlap import renew_memory

        if self.own is not None:
            self.own.settle(self.live)
            self._forget()
            self._live = renew_memory(self.own, self.live, kind)
            return
        stored = getattr(self.memory, "snapshot", None)
        if not callable(stored):
            raise InapplicableError(f"the memory of {self.policy.name} has no snapshot()")
        snapshot = json.loads(json.dumps(stored()))
        self._forget()
        self._built = revive_memory(self.policy, tuple(self.arrivals), snapshot)

    @property
    def memory(self) -> Memory:
        """The memory as it is now."""
        if self._built is None:
            if self.own is None:
                self._built = wrap_asynchronous(self.policy.build(tuple(self.arrivals)))
            else:
                self.own.settle(self.live)
                self._built = self.own.finish(self.live, self.arrivals)
        return self._built

    def list_ids(self) -> Counter[str]:
        """Count how often the memory lists each id."""
        self.requests["lists"] += 1
        return count_retained(self.memory, self.policy.name)

    def ask(self, query: str) -> Exposure:
        """Return what a text brings."""
        self.requests["searches"] += 1
        return self.memory.expose(query)

    def events(self) -> Sequence[Event]:
        """Return the event log, if there is one."""
        log = getattr(self.memory, "events", None)
        return tuple(log()) if callable(log) else ()

    def find_reason(self, record: str, events: Sequence[Event]) -> str:
        """Return why a record is not kept, as far as the memory says; empty if it does not."""
        if record in self.reasons:
            return self.reasons[record]
        for event in reversed(events):
            if event.kind == "add":
                continue
            if event.record == record:
                return f"event {event.kind} by {quote(event.by)}"
            if event.by == record and event.kind in ("merge", "overwrite"):
                return f"event {event.kind} of {quote(event.record)}"
        return ""

    def close(self) -> None:
        """Close the memory."""
        built, live, self._built, self._live = self._built, self._live, None, None
        if live is not None:
            close_memory(live)
        elif self.own is None and built is not None:
            close_memory(built)

    def __enter__(self) -> Candidate:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is None:
            self.close()
        else:
            with suppress(Exception):  # the first exception matters more
                self.close()

    def _forget(self) -> None:
        """Release a memory that was built from fewer records."""
        if self.own is None and self._built is not None:
            close_memory(self._built)
        self._built = None

    def _try_arrivals(self, records: Sequence[Record]) -> None:
        """Build with one more record after the other; one with which that fails is left out."""
        for record in records:
            arrivals = (*self.arrivals, record)
            self._forget()
            if isinstance(self.policy, StandIn) and find_own_memory(self.policy.inner) is not None:
                arrivals = (record,)  # the memory would be added to, and not built again
            built = self._note_error(record, partial(self.policy.build, arrivals))
            if built is not None:
                self._built = wrap_asynchronous(built)
                self.arrivals.append(record)

    def _note_error(self, record: Record, add: Callable[[], Any]) -> Any:
        try:
            return add()
        except (ContractError, LimitError, SpecError, MissingExtraError):
            raise
        except OWN_ERRORS as error:
            self.reasons[record.id] = quote(f"{type(error).__name__}: {error}", 200)
            return None

    def _count_calls(self, number: int) -> None:
        """Count the declared calls of a memory that is not built by its policy."""
        if self.own is not None and isinstance(self.policy, DeclaredCalls):
            self.policy.allowance.count(round(self.policy.calls_per_add * number))


def _read_reason(reply: Any) -> str:
    """Read from the reply to an add why the record is not kept; an id or a count is no reason."""
    if reply is False:
        return "add returned False"
    if isinstance(reply, str) and len(reply.split()) > 1:
        return quote(reply, 200)
    if isinstance(reply, Mapping):
        reasons = [f"{key}: {reply[key]}" for key in _REASONS if reply.get(key)]
        return quote(", ".join(reasons), 200) if reasons else ""
    return ""


def quote(text: str, most: int = _QUOTED) -> str:
    """Quote a text of a record or of a memory in one line, without secrets."""
    line = Redactor.configured().redact_line(text)
    return repr(line if len(line) <= most else f"{line[:most]}…")


def describe_record(record: Record) -> str:
    """Name a record by its id and the beginning of its text."""
    return f"{quote(record.id, 100)} {quote(record.user_text)}"


def describe_requests(requests: Counter[str]) -> str:
    """Count what a check asked of a memory."""
    names = (("adds", "add"), ("lists", "list"), ("searches", "search"))
    return ", ".join(
        f"{requests[kind]:,} searches" if name == "search" else pluralise(requests[kind], name)
        for kind, name in names
    )


def resemble_id(id: str, ids: Iterable[str]) -> str:
    """Describe how an id resembles one of several others, so that a system may confuse them."""
    for name in sorted({*ids} - {id}):
        if id.casefold() == name.casefold():
            return f" (it differs from {quote(name, 100)} only in case)"
        if _PUNCTUATION.sub("", id) == _PUNCTUATION.sub("", name):
            return f" (it differs from {quote(name, 100)} only in punctuation)"
        if id and name.startswith(id):
            return f" (it is the beginning of {quote(name, 100)})"
        equal = (pair[0] == pair[1] for pair in zip(id, name, strict=False))
        shared = len([*takewhile(bool, equal)])
        if shared >= _LIKE:
            return f" (it begins with the same {shared} characters as {quote(name, 100)})"
    return ""
