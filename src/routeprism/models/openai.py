"""`openai:MODEL`: any OpenAI-compatible chat endpoint.

Failed requests are repeated, and each failure reaches the ledger. The key is read from
OPENAI_API_KEY when the first request is made; no field, setting or message contains it.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit

from routeprism.errors import ModelError, SpecError
from routeprism.models._allowance import count_repetition
from routeprism.models._contracts import Ask, Reply, Usage
from routeprism.models._proxy import LARGEST, PUBLIC
from routeprism.models._replies import FILTERED, REFUSED, ChatReply, UnreadableError, read_chat
from routeprism.redaction import (
    Redactor,
    address_secrets,
    bare_address,
    basic_authorization,
    environment_secrets,
    hide_credentials,
    is_web_address,
)
from routeprism.specs import check_sizes, check_timeout
from routeprism.transport import (
    LONGEST_WAIT,
    RETRIES,
    AttemptError,
    Connections,
    HttpReply,
    HttpRequest,
    Repeat,
    check_status,
)

__all__ = ["PUBLIC", "OpenAI"]

_HOPELESS = frozenset({"insufficient_quota", "billing_not_active"})


@dataclass(frozen=True)
class OpenAI:
    """A model behind an OpenAI-compatible endpoint."""

    model: str
    """The name of the model at the endpoint."""
    base_url: str | None = field(default=None, repr=False)
    """The address of the endpoint; by default OPENAI_BASE_URL, or else OpenAI."""
    effort: str | None = None
    """The reasoning effort, if the model has one."""
    temperature: float | None = None
    seed: int | None = None
    """Draw n uses seed + n, so that seeded draws still differ."""
    max_tokens: int | None = None
    """The longest answer, reasoning included."""
    concurrency: int = 16
    timeout: float = 120
    """Seconds for one whole attempt."""
    retries: int = RETRIES
    """How often a request is repeated after a temporary failure."""
    price_in: float | None = None
    """Price of a million input tokens."""
    price_out: float | None = None
    """Price of a million output tokens."""
    _connections: Connections = field(
        default_factory=Connections, init=False, repr=False, compare=False
    )

    embedded: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.model:
            raise SpecError("Expected a model's name behind 'openai:'")
        check_sizes(concurrency=self.concurrency, retries=self.retries)
        lowest = {"max_tokens": 1, "price_in": 0, "price_out": 0}
        for name, least in lowest.items():
            value = getattr(self, name)
            if value is not None and value < least:
                raise SpecError(f"Expected {name} of {least} or more but got {name}={value}")
        for name in ("temperature", "price_in", "price_out"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SpecError(f"Expected a finite {name} but got {name}={value}")
        check_timeout(self.timeout)
        if (self.price_in is None) != (self.price_out is None):
            raise SpecError("Expected both price_in and price_out, or neither")
        _check_address(self.base_url, self._address)

    @property
    def name(self) -> str:
        """The spec."""
        return f"openai:{self.model}"

    @property
    def settings(self) -> Mapping[str, str | int | float | bool | None]:
        """Everything that can change an answer; the endpoint without credentials."""
        return {
            "base_url": bare_address(self._address),
            "effort": self.effort,
            "temperature": self.temperature,
            "seed": self.seed,
            "max_tokens": self.max_tokens,
        }

    async def answer(self, ask: Ask, /) -> Reply:
        """Repeat the request until it succeeds, fails for good, or the attempts are used up."""
        sender = self._prepare_sender()
        request = HttpRequest(
            sender.url,
            body=json.dumps(self._body(ask), ensure_ascii=False).encode(errors="replace"),
            headers=sender.headers,
            safe=True,
        )
        history: list[str] = []

        def note(error: AttemptError) -> None:
            now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            history.append(f"{now} {self._describe_failure(error, sender)}")

        failure: AttemptError
        try:
            chat = await self._connections.send_async(
                request,
                _read_reply,
                timeout=self.timeout,
                largest=LARGEST,
                retries=self.retries,
                before_repetition=count_repetition,
                note=note,
            )
        except AttemptError as error:
            failure = error
        else:
            usage = replace(chat.usage, cost=self._cost(chat.usage))
            # An endpoint that echoes the request headers must not get them into the ledger.
            raw = sender.redactor.redact(chat.text)
            return Reply(raw, usage, attempts=tuple(history), marks=chat.marks)
        if not history:  # nothing was sent
            note(failure)
        reason = history[-1].partition(" ")[2]
        tried = "1 attempt" if len(history) == 1 else f"{len(history)} attempts"
        raise ModelError(
            f"{self.name} gave no answer after {tried}: {reason}", attempts=tuple(history)
        )

    async def aclose(self) -> None:
        """Close the connections; the collector calls this at the end."""
        self._connections.close()

    def _prepare_sender(self) -> _Sender:
        """Return what all requests have in common; raise `ModelError` without a usable key."""
        address = self._address
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if not key and bare_address(address) == PUBLIC:
            raise ModelError(
                "OPENAI_API_KEY is not set; set it, or pass the address of a server as base_url"
            )
        if not (key.isascii() and key.isprintable()):
            raise ModelError("OPENAI_API_KEY contains characters that a header cannot contain")
        return _make_sender(address, key, environment_secrets())

    def _describe_failure(self, error: AttemptError, sender: _Sender) -> str:
        if error.kind == "timeout":
            return f"no answer within {self.timeout:g} s"
        if error.kind == "oversize":
            return f"an answer of more than {LARGEST // 2**20} MiB"
        if error.kind == "connection":
            return f"no connection to {bare_address(self._address)} ({error.cause})"
        if error.kind == "broken":
            return f"the connection failed ({error.cause})"
        if error.reply is None:
            return sender.redactor.redact_line(error.detail)
        status = f"HTTP {error.reply.status}"
        if 300 <= error.reply.status < 400:
            return f"{status}: {_describe_redirection(sender, error.reply)}"
        words = sender.redactor.redact_line(
            str(_read_error(error.reply).get("message") or error.reply.reason)
        )
        if error.after is not None and error.after > LONGEST_WAIT:
            words += f" (it asks to wait {error.after:.0f} s)"
        return f"{status}: {words}"

    def _body(self, ask: Ask) -> dict[str, Any]:
        # OpenAI's reasoning models accept only the newer name, most other servers only the older.
        limit = "max_completion_tokens" if bare_address(self._address) == PUBLIC else "max_tokens"
        options = {
            "temperature": self.temperature,
            "seed": None if self.seed is None else self.seed + ask.draw,
            "reasoning_effort": self.effort,
            limit: self.max_tokens,
        }
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": ask.text}],
        }
        body.update((name, value) for name, value in options.items() if value is not None)
        return body

    def _cost(self, usage: Usage) -> float | None:
        if self.price_in is None or self.price_out is None or usage.input_tokens is None:
            return None
        output = usage.output_tokens or 0
        return (usage.input_tokens * self.price_in + output * self.price_out) / 1e6

    @property
    def _address(self) -> str:
        if self.base_url is not None:
            return self.base_url
        return os.environ.get("OPENAI_BASE_URL", PUBLIC)


def _check_address(base_url: str | None, address: str) -> None:
    """Refuse an invalid address; an empty one does not mean the public service."""
    if not is_web_address(address):
        source = "base_url" if base_url is not None else "OPENAI_BASE_URL"
        display = hide_credentials(address) if address.strip() else "an empty text"
        raise SpecError(
            f"Expected {source} to be an address such as http://127.0.0.1:8000/v1 but got {display}"
        )


@dataclass(frozen=True, slots=True)
class _Sender:
    """What the requests to one address have in common."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    redactor: Redactor


