"""What a streaming job's options say about its lines, its keys and their order: read by whoever submits, and by tasks.

Hadoop names Java classes for how keys are parted and ordered. Of those there are here the ones that need no Java: by
the whole key, which is Hadoop's default, and by fields of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tez_adapter.data import Columns, Fields, Partitioner, TextPartitioner
from tez_adapter.streaming.formats import PairReader, StreamFormat, pair_reader, shown_text
from tez_adapter.streaming.keyfields import (
    BadKeyOptions,
    KeyFields,
    KeyOrder,
    PlainKeyPartitioner,
    key_field_partitioner,
)
from yaqd.config import Configuration

PARTITIONER_KEY: Final = "mapred.partitioner.class"
COMPARATOR_KEY: Final = "mapreduce.job.output.key.comparator.class"
_PARTITIONER_KEYS: Final = (PARTITIONER_KEY, "mapreduce.job.partitioner.class")
_PARTITIONER_OPTIONS: Final = "mapreduce.partition.keypartitioner.options"
_COMPARATOR_OPTIONS: Final = "mapreduce.partition.keycomparator.options"
_FIRST_FIELDS: Final = "num.key.fields.for.partition"
_KEY_FIELD_SEPARATOR: Final = "mapreduce.map.output.key.field.separator"
_PACKAGES: Final = ("org.apache.hadoop.mapred.lib.", "org.apache.hadoop.mapreduce.lib.partition.")
_KEY_FIELD_PARTITIONERS: Final = tuple(f"{package}KeyFieldBasedPartitioner" for package in _PACKAGES)
_HASH_PARTITIONERS: Final = tuple(f"{package}HashPartitioner" for package in _PACKAGES)
_KEY_FIELD_COMPARATORS: Final = tuple(f"{package}KeyFieldBasedComparator" for package in _PACKAGES)
_TEXT_COMPARATOR: Final = "org.apache.hadoop.io.Text$Comparator"


MAP_INPUT: Final = "stream.map.input"
MAP_OUTPUT: Final = "stream.map.output"
REDUCE_INPUT: Final = "stream.reduce.input"
REDUCE_OUTPUT: Final = "stream.reduce.output"


@dataclass(frozen=True, slots=True)
class StreamSettings:
    map_input_format: StreamFormat
    #: also what keys and values are in the shuffle
    map_output_format: StreamFormat
    #: the combiner's, too
    reduce_input_format: StreamFormat
    reduce_output_format: StreamFormat
    #: of the mapper's lines
    map_output: Fields
    #: of the reducer's and the combiner's lines
    reduce_output: Fields
    #: between offset and line of the mapper's input; None: lines alone
    map_input_separator: bytes | None
    #: between key and value of the reducer's and the combiner's input
    reduce_input_separator: bytes
    partitioner: Partitioner
    #: None: keys compare as bytes
    order: KeyOrder | None

    @property
    def is_text_to_the_reducer(self) -> bool:
        """Whether mappers write lines, and reducers and combiners read and write them."""
        formats = {self.map_output_format, self.reduce_input_format, self.reduce_output_format}
        return formats == {StreamFormat.TEXT}

    def map_output_reader(self) -> PairReader:
        return pair_reader(self.map_output_format, self.map_output)

    def reduce_output_reader(self) -> PairReader:
        return pair_reader(self.reduce_output_format, self.reduce_output)

    @property
    def shuffle_partitioner(self) -> Partitioner:
        """The partitioner of keys as `to_shuffle` makes them."""
        return self.partitioner if self.order is None else PlainKeyPartitioner(self.partitioner)

    @property
    def to_shuffle(self) -> Callable[[Columns], Columns]:
        """From the pairs that a mapper writes to those that are sorted."""
        return self.order.coded if self.order is not None else lambda columns: columns

    @property
    def from_shuffle(self) -> Callable[[Columns], Columns]:
        return self.order.plain if self.order is not None else lambda columns: columns


def stream_settings(conf: Configuration) -> StreamSettings:
    """Raises ConfigError for what cannot be had."""
    ignores_keys = conf.get_bool("stream.map.input.ignoreKey", True)
    map_output = _format(conf, MAP_OUTPUT)
    return StreamSettings(
        map_input_format=_format(conf, MAP_INPUT),
        map_output_format=map_output,
        reduce_input_format=_format(conf, REDUCE_INPUT),
        reduce_output_format=_format(conf, REDUCE_OUTPUT),
        map_output=_fields(conf, "stream.map.output.field.separator", "stream.num.map.output.key.fields"),
        reduce_output=_fields(conf, "stream.reduce.output.field.separator", "stream.num.reduce.output.key.fields"),
        map_input_separator=None if ignores_keys else _bytes(conf, "stream.map.input.field.separator"),
        reduce_input_separator=_bytes(conf, "stream.reduce.input.field.separator"),
        partitioner=_partitioner(conf, map_output),
        order=_order(conf, map_output),
    )


def check_combiner(settings: StreamSettings, conf: Configuration) -> None:
    """Raises ConfigError where a combiner's output cannot take the place of the mapper's."""
    if settings.map_output_format is not settings.reduce_output_format:
        raise conf.error(
            REDUCE_OUTPUT,
            f"is what a combiner writes, too, whose pairs take the place of the mapper's in {MAP_OUTPUT}",
            f"set both to {settings.map_output_format}, or leave out -combiner",
        )


def _format(conf: Configuration, key: str) -> StreamFormat:
    name = conf.require(key).strip().lower()  # Hadoop does not mind the case either
    if name not in [*StreamFormat]:
        raise conf.error(
            key, "is no format that programs can read or write here", f"set it to {' or '.join(StreamFormat)}"
        )
    return StreamFormat(name)


def _fields(conf: Configuration, separator: str, count: str) -> Fields:
    return Fields(_bytes(conf, separator), max(1, conf.get_int(count, 1)))


def _bytes(conf: Configuration, key: str) -> bytes:
    """A separator, by default a TAB; an empty value is none, as in Hadoop's job.xml."""
    return (conf.get(key) or "\t").encode()


