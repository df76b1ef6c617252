"""Documented keys that are read, and yet set nothing where somebody gives them to a job: other processes read them, or
jobs of another kind. A test holds the names of the daemons' against what the source reads."""

from typing import Final

from yaqd.config import Configuration

#: beginnings of the names of keys that daemons alone read, in their own configuration
_DAEMONS: Final = (
    "hadoop.http.",
    "hadoop.proxyuser.",
    "hadoop.security.authorization",
    "hadoop.tmp.dir",
    "ipc.maximum.data.length",
    "mapreduce.reduce.shuffle.indexcache.mb",
    "mapreduce.shuffle.",
    "net.topology.",
    "security.",
    "yaq.clotho.",
    "yaq.distributed.",
    "yaq.ipc.server.",
    "yaq.log.",
    "yaq.nm.",
    "yaq.quality.",
    "yaq.queue.",
    "yaq.riffle.merger.port",
    "yaq.riffle.merger.stall-ms",
    "yaq.riffle.shuffle.",
    "yaq.rm.",
    "yaq.web.",
    "yarn.am.",
    "yarn.cluster.max-application-priority",
    "yarn.log-aggregation",
    "yarn.log.",
    "yarn.nm.",
    "yarn.nodemanager.",
    "yarn.resource.dynamic.",
    "yarn.resourcemanager.",
    "yarn.scheduler.",
    "yarn.webapp.",
)
#: of these, what whoever submits, the job manager or its tasks read as well
_JOBS_TOO: Final = (
    "yaq.clotho.policy",
    "yaq.clotho.weights",
    "yaq.riffle.shuffle.index-memory",
    "yarn.log-aggregation.TFile.",
    "yarn.nodemanager.remote-app-log-dir",
    "yarn.nodemanager.remote-app-log-dir-include-older",
    "yarn.nodemanager.remote-app-log-dir-suffix",
    "yarn.resourcemanager.address",
    "yarn.resourcemanager.admin.address",
    "yarn.resourcemanager.connect.",
    "yarn.resourcemanager.hostname",
    "yarn.resourcemanager.scheduler.address",
    "yarn.resourcemanager.webapp.address",
    "yarn.scheduler.maximum-allocation-vcores",
)
_COMMANDS: Final = "yaq.job.command."
_STREAMING: Final = (
    "stream.",
    "mapreduce.job.maps",
    "mapreduce.map.output.key.field.separator",
    "mapreduce.partition.keycomparator.options",
    "mapreduce.partition.keypartitioner.options",
    "num.key.fields.for.partition",
)
_CLASSES: Final = ("mapreduce.totalorderpartitioner.sample-records", "yaq.input.combine-small-files")


def why_idle(key: str, *, is_streaming: bool) -> str | None:
    """Return why a documented key sets nothing in a job of this kind; None where it may set something."""
    if is_daemons(key):
        return "sets nothing in a job: daemons alone read it, in their own configuration"
    if key.startswith(_COMMANDS):
        return "sets nothing in a MapReduce job: it is for yaq run"
    if is_streaming and key in _CLASSES:
        return "sets nothing in streaming jobs: it is for Job classes"
    if not is_streaming and key.startswith(_STREAMING):
        return "sets nothing in Job classes: it is for streaming jobs"
    return None


_COMPARATOR: Final = "mapreduce.job.output.key.comparator.class"
_PARTITIONERS: Final = ("mapreduce.job.partitioner.class", "mapred.partitioner.class")
_BY_FIELDS: Final = "org.apache.hadoop.mapreduce.lib.partition.KeyFieldBased"
_PARTITIONER: Final = "-partitioner org.apache.hadoop.mapred.lib.KeyFieldBasedPartitioner"
#: keys that set something only where one of these others has a value with this in it; and what to write then
_NEEDS: Final[dict[str, tuple[tuple[str, ...], str, str]]] = {
    "mapreduce.partition.keycomparator.options": (
        (_COMPARATOR,),
        "KeyFieldBasedComparator",
        f"{_COMPARATOR}={_BY_FIELDS}Comparator",
    ),
    "mapreduce.partition.keypartitioner.options": (_PARTITIONERS, "KeyFieldBasedPartitioner", _PARTITIONER),
    "num.key.fields.for.partition": (_PARTITIONERS, "KeyFieldBasedPartitioner", _PARTITIONER),
    "mapreduce.map.output.key.field.separator": (
        (*_PARTITIONERS, _COMPARATOR),
        "KeyFieldBased",
        f"{_PARTITIONER}, or {_COMPARATOR}={_BY_FIELDS}Comparator",
    ),
    "mapreduce.map.output.compress.codec": (
        ("mapreduce.map.output.compress",),
        "true",
        "mapreduce.map.output.compress=true",
    ),
    "mapreduce.output.fileoutputformat.compress.codec": (
        ("mapreduce.output.fileoutputformat.compress",),
        "true",
        "mapreduce.output.fileoutputformat.compress=true",
    ),
    "stream.map.input.field.separator": (
        ("stream.map.input.ignoreKey",),
        "false",
        "stream.map.input.ignoreKey=false",
    ),
}


def why_alone(key: str, conf: Configuration) -> str | None:
    """Return why a key sets nothing without another one that the job lacks; None where it may set something."""
    others, value, written = _NEEDS.get(key, ((), "", ""))
    if not others or any(value in (conf.get(other) or "") for other in others):
        return None
    return f"sets nothing without {written}"


def is_daemons(key: str) -> bool:
    is_read = any(key.startswith(name) if name.endswith(".") else key == name for name in _JOBS_TOO)
    return key.startswith(_DAEMONS) and not is_read
