"""What a verdict says, in words and tables with counts."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence

from routeprism.exhibits import (
    Number,
    Part,
    Statement,
    Table,
    format_count,
    format_row,
    format_share,
    join_parts,
    make_table,
)
from routeprism.judge._claims import (
    MARGIN,
    count_unreadable,
    excludes_zero,
    is_at_floor,
    is_claim_shown,
    is_small,
    limit_unseen,
)
from routeprism.judge._verdict import (
    ALWAYS_WRONG,
    GAINED,
    INCONCLUSIVE,
    LOST,
    PROMISE_FAILED,
    Group,
    Verdict,
    count,
)
from routeprism.orders import describe_arrival, list_arrivals, locate_base, overlaps_writes
from routeprism.printing import join_names, pluralise
from routeprism.runs import EstimateRow

RECOMMENDED_GATES = ("evidence.lost<=0.02", "anomaly<=0")
"""The limits that every output recommends for a build; one without rows is left out."""

_PROMISES: Mapping[str, str] = {
    "error": "fail",
    "lost": "lose a record",
    "duplicated": "store a record twice",
    "torn": "store parts of different records together",
    "stale": "act on a value that has changed",
}
"""What overlapping writes do, as a verb of `trials`."""


def state_verdict(verdict: Verdict) -> Statement:
    """State the verdict in one sentence, with its counts."""
    parts = (f"{verdict.label}. ", *describe_verdict(verdict))
    place = ("verdict", verdict.policy, "", verdict.severity, choose_command(verdict))
    return Statement(parts, *place, flags=verdict.flags)


EXPLAINED = ("verdict", "source order", "accuracy", "causes")
"""Kinds of statements whose content `explain_verdict` gives as well."""


def explain_verdict(verdict: Verdict, *, is_brief: bool = False) -> Iterator[tuple[Part, ...]]:
    """Explain a verdict below its level, the most important phrase first; every output shows it.

    A brief explanation leaves out what the table of several memories shows.
    """
    yield describe_verdict(verdict)
    for promise in verdict.promises:
        if promise.promise != "leaked":  # which is described by its witness
            yield (f"Witness: {promise.witness}",)
    for cause in verdict.causes:
        if cause.cause == "state only":
            continue  # the verdict states it, and there is nothing to do
        action = f". To do: {cause.action}" if cause.action and not verdict.advice else ""
        yield (f"Cause: {cause.sentence or cause.cause}{action}",)
    if verdict.advice:
        yield (f"Repair: {verdict.advice}",)
    if is_brief:
        return
    yield describe_source(verdict).parts
    for statement in describe_answers(verdict):
        is_described = verdict.depth == "answers worse" and statement.schedule == verdict.decisive
        if not is_described:
            yield statement.parts


def choose_command(verdict: Verdict, run: str = "") -> str:
    """Choose the one command that follows from a verdict; empty if none does.

    A stored `run` in which nothing is wrong can be checked.
    """
    if verdict.level == INCONCLUSIVE:
        shows_text = any(
            (row := group.get("context_length.route")) is not None and row.estimate
            for group in verdict.rows.values()
        )
        is_named = bool(verdict.command) and not shows_text
        return shlex.join(("routeprism", "check-adapter", verdict.policy)) if is_named else ""
    if verdict.severity != "good":
        return verdict.command
    gates = (word for gate in recommend_gates(verdict) for word in ("-g", gate))
    return shlex.join(("routeprism", "check", run, *gates)) if run else ""


def describe_verdict(verdict: Verdict) -> tuple[Part, ...]:
    """Describe what a verdict is based on: promises, the baseline, doubts, the effect of order."""
    return tuple(join_parts(". ", _list_phrases(verdict)))


def recommend_gates(verdict: Verdict) -> list[str]:
    """Return the recommended limits that rows of a run on this memory can be compared with."""
    names = {LOST: verdict.is_labelled, "anomaly": any(map(overlaps_writes, verdict.rows))}
    return [gate for gate in RECOMMENDED_GATES if names[gate.partition("<")[0]]] or ["J>=0.9"]


def _list_phrases(verdict: Verdict) -> Iterator[tuple[Part, ...]]:
    """List what a verdict is based on: promises, the baseline, doubts, then the effect of order."""
    for promise in verdict.promises:
        if promise.promise == "leaked":
            routes = pluralise(promise.failed, "route")
            yield (f"{routes} leaked and are in no number: {promise.witness}",)
            continue
        total = f" of {promise.of}" if promise.of is not None else ""
        yield (
            f"{promise.failed}{total} trials with overlapping writes {_PROMISES[promise.promise]}",
        )
    yield from _list_baseline(verdict)
    if verdict.inconclusive:
        yield (f"Nothing can be concluded about order: {verdict.inconclusive}",)
        if not verdict.is_harmful:
            if verdict.lost or verdict.gained:  # they are no effect of order, but they were seen
                yield _describe_evidence(verdict, verdict.decisive)
            return
    trials = [group["anomaly"] for group in verdict.rows.values() if "anomaly" in group]
    if trials and not verdict.promises:
        number = sum(row.queries or 0 for row in trials)
        yield (f"Each of {number} trials with overlapping writes ends like some serial order",)
    if verdict.depths:
        yield _describe_depth(verdict)


def _list_baseline(verdict: Verdict) -> Iterator[tuple[Part, ...]]:
    baseline = verdict.baseline
    if baseline.outdated:
        yield (
            f"{baseline.outdated} of {baseline.updates} questions about updates are shown the "
            "outdated value in every order",
        )
    if 2 * baseline.lacking > baseline.questions or (baseline.lacking and verdict.is_always_wrong):
        kinds = [
            f"for {number}, no order {verb} it"
            for number, verb in ((baseline.never_kept, "keeps"), (baseline.never_shown, "shows"))
            if number
        ]
        why = f" ({join_names(kinds)})" if kinds else ""
        yield (
            f"{baseline.lacking} of {baseline.questions} questions lack evidence "
            f"{verdict.base} already{why}",
        )


def _describe_depth(verdict: Verdict) -> tuple[Part, ...]:
    """Describe the effect of order: the counts of the decisive order, and all orders as deep."""
    depth, decisive = verdict.depth, verdict.decisive
    schedules = list_arrivals(name for name, item in verdict.depths.items() if item == depth)
    rest = join_names([describe_arrival(name) for name in schedules if name != decisive])
    if depth == "answers worse":
        return _describe_worse(verdict)
    if depth.startswith("evidence"):
        verb = "is lost" if depth == "evidence lost" else "moves"
        tail = f"; evidence {verb} under {rest} as well" if rest else ""
        return (*_describe_evidence(verdict, decisive), tail)
    names = join_names([describe_arrival(name) for name in schedules])
    if depth in ("stable", "internal only"):
        same = f". Only internal state differs under {names}" if depth == "internal only" else ""
        return (f"{describe_no_difference(verdict)}{same}",)
    where = f" under {describe_arrival(decisive)}"
    where += f", and to at most as many under {rest}" if rest else ""
    if depth == "text only":
        questions = _count_questions(verdict.rows[decisive]["C_changed_count"])
        return ("The same records are shown in a different text or order to ", *questions, where)
    if not count(verdict.rows[decisive], "V_changed"):
        return (f"Different records are kept under {names}, and questions see the same",)
    return _describe_records(verdict, where)


def _describe_records(verdict: Verdict, where: str) -> tuple[Part, ...]:
    """Count the questions that see different records, with what is known about their evidence."""
    more = "; no question loses evidence, and none gains any"
    if not verdict.is_labelled:
        more = ". Whether evidence is lost is not known: label the evidence of your questions"
    questions = _count_questions(verdict.rows[verdict.decisive]["V_changed_count"])
    return ("Different records are shown to ", *questions, f"{where}{more}")


def _count_questions(row: EstimateRow) -> tuple[Part, ...]:
    """Count questions; the mean over drawn orders is called that."""
    is_mean = (row.estimate or 0.0) % 1 != 0
    return (format_share(row, is_mean=False), f" questions{' on average' * is_mean}")


def _describe_evidence(verdict: Verdict, schedule: str) -> tuple[Part, ...]:
    """Count the questions that lose and gain evidence under one order."""
    group, reference = verdict.rows[schedule], verdict.reference
    gained = group[f"{GAINED}_count"]
    number = Number(format_count(gained.estimate or 0.0), gained)
    more: tuple[Part, ...] = (number, f" gain evidence that {reference} does not show")
    return (
        f"Under {describe_arrival(schedule)}, ",
        *_count_questions(group[f"{LOST}_count"]),
        f" lose evidence that {reference} shows, and ",
        *(more if gained.estimate else ("none gains any",)),
    )


def describe_no_difference(verdict: Verdict) -> str:
    """State an all-clear with what it does not exclude."""
    groups = [verdict.rows[schedule] for schedule in verdict.depths]
    row = next((g[name] for name in (LOST, "V_changed") for g in groups if name in g), None)
    if row is None:
        return "Every order keeps the same records"
    effect = "lose evidence" if row.quantity == LOST else "are shown different records"
    units = row.units or 0
    manner = " without overlapping writes" if len(groups) < len(verdict.rows) else ""
    text = f"No difference: 0 of {row.queries} questions {effect} in any order{manner}"
    if units < 2:
        return f"{text} (one {row.unit}, so nothing is known about others)"
    most = math.ceil(1000 * limit_unseen(units)) / 10
    number = pluralise(units, row.unit)
    return f"{text}, at most {most:g} of 100 such {row.unit}s would (95% confidence, {number})"


def _describe_worse(verdict: Verdict) -> tuple[Part, ...]:
    schedule = verdict.decisive
    answers, group = verdict.answers[schedule], verdict.rows.get(schedule, {})
    evidence: tuple[Part, ...] = ()
    if f"{LOST}_count" in group:
        evidence = (". ", *_describe_evidence(verdict, schedule))
    return (
        f"Answers get worse under {describe_arrival(schedule)}: accuracy of "
        f"{answers['Delta_rep'].model} ",
        format_row(answers.get("accuracy.forward")),
        f" {locate_base([schedule])}, then ",
        format_row(answers.get("accuracy.route")),
        f" ({pluralise(answers['Delta_rep'].queries or 0, 'question')})",
        *evidence,
    )


def describe_source(verdict: Verdict) -> Statement:
    """State what the memory keeps and shows in the reference order."""
    baseline, base = verdict.baseline, verdict.base
    length = verdict.find("context_length.forward")
    phrases: list[tuple[Part, ...]] = []
    if records := _show_records(verdict):
        phrases.append((records, " records kept"))
    if baseline.questions:
        covered = baseline.questions - baseline.lacking
        phrases.append((f"all evidence shown to {covered} of {baseline.questions} questions",))
    if length is not None:
        phrases.append(
            (
                Number(f"{4 * (length.estimate or 0):,.0f}", length),
                " characters shown to a question",
            )
        )
    knowledge = join_parts(", ", phrases or [("nothing is known",)])
    parts = (f"{base[:1].upper()}{base[1:]}: ", *knowledge)
    return Statement(parts, "source order", verdict.policy, flags=verdict.flags)


def _show_records(verdict: Verdict) -> Part:
    """Show how many records the reference order keeps; a mean over pools has no counts."""
    share, baseline = verdict.find("kept.forward"), verdict.baseline
    if share is None or share.estimate is None:
        return ""
    if baseline.records:
        return f"{baseline.kept} of {baseline.records}"
    return Number(f"{share.estimate:.2f} of the", share)


def describe_answers(verdict: Verdict) -> Iterator[Statement]:
    """State in plain words what order does to accuracy."""
    for schedule, group in verdict.answers.items():
        before, after = group.get("accuracy.forward"), group.get("accuracy.route")
        change = group.get("Delta_rep")
        if before is None or after is None or change is None:
            continue
        parts: tuple[Part, ...] = (
            f"Accuracy of the answers by {change.model}: ",
            format_row(before),
            f" {locate_base([schedule])}, ",
            format_row(after),
            f" under {describe_arrival(schedule)} ({pluralise(change.queries or 0, 'question')}): "
            f"{_explain_change(change, group)}",
        )
        if unreadable := describe_unreadable(group.get, f"under {describe_arrival(schedule)}"):
            parts = (f"{change.model}: {unreadable}",)
        flags = tuple(flag for flag in verdict.flags if flag in change.flags.split(";"))
        yield Statement(parts, "accuracy", verdict.policy, change.schedule, flags=flags)


def _explain_change(change: EstimateRow, group: Group) -> str:
    if is_at_floor(change):
        return describe_floor(change)
    if is_claim_shown(change, group):
        return f"accuracy {'falls' if (change.estimate or 0.0) < 0 else 'rises'} with this order"
    if is_small(change):
        return f"any change is shown to be small (within {MARGIN:g})"
    text = "no change of accuracy is shown, which does not mean that there is none"
    return describe_doubt(change) or text


def describe_floor(row: EstimateRow) -> str:
    """Explain that no answer is correct, and what may be the reason."""
    reader = f"the model or the judge {row.judge}" if row.judge else "the model"
    return f"no answer is correct, so {reader} is at floor and accuracy allows no conclusion"


def describe_doubt(row: EstimateRow) -> str:
    """Explain that a change is not shown among all claims, although its own interval shows it."""
    if not excludes_zero(row):
        return ""
    if row.units is not None and 2 / 2**row.units >= MARGIN:  # the least p-value of sign flips
        return f"{pluralise(row.units, row.unit)} are too few to show a change"
    return "the change is not shown after the adjustment for all claims of the run"


def describe_unreadable(find: Callable[[str], EstimateRow | None], route: str) -> str:
    """Explain that the answers in source order, on the route, or on both cannot be read.

    Empty if some answers of both can be read.
    """
    counts = {side: count_unreadable(find, side) for side in ("forward", "route")}
    silent = {side: total for side, (number, total) in counts.items() if total and number == total}
    if not silent:
        return ""
    names = {"forward": " in source order", "route": f" {route}"}
    where = "" if len(silent) == 2 else names[next(iter(silent))]
    return (
        f"none of the {sum(silent.values())} answers{where} could be read (refused or unparsable), "
        f"so nothing can be concluded about order"
    )


_HEADLINES: Mapping[str, tuple[str, str]] = {
    "answers worse": ("{} answers worse", "{} answer worse"),
    "evidence lost": ("{} loses evidence", "{} lose evidence"),
    PROMISE_FAILED: ("{} breaks a promise", "{} break a promise"),
    INCONCLUSIVE: ("{} allows no conclusion", "{} allow no conclusion"),
    ALWAYS_WRONG: ("{} is wrong in every order", "{} are wrong in every order"),
    "evidence moves": ("{} shows different evidence", "{} show different evidence"),
    "different records": ("{} shows different records", "{} show different records"),
    "text only": ("{} shows the same records in a different text", "{} show different text"),
    "internal only": ("{} shows the same to every question", "{} show the same to every question"),
    "stable": ("{} shows the same to every question", "{} show the same to every question"),
}
"""How a headline puts each level, of one memory and of several, the most severe first."""
LEVELS: tuple[str, ...] = tuple(_HEADLINES)[::-1]
"""All levels, from the mildest to the most severe."""


def summarise_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Summarise a run in one sentence: how many memories have the most severe level."""
    if not verdicts:
        return ""
    worst = max((verdict.level for verdict in verdicts), key=LEVELS.index)
    worst_verdicts = [verdict for verdict in verdicts if verdict.level == worst]
    start = "Incomplete: " if any(verdict.is_incomplete for verdict in verdicts) else ""
    form = _HEADLINES[worst][len(worst_verdicts) > 1]
    text = form.format(_count_memories(len(worst_verdicts), len(verdicts)))
    if worst in ("stable", "internal only"):
        subject = f"{text}. " if len(verdicts) > 1 else ""
        return f"{start}{subject}{describe_no_difference(worst_verdicts[0])}."
    schedules = {
        schedule: describe_arrival(schedule)
        for verdict in worst_verdicts
        for schedule in list_arrivals(s for s, depth in verdict.depths.items() if depth == worst)
    }
    if schedules:
        return f"{start}{text} under {join_names(list(schedules.values()))}."
    reason = _explain_level(worst_verdicts[0]) if len(worst_verdicts) == 1 else ""
    return f"{start}{text}{reason}."


