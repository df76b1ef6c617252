"""Which areas of memory are joined to large pages, and that the kernel does it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm.large_pages import MB, LargePages, areas

SIZE = 2 * MB
KERNEL = Path("/sys/kernel/mm/transparent_hugepage")


def area(start: int, end: int, used_kb: int, *, name: str = "", modes: str = "rw-p", joined_kb: int = 0) -> list[str]:
    inode = 12345 if name.startswith("/") else 0
    return [
        f"{start:x}-{end:x} {modes} 00000000 00:00 {inode}      {name}",
        f"Size:        {(end - start) // 1024} kB",
        f"Rss:         {used_kb} kB",
        "Anonymous:      4 kB",
        f"AnonHugePages:  {joined_kb} kB",
        "VmFlags: rd wr mr mw me ac",
    ]


@pytest.mark.parametrize("name", ["", "[heap]", "[anon:python]"])
def test_whole_large_pages_of_what_is_in_use_are_joined(name: str) -> None:
    assert list(areas(area(MB, 10 * MB, 9 * 1024, name=name), SIZE)) == [(2 * MB, 10 * MB)]
    assert list(areas(area(MB, 9 * MB, 6 * 1024, name=name), SIZE)) == [(2 * MB, 8 * MB)]


@pytest.mark.parametrize(
    "lines",
    [
        area(0, 8 * MB, 132, name="[stack]"),
        area(0, 8 * MB, 200),
        area(0, 64 * MB, 20 * 1024),
        area(0, 8 * MB, 8 * 1024, name="/usr/lib/libc.so.6"),
        area(0, 8 * MB, 8 * 1024, modes="r--p"),
        area(0, 8 * MB, 8 * 1024, modes="rw-s"),
        area(0, 8 * MB, 8 * 1024, joined_kb=8 * 1024),
        area(MB, 3 * MB, 2 * 1024),
        area(0, MB, 1024),
        ["a line of another kernel", "Rss: 5 kB", "AnonHugePages: 0 kB"],
    ],
    ids=["stack", "thread", "half", "file", "constant", "shared", "joined", "across", "small", "unknown"],
)
def test_what_has_nothing_to_gain_is_left_alone(lines: list[str]) -> None:
    assert list(areas(lines, SIZE)) == []


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 40), st.floats(0, 1)), max_size=6))
def test_areas_lie_within_what_is_mapped(parts: list[tuple[int, int, float]]) -> None:
    lines, mapped, at = [], [], 0
    for gap, size, used in parts:
        start = at + gap * MB // 4
        at = start + size * MB // 4
        mapped.append((start, at))
        lines += area(start, at, int(used * size * 256))
    for start, end in areas(lines, SIZE):
        assert start % SIZE == end % SIZE == 0 and start < end
        assert any(first <= start and end <= last for first, last in mapped)


def test_machine_that_never_has_any_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ctypes.CDLL", lambda *_, **__: pytest.fail("the kernel was asked"))
    (tmp_path / "enabled").write_text("always madvise [never]\n")
    (tmp_path / "hpage_pmd_size").write_text(f"{SIZE}\n")
    LargePages(tmp_path).join()
    LargePages(tmp_path / "no-such").join()
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    with pytest.raises(pytest.fail.Exception, match="the kernel was asked"):
        LargePages(tmp_path).join()


def test_machine_that_does_not_say_what_a_process_has_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "enabled").write_text("always [madvise] never\n")
    (tmp_path / "hpage_pmd_size").write_text(f"{SIZE}\n")
    pages = LargePages(tmp_path)
    monkeypatch.setattr("rm.large_pages._resident_bytes", lambda: (tmp_path / "no-such").stat().st_size)
    with caplog.at_level("INFO", "rm.large_pages"):
        pages.keep_up(0.0)
        pages.keep_up(1.0)
    assert len(caplog.records) == 1


PROGRAM = """
import re, sys
from pathlib import Path
from rm.large_pages import LargePages
def joined_kb():
    return int(re.search(r"AnonHugePages: +(\\d+)", Path("/proc/self/smaps_rollup").read_text())[1])
pages = LargePages()
before = joined_kb()
pages.keep_up(0.0)
assert joined_kb() == before, "a process that has not grown was looked at"
held = [(number, str(number)) for number in range(600_000)]
pages.keep_up(1.0)
assert held[-1] == (599_999, "599999") and len(held) == len(set(held)) == 600_000
print(before, joined_kb())
"""


@pytest.mark.skipif(
    not KERNEL.is_dir() or "[never]" in (KERNEL / "enabled").read_text(), reason="a kernel without large pages"
)
def test_process_that_grows_is_in_large_pages() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    before, after = map(int, re.findall(r"\d+", done.stdout))
    assert after - before >= 16 * 1024
