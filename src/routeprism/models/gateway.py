"""A proxy on the loopback address for the models that memory systems ask with their own clients.

Every request goes through the run's ledger: it is counted against the limits before it is sent, and
its reply is on the disk before the client gets it. A build that is repeated gets the stored replies
and pays for none of them again. The proxy adds the key from the environment when it sends a
request, so that no client, ledger, log or error contains it.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from functools import partial

from routeprism.errors import InputError, LimitError
from routeprism.models._allowance import Allowance
from routeprism.models._contracts import Usage
from routeprism.models._proxy import (
    TIMEOUT,
    Call,
    LoopbackServer,
    Response,
    Upstream,
    UpstreamError,
)
from routeprism.models._replies import clean_usage
from routeprism.models.scripted import SCRIPTED, ScriptedEndpoint
from routeprism.redaction import bare_address
from routeprism.runs import Answer, Cassette, Failure, Key, Ledger, Request, Run
from routeprism.text import tokens
from routeprism.transport import RETRIES, Connections
from routeprism.workers import call_home, current_work

__all__ = [
    "GATEWAY",
    "Endpoint",
    "Gateway",
    "Line",
    "client_route",
    "is_scripted",
    "open_endpoint",
]

GATEWAY = "gateway"
"""The name of a command's proxy among the objects that workers call."""

Settings = Mapping[str, str | int | float | bool | None]


def client_route(policy: str) -> str:
    """Name the requests of a policy's own client in the ledger."""
    return f"client of {policy}"


