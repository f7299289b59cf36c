"""What `screen` does and prints: whether pools may be reordered at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from routeprism.cli import _passes as passes_
from routeprism.errors import SpecError, nearest
from routeprism.support import (
    RULES,
    SCREEN,
    SCREEN_GOLD,
    Mask,
    Rule,
    Study,
    admissible,
    cards_for,
    gate,
)

__all__ = ["run_screen"]


def run_screen(
    benchmark: str,
    *,
    passes: Sequence[str] = (),
    export: Path | None = None,
    gold_visible: bool = False,
    kinds: Sequence[str] = (),
    gate_rule: str | None = None,
    mask_file: Path | None = None,
    masks: Sequence[str] = (),
    primary: str | None = None,
    base_url: str | None = None,
    rate_limit: float | None = None,
    concurrency: int | None = None,
    dry_run: bool = False,
    yes: bool = False,
    data: Path | None = None,
    run: Path | None = None,
    seed: int,
    resamples: int,
    interval: str | None = None,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Write cards to be screened, or make screenings, compare them and gate questions by them.

    `gate_rule` is `intersection`, `majority`, `unanimity` or a pass's name; `mask_file` gets the
    questions that it lets through.
    """
    if mask_file is not None and not gate_rule:
        raise SpecError("which questions should be in the mask? Say --gate RULE, or a pass")
    loaded = passes_.load(benchmark, data, kinds)
    rubric = SCREEN_GOLD if gold_visible else SCREEN
    cards = cards_for(loaded, rubric)
    if export is not None:
        passes_.export_cards(cards, rubric, export, as_json=as_json)
        return
    made = passes_.parse_passes(passes, base_url)
    _check_gate(gate_rule, list(made))
    study = passes_.make_study(
        loaded,
        benchmark,
        cards,
        rubric,
        made,
        run=run,
        dry_run=dry_run,
        yes=yes,
        as_json=as_json,
        quiet=quiet,
        seed=seed,
        resamples=resamples,
        interval=interval,
        primary=primary,
        masks=passes_.read_masks(masks, loaded),
        rate_limit=rate_limit,
        concurrency=concurrency,
    )
    if study is None:
        return
    mask = _gate(gate_rule, study)
    more: dict[str, Any] = {}
    if mask is not None:
        more["gate"] = {
            "name": mask.name,
            "description": mask.description,
            "questions": sorted(mask.question_ids),
        }
        if mask_file is not None:
            passes_.write_lines(sorted(mask.question_ids), mask_file)
    passes_.show(study, more, as_json=as_json)
    if mask is not None and not as_json:
        where = f" They are listed in {mask_file}." if mask_file else ""
        print(f"Gate {mask.name}: {len(mask)} of {len(cards)} questions pass.{where}")


def _check_gate(rule: str | None, names: Sequence[str]) -> None:
    """Refuse before anything is asked what would fail afterwards."""
    if rule is None or rule in names:
        return
    if rule not in RULES:
        raise SpecError(f"There is no gate '{rule}'. {nearest(rule, (*RULES, *names))}")
    if len(names) < 2 or (rule == "intersection" and len(names) != 2):
        wanted = "2" if rule == "intersection" else "2 or more"
        raise SpecError(f"Expected {wanted} passes for --gate {rule} but got {len(names)}")


def _gate(rule: str | None, study: Study) -> Mask | None:
    if rule is None:
        return None
    for one in study.passes:
        if one.name == rule:
            return admissible(one)
    return gate(cast(Rule, rule), study.passes)