def _explain_level(verdict: Verdict) -> str:
    """Return the reason of a level that is no depth."""
    if verdict.level == INCONCLUSIVE:
        return f": {verdict.inconclusive}"
    return f": {''.join(map(str, next(_list_phrases(verdict))))}"


def _count_memories(number: int, total: int) -> str:
    if total == 1:
        return "This memory"
    everyone = "Both memories" if total == 2 else f"All {total} memories"
    return everyone if number == total else f"{number} of {total} memories"


def tabulate_verdicts(named_verdicts: Sequence[tuple[str, Verdict]]) -> list[Table]:
    """Show verdicts below each other, each with a name: levels, source order, and every order."""
    verdicts = [verdict for _, verdict in named_verdicts]
    schedules = list_arrivals(dict.fromkeys(s for verdict in verdicts for s in verdict.rows))
    is_labelled = any(verdict.is_labelled for verdict in verdicts)
    has_answers = any(verdict.answers for verdict in verdicts)
    cells = [
        (
            name,
            verdict.label,
            _show_source_evidence(verdict) if is_labelled else _show_records(verdict),
            *(_show_change(verdict, schedule, is_labelled=is_labelled) for schedule in schedules),
            *([_show_answers(verdict)] if has_answers else []),
        )
        for name, verdict in named_verdicts
    ]
    columns = (
        *("memory", "level", "evidence shown" if is_labelled else "records kept"),
        *map(describe_arrival, schedules),
        *(["right answers"] if has_answers else []),
    )
    caption = _explain_columns(verdicts, schedules, is_labelled=is_labelled)
    return make_table("summary", "Verdict", caption, columns, cells, names=2)