@lru_cache(maxsize=16)
def _make_sender(address: str, key: str, secrets: tuple[str, ...]) -> _Sender:
    query = urlsplit(address).query
    return _Sender(
        f"{bare_address(address)}/chat/completions{f'?{query}' if query else ''}",
        {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Authorization": basic_authorization(address) or f"Bearer {key or 'no-key-needed'}",
        },
        Redactor.configured(key, *address_secrets(address), *secrets),
    )


def _read_reply(reply: HttpReply) -> ChatReply:
    """Read an answer, or the refusal of one; raise `AttemptError` if the reply is neither."""
    code = str(_read_error(reply).get("code") or "") if reply.status >= 400 else ""
    if reply.status == 400 and code in FILTERED:
        return ChatReply(f"{REFUSED} {code}", Usage())
    try:
        return read_chat(check_status(reply).content)
    except UnreadableError as error:
        raise AttemptError("reply", str(error), Repeat.IF_SAFE) from None
    except AttemptError as error:
        if code in _HOPELESS:
            error.repeat = Repeat.NEVER
        raise


def _read_error(reply: HttpReply) -> Mapping[str, Any]:
    """Read what a refusal says about the error, as OpenAI-compatible endpoints write it."""
    try:
        body = json.loads(reply.content)
    except (ValueError, RecursionError):
        return {}
    error = body.get("error", body) if isinstance(body, Mapping) else None
    return error if isinstance(error, Mapping) else {}


def _describe_redirection(sender: _Sender, reply: HttpReply) -> str:
    """Name the address that a server redirects to; RoutePrism sends nothing there."""
    location = reply.headers.get("location", "")
    if not location:
        return "the server redirects, and names no address"
    with suppress(ValueError):  # else it is shown as it came
        location = urljoin(sender.url, location)
    target = sender.redactor.redact_line(location)
    return (
        f"the server redirects to {target}, and RoutePrism follows no redirects; if that is the "
        f"right address, pass it as base_url"
    )
