"""Text from records, questions and services made safe to print.

Such text can contain terminal escapes, which move the cursor or hide what follows, bidirectional
controls, which turn neighbouring text round, and the workflow commands of build servers, which are
lines that begin with `::` or contain `##[` or `##name[`. `printable` shows all of them as visible
escapes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

__all__ = ["join_names", "pluralise", "printable", "printable_json"]

_CONTROLS = "\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069"
_HIDDEN = re.compile(f"[{_CONTROLS}\ud800-\udfff]")
_LINE_BREAKS = re.compile(r"[\n\t]")
_COMMAND = re.compile(r"(?m)^([^\S\n]*):(?=:)")
_BRACKET_COMMAND = re.compile(r"##(?=\w*\[)")
"""`##[…]` of GitHub, `##vso[…]` of Azure, `##teamcity[…]`; anywhere in a line."""


def pluralise(number: int | None, noun: str) -> str:
    """Count something whose plural ends in s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def join_names(names: Sequence[str]) -> str:
    """Join names as a sentence lists them; empty without names."""
    if not names:
        return ""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def printable(text: str, *, lines: bool = False) -> str:
    """Show control characters as escapes; with `lines`, line breaks and tabs are unchanged."""
    text = _HIDDEN.sub(_escape, text)
    if not lines:
        text = _LINE_BREAKS.sub(_escape, text)
    return _BRACKET_COMMAND.sub(r"#\\x23", _COMMAND.sub(r"\1\\x3a", text))


def printable_json(value: Any) -> str:
    """Write JSON that a terminal shows as it is; the escapes are JSON's own."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    text = _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return _BRACKET_COMMAND.sub(r"#\\u0023", text)


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape", "backslashreplace").decode("ascii")