@dataclass(frozen=True, slots=True)
class Line:
    """One build's connection to its model: who asks, where, and at which prices."""

    policy: str
    arrivals: Sequence[tuple[str, str]]
    """The id and the text of each record, in arrival order."""
    base_url: str = ""
    """The address of the model's endpoint; empty for OPENAI_BASE_URL, or else OpenAI."""
    price_in: float | None = None
    price_out: float | None = None
    api_key: str = field(default="", repr=False)
    """The key of the model's endpoint; empty for OPENAI_API_KEY."""

    def digest(self) -> str:
        """Name the policy and its arrivals briefly."""
        text = json.dumps([self.policy, *map(list, self.arrivals)], ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Scope:
    """The requests of one build so far."""

    line: Line
    batch: str
    draws: dict[str, set[int]] = field(default_factory=dict)
    """Prompt → the draws that are answered or under way; a failed one is free again."""

    def take(self, prompt: str) -> int:
        draws = self.draws.setdefault(prompt, set())
        draw = next(number for number in range(len(draws) + 1) if number not in draws)
        draws.add(draw)
        return draw


class Gateway:
    """Serves the builds of one command; requests are answered from the ledger, or sent on.

    It serves within `serving`. Several builds and several requests of a build may be under way at
    once. The builds of the same arrivals are counted, so that each has draws of its own.
    """

    def __init__(
        self,
        allowance: Allowance | None = None,
        *,
        rate_limit: float | None = None,
        replay: Cassette | None = None,
        timeout: float = TIMEOUT,
        retries: int = RETRIES,
    ) -> None:
        self._replay = replay
        self._timeout, self._retries = timeout, retries
        self._connections = Connections()
        self.refusal: InputError | None = None
        """The first prompt that a cassette has no reply to."""
        self._allowance = allowance or Allowance()
        self._interval = 60.0 / rate_limit if rate_limit else 0.0
        self._next = 0.0
        self._lock = threading.Lock()
        self._builds: Counter[str] = Counter()
        self._works: dict[int, list[str]] = {}
        self._scopes: dict[str, _Scope] = {}
        self._server: LoopbackServer | None = None
        self._ledger: _LedgerThread | None = None
        self.sent = 0
        """Requests that were sent on."""

    @contextmanager
    def serving(self, run: Run | None = None) -> Iterator[Gateway]:
        """Serve with the ledger of a run; without a run, replies are kept nowhere.

        Raise `InputError` in the end if a cassette had no reply to some prompt.
        """
        ledger = None if run is None else _LedgerThread(run)
        self._builds.clear()
        self._works.clear()
        self._scopes.clear()
        self._ledger = ledger
        self._server = LoopbackServer(self.answer)
        try:
            yield self
        except Exception as error:
            if self.refusal is not None:
                raise self.refusal from error
            raise
        finally:
            server, self._server = self._server, None
            self._connections.close()
            server.close()
            if ledger is not None:
                ledger.close()
        if self.refusal is not None:
            raise self.refusal

    @property
    def active(self) -> bool:
        """Whether it serves."""
        return self._server is not None

    def connect(self, line: Line) -> tuple[str, str]:
        """Return the address and the key for the client of a new build."""
        if self._server is None:
            raise RuntimeError("Expected connect() within serving()")
        return self._server.base_url(self.register(line)), self._server.token

    def __reduce__(self) -> tuple[object, ...]:
        """Stay in this process: a worker's proxy passes requests on to it."""
        return DistantGateway, ()

    def restart(self, work: int) -> None:
        """Forget the builds of a worker that was lost: they are made again, with their draws."""
        with self._lock:
            self._builds.subtract(self._works.pop(work, ()))

    def register(self, line: Line, work: int | None = None) -> str:
        """Return the scope of a new build, in the work of a worker if there is one."""
        digest = line.digest()
        with self._lock:
            if work is not None:
                self._works.setdefault(work, []).append(digest)
            number = self._builds[digest]
            self._builds[digest] += 1
            scope = f"{digest}-{number}"
            batch = f"client {number} of {line.policy}, arrivals {digest}"
            self._scopes[scope] = _Scope(line, batch)
        return scope

    def answer(self, call: Call) -> Response:
        """Answer a client: with the stored reply, or with one that is requested and stored now."""
        with self._lock:
            scope = self._scopes.get(call.scope)
        if scope is None:
            return Response.error(404, "there is no build at this address", "not_found")
        if call.body.get("stream"):
            return Response.error(400, "RoutePrism's proxy does not stream", "no_streaming")
        request, settings = self._identify(scope, call)
        stored = None if self._ledger is None else self._ledger.find(request.key)
        if stored is not None:
            return Response(200, stored.raw.encode())
        if self._replay is not None:
            self.refusal = self.refusal or self._replay.refuse(request.key.model, request.text)
            return Response.error(404, str(self.refusal), "not_recorded")
        try:
            return self._send(scope, call, request, settings)
        except LimitError as error:
            self._release(scope, request.key)
            return Response.error(403, str(error), "routeprism_limit")
        except UpstreamError as error:
            self._release(scope, request.key)
            return error.response
        except BaseException:
            self._release(scope, request.key)
            raise

    def _identify(self, scope: _Scope, call: Call) -> tuple[Request, Settings]:
        """Return the request's key: model and settings, prompt, batch and draw."""
        body = {name: value for name, value in call.body.items() if name != "model"}
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
        address = bare_address(Upstream(scope.line.base_url).address)
        settings: Settings = {"base_url": address, "path": call.path, "client": True}
        prompt = hashlib.sha256(text.encode(errors="replace")).hexdigest()
        with self._lock:
            draw = scope.take(prompt)
        model = f"openai:{call.body.get('model', '')}"
        key = Key.of(model, settings, text, batch=scope.batch, draw=draw)
        return Request(key, text, "", client_route(scope.line.policy)), settings

    def _release(self, scope: _Scope, key: Key) -> None:
        with self._lock:
            scope.draws.get(key.prompt, set()).discard(key.draw)

    def _send(self, scope: _Scope, call: Call, request: Request, settings: Settings) -> Response:
        """Count a request, send it, and store its reply before the client gets it."""
        line = scope.line
        price = 0.0
        if self._allowance.max_cost is not None:
            price = tokens.count(request.text) * (line.price_in or 0.0) / 1e6
        self._allowance.take(price)
        cost: float | None = None  # unless it is known, a request under way counts as paid for
        input_tokens = 0
        self._wait()
        asked_at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
        begun = time.monotonic()
        submission = None if self._ledger is None else self._ledger.reserve(request, settings)
        try:
            self.sent += 1
            reply = Upstream(line.base_url, line.api_key).post(
                call.path,
                call.body,
                self._connections,
                timeout=self._timeout,
                retries=self._retries,
                before_repetition=self._count_repetition,
            )
            usage, cost, marks = _read_usage(reply.body, line)
            input_tokens = usage.input_tokens or 0
            if self._ledger is not None and submission is not None:
                self._ledger.put(
                    Answer(
                        submission=submission,
                        outcome="answered",
                        answer=None,
                        raw=reply.body.decode(errors="replace"),
                        input_tokens=usage.input_tokens,
                        output_tokens=usage.output_tokens,
                        cost=cost,
                        asked_at=asked_at,
                        latency=time.monotonic() - begun,
                        marks=marks,
                    )
                )
            return reply
        except (UpstreamError, LimitError) as error:  # the limit did not allow a repetition
            cost = 0.0
            if self._ledger is not None and submission is not None:
                latency = time.monotonic() - begun
                self._ledger.put(
                    Failure(
                        submission=submission, error=str(error), asked_at=asked_at, latency=latency
                    )
                )
            raise
        finally:
            self._allowance.settle(price, cost, input_tokens=input_tokens)

    def _count_repetition(self) -> None:
        self._allowance.count()
        self.sent += 1
        self._wait()

    def _wait(self) -> None:
        """Wait for this request's turn under a rate limit."""
        if self._interval:
            with self._lock:
                now = time.monotonic()
                start = max(self._next, now)
                self._next = start + self._interval
            time.sleep(start - now)


class DistantGateway:
    """A proxy in a worker, for the clients there: every request is answered in the first process.

    So limits, ledger and pace are the same for all workers, and the key of the model stays there.
    """

    active = True

    def __init__(self) -> None:
        self._server: LoopbackServer | None = None

    def connect(self, line: Line) -> tuple[str, str]:
        """Return the address and the key for the client of a new build."""
        if self._server is None:
            self._server = LoopbackServer(partial(call_home, GATEWAY, "answer"))
        scope = call_home(GATEWAY, "register", line, current_work())
        return self._server.base_url(scope), self._server.token


def _read_usage(content: bytes, line: Line) -> tuple[Usage, float | None, tuple[str, ...]]:
    """Read the tokens and the cost of a reply, and what of them cannot be stored."""
    try:
        reported = json.loads(content).get("usage") or {}
        counts = reported.get("prompt_tokens"), reported.get("completion_tokens")
    except (ValueError, AttributeError, RecursionError):
        counts = None, None
    usage, marks = clean_usage(*counts)
    cost = None
    if line.price_in is not None and usage.input_tokens is not None:
        output_cost = (usage.output_tokens or 0) * (line.price_out or 0.0)
        cost = (usage.input_tokens * line.price_in + output_cost) / 1e6
    return usage, cost, tuple(marks)


class _LedgerThread:
    """The ledger in its own thread, because SQLite reads in the thread that opened it."""

    def __init__(self, run: Run) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gateway")
        self._ledger: Ledger = self._thread.submit(run.ledger).result()

    def find(self, key: Key) -> Answer | None:
        future: Future[dict[Key, Answer]] = self._thread.submit(self._ledger.answers, [key])
        return future.result().get(key)

    def reserve(self, request: Request, settings: Settings) -> int:
        """Store a request; give its submission index once it is on the disk."""
        (submission,) = self._ledger.reserve(settings, [request]).result()
        return submission

    def put(self, entry: Answer | Failure) -> None:
        """Store an answer or a failure; return once it is on the disk."""
        self._ledger.put(entry).result()

    def close(self) -> None:
        self._thread.submit(self._ledger.close).result()
        self._thread.shutdown()


def _release_nothing() -> None:
    """Release nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the key that a client gets."""

    base_url: str
    """Empty for the client's own default."""
    api_key: str
    close: Callable[[], None] = _release_nothing
    """Call it when the client makes no more requests."""


def is_scripted(model: str, base_url: str = "") -> bool:
    """Whether a memory system's model is the scripted one of this package."""
    return model == SCRIPTED and not base_url


def open_endpoint(
    model: str,
    line: Line,
    *,
    gateway: Gateway | None = None,
    allowance: Allowance | None = None,
) -> Endpoint:
    """Open the endpoint of a model for one build.

    `scripted` is served here until the endpoint is closed. The requests of any other model go
    through the gateway of the command. Without one they go through a gateway of their own if an
    allowance limits them, and otherwise directly to the model, with the key of the line or else
    the one in OPENAI_API_KEY.
    """
    if is_scripted(model, line.base_url):
        served = ScriptedEndpoint()
        return Endpoint(served.base_url, served.api_key, served.close)
    if gateway is not None and gateway.active:
        return Endpoint(*gateway.connect(line))
    if allowance is not None:
        stack = ExitStack()
        private = stack.enter_context(Gateway(allowance).serving())
        return Endpoint(*private.connect(line), stack.close)
    return Endpoint(line.base_url, line.api_key or os.environ.get("OPENAI_API_KEY", "none"))
