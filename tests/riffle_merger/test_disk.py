"""What a merger finds of its disk and of its memory, and tells."""

import mmap
import os
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from riffle_merger.merger.disk import DiskFacts, try_disk
from riffle_merger.merger.memory import available_bytes

NUMBERS = st.integers(0, (1 << 64) - 1)


@given(st.integers(0, (1 << 32) - 1), st.integers(1, (1 << 64) - 1), NUMBERS)
def test_facts_are_told_in_twenty_bytes(seek_us: int, bytes_per_s: int, available_bytes: int) -> None:
    facts = DiskFacts(seek_us, bytes_per_s, available_bytes)
    assert len(facts.pack()) == 20 and DiskFacts.unpack(facts.pack()) == facts


@given(st.binary(max_size=40))
def test_what_is_no_fact_is_none(data: bytes) -> None:
    facts = DiskFacts.unpack(data)
    assert facts is None or (facts.pack() == data and facts.bytes_per_s)


def test_a_disk_is_tried_and_nothing_is_left(tmp_path: Path) -> None:
    facts = try_disk(tmp_path, 123)
    assert facts is None or (0 < facts.seek_us < 1_000_000 and facts.bytes_per_s > 1_000_000)
    assert facts is None or facts.available_bytes == 123
    assert list(tmp_path.iterdir()) == []
    assert try_disk(tmp_path / "none", 0) is None
    assert try_disk(Path("/proc"), 0) is None


def tried(monkeypatch: pytest.MonkeyPatch, read_s: Callable[[int], float]) -> DiskFacts:
    """Tries a disk whose nth small read takes that long, by a clock that only reads move.

    Its file is in memory: the disk of temporary files may be full, or know no direct access.
    """
    now, reads = 0.0, 0
    with_room = os.statvfs_result((4096, 4096, 1 << 20, 1 << 20, 1 << 20, 0, 0, 0, 0, 255))

    def read(_: int, buffers: list[mmap.mmap], __: int) -> int:
        nonlocal now, reads
        size = len(buffers[0])
        if size > 4096:
            now += 1.0
        else:
            now, reads = now + read_s(reads), reads + 1
        return size

    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda _: with_room)
        patch.setattr(os, "open", lambda *_: os.memfd_create("tried"))
        patch.setattr(os, "preadv", read)
        patch.setattr(time, "perf_counter", lambda: now)
        facts = try_disk(Path("/mnt/a-disk"), 0)
    assert facts is not None
    return facts


def test_a_disk_that_takes_some_reads_at_once_and_then_none_for_a_while_is_as_slow_as_that_makes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    facts = tried(monkeypatch, lambda number: 0.1 if number % 12 == 11 else 50e-6)
    assert facts.seek_us == pytest.approx(0.1 / 12 * 1e6, rel=0.25)


def test_a_disk_that_is_held_up_once_is_no_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = tried(monkeypatch, lambda number: 2.0 if number == 300 else 50e-6)
    assert facts.seek_us == 50


def memory_files(root: Path, groups: dict[str, dict[str, str]], of_process: str) -> tuple[Path, Path]:
    """Writes what the kernel shows of a process in a group."""
    proc, here = root / "proc", root / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(of_process)
    for name, files in groups.items():
        (here / name).mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (here / name / file).write_text(text)
    return proc, here


def version_1(limit: int, used: int, files: int) -> dict[str, str]:
    stat = f"cache 1\ntotal_inactive_file {files - 100}\ntotal_active_file 100\ninactive_file 7\n"
    return {"memory.limit_in_bytes": f"{limit}\n", "memory.usage_in_bytes": f"{used}\n", "memory.stat": stat}


def test_a_node_in_a_control_group_has_what_the_group_has_left(tmp_path: Path) -> None:
    no_limit = 9223372036854771712
    groups = {"memory": version_1(no_limit, 5, 100), "memory/box": version_1(1_000_000, 700_000, 300_000)}
    proc, here = memory_files(tmp_path / "v1", groups, "4:memory:/box\n1:cpu:/\n0::/\n")
    assert available_bytes(proc, here) == 600_000
    stat = "anon 5\ninactive_file 1000\nactive_file 500\n"
    above = {"memory.max": "50000\n", "memory.current": "20000\n", "memory.stat": stat}
    below = {"memory.max": "max\n", "memory.current": "10000\n", "memory.stat": stat}
    proc, here = memory_files(tmp_path / "v2", {"pod": above, "pod/box": below}, "0::/pod/box\n")
    assert available_bytes(proc, here) == 31_500


def test_a_node_without_a_control_group_has_what_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc, here = memory_files(tmp_path, {}, "4:memory:/gone\n0::/\n")
    free = psutil.virtual_memory()
    monkeypatch.setattr(psutil, "virtual_memory", lambda: free)
    assert available_bytes(proc, here) == available_bytes(tmp_path / "nothing", here) == free.available
    assert 0 < available_bytes() <= free.available