def _explain_columns(
    verdicts: Sequence[Verdict], schedules: Sequence[str], *, is_labelled: bool
) -> str:
    """Explain what the numbers of the table count."""
    base = locate_base(schedules)
    change = (
        "questions that lose evidence (−) and gain evidence (+)"
        if is_labelled
        else "questions that are shown different records"
    )
    texts = [
        f"Evidence shown: questions that are shown all of their evidence {base}."
        if is_labelled
        else f"Records kept: {base}."
    ]
    if schedules:
        texts.append(f"Orders: {change}, compared with {name_reference_of(verdicts)}.")
    models = dict.fromkeys(
        row.model for v in verdicts for group in v.answers.values() for row in group.values()
    )
    if models:
        texts.append(
            f"Right answers of {', '.join(models)}: accuracy {base} → in the first order with "
            "answers, and the number of questions; ≈ if no difference is shown."
        )
    return " ".join(texts)


def name_reference_of(verdicts: Sequence[Verdict]) -> str:
    """Name what the orders of several memories are compared with."""
    return join_names(list(dict.fromkeys(verdict.reference for verdict in verdicts)))


def _show_source_evidence(verdict: Verdict) -> str:
    baseline = verdict.baseline
    if not baseline.questions:
        return ""
    return f"{baseline.questions - baseline.lacking} of {baseline.questions}"


