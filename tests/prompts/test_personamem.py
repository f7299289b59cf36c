"""Every PersonaMem fact-recall pair can be matched, and tiktoken agrees that it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import tiktoken

from routeprism.orders import parse_schedule
from routeprism.policies import make_policy
from routeprism.prompts import FILLERS, Filler, Matched, Prompt, Provenance, categorical, match
from routeprism.records import load_benchmark
from routeprism.routes import Pair, pair_routes, trace_case

pytestmark = pytest.mark.realdata

REPLAY = parse_schedule("replay")


def fact_pairs(data: Path, policy: str) -> list[Pair]:
    result = make_policy(policy)
    return [
        pair
        for case in load_benchmark("personamem", data).cases
        for pair in pair_routes(trace_case(case, [result], [REPLAY]))
        if pair.question.kind == "fact-recall"
    ]


def offsets(tiktokens: tiktoken.Encoding, prompt: Prompt) -> tuple[int, int, int]:
    """Give the total, and how many tokens stand before evidence and question, by tiktoken alone."""
    ids = tiktokens.encode_ordinary(prompt.text)
    parts = []
    for span in (prompt.evidence_span, prompt.question_span):
        head = prompt.text[: span.begins]
        size = len(tiktokens.encode_ordinary(head))
        # A head whose own tokens are the prompt's first tokens ends where a token ends.
        assert tiktokens.decode_bytes(ids[:size]) == head.encode()
        parts.append(size)
    return len(ids), parts[0], parts[1]


@pytest.mark.slow
@pytest.mark.parametrize("filler", FILLERS)
@pytest.mark.parametrize("policy", ["focal", "recent:k=3"])
def test_all_146_fact_pairs_are_matched_exactly_and_aligned(
    data: Path, tiktokens: tiktoken.Encoding, policy: str, filler: Filler
) -> None:
    result = fact_pairs(data, policy)
    assert len(result) == 146  # PROTOCOL §3
    for pair in result:
        drafts = [
            categorical(exposure.blocks, pair.question)
            for exposure in (pair.forward_exposure, pair.route_exposure)
        ]
        exact, aligned = match(drafts, "exact", filler), match(drafts, "aligned", filler)
        assert isinstance(exact, Matched), exact
        assert isinstance(aligned, Matched), aligned
        totals = [len(tiktokens.encode_ordinary(prompt.text)) for prompt in exact.prompts]
        assert totals == [exact.prompts[0].tokens] * 2
        forward, replay = (offsets(tiktokens, prompt) for prompt in aligned.prompts)
        assert forward == replay
        for prompts in (exact.prompts, aligned.prompts):
            assert [prompt.evidence for prompt in prompts] == [draft.context for draft in drafts]
            assert len({prompt.text[prompt.question_span.start :] for prompt in prompts}) == 1


@pytest.mark.parametrize("provenance", ["gated", "neutral", "placebo"])
def test_the_provenance_variants_of_every_fact_pair_are_matched(
    data: Path, provenance: Provenance
) -> None:
    for pair in fact_pairs(data, "recent:k=3"):
        drafts = [
            categorical(exposure.blocks, pair.question, provenance=provenance)
            for exposure in (pair.forward_exposure, pair.route_exposure)
        ]
        assert isinstance(match(drafts, "aligned"), Matched)
