"""Downloads of benchmark files: resumed, checked, into a directory that the user names.

A file grows as `NAME.part` and takes its name only when it is complete and its SHA-256 is right, so
that no loader ever reads half a file.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from routeprism import specs
from routeprism.errors import DownloadError, SpecError, nearest
from routeprism.files import open_part, owns_part, replace_file

__all__ = [
    "SOURCES",
    "Collection",
    "Fetched",
    "Source",
    "address",
    "collection",
    "fetch_all",
    "missing",
]

_BLOCK = 1 << 18
_LARGEST_FILE = 16 << 30
"""Bytes after which a download of unknown size stops."""
_ATTEMPTS = 4
"""How often a broken connection is resumed before the download fails."""
_TIMEOUT = 30.0
"""Seconds of silence after which a connection counts as broken."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file and where it comes from."""

    name: str
    """Its name in the data directory."""
    url: str
    size: int | None = None
    """Its size in bytes, if known."""
    sha256: str | None = None
    """The digest of the file as delivered, if known."""


@dataclass(frozen=True, slots=True)
class Collection:
    """The files of one benchmark."""

    folder: str
    """Its path in the data directory, where the loader looks for it."""
    licence: str
    """A note for the user before the first download."""
    files: tuple[Source, ...]


def _read_sources() -> Mapping[str, Collection]:
    text = Path(__file__).with_name("downloads.json").read_text(encoding="utf-8")
    return {
        name: Collection(
            entry["folder"], entry["licence"], tuple(Source(**file) for file in entry["files"])
        )
        for name, entry in json.loads(text).items()
    }


SOURCES = _read_sources()
"""The benchmarks that can be fetched, by name."""


