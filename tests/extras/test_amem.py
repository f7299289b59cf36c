"""`amem` with ChromaDB and wordllama: what evolves, what is exposed, and that nothing leaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import routeprism
from routeprism.errors import SpecError
from routeprism.models import Ask
from routeprism.policies import amem, make_policy
from routeprism.policies.amem import AMem
from routeprism.records import Benchmark, Case, Pool, Question, Record

from ..doubles import Scripted

WHY = "pip install 'routeprism[amem]'"
pytest.importorskip("chromadb", reason=WHY)
pytest.importorskip("wordllama", reason=WHY)

TEXTS = (
    "garden garden roses roses shovel",
    "train train station platform",
    "garden fence roses shovel shovel",
    "station cafe roses",
)
RECORDS = tuple(Record(f"r{at}", at, text) for at, text in enumerate(TEXTS))
QUESTIONS = tuple(
    Question(f"q{at}", "u", text, ("yes", "no"), "a")
    for at, text in enumerate(("What grows in the garden?", "Where does the train stop?"))
)
BENCHMARK = Benchmark("own", (Case(Pool("u", RECORDS), QUESTIONS),), "f" * 64)


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    """Every collection goes with its memory."""
    yield
    assert [c.name for c in amem._client().list_collections()] == []


def notes(state: Any) -> dict[str, Any]:
    return {load.pop("id"): load for load in json.loads(json.dumps(state))}


def built(policy: AMem, records: tuple[Record, ...] = RECORDS) -> Any:
    memory = policy.build(records)
    try:
        return memory.state()
    finally:
        memory.close()


# --- evolution -------------------------------------------------------------------------------


def test_updates_by_identity_land_on_the_neighbours() -> None:
    result = notes(built(AMem(near=1, neighbours="identity"), RECORDS[:3]))
    # The third note is nearest to the first, which is about gardens, too.
    assert result["r0"]["context"] == "Seen with shovel, garden, roses"
    assert result["r1"]["context"] == "General"
    assert result["r2"]["links"] == ["r0"]


def test_updates_by_rank_land_on_the_first_inserted() -> None:
    """The public implementation reads the rank of a neighbour as a place in its list of notes."""
    other_first = (RECORDS[1], RECORDS[0], RECORDS[2])
    result = notes(built(AMem(near=1), other_first))
    assert result["r2"]["links"] == ["r0"]  # the neighbour is the garden again,
    assert result["r1"]["context"] == "Seen with shovel, garden, roses"  # the update is the train's
    assert result["r0"]["context"] == "General"
    by_identity = notes(built(AMem(near=1, neighbours="identity"), other_first))
    assert by_identity["r1"]["context"] == "General"


def test_bodies_alone_are_shown_and_never_tags_or_contexts() -> None:
    memory = AMem(k=2).build(RECORDS)
    exposure = memory.expose("What grows in the garden?")
    assert [block.kind for block in exposure.blocks] == ["note", "note"]
    assert {block.text for block in exposure.blocks} == {TEXTS[0], TEXTS[2]}
    assert [sorted(block.sources) for block in exposure.blocks] in (
        [["r0"], ["r2"]],
        [["r2"], ["r0"]],
    )
    assert memory.retained() == {"r0", "r1", "r2", "r3"}
    memory.close()


def test_equally_near_bodies_come_as_they_were_inserted() -> None:
    twins = (Record("a", 0, "the same words"), Record("b", 1, "the same words"))
    for order in (twins, twins[::-1]):
        memory = AMem(k=1).build(order)
        assert memory.expose("same?").sources == {order[0].id}
        memory.close()


def test_a_record_that_comes_again_keeps_its_place() -> None:
    memory = AMem().build((*RECORDS[:2], RECORDS[0]))
    assert [note["id"] for note in memory.state()] == ["r0", "r1"]  # type: ignore[union-attr, index]
    assert "r0" not in notes(memory.state())["r0"]["links"]
    memory.close()


def test_the_search_is_exact_and_the_same_in_every_order() -> None:
    """Against comparing with every body, with more notes than ChromaDB's default batch."""
    import numpy as np

    records = [Record(f"n{at}", at, f"word{at} word{at * 7 % 31} number {at}") for at in range(150)]
    embed = amem._embedding("wordllama")
    vectors = np.array([embed(record.text) for record in records])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for order in (records, records[::-1]):
        bodies = amem._Bodies(embed)
        for record in order:
            bodies.add(record)
        for query in ("word7 number", "word30", "number 149"):
            vector = np.array(embed(query))
            exact = np.sort(-(vectors @ vector) / np.linalg.norm(vector))[:5]
            values = [int(identity[1:]) for identity in bodies.nearest(query, 5)]
            near = -(vectors[values] @ vector) / np.linalg.norm(vector)
            assert near == pytest.approx(exact, abs=1e-6)
        bodies.close()


