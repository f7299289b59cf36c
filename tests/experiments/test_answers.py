"""The answer boundary of an audit, with models whose every word is known."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import routeprism
from routeprism.errors import InputError, SpecError
from routeprism.models import Ask
from routeprism.records import Benchmark, Case, Pool, Question, Record
from routeprism.review.tracing import trace_rows
from routeprism.text import tokens

from ..doubles import Scripted

WORDS = "walnut bread oven kitchen morning"


def benchmark(users: int = 4, questions: int = 3, options: tuple[str, ...] = ("oak", "elm")):
    cases = []
    for user in range(users):
        name = f"u{user}"
        records = tuple(Record(f"{name}r{at}", at, f"{WORDS} number{at} {name}") for at in range(3))
        pool_questions = tuple(
            Question(
                f"{name}q{at}",
                name,
                f"Which tree is {at}?",
                options,
                gold="a" if options else "oak",
            )
            for at in range(questions)
        )
        cases.append(Case(Pool(name, records), pool_questions))
    return Benchmark("tiny", tuple(cases), "0" * 64, interface="all")


def uneven(questions: int) -> Benchmark:
    """Make pools whose records differ in length, so that padding tells the fillers apart."""
    plain = benchmark(questions=questions)
    cases = [
        replace(
            case,
            pool=Pool(
                case.pool.user,
                tuple(
                    Record(
                        record.id,
                        record.position,
                        f"{record.text}{' walnut' * 9 * record.position}",
                    )
                    for record in case.pool.records
                ),
            ),
        )
        for case in plain.cases
    ]
    return replace(plain, cases=tuple(cases))


def by_last_record(ask: Ask) -> str:
    """Focal keeps the last record forward and the first on replay: right only on replay."""
    return "a" if "number0" in ask.memory else "b"


def test_the_profile_of_a_certain_model_by_hand() -> None:
    model = Scripted(by_last_record)
    result = routeprism.audit(benchmark(8), "focal", models=[model], draws=3, resamples=200)
    expected = {
        "H": 1,
        "Delta": 1,
        "H_eq": 0,
        "H_cross": 1,
        "H_within": 0,
        "D_res": 1,
        "D_star": 1,
        "Delta_rep": 1,
        "D_correct": 1,
        "accuracy.forward": 0,
        "accuracy.route": 1,
        "loo_min.D_res": 1,
        "loo_max.D_res": 1,
        "count.transition.IC": 24,
        "count.transition.CC": 0,
        "dispatch.H": 0,
    }
    where = {"model": "scripted", "arm": "", "mask": "", "experiment": "routes"}
    assert {name: result.value(name, **where).estimate for name in expected} == expected
    row = result.value("D_res", **where)
    assert (row.prompt_control, row.filler, row.draws, row.queries) == ("exact", "A", 3, 24)
    assert "the routes disagree more than the model disagrees with itself" in result.sentences[-1]


def test_draws_are_never_shared_inside_a_comparison() -> None:
    # raw shows the same on both routes: one prompt, and yet every draw of its own.
    model = Scripted(lambda ask: "a" if ask.draw % 2 else "b")
    result = routeprism.audit(benchmark(1, 1), "raw", models=[model], draws=2, resamples=100)
    assert len({ask.text for ask in model.asked}) == 1
    assert sorted(ask.draw for ask in model.asked) == [0, 1, 2, 3]
    assert result.value("count.identical_prompts", experiment="routes").estimate == 1
    # Draws b a | b a: across 2 of 4 differ, within always.
    assert result.value("D_res", arm="", mask="").estimate == 0.5 - 1


def test_prompts_are_matched_and_blind() -> None:
    model = Scripted(lambda ask: "a")
    routeprism.audit(
        benchmark(), "recent:k=1", models=[model], fillers=["A", "B"], control="aligned"
    )
    from routeprism.text.tokens import count

    lengths: dict[tuple[str, bool], set[int]] = {}
    for ask in model.asked:
        lengths.setdefault((ask.question, " x x" in ask.memory), set()).add(count(ask.text))
    assert all(len(length) == 1 for length in lengths.values())
    assert not any("gold" in ask.text.lower() for ask in model.asked)


def test_fillers_are_reported_apart_and_averaged() -> None:
    model = Scripted(lambda ask: "a" if " x x" in ask.memory or "number0" in ask.memory else "b")
    result = routeprism.audit(
        benchmark(), "focal", models=[model], fillers=["A", "B"], control="aligned", resamples=100
    )
    got = {f: result.value("H", filler=f, arm="", mask="").estimate for f in ("A", "B", "A+B")}
    assert got == {"A": 1, "B": 0, "A+B": 0.5}


@pytest.mark.parametrize("fillers", [["A"], ["A", "B"]])
@pytest.mark.parametrize("schedules", [["replay"], ["replay", "half-swap"]])
def test_each_route_is_asked_first_in_half_of_the_pairs(fillers, schedules) -> None:
    model = Scripted(lambda ask: f"{'ab'[len(ask.text) % 2]}")
    result = routeprism.audit(
        uneven(questions=4),
        "focal",
        schedules=schedules,
        models=[model],
        fillers=fillers,
        control="aligned",
        resamples=100,
    )
    for filler in {*fillers, "+".join(fillers)}:
        where = {"schedule": "replay", "filler": filler, "mask": "", "stratum": "all"}
        pairs = 16 * (2 if "+" in filler else 1)
        for name in ("forward", "route"):
            count = result.value(f"count.{name}_first", arm="", **where)
            assert (count.estimate, count.queries) == (pairs / 2, 16)
        row = result.value("dispatch.H", arm="", **where)
        assert (row.units, row.queries) == (4, 16)


def test_the_combined_row_files_every_pair_by_its_own_order() -> None:
    # The answer differs exactly where the forward prompt came first, whatever the filler.
    submitted: list[str] = []

    def say(ask: Ask) -> str:
        place = len(submitted)
        submitted.append(ask.text)
        return "ab"[place % 2] if "number0" in ask.memory else "a"

    model = Scripted(say, concurrency=1)
    result = routeprism.audit(
        uneven(3), "focal", models=[model], fillers=["A", "B"], control="aligned", resamples=100
    )
    where = {"experiment": "routes", "mask": "", "stratum": "all"}
    for filler in ("A", "B", "A+B"):
        got = {
            arm: result.value("H", arm=arm, filler=filler, **where).estimate
            for arm in ("forward-first", "route-first")
        }
        assert got == {"forward-first": 1, "route-first": 0}
        assert result.value("dispatch.H", arm="", filler=filler, **where).estimate == 1
    assert result.value("H", arm="", filler="A+B", **where).estimate == 0.5
    combined = result.value("H", arm="forward-first", filler="A+B", **where)
    assert (combined.queries, combined.units) == (12, 4)


def test_localisation_counts_every_route_and_padding_pair(pools, scripted, tmp_path: Path) -> None:
    # recent:k=2 shows records 2 3 forward and 0 1 on replay. q0's support is another on the other
    # route, q1's is lost. Only padding with " x" makes u0 answer q0 wrong on replay.
    support = {"q0": [0, 3], "q1": [3]}

    def say(ask: Ask) -> str:
        wrong = "q0" in ask.question and "number0 u0" in ask.memory and " x x" in ask.memory
        return "b" if wrong or ("q1" in ask.question and "number0" in ask.memory) else "a"

    result = routeprism.audit(
        pools(3, list(support), support=lambda question: support[question]),
        "recent:k=2",
        models=[scripted(say)],
        fillers=["A", "B"],
        control="aligned",
        masks={"part": ["u0q0", "u0q1", "u1q0"]},
        resamples=100,
        run=tmp_path / "run",
    )

    def counts(filler: str, mask: str = "") -> dict[str, float | None]:
        return {
            row.quantity.removeprefix("count."): row.estimate
            for row in result.rows
            if row.experiment == "support" and (row.filler, row.mask) == (filler, mask)
        }

    both = {
        "pairs": 12,
        "visible_change": 12,
        "support_change": 12,
        "support_loss": 6,
        "answer_change": 6,
        "same_right_answer": 5,
        "same_right_disjoint_support": 5,
        "users.visible_change": 3,
        "users.support_change": 3,
        "users.support_loss": 3,
        "users.answer_change": 3,
        "users.same_right_answer": 3,
        "users.same_right_disjoint_support": 3,
    }
    assert counts("A+B") == both
    disjoint = ("same_right_disjoint_support", "users.same_right_disjoint_support")
    assert [[counts(filler)[name] for name in disjoint] for filler in "AB"] == [[3, 3], [2, 2]]
    assert [counts("A+B", "part")[name] for name in disjoint] == [3, 2]
    numbers = [at for at, row in enumerate(result.rows, 1) if row.experiment == "support"]
    assert all(trail.agrees for trail in trace_rows(tmp_path / "run", numbers))


def test_refused_and_unparsable_answers_are_their_own() -> None:
    def say(ask: Ask) -> str:
        if "number0" in ask.memory:
            return "I'm sorry, but I can't help with that."
        return "either of them" if "is 0" in ask.question else "a"

    model = Scripted(say)
    result = routeprism.audit(benchmark(), "focal", models=[model], resamples=100)
    assert result.value("H", arm="", mask="").estimate == 1
    assert result.value("accuracy.route", arm="").estimate == 0
    assert result.value("accuracy.forward", arm="").estimate == pytest.approx(2 / 3)
    notes = "\n".join(result.notes)
    assert "12 answers were refused" in notes
    assert "4 answers were unparsable" in notes


def test_gamma_subtracts_the_comparator_question_by_question() -> None:
    model = Scripted(by_last_record)
    result = routeprism.audit(
        benchmark(), "focal", models=[model], draws=2, comparators=True, resamples=100
    )
    gamma = result.value("Gamma.D_res", policy="focal")
    assert (gamma.estimate, gamma.arm) == (1, "ordered-comparator")


def test_readouts_count_misses_and_extra_flags() -> None:
    # Every prompt changes under focal; the answer never does, so both readouts of it miss all.
    result = routeprism.audit(benchmark(), "focal", "raw", models=[Scripted(lambda ask: "b")])
    focal = {"policy": "focal", "experiment": "readouts"}
    assert result.value("count.changed_prompts", **focal).estimate == 12
    assert result.value("miss.sources", **focal).estimate == 0
    assert result.value("miss.answer", **focal).estimate == 12
    assert result.value("miss.correctness", **focal).estimate == 12
    # raw: the same prompt on both routes, answers by draw number: the forward one is draw 0.
    flips = routeprism.audit(benchmark(), "raw", models=[Scripted(lambda ask: "ab"[ask.draw])])
    raw = {"policy": "raw", "experiment": "readouts"}
    assert flips.value("count.changed_prompts", **raw).estimate == 0
    assert flips.value("extra.answer", **raw).estimate == 12
    assert flips.value("extra.sources", **raw).estimate == 0


def test_duplicate_options_are_excluded_under_a_mask() -> None:
    same = benchmark(options=("oak", "oak"))
    mixed = Benchmark(
        "mixed", (*benchmark(2).cases, *(Case(*_renamed(c)) for c in same.cases[:1])), "0" * 64
    )
    result = routeprism.audit(mixed, "focal", models=[Scripted(by_last_record)], resamples=100)
    assert result.value("H", mask="", arm="").queries == 9
    assert result.value("H", mask="distinct-options").queries == 6


def test_a_mask_also_cuts_duplicate_options_and_leave_one_out_limits() -> None:
    """Appendices C.6 and F.1 report both within the primary questions."""
    same = benchmark(options=("oak", "oak"))
    mixed = Benchmark(
        "mixed", (*benchmark(3).cases, *(Case(*_renamed(c)) for c in same.cases[:1])), "0" * 64
    )
    primary = {"u0q0", "u1q0", "u1q1", "xu0q0"}
    result = routeprism.audit(
        mixed,
        "focal",
        models=[Scripted(lambda ask: "b" if "u1" in ask.memory else by_last_record(ask))],
        masks={"primary": primary},
        resamples=100,
    )
    sizes = {
        mask: (row.queries, row.units)
        for mask in (
            "primary",
            "outside-primary",
            "primary:distinct-options",
            "outside-primary:distinct-options",
        )
        for row in [result.value("H", mask=mask, arm="")]
    }
    assert sizes == {
        "primary": (4, 3),
        "outside-primary": (8, 4),
        "primary:distinct-options": (3, 2),
        "outside-primary:distinct-options": (6, 3),
    }
    # Within the mask: H is 1 for u0, 0 for u1 and 1 for x. Without duplicates x is not there.
    limits = {
        mask: [result.value(f"{name}.H", mask=mask).estimate for name in ("loo_min", "loo_max")]
        for mask in ("primary", "primary:distinct-options")
    }
    assert limits == {"primary": [0.5, 1], "primary:distinct-options": [0, 1]}
    with pytest.raises(SpecError, match="Expected a mask's name without ':' but got 'a:b'"):
        routeprism.audit(mixed, "focal", masks={"a:b": set()})


def test_questions_count_equally_beside_users() -> None:
    """Appendix I.4: totals weighted by question beside the estimates weighted by user."""
    uneven = Benchmark(
        "uneven",
        (benchmark(1, questions=3).cases[0], benchmark(2, questions=1).cases[1]),
        "0" * 64,
        interface="all",
    )
    model = Scripted(lambda ask: "b" if "u1" in ask.memory else by_last_record(ask))
    result = routeprism.audit(uneven, "focal", models=[model], resamples=100)
    assert result.value("H", arm="", mask="").estimate == 0.5
    row = result.value("by_question.H")
    assert (row.estimate, row.queries, row.units) == (0.75, 4, 2)
    assert result.value("by_question.Delta").estimate == 0.75


def _renamed(case: Case) -> tuple[Pool, tuple[Question, ...]]:
    records = tuple(Record(f"x{r.id}", r.position, r.text) for r in case.pool.records)
    questions = tuple(Question(f"x{q.id}", "x", q.text, q.options, q.gold) for q in case.questions)
    return Pool("x", records), questions


def test_batches_are_independent_and_compared(tmp_path: Path) -> None:
    model = Scripted(lambda ask: "a" if ask.draw % 2 else "b")
    run = tmp_path / "run"
    routeprism.audit(benchmark(), "focal", models=[model], run=run, resamples=100)
    first = len(model.asked)
    result = routeprism.audit(
        benchmark(), "focal", models=[model], batches=["", "again"], run=run, resamples=100
    )
    assert (first, len(model.asked)) == (24, 48)  # the first batch was there
    row = result.value("Gamma.H", experiment="replication")
    assert (row.batch, row.arm) == ("again", "again-default")


def test_a_finished_run_asks_nothing_again_and_more_draws_ask_only_for_them(tmp_path: Path) -> None:
    model = Scripted(by_last_record)
    run = tmp_path / "run"
    settings = {"models": [model], "run": run, "resamples": 100}
    routeprism.audit(benchmark(), "focal", draws=2, **settings)
    before = (run / "estimates.csv").read_bytes()
    number = len(model.asked)
    routeprism.audit(benchmark(), "focal", draws=2, **settings)
    assert len(model.asked) == number
    assert (run / "estimates.csv").read_bytes() == before


def test_a_dry_run_asks_nobody_and_leaves_nothing(tmp_path: Path) -> None:
    model = Scripted(by_last_record)
    run = tmp_path / "run"
    result = routeprism.audit(
        benchmark(), "focal", models=[model], draws=2, dry_run=True, run=run, resamples=100
    )
    plan = result.costs["scripted"]
    assert (plan.calls, plan.kept, model.asked) == (48, 0, [])
    assert plan.input_tokens > 48 * 50
    assert not run.exists()


def test_pairs_that_cannot_be_matched_are_reported_and_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tokeniser that merges two fillers makes one question's padding too short by one."""
    encode = tokens.encode

    def merge_fillers(text: str, encoding: tokens.Encoding = "o200k_base") -> list[int]:
        ids = encode(text, encoding)
        return ids[:-1] if "is 0" in text and " one one" in text else ids

    monkeypatch.setattr(tokens, "encode", merge_fillers)
    audit = routeprism.audit(
        uneven(3), "focal", models=[Scripted(by_last_record)], control="exact", resamples=100
    )
    assert audit.value("H", arm="", mask="").queries == 8
    assert audit.value("count.unmatched").estimate == 4
    reason = "after padding the prompts have"
    assert any("4 pairs could not be matched" in note and reason in note for note in audit.notes)


