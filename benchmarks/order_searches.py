"""How long the worst order and the smallest reorderings take, in processor time.

`orders --worst support --shrink support` on one pool of 207 records (limit: 30 s), on the pools of
the sample (limit: 15 s), and on the sample with updates, whose pools have up to eleven records.
To compare two versions, run the script with PYTHONPATH set to the `src` of each.
Run: python benchmarks/order_searches.py; the last results are in docs/performance.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import routeprism

LONG = 207
SEARCHES = (
    ("long", "focal", 30.0),
    ("long", "recent:k=20", 30.0),
    ("sample", "focal", 15.0),
    ("sample", "utility:k=3", 15.0),
    ("sample", "memochat", 15.0),
    ("sample-updates", "focal", None),
    ("sample-updates", "utility:k=3", None),
)


def main() -> int:
    """Search, print, and return whether a limit was missed."""
    sys.path.insert(0, str(Path(__file__).parent))
    import streaming_audit

    streaming_audit.RECORDS, streaming_audit.QUESTIONS = LONG, 8
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        streaming_audit.write(Path(folder), 1)
        for data, policy, limit in SEARCHES:
            source = folder if data == "long" else data
            start = time.process_time()
            found = routeprism.explore_orders(source, policy, worst="support", shrink="support")
            seconds = time.process_time() - start
            searched = sum(f.name in ("worst_order", "smallest_reordering") for f in found.findings)
            note = "" if limit is None else f" (limit {limit:g})"
            print(f"{data}, {policy}: {seconds:.2f} s for {searched} searches{note}", flush=True)
            missed += limit is not None and seconds > limit
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
