"""The runs that numbers come from: each an ordinary call, named, with its policies by role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

__all__ = ["SOURCES", "Source"]

SCHEDULES = ("replay", "half-swap", "odd-even")


@dataclass(frozen=True, slots=True)
class Source:
    """One call of the package, and what it is for."""

    name: str
    meaning: str
    """What is run, for the page."""
    benchmark: str
    policies: Mapping[str, str]
    """Role → spec: tables name roles, so that another spec in a role gives other numbers."""
    call: Literal["audit", "restore", "orders", "readings"] = "audit"
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the call, by their names there."""
    asks: bool = False
    """Whether it needs a model to answer."""


_ARMS = {
    "focal": "focal",
    "survivor": "focal:cluster=source",
    "clustering": "focal:survivor=source-position",
    "canonical": "focal:cluster=source,survivor=source-position",
}
_RULES = {
    "Last arrival": "",
    "First arrival": ",survivor=first-arrival",
    "Largest source position": ",survivor=source-position",
}
_BUFFERS = {
    "recent": "recent:k=3",
    "recent-source": "source-order(recent:k=3)",
    "utility": "utility:k=3",
    "utility-source": "source-order(utility:k=3)",
}
_FACTS: Mapping[str, Any] = {"kinds": ("fact-recall",), "labels": "reference-session"}
_PAPER: Mapping[str, Any] = {**_FACTS, "control": "aligned", "fillers": ("A", "B")}
_DESIGNS = ("single", "identity-swap")
_WINDOWS = {f"recent-{k}": f"recent:k={k}" for k in (8, 16, 32)}
_SOURCE_WINDOWS = {f"source-{k}": f"source-order(recent:k={k})" for k in (8, 16, 32)}
_WINDOW = {"recent-8": "recent:k=8"}

