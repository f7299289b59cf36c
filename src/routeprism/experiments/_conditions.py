"""Which prompts a restoration needs: they differ in the records they show, and only there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from routeprism.experiments._asked import Manner, drafted
from routeprism.experiments._keepsakes import Places, places_of
from routeprism.experiments._plans import interface_of
from routeprism.orders import FORWARD, Schedule
from routeprism.policies import Block, Policy, SourceOrder, record_renderings
from routeprism.prompts import Filler, Prompt, Unmatched, match
from routeprism.records import Case, Pool, Question, Record
from routeprism.runs import Shown, Stored
from routeprism.support._bundles import Bundle, bundle
from routeprism.support._eligibility import Design, Exposed, Ineligible, design, swap_design

__all__ = ["DESIGNS", "SWAP", "Conditions", "DesignName", "Verdict", "conditions"]

DesignName = Literal["single", "bundle", "identity-swap"]
"""What is exchanged: one displaced record, several, or one support record for another."""
DESIGNS: tuple[DesignName, ...] = get_args(DesignName)
SWAP = "identity-swap"
"""The arm of pairs in which one supporting record stands in another's place."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about one pair, before any answer."""

    question: Question
    policy: str
    schedule: str
    single: Design | Ineligible
    several: Bundle | Ineligible
    swap: Design | Ineligible | None = None
    """For a pair that is an identity swap; never mixed with `single`."""


@dataclass(frozen=True, slots=True, eq=False)
class Conditions:
    """The matched prompts of one design under one filler."""

    question: Question
    policy: str
    schedule: str
    filler: Filler
    arm: str
    """Empty for one displaced record, `bundle` for several, or SWAP."""
    names: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    """One for each name; none where they could not be matched."""
    reason: str = ""
    """Why they could not."""
    places: tuple[Places, ...] = ()
    """For each prompt, where its records stand."""

    @property
    def experiment(self) -> str:
        """Name whose answers these are."""
        return "restoration"

    @property
    def condition(self) -> str:
        """Tell designs of the same pair apart."""
        return self.arm

    @property
    def group(self) -> str:
        """Name the comparison."""
        parts = (self.policy, self.schedule, self.question.id, self.filler, self.arm)
        return "\0".join(("restoration", *parts))

    @property
    def sides(self) -> tuple[tuple[str, Prompt], ...]:
        """Give the conditions with their prompts."""
        return tuple(zip(self.names, self.prompts, strict=True)) if self.prompts else ()


def conditions(
    case: Case,
    stored: Stored,
    policies: Sequence[Policy],
    schedules: Sequence[Schedule],
    labels: str,
    manner: Manner,
    *,
    budget: int,
    designs: Collection[DesignName] = DESIGNS,
) -> Iterator[tuple[Verdict, list[Conditions]]]:
    """Decide about every pair of a case and make the prompts of those that are eligible.

    `budget` is how many tokens a bundle's prompt may have; only these `designs` are asked.
    """
    user = case.pool.user
    for policy in policies:
        interface = interface_of(policy)
        there = [
            one.name for one in schedules if stored.both(policy.name, interface, one.name, user)
        ]
        if not there:
            continue
        names = (FORWARD.name, *there)
        places = {name: stored.stand_ins(policy.name, interface, name, user) for name in names}
        for question in case.questions:
            shown = {
                name: stored.shown(policy.name, interface, name, question.id) for name in names
            }
            ranked = _ranked(policy, case.pool, question)
            for schedule in names[1:]:
                sides = [
                    Exposed(name, shown[name].sources, places[name])
                    for name in (FORWARD.name, schedule)
                ]
                support = question.labels.get(labels, frozenset())
                one = design(case.pool.ids, support, *sides, candidates=ranked)
                many = bundle(case.pool.ids, support, *sides)
                swap = swap_design(case.pool.ids, support, *sides, candidates=ranked)
                render = _renderer(case.pool, (shown[FORWARD.name], shown[schedule]))
                if render is None:
                    one = one if isinstance(one, Ineligible) else Ineligible("rewritten")
                    many = many if isinstance(many, Ineligible) else Ineligible("rewritten")
                    swap = Ineligible("rewritten") if isinstance(swap, Design) else swap
                verdict = Verdict(question, policy.name, schedule, one, many, swap)
                made: list[Conditions] = []
                if render is not None:
                    made = [
                        made_one
                        for filler in manner.fillers
                        for made_one in _made(
                            verdict, case.pool, render, manner, filler, budget, designs
                        )
                    ]
                yield verdict, made
    stored.forget()


def _ranked(policy: Policy, pool: Pool, question: Question) -> Sequence[str] | None:
    """Order the pool as the policy's interface ranks it for the question, if it does (O.5)."""
    inner = policy.inner if isinstance(policy, SourceOrder) else policy
    rank = getattr(getattr(inner, "interface", None), "ranked", None)
    if not callable(rank):
        return None
    return [record.id for record in rank(pool.records, question.text)]


def _made(
    verdict: Verdict,
    pool: Pool,
    render: Callable[[Record], Block],
    manner: Manner,
    filler: Filler,
    budget: int,
    designs: Collection[DesignName],
) -> Iterator[Conditions]:
    records = {record.id: record for record in pool.records}

    def prompts(arm: str, shown: Mapping[str, Sequence[str]], most: int | None) -> Conditions:
        blocks = [[render(records[one]) for one in ids] for ids in shown.values()]
        drafts = [drafted(one, verdict.question, pool, manner) for one in blocks]
        found = match(drafts, manner.control, filler)
        reason = found.reason if isinstance(found, Unmatched) else ""
        made = () if isinstance(found, Unmatched) else found.prompts
        if most is not None and made and max(prompt.tokens for prompt in made) > most:
            reason, made = f"a bundle's prompt passes the declared {most} tokens", ()
        return Conditions(
            verdict.question,
            verdict.policy,
            verdict.schedule,
            filler,
            arm,
            tuple(shown),
            made,
            reason,
            tuple(places_of(*both) for both in zip(made, blocks, strict=False)),
        )

    for arm, one in (("", verdict.single), (SWAP, verdict.swap)):
        if isinstance(one, Design) and (arm or "single") in designs:
            shown: Mapping[str, Sequence[str]] = dict(one.conditions.items())
            yield prompts(arm, shown, None)
    if isinstance(verdict.several, Bundle) and "bundle" in designs:
        several = verdict.several
        steps = {f"restored:{at}": ids for at, ids in enumerate(several.steps[:-1], start=1)}
        yield prompts(
            "bundle",
            {
                "absent": several.absent,
                **steps,
                "restored": several.steps[-1],
                "replacement": several.replacement,
            },
            budget,
        )


def _renderer(pool: Pool, shown: Sequence[Shown]) -> Callable[[Record], Block] | None:
    """Find how a policy shows whole records; None where it shows anything else."""
    records = {record.id: record for record in pool.records}
    for render in record_renderings():
        if all(
            len(sources) == 1 and render(records[next(iter(sources))]).text == text
            for one in shown
            for _, text, sources in one.blocks
        ):
            return render
    return None
