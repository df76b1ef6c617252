"""A shuffle service with merged map outputs."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from nm.shuffle.jobs import ShuffleJobs
from nm.shuffle.limits import MergedLimits, ShuffleLimits
from nm.shuffle.merged.segment import MergedFile
from tests.nm.nm_shuffle_served import (
    APPLICATION,
    USER,
    Served,
    job_token,
)

MAPS = [f"attempt_1_0001_m_{number:06d}_0" for number in range(12)]
REDUCES = 3


#: what is kept, and as long as a partition may be to be kept: a quarter
KEPT_BYTES = 4 << 20


#: longer than what is copied, and than what may be kept
LENGTHS = (0, 1, 5000, 40_000, 120_000)
LIMITS = ShuffleLimits(connections_max=100, keep_alive=False, keep_alive_timeout_s=0.4, stall_timeout_s=60)


@contextlib.contextmanager
def serving(root: Path, limits: ShuffleLimits = LIMITS, kept_s: float = 60) -> Iterator[Served]:
    jobs = ShuffleJobs()
    jobs.add(APPLICATION, USER, job_token())
    served = Served(root, jobs, limits, 1 << 20, MergedLimits(KEPT_BYTES, kept_s, 1 << 20))
    try:
        yield served
    finally:
        served.service.stop()


def write(served: Served, length: int, maps: list[str] = MAPS) -> None:
    for map_id in maps:
        served.write(map_id, [os.urandom(length + reduce) for reduce in range(REDUCES)])


def truncate(file: MergedFile) -> None:
    os.truncate(file.path, file.path.stat().st_size // 3)


def flip(file: MergedFile) -> None:
    content = bytearray(file.path.read_bytes())
    content[len(content) // 2] ^= 0x10
    file.path.write_bytes(content)


def lose(file: MergedFile) -> None:
    file.path.unlink()


def lose_index(file: MergedFile) -> None:
    file.index_path.unlink()


def damage_index(file: MergedFile) -> None:
    content = bytearray(file.index_path.read_bytes())
    content[-30] ^= 1
    file.index_path.write_bytes(content)


def link_away(file: MergedFile) -> None:
    elsewhere = file.path.parent.parent / "elsewhere"
    shutil.move(file.path, elsewhere)
    file.path.symlink_to(elsewhere)


DAMAGE = [truncate, flip, lose, lose_index, damage_index, link_away]
