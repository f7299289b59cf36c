"""Secrets taken out of text that comes from outside, before it is stored or shown.

A service can repeat what it was sent: in an answer, in an error, in a header, plain or encoded, as
a whole or in part. A `Redactor` knows the secrets that are configured, and replaces each of them,
its usual encodings, and longer parts of these.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias
from urllib.parse import parse_qsl, quote, quote_plus, unquote, urlsplit

__all__ = [
    "HIDDEN",
    "Redactor",
    "address_secrets",
    "bare_address",
    "basic_authorization",
    "environment_secrets",
    "hide_credentials",
    "is_web_address",
    "names_secret",
    "repair_text",
]

HIDDEN = "[hidden]"

_SHORTEST = 4
"""Characters: a shorter secret is part of too many words to be replaced in an answer."""
_SHORTEST_VALUE = 8
"""The same for values that are not known to be secret: what variables or parameters contain."""
_SECRET_NAME = re.compile(r"(?i)(?:key|token|secret|passw|pwd|credential|auth|sig(?:nature)?$)")
_SECRET_VARIABLE = re.compile(
    r"(?i)(?:^|_)(?:API_?KEY|ACCESS_?KEY|SECRET_?KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS?)$"
)
_ADDRESS_VARIABLE = re.compile(r"(?i)OPENAI_BASE_URL|(?:https?|all)_proxy")
"""Variables with an address, which may contain a password."""
_LOOKS_SECRET = re.compile(r"(?i)\b(?:sk-|bearer\s+|basic\s+)[\w.*+/=~-]+")
_PREFIX = re.compile(
    r"(?i)(?:(?:bearer|basic|token)\s+|(?:sk|pk|rk)[-_](?:(?:proj|svcacct|admin|live|test)[-_]|"
    r"ant-[a-z]+\d*-|or-v\d+-)?|gh[a-z]_|github_pat_|glpat-|xox[a-z]-|hf_|gsk_)+"
)
"""What services put in front of the secret part of a key, and repeat it without."""
_PART = 12
"""Characters: a part of a secret that is as long is replaced if it has letters and digits."""
_LONG_PART = 16
"""The same for any part."""
_PIECE = 6
"""Characters that are looked up to find parts."""
_FILLING = re.compile(r"(?:[\s\u00ad\u200b-\u200f\u2060\ufeff]|\\[nrt])+")
"""What may split a secret over lines: blanks, also escaped, and characters without a width."""
_ADDRESS = re.compile(r"(?i)\b(https?://)([^\s/?#'\"<>]*@)?([^\s?'\"<>]*)(\?[^\s#'\"<>]*)?")
_SHORT_LINE = 200


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets, their encodings, and parts of these, in text."""

    secrets: tuple[str, ...] = ()
    _forms: re.Pattern[str] | None = field(init=False, repr=False, compare=False)
    _pieces: Pieces = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms, pieces = _prepare_forms(self.secrets)
        object.__setattr__(self, "_forms", forms)
        object.__setattr__(self, "_pieces", pieces)

    def __repr__(self) -> str:
        return f"Redactor({len(self.secrets)} secrets)"

    @classmethod
    def configured(cls, *secrets: str) -> Redactor:
        """Remember these secrets, and those in the environment."""
        long_secrets = (secret for secret in secrets if len(secret) >= _SHORTEST)
        return cls(tuple(sorted({*long_secrets, *environment_secrets()})))

    def redact(self, text: str) -> str:
        """Replace every secret in a text and nothing else, such as in an answer."""
        if self._forms is None:
            return text
        return _hide_parts(self._forms.sub(HIDDEN, text), self._pieces)

    def redact_text(self, text: str) -> str:
        """Replace every secret in a message, and what addresses in it contain."""
        # First the secrets: one with `&` or `@` in it is cut where an address has these.
        return hide_credentials(self.redact(repair_text(text)))

    def redact_line(self, text: str, *, end: bool = False) -> str:
        """Make one short line of a message, without anything that looks like a secret.

        Of a long message its beginning is shown, or its `end`.
        """
        short = " ".join(_LOOKS_SECRET.sub(HIDDEN, self.redact_text(text)).split())
        if len(short) <= _SHORT_LINE:
            return short
        return "…" + short[1 - _SHORT_LINE :] if end else short[: _SHORT_LINE - 1] + "…"


