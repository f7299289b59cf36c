"""Write the reference pages, which are made from the program itself: `make docs-reference`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from routeprism.cli._app import app
from routeprism.measures import (
    ANSWER_COORDINATES,
    BUILD_COORDINATES,
    COORDINATES,
    RETENTION,
    Coordinate,
)
from routeprism.support._eligibility import REASONS
from routeprism.support._rubrics import LABELS

PAGES = Path(__file__).parents[1] / "docs" / "reference"

_SECTIONS: Mapping[str, Sequence[Coordinate[Any]]] = {
    "Of every pair of routes": COORDINATES,
    "With support labels": RETENTION,
    "With several builds of a route (`--builds`)": BUILD_COORDINATES,
    "With a model": ANSWER_COORDINATES,
}

_REUSE = ("reuse", "experiments.md#what-does-one-state-do-to-other-questions-reuse")
_RESTORED = ("restoration", "restoration.md#restoration-four-conditions")
_ORDERS = ("orders", "orders.md#estimates")
_READ = ("restoration", "restoration.md")
_MODELS = ("models", "models.md")
_DISPLAY = ("experiments", "experiments.md")
_LAYERS = ("the table", "diagnosis.md")

_DERIVED = (
    ("`Q_count`", "pairs with value 1, for names in `_changed`", "the table", "diagnosis.md"),
    ("`Gamma.Q`", "Q minus a comparator's, or another arm's", "experiments", "experiments.md"),
    (
        "`delta_op.Q`, `interaction.Q`",
        "what operations in arrival order add to Q",
        "which operation",
        "diagnosis.md#which-operation",
    ),
    ("`dispatch.Q`", "Q by which route was asked first", "models", "models.md"),
    ("`loo_min.Q`, `loo_max.Q`", "range of Q, one unit left out", "statistics", "statistics.md"),
    (
        "`changed-preserved.Q`",
        "Q where exposed support changed, minus Q where it did not, within users",
        "where support changed",
        "restoration.md#where-support-changed",
    ),
    ("`changed-absent.Q`", "Q where support changed, minus Q where none is shown", *_REUSE),
    (
        "`accuracy.present`, `accuracy.absent`, `accuracy.restored`, `accuracy.replacement`",
        "share of right answers in each of the four conditions",
        *_RESTORED,
    ),
    (
        "`accuracy.restored:N`",
        "share of right answers with the first N records of a bundle put back",
        *_RESTORED,
    ),
    (
        "`restored-absent`, `restored-replacement`, `restored-present`, `present-absent`, "
        "`replacement-absent`",
        "differences of these accuracies, question by question",
        *_RESTORED,
    ),
    (
        "`fraction.retained.forward`, `fraction.retained.route`",
        "share of the records that have arrived that is still held, at a moment of a growing "
        "history; the other route is the reverse of what has arrived",
        "as the history grows",
        "diagnosis.md#as-the-history-grows",
    ),
    ("`order_change`", "share of orders that retain another set than forward", *_ORDERS),
    (
        "`support_kept.forward`, `support_kept.reverse`",
        "whether at least one support record is retained in source order, and in its reverse",
        *_ORDERS,
    ),
    (
        "`support_kept.uniform`, `support_kept.arrival`",
        "share of orders that retain at least one support record: of all permutations, or of the "
        "orders of another arrival model",
        *_ORDERS,
    ),
    ("`mean_clusters`", "clusters that `focal` forms, all permutations counting equally", *_ORDERS),
    ("`agreement`, `kappa`", "of readings and labels: share of equal items, Cohen's κ", *_READ),
    (
        "`miss.sources`, `miss.answer`, `miss.correctness`",
        "prompts that differ and that a simpler readout calls unchanged",
        *_MODELS,
    ),
    (
        "`extra.sources`, `extra.answer`, `extra.correctness`",
        "prompts that are equal and that a simpler readout calls changed",
        *_MODELS,
    ),
)
"""Name, meaning, page; Q stands for any quantity above."""


_COUNTS = (
    ("`count.duplicate_options`", "questions two of whose options read the same", *_MODELS),
    (
        "`count.failed_pairs`",
        "pairs without an estimate because a memory system failed on one of their routes",
        "real memory systems",
        "adapters/index.md",
    ),
    (
        "`count.representative_ties`, `count.assignment_ties`",
        "ties that processing order decided (`--ties`), each question counting its pool's",
        *_LAYERS,
    ),
    (
        "`count.states_compared`, `count.canonical_states_changed`",
        "pools whose states were compared with their parts sorted, and those that differ",
        *_LAYERS,
    ),
    (
        "`count.notes_matched`, `count.notes_differ_FIELD`",
        "notes that both routes keep of the same records, and those that differ in a field",
        "policies",
        "policies.md",
    ),
    (
        "`count.consultations`, `count.unusable_replies`",
        "what a policy asked a model while it was built, and replies that could not be used",
        "policies",
        "policies.md#asking-a-model-while-building",
    ),
    (
        "`count.transition.CC`, `count.transition.CI`, `count.transition.IC`, "
        "`count.transition.II`",
        "pairs whose formal answers are correct (C) or incorrect (I), forward and then on the "
        "route",
        *_MODELS,
    ),
    (
        "`count.identical_prompts`, `count.prompt_pairs`",
        "pairs whose two prompts are the same text, and pairs with prompts",
        *_MODELS,
    ),
    ("`count.unmatched`", "pairs whose prompts could not be made equal in length", *_MODELS),
    (
        "`count.pairs`, `count.changed_prompts`",
        "pairs that readouts are compared on, and those whose prompts differ",
        *_MODELS,
    ),
    (
        "`count.visible_change`, `count.support_change`, `count.support_loss`, "
        "`count.answer_change`",
        "pairs whose sources differ; of these, whose support does; of these, that lose it on one "
        "route; of these, whose formal answers differ",
        "where support changed",
        "restoration.md#where-support-changed",
    ),
    (
        "`count.same_right_answer`, `count.same_right_disjoint_support`",
        "pairs that are right on both routes, and those of them with no support in common",
        "where support changed",
        "restoration.md#where-support-changed",
    ),
    (
        "`count.refused`, `count.partly_reversed`, `count.rearranged.forward`, "
        "`count.rearranged.route`",
        "pairs without an order to change, with some kind that has one block, and contexts that "
        "the layout shows otherwise",
        *_DISPLAY,
    ),
    ("`count.several_targets`", "users with two or more other questions", *_REUSE),
    ("`count.eligible`", "pairs in which a record can be put back", *_RESTORED),
    *(
        (f"`count.{name}`", f"pairs that are not eligible: {why}", *_RESTORED)
        for name, why in REASONS.items()
    ),
    (
        "`count.right.CONDITION`, `count.same_as_present.CONDITION`, "
        "`count.changed_from_absent.CONDITION`",
        "answers of a condition that are right, equal to those with the record present, and "
        "other than those with it absent, draw by draw",
        *_RESTORED,
    ),
    (
        "`count.agreed`, `count.compared`, `count.LABEL~LABEL`",
        "items on which passes agree, items compared, and items by both passes' labels",
        *_READ,
    ),
    *(
        (", ".join(f"`count.{label}`" for label in labels), f"{kind}: what a pass said", *_READ)
        for kind, labels in LABELS.items()
    ),
    ("`count.unread`", "what a pass said that could not be read", *_READ),
    (
        "`count.unverified_passages`",
        "passages that a pass quoted and that are not in the context",
        *_READ,
    ),
)
"""Name, meaning, page."""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(text: str) -> str:
    return f"`{text}`"


def commands() -> str:
    """Give the command reference."""
    group: Any = typer.main.get_command(app)
    lines = [
        "# Commands",
        "",
        "Made from the program by `make docs-reference`; `routeprism COMMAND --help` says it, too.",
        "Exit codes: 0 fine, 1 a gate or finding failed, 2 the call or the input was wrong.",
    ]
    with typer.Context(group, info_name="routeprism") as above:
        lines += ["", "## `routeprism`", "", _cell(group.help), "", *_options(group, above)]
        for name, command in group.commands.items():
            with typer.Context(command, info_name=name, parent=above) as context:
                usage = " ".join(command.collect_usage_pieces(context))
                lines += ["", f"## `{name}`", "", _cell(command.help), ""]
                lines += ["```text", f"routeprism {name} {usage}", "```", ""]
                lines += _options(command, context)
    return "\n".join(lines) + "\n"


def _options(command: Any, context: typer.Context) -> Iterable[str]:
    yield "| argument or option | meaning |"
    yield "| --- | --- |"
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record:
            yield f"| {_code(_cell(record[0]))} | {_cell(record[1])} |"


def coordinates() -> str:
    """Give the coordinate reference."""
    lines = [
        "# Coordinates",
        "",
        "What is observed of a question, by its name in `estimates.csv`. Made from the program by",
        "`make docs-reference`; references are to the paper. An empty cell has no such reading.",
    ]
    for title, every in _SECTIONS.items():
        lines += ["", f"## {title}", "", "| name | symbol | meaning | 0 | 1 | defined in |"]
        lines += ["| --- | --- | --- | --- | --- | --- |"]
        for one in every:
            cells = (one.symbol, one.meaning, one.zero, one.one, one.reference)
            lines.append(f"| {_code(one.name)} | {' | '.join(map(_cell, cells))} |")
    lines += ["", "## Derived from these", "", "Q stands for any quantity above.", ""]
    lines += ["| name | meaning | page |", "| --- | --- | --- |"]
    lines += [_derived(*one) for one in _DERIVED]
    lines += [
        "",
        "## Counts",
        "",
        "How many pairs, questions, answers or items; they have no limits.",
        "",
    ]
    lines += ["| name | meaning | page |", "| --- | --- | --- |"]
    lines += [_derived(*one) for one in _COUNTS]
    return "\n".join(lines) + "\n"


def _derived(name: str, meaning: str, page: str, at: str) -> str:
    return f"| {name} | {_cell(meaning)} | [{page}](../{at}) |"


def pages() -> dict[Path, str]:
    """Give every generated page with its text."""
    os.environ["COLUMNS"] = "100"  # nothing here may depend on the terminal
    return {PAGES / "commands.md": commands(), PAGES / "coordinates.md": coordinates()}


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
