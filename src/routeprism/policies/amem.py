"""`amem`: notes that rewrite each other, and retrieval that never sees it (Appendix L).

Every record becomes a note. A newcomer fetches its nearest notes by body, and evolution decides
links, tags and contexts, of itself and of its neighbours. A question is shown the nearest bodies;
tags and contexts never reach the prompt. Bodies are in a ChromaDB collection of the build's own.
"""

from __future__ import annotations

import importlib
import uuid
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from routeprism import specs
from routeprism.errors import SpecError
from routeprism.models import Model
from routeprism.policies import _evolution as evolution
from routeprism.policies._abilities import require_consult, write_spec
from routeprism.policies._contracts import Block, Consult, Event, Exposure, JsonValue
from routeprism.policies._evolution import Evolution, Note, note_of
from routeprism.policies.adapters._systems import Vector, embedding, import_system, list_versions
from routeprism.records import Record

__all__ = ["AMem"]

_EXACT = 100_000
"""The number of notes up to which ChromaDB compares all of them instead of walking a graph."""


@lru_cache(maxsize=1)
def _client() -> Any:
    """Return this process's in-memory ChromaDB, with telemetry off."""
    chromadb = import_system("chromadb", "amem", "amem")
    return chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))


class _Bodies:
    """The bodies of one build, in a collection with a random name."""

    def __init__(self, embed: Any) -> None:
        self._embed = embed
        self._placed: dict[str, int] = {}
        self._collection = _client().create_collection(
            f"amem-{uuid.uuid4().hex}",
            embedding_function=None,
            configuration={
                "hnsw": {"space": "cosine", "batch_size": _EXACT, "sync_threshold": _EXACT}
            },
        )
        # Also where nobody closes it; but at the end of the process everything goes anyway.
        self.close = weakref.finalize(self, _client().delete_collection, self._collection.name)
        self.close.atexit = False

    def add(self, record: Record) -> None:
        self._placed.setdefault(record.id, len(self._placed))
        self._collection.upsert(ids=[record.id], embeddings=[list(self._embed(record.text))])

    def nearest(self, text: str, k: int) -> list[str]:
        """List the ids of the nearest bodies; ties in insertion order."""
        if not self._placed:
            return []
        result = self._collection.query(
            query_embeddings=[list(self._embed(text))],
            n_results=len(self._placed),
            include=["distances"],
        )
        ranked = zip(result["distances"][0], result["ids"][0], strict=True)
        ordered = sorted(ranked, key=lambda pair: (pair[0], self._placed[pair[1]]))
        return [identity for _, identity in ordered[:k]]


@dataclass(frozen=True, slots=True)
class _Notes:
    """The memory: notes in insertion order, and their bodies."""

    notes_by_id: Mapping[str, Note]
    bodies: _Bodies
    k: int
    log: tuple[Event, ...]
    consultations: int
    """The number of requests to the model; none if the rule decides."""
    unusable: int

    def retained(self) -> frozenset[str]:
        return frozenset(self.notes_by_id)

    def state(self) -> JsonValue:
        """Return ids, links, tags and contexts in insertion order (Appendix L.2)."""
        return [evolution.write_note(note) for note in self.notes_by_id.values()]

    def canonical(self) -> JsonValue:
        """Sort notes by id, and the links and tags of each."""
        return [
            {
                "id": note.id,
                "links": sorted(note.links),
                "tags": sorted(note.tags),
                "context": note.context,
            }
            for _, note in sorted(self.notes_by_id.items())
        ]

    def notes(self) -> Mapping[str, Mapping[str, JsonValue]]:
        """Return the fields to compare with the same records' notes on another route."""
        return {
            note.id: {
                "tags": sorted(note.tags),
                "contexts": note.context,
                "links": sorted(note.links),
                "bodies": note.body,
            }
            for note in self.notes_by_id.values()
        }

    def expose(self, query: str, /) -> Exposure:
        ids = self.bodies.nearest(query, self.k)
        return Exposure(
            tuple(
                Block("note", self.notes_by_id[note_id].body, frozenset((note_id,)))
                for note_id in ids
            )
        )

    def events(self) -> Sequence[Event]:
        return self.log

    def counts(self) -> Mapping[str, int]:
        if not self.consultations:
            return {}
        return {"consultations": self.consultations, "unusable_replies": self.unusable}

    def snapshot(self) -> JsonValue:
        notes: list[JsonValue] = [evolution.write_note(note) for note in self.notes_by_id.values()]
        log: list[JsonValue] = [[e.kind, e.record, e.by, e.at] for e in self.log]
        return {
            "notes": notes,
            "log": log,
            "consultations": self.consultations,
            "unusable": self.unusable,
        }

    def close(self) -> None:
        """Remove the collection."""
        self.bodies.close()


