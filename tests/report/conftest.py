"""A browser for the report's tests: Debian's Chromium, driven by Playwright, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """Launch Chromium for one module; where CI is set, it must be installed.

    Playwright keeps an event loop running in this thread, which would break `asyncio.run` in the
    modules that the same process tests next.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def opened(browser: Any) -> Callable[..., Any]:
    """Open a report; on leaving, nothing may have gone wrong or been fetched."""

    @contextmanager
    def open_page(
        path: Path, fragment: str = "", *, width: int = 1280, dark: bool = False
    ) -> Iterator[Any]:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
        )
        page = context.new_page()
        page.set_default_timeout(120_000)  # a machine may be busy; no test waits for long
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
        page.on("dialog", lambda dialog: wrong.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            lambda message: (
                wrong.append(f"{message.type}: {message.text}")
                if message.type in ("error", "warning")
                else None
            ),
        )
        page.on(
            "request",
            lambda request: (
                None
                if request.url.startswith(("file:", "data:", "blob:"))
                else wrong.append(request.url)
            ),
        )
        page.goto(path.resolve().as_uri() + fragment)
        yield page
        assert wrong == []
        context.close()

    return open_page
