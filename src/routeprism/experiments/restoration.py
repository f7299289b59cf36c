"""The four-condition intervention: does the displaced record matter? (§2.3, §3.2, Appendix F.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from routeprism.answers import Plan as Cost
from routeprism.errors import SpecError
from routeprism.experiments._asking import (
    Answers,
    Asking,
    answers_to,
    cost_of,
    count_outcomes,
    filling,
    outcome_notes,
)
from routeprism.experiments._case_rows import rows_of
from routeprism.experiments._conditions import (
    DESIGNS,
    SWAP,
    Conditions,
    DesignName,
    Verdict,
    conditions,
)
from routeprism.experiments._inspecting import inspect_answers
from routeprism.experiments._keepsakes import Keepsakes
from routeprism.experiments._overall import Overall
from routeprism.experiments._restored import CONTRASTS, enter_conditions
from routeprism.experiments._rows import Column, Key, estimate_rows
from routeprism.experiments._sentences import restoration_sentences
from routeprism.experiments._stages import Asked, Found, Traced
from routeprism.experiments._strata import Masks, enter, strata_of
from routeprism.measures import Sums, Tally
from routeprism.models import Model
from routeprism.models._inspection import Inspection
from routeprism.records import Case
from routeprism.runs import Finding, Stored
from routeprism.support._bundles import Bundle
from routeprism.support._eligibility import STRATA, Design, Ineligible

__all__ = ["CONTRASTS", "Restore"]

_LEFT_OUT = ("restored-absent", "restored-replacement", "restored-present")

Decided = tuple[Case, list[tuple[Verdict, list[Conditions]]]]


@dataclass(frozen=True, slots=True)
class Restore:
    """Puts displaced records back, against matched ones that do not carry the answer."""

    asking: Asking
    budget: int = 16_000
    """How many tokens the prompt of a bundle may have."""
    designs: tuple[DesignName, ...] = DESIGNS
    """Which designs are asked; eligibility is decided for all."""

    def described(self) -> Mapping[str, object]:
        """Give what makes the results comparable."""
        some = {} if set(self.designs) == set(DESIGNS) else {"designs": list(self.designs)}
        return {**self.asking.described(), "bundle_tokens": self.budget, **some}

    @property
    def models(self) -> Sequence[Model]:
        """Who is asked."""
        return self.asking.models

    def inspect(self, traced: Traced, inspections: Mapping[str, Inspection]) -> None:
        """Look up what recorded models will be asked."""
        with Stored(traced.run.directory) as stored:
            for portion in self._portions(traced, stored):
                inspect_answers(_all(portion), self.asking, inspections)

    def price(self, traced: Traced) -> Mapping[str, Cost]:
        """Say for each model what asking would take."""
        totals: dict[str, Cost] = {}
        with Stored(traced.run.directory) as stored, traced.run.ledger() as ledger:
            for portion in self._portions(traced, stored):
                totals = cost_of(_all(portion), self.asking, ledger, totals, traced.planned)
        return totals

    def perform(self, traced: Traced, asked: Asked | None) -> Found:
        """Decide by labels and sources, then ask, then estimate."""
        tally: Tally[Key] = Tally(traced.benchmark.weighting)
        outcomes: Counter[tuple[str, str]] = Counter()
        reasons: Counter[str] = Counter()
        overall = None if asked is None else Overall(asked, len(traced.benchmark.cases))
        kept = Keepsakes(traced.setting.interfaces)
        verdicts: list[Finding] = []
        with Stored(traced.run.directory) as stored:
            for portion in self._portions(traced, stored):
                everything = _all(portion)
                reasons.update(one.reason for one in everything if one.reason)
                if overall is not None:
                    overall.portion(len(portion))
                answered = answers_to("restoration", everything, self.asking, traced.run, overall)
                count_outcomes(outcomes, answered)
                kept.add(
                    everything,
                    answered,
                    arms=[one.arm for one in everything],
                    places=[one.places for one in everything],
                )
                verdicts.extend(_verdict_findings(portion, traced))
                values: list[Sequence[str]] = []
                for case, decided in portion:
                    unit: Sums[Key] = {}
                    _enter_eligibility(case, decided, traced, unit)
                    for (model, batch), answers in answered.items():
                        column = Column(
                            "restoration",
                            "",
                            labels=traced.labels,
                            model=model,
                            judge=self._judge(case),
                            prompt_control=self.asking.manner.control,
                            batch=batch,
                        )
                        self._enter(case, decided, column, traced.masks, answers, unit)
                    tally.append(unit)
                    values += rows_of(case, unit)
                traced.run.add("per_question", values)
        traced.run.keep("answers.restoration", [*kept.findings(), *verdicts])
        setting = self.asking.setting(traced.setting)
        rows = [
            row
            for row in estimate_rows(tally, setting, left_out=_LEFT_OUT)
            if row.estimate or row.quantity == "count.eligible" or not _counts(row.quantity)
        ]
        unmatched = tuple(
            f"{number} eligible designs are left out: {reason}"
            for reason, number in reasons.items()
        )
        notes = (*unmatched, *outcome_notes(outcomes))
        return Found(rows, restoration_sentences(rows), notes)

    def _judge(self, case: Case) -> str:
        free_text = any(not q.options and q.gold is not None for q in case.questions)
        return self.asking.judge.name if free_text else ""

    def _portions(self, traced: Traced, stored: Stored) -> Iterator[list[Decided]]:
        if not traced.labels:
            raise SpecError(
                f"benchmark '{traced.benchmark.name}' has no support labels: restoration needs to "
                f"know which records carry the answer"
            )
        portion: list[Decided] = []
        ready = 0.0
        for case in traced.benchmark.cases:
            if case.questions:
                decided = list(
                    conditions(
                        case,
                        stored,
                        traced.policies,
                        traced.schedules,
                        traced.labels,
                        self.asking.manner,
                        budget=self.budget,
                        designs=self.designs,
                    )
                )
                portion.append((case, decided))
                made = [one for _, several in decided for one in several]
                ready += filling(made, self.asking.manner)
            if ready >= 1:
                yield portion
                portion, ready = [], 0.0
        if portion:
            yield portion

    def _enter(
        self,
        case: Case,
        decided: Sequence[tuple[Verdict, list[Conditions]]],
        template: Column,
        masks: Masks,
        answers: Answers,
        sums: Sums[Key],
    ) -> None:
        """Enter accuracies and contrasts for each filler, and over all of them."""
        strata = strata_of(case, masks)
        used: list[tuple[str, ...]] = [(filler,) for filler in self.asking.manner.fillers]
        if len(used) > 1:
            used.append(self.asking.manner.fillers)
        grouped: dict[tuple[str, str, str], dict[tuple[str, str], Conditions]] = {}
        for _, made in decided:
            for one in made:
                place = grouped.setdefault((one.policy, one.schedule, one.arm), {})
                place[one.question.id, one.filler] = one
        for (policy, schedule, arm), found in grouped.items():
            for fillers in used:
                column = template._replace(
                    policy=policy, schedule=schedule, arm=arm, filler="+".join(fillers)
                )
                asked = [
                    [found[q.id, filler] for filler in fillers if (q.id, filler) in found]
                    for q in case.questions
                ]
                enter_conditions(strata, column, asked, len(fillers), answers, sums)


def _counts(quantity: str) -> bool:
    return quantity.startswith("count.") and quantity[len("count.") :] in STRATA


def _all(portion: Sequence[Decided]) -> list[Conditions]:
    return [one for _, decided in portion for _, made in decided for one in made]


def _verdict_findings(portion: Sequence[Decided], traced: Traced) -> Iterator[Finding]:
    """Say of every pair which records are exchanged, or why none is."""
    for case, decided in portion:
        for verdict, _ in decided:
            outcomes = {"single": verdict.single, "bundle": verdict.several, "swap": verdict.swap}
            told = {name: _told(one) for name, one in outcomes.items() if one is not None}
            yield Finding(
                name="eligibility",
                value=told,
                policy=verdict.policy,
                interface=traced.setting.interfaces.get(verdict.policy, ""),
                schedule=verdict.schedule,
                user=case.pool.user,
                question=verdict.question.id,
            )


def _told(outcome: Design | Bundle | Ineligible) -> dict[str, object]:
    if isinstance(outcome, Ineligible):
        return {"stratum": outcome.stratum, "reason": outcome.reason}
    if isinstance(outcome, Bundle):
        return {"missing": list(outcome.missing), "absent": outcome.absent_schedule}
    return {
        "support": outcome.support,
        "removed": outcome.removed,
        "replacement": outcome.replacement,
        "present": outcome.present_schedule,
        "absent": outcome.absent_schedule,
    }


def _enter_eligibility(
    case: Case,
    decided: Sequence[tuple[Verdict, list[Conditions]]],
    traced: Traced,
    sums: Sums[Key],
) -> None:
    """Count the eligible pairs, and the others by their reason."""
    strata = strata_of(case, traced.masks)
    grouped: dict[tuple[str, str], list[Verdict]] = {}
    for verdict, _ in decided:
        grouped.setdefault((verdict.policy, verdict.schedule), []).append(verdict)
    for (policy, schedule), verdicts in grouped.items():
        outcomes: dict[tuple[str, str], list[float | None]] = {}
        for arm, eligible, found in (
            ("", Design, [verdict.single for verdict in verdicts]),
            ("bundle", Bundle, [verdict.several for verdict in verdicts]),
            (SWAP, Design, [verdict.swap for verdict in verdicts]),
        ):
            outcomes[arm, "eligible"] = [
                None if one is None else float(isinstance(one, eligible)) for one in found
            ]
            for stratum in STRATA:
                outcomes[arm, stratum] = [
                    None
                    if one is None
                    else float(isinstance(one, Ineligible) and one.stratum == stratum)
                    for one in found
                ]
        for (arm, name), flags in sorted(outcomes.items()):
            column = Column(
                "restoration", f"count.{name}", policy, schedule, arm=arm, labels=traced.labels
            )
            enter(sums, strata, column, flags)