def test_free_text_is_judged_and_has_no_letters() -> None:
    model = Scripted(lambda ask: "It is an oak." if "number0" in ask.memory else "An elm.")
    result = routeprism.audit(
        benchmark(options=()), "focal", models=[model], draws=2, resamples=100
    )
    row = result.value("Delta_rep", arm="", mask="")
    assert (row.estimate, row.judge, row.flags) == (1, "embedded:f1=0.5", "embedded;degenerate")
    assert not [r for r in result.rows if r.quantity in ("H", "D_res") and r.model]
    assert not any("a) " in ask.text for ask in model.asked)


def test_bad_manners_are_refused() -> None:
    with pytest.raises(SpecError, match=r"There is no model 'reeder'. Did you mean 'reader'"):
        routeprism.audit(benchmark(), "focal", models=["reeder"])
    with pytest.raises(
        SpecError, match=r"There is no prompt control 'exakt'. Did you mean 'exact'"
    ):
        routeprism.audit(benchmark(), "focal", models=[Scripted(by_last_record)], control="exakt")
    with pytest.raises(SpecError, match="Expected from 1 to 10,000 draws"):
        routeprism.audit(benchmark(), "focal", models=[Scripted(by_last_record)], draws=0)
    with pytest.raises(SpecError, match="two models have the same name"):
        routeprism.audit(benchmark(), "focal", models=[Scripted(str), Scripted(str)])
    with pytest.raises(SpecError, match="Expected 'openai:MODEL'"):
        routeprism.audit(benchmark(), "focal", models=["openai"])


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["_MOST_REQUESTS", "_MOST_CHARACTERS"])
def test_prompts_are_made_ready_in_portions_and_give_the_same_numbers(limit, monkeypatch) -> None:
    import routeprism.experiments._collection as asking

    def results(model: Scripted) -> list[object]:
        audited = routeprism.audit(
            benchmark(), "recent:k=2", models=[model], draws=2, display=["reversed"]
        )
        restored = routeprism.restore(
            "sample", "focal", kinds=["preference"], models=[model], draws=1
        )
        rows = [*audited.rows, *restored.rows]
        return [row for row in rows if "first" not in row.arm]  # sides take turns by portion

    portions: list[int] = []
    collect = asking.collect
    monkeypatch.setattr(
        asking, "collect", lambda *a, **k: portions.append(len(a[2])) or collect(*a, **k)
    )
    whole, at_once = results(Scripted(by_last_record)), len(portions)
    portions.clear()
    monkeypatch.setattr(asking, limit, 1)
    assert results(Scripted(by_last_record)) == whole
    assert len(portions) > 4 + at_once


