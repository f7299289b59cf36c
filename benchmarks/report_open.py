"""How large the report of a whole benchmark is, and how soon it is usable in Chromium.

PersonaMem-32K, 589 questions, three policies, three schedules. Usable: the page is opened on its
list of questions, the list can be filtered, and the first question's prism is drawn; the verdict on
the first tab takes less. Limits: 12 MB, and one second.
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import routeprism
from routeprism.report import write_report

ROUNDS = 5
LIMIT_SECONDS = 1.0
LIMIT_BYTES = 12_000_000
ARGUMENTS = "--headless=new --no-sandbox --disable-gpu --disable-background-networking".split()


def main() -> None:
    """Print sizes and times as shares of their limits."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    data = os.environ.get("ROUTEPRISM_DATA")
    if chromium is None or data is None:
        sys.exit("needs chromium and ROUTEPRISM_DATA")
    with tempfile.TemporaryDirectory() as directory:
        run = Path(directory) / "run"
        routeprism.audit(
            "personamem",
            "focal",
            "recent:k=3",
            "lexical",
            schedules=["replay", "half-swap", "odd-even"],
            data=data,
            run=run,
        )
        started = time.perf_counter()
        report = write_report(run)
        written = time.perf_counter() - started
        size = report.stat().st_size
        times, work = [], []
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
            for _ in range(ROUNDS):
                page = browser.new_page()
                session = page.context.new_cdp_session(page)
                session.send("Performance.enable", {"timeDomain": "threadTicks"})
                page.goto(f"{report.as_uri()}#tab-questions", wait_until="commit")
                page.wait_for_selector("article.question svg.prism rect.record")
                # From the navigation's start to now, on the page's own clock.
                times.append(page.evaluate("performance.now()") / 1000)
                metrics = session.send("Performance.getMetrics")["metrics"]
                # Processor time of the page's own thread: what a busy machine does not change.
                work.append(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))
                page.close()
            browser.close()
    usable = statistics.median(times)
    print(f"report of 589 questions: {size / 1e6:.1f} MB, {size / LIMIT_BYTES:.2f} of the limit")
    print(f"usable after {usable:.2f} s (median of {ROUNDS}, best {min(times):.2f} s), ", end="")
    print(f"{usable / LIMIT_SECONDS:.2f} of the limit; written in {written:.1f} s")
    busy = statistics.median(work)
    print(f"of which the page worked {busy:.2f} s, {busy / LIMIT_SECONDS:.2f} of the limit")


if __name__ == "__main__":
    main()
