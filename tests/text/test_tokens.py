"""The tokeniser is tiktoken's: compared on ranks whose published checksums are verified."""

from __future__ import annotations

import base64
import gzip
import hashlib
from importlib.metadata import distribution
from pathlib import Path
from random import Random
from typing import get_args

import pytest
import tiktoken
import tiktoken_ext.openai_public as published
from hypothesis import given, settings
from hypothesis import strategies as st

from routeprism.records import load_benchmark
from routeprism.text import tokens

ENCODINGS = get_args(tokens.Encoding)

PUBLISHED = {
    # tiktoken_ext/openai_public.py prints these beside the addresses of the rank files.
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
}


def packaged_ranks(address: str, expected_hash: str) -> dict[bytes, int]:
    """Stand in for tiktoken's download: the same file out of bpe-openai, its checksum verified."""
    name = address.rsplit("/", 1)[-1]
    # Found without importing the package, whose import warns of deprecated calls.
    packed = Path(str(distribution("bpe-openai").locate_file(f"bpe_openai/data/{name}.gz")))
    content = gzip.decompress(packed.read_bytes())
    digest = hashlib.sha256(content).hexdigest()
    assert digest == expected_hash == PUBLISHED[name.removesuffix(".tiktoken")]
    pairs = (line.split() for line in content.splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


@pytest.fixture(scope="module")
def reference() -> dict[str, tiktoken.Encoding]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(published, "load_tiktoken_bpe", packaged_ranks)
        return {name: tiktoken.Encoding(**getattr(published, name)()) for name in ENCODINGS}


ALPHABETS = (
    "abcdefgh ABCDE '",
    " \t\n\r\x0b\x0c\x85\xa0\u2003\u2028\u3000a.",
    "0123456789 ,.-/\n",
    "'sS'tT're'VE'll dD don't ",
    ".,;:!?()[]{}<>/\\|\n\r _-",
    "äöüßéñçœÅǅʰªa\u0301\u0308\u200d\u200b ",
    "我今天去了北京市。日本語のテキストひらがなカタカナ 한국어",
    "😀👩🏽\u200d🚀🇨🇭❤️✅ ok",
    "עבריתعربيहिन्दीไทยΩЖ२٣Ⅷ½",
    "\x00\x01\x1c\x1f\x7f\ufeff\ufffd\U0010ffff a\n",
)
WORDS = (
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|endofprompt|>",
    " one",
    " x",
    "\r\n",
    "https://",
    "  ",
)


def fuzz_texts(count: int) -> list[str]:
    rng = Random(20240607)  # noqa: S311 - reproducible text, no secret
    texts = []
    for _ in range(count):
        alphabets = rng.sample(ALPHABETS, rng.randint(1, 3))
        length = rng.choice((1, 3, 10, 40, 200))
        pieces = [rng.choice(rng.choice(alphabets)) for _ in range(length)]
        for _ in range(rng.randint(0, 2)):
            pieces.insert(rng.randint(0, length), rng.choice(WORDS))
        texts.append("".join(pieces))
    return texts


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_thousands_of_odd_texts_have_tiktokens_tokens(
    reference: dict[str, tiktoken.Encoding], encoding: tokens.Encoding
) -> None:
    differing = [
        text
        for text in fuzz_texts(6000)
        if tokens.encode(text, encoding) != reference[encoding].encode_ordinary(text)
    ]
    assert differing == []


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=300, deadline=None)
@given(text=st.text(max_size=60))
def test_any_text_has_tiktokens_tokens(
    reference: dict[str, tiktoken.Encoding], encoding: tokens.Encoding, text: str
) -> None:
    expected = reference[encoding].encode_ordinary(text)
    assert tokens.encode(text, encoding) == expected
    assert tokens.count(text, encoding) == len(expected)


@pytest.mark.realdata
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_personamem_document_has_tiktokens_tokens(
    data: Path, reference: dict[str, tiktoken.Encoding], encoding: tokens.Encoding
) -> None:
    benchmark = load_benchmark("personamem", data)
    records = [record for case in benchmark.cases for record in case.pool.records]
    assert len(records) == 195  # 5×4 + 19×5 + 11×6 + 2×7: PROTOCOL §3
    for record in records:
        expected = reference[encoding].encode_ordinary(record.text)
        assert tokens.encode(record.text, encoding) == expected


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_that_spells_a_special_token_is_ordinary_text(encoding: tokens.Encoding) -> None:
    assert tokens.count("<|endoftext|>", encoding) > 1


def test_boundary_counts_the_tokens_of_so_many_bytes() -> None:
    ids = tokens.encode("records end one one\n")  # five tokens: the words and the line break
    assert [tokens.boundary(ids, size) for size in (0, 7, 11, 15, 19, 20)] == [0, 1, 2, 3, 4, 5]
    assert tokens.boundary(ids, 9) is None
    assert tokens.boundary(ids, 21) is None
    assert tokens.boundary(reversed(ids), 5) == 2


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40))
def test_boundary_agrees_with_tiktokens_offsets(
    reference: dict[str, tiktoken.Encoding], text: str
) -> None:
    tiktokens = reference["o200k_base"]
    ids = tiktokens.encode_ordinary(text)
    ends, end = [0], 0
    for token in ids:
        end += len(tiktokens.decode_single_token_bytes(token))
        ends.append(end)
    for size in range(end + 2):
        expected = ends.index(size) if size in ends else None
        assert tokens.boundary(ids, size) == expected
