"""Reads pages: which sections have figures, and which commands these name (scripts/claims.py)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_GENERATED = frozenset({"cli.md", "configuration.md", "compatibility.md"})

_UNIT = r"(?:microseconds?|milliseconds?|seconds?|minutes?|hours?|ms|s|h|KB|MB|GB)"
_MEASURING = r"(?:takes?|took|taken|costs?|measured|median|mean|percentile|within|live|simulated|had|uses?|used)"
_COUNT = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|forty|fifty|hundred|thousand|million)"
)
_AMOUNT = rf"(?:(?<![\w.])\d[\d,]*(?:\.\d+)?k?|\b{_COUNT})"
#: what is said to be so many times something, not done so many times
_COMPARED = r"(?:as \w+|(?:the|that|those) \w+|what|ours|more|less|(?!after|over|under|per)\w+er|(?:\w+ )?\w+'s)\b"
#: stands before a time where "a second" is no rate
_BEFORE_A_TIME = "after|at|before|beside|for|in|of|than|within"
#: what a block of code and a text have as figures
_RATIOS = (r"(?<![\w.])\d[\d,]*(?:\.\d+)?x(?!\w)", r"(?<![\w.])\d[\d,]*(?:\.\d+)? ?%")
_FIGURES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        *_RATIOS,
        rf"{_AMOUNT} (?:percent|per cent)\b",
        rf"(?:{_AMOUNT} times|\btwice|\bthrice) {_COMPARED}",
        r"\bhalf as \w+",
        rf"{_AMOUNT}(?: (?!(?:{_BEFORE_A_TIME}) )[\w-]+){{0,3}} (?:an?|per|each) (?:second|minute|hour)\b",
        rf"{_AMOUNT}(?: [\w-]+)?/(?:s|second|min|minute|h|hour)\b",
        rf"(?<![\w.])\d[\d,]*\.\d+ {_UNIT}\b",
        rf"\b{_MEASURING}\b[^.|]{{0,40}}?(?<![\w.])(?P<figure>\d[\d,]* {_UNIT})\b",
        rf"\b(?:half|quarter|third|tenth|twentieth) (?:of )?an? {_UNIT}\b",
        rf"\|\s*\**(?P<figure>\d[\d,]* {_UNIT})\b",
        r"\|\s*\**(?P<figure>\d[\d,]*\.\d+)\**(?: to \d|\s*[|,(])",
        rf"\b{_MEASURING}\b[^.|]{{0,20}}?\b(?P<figure>{_COUNT} to {_COUNT} {_UNIT})\b",
    )
)
_IN_CODE = tuple(map(re.compile, _RATIOS))
_SHOWS = r"python -m benchmarks\.\w|python -m pytest tests/|yaq sim (?:run|compare|shuffle|study|line) |yaq clotho eval"
_COMMAND = re.compile(rf"(?:\w+=\S+ )*(?P<words>{_SHOWS}|scripts/\w+\.sh)")
#: stands before a command that runs compiled
COMPILED = "scripts/compiled.sh "
_RUNS_NOTHING = frozenset({"--help", "--list", "--from-store"})
#: of a command that is a pattern, as `yaq sim run NAME`
_STANDS_FOR = re.compile(r"[A-Z]+|\.\.\.")
_WAIVED = re.compile(r"<!-- not measured: (.*?) -->", re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+\.md)?(?:#([\w-]+))?\)")
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, bullet or table row with figures; `line` is its first."""

    line: int
    text: str
    figures: tuple[str, ...]
    is_row: bool

    @property
    def rows(self) -> set[str]:
        """Names in backticks: rows of a command's output, where they are some."""
        return set(re.findall(r"`([\w/-]+)`", self.text))


@dataclass(slots=True)
class Section:
    """What stands below one heading of a page."""

    page: Path
    heading: str
    line: int
    claims: list[Claim] = field(default_factory=list)
    #: with the line that each stands in
    commands: dict[str, int] = field(default_factory=dict)
    #: said to be no figures, and those of them that look like some
    waived: list[str] = field(default_factory=list)
    justly_waived: set[str] = field(default_factory=set)

    @property
    def anchor(self) -> str:
        return re.sub(r"[^\w\- ]", "", self.heading.lower()).strip().replace(" ", "-")


