"""Build hook: put Vega's script into the package, so that a report needs no charting library."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src") / "routeprism" / "report"


class VegaScript(BuildHookInterface):  # type: ignore[type-arg, unused-ignore]
    """Writes the script with vl-convert, unless the right one is there already."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the script before files are collected; the same for editable installations."""
        write_script(Path(self.root) / FOLDER)


def write_script(folder: Path) -> None:
    """Write `vega.js`; refuse a script that is not the one of `vega.sha256`."""
    digest = (folder / "vega.sha256").read_text(encoding="utf-8").split()[0]
    path = folder / "vega.js"
    if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
        return
    import vl_convert

    script = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").encode()
    if hashlib.sha256(script).hexdigest() != digest:
        raise RuntimeError(
            f"vl-convert {vl_convert.__version__} makes a different script than the one that "
            f"{folder / 'vega.sha256'} names; build with the version that pyproject.toml requires"
        )
    path.write_bytes(script)
