"""The pages as a site: they build without a warning, fetch nothing, and are searched from disk."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build it with --strict: every page is in the nav, every link and anchor leads somewhere."""
    folder = tmp_path_factory.mktemp("site")
    ended = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert ended.returncode == 0, ended.stderr
    return folder


@pytest.mark.slow
def test_the_site_fetches_nothing(site: Path) -> None:
    fetched = re.compile(r'<(?:script|img|link)[^>]+(?:src|href)="?(?:https?:)?//[^">]+')
    for page in site.rglob("*.html"):
        assert not fetched.findall(page.read_text(encoding="utf-8")), page


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_works_from_disk(site: Path, chromium: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto((site / "index.html").as_uri())
        page.locator("input.md-search__input").fill("late batch")
        first = page.locator(".md-search-result__link").first
        first.wait_for(state="visible")
        assert first.get_attribute("href").startswith("file:")
        browser.close()