def pages() -> list[Path]:
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if page.name not in _GENERATED]


def sections(page: Path) -> list[Section]:
    """Return the sections of a page, with claims and commands."""
    found = [Section(page, page.stem, 1)]
    for kind, line, text in blocks(page.read_text(encoding="utf-8")):
        if kind == "heading":
            found.append(Section(page, text, line))
        section = found[-1]
        if kind == "comment":
            section.waived += [one.strip() for waived in _WAIVED.findall(text) for one in waived.split(",")]
            continue
        for command in commands(text, is_code=kind == "code"):
            section.commands.setdefault(command, line)
        figures = figures_of(text, is_code=kind == "code")
        if kind == "row" and page == ROOT / "README.md" and "measured" in section.heading:
            figures += tuple(one for one in _numbers(text) if not any(known.startswith(one) for known in figures))
        if figures:
            section.claims.append(Claim(line, " ".join(text.split()), figures, kind == "row"))
    for section in found:
        seen = {figure for claim in section.claims for figure in claim.figures}
        section.justly_waived = seen.intersection(section.waived)
        section.claims = [claim for claim in section.claims if set(claim.figures) - section.justly_waived]
    return found


def blocks(text: str) -> Iterator[tuple[str, int, str]]:
    """Yield (heading, comment, code, row or text), its first line, and what it says."""
    kind, began, said = "", 0, []
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if kind in ("code", "comment"):
            said.append(line)
            if line.startswith("```") if kind == "code" else "-->" in line:
                yield kind, began, "\n".join(said)
                kind, said = "", []
            continue
        opens = "code" if line.startswith("```") else "comment" if line.startswith("<!--") else ""
        single = "heading" if line.startswith("#") else "row" if line.startswith("|") else ""
        if said and (opens or single or not line.strip() or _ITEM.match(line)):
            yield kind, began, "\n".join(said)
            said = []
        if single:
            yield single, number, line.lstrip("#| ") if single == "heading" else line
        elif opens == "comment" and "-->" in line:
            yield opens, number, line
        elif opens or line.strip():
            if not said:
                kind, began = opens or "text", number
            said.append(line)
        if not said:
            kind = ""


def commands(text: str, *, is_code: bool) -> Iterator[str]:
    """Yield the commands in a text that show figures; patterns with NAME or ... are none."""
    if is_code:
        pieces = text.replace("\\\n", " ").splitlines()
    else:
        pieces = re.findall(r"`([^`]+)`", text)
    for piece in pieces:
        if found := _COMMAND.match(piece.strip()):
            words = piece.strip()[found.start("words") :].partition(" #")[0].split()
            if not _RUNS_NOTHING & {*words} and not any(_STANDS_FOR.fullmatch(word) for word in words):
                yield " ".join(words)


def shows_figures(command: str) -> bool:
    """Tell whether it is a benchmark, a simulation or a test; of scripts, only what runs one of these compiled."""
    return re.match(_SHOWS, command.removeprefix(COMPILED)) is not None


def figures_of(text: str, *, is_code: bool) -> tuple[str, ...]:
    plain = text if is_code else re.sub(r"`[^`]*`", "CODE", " ".join(text.split()))
    found = [match for one in (_IN_CODE if is_code else _FIGURES) for match in one.finditer(plain)]
    return tuple(dict.fromkeys(match.groupdict().get("figure") or match[0] for match in found))


def _numbers(text: str) -> tuple[str, ...]:
    """Return what a row of README has as numbers, whatever their unit."""
    return tuple(re.findall(r"(?<![\w.-])\d[\d,.]*", re.sub(r"`[^`]*`|\]\([^)]*\)", "CODE", text)))


def row_commands(claim: Claim, section: Section) -> list[str]:
    """Return the commands in a claim's own text, else those of the section that it links to."""
    if own := list(commands(claim.text, is_code=False)):
        return own
    linked = []
    for name, anchor in _LINK.findall(claim.text):
        page = (section.page.parent / name).resolve() if name else section.page
        if anchor and page.is_file():
            linked += [command for one in sections(page) if one.anchor == anchor for command in one.commands]
    return linked
