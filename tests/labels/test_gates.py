"""Gates: the published tables on readings that are constructed to have the published marginals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from routeprism.errors import InputError, SpecError
from routeprism.labels import (
    SCREEN,
    SCREEN_GOLD,
    Mask,
    Readings,
    Rubric,
    ScreenReading,
    admissible,
    cards_for,
    combine,
    gate,
    mask_from_file,
    reading_rows,
)
from routeprism.records import Benchmark, Case, Pool, Question, Record

NAMES = {"a": "admissible", "m": "ambiguous", "i": "inadmissible", "u": "unread"}
# The published confusion matrix of passes A and B (Table fullpool-semantic-confusion).
TWO = {"aa": 63, "am": 2, "ai": 5, "ma": 7, "mm": 1, "mi": 0, "ia": 7, "im": 9, "ii": 52}

# How a third reading may split those cells so that every published count comes out.
THIRD = {
    "L": {"aa": "24a 1m 38i", "am": "2i", "ai": "1a 4i", "ma": "1m 6i", "mm": "1i", "ia": "7i"},
    "T": {"aa": "48a 4m 11i", "am": "2i", "ai": "5a", "ma": "7i", "mm": "1i", "ia": "2a 5i"},
    "S": {"aa": "50a 13i", "am": "2i", "ai": "5a", "ma": "7i", "mm": "1i", "ia": "1a 6i"},
}
THIRD["L"] |= {"im": "9i", "ii": "52i"}
THIRD["T"] |= {"im": "9i", "ii": "3a 49i"}
THIRD["S"] |= {"im": "9i", "ii": "2a 50i"}


def triples(third: str) -> list[str]:
    """Give one string of three letters for each of the 146 cards."""
    values = []
    for pair, number in TWO.items():
        split = [(int(part[:-1]), part[-1]) for part in THIRD[third].get(pair, "").split()]
        assert sum(count for count, _ in split) == number
        values += [pair + letter for count, letter in split for _ in range(count)]
    return values


def passes(columns: Sequence[str], rubric: Rubric = SCREEN, names: str = "ABCDE") -> list[Readings]:
    """Make a pass for each place of the given strings; card by card."""
    return [
        Readings(
            names[at],
            "screen",
            rubric.name,
            rubric.digest,
            "scripted",
            "0" * 64,
            {
                f"card-{number}": ScreenReading(f"q{number}", NAMES[letters[at]])
                for number, letters in enumerate(columns)
            },
        )
        for at in range(len(columns[0]))
    ]


def counts(labels: dict[str, str] | object) -> tuple[int, int, int]:
    met = Counter(labels.values())  # type: ignore[attr-defined]
    return met["admissible"], met["ambiguous"], met["inadmissible"]


# --- Table semantic-third-pass ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("third", "alone", "majority", "unanimity"),
    [
        ("L", (25, 2, 119), (64, 10, 72), (24, 0, 122)),
        ("T", (58, 4, 84), (70, 10, 66), (48, 0, 98)),
        ("S", (58, 0, 88), (69, 10, 67), (50, 0, 96)),
    ],
)
def test_majority_and_unanimity_have_the_published_counts(
    third: str,
    alone: tuple[int, int, int],
    majority: tuple[int, int, int],
    unanimity: tuple[int, int, int],
) -> None:
    """Appendix B.5; that L's unanimity keeps 24 is in its text."""
    three = passes(triples(third))
    assert counts(three[0].screened()) == (70, 8, 68)
    assert counts(three[1].screened()) == (77, 12, 57)
    assert counts(three[2].screened()) == alone
    assert counts(combine("majority", three)) == majority
    assert counts(combine("unanimity", three)) == unanimity
    assert len(gate("majority", three)) == majority[0]
    assert len(gate("unanimity", three)) == unanimity[0]


def test_the_third_luna_reading_agrees_as_published() -> None:
    """With A on 94 pools, with B on 80; the plurality with the two-reading mask on 145."""
    three = passes(triples("L"))
    a, b, third = (item.screened() for item in three)
    assert sum(a[q] == third[q] for q in a) == 94
    assert sum(b[q] == third[q] for q in b) == 80
    two = gate("intersection", three[:2])
    plurality = gate("majority", three)
    assert len(two) == 63
    assert sum((q in two) == (q in plurality) for q in a) == 145


def test_the_published_agreement_as_rows() -> None:
    """116 of 146 (0.795), κ = 0.634, 63 in both: from readings to the estimates table."""
    cases = tuple(
        Case(
            Pool(f"u{user}", (Record("r", 0, "Words."),)),
            tuple(Question(f"q{at}", f"u{user}", "Which?") for at in range(user, 146, 37)),
        )
        for user in range(37)
    )
    benchmark = Benchmark("146", cases, "0" * 64)
    two = passes(triples("L"))[:2]
    rows = reading_rows(benchmark, two, seed=1, resamples=500)
    values = {(row.arm, row.quantity): row for row in rows}
    assert values["A~B", "agreement"].estimate == pytest.approx(0.795, abs=5e-4)
    assert values["A~B", "kappa"].estimate == pytest.approx(0.634, abs=5e-4)
    assert values["A~B", "count.agreed"].estimate == 116
    assert values["intersection(A,B)", "count.admissible"].estimate == 63
    kappa = values["A~B", "kappa"]
    assert (kappa.queries, kappa.units) == (146, 37)
    assert kappa.lower is not None and kappa.upper is not None
    assert kappa.lower < 0.634 < kappa.upper
    mask = gate("intersection", two, name="primary")
    under = reading_rows(benchmark, two, seed=1, resamples=100, masks=[mask])
    masked = {(row.arm, row.quantity): row.estimate for row in under if row.mask == "primary"}
    assert masked["A", "count.admissible"] == masked["A~B", "count.agreed"] == 63
    assert masked["A~B", "kappa"] is None  # one label only