def names_secret(name: str) -> bool:
    """Check whether the name of a parameter indicates a secret."""
    return bool(_SECRET_NAME.search(name))


def environment_secrets(environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Return the values of variables whose name says that they contain a secret."""
    variables = os.environ if environment is None else environment
    secrets = {
        value.strip()
        for name, value in variables.items()
        if _SECRET_VARIABLE.search(name) and len(value.strip()) >= _SHORTEST_VALUE
    }
    for name, value in variables.items():
        if _ADDRESS_VARIABLE.fullmatch(name):
            secrets.update(address_secrets(value))
    return tuple(sorted(secrets))


def address_secrets(address: str) -> tuple[str, ...]:
    """List the secrets in an address: its password, and the values of its query."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return ()
    user, colon, password = parts.netloc.rpartition("@")[0].partition(":")
    secrets = {password, unquote(password)}
    if user and not colon:  # a token in place of a name
        secrets |= {user, unquote(user)}
    if password:
        pair = f"{unquote(user)}:{unquote(password)}"
        secrets.add(base64.b64encode(pair.encode(errors="replace")).decode())
    for name, value in parse_qsl(parts.query):
        least = _SHORTEST if names_secret(name) else _SHORTEST_VALUE
        if len(value) >= least:
            secrets.add(value)
    return tuple(sorted(value for value in secrets if len(value) >= _SHORTEST))


def is_web_address(address: str) -> bool:
    """Whether a text is the address of a service: HTTP or HTTPS, with a host and a usable port."""
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        return False


def basic_authorization(address: str) -> str:
    """Return the header that sends the user and the password of an address; empty without them.

    In a header and not in the address, because libraries log addresses.
    """
    parts = urlsplit(address)
    if not parts.username:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def bare_address(address: str) -> str:
    """Return an address without user, password, query and fragment."""
    parts = urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}"


def hide_credentials(text: str) -> str:
    """Hide users, passwords and query values of every address in a text."""

    def hide(address: re.Match[str]) -> str:
        scheme, user, place, query = address.groups(default="")
        names = (part.partition("=")[0] for part in query[1:].split("&"))
        values = "&".join(f"{name}={HIDDEN}" for name in names) if query[1:] else ""
        return f"{scheme}{f'{HIDDEN}@' if user else ''}{place}{query[:1]}{values}"

    return _ADDRESS.sub(hide, text)


