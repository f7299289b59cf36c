"""A file of LongMemEval-S's full size and shape: same fields, same counts, words that mean nothing.

500 questions with 38 to 62 sessions each (48 on average), 2 to 16 turns a session, user turns a
tenth of the text, 30 abstention questions, evidence named as in the release: about 265 MiB.
Run: python benchmarks/longmemeval_generate.py FILE [QUESTIONS]
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TYPES = {
    "single-session-user": (64, 6),
    "single-session-assistant": (56, 0),
    "single-session-preference": (30, 0),
    "multi-session": (121, 12),
    "temporal-reasoning": (127, 6),
    "knowledge-update": (72, 6),
}
"""Question type → how many with evidence, how many abstentions."""
EVIDENCE = {"multi-session": (2, 6), "temporal-reasoning": (1, 4), "knowledge-update": (2, 2)}
"""Question type → the least and the greatest number of evidence sessions; one for the others."""


class Speech:
    """Sentences over a vocabulary whose word frequencies fall as those of a language do."""

    def __init__(self, draw: random.Random) -> None:
        starts = "b br c ch d dr f g gr h j k l m n p pr qu r s sh st t th tr v w y".split()
        vowels = "a e i o u ai ea ee oa oo ou".split()
        ends = "b ck d f g l ll m n nd ng nt p r rd rk s sh st t th x".split()
        words = {
            draw.choice(starts) + draw.choice(vowels) + draw.choice(ends) + tail
            for tail in ("", "er", "ing", "ed", "ly", "ness", "able", "ous", "ist", "ment")
            for _ in range(3000)
        }
        self.words = sorted(words)
        draw.shuffle(self.words)
        common = (
            "the to and of a in is that it for you with on as are this be or can your my".split()
        )
        every = common + self.words
        weights = [1 / (rank + 3) for rank in range(len(every))]
        drawn = draw.choices(every, weights, k=400_000)
        self.asked = self._sentences(draw, drawn, 3000, 6, 18)
        self.told = self._sentences(draw, drawn, 6000, 8, 26)

    def _sentences(
        self, draw: random.Random, drawn: list[str], number: int, least: int, most: int
    ) -> list[str]:
        made = []
        for _ in range(number):
            at = draw.randrange(len(drawn) - most)
            words = drawn[at : at + draw.randint(least, most)]
            made.append(" ".join(words).capitalize() + draw.choice((".", ".", ".", "?", "!")))
        return made


def session(draw: random.Random, speech: Speech, evidence: str = "") -> list[dict[str, Any]]:
    """Make the turns of one session; evidence is said in a user turn, which is marked."""
    number = 12 if draw.random() < 0.55 else draw.randint(2, 16)
    turns: list[dict[str, Any]] = []
    for at in range(number):
        if at % 2 == 0:
            said = " ".join(draw.choices(speech.asked, k=draw.randint(1, 4)))
            turns.append({"role": "user", "content": said})
        else:
            told = draw.choices(speech.told, k=draw.randint(8, 21))
            listed = "\n\n".join(f"{n}. {line}" for n, line in enumerate(told, start=1))
            turns.append(
                {"role": "assistant", "content": listed if at % 4 == 1 else " ".join(told)}
            )
    if evidence:
        turns[0]["content"] += f" {evidence}"
        turns[0]["has_answer"] = True
    return turns


def date(minutes: int) -> str:
    """Write a time of May 2023 as the release does."""
    day, minute = divmod(minutes, 24 * 60)
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[day % 7]
    return f"2023/05/{day + 1:02d} ({weekday}) {minute // 60:02d}:{minute % 60:02d}"


def question(draw: random.Random, speech: Speech, kind: str, identity: str) -> dict[str, Any]:
    """Make one question with its own history."""
    number = min(62, max(38, round(draw.gauss(48, 4))))
    evidence = draw.randint(*EVIDENCE.get(kind, (1, 1)))
    about = draw.sample(speech.words, 4)
    places = set(draw.sample(range(number), evidence))
    ids = [
        f"answer_{identity[:8]}_{at}" if at in places else f"ultrachat_{draw.randrange(10**6)}_{at}"
        for at in range(number)
    ]
    times = sorted(draw.sample(range(29 * 24 * 60), number))
    clue = f"I keep my {about[0]} {about[1]} next to the {about[2]} {about[3]}."
    return {
        "question_id": identity,
        "question_type": kind,
        "question": f"What do I keep next to the {about[2]} {about[3]}?",
        "question_date": date(29 * 24 * 60 + 600),
        "answer": evidence if kind == "multi-session" else f"{about[0]} {about[1]}",
        "answer_session_ids": [ids[at] for at in sorted(places)],
        "haystack_dates": [date(minutes) for minutes in times],
        "haystack_session_ids": ids,
        "haystack_sessions": [
            session(draw, speech, clue if at in places else "") for at in range(number)
        ],
    }


def questions(limit: int, seed: int = 20260910) -> Iterator[dict[str, Any]]:
    """Make so many questions, the types mixed."""
    draw = random.Random(seed)  # noqa: S311
    speech = Speech(draw)
    plan = [
        (kind, ending)
        for kind, (plain, abstentions) in TYPES.items()
        for ending in [""] * plain + ["_abs"] * abstentions
    ]
    draw.shuffle(plan)
    for at, (kind, ending) in enumerate(plan[:limit]):
        yield question(draw, speech, kind, f"{draw.getrandbits(20):05x}{at:03x}{ending}")


def write(path: Path, limit: int = 500) -> int:
    """Write the file as the release is written; give its size."""
    with path.open("w", encoding="utf-8") as stream:
        for at, one in enumerate(questions(limit)):
            stream.write("[\n" if at == 0 else ",\n")
            written = json.dumps(one, indent=4, ensure_ascii=False)
            stream.write("\n".join("    " + line for line in written.split("\n")))
        stream.write("\n]")
    return path.stat().st_size


def main() -> None:
    """Write the file that is named."""
    if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
        sys.exit("Expected FILE [QUESTIONS]")
    size = write(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 500)
    print(f"{sys.argv[1]}: {size / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
