"""tiktoken's own `o200k_base`, on ranks whose published checksum is verified."""

from __future__ import annotations

import base64
import gzip
import hashlib
from importlib.metadata import distribution
from pathlib import Path

import pytest
import tiktoken
import tiktoken_ext.openai_public as published


def packaged_ranks(address: str, expected_hash: str) -> dict[bytes, int]:
    """Stand in for tiktoken's download: the same file out of bpe-openai."""
    name = f"bpe_openai/data/{address.rsplit('/', 1)[-1]}.gz"
    packed = Path(str(distribution("bpe-openai").locate_file(name)))
    content = gzip.decompress(packed.read_bytes())
    assert hashlib.sha256(content).hexdigest() == expected_hash
    pairs = (line.split() for line in content.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


@pytest.fixture(scope="session")
def tiktokens() -> tiktoken.Encoding:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "load_tiktoken_bpe", packaged_ranks)
        return tiktoken.Encoding(**published.o200k_base())