@pytest.mark.slow
def test_the_reader_on_the_sample() -> None:
    result = routeprism.audit("sample", "focal", "lexical", models=["reader"], draws=3)
    focal = result.value("D_res", policy="focal", arm="", mask="")
    assert focal.lower > 0.2
    assert focal.flags == "synthetic;embedded"
    lexical = result.value("D_res", policy="lexical", arm="", mask="")
    assert lexical.lower <= 0 <= lexical.upper


@pytest.mark.realdata
@pytest.mark.slow
def test_the_reader_on_personamem_fact_recall(data: Path) -> None:
    result = routeprism.audit(
        "personamem",
        "focal",
        "recent:k=3",
        "lexical",
        kinds=["fact-recall"],
        models=["reader"],
        draws=3,
        control="aligned",
        data=data,
    )
    for policy in ("focal", "recent:k=3"):
        row = result.value("D_res", policy=policy, arm="", mask="")
        assert (row.queries, row.units) == (146, 37)
        assert row.lower > 0
    lexical = result.value("D_res", policy="lexical", arm="", mask="")
    assert lexical.lower <= 0 <= lexical.upper
    assert result.value("H", policy="focal", mask="distinct-options").queries == 130
    assert result.value("count.unmatched", policy="focal").estimate == 0


def test_recorded_answers_are_found_by_question_and_route(tmp_path: Path) -> None:
    """A matrix of answers from elsewhere gives the profile, with no prompt of ours in it."""
    small = benchmark(2, 2)
    lines = ["question,policy,schedule,draw,answer"]
    for case in small.cases:
        for question in case.questions:
            for draw in range(2):
                # Under focal the other order corrects every error; raw never changes.
                lines.append(f"{question.id},focal,forward,{draw},b")
                lines.append(f"{question.id},focal,replay,{draw},a")
                lines.append(f"{question.id},raw,forward,{draw},a")
                lines.append(f"{question.id},raw,replay,{draw},a")
    file = tmp_path / "matrix.csv"
    file.write_text("\n".join(lines) + "\n")
    result = routeprism.audit(
        small, "focal", "raw", models=[f"recorded:{file}"], draws=2, resamples=100
    )
    got = {p: result.value("D_res", policy=p, arm="", mask="").estimate for p in ("focal", "raw")}
    assert got == {"focal": 1, "raw": 0}
    assert result.value("Delta_rep", policy="focal", arm="", mask="").estimate == 1