_ALL = (
    Source(
        "personamem",
        "PersonaMem-32K, source level, three schedules, with the tie audit",
        "personamem",
        {
            **_ARMS,
            "recent": "recent:k=3",
            "recent-source": "source-order(recent:k=3)",
            "lexical": "lexical",
        },
        options={"schedules": SCHEDULES, "ties": True},
    ),
    Source(
        "admitted",
        "PersonaMem-32K, records admitted in source order",
        "personamem",
        {"recent-source": "source-order(recent:k=3)"},
        options={"interface": "budget:admit=source"},
    ),
    Source(
        "buffers",
        "PersonaMem-32K, the raw condition, the utility buffer and MemoChat, replay",
        "personamem",
        {
            "raw": "raw",
            "utility": "utility:k=3",
            "utility-source": "source-order(utility:k=3)",
            "memochat": "memochat",
        },
    ),
    Source(
        "streaming",
        "PersonaMem-32K, cross-fitted streaming, replay",
        "personamem",
        {"streaming": "streaming", "streaming-source": "source-order(streaming)"},
    ),
    Source(
        "amem",
        "PersonaMem-32K, A-MEM evolved by the keyword rule, replay (extra `amem`)",
        "personamem",
        {"amem": "amem"},
    ),
    Source(
        "bm25",
        "PersonaMem-32K, focal through BM25 top three, replay",
        "personamem",
        {"focal": "focal"},
        options={"interface": "bm25:k=3"},
    ),
    Source(
        "orders",
        "PersonaMem-32K, every order of every pool",
        "personamem",
        {
            f"{threshold} | {name}": f"focal:threshold={threshold}{rule}"
            for threshold in ("0.025", "0.055", "0.100")
            for name, rule in _RULES.items()
        },
        "orders",
    ),
    Source(
        "locomo",
        "LoCoMo, retention and exposure",
        "locomo",
        {"recent-3": "recent:k=3", **_WINDOWS, **_SOURCE_WINDOWS, "focal": "focal"},
    ),
    Source(
        "index",
        "LongMemEval-S, the session index of 237 questions, retention",
        "longmemeval:variant=index",
        {**_WINDOWS, **_SOURCE_WINDOWS},
    ),
    Source(
        "longmemeval",
        "LongMemEval-S, the released file, retention and exposure",
        "longmemeval:variant=s",
        {**_WINDOWS, **_SOURCE_WINDOWS, "focal": "focal"},
    ),
    Source(
        "readings",
        "arithmetic on the printed confusion matrix of two readings",
        "",
        {},
        "readings",
    ),
    Source(
        "answers",
        "146 fact-recall questions, replay, three draws, fillers A and B",
        "personamem",
        {"focal": "focal", "recent": "recent:k=3"},
        options={**_PAPER, "draws": 3},
        asks=True,
    ),
    Source(
        "reuse",
        "146 fact-recall questions, other questions of one state, replay, two draws, fillers A "
        "and B",
        "personamem",
        {"focal": "focal", "memochat": "memochat"},
        options={**_PAPER, "draws": 2, "reuse": True},
        asks=True,
    ),
    Source(
        "memochat",
        "146 fact-recall questions, MemoChat, replay, seven draws",
        "personamem",
        {"memochat": "memochat"},
        options={**_FACTS, "draws": 7, "control": "aligned"},
        asks=True,
    ),
    Source(
        "restoration",
        "restoration, 146 fact-recall questions, replay, two draws, fillers A and B",
        "personamem",
        {"focal": "focal"},
        "restore",
        {**_PAPER, "draws": 2, "designs": _DESIGNS},
        asks=True,
    ),
    Source(
        "recent-restoration",
        "restoration, 146 fact-recall questions, Recent-3, replay, three draws",
        "personamem",
        {"recent": "recent:k=3"},
        "restore",
        {**_FACTS, "draws": 3, "control": "aligned", "designs": _DESIGNS},
        asks=True,
    ),
    Source(
        "mechanism",
        "589 questions, operations apart, three schedules, one draw",
        "personamem",
        _ARMS,
        options={"schedules": SCHEDULES},
        asks=True,
    ),
    Source(
        "policies",
        "589 questions, policies and their comparators, replay, one draw",
        "personamem",
        {"focal": "focal", "focal-source": "source-order(focal)", **_BUFFERS},
        asks=True,
    ),
    Source(
        "provenance",
        "589 questions, four instructions, raw sessions, replay, one draw",
        "personamem",
        {"raw": "raw"},
        options={"provenance": ("preserved", "gated", "neutral", "placebo")},
        asks=True,
    ),
    Source(
        "display",
        "146 fact-recall questions, MemoChat, construction against display, two draws",
        "personamem",
        {"memochat": "memochat"},
        options={**_FACTS, "draws": 2, "control": "aligned", "display": ("reversed",)},
        asks=True,
    ),
    Source(
        "held-out",
        "589 questions, cross-fitted streaming and its comparator, three schedules, one draw",
        "personamem",
        {"streaming": "streaming", "streaming-source": "source-order(streaming)"},
        options={"schedules": SCHEDULES, "display": ("source",)},
        asks=True,
    ),
    Source(
        "repeated",
        "589 questions, cross-fitted streaming and its comparator, replay, three draws",
        "personamem",
        {"streaming": "streaming", "streaming-source": "source-order(streaming)"},
        options={"display": ("source",), "draws": 3},
        asks=True,
    ),
    Source(
        "rescue",
        "restoration, 589 questions, cross-fitted streaming, replay, two draws, fillers A and B",
        "personamem",
        {"streaming": "streaming"},
        "restore",
        {
            "labels": "reference-session",
            "draws": 2,
            "control": "aligned",
            "fillers": ("A", "B"),
            "designs": _DESIGNS,
        },
        asks=True,
    ),
    Source(
        "evolved",
        "146 fact-recall questions, A-MEM evolved by the keyword rule, replay, one draw "
        "(extra `amem`)",
        "personamem",
        {"amem": "amem"},
        options=_FACTS,
        asks=True,
    ),
    Source(
        "long-answers",
        "LongMemEval-S, free text, replay, one draw, the embedded judge",
        "longmemeval:variant=s",
        _WINDOW,
        asks=True,
    ),
    Source(
        "long-restoration",
        "LongMemEval-S, restoration, single-session-user, replay, two draws, the embedded judge",
        "longmemeval:variant=s",
        _WINDOW,
        "restore",
        {"kinds": ("single-session-user",), "draws": 2, "designs": ("single",)},
        asks=True,
    ),
    Source(
        "locomo-answers",
        "LoCoMo, 1,986 questions in free text, replay, one draw",
        "locomo",
        {
            "recent-8": "recent:k=8",
            "recent-16": "recent:k=16",
            "focal": "focal",
            "source-8": "source-order(recent:k=8)",
        },
        asks=True,
    ),
    Source(
        "locomo-restoration",
        "LoCoMo, restoration, replay, two draws",
        "locomo",
        {"recent-8": "recent:k=8", "recent-16": "recent:k=16"},
        "restore",
        {"draws": 2},
        asks=True,
    ),
)
SOURCES: Mapping[str, Source] = MappingProxyType({source.name: source for source in _ALL})
"""Every run, by its name."""
