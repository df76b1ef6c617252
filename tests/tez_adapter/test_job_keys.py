"""What a job is refused for, or told, whose settings name what is not there."""

import pytest

from tez_adapter.client.idle_keys import is_daemons
from tez_adapter.client.job_keys import key_notes, refuse_keys
from tez_adapter.streaming.settings import stream_settings
from yaqd.cli.compatibility.keys import key_uses
from yaqd.config import ConfigError, Configuration

FIELDS = "org.apache.hadoop.mapred.lib.KeyFieldBased"


def conf(**settings: str) -> Configuration:
    return Configuration.load(environ={}, overrides=settings)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("mapred.skip.on", "true", "records that fail are not skipped here"),
        ("mapred.mapper.class", "my.Mapper", "Java classes"),
        ("mapreduce.job.end-notification.url", "http://x", "nobody is called"),
        ("stream.recordreader.class", "StreamXmlRecordReader", "Java classes"),
        ("textinputformat.record.delimiter", ";", "a record is a line here"),
    ],
)
def test_what_would_change_the_answer_is_refused_with_its_key(key: str, value: str, said: str) -> None:
    for is_streaming in (True, False):
        with pytest.raises(ConfigError, match=said) as caught:
            refuse_keys(conf(**{key: value}), is_streaming=is_streaming)
        assert "leave it out" in str(caught.value)


def test_what_asks_for_nothing_is_taken() -> None:
    taken = {
        "mapreduce.job.skiprecords": "false",
        "mapred.input.format.class": "org.apache.hadoop.mapred.TextInputFormat",
        "mapreduce.map.skip.maxrecords": "0",
        "mapreduce.job.skip.outdir": "",
        "stream.map.output": "typedbytes",
    }
    refuse_keys(conf(**taken), is_streaming=True)
    assert list(key_notes(conf(**taken), is_streaming=True)) == []


def test_orders_of_keys_are_for_streaming_alone() -> None:
    settings = conf(**{"mapred.output.key.comparator.class": f"{FIELDS}Comparator"})
    refuse_keys(settings, is_streaming=True)
    with pytest.raises(ConfigError, match="is for streaming jobs"):
        refuse_keys(settings, is_streaming=False)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("mapred.child.java.opts", "-D mapred.child.java.opts sets nothing here: it is for Java processes"),
        ("mapreduce.other.way", "-D mapreduce.other.way: nothing here reads this key"),
        ("mapred.max.split.size", "-D mapreduce.input.fileinputformat.split.maxsize sets nothing in streaming jobs"),
        ("mapreduce.map.memry.mb", ""),  # the command line's own check says so
        ("mapred.reduce.tasks", ""),
        ("my.own", ""),
    ],
)
def test_what_sets_nothing_is_named(key: str, said: str) -> None:
    notes = list(key_notes(conf(**{key: "4"}), is_streaming=True))
    assert (said in notes[0]) if said else notes == []


DAEMONS = "sets nothing in a job: daemons alone read it"
STREAMING = "sets nothing in Job classes: it is for streaming jobs"
CLASSES = "sets nothing in streaming jobs: it is for Job classes"
UNREAD = ": nothing here reads this key"