def _show_change(verdict: Verdict, schedule: str, *, is_labelled: bool) -> Part:
    group = verdict.rows.get(schedule, {})
    if not is_labelled:
        return format_share(group.get("V_changed_count"), is_mean=False)
    row = group.get(f"{LOST}_count")
    if row is None:
        return ""
    lost, gained = (format_count(count(group, quantity)) for quantity in (LOST, GAINED))
    return Number(f"−{lost} +{gained}", row)


def _show_answers(verdict: Verdict) -> Part:
    for group in verdict.answers.values():
        before, after = group.get("accuracy.forward"), group.get("accuracy.route")
        change = group.get("Delta_rep") or group.get("Delta")
        if before is None or after is None or change is None or change.estimate is None:
            continue
        shares = [f"{row.estimate or 0.0:.2f}" for row in (before, after)]
        sign = "→" if is_claim_shown(change, group) else "≈"
        return Number(f"{sign.join(dict.fromkeys(shares))} of {change.queries}", change)
    return ""


def tabulate_memories(verdicts: Sequence[Verdict]) -> list[Table]:
    """Show all memories below each other, or the orders of a single one."""
    if len(verdicts) == 1:
        return tabulate_orders(verdicts[0])
    return tabulate_verdicts([(verdict.policy, verdict) for verdict in verdicts])


