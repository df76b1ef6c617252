"""The demo's input and its judge: text that is on every machine, and a plain count in one process to compare with."""

import gzip
import os
import re
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

_SUFFIXES = frozenset((".py", ".pyi", ".txt", ".md", ".rst", ".html", ".c", ".h"))
_SNIFF_BYTES = 4096
_CHUNK_CHARS = 1 << 20
#: The same words as those of examples/wordcount.py.
find_words = re.compile(r"[^\W\d_]+").findall


def library_texts(bytes_max: int) -> list[Path]:
    """List text files of the Python library and of installed packages, in name order.

    They have up to `bytes_max` bytes together.
    """
    paths = sysconfig.get_paths()
    roots = dict.fromkeys(Path(paths[name]).resolve() for name in ("stdlib", "purelib", "platlib"))
    chosen: list[Path] = []
    seen: set[Path] = set()
    total = 0
    for file in (file for root in roots for file in _text_files(root)):
        size = file.stat().st_size
        if file in seen or not size:
            continue
        if total + size > bytes_max:
            break
        seen.add(file)
        chosen.append(file)
        total += size
    return chosen


def _text_files(root: Path) -> Iterator[Path]:
    for folder, subfolders, names in os.walk(root):
        # Site packages often lie below the library: they are a root of their own.
        subfolders[:] = sorted(n for n in subfolders if n not in ("__pycache__", "site-packages", "dist-packages"))
        for name in sorted(names):
            file = Path(folder, name)
            if file.suffix in _SUFFIXES and _is_text(file):
                yield file


def _is_text(file: Path) -> bool:
    try:
        with open(file, "rb") as source:
            return b"\0" not in source.read(_SNIFF_BYTES)
    except OSError:
        return False


def count_words(files: Iterable[Path], progress: Callable[[int], None] = lambda done: None) -> Counter[str]:
    """Count plainly: one process, one dictionary. `progress` gets the bytes of each file that is done."""
    counts: Counter[str] = Counter()
    for file in files:
        opener = gzip.open if file.suffix == ".gz" else open
        with opener(file, "rt", encoding="utf-8", errors="surrogateescape", newline="") as source:
            # By lines, because what a word is depends on nothing beyond one, and lower() of a whole file costs memory.
            for lines in _line_groups(source):
                counts.update(find_words(lines.lower()))
        progress(file.stat().st_size)
    return counts


def _line_groups(source: Iterable[str]) -> Iterator[str]:
    """Whole lines, about a megabyte at a time."""
    group: list[str] = []
    size = 0
    for line in source:
        group.append(line)
        size += len(line)
        if size >= _CHUNK_CHARS:
            yield "".join(group)
            group, size = [], 0
    yield "".join(group)


def read_counts(output: Path) -> Counter[str]:
    """Read what the job wrote: `word TAB count` lines of all parts."""
    counts: Counter[str] = Counter()
    for part in sorted(output.glob("part-*")):
        with open(part, encoding="utf-8", errors="surrogateescape", newline="\n") as source:
            for line in source:
                word, _, count = line.rstrip("\n").rpartition("\t")
                counts[word] += int(count)
    return counts


def differences(counted: Counter[str], expected: Counter[str]) -> list[str]:
    """Say what is wrong with `counted`, a line for each word, at most ten."""
    wrong = sorted(word for word in counted.keys() | expected.keys() if counted[word] != expected[word])
    return [f"{word!r}: counted {counted[word]}, really {expected[word]}" for word in wrong[:10]]
