"""Secrets: five placements, services that send them back in every way, and not one in any file."""

from __future__ import annotations

import base64
import html
import json
import re
import sqlite3
import sys
import uuid
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote, quote_plus, unquote

import pytest

from routeprism.errors import RouteError
from routeprism.models.gateway import Endpoint
from routeprism.policies import Lineage, make_policy
from routeprism.policies.adapters.langmem import LangMem
from routeprism.policies.raw import Raw
from routeprism.records import Record
from routeprism.redaction import Redactor, hide_credentials

from . import fault_endpoint

SECRET = "Tr0ub4dor&3/p\"w+d-x'Y"  # noqa: S105
"""With characters that each encoding writes in its own way."""
RECORDS = [{"user": "u", "id": f"r{n}", "text": f"fact {n}"} for n in range(2)]
QUESTIONS = [
    {"user": "u", "id": f"q{n}", "text": f"Which {n}?", "options": ["one", "two"], "gold": "a"}
    for n in range(2)
]


def forms(secret: str) -> set[str]:
    """Write a secret as services do; Base64 with each of the three beginnings it can have."""
    content = secret.encode()
    plain = {secret, json.dumps(secret)[1:-1], html.escape(secret), quote(secret), content.hex()}
    plain.add(quote(secret, safe=""))
    for before in (b"", b"a", b"ab"):
        inner = base64.b64encode(before + content).decode()[4:-4]
        plain |= {inner, inner.replace("+", "-").replace("/", "_")}
    return plain


def echo(request: Any) -> str:
    """Give all that a request carried, in every form."""
    sent = f"{unquote(request.path)} {request.headers.get('authorization', '')}"
    scheme, _, credential = request.headers.get("authorization", "").partition(" ")
    if scheme == "Basic":
        sent += f" {base64.b64decode(credential).decode()}"
    ways = [sent, json.dumps(sent), quote(sent), base64.b64encode(sent.encode()).decode()]
    return " | ".join([*ways, html.escape(sent), sent.encode().hex(), request.path])


def header_safe(text: str) -> str:
    return text.encode("ascii", "replace").decode().replace("\n", " ")


def responses() -> dict[str, Any]:
    """Give every place of a reply in which a service can send back what it was sent."""

    def answer(make: Callable[[str], Any], status: str = "200 OK") -> Any:
        def respond(connection: Any, request: Any) -> None:
            body = json.dumps(make(echo(request))).encode()
            connection.sendall(fault_endpoint.reply(body, status))

        return respond

    def head(make: Callable[[str], bytes]) -> Any:
        def respond(connection: Any, request: Any) -> None:
            connection.sendall(make(header_safe(echo(request))))
            connection.close()

        return respond

    return {
        "answer": answer(fault_endpoint.completion),
        "refusal": answer(fault_endpoint.refusal),
        "error": answer(lambda text: {"error": {"message": text}}, "401 No"),
        "error-body": answer(lambda text: {"error": {"message": text, "code": text}}),
        "redirect": head(
            lambda text: (
                f"HTTP/1.1 302 Moved\r\nLocation: http://x/{quote(text)}?k={quote(text)}"
                "\r\nContent-Length: 0\r\n\r\n".encode()
            )
        ),
        "reason": head(lambda text: f"HTTP/1.1 500 {text}\r\nContent-Length: 0\r\n\r\n".encode()),
        "status": head(lambda text: f"{text}\r\n\r\n".encode()),
        "header": head(lambda text: f"HTTP/1.1 200 OK\r\n{text}\r\n\r\n".encode()),
    }


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Any]:
    with fault_endpoint.Endpoint(responses()) as running:
        yield running


Place = Callable[[pytest.MonkeyPatch, str], tuple[str, ...]]


def in_key(patch: pytest.MonkeyPatch, url: str) -> tuple[str, ...]:
    patch.setenv("OPENAI_API_KEY", SECRET)
    return ("--base-url", url)


def in_password(patch: pytest.MonkeyPatch, url: str) -> tuple[str, ...]:
    return ("--base-url", url.replace("://", f"://someone:{quote(SECRET, safe='')}@"))


def in_query(patch: pytest.MonkeyPatch, url: str) -> tuple[str, ...]:
    return ("--base-url", f"{url}?api-key={quote(SECRET, safe='')}")


