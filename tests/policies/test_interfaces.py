"""Interfaces: the budget boundary of PROTOCOL §3 and the long-history top three."""

import pytest

from routeprism.errors import SpecError
from routeprism.policies import make_policy, parse_interface
from routeprism.policies.interfaces import All, Bm25Top, Budget
from routeprism.records import Record


def record(position: int, text: str) -> Record:
    return Record(f"r{position}", position, text)


APPLE, OAK, BOTH = record(0, "apple apple pie"), record(1, "oak tree"), record(2, "apple oak")
HEADER = 12


def ids(interface: object, query: str, retained: list[Record], arrivals=None) -> list[str]:
    exposure = interface.open(arrivals or retained, retained)(query)
    return [next(iter(block.sources)) for block in exposure.blocks]


def test_the_header_has_the_published_length() -> None:
    block = All().open([APPLE], [APPLE])("q").blocks[0]
    assert block.text == "[session 0]\napple apple pie"
    assert len(block.text) == HEADER + len(APPLE.text)


def test_all_shows_everything_in_source_or_arrival_order() -> None:
    arrived = [BOTH, APPLE, OAK]
    assert ids(All(), "apple", arrived) == ["r0", "r1", "r2"]
    assert ids(All(display="arrival"), "apple", arrived) == ["r2", "r0", "r1"]


def test_budget_admits_by_rank_until_the_first_that_does_not_fit() -> None:
    # apple ranks r0 before r2; r1 has no query term and comes last.
    fits_two = 2 * HEADER + len(APPLE.text) + len(BOTH.text) + 2
    assert ids(Budget(chars=fits_two), "apple", [APPLE, OAK, BOTH]) == ["r0", "r2"]
    assert ids(Budget(chars=fits_two - 1), "apple", [APPLE, OAK, BOTH]) == ["r0"]


def test_budget_stops_at_the_first_that_does_not_fit_even_if_a_later_one_would() -> None:
    long = record(0, "apple " * 30)
    budget = Budget(chars=HEADER + len(OAK.text))
    assert ids(budget, "apple oak", [long, OAK]) == []


def test_budget_admits_in_source_order_when_asked() -> None:
    fits_two = 2 * HEADER + len(APPLE.text) + len(OAK.text) + 2
    retained = [APPLE, OAK, BOTH]
    assert ids(Budget(chars=fits_two, admit="source"), "oak", retained) == ["r0", "r1"]
    assert ids(Budget(chars=fits_two), "oak", retained) == ["r1", "r2"]


def test_budget_takes_k_candidates_and_breaks_ties_by_source_position() -> None:
    same = [record(position, "apple") for position in (2, 0, 1)]
    assert ids(Budget(k=2), "apple", same) == ["r0", "r1"]


def test_budget_shows_full_text_when_asked() -> None:
    spoken = record(0, "[USER] apple\n\n[ASSISTANT] pie")
    full = Budget(text="full").open([spoken], [spoken])("q").context
    assert full == "[session 0]\n[USER] apple\n\n[ASSISTANT] pie"
    assert Budget().open([spoken], [spoken])("q").context == "[session 0]\napple"


@pytest.mark.parametrize("interface", ["all", "budget", "bm25"])
def test_every_interface_shows_user_turns_or_complete_records(interface: str) -> None:
    spoken = record(0, "[USER] apple\n\n[ASSISTANT] pie")
    contexts = {
        text: parse_interface(f"{interface}:text={text}").open([spoken], [spoken])("q").context
        for text in ("user", "full")
    }
    assert contexts == {
        "user": "[session 0]\napple",
        "full": "[session 0]\n[USER] apple\n\n[ASSISTANT] pie",
    }
    assert (
        parse_interface(interface).open([spoken], [spoken])("q").context
        == (contexts["full" if interface == "bm25" else "user"])
    )


def test_top_k_ranks_by_user_turns_and_shows_complete_records() -> None:
    # "oak" is a word of the assistant in r0, where ranking does not look for it.
    text = record(0, "[USER] apple\n\n[ASSISTANT] oak oak oak")
    second_record = record(1, "[USER] oak\n\n[ASSISTANT] pear")
    exposure = Bm25Top(k=1).open([text, second_record], [text, second_record])("oak")
    assert exposure.context == "[session 1]\n[USER] oak\n\n[ASSISTANT] pear"


def test_idf_overlap_is_another_ranking() -> None:
    often, both = record(0, "apple apple apple"), record(1, "apple oak and more words beside it")
    retained, query = [often, both], "apple " * 12 + "oak"
    assert ids(Budget(k=1), query, retained) == ["r0"]
    assert ids(Budget(k=1, rank="idf-overlap"), query, retained) == ["r1"]


def test_top_k_uses_the_statistics_of_everything_that_arrived() -> None:
    # Retained alone, "apple" and "oak" are equally rare; in the full pool "apple" is common.
    apple, oak = record(0, "apple"), record(1, "oak")
    more = [record(position, "apple tart") for position in range(2, 6)]
    assert ids(Bm25Top(k=1), "apple oak", [apple, oak]) == ["r0"]
    assert ids(Bm25Top(k=1), "apple oak", [apple, oak], [apple, oak, *more]) == ["r1"]


def test_redelivered_records_are_shown_once() -> None:
    assert ids(All(display="arrival"), "q", [APPLE, OAK, APPLE]) == ["r1", "r0"]


def test_too_long_records_are_known() -> None:
    assert Budget(chars=20).too_long(APPLE)
    assert not Budget().too_long(APPLE)
    assert not All().too_long(APPLE)


def test_names_are_canonical() -> None:
    assert parse_interface("budget:k=10,chars=32768").name == "budget"
    assert parse_interface("budget:admit=source").name == "budget:admit=source"
    assert parse_interface("bm25:k=3,text=full").name == "bm25"
    assert parse_interface("bm25:text=user").name == "bm25:text=user"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budgt", "Did you mean 'budget'"),
        ("budget:cars=3", "Did you mean 'chars'"),
        ("budget:admit=best", "Expected one of rank, source"),
        ("bm25:k=0", "Expected k of 1 or more"),
    ],
)
def test_wrong_interfaces_are_explained(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_interface(text)


def test_policies_take_the_interface() -> None:
    policy = make_policy("recent:k=2", parse_interface("all:display=arrival"))
    memory = policy.build([APPLE, BOTH, OAK])
    assert [block.text[:11] for block in memory.expose("q").blocks] == [
        "[session 2]",
        "[session 1]",
    ]


def test_a_pool_can_be_ranked_whole() -> None:
    # apple: r0 has it twice, r2 once, r1 never; without a known term the source decides.
    assert [item.id for item in Bm25Top().ranked((APPLE, OAK, BOTH), "apple?")] == [
        "r0",
        "r2",
        "r1",
    ]
    assert [item.id for item in Bm25Top().ranked((APPLE, OAK, BOTH), "pear")] == ["r0", "r1", "r2"]


def test_scores_are_shared_only_within_the_same_arrivals() -> None:
    # Both pools begin with the same record; "pond" is rare in one of them and common in the other.
    pool = [record(0, "mill"), record(1, "pond"), record(2, "mill oak"), record(3, "oak")]
    more = [*pool, *(record(at, "pond") for at in range(4, 9))]
    interface = Bm25Top(k=1)
    for _ in range(2):
        assert ids(interface, "pond oak", pool[1:3], pool) == ["r1"]
        assert ids(interface, "pond oak", pool[1:3][::-1], more[::-1]) == ["r2"]
