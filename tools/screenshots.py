"""Take the pictures of the report again: `make docs-screenshots`, about a minute.

They show the run of `routeprism demo`, in Chromium at 1280 and 390 pixels. Look at them afterwards.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parents[1] / "docs" / "images"
QUESTION = "#q=u01-q0&policy=focal&schedule=replay"


@dataclass(frozen=True, slots=True)
class Picture:
    """What is shown, how large, in which colours."""

    width: int
    height: int
    place: str = ""
    """The part of the address after the file."""
    dark: bool = False
    then: Callable[[Any], None] | None = None
    """What is done before the picture is taken."""


def _to(selector: str) -> Callable[[Any], None]:
    def scroll(page: Any) -> None:
        for _ in range(2):  # what comes into view is drawn then, and moves what is below it
            page.wait_for_timeout(500)
            page.locator(selector).first.evaluate("node => node.scrollIntoView()")
        page.wait_for_timeout(500)

    return scroll


PICTURES: Mapping[str, Picture] = {
    "report-verdict": Picture(1280, 900),
    "report-prism": Picture(1280, 960, QUESTION, then=_to("#questions")),
    "report-prism-dark": Picture(1280, 960, QUESTION, dark=True, then=_to("#questions")),
    "report-restoration": Picture(1280, 760, "#restoration", then=_to("#restoration")),
    "report-phone": Picture(390, 844),
    "report-phone-prism": Picture(390, 844, QUESTION, dark=True, then=_to("article.question")),
}
"""File in docs/images → what it shows."""


def take(report: Path, names: list[str]) -> None:
    """Take some pictures of a report."""
    chromium = shutil.which("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name in names:
            picture = PICTURES[name]
            page = browser.new_page(
                viewport={"width": picture.width, "height": picture.height},
                color_scheme="dark" if picture.dark else "light",
            )
            page.goto(report.as_uri() + picture.place)
            if picture.place == QUESTION:
                page.wait_for_selector("svg.prism rect.record")
            else:
                page.wait_for_selector("#verdict table", state="attached")
            if picture.then is not None:
                picture.then(page)
            page.screenshot(path=IMAGES / f"{name}.png")
            page.close()
            print(f"docs/images/{name}.png")
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as kept:
        run = Path(kept) / "demo"
        routeprism = Path(sys.executable).with_name("routeprism")
        subprocess.run([routeprism, "demo", "--run", run, "--quiet"], check=True)  # noqa: S603
        take(run / "report.html", sys.argv[1:] or list(PICTURES))
