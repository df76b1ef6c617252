"""How a job's map outputs are merged, as configured, and what is known of the disks they lie on."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from riffle_merger.merger.disk import DiskFacts
from riffle_merger.merger.diskshape import KnownDisk
from riffle_merger.plan.automatic import DiskShape
from riffle_merger.plan.policy import OFF, MergePolicy
from tez_adapter.jobspec import JobSpec
from yaqd.config import Configuration

ENABLED_KEY: Final = "yaq.riffle.enabled"
INDEX_KEY: Final = "yaq.riffle.shuffle.index-memory"
STORAGE_KEY: Final = "yaq.riffle.storage"
REPLICATION_KEY: Final = "yaq.riffle.hdfs.replication"
_POLICY_KEY: Final = "yaq.riffle.policy"
_FILES_KEY: Final = "yaq.riffle.files"
_BLOCK_KEY: Final = "yaq.riffle.block-size"
_EFFORT_KEY: Final = "yaq.riffle.best-effort"
_POLICIES: Final = ("auto", "files", "block-size", "off")
#: in the environment of a job's tasks, "1": its job manager says what is merged, its nodes do nothing by themselves
PLANNED: Final = "YAQ_RIFFLE_PLANNED"
#: merges under way of all mergers, for each that one node's would get
_SHARED_OUTSTANDING: Final = 16
#: of a merger's container, what its interpreters and libraries take (a process that answers, one that merges), and the
#: least that merges are worth starting with, bytes
_PROCESSES: Final = 256 << 20
_BUDGET_MIN: Final = 64 << 20


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
    #: memory that a node has for the index of one merged file: of one that takes more, nothing is served
    index_bytes_max: int = 16 << 20
    #: on HDFS: mergers asked for the length of their queues before one is chosen, copies of files, and what one read
    #: costs there, s
    asked: int = 2
    replication: int = 1
    request_s: float = 0.002
    #: on HDFS, where no node has a merger: those of the job's own at most, and how long reduces wait for the first, s
    own: int = 0
    own_wait_s: float = 10.0

    def for_shared(self) -> "MergeSettings":
        """Returns the settings for outputs on HDFS: all are in one place, and merges wait with the mergers."""
        disk = replace(self.disk, request_s=self.request_s)
        return replace(self, outstanding=self.outstanding * _SHARED_OUTSTANDING, disk=disk)

    @classmethod
    def read(cls, conf: Configuration) -> "MergeSettings":
        """Raises ConfigError. Reads what this node says of its disk where the configuration says nothing."""
        policy = _policy(conf)
        best_effort = conf.get_float(_EFFORT_KEY, 0.95, minimum=0, maximum=1)
        if not 0 < best_effort <= 1:
            raise conf.error(_EFFORT_KEY, "is no share of the merges", "write a number above 0 and at most 1")
        disk = KnownDisk.read(conf, Path.cwd()) if policy is None else KnownDisk()
        return cls(
            policy,
            best_effort,
            conf.get_duration_ms("yaq.riffle.merge-timeout-ms", 300_000, minimum=1) / 1000,
            conf.get_int("yaq.riffle.outstanding", 8, minimum=1, maximum=10_000),
            disk.shape,
            disk.told,
            conf.get_size_bytes(INDEX_KEY, 16 << 20, minimum=0),
            asked=conf.get_int("yaq.riffle.hdfs.mergers-asked", 2, minimum=1, maximum=100),
            replication=conf.get_int(REPLICATION_KEY, 1, minimum=1, maximum=512),
            request_s=conf.get_float("yaq.riffle.hdfs.read-ms", 2, minimum=0, maximum=60_000) / 1000,
            own=conf.get_int("yaq.riffle.hdfs.mergers", 16, minimum=0, maximum=10_000),
            own_wait_s=conf.get_duration_ms("yaq.riffle.hdfs.merger-wait-ms", 10_000, minimum=0) / 1000,
        )

    def disk_of(self, tried: Collection[DiskFacts]) -> DiskShape:
        """Returns the disk as the configuration says, else as the middle one of these nodes' disks does.

        Without either it is as this node's may do.
        """
        return KnownDisk(self.disk, self.told).tried(tried)


def check_merging(conf: Configuration) -> None:
    """Checks the settings, also while merging is off: a misspelt one shall not show only later. Raises ConfigError."""
    conf.get_bool(ENABLED_KEY)
    MergeSettings.read(conf)


def on_hdfs(conf: Configuration) -> bool:
    """Returns whether a job's map outputs are files on HDFS. Raises ConfigError."""
    return conf.get_choice(STORAGE_KEY, ("local", "hdfs"), "local") == "hdfs"


def own_budget(conf: Configuration, memory_mb: int) -> int:
    """Returns the memory for the merges of a merger in a container of this size, bytes. Raises ConfigError.

    0: it has no room.
    """
    budget = min(conf.get_size_bytes("yaq.riffle.merger.memory", 512 << 20, minimum=1), (memory_mb << 20) - _PROCESSES)
    return budget if budget >= _BUDGET_MIN else 0


def unmerged_summary(spec: JobSpec, conf: Configuration) -> dict[str, Any] | None:
    """Says for the history why a MapReduce job's manager merges nothing; None of another job. Raises ConfigError."""
    if spec.reduces > 0 and conf.get_bool(ENABLED_KEY):
        return None
    reason = f"{ENABLED_KEY} is false" if spec.reduces > 0 else "the job has no reduces, so nobody reads parts of them"
    return {"policy": str(OFF), "automatic": False, "reason": reason}


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
