"""A small memory that misbehaves for one user: as a service over HTTP, and as a program.

It keeps the last two records. `FAULTS` has replies that cannot be used, whoever sends them;
`SERVICE_FAULTS` are those of HTTP, `PROGRAM_FAULTS` those of a program. Only memories that have a
record of the user `u2` meet a fault, so a test can see that the other user's routes are complete.

    python tests/faults/fault_memory.py FAULT      # reads requests as JSON lines
"""

import json
import os
import subprocess
import sys
import time

SICK = "u2"


class Memory:
    """Keeps the last two records."""

    def __init__(self):
        self.items = []
        self.sick = False

    def answer(self, verb, request):
        """Give the reply of a memory without faults."""
        if verb == "reset":
            self.items = []
        if verb == "add":
            record = request["record"]
            self.sick = self.sick or record["id"].startswith(SICK)
            item = {"text": record["text"], "sources": [record["id"]]}
            self.items = [*self.items, item][-2:]
        return {"items": self.items} if verb in ("search", "dump") else {}


def _adding(reply):
    return lambda verb, usual: reply if verb == "add" else None


def _searching(reply):
    return lambda verb, usual: reply if verb == "search" else None


def _dumping(reply):
    return lambda verb, usual: reply if verb == "dump" else None


def _encode(value):
    return json.dumps(value).encode()


def _item(**fields):
    return _encode({"items": [{"text": "x", "sources": ["u2-r1"], **fields}]})


def _states(state):
    return lambda verb, usual: _encode({**usual, "state": state}) if verb == "dump" else None


FAULTS = {
    # name: (the reply to a verb, or None for the usual one; what the route's reason contains)
    "no-json": (_adding(b"banana"), "add: the reply is not JSON: 'banana'"),
    "no-utf-8": (_adding(b'{"a": "\xff"}'), "add: the reply is not JSON"),
    "cut-json": (_adding(b'{"events": ['), "add: the reply is not JSON"),
    "list": (_adding(b"[]"), "add: expected a JSON object but got list"),
    "null": (_adding(b"null"), "add: expected a JSON object but got NoneType"),
    "long-number": (_adding(b'{"a": ' + b"1" * 5000 + b"}"), "add: the reply is not JSON"),
    "deep": (_adding(b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "nested too deeply"),
    "error": (_adding(b'{"error": "full"}'), "add: full"),
    "error-object": (_adding(b'{"error": {"why": ["full"]}}'), 'add: {"why": ["full"]}'),
    "error-surrogate": (_adding(b'{"error": "\\ud800"}'), "half a surrogate pair"),
    "events-text": (_adding(b'{"events": "add"}'), "expected a list 'events' but got str"),
    "event-null": (_adding(b'{"events": [null]}'), "expected an event of add, merge"),
    "event-kind-list": (_adding(b'{"events": [{"kind": ["add"]}]}'), "expected an event of add"),
    "event-record-list": (
        _adding(b'{"events": [{"kind": "add", "record": ["u2-r1"]}]}'),
        "an event is about ['u2-r1'], which never arrived",
    ),
    "event-record-object": (
        _adding(b'{"events": [{"kind": "add", "record": {}}]}'),
        "an event is about {}, which never arrived",
    ),
    "items-absent": (_dumping(b"{}"), "dump: expected a list 'items' but got NoneType"),
    "items-object": (_searching(b'{"items": {}}'), "search: expected a list 'items' but got dict"),
    "item-null": (_searching(b'{"items": [null]}'), "search: item 0: expected an object"),
    "text-number": (_searching(_item(text=5)), "search: item 0: expected an object with 'text'"),
    "text-surrogate": (_searching(_item(text="a\ud800")), "search: the reply contains half a"),
    "kind-number": (_searching(_item(kind=5)), "expected a text 'kind' but got int"),
    "kind-surrogate": (_searching(_item(kind="\udfff")), "search: the reply contains half a"),
    "sources-absent": (_searching(_item(sources=None)), "search: item 0 names no sources"),
    "sources-nested": (_searching(_item(sources=[["u2-r1"]])), "which never arrived"),
    "sources-unknown": (_searching(_item(sources=["u9"])), "names the source 'u9', which never"),
    "state-surrogate": (_states("\ud83d"), "dump: the reply contains half a surrogate pair"),
    "state-key-surrogate": (_states({"\ud83d": 1}), "dump: the reply contains half a surrogate"),
}

GRANDCHILD = "import time; time.sleep(600)"


def _keep_pipe(leave):
    """Leave a process behind that keeps the pipes open, in the group or outside of it."""
    child = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", GRANDCHILD], start_new_session=leave
    )
    if path := os.environ.get("FAULT_PIDS"):
        with open(path, "a", encoding="ascii") as file:  # noqa: PTH123 (few imports: it starts often)
            file.write(f"{child.pid}\n")


def _exit():
    print("no memory left", file=sys.stderr, flush=True)
    os._exit(7)


def _exit_with_grandchild():
    _keep_pipe(leave=False)
    os._exit(7)


def _hang():
    time.sleep(600)


def _hang_with_grandchild():
    _keep_pipe(leave=False)
    time.sleep(600)


def _write_half():
    sys.stdout.write('{"a": ')
    sys.stdout.flush()
    time.sleep(600)


def _flood_errors():
    for _ in range(3000):
        print("x" * 99, file=sys.stderr)
    os._exit(1)


def _close_output():
    os.close(1)
    time.sleep(600)


PROGRAM_FAULTS = {
    "exit": (_exit, "add: the program ended before it answered (exit code 7), and said: no memory"),
    "hang": (_hang, "add: no reply within 5 seconds"),
    "half-a-line": (_write_half, "add: no reply within 5 seconds"),
    "flood": (_flood_errors, "add: the program ended before it answered (exit code 1)"),
    "close-output": (_close_output, "add: the program ended before it answered"),
    "grandchild": (_hang_with_grandchild, "add: no reply within 5 seconds"),
    "exit-with-grandchild": (_exit_with_grandchild, "add: no reply within 5 seconds"),
}


def serve_lines(name):
    """Answer JSON lines until the input ends."""
    memory = Memory()
    for line in sys.stdin:
        request = json.loads(line)
        verb = request["do"]
        usual = memory.answer(verb, request)
        raw = None
        if memory.sick and name in PROGRAM_FAULTS and verb == "add":
            PROGRAM_FAULTS[name][0]()
        if memory.sick and name in FAULTS:
            raw = FAULTS[name][0](verb, usual)
        sys.stdout.buffer.write((_encode(usual) if raw is None else raw) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve_lines(sys.argv[1])
