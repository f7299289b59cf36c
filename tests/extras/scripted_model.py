"""An OpenAI-compatible model on loopback that always overwrites: what mem0 and LangMem ask of it.

It extracts one fact from a session, the user's first sentence, and whatever memory it is shown
first it replaces by that fact.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from ..doubles import LoopbackServer


def first_sentence(conversation: str) -> str:
    """Give the first sentence that the user says in the conversation shown last."""
    matches = re.findall(r"(?:user:|Human Message =+)\s*(.+)", conversation)
    return re.split(r"(?<=[.!?])\s", matches[0].strip())[0] if matches else ""


class Scripted(LoopbackServer):
    """Keeps every request, so that tests can read the prompts."""

    def __init__(self, *, overwrites: bool = True) -> None:
        super().__init__(_Handler)
        self.overwrites = overwrites
        self.asked: list[dict[str, Any]] = []
        self.broken = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def reply(self, request: dict[str, Any]) -> dict[str, Any]:
        """Give the assistant's message."""
        prompt = "\n".join(str(message["content"]) for message in request["messages"])
        if request.get("tools"):
            return self._called(request, prompt)
        return {"role": "assistant", "content": json.dumps(self._decided(prompt))}

    def _decided(self, prompt: str) -> Any:
        """Answer the three prompts of mem0: facts, then actions (1.x); or additions (2.x)."""
        if "## New Messages" in prompt:
            new = prompt.rpartition("## New Messages")[2].partition("## Observation Date")[0]
            fact = first_sentence(new)
            return {"memory": [{"id": "0", "text": fact}] if fact else []}
        if "## Existing" not in prompt and "old_memory" in prompt:  # what to do with new facts
            *_, facts = lists = [*_lists(prompt)]
            passages = lists[0] if len(lists) > 1 else []
            if passages and self.overwrites:
                first = passages[0]
                return {"memory": [_action("UPDATE", first["id"], facts[0], first["text"])]}
            return {"memory": [_action("ADD", "0", facts[0], "")]}
        return {"facts": [first_sentence(prompt.rpartition("Input:")[2])]}

    def _called(self, request: dict[str, Any], prompt: str) -> dict[str, Any]:
        """Answer LangMem's manager with tool calls: patch what is there, or insert."""
        fact = first_sentence(prompt.partition("<session_")[2])
        names = [tool["function"]["name"] for tool in request["tools"]]
        match = re.search(r'(?:json_doc_id|id|instance id)["=: ]+"?([0-9a-f-]{8,})', prompt)
        if match and "PatchDoc" in names and self.overwrites:
            arguments: dict[str, Any] = {
                "json_doc_id": match[1],
                "planned_edits": "replace",
                "patches": [{"op": "replace", "path": "/content", "value": fact}],
            }
            name = "PatchDoc"
        else:
            name = next(name for name in names if name == "Memory")
            arguments = {"content": fact}
        call = {
            "id": "call-1",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}


def _lists(prompt: str) -> Iterator[list[Any]]:
    """Read the lists that mem0 writes between triple backticks: memories, then new facts."""
    for quoted in re.findall(r"```(.*?)```", prompt, re.DOTALL):
        with suppress(ValueError, SyntaxError):
            result = ast.literal_eval(quoted.strip())
            if isinstance(result, list):
                yield result


def _action(event: str, id: str, text: str, old: str) -> dict[str, str]:
    return {"id": id, "text": text, "event": event, "old_memory": old}


class _Handler(BaseHTTPRequestHandler):
    server: Scripted

    def do_POST(self) -> None:
        document = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append(document)
        if self.server.broken:
            self.send_response(400)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        message = self.server.reply(document)
        body = json.dumps(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": document["model"],
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
            }
        ).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""
