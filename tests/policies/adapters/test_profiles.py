"""Profiles: an existing API audited with a TOML file and no line of Python."""

from __future__ import annotations

import json
import re
import runpy
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import routeprism
from routeprism.errors import RouteError, SpecError
from routeprism.policies import Event, make_policy
from routeprism.policies.adapters.http import Http
from routeprism.policies.own import closing_memory
from routeprism.records import Record, load_benchmark
from routeprism.routes.conformance import check_adapter

from ...doubles import LoopbackServer

EXAMPLES = Path(__file__).parents[3] / "examples"
PROFILE = EXAMPLES / "profiles" / "notes.toml"
SERVICE = runpy.run_path(str(EXAMPLES / "notes_service" / "server.py"))
TOKEN = "tok/SECRET+12345=67890"  # noqa: S105
SAMPLE = load_benchmark("sample", None)
LARGE = tuple(case for case in SAMPLE.cases if len(case.pool) > 5)[:2]
"""Two pools of which the service keeps a part: it keeps four records."""
SMALL = replace(SAMPLE, cases=LARGE)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)
    monkeypatch.setenv("ROUTEPRISM_PROFILE_ENV", "NOTES_TOKEN")
    service = SERVICE["NoteService"](TOKEN)
    thread = threading.Thread(target=service.serve_forever, args=(0.01,))
    thread.start()
    yield service
    service.shutdown()
    thread.join()
    service.server_close()


class Truth:
    """What the notes service does, said in Python, with the sources that it does not report."""

    offline = True

    def __init__(self) -> None:
        self.records: list[Record] = []

    def add(self, record: Record) -> None:
        self.records = [*self.records, record][-4:]

    def retained(self) -> list[Record]:
        return self.records

    def expose(self, query: str) -> list[tuple[str, str]]:
        words = set(query.lower().split())
        newest = self.records[::-1]
        hits = sorted(newest, key=lambda hit: -len(words & set(hit.text.lower().split())))
        return [(hit.text, hit.id) for hit in hits[:3]]


