"""The pages that people read: links, short sentences, the site, and messages that are those of the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.house_sources import ROOT, defined, texts
from yaqd.config.catalogue import documentation

PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
#: words that begin no sentence which says what a function does
_FRAGMENT = re.compile(
    r"(A|After|All|Also|An|Another|Any|Are|As|At|Before|Below|Beside|Blocking|Both|By|Can|Could|Did|Does|During|Each|"
    r"Enough|Epoch|Every|Everything|Exactly|False|Few|For|From|How|If|In|Instead|Is|It|Its|May|Milliseconds|Neither|"
    r"Never|No|Nobody|None|Not|Nothing|Now|Of|On|Once|One|Only|Ours|Pairs|Seconds|Since|So|Some|Somebody|Something|"
    r"That|The|Their|There|These|They|This|Those|To|True|Under|Until|What|When|Where|Whether|Which|While|Who|Whoever|"
    r"Whom|Whose|Why|With|Within|Without|Would)\b"
)
#: what stands in a message of troubleshooting.md for what differs: names, numbers, what is left out
_DIFFERS = re.compile(
    r"\.\.\.|\(pid \S+|\S*\d\S*|\S*[A-Z]{2,}\S*|queue root\.\w+|\bada\b|\bDIR/\w+|'x'|\btimes\b|<[^>]*>"
)


def _anchors(page: Path) -> set[str]:
    headings = _HEADING.findall(_FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def _links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]+`", "", _FENCED.sub("", page.read_text()))
    return [link for link in _LINK.findall(text) if "://" not in link]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in _links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{link}: no such file"
        assert not anchor or anchor in _anchors(target), f"{link}: no such heading"


def test_pages_that_code_and_scripts_name_exist() -> None:
    listed = subprocess.run(("git", "ls-files"), cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.splitlines():
        if name.endswith((".py", ".sh", ".toml", ".xml", ".yml")) and (ROOT / name).is_file():
            text = (ROOT / name).read_text()
            for page in re.findall(r"\bdocs/[\w/-]+\.md\b", text) if "docs/" in text else ():
                assert (ROOT / page).is_file(), f"{name} names {page}"


def test_sentences_and_bullets_are_short() -> None:
    done = subprocess.run((sys.executable, ROOT / "scripts/prose.py"), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_a_long_sentence_and_a_long_bullet_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        f"# {'Head ' * 30}\n\nShort. {'Word ' * 26}end. Short.\n\n- {'One two. ' * 31}\n\n```\n{'x ' * 99}\n```\n"
    )
    done = subprocess.run((sys.executable, ROOT / "scripts/prose.py", page), capture_output=True, text=True)
    assert done.returncode == 1
    assert [line.partition(": ")[2][:24] for line in done.stdout.splitlines()] == [
        "a sentence of 27 words, ",
        "a bullet of 62 words, 60",
    ]


def test_our_keys_in_the_pages_are_keys() -> None:
    for page in PAGES:
        if page.name in ("CHANGELOG.md", "configuration.md", "compatibility.md"):
            continue
        for key in re.findall(r"`(yaq\.[a-z][a-z.-]*[a-z])`", page.read_text()):
            assert documentation(key) is not None, f"{page.relative_to(ROOT)} names {key}"


def test_messages_of_the_troubleshooting_page_are_those_of_the_code() -> None:
    """Of each a piece of two words or more stands in the code, as the code has it."""
    code = "\n".join(texts().values())
    said = " ".join(re.sub(r'"\s*\n\s*f?"', "", code).split())
    page = (ROOT / "docs/troubleshooting.md").read_text()
    shown = re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)
    assert len(shown) > 40
    for message in shown:
        pieces = [piece.strip(" :,;.") for piece in _DIFFERS.split(message)]
        assert any(" " in piece and piece in said for piece in pieces), f"{message!r} is not in the code"


@pytest.mark.slow
def test_the_site_builds(tmp_path: Path) -> None:
    """With each link, anchor and page of the navigation; a warning is a failure."""
    command = (sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", tmp_path / "site")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site/search/search_index.json").is_file()


def test_functions_say_what_they_do() -> None:
    """A docstring begins with a verb. Properties, which say what they are, are not asked."""
    wrong = [
        f"{name}:{line}: {said.splitlines()[0]}"
        for name, found in defined().items()
        for line, said in found.documented
        if _is_fragment(said)
    ]
    assert wrong == []


def test_a_fragment_is_told_from_a_sentence() -> None:
    for said in (
        "The same for many nodes.",
        "None: no proxy.",
        "How long it waits, s.",
        "Blocking. Raises OSError.",
        "It is over.",
        "[] for none.",
        "`node`: `host:port`.",
        "Has it ended?",
        "0..1 of it.",
    ):
        assert _is_fragment(said), said
    for said in (
        "Return the nodes; None: there is none.",
        "Has the kernel keep it. Is it kept?",
        "Note that it is over.",
    ):
        assert not _is_fragment(said), said


def _is_fragment(said: str) -> bool:
    return bool(_FRAGMENT.match(said) or not said[0].isalpha() or re.match(r"[^.:;`]*\?", said))
