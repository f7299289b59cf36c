"""A memory behind the command protocol: one JSON object per line, in and out.

routeprism audit sample --policy "command:run=python examples/command_memory/memory.py"

It keeps the three newest records and shows those that share a word with the question.
"""

from __future__ import annotations

import json
import re
import sys

records: list[dict[str, str]] = []

for line in sys.stdin:
    asked = json.loads(line)
    if asked["do"] == "reset":
        records.clear()
        reply = {}
    elif asked["do"] == "add":
        records.append(asked["record"])
        events = [{"kind": "add", "record": asked["record"]["id"]}]
        events += [{"kind": "evict", "record": old["id"]} for old in records[:-3]]
        del records[:-3]
        reply = {"events": events}
    else:
        words = set(re.findall(r"\w{4,}", asked.get("query", "").lower()))
        shown = [r for r in records if asked["do"] == "dump" or words & set(r["text"].split())]
        reply = {"items": [{"text": r["text"], "sources": [r["id"]]} for r in shown]}
    print(json.dumps(reply), flush=True)
