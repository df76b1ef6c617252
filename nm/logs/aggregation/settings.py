"""What log aggregation reads of the configuration, checked once at start."""

from dataclasses import dataclass
from typing import Final

from nm.logs.aggregation.policies import BadPolicy, ContainerLogPolicy, parse_policy
from yaqd.config import Configuration
from yaqd.storage import StorageError
from yaqd.storage.tfile import COMPRESSIONS, RemoteLogs

_PREFIX: Final = "yarn.nodemanager.log-aggregation"


@dataclass(frozen=True, slots=True)
class LogAggregationSettings:
    remote: RemoteLogs
    #: of the root folder; "" leaves what the file system gives it
    group: str
    compression: str
    policy: ContainerLogPolicy
    #: seconds between two uploads of a running application; None: at its end only
    roll_interval_s: float | None
    #: files of one application and this node
    files_per_app_max: int
    deletes_local: bool
    threads: int
    #: for one attempt to upload to HDFS
    upload_timeout_s: float
    #: how long attempts go on after an application's end
    retry_s: float

    @classmethod
    def read(cls, conf: Configuration) -> "LogAggregationSettings | None":
        """Reads the settings; None when log aggregation is off. Raises ConfigError."""
        if not conf.get_bool("yarn.log-aggregation-enable"):
            return None
        class_key = f"{_PREFIX}.policy.class"
        try:
            policy = parse_policy(conf.require(class_key), conf.get(f"{_PREFIX}.policy.parameters") or "")
        except BadPolicy as error:
            raise conf.error(class_key, str(error), "name one of Hadoop's policies") from None
        try:
            remote = RemoteLogs.read(conf)
        except StorageError as error:
            raise conf.error("yarn.nodemanager.remote-app-log-dir", str(error)) from None
        interval_s = conf.get_int(f"{_PREFIX}.roll-monitoring-interval-seconds", minimum=-1)
        least_s = conf.get_int(f"{_PREFIX}.roll-monitoring-interval-seconds.min", minimum=0)
        return cls(
            remote=remote,
            group=conf.get("yarn.nodemanager.remote-app-log-dir.groupname") or "",
            compression=conf.get_choice(f"{_PREFIX}.compression-type", COMPRESSIONS),
            policy=policy,
            roll_interval_s=max(interval_s, least_s) if interval_s > 0 else None,
            files_per_app_max=conf.get_int(f"{_PREFIX}.num-log-files-per-app", minimum=1),
            deletes_local=conf.get_bool("yarn.log-aggregation.enable-local-cleanup"),
            threads=conf.get_int("yarn.nodemanager.logaggregation.threadpool-size-max", minimum=1, maximum=100),
            upload_timeout_s=conf.get_duration_ms("yaq.nm.log-aggregation.upload-timeout-ms", minimum=1000) / 1000,
            retry_s=conf.get_duration_ms("yarn.log-aggregation-status.time-out.ms", minimum=0) / 1000,
        )