def in_variable(patch: pytest.MonkeyPatch, url: str) -> tuple[str, ...]:
    patch.setenv("OPENAI_BASE_URL", url.replace("://", f"://{quote(SECRET, safe='')}@"))
    return ()


MODEL_PLACES: tuple[Place, ...] = (in_key, in_password, in_query, in_variable)


def assert_hidden(outputs: str, directory: Path) -> None:
    """Search everything that was printed or written."""
    content = outputs.encode()
    for path in directory.rglob("*"):
        if path.is_file():
            content += path.read_bytes()
    for store in directory.rglob("run.sqlite"):
        with closing(sqlite3.connect(store)) as connection:
            content += "\n".join(connection.iterdump()).encode()
    for page in directory.rglob("report.html"):
        text = page.read_text("utf-8")
        content += html.unescape(text).encode()
        for chunk in re.findall(r'id="rp-chunk-[^"]*">([^<]*)<', text):
            content += zlib.decompress(base64.b64decode(chunk), -zlib.MAX_WBITS)
    for form in forms(SECRET):
        at = content.find(form.encode())
        assert at < 0, f"{form!r} in {content[max(0, at - 80) : at + 80]!r}"


@pytest.mark.slow
@pytest.mark.parametrize("place", MODEL_PLACES, ids=lambda place: place.__name__)
def test_a_model_that_sends_secrets_back(
    cli: Callable[..., Any],
    own_data: Callable[..., Path],
    endpoint: Any,
    monkeypatch: pytest.MonkeyPatch,
    place: Place,
) -> None:
    data = own_data(RECORDS, QUESTIONS)
    outputs, codes = "", {}
    for name in responses():
        ended = cli(
            *("audit", data, "-p", "recent:k=1", "--model", "openai:m,retries=0"),
            *("--run", name, "--resamples", "100", *(() if len(codes) % 2 else ("--json",))),
            *place(monkeypatch, endpoint.url(name)),
        )
        assert "Traceback" not in ended.err
        codes[name] = ended.code
        outputs += ended.out + ended.err
    for name in ("answer", "error"):
        checked = cli("check", name, "--gate", "J>=0", "--junit", f"{name}.xml", "--json")
        exported = cli("report", name, "--answers", f"{name}.csv", "--tables", f"{name}-tables")
        outputs += "".join(end.out + end.err for end in (checked, exported))
    names = {"answer", "refusal"}
    assert codes == {name: 0 if name in names else 3 for name in responses()}
    assert "[hidden]" in outputs
    assert_hidden(outputs, Path.cwd())
    sent = [request for request in endpoint.requests if any(f in echo(request) for f in [SECRET])]
    assert sent, "the secret was never sent, so nothing was tested"


class Memory:
    """A memory service that sends back what it was sent."""

    def __init__(self) -> None:
        self.items: dict[str, list[Any]] = {}

    def answer(self, connection: Any, request: Any) -> None:
        _, name, verb = request.path.split("/")
        document = json.loads(request.raw.partition(b"\r\n\r\n")[2])
        items = self.items.setdefault(document["memory"], [])
        if verb == "add":
            items[:] = [
                {
                    "text": echo(request),
                    "kind": echo(request),
                    "sources": [document["record"]["id"]],
                }
            ]
        if verb == "add" and name != "items":
            responses()[name](connection, request)
            return
        reply = {"items": items, "state": echo(request)[:0]} if verb in ("search", "dump") else {}
        connection.sendall(fault_endpoint.reply(json.dumps(reply).encode()))


