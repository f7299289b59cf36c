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
from routeprism.records import Record

__all__ = ["ProfileStep", "walk_profile"]

_RECORDS = (
    Record("walk-0", 0, "[USER] My neighbour Ada repairs accordions on Tuesdays."),
    Record("walk-1", 1, "[USER] The ferry to Hvar leaves at a quarter past nine."),
)
_QUERY = "Who repairs accordions?"
_FIXES = {
    "headers": "export the variable, or correct its name in [headers]",
    "open": "correct [open]: request, body and the pointers of capture",
    "list, empty": "correct [list]: request, items, and the pointers inside an item",
    "add": "correct [add]: request, body, id and capture",
    "ingestion": "correct [wait], or raise its patience or limit",
    "list": "correct [list]: request, items, and the pointers inside an item",
    "search": "correct [search]: request, items, and the pointers inside an item",
    "reset": "correct [reset], or leave the table out if every build has its own {memory}",
}


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """What one step of a profile found."""

    name: str
    passed: bool
    message: str
    fix: str = ""


class _Walk:
    """The state between the steps."""

    def __init__(self, profile: Profile, timeout: float) -> None:
        self.profile, self._timeout = profile, timeout
        self.session: ServiceSession

    def headers(self) -> str:
        self.session = ServiceSession(self.profile, self._timeout)
        isolation = (
            "each build has its own {memory}"
            if self.profile.isolation == "namespace"
            else "builds are separated by [reset], one at a time"
        )
        names = ", ".join(self.profile.headers) or "no headers"
        return f"{names} for {self.profile.url}; {isolation}"

    def open(self) -> str:
        step = self.profile.open
        if self.profile.isolation == "reset":
            self.session.reset()
        if step is None:
            return "no [open]: the first add opens the memory"
        self.session.send(step, {})
        return f"{step.method} was accepted{self._describe_capture(step.capture)}"

    def empty(self) -> str:
        items = self.session.dump()
        if items:
            raise RouteError(
                f"{len(items)} items are there before any record was added; the first is "
                f"{self._quote(items[0].text)}"
            )
        return f"'{self.profile.list.items}' leads to a list without items, as it should"

    def add(self) -> str:
        self.session.write(_RECORDS[0])
        step = self.profile.add
        id_note = f"; '{step.id}' leads to the record's id" if step.id is not None else ""
        return f"{step.method} was accepted{self._describe_capture(step.capture)}{id_note}"

    def ingestion(self) -> str:
        start = time.monotonic()
        texts = self.session.wait({}, _RECORDS[0])
        if not texts:
            raise RouteError(
                "the record was added, but the list is still empty. Does the service ingest in "
                "the background? Then [wait] needs a request, or a longer patience"
            )
        self.session.lineage.observe(_RECORDS[0], texts)
        self.session.add(_RECORDS[1])
        late = self.session.lineage.counts().get("uncertain_late", 0)
        if late:
            raise RouteError(
                f"{late} items appeared after ingestion had seemed to end: raise [wait] patience"
            )
        return f"both records are there, the second after {time.monotonic() - start:.1f} seconds"

    def list(self) -> str:
        items = self.session.dump()
        listing = self.profile.list
        first = items[0]
        id = f"'{listing.id}' {self._quote(first.key)}" if listing.id else "no id"
        parts = [f"{len(items)} items; of the first, {id}, '{listing.text}' "]
        parts.append(self._quote(first.text))
        if listing.sources is not None:
            parts.append(f", '{listing.sources}' {', '.join(first.sources or ())}")
        else:
            parts.append("; sources are observed")
        if listing.pages:
            parts.append(f"; pages of {listing.size}, which two records may not fill")
        verbatim = all(any(quotes(record, item.text) for record in _RECORDS) for item in items)
        parts.append("; items repeat the records' text" if verbatim else "")
        return "".join(parts)

    def search(self) -> str:
        blocks = self.session.search(_QUERY)
        if not blocks:
            return f"no hits for {_QUERY!r}: every question would be shown nothing"
        unsourced = sum(not block.sources for block in blocks)
        if unsourced:
            raise RouteError(
                f"{unsourced} of {len(blocks)} hits are not among the listed items, neither by id "
                f"nor by text, so their sources are unknown"
            )
        return f"{len(blocks)} hits for {_QUERY!r}, all among the listed items"

    def reset(self) -> str:
        if self.profile.reset is None:
            return "no [reset]: what a build stored stays in the service"
        self.session.reset()
        left: list[Item] = []
        with suppress(RouteError):  # a deleted memory cannot be listed any more
            left = self.session.dump()
        if left:
            raise RouteError(f"{len(left)} items are still there after the reset")
        return "nothing is left"

    def _describe_capture(self, capture: object) -> str:
        names = [str(name) for name in capture] if isinstance(capture, dict) else []
        captures = (f"{name} = {self._quote(str(self.session.values[name]))}" for name in names)
        return f"; {', '.join(captures)}" if names else ""

    def _quote(self, text: str) -> str:
        return repr(self.session.redactor.redact_line(text))[:60]


def walk_profile(profile: Profile, timeout: float) -> Iterator[ProfileStep]:
    """Try every step of a profile with two records; stop at the first that fails."""
    walk = _Walk(profile, timeout)
    steps: tuple[tuple[str, Callable[[], str]], ...] = (
        ("headers", walk.headers),
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
            yield ProfileStep(name, False, str(error), _FIXES[name])
            if name not in ("headers", "reset"):
                with suppress(RouteError):
                    walk.session.reset()
            return
        yield ProfileStep(name, True, detail)
