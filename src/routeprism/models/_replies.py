"""Read chat completions, and repair texts or counts that cannot be stored unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from routeprism.errors import ModelError
from routeprism.models._contracts import Reply, Usage
from routeprism.redaction import repair_text

REFUSED = "[refused]"
"""Prefix of the raw text if the provider withheld or refused an answer."""
FILTERED = frozenset({"content_filter", "content_policy_violation"})


class UnreadableError(ValueError):
    """A body without an answer; the message quotes only the text of an error in it."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """The content of a chat completion."""

    text: str
    usage: Usage
    marks: tuple[str, ...] = ()
    """The parts of it that could not be stored unchanged."""


def read_chat(content: bytes) -> ChatReply:
    """Read a chat completion; a text in parts is joined."""
    body = _decode(content)
    message, reason = _read_message(body)
    text = _text(message.get("content"))
    refusal = message.get("refusal")
    filtered = isinstance(reason, str) and reason in FILTERED
    if not text and (refusal or filtered):
        text = f"{REFUSED} {refusal if isinstance(refusal, str) and refusal else reason}"
    reported = body.get("usage")
    counts = reported if isinstance(reported, Mapping) else {}
    usage, marks = clean_usage(counts.get("prompt_tokens"), counts.get("completion_tokens"))
    if reported is not None and not isinstance(reported, Mapping):
        marks.append("the usage was not an object")
    return ChatReply(text, usage, tuple(marks))


def read_body(content: bytes, path: str) -> str:
    """Return the JSON text for a client that asked at this path; refuse a body without a reply.

    What is stored once is given to the client each time, so an error must not be stored.
    """
    body = _decode(content)
    if path.endswith("chat/completions"):
        read_chat(content)
    else:
        _refuse_error(body)
        if path.endswith("embeddings") and not isinstance(body.get("data"), list):
            raise UnreadableError("an answer that cannot be read (no list of embeddings)")
    text = json.dumps(body, ensure_ascii=False)
    repaired = repair_text(text)
    if repaired != text:
        return repaired
    return content.decode(json.detect_encoding(content), "replace")


def _read_message(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], Any]:
    """Read the message of the first choice, and why it ended."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if isinstance(choice, Mapping) and isinstance(message, Mapping):
        return message, choice.get("finish_reason")
    _refuse_error(body)
    raise UnreadableError("an answer that cannot be read (no choice with a message)")


def _refuse_error(body: Mapping[str, Any]) -> None:
    if problem := body.get("error"):
        reason = problem.get("message") if isinstance(problem, Mapping) else problem
        raise UnreadableError(f"an error in place of an answer: {reason}")


def _decode(content: bytes) -> Mapping[str, Any]:
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        start = content.lstrip()[:1]
        kind = "HTML or XML" if start == b"<" else "not valid JSON"
        reason = f"it is {kind}" if start else "it is empty"
        raise UnreadableError(f"an answer that cannot be read ({reason})") from None
    if not isinstance(body, Mapping):
        raise UnreadableError("an answer that cannot be read (it is not a JSON object)")
    return body


def _text(content: Any) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if isinstance(content, list) and all(isinstance(part, Mapping) for part in content):
        texts = [part.get("text") for part in content]
        if all(isinstance(text, str) for text in texts):
            return "".join(map(str, texts))
    raise UnreadableError("an answer that cannot be read (its content is not text)")


SURROGATES = "half a surrogate pair, which no file can contain, was replaced by U+FFFD"
"""The mark of a text that contained one."""
_MOST = 2**63 - 1
"""The largest whole number that the store can contain."""


def clean_usage(input_tokens: Any, output_tokens: Any, cost: Any = None) -> tuple[Usage, list[str]]:
    """Return the usage as far as it can be stored, and a mark for each part that cannot."""
    counts, marks = [], []
    for name, value in (("input", input_tokens), ("output", output_tokens)):
        whole = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST
        counts.append(value if whole else None)
        if value is not None and not whole:
            marks.append(f"the {name} token count was not a whole number that can be stored")
    number = isinstance(cost, (int, float)) and not isinstance(cost, bool)
    price = float(cost) if number and 0 <= cost <= _MOST and math.isfinite(cost) else None
    if cost is not None and price is None:
        marks.append("the cost was not an amount that can be stored")
    return Usage(counts[0], counts[1], price), marks


def clean_reply(reply: Any, model: str) -> Reply:
    """Return a reply that can be stored; refuse one without text."""
    if not isinstance(reply, Reply) or not isinstance(reply.raw, str):
        value = reply.raw if isinstance(reply, Reply) else reply
        raise ModelError(f"{model} gave {type(value).__name__} instead of a reply with text")
    raw = repair_text(reply.raw)
    marks = [SURROGATES] if raw != reply.raw and not reply.marks else []
    usage = reply.usage if isinstance(reply.usage, Usage) else Usage(reply.usage)
    clean, odd = clean_usage(usage.input_tokens, usage.output_tokens, usage.cost)
    if raw == reply.raw and clean == reply.usage and not odd:
        return reply
    return replace(reply, raw=raw, usage=clean, marks=(*reply.marks, *marks, *odd))
