"""The data path of a job: columns, map output, shuffle fetch, reduce input."""

from riffle_merger.format.columns import Columns
from riffle_merger.format.errors import CorruptIndex, CorruptSegment, FormatError
from riffle_merger.format.output import WriteFailed
from tez_adapter.data.combine import HashCombiner, encoded_combiner
from tez_adapter.data.countedlines import CountedLines
from tez_adapter.data.fetch import Fetcher, FetchFailed, FetchFailure
from tez_adapter.data.fetchplan import FetchSettings, MapLocation
from tez_adapter.data.groups import Groups
from tez_adapter.data.lines import Fields, LineReader, LineTooLong, join_lines, split_lines
from tez_adapter.data.mapoutput import MapOutput, MapOutputFiles
from tez_adapter.data.partition import (
    HashPartitioner,
    KeyPartitioner,
    Partitioner,
    RangePartitioner,
    TextPartitioner,
    boundaries_from_sample,
)
from tez_adapter.data.reduceinput import ReduceInput

__all__ = [
    "Columns",
    "CorruptIndex",
    "CorruptSegment",
    "CountedLines",
    "FetchFailed",
    "FetchFailure",
    "FetchSettings",
    "Fetcher",
    "Fields",
    "FormatError",
    "Groups",
    "HashCombiner",
    "HashPartitioner",
    "KeyPartitioner",
    "LineReader",
    "LineTooLong",
    "MapLocation",
    "MapOutput",
    "MapOutputFiles",
    "Partitioner",
    "RangePartitioner",
    "ReduceInput",
    "TextPartitioner",
    "WriteFailed",
    "boundaries_from_sample",
    "encoded_combiner",
    "join_lines",
    "split_lines",
]