def _partitioner(conf: Configuration, written: StreamFormat) -> Partitioner:
    for key in _PARTITIONER_KEYS:
        name = (conf.get(key) or "").strip()
        if name in _KEY_FIELD_PARTITIONERS:
            return key_field_partitioner(_partition_fields(conf), shown_text(written))
        if name and name not in _HASH_PARTITIONERS:
            raise conf.error(key, *_no_class((_HASH_PARTITIONERS[0], _KEY_FIELD_PARTITIONERS[0])))
    return TextPartitioner()


def _partition_fields(conf: Configuration) -> KeyFields:
    separator = _bytes(conf, _KEY_FIELD_SEPARATOR)
    if conf.get(_FIRST_FIELDS) is not None:
        return KeyFields.first(conf.get_int(_FIRST_FIELDS, 0), separator)
    return _key_fields(conf, _PARTITIONER_OPTIONS)


def _order(conf: Configuration, written: StreamFormat) -> KeyOrder | None:
    name = (conf.get(COMPARATOR_KEY) or "").strip()
    if name in ("", _TEXT_COMPARATOR):
        return None
    if name not in _KEY_FIELD_COMPARATORS:
        raise conf.error(COMPARATOR_KEY, *_no_class((_KEY_FIELD_COMPARATORS[1], _TEXT_COMPARATOR)))
    if written is not StreamFormat.TEXT:
        raise conf.error(COMPARATOR_KEY, f"orders keys of text, and {MAP_OUTPUT} is {written}", "leave one of them out")
    fields = _key_fields(conf, _COMPARATOR_OPTIONS)
    return KeyOrder(fields) if fields.specs else None


def _key_fields(conf: Configuration, options: str) -> KeyFields:
    try:
        return KeyFields.parse(conf.get(options) or "", _bytes(conf, _KEY_FIELD_SEPARATOR))
    except BadKeyOptions as error:
        raise conf.error(options, str(error), "options are -n, -r, -nr and -k, with blanks between them") from None


def _no_class(served: tuple[str, ...]) -> tuple[str, str]:
    return "names a Java class that is not there", f"name {' or '.join(served)}, or none"
