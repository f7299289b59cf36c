"""Vega as one script that needs no network, out of vl-convert."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

__all__ = ["vega_bundle"]


@lru_cache(maxsize=1)
def vega_bundle() -> str:
    """Give the script that defines `vegaEmbed`.

    Bundling takes seconds, so it is done once for each version and kept among the user's caches.
    """
    kept = _cache() / f"vega-{version('vl-convert-python')}.js"
    try:
        return kept.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        pass
    import vl_convert

    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    beside = kept.with_name(f"{kept.name}.{os.getpid()}")
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(made, "utf-8")
        beside.replace(kept)
    except OSError:  # nowhere to keep it: the next report makes it again
        beside.unlink(missing_ok=True)
    return made


def _cache() -> Path:
    named = os.environ.get("XDG_CACHE_HOME")
    return (Path(named) if named else Path.home() / ".cache") / "routeprism"
