"""Fetching files from a loopback server that cuts connections, changes editions and refuses."""

from __future__ import annotations

import gzip
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from routeprism import downloads
from routeprism.downloads import SOURCES, Collection, Source, collection, fetch_all, missing
from routeprism.errors import DownloadError, SpecError

CONTENT = bytes(range(256)) * 4000
DIGEST = hashlib.sha256(CONTENT).hexdigest()


class Shelf:
    """A server's file, and how it misbehaves."""

    def __init__(self) -> None:
        self.content = CONTENT
        self.tag = '"one"'
        self.cuts: list[int] = []
        """After how many bytes the next answers break off."""
        self.ranges = True
        self.status = 200
        self.asked: list[tuple[str, str | None, str | None]] = []
        """(path, Range, If-Range) of every request."""
        self.url = ""


@pytest.fixture
def shelf() -> Iterator[Shelf]:
    state = Shelf()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            expected, edition = self.headers.get("Range"), self.headers.get("If-Range")
            state.asked.append((self.path, expected, edition))
            if state.status != 200:
                self.send_error(state.status)
                return
            start = 0
            if expected and state.ranges and edition in (None, state.tag):
                start = int(expected.removeprefix("bytes=").rstrip("-"))
                if start >= len(state.content):
                    self.send_error(416)
                    return
            body = state.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", state.tag)
            self.end_headers()
            self.wfile.write(body[: state.cuts.pop(0)] if state.cuts else body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/files"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield state
    server.shutdown()
    server.server_close()
    thread.join()


def released(sha256: str | None = DIGEST, size: int | None = None) -> Collection:
    file = Source("history.json", "http://127.0.0.1:1/gone", size, sha256)
    return Collection("folder", "Terms: none", (file,))


def test_a_file_arrives_whole_and_checked(shelf: Shelf, tmp_path: Path) -> None:
    entries: list[tuple[str, int, int | None]] = []
    (result,) = fetch_all(
        released(), tmp_path, base_url=shelf.url, progress=lambda *message: entries.append(message)
    )
    assert result.path == tmp_path / "folder" / "history.json"
    assert result.path.read_bytes() == CONTENT
    assert (result.sha256, result.size, result.was_there, result.checked) == (
        DIGEST,
        len(CONTENT),
        False,
        True,
    )
    assert entries[-1] == ("history.json", len(CONTENT), len(CONTENT))
    assert [path.name for path in result.path.parent.iterdir()] == ["history.json"]
    assert shelf.asked == [("/files/history.json", None, None)]
    # Once there, nothing is asked again.
    (repetition,) = fetch_all(released(), tmp_path, base_url=shelf.url)
    assert (repetition.was_there, repetition.checked, len(shelf.asked)) == (True, True, 1)


def test_a_broken_connection_is_taken_up(shelf: Shelf, tmp_path: Path) -> None:
    shelf.cuts = [300_000, 200_000]
    (result,) = fetch_all(released(), tmp_path, base_url=shelf.url)
    assert result.path.read_bytes() == CONTENT
    assert [expected for _, expected, _ in shelf.asked] == [None, "bytes=300000-", "bytes=500000-"]
    assert shelf.asked[1][2] == '"one"'


def test_a_truncated_download_is_kept_and_resumed_by_the_next_call(
    shelf: Shelf, tmp_path: Path
) -> None:
    shelf.cuts = [100_000, 0, 0, 0]
    with pytest.raises(DownloadError, match="100,000 bytes are kept, and the same command resumes"):
        fetch_all(released(), tmp_path, base_url=shelf.url)
    folder = tmp_path / "folder"
    assert sorted(path.name for path in folder.iterdir()) == [
        "history.json.part",
        "history.json.part.tag",
    ]
    assert missing(released(), tmp_path)  # half a file is none
    shelf.asked.clear()
    (result,) = fetch_all(released(), tmp_path, base_url=shelf.url)
    assert shelf.asked == [("/files/history.json", "bytes=100000-", '"one"')]
    assert result.path.read_bytes() == CONTENT


def test_another_edition_is_not_mixed_in(shelf: Shelf, tmp_path: Path) -> None:
    shelf.cuts = [100_000, 0, 0, 0]
    with pytest.raises(DownloadError):
        fetch_all(released(), tmp_path, base_url=shelf.url)
    shelf.tag, shelf.content = '"two"', CONTENT[::-1]
    (result,) = fetch_all(released(None), tmp_path, base_url=shelf.url)
    assert result.path.read_bytes() == CONTENT[::-1]
    assert not result.checked


def test_a_server_without_ranges_starts_over(shelf: Shelf, tmp_path: Path) -> None:
    shelf.ranges, shelf.cuts = False, [100_000]
    (result,) = fetch_all(released(), tmp_path, base_url=shelf.url)
    assert result.path.read_bytes() == CONTENT


def test_a_part_that_is_all_is_used(shelf: Shelf, tmp_path: Path) -> None:
    part = tmp_path / "folder" / "history.json.part"
    part.parent.mkdir()
    part.write_bytes(CONTENT)
    (result,) = fetch_all(released(size=len(CONTENT)), tmp_path, base_url=shelf.url)
    assert result.path.read_bytes() == CONTENT
    # A part that is longer than the file belongs to another edition.
    result.path.unlink()
    part.write_bytes(CONTENT + b"more")
    (result,) = fetch_all(released(size=len(CONTENT)), tmp_path, base_url=shelf.url)
    assert result.path.read_bytes() == CONTENT


def test_a_damaged_file_never_gets_its_name(shelf: Shelf, tmp_path: Path) -> None:
    shelf.content = CONTENT[:-1] + b"!"
    with pytest.raises(DownloadError, match=f"Expected the SHA-256 {DIGEST} but got"):
        fetch_all(released(), tmp_path, base_url=shelf.url)
    assert list((tmp_path / "folder").iterdir()) == []


def test_a_file_of_the_users_own_is_not_overwritten(shelf: Shelf, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "history.json").write_bytes(b"mine")
    with pytest.raises(DownloadError, match="Move the file away"):
        fetch_all(released(), tmp_path, base_url=shelf.url)
    (tmp_path / "folder" / "history.json").unlink()
    packed = tmp_path / "folder" / "history.json.gz"
    packed.write_bytes(gzip.compress(CONTENT))
    (result,) = fetch_all(released(), tmp_path, base_url=shelf.url)
    assert (result.path, result.was_there, result.checked) == (packed, True, True)
    packed.write_bytes(gzip.compress(b"mine"))
    with pytest.raises(DownloadError, match=r"unpacked\. Move"):
        fetch_all(released(), tmp_path, base_url=shelf.url)
    assert shelf.asked == []


def test_a_refusal_says_what_to_do(shelf: Shelf, tmp_path: Path) -> None:
    shelf.status = 404
    with pytest.raises(DownloadError, match=r"refuses \(404 .*put it at .*history.json"):
        fetch_all(released(), tmp_path, base_url=shelf.url)
    shelf.status = 503
    with pytest.raises(DownloadError, match="the server said 503"):
        fetch_all(released(), tmp_path, base_url=shelf.url)


def test_offline_says_where_to_get_it_and_where_to_put_it(tmp_path: Path) -> None:
    with pytest.raises(DownloadError) as refused:
        fetch_all(released(), tmp_path)  # nobody listens at port 1
    text = str(refused.value)
    assert text.startswith("127.0.0.1 did not give history.json (")
    assert "Without a network: get http://127.0.0.1:1/gone on another machine and put it at" in text
    assert "from a mirror pass base_url=URL" in text


@pytest.mark.parametrize("name", ["personamem", "locomo", "longmemeval", "longmemeval:variant=m"])
def test_every_released_file_has_a_checksum(name: str) -> None:
    result = collection(name)
    assert result.licence
    for source in result.files:
        assert source.url.startswith("https://")
        assert source.sha256 is not None and len(source.sha256) == 64


@pytest.mark.realdata
def test_the_files_at_hand_are_the_ones_that_would_be_fetched(data: Path) -> None:
    for name in ("personamem", "locomo"):
        entry = SOURCES[name]
        assert missing(entry, data) == []
        # questions_32k.csv and locomo10.json lie there packed: compared unpacked.
        assert all(item.was_there and item.checked for item in fetch_all(entry, data))


def test_the_command_shows_the_licence_first(
    cli: Callable[..., Any], shelf: Shelf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(downloads.SOURCES, "locomo", released())  # type: ignore[attr-defined]
    where = ("--data", tmp_path / "data", "--base-url", shelf.url)
    ended = cli("fetch", "locomo", *where)
    assert (ended.code, ended.out) == (2, "")
    from_there = f"To fetch: history.json from {shelf.url}/history.json\n"
    assert ended.err.startswith(f"Licence: Terms: none\n{from_there}")
    assert ended.err.endswith("pass --yes to accept the licence and download\n")
    assert shelf.asked == []

    ended = cli("fetch", "locomo", *where, "--yes", "--json")
    assert ended.code == 0, ended.err
    (file,) = json.loads(ended.out)["files"]
    assert (file["sha256"], file["checked"], file["was_there"]) == (DIGEST, True, False)

    ended = cli("fetch", "locomo", *where)  # it is there: nothing to accept
    assert ended.code == 0
    assert "was there, 1,024,000 bytes, SHA-256 as expected" in ended.out
    assert "routeprism audit locomo --data" in ended.out


def test_wrong_calls_are_named(cli: Callable[..., Any], tmp_path: Path) -> None:
    assert "Did you mean 'locomo'?" in cli("fetch", "locomoo", "--data", tmp_path).err
    assert "Pass --data DIR" in cli("fetch", "locomo").err
    with pytest.raises(SpecError, match="with http or https"):
        fetch_all(released(), tmp_path, base_url="file:///etc")


def test_a_file_larger_than_its_stated_size_is_not_downloaded(shelf: Shelf, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"gives more than the 10 bytes that history\.json has"):
        fetch_all(released(size=10), tmp_path, base_url=shelf.url)
    assert list((tmp_path / "folder").iterdir()) == []
