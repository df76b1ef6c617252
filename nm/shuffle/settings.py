"""Settings of merging at the node, read once at its start."""

from dataclasses import dataclass
from pathlib import Path

from nm.merger import MergerProcessSettings
from nm.shuffle.limits import MergedLimits
from nm.shuffle.merged.watch import WatchSettings
from riffle_merger.merger.diskshape import KnownDisk
from riffle_merger.plan.policy import FAN_IN_MAX, OFF, MergePolicy
from yaqd.config import Configuration

_QUIET_MAX_S = 30.0


@dataclass(frozen=True, slots=True)
class MergingSettings:
    merger: MergerProcessSettings
    limits: MergedLimits
    #: of what no job manager plans
    watch: WatchSettings
    #: before the merger has tried it
    disk: KnownDisk

    @classmethod
    def read(cls, conf: Configuration, *, bind_host: str, folder: Path) -> "MergingSettings":
        """Reads the settings. `folder`: on the disk that map outputs lie on. Raises ConfigError."""
        quiet_s = conf.get_duration_ms("yaq.riffle.shuffle.quiet-ms", minimum=0) / 1000
        merger = MergerProcessSettings.read(conf, bind_host=bind_host)
        files = MergePolicy(files=conf.get_int("yaq.riffle.shuffle.files", minimum=2, maximum=FAN_IN_MAX))
        name = conf.get_choice("yaq.riffle.shuffle.policy", ("auto", "files", "off"), "auto")
        policy = {"files": files, "off": OFF}.get(name)
        index_bytes = conf.get_size_bytes("yaq.riffle.shuffle.index-memory", minimum=0)
        return cls(
            merger=merger,
            limits=MergedLimits(
                kept_bytes=conf.get_size_bytes("yaq.riffle.shuffle.kept-memory", minimum=0),
                kept_s=conf.get_duration_ms("yaq.riffle.shuffle.kept-ms", minimum=0) / 1000,
                index_cache_bytes=index_bytes,
            ),
            watch=WatchSettings(
                policy=policy,
                block_bytes_max=conf.get_size_bytes("yaq.riffle.shuffle.block-size-max", minimum=1),
                quiet_min_s=quiet_s,
                quiet_max_s=max(quiet_s, _QUIET_MAX_S),
                index_bytes_max=index_bytes,
            ),
            disk=KnownDisk.read(conf, folder) if merger.is_enabled and policy is None else KnownDisk(),
        )
