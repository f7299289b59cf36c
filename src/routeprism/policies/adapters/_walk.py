"""A profile tried step by step, in words: which request, which key, which pointer found what."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from routeprism.errors import RouteError, SpecError
from routeprism.policies._lineage import quotes
from routeprism.policies.adapters._profile import Profile
from routeprism.policies.adapters._session import Item, ServiceSession
from routeprism.policies.adapters._templates import PointerError
from routeprism.policies.adapters._wire import ServiceError
from routeprism.printing import pluralise
from routeprism.records import Record

_RECORDS = (
    Record("walk-0", 0, "[USER] My neighbour Ada repairs accordions on Tuesdays."),
    Record("walk-1", 1, "[USER] The ferry to Hvar leaves at a quarter past nine."),
)
_QUERY = "Who repairs accordions?"
_QUOTED = 60
"""Characters of a text that are shown."""
_STEPS = {"list, empty": "list", "ingestion": "wait"}
"""Steps that have a different name from the table they try."""
_FIXES = {
    "headers": "export the variable, or correct its name in [headers]",
    "shared memory": "use a memory that is only for tests, or {memory} in the paths or bodies",
    "open": "correct [open]: request, body and the pointers of capture",
    "add": "correct [add]: request, body, id and capture",
    "commit": "correct [commit]: request, body and capture",
    "wait": "add or correct [wait], or raise its stable, patience or limit",
    "list": "correct [list]: request, items, and the pointers inside an item",
    "search": "correct [search]: request, items, and the pointers inside an item",
    "reset": "correct [reset], or leave the table out if every build has its own {memory}",
}
"""Table, or step without a table → what to correct."""


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """What one step of a profile found."""

    name: str
    passed: bool
    message: str
    fix: str = ""


class _Walk:
    """The state between the steps."""

    def __init__(self, profile: Profile, start: Callable[[], ServiceSession]) -> None:
        self.profile, self._start = profile, start
        self.session: ServiceSession

    def headers(self) -> str:
        self.session = self._start()
        isolation = (
            "each build has its own {memory}"
            if self.profile.isolation == "namespace"
            else "builds are separated by [reset], one at a time"
        )
        names = ", ".join(self.profile.headers) or "no headers"
        return f"{names} for {self.profile.url}; {isolation}"

    def clear(self) -> str:
        self.session.clear()
        if self.profile.isolation == "namespace":
            return "a fresh {memory} needs no reset"
        return "all builds use it one after the other, and it is empty"

    def open(self) -> str:
        step = self.profile.open
        if step is None:
            return "no [open]: the first add opens the memory"
        self.session.send(step, {})
        return f"{step.method} was accepted{self._describe_capture(step.capture)}"

    def empty(self) -> str:
        items = self.session.dump()
        if items:
            raise RouteError(
                f"the list has {pluralise(len(items), 'item')} before any record was added; the "
                f"first is {self._quote(items[0].text)}"
            )
        return f"'{self.profile.list.items}' leads to a list without items, as it should"

    def add(self) -> str:
        self.session.write(_RECORDS[0])
        step = self.profile.add
        id_note = f"; '{step.id}' leads to the record's id" if step.id is not None else ""
        return f"{step.method} was accepted{self._describe_capture(step.capture)}{id_note}"

    def ingestion(self) -> str:
        start = time.monotonic()
        texts = self.session.wait({}, _RECORDS[:1])
        if not texts:
            raise RouteError(
                "the record was added, but the list is still empty. Does the service ingest in "
                "the background? Then the profile needs [wait] with a request, or with a patience "
                "that is longer than the lag"
            )
        self.session.lineage.observe(_RECORDS[0], texts)
        self.session.add(_RECORDS[1])
        late = self.session.lineage.counts().get("uncertain_late", 0)
        if late:
            raise RouteError(
                f"items appeared after ingestion had seemed to end ({late} of them). "
                f"{self.profile.advise_waiting()}"
            )
        return f"both records are there, the second after {time.monotonic() - start:.1f} seconds"

    def list(self) -> str:
        items = self.session.dump()
        listing = self.profile.list
        first = items[0]
        id = f"'{listing.id}' {self._quote(first.key)}" if listing.id else "no id"
        parts = [f"{pluralise(len(items), 'item')}; of the first, {id}, '{listing.text}' "]
        parts.append(self._quote(first.text))
        if listing.sources is not None:
            parts.append(f", '{listing.sources}' {', '.join(first.sources or ())}")
        else:
            parts.append("; sources are observed")
        if listing.pages:
            parts.append("; two records may not fill a page")
        verbatim = all(any(quotes(record, item.text) for record in _RECORDS) for item in items)
        parts.append("; items repeat the records' text" if verbatim else "")
        return "".join(parts)

    def search(self) -> str:
        blocks = self.session.search(_QUERY)
        if not blocks:
            return f"no hits for {_QUERY!r}: every question would be shown nothing"
        hits = pluralise(len(blocks), "hit")
        return f"{hits} for {_QUERY!r}, all among the listed items"

    def reset(self) -> str:
        if self.profile.reset is None:
            return "no [reset]: what a build stored stays in the service"
        self.session.reset()
        left: list[Item] = []
        with suppress(RouteError):  # a deleted memory cannot be listed any more
            left = self.session.dump()
        if left:
            raise RouteError(f"the list still has {pluralise(len(left), 'item')} after the reset")
        return "nothing is left"

    def _describe_capture(self, capture: object) -> str:
        names = [str(name) for name in capture] if isinstance(capture, dict) else []
        captures = (f"{name} = {self._quote(str(self.session.values[name]))}" for name in names)
        return f"; {', '.join(captures)}" if names else ""

    def _quote(self, text: str) -> str:
        line = self.session.redactor.redact_line(text)
        return repr(line if len(line) <= _QUOTED else f"{line[:_QUOTED]}…")


def walk_profile(profile: Profile, start: Callable[[], ServiceSession]) -> Iterator[ProfileStep]:
    """Try every step of a profile with two records; stop at the first that fails."""
    walk = _Walk(profile, start)
    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("headers", walk.headers),
        ("shared memory", walk.clear),
        ("open", walk.open),
        ("list, empty", walk.empty),
        ("add", walk.add),
        ("ingestion", walk.ingestion),
        ("list", walk.list),
        ("search", walk.search),
        ("reset", walk.reset),
    )
    for name, attempt in steps:
        try:
            detail = attempt()
        except (RouteError, SpecError) as error:
            yield ProfileStep(name, False, str(error), _advise(name, error))
            if name not in ("headers", "shared memory", "reset"):
                with suppress(RouteError):
                    walk.session.reset()
            return
        yield ProfileStep(name, True, detail)


def _advise(name: str, error: Exception) -> str:
    """Name what to correct: the table whose request or pointer failed, the address or the token."""
    if isinstance(error, ServiceError):
        if error.status is None:
            return "start the service, or correct url"
        if error.status in (401, 403):
            return "correct [headers], or the environment variables that it names"
    table = error.action if isinstance(error, (ServiceError, PointerError)) else ""
    return _FIXES[table or _STEPS.get(name, name)]
