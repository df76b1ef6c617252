"""Keys of Hadoop's that a job may be given and that nothing here reads: which are refused, and which do no harm.

What would make another answer of a job, or leave undone what somebody waits for or relies on, is refused when the job
is submitted. What only tunes Hadoop's own tasks sets nothing; whoever gives it on the command line is told so. The
compatibility page shows both tables, and an interop test holds them against Hadoop's mapred-default.xml.
"""

from collections.abc import Container, Iterator
from typing import Final

from tez_adapter.client.harmless_keys import HARMLESS
from tez_adapter.client.idle_keys import why_alone, why_idle
from yaqd.config import Configuration
from yaqd.config.catalogue import documentation
from yaqd.config.check import HADOOP_PREFIXES, nearest_key

_JAVA: Final = "it names Java classes, which cannot run here"
_SKIPPING: Final = "records that fail are not skipped here"
_SPLITS: Final = "input is divided by file, size and block alone"
_ENCRYPTION: Final = "map outputs are not encrypted here"
_CALLBACK: Final = "nobody is called when a job ends"
_LABELS: Final = "nodes have no labels here"
_DEBUG: Final = "no script runs where a task has failed"

#: key -> values that ask for nothing, and why others are refused; `*` in a name stands for any rest
REFUSED: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "mapred.mapper.class": ((), _JAVA),
    "mapred.reducer.class": ((), _JAVA),
    "mapred.combiner.class": ((), _JAVA),
    "mapred.map.runner.class": ((), _JAVA),
    "mapreduce.job.map.class": ((), _JAVA),
    "mapreduce.job.reduce.class": ((), _JAVA),
    "mapreduce.job.combine.class": ((), _JAVA),
    "mapred.input.format.class": (("org.apache.hadoop.mapred.TextInputFormat",), _JAVA),
    "mapred.output.format.class": (("org.apache.hadoop.mapred.TextOutputFormat",), _JAVA),
    "mapreduce.job.inputformat.class": (("org.apache.hadoop.mapreduce.lib.input.TextInputFormat",), _JAVA),
    "mapreduce.job.outputformat.class": (("org.apache.hadoop.mapreduce.lib.output.TextOutputFormat",), _JAVA),
    "mapreduce.output.lazyoutputformat.outputformat": ((), _JAVA),
    "mapreduce.input.multipleinputs.*": ((), _JAVA),
    "mapreduce.input.pathFilter.class": ((), _JAVA),
    "mapreduce.job.map.output.collector.class": (("org.apache.hadoop.mapred.MapTask$MapOutputBuffer",), _JAVA),
    "mapreduce.job.reduce.shuffle.consumer.plugin.class": (("org.apache.hadoop.mapreduce.task.reduce.Shuffle",), _JAVA),
    "mapreduce.outputcommitter.factory.class": ((), _JAVA),
    "mapreduce.job.end-notification.custom-notifier-class": ((), _JAVA),
    "stream.io.identifier.resolver.class": (("org.apache.hadoop.streaming.io.IdentifierResolver",), _JAVA),
    "stream.recordreader.*": ((), _JAVA),
    "stream.map.input.writer.class": ((), _JAVA),
    "stream.map.output.reader.class": ((), _JAVA),
    "stream.reduce.input.writer.class": ((), _JAVA),
    "stream.reduce.output.reader.class": ((), _JAVA),
    "textinputformat.record.delimiter": ((), "a record is a line here, whose end is LF, CR LF or CR"),
    "mapreduce.input.lineinputformat.linespermap": (("1",), _SPLITS),
    "mapreduce.job.skiprecords": (("false",), _SKIPPING),
    "mapreduce.job.skip.outdir": ((), _SKIPPING),
    "mapreduce.map.skip.maxrecords": (("0",), _SKIPPING),
    "mapreduce.reduce.skip.maxgroups": (("0",), _SKIPPING),
    "mapreduce.output.basename": (("part",), "output files are called part"),
    "mapreduce.job.encrypted-intermediate-data": (("false",), _ENCRYPTION),
    "mapreduce.shuffle.ssl.enabled": (("false",), _ENCRYPTION),
    "mapreduce.job.end-notification.url": ((), _CALLBACK),
    "mapreduce.job.node-label-expression": ((), _LABELS),
    "mapreduce.job.am.node-label-expression": ((), _LABELS),
    "mapreduce.map.node-label-expression": ((), _LABELS),
    "mapreduce.reduce.node-label-expression": ((), _LABELS),
    "mapreduce.map.debug.script": ((), _DEBUG),
    "mapreduce.reduce.debug.script": ((), _DEBUG),
}