@pytest.mark.slow
def test_a_strangers_service_is_audited_with_thirty_lines(
    stranger: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ingestion lags by 300 ms, ids and pages are its own, and it wants a token."""
    assert len(PROFILE.read_text().splitlines()) <= 30
    policy = Http(stranger.url, profile=edited(tmp_path))
    audit = routeprism.audit(SMALL, policy, schedules=["replay"], resamples=100, run=tmp_path / "r")
    truth = routeprism.audit(
        SMALL, Truth, schedules=["replay"], resamples=100, run=tmp_path / "truth"
    )
    for quantity in ("J", "V_changed", "retained_changed", "context_length.route"):
        assert audit.value(quantity).estimate == truth.value(quantity).estimate, quantity
    assert 0 < audit.value("J").estimate < 1
    assert any("stored verbatim: construction by a model was not tested" in n for n in audit.notes)
    own, true = (_traces(tmp_path / name) for name in ("r", "truth"))
    assert own.keys() == true.keys()
    for route, (retained, events) in own.items():
        assert retained == true[route][0]
        order = json.loads(route[1])
        assert events == [
            event
            for at, position in enumerate(order)
            for event in _expected(order, route[0], at, position)
        ]
    assert stranger.accounts == {}  # nothing is left behind
    _assert_absent(tmp_path, capsys.readouterr().out + str(audit) + policy.name + policy.origin())


def _expected(order: list[int], user: str, at: int, position: int) -> list[list[Any]]:
    """Give the events of the truth: each record is added, and the fifth-newest leaves."""
    ids = {case.pool.user: [record.id for record in case.pool.records] for case in LARGE}[user]
    added = [["add", ids[position], ids[position], at]]
    return added + ([["evict", ids[order[at - 4]], ids[position], at]] if at >= 4 else [])


def _traces(run: Path) -> Mapping[tuple[str, str], tuple[list[str], list[Any]]]:
    with closing(sqlite3.connect(run / "run.sqlite")) as connection:
        rows = connection.execute("SELECT user, arrivals, retained, events FROM traces").fetchall()
    return {
        (user, order): (sorted(json.loads(content)), json.loads(events or "[]"))
        for user, order, content, events in rows
    }


def _assert_absent(directory: Path, text: str) -> None:
    """The token appears in no file and in no output, neither plain nor encoded."""
    forms = {TOKEN, "SECRET", TOKEN.encode().hex(), "dG9rL1NFQ1JFV"}
    assert not [form for form in forms if form in text]
    for file in directory.rglob("*"):
        if file.is_file():
            content = file.read_bytes()
            assert not [form for form in forms if form.encode() in content], file


def test_the_walk_says_what_each_pointer_found(stranger: Any, tmp_path: Path) -> None:
    steps = [*Http(stranger.url, profile=edited(tmp_path)).walk()]
    assert [step.name for step in steps if not step.passed] == []
    values = {step.name: step.message for step in steps}
    assert "each build has its own {memory}" in values["headers"]
    assert "2 items; of the first, '/uid' 'n-" in values["list"]
    assert "all among the listed items" in values["search"]
    assert values["reset"] == "nothing is left"


def edited(directory: Path, *changes: tuple[str, str]) -> str:
    """Write the profile with some lines changed, and patience for a busy machine."""
    text = PROFILE.read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    text = text.replace("patience = 1.0", "patience = 30.0")
    path = directory / "edited.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("old", "new", "step", "message"),
    [
        (
            '"/data/notes"',
            '"/notes"',
            "list, empty",
            "'/notes' leads to nothing; the reply has at ",
        ),
        ('"/data/notes"', '"/total"', "list, empty", "'/total' leads to the number 0, and not"),
        ('"/content"', '"/body"', "ingestion", "item 0: text: '/body' leads to nothing; the item"),
        (
            '"/content"',
            '""',
            "ingestion",
            "leads to an object with the keys 'uid', 'content', 'seq'",
        ),
        ("{ note = { content", "{ notes = { content", "add", "add: http"),
        (
            "POST /accounts",
            "POST /account",
            "add",
            'add: the service replied 404 Not Found: {"detail"',
        ),
        ("/find?q", "/fund?q", "search", "search: the service replied 405"),
        ("[wait]\ninterval = 0.05\npatience = 1.0\n", "", "ingestion", "[wait] with a request"),
        (
            'id = "/uid"\ntext = "/snippet"',
            'text = "/uid"',
            "search",
            "hits are not among the",
        ),
        ("?page={page}", "?side={page}", "list", ""),
    ],
)
def test_the_walk_names_what_is_wrong(
    stranger: Any, tmp_path: Path, old: str, new: str, step: str, message: str
) -> None:
    policy = Http(stranger.url, profile=edited(tmp_path, (old, new)))
    *_, last = policy.walk()
    if message:
        assert (last.name, last.passed) == (step, False)
        assert message in last.message
        assert last.fix
        checks = {check.name: check for check in check_adapter(policy)}
        assert checks[f"profile, {step}"].outcome == "failed"
        assert checks["contract"].message == f"not checked, because profile, {step} has not passed"
        return
    with pytest.raises(RouteError, match=r"list: page 2 repeats page 1; is \{page\} what"):
        policy.build(LARGE[0].pool.records)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[search]", "[serch]", "edited.toml: serch: there is no such key. Did you mean 'search'"),
        ('items = "/hits"\n', "", "[search] items: expected a text, but it is missing"),
        ('"/hits"', '"hits"', "[search] items: expected a JSON pointer such as '/hits' but got"),
        ("{text}", "{txt}", "[add] {txt}: there is no such placeholder here"),
        ("{text}", "${HOME}", "[add] {HOME}: there is no such placeholder here"),
        ("{text}", "{query}", "[add] {query}: there is no such placeholder here"),
        (
            "Bearer ${NOTES_TOKEN}",
            "Bearer abc",
            "[headers] Authorization: a secret does not",
        ),
        ("POST /", "POSTED /", "[add] request: expected a method and a path"),
        ('pages = "page"', 'pages = "pages"', "[list] pages: expected page, offset, cursor or"),
        ('pages = "page"', 'pages = "offset"', "[list] request: pages = 'offset' needs {offset}"),
        ('url = "', 'url = "http://me:pw@', "Expected an address"),
        ('url = "', "url = ", "is not TOML"),
    ],
)
def test_a_wrong_profile_is_refused_with_table_and_key(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(SpecError) as error:
        make_policy(f"http:profile={edited(tmp_path, (old, new))}")
    assert message in str(error.value)
    assert "pw@" not in str(error.value)


def test_a_profile_without_any_separation_is_refused(tmp_path: Path) -> None:
    path = edited(tmp_path, ("{memory}", "me"), ('[reset]\nrequest = "DELETE /accounts/me"\n', ""))
    with pytest.raises(SpecError, match="nothing separates one build from the next"):
        make_policy(f"http:profile={path}")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "GET /accounts/{memory}/find",
            "GET /accounts/me/find",
            "[search] request: it reads all memories: use {memory}, as [add] does",
        ),
        (
            "POST /accounts/{memory}",
            "POST /accounts/me",
            "[add] body: [list] reads {memory}, but [add] has none",
        ),
    ],
)
def test_requests_of_different_memories_are_refused(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    with pytest.raises(SpecError, match=re.escape(message)):
        make_policy(f"http:profile={edited(tmp_path, (old, new))}")


def test_a_missing_variable_and_a_missing_file_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTES_TOKEN", raising=False)
    with pytest.raises(SpecError, match="needs the environment variable NOTES_TOKEN, which is not"):
        make_policy(f"http:profile={PROFILE},env=NOTES_TOKEN").build(())
    with pytest.raises(SpecError, match=r"profile=no\.toml cannot be read"):
        make_policy("http:profile=no.toml")
    with pytest.raises(SpecError, match="Expected url=ADDRESS, or profile=FILE"):
        make_policy("http")


def test_a_profile_reads_only_the_variables_that_the_user_names(
    stranger: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A profile may come from someone else, and its service would get the value."""
    monkeypatch.setenv("ROUTEPRISM_PROFILE_ENV", "OTHER,NOTES")
    profile = edited(tmp_path, ("NOTES_TOKEN", "OPENAI_API_KEY"))
    monkeypatch.setenv("OPENAI_API_KEY", TOKEN)
    for permitted in ("", ",env=NOTES_TOKEN", ",env=OPENAI_API_KEY_2+NOTES_TOKEN"):
        with pytest.raises(SpecError) as error:
            make_policy(f"http:url={stranger.url},profile={profile}{permitted}").build(())
        assert "reads the environment variable OPENAI_API_KEY" in str(error.value)
        assert "add env=OPENAI_API_KEY to the policy" in str(error.value)
        assert TOKEN not in str(error.value)
    assert stranger.requests == []
    permitted = f"http:url={stranger.url},profile={profile},env=NOTES_TOKEN+OPENAI_API_KEY"
    memory: Any = make_policy(permitted).build(())
    memory.close()
    monkeypatch.setenv("ROUTEPRISM_PROFILE_ENV", "OTHER, OPENAI_API_KEY")
    memory = make_policy(f"http:url={stranger.url},profile={profile}").build(())
    memory.close()
    assert stranger.requests


def test_a_dry_run_counts_every_page_of_the_lists_that_are_waited_for(stranger: Any) -> None:
    """Looks 0, 0.05, 0.15 and 0.25 seconds after an add; each reads a page and an empty one."""
    waiting = Http(stranger.url, profile=str(PROFILE)).client.waiting
    assert waiting is not None
    assert (waiting.requests, waiting.seconds) == (4 * 2, 0.25)


@pytest.mark.parametrize(
    ("wait", "advice"),
    [
        ("", "Add a table [wait]"),
        ("[wait]\ninterval = 0.05\npatience = 1.0\n", "Raise stable in [wait] above the longest"),
    ],
)
def test_an_item_that_comes_late_names_the_setting(
    stranger: Any, tmp_path: Path, wait: str, advice: str
) -> None:
    profile = edited(tmp_path, ("[wait]\ninterval = 0.05\npatience = 1.0\n", wait))
    record = Record("r", 0, "[USER] I planted a tree.")
    with closing_memory(Http(stranger.url, profile=profile).build([record])) as memory:
        (account,) = stranger.received
        late = {"uid": "n-late", "content": "late", "seq": 99}
        stranger.accounts.setdefault(account, []).append(late)
        with pytest.raises(RouteError, match=re.escape(advice)):
            memory.retained()


class Late(Truth):
    """One of two items came after the wait for it."""

    def counts(self) -> Mapping[str, int]:
        return {"observed_items": 2, "uncertain_late": 1}


def test_late_items_of_an_audit_name_the_setting() -> None:
    audit = routeprism.audit(SMALL, Late, schedules=["replay"], resamples=100)
    (note,) = [note for note in audit.notes if "after their write had seemed complete" in note]
    assert "raise stable and patience in [wait], or add this table" in note


@pytest.mark.parametrize(
    ("setting", "place"),
    [
        ("token=NOTES_TOKEN", "the token in [headers]"),
        ("settle=2", "a table [wait]"),
        ("bulk=true", "a table [bulk]"),
        ("idempotent=true", "idempotent = true in [add]"),
    ],
)
def test_a_setting_that_a_profile_has_itself_is_refused(setting: str, place: str) -> None:
    with pytest.raises(SpecError, match=re.escape(f"Expected {place} of the profile, not ")):
        make_policy(f"http:profile={PROFILE},{setting}")


def test_a_dry_run_sends_nothing(stranger: Any) -> None:
    policy = Http(stranger.url, profile=str(PROFILE))
    routeprism.audit(SMALL, policy, dry_run=True)
    assert stranger.requests == []


def test_a_service_that_repeats_the_token_does_not_leak_it(
    stranger: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger.echo = True
    stranger.token = TOKEN[::-1]
    with pytest.raises(RouteError, match="list: the service replied 401") as error:
        Http(stranger.url, profile=str(PROFILE)).build(LARGE[0].pool.records)
    assert "SECRET" not in str(error.value)


def test_a_repeated_command_sends_nothing_and_repeats_its_notes(
    stranger: Any, tmp_path: Path
) -> None:
    stranger.lag = 0
    policy = Http(stranger.url, profile=edited(tmp_path))
    item = replace(SAMPLE, cases=LARGE[:1])
    first = routeprism.audit(item, policy, resamples=100, run=tmp_path / "run")
    sent = len(stranger.requests)
    audit = routeprism.audit(item, policy, resamples=100, run=tmp_path / "run")
    assert len(stranger.requests) == sent
    assert [note for note in audit.notes if "stored verbatim" in note] == [
        note for note in first.notes if "stored verbatim" in note
    ]
    assert audit.rows == first.rows


def test_builds_separated_by_a_reset_are_made_one_at_a_time(stranger: Any, tmp_path: Path) -> None:
    stranger.lag = 0
    policy = Http(stranger.url, profile=edited(tmp_path, ("{memory}", "shared")))
    assert policy.exclusive
    for case in LARGE[:2]:
        memory: Any = policy.build(case.pool.records)
        assert memory.retained() == {record.id for record in case.pool.records[-4:]}
        memory.close()
    assert stranger.accounts == {}


def test_data_that_a_shared_memory_contains_is_never_deleted_unasked(
    stranger: Any, tmp_path: Path
) -> None:
    """Neither an audit nor a check sends [reset] to a memory that someone filled."""
    stranger.lag = 0
    own = [{"uid": "n-1", "content": "Someone's own note.", "seq": 1}]
    stranger.accounts["shared"] = list(own)
    path = edited(tmp_path, ("{memory}", "shared"))
    policy = Http(stranger.url, profile=path)
    for build in (policy.build, lambda _: policy.open()):
        with pytest.raises(RouteError, match="contains 1 item before any record was added, and a"):
            build(LARGE[0].pool.records)
    *_, last = policy.walk()
    assert (last.name, last.passed) == ("shared memory", False)
    assert stranger.accounts["shared"] == own
    assert "DELETE" not in {method for method, _ in stranger.requests}
    allowed = Http(stranger.url, profile=path, discard=True)
    assert allowed.name == policy.name
    allowed.build(LARGE[0].pool.records).close()
    assert stranger.accounts == {}


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ('"/content"', '"/body"', "correct [list]: request, items"),
        ("Bearer ", "Token ", "correct [headers], or the environment variables"),
        ('"/hits"', '"/hit"', "correct [search]: request, items"),
    ],
)
def test_the_walk_advises_to_correct_the_table_that_is_wrong(
    stranger: Any, tmp_path: Path, old: str, new: str, fix: str
) -> None:
    stranger.lag = 0
    *_, last = Http(stranger.url, profile=edited(tmp_path, (old, new))).walk()
    assert not last.passed
    assert fix in last.fix


