"""A disk as the automatic choice wants it: configured, else as mergers tried it, else as the kernel lets one guess."""

import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Final

from riffle_merger.merger.disk import DiskFacts
from riffle_merger.merger.memory import available_bytes
from riffle_merger.plan.automatic import DiskShape
from yaqd.config import Configuration

_SEEK_KEY: Final = "yaq.riffle.disk.seek-ms"
_SPEED_KEY: Final = "yaq.riffle.disk.mb-per-second"
_CACHE_KEY: Final = "yaq.riffle.disk.cache-mb"
#: mergers are configured alike on all nodes
_MEMORY_KEY: Final = "yaq.riffle.merger.memory"
_AT_ONCE_KEY: Final = "yaq.riffle.merger.merges-max"
#: of a node's free memory, what is left for map outputs once containers run
_CACHE_SHARE: Final = 0.5
#: a turning disk's seek with half a turn, and its speed; and one without moving parts
_TURNING: Final = (8.0, 100.0)
_SOLID: Final = (0.1, 500.0)


@dataclass(frozen=True, slots=True)
class KnownDisk:
    """What is known before any disk was tried."""

    shape: DiskShape = DiskShape()
    #: keys that are configured; trials do not count against them
    told: frozenset[str] = frozenset()

    @classmethod
    def read(cls, conf: Configuration, folder: Path) -> "KnownDisk":
        """Looks at the folder's disk where the configuration says nothing. Raises ConfigError."""
        seek_ms, mb_per_s = _TURNING if is_turning(folder) else _SOLID
        cache_mb = available_bytes() * _CACHE_SHARE / 1e6
        shape = DiskShape(
            seek_s=conf.get_float(_SEEK_KEY, seek_ms, minimum=0, maximum=10_000) / 1000,
            bytes_per_s=conf.get_float(_SPEED_KEY, mb_per_s, minimum=0.001, maximum=1e6) * 1e6,
            cache_bytes=conf.get_float(_CACHE_KEY, cache_mb, minimum=0, maximum=1e9) * 1e6,
            merge_memory=conf.get_size_bytes(_MEMORY_KEY, 512 << 20, minimum=1)
            / conf.get_int(_AT_ONCE_KEY, 2, minimum=1, maximum=64),
        )
        keys = (_SEEK_KEY, _SPEED_KEY, _CACHE_KEY)
        return cls(shape, frozenset(key for key in keys if (conf.get(key) or "").strip()))

    def tried(self, trials: Collection[DiskFacts]) -> DiskShape:
        """Returns the disk as the configuration says, else as the middle one of these disks does, else as guessed."""
        if not trials:
            return self.shape
        seek_s = median(facts.seek_us for facts in trials) / 1e6
        bytes_per_s = float(median(facts.bytes_per_s for facts in trials))
        cache_bytes = median(facts.available_bytes for facts in trials) * _CACHE_SHARE
        return replace(
            self.shape,
            seek_s=self.shape.seek_s if _SEEK_KEY in self.told else seek_s,
            bytes_per_s=self.shape.bytes_per_s if _SPEED_KEY in self.told else bytes_per_s,
            cache_bytes=self.shape.cache_bytes if _CACHE_KEY in self.told else cache_bytes,
        )


def is_turning(folder: Path) -> bool:
    """Returns whether the kernel says that the folder's disk has moving parts.

    False where it says nothing (an overlay).
    """
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
