"""HTML that cannot be broken into: every text is escaped where it is put in."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable

__all__ = ["Markup", "data_block", "fragment", "tag"]

_VOID = frozenset({"col", "hr", "input", "link", "meta"})


class Markup(str):
    """Markup that was made by `tag`; any other string is text, and is escaped."""

    __slots__ = ()


def tag(name: str, *children: str | None, **attributes: str | bool | None) -> Markup:
    """Make an element. `class_` loses its underscore, others turn into hyphens; None is left out.

    True gives an attribute without a value, False none.
    """
    written = [name]
    for key, value in attributes.items():
        shown = key.rstrip("_").replace("_", "-")
        if value is True:
            written.append(shown)
        elif value is not None and value is not False:
            written.append(f'{shown}="{html.escape(str(value))}"')
    opening = f"<{' '.join(written)}>"
    if name in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{fragment(children)}</{name}>")


def fragment(children: Iterable[str | None]) -> Markup:
    """Put markup and texts one after the other."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(child, quote=False)
            for child in children
            if child is not None
        )
    )


def data_block(identity: str, value: object) -> Markup:
    """Make a block of JSON for scripts to read; nothing in it can end the block."""
    written = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        written = written.replace(character, f"\\u{ord(character):04x}")
    opening = f'<script type="application/json" id="{html.escape(identity)}">'
    return Markup(f"{opening}{written}</script>")
