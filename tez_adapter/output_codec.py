"""Which codec a job's map outputs have, by our words or Hadoop's class names.

Asked by the tasks, and before them by whoever submits: a codec that does not exist would fail every attempt of map 0.
"""

from typing import Final

from yaqd.config import Configuration

COMPRESS_KEY: Final = "mapreduce.map.output.compress"
CODEC_KEY: Final = "mapreduce.map.output.compress.codec"
DEFAULT: Final = "lz4"

#: In the order in which they are listed to users.
CODECS: Final = ("lz4", "snappy", "zstd", "none")
_HADOOPS_PACKAGE: Final = "org.apache.hadoop.io.compress."
#: Hadoop's other classes compress files that others read. Nobody but our own reduces reads our map outputs, so a site
#: that names one of these, as mapred-default.xml does, means: compressed, never mind how.
_HADOOPS_CLASSES: Final = {
    "Lz4Codec": "lz4",
    "SnappyCodec": "snappy",
    "ZStandardCodec": "zstd",
    "DefaultCodec": DEFAULT,
    "DeflateCodec": DEFAULT,
    "GzipCodec": DEFAULT,
    "BZip2Codec": DEFAULT,
}


def shuffle_codec(conf: Configuration) -> str:
    """Return the codec of the map output: lz4, snappy, zstd or none.

    Raises ConfigError for a word or class that is none of them.
    """
    if not conf.get_bool(COMPRESS_KEY, True):
        return "none"
    name = (conf.get(CODEC_KEY) or "").strip() or DEFAULT
    package, dot, short = name.rpartition(".")
    known = _HADOOPS_CLASSES.get(short) if package + dot == _HADOOPS_PACKAGE else name.lower()
    if known not in CODECS:
        remedy = f"write {', '.join(CODECS[:-1])} or {CODECS[-1]}, or Hadoop's class of one"
        raise conf.error(CODEC_KEY, "is no codec of map outputs", remedy)
    return known
