"""HTML that cannot be broken into: every text is escaped where it is put in; and Vega's script."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

from routeprism.errors import MissingExtraError, RunError

_VOID = frozenset({"col", "hr", "input", "link", "meta"})


class Markup(str):
    """Markup that was made by `tag`; any other string is text, and is escaped."""

    __slots__ = ()


def tag(name: str, *children: str | None, **attributes: str | bool | None) -> Markup:
    """Make an element. `class_` loses its underscore, others turn into hyphens; None is left out.

    True gives an attribute without a value, False none.
    """
    pieces = [name]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if value is True:
            pieces.append(attribute)
        elif value is not None and value is not False:
            pieces.append(f'{attribute}="{html.escape(reveal_controls(str(value)))}"')
    opening = f"<{' '.join(pieces)}>"
    if name in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{fragment(children)}</{name}>")


def fragment(children: Iterable[str | None]) -> Markup:
    """Put markup and texts one after the other."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else html.escape(reveal_controls(child), quote=False)
            for child in children
            if child is not None
        )
    )


def fold_rest(items: Sequence[Markup], most: int, more: str) -> Markup:
    """Make a list that shows its first items, and the rest after a click on how many `more`."""
    rest = items[most:]
    details = tag("details", tag("summary", f"{len(rest)} {more}"), tag("ul", *rest))
    return fragment([tag("ul", *items[:most]), details if rest else None])


_CONTROLS = {code: f"⟨U+{code:04X}⟩" for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A))}


def reveal_controls(text: str) -> str:
    """Show characters that change the direction of a text as their names.

    Left in place, one of them in a record would turn the words around it. Marks that languages
    written from right to left need (U+200E, U+200F, U+061C) stay.
    """
    return text.translate(_CONTROLS)


def data_block(identity: str, value: object) -> Markup:
    """Make a block of JSON for scripts to read; nothing in it can end the block."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    opening = f'<script type="application/json" id="{html.escape(identity)}">'
    return Markup(f"{opening}{text}</script>")


_FOLDER = Path(__file__).parent


def read_asset(name: str) -> str:
    """Read a file that belongs to the page."""
    return (_FOLDER / "assets" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Return the script that defines `vegaEmbed`."""
    return read_script(_FOLDER)


def read_script(folder: Path) -> str:
    """Read `vega.js`, which becomes part of every report; refuse any script but the expected one.

    A source tree that was never built has no such file; there vl-convert makes the script.
    """
    digest = (folder / "vega.sha256").read_text(encoding="utf-8").split()[0]
    path = folder / "vega.js"
    script = path.read_bytes() if path.is_file() else _make_script()
    if hashlib.sha256(script).hexdigest() != digest:
        raise RunError(
            f"{path} is not the script that this version of RoutePrism uses; install RoutePrism "
            "again: pip install --force-reinstall --no-deps routeprism"
        )
    return script.decode()


def _make_script() -> bytes:
    try:
        import vl_convert
    except ModuleNotFoundError:
        purpose = "a report from a source tree that was not installed (vl-convert makes its script)"
        raise MissingExtraError(purpose, "charts") from None
    script: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return script.encode()