def test_check_adapter_prints_one_line_for_all_checks_that_were_not_tried(
    stranger: Any, cli: Callable[..., Any]
) -> None:
    done = cli("check-adapter", f"http:profile={PROFILE},url=http://127.0.0.1:9")
    assert done.code == 1
    assert done.out.splitlines()[-2].startswith(
        "–      contract, users, isolation, ids, provenance"
    )
    assert done.out.count("not checked, because profile, list, empty has not passed") == 1


def test_the_walk_says_that_the_service_is_not_there(stranger: Any) -> None:
    *_, last = Http("http://127.0.0.1:9", profile=str(PROFILE)).walk()
    assert last.fix == "start the service, or correct url"


# --- other shapes of an API ------------------------------------------------------------------


class Plain(LoopbackServer):
    """Answers with a function from (method, path, JSON or text) to (status, value)."""

    def __init__(self, answer: Callable[[str, str, Any], Any]) -> None:
        super().__init__(_PlainHandler)
        self.answer = answer
        self.heard: list[tuple[str, str, Any]] = []


class _PlainHandler(BaseHTTPRequestHandler):
    server: Plain

    def __getattr__(self, name: str) -> Any:
        if name.startswith("do_"):
            return lambda: self._respond(name[3:])
        raise AttributeError(name)

    def _respond(self, method: str) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        is_json = (self.headers.get("Content-Type") or "").startswith("application/json")
        request = json.loads(raw) if raw and is_json else raw.decode()
        self.server.heard.append((method, self.path, request))
        arguments = self.server.answer(method, self.path, request)
        status, arguments = arguments if isinstance(arguments, tuple) else (200, arguments)
        body = arguments if isinstance(arguments, bytes) else json.dumps(arguments).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def plain() -> Iterator[Callable[..., Plain]]:
    started: list[Plain] = []

    def start(answer: Callable[[str, str, Any], Any]) -> Plain:
        started.append(Plain(answer))
        return started[-1]

    yield start
    for service in started:
        service.stop()


