"""Write the reference pages, which are made from the program itself: `make docs-reference`."""

from __future__ import annotations

import inspect
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import routeprism
from routeprism.api.settings import settings_for
from routeprism.cli import COMMANDS, describe_option, group_options, label_option, usage
from routeprism.labels import ELIGIBILITY, LABELS, REASONS
from routeprism.measures import (
    ANSWER_COORDINATES,
    BUILD_COORDINATES,
    COORDINATES,
    DISPLACEMENTS,
    OUTDATED_ANSWERS,
    RETENTION,
    UPDATES,
)
from routeprism.quantities import Quantity
from routeprism.settings import Option, options_of

PAGES = Path(__file__).parents[1] / "docs" / "reference"

_SECTIONS: Mapping[str, Sequence[Quantity[Any]]] = {
    "Of every pair of routes": COORDINATES,
    "With support labels": RETENTION,
    "With several builds of a route (`--builds`)": BUILD_COORDINATES,
    "With a model": ANSWER_COORDINATES,
    "Facts that change: with outdated evidence": UPDATES,
    "Facts that change: with outdated answers and a model": OUTDATED_ANSWERS,
    "Facts that change: from a memory's events": DISPLACEMENTS,
}

_REUSE = ("reuse", "experiments.md#how-does-one-memory-serve-further-questions-reuse")
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
    (
        "`dispatch.Q`",
        "Q of the pairs whose forward prompt was submitted first (arm `forward-first`), minus Q of "
        "the others (arm `route-first`), within users that have both",
        "which route is asked first",
        "models.md#which-route-is-asked-first",
    ),
    ("`loo_min.Q`, `loo_max.Q`", "range of Q, one unit left out", "statistics", "statistics.md"),
    ("`p.Q`", "p-value of Q against zero (sign flips over units)", "severity", "severity.md"),
    ("`p_holm.Q`", "the same, adjusted for all claims of the run", "severity", "severity.md"),
    (
        "`by_question.Q`",
        "Q with every question counting equally, where units usually do; limits resample units",
        "statistics",
        "statistics.md",
    ),
    (
        "`changed-preserved.Q`",
        "Q where exposed support changed, minus Q where it did not, within users",
        "where support changed",
        "restoration.md#where-support-changed",
    ),
    (
        "`loo_min.changed-preserved.Q`, `loo_max.changed-preserved.Q`",
        "range of that difference, one unit left out",
        "where support changed",
        "restoration.md#where-support-changed",
    ),
    (
        "`changed-absent.Q`",
        "mean of Q where support changed, minus mean of Q where neither route shows any",
        *_REUSE,
    ),
    (
        "`changed-absent.within.Q`",
        "the same difference within the users that have both kinds of questions",
        *_REUSE,
    ),
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
    ("`order_change`", "share of orders that retain a different set from forward", *_ORDERS),
    (
        "`orders_covered`",
        "share of a pool's orders that were built, for memories whose orders share their "
        "beginnings",
        *_ORDERS,
    ),
    (
        "`order_failed`",
        "share of orders in which the memory raises an error, where there are any",
        *_ORDERS,
    ),
    (
        "`stale_only.uniform`, `stale_only.arrival`, `stale_only.reverse`",
        "share of orders in which a question is shown outdated evidence without current evidence, "
        "and whether it is in reverse order",
        *_ORDERS,
    ),
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
    (
        "`count.updates`, `count.updates_out_of_order`",
        "records that replace another one, and those of them that arrive before it; a record that "
        "arrives again counts with its last arrival",
        "facts that change",
        "updates.md",
    ),
    (
        "`count.stale_only_prevented`",
        "questions that are shown outdated evidence alone on this route, and current evidence if "
        "the records are added in event-time order",
        "facts that change",
        "updates.md",
    ),
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
        "`count.arrivals`, `count.writes`, `count.rebuilds`, `count.delay`, `count.model_calls`",
        "of a repaired memory: records that arrived, writes to the memory with those of "
        "rebuilding, how often it was rebuilt, the longest wait of a record in later arrivals, "
        "and model calls while it was built; calls of earlier builds are computed from their "
        "writes; there is no row if the calls are not known",
        "repairs",
        "findings.md#measure-repairs-before-you-choose",
    ),
    (
        "`count.observed_items`, `count.uncertain_overlap`, `count.uncertain_late`, "
        "`count.uncertain_unknown`",
        "stored items whose sources were observed, and those whose sources are uncertain because "
        "writes overlapped, ingestion lagged, or the item was there before; only where there are "
        "any",
        "observed sources",
        "own-memory.md#observe-the-sources",
    ),
    (
        "`count.stored_items`, `count.verbatim_items`",
        "items that a memory system stored, and those that repeat text of a record they came from",
        "real memory systems",
        "adapters/index.md",
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
    (
        "`count.no_answer.forward`, `count.no_answer.route`",
        "draws that were refused or unparsable, where there are any",
        *_MODELS,
    ),
    (
        "`count.forward_first`, `count.route_first`",
        "pairs, each filler counting, whose forward prompt was submitted first, and whose other "
        "prompt was",
        "which route is asked first",
        "models.md#which-route-is-asked-first",
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
        "`count.users.visible_change`, `count.users.support_change`, `count.users.support_loss`, "
        "`count.users.answer_change`, `count.users.same_right_answer`, "
        "`count.users.same_right_disjoint_support`",
        "units with at least one such pair",
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
        (f"`count.eligible.{rule}`", f"pairs eligible under `{rule}`: {meaning}", *_RESTORED)
        for rule, meaning in ELIGIBILITY.items()
    ),
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
    lines = [
        "# Commands",
        "",
        "This page is for people at a terminal or writing a script: it lists every command with "
        "all of its options.",
        "`make docs-reference` generates it from the program, and `routeprism COMMAND --help` "
        "prints the same. The last column is the keyword argument of the "
        "[Python function](python.md).",
        "Exit codes: 0 success, 1 a gate or check failed, 2 the call or the input is wrong, "
        "3 answers or routes are missing, 129 SIGHUP, 130 Ctrl-C, 143 SIGTERM "
        "([reliability](../reliability.md)).",
    ]
    for name, command in COMMANDS.items():
        options = [item for item in options_of(settings_for(name)) if item.terminal]
        about = " ".join(filter(None, (command.summary, command.details)))
        lines += ["", f"## `{name}`", "", about, ""]
        lines += ["```text", usage(name, options), "```"]
        for group, items in group_options(options).items():
            lines += ["", f"### {group}", "", "| argument or option | meaning | Python |"]
            lines += ["| --- | --- | --- |"]
            lines += [_option(item) for item in items]
    return "\n".join(lines) + "\n"


def _option(item: Option) -> str:
    python = _code(item.name) if item.python else ""
    return f"| {_code(_cell(label_option(item)))} | {_cell(describe_option(item))} | {python} |"


def coordinates() -> str:
    """Give the coordinate reference."""
    lines = [
        "# Coordinates",
        "",
        "This page is for readers of `estimates.csv` and authors of gates: it defines every",
        "`quantity`. `make docs-reference` generates it from the program. References are to the",
        "paper, and an empty cell means that the value has no special meaning. *Better* names the",
        "direction that is better by itself: a change of order can gain evidence because source",
        "order shows too little, so some quantities have none. `--until` accepts every quantity",
        "with a range. A [quantity of your own](../experiments.md#a-quantity-of-your-own) can have",
        "all of these.",
    ]
    for title, every in _SECTIONS.items():
        headings = ("name", "plain name", "symbol", "meaning", "0", "1", "range", "better")
        lines += ["", f"## {title}", "", f"| {' | '.join(headings)} | defined in |"]
        lines += ["| --- " * (len(headings) + 1) + "|"]
        for quantity in every:
            cells = (
                *(quantity.plain, quantity.symbol, quantity.meaning, quantity.zero),
                *(quantity.meaning_of_one, _write_range(quantity)),
                *(quantity.better, quantity.reference),
            )
            lines.append(f"| {_code(quantity.name)} | {' | '.join(map(_cell, cells))} |")
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


def _write_range(quantity: Quantity[Any]) -> str:
    return "" if quantity.range is None else "{:g} to {:g}".format(*quantity.range)


def _derived(name: str, meaning: str, page: str, at: str) -> str:
    return f"| {name} | {_cell(meaning)} | [{page}](../{at}) |"


def json_output() -> str:
    """Give the reference of --json, from the schema that tests hold every command to."""
    schema = json.loads((files("routeprism.cli") / "output.schema.json").read_text("utf-8"))
    lines = [
        "# JSON output",
        "",
        "This page is for scripts that read what a command prints with `--json`: one object, and "
        "nothing else on standard output.",
        "Made by `make docs-reference` from the JSON Schema in the package, "
        "`routeprism/cli/output.schema.json`.",
        "Tests validate the output of every command against it.",
        "",
        "| command | prints |",
        "| --- | --- |",
    ]
    for command, kinds in schema["commands"].items():
        links = " or ".join(f"[{kind}](#{kind})" for kind in kinds)
        lines.append(f"| `{command}` | {links} |")
    for name, definition in schema["$defs"].items():
        lines += ["", f"## {name}", "", definition["description"]]
        fields = definition.get("properties", {})
        if fields:
            lines += ["", "| field | type | meaning |", "| --- | --- | --- |"]
        for field, kind in fields.items():
            optional = "" if field in definition["required"] else ", optional"
            meaning = _cell(kind.get("description", ""))
            lines.append(f"| `{field}` | {_kind(kind)}{optional} | {meaning} |")
    return "\n".join(lines) + "\n"


def _kind(kind: Mapping[str, Any]) -> str:
    """Write the type of a field."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "enum" in kind:
        return " or ".join(map(_code, kind["enum"]))
    named = kind.get("type", "any")
    if named == "array" and "items" in kind:
        return f"array of {_kind(kind['items'])}"
    if named == "object" and isinstance(kind.get("additionalProperties"), dict):
        return f"object of {_kind(kind['additionalProperties'])}"
    return " or ".join(named) if isinstance(named, list) else str(named)


def python() -> str:
    """Give the reference of the Python API."""
    lines = [
        "# Python API",
        "",
        "This page is for people who call RoutePrism from a script, a notebook or a test. It lists",
        "every public function and class of `routeprism` with its parameters and types, generated",
        "from the code by `make docs-reference`. The parameters of a function are the options of",
        "the [command](commands.md) of that name.",
    ]
    public = {name: getattr(routeprism, name) for name in routeprism.__all__}
    errors = {
        n for n, item in public.items() if inspect.isclass(item) and issubclass(item, Exception)
    }
    functions = sorted(name for name, item in public.items() if not inspect.isclass(item))
    lines += ["", "## Functions"]
    for name in functions:
        lines += ["", f"### `{name}`", "", *_describe_function(name, public[name])]
    lines += ["", "## Classes"]
    for name in sorted(set(public) - errors - set(functions)):
        lines += ["", f"### `{name}`", "", *_describe_class(public[name])]
    lines += ["", "## Errors", "", "| error | meaning |", "| --- | --- |"]
    lines += [f"| {_code(name)} | {_cell(_summary(public[name]))} |" for name in sorted(errors)]
    return "\n".join(lines) + "\n"


def _summary(item: object) -> str:
    text = (inspect.getdoc(item) or "").partition("\n\nArgs:")[0]
    return " ".join(text.split())


def _describe_function(name: str, function: Callable[..., Any]) -> list[str]:
    signature = inspect.signature(function)
    texts, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            texts.append("    *,")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        texts.append(f"    {_describe_parameter(parameter)},")
    result = str(signature.return_annotation).strip("'")
    call = ["```text", f"routeprism.{name}(", *texts, f") -> {result}", "```"]
    return [_summary(function), "", *call, *_describe_arguments(inspect.getdoc(function) or "")]


def _describe_parameter(parameter: inspect.Parameter) -> str:
    star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
    default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
    return f"{star}{parameter.name}: {parameter.annotation}{default}"


def _describe_arguments(doc: str) -> list[str]:
    """Make a table of the part of a docstring that describes arguments."""
    listed = re.findall(r"^ {4}(\w+): (.+(?:\n {6,}.+)*)", doc.partition("Args:")[2], re.MULTILINE)
    if not listed:
        return []
    rows = [f"| {_code(name)} | {_cell(' '.join(text.split()))} |" for name, text in listed]
    return ["", "| parameter | meaning |", "| --- | --- |", *rows]


def _describe_class(kind: type) -> list[str]:
    """List the fields, properties and methods of a class with their types."""
    hints = {name: str(hint) for name, hint in inspect.get_annotations(kind).items()}
    rows = [
        f"| {_code(name)} | {_code(_cell(hint))} | |"
        for name, hint in hints.items()
        if name[0] != "_"
    ]
    for name, item in vars(kind).items():
        if name[0] == "_" or name in hints:
            continue
        getter = item.fget if isinstance(item, property) else inspect.unwrap(getattr(kind, name))
        if not inspect.isfunction(getter):
            continue
        result = str(inspect.signature(getter).return_annotation).strip("'")
        shown = name if isinstance(item, property) else f"{name}()"
        rows.append(f"| {_code(shown)} | {_code(_cell(result))} | {_cell(_summary(getter))} |")
    table = ["", "| member | type | meaning |", "| --- | --- | --- |", *rows] if rows else []
    return [_summary(kind), *table]


def pages() -> dict[Path, str]:
    """Give every generated page with its text."""
    os.environ["COLUMNS"] = "100"  # nothing here may depend on the terminal
    texts = {
        "commands": commands(),
        "coordinates": coordinates(),
        "python": python(),
        "json": json_output(),
    }
    return {PAGES / f"{name}.md": text for name, text in texts.items()}


if __name__ == "__main__":
    PAGES.mkdir(exist_ok=True)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