def repair_text(text: str) -> str:
    """Join surrogate pairs, and replace halves of them, which no file or database can contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


Pieces: TypeAlias = Mapping[str, Sequence[tuple[str, int]]]
"""Each piece of a form of a secret, with the forms that contain it and its place there."""


@lru_cache(maxsize=16)
def _prepare_forms(secrets: tuple[str, ...]) -> tuple[re.Pattern[str] | None, Pieces]:
    """Make what finds the forms of secrets, and what finds parts of them."""
    values = {value for secret in secrets for value in (secret, *_list_cores(secret))}
    forms = {form for value in values for form in _encode_secret(value)}
    ordered = sorted(forms, key=lambda form: (-len(form), form))
    pieces: dict[str, list[tuple[str, int]]] = {}
    for form in dict.fromkeys(_FILLING.sub("", form) for form in ordered):
        for at in range(len(form) - _PIECE + 1 if len(form) >= _PART else 0):
            pieces.setdefault(form[at : at + _PIECE], []).append((form, at))
    return re.compile("|".join(map(re.escape, ordered))) if ordered else None, pieces


def _list_cores(secret: str) -> Iterator[str]:
    """Yield what is secret without its prefix: of `Basic …` the password and the pair with it."""
    core = secret[prefix.end() :] if (prefix := _PREFIX.match(secret)) else secret
    if core != secret and len(core) >= _SHORTEST_VALUE:
        yield core
    if secret.lower().startswith("basic "):
        with suppress(ValueError):
            pair = base64.b64decode(core, validate=True).decode()
            yield from (v for v in (pair, pair.partition(":")[2]) if len(v) >= _SHORTEST_VALUE)


def _hide_parts(text: str, pieces: Pieces) -> str:
    """Replace long parts of secrets, also where a line break or a blank splits them."""
    plain = text.isascii() and "\\" not in text
    dense = "".join(text.split()) if plain else _FILLING.sub("", text)
    parts: list[tuple[int, int]] = []
    for start in range(0, len(dense) - _PIECE + 1, _PART - _PIECE + 1):
        for form, at in pieces.get(dense[start : start + _PIECE], ()):
            first = start - _count_shared(dense[:start][::-1], form[:at][::-1])
            last = start + _count_shared(dense[start:], form[at:])
            if last - first >= _LONG_PART or _mixes_letters(dense[first:last]):
                parts.append((first, last))
    if not parts:
        return text
    gaps = [(gap.start(), gap.end()) for gap in _FILLING.finditer(text)]
    edges = (0, *(edge for gap in gaps for edge in gap), len(text))
    places = [at for a, b in zip(edges[::2], edges[1::2], strict=True) for at in range(a, b)]
    for first, last in reversed(_join_overlapping(parts)):
        text = text[: places[first]] + HIDDEN + text[places[last - 1] + 1 :]
    return text


def _count_shared(text: str, form: str) -> int:
    """Count the characters with which both begin."""
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(text, form, strict=False))
    return sum(1 for _ in shared)


def _mixes_letters(part: str) -> bool:
    """Whether a part is long enough, and has letters and digits, which few words have."""
    has_digit = any(map(str.isdigit, part))
    return len(part) >= _PART and has_digit and any(map(str.isalpha, part))


def _join_overlapping(parts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for first, last in sorted(parts):
        if joined and first <= joined[-1][1]:
            first, last = joined[-1][0], max(last, joined.pop()[1])
        joined.append((first, last))
    return joined


def _encode_secret(secret: str) -> set[str]:
    """Return the forms in which a service may repeat a secret."""
    content = secret.encode(errors="surrogatepass")
    escaped = json.dumps(secret)[1:-1]
    forms = {
        *(secret, secret.upper(), secret.lower()),
        escaped,
        escaped.replace("/", r"\/"),
        json.dumps(escaped)[1:-1],  # JSON inside JSON
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        repr(f"'\"{secret}")[3:-1],  # as part of a text with both quotes
        html.escape(secret),
        content.hex(),
        content.hex().upper(),
    }
    for encoded in (quote(content, safe=""), quote(content), quote_plus(content)):
        forms |= {encoded, re.sub("%..", lambda match: match[0].lower(), encoded)}
    forms.add("".join(f"%{byte:02X}" for byte in content))
    return {*forms, *_encode_base64(content)}


def _encode_base64(content: bytes) -> set[str]:
    """Return the secret's part of Base64 text, wherever the secret begins in what was encoded."""
    forms = {base64.b64encode(content).decode(), base64.urlsafe_b64encode(content).decode()}
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + content).decode().rstrip("=")
        first = -(-before * 8 // 6)  # characters that also depend on what stands before
        last = (before + len(content)) * 8 // 6  # … and on what follows
        inner = encoded[first:last]
        if len(inner) >= _SHORTEST_VALUE:
            forms |= {inner, inner.replace("+", "-").replace("/", "_")}
    return {form.rstrip("=") for form in forms if len(form) >= _SHORTEST}
