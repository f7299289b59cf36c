"""Merge the shards of one command: perform the command on their results instead of on its pools."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from routeprism.api import audits, studies
from routeprism.api.extensions import use_extensions
from routeprism.api.requests import takes_settings
from routeprism.api.settings import settings_for
from routeprism.errors import RunError
from routeprism.experiments import check_shards
from routeprism.redaction import HIDDEN
from routeprism.reproduction import reproduce
from routeprism.settings import read_command

if TYPE_CHECKING:
    from routeprism.answers import AnswerProgress
    from routeprism.experiments import Audit
    from routeprism.labels import Study
    from routeprism.reproduction import ReproductionResult

__all__ = ["merge", "read_shards"]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "audit": audits.audit,
    "restore": audits.restore,
    "remedy": audits.remedy,
    "orders": audits.explore_orders,
    "curve": audits.curve,
    "screen": studies.screen,
    "support": studies.support,
    "reproduce": reproduce,
}
"""The function of each command that works on shards."""


@takes_settings(
    "merge",
    "*runs",
    progress="called with (pools done, pools in all).",
    answer_progress="called with (model, progress of its answers).",
)
def merge(
    settings: Any,
    *,
    progress: Callable[[int, int], None] | None = None,
    answer_progress: AnswerProgress | None = None,
) -> Audit | Study | ReproductionResult:
    """Combine the shards of one command; the result is that of the command on all pools."""
    with read_shards(settings) as (command, merged):
        function = inspect.unwrap(_FUNCTIONS[command])
        callbacks = {"progress": progress, "answer_progress": answer_progress}
        names = callbacks.keys() & inspect.signature(function).parameters.keys()
        result: Audit | Study | ReproductionResult
        result = function(merged, **{name: callbacks[name] for name in names})
        return result


@contextmanager
def read_shards(settings: Any) -> Iterator[tuple[str, Any]]:
    """Provide the command of some shards, and its settings with their results.

    Extensions that the command named with `--use` are in use meanwhile.
    """
    shards, words = check_shards([Path(run) for run in settings.runs])
    if not words or words[0] not in _FUNCTIONS:
        raise RunError(f"{shards[0]} does not name the command that made it")
    command, *words = _take_hidden_address(words, shards[0])
    names = []
    while words[:1] == ["--use"]:
        names += words[1:2]
        words = words[2:]
    with use_extensions(*names):
        merged = read_command(settings_for(command), words)
        place = {"run" if hasattr(merged, "run") else "keep": settings.run}
        yield command, replace(merged, shards=tuple(shards), **place)


def _take_hidden_address(words: list[str], shard: Path) -> list[str]:
    """Leave out an address whose credentials a shard does not contain: the environment has it."""
    at = words.index("--base-url") if "--base-url" in words else len(words)
    if HIDDEN not in "".join(words[at + 1 : at + 2]):
        return words
    if not os.environ.get("OPENAI_BASE_URL"):
        raise RunError(
            f"{shard} was made with credentials in its --base-url, which no run contains: set "
            f"OPENAI_BASE_URL to that address and merge again"
        )
    return words[:at] + words[at + 2 :]