FACTS = tuple(Record(f"r{n}", n, f"fact number {n}") for n in range(5))
HOSTILE = (
    Record("../../admin?x=1#y", 0, '"}, "admin": true, {"x": "{memory} ${HOME} {{text}}'),
    Record("..", 1, "a\r\nX-Injected: yes\r\n\r\nGET / HTTP/1.1"),
    Record("%2e%2e/ \u202e", 2, "\x00\u2028 юникод 🙂"),
)


def test_hostile_records_change_neither_path_nor_query_nor_body(
    plain: Callable[..., Plain], tmp_path: Path
) -> None:
    stored: list[Any] = []

    def answer(method: str, path: str, request: Any) -> Any:
        if method == "PUT":
            stored.append(request)
        return {"items": [{"id": str(n), "text": item["text"]} for n, item in enumerate(stored)]}

    service = plain(answer)
    path = tmp_path / "p.toml"
    path.write_text(
        f"""
        url = "{service.url}/base"
        [add]
        request = "PUT /m/{{memory}}/records/{{id}}?name={{id}}&t={{time}}"
        body = {{ text = "{{text}}", quoted = "<{{text}}>", braces = "{{{{text}}}}" }}
        [list]
        request = "GET /m/{{memory}}"
        items = "/items"
        id = "/id"
        text = "/text"
        [search]
        request = "POST /m/{{memory}}/search"
        body = {{ q = "{{query}}", k = "{{size}}" }}
        items = "/items"
        id = "/id"
        text = "/text"
        """
    )
    memory: Any = Http(profile=str(path)).build(HOSTILE)
    assert memory.retained() == {record.id for record in HOSTILE}
    puts = [(path, request) for method, path, request in service.heard if method == "PUT"]
    for (sent, body), record in zip(puts, HOSTILE, strict=True):
        route, _, query = sent.partition("?")
        assert route.startswith("/base/m/routeprism-")
        assert route.count("/") == 5  # the id stayed one segment
        assert not route.endswith("/..")
        assert query.startswith("name=")
        assert query.count("&") == 0  # no timestamp, so no parameter
        assert body == {
            "text": record.text,
            "quoted": f"<{record.text}>",
            "braces": "{text}",
        }
    memory.expose('what"?&x=1')
    assert service.heard[-1][2] == {"q": 'what"?&x=1', "k": 10}


