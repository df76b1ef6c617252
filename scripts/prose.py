#!/usr/bin/env python3
"""Holds the pages that people read to docs/style.md.

    scripts/prose.py            every page; exit code 1 where one breaks a rule
    scripts/prose.py PAGE...    these pages

A sentence has at most 25 words, a bullet at most 60. So has a cell of a table, and the text of a configuration key in
conf/. There sentences are not counted. A piece of code in backticks is one word, a list of such pieces too, and so is a
link's address. Code blocks and headings are not looked at; docs/cli.md is blocks for the most part.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SENTENCE_WORDS, BULLET_WORDS, CELL_WORDS, KEY_WORDS = 25, 60, 60, 60

_FENCE = re.compile(r"^\s*```")
_ITEM = re.compile(r"^(\s*)(?:[-*]|\d+\.)\s+(.*)$")
_END = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[\"'(*]*[A-Z0-9])")
_ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|et al|vs|etc)\.")


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a bullet or a table's cell, with the number of its first line."""

    kind: str
    line: int
    text: str


def blocks(text: str) -> Iterator[Block]:
    """Yield what a page says, without code blocks, headings and comments."""
    kind, began, said, fenced = "", 0, [], False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_fence = bool(_FENCE.match(line))
        item = None if fenced else _ITEM.match(line)
        ends = is_fence or fenced or item or not line.strip() or line.lstrip().startswith(("#", "|", "<", "!!!", "---"))
        if ends and said:
            yield Block(kind, began, " ".join(said))
            said = []
        fenced ^= is_fence
        if is_fence or fenced:
            continue
        if item:
            kind, began, said = "bullet", number, [item[2]]
        elif line.lstrip().startswith("|"):
            yield from (Block("cell", number, cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip(" |")))
        elif not ends:
            if not said:
                kind, began = "paragraph", number
            said.append(line.strip())


def plain(text: str) -> str:
    """Return the words as they are counted: a piece of code is one word, a link is its text."""
    text = re.sub(r"`[^`]+`(?:(?:,| and| or|, and) `[^`]+`)*", "Code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return _ABBREVIATIONS.sub(r"\1", text)


def words(text: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def sentences(text: str) -> list[str]:
    return [one for one in _END.split(text) if one.strip()]


def faults(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and what is wrong there."""
    for block in blocks(text):
        said = plain(block.text)
        most = {"bullet": BULLET_WORDS, "cell": CELL_WORDS}.get(block.kind)
        if most is not None and words(said) > most:
            yield block.line, f"a {block.kind} of {words(said)} words, {most} are allowed"
        if block.kind == "cell":
            continue
        for sentence in sentences(said):
            if words(sentence) > SENTENCE_WORDS:
                yield block.line, f"a sentence of {words(sentence)} words, {SENTENCE_WORDS} are allowed: {sentence}"


def key_faults() -> Iterator[tuple[str, str]]:
    """Yield the file and what is wrong there, of texts of configuration keys."""
    for file in sorted((ROOT / "conf").rglob("*.xml")):
        for found in ElementTree.parse(file).iter("property"):
            count = words(found.findtext("description") or "")
            if count > KEY_WORDS:
                problem = f"{found.findtext('name')} has {count} words, {KEY_WORDS} are allowed"
                yield str(file.relative_to(ROOT)), problem


def pages() -> list[Path]:
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main(arguments: list[str]) -> int:
    failed = False
    for page in map(Path, arguments) if arguments else pages():
        shown = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
        for line, problem in faults(page.read_text(encoding="utf-8")):
            failed = True
            print(f"{shown}:{line}: {problem}")
    for file, problem in () if arguments else key_faults():
        failed = True
        print(f"{file}: {problem}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