@pytest.mark.slow
def test_a_memory_service_that_sends_its_token_back(
    cli: Callable[..., Any], own_data: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_PASS", SECRET)  # a name that says nothing
    data = own_data(RECORDS, QUESTIONS)
    names = ("items", "error", "error-body", "redirect", "reason", "status", "header")
    with fault_endpoint.Endpoint(dict.fromkeys(names, Memory().answer)) as service:
        outputs, codes = "", []
        for name in names:
            policy = f"http:url=http://{service.origin}/{name},token=MEMORY_PASS"
            ended = cli("audit", data, "-p", policy, "--model", "reader", "--run", name)
            assert "Traceback" not in ended.err
            outputs += ended.out + ended.err + cli("report", name).out
            codes.append(ended.code)
    assert codes == [0, 3, 3, 3, 3, 3, 3]
    assert "[hidden]" in outputs
    assert_hidden(outputs, Path.cwd())


def test_a_program_that_prints_its_environment(
    cli: Callable[..., Any],
    own_data: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", SECRET)
    (tmp_path / "leak.py").write_text(
        "import os, sys\nsys.exit(os.environ['SOME_SERVICE_API_KEY'])"
    )
    policy = f"command:run={sys.executable} {tmp_path / 'leak.py'}"
    ended = cli("audit", own_data(RECORDS, QUESTIONS), "-p", policy, "--run", "run")
    assert ended.code == 3
    assert "and said: [hidden]" in ended.err
    assert_hidden(ended.out + ended.err, Path.cwd())


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("return Reply(os.environ['SOME_SERVICE_API_KEY'] + ' a', attempts=(KEY,))", 0),
        ("raise ModelError('the service replied ' + KEY, attempts=(KEY,))", 3),
        ("raise ValueError(KEY)", 3),
    ],
    ids=["reply", "model error", "any error"],
)
def test_a_model_of_ones_own_that_repeats_its_key(
    cli: Callable[..., Any],
    own_data: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    statement: str,
    code: int,
) -> None:
    monkeypatch.setenv("SOME_SERVICE_API_KEY", SECRET)
    name = f"repeating_{code}_{len(statement)}"
    Path(f"{name}.py").write_text(
        "import os\n"
        "from routeprism.errors import ModelError\n"
        "from routeprism.models import Reply\n"
        "KEY = os.environ['SOME_SERVICE_API_KEY']\n"
        "class Repeating:\n"
        "    name, settings, embedded, concurrency = 'repeating', {}, False, 1\n"
        f"    def answer(self, ask, /):\n        {statement}\n"
    )
    data = own_data(RECORDS, QUESTIONS)
    ended = cli("audit", data, "-p", "recent:k=1", "--model", f"{name}:Repeating", "--run", "run")
    assert ended.code == code, ended.err
    assert_hidden(ended.out + ended.err, Path("run"))
    with closing(sqlite3.connect(Path("run", "run.sqlite"))) as connection:
        assert "[hidden]" in "\n".join(connection.iterdump())


def test_what_a_model_makes_of_a_memory_is_stored_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """mem0 and LangMem ask a model themselves, and it may put what it was sent into an item."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    lineage = Lineage("memory")
    lineage.observe(Record("r", 0, "text"), {"1": f"likes {SECRET}"})
    assert lineage.block("1", f"likes {SECRET}").text == "likes [hidden]"
    assert lineage.block("1", f"likes {SECRET}").sources == {"r"}


@pytest.mark.parametrize("before", ["", "x" * 180])
def test_the_errors_of_a_memorys_own_model_are_shown_without_secrets(
    monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """Without the packages: what they raise is all that matters here."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    record = Record("r", 0, "[USER] text")

    def fail(*_: object, **__: object) -> None:
        raise ValueError(f"{before} wrong key: {SECRET}")

    manager = SimpleNamespace(invoke=fail)
    package = SimpleNamespace(create_memory_store_manager=lambda *_, **__: manager)
    monkeypatch.setitem(sys.modules, "langmem", package)  # type: ignore[arg-type]
    chat = SimpleNamespace(ChatOpenAI=lambda **_: None)
    monkeypatch.setitem(sys.modules, "langchain_openai", chat)  # type: ignore[arg-type]
    with pytest.raises(RouteError, match="LangMem failed on record 'r': ValueError") as langmem:
        LangMem(model="m")._manager(None, None, Endpoint("", "none"))(record)
    database = SimpleNamespace(connection=None)
    llm = SimpleNamespace(generate_response=fail, client=SimpleNamespace())
    memory = SimpleNamespace(add=fail, llm=llm, db=database, close=lambda: None, vector_store=None)
    opening = SimpleNamespace(from_config=lambda settings: memory)
    store = SimpleNamespace(QdrantClient=lambda place: None)
    for name, module in {
        "mem0.memory.main": SimpleNamespace(Memory=opening, uuid=uuid),
        "mem0.memory.telemetry": SimpleNamespace(),
        "qdrant_client": store,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)  # type: ignore[arg-type]
    with pytest.raises(RouteError, match="mem0 failed on record 'r': ValueError") as mem0:
        make_policy("mem0:model=m,base_url=http://127.0.0.1:9/v1,embed=words").build([record])
    for caught in (langmem, mem0):
        assert "Tr0" not in str(caught.value)