def tabulate_orders(verdict: Verdict) -> list[Table]:
    """Show one memory under each order: what changes, with counts of questions."""
    quantities = {
        "lose evidence": LOST,
        "gain evidence": GAINED,
        "records differ": "V_changed",
        "text differs": "C_changed",
    }
    groups = verdict.rows.values()
    present = {
        name: f"{quantity}_count"
        for name, quantity in quantities.items()
        if any(f"{quantity}_count" in group for group in groups)
    }
    if any(count(group, "V_changed") for group in groups):
        present.pop("text differs", None)  # different records are a different text
    cells = [
        (
            describe_arrival(schedule),
            *(
                format_share(verdict.rows[schedule].get(quantity), is_mean=False)
                for quantity in present.values()
            ),
            _name_effect(verdict, schedule),
        )
        for schedule in list_arrivals(verdict.rows)
    ]
    caption = f"Questions compared with {verdict.reference}; means over the orders that were built."
    columns = ("order", *present, "effect")
    return make_table("orders-of-memory", verdict.policy, caption, columns, cells)


def _name_effect(verdict: Verdict, schedule: str) -> str:
    """Name how deep an order reaches, or what overlapping writes do."""
    if schedule in verdict.depths:
        return f"{verdict.depths[schedule]}{' (incomplete)' * verdict.is_incomplete}"
    fails = any(promise.schedule == schedule for promise in verdict.promises)
    return PROMISE_FAILED if fails else "promises kept"


def list_explanations(verdict: Verdict) -> list[str]:
    """List what `explain_verdict` adds to the statement of a verdict, as texts."""
    _, *phrases = explain_verdict(verdict, is_brief=True)
    return ["".join(map(str, parts)) for parts in phrases]
