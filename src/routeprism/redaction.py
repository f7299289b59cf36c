"""Secrets taken out of text that comes from outside, before it is stored or shown.

A service can repeat what it was sent: in an answer, in an error, in a header, plain or encoded. A
`Redactor` knows the secrets that are configured, and replaces each of them and its usual encodings.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
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
_ADDRESS = re.compile(r"(?i)\b(https?://)([^\s/?#'\"<>]*@)?([^\s?'\"<>]*)(\?[^\s#'\"<>]*)?")
_SHORT_LINE = 200


@dataclass(frozen=True, slots=True)
class Redactor:
    """Replaces secrets, and their encodings, in text."""

    secrets: tuple[str, ...] = ()
    _forms: re.Pattern[str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        forms = {form for secret in self.secrets for form in _encode_secret(secret)}
        ordered = sorted(forms, key=lambda form: (-len(form), form))
        pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None
        object.__setattr__(self, "_forms", pattern)

    def __repr__(self) -> str:
        return f"Redactor({len(self.secrets)} secrets)"

    @classmethod
    def configured(cls, *secrets: str) -> Redactor:
        """Remember these secrets, and those in the environment."""
        long_secrets = (secret for secret in secrets if len(secret) >= _SHORTEST)
        return cls(tuple(sorted({*long_secrets, *environment_secrets()})))

    def redact(self, text: str) -> str:
        """Replace every secret in a text and nothing else, such as in an answer."""
        return text if self._forms is None else self._forms.sub(HIDDEN, text)

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


def _encode_secret(secret: str) -> set[str]:
    """Return the forms in which a service may repeat a secret."""
    content = secret.encode(errors="surrogatepass")
    escaped = json.dumps(secret)[1:-1]
    forms = {
        secret,
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
