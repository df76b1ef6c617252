"""Settings of the merger process, read once at the node's start."""

from dataclasses import dataclass, field

from riffle_merger.service.launch import storage_settings
from yaqd.config import Configuration

MB = 1 << 20
_BUDGET_MIN = 16 * MB


@dataclass(frozen=True, slots=True)
class MergerProcessSettings:
    is_enabled: bool
    #: interface that it listens on
    bind_host: str
    #: 0 takes a free one
    port: int
    #: of the buffers of all merges that run
    budget_bytes: int
    running_max: int
    #: of one job
    waiting_max: int
    niceness: int
    is_idle_io: bool
    #: a merger that gives no sign of life for this long, or a merge that moves nothing, is ended by force
    stall_s: float
    #: no merge makes its disk fuller: the node would take no more containers
    disk_max_percent: float = 100.0
    #: what the node's configuration says of HDFS
    storage: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, conf: Configuration, *, bind_host: str) -> "MergerProcessSettings":
        """Raises ConfigError."""
        budget_bytes = conf.get_size_bytes("yaq.riffle.merger.memory", minimum=_BUDGET_MIN)
        io_class = (conf.get("yaq.riffle.merger.io-class") or "").strip().lower()
        if io_class not in ("idle", "best-effort"):
            raise conf.error("yaq.riffle.merger.io-class", f"{io_class} is no class", "write idle or best-effort")
        return cls(
            is_enabled=conf.get_bool("yaq.riffle.enabled"),
            bind_host=bind_host,
            port=conf.get_int("yaq.riffle.merger.port", minimum=0, maximum=65535),
            budget_bytes=budget_bytes,
            running_max=conf.get_int("yaq.riffle.merger.merges-max", minimum=1, maximum=64),
            waiting_max=conf.get_int("yaq.riffle.merger.queue.max-length", minimum=1),
            niceness=conf.get_int("yaq.riffle.merger.nice", minimum=0, maximum=19),
            is_idle_io=io_class == "idle",
            stall_s=conf.get_duration_ms("yaq.riffle.merger.stall-ms", minimum=100) / 1000,
            disk_max_percent=conf.get_float(
                "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage", minimum=0, maximum=100
            ),
            storage=storage_settings(conf),
        )