@pytest.mark.slow
def test_recorded_answers_of_the_four_conditions(tmp_path: Path) -> None:
    sample = routeprism.load_benchmark("sample")
    truth = {"present": True, "restored": True, "absent": False, "replacement": False}
    lines = ["question,policy,route,condition,draw,answer"]
    for case in sample.cases:
        for q in case.questions:
            wrong = "a" if q.gold != "a" else "b"
            for condition, right in truth.items():
                lines.append(f"{q.id},focal,replay,{condition},0,{q.gold if right else wrong}")
    file = tmp_path / "matrix.csv"
    file.write_text("\n".join(lines) + "\n")
    call = partial(
        routeprism.restore, sample, "focal", models=[f"recorded:{file}"], draws=1, resamples=100
    )
    with pytest.raises(InputError, match="for design=single and for design=bundle"):
        call(designs=["single", "bundle"])
    result = call(designs=["single"])
    assert result.value("restored-absent", arm="").estimate == 1
    assert result.value("restored-present", arm="").estimate == 0


def test_a_judge_that_says_neither_yes_nor_no_is_told_of(tmp_path: Path) -> None:
    """The reader quotes records, and has none to quote when it is made the judge."""
    home = tmp_path / "mine"
    home.mkdir()
    (home / "records.jsonl").write_text(
        '{"user": "ann", "id": "r1", "text": "[USER] I sold the boat in May."}\n'
        '{"user": "ann", "id": "r2", "text": "[USER] The garden needs rain."}\n',
        encoding="utf-8",
    )
    (home / "questions.jsonl").write_text(
        '{"user": "ann", "id": "q1", "text": "What did Ann sell?", "gold": "the boat"}\n',
        encoding="utf-8",
    )
    for judge, reports in (("reader", True), ("embedded", False)):
        run = tmp_path / judge
        result = routeprism.audit(home, "raw", models=["reader"], judge=judge, run=run, workers=1)
        note = "reader: 2 answers were given neither yes nor no by the judge; each counts as wrong"
        assert (note in result.notes) is reports