# --- the rules, one by one -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "majority", "unanimity"),
    [
        ("aaa", "admissible", "admissible"),
        ("aai", "admissible", "inadmissible"),
        ("aam", "admissible", "inadmissible"),
        ("iia", "inadmissible", "inadmissible"),
        ("mma", "ambiguous", "inadmissible"),
        ("ami", "ambiguous", "inadmissible"),  # no majority at all
        ("mmm", "ambiguous", "inadmissible"),
        ("aaii", "ambiguous", "inadmissible"),  # a tie
        ("aaai", "admissible", "inadmissible"),
        ("aami", "ambiguous", "inadmissible"),  # half is not more than half
        ("aau", "admissible", "inadmissible"),
        ("aiu", "ambiguous", "inadmissible"),
        ("auu", "ambiguous", "inadmissible"),  # unread is no label, and no majority either
        ("aa", "admissible", "admissible"),
        ("ai", "ambiguous", "inadmissible"),
    ],
)
def test_labels_together(labels: str, majority: str, unanimity: str) -> None:
    read = passes([labels])
    assert combine("majority", read) == {"q0": majority}
    assert combine("unanimity", read) == {"q0": unanimity}


def test_an_intersection_is_of_two() -> None:
    read = passes(["aa", "ai", "ia", "mm"])
    result = gate("intersection", read)
    assert result == Mask(
        "intersection(A,B)",
        frozenset({"q0"}),
        "admissible by both of A (scripted), B (scripted)",
    )
    with pytest.raises(SpecError, match="Expected 2 passes for 'intersection' but got 3"):
        gate("intersection", passes(["aaa"]))
    with pytest.raises(SpecError, match="Expected 2 or more passes for 'majority' but got 1"):
        gate("majority", passes(["a"]))
    with pytest.raises(SpecError, match=r"no rule 'majorty'\. Did you mean 'majority'"):
        gate("majorty", read)  # type: ignore[arg-type]


def test_passes_over_different_cards_or_rubrics_do_not_vote_together() -> None:
    item = passes(["aa", "aa"])[0]
    fewer = passes(["aa"])[1]
    with pytest.raises(InputError, match="1 only in 'A' "):
        gate("majority", [item, fewer])
    gold = passes(["aa", "aa"], SCREEN_GOLD)[1]
    with pytest.raises(SpecError, match=r"different rubrics: 'screen' .* 'screen-gold'"):
        gate("majority", [item, gold])


# --- masks that nobody read ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.txt", b"ann_q1_abs\r\n\r\n  bob_q1_abs \n"),
        ("m.txt", b"\xef\xbb\xbfquestion\nann_q1_abs\nbob_q1_abs\n"),
        ("m.csv", b'why;question\n"a\nb";ann_q1_abs\n;bob_q1_abs\n'),
        ("m.tsv", b"question\tuser\nbob_q1_abs\tbob\nann_q1_abs\tann\n"),
    ],
)
def test_a_mask_comes_from_a_list_or_a_table(
    tiny: Benchmark, tmp_path: Path, name: str, content: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    result = mask_from_file(path, tiny)
    assert result == Mask(
        "m", frozenset({"ann_q1_abs", "bob_q1_abs"}), f"the questions listed in {name}"
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.txt", b"ann_q1_abs\nbob_q1_ab\n", "line 2, field 'question': benchmark 'tiny' has no"),
        ("m.txt", b"ann_q1_abs\nbob_q1_ab\n", "Did you mean 'bob_q1_abs'?"),
        ("m.txt", b"ann_q1_abs\n\nann_q1_abs\n", "line 3, field 'question': the question "),
        ("m.csv", b"id\nann_q1_abs\n", "line 1, field 'question': the column 'question' is"),
        ("m.csv", b"question,x\nann_q1_abs,1\n,2\n", "line 3, field 'question': row 3: no ques"),
        ("m.txt", b"\n", "there is no question in it"),
        ("m.csv", b"question\n", "there is no question in it"),
    ],
)
def test_a_bad_mask_is_refused(
    tiny: Benchmark, tmp_path: Path, name: str, content: bytes, message: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as refused:
        mask_from_file(path, tiny)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_mask_is_asked_for_membership(tiny: Benchmark) -> None:
    cards = cards_for(tiny, SCREEN)
    result = admissible(
        Readings(
            "A",
            "screen",
            "screen",
            SCREEN.digest,
            "scripted",
            "0" * 64,
            {card.id: ScreenReading(card.question, "admissible") for card in cards[:1]},
        )
    )
    assert "ann_q0_secretid" in result
    assert "ann_q1_abs" not in result
