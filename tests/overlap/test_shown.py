"""The outcome of a trial includes what questions are shown."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from overlap_toys import Base, make_records

import routeprism
from routeprism.overlap import Trial, explore_interleavings, list_serial_outcomes
from routeprism.policies.own import as_policy
from routeprism.records import Case, Pool, Question


class Mislabelled(Base):
    """Keeps every record, but shows the text of the add that was last under its id."""

    def __init__(self) -> None:
        super().__init__()
        self.current = ""
        self.texts: dict[str, str] = {}

    async def add(self, record) -> None:
        self.current = record.text
        await asyncio.sleep(0.01)
        self.texts[record.id] = self.current

    def retained(self):
        return sorted(self.texts)

    def expose(self, query):
        return [(self.texts[id], [id]) for id in sorted(self.texts)]


class Labelled(Mislabelled):
    async def add(self, record) -> None:
        await asyncio.sleep(0.01)
        self.texts[record.id] = record.text


class Unshowable(Mislabelled):
    """Fails to answer a question after two adds have overlapped."""

    async def add(self, record) -> None:
        await super().add(record)
        self.texts[record.id] = record.text if self.current == record.text else ""

    def expose(self, query):
        if "" in self.texts.values():
            raise ValueError("no text")
        return super().expose(query)


class Blended(Mislabelled):
    """Shows the beginning of its own text and the end of the add that was last."""

    async def add(self, record) -> None:
        await super().add(record)
        self.texts[record.id] = record.text[:1] + self.current[1:]

    def expose(self, query):
        return [(text, [id]) for id, text in self.texts.items()]


def classify_all(kind, questions, texts=()):
    trial = Trial(as_policy(kind), (), make_records(2, texts), questions=questions)
    serial = list_serial_outcomes(trial)
    executions = explore_interleavings(trial).executions
    return {serial.classify(execution.outcome) for execution in executions}


@pytest.mark.parametrize(
    ("kind", "kinds"),
    [(Mislabelled, {None, "stale"}), (Labelled, {None}), (Unshowable, {None, "error"})],
)
def test_what_is_shown_belongs_to_the_outcome(kind, kinds) -> None:
    assert classify_all(kind, ("text 1",)) == kinds
    assert classify_all(kind, ()) == {None}


def test_a_shown_text_is_one_value() -> None:
    # "ad" begins like one text and ends like the other, but no order of "ab" and "cd" shows it.
    assert classify_all(Blended, ("b",), ("ab", "cd")) == {None, "stale"}


class Ranked(Labelled):
    """Shows the records by a number that differs in each memory."""

    built = 0

    def __init__(self) -> None:
        super().__init__()
        Ranked.built += 1
        self.number = Ranked.built

    def expose(self, query):
        return [(f"{self.number} {text}", [id]) for id, text in self.texts.items()]


@pytest.mark.parametrize(("kind", "share"), [(Mislabelled, True), (Labelled, False), (Ranked, 0)])
def test_an_audit_compares_what_is_shown(kind, share) -> None:
    sample = routeprism.load_benchmark("sample")
    question = Question(id="q", user="u", text="text 1", kind="")
    case = Case(Pool("u", make_records(4)), (question,))
    smaller = Case(Pool("v", make_records(3)), (replace(question, id="p", user="v"),))
    audit = routeprism.audit(
        replace(sample, cases=(case, smaller)),
        kind,
        schedules=["overlap:k=2"],
        overlap_trials=12,
        rebuilds=0,
    )
    (row,) = (row for row in audit.rows if row.quantity == "anomaly")
    assert bool(row.estimate) == bool(share)