_CLASS_FORMATS: Final = "name input_format and output_format in the job's class"
#: what streaming jobs are told by keys, and a Job class says itself
STREAMING_ONLY: Final = {
    "mapred.partitioner.class": "write partition() in the job's class",
    "mapreduce.job.partitioner.class": "write partition() in the job's class",
    "mapreduce.job.output.key.comparator.class": "let map() yield keys that sort as they should",
    "mapreduce.job.output.group.comparator.class": "let map() yield keys that are equal where they belong together",
    "stream.map.input": _CLASS_FORMATS,
    "stream.map.output": _CLASS_FORMATS,
    "stream.reduce.input": _CLASS_FORMATS,
    "stream.reduce.output": _CLASS_FORMATS,
}

_SPLIT_MAX: Final = "mapreduce.input.fileinputformat.split.maxsize"
#: what a key begins with that Hadoop knows; those of yarn. and yaq. are judged with the command line
_HADOOPS: Final = (*HADOOP_PREFIXES, "stream.", "map.", "job.", "jobclient.", "num.key.fields.")
#: what the HDFS client may read of the keys that it is handed whole
_HDFS_CLIENT: Final = (
    "dfs.client.",
    "dfs.data.transfer.",
    "dfs.encrypt.data.transfer",
    "dfs.ha.",
    "dfs.internal.nameservices",
    "dfs.namenode.http-address",
    "dfs.namenode.kerberos.",
    "dfs.namenode.rpc-address",
    "dfs.nameservice",
    "dfs.user.home.dir.prefix",
    "fs.viewfs.",
    "hadoop.rpc.protection",
    "hadoop.security.",
)
_FOR: Final = {name: purpose for purpose, names in HARMLESS.items() for name in names}


def refuse_keys(conf: Configuration, *, is_streaming: bool) -> None:
    """Raises ConfigError for the first key that asks for what is not there."""
    for key in conf.changed_keys():
        value = (conf.get(key) or "").strip()
        found = _refusal(key)
        if found is not None and value and value not in found[0]:
            raise conf.error(key, f"is not served: {found[1]}", "leave it out")
        if not is_streaming and value and key in STREAMING_ONLY:
            raise conf.error(key, "is for streaming jobs", f"leave it out, and {STREAMING_ONLY[key]}")


def key_notes(conf: Configuration, *, is_streaming: bool, own: Container[str] = ()) -> Iterator[str]:
    """Yields a line for each key of the command line that sets nothing, though it looks like Hadoop's or ours.

    `own`: names of the job's options, which may look so.
    """
    given = [key for key in conf.changed_keys() if _is_given(conf, key)]
    texts = [conf.raw(key) or "" for key in given]
    for key in given:
        is_used = key in own or any(f"${{{key}}}" in text for text in texts)
        said = None if is_used else _said_of(key, is_streaming=is_streaming)
        if said is None and not is_used and (alone := why_alone(key, conf)) is not None:
            said = f" {alone}"
        if said is not None:
            yield f"-D {key}{said}"


def _is_given(conf: Configuration, key: str) -> bool:
    origin = conf.origin(key)
    return origin is not None and origin.file is None


def _said_of(key: str, *, is_streaming: bool) -> str | None:
    """What follows the key in its line; None where it sets something, is refused, or is named already."""
    if is_streaming and key == _SPLIT_MAX:
        return " sets nothing in streaming jobs, as on Hadoop: mapreduce.job.maps says how many splits"
    if key in REFUSED or (not is_streaming and key in STREAMING_ONLY):
        return None
    if documentation(key) is not None:
        idle = why_idle(key, is_streaming=is_streaming)
        return f" {idle}" if idle else None
    if key in _FOR:
        return f" sets nothing here: it is for {_FOR[key]}"
    return _said_of_unknown(key)


def _said_of_unknown(key: str) -> str | None:
    if not key.startswith(_HADOOPS) or key.startswith(_HDFS_CLIENT):
        return None
    near = nearest_key(key)
    if near is None:
        return ": nothing here reads this key"
    # misspelt ones of these families are named with the command line
    return None if key.startswith(HADOOP_PREFIXES) else f": nothing here reads this key; did you mean {near}?"


def _refusal(key: str) -> tuple[tuple[str, ...], str] | None:
    if key in REFUSED:
        return REFUSED[key]
    families = (name for name in REFUSED if name.endswith("*") and key.startswith(name[:-1]))
    family = next(families, None)
    return None if family is None else REFUSED[family]
