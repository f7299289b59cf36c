"""The data files of the reproduction: what they can express, and what is refused in them."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

import routeprism.reproduction
from routeprism import api
from routeprism.api.settings import settings_for
from routeprism.reproduction import (
    SOURCES,
    TABLES,
    PublishedNumber,
    PublishedTable,
    Vocabulary,
    check_table,
)
from routeprism.settings import read_command

PACKAGE = Path(routeprism.reproduction.__file__).parent
SECTIONS = {
    "words": {"k": ["8", "16"], "schedule": {"Replay": "replay", "Odd-even": "odd-even"}},
    "texts": {"no-answers": "not public", "both": "{no-answers}; not labelled"},
    "shared": {
        "base": {"kind": "data", "arm": ""},
        "rows": {"Recent-{k}": {"policy": "recent-{k}"}},
    },
}


def expand(value: Any) -> Any:
    return Vocabulary().extend(SECTIONS).expand(value)


def test_words_in_a_key_repeat_the_entry_with_their_values() -> None:
    assert expand({"use": "rows"}) == {
        "Recent-8": {"policy": "recent-8"},
        "Recent-16": {"policy": "recent-16"},
    }
    assert expand({"{schedule}": {"* / {k}": {"arm": "{schedule}:{k}"}}}) == {
        "Replay": {"* / 8": {"arm": "replay:8"}, "* / 16": {"arm": "replay:16"}},
        "Odd-even": {"* / 8": {"arm": "odd-even:8"}, "* / 16": {"arm": "odd-even:16"}},
    }
    assert list(expand({"{k} | {schedule}": 1})) == [
        "8 | Replay",
        "8 | Odd-even",
        "16 | Replay",
        "16 | Odd-even",
    ]


def test_shared_objects_are_inserted_where_they_are_used() -> None:
    """What comes later wins."""
    assert expand({"arm": "fresh", "use": "base"}) == {"kind": "data", "arm": ""}
    assert expand({"use": ["base"], "arm": "fresh", "comment": "why"}) == {
        "kind": "data",
        "arm": "fresh",
    }


def test_texts_can_contain_texts_and_lists_are_tuples() -> None:
    assert expand({"reason": "{both}", "draws": 3, "fillers": ["A", "B"]}) == {
        "reason": "not public; not labelled",
        "draws": 3,
        "fillers": ("A", "B"),
    }


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"reason": "{nothing}"}, "unknown name {nothing}"),
        ({"{nothing}": {}}, "unknown name {nothing}"),
        ({"use": "nothing"}, "nothing shared is named 'nothing'"),
        ({"reason": "{k}"}, "unknown name {k}"),
    ],
)
def test_names_that_are_not_defined_are_refused(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        expand(value)


def test_a_name_is_defined_once() -> None:
    with pytest.raises(ValueError, match="texts defined twice: \\['both'\\]"):
        Vocabulary().extend(SECTIONS).extend({"texts": {"both": "again"}})


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"all": {"kind": "datum"}}, "Expected kind among"),
        ({"all": {"kind": "data", "quantty": "J"}}, "got ['quantty']"),
        ({"all": {"kind": "data"}, "rows": {"a": {"source": "nowhere"}}}, "Expected source among"),
        ({"all": {"kind": "data"}, "columns": {"a": {"number": "mean"}}}, "Expected number among"),
        (
            {"all": {"kind": "data"}, "cells": {"a": {"b": {"questions": "outside-x"}}}},
            "Expected questions among",
        ),
        ({"all": {"kind": "data"}, "row": {}}, "unknown keys ['row']"),
    ],
)
def test_a_layout_with_an_unknown_key_or_value_is_refused(
    entry: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        PublishedTable.from_data("tab:x", {"title": "a table", **entry})


def test_parts_apply_from_the_table_to_the_cell() -> None:
    table = PublishedTable.from_data(
        "tab:x",
        {
            "title": "a table",
            "all": {"kind": "data", "arm": "table", "mask": "table"},
            "panels": {"2": {"arm": "panel", "stratum": "panel"}},
            "rows": {"a*": {"arm": "row", "filler": "row"}},
            "columns": {"* / J": {"arm": "column", "batch": "column"}},
            "cells": {"ab": {"x / *": {"arm": "cell"}}},
        },
    )
    assert table.part(PublishedNumber("tab:x", "2", "ab", "x / J", "1")) == {
        "kind": "data",
        "arm": "cell",
        "mask": "table",
        "stratum": "panel",
        "filler": "row",
        "batch": "column",
    }
    assert table.part(PublishedNumber("tab:x", "1", "b", "x / J", "1"))["arm"] == "column"


def test_source_runs_call_functions_of_the_package_with_their_arguments() -> None:
    for source in SOURCES.values():
        if source.matrix:
            continue
        assert source.call in api.__all__, source.name
        parameters = inspect.signature(getattr(api, source.call)).parameters
        assert {*source.options, "masks", "run"} <= parameters.keys(), source.name


def test_the_command_of_a_number_is_that_of_its_run() -> None:
    """Also its mask: whoever has the questions of the paper gets the number of the paper."""
    commands = {}
    for table in TABLES.values():
        for cell in check_table(table, {}):
            part = table.part(cell.printed)
            source = SOURCES.get(part.get("source", ""))
            if cell.status == "machinery" and source and not (source.matrix or source.contents):
                questions = part.get("questions", "").removeprefix("outside-")
                commands[source.name, questions] = cell.command
    assert len(commands) > 40
    for (name, questions), command in commands.items():
        source = SOURCES[name]
        program, word, *words = shlex.split(command)
        settings = read_command(settings_for(word), words)
        assert program == "routeprism"
        assert source.call in (word, f"explore_{word}")
        for option, value in {**source.options, **source.instead}.items():
            setting = getattr(settings, option)
            assert (list(map(str, setting)) if isinstance(setting, tuple) else setting) == (
                list(value) if isinstance(value, tuple) else value
            ), (name, option)
        assert (f"{questions}=FILE" in settings.masks) == bool(questions), name
        assert settings.benchmark == source.benchmark


def strings(value: Any) -> list[str]:
    """List all texts of a JSON value, its keys included."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    if isinstance(value, list):
        return [text for item in value for text in strings(item)]
    return [value] if isinstance(value, str) else []


def test_everything_that_the_data_files_define_is_used() -> None:
    contents = {
        file: json.loads(file.read_text(encoding="utf-8"))
        for file in (
            *PACKAGE.glob("tables/*.json"),
            PACKAGE / "sources.json",
            PACKAGE / "locomo.json",
        )
    }
    texts = {file: strings(content) for file, content in contents.items()}
    for file, content in contents.items():
        readers = contents if file.name == "shared.json" else (file,)
        readable = [text for reader in readers for text in texts[reader]]
        references = {name for text in readable for name in re.findall(r"\{([^{}]+)\}", text)}
        names = {*content.get("words", {}), *content.get("texts", {})}
        assert names <= references, file.name
        # Its definition is one occurrence of a name, so a shared object occurs at least twice.
        unused = [name for name in content.get("shared", {}) if readable.count(name) < 2]
        assert unused == [], file.name


def test_experiments_are_named_in_data_only() -> None:
    """The column `experiment` of every row that is looked up or made comes from a data file."""
    names = {
        text
        for file in (*PACKAGE.glob("tables/*.json"), PACKAGE / "sources.json")
        for text in re.findall(r'"experiment": "([^"]+)"', file.read_text(encoding="utf-8"))
    }
    assert {"routes", "restoration", "screen", "orders"} < names
    for module in PACKAGE.glob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        assert not constants & names, module.name
