"""How a job's map outputs are merged, as configured, and what is known of the disks they lie on."""

import os
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from riffle_merger.merger.disk import DiskFacts
from riffle_merger.plan.automatic import DiskShape
from riffle_merger.plan.policy import OFF, MergePolicy
from tez_adapter.jobspec import JobSpec
from yaqd.config import Configuration

ENABLED_KEY: Final = "yaq.riffle.enabled"
STORAGE_KEY: Final = "yaq.riffle.storage"
REPLICATION_KEY: Final = "yaq.riffle.hdfs.replication"
_POLICY_KEY: Final = "yaq.riffle.policy"
_FILES_KEY: Final = "yaq.riffle.files"
_BLOCK_KEY: Final = "yaq.riffle.block-size"
_EFFORT_KEY: Final = "yaq.riffle.best-effort"
_POLICIES: Final = ("auto", "files", "block-size", "off")
#: in the environment of a job's tasks: its job manager says what is merged, its nodes do nothing by themselves
PLANNED: Final = "YAQ_RIFFLE_PLANNED"
_SEEK_KEY: Final = "yaq.riffle.disk.seek-ms"
_SPEED_KEY: Final = "yaq.riffle.disk.mb-per-second"
_CACHE_KEY: Final = "yaq.riffle.disk.cache-mb"
#: of a node's free memory, what is left for map outputs once containers run
_CACHE_SHARE: Final = 0.5
#: merges under way of all mergers, for each that one node's would get
_SHARED_OUTSTANDING: Final = 16
#: a turning disk's seek with half a turn, and its speed; and one without moving parts
_TURNING: Final = (8.0, 100.0)
_SOLID: Final = (0.1, 500.0)


@dataclass(frozen=True, slots=True)
class MergeSettings:
    #: None: chosen for the job when its first outputs are known
    policy: MergePolicy | None
    best_effort: float = 0.95
    timeout_s: float = 300.0
    outstanding: int = 8
    disk: DiskShape = DiskShape()
    #: keys of the disk that are configured; nodes' own trials do not count against them
    told: frozenset[str] = frozenset()
    #: on HDFS: mergers asked for the length of their queues before one is chosen, copies of files, and what one read
    #: costs there, s
    asked: int = 2
    replication: int = 1
    request_s: float = 0.002

    def for_shared(self) -> "MergeSettings":
        """All outputs are in one place there, and their merges wait with the mergers, whose queues tell."""
        disk = replace(self.disk, request_s=self.request_s)
        return replace(self, outstanding=self.outstanding * _SHARED_OUTSTANDING, disk=disk)

    @classmethod
    def read(cls, conf: Configuration) -> "MergeSettings":
        """Raises ConfigError. Reads what this node says of its disk where the configuration says nothing."""
        policy = _policy(conf)
        best_effort = conf.get_float(_EFFORT_KEY, 0.95, minimum=0, maximum=1)
        if not 0 < best_effort <= 1:
            raise conf.error(_EFFORT_KEY, "is no share of the merges", "write a number above 0 and at most 1")
        return cls(
            policy,
            best_effort,
            conf.get_duration_ms("yaq.riffle.merge-timeout-ms", 300_000, minimum=1) / 1000,
            conf.get_int("yaq.riffle.outstanding", 8, minimum=1, maximum=10_000),
            _disk(conf) if policy is None else DiskShape(),
            frozenset(key for key in (_SEEK_KEY, _SPEED_KEY, _CACHE_KEY) if (conf.get(key) or "").strip()),
            asked=conf.get_int("yaq.riffle.hdfs.mergers-asked", 2, minimum=1, maximum=100),
            replication=conf.get_int(REPLICATION_KEY, 1, minimum=1, maximum=512),
            request_s=conf.get_float("yaq.riffle.hdfs.read-ms", 2, minimum=0, maximum=60_000) / 1000,
        )

    def disk_of(self, tried: Collection[DiskFacts]) -> DiskShape:
        """As the configuration says, else as the middle one of these nodes' disks does, else as this node's may do."""
        if not tried:
            return self.disk
        seek_s = median(facts.seek_us for facts in tried) / 1e6
        bytes_per_s = float(median(facts.bytes_per_s for facts in tried))
        cache_bytes = median(facts.available_bytes for facts in tried) * _CACHE_SHARE
        return replace(
            self.disk,
            seek_s=self.disk.seek_s if _SEEK_KEY in self.told else seek_s,
            bytes_per_s=self.disk.bytes_per_s if _SPEED_KEY in self.told else bytes_per_s,
            cache_bytes=self.disk.cache_bytes if _CACHE_KEY in self.told else cache_bytes,
        )


def on_hdfs(conf: Configuration) -> bool:
    """Whether a job's map outputs are files on HDFS. Raises ConfigError."""
    return conf.get_choice(STORAGE_KEY, ("local", "hdfs"), "local") == "hdfs"


def plans_merges(spec: JobSpec) -> bool:
    """Whether the job manager decides what becomes of the job's map outputs: also where it shall not merge any."""
    return ENABLED_KEY in spec.conf and spec.reduces > 0


def _policy(conf: Configuration) -> MergePolicy | None:
    """What the other policies need is checked as well: a wrong number shall not wait for who turns to it."""
    by_files = _checked(conf, _FILES_KEY, lambda: MergePolicy(files=conf.get_int(_FILES_KEY, 40, minimum=2)))
    by_size = _checked(
        conf, _BLOCK_KEY, lambda: MergePolicy(block_bytes=conf.get_size_bytes(_BLOCK_KEY, 2 << 20, minimum=1))
    )
    name = conf.get_choice(_POLICY_KEY, _POLICIES, "auto")
    return {"files": by_files, "block-size": by_size, "off": OFF}.get(name)


def _checked(conf: Configuration, key: str, policy: Callable[[], MergePolicy]) -> MergePolicy:
    try:
        return policy()
    except ValueError as error:
        raise conf.error(key, "cannot be", str(error)) from None


def _disk(conf: Configuration) -> DiskShape:
    seek_ms, mb_per_s = _TURNING if is_turning(Path.cwd()) else _SOLID
    return DiskShape(
        seek_s=conf.get_float(_SEEK_KEY, seek_ms, minimum=0, maximum=10_000) / 1000,
        bytes_per_s=conf.get_float(_SPEED_KEY, mb_per_s, minimum=0.001, maximum=1e6) * 1e6,
        cache_bytes=conf.get_float(_CACHE_KEY, _available_mb() * _CACHE_SHARE, minimum=0, maximum=1e9) * 1e6,
    )


def is_turning(folder: Path) -> bool:
    """Whether the kernel says that the folder's disk has moving parts; False where it says nothing (an overlay)."""
    try:
        device = folder.stat().st_dev
        here = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve(strict=True)
        for place in (here, here.parent):  # a partition's disk has the queue
            flag = place / "queue" / "rotational"
            if flag.exists():
                return flag.read_text().strip() == "1"
    except OSError:
        pass
    return False


def _available_mb() -> float:
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 1000
    except (OSError, ValueError, IndexError):
        pass
    return 0.0