def collection(benchmark: str) -> Collection:
    """Return the files of a benchmark that a user named."""
    spec = specs.parse(benchmark)
    plain = "longmemeval" if spec.text == "longmemeval:variant=s" else spec.text
    if plain not in SOURCES:
        raise SpecError(
            f"There is nothing to fetch for '{benchmark}'. {nearest(benchmark, SOURCES)}"
        )
    return SOURCES[plain]


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of fetching one file."""

    path: Path
    url: str
    sha256: str
    size: int
    was_there: bool
    """Whether it was there already."""
    checked: bool
    """Whether its SHA-256 is known and is right."""


def _present(folder: Path, source: Source) -> Path | None:
    """Find the file, plain or packed."""
    plain = source.name.removesuffix(".gz")
    for name in dict.fromkeys((source.name, plain, f"{plain}.gz")):
        if (folder / name).is_file():
            return folder / name
    return None


def address(source: Source, base_url: str | None = None) -> str:
    """Build the address of a file; `base_url` has the files under their names."""
    return f"{base_url.rstrip('/')}/{source.name}" if base_url else source.url


def missing(collection: Collection, data: Path) -> list[Source]:
    """Return the files that are not there yet."""
    return [file for file in collection.files if _present(data / collection.folder, file) is None]


def fetch_all(
    collection: Collection,
    data: Path,
    *,
    base_url: str | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> list[Fetched]:
    """Get every file of a collection; what is there and right is left alone.

    `base_url` names another place that has the files under their names.
    """
    folder = data / collection.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(f"{folder} cannot be made: {error.strerror or error}") from error
    return [_fetch(source, folder, base_url, progress) for source in collection.files]


def _fetch(
    source: Source,
    folder: Path,
    base_url: str | None,
    progress: Callable[[str, int, int | None], None] | None,
) -> Fetched:
    url = address(source, base_url)
    if urlsplit(url).scheme not in ("http", "https"):
        raise SpecError(f"Expected an address with http or https but got {url!r}")
    present = _present(folder, source)
    if present is not None:
        return _accept_file(present, source, url)
    download = _Download(url, folder / source.name, source.size, progress)
    try:
        download.run()
        size, digest = download.part.stat().st_size, _digest(download.part)
        if source.sha256 not in (None, digest):
            download.discard()
            raise DownloadError(
                f"Expected the SHA-256 {source.sha256} but got {digest} from {url}: the file was "
                f"damaged in transit, or there is a new edition. Nothing was kept"
            )
        download.part.replace(download.path)
        download.discard()
    except OSError as error:
        raise DownloadError(
            f"{download.path} cannot be written: {error.strerror or error}"
        ) from error
    return Fetched(download.path, url, digest, size, False, source.sha256 is not None)


def _accept_file(path: Path, source: Source, url: str) -> Fetched:
    """Accept a file that is there, as it was delivered or packed otherwise."""
    digest = _digest(path)
    as_delivered = path.name == source.name
    if source.sha256 is None or (as_delivered and digest == source.sha256):
        checked = source.sha256 is not None
    elif as_delivered:
        raise DownloadError(
            f"Expected the SHA-256 {source.sha256} but got {digest} for {path}. Move the file away "
            f"to download the released one"
        )
    elif path.suffix == ".gz" and (unpacked := _digest(path, unpack=True)) != source.sha256:
        raise DownloadError(
            f"Expected the SHA-256 {source.sha256} but got {unpacked} for {path}, unpacked. Move "
            f"the file away to download the released one"
        )
    else:
        checked = path.suffix == ".gz"
    return Fetched(path, url, digest, path.stat().st_size, True, checked)


def _digest(path: Path, *, unpack: bool = False) -> str:
    digest = hashlib.sha256()
    try:
        stream: IO[bytes]
        with gzip.open(path) if unpack else path.open("rb") as stream:  # type: ignore[assignment]
            while block := stream.read(_BLOCK):
                digest.update(block)
    except (OSError, EOFError, zlib.error) as error:
        raise DownloadError(f"{path} cannot be read: {error}") from error
    return digest.hexdigest()


class _Download:
    """One download. The part that has arrived is stored beside the file, and a retry resumes it."""

    def __init__(
        self,
        url: str,
        path: Path,
        size: int | None,
        progress: Callable[[str, int, int | None], None] | None,
    ) -> None:
        self.url, self.path, self.size = url, path, size
        self.part = path.with_name(f"{path.name}.part")
        self._tag = path.with_name(f"{path.name}.part.tag")
        """Which edition of the file the part belongs to."""
        self._progress = progress

    def run(self) -> None:
        """Download the rest of the file; a broken connection is resumed where it ended."""
        reason = ""
        for _ in range(_ATTEMPTS):
            before = self._have()
            try:
                if self._go_on():
                    return
                reason = "the connection ended early"
            except urllib.error.HTTPError as error:
                if error.code < 500 and error.code != 429:
                    raise self._explain_refusal(error) from error
                reason = f"the server said {error.code}"
            except (
                urllib.error.URLError,
                http.client.HTTPException,
                TimeoutError,
                OSError,
            ) as error:
                if isinstance(error, OSError) and error.filename:
                    raise  # a file of ours, not the network
                reason = str(getattr(error, "reason", error)) or type(error).__name__
            if self._have() == before == 0:
                break  # nothing ever came: waiting for more of it is no use
        raise self._unreachable(reason)

    def _have(self) -> int:
        return self.part.stat().st_size if owns_part(self.part) else 0

    def _go_on(self) -> bool:
        """Request the rest; return whether the file is complete."""
        have = self._have()
        tag = self._tag.read_text(encoding="utf-8") if owns_part(self._tag) else ""
        headers = {"User-Agent": "routeprism", "Accept-Encoding": "identity"}
        if have:
            headers["Range"] = f"bytes={have}-"
            if tag:
                headers["If-Range"] = tag
        request = urllib.request.Request(self.url, headers=headers)  # noqa: S310 (checked)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310
                return self._receive(answer, have)
        except urllib.error.HTTPError as error:
            if error.code != 416 or not have:
                raise
            error.close()
        # There is nothing after what we have: all of it is here, or it is of another edition.
        if self.size == have:
            return True
        self.discard()
        return False

    def _receive(self, answer: http.client.HTTPResponse, have: int) -> bool:
        resumed = answer.status == 206 and bool(have)
        have = have if resumed else 0
        declared = answer.headers.get("Content-Length", "")
        total = have + int(declared) if declared.isdecimal() else self.size
        limit = self.size or total or _LARGEST_FILE
        if (total or 0) > limit:
            raise self._too_large(limit)
        tag = answer.headers.get("ETag", "")
        if not tag.startswith("W/"):
            replace_file(self._tag, tag.encode())
        with open_part(self.part, resume=resumed) as stream:
            while block := answer.read(_BLOCK):
                have += len(block)
                if have > limit:
                    raise self._too_large(limit)
                stream.write(block)
                if self._progress is not None:
                    self._progress(self.path.name, have, total)
            stream.flush()
            os.fsync(stream.fileno())
        return total is None or have >= total

    def discard(self) -> None:
        """Remove the part and its tag."""
        self.part.unlink(missing_ok=True)
        self._tag.unlink(missing_ok=True)

    def _too_large(self, limit: int) -> DownloadError:
        """Stop a download that continues beyond its stated size; a part of it is of no use."""
        self.discard()
        return DownloadError(
            f"{self.url} gives more than the {limit:,} bytes that {self.path.name} has: it is a "
            f"different file. Nothing was kept"
        )

    def _explain_refusal(self, error: urllib.error.HTTPError) -> DownloadError:
        return DownloadError(
            f"{self.url}: the server refuses ({error.code} {error.reason}). The file may have "
            f"moved: get it by hand and put it at {self.path}, or name a mirror with base_url"
        )

    def _unreachable(self, reason: str) -> DownloadError:
        have = self._have()
        partial = (
            f" {have:,} bytes are kept, and the same command resumes from there." if have else ""
        )
        return DownloadError(
            f"{urlsplit(self.url).hostname} did not give {self.path.name} ({reason}).{partial} "
            f"Without a network: get {self.url} on another machine and put it at {self.path}; "
            f"behind a proxy set HTTPS_PROXY; from a mirror pass base_url=URL"
        )
