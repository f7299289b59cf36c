"""Compare how the pages read with an earlier commit: words, length of sentences, passive verbs.

`python tools/readability.py COMMIT` writes `docs/readability.md`. Sentences are counted in prose
alone: code, tables, headings, lists of links and HTML are left out. A sentence counts as passive if
a form of *to be* is followed, at once or after an adverb, by a past participle (a word in -ed, or
an irregular one of the list below). This is a rule of thumb, the same for both versions.
"""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "readability.md"
UNREAD = ("docs/reproduction.md", "docs/readability.md", "docs/reference/")
IRREGULAR = (
    "begun born bought bound broken brought built burnt caught chosen come cut dealt done drawn "
    "driven eaten fallen felt forgotten found frozen given gone grown heard held hidden hurt kept "
    "known laid led left lent lost made meant met paid put read run said seen sent set shown shut "
    "spent split spoken stolen stood taken taught thought thrown told understood won worn written"
)
PASSIVE = re.compile(
    r"\b(?:is|are|was|were|be|been|being)\s+(?:\w+ly\s+|not\s+|never\s+|also\s+|then\s+)?"
    rf"(?:\w+ed|{'|'.join(IRREGULAR.split())})\b",
    re.IGNORECASE,
)
_LEFT_OUT = re.compile(
    r"^```.*?^```$|^<!--.*?-->|^(?: {4}|\||#|!\[|>)[^\n]*$", re.DOTALL | re.MULTILINE
)
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z«\"“])")
_SPAN = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


@dataclass(frozen=True)
class Reading:
    """What was counted in one page."""

    words: int = 0
    sentences: int = 0
    sentence_words: int = 0
    passive: int = 0

    def __add__(self, other: Reading) -> Reading:
        return Reading(
            self.words + other.words,
            self.sentences + other.sentences,
            self.sentence_words + other.sentence_words,
            self.passive + other.passive,
        )

    def format(self) -> list[str]:
        """Give words, mean length of a sentence and share of passive sentences."""
        if not self.sentences:
            return [f"{self.words:,}" if self.words else "–", "–", "–"]
        mean = self.sentence_words / self.sentences
        return [f"{self.words:,}", f"{mean:.1f}", f"{100 * self.passive / self.sentences:.0f}%"]


def read(text: str) -> Reading:
    """Count the words and the sentences of a page."""
    prose = _LINK.sub(r"\1", _SPAN.sub("NAME", _LEFT_OUT.sub("\n", text)))
    sentences = []
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*] |\d+\. )", prose):
        plain = " ".join(re.sub(r"[*_]{1,2}|^[-*] |^\d+\. |<[^>]+>", "", paragraph).split())
        sentences += [text for text in _END.split(plain) if len(text.split()) > 2]
    return Reading(
        len(text.split()),
        len(sentences),
        sum(len(sentence.split()) for sentence in sentences),
        sum(bool(PASSIVE.search(sentence)) for sentence in sentences),
    )


def list_pages() -> list[str]:
    """List the pages that are written by hand."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    pages = ["README.md", *(path.relative_to(ROOT).as_posix() for path in docs)]
    return [page for page in pages if not page.startswith(UNREAD)]


def read_before(commit: str, page: str) -> Reading:
    """Read a page as it was in a commit; nothing is counted if it did not exist."""
    command = ["git", "show", f"{commit}:{page}"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return read(shown.stdout) if shown.returncode == 0 else Reading()


def main() -> None:
    """Write the page."""
    commit = sys.argv[1]
    before = {page: read_before(commit, page) for page in list_pages()}
    after = {page: read((ROOT / page).read_text(encoding="utf-8")) for page in list_pages()}
    lines = []
    for page in after:
        cells = [page.removeprefix("docs/"), *before[page].format(), *after[page].format()]
        lines.append(f"| {' | '.join(cells)} |")
    totals = [sum(each.values(), Reading()).format() for each in (before, after)]
    lines.append(f"| **all** | {' | '.join([*totals[0], *totals[1]])} |")
    PAGE.write_text(TEXT.format(commit=commit, table="\n".join(lines)), encoding="utf-8")


TEXT = """# Readability

This page is for people who write these pages. It shows how long they are and how they read, before
and after they were rewritten, and you can measure your own change with the same tool.

`python tools/readability.py {commit}` writes this page. It compares the pages with commit
`{commit}`. *Words* are all words of the file, with code and tables. The mean length of a sentence,
in words, and the share of passive sentences come from the prose alone. A sentence counts as
passive if it has a form of *to be* before a past participle. This is a rule of thumb, but it is
the same for both versions.

| page | words before | sentence | passive | words after | sentence | passive |
| --- | --- | --- | --- | --- | --- | --- |
{table}
"""

if __name__ == "__main__":
    main()
