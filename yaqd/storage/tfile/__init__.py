"""Aggregated container logs: Hadoop's TFile, the records on top of it, and where the files lie."""

from yaqd.storage.tfile.aggregated import AggregatedLogReader, AggregatedLogWriter, LogContent, LoggedFile
from yaqd.storage.tfile.layout import RemoteLogs
from yaqd.storage.tfile.primitives import BadTFile
from yaqd.storage.tfile.reader import ByteSource, StoredFile, TFileReader
from yaqd.storage.tfile.writer import COMPRESSIONS, TFileWriter

__all__ = [
    "COMPRESSIONS",
    "AggregatedLogReader",
    "AggregatedLogWriter",
    "BadTFile",
    "ByteSource",
    "LogContent",
    "LoggedFile",
    "RemoteLogs",
    "StoredFile",
    "TFileReader",
    "TFileWriter",
]