@dataclass(frozen=True, slots=True)
class AMem:
    """Notes that evolve as others arrive, retrieved by their bodies."""

    k: int = 5
    """How many notes a question is shown."""
    near: int = 5
    """How many nearest notes a newcomer is compared with."""
    neighbours: Literal["rank", "identity"] = "rank"
    """Where neighbour updates land: on the notes at the neighbours' *ranks* in insertion order, as
    in the public implementation, or on the neighbours."""
    embed: str = "wordllama"
    """The embedding of bodies: `wordllama`, or the path of a sentence-transformers model."""
    chars: int = 2000
    """The characters of each body in the prompt of the model that decides evolution."""
    model: Model | None = None
    """The model that decides evolution; by default the keyword rule."""
    consult: Consult | None = field(default=None, repr=False, compare=False)
    """The function that asks the model."""

    def __post_init__(self) -> None:
        specs.positive(self.name, k=self.k, near=self.near, chars=self.chars)
        if self.embed != "wordllama" and not Path(self.embed).is_dir():
            raise SpecError(
                f"Expected wordllama or the directory of a sentence-transformers model but got "
                f"embed={self.embed}"
            )

    @property
    def name(self) -> str:
        """The spec in every output."""
        return write_spec("amem", self, self.model)

    @property
    def deterministic(self) -> bool:
        """Whether the same arrivals always give the same memory."""
        return self.model is None

    def origin(self) -> str:
        """Name the packages that index and embed."""
        return list_versions(
            "chromadb", "wordllama" if self.embed == "wordllama" else _TRANSFORMERS
        )

    def consulting(self, consult: Consult, /) -> AMem:
        """Ask the model by this function."""
        return replace(self, consult=consult)

    def build(self, arrivals: Sequence[Record], /) -> _Notes:
        """Add every record as a note and let it evolve with its neighbours."""
        notes = _Notes({}, _Bodies(_embedding(self.embed)), self.k, (), 0, 0)
        for record in arrivals:
            notes = self._add(notes, record)
        return notes

    def grow(self, arrivals: Sequence[Record], snapshot: JsonValue, record: Record, /) -> _Notes:
        """Put a stored memory back, and add one more record to it."""
        return self._add(self.revive(arrivals, snapshot), record)

    def _add(self, notes: _Notes, record: Record) -> _Notes:
        """Add a record as a note, and let it evolve with its neighbours."""
        stored, bodies, log = dict(notes.notes_by_id), notes.bodies, list(notes.log)
        at = sum(event.kind == "add" for event in log)
        note = note_of(record)
        near = [
            note_id
            for note_id in bodies.nearest(record.text, self.near + 1)
            if note_id != record.id
        ]
        neighbours = [stored[note_id] for note_id in near[: self.near]]
        calls = unusable = 0
        if neighbours:
            decided = self._decide(note, neighbours)
            calls, unusable = int(self.model is not None), int(decided is None)
            if decided is not None:  # else the note stays as it is
                note = _strengthen_note(note, decided)
                for changed in self._update_neighbours(stored, neighbours, decided):
                    stored[changed.id] = changed
                    log.append(Event("overwrite", changed.id, record.id, at))
        stored[record.id] = note  # a record that came before keeps its place
        bodies.add(record)
        log.append(Event("add", record.id, record.id, at))
        counts = (notes.consultations + calls, notes.unusable + unusable)
        return _Notes(stored, bodies, self.k, tuple(log), *counts)

    def revive(self, arrivals: Sequence[Record], snapshot: JsonValue, /) -> _Notes:
        """Put tags, contexts and links back on the records; evolve nothing."""
        stored: Any = snapshot
        records = {record.id: record for record in arrivals}
        bodies = _Bodies(_embedding(self.embed))
        stored_notes: dict[str, Note] = {}
        for note_entry in stored["notes"]:
            record = records[note_entry["id"]]
            bodies.add(record)
            stored_notes[record.id] = replace(
                note_of(record),
                tags=tuple(note_entry["tags"]),
                context=note_entry["context"],
                links=tuple(note_entry["links"]),
            )
        log = tuple(Event(*entry) for entry in stored["log"])
        counts = (stored["consultations"], stored["unusable"])
        return _Notes(stored_notes, bodies, self.k, log, *counts)

    def _decide(self, note: Note, neighbours: Sequence[Note]) -> Evolution | None:
        if self.model is None:
            return evolution.by_keywords(note, neighbours)
        ask = require_consult(self.consult, self.name)
        return evolution.read(ask(evolution.prompt_of(note, neighbours, self.chars)), neighbours)

    def _update_neighbours(
        self, notes: Mapping[str, Note], neighbours: Sequence[Note], decided: Evolution
    ) -> Sequence[Note]:
        """Return the notes that neighbour updates land on, changed."""
        targets = list(notes.values()) if self.neighbours == "rank" else neighbours
        return [
            replace(target, tags=tags, context=context)
            # The public code reads a neighbour's rank as a place in its list of notes.
            for target, (tags, context) in zip(targets, decided.neighbours, strict=False)
        ]


def _strengthen_note(note: Note, decided: Evolution) -> Note:
    if not decided.strengthen:
        return note
    return replace(note, links=(*note.links, *decided.links), tags=decided.tags)


_TRANSFORMERS = "sentence-transformers"


@lru_cache(maxsize=2)
def _embedding(name: str) -> Any:
    """Return the function from a text to its vector."""
    if name == "wordllama":
        return embedding("wordllama", "amem")
    try:
        package = importlib.import_module("sentence_transformers")
    except ModuleNotFoundError as error:
        raise SpecError(
            f"embed={name} needs the package {_TRANSFORMERS} ({error.name} is missing): "
            f"pip install {_TRANSFORMERS}"
        ) from error
    model = package.SentenceTransformer(name, local_files_only=True, device="cpu")

    @lru_cache(maxsize=2048)
    def embed(text: str) -> Vector:
        return tuple(float(value) for value in model.encode([text])[0])

    return embed