@pytest.mark.parametrize(
    ("key", "in_class", "in_streaming"),
    [
        ("stream.num.map.output.key.fields", STREAMING, ""),
        ("stream.non.zero.exit.is.failure", STREAMING, ""),
        ("mapreduce.partition.keycomparator.options", STREAMING, "sets nothing without "),
        ("mapreduce.map.output.key.field.separator", STREAMING, "sets nothing without "),
        ("num.key.fields.for.partition", STREAMING, "sets nothing without "),
        ("mapreduce.job.maps", STREAMING, ""),
        ("yaq.input.combine-small-files", "", CLASSES),
        ("mapreduce.totalorderpartitioner.sample-records", "", CLASSES),
        ("yarn.nodemanager.pmem-check-enabled", DAEMONS, DAEMONS),
        ("yaq.queue.order", DAEMONS, DAEMONS),
        ("yaq.rm.scheduler.at-asks", DAEMONS, DAEMONS),
        ("yaq.nm.queue.order", DAEMONS, DAEMONS),
        ("yarn.resourcemanager.address", "", ""),
        ("yarn.nodemanager.remote-app-log-dir", "", ""),
        ("yaq.job.command.vcores", "it is for yaq run", "it is for yaq run"),
        ("fs.permissions.umask-mode", UNREAD, UNREAD),
        ("io.compression.codecs", UNREAD, UNREAD),
        ("stream.num.map.output.key.field", "did you mean stream.num.map", "did you mean stream.num.map"),
        ("dfs.client.use.datanode.hostname", "", ""),
        ("dfs.namenode.rpc-address.ns.nn1", "", ""),
        ("mapreduce.task.io.sort.mb", "", ""),
        ("mapreduce.framework.name", "", ""),
        ("my.own", "", ""),
    ],
)
def test_what_this_kind_of_job_does_not_read_is_named_once(key: str, in_class: str, in_streaming: str) -> None:
    for is_streaming, said in ((False, in_class), (True, in_streaming)):
        notes = list(key_notes(conf(**{key: "4"}), is_streaming=is_streaming))
        assert len(notes) == bool(said)
        assert not said or (notes[0].startswith(f"-D {key}") and said in notes[0])


@pytest.mark.parametrize(
    ("key", "needed", "value"),
    [
        ("mapreduce.partition.keycomparator.options", "mapred.output.key.comparator.class", f"{FIELDS}Comparator"),
        ("mapreduce.partition.keypartitioner.options", "mapred.partitioner.class", f"{FIELDS}Partitioner"),
        ("num.key.fields.for.partition", "mapred.partitioner.class", f"{FIELDS}Partitioner"),
        ("mapreduce.map.output.key.field.separator", "mapred.output.key.comparator.class", f"{FIELDS}Comparator"),
        ("mapreduce.output.fileoutputformat.compress.codec", "mapred.output.compress", "true"),
        ("stream.map.input.field.separator", "stream.map.input.ignoreKey", "false"),
    ],
)
def test_what_sets_nothing_without_another_key_is_named(key: str, needed: str, value: str) -> None:
    (said,) = key_notes(conf(**{key: "1"}), is_streaming=True)
    assert said.startswith(f"-D {key} sets nothing without ")
    assert list(key_notes(conf(**{key: "1", needed: value}), is_streaming=True)) == []


def test_keys_that_the_job_or_another_value_uses_set_something() -> None:
    used = {"hadoop.tmp.dir": "/t", "yarn.app.mapreduce.am.staging-dir": "${hadoop.tmp.dir}/s", "stream.mine": "1"}
    assert list(key_notes(conf(**used), is_streaming=False, own=["stream.mine"])) == []


@pytest.mark.slow
def test_daemons_keys_are_those_that_the_source_of_daemons_reads() -> None:
    for use in key_uses():
        if use.rooms and set(use.rooms) <= {"rm", "nm"}:
            assert is_daemons(use.name), use.name
        if "tez_adapter" in use.rooms:
            assert not is_daemons(use.name), use.name


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("mapred.partitioner.class", "my.Partitioner", f"{FIELDS}Partitioner"),
        ("mapreduce.job.output.key.comparator.class", "my.Comparator", "lib.partition.KeyFieldBasedComparator"),
    ],
)
def test_other_classes_are_refused_naming_those_that_are_there(key: str, value: str, said: str) -> None:
    with pytest.raises(ConfigError, match="names a Java class that is not there") as caught:
        stream_settings(conf(**{key: value}))
    assert said in str(caught.value)


@pytest.mark.parametrize("key", ["stream.map.output.field.separator", "stream.reduce.output.field.separator"])
def test_an_empty_separator_is_none_as_in_hadoops_job_file(key: str) -> None:
    empty, unset = stream_settings(conf(**{key: ""})), stream_settings(conf())
    assert (empty.map_output, empty.reduce_output) == (unset.map_output, unset.reduce_output)


def test_options_of_keys_that_cannot_be_read_are_refused() -> None:
    settings = {
        "mapred.output.key.comparator.class": f"{FIELDS}Comparator",
        "mapred.text.key.comparator.options": "-kx",
    }
    with pytest.raises(ConfigError, match="-k x: write it as"):
        stream_settings(conf(**settings))
