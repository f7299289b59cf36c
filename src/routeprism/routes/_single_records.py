"""Single records: a memory that is given one record retains or shows it, or says why not."""

from __future__ import annotations

from collections import Counter

from routeprism.policies import Policy
from routeprism.printing import pluralise
from routeprism.routes._candidate import (
    Candidate,
    describe_record,
    describe_requests,
    quote,
    resemble_id,
)
from routeprism.routes._specimens import Specimen, make_singles

NUMBER = 40
"""How many records are tried, each in a memory of its own."""
NUMBER_OUTSIDE = 14
"""The same for a system outside this process, or one that costs: one record of each kind."""
_MOST_NAMED = 5
"""How many refused or lost records are named."""


class SingleRecordError(Exception):
    """A memory that loses a record that it was given alone, or names another."""

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(problem)
        self.fix = fix


def check_single_records(policy: Policy, seed: int, *, is_costly: bool) -> str:
    """Add one record to a new memory, record by record; describe what was kept and refused.

    Raises SingleRecordError if some record is neither retained, nor shown, nor accounted for.
    """
    lost: list[str] = []
    refused: list[str] = []
    requests: Counter[str] = Counter()
    specimens = make_singles(seed, NUMBER_OUTSIDE if is_costly else NUMBER)
    unshown = 0
    for specimen in specimens:
        with Candidate(policy) as candidate:
            candidate.add([specimen.record])
            if candidate.is_real:
                is_kept, is_shown = _look_for(candidate, specimen)
                unshown += is_kept and not is_shown
                if not (is_kept or is_shown):
                    reason = candidate.find_reason(specimen.record.id, candidate.events())
                    text = describe_record(specimen.record)
                    (refused if reason else lost).append(f"{text}: {reason}" if reason else text)
            requests.update(candidate.requests)
    if lost:
        raise SingleRecordError(
            f"{len(lost)} of {pluralise(len(specimens), 'record')} that a memory was given alone "
            f"are neither retained nor shown for their own text, and nothing says why: "
            f"{_list_first(lost)}",
            "singles",
        )
    if len(refused) == len(specimens):
        raise SingleRecordError(f"every record is refused: {_list_first(refused)}", "singles")
    number = f"{len(specimens) - len(refused)} of {pluralise(len(specimens), 'record')}"
    parts = [f"{number} were kept when they came alone"]
    if unshown:
        parts.append(f"{unshown} of them were not shown for their own text")
    if refused:
        parts.append(f"refused, with a reason: {_list_first(refused)}")
    return "; ".join((*parts, describe_requests(requests)))


def _look_for(candidate: Candidate, specimen: Specimen) -> tuple[bool, bool]:
    """Return whether a record is retained, and whether its own text brings it."""
    id = specimen.record.id
    if not candidate.arrivals:
        return False, False
    retained, sources = candidate.list_ids(), candidate.ask(specimen.record.user_text).sources
    for where, ids in (("the list names", retained), ("the search shows", sources)):
        if invented := sorted({*ids} - {id}):
            raise SingleRecordError(
                f"{where} {quote(invented[0], 100)}, which never arrived"
                f"{resemble_id(invented[0], (id,))}; {describe_record(specimen.record)} arrived "
                f"alone",
                "ids",
            )
    return id in retained, id in sources


def _list_first(texts: list[str]) -> str:
    more = f" and {len(texts) - _MOST_NAMED} more" if len(texts) > _MOST_NAMED else ""
    return ", ".join(texts[:_MOST_NAMED]) + more
