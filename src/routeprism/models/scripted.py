"""`scripted`: a rule-based model behind an OpenAI-compatible endpoint on the loopback address.

Memory systems that extract facts with a model can be audited with it, without a key and without a
network. It is not a language model, and every output names it `scripted`. The same request always
gets the same reply. `_facts` has its rules, and `_extraction` the requests that it recognises.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

from routeprism.models._extraction import reply_to_chat
from routeprism.models._proxy import Call, LoopbackServer, Response
from routeprism.text import tokens
from routeprism.text.hashing import hash_words

__all__ = ["SCRIPTED", "ScriptedEndpoint", "answer_call"]

SCRIPTED = "scripted"
"""The name of the model, in specs and in every output."""
_DIMENSIONS = 1025


class ScriptedEndpoint:
    """The scripted model at an address of this machine; use it as a context, or close it.

    Point the client of a memory system at `base_url` with `api_key`, and name the model `scripted`.
    """

    def __init__(self, *, port: int = 0, api_key: str | None = None) -> None:
        self._server = LoopbackServer(answer_call, port=port, token=api_key)
        self.base_url = self._server.base_url(SCRIPTED)
        self.api_key = self._server.token

    def close(self) -> None:
        """Stop serving."""
        self._server.close()

    def __enter__(self) -> ScriptedEndpoint:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def answer_call(call: Call) -> Response:
    """Answer a request for a chat completion or for embeddings."""
    if call.path == "chat/completions":
        if call.body.get("stream"):
            return Response.error(400, "the scripted model does not stream", "no_streaming")
        return Response.of(_complete(call.body))
    if call.path == "embeddings":
        return Response.of(_embed(call.body))
    return Response.error(404, f"the scripted model has no {call.path}", "not_found")


def _complete(body: Mapping[str, Any]) -> dict[str, Any]:
    message = reply_to_chat(body)
    prompt = json.dumps(body.get("messages", ()), ensure_ascii=False)
    reply = json.dumps(message, ensure_ascii=False)
    usage = _usage(tokens.count(prompt), tokens.count(reply))
    reason = "tool_calls" if message.get("tool_calls") else "stop"
    digest = hashlib.sha256(prompt.encode()).hexdigest()[:24]
    return {
        "id": f"chatcmpl-{digest}",
        "object": "chat.completion",
        "created": 0,
        "model": SCRIPTED,
        "system_fingerprint": SCRIPTED,
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": usage,
    }


def _usage(input_tokens: int, output_tokens: int) -> dict[str, int]:
    return {
        "prompt_tokens": input_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": input_tokens + output_tokens,
    }


def _embed(body: Mapping[str, Any]) -> dict[str, Any]:
    content = body.get("input", "")
    inputs = [content] if isinstance(content, str) else [str(item) for item in content]
    size = int(body.get("dimensions") or _DIMENSIONS)
    coded = body.get("encoding_format") == "base64"
    vectors = [_scale(hash_words(text, size)) for text in inputs]
    input_tokens = sum(map(tokens.count, inputs))
    return {
        "object": "list",
        "model": SCRIPTED,
        "data": [
            {"object": "embedding", "index": at, "embedding": _pack(item) if coded else item}
            for at, item in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": input_tokens, "total_tokens": input_tokens},
    }


def _scale(vector: tuple[float, ...]) -> list[float]:
    length = math.sqrt(sum(value * value for value in vector))
    return [value / length for value in vector]


def _pack(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