# --- isolation -------------------------------------------------------------------------------


def test_builds_do_not_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Routes of one pool have the same ids: in one collection the second would find all at once."""
    policy = AMem(near=2)
    alone = built(policy, RECORDS[::-1])
    first = policy.build(RECORDS)
    second = policy.build(RECORDS[::-1])
    assert second.state() == alone
    stranger = policy.build((Record("x", 0, "garden roses"),))
    assert first.expose("garden?").sources == second.expose("garden?").sources
    assert stranger.expose("garden?").sources == {"x"}
    for memory in (first, second, stranger):
        memory.close()

    # The same with one collection for all: this is what the assertions above would catch.
    shared = amem._client().create_collection("shared", embedding_function=None)
    monkeypatch.setattr(type(amem._client()), "create_collection", lambda *_, **__: shared)
    monkeypatch.setattr(type(amem._client()), "delete_collection", lambda *_: None)
    policy.build(RECORDS)
    with pytest.raises(KeyError):
        policy.build(RECORDS[::-1])
    monkeypatch.undo()
    amem._client().delete_collection("shared")


def test_a_memory_that_nobody_closes_takes_its_collection_with_it() -> None:
    memory = AMem().build(RECORDS)
    assert len(amem._client().list_collections()) == 1
    del memory


# --- a model ---------------------------------------------------------------------------------


def evolving(ask: Ask) -> str:
    return json.dumps(
        {
            "should_evolve": True,
            "actions": ["strengthen", "update_neighbor"],
            "suggested_connections": [0],
            "tags_to_update": ["new"],
            "new_context_neighborhood": [f"after {len(ask.text)} characters"],
            "new_tags_neighborhood": [["seen"]],
        }
    )


def test_a_model_decides_and_its_states_are_revived(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Scripted(evolving)
    policy = AMem(neighbours="identity", model=model)
    assert policy.name == "amem:neighbours=identity,model=scripted"
    counted = routeprism.audit(BENCHMARK, policy, dry_run=True, resamples=100)
    (cost,) = counted.costs.values()
    assert cost.calls == 6 and model.asked == []  # three newcomers with neighbours on each route
    first = routeprism.audit(BENCHMARK, policy, run=tmp_path / "run", resamples=100)
    assert len(model.asked) == 6
    for ask in model.asked:
        assert "What grows" not in ask.text and ask.options == ()
    assert first.value("count.consultations", policy=policy.name, schedule="replay").estimate == 3
    assert first.value("count.notes_differ_bodies", policy=policy.name).estimate == 0
    assert first.value("count.notes_matched", policy=policy.name).estimate == 4
    monkeypatch.setattr(AMem, "build", lambda *_: pytest.fail("built again"))
    audit = routeprism.audit(BENCHMARK, policy, run=tmp_path / "run", resamples=100)
    assert audit.rows == first.rows and len(model.asked) == 6


BAD = ("", "I would rather not.", '{"should_evolve": true, "actio', '{"should_evolve": 1}', "[]")


@pytest.mark.parametrize("reply", BAD)
def test_after_a_bad_reply_the_note_stays_and_it_is_counted(reply: str) -> None:
    memory = AMem(model=Scripted(evolving)).consulting(lambda prompt: reply).build(RECORDS)
    for note in notes(memory.state()).values():
        assert (note["links"], note["context"]) == ([], "General")
    assert memory.counts() == {"consultations": 3, "unusable_replies": 3}
    memory.close()
    policy = AMem(model=Scripted(lambda ask: reply))
    audit = routeprism.audit(BENCHMARK, policy, resamples=100)
    bad = audit.value("count.unusable_replies", policy=policy.name, schedule="replay")
    assert bad.estimate == 3
    assert any(note.startswith("6 of 6 replies that amem:model=scripted") for note in audit.notes)


# --- numbers ---------------------------------------------------------------------------------


@pytest.mark.realdata
def test_personamem_moves_metadata_alone(data: Path) -> None:
    """Published for its 29 pools: 0 sources, 0 contexts, every state; 0 bodies (Appendix L)."""
    audit = routeprism.audit("personamem", "amem", data=data, resamples=100)

    def count(quantity: str) -> float | None:
        return audit.value(quantity, policy="amem", schedule="replay").estimate

    assert [count(f"{layer}_changed_count") for layer in ("retained", "V", "C", "I")] == [
        *(0, 0, 0),
        589,
    ]
    assert (count("count.canonical_states_changed"), count("count.states_compared")) == (37, 37)
    fields = ("matched", "differ_tags", "differ_contexts", "differ_links", "differ_bodies")
    assert [count(f"count.notes_{name}") for name in fields] == [195, 183, 191, 193, 0]
    assert (
        "amem, reversal: of 195 notes of the same records, these differ: 183 in tags, 191 in "
        "contexts, 193 in links, 0 in bodies; without their insertion order, the states still "
        "differ in 37 of 37 pools"
    ) in audit.sentences


def test_the_same_bytes_in_every_process(tmp_path: Path) -> None:
    """Whatever the hash seed and the number of workers."""
    command = "audit sample -p amem -p amem:neighbours=identity --resamples 100 --json".split()
    running = [
        subprocess.Popen(
            [
                *(sys.executable, "-c", "from routeprism.cli import main; main()", *command),
                *("--run", str(tmp_path / seed), "--workers", workers),
            ],
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.DEVNULL,
        )
        for seed, workers in (("1", "1"), ("2", "2"))
    ]
    assert [process.wait() for process in running] == [0, 0]
    first, second = ((tmp_path / seed / "estimates.csv").read_bytes() for seed in ("1", "2"))
    assert first == second and b"count.notes_differ_tags" in first


# --- specs -----------------------------------------------------------------------------------


def test_specs() -> None:
    assert make_policy("amem").name == "amem"
    assert make_policy("amem:k=3,near=2").name == "amem:k=3,near=2"
    with pytest.raises(SpecError, match="Expected one of rank, identity but got neighbours=first"):
        make_policy("amem:neighbours=first")
    with pytest.raises(SpecError, match="Expected wordllama or the directory"):
        make_policy("amem:embed=no-such-model")


def test_a_local_sentence_transformers_model_embeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a stand-in for the package, which brings torch along."""
    loaded = []

    class SentenceTransformer:
        def __init__(self, path: str, **options: Any) -> None:
            loaded.append((path, options["local_files_only"]))

        def encode(self, texts: list[str]) -> list[list[float]]:
            return [[float("garden" in text), float("train" in text), 0.1] for text in texts]

    fake = types.ModuleType("sentence_transformers")
    fake.SentenceTransformer = SentenceTransformer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "sentence_transformers", fake)
    policy = make_policy(f"amem:k=1,embed={tmp_path}")
    memory: Any = policy.build(RECORDS)
    assert memory.expose("the train").sources == {"r1"}
    assert loaded == [(str(tmp_path), True)]
    memory.close()


def test_without_that_package_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    (tmp_path / "other").mkdir()
    with pytest.raises(SpecError, match="pip install sentence-transformers"):
        AMem(embed=str(tmp_path / "other")).build(RECORDS)