@pytest.mark.parametrize("size", [2, 50], ids=["pages as declared", "shorter pages"])
@pytest.mark.parametrize("pages", ["page", "offset", "cursor", "last"])
def test_every_kind_of_pagination_reads_everything(
    plain: Callable[..., Plain], tmp_path: Path, pages: str, size: int
) -> None:
    """The service gives two items at once, whatever the profile declares."""
    texts: list[str] = []

    def answer(method: str, path: str, request: Any) -> Any:
        if method == "POST":
            texts.append(request["text"])
            return {}
        value = path.rpartition("=")[2] if "=" in path else ""
        start = {
            "page": lambda: int(value) * 2,
            "offset": lambda: int(value),
            "cursor": lambda: int(value or 0),
            "last": lambda: int(value) + 1 if value else 0,
        }[pages]()
        items = [{"n": n, "t": texts[n]} for n in range(start, min(start + 2, len(texts)))]
        more = {"next": start + 2} if start + 2 < len(texts) else {}
        return {"items": items, **(more if pages == "cursor" else {})}

    service = plain(answer)
    kind = "cursor" if pages == "last" else pages
    path = tmp_path / "p.toml"
    path.write_text(
        f"""
        url = "{service.url}"
        [add]
        request = "POST /{{memory}}"
        body = {{ text = "{{text}}" }}
        [list]
        request = "GET /{{memory}}?at={{{kind}}}"
        pages = "{kind}"
        size = {size}
        first = 0
        {'next = "/next"' if pages == "cursor" else ""}
        items = "/items"
        id = "/n"
        text = "/t"
        [search]
        request = "GET /{{memory}}/search?q={{query}}"
        items = "/items"
        id = "/n"
        text = "/t"
        """
    )
    memory: Any = Http(profile=str(path)).build(FACTS)
    assert memory.retained() == {record.id for record in FACTS}
    assert memory.events() == tuple(Event("add", f"r{n}", f"r{n}", n) for n in range(5))


