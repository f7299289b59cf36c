"""How notes evolve: the keyword rule, and what of a model's reply is believed."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from routeprism.errors import MissingExtraError
from routeprism.policies import amem
from routeprism.policies.amem import (
    AMem,
    Evolution,
    Note,
    by_keywords,
    note_of,
    prompt_of,
    read_evolution,
)
from routeprism.records import Record


def note(at: int, text: str) -> Note:
    return note_of(Record(f"r{at}", at, text))


NEW = note(9, "garden garden garden roses roses shovel")
NEAR = [note(0, "roses roses vase"), note(1, "train station"), note(2, "garden shovel fence")]


def test_a_note_begins_with_its_most_frequent_words() -> None:
    result = note(0, "[USER] tulips, tulips and tulips; watering watering cans\n\n[ASSISTANT] soil")
    assert result.keywords == ("tulips", "watering", "cans")
    assert (result.tags, result.context, result.links) == (result.keywords, "General", ())


def test_shared_keywords_link_tag_and_give_context() -> None:
    decided = by_keywords(NEW, NEAR)
    assert decided == Evolution(
        strengthen=True,
        links=("r0", "r2"),
        tags=("garden", "roses", "shovel"),
        neighbours=(
            (("roses", "vase"), "Seen with roses"),
            (("station", "train"), "General"),  # nothing shared, nothing changed
            (("fence", "garden", "shovel"), "Seen with garden, shovel"),
        ),
    )


def test_strangers_change_nothing() -> None:
    assert by_keywords(NEW, NEAR[1:2]) == Evolution(strengthen=False)


GOOD: dict[str, Any] = {
    "should_evolve": True,
    "actions": ["strengthen", "update_neighbor"],
    "suggested_connections": [2, "0", 7, "r1", 2],
    "tags_to_update": [" plants ", "", "plants", "tools"],
    "new_context_neighborhood": ["On\n flowers"],
    "new_tags_neighborhood": [["a"], ["b"]],
}


def test_a_good_reply_is_read() -> None:
    assert read_evolution(f"Sure!\n```json\n{json.dumps(GOOD)}\n```", NEAR) == Evolution(
        strengthen=True,
        links=("r2", "r0"),  # numbers of neighbours; what names none is no link
        tags=("plants", "tools"),
        neighbours=((("a",), "On flowers"), (("b",), "General")),
    )


def test_actions_decide_what_is_done() -> None:
    only_links = read_evolution(json.dumps(GOOD | {"actions": ["strengthen"]}), NEAR)
    assert only_links is not None and only_links.neighbours == ()
    only_near = read_evolution(json.dumps(GOOD | {"actions": ["update_neighbor"]}), NEAR)
    assert only_near is not None and not only_near.strengthen and only_near.links == ()
    assert read_evolution('{"should_evolve": false}', NEAR) == Evolution(strengthen=False)


def test_what_is_written_is_bounded() -> None:
    wide = GOOD | {
        "tags_to_update": [f"{at}" * 100 for at in range(50)],
        "new_context_neighborhood": ["x" * 9999],
        "new_tags_neighborhood": [["y"]] * 99,
    }
    decided = read_evolution(json.dumps(wide), NEAR)
    assert decided is not None
    assert len(decided.tags) == 12 and max(map(len, decided.tags)) == 60
    assert len(decided.neighbours) == 3 and len(decided.neighbours[0][1]) == 400


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no",
        "[1, 2]",
        '{"should_evolve": true, "act',
        "{}",
        '{"should_evolve": "yes"}',
        '{"should_evolve": true}',
        json.dumps(GOOD | {"actions": "strengthen"}),
        json.dumps(GOOD | {"actions": ["delete_everything"]}),
        json.dumps(GOOD | {"suggested_connections": 3}),
        json.dumps(GOOD | {"tags_to_update": [1]}),
        json.dumps(GOOD | {"new_tags_neighborhood": ["a"]}),
        json.dumps(GOOD | {"new_context_neighborhood": [None]}),
        "{" * 100_000,
    ],
)
def test_a_reply_of_another_shape_decides_nothing(reply: str) -> None:
    assert read_evolution(reply, NEAR) is None


def test_a_prompt_shows_the_notes_and_as_much_of_them_as_asked() -> None:
    prompt = prompt_of(NEW, NEAR[:1], chars=6)
    assert "New note\ncontent: garden\ncontext: General\nkeywords: garden, roses, shovel" in prompt
    assert "Nearest note 0\ncontent: roses \n" in prompt


def test_without_its_packages_amem_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "chromadb", None)
    monkeypatch.setattr(amem, "_embedding", lambda name: None)
    amem._client.cache_clear()
    with pytest.raises(MissingExtraError, match=r"amem.*pip install 'routeprism\[amem\]'"):
        AMem().build([Record("r", 0, "words")])
    amem._client.cache_clear()