@pytest.mark.parametrize("policy", ["mem0", "langmem"])
@pytest.mark.parametrize("address", ["http://u:{0}@127.0.0.1:9/v1", "http://127.0.0.1:9/v1?k={0}"])
def test_credentials_do_not_become_part_of_a_policys_name(
    cli: Callable[..., Any], own_data: Callable[..., Path], policy: str, address: str
) -> None:
    spec = f"{policy}:model=m,base_url={address.format(quote(SECRET, safe=''))}"
    ended = cli("audit", own_data(RECORDS, QUESTIONS), "-p", spec, "--run", "run", "--yes")
    assert ended.code == 2
    assert "Expected base_url without user, password and query" in ended.err
    assert_hidden(ended.out + ended.err, Path.cwd())


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("-p", "recent:k=1", "--model", "openai:m,timeout=x"), 2),
        (("-p", "recent:k=1", "--model", "nobody"), 2),
        (("-p", "no-such-policy", "--model", "openai:m"), 2),
        (("-p", "missing_module:Memory", "--model", "openai:m"), 2),
    ],
)
def test_a_wrong_call_does_not_print_credentials(
    cli: Callable[..., Any], own_data: Callable[..., Path], arguments: tuple[str, ...], code: int
) -> None:
    address = f"http://someone:{quote(SECRET, safe='')}@127.0.0.1:9/v1?k={quote(SECRET, safe='')}"
    ended = cli("audit", own_data(RECORDS, QUESTIONS), *arguments, "--base-url", address)
    assert ended.code == code
    assert_hidden(ended.out + ended.err, Path.cwd())
    outcome = cli(
        "audit", own_data(RECORDS, QUESTIONS, "again"), "-p", f"http:url={address},timeout=x"
    )
    assert outcome.code == 2
    assert_hidden(outcome.out + outcome.err, Path.cwd())


def test_an_interrupted_command_is_printed_without_credentials(
    cli: Callable[..., Any], own_data: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Raw, "build", interrupt)
    address = f"http://someone:{quote(SECRET, safe='')}@127.0.0.1:9/v1"
    ended = cli("audit", own_data(RECORDS, QUESTIONS), "-p", "raw", "--base-url", address)
    assert ended.code == 130
    assert "--base-url http://[hidden]@127.0.0.1:9/v1" in ended.err
    assert_hidden(ended.out + ended.err, Path.cwd())


@pytest.mark.parametrize("before", ["", "Bearer ", "u:", "us:", "'\""])
def test_every_encoding_is_replaced(before: str) -> None:
    """Whatever stands before the secret in what a service encodes."""
    sent = f"{before}{SECRET} after"
    content = sent.encode()
    file_content = [
        sent,
        json.dumps(sent),
        json.dumps(json.dumps(sent)),
        repr(sent),
        html.escape(sent),
    ]
    file_content += [quote(sent), quote(sent, safe=""), quote_plus(sent), content.hex()]
    file_content += [base64.b64encode(content).decode(), base64.urlsafe_b64encode(content).decode()]
    for text in file_content:
        hidden = Redactor((SECRET,)).redact(text)
        assert "[hidden]" in hidden, text
        assert not any(form in hidden for form in forms(SECRET)), text


KEY = "sk-proj-Ab3dEf9hIjKlMn0pQrStUv"
CORE = KEY.removeprefix("sk-proj-")


@pytest.mark.parametrize(
    "echoed",
    [
        CORE,
        KEY[1:],
        KEY[3:],
        CORE[4:],
        f"{CORE[:12]}…{CORE[-4:]}",
        f"{KEY[:9]}\n{KEY[9:]}",
        f"{KEY[:9]}\\r\\n{KEY[9:]}",
        f"{KEY[:9]}\u200b{KEY[9:]}",
        "\n".join(KEY),
        base64.encodebytes(f"{'x' * 50}{CORE}{'y' * 50}".encode()).decode(),
        json.dumps(f"{CORE[:15]}\n{CORE[15:]}"),
        quote(f"Bearer {CORE}"),
        CORE.encode().hex()[6:],
        KEY.upper(),
        CORE[4:].lower(),
    ],
)
def test_a_part_of_a_key_is_replaced(echoed: str) -> None:
    """A service may repeat a key without its prefix, or cut, or over several lines."""
    hidden = Redactor((KEY,)).redact(f"before {echoed} after")
    assert "[hidden]" in hidden
    assert hidden.startswith("before ")
    assert hidden.endswith(" after")
    dense = re.sub(r"\s", "", hidden)
    texts = (CORE, CORE.encode().hex(), base64.b64encode(CORE.encode()).decode())
    texts += (CORE.upper(), CORE.lower())
    pieces = {text[at : at + 12] for text in texts for at in range(len(text) - 11)}
    assert not any(piece in dense for piece in pieces)


