"""The command that goes on with a run, from what its manifest tells."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from routeprism.answers import EmbeddedJudge
from routeprism.experiments import SEED
from routeprism.measures import RESAMPLES
from routeprism.models._openai_session import PUBLIC

__all__ = ["command_of"]

_NAMED = {
    "--policy": "policies",
    "--schedule": "schedules",
    "--arrival": "arrivals",
    "--kind": "kinds",
}
_USUAL: Mapping[str, tuple[str, object]] = {
    "--seed": ("seed", SEED),
    "--resamples": ("resamples", RESAMPLES),
    "--interval": ("interval", "expanded"),
}
"""Options that are left out where they have these values; other ones are another run's."""
_ASKED: Mapping[str, tuple[str, object]] = {
    "--provenance": ("provenance", "preserved"),
    "--judge": ("judge", EmbeddedJudge().name),
}
"""The same, of runs that ask a model."""


def command_of(manifest: Mapping[str, Any], directory: Path) -> str:
    """Write the command that goes on with this run, as far as the manifest tells."""
    made = manifest.get("configuration", {})
    if made.get("command") == "demo":
        return shlex.join(["routeprism", "demo", "--run", str(directory)])
    if made.get("command") == "reproduce":
        return shlex.join(["routeprism", "reproduce", "--keep", str(directory)])
    parts = ["routeprism", str(made.get("command", "audit")), str(made.get("benchmark", ""))]
    for name, source in (made.get("passes") or {}).items():
        parts += ["--pass", f"{name}={str(source).removeprefix('file:')}"]
    for option, name in _NAMED.items():
        for value in made.get(name) or ():
            parts += [option, str(value)]
    parts += _interface(made)
    if made.get("models"):
        parts += _answers(made)
    if made.get("labels"):
        parts += ["--labels", str(made["labels"])]
    parts += _unusual(made, _USUAL)
    return shlex.join([*parts, "--run", str(directory)])


def _interface(made: Mapping[str, Any]) -> Iterator[str]:
    chosen = sorted({str(name) for name in made.get("interfaces") or ()} - {"own", "budget"})
    if len(chosen) == 1:
        yield from ("--interface", chosen[0])


def _answers(made: Mapping[str, Any]) -> Iterator[str]:
    for model, settings in dict(made["models"]).items():
        url = (settings or {}).get("base_url") or PUBLIC
        yield from ("--model", model if url == PUBLIC else f"{model},base_url={url}")
    yield from ("--draws", str(made.get("draws", 1)))
    yield from ("--control", str(made.get("prompt_control")))
    for filler in made.get("fillers") or ():
        yield from ("--filler", str(filler))
    yield from _unusual(made, _ASKED)


def _unusual(made: Mapping[str, Any], usual: Mapping[str, tuple[str, object]]) -> Iterator[str]:
    for option, (name, value) in usual.items():
        found = made.get(name, value)
        if found != value and isinstance(found, (str, int)):
            yield from (option, str(found))
