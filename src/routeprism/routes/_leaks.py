"""Leaks: a record of one user that is retained for, or shown to, another user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from itertools import chain, zip_longest

from routeprism.errors import ContractError, RouteError, RoutePrismError, Stranger
from routeprism.frames import OWN_ERRORS
from routeprism.policies import Policy, unwrap_policy
from routeprism.records import Case, Record
from routeprism.routes._candidate import Candidate, quote


@dataclass(frozen=True, slots=True)
class Leak:
    """One user's record in the memory of another."""

    owner: str
    """The user whose record it is."""
    user: str
    """The user who sees it."""
    record: str
    question: str = ""
    """The text of the question that brings it; empty if the memory retains it."""

    def __str__(self) -> str:
        return f"leak: {self.description}"

    @property
    def description(self) -> str:
        """What is seen of whom by whom, as a clause."""
        record, owner, user = quote(self.record, 100), quote(self.owner), quote(self.user)
        if not self.question:
            return f"the record {record} of user {owner} is retained for user {user}"
        return (
            f"the record {record} of user {owner} is shown to user {user} for the question "
            f"{quote(self.question, 200)}"
        )


Recogniser = Callable[[str], str]
"""Gives the record that a text comes from, if it comes from one of a user's; empty if not."""


@dataclass(frozen=True, slots=True)
class LeakUser:
    """A user whose memory is looked at, and whose records are looked for in another's."""

    name: str
    records: Sequence[Record]
    questions: Sequence[str] = ()
    """What the other user asks."""
    recognise: Recogniser = lambda text: ""


def find_leaks(
    policy: Policy,
    users: tuple[LeakUser, LeakUser],
    *,
    earlier: Sequence[LeakUser] = (),
    is_apart: bool = False,
) -> Iterator[Leak]:
    """Build the memories of two users, and look in each for the records of the other.

    They are open at the same time, and receive their records alternately, if the policy allows it.
    With `is_apart`, the first is closed before the second is built, as in an audit. An error may
    also be about a record of an `earlier` user, whose memory was closed before.
    """
    is_apart = is_apart or getattr(unwrap_policy(policy), "exclusive", False)
    first, second = Candidate(policy), Candidate(policy)
    if is_apart:
        with suppress(ContractError), first:
            first.add(users[0].records)
    with ExitStack() as stack:
        stack.enter_context(second)
        try:
            if is_apart:
                second.add(users[1].records)
            else:
                stack.enter_context(first)
                for turn in zip_longest(users[0].records, users[1].records):
                    for candidate, record in zip((first, second), turn, strict=True):
                        candidate.add([record] if record else [])
        except ContractError as error:
            if (leak := _name_leak(error, (*users[:1], *earlier), users[1].name)) is None:
                raise
            yield leak
            return
        if second.is_real:
            yield from _look_for(second, users[1], (users[0], *earlier))
            if not is_apart:
                yield from _look_for(first, users[0], (users[1], *earlier))


def find_case_leak(policy: Policy, owner: Case, case: Case) -> Leak | None:
    """Look for the records of a user in a memory of another, which is built after it was closed.

    One of several leaks is returned, which a question shows if possible.
    """
    questions = [question.text for question in case.questions]
    users = (
        LeakUser(owner.pool.user, owner.pool.records, questions),
        LeakUser(case.pool.user, case.pool.records, ()),
    )
    try:
        return choose_leak(list(find_leaks(policy, users, is_apart=True)))
    except OWN_ERRORS:  # the memory has another fault, which is reported
        return None


def choose_leak(leaks: Sequence[Leak]) -> Leak | None:
    """Choose one of several leaks, which a question shows if possible."""
    return next((leak for leak in leaks if leak.question), leaks[0] if leaks else None)


def _look_for(candidate: Candidate, user: LeakUser, owners: Sequence[LeakUser]) -> Iterator[Leak]:
    """Look for the records of the first owner in the memory of another user."""
    owner = owners[0]
    foreign = {record.id for record in owner.records} - {record.id for record in user.records}
    try:
        for id in sorted(foreign & set(candidate.list_ids())):
            yield Leak(owner.name, user.name, id)
    except (ContractError, RouteError) as error:
        if leak := _name_leak(error, owners, user.name):
            yield leak
        return
    for question in owner.questions:
        try:
            exposure = candidate.ask(question)
        except (ContractError, RouteError) as error:
            if leak := _name_leak(error, owners, user.name, question):
                yield leak
            continue
        texts = (owner.recognise(block.text) for block in exposure.blocks)
        if records := list(filter(None, chain(sorted(exposure.sources & foreign), texts))):
            yield Leak(owner.name, user.name, records[0], question)


def _name_leak(
    error: RoutePrismError, owners: Sequence[LeakUser], user: str, question: str = ""
) -> Leak | None:
    """Return the leak behind an error about something that a memory never received."""
    if (stranger := error.stranger) is None:
        return None
    for owner in owners:
        ids = {record.id for record in owner.records}
        record = stranger.record if stranger.record in ids else owner.recognise(stranger.text)
        if record:
            return Leak(owner.name, user, record, question)
    return None


# --- the users of an audit -----------------------------------------------------------------------


class LeakError(RouteError):
    """A memory that leaks is not built; its routes fail."""

    def __init__(self, leak: Leak) -> None:
        super().__init__(str(leak))
        self.leak = leak


@dataclass(slots=True)
class KnownUsers:
    """Whose record it is that a memory contains without having received it."""

    cases: Sequence[Case]
    leaks: Mapping[str, Leak] = field(default_factory=dict)
    """Policy → what it leaks; its routes fail without being built."""
    _owners: dict[str, str] = field(default_factory=dict)
    """Record → its user; empty until the first leak is suspected."""
    _searches: int = 0

    def find_owner(self, stranger: Stranger, user: str) -> tuple[str, str]:
        """Return the owner and the id of a record of another user; empty if there is none."""
        if not self._owners:
            for case in self.cases:
                for id in case.pool.ids:
                    self._owners.setdefault(id, case.pool.user)
        owner = self._owners.get(stranger.record, "")
        if stranger.record or not stranger.text.strip() or self._searches >= _MOST_SEARCHES:
            return (owner, stranger.record) if owner != user else ("", "")
        self._searches += 1
        for case in self.cases:
            for record in case.pool.records if case.pool.user != user else ():
                if stranger.text in record.text:
                    return case.pool.user, record.id
        return "", ""


_MOST_SEARCHES = 5
"""How many texts are looked for among all records, which takes time if there are many."""
_USERS: ContextVar[KnownUsers | None] = ContextVar("users of an audit", default=None)


@contextmanager
def knowing_users(cases: Sequence[Case], leaks: Mapping[str, Leak] | None = None) -> Iterator[None]:
    """Recognise records of other users, and do not build memories that are known to leak."""
    token = _USERS.set(KnownUsers(cases, leaks or {}))
    try:
        yield
    finally:
        _USERS.reset(token)


def refuse_leaking(policy: str) -> None:
    """Refuse to build a memory that is known to leak."""
    users = _USERS.get()
    if users is not None and policy in users.leaks:
        raise LeakError(users.leaks[policy])


def explain_stranger(error: RoutePrismError, user: str) -> Leak | None:
    """Return the leak behind an error; None if there is none, as far as the users are known."""
    if isinstance(error, LeakError):
        return error.leak
    users, stranger = _USERS.get(), error.stranger
    if users is None or stranger is None:
        return None
    owner, record = users.find_owner(stranger, user)
    return Leak(owner, user, record, stranger.question) if owner else None