@pytest.mark.parametrize(
    ("secret", "echoed"),
    [
        ("Bearer xyz-4321", "xyz-4321"),
        ("bearer sk-abcdefgh", "abcdefgh"),
        (f"Basic {base64.b64encode(b'anna:wonderland').decode()}", "wonderland"),
        ("ghp_abcdefgh", "abcdefgh"),
    ],
)
def test_a_secret_is_replaced_without_the_prefix_of_its_kind(secret: str, echoed: str) -> None:
    assert Redactor((secret,)).redact(f"({echoed})") == "([hidden])"


def test_words_that_a_secret_contains_are_no_secret() -> None:
    text = "The development of a token, of 2026-11-18, needs a test-password and sk- keys."
    secrets = ("development-token", "test-password-2026-11", "token-development", "Bearer of news")
    assert Redactor(secrets).redact(text) == text


def test_ordinary_text_stays_as_it_is() -> None:
    text = "The key to the house, sk and all; see http://example.org/page, a b c"
    assert Redactor.configured("the").redact(text) == text  # too short to be told from a word
    assert hide_credentials(text) == text
    assert (
        hide_credentials("http://a:b@h/p?x=1&y=2#z")
        == "http://[hidden]@h/p?x=[hidden]&y=[hidden]#z"
    )


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
def test_the_password_of_a_proxy_is_a_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, f"http://someone:{quote(SECRET, safe='')}@proxy.example:3128")
    pair = base64.b64encode(f"someone:{SECRET}".encode()).decode()
    redacted = Redactor.configured().redact(f"{SECRET} {pair}")
    assert redacted == "[hidden] [hidden]"


@pytest.mark.slow
def test_shards_are_merged_without_the_credentials_that_no_run_contains(
    cli: Callable[..., Any], own_data: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("audit", own_data(RECORDS, QUESTIONS), "-p", "recent:k=1", "--model", "openai:m")
    with fault_endpoint.Endpoint(responses()) as endpoint:
        address = endpoint.url("answer").replace("://", f"://me:{quote(SECRET, safe='')}@")
        more = ("--base-url", address, "--resamples", "100", "-q", "--yes")
        shard = cli(*words, *more, "--shard", "1/1", "--run", "shard")
        refused = cli("merge", "shard", "--run", "merged", "-q")
        assert (shard.code, refused.code) == (0, 2)
        assert "set OPENAI_BASE_URL to that address and merge again" in refused.err
        monkeypatch.setenv("OPENAI_BASE_URL", address)
        merged = cli("merge", "shard", "--run", "merged", "-q")
        assert merged.code == 0, merged.err
    outputs = "".join(end.out + end.err for end in (shard, refused, merged))
    assert_hidden(outputs, Path.cwd())


@pytest.mark.parametrize("secret", [SECRET, "abcd&efgh-ijkl", "abcd@efgh-ijkl", "abcd?efgh=ijkl#m"])
def test_a_secret_in_an_address_is_replaced_as_a_whole(secret: str) -> None:
    """An address is cut at characters that a secret may contain."""
    for text in (f"see http://h/p?k={secret}&x=1", f"http://{secret}@h/p", f"http://h/{secret}"):
        line = Redactor((secret,)).redact_line(text)
        pieces = [piece for piece in re.split(r"[&@?#=/]", secret) if len(piece) > 3]
        assert not any(piece in line for piece in pieces), line


def test_a_secret_is_replaced_before_a_text_is_cut() -> None:
    for at in range(170, 215):
        text = Redactor((SECRET,)).redact_line("x" * at + SECRET)
        assert "Tr0" not in text
        assert "x'Y" not in Redactor((SECRET,)).redact_line(SECRET + "x" * at, end=True)