PAGED = """
url = "{url}"
[add]
request = "POST /{{memory}}"
body = {{ text = "{{text}}" }}
[list]
request = "GET /{{memory}}/items?page={{page}}"
pages = "page"
items = "/items"
id = "/n"
text = "/t"
[search]
request = "GET /{{memory}}/search?q={{query}}"
items = "/items"
id = "/n"
text = "/t"
[reset]
request = "{reset}"
"""


class Pages:
    """Gives two items a page; beyond the last page it refuses, or gives the last page again."""

    def __init__(self, beyond: str) -> None:
        self.texts: dict[str, str] = {}
        self.beyond = beyond

    def __call__(self, method: str, path: str, request: Any) -> Any:
        place = urlsplit(path)
        if method == "DELETE":
            for key in [path.rpartition("/")[2]] if request == "" else request["ids"]:
                del self.texts[key]
            return {}
        if method == "POST":
            key = f"k{len(self.texts)}"
            self.texts[key] = request["text"]
            return {}
        items = [{"n": key, "t": text} for key, text in self.texts.items()]
        if "search" in path:
            return {"items": items}
        page = int(place.query.rpartition("=")[2])
        last = max(1, -(-len(items) // 2))
        if page > last and self.beyond == "refuses":
            return 404, {"detail": "Invalid page."}
        page = min(page, last)
        return {"items": items[2 * page - 2 : 2 * page]}


@pytest.mark.parametrize("beyond", ["refuses", "repeats"])
def test_a_service_without_a_page_after_the_last_is_read_to_its_end(
    plain: Callable[..., Plain], tmp_path: Path, beyond: str
) -> None:
    service = plain(Pages(beyond))
    path = tmp_path / "p.toml"
    path.write_text(PAGED.format(url=service.url, reset="DELETE /{memory}"))
    memory: Any = Http(profile=str(path)).build(FACTS)
    assert memory.retained() == {record.id for record in FACTS}


@pytest.mark.parametrize("form", ["whole address", "path", "query"])
def test_links_to_the_next_page_are_followed_below_the_same_address(
    plain: Callable[..., Plain], tmp_path: Path, form: str
) -> None:
    pages = Pages("refuses")

    def answer(method: str, path: str, request: Any) -> Any:
        place = urlsplit(path)
        if not place.path.endswith("/items"):
            return pages(method, path, request)
        number = int(place.query.rpartition("=")[2] or 1)
        reply = pages(method, f"{place.path}?page={number}", request)
        more = f"?x={{a}}&page={number + 1}" if 2 * number < len(pages.texts) else None
        whole = {"whole address": f"{service.url}{place.path}", "path": place.path, "query": ""}
        return {**reply, "next": more and whole[form] + more}

    service = plain(answer)
    path = tmp_path / "p.toml"
    text = PAGED.format(url=service.url, reset="DELETE /{memory}")
    text = text.replace('pages = "page"', 'pages = "link"\nnext = "/next"')
    path.write_text(text.replace("?page={page}", ""))
    memory: Any = Http(profile=str(path)).build(FACTS)
    assert memory.retained() == {record.id for record in FACTS}
    service.answer = lambda *call: {"items": [{"n": 1, "t": "x"}], "next": "http://127.0.0.1:9/x"}
    with pytest.raises(RouteError, match=r"list: the next page is at http://127\.0\.0\.1:9/x, whi"):
        memory.retained()


@pytest.mark.parametrize("reset", ["DELETE /items/{item}", "DELETE /items"])
def test_a_service_that_deletes_items_only_is_emptied_item_by_item(
    plain: Callable[..., Plain], tmp_path: Path, reset: str
) -> None:
    pages = Pages("repeats")
    service = plain(pages)
    path = tmp_path / "p.toml"
    text = PAGED.format(url=service.url, reset=reset)
    path.write_text(text if "{item}" in reset else text + 'body = { ids = "{items}" }\n')
    memory: Any = Http(profile=str(path)).build(FACTS)
    assert len(pages.texts) == len(FACTS)
    memory.close()
    assert pages.texts == {}
    path.write_text(path.read_text().replace('id = "/n"\n', ""))
    with pytest.raises(SpecError, match=r"\[reset\] \{items?\}: it needs \[list\] id"):
        make_policy(f"http:profile={path}")


def test_hits_that_the_list_does_not_contain_fail_the_route(
    plain: Callable[..., Plain], tmp_path: Path
) -> None:
    """A pointer to the next page that leads to nothing would cut the list without a word."""
    pages = Pages("repeats")
    service = plain(pages)
    path = tmp_path / "p.toml"
    text = PAGED.format(url=service.url, reset="DELETE /{memory}")
    path.write_text(
        text.replace('pages = "page"', 'pages = "cursor"\nnext = "/nxt"').replace(
            "page={page}", "after={cursor}&page=1"
        )
    )
    memory: Any = Http(profile=str(path)).build(FACTS)
    with pytest.raises(RouteError, match=r"3 of 5 hits are not among the listed items.*every page"):
        memory.expose("fact?")


@pytest.mark.parametrize(("ending", "verbatim"), [("", 1), (" All of it is true.", 0)])
def test_texts_that_were_only_joined_count_as_stored_verbatim(
    plain: Callable[..., Plain], tmp_path: Path, ending: str, verbatim: int
) -> None:
    pages = Pages("repeats")

    def merge(method: str, path: str, request: Any) -> Any:
        reply = pages(method, path, request)
        if method == "POST":
            texts = " // ".join(pages.texts.values()).removesuffix(ending) + ending
            pages.texts = {f"k{texts.count('//')}": texts}
        return reply

    service = plain(merge)
    path = tmp_path / "p.toml"
    path.write_text(PAGED.format(url=service.url, reset="DELETE /{memory}"))
    memory: Any = Http(profile=str(path)).build(FACTS[:2])
    assert [block.sources for block in memory.list_blocks()] == [frozenset({"r0", "r1"})]
    assert memory.counts() == {"stored_items": 1, "verbatim_items": verbatim}


def test_reported_sources_a_job_and_a_form(plain: Callable[..., Plain], tmp_path: Path) -> None:
    """The service names its own ids of what was added, and is done after three polls."""
    stored: list[str] = []
    polls: dict[str, int] = {}

    def answer(method: str, path: str, request: Any) -> Any:
        if path == "/spaces":
            return {"space": {"id": 17}}
        if path.startswith("/spaces/17/files"):
            assert 'filename="record.txt"' in request
            stored.append(request.split("\r\n\r\n")[2].rsplit("\r\n--")[0])
            return [{"document": f"doc-{len(stored)}", "job": f"job-{len(stored)}"}]
        if path.startswith("/jobs/"):
            polls[path] = polls.get(path, 0) + 1
            return {"state": "done" if polls[path] == 3 else "running"}
        facts = [
            {"kind": "fact", "body": {"summary": text.upper()}, "from": [f"doc-{n}", "doc-1"]}
            for n, text in enumerate(stored, start=1)
        ]
        return [{"kind": "folder"}, *facts]

    service = plain(answer)
    path = tmp_path / "p.toml"
    path.write_text(
        f"""
        url = "{service.url}"
        [open]
        request = "POST /spaces"
        body = {{ name = "{{memory}}" }}
        capture = {{ space = "/space/id" }}
        [add]
        request = "POST /spaces/{{space}}/files"
        form = {{ title = "{{id}}" }}
        files = {{ upload = "{{text}}" }}
        id = "/0/document"
        capture = {{ job = "/0/job" }}
        [wait]
        request = "GET /jobs/{{job}}"
        done = "/state"
        values = ["done"]
        failed = ["failed"]
        interval = 0.001
        [list]
        request = "GET /spaces/{{space}}/facts"
        items = ""
        only = {{ "/kind" = "fact" }}
        text = "/body/summary"
        sources = "/from"
        [search]
        request = "GET /spaces/{{space}}/facts?q={{query}}"
        items = ""
        only = {{ "/kind" = "fact" }}
        text = "/body/summary"
        sources = "/from"
        """
    )
    records = [Record("a", 0, "tea"), Record("b", 1, "dog")]
    memory: Any = Http(profile=str(path)).build(records)
    assert [(block.text, sorted(block.sources)) for block in memory.list_blocks()] == [
        ("DOG", ["a", "b"]),
        ("TEA", ["a"]),
    ]
    assert memory.expose("?").sources == {"a", "b"}
    assert set(polls.values()) == {3}
    with pytest.raises(RouteError, match="wait: ingestion failed: '/state' is 'failed'"):
        service.answer = lambda method, path, request: (
            {"state": "failed"} if path.startswith("/jobs/") else answer(method, path, request)
        )
        stored.clear()
        Http(profile=str(path)).build(records)
