"""Leaks: a record of one user that is retained for, or shown to, another user."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, zip_longest

from routeprism.errors import ContractError, RouteError, RoutePrismError
from routeprism.policies import Policy, unwrap_policy
from routeprism.records import Record
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
        record, owner, user = quote(self.record, 100), quote(self.owner), quote(self.user)
        if not self.question:
            return f"leak: the record {record} of user {owner} is retained for user {user}"
        return (
            f"leak: the record {record} of user {owner} is shown to user {user} for the question "
            f"{quote(self.question, 200)}"
        )


Recogniser = Callable[[str], str]
"""Gives the record that a text comes from, if it comes from one of a user's; empty if not."""


@dataclass(frozen=True, slots=True)
class LeakUser:
    """A user whose memory is looked at, and whose records are looked for in another's."""

    name: str
    records: Sequence[Record]
    questions: Sequence[str]
    """What the other user asks."""
    recognise: Recogniser = lambda text: ""


def find_leaks(policy: Policy, users: tuple[LeakUser, LeakUser]) -> Iterator[Leak]:
    """Build the memories of two users, open at the same time if possible, and look in each.

    Record by record, if the memories take records one by one.
    """
    exclusive = getattr(unwrap_policy(policy), "exclusive", False)
    with ExitStack() as stack:
        first, second = Candidate(policy), Candidate(policy)
        stack.enter_context(second)
        try:
            with ExitStack() as inner:
                (inner if exclusive else stack).enter_context(first)
                later = () if exclusive else users[1].records
                for turn in zip_longest(users[0].records, later):
                    for candidate, record in zip((first, second), turn, strict=True):
                        candidate.add([record] if record else [])
            if exclusive:
                second.add(users[1].records)
        except ContractError as error:
            if (leak := _name_leak(error, users[0], users[1].name)) is None:
                raise
            yield leak
            return
        if first.is_real:
            yield from _look_for(second, users[1], users[0])
            if not exclusive:
                yield from _look_for(first, users[0], users[1])


def _look_for(candidate: Candidate, user: LeakUser, owner: LeakUser) -> Iterator[Leak]:
    """Look for the records of an owner in the memory of another user."""
    foreign = {record.id for record in owner.records} - {record.id for record in user.records}
    try:
        for id in sorted(foreign & set(candidate.list_ids())):
            yield Leak(owner.name, user.name, id)
    except (ContractError, RouteError) as error:
        if leak := _name_leak(error, owner, user.name):
            yield leak
        return
    for question in owner.questions:
        try:
            exposure = candidate.ask(question)
        except (ContractError, RouteError) as error:
            if leak := _name_leak(error, owner, user.name, question):
                yield leak
            continue
        texts = (owner.recognise(block.text) for block in exposure.blocks)
        if records := list(filter(None, chain(sorted(exposure.sources & foreign), texts))):
            yield Leak(owner.name, user.name, records[0], question)


def _name_leak(
    error: RoutePrismError, owner: LeakUser, user: str, question: str = ""
) -> Leak | None:
    """Return the leak behind an error about something that a memory never received."""
    if (stranger := error.stranger) is None:
        return None
    ids = {record.id for record in owner.records}
    record = stranger.record if stranger.record in ids else owner.recognise(stranger.text)
    return Leak(owner.name, user, record, question) if record else None
